//! Loads of rows: in any order, larger than memory, all of them or none; newer than what was there, beside it, without it or in its place.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets the unexpected has failed"
)]

use bytes::Bytes;
use cellfs::cell::Cell;
use cellfs::client::{
    Admin, Delete, DeleteMarker, Get, LoadKind, LoadSummary, Mutation, Put, PutCell, Scan, Table, TableAttributes,
    TableName, WriteTime,
};
use cellfs::clock::ManualClock;
use cellfs::schema::{ColumnFamilyDescriptor, Durability, TableDescriptor};
use cellfs::server::{BackgroundMode, Store, StoreOptions};
use cellfs::vfs::{DirectoryEntry, Fault, File, Keep, LockGuard, LockMode, SimVfs, Vfs};
use cellfs::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

const NOW: i64 = 1_000_000;

type Hook = Box<dyn FnOnce() + Send>;

/// A simulated file system that calls back once, when a load has written all its files and makes their names durable.
#[derive(Clone)]
struct Watched {
    sim: SimVfs,
    written: Arc<Mutex<Option<Hook>>>,
}

impl Vfs for Watched {
    fn open_read(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.sim.open_read(path)
    }
    fn open_write(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.sim.open_write(path)
    }
    fn create_new(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.sim.create_new(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.sim.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> Result<()> {
        self.sim.remove_file(path)
    }
    fn create_directory(&self, path: &Path) -> Result<()> {
        self.sim.create_directory(path)
    }
    fn let_all_read(&self, path: &Path) -> Result<()> {
        self.sim.let_all_read(path)
    }
    fn remove_directory(&self, path: &Path) -> Result<()> {
        self.sim.remove_directory(path)
    }
    fn list(&self, path: &Path) -> Result<Vec<DirectoryEntry>> {
        self.sim.list(path)
    }
    fn exists(&self, path: &Path) -> Result<bool> {
        self.sim.exists(path)
    }
    fn sync_directory(&self, path: &Path) -> Result<()> {
        let hook = self.written.lock().unwrap().take();
        hook.into_iter().for_each(|hook| hook());
        self.sim.sync_directory(path)
    }
    fn free_space(&self, path: &Path) -> Result<u64> {
        self.sim.free_space(path)
    }
    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn LockGuard>> {
        self.sim.lock(path, mode)
    }
}

fn name() -> TableName {
    TableName::parse("t").unwrap()
}

/// Loads sort in 2 KB: a few dozen cells.
fn open_on(vfs: Arc<dyn Vfs>) -> Store {
    let mut options = StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() };
    options.region.durability = Durability::FsyncWal;
    options.region.space_reserve = 0;
    options.region.load_sort_bytes = 2048;
    Store::open_with(vfs, Arc::new(ManualClock::new(NOW)), "/store", options).unwrap()
}

fn open(vfs: &SimVfs) -> Store {
    open_on(Arc::new(vfs.clone()))
}

/// A table of three regions that has a cell in each.
fn table(store: &Store) -> Arc<dyn Table> {
    let family = ColumnFamilyDescriptor { versions: 5, block_size: 1024, ..Default::default() };
    let descriptor = TableDescriptor::default().family("f", family.clone()).family("g", family);
    let attributes = TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 };
    let splits = [Bytes::from("row-030"), Bytes::from("row-060")];
    let table = store.create_table(&name(), descriptor, &splits, attributes).unwrap();
    for row in [5, 35, 65] {
        table.put(put(&row_key(row), "f", "q", WriteTime::At(10), "before")).unwrap();
    }
    table
}

fn row_key(row: u64) -> String {
    format!("row-{row:03}")
}

fn put(row: &str, family: &str, qualifier: &str, time: WriteTime, value: &str) -> Put {
    let mut put = Put::new(row.to_owned());
    let (family, qualifier) = (Bytes::from(family.to_owned()), Bytes::from(qualifier.to_owned()));
    put.cells.push(PutCell { family, qualifier, time, value: Bytes::from(value.to_owned()), tags: Vec::new() });
    put
}

