//! The protocol of the recorded scripts: bytes, cells and requests in JSON.

use bytes::Bytes;
use cellfs::cell::{Cell, CellType, Tag, encode_tags};
use cellfs::client::{
    Append, CheckAndMutate, ColumnSelection, CompareOperator, Condition, Delete, DeleteMarker, Get, Increment,
    Mutation, Put, RowMutations, Scan, TimeRange, WriteTime,
};
use cellfs::schema::{
    BloomType, ColumnFamilyDescriptor, Compression, DataBlockEncoding, Durability, FOREVER, KeepDeletedCells,
};
use serde_json::{Value, json};

pub type Parsed<T> = Result<T, Parse>;

/// Why an operation is not run.
#[derive(Debug)]
pub enum Parse {
    /// Not in this replayer.
    Unsupported(String),
    /// The request is illegal before it reaches the engine.
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

fn unescape(text: &str) -> Vec<u8> {
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

fn escape(bytes: &[u8]) -> String {
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

fn members(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn time_range(value: &Value) -> Parsed<TimeRange> {
    match value {
        Value::Null => Ok(TimeRange::ALL),
        range => TimeRange::new(range[0].as_i64().unwrap(), range[1].as_i64().unwrap())
            .map_err(|error| Parse::Refused(error.to_string())),
    }
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
                put = put.add_at(bytes(&cell[0]), bytes(&cell[1]), write_time(cell.get(3))?, bytes(&cell[2]));
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
        other => panic!("unknown mutation {other}"),
    }
}

fn delete(op: &Value, row: Bytes) -> Parsed<Delete> {
    if op.get("ttl").is_some() {
        return Err(Parse::Refused("a delete has no TTL".into()));
    }
    let mut delete = Delete::row(row);
    delete.row_time = write_time(op.get("ts"))?;
    for cell in members(&op["cells"]) {
        let (family, qualifier, time) = (bytes(&cell[1]), bytes(&cell[2]), write_time(cell.get(3))?);
        if cell[0] == "DeleteFamily" {
            // HBase's client forgets what was added of the family before (Delete.addFamily).
            delete.markers.retain(|marker| family_of(marker) != &family);
        }
        delete = delete.marker(match cell[0].as_str().unwrap() {
            "Delete" => DeleteMarker::Version { family, qualifier, time },
            "DeleteColumn" => DeleteMarker::Column { family, qualifier, time },
            "DeleteFamily" => DeleteMarker::Family { family, time },
            "DeleteFamilyVersion" => DeleteMarker::FamilyVersion { family, time },
            other => panic!("unknown marker {other}"),
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
            operator: compare_operator(&op["compare"]),
            value: (!value.is_null()).then(|| bytes(value)),
            time_range,
        },
    };
    Ok(CheckAndMutate { condition, then: row_mutations(&op["then"], Some(&row))?, row })
}

pub fn compare_operator(name: &Value) -> CompareOperator {
    match name.as_str().unwrap_or("EQUAL") {
        "LESS" => CompareOperator::Less,
        "LESS_OR_EQUAL" => CompareOperator::LessOrEqual,
        "EQUAL" => CompareOperator::Equal,
        "NOT_EQUAL" => CompareOperator::NotEqual,
        "GREATER_OR_EQUAL" => CompareOperator::GreaterOrEqual,
        "GREATER" => CompareOperator::Greater,
        "NO_OP" => CompareOperator::NoOp,
        other => panic!("unknown operator {other}"),
    }
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
    if op.get("exists").is_some() {
        return Err(Parse::Unsupported("existence, which HBase answers above the region".into()));
    }
    if op.get("family_time_ranges").is_some() {
        return Err(Parse::Unsupported("get with family_time_ranges".into()));
    }
    let mut get = Get::new(bytes(&op["row"]));
    get.columns = columns(op);
    get.max_versions = versions(op);
    get.time_range = time_range(&op["time_range"])?;
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
    if let Some(ranges) = op.get("family_time_ranges").and_then(Value::as_object) {
        for (family, range) in ranges {
            scan.family_time_ranges.insert(unescape(family).into(), time_range(range)?);
        }
    }
    scan.filter = super::filters::filter(op)?;
    Ok(scan)
}

/// A family's attributes, or what is not a family's attribute here.
pub fn family(attributes: &Value) -> Parsed<ColumnFamilyDescriptor> {
    let mut family = ColumnFamilyDescriptor::default();
    let number = |text: &str| text.parse::<i64>().map_err(|error| Parse::Refused(error.to_string()));
    for (name, value) in attributes.as_object().unwrap() {
        let value = value.as_str().unwrap();
        match name.as_str() {
            "VERSIONS" => family.versions = u32::try_from(number(value)?).unwrap_or(0),
            "MIN_VERSIONS" => family.min_versions = u32::try_from(number(value)?).unwrap_or(u32::MAX),
            "TTL" if value == "FOREVER" => family.ttl_seconds = FOREVER,
            "TTL" => family.ttl_seconds = number(value)? as i32,
            "KEEP_DELETED_CELLS" => {
                family.keep_deleted_cells = match value {
                    "FALSE" => KeepDeletedCells::False,
                    "TRUE" => KeepDeletedCells::True,
                    "TTL" => KeepDeletedCells::Ttl,
                    other => return Err(Parse::Refused(format!("no KEEP_DELETED_CELLS {other}"))),
                }
            }
            "NEW_VERSION_BEHAVIOR" => family.new_version_behavior = value == "true",
            "BLOOMFILTER" => {
                family.bloom = match value {
                    "NONE" => BloomType::None,
                    "ROW" => BloomType::Row,
                    "ROWCOL" => BloomType::RowCol,
                    other => return Err(Parse::Refused(format!("no bloom filter {other}"))),
                }
            }
            "BLOCKSIZE" => family.block_size = number(value)? as u32,
            "COMPRESSION" => {
                family.compression = match value {
                    "NONE" => Compression::None,
                    "GZ" => Compression::Gz,
                    "SNAPPY" => Compression::Snappy,
                    "LZ4" => Compression::Lz4,
                    "ZSTD" => Compression::Zstd,
                    other => return Err(Parse::Refused(format!("no codec {other}"))),
                }
            }
            "DATA_BLOCK_ENCODING" => {
                family.data_block_encoding = match value {
                    "NONE" => DataBlockEncoding::None,
                    "PREFIX" => DataBlockEncoding::Prefix,
                    "DIFF" => DataBlockEncoding::Diff,
                    "FAST_DIFF" => DataBlockEncoding::FastDiff,
                    "ROW_INDEX_V1" => DataBlockEncoding::RowIndexV1,
                    other => return Err(Parse::Refused(format!("no encoding {other}"))),
                }
            }
            "REPLICATION_SCOPE" => return Err(Parse::Refused("no replication".into())),
            other => return Err(Parse::Unsupported(format!("attribute {other}"))),
        }
    }
    Ok(family)
}

/// The tag of a cell's own TTL.
pub fn ttl_tag(ttl_millis: u64) -> Bytes {
    encode_tags(&[Tag { kind: cellfs::cell::tag_type::TTL, value: Bytes::copy_from_slice(&ttl_millis.to_be_bytes()) }])
}
