//! Descriptors in a manifest: lists of numbered fields, so that an attribute can be added without a new format. A field at its default
//! is left out; an unknown field is refused, for a rewrite would lose it.

use super::encoding::{Decoded, Decoder, Encoder, Malformed, damaged};
use crate::schema::{
    BloomType, ColumnFamilyDescriptor, Compression, DataBlockEncoding, Durability, KeepDeletedCells,
    NamespaceDescriptor, TableDescriptor,
};
use std::collections::BTreeMap;

/// Fields of a namespace.
mod namespace_field {
    pub(super) const MAX_TABLES: u8 = 1;
    pub(super) const MAX_REGIONS: u8 = 2;
    pub(super) const METADATA: u8 = 3;
}

/// Fields of a table.
mod table_field {
    pub(super) const FAMILY: u8 = 1;
    pub(super) const MAX_FILE_SIZE: u8 = 2;
    pub(super) const MEMSTORE_FLUSH_SIZE: u8 = 3;
    pub(super) const COMPACTION_DISABLED: u8 = 4;
    pub(super) const SPLIT_DISABLED: u8 = 5;
    pub(super) const READ_ONLY: u8 = 6;
    pub(super) const DURABILITY: u8 = 7;
    pub(super) const METADATA: u8 = 8;
}

/// Fields of a family.
mod family_field {
    pub(super) const VERSIONS: u8 = 1;
    pub(super) const MIN_VERSIONS: u8 = 2;
    pub(super) const TTL_SECONDS: u8 = 3;
    pub(super) const KEEP_DELETED_CELLS: u8 = 4;
    pub(super) const BLOOM: u8 = 5;
    pub(super) const BLOCK_SIZE: u8 = 6;
    pub(super) const COMPRESSION: u8 = 7;
    pub(super) const DATA_BLOCK_ENCODING: u8 = 8;
    pub(super) const BLOCK_CACHE: u8 = 9;
    pub(super) const IN_MEMORY: u8 = 10;
    pub(super) const NEW_VERSION_BEHAVIOR: u8 = 11;
    pub(super) const METADATA: u8 = 12;
}

const KEEP_DELETED: [KeepDeletedCells; 3] = [KeepDeletedCells::False, KeepDeletedCells::True, KeepDeletedCells::Ttl];
const COMPRESSIONS: [Compression; 5] =
    [Compression::None, Compression::Gz, Compression::Snappy, Compression::Lz4, Compression::Zstd];
const ENCODINGS: [DataBlockEncoding; 5] = [
    DataBlockEncoding::None,
    DataBlockEncoding::Prefix,
    DataBlockEncoding::Diff,
    DataBlockEncoding::FastDiff,
    DataBlockEncoding::RowIndexV1,
];
const DURABILITIES: [Durability; 5] =
    [Durability::UseDefault, Durability::SkipWal, Durability::AsyncWal, Durability::SyncWal, Durability::FsyncWal];

/// Writes numbered fields: number, then the value as a byte string.
struct Fields<'a>(&'a mut Encoder);

impl Fields<'_> {
    fn put(&mut self, field: u8, value: impl FnOnce(&mut Encoder)) {
        self.0.byte(field);
        self.0.nested(value);
    }

    fn unless_default<T: PartialEq>(&mut self, field: u8, value: T, default: T, put: impl FnOnce(&mut Encoder, T)) {
        if value != default {
            self.put(field, |out| put(out, value));
        }
    }

    fn choice<T: PartialEq>(&mut self, field: u8, value: &T, default: &T, choices: &[T]) {
        // Every choice is in its list: the tests go through them.
        let code = choices.iter().position(|choice| choice == value).unwrap_or(usize::from(u8::MAX));
        if value != default {
            self.put(field, |out| out.unsigned(code as u64));
        }
    }

    fn metadata(&mut self, field: u8, metadata: &BTreeMap<String, String>) {
        for (key, value) in metadata {
            self.put(field, |out| {
                out.text(key);
                out.text(value);
            });
        }
    }
}

fn choice<T: Copy>(value: &mut Decoder<'_>, choices: &[T], what: &str) -> Decoded<T> {
    let code = value.unsigned()?;
    let found = usize::try_from(code).ok().and_then(|code| choices.get(code));
    found.copied().ok_or_else(|| Malformed::Unknown(format!("{what} {code}")))
}

