//! `kill -9` at any moment: a child process writes to a store on the real disk, while it flushes, compacts and splits, and tells through a pipe
//! what was acknowledged; it is killed after some number of acknowledgements, and the store is opened again.
//!
//! What is there then is of each writer a prefix of its batches, whole batches only, that holds all that were acknowledged (architecture.md,
//! invariant 2). Each batch also deletes an old one, so that what compactions may drop is never seen again.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test that meets the unexpected has failed"
)]

use bytes::Bytes;
use cellfs::client::{Admin, Delete, Mutation, Put, RowMutations, Scan, Table, TableAttributes, TableName, WriteTime};
use cellfs::schema::{ColumnFamilyDescriptor, Durability, TableDescriptor};
use cellfs::server::{BackgroundMode, Store, StoreOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// Names the store to the child.
const CHILD: &str = "CELLFS_TEST_KILL_STORE";
const ROUNDS: usize = 25;
/// Rounds at most. How much background work fits before a kill depends on the machine, so rounds go on until a split was among it.
const MOST_ROUNDS: usize = 1000;
/// How the writers' batches are acknowledged.
const WRITERS: [Durability; 3] = [Durability::SyncWal, Durability::FsyncWal, Durability::SyncWal];
/// A batch has a row below each of these, so it meets several regions.
const PREFIXES: [&str; 3] = ["c", "m", "t"];
/// A batch deletes the one that is this much older.
const KEPT: u64 = 150;

fn name() -> TableName {
    TableName::parse("t").unwrap()
}

/// Memory and files so small that everything happens all the time.
fn options() -> StoreOptions {
    let mut options = StoreOptions { memstore_bytes: 1 << 20, ..StoreOptions::default() };
    options.region.flush_size = 24 << 10;
    options.region.max_file_size = 96 << 10;
    options.region.compaction.throttle_bytes_per_second = 0;
    options.wal.segment_bytes = 128 << 10;
    options
}

fn open_table(store: &Store) -> Arc<dyn Table> {
    if let Ok(table) = store.table(&name()) {
        return table;
    }
    let family = || ColumnFamilyDescriptor { block_size: 2048, ..Default::default() };
    let descriptor = TableDescriptor::default().family("a", family()).family("b", family());
    let attributes = TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 };
    store.create_table(&name(), descriptor, &[Bytes::from_static(b"p")], attributes).unwrap()
}

fn row(prefix: &str, writer: usize, number: u64) -> Bytes {
    format!("{prefix}-{writer}-{number:08}").into()
}

/// Batch `number` of a writer: rows of its own, the removal of an old batch's, and the row that says which batch was the last.
fn batch(writer: usize, number: u64) -> Vec<RowMutations> {
    let durability = WRITERS[writer];
    let one = |row: Bytes, mutation: Mutation| RowMutations { row, mutations: vec![mutation] };
    let put = |row: Bytes| {
        let value = format!("{number}-{}", "v".repeat(number as usize % 70));
        let put = Put::new(row.clone()).add_at("a", "q", WriteTime::AfterNewest, number.to_string());
        one(row, Mutation::Put(put.add_at("b", "", WriteTime::AfterNewest, value).durability(durability)))
    };
    let mut rows: Vec<RowMutations> = PREFIXES.iter().map(|prefix| put(row(prefix, writer, number))).collect();
    rows.push(put(format!("last-{writer}").into()));
    if let Some(old) = number.checked_sub(KEPT) {
        for prefix in PREFIXES {
            let row = row(prefix, writer, old);
            let delete = Delete { row_time: WriteTime::AfterNewest, durability, ..Delete::row(row.clone()) };
            rows.push(one(row, Mutation::Delete(delete)));
        }
    }
    rows
}

