//! What a root directory shows, in the lines of the oracle's cluster.md.

use cellfs::cell::Cell;
use cellfs::client::{Scan, Table};
use cellfs::hbase_root::{HBaseRoot, HBaseRootOptions};
use cellfs::hfile::{cell_type_name, to_string_binary};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

pub fn shared(below: &str) -> Option<PathBuf> {
    let base = std::env::var_os("CELLFS_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let found = base.join(below);
    if !found.is_dir() {
        assert!(std::env::var_os("CELLFS_REQUIRE_JUDGE").is_none(), "{} is missing", found.display());
        eprintln!("skipped: {} is not there", found.display());
        return None;
    }
    Some(found)
}

/// A root directory out of its archive, removed at the end.
pub fn unpack(archive: &Path) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let tar = Command::new("tar").arg("--zstd").arg("-xf").arg(archive).arg("-C").arg(directory.path()).status();
    assert!(tar.expect("tar runs").success(), "{}", archive.display());
    directory
}

pub fn open(root: &Path) -> HBaseRoot {
    HBaseRoot::open(root, &HBaseRootOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn line(cell: &Cell) -> Value {
    let text = |bytes: &[u8]| to_string_binary(bytes);
    let mut line = json!({
        "row": text(cell.row()), "family": text(cell.family()), "qualifier": text(cell.qualifier()),
        "ts": cell.timestamp(), "type": cell_type_name(cell), "value": text(cell.value()),
    });
    if !cell.tags().is_empty() {
        let tags = cell.tag_iter().map(|(kind, value)| json!({"type": kind, "value": text(value)}));
        line["tags"] = tags.collect();
    }
    line
}

/// All versions, as a scan with or without markers gives them.
pub fn dump(table: &dyn Table, raw: bool) -> cellfs::Result<Vec<Value>> {
    let scan = Scan { raw, max_versions: u32::MAX, ..Scan::new() };
    let mut lines = Vec::new();
    let mut rows = table.scan(&scan)?;
    while let Some(row) = rows.next()? {
        lines.extend(row.cells.iter().map(line));
    }
    Ok(lines)
}

/// The lines of a recorded dump.
pub fn recorded(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Fails at the first line that differs.
pub fn assert_same(shown: &[Value], expected: &[Value], what: &str) {
    for (at, (shown, expected)) in shown.iter().zip(expected).enumerate() {
        assert_eq!(shown, expected, "{what}, line {at}");
    }
    let longer = if shown.len() > expected.len() { shown } else { expected };
    let first = longer.get(shown.len().min(expected.len()));
    assert_eq!(shown.len(), expected.len(), "{what}: one has lines the other has not, first {first:?}");
}
