//! Rules that a real HBase taught (docs/hbase.md, "How HBase judges us"), each by itself.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that meets the unexpected has failed")]

use cellfs::cell::{Cell, CellType};
use cellfs::client::{
    Admin, Comparison, Delete, DeleteMarker, Filter, Get, Mutation, Put, Scan, SingleColumnValue, Table,
    TableAttributes, TableName, TimeRange, WriteTime,
};
use cellfs::clock::ManualClock;
use cellfs::region::Region;
use cellfs::schema::{ColumnFamilyDescriptor, TableDescriptor};
use cellfs::server::{BackgroundMode, Store, StoreOptions};
use cellfs::vfs::SimVfs;
use std::sync::Arc;

const ATTRIBUTES: TableAttributes =
    TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 };

struct World {
    store: Store,
    table: Arc<dyn Table>,
    clock: Arc<ManualClock>,
}

fn name() -> TableName {
    TableName::parse("t").unwrap()
}

fn world(family: ColumnFamilyDescriptor, slop: Option<i64>) -> World {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let mut options = StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() };
    options.region.limits.timestamp_slop_millis = slop;
    let store = Store::open_with(Arc::new(SimVfs::new()), clock.clone(), "/store", options).unwrap();
    let descriptor = TableDescriptor::default().family("f", family.clone()).family("g", family);
    let table = store.create_table(&name(), descriptor, &[], ATTRIBUTES).unwrap();
    World { store, table, clock }
}

fn versions(versions: u32) -> ColumnFamilyDescriptor {
    ColumnFamilyDescriptor { versions, ..ColumnFamilyDescriptor::default() }
}

impl World {
    fn put(&self, family: &'static str, time: i64, value: &'static str) {
        self.table.put(Put::new("r").add_at(family, "q", WriteTime::At(time), value)).unwrap();
    }

    fn region(&self) -> Arc<Region> {
        self.store.open_regions(&name()).unwrap()[0].clone()
    }

    /// Timestamps of everything stored.
    fn stored(&self) -> Vec<i64> {
        let scan = Scan { raw: true, max_versions: 100, ..Scan::new() };
        let row = self.table.scan(&scan).unwrap().next().unwrap().unwrap_or_default();
        row.cells.iter().map(Cell::timestamp).collect()
    }
}

#[test]
fn a_change_of_schema_leaves_memory_to_the_old_one() {
    let world = world(versions(3), None);
    [10, 20, 30].iter().for_each(|time| world.put("f", *time, "v"));
    let mut descriptor = (*world.table.descriptor()).clone();
    descriptor.families.insert("f".into(), versions(1));
    world.store.modify_table(&name(), descriptor).unwrap();
    assert_eq!(world.table.get(&Get::new("r").versions(5)).unwrap().cells.len(), 1);
    assert_eq!(world.stored(), [30, 20, 10], "the flush was the old schema's");
}

#[test]
fn a_batch_finds_what_was_there_before_it() {
    let world = world(versions(3), None);
    world.put("f", 10, "old");
    let put = Put::new("r").add_at("f", "q", WriteTime::At(20), "new");
    let newest = DeleteMarker::Version { family: "f".into(), qualifier: "q".into(), time: WriteTime::Now };
    let batch = vec![Mutation::Put(put), Mutation::Delete(Delete::row("r").marker(newest))];
    world.table.batch(batch).into_iter().for_each(|done| drop(done.unwrap()));
    let left = world.table.get(&Get::new("r").versions(5)).unwrap().cells;
    assert_eq!(left.iter().map(Cell::timestamp).collect::<Vec<_>>(), [20], "the version of 10 was the newest then");
}

#[test]
fn a_get_takes_a_time_range_for_one_family() {
    let world = world(versions(3), None);
    for family in ["f", "g"] {
        [10, 20, 30].iter().for_each(|time| world.put(family, *time, "v"));
    }
    let mut get = Get::new("r").versions(5);
    get.family_time_ranges.insert("g".into(), TimeRange::new(0, 15).unwrap());
    let found = world.table.get(&get).unwrap().cells;
    let of = |family: &[u8]| found.iter().filter(|cell| cell.family() == family).count();
    assert_eq!((of(b"f"), of(b"g")), (3, 1));
}

#[test]
fn a_put_too_far_ahead_is_refused_where_that_is_asked_for() {
    let world = world(versions(1), Some(1000));
    world.put("f", 1_001_000, "v");
    assert!(world.table.put(Put::new("r").add_at("f", "q", WriteTime::At(1_001_001), "v")).is_err());
}

#[test]
fn a_load_and_the_flush_before_it_are_ordered_by_size() {
    for (loaded, place) in [(1, 1), (200, 0)] {
        let world = world(versions(1), None);
        (0..20).for_each(|time| world.put("f", time, "v"));
        let cells = (0..loaded)
            .map(|row| Cell::new(format!("row {row:04}").as_bytes(), b"f", b"q", 5, CellType::Put, b"loaded"));
        world.region().load_cells(&"f".into(), cells.collect(), ColumnFamilyDescriptor::default(), true).unwrap();
        let files = world.region().stores()[0].files();
        let entries: Vec<u64> = files.iter().map(|view| view.entry.entries).collect();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[place], loaded, "the larger file counts as older: {entries:?}");
        assert_eq!(files.as_slice()[0].entry.max_sequence_id, files.as_slice()[1].entry.max_sequence_id);
    }
}

