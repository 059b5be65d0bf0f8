//! The store as its users see it: tables, rows, recovery, schema changes, on the real file system.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that meets the unexpected has failed")]

use bytes::Bytes;
use cellfs::client::{
    Admin, Append, CheckAndMutate, CompareOperator, Condition, Delete, DeleteMarker, Get, Increment, Mutation, Put,
    RowMutations, Scan, Table, TableAttributes, TableName, TimeRange, WriteTime,
};
use cellfs::schema::{ColumnFamilyDescriptor, Durability, ROW_ATTRIBUTES_FAMILY, TableDescriptor};
use cellfs::server::{BackgroundMode, Store, StoreOptions};
use cellfs::{Error, Result};
use std::sync::Arc;

const ATTRIBUTES: TableAttributes =
    TableAttributes { mode: 0o755, uid: 1, gid: 2, changed_millis: 3, modified_millis: 4 };

fn options() -> StoreOptions {
    StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() }
}

fn name(text: &str) -> TableName {
    TableName::parse(text).unwrap()
}

fn descriptor() -> TableDescriptor {
    TableDescriptor::default()
        .family("cf", ColumnFamilyDescriptor { versions: 3, ..Default::default() })
        .family("info", ColumnFamilyDescriptor::default())
}

fn with_table(test: impl FnOnce(&Store, &Arc<dyn Table>)) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path().join("store"), options()).unwrap();
    let table = store.create_table(&name("t"), descriptor(), &[], ATTRIBUTES).unwrap();
    test(&store, &table);
}

fn value(table: &Arc<dyn Table>, row: &str, family: &str, qualifier: &str) -> Option<String> {
    let get = Get::new(row.to_owned()).column(family.to_owned(), qualifier.to_owned());
    let found = table.get(&get).unwrap();
    found.cells.first().map(|cell| String::from_utf8(cell.value().to_vec()).unwrap())
}

fn rows(table: &Arc<dyn Table>, scan: &Scan) -> Vec<String> {
    let mut scanner = table.scan(scan).unwrap();
    let mut rows = Vec::new();
    while let Some(result) = scanner.next().unwrap() {
        rows.push(String::from_utf8(result.row().to_vec()).unwrap());
    }
    rows
}

fn figure(store: &Store, table: &str, figure: &str) -> i64 {
    let statistics = store.table_statistics(&name(table)).unwrap();
    statistics.figures.iter().find(|(name, _)| *name == figure).unwrap().1
}

#[test]
fn a_column_is_read_without_the_large_one_before_it() {
    with_table(|store, table| {
        let large = vec![7u8; 1 << 20];
        table.put(Put::new("row").add("cf", "a", large.clone()).add("cf", "z", "small")).unwrap();
        table.put(Put::new("other").add("cf", "a", large)).unwrap();
        store.flush_table(&name("t")).unwrap();
        let before = figure(store, "t", "data_blocks_read");
        assert_eq!(value(table, "row", "cf", "z").as_deref(), Some("small"));
        assert_eq!(figure(store, "t", "data_blocks_read") - before, 1);
        // A marker of the family hides it, wherever it stands in the row.
        table
            .delete(Delete::row("row").marker(DeleteMarker::Family { family: "cf".into(), time: WriteTime::Now }))
            .unwrap();
        assert_eq!(value(table, "row", "cf", "z"), None);
        store.flush_table(&name("t")).unwrap();
        assert_eq!(value(table, "row", "cf", "z"), None);
        store.major_compact_table(&name("t"), None).unwrap();
        assert_eq!(value(table, "row", "cf", "z"), None);
    });
}

