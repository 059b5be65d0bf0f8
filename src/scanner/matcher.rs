//! The fate of each cell that passes by (HBase `ScanQueryMatcher` and its kin; hbase.md A2 to A5).

use super::columns::{ColumnTracker, VersionRules};
use super::deletes::{DeleteResult, DeleteTracker};
use super::filter::{BoxedFilter, ReturnCode};
use super::losses::{LossReason, LossTracker, Losses};
use super::new_version_behavior::NewVersionBehaviorTracker;
use super::{FamilyRules, ScanPolicy, StoreScan};
use crate::cell::{Cell, tag_type};
use crate::client::TimeRange;
use crate::error::Result;
use crate::schema::KeepDeletedCells;

/// What to do with a cell and where to go then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatchCode {
    Include,
    IncludeAndSeekNextColumn,
    IncludeAndSeekNextRow,
    Skip,
    SeekNextColumn,
    SeekNextRow,
    /// To where the filter says.
    SeekNextUsingHint,
}

/// Columns, versions and deletes of the row.
#[derive(Debug)]
enum Trackers {
    ByTimestamp { columns: ColumnTracker, deletes: DeleteTracker },
    BySequenceId(NewVersionBehaviorTracker),
}

impl Trackers {
    fn done(&self) -> bool {
        match self {
            Trackers::ByTimestamp { columns, .. } => columns.done(),
            Trackers::BySequenceId(tracker) => tracker.done(),
        }
    }

    /// NEW_VERSION_BEHAVIOR cannot stop at an expired timestamp: an older cell may be the later write.
    fn is_done(&self, timestamp: i64) -> bool {
        match self {
            Trackers::ByTimestamp { columns, .. } => columns.is_done(timestamp),
            Trackers::BySequenceId(_) => false,
        }
    }

    fn next_row_or_next_column(&mut self, cell: &Cell) -> MatchCode {
        match self {
            Trackers::ByTimestamp { columns, .. } => columns.next_row_or_next_column(cell),
            Trackers::BySequenceId(_) => MatchCode::SeekNextColumn,
        }
    }

    fn add_marker(&mut self, marker: &Cell) {
        match self {
            Trackers::ByTimestamp { deletes, .. } => deletes.add(marker),
            Trackers::BySequenceId(tracker) => tracker.add(marker),
        }
    }

    fn is_deleted(&mut self, put: &Cell) -> DeleteResult {
        match self {
            Trackers::ByTimestamp { deletes, .. } if deletes.is_empty() => DeleteResult::NotDeleted,
            Trackers::ByTimestamp { deletes, .. } => deletes.is_deleted(put),
            Trackers::BySequenceId(tracker) => tracker.is_deleted(put),
        }
    }

    fn check_column(&mut self, cell: &Cell) -> MatchCode {
        match self {
            Trackers::ByTimestamp { columns, .. } => columns.check_column(cell),
            Trackers::BySequenceId(tracker) => tracker.check_column(cell),
        }
    }

    fn check_versions(&mut self, cell: &Cell, ignore_count: bool) -> MatchCode {
        match self {
            Trackers::ByTimestamp { columns, .. } => columns.check_versions(cell, ignore_count),
            Trackers::BySequenceId(tracker) => tracker.check_versions(cell, ignore_count),
        }
    }
}

/// Versions of one column that have passed a filter.
#[derive(Debug)]
struct PassedVersions {
    limit: u32,
    qualifier: Option<Vec<u8>>,
    count: u32,
}

impl PassedVersions {
    /// Counts a cell; true if it is one too many of its column.
    fn exceed(&mut self, cell: &Cell) -> bool {
        if self.qualifier.as_deref() != Some(cell.qualifier()) {
            self.qualifier = Some(cell.qualifier().to_vec());
            self.count = 0;
        }
        self.count = self.count.saturating_add(1);
        self.count > self.limit
    }
}

/// Judges the cells of one family, row by row.
#[derive(Debug)]
pub(super) struct QueryMatcher {
    policy: ScanPolicy,
    rules: FamilyRules,
    time_range: TimeRange,
    as_of: i64,
    oldest_unexpired: i64,
    trackers: Trackers,
    filtered: bool,
    /// Versions that passed the filter, of the column they are of.
    passed: PassedVersions,
    /// The row has nothing more to give.
    row_done: bool,
    /// Why the last cell was not included.
    reason: LossReason,
    losses: LossTracker,
}

