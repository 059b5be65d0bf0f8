//! Foreign HFiles into a table, as HBase's bulk load takes them: all of them or none.

use super::schema_change::in_id_order;
use super::table_state::TableState;
use super::{Store, StoreInner};
use crate::client::TableName;
use crate::error::{Error, Result};
use crate::hfile::{HFileReader, ReadOptions};
use crate::region::{AsideFiles, BulkLoad, LoadedCells};
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

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

/// A bulk load whose files are written and wait to be installed. Dropped, it leaves nothing.
pub struct PreparedLoad {
    store: Arc<StoreInner>,
    table: Arc<TableState>,
    aside: AsideFiles,
    summary: BulkLoadSummary,
}

impl PreparedLoad {
    /// Makes everything live and visible at once.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`], [`Error::NoSuchColumnFamily`] and [`Error::ReadOnly`] for what has become of the table meanwhile; those of writing. Then
    /// nothing has changed.
    pub fn install(self) -> Result<BulkLoadSummary> {
        let PreparedLoad { store, table, aside, mut summary } = self;
        summary.store_files = store.install_aside(&table, aside, &mut |_| Ok(true))?;
        Ok(summary)
    }
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
        self.prepare_bulk_load(table, files, progress)?.install()
    }

    /// The first phase of [`Store::bulk_load`], by far the longer one: while it runs everybody goes on, and nothing of it is to be seen.
    ///
    /// # Errors
    /// As [`Store::bulk_load`].
    pub fn prepare_bulk_load(
        &self,
        table: &TableName,
        files: &[PathBuf],
        progress: &mut dyn FnMut(u64),
    ) -> Result<PreparedLoad> {
        let services = &self.inner.services;
        let table = self.inner.table_state(table)?;
        table.check_exists()?;
        table.check_not_read_only()?;
        services.check_writable(false)?;
        let mut readers = files.iter().map(|path| self.open_foreign(path)).collect::<Result<Vec<_>>>()?;
        readers.sort_by_key(|reader| {
            let info = reader.info();
            (info.max_sequence_id, info.max_cell_sequence_id, Reverse(info.file_bytes))
        });
        let regions = table.regions();
        let mut load = BulkLoad::begin(services, &regions);
        let mut summary = BulkLoadSummary::default();
        for reader in &readers {
            let loaded = load_file(&mut load, reader, progress)?;
            summary.rows += loaded.rows;
            summary.cells += loaded.cells;
            summary.superseded += loaded.superseded;
        }
        let aside = load.finish()?;
        Ok(PreparedLoad { store: Arc::clone(&self.inner), table, aside, summary })
    }

    fn open_foreign(&self, path: &Path) -> Result<Arc<HFileReader>> {
        HFileReader::open(self.inner.vfs.open_read(path)?, 0, None)
    }
}

impl StoreInner {
    /// The second phase of a load: memory is flushed while everybody goes on; then the table's writers wait for the rest of it and one manifest edit.
    /// `check` has the last word: it is asked when nobody writes any more.
    pub(super) fn install_aside(
        &self,
        table: &TableState,
        aside: AsideFiles,
        check: &mut dyn FnMut(&AsideFiles) -> Result<bool>,
    ) -> Result<usize> {
        // Regions stay as they are until the files are in them.
        let _structure = table.structure.lock();
        table.check_exists()?;
        table.check_not_read_only()?;
        self.services.check_writable(false)?;
        if aside.is_empty() {
            return Ok(0);
        }
        let regions = in_id_order(table);
        for region in &regions {
            region.flush()?;
        }
        // Callers that must not wait hear of it before anybody does.
        self.services.holding.fetch_add(1, Ordering::Relaxed);
        let held: Vec<_> = regions.iter().map(|region| region.hold_writers()).collect();
        let flushed = held.iter().try_for_each(|region| region.flush());
        let installed = flushed.and_then(|()| match check(&aside)? {
            true => aside.install(&table.regions()),
            false => Ok(0),
        });
        drop(held);
        self.services.holding.fetch_sub(1, Ordering::Relaxed);
        installed
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
