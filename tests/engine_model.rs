//! Random operations on the engine and on a plain map, with flushes, compactions, splits, reopenings, crashes and a clock that steps
//! both ways: after each, both show the same.
//!
//! Writes are stamped "after the newest", so the plain map needs no timestamps: the last writer wins. How timestamps, versions, time to live and markers
//! play together is held against HBase's recorded answers in `hbase_vectors`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that meets the unexpected has failed"
)]

use bytes::Bytes;
use cellfs::client::{
    Admin, Append, CheckAndMutate, Condition, Delete, DeleteMarker, Get, Increment, Mutation, Put, RowMutations, Scan,
    Table, TableAttributes, TableName, TimeRange, WriteTime,
};
use cellfs::clock::ManualClock;
use cellfs::schema::{BloomType, ColumnFamilyDescriptor, Compression, Durability, TableDescriptor};
use cellfs::server::{BackgroundMode, Store, StoreOptions};
use cellfs::vfs::{Keep, SimVfs};
use cellfs::{Error, Result};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Row, family, qualifier.
type Column = (u8, u8, u8);

#[derive(Clone, Debug)]
enum Op {
    Put(Column, u16),
    /// One put per row, all as one.
    PutRows(Vec<(Column, u16)>),
    Batch(Vec<(Column, u16)>),
    DeleteColumn(Column),
    DeleteFamily(u8, u8),
    DeleteRow(u8),
    Append(Column),
    Increment(u8, i8),
    /// Puts the second value if the column holds the first one's.
    Check(Column, u16, u16),
    Flush,
    Work,
    CompactFiles(u8, u8),
    Major,
    Split(u8),
    Reopen,
    Crash(u64),
    Clock(i32),
}

fn column() -> impl Strategy<Value = Column> {
    (0..12u8, 0..2u8, 0..3u8)
}

fn op() -> impl Strategy<Value = Op> {
    let cells = || prop::collection::vec((column(), 0..4u16), 1..5);
    prop_oneof![
        12 => (column(), any::<u16>()).prop_map(|(column, value)| Op::Put(column, value)),
        3 => cells().prop_map(Op::PutRows),
        3 => cells().prop_map(Op::Batch),
        4 => column().prop_map(Op::DeleteColumn),
        2 => (0..12u8, 0..2u8).prop_map(|(row, family)| Op::DeleteFamily(row, family)),
        2 => (0..12u8).prop_map(Op::DeleteRow),
        2 => column().prop_map(Op::Append),
        2 => (0..12u8, any::<i8>()).prop_map(|(row, amount)| Op::Increment(row, amount)),
        2 => (column(), 0..4u16, 0..4u16).prop_map(|(column, old, new)| Op::Check(column, old, new)),
        5 => Just(Op::Flush),
        2 => Just(Op::Work),
        3 => (0..4u8, 1..4u8).prop_map(|(first, count)| Op::CompactFiles(first, count)),
        2 => Just(Op::Major),
        2 => (1..12u8).prop_map(Op::Split),
        2 => Just(Op::Reopen),
        2 => any::<u64>().prop_map(Op::Crash),
        3 => (-5_000..5_000i32).prop_map(Op::Clock),
    ]
}

fn name() -> TableName {
    TableName::parse("ns:t").unwrap()
}

fn row(number: u8) -> Bytes {
    Bytes::from(format!("row-{number:02}"))
}

fn family(number: u8) -> Bytes {
    Bytes::from_static([b"f", b"g"][usize::from(number)])
}

/// The first qualifier is empty: family markers stand among its cells.
fn qualifier(number: u8) -> Bytes {
    Bytes::from_static([&b""[..], b"a", b"a\0"][usize::from(number)])
}

fn value(number: u16) -> Bytes {
    Bytes::from(format!("{number}").repeat(1 + usize::from(number % 40)))
}

/// The counter's column is no other operation's.
const COUNTER: &[u8] = b"count";

type Contents = BTreeMap<(Bytes, Bytes, Bytes), Bytes>;

struct World {
    vfs: SimVfs,
    clock: Arc<ManualClock>,
    store: Option<Store>,
    contents: Contents,
}

