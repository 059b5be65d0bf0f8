//! What a table and its families are told, and what the engine then does: every attribute that is effective is seen in figures.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that meets the unexpected has failed")]

use cellfs::Error;
use cellfs::client::{Admin, Get, Put, Table, TableAttributes, TableName};
use cellfs::schema::{BloomType, ColumnFamilyDescriptor, Compression, DataBlockEncoding, Durability, TableDescriptor};
use cellfs::server::{BackgroundMode, Store, StoreOptions};
use cellfs::store::StoreFileView;
use std::sync::Arc;

const ATTRIBUTES: TableAttributes =
    TableAttributes { mode: 0o755, uid: 1, gid: 2, changed_millis: 3, modified_millis: 4 };

fn options() -> StoreOptions {
    StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() }
}

fn name() -> TableName {
    TableName::parse("t").unwrap()
}

struct World {
    store: Store,
    table: Arc<dyn Table>,
    directory: tempfile::TempDir,
}

fn told(settings: &[(&str, &str)]) -> ColumnFamilyDescriptor {
    let metadata = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ColumnFamilyDescriptor { metadata, ..ColumnFamilyDescriptor::default() }
}

fn table_of(family: ColumnFamilyDescriptor) -> TableDescriptor {
    TableDescriptor::default().family("cf", family)
}

impl World {
    fn new(descriptor: TableDescriptor) -> World {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path().join("s"), options()).unwrap();
        let table = store.create_table(&name(), descriptor, &[], ATTRIBUTES).unwrap();
        World { store, table, directory }
    }

    /// What is left after a crash.
    fn crash(self) -> World {
        let World { store, table, directory } = self;
        drop((table, store));
        let store = Store::open(directory.path().join("s"), options()).unwrap();
        let table = store.table(&name()).unwrap();
        World { store, table, directory }
    }

    fn alter(&self, change: impl FnOnce(&mut TableDescriptor)) {
        let mut descriptor = (*self.table.descriptor()).clone();
        change(&mut descriptor);
        self.store.modify_table(&name(), descriptor).unwrap();
    }

    fn alter_family(&self, change: impl FnOnce(&mut ColumnFamilyDescriptor)) {
        self.alter(|table| change(table.families.get_mut(&b"cf"[..]).unwrap()));
    }

    fn put(&self, row: &str, value: &[u8]) -> cellfs::Result<()> {
        self.table.put(Put::new(row.to_owned()).add("cf", "q", value.to_vec())).map(|_| ())
    }

    fn get(&self, row: &str) -> usize {
        self.table.get(&Get::new(row.to_owned())).unwrap().cells.len()
    }

    /// Rows into one store file.
    fn file(&self, rows: &[&str]) {
        rows.iter().for_each(|row| self.put(row, &[7; 100]).unwrap());
        self.store.flush_table(&name()).unwrap();
    }

    fn files(&self) -> Vec<StoreFileView> {
        let regions = self.store.open_regions(&name()).unwrap();
        regions.iter().flat_map(|region| region.stores()).flat_map(|store| store.files().as_slice().to_vec()).collect()
    }

    fn codecs(&self) -> Vec<Compression> {
        self.files().iter().map(|view| view.file.reader().unwrap().info().compression).collect()
    }

    fn cached(&self) -> Vec<usize> {
        let cache = &self.store.open_regions(&name()).unwrap()[0].services().store.cache.clone();
        self.files().iter().map(|view| cache.blocks_of_file(view.entry.file_id)).collect()
    }

    fn memory_bytes(&self) -> u64 {
        self.store.open_regions(&name()).unwrap()[0].services().store.cache.memory_bytes()
    }

    fn figure(&self, figure: &str) -> i64 {
        let statistics = self.store.table_statistics(&name()).unwrap();
        statistics.figures.iter().find(|(name, _)| *name == figure).unwrap().1
    }

    /// By how much `figure` grows meanwhile.
    fn growth(&self, figure: &str, act: impl FnOnce()) -> i64 {
        let before = self.figure(figure);
        act();
        self.figure(figure) - before
    }
}

#[test]
fn compactions_write_with_the_codec_they_are_told() {
    let world = World::new(table_of(told(&[("COMPRESSION_COMPACT_MAJOR", "ZSTD"), ("COMPRESSION_COMPACT", "GZ")])));
    world.alter_family(|family| family.compression = Compression::Snappy);
    (0..3).for_each(|_| world.file(&["a", "b"]));
    assert_eq!(world.codecs(), [Compression::Snappy; 3]);
    // All files by the policy's choice is no major compaction in HBase.
    world.store.compact_table(&name(), None).unwrap();
    assert_eq!(world.codecs(), [Compression::Gz]);
    world.store.major_compact_table(&name(), None).unwrap();
    assert_eq!(world.codecs(), [Compression::Zstd]);
    world.alter_family(|family| family.metadata.clear());
    world.file(&["c"]);
    world.store.major_compact_table(&name(), None).unwrap();
    assert_eq!(world.codecs(), [Compression::Snappy]);
    assert_eq!(world.get("a") + world.get("c"), 2);
}

