//! Foreign HFiles into a table, as HBase's bulk load takes them: all of them or none.

use super::Store;
use crate::client::TableName;
use crate::error::{Error, Result};
use crate::hfile::{HFileReader, ReadOptions};
use crate::region::{BulkLoad, LoadedCells};
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a bulk load brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkLoadSummary {
    /// Rows; one that several files have counts in each.
    pub rows: u64,
    /// Cells, markers included.
    pub cells: u64,
    /// Cells left out, for a newer one of the same file has the same key.
    pub superseded: u64,
    /// Store files that came to be: at least one for each file and region with cells.
    pub store_files: usize,
}

impl Store {
    /// Adds the cells of HFiles to a table, with their timestamps, types and tags, as new store files: one for each file and region that have
    /// cells in common. The cells of a file get one sequence id, newer than everything written before, as in HBase, whatever ids the file has
    /// for them: so of equal keys (row, column, timestamp, type) the newly loaded one wins. Among the files the later one wins, in the order
    /// of MAX_SEQ_ID_KEY and, where a flush and a load share one, of their cells' sequence ids; files without come before those with, the larger
    /// one first, as HBase has it for files of one load. The files are read
    /// once and left as they are; every block, key and order is checked. It is all or nothing, also over a crash. `progress` hears of bytes of
    /// cells as they pass.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`]; [`Error::NoSuchColumnFamily`]; [`Error::InvalidArgument`] for cells that cannot be stored, with the file's path;
    /// [`Error::Corruption`] and [`Error::Unsupported`] for files that cannot be read; those of writing. Then nothing has changed.
    pub fn bulk_load(
        &self,
        table: &TableName,
        files: &[PathBuf],
        progress: &mut dyn FnMut(u64),
    ) -> Result<BulkLoadSummary> {
        let services = &self.inner.services;
        let table = self.inner.table_state(table)?;
        // Regions stay as they are until the files are in them.
        let _structure = table.structure.lock();
        table.check_exists()?;
        table.check_not_read_only()?;
        services.check_writable(false)?;
        let mut readers = files.iter().map(|path| self.open_foreign(path)).collect::<Result<Vec<_>>>()?;
        readers.sort_by_key(|reader| {
            let info = reader.info();
            (info.max_sequence_id, info.max_cell_sequence_id, Reverse(info.file_bytes))
        });
        let regions = table.regions();
        let mut load = BulkLoad::begin(services, &regions)?;
        let mut summary = BulkLoadSummary::default();
        for reader in &readers {
            let loaded = load_file(&mut load, reader, progress)?;
            summary.rows += loaded.rows;
            summary.cells += loaded.cells;
            summary.superseded += loaded.superseded;
        }
        summary.store_files = load.commit()?;
        Ok(summary)
    }

    fn open_foreign(&self, path: &Path) -> Result<Arc<HFileReader>> {
        HFileReader::open(self.inner.vfs.open_read(path)?, 0, None)
    }
}

fn load_file(load: &mut BulkLoad<'_>, reader: &Arc<HFileReader>, progress: &mut dyn FnMut(u64)) -> Result<LoadedCells> {
    let in_file = |error| match error {
        Error::InvalidArgument(what) => Error::InvalidArgument(format!("{}: {what}", reader.path().display())),
        other => other,
    };
    let mut scanner = reader.scanner(ReadOptions::streaming());
    scanner.seek_to_first()?;
    let loaded = load.load(&mut scanner, reader.info().tags, progress).map_err(in_file)?;
    let found = loaded.cells + loaded.superseded;
    let info = reader.info();
    if found != info.entries {
        let what = format!("the trailer counts {} cells, the file has {found}", info.entries);
        return Err(Error::corruption(reader.path(), info.file_bytes, what));
    }
    Ok(loaded)
}
