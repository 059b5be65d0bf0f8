//! The rows of a region, joined from its families (HBase `RegionScannerImpl`, `ReversedRegionScannerImpl`).

use super::filter::{BoxedFilter, is_family_essential};
use super::range::RowRange;
use super::store_scanner::StoreScanner;
use crate::cell::Cell;
use crate::client::{Filter, Get, ResultScanner, RowResult, Scan};
use crate::error::{Error, Result};
use std::ops::Bound;

/// How a region is scanned.
#[derive(Clone, Debug)]
pub struct RegionScanOptions {
    /// The rows; clip it to the region first ([`RowRange::within`]).
    pub range: RowRange,
    /// Descending.
    pub reversed: bool,
    /// Rows at most.
    pub limit: Option<u64>,
    /// Cells per result at most.
    pub batch: Option<usize>,
    /// Only the first cell of each row.
    pub first_cell_only: bool,
}

impl RegionScanOptions {
    /// One row.
    pub fn row(row: impl Into<bytes::Bytes>) -> RegionScanOptions {
        RegionScanOptions {
            range: RowRange::row(row),
            reversed: false,
            limit: Some(1),
            batch: None,
            first_cell_only: false,
        }
    }

    /// What `scan` asks for, in `range`.
    pub fn of_scan(scan: &Scan, range: RowRange) -> RegionScanOptions {
        RegionScanOptions {
            range,
            reversed: scan.reversed,
            limit: scan.limit,
            batch: scan.batch,
            first_cell_only: scan.first_cell_only,
        }
    }
}

/// The families that a request reads, in the order of their names: those that find rows, and those that are read for rows that the filter
/// has let through (HBase's store heap and joined heap).
#[derive(Default)]
pub struct RegionStores {
    essential: Vec<StoreScanner>,
    joined: Vec<JoinedStore>,
    /// Splits the families; `None` = all of them find rows.
    filter: Option<Filter>,
}

struct JoinedStore {
    scanner: StoreScanner,
    opened: bool,
}

impl RegionStores {
    /// For a get, which always reads on demand.
    pub fn of_get(get: &Get) -> RegionStores {
        RegionStores { filter: get.filter.clone(), ..RegionStores::default() }
    }

    /// For a scan. HBase does not read backwards on demand; with a batch the parts of a row would depend on it.
    pub fn of_scan(scan: &Scan) -> RegionStores {
        let apart =
            scan.load_column_families_on_demand && !scan.reversed && scan.batch.is_none() && !scan.first_cell_only;
        RegionStores { filter: scan.filter.clone().filter(|_| apart), ..RegionStores::default() }
    }

    /// Adds the next family.
    pub fn push(&mut self, family: &[u8], scanner: StoreScanner) {
        match &self.filter {
            Some(filter) if !is_family_essential(filter, family) => {
                self.joined.push(JoinedStore { scanner, opened: false });
            }
            _ => self.essential.push(scanner),
        }
    }

    /// True if no family finds rows.
    pub fn is_empty(&self) -> bool {
        self.essential.is_empty()
    }
}

impl From<Vec<StoreScanner>> for RegionStores {
    fn from(essential: Vec<StoreScanner>) -> RegionStores {
        RegionStores { essential, ..RegionStores::default() }
    }
}

impl JoinedStore {
    /// True if the store has `row`; rows are asked for in ascending order.
    fn reach(&mut self, row: &[u8]) -> Result<bool> {
        if self.opened {
            match self.scanner.row()? {
                Some(ahead) if ahead < row => {}
                ahead => return Ok(ahead == Some(row)),
            }
        }
        self.opened = true;
        self.scanner.seek(row)?;
        self.scanner.stands_on(row)
    }
}

