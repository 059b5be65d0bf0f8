//! Runs a script line by line and compares.

use super::protocol::{self, Parse};
use super::subject::{Compacted, Families, Selection, Subject};
use cellfs::cell::Cell;
use cellfs::client::{MutationOutcome, ResultScanner};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// How a script went.
#[derive(Debug, Default)]
pub struct Report {
    /// Operations run and compared.
    pub compared: usize,
    /// Operations left out, by reason.
    pub unsupported: BTreeMap<String, usize>,
    /// Why the script was given up: without that operation the rest means nothing.
    pub given_up: Option<String>,
    /// What differed.
    pub failures: Vec<String>,
}

struct Replay<'a> {
    subject: &'a mut dyn Subject,
    now: i64,
    scanners: BTreeMap<String, Box<dyn ResultScanner>>,
    report: Report,
}

/// Replays a whole script; stops at the first difference.
pub fn replay(script: &str, subject: &mut dyn Subject) -> Report {
    let mut replay = Replay { subject, now: 1_000_000_000_000, scanners: BTreeMap::new(), report: Report::default() };
    for (number, line) in script.lines().enumerate() {
        let op: Value = serde_json::from_str(line).unwrap();
        replay.step(&op, number + 1);
        if !replay.report.failures.is_empty() || replay.report.given_up.is_some() {
            break;
        }
    }
    replay.report
}

/// HBase itself broke down: there is no answer to compare with, and nothing was changed.
fn hbase_broke(recorded: &Value) -> bool {
    matches!(
        recorded["error"].as_str(),
        Some("NullPointerException" | "ArrayIndexOutOfBoundsException" | "RuntimeException" | "IllegalStateException")
    )
}

