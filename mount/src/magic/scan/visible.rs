//! A scan as one sees it who may not see every cell: filters and limits apply to what is left.
//!
//! The engine knows neither secrets nor cells that the mount hides. Where there are any, rows come whole and unfiltered from it; the filter sees
//! the visible cells only, so that no filter can be used to guess at others, and `limit=` counts the rows that remain.

use crate::magic::access::Viewer;
use crate::magic::hooks::MountHooks;
use cellfs::Result;
use cellfs::cell::{Cell, compare};
use cellfs::client::{ResultScanner, RowResult, Scan, Table};
use cellfs::scanner::{BoxedFilter, ReturnCode, compile_filter};
use parking_lot::Mutex;
use std::sync::Arc;

/// Who looks, and what is hidden from everybody.
#[derive(Clone)]
pub(super) struct Visibility {
    pub(super) table: u64,
    pub(super) hooks: Option<Arc<dyn MountHooks>>,
    pub(super) viewer: Option<Arc<Mutex<Viewer>>>,
}

impl Visibility {
    /// True if every cell is visible.
    pub(super) fn is_full(&self) -> bool {
        self.hooks.is_none() && self.viewer.is_none()
    }

    fn shows(&self, cell: &Cell) -> bool {
        let hides =
            |hooks: &Arc<dyn MountHooks>| hooks.is_hidden(self.table, cell.row(), cell.family(), cell.qualifier());
        let may_read = |viewer: &Arc<Mutex<Viewer>>| viewer.lock().may_read(cell);
        !self.hooks.as_ref().is_some_and(hides) && self.viewer.as_ref().is_none_or(may_read)
    }
}

/// Opens a scan of what is visible.
pub(super) fn open(table: &dyn Table, scan: &Scan, visibility: &Visibility) -> Result<Box<dyn ResultScanner>> {
    if visibility.is_full() {
        return table.scan(scan);
    }
    let mut whole = scan.clone();
    (whole.limit, whole.first_cell_only) = (None, false);
    let filter = match whole.filter.take() {
        None => None,
        Some(filter) => {
            // Versions are counted behind the filter.
            (whole.batch, whole.max_versions) = (None, u32::MAX);
            Some(compile_filter(&filter, scan.reversed)?)
        }
    };
    Ok(Box::new(VisibleScanner {
        scanner: table.scan(&whole)?,
        visibility: visibility.clone(),
        filter,
        max_versions: scan.max_versions,
        rows_left: scan.limit.unwrap_or(u64::MAX),
        in_row: false,
    }))
}

struct VisibleScanner {
    scanner: Box<dyn ResultScanner>,
    visibility: Visibility,
    filter: Option<BoxedFilter>,
    max_versions: u32,
    rows_left: u64,
    /// A part of the row has been given out, and more is to come.
    in_row: bool,
}

impl ResultScanner for VisibleScanner {
    fn next(&mut self) -> Result<Option<RowResult>> {
        loop {
            if !self.in_row && (self.rows_left == 0 || self.filter.as_ref().is_some_and(|f| f.filter_all_remaining())) {
                return Ok(None);
            }
            let Some(RowResult { mut cells, partial }) = self.scanner.next()? else { return Ok(None) };
            cells.retain(|cell| self.visibility.shows(cell));
            if let Some(filter) = &mut self.filter {
                cells = filter_row(filter, cells, self.max_versions)?;
            }
            let begins = !self.in_row && !cells.is_empty();
            if !begins && !self.in_row {
                continue;
            }
            self.rows_left -= u64::from(begins);
            self.in_row = partial;
            return Ok(Some(RowResult { cells, partial }));
        }
    }
}

/// What a filter leaves of a whole row.
fn filter_row(filter: &mut BoxedFilter, cells: Vec<Cell>, max_versions: u32) -> Result<Vec<Cell>> {
    let Some(first) = cells.first() else { return Ok(cells) };
    let mut passed: Vec<Cell> = Vec::new();
    if !filter.filter_row_key(first.row())? {
        // Of which cell on the filter is asked again, and how many versions of the column have passed.
        let mut wanted: Option<(Cell, ReturnCode)> = None;
        let mut versions = 0;
        let mut column: Option<Cell> = None;
        for cell in cells {
            if wanted.as_ref().is_some_and(|(from, code)| is_passed_over(&cell, from, *code)) {
                continue;
            }
            let code = filter.filter_cell(&cell)?;
            let goes_to = match code {
                ReturnCode::SeekNextUsingHint => filter.next_cell_hint(&cell),
                ReturnCode::Include | ReturnCode::Skip => None,
                _ => Some(cell.clone()),
            };
            wanted = goes_to.map(|from| (from, code));
            if !code.includes() {
                continue;
            }
            let same = |column: &Cell| column.family() == cell.family() && column.qualifier() == cell.qualifier();
            if !column.as_ref().is_some_and(same) {
                (versions, column) = (0, Some(cell.clone()));
            }
            versions += 1;
            if versions <= max_versions {
                passed.push(filter.transform_cell(cell));
            }
        }
        if !passed.is_empty() {
            filter.filter_row_cells(&mut passed);
        }
        if !passed.is_empty() && filter.filter_row() {
            passed.clear();
        }
    }
    filter.reset();
    Ok(passed)
}

/// True if a filter that said `code` does not want to see `cell`.
fn is_passed_over(cell: &Cell, from: &Cell, code: ReturnCode) -> bool {
    match code {
        ReturnCode::SeekNextUsingHint => compare(cell, from).is_lt() && cell.family() == from.family(),
        ReturnCode::NextRow | ReturnCode::IncludeAndSeekNextRow => cell.family() == from.family(),
        ReturnCode::NextColumn | ReturnCode::IncludeAndNextColumn => {
            cell.family() == from.family() && cell.qualifier() == from.qualifier()
        }
        ReturnCode::Include | ReturnCode::Skip => false,
    }
}
