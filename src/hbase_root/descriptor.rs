//! Descriptors: `.tableinfo` files and those inside snapshots (HBase `FSTableDescriptors`, `ProtobufUtil.toTableDescriptor`).

use super::layout::{read_file, text};
use super::messages::{self, BytesPair, ColumnFamilySchema, NamePair, NamespaceMessage, TableSchema};
use crate::error::{Error, Result};
use crate::schema::{
    BloomType, ColumnFamilyDescriptor, Compression, DataBlockEncoding, Durability, KeepDeletedCells,
    NamespaceDescriptor, TableDescriptor,
};
use crate::vfs::Vfs;
use std::collections::BTreeMap;
use std::path::Path;

const DESCRIPTOR_DIRECTORY: &str = ".tabledesc";
const PREFIX_LENGTH: &str = "RowPrefixBloomFilter.prefix_length";

/// The descriptor in a table's directory: of `.tabledesc/.tableinfo.<number>[.<length>]` the highest number that can be read counts, as in HBase.
///
/// # Errors
/// [`Error::Corruption`] if there are descriptors and none can be read.
pub(super) fn read_table_descriptor(vfs: &dyn Vfs, table: &Path) -> Result<Option<TableDescriptor>> {
    let directory = table.join(DESCRIPTOR_DIRECTORY);
    if !vfs.exists(&directory)? {
        return Ok(None);
    }
    let mut numbered = Vec::new();
    for entry in vfs.list(&directory)? {
        if let Some(rest) = entry.name.strip_prefix(".tableinfo") {
            let number = rest.trim_start_matches('.').split('.').next().and_then(|digits| digits.parse::<u64>().ok());
            numbered.push((number.unwrap_or(0), entry.name));
        }
    }
    numbered.sort_by(|left, right| right.cmp(left));
    let mut failure = None;
    for (_, name) in numbered {
        let path = directory.join(name);
        let parsed = read_file(vfs, &path)
            .and_then(|bytes| messages::decode::<TableSchema>(bytes, &path, "table descriptor"))
            .map(|schema| table_descriptor(&schema));
        match parsed {
            Ok(descriptor) => return Ok(Some(descriptor)),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    failure.map_or(Ok(None), Err)
}

/// A descriptor out of HBase's. Attributes that have a field here and a value that is none of HBase's are kept among the metadata, to be seen.
pub(super) fn table_descriptor(schema: &TableSchema) -> TableDescriptor {
    let mut table = TableDescriptor::default();
    for (name, value) in pairs(&schema.attributes, &schema.configuration) {
        if !set_table_attribute(&mut table, &name, &value) {
            table.metadata.insert(name, value);
        }
    }
    for family in &schema.families {
        table.families.insert(family.name.clone(), family_descriptor(family));
    }
    table
}

fn pairs(attributes: &[BytesPair], configuration: &[NamePair]) -> Vec<(String, String)> {
    let attributes = attributes.iter().map(|pair| (text(&pair.first), text(&pair.second)));
    let configuration = configuration.iter().map(|pair| (pair.name.clone(), pair.value.clone()));
    attributes.chain(configuration).collect()
}

/// Java's `Boolean.parseBoolean`.
fn boolean(value: &str) -> bool {
    value.eq_ignore_ascii_case("true")
}

/// HBase's default is that a size is not set: numbers below zero, and Long.MAX, say so.
fn size(value: &str) -> Option<Option<u64>> {
    let bytes = value.parse::<i64>().ok()?;
    Some(u64::try_from(bytes).ok().filter(|_| bytes != i64::MAX && bytes != 0))
}

fn set_table_attribute(table: &mut TableDescriptor, name: &str, value: &str) -> bool {
    match name {
        "MAX_FILESIZE" => size(value).map(|bytes| table.max_file_size = bytes).is_some(),
        "MEMSTORE_FLUSHSIZE" => size(value).map(|bytes| table.memstore_flush_size = bytes).is_some(),
        "COMPACTION_ENABLED" => {
            table.compaction_disabled = !boolean(value);
            true
        }
        "SPLIT_ENABLED" => {
            table.split_disabled = !boolean(value);
            true
        }
        "READONLY" => {
            table.read_only = boolean(value);
            true
        }
        "DURABILITY" => {
            let known = match value {
                "USE_DEFAULT" => Durability::UseDefault,
                "SKIP_WAL" => Durability::SkipWal,
                "ASYNC_WAL" => Durability::AsyncWal,
                "SYNC_WAL" => Durability::SyncWal,
                "FSYNC_WAL" => Durability::FsyncWal,
                _ => return false,
            };
            table.durability = known;
            true
        }
        _ => false,
    }
}

fn family_descriptor(schema: &ColumnFamilySchema) -> ColumnFamilyDescriptor {
    let mut family = ColumnFamilyDescriptor::default();
    let all: BTreeMap<String, String> = pairs(&schema.attributes, &schema.configuration).into_iter().collect();
    for (name, value) in &all {
        if set_family_attribute(&mut family, name, value, &all).is_none() {
            family.metadata.insert(name.clone(), value.clone());
        }
    }
    family
}

/// `None` where the attribute has no field, or the field no such value.
fn set_family_attribute(
    family: &mut ColumnFamilyDescriptor,
    name: &str,
    value: &str,
    all: &BTreeMap<String, String>,
) -> Option<()> {
    match name {
        "VERSIONS" => family.versions = value.parse().ok()?,
        "MIN_VERSIONS" => family.min_versions = value.parse().ok()?,
        "TTL" => family.ttl_seconds = value.parse().ok().filter(|seconds| *seconds > 0)?,
        "BLOCKSIZE" => family.block_size = value.parse().ok()?,
        "BLOCKCACHE" => family.block_cache = boolean(value),
        "IN_MEMORY" => family.in_memory = boolean(value),
        "NEW_VERSION_BEHAVIOR" => family.new_version_behavior = boolean(value),
        "KEEP_DELETED_CELLS" => {
            family.keep_deleted_cells = match value.to_ascii_uppercase().as_str() {
                "FALSE" => KeepDeletedCells::False,
                "TRUE" => KeepDeletedCells::True,
                "TTL" => KeepDeletedCells::Ttl,
                _ => return None,
            }
        }
        "BLOOMFILTER" => {
            family.bloom = match value.to_ascii_uppercase().as_str() {
                "NONE" => BloomType::None,
                "ROW" => BloomType::Row,
                "ROWCOL" => BloomType::RowCol,
                "ROWPREFIX_FIXED_LENGTH" => BloomType::RowPrefixFixedLength(all.get(PREFIX_LENGTH)?.parse().ok()?),
                _ => return None,
            }
        }
        // Goes with BLOOMFILTER.
        PREFIX_LENGTH if matches!(all.get("BLOOMFILTER").map(String::as_str), Some("ROWPREFIX_FIXED_LENGTH")) => {}
        "COMPRESSION" => {
            family.compression = match value.to_ascii_uppercase().as_str() {
                "NONE" => Compression::None,
                "GZ" => Compression::Gz,
                "SNAPPY" => Compression::Snappy,
                "LZ4" => Compression::Lz4,
                "ZSTD" => Compression::Zstd,
                _ => return None,
            }
        }
        "DATA_BLOCK_ENCODING" => {
            family.data_block_encoding = match value.to_ascii_uppercase().as_str() {
                "NONE" => DataBlockEncoding::None,
                "PREFIX" => DataBlockEncoding::Prefix,
                "DIFF" => DataBlockEncoding::Diff,
                "FAST_DIFF" => DataBlockEncoding::FastDiff,
                "ROW_INDEX_V1" => DataBlockEncoding::RowIndexV1,
                _ => return None,
            }
        }
        _ => return None,
    }
    Some(())
}

/// A namespace's descriptor out of HBase's.
pub(super) fn namespace_descriptor(message: &NamespaceMessage) -> NamespaceDescriptor {
    let mut namespace = NamespaceDescriptor::default();
    for pair in &message.configuration {
        let limit = pair.value.parse().ok();
        match (pair.name.as_str(), limit) {
            ("hbase.namespace.quota.maxtables", Some(limit)) => namespace.max_tables = Some(limit),
            ("hbase.namespace.quota.maxregions", Some(limit)) => namespace.max_regions = Some(limit),
            _ => {
                namespace.metadata.insert(pair.name.clone(), pair.value.clone());
            }
        }
    }
    namespace
}

/// A table without a descriptor cannot be read: what its families are is nowhere else.
pub(super) fn missing_descriptor(table: &Path) -> Error {
    Error::Corruption {
        file: table.join(DESCRIPTOR_DIRECTORY),
        offset: 0,
        what: "the table has no descriptor: copy the table's directory again, with the names that begin with a dot"
            .to_owned(),
    }
}
