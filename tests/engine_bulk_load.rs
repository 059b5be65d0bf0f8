//! Bulk loads: files come into the regions they belong to with every cell, newer than what was there, all of them or none, also on a failing
//! disk and over a crash.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets the unexpected has failed"
)]

#[allow(dead_code, unused_imports, reason = "each test file uses its part")]
mod judge;

use bytes::Bytes;
use cellfs::cell::{Cell, CellType, Tag, encode_tags};
use cellfs::client::{Admin, Put, PutCell, Scan, Table, TableAttributes, TableName, WriteTime};
use cellfs::clock::ManualClock;
use cellfs::hfile::{HFileWriter, HFileWriterOptions, StoreFileInfo, cell_json};
use cellfs::schema::{BloomType, ColumnFamilyDescriptor, Compression, DataBlockEncoding, Durability, TableDescriptor};
use cellfs::server::{BackgroundMode, Store, StoreOptions};
use cellfs::vfs::{Fault, Keep, SimVfs, Vfs};
use cellfs::{Error, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NOW: i64 = 1_000_000;

fn name() -> TableName {
    TableName::parse("t").unwrap()
}

fn options() -> StoreOptions {
    let mut options = StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() };
    options.region.durability = Durability::FsyncWal;
    options.region.space_reserve = 0;
    options
}

fn open(vfs: &SimVfs) -> Store {
    Store::open_with(Arc::new(vfs.clone()), Arc::new(ManualClock::new(NOW)), "/store", options()).unwrap()
}

/// A table of three regions that has a cell in each.
fn table(store: &Store) -> Arc<dyn Table> {
    let family = ColumnFamilyDescriptor { versions: 5, block_size: 1024, ..Default::default() };
    let descriptor = TableDescriptor::default().family("f", family.clone()).family("g", family);
    let attributes = TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 };
    let splits = [Bytes::from("row-030"), Bytes::from("row-060")];
    let table = store.create_table(&name(), descriptor, &splits, attributes).unwrap();
    for row in [5, 35, 65] {
        table.put(put(row, 10, "before")).unwrap();
    }
    table
}

fn put(row: u64, time: i64, value: &str) -> Put {
    let mut put = Put::new(format!("row-{row:03}"));
    let (family, qualifier, value) = ("f".into(), "q".into(), value.as_bytes().to_vec().into());
    put.cells.push(PutCell { family, qualifier, time: WriteTime::At(time), value, tags: Vec::new() });
    put
}

/// Every type, several versions, tags, sequence ids that say nothing here.
fn cells(family: &[u8]) -> Vec<Cell> {
    let tags = encode_tags(&[Tag { kind: 64, value: "kept".into() }]);
    let mut cells = Vec::new();
    for row in 0..90u64 {
        let name = format!("row-{row:03}");
        let mut add = |qualifier: &str, time: i64, kind: CellType, value: &str| {
            let tags = if row % 3 == 0 { tags.clone() } else { Bytes::new() };
            let cell =
                Cell::with_tags(name.as_bytes(), family, qualifier.as_bytes(), time, kind, value.as_bytes(), &tags);
            cells.push(cell.with_sequence_id(1_000_000 + row));
        };
        match row % 4 {
            0 => add("", 4, CellType::DeleteFamily, ""),
            1 => add("", 4, CellType::DeleteFamilyVersion, ""),
            _ => {}
        }
        add("q", 10, CellType::Put, "loaded");
        add("q", 3, CellType::Put, "older");
        match row % 4 {
            2 => add("r", 9, CellType::DeleteColumn, ""),
            3 => add("r", 9, CellType::Delete, ""),
            _ => {}
        }
        add("r", 9, CellType::Put, "hidden or not");
    }
    cells
}

fn write(vfs: &SimVfs, path: &str, cells: &[Cell], options: HFileWriterOptions) -> PathBuf {
    let file = vfs.create_new(Path::new(path)).unwrap();
    let mut writer = HFileWriter::create(file, HFileWriterOptions { tags: true, ..options }).unwrap();
    cells.iter().for_each(|cell| writer.append(cell).unwrap());
    writer.finish(StoreFileInfo::default()).unwrap();
    path.into()
}

fn foreign() -> HFileWriterOptions {
    HFileWriterOptions {
        compression: Compression::Gz,
        encoding: DataBlockEncoding::FastDiff,
        bloom: BloomType::RowCol,
        block_size: 700,
        ..HFileWriterOptions::default()
    }
}

