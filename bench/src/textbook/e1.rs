//! E1: what bloom filters spare. A get among 25 files reads 25 data blocks without blooms and 1 with; a row spread over 2 (3) of 24 files costs
//! 2.2 (3.0).

use super::printed::Printer;
use super::{COUNT, Tolerance, Verdict};
use crate::data::{Random, Values};
use crate::figures::{Result, timed};
use crate::store;
use bytes::Bytes;
use cellfs::client::{Admin, Get, Mutation, Put, Table, TableName};
use cellfs::schema::{BloomType, ColumnFamilyDescriptor, TableDescriptor};
use cellfs::server::{Store, StoreOptions};
use std::path::Path;
use std::time::Duration;

const FILES_A: u64 = 25;
const ROWS_PER_FILE_A: u64 = 4_000;
const ROWS_A: u64 = FILES_A * ROWS_PER_FILE_A;
const FILES_B: u64 = 24;
const ROWS_B: u64 = 20_000;
const GETS: u64 = 2_000;
/// Present gets that must all find their row.
const GETS_NEVER_MISSED: u64 = 1_000_000;

/// Runs E1a to E1d.
pub fn run(home: &Path, verdict: &mut Verdict) -> Result<()> {
    let store = store::open(home, StoreOptions::default())?;
    scattered_rows(&store, home, verdict)?;
    spread_rows(&store, verdict)
}

/// E1a, E1c: each row lies in one of 25 files, whose key ranges are all the same.
fn scattered_rows(store: &Store, home: &Path, verdict: &mut Verdict) -> Result<()> {
    let printer = Printer::new(verdict);
    let mut make = |name: &str, bloom, kind: &str| {
        let files = Files::make_scattered(store, name, bloom)?;
        printer.judge_newest(&format!("E1a a file, {kind}"), home, verdict)?;
        Result::Ok(files)
    };
    let none = make("e1a_none", BloomType::None, "NONE")?;
    let row = make("e1a_row", BloomType::Row, "ROW")?;
    let row_col = make("e1a_rowcol", BloomType::RowCol, "ROWCOL")?;

    let (blocks_none, time_none) = none.blocks_per_get(ROWS_A, present)?;
    let (blocks_row, time_row) = row.blocks_per_get(ROWS_A, present)?;
    verdict.judge("E1a blocks/get, 25 files, NONE", 25.01, blocks_none, COUNT);
    verdict.judge("E1a blocks/get, 25 files, ROW", 1.01, blocks_row, COUNT);
    verdict.judge(
        "E1a blocks/get, 25 files, ROWCOL, whole row",
        25.01,
        row_col.blocks_per_get(ROWS_A, present)?.0,
        COUNT,
    );

    verdict.judge("E1c blocks/get of absent rows, NONE", 25.02, none.blocks_per_get(ROWS_A, absent)?.0, COUNT);
    let absent_row = row.blocks_per_get(ROWS_A, absent)?.0;
    verdict.judge("E1c blocks/get of absent rows, ROW (at most 1 % of 25 files)", 0.25, absent_row, Tolerance::AtMost);
    let named = row_col.blocks_per_get(ROWS_A, |row| present(row).column(&b"d"[..], &b"v"[..]))?.0;
    verdict.judge("E1c blocks/get, ROWCOL, column named", 1.02, named, COUNT);

    let mut random = Random::new(7);
    let mut missed = 0;
    for _ in 0..GETS_NEVER_MISSED {
        missed += u64::from(row.table.get(&present(random.below(ROWS_A)))?.is_empty());
    }
    verdict.judge("E1c present rows missed in 10^6 gets, ROW", 0.0, missed as f64, Tolerance::Absolute(0.0));
    let ratio = time_none.as_secs_f64() / time_row.as_secs_f64();
    verdict.note(
        "E1d time of a get, NONE and ROW",
        &format!("{:.1} us, {:.1} us: {ratio:.1} times", micros(time_none), micros(time_row)),
    );
    Ok(())
}