/// A hundred rows of two families in no order, each twice: the second time counts.
fn rows() -> Vec<Mutation> {
    let value = |turn: u64, row: u64| format!("value of {row} in turn {turn}");
    let all = (0..2).flat_map(|turn| (0..100).map(move |n| (turn, n * 37 % 100)));
    all.flat_map(|(turn, row)| {
        ["f", "g"]
            .map(|family| Mutation::Put(put(&row_key(row), family, "q", WriteTime::AfterNewest, &value(turn, row))))
    })
    .collect()
}

fn load(table: &Arc<dyn Table>, kind: LoadKind, mutations: &[Mutation]) -> Result<(LoadSummary, Vec<String>)> {
    let mut load = table.load(kind)?;
    for (line, mutation) in mutations.iter().enumerate() {
        load.add(line as u64 + 1, mutation)?;
    }
    let mut refused = Vec::new();
    let summary = load.finish(&mut |line, reason| refused.push(format!("{line}: {reason}")))?;
    assert_eq!(summary.refused, refused.len() as u64);
    Ok((summary, refused))
}

fn scan(table: &Arc<dyn Table>, raw: bool) -> Vec<Cell> {
    let max_versions = if raw { u32::MAX } else { 1 };
    let mut scanner = table.scan(&Scan { raw, max_versions, ..Scan::new() }).unwrap();
    let mut cells = Vec::new();
    while let Some(row) = scanner.next().unwrap() {
        cells.extend(row.cells);
    }
    cells
}

/// The newest values, by row and column.
fn values(table: &Arc<dyn Table>) -> BTreeMap<String, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let cells = scan(table, false);
    let named = cells.iter().map(|cell| {
        (format!("{} {}:{}", text(cell.row()), text(cell.family()), text(cell.qualifier())), text(cell.value()))
    });
    named.collect()
}

/// What [`rows`] leave.
fn loaded() -> BTreeMap<String, String> {
    let column =
        |row| ["f", "g"].map(|family| (format!("{} {family}:q", row_key(row)), format!("value of {row} in turn 1")));
    (0..100).flat_map(column).collect()
}

fn data_files(vfs: &SimVfs) -> usize {
    vfs.list(Path::new("/store/data")).unwrap().len()
}

#[test]
fn a_load_in_any_order_is_sorted_outside_of_memory() {
    let vfs = SimVfs::new();
    let store = open(&vfs);
    let table = table(&store);
    let before = scan(&table, true).len();
    let mut load = table.load(LoadKind::Add).unwrap();
    let mut most = 0;
    for (line, mutation) in rows().iter().enumerate() {
        load.add(line as u64 + 1, mutation).unwrap();
        most = most.max(data_files(&vfs));
    }
    assert!(most > 10, "{most} runs");
    assert_eq!(scan(&table, true).len(), before, "nothing is visible yet");
    let summary = load.finish(&mut |line, reason| panic!("{line}: {reason}")).unwrap();
    assert_eq!(summary, LoadSummary { rows: 100, cells: 200, refused: 0 });
    assert_eq!(values(&table), loaded());
    // A file of each family in each region, and one from the flush in each: the runs are gone.
    assert_eq!(data_files(&vfs), 9);
    assert_eq!(scan(&table, true).len(), 203, "the versions from before are there");
    drop((table, store));
    let store = open(&vfs.crash(Keep::None));
    assert_eq!(values(&store.table(&name()).unwrap()), loaded());
}

#[test]
fn many_runs_become_fewer() {
    let vfs = SimVfs::new();
    let store = open(&vfs);
    let table = table(&store);
    let value = "x".repeat(1500);
    let mut load = table.load(LoadKind::Add).unwrap();
    let mut most = 0;
    for n in 0..300u64 {
        load.add(n, &Mutation::Put(put(&format!("{:04}", n * 7 % 300), "f", "q", WriteTime::Now, &value))).unwrap();
        most = most.max(data_files(&vfs));
    }
    assert!((50..=70).contains(&most), "{most} runs at a time");
    load.finish(&mut |_, _| {}).unwrap();
    assert_eq!(values(&table).len(), 303);
}

