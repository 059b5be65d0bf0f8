//! Rows as directories: whether they are there, what they keep of their own, when they changed.

use super::CellFs;
use super::attributes::FileAttributes;
use crate::magic::TableHandle;
use crate::ops::FsResult;
use bytes::Bytes;
use cellfs::Error;
use cellfs::client::{Get, Scan};
use cellfs::schema::{FOREVER, ROW_ATTRIBUTES_FAMILY};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Cells per part of a row that is read for its times.
const BATCH: usize = 1000;

/// What stat(2) needs of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowFacts {
    /// What it keeps of its own.
    pub own: FileAttributes,
    /// Those are stored, or may be.
    pub stored: bool,
    /// The newest put or delete, milliseconds since the epoch.
    pub newest_millis: i64,
    /// The mount's change count when this was read.
    pub epoch: u64,
}

/// A row that is a directory although it may hold no cell: made by mkdir, or emptied. Until rmdir or unmount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptRow {
    /// Its own attributes, to be stored with its first cell.
    pub own: Option<FileAttributes>,
    /// When it was made or emptied, milliseconds since the epoch.
    pub changed_millis: i64,
    /// When it was last renamed, nanoseconds since the epoch: its ctime if nothing has changed it since.
    pub renamed_nanos: Option<i64>,
}

/// The kept rows of all tables.
#[derive(Debug, Default)]
pub struct KeptRows {
    tables: Mutex<HashMap<u64, BTreeMap<Bytes, KeptRow>>>,
    count: AtomicUsize,
}

impl KeptRows {
    /// The row, if it is kept.
    pub fn get(&self, table: u64, row: &[u8]) -> Option<KeptRow> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.tables.lock().get(&table)?.get(row).cloned()
    }

    /// Keeps a row, or changes how.
    pub fn insert(&self, table: u64, row: Bytes, kept: KeptRow) {
        if self.tables.lock().entry(table).or_default().insert(row, kept).is_none() {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Keeps a row that has just lost something.
    pub fn keep(&self, table: u64, row: &Bytes, changed_millis: i64) {
        let mut tables = self.tables.lock();
        let rows = tables.entry(table).or_default();
        match rows.get_mut(row) {
            Some(kept) => kept.changed_millis = kept.changed_millis.max(changed_millis),
            None => {
                rows.insert(row.clone(), KeptRow { own: None, changed_millis, renamed_nanos: None });
                self.count.fetch_add(1, Ordering::AcqRel);
            }
        }
    }

    /// The row is no directory by itself any more.
    pub fn remove(&self, table: u64, row: &[u8]) -> Option<KeptRow> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let removed = self.tables.lock().get_mut(&table)?.remove(row)?;
        self.count.fetch_sub(1, Ordering::AcqRel);
        Some(removed)
    }

    /// The first kept row of a table after `row`, or its first.
    pub fn next_after(&self, table: u64, row: Option<&Bytes>) -> Option<Bytes> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let from = row.map_or(Bound::Unbounded, |row| Bound::Excluded(row.clone()));
        let tables = self.tables.lock();
        tables.get(&table)?.range((from, Bound::Unbounded)).next().map(|(row, _)| row.clone())
    }

    /// Forgets a table's.
    pub fn remove_table(&self, table: u64) {
        if let Some(rows) = self.tables.lock().remove(&table) {
            self.count.fetch_sub(rows.len(), Ordering::AcqRel);
        }
    }

    /// All of them.
    pub fn all(&self) -> Vec<(u64, Bytes)> {
        let tables = self.tables.lock();
        tables.iter().flat_map(|(table, rows)| rows.keys().map(|row| (*table, row.clone()))).collect()
    }
}

impl CellFs {
    /// Reads what stat(2) needs of a row; `None` if there is no such row.
    pub(super) fn read_row_facts(&self, table: &TableHandle, row: &Bytes) -> FsResult<Option<RowFacts>> {
        let epoch = self.state.epoch();
        let kept = self.state.kept.get(table.id(), row);
        let trace = self.row_trace(table, row)?;
        if kept.is_none() && !trace.visible {
            return Ok(None);
        }
        let stored = if trace.any { self.stored_row_attributes(table, row)? } else { None };
        let newest = trace.newest_millis.into_iter().chain(kept.as_ref().map(|kept| kept.changed_millis)).max();
        let renamed = kept.as_ref().and_then(|kept| kept.renamed_nanos);
        let mut own = kept.and_then(|kept| kept.own).or(stored).unwrap_or_default();
        own.ctime_nanos = own.ctime_nanos.max(renamed);
        Ok(Some(RowFacts { own, stored: stored.is_some(), newest_millis: newest.unwrap_or(0), epoch }))
    }

    /// True if the row shows a cell (hidden ones count: their row is kept).
    pub(super) fn row_has_cells(&self, table: &TableHandle, row: &Bytes) -> FsResult<bool> {
        let mut get = Get::new(row.clone());
        get.store_limit = Some(1);
        Ok(table.0.exists(&get)?)
    }

    /// What the row keeps of its own, as stored.
    pub(super) fn stored_row_attributes(&self, table: &TableHandle, row: &Bytes) -> FsResult<Option<FileAttributes>> {
        if table.is_past() {
            // Modes hold as they are today, so that the past opens no secret; a row that is gone shows the last it had.
            let live = TableHandle(self.admin.table(&table.0.name())?);
            if let Some(own) = self.stored_row_attributes(&live, row)? {
                return Ok(Some(own));
            }
        }
        let result = table.0.get(&Get::new(row.clone()).column(ROW_ATTRIBUTES_FAMILY, Bytes::new()));
        match result {
            Ok(found) => Ok(found.cells.first().map(|cell| FileAttributes::decode(cell.value()))),
            // A store without the hidden family (an HBase root opened read-only) has no attributes of rows.
            Err(Error::NoSuchColumnFamily { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// What the engine has of a row: the newest timestamp, markers included, and whether anything is visible.
    fn row_trace(&self, table: &TableHandle, row: &Bytes) -> FsResult<RowTrace> {
        let scan = Scan {
            start_row: row.clone(),
            stop_row: row.clone(),
            include_stop: true,
            raw: true,
            batch: Some(BATCH),
            ..Scan::new()
        };
        let mut scanner = table.0.scan(&scan)?;
        let mut trace = RowTrace { newest_millis: None, any: false, visible: false };
        let mut markers = false;
        while let Some(part) = scanner.next()? {
            for cell in &part.cells {
                trace.any = true;
                markers |= cell.is_delete();
                trace.newest_millis = trace.newest_millis.max(Some(cell.timestamp()));
            }
        }
        // Puts without markers and without an end are visible: only else the engine has to say.
        let expires = table.0.descriptor().families.values().any(|family| family.ttl_seconds != FOREVER);
        trace.visible = trace.any && (!markers && !expires || self.row_has_cells(table, row)?);
        Ok(trace)
    }
}

struct RowTrace {
    newest_millis: Option<i64>,
    any: bool,
    visible: bool,
}
