//! Exports: what the files hold is what a raw scan returns, whatever the family's codec and encoding; a cluster may read them; a real HBase
//! accepts them (with a JDK, Maven and the oracle; without them it says so); and no failure leaves a file that looks whole.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that meets the unexpected has failed")]

#[allow(dead_code, unused_imports, reason = "each test file uses its part")]
mod judge;

use bytes::Bytes;
use cellfs::Error;
use cellfs::cell::{Cell, CellScanner, Tag, tag_type};
use cellfs::client::{Admin, Delete, DeleteMarker, Put, PutCell, Scan, Table, TableAttributes, TableName, WriteTime};
use cellfs::clock::ManualClock;
use cellfs::hfile::{HFileReader, ReadOptions, cell_json};
use cellfs::schema::{BloomType, ColumnFamilyDescriptor, Compression, DataBlockEncoding, TableDescriptor};
use cellfs::server::{BackgroundMode, ExportOptions, Store, StoreOptions};
use cellfs::vfs::{Fault, OsVfs, SimVfs, Vfs};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NOW: i64 = 1_600_000_000_000;
/// When the cells come: by NOW the families' time to live has passed, and an export keeps them all the same.
const WRITTEN: i64 = NOW - 100_000;
const ATTRIBUTES: TableAttributes =
    TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 };

fn options() -> StoreOptions {
    StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() }
}

fn name() -> TableName {
    TableName::parse("t").unwrap()
}

fn descriptor() -> TableDescriptor {
    let family = |compression, data_block_encoding, bloom| ColumnFamilyDescriptor {
        compression,
        data_block_encoding,
        bloom,
        versions: 3,
        block_size: 1024,
        ttl_seconds: 60,
        ..Default::default()
    };
    TableDescriptor::default()
        .family("a", family(Compression::None, DataBlockEncoding::None, BloomType::Row))
        .family("b", family(Compression::Zstd, DataBlockEncoding::FastDiff, BloomType::RowCol))
        .family("c", family(Compression::Snappy, DataBlockEncoding::RowIndexV1, BloomType::None))
        .family("empty", ColumnFamilyDescriptor::default())
}

/// Versions, every marker, tags of cellfs and of HBase, in files shared after a split, in files of their own, and in memory.
fn fill(store: &Store) -> Arc<dyn Table> {
    let table = store.create_table(&name(), descriptor(), &[], ATTRIBUTES).unwrap();
    for round in 0..3 {
        for number in 0..60 {
            let row = format!("row{:02}", (number * 7 + round) % 60);
            for family in ["a", "b", "c"] {
                let mut put = Put::new(row.clone());
                let tag = Tag { kind: tag_type::FILE_ATTRIBUTES, value: "mode".into() };
                put.cells.push(PutCell {
                    family: family.into(),
                    qualifier: format!("q{}", number % 4).into(),
                    time: WriteTime::At(WRITTEN - 10_000 + round),
                    value: format!("value {round} {number}").into(),
                    tags: if number % 5 == 0 { vec![tag] } else { Vec::new() },
                });
                put.ttl_millis = (number % 3 == 0).then_some(1_000_000);
                table.put(put).unwrap();
                let (family, qualifier, time) = (family.into(), "q1".into(), WriteTime::At(WRITTEN - 10_000 + round));
                let marker = match number % 12 {
                    0 => DeleteMarker::Version { family, qualifier, time },
                    3 => DeleteMarker::Column { family, qualifier, time },
                    6 => DeleteMarker::Family { family, time },
                    9 => DeleteMarker::FamilyVersion { family, time },
                    _ => continue,
                };
                table.delete(Delete::row(row.clone()).marker(marker)).unwrap();
            }
        }
        match round {
            0 => {
                store.flush_table(&name()).unwrap();
                store.split_table(&name(), Some(b"row30")).unwrap();
            }
            1 => store.flush_table(&name()).unwrap(),
            _ => {}
        }
    }
    table
}