/// Yields the rows of a region that have cells for the request.
pub struct RegionScanner {
    /// In the order of family names.
    stores: Vec<StoreScanner>,
    joined: Vec<JoinedStore>,
    options: RegionScanOptions,
    opened: bool,
    rows: u64,
    filter: Option<BoxedFilter>,
    /// No row that follows can pass the filter.
    filter_done: bool,
    /// The row being given out in parts, and the store that is next to give.
    row: Vec<u8>,
    store: usize,
    in_row: bool,
    /// A part of the row has been given out.
    row_counted: bool,
    /// A cell that was taken to learn whether a full batch is the last of its row.
    ahead: Option<Cell>,
}

impl RegionScanner {
    /// A scanner over `stores`, which are in the order of their families' names. Nothing is read yet.
    pub fn new(stores: impl Into<RegionStores>, options: RegionScanOptions) -> RegionScanner {
        let stores = stores.into();
        RegionScanner {
            stores: stores.essential,
            joined: stores.joined,
            options,
            opened: false,
            rows: 0,
            filter: None,
            filter_done: false,
            row: Vec::new(),
            store: 0,
            in_row: false,
            row_counted: false,
            ahead: None,
        }
    }

    /// Leaves out what `filter` leaves out; it must have been made for the direction of the scan. The stores' scans must be marked as filtered.
    #[must_use]
    pub fn with_filter(mut self, filter: Option<BoxedFilter>) -> RegionScanner {
        self.filter = filter;
        self
    }

    /// Gives the filter back, to go on with in the next region.
    pub fn take_filter(&mut self) -> Option<BoxedFilter> {
        self.filter.take()
    }

    fn open(&mut self) -> Result<()> {
        self.opened = true;
        for store in &mut self.stores {
            match (self.options.reversed, &self.options.range.low, &self.options.range.high) {
                (false, Bound::Unbounded, _) => store.seek(b"")?,
                (false, Bound::Included(row), _) => store.seek(row)?,
                (false, Bound::Excluded(row), _) => store.seek(&row_after(row))?,
                (true, _, Bound::Unbounded) => store.seek_before(None)?,
                (true, _, Bound::Included(row)) => store.seek_before(Some(&row_after(row)))?,
                (true, _, Bound::Excluded(row)) => store.seek_before(Some(row))?,
            }
        }
        Ok(())
    }

    /// Finds the next row that any store stands on; false at the end of the range.
    fn next_row(&mut self) -> Result<bool> {
        if self.options.limit.is_some_and(|limit| self.rows >= limit) {
            return Ok(false);
        }
        let reversed = self.options.reversed;
        let mut found = false;
        for store in &mut self.stores {
            let Some(row) = store.row()? else { continue };
            if !found || (row < &self.row[..]) != reversed && row != self.row {
                found = true;
                self.row.clear();
                self.row.extend_from_slice(row);
            }
        }
        self.in_row = found && self.options.range.contains(&self.row);
        self.store = 0;
        self.row_counted = false;
        Ok(self.in_row)
    }

    /// The next cell of the row; `None` when it has no more.
    fn next_cell(&mut self) -> Result<Option<Cell>> {
        if let Some(cell) = self.ahead.take() {
            return Ok(Some(cell));
        }
        // A single family stands on the row by definition.
        let alone = self.stores.len() == 1;
        while let Some(store) = self.stores.get_mut(self.store) {
            if (alone || store.stands_on(&self.row)?)
                && let Some(cell) = store.next_filtered_cell(self.filter.as_mut())?
            {
                return Ok(Some(cell));
            }
            self.store += 1;
        }
        self.in_row = false;
        Ok(None)
    }

    /// True if the filter leaves out the row by its key. HBase asks it again for each part of a row.
    fn filter_row_key(&mut self) -> Result<bool> {
        let Some(filter) = &mut self.filter else { return Ok(false) };
        if !filter.filter_all_remaining() && !filter.filter_row_key(&self.row)? {
            return Ok(false);
        }
        if filter.filter_all_remaining() {
            self.filter_done = true;
            return Ok(true);
        }
        // HBase shows the filter the cells of a row that it has refused, but not in a reversed scan.
        if self.options.reversed {
            self.leave_row()?;
        } else {
            while self.next_cell()?.is_some() {}
        }
        self.reset_filter();
        Ok(true)
    }

