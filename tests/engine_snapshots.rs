//! Snapshots, clones, exchanged tables and the past, against what was written down when it was the present.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failing test says so by panicking"
)]

use bytes::Bytes;
use cellfs::Error;
use cellfs::client::{Admin, Delete, Get, Put, RestorePoint, Scan, Table, TableAttributes, TableName, TableView};
use cellfs::clock::{Clock, ManualClock};
use cellfs::schema::{ColumnFamilyDescriptor, KeepDeletedCells, TableDescriptor};
use cellfs::server::{BackgroundMode, Store, StoreOptions};
use cellfs::vfs::{Keep, SimVfs, Vfs};
use std::path::Path;
use std::sync::Arc;

const NOW: i64 = 1_764_533_701_000;
const ATTRIBUTES: TableAttributes =
    TableAttributes { mode: 0o755, uid: 1, gid: 2, changed_millis: 0, modified_millis: 0 };

fn options() -> StoreOptions {
    StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() }
}

fn name(text: &str) -> TableName {
    TableName::parse(text).unwrap()
}

/// Rows, columns and values, as one text.
fn shown(table: &dyn Table) -> Vec<String> {
    let mut scanner = table.scan(&Scan::new()).unwrap();
    let mut cells = Vec::new();
    while let Some(row) = scanner.next().unwrap() {
        let got = table.get(&Get::new(Bytes::copy_from_slice(row.row()))).unwrap();
        assert_eq!(got.cells, row.cells, "a get and a scan agree");
        for cell in row.cells {
            let part = |bytes: &[u8]| bytes.escape_ascii().to_string();
            cells.push(format!("{} {} {}", part(cell.row()), part(cell.qualifier()), part(cell.value())));
        }
    }
    let mut reversed = Vec::new();
    let mut scanner = table.scan(&Scan { reversed: true, first_cell_only: true, ..Scan::new() }).unwrap();
    while let Some(row) = scanner.next().unwrap() {
        reversed.insert(0, row.row().escape_ascii().to_string());
    }
    let mut rows: Vec<String> = cells.iter().map(|cell| cell.split(' ').next().unwrap().to_owned()).collect();
    rows.dedup();
    assert_eq!(rows, reversed);
    cells
}

struct World {
    vfs: SimVfs,
    clock: Arc<ManualClock>,
    store: Store,
}

impl World {
    fn new(family: ColumnFamilyDescriptor) -> World {
        let (vfs, clock) = (SimVfs::new(), Arc::new(ManualClock::new(NOW)));
        let store = Store::open_with(Arc::new(vfs.clone()), clock.clone(), "/s", options()).unwrap();
        let descriptor = TableDescriptor::default().family("cf", family);
        store.create_table(&name("t"), descriptor, &[Bytes::from("m")], ATTRIBUTES).unwrap();
        World { vfs, clock, store }
    }

    fn reopen(self) -> World {
        let World { vfs, clock, store } = self;
        drop(store);
        let store = Store::open_with(Arc::new(vfs.clone()), clock.clone(), "/s", options()).unwrap();
        World { vfs, clock, store }
    }

    fn table(&self) -> Arc<dyn Table> {
        self.store.table(&name("t")).unwrap()
    }

    fn put(&self, row: &str, value: &str) {
        self.clock.add(10);
        self.table().put(Put::new(row.to_owned()).add("cf", "q", value.to_owned())).unwrap();
    }

    fn files(&self) -> usize {
        self.vfs.list(Path::new("/s/data")).unwrap().len()
    }
}