#[test]
fn a_load_is_newer_than_what_is_there() {
    let vfs = SimVfs::new();
    let store = open(&vfs);
    let table = table(&store);
    let newer = WriteTime::At(NOW + 50);
    table.put(put("a", "f", "newer", newer, "old")).unwrap();
    let marker = |family: &str, qualifier: &str, time| {
        let (family, qualifier) = (Bytes::from(family.to_owned()), Bytes::from(qualifier.to_owned()));
        DeleteMarker::Column { family, qualifier, time: WriteTime::At(time) }
    };
    let mut delete = Delete::row("a");
    // A marker of this very millisecond, and one of the family that is ahead of the clock.
    delete.markers.push(marker("f", "hidden", NOW));
    delete.markers.push(DeleteMarker::Family { family: "g".into(), time: WriteTime::At(NOW + 7) });
    table.delete(delete).unwrap();
    let unstamped =
        |family, qualifier, value| Mutation::Put(put("a", family, qualifier, WriteTime::AfterNewest, value));
    let at = |time, value| Mutation::Put(put("b", "f", "mixed", WriteTime::At(time), value));
    let mut markers = Delete::row("b");
    markers.markers.push(marker("f", "own", NOW + 3));
    let mixed = |value| Mutation::Put(put("b", "f", "mixed", WriteTime::AfterNewest, value));
    let own = |value| Mutation::Put(put("b", "f", "own", WriteTime::AfterNewest, value));
    let lines = [
        unstamped("f", "newer", "1"),
        unstamped("f", "hidden", "2"),
        unstamped("g", "q", "3"),
        at(NOW + 20, "first"),
        mixed("later line"),
        at(5, "old"),
        at(5, "old again"),
        own("before its marker"),
        Mutation::Delete(markers),
        own("after its marker"),
    ];
    load(&table, LoadKind::Add, &lines).unwrap();
    let got = |row: &str, family: &str, qualifier: &str| {
        let get = Get::new(row.to_owned()).column(family.to_owned(), qualifier.to_owned()).versions(9);
        let cells = table.get(&get).unwrap().cells;
        let text = |cell: &Cell| (cell.timestamp(), String::from_utf8_lossy(cell.value()).into_owned());
        cells.iter().map(text).collect::<Vec<_>>()
    };
    let version = |time, value: &str| (time, value.to_owned());
    assert_eq!(got("a", "f", "newer"), [version(NOW + 51, "1"), version(NOW + 50, "old")]);
    assert_eq!(got("a", "f", "hidden"), [version(NOW + 1, "2")]);
    assert_eq!(got("a", "g", "q"), [version(NOW + 8, "3")]);
    let mixed = [version(NOW + 21, "later line"), version(NOW + 20, "first"), version(5, "old again")];
    assert_eq!(got("b", "f", "mixed"), mixed);
    assert_eq!(got("b", "f", "own"), [version(NOW + 4, "after its marker")]);
}

#[test]
fn what_cannot_be_stored_is_refused_and_the_rest_goes_on() {
    let vfs = SimVfs::new();
    let store = open(&vfs);
    let table = table(&store);
    let mut load = table.load(LoadKind::Add).unwrap();
    let good = Mutation::Put(put("a", "f", "q", WriteTime::Now, "v"));
    load.add(1, &good).unwrap();
    let unknown = load.add(2, &Mutation::Put(put("a", "nope", "q", WriteTime::Now, "v")));
    assert!(matches!(unknown, Err(Error::NoSuchColumnFamily { .. })));
    let long = load.add(3, &Mutation::Put(put(&"k".repeat(40_000), "f", "q", WriteTime::Now, "v")));
    assert!(matches!(long, Err(Error::InvalidArgument(_))));
    assert!(matches!(load.add(4, &Mutation::Delete(Delete::row("a"))), Err(Error::InvalidArgument(_))));
    load.add(5, &Mutation::Put(put("b", "f", "q", WriteTime::Now, "v"))).unwrap();
    assert_eq!(load.finish(&mut |_, _| {}).unwrap().rows, 2);

    // Nothing can be newer than the end of time: that row is refused, and with it the load.
    table.put(put("c", "f", "q", WriteTime::At(i64::MAX - 1), "last")).unwrap();
    let lines = [good, Mutation::Put(put("c", "f", "q", WriteTime::Now, "v"))];
    let before = values(&table);
    let (summary, refused) = load_all(&table, &lines);
    assert_eq!((summary.refused, refused.len(), values(&table)), (1, 1, before));
    assert!(refused[0].starts_with("2: ") && refused[0].contains("nothing can be newer"), "{refused:?}");
    let read_only = TableDescriptor { read_only: true, ..(*table.descriptor()).clone() };
    store.modify_table(&name(), read_only).unwrap();
    assert!(matches!(table.load(LoadKind::Add), Err(Error::ReadOnly { .. })));
}