/// The number behind the last batch of each writer, after checking that exactly its batches are there, whole.
fn check(table: &Arc<dyn Table>) -> Vec<u64> {
    let mut found: BTreeMap<Bytes, (String, String)> = BTreeMap::new();
    let mut scanner = table.scan(&Scan::new()).unwrap();
    while let Some(row) = scanner.next().unwrap() {
        let values: Vec<&str> = row.cells.iter().map(|cell| std::str::from_utf8(cell.value()).unwrap()).collect();
        assert_eq!(values.len(), 2, "{} has both families", row.row().escape_ascii());
        found.insert(Bytes::copy_from_slice(row.row()), (values[0].to_owned(), values[1].to_owned()));
    }
    let mut expected = BTreeSet::new();
    let mut ends = Vec::new();
    for writer in 0..WRITERS.len() {
        let last = Bytes::from(format!("last-{writer}"));
        let end = found.get(&last).map_or(0, |(number, _)| number.parse::<u64>().unwrap() + 1);
        for number in end.saturating_sub(KEPT)..end {
            let value = format!("{number}-{}", "v".repeat(number as usize % 70));
            for row in PREFIXES.iter().map(|prefix| row(prefix, writer, number)) {
                assert_eq!(found.get(&row), Some(&(number.to_string(), value.clone())), "{}", row.escape_ascii());
                expected.insert(row);
            }
        }
        if end > 0 {
            expected.insert(last);
        }
        ends.push(end);
    }
    let surplus: Vec<&Bytes> = found.keys().filter(|row| !expected.contains(*row)).collect();
    assert!(surplus.is_empty(), "rows of no batch, or deleted ones: {surplus:?}");
    ends
}

/// The child: writes until it is killed, going on where the store ends.
#[test]
fn child_that_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let store = Store::open(path, options()).unwrap();
    let table = open_table(&store);
    let ends = check(&table);
    std::thread::scope(|scope| {
        for (writer, end) in ends.into_iter().enumerate() {
            let table = &table;
            scope.spawn(move || {
                for number in end.. {
                    table.mutate_rows(batch(writer, number)).unwrap();
                    // One write per line. A parent that is gone ends the child.
                    let mut out = std::io::stdout().lock();
                    writeln!(out, "acknowledged {writer} {number}").and_then(|()| out.flush()).unwrap();
                }
            });
        }
    });
}

/// Lets a child write until it has acknowledged `count` batches and kills it; the acknowledgements that came, per writer the number behind.
fn kill_after(store: &Path, count: usize) -> Vec<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_is_killed", "--nocapture"])
        .env(CHILD, store)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut acknowledged = vec![0; WRITERS.len()];
    let mut note = |line: &str| {
        // The test harness may begin the line; the last one may be cut off.
        let Some((_, rest)) = line.split_once("acknowledged ") else { return false };
        let mut words = rest.split(' ').map(str::parse::<u64>);
        let (Some(Ok(writer)), Some(Ok(number))) = (words.next(), words.next()) else { return false };
        acknowledged[writer as usize] = acknowledged[writer as usize].max(number + 1);
        true
    };
    let mut seen = 0;
    while seen < count {
        let line = lines.next().expect("the child writes until it is killed").unwrap();
        seen += usize::from(note(&line));
    }
    child.kill().unwrap();
    // What stood in the pipe had been acknowledged as well. A line that was cut off may show a smaller number, never a larger.
    lines.map_while(Result::ok).for_each(|line| {
        note(&line);
    });
    child.wait().unwrap();
    acknowledged
}

#[test]
fn a_killed_store_holds_what_it_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("store");
    let (mut ends, mut regions) = (vec![0; WRITERS.len()], 0);
    for round in 0..MOST_ROUNDS {
        if round >= ROUNDS && regions > 2 {
            break;
        }
        let acknowledged = kill_after(&store, 1 + round * round * 37 % 331);
        // Reading alone repairs nothing, so the next child meets the same; recovery for writing is met by the parent in every other round.
        let read_only = round % 2 == 0;
        let reopened =
            Store::open(&store, StoreOptions { read_only, background: BackgroundMode::Manual, ..options() }).unwrap();
        let found = check(&reopened.table(&name()).unwrap());
        for writer in 0..WRITERS.len() {
            let at_least = acknowledged[writer].max(ends[writer]);
            assert!(found[writer] >= at_least, "round {round}, writer {writer}: {} of {at_least}", found[writer]);
        }
        regions = regions.max(reopened.regions(&name()).unwrap().len());
        ends = found;
    }
    assert!(regions > 2, "regions were split");
    assert!(ends.iter().all(|end| *end > KEPT), "batches were deleted: {ends:?}");
}
