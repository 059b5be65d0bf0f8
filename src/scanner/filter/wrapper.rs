//! Filters around a filter. What they do not hand on to the inner filter is as in HBase 2.6.4.

use super::{BoxedFilter, CellFilter, ReturnCode};
use crate::cell::Cell;
use crate::error::Result;

/// HBase `SkipFilter`.
pub(super) struct SkipFilter {
    filter: BoxedFilter,
    filter_row: bool,
}

impl SkipFilter {
    pub(super) fn new(filter: BoxedFilter) -> SkipFilter {
        SkipFilter { filter, filter_row: false }
    }
}

impl CellFilter for SkipFilter {
    fn reset(&mut self) {
        self.filter.reset();
        self.filter_row = false;
    }

    fn filter_cell(&mut self, cell: &Cell) -> Result<ReturnCode> {
        let code = self.filter.filter_cell(cell)?;
        self.filter_row |= code != ReturnCode::Include;
        Ok(code)
    }

    fn transform_cell(&self, cell: Cell) -> Cell {
        self.filter.transform_cell(cell)
    }

    fn has_filter_row(&self) -> bool {
        true
    }

    fn filter_row(&mut self) -> bool {
        self.filter_row
    }
}

/// HBase `WhileMatchFilter`.
pub(super) struct WhileMatchFilter {
    filter: BoxedFilter,
    filter_all_remaining: bool,
}

impl WhileMatchFilter {
    pub(super) fn new(filter: BoxedFilter) -> WhileMatchFilter {
        WhileMatchFilter { filter, filter_all_remaining: false }
    }
}

impl CellFilter for WhileMatchFilter {
    fn reset(&mut self) {
        self.filter.reset();
    }

    fn filter_all_remaining(&self) -> bool {
        self.filter_all_remaining || self.filter.filter_all_remaining()
    }

    fn filter_row_key(&mut self, row: &[u8]) -> Result<bool> {
        if self.filter_all_remaining() {
            return Ok(true);
        }
        let filtered = self.filter.filter_row_key(row)?;
        self.filter_all_remaining |= filtered;
        Ok(filtered)
    }

    fn filter_cell(&mut self, cell: &Cell) -> Result<ReturnCode> {
        let code = self.filter.filter_cell(cell)?;
        self.filter_all_remaining |= code != ReturnCode::Include;
        Ok(code)
    }

    fn transform_cell(&self, cell: Cell) -> Cell {
        self.filter.transform_cell(cell)
    }

    fn has_filter_row(&self) -> bool {
        true
    }

    fn filter_row(&mut self) -> bool {
        let filtered = self.filter.filter_row();
        self.filter_all_remaining |= filtered;
        filtered
    }
}
