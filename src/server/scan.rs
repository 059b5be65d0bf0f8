//! A scan over the regions of a table, at one read point whatever is flushed, compacted or split meanwhile.

use super::StoreInner;
use super::table_state::TableState;
use crate::client::{ResultScanner, RowResult, Scan};
use crate::error::{Error, Result};
use crate::region::{ReadPoint, Standpoint};
use crate::scanner::{BoxedFilter, RegionScanner, RowRange, compile_filter};
use bytes::Bytes;
use std::ops::Bound;
use std::sync::Arc;

/// Walks from region to region. It holds the cells of one region at a time and no lock between two calls.
pub(super) struct TableScanner {
    /// Keeps the store open as long as the scan.
    _store: Arc<StoreInner>,
    table: Arc<TableState>,
    scan: Scan,
    /// What is left to read.
    range: RowRange,
    read_point: ReadPoint,
    now: i64,
    /// `i64::MAX` = the present.
    as_of: i64,
    rows_left: Option<u64>,
    current: Option<RegionScanner>,
    /// Between two regions; else in `current`.
    filter: Option<BoxedFilter>,
    /// True while the rest of a row is to come.
    in_row: bool,
    done: bool,
}

impl TableScanner {
    pub(super) fn open(store: &Arc<StoreInner>, table: &Arc<TableState>, scan: Scan) -> Result<TableScanner> {
        TableScanner::open_as_of(store, table, scan, i64::MAX)
    }

    /// A scan of the table as of a moment.
    pub(super) fn open_as_of(
        store: &Arc<StoreInner>,
        table: &Arc<TableState>,
        scan: Scan,
        as_of: i64,
    ) -> Result<TableScanner> {
        let range = RowRange::of_scan(&scan);
        let filter = scan.filter.as_ref().map(|filter| compile_filter(filter, scan.reversed)).transpose()?;
        let done = range.is_empty() || scan.limit == Some(0);
        let mut scanner = TableScanner {
            _store: Arc::clone(store),
            table: Arc::clone(table),
            range,
            read_point: store.services.mvcc.open_reader(),
            now: store.services.store.clock.now_millis(),
            as_of,
            rows_left: scan.limit,
            scan,
            current: None,
            filter,
            in_row: false,
            done,
        };
        if !scanner.done {
            scanner.open_region()?;
        }
        Ok(scanner)
    }

    /// Opens the next region of what is left, and takes it off what is left.
    fn open_region(&mut self) -> Result<()> {
        loop {
            let region = if self.scan.reversed {
                match &self.range.high {
                    Bound::Unbounded => self.table.region_before(None)?,
                    Bound::Included(row) => self.table.region_for(row)?,
                    Bound::Excluded(row) => self.table.region_before(Some(row))?,
                }
            } else {
                match &self.range.low {
                    Bound::Unbounded => self.table.region_for(b"")?,
                    Bound::Included(row) | Bound::Excluded(row) => self.table.region_for(row)?,
                }
            };
            let from = Standpoint::at(self.read_point.get(), self.as_of, self.now);
            let opened = region.scan(&self.scan, self.range.clone(), from, self.rows_left)?;
            let Some(scanner) = opened else {
                // It has just been replaced; the table knows by what in a moment.
                std::thread::yield_now();
                continue;
            };
            self.current = Some(scanner.with_filter(self.filter.take()));
            self.leave(region.start(), region.end());
            return Ok(());
        }
    }

    /// What is left behind a region.
    fn leave(&mut self, start: &Bytes, end: &Bytes) {
        if self.scan.reversed {
            self.done = start.is_empty();
            self.range.high = Bound::Excluded(start.clone());
        } else {
            self.done = end.is_empty();
            self.range.low = Bound::Included(end.clone());
        }
        self.done |= self.range.is_empty();
    }
}

impl ResultScanner for TableScanner {
    fn next(&mut self) -> Result<Option<RowResult>> {
        loop {
            if let Some(current) = &mut self.current {
                if let Some(result) = current.next()? {
                    if !self.in_row {
                        self.rows_left = self.rows_left.map(|left| left.saturating_sub(1));
                    }
                    self.in_row = result.partial;
                    return Ok(Some(result));
                }
                self.filter = current.take_filter();
                self.done |= self.filter.as_ref().is_some_and(|filter| filter.filter_all_remaining());
                self.current = None;
            }
            if self.done || self.rows_left == Some(0) {
                return Ok(None);
            }
            self.table.check_exists().map_err(|_| Error::NoSuchTable(self.table.name().to_string()))?;
            self.open_region()?;
        }
    }
}
