//! Namespaces, tables and snapshots of a root directory.

use super::open::snapshot_table;
use super::statistics::{region_info, region_statistics, table_statistics};
use super::table::RootTable;
use super::{HBaseRoot, READ_ONLY, read_only};
use crate::client::{
    Admin, NamespaceName, RegionInfo, RunningTask, SnapshotInfo, StoreSettings, Table, TableAttributes, TableName,
    TableStatistics,
};
use crate::error::{Error, Result};
use crate::schema::{NamespaceDescriptor, TableDescriptor};
use bytes::Bytes;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// HBase's own namespace: found, but not listed.
const SYSTEM_NAMESPACE: &str = "hbase";

/// An identity that is the same at each mount; those of views have the highest bit.
pub(super) fn identity(name: &str) -> u64 {
    xxh3_64(name.as_bytes()) >> 1
}

impl HBaseRoot {
    fn find(&self, name: &TableName) -> Result<Arc<RootTable>> {
        if let Some(error) = self.broken.get(name) {
            return Err(error.again());
        }
        if let Some(table) = self.tables.get(name) {
            return Ok(Arc::clone(table));
        }
        if self.only_snapshots.contains(name)
            && let Some(newest) = self.snapshots.iter().rev().find(|snapshot| &snapshot.table == name)
        {
            return Ok(Arc::new(snapshot_table(&self.files, &self.clock, newest)?.without_rows()));
        }
        Err(Error::NoSuchTable(name.to_string()))
    }
}

impl Admin for HBaseRoot {
    fn list_namespaces(&self) -> Result<Vec<NamespaceName>> {
        Ok(self.namespaces.keys().filter(|name| *name != SYSTEM_NAMESPACE).cloned().collect())
    }

    fn namespace(&self, name: &str) -> Result<(u64, Arc<NamespaceDescriptor>, TableAttributes)> {
        let descriptor = self.namespaces.get(name).ok_or_else(|| Error::NoSuchNamespace(name.to_owned()))?;
        Ok((identity(name), Arc::clone(descriptor), self.attributes))
    }

    fn create_namespace(&self, _: &str, _: NamespaceDescriptor, _: TableAttributes) -> Result<()> {
        read_only()
    }

    fn modify_namespace(&self, _: &str, _: NamespaceDescriptor) -> Result<()> {
        read_only()
    }

    fn drop_namespace(&self, _: &str) -> Result<()> {
        read_only()
    }

    fn set_namespace_attributes(&self, _: &str, _: TableAttributes) -> Result<()> {
        read_only()
    }

    fn list_tables(&self, namespace: &str) -> Result<Vec<TableName>> {
        let hidden = self.only_snapshots.iter().filter(|_| self.list_only_snapshots);
        let all = self.tables.keys().chain(self.broken.keys()).chain(hidden);
        let mut names: Vec<TableName> = all.filter(|name| name.namespace == namespace).cloned().collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn table(&self, name: &TableName) -> Result<Arc<dyn Table>> {
        Ok(self.find(name)?)
    }

    fn create_table(
        &self,
        _: &TableName,
        _: TableDescriptor,
        _: &[Bytes],
        _: TableAttributes,
    ) -> Result<Arc<dyn Table>> {
        read_only()
    }

    fn modify_table(&self, _: &TableName, _: TableDescriptor) -> Result<()> {
        read_only()
    }

    fn presplit_table(&self, _: &TableName, _: &[Bytes]) -> Result<()> {
        read_only()
    }

    fn rename_table(&self, _: &TableName, _: &TableName) -> Result<()> {
        read_only()
    }

    fn drop_table(&self, _: &TableName) -> Result<()> {
        read_only()
    }

    fn truncate_table(&self, _: &TableName) -> Result<()> {
        read_only()
    }

    fn table_attributes(&self, name: &TableName) -> Result<TableAttributes> {
        let born = self.find(name)?.born_millis();
        Ok(TableAttributes { changed_millis: born, modified_millis: born, ..self.attributes })
    }

    fn set_table_attributes(&self, _: &TableName, _: TableAttributes) -> Result<()> {
        read_only()
    }

    fn flush_table(&self, _: &TableName) -> Result<()> {
        read_only()
    }

    fn compact_table(&self, _: &TableName, _: Option<&[u8]>) -> Result<()> {
        read_only()
    }

    fn major_compact_table(&self, _: &TableName, _: Option<&[u8]>) -> Result<()> {
        read_only()
    }

    fn split_table(&self, _: &TableName, _: Option<&[u8]>) -> Result<()> {
        read_only()
    }

    fn regions(&self, name: &TableName) -> Result<Vec<RegionInfo>> {
        Ok(self.find(name)?.regions.iter().map(region_info).collect())
    }

    fn table_statistics(&self, name: &TableName) -> Result<TableStatistics> {
        Ok(table_statistics(self.find(name)?.as_ref(), None))
    }

    fn family_statistics(&self, name: &TableName, family: &[u8]) -> Result<TableStatistics> {
        let table = self.find(name)?;
        if table.descriptor().families.contains_key(family) {
            return Ok(table_statistics(table.as_ref(), Some(family)));
        }
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let known = table.descriptor().families.keys().map(|name| text(name)).collect();
        Err(Error::NoSuchColumnFamily { family: text(family), known })
    }

    fn region_statistics(&self, name: &TableName, encoded_name: &str) -> Result<TableStatistics> {
        let table = self.find(name)?;
        let region = table.regions.iter().find(|region| region.info.encoded == encoded_name);
        let missing = || Error::invalid(format!("{name} has no region {encoded_name}"));
        Ok(region_statistics(region.ok_or_else(missing)?))
    }

    fn list_snapshots(&self, table: &TableName) -> Result<Vec<SnapshotInfo>> {
        let of_table = self.snapshots.iter().filter(|snapshot| &snapshot.table == table);
        Ok(of_table.map(|snapshot| snapshot.info.clone()).collect())
    }

    fn open_snapshot(&self, table: &TableName, snapshot: &[u8]) -> Result<Arc<dyn Table>> {
        let found = self.snapshots.iter().find(|known| &known.table == table && known.info.name == snapshot);
        let missing = || Error::NoSuchSnapshot(format!("{table} {}", snapshot.escape_ascii()));
        Ok(Arc::new(snapshot_table(&self.files, &self.clock, found.ok_or_else(missing)?)?))
    }

    fn running_tasks(&self) -> Vec<RunningTask> {
        Vec::new()
    }

    fn settings(&self) -> StoreSettings {
        StoreSettings {
            compaction_threads: 1,
            compaction_throttle: 0,
            major_period_millis: 0,
            major_hours: None,
            cache_bytes: self.cache_bytes,
            memstore_bytes: 0,
            // HBase's client would send up to 2 GB; a value is held in memory as a whole.
            cell_max: 1 << 30,
            sync_interval_millis: 0,
        }
    }

    fn update_settings(&self, _: &StoreSettings) -> Result<()> {
        read_only()
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn read_only_reason(&self) -> Option<String> {
        Some(READ_ONLY.to_owned())
    }

    fn slows_writers(&self) -> bool {
        false
    }

    fn free_space(&self) -> Result<u64> {
        self.files.context.vfs.free_space(&self.files.root)
    }
}
