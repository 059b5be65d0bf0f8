//! Filters that look at values and timestamps, and those that take cells as they come.

use super::comparison::CompiledComparison;
use super::{CellFilter, ReturnCode};
use crate::cell::Cell;
use crate::client::SingleColumnValue;
use crate::error::{Error, Result};
use bytes::Bytes;
use std::collections::{BTreeSet, HashSet};

fn is_of_column(cell: &Cell, family: &[u8], qualifier: &[u8]) -> bool {
    cell.family() == family && cell.qualifier() == qualifier
}

/// HBase `FirstKeyOnlyFilter`.
#[derive(Debug, Default)]
pub(super) struct FirstKeyOnlyFilter {
    found: bool,
}

impl CellFilter for FirstKeyOnlyFilter {
    fn reset(&mut self) {
        self.found = false;
    }

    fn filter_cell(&mut self, _cell: &Cell) -> Result<ReturnCode> {
        let found = std::mem::replace(&mut self.found, true);
        Ok(if found { ReturnCode::NextRow } else { ReturnCode::Include })
    }
}

/// HBase `KeyOnlyFilter`.
#[derive(Debug)]
pub(super) struct KeyOnlyFilter {
    pub(super) length_as_value: bool,
}

impl CellFilter for KeyOnlyFilter {
    fn transform_cell(&self, cell: Cell) -> Cell {
        // A value has at most i32::MAX bytes.
        let length = u32::try_from(cell.value_len()).unwrap_or(u32::MAX).to_be_bytes();
        let value: &[u8] = if self.length_as_value { &length } else { b"" };
        Cell::new(cell.row(), cell.family(), cell.qualifier(), cell.timestamp(), cell.cell_type(), value)
    }
}

/// HBase `TimestampsFilter`.
#[derive(Debug)]
pub(super) struct TimestampsFilter {
    timestamps: BTreeSet<i64>,
    min: i64,
}

impl TimestampsFilter {
    pub(super) fn new(timestamps: &BTreeSet<i64>) -> Result<TimestampsFilter> {
        let min = timestamps.first().copied().unwrap_or(i64::MAX);
        if min < 0 {
            return Err(Error::invalid(format!("the timestamp {min} is negative")));
        }
        Ok(TimestampsFilter { timestamps: timestamps.clone(), min })
    }
}

impl CellFilter for TimestampsFilter {
    fn filter_cell(&mut self, cell: &Cell) -> Result<ReturnCode> {
        let timestamp = cell.timestamp();
        Ok(if self.timestamps.contains(&timestamp) {
            ReturnCode::Include
        } else if timestamp < self.min {
            ReturnCode::NextColumn
        } else {
            ReturnCode::Skip
        })
    }

    fn gives_hints(&self) -> bool {
        true
    }
}

/// HBase `ValueFilter`.
#[derive(Debug)]
pub(super) struct ValueFilter {
    pub(super) comparison: CompiledComparison,
}

impl CellFilter for ValueFilter {
    fn filter_cell(&mut self, cell: &Cell) -> Result<ReturnCode> {
        Ok(if self.comparison.rejects(cell.value())? { ReturnCode::Skip } else { ReturnCode::Include })
    }
}

/// HBase `SingleColumnValueFilter` and `SingleColumnValueExcludeFilter`.
#[derive(Debug)]
pub(super) struct SingleColumnValueFilter {
    condition: SingleColumnValue,
    comparison: CompiledComparison,
    found: bool,
    matched: bool,
}

impl SingleColumnValueFilter {
    pub(super) fn new(condition: &SingleColumnValue) -> Result<SingleColumnValueFilter> {
        let comparison = CompiledComparison::new(&condition.comparison)?;
        if !comparison.compares() {
            return Err(Error::invalid("the operator NO_OP compares nothing"));
        }
        Ok(SingleColumnValueFilter { condition: condition.clone(), comparison, found: false, matched: false })
    }