impl QueryMatcher {
    pub(super) fn new(scan: &StoreScan) -> QueryMatcher {
        let rules = scan.rules;
        // Raw scans know no TTL of the family (HBASE-17956).
        let oldest_unexpired = if scan.policy == ScanPolicy::Raw { 0 } else { rules.oldest_unexpired() };
        let versions = match scan.policy {
            ScanPolicy::User => scan.max_versions.min(rules.versions),
            ScanPolicy::Raw => scan.max_versions,
            ScanPolicy::Retain { .. } | ScanPolicy::DropDeletes { .. } => rules.versions,
        };
        // Before a filter all versions count that the family keeps (HBASE-17125).
        let versions_to_check = match scan.policy {
            ScanPolicy::User if scan.filtered => rules.versions,
            ScanPolicy::Raw if scan.filtered => u32::MAX,
            _ => versions,
        };
        let columns = scan.columns.clone().filter(|columns| !columns.is_empty());
        let trackers = if rules.new_version_behavior && scan.policy != ScanPolicy::Raw {
            Trackers::BySequenceId(NewVersionBehaviorTracker::new(
                rules.versions,
                rules.min_versions,
                versions,
                oldest_unexpired,
                columns,
            ))
        } else {
            let rules =
                VersionRules { max_versions: versions_to_check, min_versions: rules.min_versions, oldest_unexpired };
            let columns = match columns {
                None => ColumnTracker::wildcard(rules),
                Some(columns) => ColumnTracker::explicit(rules, columns),
            };
            Trackers::ByTimestamp { columns, deletes: DeleteTracker::default() }
        };
        QueryMatcher {
            policy: scan.policy,
            rules,
            time_range: scan.time_range,
            as_of: scan.as_of,
            oldest_unexpired,
            trackers,
            filtered: scan.filtered,
            passed: PassedVersions { limit: versions, qualifier: None, count: 0 },
            row_done: false,
            reason: LossReason::Marker,
            losses: LossTracker::default(),
        }
    }

    /// Forgets the row before.
    pub(super) fn start_row(&mut self) {
        match &mut self.trackers {
            Trackers::ByTimestamp { columns, deletes } => {
                columns.reset();
                deletes.reset();
            }
            Trackers::BySequenceId(tracker) => tracker.reset(),
        }
        self.row_done = false;
        self.passed.qualifier = None;
        self.losses.start_row();
    }

    /// Where columns are named: the qualifier before which nothing is wanted.
    pub(super) fn hint(&self) -> Option<&[u8]> {
        match &self.trackers {
            Trackers::ByTimestamp { columns, .. } => columns.hint(),
            Trackers::BySequenceId(tracker) => tracker.hint(),
        }
    }

    /// HBase's tracker of NEW_VERSION_BEHAVIOR learns that a named column is over from the next column's cells only, so a filter that wants to
    /// leave `cell`'s column is shown its older versions all the same.
    pub(super) fn stays_in_column(&self, cell: &Cell) -> bool {
        match &self.trackers {
            Trackers::BySequenceId(tracker) if self.filtered => tracker.hint() == Some(cell.qualifier()),
            _ => false,
        }
    }

    pub(super) fn losses(&self) -> Losses {
        self.losses.losses()
    }

    /// The fate of the next cell of the row. `filter` is asked of cells that everything else lets through; compactions have none.
    pub(super) fn judge(&mut self, cell: &Cell, filter: Option<&mut BoxedFilter>) -> Result<MatchCode> {
        let code = self.judge_unfiltered(cell);
        let included =
            matches!(code, MatchCode::Include | MatchCode::IncludeAndSeekNextColumn | MatchCode::IncludeAndSeekNextRow);
        match filter {
            Some(filter) if included => {
                let answer = filter.filter_cell(cell)?;
                Ok(self.merge_filter_answer(cell, code, answer))
            }
            _ => Ok(code),
        }
    }

    fn judge_unfiltered(&mut self, cell: &Cell) -> MatchCode {
        if cell.timestamp() > self.as_of {
            return MatchCode::Skip;
        }
        match self.policy {
            ScanPolicy::User => self.judge_for_user(cell),
            ScanPolicy::Raw => self.check_first(cell).unwrap_or_else(|| self.match_column(cell)),
            ScanPolicy::Retain { smallest_read_point } => {
                let code = if self.rules.new_version_behavior {
                    MatchCode::Include
                } else {
                    self.judge_for_retain(cell, smallest_read_point)
                };
                self.account(cell, code)
            }
            ScanPolicy::DropDeletes { smallest_read_point, earliest_put_timestamp } => {
                let code = self.judge_for_drop(cell, smallest_read_point, earliest_put_timestamp);
                self.account(cell, code)
            }
        }
    }

