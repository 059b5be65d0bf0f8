//! `cellfs hfile` on the files of real HBases: exactly their recorded cells. And on files that it cannot read: the reason.
//!
//! The files are those below ../shared/hfiles (or below CELLFS_SHARED), and of the directories that CELLFS_GOLDEN names, separated by colons: sets
//! that the oracle's golden.py made. Without them there is nothing to compare with; where CELLFS_REQUIRE_JUDGE is set, as in CI, that is a failure.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail anywhere")]

use cellfs::cell::{Cell, CellType};
use cellfs::hfile::{HFileWriter, HFileWriterOptions, StoreFileInfo};
use cellfs::vfs::{OsVfs, Vfs};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn hfile(arguments: &[&str], file: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cellfs"))
        .arg("hfile")
        .args(arguments)
        .arg(file)
        .output()
        .expect("the command runs")
}

/// All HFiles below the directories.
fn files() -> Vec<PathBuf> {
    let shared = std::env::var_os("CELLFS_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let mut directories = vec![shared.join("hfiles")];
    directories.extend(std::env::var_os("CELLFS_GOLDEN").iter().flat_map(std::env::split_paths));
    let mut found = Vec::new();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "hfile") {
                found.push(path);
            }
        }
    }
    assert!(
        !found.is_empty() || std::env::var_os("CELLFS_REQUIRE_JUDGE").is_none(),
        "HBase's files are missing below {}",
        shared.display()
    );
    if found.is_empty() {
        eprintln!("skipped: there are no files of HBase below {}", shared.display());
    }
    found.sort();
    found
}

#[test]
fn every_file_of_hbase_gives_exactly_its_recorded_cells() {
    for path in files() {
        let name = path.display();
        let output = hfile(&["--cells", "--json"], &path);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let facts = fs::read_to_string(path.with_extension("json")).unwrap_or_else(|_| "{}".to_owned());
        let facts: Value = serde_json::from_str(&facts).expect("facts are JSON");
        if let Some(cells) = facts["cells"].as_str() {
            let recorded = fs::read(path.with_file_name(cells)).expect("the recorded cells");
            assert!(output.stdout == recorded, "{name} differs from {cells}");
        }
        let described = hfile(&["--json"], &path);
        let described: Value = serde_json::from_slice(&described.stdout).expect("the description is JSON");
        let lines = output.stdout.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(described["entries"], lines, "{name}");
        for fact in ["entries", "encoding", "compression"] {
            assert!(facts[fact].is_null() || facts[fact] == described[fact], "{name}: {fact}");
        }
    }
}

#[test]
fn a_codec_that_is_not_read_is_named() {
    let place = tempfile::tempdir().expect("a directory");
    let path = place.path().join("file");
    let file = OsVfs::new().create_new(&path).expect("a file");
    let mut writer = HFileWriter::create(file, HFileWriterOptions::default()).expect("a writer");
    writer.append(&Cell::new(b"r", b"f", b"q", 1, CellType::Put, b"v")).expect("a cell");
    writer.finish(StoreFileInfo::default()).expect("a whole file");
    let bytes = fs::read(&path).expect("the file");
    // Field 12 of the trailer, a varint: 2 is no compression. It is the last field.
    let at = bytes.len() - 4096
        + bytes[bytes.len() - 4096..].windows(3).rposition(|part| part == [0x60, 2, 0]).expect("it is there");
    for (ordinal, codec) in [(0, "LZO"), (5, "BZIP2"), (7, "LZMA"), (8, "BROTLI"), (99, "unknown codec")] {
        let mut other = bytes.clone();
        other[at + 1] = ordinal;
        fs::write(&path, other).expect("write");
        for arguments in [&["--cells", "--json"][..], &[]] {
            let output = hfile(arguments, &path);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.code() == Some(1) && output.stdout.is_empty() && said.contains(codec), "{said}");
        }
        let store = place.path().join("store");
        let output = Command::new(env!("CARGO_BIN_EXE_cellfs"))
            .args(["import", "--create", "f", "--form", "hfile"])
            .args([&store, Path::new("t"), &path])
            .output()
            .expect("the command runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains(codec), "{said}");
    }
}
