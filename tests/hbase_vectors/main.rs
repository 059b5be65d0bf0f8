//! Replays operations recorded from a real HBase 2.6.4 (`shared/vectors`) and compares every answer.
//!
//! The vectors are not part of this repository: their folder is `$CELLFS_SHARED/vectors`, else `../shared/vectors`. Without it the tests say so and
//! pass.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a broken script or a missing member should end the test"
)]

mod engine;
mod filters;
mod model;
mod protocol;
mod replay;
mod subject;

use std::collections::BTreeMap;
use std::path::PathBuf;
use subject::Subject;

fn scripts() -> Vec<(String, String)> {
    let shared = std::env::var_os("CELLFS_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let Ok(entries) = std::fs::read_dir(shared.join("vectors")) else {
        assert!(std::env::var_os("CELLFS_REQUIRE_JUDGE").is_none(), "no vectors in {}", shared.display());
        eprintln!("no vectors in {}: nothing is replayed", shared.display());
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    let name = |path: &PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// Makes a new subject.
type Make = fn() -> Box<dyn Subject>;

/// Where the engine differs from HBase, and means to.
const ENGINE_DIFFERS: [(&str, &str); 2] = [
    (
        "random-039",
        "a load is newer than the flush before it; HBase lists the larger file first, and the script compacts by that list",
    ),
    ("random-077", "for the same reason HBase takes another file for the newest, which it never drops as expired"),
];

/// Replays every script on a new subject, made in each of several ways until one passes; fails with the first differences.
fn replay_all(ways: &[Make], differences: &[(&str, &str)]) {
    let (mut passed, mut compared) = (0, 0);
    let mut unsupported: BTreeMap<String, usize> = BTreeMap::new();
    let (mut given_up, mut failures) = (Vec::new(), Vec::new());
    for (name, script) in scripts() {
        let mut reports = ways.iter().map(|make| replay::replay(&script, make().as_mut()));
        let mut report = reports.next().unwrap();
        while !report.failures.is_empty()
            && let Some(other) = reports.next()
        {
            report = other;
        }
        compared += report.compared;
        for (why, count) in report.unsupported {
            *unsupported.entry(why).or_default() += count;
        }
        let known = differences.iter().find(|(script, _)| *script == name);
        if let Some((_, why)) = known {
            assert!(!report.failures.is_empty(), "{name} passes now, although {why}");
            given_up.push(format!("{name}: {why}"));
            continue;
        }
        match (report.given_up, report.failures.is_empty()) {
            (_, false) => failures.extend(report.failures.into_iter().map(|failure| format!("{name} {failure}"))),
            (Some(why), true) => given_up.push(format!("{name}: {why}")),
            (None, true) => passed += 1,
        }
    }
    println!("{passed} scripts passed, {compared} operations compared");
    println!("left out: {unsupported:#?}");
    println!("given up: {given_up:#?}");
    assert!(failures.is_empty(), "{} scripts differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn the_matcher_answers_as_hbase() {
    let ways: [Make; 2] =
        [|| Box::new(model::Model::with_load_overhead(0)), || Box::new(model::Model::with_load_overhead(350))];
    replay_all(&ways, &[]);
}

fn engine(block_size: Option<u32>, reopen: bool, loads_first: bool) -> Box<dyn Subject> {
    Box::new(engine::Engine::new(engine::Setting { block_size, reopen, loads_first }))
}

#[test]
fn the_engine_answers_as_hbase() {
    replay_all(&[|| engine(None, false, false), || engine(None, false, true)], &ENGINE_DIFFERS);
}

#[test]
fn the_engine_answers_as_hbase_from_small_blocks_after_reopening() {
    replay_all(&[|| engine(Some(1024), true, false), || engine(Some(1024), true, true)], &ENGINE_DIFFERS);
}
