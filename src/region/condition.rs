//! Conditions of check-and-mutate, read under the row's lock (HBase `HRegion.checkAndMutateInternal`; hbase.md A7).

use super::Region;
use crate::client::{CompareOperator, Condition, Get, TimeRange};
use crate::error::{Error, Result};
use bytes::Bytes;
use std::cmp::Ordering;

/// What a condition found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// The condition holds.
    pub matches: bool,
    /// The newest timestamp of the cells it looked at: puts that follow are not older (HBASE-14054).
    pub timestamp: Option<i64>,
}

impl Region {
    /// Evaluates a condition on `row`, whose lock the caller holds.
    ///
    /// # Errors
    /// Those of reading; [`Error::InvalidArgument`] for the operator NO_OP where there is a cell to compare.
    pub fn check(&self, row: &Bytes, condition: &Condition, now: i64) -> Result<Checked> {
        match condition {
            Condition::Column { family, qualifier, operator, value, time_range } => {
                let mut get = Get::new(row.clone()).column(family.clone(), qualifier.clone());
                get.time_range = *time_range;
                self.check_column(&get, *operator, value.as_deref(), now)
            }
            Condition::Filter { filter, time_range } => {
                let mut get = Get::new(row.clone()).filter(filter.clone());
                get.time_range = *time_range;
                let found = self.get_locked(&get, now)?;
                // As in HBase the first cell's timestamp counts, not the newest.
                let timestamp = found.cells.first().map(crate::cell::Cell::timestamp);
                Ok(Checked { matches: timestamp.is_some(), timestamp })
            }
            Condition::AllEqual(columns) => self.check_all_equal(row, columns, now),
        }
    }

    fn check_column(&self, get: &Get, operator: CompareOperator, value: Option<&[u8]>, now: i64) -> Result<Checked> {
        let found = self.get_locked(get, now)?;
        let cell = found.cells.first();
        let timestamp = cell.map(crate::cell::Cell::timestamp);
        let supplied = value.filter(|value| !value.is_empty());
        let matches = match (supplied, cell) {
            (None, cell) => {
                let absent = cell.is_none_or(|cell| cell.value().is_empty());
                absent != (operator == CompareOperator::NotEqual)
            }
            (Some(_), None) => false,
            (Some(supplied), Some(cell)) => compare(supplied.cmp(cell.value()), operator)?,
        };
        Ok(Checked { matches, timestamp })
    }

    fn check_all_equal(&self, row: &Bytes, columns: &[(Bytes, Bytes, Option<Bytes>)], now: i64) -> Result<Checked> {
        if columns.is_empty() {
            return Ok(Checked { matches: true, timestamp: None });
        }
        let mut get = Get::new(row.clone());
        get.time_range = TimeRange::ALL;
        for (family, qualifier, _) in columns {
            get.columns.add_column(family.clone(), qualifier.clone());
        }
        let found = self.get_locked(&get, now)?;
        let matches = columns.iter().all(|(family, qualifier, value)| {
            found.cell(family, qualifier).map(crate::cell::Cell::value) == value.as_deref()
        });
        let timestamp = found.cells.iter().map(crate::cell::Cell::timestamp).max();
        Ok(Checked { matches, timestamp })
    }
}

/// `order` is that of the supplied value against the stored one.
fn compare(order: Ordering, operator: CompareOperator) -> Result<bool> {
    Ok(match operator {
        CompareOperator::Less => order.is_lt(),
        CompareOperator::LessOrEqual => order.is_le(),
        CompareOperator::Equal => order.is_eq(),
        CompareOperator::NotEqual => order.is_ne(),
        CompareOperator::GreaterOrEqual => order.is_ge(),
        CompareOperator::Greater => order.is_gt(),
        CompareOperator::NoOp => return Err(Error::invalid("the operator NO_OP compares nothing")),
    })
}
