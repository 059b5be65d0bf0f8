//! Attributes as tables: each one's name, how it is shown and how it is set. The checks are those of HBase `TableDescriptorChecker` and of the
//! setters of `ColumnFamilyDescriptorBuilder` and `TableDescriptorBuilder` (hbase.md A9).

use super::stored::codec;
use super::value::Value;
use crate::schema::{
    BloomType, ColumnFamilyDescriptor, Compression, DataBlockEncoding, Durability, FOREVER, KeepDeletedCells,
    TableDescriptor,
};

/// One attribute with a field of its own in the descriptor `D`.
pub(super) struct Attribute<D> {
    /// HBase's name.
    pub(super) name: &'static str,
    /// The effective value; `None` where it has no meaning beside the others.
    pub(super) show: fn(&D) -> Option<Value>,
    /// Sets a value, or says why not.
    pub(super) set: fn(&mut D, &Value) -> Result<(), String>,
}

/// The metadata key of HBase's prefix length for BLOOMFILTER ROWPREFIX_FIXED_LENGTH (`BloomFilterUtil.PREFIX_LENGTH_KEY`).
pub(super) const PREFIX_LENGTH: &str = "RowPrefixBloomFilter.prefix_length";

/// The codecs by HBase's names.
pub(super) const CODECS: [&str; 5] = ["NONE", "GZ", "SNAPPY", "LZ4", "ZSTD"];

/// What a family's attributes with fields of their own are, in the order HBase's shell shows them.
pub(super) const FAMILY: &[Attribute<ColumnFamilyDescriptor>] = &[
    Attribute {
        name: "VERSIONS",
        show: |family| Some(Value::Integer(family.versions.into())),
        set: |family, value| {
            value.integer(1, i32::MAX.into()).map(|versions| family.versions = u32::try_from(versions).unwrap_or(1))
        },
    },
    Attribute {
        name: "MIN_VERSIONS",
        show: |family| Some(Value::Integer(family.min_versions.into())),
        set: |family, value| {
            value.integer(0, i32::MAX.into()).map(|versions| family.min_versions = u32::try_from(versions).unwrap_or(0))
        },
    },
    Attribute {
        name: "TTL",
        show: |family| {
            Some(match family.ttl_seconds {
                FOREVER => Value::text("FOREVER"),
                seconds => Value::seconds(seconds.into()),
            })
        },
        set: |family, value| {
            family.ttl_seconds = if value.is_word("FOREVER") {
                FOREVER
            } else {
                i32::try_from(value.time_in_seconds(FOREVER.into())?).unwrap_or(FOREVER)
            };
            Ok(())
        },
    },
    Attribute {
        name: "KEEP_DELETED_CELLS",
        show: |family| {
            Some(Value::text(match family.keep_deleted_cells {
                KeepDeletedCells::False => "FALSE",
                KeepDeletedCells::True => "TRUE",
                KeepDeletedCells::Ttl => "TTL",
            }))
        },
        set: |family, value| {
            family.keep_deleted_cells = match value.word(&["FALSE", "TRUE", "TTL"])? {
                "TRUE" => KeepDeletedCells::True,
                "TTL" => KeepDeletedCells::Ttl,
                _ => KeepDeletedCells::False,
            };
            Ok(())
        },
    },
    Attribute { name: "BLOOMFILTER", show: |family| Some(show_bloom(family.bloom)), set: set_bloom },
    Attribute {
        name: PREFIX_LENGTH,
        show: |family| match family.bloom {
            BloomType::RowPrefixFixedLength(length) => Some(Value::Integer(length.into())),
            _ => None,
        },
        set: |family, value| {
            let length = u32::try_from(value.integer(1, 32_767)?).unwrap_or(1);
            match &mut family.bloom {
                BloomType::RowPrefixFixedLength(current) => *current = length,
                _ => return Err("has a meaning only with BLOOMFILTER = \"ROWPREFIX_FIXED_LENGTH\"".to_owned()),
            }
            Ok(())
        },
    },
    Attribute {
        name: "BLOCKSIZE",
        show: |family| Some(Value::size(family.block_size.into())),
        set: |family, value| {
            value.bytes(1024, 16 << 20).map(|bytes| family.block_size = u32::try_from(bytes).unwrap_or(65_536))
        },
    },
    Attribute {
        name: "COMPRESSION",
        show: |family| Some(Value::text(family.compression.name())),
        set: |family, value| {
            family.compression = Compression::of_name(codec(value)?).unwrap_or_default();
            Ok(())
        },
    },
    Attribute {
        name: "DATA_BLOCK_ENCODING",
        show: |family| {
            Some(Value::text(match family.data_block_encoding {
                DataBlockEncoding::None => "NONE",
                DataBlockEncoding::Prefix => "PREFIX",
                DataBlockEncoding::Diff => "DIFF",
                DataBlockEncoding::FastDiff => "FAST_DIFF",
                DataBlockEncoding::RowIndexV1 => "ROW_INDEX_V1",
            }))
        },
        set: |family, value| {
            let words = ["NONE", "PREFIX", "DIFF", "FAST_DIFF", "ROW_INDEX_V1"];
            family.data_block_encoding = match value.word(&words)? {
                "PREFIX" => DataBlockEncoding::Prefix,
                "DIFF" => DataBlockEncoding::Diff,
                "FAST_DIFF" => DataBlockEncoding::FastDiff,
                "ROW_INDEX_V1" => DataBlockEncoding::RowIndexV1,
                _ => DataBlockEncoding::None,
            };
            Ok(())
        },
    },
    Attribute {
        name: "BLOCKCACHE",
        show: |family| Some(Value::Boolean(family.block_cache)),
        set: |family, value| value.boolean().map(|on| family.block_cache = on),
    },
    Attribute {
        name: "IN_MEMORY",
        show: |family| Some(Value::Boolean(family.in_memory)),
        set: |family, value| value.boolean().map(|on| family.in_memory = on),
    },
    Attribute {
        name: "NEW_VERSION_BEHAVIOR",
        show: |family| Some(Value::Boolean(family.new_version_behavior)),
        set: |family, value| value.boolean().map(|on| family.new_version_behavior = on),
    },
];

