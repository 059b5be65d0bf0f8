//! What hbase:meta and hbase:namespace say (HBase `MetaTableAccessor`, `CatalogFamilyFormat`, `TableNamespaceManager`).

use super::descriptor::namespace_descriptor;
use super::layout::text;
use super::messages::{self, NamespaceMessage, RegionInfoMessage, TableStateMessage};
use super::region_info::{RegionDescription, table_name};
use crate::client::{Scan, Table, TableName};
use crate::error::Result;
use crate::schema::NamespaceDescriptor;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What hbase:meta says about one table.
#[derive(Clone, Debug, Default)]
pub(super) struct MetaTable {
    /// Its regions, replaced ones included.
    pub(super) regions: Vec<RegionDescription>,
    /// Disabled, or being disabled or enabled: HBase would not serve it.
    pub(super) disabled: bool,
    /// The newest timestamp in all of hbase:meta: later changes are unknown to it.
    pub(super) newest: i64,
}

/// All that hbase:meta says, by table.
pub(super) fn read_meta(meta: &dyn Table, place: &Path) -> Result<BTreeMap<TableName, MetaTable>> {
    let mut tables: BTreeMap<TableName, MetaTable> = BTreeMap::new();
    let mut newest = 0;
    let mut rows = meta.scan(&Scan::new())?;
    while let Some(row) = rows.next()? {
        newest = row.cells.iter().map(|cell| cell.timestamp()).fold(newest, i64::max);
        if let Some(cell) = row.cell(b"table", b"state")
            && let Ok(name) = TableName::parse(&text(cell.row()))
        {
            let state: TableStateMessage = messages::decode(cell.value_bytes(), place, "table state")?;
            tables.entry(name).or_default().disabled = state.state != 0;
        }
        let Some(cell) = row.cell(b"info", b"regioninfo") else { continue };
        let message: RegionInfoMessage = messages::decode(cell.value_bytes(), place, "region description")?;
        let name = message.table_name.as_ref().and_then(table_name);
        if let (Some(name), Some(mut region)) = (name, RegionDescription::of_message(&message)) {
            let state = row.cell(b"info", b"state").map(|state| text(state.value()));
            region.replaced |= matches!(state.as_deref(), Some("SPLIT" | "MERGED"));
            tables.entry(name).or_default().regions.push(region);
        }
    }
    tables.values_mut().for_each(|table| table.newest = newest);
    Ok(tables)
}

/// Namespaces and their descriptors: rows of hbase:namespace, and in newer versions the family `ns` of hbase:meta.
pub(super) fn read_namespaces(
    tables: &[Arc<dyn Table>],
    place: &Path,
) -> Result<BTreeMap<String, Arc<NamespaceDescriptor>>> {
    let mut namespaces = BTreeMap::new();
    for table in tables {
        let mut rows = table.scan(&Scan::new())?;
        while let Some(row) = rows.next()? {
            let Some(cell) = row.cell(b"info", b"d").or_else(|| row.cell(b"ns", b"d")) else { continue };
            let message: NamespaceMessage = messages::decode(cell.value_bytes(), place, "namespace descriptor")?;
            namespaces.insert(text(cell.row()), Arc::new(namespace_descriptor(&message)));
        }
    }
    Ok(namespaces)
}
