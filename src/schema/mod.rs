//! Namespace, table and family descriptors: HBase's attributes under HBase's names, with HBase's defaults and checks.

mod durability;
mod family;
mod table;

pub use durability::Durability;
pub use family::{BloomType, ColumnFamilyDescriptor, Compression, DataBlockEncoding, FOREVER, KeepDeletedCells};
pub use table::{NamespaceDescriptor, ROW_ATTRIBUTES_FAMILY, TableDescriptor};