fn load_all(table: &Arc<dyn Table>, lines: &[Mutation]) -> (LoadSummary, Vec<String>) {
    load(table, LoadKind::Add, lines).unwrap()
}

#[test]
fn a_load_of_new_rows_refuses_those_that_exist() {
    let sim = SimVfs::new();
    let watched = Watched { sim: sim.clone(), written: Arc::default() };
    let store = open_on(Arc::new(watched.clone()));
    let table = table(&store);
    let (before, files) = (values(&table), data_files(&sim));
    let (summary, refused) = load(&table, LoadKind::New, &rows()).unwrap();
    assert_eq!(summary.refused, 3);
    // Rows come by n * 37 % 100, two lines each.
    assert_eq!(refused, ["131: the row row-005 exists", "111: the row row-035 exists", "91: the row row-065 exists"]);
    assert_eq!((values(&table), data_files(&sim)), (before, files));

    // A row that is deleted is new.
    for row in [5, 35, 65] {
        let mut delete = Delete::row(row_key(row));
        delete.markers.push(DeleteMarker::Family { family: "f".into(), time: WriteTime::AfterNewest });
        table.delete(delete).unwrap();
    }
    // A row that somebody makes when everything is written and looked at is still in time: nobody was held up, and the load sees it.
    let writer = Arc::clone(&table);
    let meanwhile = move || {
        writer.put(put("row-042", "g", "q", WriteTime::Now, "mine")).unwrap();
        writer.put(put("zebra", "g", "q", WriteTime::Now, "another")).unwrap();
        assert_eq!(values(&writer).len(), 2);
    };
    *watched.written.lock().unwrap() = Some(Box::new(meanwhile));
    let (summary, refused) = load(&table, LoadKind::New, &rows()).unwrap();
    assert_eq!(
        (summary.refused, refused.as_slice()),
        (1, &["0: the row row-042 was made while the load ran".to_owned()][..])
    );
    assert_eq!(values(&table).len(), 2);
    let mut delete = Delete::row("row-042");
    delete.markers.push(DeleteMarker::Family { family: "g".into(), time: WriteTime::AfterNewest });
    table.delete(delete).unwrap();
    let (summary, _) = load(&table, LoadKind::New, &rows()).unwrap();
    assert_eq!((summary.refused, summary.rows, values(&table).len()), (0, 100, 201));
}

#[test]
fn a_load_that_replaces_leaves_nothing_else_but_in_snapshots() {
    let sim = SimVfs::new();
    let watched = Watched { sim: sim.clone(), written: Arc::default() };
    let store = open_on(Arc::new(watched.clone()));
    let table = table(&store);
    table.put(put("row-005", "f", "q", WriteTime::At(NOW + 1000), "of the future")).unwrap();
    table.put(put("zebra", "f", "q", WriteTime::Now, "goes")).unwrap();
    let before = values(&table);
    store.create_snapshot(&name(), b"before").unwrap();
    // What is written until the end goes too; and a region that is split until then stays split.
    let writer = Arc::clone(&table);
    let meanwhile = move || {
        writer.put(put("yak", "f", "q", WriteTime::Now, "goes as well")).unwrap();
    };
    *watched.written.lock().unwrap() = Some(Box::new(meanwhile));
    let (summary, _) = load(&table, LoadKind::Replace, &rows()).unwrap();
    assert_eq!((summary.rows, summary.cells), (100, 200));
    assert_eq!(values(&table), loaded());
    assert_eq!(scan(&table, true).len(), 200);
    assert!(scan(&table, true).iter().all(|cell| cell.timestamp() == NOW));
    let snapshot = store.open_snapshot(&name(), b"before").unwrap();
    assert_eq!(values(&snapshot), before);
    assert!(matches!(store.open_as_of(&name(), NOW - 1), Err(Error::HistoryIncomplete { since_millis: NOW, .. })));
    assert_eq!(store.open_regions(&name()).unwrap().len(), 3);
    drop(snapshot);
    store.delete_snapshot(&name(), b"before").unwrap();
    drop((table, store));
    let store = open(&sim.crash(Keep::None));
    let table = store.table(&name()).unwrap();
    assert_eq!(values(&table), loaded());
    // It is a table like any other: written, loaded into, emptied by a load of nothing.
    table.put(put("row-005", "f", "q", WriteTime::AfterNewest, "later")).unwrap();
    load(&table, LoadKind::Add, &[Mutation::Put(put("a", "g", "q", WriteTime::Now, "more"))]).unwrap();
    assert_eq!(values(&table).len(), 201);
    load(&table, LoadKind::Replace, &[]).unwrap();
    assert_eq!(values(&table).len(), 0);
}

