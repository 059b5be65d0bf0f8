//! Regions as HBase describes them: `.regioninfo`, rows of hbase:meta, snapshot manifests (HBase `RegionInfo`).

use super::layout::{META_REGION, read_file, text};
use super::messages::{self, RegionInfoMessage, TableNameMessage};
use crate::client::TableName;
use crate::error::{Error, Result};
use crate::region::encoded_region_name;
use crate::vfs::Vfs;
use bytes::Bytes;
use std::path::Path;

const REGION_INFO: &str = ".regioninfo";

/// A region of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RegionDescription {
    /// Its encoded name, which is its directory's.
    pub(super) encoded: String,
    /// When it came to be, milliseconds since the epoch.
    pub(super) region_id: u64,
    /// First row, inclusive; empty = from the beginning.
    pub(super) start: Bytes,
    /// End row, exclusive; empty = to the end.
    pub(super) end: Bytes,
    /// It was split or taken out of service: its rows are those of its daughters.
    pub(super) replaced: bool,
    /// 0 is the region, others are copies of it that have no directory.
    pub(super) replica: i32,
}

impl RegionDescription {
    /// The description in a message.
    pub(super) fn of_message(message: &RegionInfoMessage) -> Option<RegionDescription> {
        let table = table_name(message.table_name.as_ref()?)?;
        let is_meta = table.namespace == "hbase" && table.qualifier == "meta";
        let id = i64::try_from(message.region_id).ok()?;
        Some(RegionDescription {
            encoded: if is_meta { META_REGION.to_owned() } else { encoded_region_name(&table, &message.start_key, id) },
            region_id: message.region_id,
            start: message.start_key.clone(),
            end: message.end_key.clone(),
            replaced: message.offline || message.split,
            replica: message.replica_id,
        })
    }

    /// True if the row belongs to the region.
    pub(super) fn ends_after(&self, row: &[u8]) -> bool {
        self.end.is_empty() || row < &self.end[..]
    }

    /// True if some row belongs to both.
    pub(super) fn overlaps(&self, other: &RegionDescription) -> bool {
        self.ends_after(&other.start) && other.ends_after(&self.start)
    }
}

/// A table's name out of HBase's.
pub(super) fn table_name(message: &TableNameMessage) -> Option<TableName> {
    TableName::new(text(&message.namespace), text(&message.qualifier)).ok()
}

/// The `.regioninfo` of a region's directory; `None` where there is none.
///
/// # Errors
/// [`Error::Corruption`] where it cannot be understood.
pub(super) fn read_region_info(vfs: &dyn Vfs, directory: &Path, encoded: &str) -> Result<Option<RegionDescription>> {
    let path = directory.join(REGION_INFO);
    if !vfs.exists(&path)? {
        return Ok(None);
    }
    let message: RegionInfoMessage = messages::decode_delimited(read_file(vfs, &path)?, &path, "region description")?;
    let described = RegionDescription::of_message(&message)
        .ok_or_else(|| Error::corruption(&path, 0, "the region description names no table"))?;
    Ok(Some(RegionDescription { encoded: encoded.to_owned(), ..described }))
}