/// MAX_FILESIZE while nothing is stored (`HConstants.DEFAULT_MAX_FILE_SIZE`).
pub(super) const DEFAULT_MAX_FILE_SIZE: u64 = 10 << 30;
/// MEMSTORE_FLUSHSIZE while nothing is stored (`TableDescriptorBuilder.DEFAULT_MEMSTORE_FLUSH_SIZE`).
pub(super) const DEFAULT_MEMSTORE_FLUSH_SIZE: u64 = 128 << 20;

/// No size may be larger; beyond any volume, and within what HBase keeps in a long.
pub(super) const LARGEST_SIZE: u64 = 1 << 60;

/// What a table's attributes with fields of their own are.
pub(super) const TABLE: &[Attribute<TableDescriptor>] = &[
    Attribute {
        name: "MAX_FILESIZE",
        show: |table| Some(Value::size(table.max_file_size.unwrap_or(DEFAULT_MAX_FILE_SIZE))),
        set: |table, value| {
            let bytes = value.bytes(2 << 20, LARGEST_SIZE)?;
            table.max_file_size = (bytes != DEFAULT_MAX_FILE_SIZE).then_some(bytes);
            Ok(())
        },
    },
    Attribute {
        name: "MEMSTORE_FLUSHSIZE",
        show: |table| Some(Value::size(table.memstore_flush_size.unwrap_or(DEFAULT_MEMSTORE_FLUSH_SIZE))),
        set: |table, value| {
            let bytes = value.bytes(1 << 20, LARGEST_SIZE)?;
            table.memstore_flush_size = (bytes != DEFAULT_MEMSTORE_FLUSH_SIZE).then_some(bytes);
            Ok(())
        },
    },
    Attribute {
        name: "COMPACTION_ENABLED",
        show: |table| Some(Value::Boolean(!table.compaction_disabled)),
        set: |table, value| value.boolean().map(|on| table.compaction_disabled = !on),
    },
    Attribute {
        name: "SPLIT_ENABLED",
        show: |table| Some(Value::Boolean(!table.split_disabled)),
        set: |table, value| value.boolean().map(|on| table.split_disabled = !on),
    },
    Attribute {
        name: "READONLY",
        show: |table| Some(Value::Boolean(table.read_only)),
        set: |table, value| value.boolean().map(|on| table.read_only = on),
    },
    Attribute {
        name: "DURABILITY",
        show: |table| {
            Some(Value::text(match table.durability {
                Durability::UseDefault => "USE_DEFAULT",
                Durability::SkipWal => "SKIP_WAL",
                Durability::AsyncWal => "ASYNC_WAL",
                Durability::SyncWal => "SYNC_WAL",
                Durability::FsyncWal => "FSYNC_WAL",
            }))
        },
        set: |table, value| {
            let words = ["USE_DEFAULT", "SKIP_WAL", "ASYNC_WAL", "SYNC_WAL", "FSYNC_WAL"];
            table.durability = match value.word(&words)? {
                "SKIP_WAL" => Durability::SkipWal,
                "ASYNC_WAL" => Durability::AsyncWal,
                "SYNC_WAL" => Durability::SyncWal,
                "FSYNC_WAL" => Durability::FsyncWal,
                _ => Durability::UseDefault,
            };
            Ok(())
        },
    },
];

fn show_bloom(bloom: BloomType) -> Value {
    Value::text(match bloom {
        BloomType::None => "NONE",
        BloomType::Row => "ROW",
        BloomType::RowCol => "ROWCOL",
        BloomType::RowPrefixFixedLength(_) => "ROWPREFIX_FIXED_LENGTH",
    })
}

fn set_bloom(family: &mut ColumnFamilyDescriptor, value: &Value) -> Result<(), String> {
    family.bloom = match value.word(&["NONE", "ROW", "ROWCOL", "ROWPREFIX_FIXED_LENGTH"])? {
        "NONE" => BloomType::None,
        "ROWCOL" => BloomType::RowCol,
        "ROWPREFIX_FIXED_LENGTH" => BloomType::RowPrefixFixedLength(0),
        _ => BloomType::Row,
    };
    Ok(())
}
