//! E11: deleted data stays in the path of reads until a major compaction: 130 blocks for 10 rows, then 1.

use super::{Tolerance, Verdict};
use crate::data::Values;
use crate::figures::{Result, timed};
use crate::store;
use bytes::Bytes;
use cellfs::client::{Admin, Delete, DeleteMarker, Mutation, Put, Scan, Table, TableName, WriteTime};
use cellfs::schema::{ColumnFamilyDescriptor, TableDescriptor};
use cellfs::server::{Store, StoreOptions};
use std::path::Path;

const ROWS: u64 = 50_000;
const KEPT: u64 = 10;

/// Runs E11.
pub fn run(home: &Path, verdict: &mut Verdict) -> Result<()> {
    let store = store::open(home, StoreOptions::default())?;
    let family = ColumnFamilyDescriptor { block_cache: false, ..Default::default() };
    let mut descriptor = TableDescriptor::default().family(&b"d"[..], family);
    descriptor.compaction_disabled = true;
    let (name, table) = store::create_table(&store, "e11", descriptor.clone())?;
    let mut values = Values::new(1);
    let puts = (0..ROWS)
        .map(|row| Mutation::Put(Put::new(key(row)).add(&b"d"[..], &b"v"[..], Bytes::copy_from_slice(&values.next()))));
    write(&*table, puts.collect())?;
    store.flush_table(&name)?;
    let deletes = (0..ROWS).filter(|row| row % (ROWS / KEPT) != 0).map(|row| {
        let (family, qualifier) = (Bytes::from_static(b"d"), Bytes::from_static(b"v"));
        Mutation::Delete(Delete::row(key(row)).marker(DeleteMarker::Column { family, qualifier, time: WriteTime::Now }))
    });
    write(&*table, deletes.collect())?;
    store.flush_table(&name)?;

    let (blocks, micros) = scan(&store, &name, &*table)?;
    verdict.judge("E11 blocks of a scan for 10 rows among 49,990 deleted", 130.0, blocks, Tolerance::Absolute(3.0));
    store.modify_table(&name, TableDescriptor { compaction_disabled: false, ..descriptor })?;
    store.major_compact_table(&name, None)?;
    let (blocks_after, micros_after) = scan(&store, &name, &*table)?;
    verdict.judge("E11 blocks of the scan after a major compaction", 1.0, blocks_after, Tolerance::Absolute(0.0));
    verdict.note("E11 time of the scan before and after", &format!("{micros:.0} us, {micros_after:.0} us"));
    Ok(())
}

fn key(row: u64) -> String {
    format!("row_{row:08}")
}

fn write(table: &dyn Table, mutations: Vec<Mutation>) -> Result<()> {
    for outcome in table.batch(mutations) {
        outcome?;
    }
    Ok(())
}

/// Scans everything; data blocks read and microseconds.
fn scan(store: &Store, name: &TableName, table: &dyn Table) -> Result<(f64, f64)> {
    let before = store::figure(store, name, "data_blocks_read")?;
    let (rows, elapsed) = timed(|| {
        let mut scanner = table.scan(&Scan { cache_blocks: false, ..Scan::new() })?;
        let mut rows = 0;
        while scanner.next()?.is_some() {
            rows += 1;
        }
        Ok(rows)
    })?;
    if rows != KEPT {
        return Err(format!("the scan gave {rows} rows, not {KEPT}").into());
    }
    Ok(((store::figure(store, name, "data_blocks_read")? - before) as f64, elapsed.as_secs_f64() * 1e6))
}
