//! hbase:meta: the regions of all tables as HBase's own table would show them (HBase `MetaTableAccessor`, `CatalogFamilyFormat`). It is made of what is open at
//! each read, and nobody's to write.

use super::StoreInner;
use super::namespaces::SYSTEM_NAMESPACE;
use crate::cell::{Cell, CellType};
use crate::client::TableName;
use crate::region::{FrozenRegion, Region, RegionInfoMessage, Standpoint, TableNameMessage, region_name};
use crate::schema::{ColumnFamilyDescriptor, TableDescriptor};
use std::sync::Arc;

/// Its identity: no manifest counts so far.
pub(super) const META_TABLE_ID: u64 = 1 << 62;

const META_QUALIFIER: &str = "meta";
/// The family that says which regions there are (HBase `HConstants.CATALOG_FAMILY`).
const CATALOG_FAMILY: &[u8] = b"info";

/// hbase:meta.
pub(super) struct MetaTable {
    pub(super) store: Arc<StoreInner>,
}

/// The table's name.
pub(super) fn meta_name() -> TableName {
    TableName { namespace: SYSTEM_NAMESPACE.to_owned(), qualifier: META_QUALIFIER.to_owned() }
}

/// The one family as HBase has it (HBase `FSTableDescriptors.createMetaTableDescriptor`); READONLY, for nobody writes it.
pub(super) fn meta_descriptor() -> TableDescriptor {
    let family = ColumnFamilyDescriptor { versions: 3, in_memory: true, block_size: 8192, ..Default::default() };
    TableDescriptor { read_only: true, ..TableDescriptor::default().family(CATALOG_FAMILY, family) }
}

impl MetaTable {
    pub(super) fn standpoint(&self) -> Standpoint {
        Standpoint::present(u64::MAX, self.store.now())
    }

    /// The rows of this moment.
    pub(super) fn regions(&self) -> FrozenRegion {
        let all = self.store.all_regions();
        let cells = all.iter().flat_map(|(table, region)| cells_of(&table.name(), region)).collect();
        FrozenRegion::of_cells(CATALOG_FAMILY, ColumnFamilyDescriptor::default(), cells)
    }
}

/// What meta has of one region that is served: `info:regioninfo` and `info:state`. There are no servers to name.
fn cells_of(table: &TableName, region: &Region) -> [Cell; 2] {
    let born = region.born_millis();
    let row = region_name(table, region.start(), born, region.encoded_name());
    let message = RegionInfoMessage {
        region_id: u64::try_from(born).unwrap_or(0),
        table_name: Some(TableNameMessage {
            namespace: table.namespace.clone().into_bytes().into(),
            qualifier: table.qualifier.clone().into_bytes().into(),
        }),
        start_key: region.start().clone(),
        end_key: region.end().clone(),
        offline: false,
        split: false,
        replica_id: 0,
    };
    let cell = |qualifier: &[u8], value: &[u8]| Cell::new(&row, CATALOG_FAMILY, qualifier, born, CellType::Put, value);
    [cell(b"regioninfo", &message.to_value()), cell(b"state", b"OPEN")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    #[test]
    fn a_value_is_what_hbase_writes() {
        let table = TableNameMessage { namespace: "default".into(), qualifier: "t".into() };
        let message =
            RegionInfoMessage { region_id: 7, table_name: Some(table), end_key: "m".into(), ..Default::default() };
        let value = message.to_value();
        assert_eq!(value, b"PBUF\x08\x07\x12\x0c\x0a\x07default\x12\x01t\x22\x01m".as_slice());
        assert_eq!(RegionInfoMessage::decode(value.slice(4..)).unwrap(), message);
    }
}
