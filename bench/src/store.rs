//! Opening a cellfs store for a benchmark, and reading its figures.

use crate::figures::Result;
use bytes::Bytes;
use cellfs::client::{Admin, Table, TableAttributes, TableName};
use cellfs::clock::{Clock, SystemClock};
use cellfs::schema::TableDescriptor;
use cellfs::server::{Store, StoreOptions};
use cellfs::vfs::OsVfs;
use std::path::Path;
use std::sync::Arc;

/// What a benchmark sets; everything else is the store's default.
pub struct StoreSettings {
    /// Bytes of block cache.
    pub cache_bytes: u64,
    /// The clock; tests of TTL move it by hand.
    pub clock: Arc<dyn Clock>,
}

impl Default for StoreSettings {
    fn default() -> Self {
        StoreSettings { cache_bytes: 256 << 20, clock: Arc::new(SystemClock::new()) }
    }
}

/// Opens or makes a store in `directory`.
pub fn open(directory: &Path, settings: StoreSettings) -> Result<Arc<dyn Admin>> {
    let options = StoreOptions { cache_bytes: settings.cache_bytes, ..StoreOptions::default() };
    Ok(Arc::new(Store::open_with(Arc::new(OsVfs), settings.clock, directory, options)?))
}

/// Makes the table `default:NAME`.
pub fn create_table(store: &dyn Admin, name: &str, descriptor: TableDescriptor) -> Result<(TableName, Arc<dyn Table>)> {
    let name = TableName::new("default", name)?;
    let attributes = TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 };
    let table = store.create_table(&name, descriptor, &[] as &[Bytes], attributes)?;
    Ok((name, table))
}

/// One figure of a table's statistics (contract.md section 10).
pub fn figure(store: &dyn Admin, name: &TableName, wanted: &str) -> Result<i64> {
    let statistics = store.table_statistics(name)?;
    let found = statistics.figures.iter().find(|(name, _)| *name == wanted);
    Ok(found.ok_or_else(|| format!("{name} has no figure {wanted}"))?.1)
}
