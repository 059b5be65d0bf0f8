//! Filters that look at row keys, or count rows.

use super::comparison::CompiledComparison;
use super::{CellFilter, ReturnCode};
use crate::cell::Cell;
use crate::client::FilterRowRange;
use crate::error::{Error, Result};
use bytes::Bytes;
use std::cmp::Ordering;

/// HBase `PrefixFilter`.
///
/// HBase 2.6.4 compares a key shorter than the prefix together with the bytes that follow it in memory; here it is compared by itself.
#[derive(Debug)]
pub(super) struct PrefixFilter {
    prefix: Bytes,
    reversed: bool,
    /// Where rows of the prefix begin, in the direction of the scan.
    hint: Cell,
    passed_prefix: bool,
    filter_row: bool,
    provide_hint: bool,
}

impl PrefixFilter {
    pub(super) fn new(prefix: &Bytes, reversed: bool) -> PrefixFilter {
        let mut first = prefix.to_vec();
        if reversed && let Some(byte) = first.iter_mut().rev().find(|byte| **byte != u8::MAX) {
            *byte += 1;
        }
        PrefixFilter {
            prefix: prefix.clone(),
            reversed,
            hint: Cell::first_on_row(&first),
            passed_prefix: false,
            filter_row: true,
            provide_hint: false,
        }
    }
}

impl CellFilter for PrefixFilter {
    fn reset(&mut self) {
        self.filter_row = true;
    }

    fn filter_all_remaining(&self) -> bool {
        self.passed_prefix
    }

    fn filter_row_key(&mut self, row: &[u8]) -> Result<bool> {
        if self.passed_prefix {
            return Ok(true);
        }
        let order = row.get(..self.prefix.len()).unwrap_or(row).cmp(&self.prefix);
        let order = if self.reversed { order.reverse() } else { order };
        self.passed_prefix |= order == Ordering::Greater;
        self.filter_row = order != Ordering::Equal;
        // Rows before the prefix are let in for the sake of the hint.
        self.provide_hint = order == Ordering::Less;
        Ok(self.passed_prefix)
    }

    fn filter_cell(&mut self, _cell: &Cell) -> Result<ReturnCode> {
        Ok(match (self.provide_hint, self.filter_row) {
            (true, _) => ReturnCode::SeekNextUsingHint,
            (false, true) => ReturnCode::NextRow,
            (false, false) => ReturnCode::Include,
        })
    }

    fn filter_row(&mut self) -> bool {
        self.filter_row
    }

    fn next_cell_hint(&self, _cell: &Cell) -> Option<Cell> {
        Some(self.hint.clone())
    }

    fn gives_hints(&self) -> bool {
        true
    }
}

/// HBase `InclusiveStopFilter`.
#[derive(Debug)]
pub(super) struct InclusiveStopFilter {
    row: Bytes,
    reversed: bool,
    done: bool,
}

impl InclusiveStopFilter {
    pub(super) fn new(row: Bytes, reversed: bool) -> InclusiveStopFilter {
        InclusiveStopFilter { row, reversed, done: false }
    }
}

impl CellFilter for InclusiveStopFilter {
    fn filter_all_remaining(&self) -> bool {
        self.done
    }

    fn filter_row_key(&mut self, row: &[u8]) -> Result<bool> {
        if !self.done {
            let order = row.cmp(&self.row);
            self.done = if self.reversed { order.is_lt() } else { order.is_gt() };
        }
        Ok(self.done)
    }

    fn filter_cell(&mut self, _cell: &Cell) -> Result<ReturnCode> {
        Ok(if self.done { ReturnCode::NextRow } else { ReturnCode::Include })
    }
}

/// HBase `PageFilter`.
#[derive(Debug)]
pub(super) struct PageFilter {
    size: u64,
    rows_accepted: u64,
}

impl PageFilter {
    pub(super) fn new(size: u64) -> PageFilter {
        PageFilter { size, rows_accepted: 0 }
    }
}

impl CellFilter for PageFilter {
    fn filter_all_remaining(&self) -> bool {
        self.rows_accepted >= self.size
    }

