//! A real HBase judges every store file that the engine itself writes: those of flushes, of minor and major compactions, before and after
//! splits, over families of every kind. After a major compaction HBase reads from the files what a raw scan of the engine returns.
//!
//! Needs a JDK, Maven and the oracle (../shared/oracle, or below CELLFS_SHARED); without them it says so and passes.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets the unexpected has failed"
)]

mod judge;

use bytes::Bytes;
use cellfs::cell::{Tag, tag_type};
use cellfs::client::{
    Admin, Append, Delete, DeleteMarker, Mutation, Put, PutCell, Scan, Table, TableAttributes, TableName, TimeRange,
    WriteTime,
};
use cellfs::clock::ManualClock;
use cellfs::hfile::cell_json;
use cellfs::schema::{
    BloomType, ColumnFamilyDescriptor, Compression, DataBlockEncoding, Durability, FOREVER, KeepDeletedCells,
    ROW_ATTRIBUTES_FAMILY, TableDescriptor,
};
use cellfs::server::{BackgroundMode, Store, StoreOptions};
use cellfs::store::store_file_name;
use cellfs::vfs::OsVfs;
use judge::{Random, judge, oracle};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

const CODECS: [Compression; 5] =
    [Compression::None, Compression::Gz, Compression::Snappy, Compression::Lz4, Compression::Zstd];
const ENCODINGS: [DataBlockEncoding; 5] = [
    DataBlockEncoding::None,
    DataBlockEncoding::Prefix,
    DataBlockEncoding::Diff,
    DataBlockEncoding::FastDiff,
    DataBlockEncoding::RowIndexV1,
];
const BLOOMS: [BloomType; 4] = [BloomType::Row, BloomType::RowCol, BloomType::None, BloomType::RowPrefixFixedLength(5)];
const KEEP: [KeepDeletedCells; 3] = [KeepDeletedCells::False, KeepDeletedCells::True, KeepDeletedCells::Ttl];
/// Twice each pair of a codec and an encoding.
const TABLES: usize = 10;
const NOW: i64 = 1_600_000_000_000;
/// Where every table is split; about half of the rows lie on either side.
const BORDER: &[u8] = b"row-15";

/// Each codec meets each encoding in one of five tables, and neighbouring families differ in everything else.
fn descriptor(table: usize) -> TableDescriptor {
    let mut descriptor = TableDescriptor::default();
    for (index, compression) in CODECS.into_iter().enumerate() {
        let mixed = index + 2 * table;
        let family = ColumnFamilyDescriptor {
            compression,
            data_block_encoding: ENCODINGS[(index + table) % 5],
            bloom: BLOOMS[mixed % 4],
            keep_deleted_cells: KEEP[mixed % 3],
            versions: [1, 3, 2][(index + table) % 3],
            min_versions: (mixed % 2) as u32,
            // Some of what is written is older than this.
            ttl_seconds: if mixed % 3 == 2 { 2 } else { FOREVER },
            block_size: 1024,
            new_version_behavior: index == table % 5,
            ..Default::default()
        };
        descriptor = descriptor.family(format!("f{index}"), family);
    }
    descriptor
}

fn name(table: usize) -> TableName {
    TableName::new("default", format!("t{table}")).unwrap()
}

/// All families, the hidden one of rows' attributes included.
fn families(table: &Arc<dyn Table>) -> Vec<Bytes> {
    let mut families: BTreeSet<Bytes> = table.descriptor().families.keys().cloned().collect();
    families.insert(Bytes::from_static(ROW_ATTRIBUTES_FAMILY));
    families.into_iter().collect()
}

/// A family after a major compaction.
struct Compacted {
    name: String,
    /// What a raw scan returns.
    cells: Vec<String>,
    /// The files that hold it, in the order of the rows.
    files: Vec<PathBuf>,
    /// Files keep all writes of one version, for their order decides; a scan shows the last (HBASE-15968).
    new_version_behavior: bool,
}

/// Everything but value, sequence id and tags.
fn key(cell: &str) -> Vec<serde_json::Value> {
    let mut members: Vec<serde_json::Value> = serde_json::from_str(cell).unwrap();
    members.truncate(5);
    members
}

