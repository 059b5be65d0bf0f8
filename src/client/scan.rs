//! Reading a range of rows.

use super::filter::Filter;
use super::get::{ColumnSelection, TimeRange};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Reads a range of rows in key order, from one consistent point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The first row; empty = the first of the table (the last, when reversed).
    pub start_row: Bytes,
    /// Whether `start_row` itself is read.
    pub include_start: bool,
    /// Where to stop; empty = the end.
    pub stop_row: Bytes,
    /// Whether `stop_row` itself is read.
    pub include_stop: bool,
    /// Only rows that begin with this; narrows the range.
    pub prefix: Bytes,
    /// From the end of the range to its start; then `start_row` >= `stop_row`.
    pub reversed: bool,
    /// Rows at most.
    pub limit: Option<u64>,
    /// The columns.
    pub columns: ColumnSelection,
    /// Versions per column, at most the family's VERSIONS (in raw scans: exactly this); default 1.
    pub max_versions: u32,
    /// Timestamps to look at, applied before versions are counted.
    pub time_range: TimeRange,
    /// Time ranges of single families in place of `time_range` (HBASE-14355).
    pub family_time_ranges: BTreeMap<Bytes, TimeRange>,
    /// Delete markers and what they hide as well; no columns may be named then.
    pub raw: bool,
    /// Cells per result at most, so that a wide row arrives in parts of bounded size.
    pub batch: Option<usize>,
    /// Only the first visible cell of each row (HBase FirstKeyOnlyFilter): for listing keys.
    pub first_cell_only: bool,
    /// Cells per row and family to return at most.
    pub store_limit: Option<usize>,
    /// Cells per row and family to skip first.
    pub store_offset: usize,
    /// What to leave out. One filter serves the whole scan, whatever regions it crosses; HBase starts it anew in each region.
    pub filter: Option<Filter>,
    /// Families that the filter does not need are read only for the rows it lets through (HBase `Scan#setLoadColumnFamiliesOnDemand`; on
    /// by default, as `hbase.hregion.scan.loadColumnFamiliesOnDemand` is). A filter that looks at every cell, like SKIP, sees less then.
    pub load_column_families_on_demand: bool,
    /// False keeps blocks that are read out of the block cache.
    pub cache_blocks: bool,
}

impl Scan {
    /// Every row, newest versions.
    pub fn new() -> Scan {
        Scan {
            start_row: Bytes::new(),
            include_start: true,
            stop_row: Bytes::new(),
            include_stop: false,
            prefix: Bytes::new(),
            reversed: false,
            limit: None,
            columns: ColumnSelection::default(),
            max_versions: 1,
            time_range: TimeRange::ALL,
            family_time_ranges: BTreeMap::new(),
            raw: false,
            batch: None,
            first_cell_only: false,
            store_limit: None,
            store_offset: 0,
            filter: None,
            load_column_families_on_demand: true,
            cache_blocks: true,
        }
    }
}

impl Default for Scan {
    fn default() -> Self {
        Scan::new()
    }
}
