//! A table's and a namespace's attributes (HBase `TableDescriptorBuilder`, `NamespaceDescriptor`).

use super::durability::Durability;
use super::family::ColumnFamilyDescriptor;
use bytes::Bytes;
use std::collections::BTreeMap;

/// The hidden family that keeps rows' own mode, owner and time beside the user's families. Its leading dot is illegal in HBase, so it can
/// never meet a user's; it is never listed, scanned by default, or exported.
pub const ROW_ATTRIBUTES_FAMILY: &[u8] = b".attributes";

/// One table's schema.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TableDescriptor {
    /// The families by name; at least one.
    pub families: BTreeMap<Bytes, ColumnFamilyDescriptor>,
    /// MAX_FILESIZE in bytes: a region whose largest store is over it splits.
    pub max_file_size: Option<u64>,
    /// MEMSTORE_FLUSHSIZE in bytes.
    pub memstore_flush_size: Option<u64>,
    /// COMPACTION_ENABLED; default true.
    pub compaction_disabled: bool,
    /// SPLIT_ENABLED; default true.
    pub split_disabled: bool,
    /// READONLY.
    pub read_only: bool,
    /// DURABILITY.
    pub durability: Durability,
    /// Every other attribute, stored and shown.
    pub metadata: BTreeMap<String, String>,
}

/// SPLIT_POLICY: how large a region becomes before it splits by itself (HBase `RegionSplitPolicy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum SplitPolicy {
    /// A table's only region at twice the flush size, all others at MAX_FILESIZE.
    #[default]
    Stepping,
    /// At MAX_FILESIZE.
    ConstantSize,
    /// At twice the flush size times the cube of the number of the table's regions, MAX_FILESIZE at most.
    IncreasingToUpperBound,
    /// When as IncreasingToUpperBound; at the first bytes of a row, as many as the table says.
    KeyPrefix,
    /// When as IncreasingToUpperBound; at what a row has before the delimiter that the table says.
    DelimitedKeyPrefix,
    /// Never.
    Disabled,
}

impl TableDescriptor {
    /// A table with one family of defaults.
    pub fn with_family(family: impl Into<Bytes>) -> TableDescriptor {
        TableDescriptor::default().family(family, ColumnFamilyDescriptor::default())
    }

    /// Adds or replaces a family.
    #[must_use]
    pub fn family(mut self, name: impl Into<Bytes>, descriptor: ColumnFamilyDescriptor) -> TableDescriptor {
        self.families.insert(name.into(), descriptor);
        self
    }
}

/// One namespace's schema.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct NamespaceDescriptor {
    /// MAXTABLES (HBase hbase.namespace.quota.maxtables).
    pub max_tables: Option<u32>,
    /// MAXREGIONS.
    pub max_regions: Option<u32>,
    /// Free properties.
    pub metadata: BTreeMap<String, String>,
}