impl Replay<'_> {
    fn step(&mut self, op: &Value, line: usize) {
        let (kind, recorded) = (op["op"].as_str().unwrap(), &op["result"]);
        if hbase_broke(recorded) && recorded["error"] != "RuntimeException" {
            *self.report.unsupported.entry("HBase failed".into()).or_default() += 1;
            return;
        }
        let answer = match self.run(kind, op) {
            Ok(answer) => answer,
            Err(Parse::Refused(why)) => json!({ "error": why }),
            Err(Parse::Unsupported(why)) => {
                let changes_state = !matches!(kind, "get" | "scan" | "files" | "name");
                if changes_state {
                    self.report.given_up = Some(why.clone());
                }
                *self.report.unsupported.entry(why).or_default() += 1;
                return;
            }
        };
        self.report.compared += 1;
        let expected = expected(kind, recorded);
        if answer != expected && !(answer.get("error").is_some() && expected.get("error").is_some()) {
            let mut asked = op.clone();
            asked["result"].take();
            self.report.failures.push(format!("line {line}: {asked}\n  expected {expected}\n  answered {answer}"));
        }
    }

    fn run(&mut self, kind: &str, op: &Value) -> Result<Value, Parse> {
        let subject = &mut *self.subject;
        Ok(match kind {
            "comment" => json!({ "ok": true }),
            "clock" => {
                self.now = op["set"].as_i64().unwrap_or_else(|| self.now + op["add"].as_i64().unwrap());
                subject.set_clock(self.now);
                json!({ "now": self.now })
            }
            "create" => {
                if op.get("conf").is_some() || op.get("start_key").is_some() {
                    return Err(Parse::Unsupported("create with conf or borders".into()));
                }
                let mut families = Families::new();
                for (name, attributes) in op["families"].as_object().unwrap() {
                    families.insert(protocol::bytes(&json!(name)), protocol::family(attributes)?);
                }
                done(subject.create(&families))
            }
            "put" | "delete" => done(subject.mutate_row(protocol::row_mutations(op, None)?)),
            "increment" | "append" | "mutate_row" => {
                written(subject.mutate_row(protocol::row_mutations(op, None)?), op)
            }
            "batch" => return self.batch(op),
            "check_and_mutate" => check(subject.check_and_mutate(protocol::check_and_mutate(op)?), &op["then"]),
            "get" => match subject.get(&protocol::get(op)?) {
                Ok(cells) => json!({ "cells": show(&cells) }),
                Err(error) => json!({ "error": error.to_string() }),
            },
            "scan" => match subject.scan(&protocol::scan(op)?) {
                Ok(mut scanner) => {
                    let rows = rows(scanner.as_mut(), usize::MAX);
                    subject.close_scanner(scanner);
                    rows
                }
                Err(error) => json!({ "error": error.to_string() }),
            },
            "scan_open" => {
                let scanner = subject.scan(&protocol::scan(op)?).unwrap();
                self.scanners.insert(op["id"].to_string(), scanner);
                json!({ "ok": true })
            }
            "scan_next" => {
                let scanner = self.scanners.get_mut(&op["id"].to_string()).unwrap();
                rows(scanner.as_mut(), op["rows"].as_u64().unwrap() as usize)
            }
            "scan_close" => {
                let scanner = self.scanners.remove(&op["id"].to_string()).unwrap();
                subject.close_scanner(scanner);
                json!({ "ok": true })
            }
            "flush" => match subject.flush() {
                Ok(flushed) => json!({ "flushed": flushed }),
                Err(error) => json!({ "error": error.to_string() }),
            },
            "reopen" => done(subject.reopen()),
            "compact" => return self.compact(op),
            "files" => return self.files(),
            "bulk_load" => {
                let cells = op["cells"].as_array().unwrap().iter().map(protocol::bulk_cell).collect();
                match subject.bulk_load(&protocol::bytes(&op["family"]), cells, op["assign_seq"] != json!(false)) {
                    Some(Ok(())) => json!({ "loaded": true }),
                    Some(Err(error)) => json!({ "error": error.to_string() }),
                    None => return Err(Parse::Unsupported("bulk_load".into())),
                }
            }
            other => return Err(Parse::Unsupported(other.to_string())),
        })
    }

    fn batch(&mut self, op: &Value) -> Result<Value, Parse> {
        if op.get("atomic") == Some(&json!(true)) {
            return Err(Parse::Unsupported("atomic batch".into()));
        }
        let mutations: Vec<_> = op["mutations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| protocol::mutation(one, None))
            .collect::<Result<_, _>>()?;
        let statuses: Vec<Value> = self
            .subject
            .batch(mutations)
            .into_iter()
            .map(|answer| json!(if answer.is_ok() { "SUCCESS" } else { "failed" }))
            .collect();
        Ok(json!({ "statuses": statuses }))
    }

    fn compact(&mut self, op: &Value) -> Result<Value, Parse> {
        let selection = match (op.get("files"), op.get("major")) {
            (Some(files), _) => Selection::Files(
                files.as_array().unwrap().iter().map(|place| place.as_u64().unwrap() as usize).collect(),
            ),
            (None, Some(_)) => Selection::Major,
            (None, None) => Selection::Policy,
        };
        let family = op.get("family").map(protocol::bytes);
        let mut shown = serde_json::Map::new();
        // A major compaction that found no files is made up for by HBase's next choice; the record says for which families.
        let made_up_for =
            |family: &str| matches!(selection, Selection::Policy) && op["result"][family]["major"] == true;
        let names: Vec<String> = op["result"].as_object().unwrap().keys().cloned().collect();
        if names.iter().any(|name| made_up_for(name)) {
            for name in &names {
                let family = protocol::bytes(&json!(name));
                let selection = if made_up_for(name) { Selection::Major } else { Selection::Policy };
                match self.subject.compact(&selection, Some(&family)) {
                    Err(error) => return Ok(json!({ "error": error.to_string() })),
                    Ok(done) => show_compacted(done, &mut shown),
                }
            }
            return Ok(shown.into());
        }
        match self.subject.compact(&selection, family.as_ref()) {
            Err(error) => return Ok(json!({ "error": error.to_string() })),
            Ok(done) => show_compacted(done, &mut shown),
        }
        Ok(shown.into())
    }

    /// Only what the files hold: entries, how many of each type, and the cells where they are recorded.
    fn files(&mut self) -> Result<Value, Parse> {
        Ok(match self.subject.files() {
            Err(error) => json!({ "error": error.to_string() }),
            Ok(families) => families
                .into_iter()
                .map(|(family, files)| {
                    let mut files: Value = files.iter().map(|cells| show_file(cells)).collect();
                    sort_files(&mut files);
                    (family.escape_ascii().to_string(), files)
                })
                .collect::<serde_json::Map<_, _>>()
                .into(),
        })
    }
}

fn show_compacted(done: BTreeMap<bytes::Bytes, Compacted>, shown: &mut serde_json::Map<String, Value>) {
    for (family, compacted) in done {
        let mut one = json!({ "files": compacted.files });
        if compacted.files > 0 {
            one["all_files"] = json!(compacted.all_files);
            one["major"] = json!(compacted.major);
        }
        if compacted.expired_files_removed > 0 {
            one["expired_files_removed"] = json!(compacted.expired_files_removed);
        }
        shown.insert(family.escape_ascii().to_string(), one);
    }
}

