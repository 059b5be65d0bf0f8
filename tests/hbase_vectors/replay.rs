//! Runs a script line by line and compares every answer.

use super::protocol::{self, Parse};
use super::region::{Compacted, FileContents, LoadSize, START_OF_TIME, Selection, Setting, Subject};
use bytes::Bytes;
use cellfs::Error;
use cellfs::cell::{Cell, CellType};
use cellfs::client::{Mutation, MutationOutcome, ResultScanner, RowMutations, Scan, TableName, check_namespace_name};
use cellfs::schema::check_family_name;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How a script went.
#[derive(Debug, Default)]
pub struct Report {
    /// Operations compared.
    pub compared: usize,
    /// Operations on which HBase itself broke down, so that there is nothing to compare with.
    pub broken: usize,
    /// The first difference.
    pub difference: Option<String>,
}

/// What kind of error it is; texts are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    NoSuchFamily,
    NotALong,
    WrongRegion,
    /// Everything else that a request can do wrong.
    Illegal,
    /// Not the request's fault.
    Failure,
}

impl Kind {
    fn of(error: &Error) -> Kind {
        match error {
            Error::NoSuchColumnFamily { .. } => Kind::NoSuchFamily,
            Error::NotALong { .. } => Kind::NotALong,
            Error::InvalidArgument(_) | Error::CellTooLarge { .. } => Kind::Illegal,
            _ => Kind::Failure,
        }
    }

    /// Of an exception of HBase, by its class and message.
    fn of_hbase(class: &str, message: &str) -> Kind {
        match class {
            "NoSuchColumnFamilyException" => Kind::NoSuchFamily,
            "WrongRegionException" => Kind::WrongRegion,
            _ if message.starts_with("Requested row out of range") => Kind::WrongRegion,
            _ if message.starts_with("No such column family") => Kind::NoSuchFamily,
            _ if message.starts_with("Field is not a long") => Kind::NotALong,
            _ => Kind::Illegal,
        }
    }
}

/// Why there is no answer.
enum Refusal {
    Kind(Kind, String),
    NotUnderstood(String),
}

type Answer = Result<Value, Refusal>;

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Kind(Kind::of(&error), error.to_string())
    }
}

impl From<Parse> for Refusal {
    fn from(parse: Parse) -> Refusal {
        match parse {
            Parse::Refused(why) => Refusal::Kind(Kind::Illegal, why),
            Parse::NotUnderstood(what) => Refusal::NotUnderstood(what),
        }
    }
}

struct Replay {
    setting: &'static Setting,
    subject: Subject,
    now: i64,
    guesses: Guesses,
}

/// Where HBase broke down within an operation, the record does not say how far it had come. Each such place is a choice; a replay makes the first
/// ones as planned and takes the first possibility for the others.
#[derive(Default)]
struct Guesses {
    /// What was chosen, of how many.
    made: Vec<(usize, usize)>,
    planned: Vec<usize>,
}

impl Guesses {
    fn choose(&mut self, possibilities: usize) -> usize {
        let choice = self.planned.get(self.made.len()).copied().unwrap_or(0);
        self.made.push((choice, possibilities));
        choice
    }

    /// The next plan: the last choice that has another possibility takes it.
    fn next(mut self) -> Option<Guesses> {
        while let Some((choice, possibilities)) = self.made.pop() {
            if choice + 1 < possibilities {
                let before = self.made.iter().map(|(choice, _)| *choice);
                return Some(Guesses { planned: before.chain([choice + 1]).collect(), made: Vec::new() });
            }
        }
        None
    }
}

/// Replays of one script at most, for all that HBase's breakdowns leave open.
const MOST_REPLAYS: usize = 64;

