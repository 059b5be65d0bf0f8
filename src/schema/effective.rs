//! What attributes that are kept as text mean to the engine. They stand among the metadata as HBase keeps them: absent while nobody has set them.

use super::family::{ColumnFamilyDescriptor, Compression};
use super::table::{SplitPolicy, TableDescriptor};
use bytes::Bytes;

/// Codec of all compactions (HBase `ColumnFamilyDescriptorBuilder.COMPRESSION_COMPACT`).
pub(super) const COMPRESSION_COMPACT: &str = "COMPRESSION_COMPACT";
/// Codec of major compactions.
pub(super) const COMPRESSION_COMPACT_MAJOR: &str = "COMPRESSION_COMPACT_MAJOR";
/// Codec of minor compactions.
pub(super) const COMPRESSION_COMPACT_MINOR: &str = "COMPRESSION_COMPACT_MINOR";
/// Data blocks go to the block cache when a flush writes them.
pub(super) const CACHE_DATA_ON_WRITE: &str = "CACHE_DATA_ON_WRITE";
/// Index blocks go to the block cache when they are written.
pub(super) const CACHE_INDEX_ON_WRITE: &str = "CACHE_INDEX_ON_WRITE";
/// Bloom blocks go to the block cache when they are written.
pub(super) const CACHE_BLOOMS_ON_WRITE: &str = "CACHE_BLOOMS_ON_WRITE";
/// All blocks of a file go to the block cache when it is opened.
pub(super) const PREFETCH_BLOCKS_ON_OPEN: &str = "PREFETCH_BLOCKS_ON_OPEN";
/// Tags that repeat are written once, with an encoding that can.
pub(super) const COMPRESS_TAGS: &str = "COMPRESS_TAGS";
/// The table attribute that names the split policy (HBase `TableDescriptorBuilder.SPLIT_POLICY`).
pub(super) const SPLIT_POLICY: &str = "SPLIT_POLICY";
/// Whether regions may be merged.
pub(super) const MERGE_ENABLED: &str = "MERGE_ENABLED";
/// How often a table that changes is kept under a name by itself, in seconds.
pub(super) const SNAPSHOT_EVERY: &str = "SNAPSHOT_EVERY";
/// How many of these stay.
pub(super) const SNAPSHOT_KEEP: &str = "SNAPSHOT_KEEP";
/// HBase `KeyPrefixRegionSplitPolicy.PREFIX_LENGTH_KEY`.
pub(super) const SPLIT_PREFIX_LENGTH: &str = "KeyPrefixRegionSplitPolicy.prefix_length";
/// HBase `DelimitedKeyPrefixRegionSplitPolicy.DELIMITER_KEY`.
pub(super) const SPLIT_DELIMITER: &str = "DelimitedKeyPrefixRegionSplitPolicy.delimiter";

/// Which blocks go to the block cache as they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CacheOnWrite {
    /// CACHE_DATA_ON_WRITE.
    pub data: bool,
    /// CACHE_INDEX_ON_WRITE.
    pub indexes: bool,
    /// CACHE_BLOOMS_ON_WRITE.
    pub blooms: bool,
}

impl CacheOnWrite {
    /// True if any kind of block does.
    pub fn any(self) -> bool {
        self.data || self.indexes || self.blooms
    }
}

/// How long a delete marker outlives compactions (HBase `HStore.TIME_TO_PURGE_DELETES`), which HBase takes from a family's settings too.
const TIME_TO_PURGE_DELETES: &str = "hbase.hstore.time.to.purge.deletes";

impl ColumnFamilyDescriptor {
    /// Markers younger than this, in milliseconds, survive every compaction; 0 unless the family's metadata has
    /// `hbase.hstore.time.to.purge.deletes`.
    pub fn time_to_purge_deletes(&self) -> i64 {
        let set = self.metadata.get(TIME_TO_PURGE_DELETES);
        set.and_then(|millis| millis.parse::<i64>().ok()).map_or(0, |millis| millis.max(0))
    }

    /// The codec of what a compaction writes: COMPRESSION_COMPACT_MAJOR or _MINOR, else COMPRESSION_COMPACT, else COMPRESSION (HBase
    /// `getMajorCompactionCompressionType`, HBASE-25900).
    pub fn compaction_compression(&self, major: bool) -> Compression {
        let own = if major { COMPRESSION_COMPACT_MAJOR } else { COMPRESSION_COMPACT_MINOR };
        let set = [own, COMPRESSION_COMPACT].iter().find_map(|name| self.metadata.get(*name));
        set.and_then(|name| Compression::of_name(name)).unwrap_or(self.compression)
    }

    /// The family as a compaction writes it: with the codec of compactions, and without data blocks going to the cache, for what was compacted is
    /// not what is being read (HBase `StoreEngine.createWriter`, `hbase.rs.cachecompactedblocksonwrite`).
    #[must_use]
    pub fn for_compaction(&self, major: bool) -> ColumnFamilyDescriptor {
        let mut family = ColumnFamilyDescriptor { compression: self.compaction_compression(major), ..self.clone() };
        family.metadata.remove(CACHE_DATA_ON_WRITE);
        family
    }

    /// What goes to the block cache as it is written.
    pub fn cache_on_write(&self) -> CacheOnWrite {
        CacheOnWrite {
            data: self.is_on(CACHE_DATA_ON_WRITE, false),
            indexes: self.is_on(CACHE_INDEX_ON_WRITE, false),
            blooms: self.is_on(CACHE_BLOOMS_ON_WRITE, false),
        }
    }

