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

/// Opens or makes a store in `directory`.
pub fn open(directory: &Path, options: StoreOptions) -> Result<Store> {
    open_at(directory, options, Arc::new(SystemClock::new()))
}

/// As [`open`], on another clock.
pub fn open_at(directory: &Path, options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Store> {
    Ok(Store::open_with(Arc::new(OsVfs), clock, directory, options)?)
}

/// Makes the table `default:NAME`.
pub fn create_table(store: &Store, name: &str, descriptor: TableDescriptor) -> Result<(TableName, Arc<dyn Table>)> {
    let name = TableName::new("default", name)?;
    let attributes = TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 };
    let table = store.create_table(&name, descriptor, &[] as &[Bytes], attributes)?;
    Ok((name, table))
}

/// One figure of a table's statistics (contract.md section 10).
pub fn figure(store: &Store, name: &TableName, wanted: &str) -> Result<i64> {
    let statistics = store.table_statistics(name)?;
    let found = statistics.figures.iter().find(|(name, _)| *name == wanted);
    Ok(found.ok_or_else(|| format!("{name} has no figure {wanted}"))?.1)
}
