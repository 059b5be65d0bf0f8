//! Replays operations recorded from a real HBase 2.6.4 (`shared/vectors`) and compares every answer, in each setting of the engine.
//! `scripts/hbase-vectors` does the same with any scripts.
//!
//! The vectors are not part of this repository: their folder is `$CELLFS_SHARED/vectors`, else `../shared/vectors`. Without it the tests say so and
//! pass.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken script or a missing member should end the test"
)]

mod filters;
mod protocol;
mod region;
mod replay;
mod schema;

use region::SETTINGS;
use std::path::{Path, PathBuf};

/// The shared scripts, and those kept beside this file: filters where a first version of the engine differed.
fn scripts() -> Vec<(String, String)> {
    let shared = std::env::var_os("CELLFS_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let mut paths = scripts_of(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/hbase_vectors/recorded"));
    let shared = shared.join("vectors");
    if shared.is_dir() {
        paths.extend(scripts_of(&shared));
    } else {
        assert!(std::env::var_os("CELLFS_REQUIRE_JUDGE").is_none(), "no vectors in {}", shared.display());
        eprintln!("no vectors in {}: those are not replayed", shared.display());
    }
    let name = |path: &PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

fn scripts_of(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    paths
}

/// Replays every script in one setting; fails with the first difference of each.
fn replay_all(setting: &str) {
    let setting = SETTINGS.iter().find(|known| known.name == setting).unwrap();
    let (mut passed, mut compared, mut broken) = (0, 0, 0);
    let mut differences = Vec::new();
    for (name, script) in scripts() {
        let report = replay::replay(&script, setting);
        compared += report.compared;
        broken += report.broken;
        match report.difference {
            Some(difference) => differences.push(format!("{name} {difference}")),
            None => passed += 1,
        }
    }
    println!("{passed} scripts passed, {compared} operations compared; HBase broke down on {broken}");
    assert!(differences.is_empty(), "{} scripts differ:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn the_engine_answers_as_hbase() {
    replay_all("memory");
}

#[test]
fn the_engine_answers_as_hbase_from_tiny_blocks() {
    replay_all("tiny");
}

#[test]
fn the_engine_answers_as_hbase_when_reopened_after_each_flush() {
    replay_all("reopened");
}

#[test]
fn the_engine_answers_as_hbase_when_it_crashes_all_the_time() {
    replay_all("recovered");
}
