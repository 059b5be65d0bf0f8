//! A column family's attributes (HBase `ColumnFamilyDescriptorBuilder`, checks of `TableDescriptorChecker`; hbase.md A9).

use std::collections::BTreeMap;

/// The TTL that means "never expires", in seconds (HBase `HConstants.FOREVER`).
pub const FOREVER: i32 = i32::MAX;

/// BLOOMFILTER.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BloomType {
    /// No bloom filter.
    None,
    /// By row.
    #[default]
    Row,
    /// By row and qualifier.
    RowCol,
    /// By the first bytes of the row.
    RowPrefixFixedLength(u32),
}

/// COMPRESSION: the codec of an HFile's blocks (HBase `Compression.Algorithm`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Compression {
    /// None.
    #[default]
    None,
    /// A plain gzip stream.
    Gz,
    /// Snappy in Hadoop's block framing.
    Snappy,
    /// LZ4 in Hadoop's block framing.
    Lz4,
    /// Zstandard in Hadoop's block framing.
    Zstd,
}

impl Compression {
    /// The codecs that store files are written with.
    pub const ALL: [Compression; 5] =
        [Compression::None, Compression::Gz, Compression::Snappy, Compression::Lz4, Compression::Zstd];

    /// HBase's name.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "NONE",
            Compression::Gz => "GZ",
            Compression::Snappy => "SNAPPY",
            Compression::Lz4 => "LZ4",
            Compression::Zstd => "ZSTD",
        }
    }

    /// The codec of HBase's name, whatever its case.
    pub fn of_name(name: &str) -> Option<Compression> {
        Compression::ALL.into_iter().find(|codec| codec.name().eq_ignore_ascii_case(name))
    }
}

/// DATA_BLOCK_ENCODING.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DataBlockEncoding {
    /// Flat cells.
    #[default]
    None,
    /// Common key prefixes left out.
    Prefix,
    /// Prefixes, lengths and timestamps as differences.
    Diff,
    /// A faster form of Diff.
    FastDiff,
    /// Flat cells with an index of rows.
    RowIndexV1,
}

/// KEEP_DELETED_CELLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KeepDeletedCells {
    /// Deleted cells go with the next compaction that may drop them.
    #[default]
    False,
    /// Deleted cells stay until VERSIONS or TTL removes them.
    True,
    /// As True until the marker itself is older than TTL.
    Ttl,
}

/// One column family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnFamilyDescriptor {
    /// VERSIONS: how many puts of a column are kept.
    pub versions: u32,
    /// MIN_VERSIONS: how many stay although TTL has passed.
    pub min_versions: u32,
    /// TTL in seconds; [`FOREVER`] for none.
    pub ttl_seconds: i32,
    /// KEEP_DELETED_CELLS.
    pub keep_deleted_cells: KeepDeletedCells,
    /// BLOOMFILTER.
    pub bloom: BloomType,
    /// BLOCKSIZE in bytes.
    pub block_size: u32,
    /// COMPRESSION.
    pub compression: Compression,
    /// DATA_BLOCK_ENCODING.
    pub data_block_encoding: DataBlockEncoding,
    /// BLOCKCACHE: whether data blocks that are read are kept in the block cache.
    pub block_cache: bool,
    /// IN_MEMORY.
    pub in_memory: bool,
    /// NEW_VERSION_BEHAVIOR (HBASE-15968).
    pub new_version_behavior: bool,
    /// Every other attribute as HBase spells it, stored and shown.
    pub metadata: BTreeMap<String, String>,
}

impl Default for ColumnFamilyDescriptor {
    fn default() -> Self {
        ColumnFamilyDescriptor {
            versions: 1,
            min_versions: 0,
            ttl_seconds: FOREVER,
            keep_deleted_cells: KeepDeletedCells::False,
            bloom: BloomType::Row,
            block_size: 65536,
            compression: Compression::None,
            data_block_encoding: DataBlockEncoding::None,
            block_cache: true,
            in_memory: false,
            new_version_behavior: false,
            metadata: BTreeMap::new(),
        }
    }
}