/// Replays a whole script; stops at the first difference.
pub fn replay(script: &str, setting: &'static Setting) -> Report {
    let (mut report, mut guesses) = replay_guessing(script, setting, Guesses::default());
    for _ in 1..MOST_REPLAYS {
        let Some(next) = guesses.next().filter(|_| report.difference.is_some()) else { break };
        let (other, made) = replay_guessing(script, setting, next);
        guesses = made;
        // Of several replays that fail, the one that comes furthest says most.
        if other.difference.is_none() || other.compared > report.compared {
            report = other;
        }
    }
    report
}

fn replay_guessing(script: &str, setting: &'static Setting, guesses: Guesses) -> (Report, Guesses) {
    let mut replay = Replay { setting, subject: Subject::new(setting), now: START_OF_TIME, guesses };
    let mut report = Report::default();
    for (number, line) in script.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let difference = match serde_json::from_str(line) {
            Ok(op) => replay.step(&op, &mut report),
            Err(error) => Some(error.to_string()),
        };
        if let Some(difference) = difference {
            report.difference = Some(format!("line {}: {difference}", number + 1));
            break;
        }
    }
    (report, replay.guesses)
}

/// HBase itself broke down: there is no answer to compare with.
fn hbase_broke(recorded: &Value) -> bool {
    let message = recorded["message"].as_str().unwrap_or_default();
    match recorded["error"].as_str() {
        Some("NullPointerException" | "ArrayIndexOutOfBoundsException" | "IllegalStateException") => true,
        // A delete of the newest version gets more versions than it asked for where a MIN_VERSIONS one has expired.
        Some("RuntimeException") => message.starts_with("Unexpected size"),
        _ => false,
    }
}

impl Replay {
    /// One operation; says what differs.
    fn step(&mut self, op: &Value, report: &mut Report) -> Option<String> {
        let (kind, recorded) = (op["op"].as_str().unwrap_or_default(), &op["result"]);
        if hbase_broke(recorded) {
            report.broken += 1;
            let done = if kind == "compact" { self.compact_broken(op) } else { Ok(()) };
            return done.err().map(|_| "the engine broke down where HBase did".to_owned());
        }
        let answer = match self.subject.next_operation() {
            Ok(()) => self.run(kind, op),
            Err(error) => Err(error.into()),
        };
        report.compared += 1;
        let expected = expected(kind, recorded);
        let answered = match answer {
            Err(Refusal::NotUnderstood(what)) => return Some(format!("not understood: {what}")),
            Err(Refusal::Kind(kind, why)) => {
                let class = recorded["error"].as_str();
                let message = recorded["message"].as_str().unwrap_or_default();
                if class.is_some_and(|class| Kind::of_hbase(class, message) == kind) {
                    return None;
                }
                json!({ "error": format!("{kind:?}: {why}") })
            }
            Ok(answered) if answered == expected => return None,
            Ok(answered) if self.marker_passed_over(op, &answered, &expected) => {
                report.broken += 1;
                return None;
            }
            Ok(answered) => answered,
        };
        let mut asked = op.clone();
        asked.as_object_mut()?.remove("result");
        let mut place = String::new();
        let (expected, answered) = narrowed(&expected, &answered, &mut place);
        Some(format!("{asked}\n  HBase  {place} {expected}\n  cellfs {place} {answered}"))
    }

    /// HBase 2.6.4 leaves the cells of a column unread when the index says that the next column begins in a later block
    /// (`StoreScanner.trySkipToNextColumn`). Among the cells of the empty qualifier it passes over markers of the family, and shows what they hide.
    /// True if that is all that differs: HBase's answer has more cells, each under such a marker, in a family with files of several blocks.
    fn marker_passed_over(&mut self, op: &Value, answered: &Value, expected: &Value) -> bool {
        if op["raw"] == json!(true) || !matches!(op["op"].as_str(), Some("get" | "scan" | "scan_next")) {
            return false;
        }
        let (ours, theirs) = (cells_in(answered), cells_in(expected));
        let mut own = ours.iter().peekable();
        let extra: Vec<&Value> = theirs
            .into_iter()
            .filter(|cell| {
                let same = own.peek().is_some_and(|own| *own == cell);
                if same {
                    own.next();
                }
                !same
            })
            .collect();
        own.next().is_none()
            && !extra.is_empty()
            && extra.iter().all(|cell| self.is_under_family_marker(cell).unwrap_or(false))
    }