#[test]
fn a_snapshot_stays_what_it_was_and_its_files_go_with_the_last_that_has_them() {
    let world = World::new(ColumnFamilyDescriptor::default());
    for row in ["a", "b", "n", "z"] {
        world.put(row, "old");
    }
    let then = shown(&*world.table());
    world.store.create_snapshot(&name("t"), b"s").unwrap();
    assert!(matches!(world.store.create_snapshot(&name("t"), b"s"), Err(Error::SnapshotExists(_))));
    let files_then = world.files();
    world.put("a", "new");
    world.table().delete(Delete::row("n")).unwrap();
    world.store.split_table(&name("t"), Some(b"c")).unwrap();
    world.store.major_compact_table(&name("t"), None).unwrap();
    let now = shown(&*world.table());
    let snapshot = world.store.open_snapshot(&name("t"), b"s").unwrap();
    assert_eq!(shown(&*snapshot), then);
    assert!(matches!(snapshot.view(), TableView::Snapshot { .. }));
    assert!(matches!(snapshot.put(Put::new("x").add("cf", "q", "v")), Err(Error::ReadOnly { .. })));
    assert!(matches!(world.store.drop_table(&name("t")), Err(Error::HasSnapshots(_))));
    world.store.truncate_table(&name("t")).unwrap();
    drop(snapshot);

    let world = world.reopen();
    assert!(shown(&*world.table()).is_empty());
    world.store.rename_table(&name("t"), &name("u")).unwrap();
    world.store.rename_snapshot(&name("u"), b"s", b"mine").unwrap();
    assert_eq!(world.store.list_snapshots(&name("u")).unwrap()[0].name, "mine");
    let snapshot = world.store.open_snapshot(&name("u"), b"mine").unwrap();
    assert_eq!(shown(&*snapshot), then);

    let clone = world.store.clone_snapshot(&name("u"), b"mine", &name("t")).unwrap();
    assert_eq!(shown(&*clone), then);
    assert_eq!(world.files(), files_then, "nothing was copied");
    world.put("a", "new");
    world.table().delete(Delete::row("n")).unwrap();
    assert_eq!(shown(&*world.table()), now);
    assert_eq!(shown(&*snapshot), then, "a clone's writes are its own");

    world.store.exchange_tables(&name("t"), &name("u")).unwrap();
    assert_eq!(shown(&*world.store.table(&name("u")).unwrap()), now);
    world.store.delete_snapshot(&name("t"), b"mine").unwrap();
    assert!(matches!(world.store.open_snapshot(&name("t"), b"mine"), Err(Error::NoSuchSnapshot(_))));
    assert_eq!(shown(&*snapshot), then, "an open one goes on");
    drop((snapshot, clone));
    world.store.drop_table(&name("t")).unwrap();
    assert!(world.files() > 0);
    let world = world.reopen();
    assert_eq!(shown(&*world.store.table(&name("u")).unwrap()), now);
    world.store.major_compact_table(&name("u"), None).unwrap();
    world.store.drop_table(&name("u")).unwrap();
    assert_eq!(world.files(), 0);
}

#[test]
fn the_past_is_what_was_shown_then_or_is_said_to_be_gone() {
    let family = ColumnFamilyDescriptor {
        versions: 5,
        keep_deleted_cells: KeepDeletedCells::True,
        ..ColumnFamilyDescriptor::default()
    };
    let world = World::new(family);
    let mut moments = vec![(NOW, Vec::new())];
    for step in 0..24 {
        let row = ["a", "b", "n", "z"][step % 4];
        if step % 7 == 5 {
            world.clock.add(10);
            world.table().delete(Delete::row(row)).unwrap();
        } else {
            world.put(row, &format!("v{step}"));
        }
        moments.push((world.clock.now_millis(), shown(&*world.table())));
        match step {
            9 => world.store.flush_table(&name("t")).unwrap(),
            12 => world.store.split_table(&name("t"), Some(b"b")).unwrap(),
            16 => world.store.compact_table(&name("t"), None).unwrap(),
            20 => world.store.major_compact_table(&name("t"), None).unwrap(),
            _ => {}
        }
        for (millis, expected) in &moments {
            match world.store.open_as_of(&name("t"), *millis) {
                Ok(past) => assert_eq!(&shown(&*past), expected, "{step}: as of {millis}"),
                Err(Error::HistoryIncomplete { since_millis, .. }) => assert!(*millis < since_millis),
                Err(error) => panic!("{error}"),
            }
        }
    }
    let (last, expected) = moments.last().unwrap();
    assert_eq!(&shown(&*world.store.open_as_of(&name("t"), *last).unwrap()), expected);
    world.clock.add(10);
    world.store.truncate_table(&name("t")).unwrap();
    assert!(matches!(world.store.open_as_of(&name("t"), *last), Err(Error::HistoryIncomplete { .. })));
}

