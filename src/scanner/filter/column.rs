//! Filters that look at families and qualifiers, or count columns.

use super::comparison::CompiledComparison;
use super::{CellFilter, ReturnCode};
use crate::cell::Cell;
use crate::error::Result;
use bytes::Bytes;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;

fn first_of_column(cell: &Cell, qualifier: &[u8]) -> Option<Cell> {
    Some(Cell::first_on_column(cell.row(), cell.family(), qualifier))
}

/// HBase `FamilyFilter`.
#[derive(Debug)]
pub(super) struct FamilyFilter {
    pub(super) comparison: CompiledComparison,
}

impl CellFilter for FamilyFilter {
    fn filter_cell(&mut self, cell: &Cell) -> Result<ReturnCode> {
        Ok(if self.comparison.rejects(cell.family())? { ReturnCode::NextRow } else { ReturnCode::Include })
    }
}

/// HBase `QualifierFilter`.
#[derive(Debug)]
pub(super) struct QualifierFilter {
    pub(super) comparison: CompiledComparison,
}

impl CellFilter for QualifierFilter {
    fn filter_cell(&mut self, cell: &Cell) -> Result<ReturnCode> {
        Ok(if self.comparison.rejects(cell.qualifier())? { ReturnCode::Skip } else { ReturnCode::Include })
    }
}

/// HBase `ColumnPrefixFilter`.
#[derive(Debug)]
pub(super) struct ColumnPrefixFilter {
    pub(super) prefix: Bytes,
}

impl CellFilter for ColumnPrefixFilter {
    fn filter_cell(&mut self, cell: &Cell) -> Result<ReturnCode> {
        let qualifier = cell.qualifier();
        Ok(match qualifier.get(..self.prefix.len()).unwrap_or(qualifier).cmp(&self.prefix) {
            Ordering::Less => ReturnCode::SeekNextUsingHint,
            Ordering::Equal => ReturnCode::Include,
            Ordering::Greater => ReturnCode::NextRow,
        })
    }

    fn next_cell_hint(&self, cell: &Cell) -> Option<Cell> {
        first_of_column(cell, &self.prefix)
    }

    fn gives_hints(&self) -> bool {
        true
    }
}

/// HBase `MultipleColumnPrefixFilter`.
#[derive(Debug)]
pub(super) struct MultipleColumnPrefixFilter {
    prefixes: BTreeSet<Bytes>,
    hint: Option<Bytes>,
}

impl MultipleColumnPrefixFilter {
    pub(super) fn new(prefixes: &BTreeSet<Bytes>) -> MultipleColumnPrefixFilter {
        MultipleColumnPrefixFilter { prefixes: prefixes.clone(), hint: None }
    }
}

impl CellFilter for MultipleColumnPrefixFilter {
    /// Only the largest prefix that is not after the qualifier is tried, as in HBase: of two of which one begins the other, the shorter one does
    /// not let through what comes after the longer.
    fn filter_cell(&mut self, cell: &Cell) -> Result<ReturnCode> {
        if self.prefixes.is_empty() {
            return Ok(ReturnCode::Include);
        }
        let qualifier = cell.qualifier();
        let before = self.prefixes.range::<[u8], _>((Bound::Unbounded, Bound::Included(qualifier))).next_back();
        if before.is_some_and(|prefix| qualifier.starts_with(prefix)) {
            return Ok(ReturnCode::Include);
        }
        match self.prefixes.range::<[u8], _>((Bound::Excluded(qualifier), Bound::Unbounded)).next() {
            None => Ok(ReturnCode::NextRow),
            Some(next) => {
                self.hint = Some(next.clone());
                Ok(ReturnCode::SeekNextUsingHint)
            }
        }
    }

    fn next_cell_hint(&self, cell: &Cell) -> Option<Cell> {
        first_of_column(cell, self.hint.as_ref()?)
    }

    fn gives_hints(&self) -> bool {
        true
    }
}

/// HBase `ColumnRangeFilter`.
#[derive(Debug)]
pub(super) struct ColumnRangeFilter {
    pub(super) min: Option<Bytes>,
    pub(super) min_inclusive: bool,
    pub(super) max: Option<Bytes>,
    pub(super) max_inclusive: bool,
}