    fn is_under_family_marker(&mut self, cell: &Value) -> Result<bool, Error> {
        let (row, family) = (protocol::bytes(&cell[0]), protocol::bytes(&cell[1]));
        if !self.subject.has_blocks(&family)? {
            return Ok(false);
        }
        let mut raw = Scan::new();
        (raw.start_row, raw.stop_row, raw.include_stop) = (row.clone(), row, true);
        (raw.raw, raw.max_versions) = (true, u32::MAX);
        let stored = self.subject.scan(raw)?.next()?.unwrap_or_default().cells;
        let time = cell[3].as_i64().unwrap_or(-1);
        let hides = |marker: &Cell| match marker.cell_type() {
            CellType::DeleteFamily => marker.timestamp() >= time,
            CellType::DeleteFamilyVersion => marker.timestamp() == time,
            _ => false,
        };
        let mut markers = stored.iter().filter(|stored| stored.family() == family);
        Ok(markers.any(hides) && stored.iter().any(|stored| protocol::show_cell(stored) == *cell))
    }

    fn run(&mut self, kind: &str, op: &Value) -> Answer {
        match kind {
            "put" | "delete" | "increment" | "append" | "mutate_row" | "batch" | "check_and_mutate" => {
                self.write(kind, op)
            }
            "get" | "scan" | "scan_open" | "scan_next" | "scan_close" => self.read(kind, op),
            "flush" => Ok(json!({ "flushed": self.subject.flush()? })),
            "compact" => self.compact(op),
            "files" => {
                let family = op.get("family").map(protocol::bytes);
                let recorded = op["cells"] == json!(true);
                let found = self.subject.files(family.as_ref())?;
                Ok(show_families(found, |files| files.iter().map(|file| show_file(file, recorded)).collect()))
            }
            "bulk_load" => self.bulk_load(op),
            _ => {
                self.manage(kind, op)?;
                Ok(if kind == "clock" { json!({ "now": self.now }) } else { json!({ "ok": true }) })
            }
        }
    }

    fn bulk_load(&mut self, op: &Value) -> Answer {
        let cells = protocol::members(&op["cells"]).iter().map(protocol::bulk_cell).collect();
        let (family, assign) = (protocol::bytes(&op["family"]), op["assign_seq"] != json!(false));
        let mut size = LoadSize::Plain;
        if assign && self.subject.load_order_is_open(&family)? {
            size = [LoadSize::Plain, LoadSize::Larger, LoadSize::Smaller][self.guesses.choose(3)];
        }
        self.subject.bulk_load(&family, cells, assign, size)?;
        Ok(json!({ "loaded": true }))
    }

    fn manage(&mut self, kind: &str, op: &Value) -> Result<(), Refusal> {
        match kind {
            "comment" => {}
            "clock" => {
                self.now = op["set"].as_i64().unwrap_or(self.now) + op["add"].as_i64().unwrap_or(0);
                self.subject.set_clock(self.now);
            }
            "reset" => {
                self.subject = Subject::new(self.setting);
                self.now = START_OF_TIME;
            }
            "create" => {
                self.subject = Subject::new(self.setting);
                self.subject.set_clock(self.now);
                self.subject.create(op)??;
            }
            "alter" => self.subject.alter(op)??,
            "reopen" => self.subject.reopen()?,
            "name" => check_name(op)?,
            other => return Err(Refusal::NotUnderstood(other.to_owned())),
        }
        Ok(())
    }

