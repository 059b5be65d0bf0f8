//! Reading one row, and what reads return.

use super::filter::Filter;
use crate::cell::Cell;
use crate::error::{Error, Result};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// A half-open range of timestamps, `[min, max)` (HBase `TimeRange`). A `max` of `i64::MAX` includes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    min: i64,
    max: i64,
}

impl TimeRange {
    /// Every timestamp.
    pub const ALL: TimeRange = TimeRange { min: 0, max: i64::MAX };

    /// `[min, max)`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if a bound is negative or max < min.
    pub fn new(min: i64, max: i64) -> Result<TimeRange> {
        if min < 0 || max < 0 || max < min {
            return Err(Error::invalid(format!("the time range {min}..{max} is negative or ends before it begins")));
        }
        Ok(TimeRange { min, max })
    }

    /// The first timestamp inside.
    pub fn min(&self) -> i64 {
        self.min
    }

    /// The first timestamp after.
    pub fn max(&self) -> i64 {
        self.max
    }

    /// True if every timestamp is inside.
    pub fn is_all(&self) -> bool {
        *self == TimeRange::ALL
    }

    /// True if `timestamp` is inside.
    pub fn contains(&self, timestamp: i64) -> bool {
        self.max == i64::MAX && (self.min == 0 || timestamp >= self.min)
            || timestamp >= self.min && timestamp < self.max
    }
}

impl Default for TimeRange {
    fn default() -> Self {
        TimeRange::ALL
    }
}

/// Which columns to read: nothing named means all families and columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnSelection {
    /// Family to its qualifiers; `None` = the whole family.
    pub families: BTreeMap<Bytes, Option<BTreeSet<Bytes>>>,
}

impl ColumnSelection {
    /// True if everything is read.
    pub fn is_all(&self) -> bool {
        self.families.is_empty()
    }

    /// Adds a whole family.
    pub fn add_family(&mut self, family: impl Into<Bytes>) {
        self.families.insert(family.into(), None);
    }

    /// Adds one column; as in HBase, after a whole family was added this narrows it again.
    pub fn add_column(&mut self, family: impl Into<Bytes>, qualifier: impl Into<Bytes>) {
        self.families.entry(family.into()).or_default().get_or_insert_with(BTreeSet::new).insert(qualifier.into());
    }
}

/// Reads one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Get {
    /// The row key.
    pub row: Bytes,
    /// The columns.
    pub columns: ColumnSelection,
    /// Versions per column, at most the family's VERSIONS; default 1.
    pub max_versions: u32,
    /// Timestamps to look at, applied before versions are counted.
    pub time_range: TimeRange,
    /// Time ranges of single families in place of `time_range` (HBASE-14355).
    pub family_time_ranges: BTreeMap<Bytes, TimeRange>,
    /// Cells per family to return at most.
    pub store_limit: Option<usize>,
    /// Cells per family to skip first.
    pub store_offset: usize,
    /// What to leave out.
    pub filter: Option<Filter>,
    /// False keeps blocks that are read out of the block cache.
    pub cache_blocks: bool,
}

impl Get {
    /// The one column that is asked for, where all that is wanted is its newest version.
    pub fn single_column(&self) -> Option<(&Bytes, &Bytes)> {
        let plain = self.max_versions == 1
            && self.time_range.is_all()
            && self.family_time_ranges.is_empty()
            && self.store_limit.is_none()
            && self.store_offset == 0
            && self.filter.is_none();
        let mut families = self.columns.families.iter();
        let (Some((family, Some(qualifiers))), None) = (families.next(), families.next()) else { return None };
        let mut qualifiers = qualifiers.iter();
        let (Some(qualifier), None) = (qualifiers.next(), qualifiers.next()) else { return None };
        plain.then_some((family, qualifier))
    }

    /// The newest version of every column of `row`.
    pub fn new(row: impl Into<Bytes>) -> Get {
        Get {
            row: row.into(),
            columns: ColumnSelection::default(),
            max_versions: 1,
            time_range: TimeRange::ALL,
            family_time_ranges: BTreeMap::new(),
            store_limit: None,
            store_offset: 0,
            filter: None,
            cache_blocks: true,
        }
    }

    /// Adds one column.
    #[must_use]
    pub fn column(mut self, family: impl Into<Bytes>, qualifier: impl Into<Bytes>) -> Get {
        self.columns.add_column(family, qualifier);
        self
    }

    /// Adds a whole family.
    #[must_use]
    pub fn family(mut self, family: impl Into<Bytes>) -> Get {
        self.columns.add_family(family);
        self
    }

    /// Sets the filter.
    #[must_use]
    pub fn filter(mut self, filter: Filter) -> Get {
        self.filter = Some(filter);
        self
    }

    /// Sets the versions per column.
    #[must_use]
    pub fn versions(mut self, versions: u32) -> Get {
        self.max_versions = versions;
        self
    }
}

/// Cells of one row in the order of [`crate::cell::compare`]. No cells: the row does not exist, for the request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowResult {
    /// The cells.
    pub cells: Vec<Cell>,
    /// True if the row has more cells that come with the next result (only with [`super::Scan::batch`]).
    pub partial: bool,
}

impl RowResult {
    /// The row key; empty when there are no cells.
    pub fn row(&self) -> &[u8] {
        self.cells.first().map_or(&[], Cell::row)
    }

    /// True if nothing was found.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The newest returned cell of a column.
    pub fn cell(&self, family: &[u8], qualifier: &[u8]) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.family() == family && cell.qualifier() == qualifier)
    }
}