impl CellFilter for ColumnRangeFilter {
    fn filter_cell(&mut self, cell: &Cell) -> Result<ReturnCode> {
        let qualifier = cell.qualifier();
        let against = |border: &Option<Bytes>, open| border.as_ref().map_or(open, |border| qualifier.cmp(border));
        match against(&self.min, Ordering::Greater) {
            Ordering::Less => return Ok(ReturnCode::SeekNextUsingHint),
            Ordering::Equal if !self.min_inclusive => return Ok(ReturnCode::NextColumn),
            _ => {}
        }
        Ok(match against(&self.max, Ordering::Less) {
            Ordering::Less => ReturnCode::Include,
            Ordering::Equal if self.max_inclusive => ReturnCode::Include,
            _ => ReturnCode::NextRow,
        })
    }

    fn next_cell_hint(&self, cell: &Cell) -> Option<Cell> {
        first_of_column(cell, self.min.as_deref().unwrap_or_default())
    }

    fn gives_hints(&self) -> bool {
        true
    }
}

/// HBase `ColumnPaginationFilter` with a number to skip. It counts what it is shown, so a list must not ask it for hints beyond its turn.
#[derive(Debug)]
pub(super) struct ColumnPaginationFilter {
    limit: u64,
    offset: u64,
    count: u64,
}

impl ColumnPaginationFilter {
    pub(super) fn new(limit: u32, offset: u32) -> ColumnPaginationFilter {
        ColumnPaginationFilter { limit: u64::from(limit), offset: u64::from(offset), count: 0 }
    }
}

impl CellFilter for ColumnPaginationFilter {
    fn reset(&mut self) {
        self.count = 0;
    }

    fn filter_cell(&mut self, _cell: &Cell) -> Result<ReturnCode> {
        if self.count >= self.offset + self.limit {
            return Ok(ReturnCode::NextRow);
        }
        self.count += 1;
        Ok(if self.count <= self.offset { ReturnCode::NextColumn } else { ReturnCode::IncludeAndNextColumn })
    }
}

/// HBase `ColumnPaginationFilter` with a column to begin at.
#[derive(Debug)]
pub(super) struct ColumnPaginationFromFilter {
    limit: u32,
    column: Bytes,
    count: u32,
}

impl ColumnPaginationFromFilter {
    pub(super) fn new(limit: u32, column: Bytes) -> ColumnPaginationFromFilter {
        ColumnPaginationFromFilter { limit, column, count: 0 }
    }
}

impl CellFilter for ColumnPaginationFromFilter {
    fn reset(&mut self) {
        self.count = 0;
    }

    fn filter_cell(&mut self, cell: &Cell) -> Result<ReturnCode> {
        if self.count >= self.limit {
            return Ok(ReturnCode::NextRow);
        }
        if self.count == 0 && *cell.qualifier() < self.column[..] {
            return Ok(ReturnCode::SeekNextUsingHint);
        }
        self.count += 1;
        Ok(ReturnCode::IncludeAndNextColumn)
    }

    fn next_cell_hint(&self, cell: &Cell) -> Option<Cell> {
        first_of_column(cell, &self.column)
    }
}

/// HBase `ColumnCountGetFilter`.
#[derive(Debug)]
pub(super) struct ColumnCountGetFilter {
    limit: u64,
    count: u64,
}

impl ColumnCountGetFilter {
    pub(super) fn new(limit: u32) -> ColumnCountGetFilter {
        ColumnCountGetFilter { limit: u64::from(limit), count: 0 }
    }
}

impl CellFilter for ColumnCountGetFilter {
    fn reset(&mut self) {
        self.count = 0;
    }

    fn filter_all_remaining(&self) -> bool {
        self.count > self.limit
    }

    fn filter_cell(&mut self, _cell: &Cell) -> Result<ReturnCode> {
        self.count += 1;
        Ok(if self.filter_all_remaining() { ReturnCode::NextColumn } else { ReturnCode::IncludeAndNextColumn })
    }
}