    fn has_filter_row(&self) -> bool {
        true
    }

    fn filter_row(&mut self) -> bool {
        self.rows_accepted += 1;
        self.rows_accepted > self.size
    }
}

/// HBase `RowFilter`.
#[derive(Debug)]
pub(super) struct RowFilter {
    comparison: CompiledComparison,
    filter_out_row: bool,
}

impl RowFilter {
    pub(super) fn new(comparison: CompiledComparison) -> RowFilter {
        RowFilter { comparison, filter_out_row: false }
    }
}

impl CellFilter for RowFilter {
    fn reset(&mut self) {
        self.filter_out_row = false;
    }

    fn filter_row_key(&mut self, row: &[u8]) -> Result<bool> {
        self.filter_out_row |= self.comparison.rejects(row)?;
        Ok(self.filter_out_row)
    }

    fn filter_cell(&mut self, _cell: &Cell) -> Result<ReturnCode> {
        Ok(if self.filter_out_row { ReturnCode::NextRow } else { ReturnCode::Include })
    }

    fn filter_row(&mut self) -> bool {
        self.filter_out_row
    }
}

/// HBase `MultiRowRangeFilter`.
#[derive(Debug)]
pub(super) struct MultiRowRangeFilter {
    /// In the direction of the scan.
    ranges: Vec<FilterRowRange>,
    reversed: bool,
    inside: bool,
    hint: Option<Cell>,
    done: bool,
}

impl MultiRowRangeFilter {
    pub(super) fn new(ranges: &[FilterRowRange], reversed: bool) -> Result<MultiRowRangeFilter> {
        let empty = |range: &&FilterRowRange| {
            let order = range.start.cmp(&range.stop);
            let both = !range.start.is_empty() && !range.stop.is_empty();
            both && (order.is_gt() || order.is_eq() && !range.include_stop)
        };
        if ranges.is_empty() || ranges.iter().any(|range| empty(&range)) {
            return Err(Error::invalid("MultiRowRangeFilter takes ranges, each with a row in it"));
        }
        let mut ranges = ranges.to_vec();
        ranges.sort_by(|left, right| left.start.cmp(&right.start));
        Ok(MultiRowRangeFilter { ranges, reversed, inside: false, hint: None, done: false })
    }
}

fn is_before_range(row: &[u8], range: &FilterRowRange) -> bool {
    match row.cmp(&range.start) {
        Ordering::Less => true,
        Ordering::Equal => !range.include_start,
        Ordering::Greater => false,
    }
}

fn is_after_range(row: &[u8], range: &FilterRowRange) -> bool {
    match row.cmp(&range.stop) {
        _ if range.stop.is_empty() => false,
        Ordering::Greater => true,
        Ordering::Equal => !range.include_stop,
        Ordering::Less => false,
    }
}

impl CellFilter for MultiRowRangeFilter {
    fn filter_all_remaining(&self) -> bool {
        self.done
    }

    fn filter_row_key(&mut self, row: &[u8]) -> Result<bool> {
        self.inside = self.ranges.iter().any(|range| !is_before_range(row, range) && !is_after_range(row, range));
        // The nearest border ahead; ranges may overlap.
        let ahead = if self.reversed {
            let before = self.ranges.iter().filter(|range| is_after_range(row, range));
            before.map(|range| &range.stop).max()
        } else {
            let after = self.ranges.iter().filter(|range| is_before_range(row, range));
            after.map(|range| &range.start).min()
        };
        self.done = !self.inside && ahead.is_none();
        self.hint = ahead.map(|row| Cell::first_on_row(row));
        Ok(self.done)
    }

    fn filter_cell(&mut self, _cell: &Cell) -> Result<ReturnCode> {
        Ok(match (self.inside, self.done) {
            (true, _) => ReturnCode::Include,
            (false, true) => ReturnCode::NextRow,
            (false, false) => ReturnCode::SeekNextUsingHint,
        })
    }

    fn next_cell_hint(&self, _cell: &Cell) -> Option<Cell> {
        self.hint.clone()
    }

    fn gives_hints(&self) -> bool {
        true
    }
}