    /// A compaction passes over the rest of a column: the reasons of its cells are those of the first.
    pub(super) fn pass_over(&mut self, cell: &Cell) {
        self.losses.lose(cell, self.reason);
    }

    fn account(&mut self, cell: &Cell, code: MatchCode) -> MatchCode {
        match code {
            MatchCode::Include | MatchCode::IncludeAndSeekNextColumn | MatchCode::IncludeAndSeekNextRow => {
                self.losses.keep(cell);
                self.reason = LossReason::Superseded;
            }
            MatchCode::Skip | MatchCode::SeekNextColumn | MatchCode::SeekNextRow | MatchCode::SeekNextUsingHint => {
                self.losses.lose(cell, self.reason);
            }
        }
        code
    }

    fn judge_for_user(&mut self, cell: &Cell) -> MatchCode {
        if let Some(code) = self.check_first(cell) {
            return code;
        }
        if cell.is_delete() {
            let timestamp = cell.timestamp();
            let sees_past_markers = self.rules.keep_deleted != KeepDeletedCells::False;
            let counts = if sees_past_markers {
                self.time_range.contains(timestamp)
            } else {
                self.time_range.is_all() || timestamp >= self.time_range.min()
            };
            if counts {
                self.trackers.add_marker(cell);
            }
            return MatchCode::Skip;
        }
        self.check_deleted(cell).unwrap_or_else(|| self.match_column(cell))
    }

    fn judge_for_retain(&mut self, cell: &Cell, smallest_read_point: u64) -> MatchCode {
        if let Some(code) = self.check_first(cell) {
            return code;
        }
        let too_new = cell.sequence_id() > smallest_read_point;
        if cell.is_delete() {
            if !too_new {
                self.track_delete(cell);
            }
            return MatchCode::Include;
        }
        self.check_deleted(cell).unwrap_or_else(|| self.check_versions(cell, too_new))
    }

    fn judge_for_drop(&mut self, cell: &Cell, smallest_read_point: u64, earliest_put: i64) -> MatchCode {
        if let Some(code) = self.check_first(cell) {
            return code;
        }
        let too_new = cell.sequence_id() > smallest_read_point;
        let judged = if cell.is_delete() {
            if too_new {
                return MatchCode::Include;
            }
            self.track_delete(cell);
            self.try_drop_delete(cell, earliest_put)
        } else {
            self.check_deleted(cell)
        };
        judged.unwrap_or_else(|| self.check_versions(cell, too_new))
    }

    /// What needs no knowledge of deletes: the row is done, the cell has expired.
    fn check_first(&mut self, cell: &Cell) -> Option<MatchCode> {
        if self.row_done || self.trackers.done() {
            self.row_done = true;
            return Some(MatchCode::SeekNextRow);
        }
        let timestamp = cell.timestamp();
        if self.trackers.is_done(timestamp) {
            self.reason = LossReason::Expired(self.rules.expires(timestamp));
            return Some(self.trackers.next_row_or_next_column(cell));
        }
        let expiry = expiry_by_tag(cell)?;
        if expiry < self.rules.now {
            self.reason = LossReason::Expired(expiry.saturating_add(1));
            return Some(MatchCode::Skip);
        }
        None
    }

    fn check_deleted(&mut self, put: &Cell) -> Option<MatchCode> {
        match self.trackers.is_deleted(put) {
            DeleteResult::NotDeleted => None,
            DeleteResult::ColumnDeleted(moment) => {
                self.reason = LossReason::Masked(moment);
                Some(match &mut self.trackers {
                    Trackers::ByTimestamp { columns, .. } => columns.next_row_or_next_column(put),
                    // A put with an older timestamp may be the later write.
                    Trackers::BySequenceId(_) => MatchCode::Skip,
                })
            }
            DeleteResult::VersionDeleted(moment) => {
                self.reason = LossReason::Masked(moment);
                Some(MatchCode::Skip)
            }
            DeleteResult::VersionMasked => {
                self.reason = LossReason::Superseded;
                Some(MatchCode::Skip)
            }
        }
    }

    /// Time range, column, versions: the order is HBase's, so a time range is applied before versions are counted.
    fn match_column(&mut self, cell: &Cell) -> MatchCode {
        let timestamp = cell.timestamp();
        if !self.time_range.contains(timestamp) {
            return if timestamp < self.time_range.min() {
                self.trackers.next_row_or_next_column(cell)
            } else {
                MatchCode::Skip
            };
        }
        match self.trackers.check_column(cell) {
            MatchCode::Include => self.trackers.check_versions(cell, false),
            other => other,
        }
    }