#[test]
fn a_load_without_a_sequence_id_is_older_than_everything() {
    let world = world(versions(1), None);
    world.put("f", 10, "put");
    let cell = Cell::new(b"r", b"f", b"q", 10, CellType::Put, b"loaded");
    world.region().load_cells(&"f".into(), vec![cell], ColumnFamilyDescriptor::default(), false).unwrap();
    assert_eq!(world.table.get(&Get::new("r")).unwrap().cells[0].value(), b"put");
}

#[test]
fn a_wholly_expired_file_is_left_out_of_compactions_by_new_version_behavior_too() {
    let family = ColumnFamilyDescriptor { ttl_seconds: 1, new_version_behavior: true, ..versions(5) };
    let world = world(family, None);
    let region = world.region();
    world.put("f", 1_000_000, "a");
    region.flush().unwrap();
    world.clock.set(1_000_900);
    world.put("f", 999_950, "expires soon, beside one that does not");
    world.put("f", 1_000_900, "b");
    region.flush().unwrap();
    world.put("f", 999_980, "expires soon, alone and last");
    region.flush().unwrap();
    world.clock.set(1_000_990);
    region.compact_files(&region.stores()[0], &[1, 2]).unwrap();
    assert_eq!(world.stored(), [1_000_900, 1_000_000, 999_950], "the third file was not read");
    let since = region.stores()[0].history_complete_since();
    assert!(since >= Some(1_000_981), "{since:?}");
}

#[test]
fn young_markers_survive_compactions_where_the_family_says_so() {
    let mut family = versions(1);
    family.metadata.insert("hbase.hstore.time.to.purge.deletes".to_owned(), "1000".to_owned());
    let world = world(family, None);
    world
        .table
        .delete(Delete::row("r").marker(DeleteMarker::Family { family: "f".into(), time: WriteTime::Now }))
        .unwrap();
    world.store.major_compact_table(&name(), None).unwrap();
    world.clock.set(1_001_000);
    world.store.major_compact_table(&name(), None).unwrap();
    assert_eq!(world.stored(), [1_000_000]);
    world.clock.set(1_001_001);
    world.store.major_compact_table(&name(), None).unwrap();
    assert!(world.stored().is_empty());
}

/// What gets answer then is recorded: tests/hbase_vectors/recorded/families-on-demand.jsonl.
#[test]
fn families_that_a_filter_does_not_need_are_read_for_the_rows_it_lets_through() {
    let world = world(versions(1), None);
    for (row, wanted) in [("a", "no"), ("b", "no"), ("c", "yes"), ("d", "no"), ("e", "yes")] {
        world.table.put(Put::new(row).add("f", "q", wanted).add("g", "x", row)).unwrap();
    }
    world.table.put(Put::new("f").add("g", "x", "no condition")).unwrap();
    world.region().flush().unwrap();
    let mut condition = SingleColumnValue::new("f", "q", Comparison::equal("yes"));
    condition.filter_if_missing = true;
    let scan = Scan { filter: Some(Filter::SingleColumnValue(condition)), cache_blocks: false, ..Scan::new() };
    let read = |scan: &Scan| {
        let mut scanner = world.table.scan(scan).unwrap();
        let mut found = Vec::new();
        while let Some(row) = scanner.next().unwrap() {
            found.extend(row.cells.iter().map(|cell| (cell.family().to_vec(), cell.value().to_vec())));
        }
        found
    };
    let cell = |family: &[u8], value: &[u8]| (family.to_vec(), value.to_vec());
    let expected = [cell(b"f", b"yes"), cell(b"g", b"c"), cell(b"f", b"yes"), cell(b"g", b"e")];
    assert_eq!(read(&scan), expected);
    assert_eq!(read(&Scan { load_column_families_on_demand: false, ..scan.clone() }), expected);
    assert_eq!(read(&Scan { reversed: true, ..scan.clone() }), [&expected[2..], &expected[..2]].concat());

    let exclude = match scan.filter.clone() {
        Some(Filter::SingleColumnValue(condition)) => SingleColumnValue { exclude: true, ..condition },
        _ => unreachable!(),
    };
    let others = Scan { filter: Some(Filter::SingleColumnValue(exclude)), ..scan.clone() };
    assert_eq!(read(&others), [cell(b"g", b"c"), cell(b"g", b"e")], "the filter takes all that the first family has");

    let blocks = || {
        let figures = world.store.table_statistics(&name()).unwrap().figures;
        figures.iter().find(|(name, _)| *name == "data_blocks_read").unwrap().1
    };
    let nothing = SingleColumnValue {
        comparison: Comparison::equal("none"),
        ..match scan.filter.clone() {
            Some(Filter::SingleColumnValue(condition)) => condition,
            _ => unreachable!(),
        }
    };
    let nothing = Scan { filter: Some(Filter::SingleColumnValue(nothing)), ..scan };
    let before = blocks();
    assert!(read(&nothing).is_empty());
    assert_eq!(blocks() - before, 1, "the block of f alone");
    assert!(read(&Scan { load_column_families_on_demand: false, ..nothing }).is_empty());
    assert_eq!(blocks() - before, 3, "the blocks of f and g");
}