struct World {
    directory: tempfile::TempDir,
    clock: Arc<ManualClock>,
    store: Store,
    random: Random,
    /// Every file that was ever live, kept by a second link, and at which step it was first seen.
    seen: BTreeMap<PathBuf, String>,
    compacted: Vec<Compacted>,
}

impl World {
    fn new() -> World {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("judged")).unwrap();
        let clock = Arc::new(ManualClock::new(NOW));
        let mut options = StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() };
        options.region.durability = Durability::AsyncWal;
        options.wal.segment_bytes = 1 << 20;
        let root = directory.path().join("store");
        let store = Store::open_with(Arc::new(OsVfs), clock.clone(), root, options).unwrap();
        World { directory, clock, store, random: Random(11), seen: BTreeMap::new(), compacted: Vec::new() }
    }

    /// Keeps the files that are new.
    fn collect(&mut self, step: &str) {
        for entry in std::fs::read_dir(self.store.path().join("data")).unwrap() {
            let live = entry.unwrap().path();
            let kept = self.directory.path().join("judged").join(live.file_name().unwrap());
            if let Entry::Vacant(new) = self.seen.entry(kept) {
                std::fs::hard_link(&live, new.key()).unwrap();
                new.insert(step.to_owned());
            }
        }
    }

    fn row(&mut self) -> Vec<u8> {
        match self.random.below(8) {
            0 => self.random.bytes(2).into_iter().chain([1]).collect(),
            1 => vec![0x17; 300],
            _ => format!("row-{:02}", self.random.below(30)).into_bytes(),
        }
    }

    fn qualifier(&mut self) -> Bytes {
        match self.random.below(6) {
            0 => Bytes::new(),
            1 => "long-qualifier-".repeat(6).into(),
            _ => format!("q{}", self.random.below(6)).into(),
        }
    }

    fn time(&mut self) -> WriteTime {
        match self.random.below(5) {
            0 => WriteTime::Now,
            1 => WriteTime::AfterNewest,
            2 => WriteTime::At(self.random.below(3) as i64),
            _ => WriteTime::At(NOW - self.random.below(4000) as i64),
        }
    }

    fn put(&mut self, row: Vec<u8>, family: Bytes) -> Put {
        let mut put = Put::new(row);
        for _ in 0..1 + self.random.below(3) {
            let mut tags = Vec::new();
            if self.random.below(4) == 0 {
                tags.push(Tag { kind: tag_type::FILE_ATTRIBUTES, value: self.random.bytes(12).into() });
            }
            let value = match self.random.below(12) {
                0 => Vec::new(),
                1 => self.random.bytes(1500),
                _ => b"value-".repeat(self.random.below(8) as usize),
            };
            let (qualifier, time) = (self.qualifier(), self.time());
            put.cells.push(PutCell { family: family.clone(), qualifier, time, value: value.into(), tags });
        }
        put.ttl_millis = [None, None, None, None, Some(30), Some(1_000_000)][self.random.below(6) as usize];
        put
    }

    fn delete(&mut self, row: Vec<u8>, family: Bytes) -> Delete {
        let (qualifier, time) = (self.qualifier(), self.time());
        let marker = match self.random.below(5) {
            0 => return Delete { row_time: time, ..Delete::row(row) },
            1 => DeleteMarker::Version { family, qualifier, time },
            2 => DeleteMarker::Column { family, qualifier, time },
            3 => DeleteMarker::Family { family, time },
            _ => DeleteMarker::FamilyVersion { family, time },
        };
        Delete::row(row).marker(marker)
    }

    /// Random mutations of every family.
    fn write(&mut self, table: &Arc<dyn Table>, mutations: usize) {
        let families = families(table);
        let mut batch = Vec::new();
        for at in 0..mutations {
            let (row, family) = (self.row(), families[at % families.len()].clone());
            batch.push(match self.random.below(10) {
                0..3 => Mutation::Delete(self.delete(row, family)),
                3 => Mutation::Append(Append {
                    row: row.into(),
                    values: vec![(family, self.qualifier(), "more".into())],
                    time: WriteTime::Now,
                    time_range: TimeRange::ALL,
                    ttl_millis: None,
                    durability: Durability::UseDefault,
                }),
                _ => Mutation::Put(self.put(row, family)),
            });
        }
        for outcome in table.batch(batch) {
            outcome.unwrap();
        }
        self.clock.add(20);
    }

    /// A life of a table that meets every way to write a file.
    fn live(&mut self, table: usize) {
        let name = name(table);
        let attributes = TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 };
        let handle = self.store.create_table(&name, descriptor(table), &[], attributes).unwrap();
        for flush in 0..3 {
            self.write(&handle, 400);
            self.store.flush_table(&name).unwrap();
            self.collect(&format!("{name} flush {flush}"));
        }
        for region in self.store.open_regions(&name).unwrap() {
            for store in region.stores() {
                region.compact_files(&store, &[1, 2]).unwrap();
            }
        }
        self.collect(&format!("{name} minor compaction"));

        // Of this flush nothing is kept.
        for family in handle.descriptor().families.keys() {
            let put = Put::new("row-00").add(family.clone(), "gone", "v");
            handle.put(Put { ttl_millis: Some(1), ..put }).unwrap();
        }
        self.clock.add(10);
        self.store.flush_table(&name).unwrap();
        self.collect(&format!("{name} flush of nothing"));

        self.store.split_table(&name, Some(BORDER)).unwrap();
        assert_eq!(self.store.regions(&name).unwrap().len(), 2);
        self.write(&handle, 100);
        self.store.flush_table(&name).unwrap();
        self.collect(&format!("{name} flush after the split"));
        self.store.major_compact_table(&name, None).unwrap();
        self.collect(&format!("{name} major compaction"));
        for family in families(&handle) {
            self.note_compacted(&handle, &family);
        }
    }

    /// Looks at a family before the clock moves on, which lets cells expire.
    fn note_compacted(&mut self, table: &Arc<dyn Table>, family: &[u8]) {
        let mut scan = Scan { raw: true, max_versions: u32::MAX, ..Scan::new() };
        scan.columns.add_family(family.to_vec());
        let mut scanner = table.scan(&scan).unwrap();
        let mut cells = Vec::new();
        while let Some(row) = scanner.next().unwrap() {
            cells.extend(row.cells.iter().map(cell_json));
        }
        let mut files = Vec::new();
        for region in self.store.open_regions(&table.name()).unwrap() {
            let store = region.stores().into_iter().find(|store| store.family() == family).unwrap();
            let ids: Vec<u64> = store.files().iter().map(|view| view.entry.file_id).collect();
            assert!(ids.len() <= 1, "a major compaction leaves one file");
            files.extend(ids.iter().map(|id| self.directory.path().join("judged").join(store_file_name(*id))));
        }
        let name = format!("{} {}", table.name(), family.escape_ascii());
        let new_version_behavior =
            table.descriptor().families.get(family).is_some_and(|family| family.new_version_behavior);
        self.compacted.push(Compacted { name, cells, files, new_version_behavior });
    }
}