/// Whatever operation the machine stops at: the snapshot is there whole or not at all, and no file is missing or left over.
#[test]
fn a_crash_leaves_snapshots_whole_or_none() {
    for at in 0.. {
        let world = World::new(ColumnFamilyDescriptor::default());
        for row in ["a", "z"] {
            world.put(row, "old");
        }
        world.store.create_snapshot(&name("t"), b"first").unwrap();
        world.put("a", "new");
        let (first, second) =
            (vec!["a q old".to_owned(), "z q old".to_owned()], vec!["a q new".to_owned(), "z q old".to_owned()]);
        world.store.sync().unwrap();
        world.vfs.stop_at(world.vfs.operations() + at);
        let work = || -> cellfs::Result<()> {
            world.store.create_snapshot(&name("t"), b"second")?;
            world.store.major_compact_table(&name("t"), None)?;
            world.store.clone_snapshot(&name("t"), b"first", &name("c"))?;
            world.store.delete_snapshot(&name("t"), b"first")
        };
        let done = work().is_ok();
        let vfs = world.vfs.crash(Keep::Random(at));
        std::mem::forget(world.store);
        let store = Store::open_with(Arc::new(vfs.clone()), world.clock.clone(), "/s", options()).unwrap();
        for snapshot in store.list_snapshots(&name("t")).unwrap() {
            let expected = if snapshot.name == "first" { &first } else { &second };
            assert_eq!(&shown(&*store.open_snapshot(&name("t"), &snapshot.name).unwrap()), expected, "{at}");
        }
        if let Ok(clone) = store.table(&name("c")) {
            assert_eq!(shown(&*clone), first, "{at}");
        }
        assert_eq!(shown(&*store.table(&name("t")).unwrap()), second, "{at}");
        if done {
            assert_eq!(store.list_snapshots(&name("t")).unwrap().len(), 1);
            break;
        }
    }
}

#[test]
fn a_restore_shows_what_was_and_is_itself_history() {
    let family = ColumnFamilyDescriptor {
        versions: 9,
        keep_deleted_cells: KeepDeletedCells::True,
        ..ColumnFamilyDescriptor::default()
    };
    let world = World::new(family);
    for row in ["a1", "a2", "n1", "z"] {
        world.put(row, "old");
    }
    let (then, moment) = (shown(&*world.table()), world.clock.now_millis());
    world.store.create_snapshot(&name("t"), b"s").unwrap();
    world.put("a1", "new");
    world.put("n2", "new");
    world.clock.add(10);
    world.table().delete(Delete::row("a2")).unwrap();
    world.table().delete(Delete::row("z")).unwrap();
    let (before, moment_before) = (shown(&*world.table()), world.clock.now_millis());
    world.clock.add(10);
    let changes = world.store.restore_table(&name("t"), &RestorePoint::AsOf(moment), b"a").unwrap();
    assert_eq!((changes.rows, changes.cells), (2, 2));
    assert_eq!(shown(&*world.table()), ["a1 q old", "a2 q old", "n1 q old", "n2 q new"]);
    let changes = world.store.restore_table(&name("t"), &RestorePoint::Snapshot(Bytes::from("s")), b"").unwrap();
    assert_eq!((changes.rows, changes.cells), (2, 2));
    assert_eq!(shown(&*world.table()), then);
    let again = world.store.restore_table(&name("t"), &RestorePoint::Snapshot(Bytes::from("s")), b"").unwrap();
    assert_eq!((again.rows, again.cells), (0, 0));
    assert_eq!(shown(&*world.store.open_as_of(&name("t"), moment_before).unwrap()), before);
    // Writes go on top of what was restored.
    world.put("a1", "newest");
    world.store.major_compact_table(&name("t"), None).unwrap();
    let world = world.reopen();
    assert_eq!(shown(&*world.table()), ["a1 q newest", "a2 q old", "n1 q old", "z q old"]);

    world.clock.add(10);
    assert_eq!(world.store.delete_range(&name("t"), b"a2", b"z").unwrap().rows, 2);
    assert_eq!(shown(&*world.table()), ["a1 q newest", "z q old"]);
    world.clock.add(10);
    assert_eq!(world.store.delete_range(&name("t"), b"", b"").unwrap().rows, 2);
    let world = world.reopen();
    assert!(shown(&*world.table()).is_empty());
    world.put("a1", "back");
    assert_eq!(shown(&*world.table()), ["a1 q back"]);
}