/// E1b: each row has its cells in 2 (3) of 24 files.
fn spread_rows(store: &Store, verdict: &mut Verdict) -> Result<()> {
    for (spread, expected_none, expected_row) in [(2, 24.03, 2.21), (3, 24.06, 3.04)] {
        let none = Files::make_spread(store, &format!("e1b_none_{spread}"), BloomType::None, spread)?;
        let row = Files::make_spread(store, &format!("e1b_row_{spread}"), BloomType::Row, spread)?;
        let name = format!("E1b blocks/get, 24 files, row in {spread} of them");
        verdict.judge(&format!("{name}, NONE"), expected_none, none.blocks_per_get(ROWS_B, present)?.0, COUNT);
        verdict.judge(&format!("{name}, ROW"), expected_row, row.blocks_per_get(ROWS_B, present)?.0, COUNT);
    }
    Ok(())
}

fn micros(elapsed: Duration) -> f64 {
    elapsed.as_secs_f64() * 1e6 / GETS as f64
}

fn present(row: u64) -> Get {
    get(format!("u_{row:08}"))
}

fn absent(row: u64) -> Get {
    get(format!("u_{row:08}x"))
}

fn get(row: String) -> Get {
    let mut get = Get::new(row);
    get.cache_blocks = false;
    get
}

/// A table of many store files that nothing compacts.
struct Files<'a> {
    store: &'a Store,
    name: TableName,
    table: std::sync::Arc<dyn Table>,
}

impl<'a> Files<'a> {
    fn make(store: &'a Store, name: &str, bloom: BloomType) -> Result<Files<'a>> {
        let family = ColumnFamilyDescriptor { bloom, block_cache: false, ..Default::default() };
        let mut descriptor = TableDescriptor::default().family(&b"d"[..], family);
        descriptor.compaction_disabled = true;
        descriptor.split_disabled = true;
        let (name, table) = store::create_table(store, name, descriptor)?;
        Ok(Files { store, name, table })
    }

    fn make_scattered(store: &'a Store, name: &str, bloom: BloomType) -> Result<Files<'a>> {
        let files = Files::make(store, name, bloom)?;
        for file in 0..FILES_A {
            files.write_file((0..ROWS_PER_FILE_A).map(|row| (row * FILES_A + file, Bytes::from_static(b"v"))))?;
        }
        Ok(files)
    }

    fn make_spread(store: &'a Store, name: &str, bloom: BloomType, spread: u64) -> Result<Files<'a>> {
        let files = Files::make(store, name, bloom)?;
        for file in 0..FILES_B {
            let cells = (0..ROWS_B).flat_map(|row| (0..spread).map(move |cell| (row, cell)));
            let here = cells.filter(|(row, cell)| (row + cell * FILES_B / spread) % FILES_B == file);
            files.write_file(here.map(|(row, cell)| (row, Bytes::from(format!("c{cell}")))))?;
        }
        Ok(files)
    }

    /// Puts a cell of 100 bytes for each row and qualifier, and flushes.
    fn write_file(&self, cells: impl Iterator<Item = (u64, Bytes)>) -> Result<()> {
        let mut values = Values::new(1);
        let puts = cells.map(|(row, qualifier)| {
            let value = Bytes::copy_from_slice(&values.next());
            Mutation::Put(Put::new(format!("u_{row:08}")).add(&b"d"[..], qualifier, value))
        });
        for outcome in self.table.batch(puts.collect()) {
            outcome?;
        }
        Ok(self.store.flush_table(&self.name)?)
    }

    /// Data blocks that one of [`GETS`] random gets reads on average, and the time of all.
    fn blocks_per_get(&self, rows: u64, get: impl Fn(u64) -> Get) -> Result<(f64, Duration)> {
        let mut random = Random::new(11);
        let before = store::figure(self.store, &self.name, "data_blocks_read")?;
        let ((), elapsed) = timed(|| {
            for _ in 0..GETS {
                self.table.get(&get(random.below(rows)))?;
            }
            Ok(())
        })?;
        let read = store::figure(self.store, &self.name, "data_blocks_read")? - before;
        Ok((read as f64 / GETS as f64, elapsed))
    }
}
