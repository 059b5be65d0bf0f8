//! A full disk: writes are refused, deletes go on in the reserve, room made ends it without a restart.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that meets the unexpected has failed")]

use cellfs::Error;
use cellfs::client::{Admin, Delete, Get, Put, Scan, Table, TableAttributes, TableName};
use cellfs::clock::ManualClock;
use cellfs::schema::{Durability, TableDescriptor};
use cellfs::server::{BackgroundMode, Store, StoreOptions};
use cellfs::vfs::SimVfs;
use std::sync::Arc;

fn name() -> TableName {
    TableName::parse("t").unwrap()
}

fn open(vfs: &SimVfs) -> Store {
    let mut options = StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() };
    options.region.durability = Durability::FsyncWal;
    options.region.space_reserve = 512 << 10;
    options.wal.segment_bytes = 128 << 10;
    Store::open_with(Arc::new(vfs.clone()), Arc::new(ManualClock::new(1_000)), "/store", options).unwrap()
}

fn rows(table: &Arc<dyn Table>) -> usize {
    let mut scanner = table.scan(&Scan::new()).unwrap();
    std::iter::from_fn(|| scanner.next().unwrap()).count()
}

#[test]
fn a_full_disk_refuses_puts_lets_deletes_through_and_recovers() {
    let vfs = SimVfs::new();
    vfs.set_capacity(4 << 20);
    let store = open(&vfs);
    let attributes = TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 };
    let table = store.create_table(&name(), TableDescriptor::with_family("f"), &[], attributes).unwrap();
    let mut written = 0;
    let refused = loop {
        let put = Put::new(format!("{written:06}")).add("f", "q", vec![1u8; 16 << 10]);
        match table.put(put) {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 1000, "the disk never fills");
    };
    assert!(matches!(refused, Error::NoSpace { .. }), "{refused}");
    assert!(written > 50);
    assert_eq!(store.read_only_reason(), None);
    for row in 0..20 {
        table.delete(Delete::row(format!("{row:06}"))).unwrap();
    }
    assert!(matches!(table.put(Put::new("x").add("f", "q", "v")), Err(Error::NoSpace { .. })));
    assert_eq!(rows(&table), written - 20);
    vfs.set_capacity(64 << 20);
    table.put(Put::new("x").add("f", "q", "v")).unwrap();
    store.flush_table(&name()).unwrap();
    store.major_compact_table(&name(), None).unwrap();
    drop((table, store));

    let store = open(&vfs);
    let table = store.table(&name()).unwrap();
    assert_eq!(rows(&table), written - 20 + 1);
    assert!(table.get(&Get::new("000000")).unwrap().is_empty());
}
