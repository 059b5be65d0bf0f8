//! Crashes and failing disks at every file operation of a script of puts, flushes, compactions, splits and reopenings.
//!
//! After a crash the recovered state is what it was after the first k writes, for one k that is no smaller than what was acknowledged: a
//! prefix without a hole (architecture.md, invariant 2). After a failing operation nothing acknowledged is lost, and every answer is
//! right or a located error.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets the unexpected has failed"
)]

use bytes::Bytes;
use cellfs::client::{
    Admin, Delete, DeleteMarker, Mutation, Put, RowMutations, Scan, Table, TableAttributes, TableName, WriteTime,
};
use cellfs::clock::ManualClock;
use cellfs::schema::{ColumnFamilyDescriptor, Durability, TableDescriptor};
use cellfs::server::{BackgroundMode, Store, StoreOptions};
use cellfs::vfs::{Fault, FaultRule, Keep, SimOperation, SimVfs};
use cellfs::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a scan of everything shows: row, family and qualifier to value.
type Contents = BTreeMap<(Bytes, Bytes), Bytes>;

/// One step of the script.
#[derive(Clone, Debug)]
enum Step {
    /// Atomic puts of (row, qualifier, value), in any rows.
    Put(Vec<(String, &'static str, String)>),
    /// Deletes a column.
    Delete(String, &'static str),
    Flush,
    Compact,
    Split(&'static str),
    Reopen,
}

fn put(row: usize, value: impl Into<String>) -> Step {
    Step::Put(vec![(format!("row{row:02}"), "a", value.into())])
}

/// About forty steps that meet every kind of file operation.
fn script() -> Vec<Step> {
    let mut steps = Vec::new();
    for row in 0..6 {
        steps.push(put(row, format!("first-{row}")));
    }
    steps.push(Step::Flush);
    steps.push(Step::Delete("row02".to_owned(), "a"));
    steps.push(put(3, "x".repeat(700)));
    steps.push(Step::Put((4..9).map(|row| (format!("row{row:02}"), "b", format!("group-{row}"))).collect()));
    steps.push(Step::Flush);
    steps.push(put(1, "second-1"));
    steps.push(Step::Compact);
    steps.push(put(5, "second-5"));
    steps.push(Step::Reopen);
    steps.push(put(6, "third-6"));
    steps.push(Step::Split("row04"));
    steps.push(put(2, "back-2"));
    steps.push(Step::Put((2..7).map(|row| (format!("row{row:02}"), "c", "y".repeat(300))).collect()));
    steps.push(Step::Flush);
    steps.push(Step::Compact);
    steps.push(Step::Delete("row06".to_owned(), "c"));
    for row in 7..10 {
        steps.push(put(row, "z".repeat(400)));
    }
    steps.push(Step::Reopen);
    steps.push(put(0, "last-0"));
    steps.push(Step::Flush);
    steps.push(put(9, "last-9"));
    steps
}

fn name() -> TableName {
    TableName::parse("t").unwrap()
}

fn options() -> StoreOptions {
    let mut options = StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() };
    options.region.durability = Durability::FsyncWal;
    options.region.space_reserve = 0;
    options.wal.segment_bytes = 2048;
    options
}

/// A store on a simulated disk, and what it was told.
struct World {
    vfs: SimVfs,
    clock: Arc<ManualClock>,
    store: Option<(Store, Arc<dyn Table>)>,
}

impl World {
    fn new(vfs: SimVfs) -> World {
        World { vfs, clock: Arc::new(ManualClock::new(1_000_000)), store: None }
    }

    fn open(&mut self) -> Result<()> {
        let store = Store::open_with(Arc::new(self.vfs.clone()), self.clock.clone(), "/store", options())?;
        let table = match store.table(&name()) {
            Ok(table) => table,
            Err(Error::NoSuchTable(_)) => {
                let family = ColumnFamilyDescriptor { block_size: 1024, ..Default::default() };
                let descriptor = TableDescriptor::default().family("f", family);
                let attributes = TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 };
                store.create_table(&name(), descriptor, &[], attributes)?
            }
            Err(error) => return Err(error),
        };
        self.store = Some((store, table));
        Ok(())
    }

    fn run(&mut self, step: &Step) -> Result<()> {
        self.clock.add(1);
        if self.store.is_none() {
            self.open()?;
        }
        let (store, table) = self.store.as_ref().unwrap();
        match step {
            Step::Put(cells) => {
                let groups = cells.iter().map(|(row, qualifier, value)| {
                    let row = Bytes::from(row.clone());
                    let put = Put::new(row.clone()).add("f", *qualifier, value.clone());
                    RowMutations { row, mutations: vec![Mutation::Put(put)] }
                });
                table.mutate_rows(groups.collect()).map(|_| ())
            }
            Step::Delete(row, qualifier) => {
                let marker =
                    DeleteMarker::Column { family: "f".into(), qualifier: (*qualifier).into(), time: WriteTime::Now };
                table.delete(Delete::row(row.clone()).marker(marker)).map(|_| ())
            }
            Step::Flush => store.flush_table(&name()),
            Step::Compact => store.major_compact_table(&name(), None),
            Step::Split(row) => match store.split_table(&name(), Some(row.as_bytes())) {
                // Split by an earlier attempt that failed afterwards.
                Err(Error::InvalidArgument(_)) => Ok(()),
                other => other,
            },
            Step::Reopen => {
                let (store, table) = self.store.take().unwrap();
                drop(table);
                store.close()?;
                self.open()
            }
        }
    }

    fn contents(&self) -> Result<Contents> {
        let table = &self.store.as_ref().unwrap().1;
        let mut contents = Contents::new();
        let mut scanner = table.scan(&Scan::new())?;
        while let Some(row) = scanner.next()? {
            for cell in row.cells {
                contents.insert((cell.row_bytes(), cell.qualifier_bytes()), cell.value_bytes());
            }
        }
        Ok(contents)
    }
}

fn apply(contents: &mut Contents, step: &Step) {
    match step {
        Step::Put(cells) => {
            for (row, qualifier, value) in cells {
                contents.insert((row.clone().into(), (*qualifier).into()), value.clone().into());
            }
        }
        Step::Delete(row, qualifier) => {
            contents.remove(&(row.clone().into(), (*qualifier).into()));
        }
        _ => {}
    }
}

/// The contents after each prefix of the script.
fn states(script: &[Step]) -> Vec<Contents> {
    let mut states = vec![Contents::new()];
    for step in script {
        let mut next = states.last().unwrap().clone();
        apply(&mut next, step);
        states.push(next);
    }
    states
}

/// How many operations that change something the whole script asks for.
fn operations(script: &[Step]) -> u64 {
    let mut world = World::new(SimVfs::new());
    script.iter().for_each(|step| world.run(step).unwrap());
    world.vfs.operations()
}

/// Runs the script on a machine that stops before operation `stop`, crashes, recovers.
fn crash_at(stop: u64, keep: Keep, script: &[Step], states: &[Contents]) {
    let mut world = World::new(SimVfs::new());
    world.vfs.stop_at(stop);
    let acknowledged = script.iter().take_while(|step| world.run(step).is_ok()).count();
    world.store = None;
    let mut after = World::new(world.vfs.crash(keep));
    after.clock.set(2_000_000);
    let context = || format!("stop {stop}, {keep:?}, {acknowledged} steps acknowledged");
    after.open().unwrap_or_else(|error| panic!("{}: {error}", context()));
    let found = after.contents().unwrap();
    let issued = (acknowledged + 1).min(script.len());
    let prefix = (acknowledged..=issued).find(|count| states[*count] == found);
    let Some(prefix) = prefix else { panic!("{}: {found:?} is no prefix", context()) };
    // Life goes on behind the recovered prefix, through another recovery.
    after.run(&put(50, "after")).unwrap();
    after.run(&Step::Flush).unwrap();
    after.run(&put(51, "after")).unwrap();
    after.store = None;
    let mut again = World::new(after.vfs.crash(Keep::None));
    again.open().unwrap_or_else(|error| panic!("{}, again: {error}", context()));
    let mut expected = states[prefix].clone();
    apply(&mut expected, &put(50, "after"));
    apply(&mut expected, &put(51, "after"));
    assert_eq!(again.contents().unwrap(), expected, "{}, again", context());
}

fn crash_everywhere(keep: impl Fn(u64) -> Keep) {
    let script = script();
    let states = states(&script);
    let operations = operations(&script);
    assert!(operations > 100, "{operations}");
    for stop in 0..=operations {
        crash_at(stop, keep(stop), &script, &states);
    }
}

#[test]
fn crashes_that_lose_everything_unsynced() {
    crash_everywhere(|_| Keep::None);
}

#[test]
fn crashes_that_keep_everything() {
    crash_everywhere(|_| Keep::All);
}

#[test]
fn crashes_that_keep_what_chance_decides() {
    crash_everywhere(|stop| Keep::Random(stop * 7 + 1));
}

/// What may be found after failures: for each column the last acknowledged value, or one whose write failed after it.
#[derive(Default)]
struct Allowed {
    columns: BTreeMap<(Bytes, Bytes), Vec<Option<Bytes>>>,
}

impl Allowed {
    fn note(&mut self, step: &Step, acknowledged: bool) {
        let writes: Vec<((Bytes, Bytes), Option<Bytes>)> = match step {
            Step::Put(cells) => cells
                .iter()
                .map(|(row, q, value)| ((row.clone().into(), (*q).into()), Some(value.clone().into())))
                .collect(),
            Step::Delete(row, qualifier) => vec![((row.clone().into(), (*qualifier).into()), None)],
            _ => return,
        };
        for (column, value) in writes {
            let values = self.columns.entry(column).or_insert_with(|| vec![None]);
            if acknowledged {
                values.clear();
            }
            values.push(value);
        }
    }

    fn check(&self, found: &Contents, context: &str) {
        for (column, values) in &self.columns {
            let value = found.get(column).cloned();
            assert!(values.contains(&value), "{context}: {column:?} is {value:?}, allowed {values:?}");
        }
        assert!(found.keys().all(|column| self.columns.contains_key(column)), "{context}: {found:?}");
    }
}

/// Runs the script with one failure on the way; each step that fails is tried once more.
fn fail_once(arm: impl Fn(&SimVfs), context: &str) {
    let mut world = World::new(SimVfs::new());
    arm(&world.vfs);
    let mut allowed = Allowed::default();
    for step in &script() {
        let mut result = world.run(step);
        allowed.note(step, result.is_ok());
        if result.is_err() {
            result = world.run(step);
            allowed.note(step, result.is_ok());
        }
        if matches!(result, Err(Error::Poisoned { .. } | Error::Corruption { .. })) {
            // Only reopening will tell; reads go on.
            if world.store.is_some() && matches!(result, Err(Error::Poisoned { .. })) {
                world.vfs.clear_faults();
                allowed.check(&world.contents().unwrap(), context);
                world.store = None;
            }
        }
    }
    assert_eq!(world.vfs.syncs_after_failure(), 0, "{context}");
    world.vfs.clear_faults();
    if world.store.is_none() {
        world.open().unwrap_or_else(|error| panic!("{context}: {error}"));
    }
    allowed.check(&world.contents().unwrap(), context);
    world.store = None;
    for keep in [Keep::None, Keep::All] {
        let mut after = World::new(world.vfs.crash(keep));
        after.open().unwrap_or_else(|error| panic!("{context}, {keep:?}: {error}"));
        allowed.check(&after.contents().unwrap(), &format!("{context}, {keep:?}"));
    }
}

fn fail_everywhere(fault: Fault) {
    let operations = operations(&script());
    for operation in 0..operations {
        fail_once(|vfs| vfs.fail_at(operation, fault), &format!("{fault:?} at {operation}"));
    }
}

#[test]
fn an_io_error_at_every_operation_loses_nothing_acknowledged() {
    fail_everywhere(Fault::Eio);
}

#[test]
fn a_full_disk_at_every_operation_loses_nothing_acknowledged() {
    fail_everywhere(Fault::NoSpace);
}

#[test]
fn a_short_write_at_every_operation_loses_nothing_acknowledged() {
    fail_everywhere(Fault::ShortWrite);
}

#[test]
fn a_read_that_fails_gives_an_error_and_harms_nothing() {
    for skip in 0..200 {
        let rule = FaultRule { operation: Some(SimOperation::Read), path: None, skip, times: 1, fault: Fault::Eio };
        fail_once(|vfs| vfs.add_fault(rule.clone()), &format!("read {skip}"));
    }
}

#[test]
fn the_same_script_leaves_the_same_trace() {
    let run = || {
        let mut world = World::new(SimVfs::new());
        script().iter().for_each(|step| world.run(step).unwrap());
        world.vfs.trace_hash()
    };
    assert_eq!(run(), run());
}