impl World {
    fn new() -> World {
        let vfs = SimVfs::new();
        let mut world =
            World { vfs, clock: Arc::new(ManualClock::new(1_000_000)), store: None, contents: Contents::new() };
        world.open();
        let attributes = TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 };
        world.store().create_namespace("ns", Default::default(), attributes).unwrap();
        let small = ColumnFamilyDescriptor { block_size: 1024, ..Default::default() };
        let other = ColumnFamilyDescriptor {
            versions: 3,
            bloom: BloomType::RowCol,
            compression: Compression::Snappy,
            ..small.clone()
        };
        let descriptor = TableDescriptor::default().family("f", small).family("g", other);
        world.store().create_table(&name(), descriptor, &["row-06".into()], attributes).unwrap();
        world
    }

    fn open(&mut self) {
        let mut options = StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() };
        options.region.durability = Durability::FsyncWal;
        options.wal.segment_bytes = 4096;
        options.memstore_bytes = 1 << 20;
        let vfs = Arc::new(self.vfs.clone());
        self.store = Some(Store::open_with(vfs, self.clock.clone(), "/store", options).unwrap());
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn table(&self) -> Arc<dyn Table> {
        self.store().table(&name()).unwrap()
    }

    fn set(&mut self, (r, f, q): Column, new: Bytes) {
        self.contents.insert((row(r), family(f), qualifier(q)), new);
    }

    fn put((r, f, q): Column, number: u16) -> Mutation {
        Mutation::Put(Put::new(row(r)).add_at(family(f), qualifier(q), WriteTime::AfterNewest, value(number)))
    }

    fn group(mutation: Mutation) -> RowMutations {
        RowMutations { row: mutation.row().clone(), mutations: vec![mutation] }
    }

    fn write(&mut self, op: &Op) -> Result<()> {
        let table = self.table();
        match op {
            Op::Put(column, number) => {
                table.mutate_row(World::group(World::put(*column, *number)))?;
                self.set(*column, value(*number));
            }
            Op::PutRows(cells) => {
                let groups = cells.iter().map(|(column, number)| World::group(World::put(*column, *number)));
                table.mutate_rows(groups.collect())?;
                cells.iter().for_each(|(column, number)| self.set(*column, value(*number)));
            }
            Op::Batch(cells) => {
                let mutations = cells.iter().map(|(column, number)| World::put(*column, *number)).collect();
                table.batch(mutations).into_iter().try_for_each(|result| result.map(|_| ()))?;
                cells.iter().for_each(|(column, number)| self.set(*column, value(*number)));
            }
            Op::DeleteColumn((r, f, q)) => {
                let time = WriteTime::AfterNewest;
                let marker = DeleteMarker::Column { family: family(*f), qualifier: qualifier(*q), time };
                table.delete(Delete::row(row(*r)).marker(marker))?;
                self.contents.remove(&(row(*r), family(*f), qualifier(*q)));
            }
            Op::DeleteFamily(r, f) => {
                let marker = DeleteMarker::Family { family: family(*f), time: WriteTime::AfterNewest };
                table.delete(Delete::row(row(*r)).marker(marker))?;
                self.contents.retain(|key, _| key.0 != row(*r) || key.1 != family(*f));
            }
            Op::DeleteRow(r) => {
                let mut delete = Delete::row(row(*r));
                delete.row_time = WriteTime::AfterNewest;
                table.delete(delete)?;
                self.contents.retain(|key, _| key.0 != row(*r));
            }
            _ => self.read_and_write(&table, op)?,
        }
        Ok(())
    }

    fn read_and_write(&mut self, table: &Arc<dyn Table>, op: &Op) -> Result<()> {
        match op {
            Op::Append((r, f, q)) => {
                let key = (row(*r), family(*f), qualifier(*q));
                // Append is stamped max(now, current + 1), and a marker may be newer than that: only where something is.
                if let Some(old) = self.contents.get_mut(&key) {
                    table.append(Append {
                        row: key.0.clone(),
                        values: vec![(key.1.clone(), key.2.clone(), "+".into())],
                        time: WriteTime::Now,
                        time_range: TimeRange::ALL,
                        ttl_millis: None,
                        durability: Durability::UseDefault,
                    })?;
                    *old = [&old[..], b"+"].concat().into();
                }
            }
            Op::Increment(r, amount) => {
                let key = (row(*r), family(0), Bytes::from_static(COUNTER));
                if !self.contents.contains_key(&key) {
                    let zero = Put::new(row(*r)).add_at("f", COUNTER, WriteTime::AfterNewest, vec![0; 8]);
                    table.put(zero)?;
                    self.contents.insert(key.clone(), vec![0; 8].into());
                }
                table.increment(Increment {
                    row: row(*r),
                    amounts: vec![(family(0), COUNTER.into(), i64::from(*amount))],
                    time: WriteTime::Now,
                    time_range: TimeRange::ALL,
                    ttl_millis: None,
                    durability: Durability::UseDefault,
                })?;
                let old = i64::from_be_bytes(self.contents[&key][..].try_into().unwrap());
                self.contents.insert(key, (old + i64::from(*amount)).to_be_bytes().to_vec().into());
            }
            Op::Check((r, f, q), old, new) => {
                let key = (row(*r), family(*f), qualifier(*q));
                let expected = self.contents.get(&key) == Some(&value(*old));
                let condition = Condition::AllEqual(vec![(key.1.clone(), key.2.clone(), Some(value(*old)))]);
                let then = World::group(World::put((*r, *f, *q), *new));
                let outcome = table.check_and_mutate(CheckAndMutate { row: row(*r), condition, then })?;
                assert_eq!(outcome.applied, expected);
                if expected {
                    self.contents.insert(key, value(*new));
                }
            }
            other => panic!("{other:?}"),
        }
        Ok(())
    }

    fn run(&mut self, op: &Op) {
        match op {
            Op::Flush => self.store().flush_table(&name()).unwrap(),
            Op::Work => self.store().run_pending_work().unwrap(),
            Op::Major => self.store().major_compact_table(&name(), None).unwrap(),
            Op::CompactFiles(first, count) => {
                for region in self.store().open_regions(&name()).unwrap() {
                    for store in region.stores() {
                        let places: Vec<usize> = (usize::from(*first)..usize::from(first + count)).collect();
                        region.compact_files(&store, &places).unwrap();
                    }
                }
            }
            Op::Split(r) => match self.store().split_table(&name(), Some(&row(*r))) {
                Ok(()) | Err(Error::InvalidArgument(_)) => {}
                Err(error) => panic!("{error}"),
            },
            Op::Reopen => {
                self.store.take().unwrap().close().unwrap();
                self.open();
            }
            Op::Crash(seed) => {
                let vfs = self.vfs.crash(Keep::Random(*seed));
                self.store = None;
                self.vfs = vfs;
                self.open();
            }
            Op::Clock(millis) => self.clock.add(i64::from(*millis)),
            write => self.write(write).unwrap(),
        }
    }

    fn scan(&self, scan: &Scan) -> Vec<(Bytes, Bytes, Bytes, Bytes)> {
        let mut scanner = self.table().scan(scan).unwrap();
        let mut cells = Vec::new();
        while let Some(result) = scanner.next().unwrap() {
            for cell in result.cells {
                let family = Bytes::copy_from_slice(cell.family());
                cells.push((cell.row_bytes(), family, cell.qualifier_bytes(), cell.value_bytes()));
            }
        }
        cells
    }

    fn check(&self, probe: u8) {
        let all: Vec<_> = self
            .contents
            .iter()
            .map(|((row, family, qualifier), value)| (row.clone(), family.clone(), qualifier.clone(), value.clone()))
            .collect();
        assert_eq!(self.scan(&Scan::new()), all);
        let mut reversed = self.scan(&Scan { reversed: true, ..Scan::new() });
        reversed.sort();
        assert_eq!(reversed, all);
        let key = row(probe % 12);
        let found = self.table().get(&Get::new(key.clone())).unwrap();
        let expected = all.iter().filter(|cell| cell.0 == key).count();
        assert_eq!(found.cells.len(), expected);
        for family in 0..2 {
            for qualifier in 0..3 {
                let column = (key.clone(), self::family(family), self::qualifier(qualifier));
                let get = Get::new(key.clone()).column(column.1.clone(), column.2.clone());
                let found = self.table().get(&get).unwrap().cells.first().map(cellfs::cell::Cell::value_bytes);
                assert_eq!(found.as_ref(), self.contents.get(&column), "{column:?}");
            }
        }
        let bounded = Scan { start_row: key.clone(), limit: Some(2), ..Scan::new() };
        let mut rows: Vec<_> = all.iter().map(|cell| cell.0.clone()).filter(|row| *row >= key).collect();
        rows.dedup();
        let mut found: Vec<_> = self.scan(&bounded).into_iter().map(|cell| cell.0).collect();
        found.dedup();
        assert_eq!(found, rows.into_iter().take(2).collect::<Vec<_>>());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_engine_is_a_map(ops in prop::collection::vec((op(), any::<u8>()), 1..70)) {
        let mut world = World::new();
        for (op, probe) in &ops {
            world.run(op);
            world.check(*probe);
        }
    }
}
