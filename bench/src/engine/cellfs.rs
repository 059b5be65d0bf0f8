//! cellfs itself: one table, one family, one column; an entry is a row with one cell.

use super::peer::{Peer, Settings};
use crate::figures::Result;
use crate::store;
use bytes::Bytes;
use cellfs::client::{Admin, Get, Put, Scan, Table, TableName};
use cellfs::schema::{BloomType, ColumnFamilyDescriptor, Compression, Durability, TableDescriptor};
use cellfs::server::{Store, StoreOptions};
use std::path::Path;
use std::sync::Arc;

const FAMILY: Bytes = Bytes::from_static(b"f");
const QUALIFIER: Bytes = Bytes::from_static(b"q");

/// A store with one table.
pub struct Cellfs {
    store: Store,
    name: TableName,
    table: Arc<dyn Table>,
}

/// Opens a store in `directory`.
pub fn open(directory: &Path, settings: Settings) -> Result<Box<dyn Peer>> {
    let mut options = StoreOptions { cache_bytes: settings.cache_bytes, ..StoreOptions::default() };
    options.region.flush_size = settings.memstore_bytes;
    let store = store::open(directory, options)?;
    let family = ColumnFamilyDescriptor {
        bloom: BloomType::Row,
        compression: if settings.lz4 { Compression::Lz4 } else { Compression::None },
        ..ColumnFamilyDescriptor::default()
    };
    // A memstore of 64 MB would make HBase's policy split the table at 128 MB: the peer has no regions to split.
    let descriptor = TableDescriptor { split_disabled: true, ..TableDescriptor::default().family(FAMILY, family) };
    let (name, table) = store::create_table(&store, "bench", descriptor)?;
    Ok(Box::new(Cellfs { store, name, table }))
}

impl Peer for Cellfs {
    fn put(&self, key: &[u8], value: &[u8], synced: bool) -> Result<()> {
        let durability = if synced { Durability::FsyncWal } else { Durability::SyncWal };
        let put = Put::new(Bytes::copy_from_slice(key)).add(FAMILY, QUALIFIER, Bytes::copy_from_slice(value));
        self.table.put(put.durability(durability))?;
        Ok(())
    }

    fn get(&self, key: &[u8]) -> Result<Option<usize>> {
        let row = self.table.get(&Get::new(Bytes::copy_from_slice(key)))?;
        Ok(row.cell(&FAMILY, &QUALIFIER).map(|cell| cell.value().len()))
    }

    fn scan(&self, from: &[u8], limit: u64) -> Result<(u64, u64)> {
        let mut scanner = self.table.scan(&Scan { start_row: Bytes::copy_from_slice(from), ..Scan::new() })?;
        let mut entries = 0;
        let mut bytes = 0;
        while entries < limit {
            let Some(row) = scanner.next()? else { break };
            entries += 1;
            bytes += row.cells.iter().map(|cell| cell.row().len() + cell.value().len()).sum::<usize>() as u64;
        }
        Ok((entries, bytes))
    }

    fn flush(&self) -> Result<()> {
        Ok(self.store.flush_table(&self.name)?)
    }

    fn major_compact(&self) -> Result<()> {
        Ok(self.store.major_compact_table(&self.name, None)?)
    }

    fn settle(&self) -> Result<()> {
        Ok(self.store.run_pending_work()?)
    }
}