    /// A region refuses rows beyond its borders.
    fn owned(&self, row: &[u8]) -> Result<(), Refusal> {
        if row.is_empty() || self.subject.owns(row) {
            return Ok(());
        }
        Err(Refusal::Kind(Kind::WrongRegion, "the row is beyond the region".to_owned()))
    }

    fn write(&mut self, kind: &str, op: &Value) -> Answer {
        match kind {
            "batch" => self.batch(op),
            "check_and_mutate" => {
                let check = protocol::check_and_mutate(op)?;
                self.owned(&check.row)?;
                let outcome = self.subject.check_and_mutate(check)?;
                let mut shown = json!({ "success": outcome.applied });
                if op["result"].get("cells").is_some() {
                    let then = &op["then"];
                    shown["cells"] = if outcome.applied { show_written(&outcome, then) } else { json!([]) };
                }
                Ok(shown)
            }
            _ => {
                let mutations: RowMutations = protocol::row_mutations(op, None)?;
                self.owned(&mutations.row)?;
                let outcome = self.subject.mutate_row(mutations)?;
                let returns = !matches!(kind, "put" | "delete");
                Ok(if returns { json!({ "cells": show_written(&outcome, op) }) } else { json!({ "ok": true }) })
            }
        }
    }

    fn batch(&mut self, op: &Value) -> Answer {
        let mutations = protocol::members(&op["mutations"])
            .iter()
            .map(|one| protocol::mutation(one, op.get("row").map(protocol::bytes).as_ref()));
        let mutations: Vec<Mutation> = mutations.collect::<Result<_, _>>()?;
        if op["atomic"] == json!(true) {
            mutations.iter().try_for_each(|mutation| self.owned(mutation.row()))?;
            let count = mutations.len();
            self.subject.batch_atomic(mutations)?;
            return Ok(json!({ "statuses": vec![json!("SUCCESS"); count] }));
        }
        let beyond: BTreeSet<usize> =
            (0..mutations.len()).filter(|at| self.owned(mutations[*at].row()).is_err()).collect();
        let inside = mutations.into_iter().enumerate().filter(|(at, _)| !beyond.contains(at));
        let mut statuses: Vec<Value> = self
            .subject
            .batch(inside.map(|(_, mutation)| mutation).collect())?
            .into_iter()
            .map(|answer| match answer {
                Ok(()) => json!("SUCCESS"),
                Err(Error::NoSuchColumnFamily { .. }) => json!("BAD_FAMILY"),
                Err(Error::InvalidArgument(_)) => json!("SANITY_CHECK_FAILURE"),
                Err(error) => json!(format!("FAILURE: {error}")),
            })
            .collect();
        beyond.into_iter().for_each(|at| statuses.insert(at, json!("SANITY_CHECK_FAILURE")));
        Ok(json!({ "statuses": statuses }))
    }

    fn read(&mut self, kind: &str, op: &Value) -> Answer {
        let id = op["id"].as_str().unwrap_or_default();
        Ok(match kind {
            "get" => {
                let get = protocol::get(op)?;
                self.owned(&get.row)?;
                if op["exists"] == json!(true) {
                    // HBase's region gives back no cells then, which the oracle takes for absence: existence is answered above the region.
                    self.subject.exists(&get)?;
                    return Ok(op["result"].clone());
                }
                json!({ "cells": show(&self.subject.get(&get)?, op) })
            }
            "scan" => rows(self.subject.scan(protocol::scan(op)?)?.as_mut(), usize::MAX, op)?,
            "scan_open" => {
                self.subject.open_scanner(id.to_owned(), protocol::scan(op)?)?;
                json!({ "ok": true })
            }
            "scan_next" => rows(self.subject.scanner(id), op["rows"].as_u64().unwrap_or(0) as usize, op)?,
            _ => {
                self.subject.close_scanner(id);
                json!({ "ok": true })
            }
        })
    }

    fn compact(&mut self, op: &Value) -> Answer {
        let family = op.get("family").map(protocol::bytes);
        let done = self.subject.compact(&selection(op)?, family.as_ref())?;
        Ok(show_families(done, show_compacted))
    }