#[test]
fn hbase_accepts_every_file_of_the_engine_and_reads_what_it_holds() {
    let Some(oracle) = oracle() else { return };
    let mut world = World::new();
    for table in 0..TABLES {
        world.live(table);
    }
    let paths: Vec<PathBuf> = world.seen.keys().cloned().collect();
    let verdicts: BTreeMap<PathBuf, judge::Verdict> = paths.iter().cloned().zip(judge(&oracle, &paths)).collect();
    for (path, verdict) in &verdicts {
        verdict.assert_accepted(&world.seen[path]);
    }
    let empty = verdicts.values().filter(|verdict| verdict.cells.is_empty()).count();
    // Families of the new version behavior keep everything in a flush.
    assert!(empty >= TABLES * (CODECS.len() - 1), "{empty} files without cells");

    let mut compared = 0;
    for Compacted { name, cells, files, new_version_behavior } in &world.compacted {
        let mut read: Vec<&String> = files.iter().flat_map(|file| &verdicts[file].cells).collect();
        if *new_version_behavior {
            read.dedup_by_key(|cell| key(cell));
        }
        for at in 0..read.len().max(cells.len()) {
            assert_eq!(read.get(at).copied(), cells.get(at), "{name}: cell {at} in the files and as scanned");
        }
        compared += cells.len();
    }
    assert!(compared > 5000, "{compared} cells compared");
}