    /// PREFETCH_BLOCKS_ON_OPEN.
    pub fn prefetch_blocks_on_open(&self) -> bool {
        self.is_on(PREFETCH_BLOCKS_ON_OPEN, false)
    }

    /// COMPRESS_TAGS.
    pub fn compress_tags(&self) -> bool {
        self.is_on(COMPRESS_TAGS, true)
    }

    fn is_on(&self, name: &str, default: bool) -> bool {
        self.metadata.get(name).map_or(default, |text| text.eq_ignore_ascii_case("true"))
    }
}

impl TableDescriptor {
    /// SPLIT_POLICY in force.
    pub fn split_policy(&self) -> SplitPolicy {
        let name = self.metadata.get(SPLIT_POLICY).map_or("", String::as_str);
        match name.rsplit('.').next().unwrap_or(name) {
            "ConstantSizeRegionSplitPolicy" => SplitPolicy::ConstantSize,
            "IncreasingToUpperBoundRegionSplitPolicy" => SplitPolicy::IncreasingToUpperBound,
            "KeyPrefixRegionSplitPolicy" => SplitPolicy::KeyPrefix,
            "DelimitedKeyPrefixRegionSplitPolicy" => SplitPolicy::DelimitedKeyPrefix,
            "DisabledRegionSplitPolicy" => SplitPolicy::Disabled,
            _ => SplitPolicy::Stepping,
        }
    }

    /// The split row that the policy makes of the row in the middle of a region: policies by prefix cut it, so that rows of one prefix stay together.
    /// A row without the delimiter stays as it is (HBase `KeyPrefixRegionSplitPolicy`, `DelimitedKeyPrefixRegionSplitPolicy`).
    pub fn split_row(&self, middle: &Bytes) -> Bytes {
        let len = match self.split_policy() {
            SplitPolicy::KeyPrefix => {
                self.metadata.get(SPLIT_PREFIX_LENGTH).and_then(|text| text.parse().ok()).filter(|length| *length > 0)
            }
            SplitPolicy::DelimitedKeyPrefix => {
                let delimiter = self.metadata.get(SPLIT_DELIMITER).filter(|delimiter| !delimiter.is_empty());
                delimiter.and_then(|delimiter| {
                    middle.windows(delimiter.len()).position(|window| window == delimiter.as_bytes())
                })
            }
            _ => None,
        };
        middle.slice(..len.unwrap_or(middle.len()).min(middle.len()))
    }

    /// SNAPSHOT_EVERY in milliseconds; `None` = never.
    pub fn snapshot_every(&self) -> Option<i64> {
        let seconds = self.metadata.get(SNAPSHOT_EVERY)?.parse::<i64>().ok()?;
        (seconds > 0).then(|| seconds.saturating_mul(1000))
    }

    /// SNAPSHOT_KEEP.
    pub fn snapshot_keep(&self) -> usize {
        const DEFAULT: usize = 24;
        self.metadata.get(SNAPSHOT_KEEP).and_then(|text| text.parse().ok()).unwrap_or(DEFAULT).max(1)
    }

    /// MERGE_ENABLED.
    pub fn merge_enabled(&self) -> bool {
        self.metadata.get(MERGE_ENABLED).is_none_or(|text| text.eq_ignore_ascii_case("true"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compactions_take_the_nearest_codec_that_is_set() {
        let mut family = ColumnFamilyDescriptor { compression: Compression::Gz, ..ColumnFamilyDescriptor::default() };
        let codecs = |family: &ColumnFamilyDescriptor| [true, false].map(|major| family.compaction_compression(major));
        assert_eq!(codecs(&family), [Compression::Gz, Compression::Gz]);
        family.metadata.insert(COMPRESSION_COMPACT.into(), "NONE".into());
        assert_eq!(codecs(&family), [Compression::None, Compression::None]);
        family.metadata.insert(COMPRESSION_COMPACT_MAJOR.into(), "ZSTD".into());
        assert_eq!(codecs(&family), [Compression::Zstd, Compression::None]);
        family.metadata.insert(COMPRESSION_COMPACT_MINOR.into(), "lz4".into());
        assert_eq!(codecs(&family), [Compression::Zstd, Compression::Lz4]);
        family.metadata.insert(CACHE_DATA_ON_WRITE.into(), "true".into());
        assert!(family.cache_on_write().data && !family.for_compaction(true).cache_on_write().any());
    }

    #[test]
    fn policies_by_prefix_cut_the_split_row() {
        let mut table = TableDescriptor::with_family("cf");
        let row = Bytes::from_static(b"user_12_x");
        let mut cut = |policy: &str, setting: &str, value: &str| {
            table.metadata.clear();
            table.metadata.insert(SPLIT_POLICY.into(), format!("org.apache.hadoop.hbase.regionserver.{policy}"));
            table.metadata.insert(setting.into(), value.into());
            table.split_row(&row)
        };
        assert_eq!(cut("KeyPrefixRegionSplitPolicy", SPLIT_PREFIX_LENGTH, "4"), "user");
        assert_eq!(cut("KeyPrefixRegionSplitPolicy", SPLIT_PREFIX_LENGTH, "40"), row);
        assert_eq!(cut("KeyPrefixRegionSplitPolicy", SPLIT_PREFIX_LENGTH, "0"), row);
        assert_eq!(cut("DelimitedKeyPrefixRegionSplitPolicy", SPLIT_DELIMITER, "_1"), "user");
        assert_eq!(cut("DelimitedKeyPrefixRegionSplitPolicy", SPLIT_DELIMITER, ","), row);
        assert_eq!(cut("SteppingSplitPolicy", SPLIT_PREFIX_LENGTH, "4"), row);
    }
}