    /// Asks the filter about what was gathered of the row; false if the row does not pass. One of which the filter has taken every cell passes (HBase
    /// `FilterWrapper.filterRowCellsWithRet`): SingleColumnValueExcludeFilter does so where its column is the only one of its family.
    fn filter_part(&mut self, cells: &mut Vec<Cell>, full: bool) -> Result<bool> {
        let Some(filter) = &mut self.filter else { return Ok(!cells.is_empty()) };
        if full {
            return match filter.has_filter_row() {
                true => Err(Error::invalid("a filter that decides over whole rows cannot go with a batch")),
                false => Ok(true),
            };
        }
        if cells.is_empty() {
            return Ok(false);
        }
        if filter.has_filter_row() {
            filter.filter_row_cells(cells);
        }
        if !cells.is_empty() && filter.filter_row() {
            cells.clear();
            return Ok(false);
        }
        Ok(true)
    }

    /// Adds the families that the filter did not need (HBase `RegionScannerImpl.populateFromJoinedHeap`). It sees their cells all the same.
    fn take_joined(&mut self, cells: &mut Vec<Cell>) -> Result<()> {
        let essential = cells.len();
        for store in &mut self.joined {
            if store.reach(&self.row)? {
                while let Some(cell) = store.scanner.next_filtered_cell(self.filter.as_mut())? {
                    cells.push(cell);
                }
            }
        }
        if cells.len() > essential {
            cells.sort_by(|left, right| left.family().cmp(right.family()));
        }
        Ok(())
    }

    /// A row is over.
    fn reset_filter(&mut self) {
        if let Some(filter) = &mut self.filter {
            filter.reset();
            self.filter_done = filter.filter_all_remaining();
        }
    }

    fn leave_row(&mut self) -> Result<()> {
        self.in_row = false;
        self.ahead = None;
        for store in &mut self.stores {
            store.skip_row(&self.row)?;
        }
        Ok(())
    }

    /// The rest of the row, up to a batch.
    fn take_part(&mut self) -> Result<RowResult> {
        let whole = self.filter.as_ref().is_some_and(|filter| filter.has_filter_row());
        let batch = self.options.batch.filter(|_| !self.options.first_cell_only).map_or(usize::MAX, |most| most.max(1));
        let most = if self.options.first_cell_only && !whole { 1 } else { batch };
        let mut cells = Vec::new();
        while let Some(cell) = self.next_cell()? {
            cells.push(cell);
            if cells.len() >= most {
                break;
            }
        }
        let full = cells.len() >= batch;
        if self.filter_part(&mut cells, full)? {
            self.take_joined(&mut cells)?;
        }
        if self.options.first_cell_only {
            cells.truncate(1);
            self.leave_row()?;
        } else if self.in_row {
            self.ahead = self.next_cell()?;
        }
        if !self.in_row {
            self.reset_filter();
        }
        Ok(RowResult { partial: self.ahead.is_some(), cells })
    }
}

impl ResultScanner for RegionScanner {
    fn next(&mut self) -> Result<Option<RowResult>> {
        if !self.opened {
            self.open()?;
        }
        loop {
            if !self.in_row && (self.filter_done || !self.next_row()?) {
                return Ok(None);
            }
            if self.filter_row_key()? {
                self.in_row &= !self.filter_done;
                continue;
            }
            let part = self.take_part()?;
            if !part.is_empty() {
                self.rows += u64::from(!self.row_counted);
                self.row_counted = true;
                return Ok(Some(part));
            }
        }
    }
}

fn row_after(row: &[u8]) -> Vec<u8> {
    let mut after = Vec::with_capacity(row.len() + 1);
    after.extend_from_slice(row);
    after.push(0);
    after
}