/// The cell as it is exported: without sequence id and without what only a mount understands.
fn exported(cell: &Cell) -> String {
    let tags: Vec<Tag> = cell
        .tag_iter()
        .filter(|(kind, _)| *kind != tag_type::FILE_ATTRIBUTES)
        .map(|(kind, value)| Tag { kind, value: value.to_vec().into() })
        .collect();
    let tags = cellfs::cell::encode_tags(&tags);
    let (row, family, qualifier, value) = (cell.row(), cell.family(), cell.qualifier(), cell.value());
    cell_json(&Cell::with_tags(row, family, qualifier, cell.timestamp(), cell.cell_type(), value, &tags))
}

fn raw_scan(table: &Arc<dyn Table>) -> BTreeMap<String, Vec<String>> {
    let mut cells: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut scanner = table.scan(&Scan { raw: true, max_versions: u32::MAX, ..Scan::new() }).unwrap();
    while let Some(row) = scanner.next().unwrap() {
        for cell in &row.cells {
            cells.entry(String::from_utf8_lossy(cell.family()).into_owned()).or_default().push(exported(cell));
        }
    }
    cells
}

fn cells_of(vfs: &dyn Vfs, path: &Path) -> Vec<String> {
    let reader = HFileReader::open(vfs.open_read(path).unwrap(), 0, None).unwrap();
    assert_eq!(reader.info().bulk_load_time, Some(NOW));
    assert_eq!((reader.info().max_sequence_id, reader.info().max_cell_sequence_id), (None, 0));
    let mut scanner = reader.scanner(ReadOptions::streaming());
    let mut cells = Vec::new();
    scanner.seek_to_first().unwrap();
    while let Some(cell) = scanner.take() {
        cells.push(cell_json(&cell));
        scanner.advance().unwrap();
    }
    cells
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn an_export_holds_what_a_raw_scan_returns_and_hbase_accepts_it() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("store");
    let open =
        |now, options| Store::open_with(Arc::new(OsVfs), Arc::new(ManualClock::new(now)), &root, options).unwrap();
    let store = open(WRITTEN, options());
    let expected = raw_scan(&fill(&store));
    // As a crash leaves it: the last round is in the log alone.
    drop(store);

    let store = open(NOW, StoreOptions { read_only: true, ..options() });
    let target = directory.path().join("export");
    let mut passed = 0;
    let summary =
        store.export_table(&name(), &target, &ExportOptions::default(), &mut |bytes| passed += bytes).unwrap();
    assert!(passed > 0 && summary.long_rows.is_empty() && summary.passed_over.is_empty());
    assert_eq!(summary.files.len(), 6, "three families with cells in two regions each");
    assert_eq!(mode(&target), 0o755);
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in &summary.files {
        let (family, file) = (path.parent().unwrap(), path.file_name().unwrap().to_str().unwrap());
        assert_eq!((mode(family), mode(path)), (0o755, 0o644));
        assert!(file.len() == 32 && file.bytes().all(|byte| byte.is_ascii_hexdigit()), "{file}");
        let family = family.file_name().unwrap().to_str().unwrap().to_owned();
        found.entry(family).or_default().extend(cells_of(&OsVfs, path));
    }
    assert_eq!(summary.cells as usize, found.values().map(Vec::len).sum::<usize>());
    assert_eq!(found, expected);

    let Some(oracle) = judge::oracle() else { return };
    for (path, verdict) in summary.files.iter().zip(judge::judge(&oracle, &summary.files)) {
        verdict.assert_accepted(&path.display().to_string());
        assert_eq!(verdict.cells, cells_of(&OsVfs, path));
    }
}

