//! Namespace, table and family descriptors: HBase's attributes under HBase's names, with HBase's defaults and checks.

mod check;
mod column_types;
mod durability;
mod effective;
mod family;
mod table;
mod text;

pub use check::check_family_name;
pub use column_types::ColumnTypes;
pub use durability::Durability;
pub use effective::CacheOnWrite;
pub use family::{BloomType, ColumnFamilyDescriptor, Compression, DataBlockEncoding, FOREVER, KeepDeletedCells};
pub use table::{NamespaceDescriptor, ROW_ATTRIBUTES_FAMILY, SplitPolicy, TableDescriptor};
pub use text::{
    KeySpelling, StoreSettings, TableText, describe_namespace, describe_table, parse_namespace, parse_table,
};
