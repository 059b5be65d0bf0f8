//! Ranges of rows.

use crate::client::Scan;
use bytes::Bytes;
use std::ops::Bound;

/// A range of rows, low end first whatever the direction of the scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRange {
    /// The low end.
    pub low: Bound<Bytes>,
    /// The high end.
    pub high: Bound<Bytes>,
}

impl RowRange {
    /// Every row.
    pub const ALL: RowRange = RowRange { low: Bound::Unbounded, high: Bound::Unbounded };

    /// One row.
    pub fn row(row: impl Into<Bytes>) -> RowRange {
        let row = row.into();
        RowRange { low: Bound::Included(row.clone()), high: Bound::Included(row) }
    }

    /// The rows that `scan` asks for: start, stop and prefix together. A scan whose start equals its stop is a get of that row if it includes
    /// one of the two (HBASE-21621).
    pub fn of_scan(scan: &Scan) -> RowRange {
        let bound = |row: &Bytes, included: bool| match (row.is_empty(), included) {
            (true, _) => Bound::Unbounded,
            (_, true) => Bound::Included(row.clone()),
            (_, false) => Bound::Excluded(row.clone()),
        };
        let (start, stop) = (bound(&scan.start_row, scan.include_start), bound(&scan.stop_row, scan.include_stop));
        let (low, high) = if scan.reversed { (stop, start) } else { (start, stop) };
        RowRange { low, high }.with_prefix(&scan.prefix)
    }

    /// The part of the range whose rows begin with `prefix`.
    #[must_use]
    pub fn with_prefix(self, prefix: &[u8]) -> RowRange {
        if prefix.is_empty() {
            return self;
        }
        let low = self.low_at_least(Bound::Included(Bytes::copy_from_slice(prefix)));
        match after_prefix(prefix) {
            Some(end) => low.high_at_most(Bound::Excluded(end)),
            None => low,
        }
    }

    /// The part of the range in a region: `start` inclusive, `end` exclusive, empty = open.
    #[must_use]
    pub fn within(self, start: &Bytes, end: &Bytes) -> RowRange {
        let low = if start.is_empty() { self } else { self.low_at_least(Bound::Included(start.clone())) };
        if end.is_empty() { low } else { low.high_at_most(Bound::Excluded(end.clone())) }
    }

    /// True if `row` is not before the low end.
    pub fn reaches(&self, row: &[u8]) -> bool {
        match &self.low {
            Bound::Unbounded => true,
            Bound::Included(low) => row >= &low[..],
            Bound::Excluded(low) => row > &low[..],
        }
    }

    /// True if `row` is not after the high end.
    pub fn precedes_end(&self, row: &[u8]) -> bool {
        match &self.high {
            Bound::Unbounded => true,
            Bound::Included(high) => row <= &high[..],
            Bound::Excluded(high) => row < &high[..],
        }
    }

    /// True if `row` is inside.
    pub fn contains(&self, row: &[u8]) -> bool {
        self.reaches(row) && self.precedes_end(row)
    }

    /// The one row of the range, if it is one by its bounds.
    pub fn single_row(&self) -> Option<&Bytes> {
        match (&self.low, &self.high) {
            (Bound::Included(low), Bound::Included(high)) if low == high => Some(low),
            _ => None,
        }
    }

    /// True if no row can be inside.
    pub fn is_empty(&self) -> bool {
        match (&self.low, &self.high) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(low), Bound::Included(high)) => low > high,
            (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => low >= high,
        }
    }

    fn low_at_least(mut self, low: Bound<Bytes>) -> RowRange {
        let raises = match (&self.low, &low) {
            (_, Bound::Unbounded) => false,
            (Bound::Unbounded, _) => true,
            (Bound::Included(old) | Bound::Excluded(old), Bound::Included(new)) => new > old,
            (Bound::Included(old), Bound::Excluded(new)) => new >= old,
            (Bound::Excluded(old), Bound::Excluded(new)) => new > old,
        };
        if raises {
            self.low = low;
        }
        self
    }

    fn high_at_most(mut self, high: Bound<Bytes>) -> RowRange {
        let lowers = match (&self.high, &high) {
            (_, Bound::Unbounded) => false,
            (Bound::Unbounded, _) => true,
            (Bound::Included(old) | Bound::Excluded(old), Bound::Included(new)) => new < old,
            (Bound::Included(old), Bound::Excluded(new)) => new <= old,
            (Bound::Excluded(old), Bound::Excluded(new)) => new < old,
        };
        if lowers {
            self.high = high;
        }
        self
    }
}

/// The first row after all rows that begin with `prefix`; `None` if there is none.
fn after_prefix(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let (head, _) = prefix.split_at_checked(last + 1)?;
    let mut end = head.to_vec();
    if let Some(byte) = end.last_mut() {
        *byte += 1;
    }
    Some(end.into())
}
