//! The protocol of the recorded scripts: bytes, cells and requests in JSON.

use bytes::Bytes;
use cellfs::cell::{Cell, CellType, Tag};
use cellfs::client::{
    Append, CheckAndMutate, ColumnSelection, CompareOperator, Condition, Delete, DeleteMarker, Get, Increment,
    Mutation, Put, RowMutations, Scan, TimeRange, WriteTime,
};
use cellfs::schema::Durability;
use serde_json::{Value, json};
use std::collections::BTreeMap;

pub type Parsed<T> = Result<T, Parse>;

/// Why an operation is not run.
#[derive(Debug)]
pub enum Parse {
    /// Not in this replayer.
    NotUnderstood(String),
    /// Illegal before it reaches the engine.
    Refused(String),
}

/// Text with `\xNN` escapes, or `{"fill": text, "length": n}`.
pub fn bytes(value: &Value) -> Bytes {
    if let Some(text) = value.as_str() {
        return unescape(text).into();
    }
    if let Some(fill) = value.get("fill") {
        let pattern = unescape(fill.as_str().unwrap());
        let length = value["length"].as_u64().unwrap() as usize;
        return pattern.iter().copied().cycle().take(length).collect::<Vec<u8>>().into();
    }
    Bytes::new()
}

pub fn unescape(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first == b'\\' && after.first() == Some(&b'x') && after.len() >= 3 {
            let hex = std::str::from_utf8(&after[1..3]).unwrap();
            out.push(u8::from_str_radix(hex, 16).unwrap());
            rest = &after[3..];
        } else {
            out.push(*first);
        }
    }
    out
}

pub fn escape(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|byte| match byte {
            b'\\' => "\\x5C".to_string(),
            0x20..=0x7E => char::from(*byte).to_string(),
            _ => format!("\\x{byte:02X}"),
        })
        .collect()
}

/// A cell as a result shows it: six members, and tags where there are any.
pub fn show_cell(cell: &Cell) -> Value {
    let mut shown = json!([
        escape(cell.row()),
        escape(cell.family()),
        escape(cell.qualifier()),
        cell.timestamp(),
        format!("{:?}", cell.cell_type()),
        escape(cell.value())
    ]);
    let tags: Vec<Value> = cell.tag_iter().map(|(kind, value)| json!([kind, escape(value)])).collect();
    if !tags.is_empty() {
        shown.as_array_mut().unwrap().push(json!({ "tags": tags }));
    }
    shown
}

/// A recorded cell in the form of [`show_cell`]: escapes made uniform, the sequence id left out.
pub fn normalize_cell(recorded: &Value) -> Value {
    let mut members = recorded.as_array().unwrap().clone();
    for at in [0, 1, 2, 5] {
        members[at] = json!(escape(&bytes(&members[at])));
    }
    if let Some(tags) = members.get(6).and_then(|more| more.get("tags")).cloned() {
        let tags: Vec<Value> =
            tags.as_array().unwrap().iter().map(|tag| json!([tag[0], escape(&bytes(&tag[1]))])).collect();
        members[6] = json!({ "tags": tags });
    } else {
        members.truncate(6);
    }
    Value::Array(members)
}

pub fn cell_type(name: &str) -> CellType {
    match name {
        "Put" => CellType::Put,
        "Delete" => CellType::Delete,
        "DeleteFamilyVersion" => CellType::DeleteFamilyVersion,
        "DeleteColumn" => CellType::DeleteColumn,
        "DeleteFamily" => CellType::DeleteFamily,
        other => panic!("unknown type {other}"),
    }
}

/// A cell of `bulk_load`.
pub fn bulk_cell(value: &Value) -> Cell {
    Cell::new(
        &bytes(&value[0]),
        &bytes(&value[1]),
        &bytes(&value[2]),
        value[3].as_i64().unwrap(),
        cell_type(value[4].as_str().unwrap()),
        &bytes(&value[5]),
    )
}

fn write_time(value: Option<&Value>) -> Parsed<WriteTime> {
    match value.and_then(Value::as_i64) {
        None | Some(i64::MAX) => Ok(WriteTime::Now),
        Some(negative) if negative < 0 => Err(Parse::Refused("negative timestamp".into())),
        Some(time) => Ok(WriteTime::At(time)),
    }
}