    fn is_of_column(&self, cell: &Cell) -> bool {
        is_of_column(cell, &self.condition.family, &self.condition.qualifier)
    }
}

impl CellFilter for SingleColumnValueFilter {
    fn reset(&mut self) {
        self.found = false;
        self.matched = false;
    }

    fn filter_row_key(&mut self, _row: &[u8]) -> Result<bool> {
        Ok(false)
    }

    fn filter_cell(&mut self, cell: &Cell) -> Result<ReturnCode> {
        if self.matched {
            return Ok(ReturnCode::Include);
        }
        let latest_only = self.condition.latest_version_only;
        if latest_only && self.found {
            return Ok(ReturnCode::NextRow);
        }
        if !self.is_of_column(cell) {
            return Ok(ReturnCode::Include);
        }
        self.found = true;
        self.matched = !self.comparison.rejects(cell.value())?;
        Ok(if latest_only && !self.matched { ReturnCode::NextRow } else { ReturnCode::Include })
    }

    fn filter_row_cells(&mut self, cells: &mut Vec<Cell>) {
        if self.condition.exclude {
            cells.retain(|cell| !self.is_of_column(cell));
        }
    }

    fn has_filter_row(&self) -> bool {
        true
    }

    fn filter_row(&mut self) -> bool {
        if self.found { !self.matched } else { self.condition.filter_if_missing }
    }
}

/// HBase `ColumnValueFilter`.
#[derive(Debug)]
pub(super) struct ColumnValueFilter {
    family: Bytes,
    qualifier: Bytes,
    comparison: CompiledComparison,
    found: bool,
}

impl ColumnValueFilter {
    pub(super) fn new(family: &Bytes, qualifier: &Bytes, comparison: CompiledComparison) -> ColumnValueFilter {
        ColumnValueFilter { family: family.clone(), qualifier: qualifier.clone(), comparison, found: false }
    }
}

impl CellFilter for ColumnValueFilter {
    fn reset(&mut self) {
        self.found = false;
    }

    fn filter_cell(&mut self, cell: &Cell) -> Result<ReturnCode> {
        if !is_of_column(cell, &self.family, &self.qualifier) {
            return Ok(if self.found { ReturnCode::NextRow } else { ReturnCode::NextColumn });
        }
        self.found = true;
        Ok(if self.comparison.rejects(cell.value())? { ReturnCode::Skip } else { ReturnCode::Include })
    }
}

/// HBase `DependentColumnFilter`.
#[derive(Debug)]
pub(super) struct DependentColumnFilter {
    family: Bytes,
    qualifier: Bytes,
    drop_dependent_column: bool,
    comparison: Option<CompiledComparison>,
    timestamps: HashSet<i64>,
}

impl DependentColumnFilter {
    pub(super) fn new(
        family: &Bytes,
        qualifier: &Bytes,
        drop_dependent_column: bool,
        comparison: Option<CompiledComparison>,
    ) -> DependentColumnFilter {
        let (family, qualifier) = (family.clone(), qualifier.clone());
        DependentColumnFilter { family, qualifier, drop_dependent_column, comparison, timestamps: HashSet::new() }
    }
}

impl CellFilter for DependentColumnFilter {
    fn reset(&mut self) {
        self.timestamps.clear();
    }

    fn filter_cell(&mut self, cell: &Cell) -> Result<ReturnCode> {
        if !is_of_column(cell, &self.family, &self.qualifier) {
            return Ok(ReturnCode::Include);
        }
        if let Some(comparison) = &self.comparison
            && comparison.rejects(cell.value())?
        {
            return Ok(ReturnCode::Skip);
        }
        self.timestamps.insert(cell.timestamp());
        Ok(if self.drop_dependent_column { ReturnCode::Skip } else { ReturnCode::Include })
    }

    fn filter_row_cells(&mut self, cells: &mut Vec<Cell>) {
        cells.retain(|cell| self.timestamps.contains(&cell.timestamp()));
    }

    fn has_filter_row(&self) -> bool {
        true
    }
}