#[test]
fn without_blockcache_every_read_reads_the_block_but_not_index_and_bloom() {
    for (block_cache, blocks) in [(true, 1), (false, 3)] {
        let world = World::new(table_of(ColumnFamilyDescriptor { block_cache, ..told(&[]) }));
        world.file(&["a", "b"]);
        let reads = world.growth("data_blocks_read", || (0..3).for_each(|_| assert_eq!(world.get("a"), 1)));
        assert_eq!(reads, blocks);
        assert_eq!(world.cached(), [1 + usize::from(block_cache)]);
    }
}

#[test]
fn blocks_go_to_the_cache_as_they_are_written_where_the_family_says_so() {
    for encoding in [DataBlockEncoding::None, DataBlockEncoding::FastDiff] {
        let family =
            ColumnFamilyDescriptor { data_block_encoding: encoding, ..told(&[("CACHE_DATA_ON_WRITE", "true")]) };
        let world = World::new(table_of(family));
        world.file(&["a", "b"]);
        assert_eq!(world.cached(), [1]);
        assert_eq!(world.growth("data_blocks_read", || assert_eq!(world.get("a"), 1)), 0);
        // What a compaction writes is not what is being read.
        world.store.major_compact_table(&name(), None).unwrap();
        assert_eq!(world.cached(), [0]);
        assert_eq!(world.growth("data_blocks_read", || assert_eq!(world.get("a"), 1)), 1);
    }
    let world = World::new(table_of(told(&[("CACHE_BLOOMS_ON_WRITE", "true")])));
    world.file(&["a", "b"]);
    assert_eq!(world.cached(), [1]);
    assert_eq!(world.growth("cache_misses", || assert_eq!(world.get("aa"), 0)), 0);
    world.store.major_compact_table(&name(), None).unwrap();
    assert_eq!(world.cached(), [1]);
    // Index blocks below the root: many small data blocks make some.
    for (setting, blocks) in [("true", 1..99), ("false", 0..1)] {
        let family = ColumnFamilyDescriptor { block_size: 1024, ..told(&[("CACHE_INDEX_ON_WRITE", setting)]) };
        let world = World::new(table_of(family));
        let rows: Vec<String> = (0..1500).map(|row| format!("{row:0300}")).collect();
        rows.iter().for_each(|row| world.put(row, &[1; 800]).unwrap());
        world.store.flush_table(&name()).unwrap();
        assert!(blocks.contains(&world.cached()[0]), "{:?}", world.cached());
    }
}

#[test]
fn files_are_prefetched_when_they_are_opened() {
    for (setting, blocks) in [("true", 0), ("false", 20)] {
        let world = World::new(table_of(ColumnFamilyDescriptor {
            block_size: 1024,
            block_cache: false,
            ..told(&[("PREFETCH_BLOCKS_ON_OPEN", setting)])
        }));
        let rows: Vec<String> = (0..200).map(|row| format!("{row:05}")).collect();
        world.file(&rows.iter().map(String::as_str).collect::<Vec<_>>());
        let world = world.crash();
        world.store.run_pending_work().unwrap();
        assert_eq!(world.figure("data_blocks_read"), 0);
        let reads = world.growth("data_blocks_read", || {
            rows.iter().step_by(10).for_each(|row| assert_eq!(world.get(row), 1));
        });
        assert_eq!(reads, blocks);
        assert_eq!(world.figure("cache_misses") > 0, setting == "false");
    }
    // A full cache takes no more: nothing that is read is driven out for it.
    let world = World::new(table_of(told(&[("PREFETCH_BLOCKS_ON_OPEN", "true")])));
    world.store.set_cache_bytes(100);
    world.file(&["a"]);
    world.store.run_pending_work().unwrap();
    assert_eq!(world.cached(), [0]);
}

#[test]
fn blocks_of_files_that_are_gone_leave_the_cache() {
    let world = World::new(table_of(told(&[])));
    world.file(&["a", "b"]);
    assert_eq!(world.get("a"), 1);
    let old = world.files()[0].entry.file_id;
    assert_eq!(world.cached(), [2]);
    world.store.major_compact_table(&name(), None).unwrap();
    let cache = &world.store.open_regions(&name()).unwrap()[0].services().store.cache.clone();
    assert_eq!(cache.blocks_of_file(old), 0);
}