#[test]
fn a_restore_is_there_after_a_crash_or_not_at_all() {
    for at in 0.. {
        let world = World::new(ColumnFamilyDescriptor::default());
        for row in ["a", "m", "z"] {
            world.put(row, "old");
        }
        let then = shown(&*world.table());
        world.store.create_snapshot(&name("t"), b"s").unwrap();
        world.put("a", "new");
        world.clock.add(10);
        world.table().delete(Delete::row("z")).unwrap();
        world.store.sync().unwrap();
        let before = shown(&*world.table());
        world.clock.add(10);
        world.vfs.stop_at(world.vfs.operations() + at);
        let done = world.store.restore_table(&name("t"), &RestorePoint::Snapshot(Bytes::from("s")), b"").is_ok();
        let vfs = world.vfs.crash(Keep::Random(at));
        std::mem::forget(world.store);
        let store = Store::open_with(Arc::new(vfs.clone()), world.clock.clone(), "/s", options()).unwrap();
        let now = shown(&*store.table(&name("t")).unwrap());
        assert!(now == then || now == before && !done, "{at}: {now:?}");
        if done {
            break;
        }
    }
}

#[test]
fn two_regions_become_one() {
    let world = World::new(ColumnFamilyDescriptor::default());
    for row in ["a", "c", "e", "n", "z"] {
        world.put(row, "v");
    }
    world.store.split_table(&name("t"), Some(b"c")).unwrap();
    world.clock.add(10);
    world.table().delete(Delete::row("c")).unwrap();
    let before = shown(&*world.table());
    assert!(matches!(world.store.merge_regions(&name("t"), b"d"), Err(Error::InvalidArgument(_))));
    assert!(matches!(world.store.merge_regions(&name("t"), b""), Err(Error::InvalidArgument(_))));
    world.store.merge_regions(&name("t"), b"m").unwrap();
    world.put("c", "again");
    world.store.merge_regions(&name("t"), b"c").unwrap();
    assert_eq!(world.store.regions(&name("t")).unwrap().len(), 1);
    let world = world.reopen();
    let mut expected = before;
    expected.insert(1, "c q again".to_owned());
    assert_eq!(shown(&*world.table()), expected);
    world.store.major_compact_table(&name("t"), None).unwrap();
    assert_eq!(shown(&*world.table()), expected);
    assert_eq!(world.files(), 1);
}

#[test]
fn a_table_that_changes_is_kept_every_hour() {
    let world = World::new(ColumnFamilyDescriptor::default());
    let mut descriptor = (*world.table().descriptor()).clone();
    descriptor.metadata.insert("SNAPSHOT_EVERY".into(), "3600".into());
    descriptor.metadata.insert("SNAPSHOT_KEEP".into(), "3".into());
    world.store.modify_table(&name("t"), descriptor).unwrap();
    let hour = || {
        world.clock.add(3_600_000);
        world.store.run_pending_work().unwrap();
        world.store.list_snapshots(&name("t")).unwrap().into_iter().map(|snapshot| snapshot.id).collect::<Vec<_>>()
    };
    assert_eq!(hour().len(), 0, "there is nothing to keep");
    world.put("a", "1");
    let first = hour();
    assert_eq!((first.len(), hour()), (1, first.clone()), "nothing has changed");
    world.store.major_compact_table(&name("t"), None).unwrap();
    assert_eq!(hour(), first, "a compaction is no change");
    world.store.create_snapshot(&name("t"), b"mine").unwrap();
    for value in 2..6 {
        world.put("a", &value.to_string());
        world.store.run_pending_work().unwrap();
        hour();
    }
    let kept = world.store.list_snapshots(&name("t")).unwrap();
    assert_eq!(kept.iter().filter(|snapshot| snapshot.automatic).count(), 3);
    assert!(kept.iter().any(|snapshot| snapshot.name == "mine") && !kept.iter().any(|kept| kept.id == first[0]));
    let last = kept.last().unwrap();
    assert_eq!(shown(&*world.store.open_snapshot(&name("t"), &last.name).unwrap()), ["a q 5"]);
}
