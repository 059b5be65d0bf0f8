//! Writers, readers, flushes, compactions and splits at the same time.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets the unexpected has failed"
)]

use bytes::Bytes;
use cellfs::Error;
use cellfs::client::{
    Admin, Get, Increment, Mutation, Put, RowMutations, Scan, Table, TableAttributes, TableName, TimeRange, WriteTime,
};
use cellfs::clock::SystemClock;
use cellfs::schema::{ColumnFamilyDescriptor, Durability, TableDescriptor};
use cellfs::server::{Store, StoreOptions};
use cellfs::vfs::SimVfs;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const ATTRIBUTES: TableAttributes =
    TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 };
const WRITERS: usize = 3;
const ROWS: usize = 700;

fn name() -> TableName {
    TableName::parse("t").unwrap()
}

/// A store whose memory and files are so small that everything happens all the time.
fn busy_store(vfs: &SimVfs) -> Store {
    let mut options = StoreOptions { memstore_bytes: 4 << 20, ..StoreOptions::default() };
    options.region.durability = Durability::AsyncWal;
    options.region.flush_size = 48 << 10;
    options.region.max_file_size = 160 << 10;
    options.region.compaction.throttle_bytes_per_second = 0;
    options.wal.segment_bytes = 64 << 10;
    Store::open_with(Arc::new(vfs.clone()), Arc::new(SystemClock::new()), "/store", options).unwrap()
}

fn descriptor() -> TableDescriptor {
    let family = || ColumnFamilyDescriptor { block_size: 2048, ..Default::default() };
    TableDescriptor::default().family("a", family()).family("b", family())
}

/// Rows come in the writer's order, each with the same value in both families, and two rows at the ends of the table change as one.
fn write(table: &Arc<dyn Table>, writer: usize) {
    for number in 0..ROWS {
        let row = format!("{}-{:04}", ["c", "m", "t"][writer], number);
        let value = format!("{number}-{}", "v".repeat(60));
        table.put(Put::new(row).add("a", "q", value.clone()).add("b", "q", value)).unwrap();
        if number % 5 == 0 {
            let value = Bytes::from(format!("{writer}-{number}"));
            let group = |row: &'static str| RowMutations {
                row: row.into(),
                mutations: vec![Mutation::Put(Put::new(row).add_at("a", "q", WriteTime::AfterNewest, value.clone()))],
            };
            table.mutate_rows(vec![group("a"), group("z")]).unwrap();
            let increment = Increment {
                row: "counter".into(),
                amounts: vec![("a".into(), "n".into(), 1)],
                time: WriteTime::Now,
                time_range: TimeRange::ALL,
                ttl_millis: None,
                durability: Durability::UseDefault,
            };
            table.increment(increment).unwrap();
        }
    }
}

/// One scan shows one moment: of each writer a prefix, of the pair of rows one value.
fn check_scan(table: &Arc<dyn Table>, reversed: bool) -> usize {
    let mut scanner = table.scan(&Scan { reversed, ..Scan::new() }).unwrap();
    let mut seen: BTreeMap<u8, Vec<usize>> = BTreeMap::new();
    let (mut pair, mut last, mut rows) = (Vec::new(), None, 0);
    while let Some(result) = scanner.next().unwrap() {
        let row = result.row().to_vec();
        rows += 1;
        if let Some(last) = last.replace(row.clone()) {
            assert!(if reversed { last > row } else { last < row }, "{last:?} {row:?}");
        }
        match &row[..] {
            b"a" | b"z" => pair.push(result.cells[0].value().to_vec()),
            b"counter" => {}
            _ => {
                assert_eq!(result.cells.len(), 2, "{:?}", result.cells);
                assert_eq!(result.cells[0].value(), result.cells[1].value());
                let number = String::from_utf8_lossy(&row[2..]).parse().unwrap();
                seen.entry(row[0]).or_default().push(number);
            }
        }
    }
    assert!(pair.is_empty() || pair.len() == 2 && pair[0] == pair[1], "{pair:?}");
    for (writer, mut numbers) in seen {
        numbers.sort_unstable();
        let gap = numbers.iter().enumerate().find(|(place, number)| place != *number);
        assert_eq!(gap, None, "a hole in the rows of writer {}", char::from(writer));
    }
    rows
}

#[test]
fn nobody_sees_half_of_anything() {
    let vfs = SimVfs::new();
    let store = busy_store(&vfs);
    let table = store.create_table(&name(), descriptor(), &[], ATTRIBUTES).unwrap();
    let (running, scans) = (AtomicUsize::new(WRITERS), AtomicUsize::new(0));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (table, running) = (&table, &running);
            scope.spawn(move || {
                write(table, writer);
                running.fetch_sub(1, Ordering::SeqCst);
            });
        }
        for reader in 0..2 {
            let (table, running, scans) = (&table, &running, &scans);
            scope.spawn(move || {
                while running.load(Ordering::SeqCst) > 0 {
                    check_scan(table, reader == 1);
                    scans.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let (store, running, done) = (&store, &running, &done);
        scope.spawn(move || {
            let mut round = 0usize;
            while running.load(Ordering::SeqCst) > 0 {
                round += 1;
                store.flush_table(&name()).unwrap();
                let row = format!("{}-{:04}", ["c", "m", "t"][round % 3], round * 37 % ROWS);
                match store.split_table(&name(), Some(row.as_bytes())) {
                    Ok(()) | Err(Error::InvalidArgument(_) | Error::Busy { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
                match store.major_compact_table(&name(), None) {
                    Ok(()) | Err(Error::Busy { .. }) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            done.store(true, Ordering::SeqCst);
        });
    });
    assert!(done.load(Ordering::SeqCst) && scans.load(Ordering::SeqCst) > 0);
    let expected = WRITERS * ROWS + 3;
    assert_eq!(check_scan(&table, false), expected);
    let counter = table.get(&Get::new("counter")).unwrap();
    assert_eq!(counter.cells[0].value(), ((WRITERS * ROWS / 5) as i64).to_be_bytes());
    assert!(store.regions(&name()).unwrap().len() > 1);
    drop(table);
    store.close().unwrap();

    let store = busy_store(&vfs);
    let table = store.table(&name()).unwrap();
    assert_eq!(check_scan(&table, true), expected);
}

#[test]
fn writers_meet_a_bounded_wait_not_a_wall() {
    let vfs = SimVfs::new();
    let mut options = StoreOptions { memstore_bytes: 256 << 10, ..StoreOptions::default() };
    options.region.durability = Durability::AsyncWal;
    options.region.flush_size = 64 << 10;
    let store = Store::open_with(Arc::new(vfs), Arc::new(SystemClock::new()), "/store", options).unwrap();
    let table = store.create_table(&name(), descriptor(), &[], ATTRIBUTES).unwrap();
    // Ten times the limit goes through, for flushes make room.
    for number in 0..2_500 {
        table.put(Put::new(format!("{number:05}")).add("a", "q", vec![7u8; 1000])).unwrap();
    }
    let mut scanner = table.scan(&Scan::new()).unwrap();
    let mut rows = 0;
    while scanner.next().unwrap().is_some() {
        rows += 1;
    }
    assert_eq!(rows, 2_500);
}