fn done(answer: cellfs::Result<impl Sized>) -> Value {
    match answer {
        Ok(_) => json!({ "ok": true }),
        Err(error) => json!({ "error": error.to_string() }),
    }
}

/// The cells that increments and appends wrote, in the order of cells.
fn written(answer: cellfs::Result<MutationOutcome>, op: &Value) -> Value {
    match answer {
        Err(error) => json!({ "error": error.to_string() }),
        Ok(_) if op.get("return") == Some(&json!(false)) => json!({ "cells": [] }),
        Ok(outcome) => json!({ "cells": written_by(&outcome, op) }),
    }
}

fn written_by(outcome: &MutationOutcome, op: &Value) -> Vec<Value> {
    let mut wanted: Vec<(bytes::Bytes, bytes::Bytes)> = Vec::new();
    let mutations = if op["op"] == "mutate_row" {
        op["mutations"].as_array().unwrap().as_slice()
    } else {
        std::slice::from_ref(op)
    };
    for mutation in mutations.iter().filter(|m| m["op"] == "increment" || m["op"] == "append") {
        for cell in mutation["cells"].as_array().into_iter().flatten() {
            wanted.push((protocol::bytes(&cell[0]), protocol::bytes(&cell[1])));
        }
    }
    let mut cells: Vec<Cell> = outcome
        .written
        .iter()
        .filter(|c| wanted.iter().any(|(family, qualifier)| c.family() == family && c.qualifier() == qualifier))
        .cloned()
        .collect();
    cells.sort_by(cellfs::cell::compare);
    cells.iter().map(protocol::show_cell).collect()
}

fn check(answer: cellfs::Result<MutationOutcome>, then: &Value) -> Value {
    match answer {
        Err(error) => json!({ "error": error.to_string() }),
        Ok(outcome) => {
            let mut shown = json!({ "success": outcome.applied });
            if outcome.applied && (then["op"] == "increment" || then["op"] == "append") {
                shown["cells"] = json!(written_by(&outcome, then));
            }
            shown
        }
    }
}

fn show(cells: &[Cell]) -> Vec<Value> {
    cells.iter().map(protocol::show_cell).collect()
}

fn show_file(cells: &[Cell]) -> Value {
    let mut types: BTreeMap<String, usize> = BTreeMap::new();
    for cell in cells {
        *types.entry(format!("{:?}", cell.cell_type())).or_default() += 1;
    }
    json!({ "entries": cells.len(), "types": types })
}

fn rows(scanner: &mut dyn ResultScanner, most: usize) -> Value {
    let mut rows = Vec::new();
    while rows.len() < most {
        match scanner.next() {
            Ok(Some(row)) => rows.push(Value::Array(show(&row.cells))),
            Ok(None) => break,
            Err(error) => return json!({ "error": error.to_string() }),
        }
    }
    json!({ "rows": rows })
}

/// A bulk load and the flush before it share a sequence id; which of the two files comes first is a matter of their sizes in HBase.
fn sort_files(files: &mut Value) {
    files.as_array_mut().unwrap().sort_by_key(Value::to_string);
}

/// The recorded result, reduced to what is compared.
fn expected(kind: &str, recorded: &Value) -> Value {
    if recorded.get("error").is_some() {
        return json!({ "error": recorded["error"] });
    }
    let mut expected = recorded.clone();
    if let Some(cells) = recorded.get("cells").and_then(Value::as_array) {
        expected["cells"] = cells.iter().map(protocol::normalize_cell).collect();
    }
    if let Some(rows) = recorded.get("rows").and_then(Value::as_array) {
        expected["rows"] = rows
            .iter()
            .map(|row| row.as_array().unwrap().iter().map(protocol::normalize_cell).collect::<Value>())
            .collect();
    }
    if let Some(statuses) = recorded.get("statuses").and_then(Value::as_array) {
        let name = |status: &Value| if status["status"] == "SUCCESS" { "SUCCESS" } else { "failed" };
        expected["statuses"] = statuses.iter().map(|status| json!(name(status))).collect();
    }
    if kind == "files" {
        for files in expected.as_object_mut().unwrap().values_mut() {
            for file in files.as_array_mut().unwrap() {
                *file = json!({ "entries": file["entries"], "types": file["types"] });
            }
            sort_files(files);
        }
    }
    expected
}