    /// A compaction in which HBase broke down may have done a part of its work.
    fn compact_broken(&mut self, op: &Value) -> Result<(), Refusal> {
        let family = op.get("family").map(protocol::bytes);
        let possibilities = self.subject.may_break(family.as_ref())?;
        if possibilities > 0 {
            let nth = self.guesses.choose(possibilities);
            self.subject.compact_until(&selection(op)?, family.as_ref(), nth)?;
        }
        Ok(())
    }
}

fn selection(op: &Value) -> Result<Selection, Refusal> {
    let Some(files) = op.get("files") else {
        return Ok(if op["major"] == json!(true) { Selection::Major } else { Selection::Policy });
    };
    let places: Vec<usize> =
        protocol::members(files).iter().map(|place| place.as_u64().unwrap_or(0) as usize).collect();
    if places.windows(2).any(|pair| pair[0] + 1 != pair[1]) {
        return Err(Refusal::NotUnderstood("a compaction of files that are no neighbours".to_owned()));
    }
    Ok(Selection::Files(places))
}

/// The cells of an answer, one after another.
fn cells_in(answer: &Value) -> Vec<&Value> {
    let rows = protocol::members(&answer["rows"]).iter().flat_map(protocol::members);
    protocol::members(&answer["cells"]).iter().chain(rows).collect()
}

/// The first part in which two answers differ: a row, a file, a cell at the smallest.
fn narrowed<'v>(left: &'v Value, right: &'v Value, place: &mut String) -> (&'v Value, &'v Value) {
    let is_cell = |value: &Value| value.get(0).is_some_and(Value::is_string);
    match (left, right) {
        (Value::Object(fields), Value::Object(others)) if fields.keys().eq(others.keys()) => {
            let differs = fields.iter().find(|(name, value)| others.get(*name) != Some(value));
            if let Some((name, value)) = differs {
                *place += &format!(".{name}");
                return narrowed(value, &others[name], place);
            }
        }
        (Value::Array(items), Value::Array(others)) if !is_cell(left) && !is_cell(right) => {
            if let Some(at) = items.iter().zip(others).position(|(item, other)| item != other) {
                *place += &format!("[{at}]");
                return narrowed(&items[at], &others[at], place);
            }
        }
        _ => {}
    }
    (left, right)
}

fn check_name(op: &Value) -> Result<(), Refusal> {
    let name = protocol::bytes(&op["name"]);
    let text = String::from_utf8_lossy(&name);
    match op["kind"].as_str() {
        Some("namespace") => check_namespace_name(&text)?,
        Some("table") => drop(TableName::parse(&text)?),
        // How long a name may be, HBase asks of the descriptor, not of the name.
        Some("family") => check_family_name(name.get(..127).unwrap_or(&name))?,
        _ => return Err(Refusal::NotUnderstood("the kind of a name".to_owned())),
    }
    Ok(())
}

fn show_families<T>(families: BTreeMap<Bytes, T>, show: impl Fn(T) -> Value) -> Value {
    let entries = families.into_iter().map(|(family, found)| (protocol::escape(&family), show(found)));
    Value::Object(entries.collect())
}

fn show_compacted(compacted: Compacted) -> Value {
    let mut shown = json!({ "files": compacted.files });
    if compacted.files > 0 {
        shown["all_files"] = json!(compacted.all_files);
        shown["major"] = json!(compacted.major);
    }
    if compacted.expired_files_removed > 0 {
        shown["expired_files_removed"] = json!(compacted.expired_files_removed);
    }
    shown
}