#[test]
fn puts_are_read_back_from_memory_files_and_after_reopening() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open(&path, options())?;
    let table = store.create_table(&name("t"), descriptor(), &[], ATTRIBUTES)?;
    for row in ["a", "b", "c"] {
        table.put(Put::new(row).add("cf", "q", format!("1-{row}")).add("info", "", "x"))?;
    }
    assert_eq!(value(&table, "b", "cf", "q").as_deref(), Some("1-b"));
    store.flush_table(&name("t"))?;
    assert_eq!(figure(&store, "t", "files"), 2);
    table.put(Put::new("b").add("cf", "q", "2-b"))?;
    table.put(Put::new("d").add("cf", "q", "1-d"))?;
    assert_eq!(value(&table, "b", "cf", "q").as_deref(), Some("2-b"));
    assert_eq!(rows(&table, &Scan::new()), ["a", "b", "c", "d"]);
    drop((table, store));

    // Not closed: the log brings back what was not flushed.
    let store = Store::open(&path, options())?;
    let table = store.table(&name("t"))?;
    assert_eq!(value(&table, "b", "cf", "q").as_deref(), Some("2-b"));
    assert_eq!(rows(&table, &Scan::new()), ["a", "b", "c", "d"]);
    let versions = table.get(&Get::new("b").column("cf", "q").versions(9))?;
    assert_eq!(versions.cells.len(), 2);
    drop(table);
    store.close()?;

    let reader = Store::open(&path, StoreOptions { read_only: true, ..options() })?;
    let table = reader.table(&name("t"))?;
    assert_eq!(rows(&table, &Scan { reversed: true, ..Scan::new() }), ["d", "c", "b", "a"]);
    assert!(matches!(table.put(Put::new("z").add("cf", "q", "v")), Err(Error::ReadOnly { .. })));
    assert!(reader.read_only_reason().is_some());
    assert_eq!(reader.table_attributes(&name("t"))?, ATTRIBUTES);
    Ok(())
}

#[test]
fn a_reader_replays_the_log_and_writes_nothing() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    let store = Store::open(&path, options())?;
    let table = store.create_table(&name("t"), descriptor(), &[], ATTRIBUTES)?;
    table.put(Put::new("a").add("cf", "q", "v"))?;
    drop((table, store));
    let listing = |path: &std::path::Path| -> Vec<_> {
        let mut names: Vec<_> = ["", "wal", "data"]
            .iter()
            .flat_map(|sub| std::fs::read_dir(path.join(sub)).unwrap())
            .map(|entry| entry.unwrap().path())
            .collect();
        names.sort();
        names
    };
    let before = listing(&path);
    let reader = Store::open(&path, StoreOptions { read_only: true, ..options() })?;
    assert_eq!(value(&reader.table(&name("t"))?, "a", "cf", "q").as_deref(), Some("v"));
    assert!(matches!(Store::open(&path, options()), Err(Error::Locked { .. })));
    drop(reader);
    assert_eq!(listing(&path), before);
    Ok(())
}

#[test]
fn what_is_no_store_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("letter.txt"), "dear").unwrap();
    assert!(matches!(Store::open(directory.path(), options()), Err(Error::NotAStore { .. })));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    let missing = directory.path().join("none");
    let read_only = StoreOptions { read_only: true, ..options() };
    assert!(matches!(Store::open(&missing, read_only), Err(Error::NotAStore { .. })));
    assert!(!missing.exists());
}

#[test]
fn a_second_opening_names_the_holder() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path(), options())?;
    let second = Store::open(directory.path(), options());
    assert!(matches!(second, Err(Error::Locked { .. })), "{:?}", second.err());
    drop(store);
    Store::open(directory.path(), options())?.close()
}

#[test]
fn deletes_mask_and_the_newest_version_is_looked_up() {
    with_table(|_, table| {
        for (timestamp, text) in [(10, "ten"), (20, "twenty"), (30, "thirty")] {
            table.put(Put::new("r").add_at("cf", "q", WriteTime::At(timestamp), text)).unwrap();
        }
        let newest = DeleteMarker::Version { family: "cf".into(), qualifier: "q".into(), time: WriteTime::Now };
        let outcome = table.delete(Delete::row("r").marker(newest.clone()).marker(newest)).unwrap();
        assert_eq!(outcome.written.iter().map(|cell| cell.timestamp()).collect::<Vec<_>>(), [30, 20]);
        assert_eq!(value(table, "r", "cf", "q").as_deref(), Some("ten"));
        table.delete(Delete::row("r")).unwrap();
        assert!(table.get(&Get::new("r")).unwrap().is_empty());
    });
}

