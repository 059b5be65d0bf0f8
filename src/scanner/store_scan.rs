//! What a scan of one family asks for, and the family's rules.

use crate::client::{ColumnSelection, Get, Scan, TimeRange};
use crate::error::{Error, Result};
use crate::schema::{ColumnFamilyDescriptor, FOREVER, KeepDeletedCells};
use bytes::Bytes;

/// The attributes of a family that decide which cells live, at one moment (HBase `ScanInfo`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyRules {
    /// VERSIONS.
    pub versions: u32,
    /// MIN_VERSIONS.
    pub min_versions: u32,
    /// TTL in milliseconds; `None` = forever.
    pub ttl_millis: Option<i64>,
    /// KEEP_DELETED_CELLS.
    pub keep_deleted: KeepDeletedCells,
    /// NEW_VERSION_BEHAVIOR.
    pub new_version_behavior: bool,
    /// hbase.hstore.time.to.purge.deletes in milliseconds: younger markers survive every compaction.
    pub time_to_purge_deletes: i64,
    /// Milliseconds since the epoch; one scan keeps to one now.
    pub now: i64,
}

impl FamilyRules {
    /// The rules of a family at `now`.
    pub fn of(descriptor: &ColumnFamilyDescriptor, now: i64) -> FamilyRules {
        FamilyRules {
            versions: descriptor.versions,
            min_versions: descriptor.min_versions,
            ttl_millis: (descriptor.ttl_seconds != FOREVER).then(|| i64::from(descriptor.ttl_seconds) * 1000),
            keep_deleted: descriptor.keep_deleted_cells,
            new_version_behavior: descriptor.new_version_behavior,
            time_to_purge_deletes: descriptor.time_to_purge_deletes(),
            now,
        }
    }

    /// The smallest timestamp that TTL leaves alive.
    pub fn oldest_unexpired(&self) -> i64 {
        self.ttl_millis.map_or(i64::MIN, |ttl| self.now.saturating_sub(ttl))
    }

    /// The first moment at which a cell of `timestamp` is past the family's TTL.
    pub(super) fn expires(&self, timestamp: i64) -> i64 {
        self.ttl_millis.map_or(i64::MAX, |ttl| timestamp.saturating_add(ttl).saturating_add(1))
    }

    /// The smallest timestamp a source must reach to matter to a read: with MIN_VERSIONS expired cells matter too.
    pub fn oldest_that_matters(&self) -> i64 {
        if self.min_versions == 0 { self.oldest_unexpired() } else { i64::MIN }
    }
}

/// Who looks at the cells (HBase `ScanType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanPolicy {
    /// A user's get or scan.
    User,
    /// Markers and what they hide as well.
    Raw,
    /// A flush, or a compaction that does not see all cells: markers stay (HBase COMPACT_RETAIN_DELETES).
    Retain {
        /// The smallest read point of open scanners: newer cells neither hide nor push out others.
        smallest_read_point: u64,
    },
    /// A compaction of all store files: markers may go (HBase COMPACT_DROP_DELETES).
    DropDeletes {
        /// As in [`ScanPolicy::Retain`].
        smallest_read_point: u64,
        /// The smallest put timestamp of all files involved (EARLIEST_PUT_TS); `i64::MAX` without puts.
        earliest_put_timestamp: i64,
    },
}

impl ScanPolicy {
    pub(super) fn is_compaction(&self) -> bool {
        matches!(self, ScanPolicy::Retain { .. } | ScanPolicy::DropDeletes { .. })
    }
}

/// A scan of one family.
#[derive(Clone, Debug)]
pub struct StoreScan {
    /// Who looks.
    pub policy: ScanPolicy,
    /// The family's rules.
    pub rules: FamilyRules,
    /// The qualifiers wanted, sorted; `None` or none = all.
    pub columns: Option<Vec<Bytes>>,
    /// Versions per column.
    pub max_versions: u32,
    /// Timestamps to look at.
    pub time_range: TimeRange,
    /// Cells with larger sequence ids are invisible.
    pub read_point: u64,
    /// Cells of later timestamps, markers included, are as if they had never been written; `i64::MAX` = the present.
    pub as_of: i64,
    /// Cells per row to skip first.
    pub store_offset: usize,
    /// Cells per row at most.
    pub store_limit: Option<usize>,
    /// A filter looks at the cells before `max_versions` counts them.
    pub filtered: bool,
}

impl StoreScan {
    /// What `get` asks of `family`; `None` if it does not ask for the family.
    pub fn of_get(get: &Get, family: &[u8], rules: FamilyRules, read_point: u64) -> Option<StoreScan> {
        Some(StoreScan {
            policy: ScanPolicy::User,
            rules,
            columns: columns_of(&get.columns, family)?,
            max_versions: get.max_versions,
            time_range: get.family_time_ranges.get(family).copied().unwrap_or(get.time_range),
            read_point,
            as_of: i64::MAX,
            store_offset: get.store_offset,
            store_limit: get.store_limit,
            filtered: get.filter.is_some(),
        })
    }

    /// What `scan` asks of `family`; `None` if it does not ask for the family.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a raw scan that names columns.
    pub fn of_scan(scan: &Scan, family: &[u8], rules: FamilyRules, read_point: u64) -> Result<Option<StoreScan>> {
        let Some(columns) = columns_of(&scan.columns, family) else { return Ok(None) };
        if scan.raw && columns.is_some() {
            return Err(Error::invalid("a raw scan cannot name columns"));
        }
        Ok(Some(StoreScan {
            policy: if scan.raw { ScanPolicy::Raw } else { ScanPolicy::User },
            rules,
            columns,
            max_versions: scan.max_versions,
            time_range: scan.family_time_ranges.get(family).copied().unwrap_or(scan.time_range),
            read_point,
            as_of: i64::MAX,
            store_offset: scan.store_offset,
            store_limit: scan.store_limit,
            filtered: scan.filter.is_some(),
        }))
    }

    /// A flush or compaction.
    pub fn compaction(policy: ScanPolicy, rules: FamilyRules) -> StoreScan {
        StoreScan {
            policy,
            rules,
            columns: None,
            max_versions: rules.versions,
            time_range: TimeRange::ALL,
            read_point: u64::MAX,
            as_of: i64::MAX,
            store_offset: 0,
            store_limit: None,
            filtered: false,
        }
    }
}

/// The qualifiers that `selection` names of `family` (`Some(None)` = all), or `None` if it leaves the family out.
fn columns_of(selection: &ColumnSelection, family: &[u8]) -> Option<Option<Vec<Bytes>>> {
    if selection.is_all() {
        return Some(None);
    }
    let columns = selection.families.get(family)?;
    Some(columns.as_ref().map(|columns| columns.iter().cloned().collect()))
}