pub fn members(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn time_range(value: &Value) -> Parsed<TimeRange> {
    match value {
        Value::Null => Ok(TimeRange::ALL),
        range => TimeRange::new(range[0].as_i64().unwrap(), range[1].as_i64().unwrap())
            .map_err(|error| Parse::Refused(error.to_string())),
    }
}

fn family_time_ranges(op: &Value) -> Parsed<BTreeMap<Bytes, TimeRange>> {
    let ranges = op.get("family_time_ranges").and_then(Value::as_object).into_iter().flatten();
    ranges.map(|(family, range)| Ok((unescape(family).into(), time_range(range)?))).collect()
}

/// put, delete, increment or append; `row` where the operation itself names none.
pub fn mutation(op: &Value, row: Option<&Bytes>) -> Parsed<Mutation> {
    let row = match op.get("row") {
        Some(own) => bytes(own),
        None => row.unwrap().clone(),
    };
    let cells = members(&op["cells"]);
    let ttl_millis = op.get("ttl").and_then(Value::as_u64);
    match op["op"].as_str().unwrap() {
        "put" => {
            let mut put = Put::new(row);
            put.ttl_millis = ttl_millis;
            for cell in cells {
                let time = write_time(cell.get(3).filter(|time| !time.is_null()).or(op.get("ts")))?;
                put = put.add_at(bytes(&cell[0]), bytes(&cell[1]), time, bytes(&cell[2]));
                if let Some(last) = put.cells.last_mut() {
                    last.tags = members(&cell[4]).iter().map(tag).collect();
                }
            }
            Ok(Mutation::Put(put))
        }
        "delete" => delete(op, row).map(Mutation::Delete),
        "increment" => Ok(Mutation::Increment(Increment {
            row,
            amounts: cells.iter().map(|c| (bytes(&c[0]), bytes(&c[1]), c[2].as_i64().unwrap())).collect(),
            time: WriteTime::Now,
            time_range: time_range(&op["time_range"])?,
            ttl_millis,
            durability: Durability::UseDefault,
        })),
        "append" => Ok(Mutation::Append(Append {
            row,
            values: cells.iter().map(|c| (bytes(&c[0]), bytes(&c[1]), bytes(&c[2]))).collect(),
            time: WriteTime::Now,
            time_range: time_range(&op["time_range"])?,
            ttl_millis,
            durability: Durability::UseDefault,
        })),
        other => Err(Parse::NotUnderstood(format!("mutation {other}"))),
    }
}

fn tag(value: &Value) -> Tag {
    Tag { kind: value[0].as_u64().unwrap() as u8, value: bytes(&value[1]) }
}

fn delete(op: &Value, row: Bytes) -> Parsed<Delete> {
    if op.get("ttl").is_some() {
        return Err(Parse::Refused("a delete has no TTL".into()));
    }
    let mut delete = Delete::row(row);
    delete.row_time = write_time(op.get("ts"))?;
    for cell in members(&op["cells"]) {
        let (family, qualifier) = (bytes(&cell[1]), bytes(&cell[2]));
        // But for DeleteFamilyVersion, what has no time of its own takes the whole request's.
        let own = cell.get(3).filter(|time| !time.is_null());
        let time = write_time(if cell[0] == "DeleteFamilyVersion" { own } else { own.or(op.get("ts")) })?;
        if cell[0] == "DeleteFamily" {
            // HBase's client forgets what was added of the family before (Delete.addFamily).
            delete.markers.retain(|marker| family_of(marker) != &family);
        }
        delete = delete.marker(match cell[0].as_str().unwrap() {
            "Delete" => DeleteMarker::Version { family, qualifier, time },
            "DeleteColumn" => DeleteMarker::Column { family, qualifier, time },
            "DeleteFamily" => DeleteMarker::Family { family, time },
            "DeleteFamilyVersion" => DeleteMarker::FamilyVersion { family, time },
            other => return Err(Parse::NotUnderstood(format!("marker {other}"))),
        });
    }
    Ok(delete)
}

fn family_of(marker: &DeleteMarker) -> &Bytes {
    match marker {
        DeleteMarker::Version { family, .. }
        | DeleteMarker::Column { family, .. }
        | DeleteMarker::Family { family, .. }
        | DeleteMarker::FamilyVersion { family, .. } => family,
    }
}

/// mutate_row, or any single mutation as one.
pub fn row_mutations(op: &Value, row: Option<&Bytes>) -> Parsed<RowMutations> {
    if op["op"] != "mutate_row" {
        let mutation = mutation(op, row)?;
        return Ok(RowMutations { row: mutation.row().clone(), mutations: vec![mutation] });
    }
    let row = op.get("row").map(bytes).or(row.cloned()).unwrap();
    let mutations: Vec<Mutation> =
        members(&op["mutations"]).iter().map(|one| mutation(one, Some(&row))).collect::<Parsed<_>>()?;
    if mutations.iter().any(|mutation| *mutation.row() != row) {
        return Err(Parse::Refused("a mutation of another row".into()));
    }
    Ok(RowMutations { row, mutations })
}

pub fn check_and_mutate(op: &Value) -> Parsed<CheckAndMutate> {
    let row = bytes(&op["row"]);
    let time_range = time_range(&op["time_range"])?;
    let value = &op["value"];
    let condition = match super::filters::filter(op)? {
        Some(filter) => Condition::Filter { filter, time_range },
        None => Condition::Column {
            family: bytes(&op["family"]),
            qualifier: bytes(&op["qualifier"]),
            operator: compare_operator(&op["compare"])?,
            value: (!value.is_null()).then(|| bytes(value)),
            time_range,
        },
    };
    Ok(CheckAndMutate { condition, then: row_mutations(&op["then"], Some(&row))?, row })
}

pub fn compare_operator(name: &Value) -> Parsed<CompareOperator> {
    Ok(match name.as_str().unwrap_or("EQUAL") {
        "LESS" => CompareOperator::Less,
        "LESS_OR_EQUAL" => CompareOperator::LessOrEqual,
        "EQUAL" => CompareOperator::Equal,
        "NOT_EQUAL" => CompareOperator::NotEqual,
        "GREATER_OR_EQUAL" => CompareOperator::GreaterOrEqual,
        "GREATER" => CompareOperator::Greater,
        "NO_OP" => CompareOperator::NoOp,
        other => return Err(Parse::NotUnderstood(format!("operator {other}"))),
    })
}

fn columns(op: &Value) -> ColumnSelection {
    let mut selection = ColumnSelection::default();
    for column in members(&op["columns"]) {
        match column.get(1) {
            Some(qualifier) => selection.add_column(bytes(&column[0]), bytes(qualifier)),
            None => selection.add_family(bytes(&column[0])),
        }
    }
    selection
}

fn versions(op: &Value) -> u32 {
    op.get("versions").and_then(Value::as_u64).map_or(1, |versions| versions as u32)
}

fn store_limit(op: &Value) -> Option<usize> {
    op.get("store_limit").and_then(Value::as_u64).map(|limit| limit as usize)
}

fn store_offset(op: &Value) -> usize {
    op.get("store_offset").and_then(Value::as_u64).unwrap_or(0) as usize
}

/// The scan of a `get`: a get is a scan of one row, and here may carry what only scans carry.
pub fn get(op: &Value) -> Parsed<Get> {
    let mut get = Get::new(bytes(&op["row"]));
    get.columns = columns(op);
    get.max_versions = versions(op);
    get.time_range = time_range(&op["time_range"])?;
    get.family_time_ranges = family_time_ranges(op)?;
    get.store_limit = store_limit(op);
    get.store_offset = store_offset(op);
    get.filter = super::filters::filter(op)?;
    Ok(get)
}

pub fn scan(op: &Value) -> Parsed<Scan> {
    let mut scan = Scan::new();
    scan.start_row = op.get("start").map(bytes).unwrap_or_default();
    scan.include_start = op.get("start_inclusive").and_then(Value::as_bool).unwrap_or(true);
    scan.stop_row = op.get("stop").map(bytes).unwrap_or_default();
    scan.include_stop = op.get("stop_inclusive").and_then(Value::as_bool).unwrap_or(false);
    scan.prefix = op.get("prefix").map(bytes).unwrap_or_default();
    scan.reversed = op.get("reverse").and_then(Value::as_bool).unwrap_or(false);
    scan.limit = op.get("limit").and_then(Value::as_u64);
    scan.columns = columns(op);
    scan.max_versions = versions(op);
    scan.time_range = time_range(&op["time_range"])?;
    scan.raw = op.get("raw").and_then(Value::as_bool).unwrap_or(false);
    scan.batch = op.get("batch").and_then(Value::as_u64).map(|batch| batch as usize);
    scan.store_limit = store_limit(op);
    scan.store_offset = store_offset(op);
    scan.family_time_ranges = family_time_ranges(op)?;
    scan.filter = super::filters::filter(op)?;
    // It is the region server that turns this on where the client is silent; the recorded scans speak to a region.
    scan.load_column_families_on_demand = false;
    Ok(scan)
}
