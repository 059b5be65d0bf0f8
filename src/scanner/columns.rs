//! Which columns are wanted and how many versions of each have been seen (HBase `ScanWildcardColumnTracker`, `ExplicitColumnTracker`).

use super::matcher::MatchCode;
use crate::cell::Cell;
use bytes::Bytes;
use std::cmp::Ordering;

/// Versions wanted per column, and the smallest timestamp that TTL leaves alive.
#[derive(Clone, Copy, Debug)]
pub(super) struct VersionRules {
    pub(super) max_versions: u32,
    pub(super) min_versions: u32,
    pub(super) oldest_unexpired: i64,
}

impl VersionRules {
    fn is_expired(&self, timestamp: i64) -> bool {
        timestamp < self.oldest_unexpired
    }

    /// Nothing of this timestamp or an older one in the same column is wanted.
    fn is_done(&self, timestamp: i64) -> bool {
        self.min_versions == 0 && self.is_expired(timestamp)
    }
}

/// The columns of one row as they pass by.
#[derive(Debug)]
pub(super) enum ColumnTracker {
    Wildcard(WildcardColumns),
    Explicit(ExplicitColumns),
}

impl ColumnTracker {
    pub(super) fn wildcard(rules: VersionRules) -> ColumnTracker {
        ColumnTracker::Wildcard(WildcardColumns {
            rules,
            qualifier: Vec::new(),
            in_column: false,
            count: 0,
            latest: None,
        })
    }

    /// `columns` sorted and not empty.
    pub(super) fn explicit(rules: VersionRules, columns: Vec<Bytes>) -> ColumnTracker {
        ColumnTracker::Explicit(ExplicitColumns { rules, columns, index: 0, count: 0, latest: None })
    }

    pub(super) fn reset(&mut self) {
        match self {
            ColumnTracker::Wildcard(tracker) => {
                tracker.in_column = false;
                tracker.latest = None;
            }
            ColumnTracker::Explicit(tracker) => tracker.stand_at(0),
        }
    }

    /// Every wanted column of the row is behind.
    pub(super) fn done(&self) -> bool {
        match self {
            ColumnTracker::Wildcard(_) => false,
            ColumnTracker::Explicit(tracker) => tracker.index >= tracker.columns.len(),
        }
    }

    pub(super) fn is_done(&self, timestamp: i64) -> bool {
        match self {
            ColumnTracker::Wildcard(tracker) => tracker.rules.is_done(timestamp),
            ColumnTracker::Explicit(tracker) => tracker.rules.is_done(timestamp),
        }
    }

    /// The next wanted qualifier, where columns are named.
    pub(super) fn hint(&self) -> Option<&[u8]> {
        match self {
            ColumnTracker::Wildcard(_) => None,
            ColumnTracker::Explicit(tracker) => tracker.columns.get(tracker.index).map(|column| &column[..]),
        }
    }

    /// [`MatchCode::Include`] if `cell`'s column is wanted, else where to go.
    pub(super) fn check_column(&mut self, cell: &Cell) -> MatchCode {
        match self {
            ColumnTracker::Wildcard(_) => MatchCode::Include,
            ColumnTracker::Explicit(tracker) => tracker.check_column(cell),
        }
    }

    /// Counts `cell` as a version of its column. `ignore_count`: it is newer than an open scanner, so it may not push others out.
    pub(super) fn check_versions(&mut self, cell: &Cell, ignore_count: bool) -> MatchCode {
        match self {
            ColumnTracker::Wildcard(tracker) => tracker.check_versions(cell, ignore_count),
            ColumnTracker::Explicit(tracker) => tracker.check_versions(cell, ignore_count),
        }
    }

    /// Where to go when nothing more of `cell`'s column is wanted.
    pub(super) fn next_row_or_next_column(&mut self, cell: &Cell) -> MatchCode {
        match self {
            ColumnTracker::Wildcard(_) => MatchCode::SeekNextColumn,
            ColumnTracker::Explicit(tracker) => tracker.next_row_or_next_column(cell),
        }
    }
}