#[test]
fn after_newest_is_always_newer_and_replaces_only_its_own() {
    with_table(|store, table| {
        let future = 9_000_000_000_000;
        table.put(Put::new("r").add_at("cf", "q", WriteTime::At(future), "old")).unwrap();
        store.flush_table(&name("t")).unwrap();
        let put = |time, text: &'static str| {
            let outcome = table.put(Put::new("r").add_at("cf", "q", time, text)).unwrap();
            outcome.written[0].timestamp()
        };
        assert_eq!(put(WriteTime::AfterNewest, "new"), future + 1);
        assert_eq!(put(WriteTime::ReplaceIfNewest(future + 1), "newer"), future + 1);
        assert_eq!(value(table, "r", "cf", "q").as_deref(), Some("newer"));
        assert_eq!(put(WriteTime::ReplaceIfNewest(future), "newest"), future + 2);
        let column = DeleteMarker::Column { family: "cf".into(), qualifier: "q".into(), time: WriteTime::AfterNewest };
        let marker = table.delete(Delete::row("r").marker(column)).unwrap();
        assert_eq!(marker.written[0].timestamp(), future + 2);
        assert_eq!(value(table, "r", "cf", "q"), None);
        assert_eq!(put(WriteTime::ReplaceIfNewest(future + 2), "again"), future + 3);
        let mut row = Delete::row("r");
        row.row_time = WriteTime::AfterNewest;
        assert!(table.delete(row).unwrap().written.iter().any(|cell| cell.timestamp() == future + 3));
        assert_eq!(put(WriteTime::AfterNewest, "alive"), future + 4);
        assert_eq!(value(table, "r", "cf", "q").as_deref(), Some("alive"));
    });
}

#[test]
fn rows_of_several_regions_change_as_one() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path(), options())?;
    let splits = [Bytes::from("g"), Bytes::from("p")];
    let table = store.create_table(&name("t"), descriptor(), &splits, ATTRIBUTES)?;
    let group = |row: &str| RowMutations {
        row: Bytes::copy_from_slice(row.as_bytes()),
        mutations: vec![Mutation::Put(Put::new(row.to_owned()).add("cf", "q", row.to_owned()))],
    };
    let outcome = table.mutate_rows(["z", "a", "h"].map(group).to_vec())?;
    let written: Vec<&[u8]> = outcome.written.iter().map(|cell| cell.row()).collect();
    assert_eq!(written, [b"z", b"a", b"h"]);
    assert!(outcome.written.windows(2).all(|pair| pair[0].sequence_id() == pair[1].sequence_id()));
    assert_eq!(rows(&table, &Scan::new()), ["a", "h", "z"]);
    assert_eq!(rows(&table, &Scan { reversed: true, limit: Some(2), ..Scan::new() }), ["z", "h"]);
    assert_eq!(store.regions(&name("t"))?.len(), 3);
    Ok(())
}

#[test]
fn counters_appends_and_checks_follow_hbase() {
    with_table(|_, table| {
        let increment = |amount| Increment {
            row: "r".into(),
            amounts: vec![("cf".into(), "n".into(), amount)],
            time: WriteTime::Now,
            time_range: TimeRange::ALL,
            ttl_millis: None,
            durability: Durability::UseDefault,
        };
        assert_eq!(table.increment(increment(5)).unwrap().written[0].value(), 5i64.to_be_bytes());
        assert_eq!(table.increment(increment(-7)).unwrap().written[0].value(), (-2i64).to_be_bytes());
        table.put(Put::new("r").add_at("cf", "n", WriteTime::AfterNewest, "abc")).unwrap();
        assert!(matches!(table.increment(increment(1)), Err(Error::NotALong { width: 3, .. })));
        let append = Append {
            row: "r".into(),
            values: vec![("cf".into(), "s".into(), "xy".into())],
            time: WriteTime::Now,
            time_range: TimeRange::ALL,
            ttl_millis: None,
            durability: Durability::UseDefault,
        };
        table.append(append.clone()).unwrap();
        assert_eq!(table.append(append).unwrap().written[0].value(), b"xyxy");
        let check = |value: &'static str| CheckAndMutate {
            row: "r".into(),
            condition: Condition::Column {
                family: "cf".into(),
                qualifier: "s".into(),
                operator: CompareOperator::Equal,
                value: Some(value.into()),
                time_range: TimeRange::ALL,
            },
            then: RowMutations {
                row: "r".into(),
                mutations: vec![Mutation::Put(Put::new("r").add("cf", "s", "done"))],
            },
        };
        assert!(!table.check_and_mutate(check("other")).unwrap().applied);
        assert!(table.check_and_mutate(check("xyxy")).unwrap().applied);
        assert_eq!(value(table, "r", "cf", "s").as_deref(), Some("done"));
    });
}