    /// What `code`, which includes the cell, becomes by the filter's answer (HBase `UserScanQueryMatcher.mergeFilterResponse`). Versions that pass
    /// are counted against what the request asks for.
    fn merge_filter_answer(&mut self, cell: &Cell, code: MatchCode, answer: ReturnCode) -> MatchCode {
        let code = match (answer, code) {
            (ReturnCode::Include, code) => code,
            (ReturnCode::Skip, MatchCode::Include) => return MatchCode::Skip,
            (ReturnCode::Skip, MatchCode::IncludeAndSeekNextColumn) => return MatchCode::SeekNextColumn,
            (ReturnCode::NextRow, _)
            | (ReturnCode::Skip | ReturnCode::NextColumn, MatchCode::IncludeAndSeekNextRow) => {
                return MatchCode::SeekNextRow;
            }
            (ReturnCode::Skip | ReturnCode::NextColumn, _) => return self.trackers.next_row_or_next_column(cell),
            (ReturnCode::SeekNextUsingHint, _) => return MatchCode::SeekNextUsingHint,
            (ReturnCode::IncludeAndNextColumn, MatchCode::Include) => MatchCode::IncludeAndSeekNextColumn,
            (ReturnCode::IncludeAndNextColumn, code) => code,
            (ReturnCode::IncludeAndSeekNextRow, _) => MatchCode::IncludeAndSeekNextRow,
        };
        let too_many = self.passed.exceed(cell);
        let code = match (too_many, code) {
            (false, code) => code,
            (true, MatchCode::IncludeAndSeekNextRow) => MatchCode::SeekNextRow,
            (true, _) => MatchCode::SeekNextColumn,
        };
        if matches!(code, MatchCode::IncludeAndSeekNextColumn | MatchCode::SeekNextColumn) {
            // The trackers are done with the column; the code stands (HBASE-19749).
            self.trackers.next_row_or_next_column(cell);
        }
        code
    }

    fn check_versions(&mut self, cell: &Cell, ignore_count: bool) -> MatchCode {
        let code = self.trackers.check_versions(cell, ignore_count);
        let timestamp = cell.timestamp();
        self.reason = match code {
            MatchCode::Skip => LossReason::Duplicate,
            // With MIN_VERSIONS the newest version outlives its time: what goes, goes because of newer ones.
            _ if timestamp < self.oldest_unexpired && self.rules.min_versions == 0 => {
                LossReason::Expired(self.rules.expires(timestamp))
            }
            _ => LossReason::Superseded,
        };
        code
    }

    /// With KEEP_DELETED_CELLS, compactions remove by versions and TTL only. An expired marker of TTL mode gets here only with MIN_VERSIONS.
    fn track_delete(&mut self, marker: &Cell) {
        let applies = match self.rules.keep_deleted {
            KeepDeletedCells::False => true,
            KeepDeletedCells::True => false,
            KeepDeletedCells::Ttl => marker.timestamp() < self.oldest_unexpired,
        };
        if applies {
            self.trackers.add_marker(marker);
        }
    }

    /// Whether a marker goes, in a compaction that sees all older cells; `None` = it is counted with the versions.
    fn try_drop_delete(&mut self, marker: &Cell, earliest_put: i64) -> Option<MatchCode> {
        let timestamp = marker.timestamp();
        self.reason = LossReason::Marker;
        let purge = self.rules.time_to_purge_deletes;
        if purge > 0 && self.rules.now.saturating_sub(timestamp) <= purge {
            return Some(MatchCode::Include);
        }
        let kept = match self.rules.keep_deleted {
            KeepDeletedCells::False => false,
            KeepDeletedCells::True => true,
            KeepDeletedCells::Ttl => timestamp >= self.oldest_unexpired,
        };
        if !kept {
            return Some(MatchCode::Skip);
        }
        // No put is older: what follows in this column can only be markers.
        (timestamp < earliest_put).then(|| self.trackers.next_row_or_next_column(marker))
    }
}

/// The last moment at which a cell's own TTL lets it live (HBASE-10560). A TTL that reaches past the end of time never does.
fn expiry_by_tag(cell: &Cell) -> Option<i64> {
    if cell.tags().is_empty() {
        return None;
    }
    let (_, value) = cell.tag_iter().find(|(kind, _)| *kind == tag_type::TTL)?;
    let ttl = i64::from_be_bytes(*value.first_chunk::<8>()?);
    Some(cell.timestamp().saturating_add(ttl))
}