/// All columns.
#[derive(Debug)]
pub(super) struct WildcardColumns {
    rules: VersionRules,
    qualifier: Vec<u8>,
    in_column: bool,
    count: u32,
    /// Timestamp and type of the last cell of the column that was included: an equal one is an older write of the same version.
    latest: Option<(i64, u8)>,
}

impl WildcardColumns {
    fn check_versions(&mut self, cell: &Cell, ignore_count: bool) -> MatchCode {
        let (timestamp, type_code) = (cell.timestamp(), cell.type_code());
        if !self.in_column || cell.qualifier() != self.qualifier {
            self.in_column = true;
            self.qualifier.clear();
            self.qualifier.extend_from_slice(cell.qualifier());
            self.count = 0;
            self.latest = None;
        } else if !ignore_count && self.latest == Some((timestamp, type_code)) {
            return MatchCode::Skip;
        }
        if ignore_count {
            return MatchCode::Include;
        }
        // A marker takes the version of the put before it. Markers of the family stand in the column of the empty qualifier, so versions
        // there push them out too, and what they hide in other columns comes back: HBase 2.6.4 does so (KEEP_DELETED_CELLS only).
        if !cell.is_delete() {
            self.count = self.count.saturating_add(1);
        }
        if self.count > self.rules.max_versions {
            return MatchCode::SeekNextColumn;
        }
        if self.count <= self.rules.min_versions || !self.rules.is_expired(timestamp) {
            self.latest = Some((timestamp, type_code));
            MatchCode::Include
        } else {
            MatchCode::SeekNextColumn
        }
    }
}

/// Named columns.
#[derive(Debug)]
pub(super) struct ExplicitColumns {
    rules: VersionRules,
    columns: Vec<Bytes>,
    index: usize,
    /// Versions seen of the column at `index`.
    count: u32,
    latest: Option<i64>,
}

impl ExplicitColumns {
    fn stand_at(&mut self, index: usize) {
        self.index = index;
        self.count = 0;
        self.latest = None;
    }

    fn compare(&self, cell: &Cell) -> Option<Ordering> {
        self.columns.get(self.index).map(|column| cell.qualifier().cmp(column))
    }

    fn check_column(&mut self, cell: &Cell) -> MatchCode {
        loop {
            match self.compare(cell) {
                None => return MatchCode::SeekNextRow,
                Some(Ordering::Equal) => return MatchCode::Include,
                Some(Ordering::Less) => {
                    self.latest = None;
                    return MatchCode::SeekNextColumn;
                }
                Some(Ordering::Greater) => self.stand_at(self.index + 1),
            }
        }
    }

    fn check_versions(&mut self, cell: &Cell, ignore_count: bool) -> MatchCode {
        if ignore_count {
            return MatchCode::Include;
        }
        let timestamp = cell.timestamp();
        if self.latest == Some(timestamp) {
            return MatchCode::Skip;
        }
        self.count = self.count.saturating_add(1);
        let rules = self.rules;
        // HBase includes the expired version that ends the column here, which the wildcard tracker does not (hbase.md A3).
        if self.count >= rules.max_versions || self.count >= rules.min_versions && rules.is_expired(timestamp) {
            self.stand_at(self.index + 1);
            return if self.index >= self.columns.len() {
                MatchCode::IncludeAndSeekNextRow
            } else {
                MatchCode::IncludeAndSeekNextColumn
            };
        }
        self.latest = Some(timestamp);
        MatchCode::Include
    }

    fn next_row_or_next_column(&mut self, cell: &Cell) -> MatchCode {
        loop {
            match self.compare(cell) {
                None => return MatchCode::SeekNextRow,
                Some(Ordering::Greater) => self.stand_at(self.index + 1),
                Some(Ordering::Equal) => {
                    self.stand_at(self.index + 1);
                    return if self.index >= self.columns.len() {
                        MatchCode::SeekNextRow
                    } else {
                        MatchCode::SeekNextColumn
                    };
                }
                Some(Ordering::Less) => {
                    self.latest = None;
                    return MatchCode::SeekNextColumn;
                }
            }
        }
    }
}