#[test]
fn a_batch_gives_each_mutation_its_own_result() {
    with_table(|_, table| {
        let mutations: Vec<Mutation> = (0..1200)
            .map(|number| match number {
                7 => Mutation::Put(Put::new("bad").add("nope", "q", "v")),
                9 => Mutation::Delete(Delete::row("row0003")),
                _ => Mutation::Put(Put::new(format!("row{number:04}")).add("cf", "q", "v")),
            })
            .collect();
        let results = table.batch(mutations);
        assert_eq!(results.len(), 1200);
        assert!(matches!(results[7], Err(Error::NoSuchColumnFamily { .. })));
        assert!(results.iter().enumerate().all(|(number, result)| number == 7 || result.is_ok()));
        assert_eq!(results[1199].as_ref().unwrap().written.len(), 1);
        assert_eq!(rows(table, &Scan::new()).len(), 1197);
    });
}

#[test]
fn the_hidden_family_is_seen_only_when_named() {
    with_table(|store, table| {
        table.put(Put::new("r").add(ROW_ATTRIBUTES_FAMILY, "", "mode")).unwrap();
        assert!(table.get(&Get::new("r")).unwrap().is_empty());
        assert!(rows(table, &Scan::new()).is_empty());
        store.flush_table(&name("t")).unwrap();
        let named = table.get(&Get::new("r").family(ROW_ATTRIBUTES_FAMILY)).unwrap();
        assert_eq!(named.cells.len(), 1);
        assert_eq!(figure(store, "t", "files"), 0);
    });
}

#[test]
fn regions_split_at_a_row_and_keep_everything() {
    with_table(|store, table| {
        for number in 0..400 {
            table.put(Put::new(format!("row{number:03}")).add("cf", "q", vec![b'v'; 400])).unwrap();
        }
        let mut open = table.scan(&Scan::new()).unwrap();
        open.next().unwrap();
        store.split_table(&name("t"), None).unwrap();
        store.split_table(&name("t"), Some(b"row007")).unwrap();
        let regions = store.regions(&name("t")).unwrap();
        assert_eq!(regions.len(), 3);
        assert_eq!(regions[1].start, "row007");
        assert!(regions.windows(2).all(|pair| pair[0].end == pair[1].start));
        table.put(Put::new("row200").add("cf", "q", "late")).unwrap();
        assert_eq!(value(table, "row200", "cf", "q").as_deref(), Some("late"));
        assert_eq!(rows(table, &Scan::new()).len(), 400);
        let mut rest = 0;
        while let Some(result) = open.next().unwrap() {
            assert_eq!(result.cells[0].value().len(), 400);
            rest += 1;
        }
        assert_eq!(rest, 399);
        store.run_pending_work().unwrap();
        assert_eq!(rows(table, &Scan { reversed: true, ..Scan::new() }).len(), 400);
        assert!(matches!(store.split_table(&name("t"), Some(b"row007")), Err(Error::InvalidArgument(_))));
    });
}

#[test]
fn compaction_of_all_files_drops_what_is_deleted_and_unlinks_inputs() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path(), options())?;
    let table = store.create_table(&name("t"), TableDescriptor::with_family("cf"), &[], ATTRIBUTES)?;
    for round in 0..4 {
        for row in 0..10 {
            table.put(Put::new(format!("r{row}")).add("cf", "q", format!("{round}")))?;
        }
        store.flush_table(&name("t"))?;
    }
    table.delete(Delete::row("r3"))?;
    store.flush_table(&name("t"))?;
    assert_eq!((figure(&store, "t", "files"), figure(&store, "t", "tombstones")), (5, 1));
    let data = directory.path().join("data");
    let mut held = table.scan(&Scan::new())?;
    held.next()?;
    store.major_compact_table(&name("t"), None)?;
    assert_eq!((figure(&store, "t", "files"), figure(&store, "t", "tombstones")), (1, 0));
    assert_eq!(figure(&store, "t", "entries"), 9);
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 6);
    drop(held);
    assert_eq!(std::fs::read_dir(&data).unwrap().count(), 1);
    assert!(figure(&store, "t", "history_complete_since") > 0);
    assert_eq!(rows(&table, &Scan::new()).len(), 9);
    Ok(())
}

