//! Store files one by one: what they hold, rewriting chosen ones, adding given ones. Comparisons with HBase need it; files are otherwise the
//! engine's own affair.

use super::Store;
use crate::cell::Cell;
use crate::client::TableName;
use crate::error::{Error, Result};
use crate::region::Region;
use crate::store::HStore;
use std::sync::Arc;

/// One store file of a family.
#[derive(Clone, Debug)]
pub struct StoreFileContents {
    /// Its identity.
    pub file_id: u64,
    /// The newest timestamp in it, markers included.
    pub max_timestamp: i64,
    /// Its cells, in order.
    pub cells: Vec<Cell>,
}

impl Store {
    /// The family of a table's only region.
    fn only_store(&self, table: &TableName, family: &[u8]) -> Result<(Arc<Region>, Arc<HStore>)> {
        let regions = self.inner.table_state(table)?.regions();
        let [region] = &regions[..] else {
            return Err(Error::NotAllowed(format!("{table} has {} regions, not one", regions.len())));
        };
        let store = region.stores().into_iter().find(|store| store.family() == family);
        let unknown = || Error::NoSuchColumnFamily { family: family.escape_ascii().to_string(), known: Vec::new() };
        Ok((Arc::clone(region), store.ok_or_else(unknown)?))
    }

    /// The store files of a family of a table of one region, oldest first.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] for a table of several regions, and those of reading.
    pub fn store_files(&self, table: &TableName, family: &[u8]) -> Result<Vec<StoreFileContents>> {
        let (_, store) = self.only_store(table, family)?;
        let mut files = Vec::new();
        for view in store.files().iter() {
            let mut scanner = view.scanner_for_compaction();
            let mut cells = Vec::new();
            scanner.seek(&Cell::first_on_row(b""))?;
            while let Some(cell) = scanner.peek().cloned() {
                cells.push(cell);
                scanner.advance()?;
            }
            let (file_id, max_timestamp) = (view.entry.file_id, view.entry.max_timestamp);
            files.push(StoreFileContents { file_id, max_timestamp, cells });
        }
        Ok(files)
    }

    /// Rewrites neighbouring store files into one; with `drop_deletes` as if they were all of the store. Nothing is left of files of which
    /// nothing is to keep.
    ///
    /// # Errors
    /// As [`Store::store_files`], and [`Error::InvalidArgument`] for files that are no neighbours.
    pub fn rewrite_store_files(
        &self,
        table: &TableName,
        family: &[u8],
        file_ids: &[u64],
        drop_deletes: bool,
    ) -> Result<()> {
        let (region, store) = self.only_store(table, family)?;
        region.compact_chosen(&store, file_ids, drop_deletes)
    }

    /// Flushes, then adds a store file of `cells`, which are newer than everything before by their sequence id, whatever their timestamps.
    ///
    /// # Errors
    /// As [`Store::store_files`], and those of writing.
    pub fn load_store_file(&self, table: &TableName, family: &[u8], cells: Vec<Cell>) -> Result<()> {
        let (region, store) = self.only_store(table, family)?;
        region.load_cells(store.family(), cells)
    }
}