/// Calls `field` with the number and value of each field, and checks that it takes the whole value.
fn each_field(
    mut payload: Decoder<'_>,
    what: &str,
    mut field: impl FnMut(u8, &mut Decoder<'_>) -> Decoded<bool>,
) -> Decoded<()> {
    while !payload.is_empty() {
        let number = payload.byte()?;
        let mut value = payload.nested()?;
        if !field(number, &mut value)? {
            return Err(Malformed::Unknown(format!("field {number} of a {what}")));
        }
        value.finish(what)?;
    }
    Ok(())
}

fn take_metadata(value: &mut Decoder<'_>, metadata: &mut BTreeMap<String, String>) -> Decoded<()> {
    let key = value.text()?;
    metadata.insert(key, value.text()?);
    Ok(())
}

pub(super) fn encode_namespace(descriptor: &NamespaceDescriptor, out: &mut Encoder) {
    use namespace_field as field;
    let NamespaceDescriptor { max_tables, max_regions, metadata } = descriptor;
    out.nested(|out| {
        let mut fields = Fields(out);
        for (number, value) in [(field::MAX_TABLES, max_tables), (field::MAX_REGIONS, max_regions)] {
            if let Some(value) = value {
                fields.put(number, |out| out.unsigned(u64::from(*value)));
            }
        }
        fields.metadata(field::METADATA, metadata);
    });
}

pub(super) fn decode_namespace(input: &mut Decoder<'_>) -> Decoded<NamespaceDescriptor> {
    use namespace_field as field;
    let mut descriptor = NamespaceDescriptor::default();
    each_field(input.nested()?, "namespace", |number, value| {
        match number {
            field::MAX_TABLES => descriptor.max_tables = Some(value.narrow()?),
            field::MAX_REGIONS => descriptor.max_regions = Some(value.narrow()?),
            field::METADATA => take_metadata(value, &mut descriptor.metadata)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(descriptor)
}

pub(super) fn encode_table(descriptor: &TableDescriptor, out: &mut Encoder) {
    use table_field as field;
    let TableDescriptor {
        families,
        max_file_size,
        memstore_flush_size,
        compaction_disabled,
        split_disabled,
        read_only,
        durability,
        metadata,
    } = descriptor;
    out.nested(|out| {
        let mut fields = Fields(out);
        for (name, family) in families {
            fields.put(field::FAMILY, |out| {
                out.bytes(name);
                encode_family(family, out);
            });
        }
        for (number, value) in
            [(field::MAX_FILE_SIZE, max_file_size), (field::MEMSTORE_FLUSH_SIZE, memstore_flush_size)]
        {
            if let Some(value) = value {
                fields.put(number, |out| out.unsigned(*value));
            }
        }
        fields.unless_default(field::COMPACTION_DISABLED, *compaction_disabled, false, Encoder::flag);
        fields.unless_default(field::SPLIT_DISABLED, *split_disabled, false, Encoder::flag);
        fields.unless_default(field::READ_ONLY, *read_only, false, Encoder::flag);
        fields.choice(field::DURABILITY, durability, &Durability::default(), &DURABILITIES);
        fields.metadata(field::METADATA, metadata);
    });
}

pub(super) fn decode_table(input: &mut Decoder<'_>) -> Decoded<TableDescriptor> {
    use table_field as field;
    let mut descriptor = TableDescriptor::default();
    each_field(input.nested()?, "table", |number, value| {
        match number {
            field::FAMILY => {
                let name = value.bytes()?;
                if descriptor.families.insert(name, decode_family(value)?).is_some() {
                    return damaged("a table has a family twice");
                }
            }
            field::MAX_FILE_SIZE => descriptor.max_file_size = Some(value.unsigned()?),
            field::MEMSTORE_FLUSH_SIZE => descriptor.memstore_flush_size = Some(value.unsigned()?),
            field::COMPACTION_DISABLED => descriptor.compaction_disabled = value.flag()?,
            field::SPLIT_DISABLED => descriptor.split_disabled = value.flag()?,
            field::READ_ONLY => descriptor.read_only = value.flag()?,
            field::DURABILITY => descriptor.durability = choice(value, &DURABILITIES, "the durability")?,
            field::METADATA => take_metadata(value, &mut descriptor.metadata)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(descriptor)
}

fn encode_family(family: &ColumnFamilyDescriptor, out: &mut Encoder) {
    use family_field as field;
    let ColumnFamilyDescriptor {
        versions,
        min_versions,
        ttl_seconds,
        keep_deleted_cells,
        bloom,
        block_size,
        compression,
        data_block_encoding,
        block_cache,
        in_memory,
        new_version_behavior,
        metadata,
    } = family;
    let default = ColumnFamilyDescriptor::default();
    let number = |out: &mut Encoder, value: u32| out.unsigned(u64::from(value));
    out.nested(|out| {
        let mut fields = Fields(out);
        fields.unless_default(field::VERSIONS, *versions, default.versions, number);
        fields.unless_default(field::MIN_VERSIONS, *min_versions, default.min_versions, number);
        fields.unless_default(field::TTL_SECONDS, *ttl_seconds, default.ttl_seconds, |out, ttl| {
            out.signed(i64::from(ttl));
        });
        fields.choice(field::KEEP_DELETED_CELLS, keep_deleted_cells, &default.keep_deleted_cells, &KEEP_DELETED);
        fields.unless_default(field::BLOOM, *bloom, default.bloom, |out, bloom| match bloom {
            BloomType::None => out.byte(0),
            BloomType::Row => out.byte(1),
            BloomType::RowCol => out.byte(2),
            BloomType::RowPrefixFixedLength(length) => {
                out.byte(3);
                out.unsigned(u64::from(length));
            }
        });
        fields.unless_default(field::BLOCK_SIZE, *block_size, default.block_size, number);
        fields.choice(field::COMPRESSION, compression, &default.compression, &COMPRESSIONS);
        fields.choice(field::DATA_BLOCK_ENCODING, data_block_encoding, &default.data_block_encoding, &ENCODINGS);
        fields.unless_default(field::BLOCK_CACHE, *block_cache, default.block_cache, Encoder::flag);
        fields.unless_default(field::IN_MEMORY, *in_memory, default.in_memory, Encoder::flag);
        let new_version = field::NEW_VERSION_BEHAVIOR;
        fields.unless_default(new_version, *new_version_behavior, default.new_version_behavior, Encoder::flag);
        fields.metadata(field::METADATA, metadata);
    });
}

fn decode_family(input: &mut Decoder<'_>) -> Decoded<ColumnFamilyDescriptor> {
    use family_field as field;
    let mut family = ColumnFamilyDescriptor::default();
    each_field(input.nested()?, "family", |number, value| {
        match number {
            field::VERSIONS => family.versions = value.narrow()?,
            field::MIN_VERSIONS => family.min_versions = value.narrow()?,
            field::TTL_SECONDS => {
                let ttl = i32::try_from(value.signed()?);
                family.ttl_seconds = ttl.or_else(|_| damaged("a TTL is too large"))?;
            }
            field::KEEP_DELETED_CELLS => {
                family.keep_deleted_cells = choice(value, &KEEP_DELETED, "the keep-deleted-cells rule")?;
            }
            field::BLOOM => {
                family.bloom = match value.byte()? {
                    0 => BloomType::None,
                    1 => BloomType::Row,
                    2 => BloomType::RowCol,
                    3 => BloomType::RowPrefixFixedLength(value.narrow()?),
                    other => return Err(Malformed::Unknown(format!("the bloom type {other}"))),
                };
            }
            field::BLOCK_SIZE => family.block_size = value.narrow()?,
            field::COMPRESSION => family.compression = choice(value, &COMPRESSIONS, "the compression")?,
            field::DATA_BLOCK_ENCODING => family.data_block_encoding = choice(value, &ENCODINGS, "the block encoding")?,
            field::BLOCK_CACHE => family.block_cache = value.flag()?,
            field::IN_MEMORY => family.in_memory = value.flag()?,
            field::NEW_VERSION_BEHAVIOR => family.new_version_behavior = value.flag()?,
            field::METADATA => take_metadata(value, &mut family.metadata)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(family)
}