#[test]
fn tables_are_renamed_changed_emptied_and_dropped() -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path(), options())?;
    let table = store.create_table(&name("t"), descriptor(), &[], ATTRIBUTES)?;
    store.create_namespace("ns", Default::default(), ATTRIBUTES)?;
    table.put(Put::new("r").add("cf", "q", "v").add("info", "i", "w"))?;
    store.rename_table(&name("t"), &name("ns:u"))?;
    assert_eq!(table.name(), name("ns:u"));
    assert!(matches!(store.table(&name("t")), Err(Error::NoSuchTable(_))));
    assert!(matches!(store.drop_namespace("ns"), Err(Error::NamespaceNotEmpty(_))));
    store.modify_table(&name("ns:u"), TableDescriptor::with_family("cf"))?;
    store.modify_table(&name("ns:u"), descriptor())?;
    assert_eq!(value(&table, "r", "cf", "q").as_deref(), Some("v"));
    assert_eq!(value(&table, "r", "info", "i"), None);
    drop((table, store));

    let store = Store::open(directory.path(), options())?;
    let table = store.table(&name("ns:u"))?;
    assert_eq!(value(&table, "r", "cf", "q").as_deref(), Some("v"));
    assert_eq!(value(&table, "r", "info", "i"), None);
    assert!(matches!(store.presplit_table(&name("ns:u"), &["m".into()]), Err(Error::TableNotEmpty(_))));
    store.truncate_table(&name("ns:u"))?;
    assert!(rows(&table, &Scan::new()).is_empty());
    store.presplit_table(&name("ns:u"), &["m".into()])?;
    assert_eq!(store.regions(&name("ns:u"))?.len(), 2);
    table.put(Put::new("z").add("cf", "q", "v"))?;
    store.drop_table(&name("ns:u"))?;
    assert!(matches!(table.get(&Get::new("z")), Err(Error::NoSuchTable(_))));
    assert!(matches!(table.put(Put::new("z").add("cf", "q", "v")), Err(Error::NoSuchTable(_))));
    store.drop_namespace("ns")?;
    assert_eq!(store.list_namespaces()?, ["default"]);
    drop((table, store));
    let store = Store::open(directory.path(), options())?;
    assert!(store.list_tables("default")?.is_empty());
    Ok(())
}

/// A column's newest version is looked up in memory alone where that can tell; the way through all versions must come to the same.
#[test]
fn the_newest_version_is_the_first_of_all_versions() {
    let mut seed = 7u64;
    let mut random = move |bound: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % bound
    };
    with_table(|store, table| {
        for round in 0..1500 {
            let (row, qualifier) = (format!("r{}", random(3)), format!("q{}", random(2)));
            let time = WriteTime::At(random(6) as i64);
            let (family, qualifier) = (Bytes::from_static(b"cf"), Bytes::from(qualifier));
            let marker = match random(12) {
                0 => Some(DeleteMarker::Version { family, qualifier, time }),
                1 | 2 => Some(DeleteMarker::Column { family, qualifier, time }),
                3 if round > 700 => Some(DeleteMarker::Family { family, time }),
                4 if random(4) == 0 => {
                    store.flush_table(&name("t")).unwrap();
                    None
                }
                _ => {
                    table.put(Put::new(row.clone()).add_at("cf", qualifier, time, format!("{round}"))).unwrap();
                    None
                }
            };
            if let Some(marker) = marker {
                table.delete(Delete::row(row).marker(marker)).unwrap();
            }
            for (row, qualifier) in [("r0", "q0"), ("r0", "q1"), ("r1", "q0"), ("r2", "q1"), ("none", "q0")] {
                let all = Get::new(row.to_owned()).column("cf", qualifier).versions(3);
                let first = table.get(&all).unwrap().cells.into_iter().next();
                let newest = table.get(&Get::new(row.to_owned()).column("cf", qualifier)).unwrap();
                assert_eq!(newest.cells.into_iter().next(), first, "{row} {qualifier} in round {round}");
            }
        }
    });
}