/// What the file holds; its cells, if `recorded`.
fn show_file((view, cells): &FileContents, recorded: bool) -> Value {
    let mut types: BTreeMap<String, usize> = BTreeMap::new();
    for cell in cells {
        *types.entry(format!("{:?}", cell.cell_type())).or_default() += 1;
    }
    let Some(info) = view.file.opened().map(|reader| reader.info()) else { return json!("damaged") };
    let earliest_put = info.earliest_put.unwrap_or(i64::MAX);
    let mut shown = json!({ "entries": info.entries, "types": types, "delete_family_count": info.family_markers,
        "earliest_put_ts": earliest_put, "times": info.time_range });
    if recorded {
        shown["cells"] = json!(show(cells, &json!({})));
    }
    shown
}

/// The same of a recorded file.
fn expected_file(file: &Value) -> Value {
    let mut expected = json!({ "times": null });
    for member in ["entries", "types", "delete_family_count", "earliest_put_ts"] {
        expected[member] = file[member].clone();
    }
    if file["entries"] != json!(0) {
        expected["times"] = json!([file["min_ts"], file["max_ts"]]);
    }
    if file.get("cells").is_some() {
        expected["cells"] = normalize(&file["cells"]);
    }
    expected
}

fn show(cells: &[Cell], op: &Value) -> Vec<Value> {
    let shown = cells.iter().map(protocol::show_cell);
    if op["tags"] != json!(false) {
        return shown.collect();
    }
    shown
        .map(|cell| cell.as_array().map(|members| members.iter().take(6).cloned().collect()).unwrap_or_default())
        .collect()
}

/// The cells that increments and appends wrote, in the order of cells.
fn show_written(outcome: &MutationOutcome, op: &Value) -> Value {
    let mut wanted: BTreeSet<(Bytes, Bytes)> = BTreeSet::new();
    let alone = std::slice::from_ref(op);
    let mutations = if op["op"] == "mutate_row" { protocol::members(&op["mutations"]) } else { alone };
    for mutation in mutations.iter().filter(|one| one["op"] == "increment" || one["op"] == "append") {
        if mutation["return"] != json!(false) {
            wanted.extend(
                protocol::members(&mutation["cells"])
                    .iter()
                    .map(|cell| (protocol::bytes(&cell[0]), protocol::bytes(&cell[1]))),
            );
        }
    }
    let is_wanted = |cell: &&Cell| {
        wanted.iter().any(|(family, qualifier)| cell.family() == family && cell.qualifier() == qualifier)
    };
    let mut cells: Vec<Cell> = outcome.written.iter().filter(is_wanted).cloned().collect();
    cells.sort_by(cellfs::cell::compare);
    json!(show(&cells, op))
}

fn rows(scanner: &mut dyn ResultScanner, most: usize, op: &Value) -> Result<Value, Error> {
    let mut rows = Vec::new();
    while rows.len() < most
        && let Some(row) = scanner.next()?
    {
        rows.push(show(&row.cells, op));
    }
    Ok(json!({ "rows": rows }))
}

fn normalize(cells: &Value) -> Value {
    protocol::members(cells).iter().map(protocol::normalize_cell).collect()
}

/// The recorded result, reduced to what is compared.
fn expected(kind: &str, recorded: &Value) -> Value {
    let mut expected = recorded.clone();
    if let Some(class) = recorded.get("error") {
        return json!({ "error": class, "message": recorded["message"] });
    }
    if recorded.get("cells").is_some() {
        expected["cells"] = normalize(&recorded["cells"]);
    }
    if recorded.get("rows").is_some() {
        expected["rows"] = protocol::members(&recorded["rows"]).iter().map(normalize).collect();
    }
    if recorded.get("statuses").is_some() {
        expected["statuses"] =
            protocol::members(&recorded["statuses"]).iter().map(|one| one["status"].clone()).collect();
    }
    if kind == "files" {
        let families = recorded.as_object().into_iter().flatten();
        let files = |files: &Value| protocol::members(files).iter().map(expected_file).collect();
        expected = Value::Object(families.map(|(name, list)| (name.clone(), files(list))).collect());
    }
    expected
}