/// Borders of another table in place of the region's own: each file lies between two of them, and together they hold the same cells.
#[test]
fn files_are_cut_where_it_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(NOW));
    let root = directory.path().join("store");
    let store = Store::open_with(Arc::new(OsVfs), clock, &root, options()).unwrap();
    let expected = raw_scan(&fill(&store));
    let keys = ["row10", "row40", "row41", "row99"];
    for (number, splits) in [vec![], keys.map(Bytes::from).into_iter().rev().collect()].into_iter().enumerate() {
        let target = directory.path().join(format!("export{number}"));
        let options = ExportOptions { splits: Some(splits.clone()), compression: Some(Compression::Gz) };
        let summary = store.export_table(&name(), &target, &options, &mut |_| {}).unwrap();
        // Nothing is behind the last key, and the region's own border at row30 is not one of these.
        assert_eq!(summary.files.len(), if splits.is_empty() { 3 } else { 12 });
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for path in &summary.files {
            let reader = HFileReader::open(OsVfs.open_read(path).unwrap(), 0, None).unwrap();
            let info = reader.info();
            let (first, last) = (info.first_row.clone().unwrap(), info.last_row.clone().unwrap());
            assert!(!splits.iter().any(|key| first < *key && *key <= last), "{first:?} to {last:?}");
            assert_eq!(info.compression, Compression::Gz);
            let family = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
            found.entry(family).or_default().extend(cells_of(&OsVfs, path));
        }
        assert_eq!(found, expected);
    }
    let options = ExportOptions { splits: Some(vec![Bytes::new()]), ..ExportOptions::default() };
    let target = directory.path().join("refused");
    let refused = store.export_table(&name(), &target, &options, &mut |_| {});
    assert!(matches!(refused, Err(Error::InvalidArgument(_))) && !target.exists());
}

#[test]
fn what_cannot_be_exported_is_refused_and_nothing_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("store"), options()).unwrap();
    let target = directory.path().join("export");
    let refused = store.export_table(&name(), &target, &ExportOptions::default(), &mut |_| {});
    assert!(matches!(refused, Err(Error::NoSuchTable(_))));
    assert!(!target.exists());

    store.create_table(&name(), descriptor(), &[], ATTRIBUTES).unwrap();
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("mine"), "precious").unwrap();
    let refused = store.export_table(&name(), &target, &ExportOptions::default(), &mut |_| {}).unwrap_err();
    assert!(matches!(&refused, Error::NotAllowed(what) if what.contains("not empty") && what.contains("mine")));
    assert_eq!(std::fs::read_dir(&target).unwrap().count(), 1);

    std::fs::remove_file(target.join("mine")).unwrap();
    assert_eq!(
        store.export_table(&name(), &target, &ExportOptions::default(), &mut |_| {}).unwrap(),
        Default::default(),
        "an empty table"
    );
}

#[test]
fn rows_that_a_client_may_not_find_and_families_passed_over_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("store"), options()).unwrap();
    let families = TableDescriptor::default().family("_f", ColumnFamilyDescriptor::default());
    let table = store.create_table(&name(), families, &[], ATTRIBUTES).unwrap();
    // Two less than 32767 - 16: the table's name has one byte, and one more is too much.
    for len in [32_750, 32_751] {
        table.put(Put::new(vec![b'r'; len]).add("_f", "q", "v")).unwrap();
    }
    let summary =
        store.export_table(&name(), &directory.path().join("export"), &ExportOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(summary.long_rows.iter().map(|row| row.len()).collect::<Vec<_>>(), [32_751]);
    assert_eq!(summary.passed_over.into_iter().collect::<Vec<_>>(), ["_f"]);
}

#[test]
fn a_failing_disk_leaves_no_file_that_looks_whole() {
    let vfs = SimVfs::new();
    let clock = Arc::new(ManualClock::new(WRITTEN));
    let store = Store::open_with(Arc::new(vfs.clone()), clock.clone(), "/store", options()).unwrap();
    let expected = raw_scan(&fill(&store));
    clock.add(NOW - WRITTEN);
    let mut failures = 0;
    loop {
        let target = PathBuf::from(format!("/export{failures}"));
        // One operation later each time, until all had their turn.
        vfs.fail_at(vfs.operations() + failures, Fault::Eio);
        let exported = store.export_table(&name(), &target, &ExportOptions::default(), &mut |_| {});
        vfs.clear_faults();
        if vfs.exists(&target).unwrap() {
            for family in vfs.list(&target).unwrap() {
                let directory = target.join(&family.name);
                for file in vfs.list(&directory).unwrap().iter().filter(|file| !file.name.starts_with('_')) {
                    let cells = cells_of(&vfs, &directory.join(&file.name));
                    assert!(!cells.is_empty() && cells.iter().all(|cell| expected[&family.name].contains(cell)));
                }
            }
        }
        if exported.is_ok() {
            break;
        }
        failures += 1;
    }
    assert!(failures > 6 * 4, "{failures} operations failed");
}