fn load(store: &Store, files: &[PathBuf]) -> Result<cellfs::server::BulkLoadSummary> {
    store.bulk_load(&name(), files, &mut |_| {})
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

fn without_ids(cells: &[Cell]) -> Vec<String> {
    cells.iter().map(|cell| cell_json(&cell.clone().with_sequence_id(0))).collect()
}

fn value_at(table: &Arc<dyn Table>, row: &str) -> Vec<u8> {
    let cells = scan(table, false);
    let cell = cells.iter().find(|cell| cell.row() == row.as_bytes() && cell.qualifier() == b"q");
    cell.map(|cell| cell.value().to_vec()).unwrap_or_default()
}

#[test]
fn a_load_keeps_everything_and_is_cut_at_the_borders_of_regions() {
    let vfs = SimVfs::new();
    let store = open(&vfs);
    let table = table(&store);
    let before = scan(&table, true).iter().map(Cell::sequence_id).max().unwrap();
    let file = write(&vfs, "/f.hfile", &cells(b"f"), foreign());
    let other = write(&vfs, "/g.hfile", &cells(b"g"), HFileWriterOptions::default());
    let empty = write(&vfs, "/empty.hfile", &[], HFileWriterOptions::default());
    let mut passed = 0;
    let summary = store.bulk_load(&name(), &[file, empty, other], &mut |bytes| passed += bytes).unwrap();
    let count = cells(b"f").len() as u64;
    assert_eq!((summary.rows, summary.cells, summary.superseded, summary.store_files), (180, 2 * count, 0, 6));
    assert!(passed > 0);

    let mut expected: Vec<Cell> = cells(b"f").into_iter().chain(cells(b"g")).collect();
    expected.sort_by(|left, right| left.row().cmp(right.row()).then(left.family().cmp(right.family())));
    let found = scan(&table, true);
    // The three cells from before have keys that were loaded again, and by the sequence id the loaded ones win.
    assert_eq!(without_ids(&found), without_ids(&expected));
    let ids: BTreeSet<u64> = found.iter().map(Cell::sequence_id).collect();
    assert!(ids.len() == 2 && ids.iter().all(|id| *id > before), "a new id for each file: {ids:?}");
    assert_eq!(value_at(&table, "row-035"), b"loaded");
    // And by the sequence id a later put of the same timestamp wins over the loaded one.
    table.put(put(35, 10, "after")).unwrap();
    assert_eq!(value_at(&table, "row-035"), b"after");
    // The files hold what their regions have, in the families' own codec.
    for region in store.open_regions(&name()).unwrap() {
        for loaded in region.stores().iter().flat_map(|store| store.files().as_slice().to_vec()) {
            assert!(region.contains(&loaded.entry.first_row) && region.contains(&loaded.entry.last_row));
            assert_eq!(loaded.file.reader().unwrap().info().compression, Compression::None);
        }
    }
    let state = without_ids(&scan(&table, true));
    drop((table, store));
    let store = open(&vfs.crash(Keep::None));
    let table = store.table(&name()).unwrap();
    assert_eq!(without_ids(&scan(&table, true)), state, "after a crash");
    let visible = without_ids(&scan(&table, false));
    for region in store.open_regions(&name()).unwrap() {
        for family in region.stores() {
            region.compact_files(&family, &[0, 1, 2, 3]).unwrap();
        }
    }
    assert_eq!(without_ids(&scan(&table, false)), visible, "markers among the loaded hide the same when compacted");
}

#[test]
fn of_equal_keys_in_a_file_the_newest_is_loaded() {
    let vfs = SimVfs::new();
    let store = open(&vfs);
    let table = table(&store);
    let cell = |value: &[u8], id| Cell::new(b"row-001", b"f", b"q", 10, CellType::Put, value).with_sequence_id(id);
    let file = write(&vfs, "/f", &[cell(b"new", 7), cell(b"old", 3)], foreign());
    let summary = load(&store, &[file]).unwrap();
    assert_eq!((summary.cells, summary.superseded), (1, 1));
    assert_eq!(value_at(&table, "row-001"), b"new");

    // Store files of one table, in any order: the sequence ids up to which they hold its edits say which is newer.
    let of_store = |path: &str, value: &[u8], id: u64| {
        let file = vfs.create_new(Path::new(path)).unwrap();
        let mut writer = HFileWriter::create(file, foreign()).unwrap();
        writer.append(&cell(value, id)).unwrap();
        let info = StoreFileInfo { max_sequence_id: Some(id), ..StoreFileInfo::default() };
        writer.finish(info).unwrap();
        PathBuf::from(path)
    };
    let (older, newer) = (of_store("/older", b"older", 8), of_store("/newer", b"newer", 9));
    load(&store, &[newer, older]).unwrap();
    assert_eq!(value_at(&table, "row-001"), b"newer");
    load(&store, &[of_store("/last", b"a load of its own", 1)]).unwrap();
    assert_eq!(value_at(&table, "row-001"), b"a load of its own");
}

#[test]
fn what_cannot_be_loaded_is_refused_with_its_file_and_nothing_changes() {
    let vfs = SimVfs::new();
    let store = open(&vfs);
    let table = table(&store);
    store.flush_table(&name()).unwrap();
    let good = write(&vfs, "/good", &cells(b"f"), foreign());
    let one = |row: &[u8], family: &[u8], time, kind| vec![Cell::new(row, family, b"q", time, kind, b"v")];
    let missing = write(&vfs, "/missing", &one(b"r", b"nope", 1, CellType::Put), foreign());
    let latest = write(&vfs, "/latest", &one(b"r", b"f", i64::MAX, CellType::Put), foreign());
    let rowless = write(&vfs, "/rowless", &one(b"", b"f", 1, CellType::Put), foreign());
    let search = write(&vfs, "/search", &one(b"r", b"f", 1, CellType::Maximum), foreign());
    let damaged = write(&vfs, "/damaged", &cells(b"f"), foreign());
    vfs.damage(&damaged, 900, |byte| byte ^ 1).unwrap();
    let before = (without_ids(&scan(&table, true)), vfs.list(Path::new("/store/data")).unwrap());
    type Expected = fn(&Error) -> bool;
    let refusals: [(&PathBuf, Expected); 5] = [
        (
            &missing,
            |error| matches!(error, Error::NoSuchColumnFamily { family, known } if family == "nope" && known.len() == 2),
        ),
        (
            &latest,
            |error| matches!(error, Error::InvalidArgument(what) if what.contains("/latest") && what.contains("now")),
        ),
        (
            &rowless,
            |error| matches!(error, Error::InvalidArgument(what) if what.contains("/rowless: a cell without a row")),
        ),
        (&search, |error| matches!(error, Error::InvalidArgument(what) if what.contains("/search"))),
        (&damaged, |error| matches!(error, Error::Corruption { file, .. } if file == Path::new("/damaged"))),
    ];
    for (bad, expected) in refusals {
        let error = load(&store, &[good.clone(), bad.clone()]).unwrap_err();
        assert!(expected(&error), "{error:?}");
        assert_eq!((without_ids(&scan(&table, true)), vfs.list(Path::new("/store/data")).unwrap()), before, "{bad:?}");
    }
    assert!(matches!(load(&store, &["/none".into()]), Err(Error::Io { .. })));
    // What was refused does not stand in the way of what is not.
    assert_eq!(load(&store, &[good]).unwrap().store_files, 3);
    table.put(put(1, 11, "later")).unwrap();
    assert_eq!(value_at(&table, "row-001"), b"later");
}

/// A failing operation, and a crash, at every operation of a load: the load is there as a whole or not at all.
#[test]
fn a_load_is_all_or_nothing() {
    let (mut failed, mut crashed) = (0, 0);
    for step in 0.. {
        let prepare = || {
            let vfs = SimVfs::new();
            let store = open(&vfs);
            let table = table(&store);
            let file = write(&vfs, "/f.hfile", &cells(b"f"), foreign());
            let before = scan(&table, true).len();
            (vfs, store, table, file, before)
        };
        let whole = cells(b"f").len();
        let (vfs, store, table, file, before) = prepare();
        vfs.fail_at(vfs.operations() + step, Fault::Eio);
        let result = load(&store, std::slice::from_ref(&file));
        vfs.clear_faults();
        let seen = scan(&table, true).len();
        assert_eq!(seen, if result.is_ok() { whole } else { before }, "operation {step}: {result:?}");
        drop((table, store));
        let reopened = scan(&open(&vfs).table(&name()).unwrap(), true).len();
        assert!(reopened == whole || reopened == seen, "operation {step}: {reopened} after reopening, {seen} before");
        failed += u64::from(result.is_err());

        let (vfs, store, table, file, before) = prepare();
        vfs.stop_at(vfs.operations() + step);
        let result = load(&store, &[file]);
        drop((table, store));
        for keep in [Keep::None, Keep::All] {
            let found = scan(&open(&vfs.crash(keep)).table(&name()).unwrap(), true).len();
            let allowed = if result.is_ok() { found == whole } else { found == whole || found == before };
            assert!(allowed, "operation {step}, {keep:?}: {found} cells");
        }
        crashed += u64::from(result.is_err());
        if result.is_ok() {
            break;
        }
    }
    assert!(failed > 20 && crashed > 20, "{failed} failures, {crashed} crashes");
}

fn data_files(vfs: &SimVfs) -> usize {
    vfs.list(Path::new("/store/data")).unwrap().len()
}

/// The files that the store's regions have.
fn live_files(store: &Store) -> usize {
    let regions = store.open_regions(&name()).unwrap();
    let stores = regions.iter().flat_map(|region| region.stores());
    stores
        .flat_map(|store| store.files().as_slice().to_vec())
        .map(|view| view.entry.file_id)
        .collect::<BTreeSet<_>>()
        .len()
}

#[test]
fn everybody_goes_on_while_the_files_are_written() {
    let vfs = SimVfs::new();
    let store = open(&vfs);
    let table = table(&store);
    let file = write(&vfs, "/f.hfile", &cells(b"f"), foreign());
    let mut during = 0;
    let mut writer = |_: u64| {
        // In the middle of the first phase: what is written is seen at once, so no sequence id is held.
        during += 1;
        table.put(put(35, 10, "meanwhile")).unwrap();
        assert_eq!(value_at(&table, "row-035"), b"meanwhile");
    };
    let prepared = store.prepare_bulk_load(&name(), &[file], &mut writer).unwrap();
    assert!(during > 0);
    table.put(put(36, 10, "between")).unwrap();
    assert_eq!(scan(&table, true).len(), 4, "nothing of the load is there");
    assert_eq!((data_files(&vfs), live_files(&store)), (3, 0), "the files are aside");
    // Flushes and compactions go on as well.
    store.flush_table(&name()).unwrap();
    store.major_compact_table(&name(), None).unwrap();
    let open_scan = table.scan(&Scan::new()).unwrap();
    assert_eq!(prepared.install().unwrap().store_files, 3);

    // The sequence id is one of the end: the load is newer than what was written while it was prepared.
    assert_eq!(value_at(&table, "row-035"), b"loaded");
    assert_eq!(value_at(&table, "row-036"), b"loaded");
    table.put(put(36, 10, "after")).unwrap();
    assert_eq!(value_at(&table, "row-036"), b"after");
    let mut open_scan = open_scan;
    let mut rows = 0;
    while open_scan.next().unwrap().is_some() {
        rows += 1;
    }
    assert_eq!(rows, 4, "a scan that began before stays before");
}

#[test]
fn a_prepared_load_that_is_dropped_leaves_nothing() {
    let vfs = SimVfs::new();
    let store = open(&vfs);
    let table = table(&store);
    let file = write(&vfs, "/f.hfile", &cells(b"f"), foreign());
    let prepared = store.prepare_bulk_load(&name(), std::slice::from_ref(&file), &mut |_| {}).unwrap();
    drop(prepared);
    assert_eq!((data_files(&vfs), scan(&table, true).len()), (0, 3));
    // Nor does one that a crash meets between the phases.
    let prepared = store.prepare_bulk_load(&name(), &[file], &mut |_| {}).unwrap();
    assert_eq!(data_files(&vfs), 3);
    let crashed = vfs.crash(Keep::All);
    drop((prepared, table, store));
    assert_eq!(data_files(&crashed), 3);
    let store = open(&crashed);
    assert_eq!((data_files(&crashed), scan(&store.table(&name()).unwrap(), true).len()), (0, 3));
}

/// Splits and merges regions that the files were cut for, so that both kinds of misfit come up.
fn rearrange(store: &Store) -> Result<()> {
    store.split_table(&name(), Some(b"row-010"))?;
    store.split_table(&name(), Some(b"row-045"))?;
    store.merge_regions(&name(), b"row-060")
}

#[test]
fn regions_that_changed_between_the_phases_get_what_is_theirs() {
    let vfs = SimVfs::new();
    let store = open(&vfs);
    let table = table(&store);
    let file = write(&vfs, "/f.hfile", &cells(b"f"), foreign());
    let prepared = store.prepare_bulk_load(&name(), &[file], &mut |_| {}).unwrap();
    rearrange(&store).unwrap();
    table.put(put(12, 10, "in a daughter")).unwrap();
    prepared.install().unwrap();
    let expected = without_ids(&cells(b"f"));
    assert_eq!(without_ids(&scan(&table, true)), expected);
    let regions = store.open_regions(&name()).unwrap();
    assert_eq!(regions.len(), 4);
    assert!(regions.iter().any(|region| region.has_references()));
    let visible = without_ids(&scan(&table, false));
    // And so it stays: over a crash, and when compactions have given every region files of its own.
    drop((regions, table, store));
    let store = open(&vfs.crash(Keep::None));
    let table = store.table(&name()).unwrap();
    assert_eq!(without_ids(&scan(&table, true)), expected);
    store.major_compact_table(&name(), None).unwrap();
    assert!(store.open_regions(&name()).unwrap().iter().all(|region| !region.has_references()));
    assert_eq!(without_ids(&scan(&table, false)), visible);
    assert_eq!(value_at(&table, "row-012"), b"loaded");
}

#[test]
fn what_became_of_the_table_between_the_phases_is_respected() {
    let vfs = SimVfs::new();
    let store = open(&vfs);
    let table = table(&store);
    let file = write(&vfs, "/g.hfile", &cells(b"g"), foreign());
    let prepare = || store.prepare_bulk_load(&name(), std::slice::from_ref(&file), &mut |_| {}).unwrap();
    let prepared = prepare();
    let mut descriptor = (*table.descriptor()).clone();
    descriptor.families.remove(&b"g"[..]);
    let again = descriptor.clone().family("g", ColumnFamilyDescriptor::default());
    store.modify_table(&name(), descriptor).unwrap();
    let error = prepared.install().unwrap_err();
    assert!(matches!(&error, Error::NoSuchColumnFamily { family, .. } if family == "g"), "{error:?}");
    assert_eq!((data_files(&vfs), scan(&table, true).len()), (live_files(&store), 3));

    store.modify_table(&name(), again.clone()).unwrap();
    let prepared = prepare();
    store.modify_table(&name(), TableDescriptor { read_only: true, ..again.clone() }).unwrap();
    assert!(matches!(prepared.install(), Err(Error::ReadOnly { .. })));
    store.modify_table(&name(), again).unwrap();
    let prepared = prepare();
    store.drop_table(&name()).unwrap();
    assert!(matches!(prepared.install(), Err(Error::NoSuchTable(_))));
    drop(table);
    assert_eq!(data_files(&vfs), 0);
}

/// As [`a_load_is_all_or_nothing`], with regions that change between the phases.
#[test]
fn a_load_into_changed_regions_is_all_or_nothing() {
    let (whole, before) = (cells(b"f").len(), 3);
    let mut steps = 0;
    loop {
        let prepare = || {
            let vfs = SimVfs::new();
            let store = open(&vfs);
            let table = table(&store);
            let file = write(&vfs, "/f.hfile", &cells(b"f"), foreign());
            let prepared = store.prepare_bulk_load(&name(), &[file], &mut |_| {}).unwrap();
            rearrange(&store).unwrap();
            table.put(put(5, 10, "again")).unwrap();
            (vfs, store, table, prepared)
        };
        let count = |vfs: &SimVfs| {
            let store = open(vfs);
            assert_eq!(data_files(vfs), live_files(&store), "operation {steps}: what is aside is gone");
            scan(&store.table(&name()).unwrap(), true).len()
        };
        let (vfs, store, table, prepared) = prepare();
        vfs.fail_at(vfs.operations() + steps, Fault::NoSpace);
        let result = prepared.install();
        vfs.clear_faults();
        let seen = scan(&table, true).len();
        // A put of the same key and time is one version more until it is flushed.
        assert_eq!(seen == whole, result.is_ok(), "operation {steps}: {seen} cells, {result:?}");
        drop((table, store));
        let reopened = count(&vfs);
        assert!(reopened == whole || result.is_err(), "operation {steps}: {reopened} cells");

        let (vfs, store, table, prepared) = prepare();
        vfs.stop_at(vfs.operations() + steps);
        let result = prepared.install();
        drop((table, store));
        for keep in [Keep::None, Keep::All] {
            let found = count(&vfs.crash(keep));
            let allowed = found == whole || result.is_err() && found <= before + 1;
            assert!(allowed, "operation {steps}, {keep:?}: {found} cells");
        }
        if result.is_ok() {
            break;
        }
        steps += 1;
    }
    assert!(steps > 5, "{steps} operations");
}
