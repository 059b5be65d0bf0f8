//! Filters of gets and scans, under HBase's names (package `org.apache.hadoop.hbase.filter`).
//!
//! These are descriptions; the scanner makes of one what judges cells. A filter sees what deletes, time to live and the family's VERSIONS let
//! through; the request's versions are counted behind it (HBASE-17125).

mod arguments;
mod comparator;
mod parse;
#[cfg(test)]
mod parse_tests;

pub use comparator::{BitOperator, Comparator, Comparison};

use bytes::Bytes;
use std::collections::BTreeSet;

/// How [`Filter::List`] joins its filters (HBase `FilterList.Operator`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOperator {
    /// And.
    MustPassAll,
    /// Or.
    MustPassOne,
}

/// A range of rows of [`Filter::MultiRowRange`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterRowRange {
    /// The first row; empty = the first of all.
    pub start: Bytes,
    /// Whether `start` itself is inside.
    pub include_start: bool,
    /// The last row; empty = the last of all.
    pub stop: Bytes,
    /// Whether `stop` itself is inside.
    pub include_stop: bool,
}

/// A condition on one column that decides over the row (HBase `SingleColumnValueFilter`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SingleColumnValue {
    /// The family.
    pub family: Bytes,
    /// The qualifier. The scan must read the column, or it counts as missing.
    pub qualifier: Bytes,
    /// What its value must be.
    pub comparison: Comparison,
    /// Whether rows without the column are left out; default false.
    pub filter_if_missing: bool,
    /// Whether only the newest version that the scan sees counts, or any; default true.
    pub latest_version_only: bool,
    /// Whether the column is left out of the result (HBase `SingleColumnValueExcludeFilter`); default false.
    pub exclude: bool,
}

impl SingleColumnValue {
    /// The condition with HBase's defaults.
    pub fn new(family: impl Into<Bytes>, qualifier: impl Into<Bytes>, comparison: Comparison) -> SingleColumnValue {
        SingleColumnValue {
            family: family.into(),
            qualifier: qualifier.into(),
            comparison,
            filter_if_missing: false,
            latest_version_only: true,
            exclude: false,
        }
    }
}

/// What a get or scan leaves out. Each is HBase's filter of the same name with `Filter` behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Rows that begin so; ends the scan after them.
    Prefix {
        /// The first bytes.
        prefix: Bytes,
    },
    /// The first cell of each row.
    FirstKeyOnly,
    /// Cells without their values.
    KeyOnly {
        /// In place of the value its length, four bytes big-endian.
        length_as_value: bool,
    },
    /// Columns whose qualifiers begin so.
    ColumnPrefix {
        /// The first bytes.
        prefix: Bytes,
    },
    /// Columns whose qualifiers begin as one of these.
    MultipleColumnPrefix {
        /// First bytes; none = all columns.
        prefixes: BTreeSet<Bytes>,
    },
    /// Columns of a range of qualifiers.
    ColumnRange {
        /// The first; `None` = from the start.
        min: Option<Bytes>,
        /// Whether `min` itself passes.
        min_inclusive: bool,
        /// The last; `None` = to the end.
        max: Option<Bytes>,
        /// Whether `max` itself passes.
        max_inclusive: bool,
    },
    /// So many columns of each row after the first `offset`, one version each.
    ColumnPagination {
        /// Columns at most.
        limit: u32,
        /// Columns to skip.
        offset: u32,
    },
    /// So many columns of each row from a qualifier on, one version each.
    ColumnPaginationFrom {
        /// Columns at most.
        limit: u32,
        /// The first qualifier.
        column: Bytes,
    },
    /// The first columns of a row, one version each: for gets. A scan gives up a family at the first row that has more, as in HBase.
    ColumnCountGet {
        /// Columns at most.
        limit: u32,
    },
    /// So many rows; ends the scan after them.
    Page {
        /// Rows at most.
        size: u64,
    },
    /// Rows up to this one, itself included; ends the scan after it.
    InclusiveStop {
        /// The last row.
        row: Bytes,
    },
    /// Cells of exactly these timestamps.
    Timestamps {
        /// The timestamps, not negative.
        timestamps: BTreeSet<i64>,
    },
    /// Rows whose key compares so.
    Row(Comparison),
    /// Families whose name compares so.
    Family(Comparison),
    /// Columns whose qualifier compares so.
    Qualifier(Comparison),
    /// Cells whose value compares so.
    Value(Comparison),
    /// Rows in which one column compares so.
    SingleColumnValue(SingleColumnValue),
    /// Cells of one column whose value compares so, and no others.
    ColumnValue {
        /// The family.
        family: Bytes,
        /// The qualifier.
        qualifier: Bytes,
        /// What the value must be.
        comparison: Comparison,
    },
    /// Cells with the timestamp of a cell of one column.
    DependentColumn {
        /// The column's family.
        family: Bytes,
        /// The column's qualifier.
        qualifier: Bytes,
        /// Whether the column itself is left out.
        drop_dependent_column: bool,
        /// What the column's value must be to count.
        comparison: Option<Comparison>,
    },
    /// Rows in one of several ranges.
    MultiRowRange {
        /// The ranges.
        ranges: Vec<FilterRowRange>,
    },
    /// Leaves out a row if the inner filter would leave out any of its cells.
    Skip(Box<Filter>),
    /// Ends the scan where the inner filter would leave out something.
    WhileMatch(Box<Filter>),
    /// Several filters as one.
    List {
        /// And, or.
        operator: ListOperator,
        /// The filters, asked in this order.
        filters: Vec<Filter>,
    },
}

impl Filter {
    /// Filters of which all must pass.
    pub fn all(filters: impl IntoIterator<Item = Filter>) -> Filter {
        Filter::List { operator: ListOperator::MustPassAll, filters: filters.into_iter().collect() }
    }

    /// Filters of which one must pass.
    pub fn any(filters: impl IntoIterator<Item = Filter>) -> Filter {
        Filter::List { operator: ListOperator::MustPassOne, filters: filters.into_iter().collect() }
    }

    /// True if the filter decides over whole rows (HBase `Filter.hasFilterRow`): the scanner must hold all cells of a row before it can give any,
    /// and [`crate::client::Scan::batch`] cannot cut rows.
    pub fn has_filter_row(&self) -> bool {
        match self {
            Filter::Page { .. }
            | Filter::SingleColumnValue(_)
            | Filter::DependentColumn { .. }
            | Filter::Skip(_)
            | Filter::WhileMatch(_) => true,
            Filter::List { filters, .. } => filters.iter().any(Filter::has_filter_row),
            _ => false,
        }
    }
}