#[test]
fn in_memory_families_keep_their_share_of_the_cache() {
    for in_memory in [true, false] {
        let world = World::new(table_of(ColumnFamilyDescriptor { in_memory, block_size: 1024, ..told(&[]) }));
        world.alter(|table| {
            table.families.insert("big".into(), ColumnFamilyDescriptor { block_size: 1024, ..told(&[]) });
        });
        world.store.set_cache_bytes(2 << 20);
        let rows: Vec<String> = (0..400).map(|row| format!("{row:05}")).collect();
        for row in &rows {
            world.table.put(Put::new(row.clone()).add("cf", "q", vec![1; 500]).add("big", "q", vec![2; 9000])).unwrap();
        }
        world.store.flush_table(&name()).unwrap();
        let read = |family: &str| {
            for row in &rows {
                world.table.get(&Get::new(row.clone()).family(family.to_owned())).unwrap();
            }
        };
        read("cf");
        (0..3).for_each(|_| read("big"));
        assert_eq!(world.growth("data_blocks_read", || read("cf")) == 0, in_memory);
        assert_eq!(world.memory_bytes() > 200_000, in_memory, "{}", world.memory_bytes());
        // Told on the live table, it holds for the blocks that are read from then on, of files old and new.
        let before = world.memory_bytes();
        world.alter_family(|family| family.in_memory = !in_memory);
        world.store.major_compact_table(&name(), None).unwrap();
        read("cf");
        assert_eq!(world.memory_bytes() > before, !in_memory);
    }
}

#[test]
fn a_readonly_table_takes_no_writes_until_it_is_told_otherwise() {
    let world = World::new(table_of(told(&[])));
    (0..4).for_each(|_| world.file(&["a"]));
    world.put("b", b"in memory").unwrap();
    world.alter(|table| table.read_only = true);
    assert!(matches!(world.put("c", b"v"), Err(Error::ReadOnly { .. })));
    assert!(matches!(world.store.truncate_table(&name()), Err(Error::ReadOnly { .. })));
    assert!(matches!(world.store.bulk_load(&name(), &[], &mut |_| ()), Err(Error::ReadOnly { .. })));
    assert!(matches!(world.store.major_compact_table(&name(), None), Err(Error::ReadOnly { .. })));
    world.store.run_pending_work().unwrap();
    assert_eq!(world.figure("compactions_minor") + world.figure("compactions_major"), 0);
    assert_eq!(world.get("a") + world.get("b"), 2);
    let world = world.crash();
    assert!(matches!(world.put("c", b"v"), Err(Error::ReadOnly { .. })));
    assert_eq!(world.get("b"), 1);
    world.alter(|table| table.read_only = false);
    world.put("c", b"v").unwrap();
}

#[test]
fn the_tables_durability_is_what_a_write_gets_that_asks_for_none() {
    let world = World::new(table_of(told(&[])));
    world.put("logged", b"v").unwrap();
    world.alter(|table| table.durability = Durability::SkipWal);
    world.put("skipped", b"v").unwrap();
    let asks = Put::new("asks").add("cf", "q", "v").durability(Durability::SyncWal);
    world.table.put(asks).unwrap();
    let world = world.crash();
    assert_eq!(["logged", "skipped", "asks"].map(|row| world.get(row)), [1, 0, 1]);
    world.alter(|table| table.durability = Durability::FsyncWal);
    world.put("synced", b"v").unwrap();
    assert_eq!(world.crash().get("synced"), 1);
}

#[test]
fn a_memstore_over_its_tables_size_is_flushed() {
    let world = World::new(TableDescriptor { memstore_flush_size: Some(1 << 20), ..table_of(told(&[])) });
    world.put("a", &[0; 500_000]).unwrap();
    world.store.run_pending_work().unwrap();
    assert_eq!(world.figure("flushes"), 0);
    world.put("b", &[0; 600_000]).unwrap();
    world.store.run_pending_work().unwrap();
    assert_eq!(world.figure("flushes"), 1);
}

#[test]
fn compactions_run_by_themselves_only_where_they_are_enabled() {
    let world = World::new(TableDescriptor { compaction_disabled: true, ..table_of(told(&[])) });
    (0..5).for_each(|_| world.file(&["a"]));
    world.store.run_pending_work().unwrap();
    assert_eq!(world.files().len(), 5);
    world.alter(|table| table.compaction_disabled = false);
    world.store.run_pending_work().unwrap();
    assert_eq!(world.files().len(), 1);
}