#[test]
fn a_damaged_run_is_refused_with_file_and_place() {
    let vfs = SimVfs::new();
    let store = open(&vfs);
    let table = table(&store);
    let before = values(&table);
    let mut load = table.load(LoadKind::Add).unwrap();
    for (line, mutation) in rows().iter().enumerate() {
        load.add(line as u64, mutation).unwrap();
    }
    let run = Path::new("/store/data").join(&vfs.list(Path::new("/store/data")).unwrap()[3].name);
    vfs.damage(&run, 200, |byte| byte ^ 1).unwrap();
    let error = load.finish(&mut |_, _| {}).unwrap_err();
    assert!(matches!(&error, Error::Corruption { file, offset: 0, .. } if file == &run), "{error:?}");
    assert_eq!((values(&table), data_files(&vfs)), (before, 0));
}

/// A failing operation, and a crash, at every operation of a load of each kind: it is there as a whole or not at all, and nothing is left of it.
#[test]
fn a_load_is_all_or_nothing() {
    for kind in [LoadKind::Add, LoadKind::Replace] {
        let mut step = 0;
        loop {
            let prepare = || {
                let vfs = SimVfs::new();
                let store = open(&vfs);
                let table = table(&store);
                (vfs, store, table)
            };
            let whole = |values: &BTreeMap<String, String>| *values == loaded();
            let old = |values: &BTreeMap<String, String>| values.len() == 3;
            let fault = if step % 2 == 0 { Fault::Eio } else { Fault::NoSpace };
            let (vfs, store, table) = prepare();
            vfs.fail_at(vfs.operations() + step, fault);
            let result = load(&table, kind, &rows());
            vfs.clear_faults();
            let seen = values(&table);
            assert!(if result.is_ok() { whole(&seen) } else { old(&seen) }, "{kind:?} {step}: {result:?}, {seen:?}");
            drop((table, store));
            let reopened = values(&open(&vfs).table(&name()).unwrap());
            assert!(whole(&reopened) || result.is_err() && old(&reopened), "{kind:?} {step}");

            let (vfs, store, table) = prepare();
            vfs.stop_at(vfs.operations() + step);
            let result = load(&table, kind, &rows());
            drop((table, store));
            for keep in [Keep::None, Keep::All] {
                let crashed = vfs.crash(keep);
                let store = open(&crashed);
                let found = values(&store.table(&name()).unwrap());
                assert!(whole(&found) || result.is_err() && old(&found), "{kind:?} {step} {keep:?}");
                let stores = store.open_regions(&name()).unwrap();
                let live: usize =
                    stores.iter().flat_map(|region| region.stores()).map(|store| store.files().len()).sum();
                assert_eq!(data_files(&crashed), live, "{kind:?} {step} {keep:?}");
            }
            if result.is_ok() {
                break;
            }
            // The sorting is long and all alike.
            step += if step < 30 { 1 } else { 3 };
        }
        assert!(step > 60, "{kind:?}: {step} operations");
    }
}