/// Two files of 3 MB, in rows `aa_...` to `bz_...`, of a table that splits over 2 MB.
fn large(metadata: &[(&str, &str)], split_disabled: bool) -> World {
    let metadata = metadata.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let descriptor = TableDescriptor { max_file_size: Some(2 << 20), metadata, split_disabled, ..table_of(told(&[])) };
    let world = World::new(descriptor);
    for row in 0..300 {
        let group = char::from(b'a' + (row / 10) as u8 % 26);
        let half = if row < 260 { 'a' } else { 'b' };
        world.put(&format!("{half}{group}_{row:05}"), &[9; 10_000]).unwrap();
    }
    world.store.flush_table(&name()).unwrap();
    world
}

fn starts(world: &World) -> Vec<String> {
    let regions = world.store.regions(&name()).unwrap();
    regions.iter().skip(1).map(|region| String::from_utf8(region.start.to_vec()).unwrap()).collect()
}

#[test]
fn regions_split_where_and_when_the_table_says() {
    let world = large(&[("SPLIT_POLICY", "ConstantSizeRegionSplitPolicy")], false);
    world.store.run_pending_work().unwrap();
    assert_eq!(starts(&world).len(), 1);
    assert_eq!(starts(&world)[0].len(), 8, "{:?}", starts(&world));
    // By prefix: rows of one prefix stay together.
    for (policy, setting, value) in [
        ("KeyPrefixRegionSplitPolicy", "KeyPrefixRegionSplitPolicy.prefix_length", "2"),
        ("DelimitedKeyPrefixRegionSplitPolicy", "DelimitedKeyPrefixRegionSplitPolicy.delimiter", "_"),
    ] {
        let world = large(&[("SPLIT_POLICY", policy), (setting, value)], false);
        world.store.run_pending_work().unwrap();
        assert_eq!(starts(&world).len(), 1);
        assert_eq!(starts(&world)[0].len(), 2, "{:?}", starts(&world));
    }
}

#[test]
fn a_table_that_is_not_to_be_split_is_not() {
    for world in [large(&[], true), large(&[("SPLIT_POLICY", "DisabledRegionSplitPolicy")], false)] {
        world.store.run_pending_work().unwrap();
        assert!(starts(&world).is_empty());
        assert!(matches!(world.store.split_table(&name(), None), Err(Error::NotAllowed(_))));
        assert!(matches!(world.store.split_table(&name(), Some(b"b")), Err(Error::NotAllowed(_))));
        world.alter(|table| {
            table.split_disabled = false;
            table.metadata.clear();
        });
        world.store.split_table(&name(), Some(b"b")).unwrap();
        assert_eq!(starts(&world), ["b"]);
    }
}

#[test]
fn a_changed_schema_is_for_new_files_and_old_ones_stay_readable() {
    let world = World::new(table_of(told(&[])));
    world.file(&["a", "b"]);
    world.alter_family(|family| {
        family.bloom = BloomType::RowCol;
        family.block_size = 1024;
        family.compression = Compression::Zstd;
        family.data_block_encoding = DataBlockEncoding::Prefix;
    });
    world.file(&["b", "c"]);
    let of = |world: &World| -> Vec<_> {
        let files = world.files();
        files
            .iter()
            .map(|view| view.file.reader().unwrap().info())
            .map(|i| (i.bloom, i.compression, i.encoding))
            .collect()
    };
    let old = (BloomType::Row, Compression::None, DataBlockEncoding::None);
    let new = (BloomType::RowCol, Compression::Zstd, DataBlockEncoding::Prefix);
    assert_eq!(of(&world), [old, new]);
    assert_eq!(["a", "b", "c"].map(|row| world.get(row)), [1, 1, 1]);
    world.store.major_compact_table(&name(), None).unwrap();
    assert_eq!(of(&world), [new]);
    assert_eq!(["a", "b", "c"].map(|row| world.get(row)), [1, 1, 1]);
}

#[test]
fn tags_are_compressed_unless_the_family_says_no() {
    use cellfs::cell::Tag;
    for (setting, compressed) in [("true", true), ("false", false)] {
        let family = ColumnFamilyDescriptor {
            data_block_encoding: DataBlockEncoding::FastDiff,
            ..told(&[("COMPRESS_TAGS", setting)])
        };
        let world = World::new(table_of(family));
        let mut put = Put::new("r").add("cf", "q", "v");
        put.cells[0].tags = vec![Tag { kind: 90, value: "same".into() }];
        world.table.put(put).unwrap();
        world.store.flush_table(&name()).unwrap();
        let files = world.files();
        let info = files[0].file.reader().unwrap().file_info();
        assert_eq!(info.get("hfile.TAGS_COMPRESSED").map(|flag| flag[..] == [0xff]), Some(compressed));
        assert_eq!(world.get("r"), 1);
    }
}
