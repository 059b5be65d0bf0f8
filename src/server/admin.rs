//! The store as [`Admin`].

use super::meta::{MetaTable, meta_name};
use super::namespaces::SYSTEM_NAMESPACE;
use super::table::TableHandle;
use super::table_state::TableState;
use super::{Store, StoreInner};
use crate::client::{
    Admin, AlterSchema, DamagedFile, NamespaceName, RegionInfo, RestorePoint, RowChanges, RunningTask, SnapshotInfo,
    Table, TableAttributes, TableName, TableStatistics,
};
use crate::compaction::CompactionRequest;
use crate::error::{Error, Result};
use crate::manifest::ManifestEdit;
use crate::region::{CompactionPace, table_statistics};
use crate::schema::{NamespaceDescriptor, ROW_ATTRIBUTES_FAMILY, SplitPolicy, StoreSettings, TableDescriptor};
use crate::store::StoreFileView;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl StoreInner {
    /// Tasks under way; one whose region has just gone is left out.
    fn running_tasks(&self) -> Vec<RunningTask> {
        let now = self.services.store.clock.monotonic();
        let regions = self.all_regions();
        let named = self.services.tasks.running().into_iter().filter_map(|task| {
            let (table, _) = regions.iter().find(|(_, region)| region.encoded_name() == task.region)?;
            Some(RunningTask {
                kind: task.kind,
                table: table.name(),
                region: task.region.clone(),
                family: task.family.clone(),
                millis: now.saturating_sub(task.since).as_millis() as u64,
                done: task.done().min(task.total),
                total: task.total,
            })
        });
        named.collect()
    }

    fn damaged_files(&self) -> Vec<DamagedFile> {
        let mut found: Vec<DamagedFile> = Vec::new();
        for (table, region) in self.all_regions() {
            for store in region.stores() {
                let damaged = |view: &StoreFileView| Some((view.file.path(), view.file.damage()?.to_string()));
                found.extend(store.files().iter().filter_map(damaged).map(|(path, reason)| DamagedFile {
                    table: table.name(),
                    region: region.encoded_name().to_owned(),
                    family: store.family().clone(),
                    path,
                    reason,
                }));
            }
        }
        found
    }

    fn handle(self: &Arc<Self>, state: Arc<TableState>) -> Arc<dyn Table> {
        Arc::new(TableHandle { store: Arc::clone(self), state })
    }

    pub(super) fn table_state(&self, name: &TableName) -> Result<Arc<TableState>> {
        self.catalog.read().table(name)
    }

    /// Runs `request` over the stores of a table; a region that is split meanwhile is left to its daughters.
    fn compact_table(&self, name: &TableName, family: Option<&[u8]>, request: CompactionRequest) -> Result<()> {
        let table = self.table_state(name)?;
        self.services.check_writable(true)?;
        table.check_not_read_only()?;
        if let Some(family) = family {
            check_family(&table, family)?;
        }
        for region in table.regions().iter() {
            for store in region.stores() {
                if family.is_some_and(|family| family != &store.family()[..]) {
                    continue;
                }
                // By policy: as long as it finds something. All files: once.
                loop {
                    let done = match region.compact(&store, request, CompactionPace::Free) {
                        // It gave way to a split: once more, which waits for the split and then finds the region open or closed.
                        Err(Error::Busy { .. }) if !self.services.is_closing() => continue,
                        other => other?,
                    };
                    if done.is_none() || request == CompactionRequest::Major {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn split_table(self: &Arc<Self>, name: &TableName, row: Option<&[u8]>) -> Result<()> {
        let table = self.table_state(name)?;
        self.services.check_writable(false)?;
        let descriptor = table.descriptor();
        check_splittable(name, &descriptor)?;
        if let Some(row) = row {
            crate::region::check_row(row)?;
            while !self.split_region(&table, &table.region_for(row)?, &Bytes::copy_from_slice(row))? {}
            return Ok(());
        }
        let mut splits = 0;
        for region in table.regions().iter() {
            region.flush()?;
            for store in region.stores().iter().filter(|store| store.files().has_references()) {
                region.compact(store, CompactionRequest::Major, CompactionPace::Free)?;
            }
            if let Some(row) = region.split_point(&descriptor)? {
                splits += usize::from(self.split_region(&table, region, &row)?);
            }
        }
        if splits == 0 {
            return Err(Error::NotAllowed(format!("no region of {name} has a row to split at")));
        }
        Ok(())
    }

    /// The figures of a table or, with `family`, of one of its families.
    fn statistics(&self, name: &TableName, family: Option<&[u8]>) -> Result<TableStatistics> {
        let table = self.table_state(name)?;
        if let Some(family) = family {
            check_family(&table, family)?;
        }
        let stalled = self.services.memory.stalled_millis();
        Ok(table_statistics(&table.regions(), &table.counters, family, stalled, self.now()))
    }
}

/// HBase `SplitTableRegionProcedure.prepareSplitRegion` and `DisabledRegionSplitPolicy.canSplit`: nobody splits such a table.
fn check_splittable(name: &TableName, descriptor: &TableDescriptor) -> Result<()> {
    let why = match descriptor.split_policy() {
        _ if descriptor.split_disabled => "SPLIT_ENABLED is false",
        SplitPolicy::Disabled => "SPLIT_POLICY is DisabledRegionSplitPolicy",
        _ => return Ok(()),
    };
    Err(Error::NotAllowed(format!("{name} cannot be split: {why}")))
}

fn check_family(table: &TableState, family: &[u8]) -> Result<()> {
    let descriptor = table.descriptor();
    if descriptor.families.contains_key(family) || family == ROW_ATTRIBUTES_FAMILY {
        return Ok(());
    }
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let known = descriptor.families.keys().map(|name| text(name)).collect();
    Err(Error::NoSuchColumnFamily { family: text(family), known })
}

impl Admin for Store {
    fn list_namespaces(&self) -> Result<Vec<NamespaceName>> {
        Ok(self.inner.list_namespaces())
    }

    fn namespace(&self, name: &str) -> Result<(u64, Arc<NamespaceDescriptor>, TableAttributes)> {
        self.inner.namespace(name)
    }

    fn create_namespace(&self, name: &str, descriptor: NamespaceDescriptor, attributes: TableAttributes) -> Result<()> {
        self.inner.create_namespace(name, descriptor, attributes)
    }

    fn modify_namespace(&self, name: &str, descriptor: NamespaceDescriptor) -> Result<()> {
        self.inner.modify_namespace(name, descriptor)
    }

    fn drop_namespace(&self, name: &str) -> Result<()> {
        self.inner.drop_namespace(name)
    }

    fn set_namespace_attributes(&self, name: &str, attributes: TableAttributes) -> Result<()> {
        self.inner.set_namespace_attributes(name, attributes)
    }

    fn list_tables(&self, namespace: &str) -> Result<Vec<TableName>> {
        self.inner.namespace(namespace)?;
        if namespace == SYSTEM_NAMESPACE {
            return Ok(vec![meta_name()]);
        }
        Ok(self.inner.catalog.read().tables_of(namespace).map(|(name, _)| name.clone()).collect())
    }

    fn table(&self, name: &TableName) -> Result<Arc<dyn Table>> {
        if *name == meta_name() {
            return Ok(Arc::new(MetaTable { store: Arc::clone(&self.inner) }));
        }
        let state = self.inner.table_state(name)?;
        Ok(self.inner.handle(state))
    }

    fn create_table(
        &self,
        name: &TableName,
        descriptor: TableDescriptor,
        splits: &[Bytes],
        attributes: TableAttributes,
    ) -> Result<Arc<dyn Table>> {
        let state = self.inner.create_table(name, descriptor, splits, attributes)?;
        Ok(self.inner.handle(state))
    }

    fn modify_table(&self, name: &TableName, descriptor: TableDescriptor) -> Result<()> {
        self.inner.modify_table(name, descriptor)
    }

    fn alter_table(&self, name: &TableName, alter: AlterSchema<'_>) -> Result<()> {
        self.inner.alter_table(name, alter)
    }

    fn presplit_table(&self, name: &TableName, splits: &[Bytes]) -> Result<()> {
        self.inner.presplit_table(name, splits)
    }

    fn rename_table(&self, from: &TableName, to: &TableName) -> Result<()> {
        self.inner.rename_table(from, to)
    }

    fn drop_table(&self, name: &TableName) -> Result<()> {
        self.inner.drop_table(name)
    }

    fn truncate_table(&self, name: &TableName) -> Result<()> {
        self.inner.truncate_table(name)
    }

    fn table_attributes(&self, name: &TableName) -> Result<TableAttributes> {
        if *name == meta_name() {
            return Ok(self.inner.namespace(SYSTEM_NAMESPACE)?.2);
        }
        Ok(self.inner.table_state(name)?.attributes())
    }

    fn set_table_attributes(&self, name: &TableName, attributes: TableAttributes) -> Result<()> {
        let table = self.inner.table_state(name)?;
        self.inner.services.check_writable(true)?;
        self.inner.services.commit(&[ManifestEdit::SetTableAttributes { id: table.id, attributes }])?;
        table.set_attributes(attributes);
        Ok(())
    }

    fn flush_table(&self, name: &TableName) -> Result<()> {
        let table = self.inner.table_state(name)?;
        self.inner.services.wal()?;
        for region in table.regions().iter() {
            region.flush()?;
        }
        self.inner.forget_log()
    }

    fn compact_table(&self, name: &TableName, family: Option<&[u8]>) -> Result<()> {
        self.inner.compact_table(name, family, CompactionRequest::Policy)
    }

    fn major_compact_table(&self, name: &TableName, family: Option<&[u8]>) -> Result<()> {
        let table = self.inner.table_state(name)?;
        self.inner.services.wal()?;
        for region in table.regions().iter() {
            region.flush()?;
        }
        self.inner.compact_table(name, family, CompactionRequest::Major)
    }

    fn split_table(&self, name: &TableName, row: Option<&[u8]>) -> Result<()> {
        self.inner.split_table(name, row)
    }

    fn regions(&self, name: &TableName) -> Result<Vec<RegionInfo>> {
        if *name == meta_name() {
            return Ok(Vec::new());
        }
        let table = self.inner.table_state(name)?;
        Ok(table.regions().iter().map(|region| region.info()).collect())
    }

    fn table_statistics(&self, name: &TableName) -> Result<TableStatistics> {
        if *name == meta_name() {
            return Ok(TableStatistics::default());
        }
        self.inner.statistics(name, None)
    }

    fn family_statistics(&self, name: &TableName, family: &[u8]) -> Result<TableStatistics> {
        self.inner.statistics(name, Some(family))
    }

    fn region_statistics(&self, name: &TableName, encoded_name: &str) -> Result<TableStatistics> {
        let table = self.inner.table_state(name)?;
        let regions = table.regions();
        let region = regions.iter().find(|region| region.encoded_name() == encoded_name);
        let missing = || Error::invalid(format!("{name} has no region {encoded_name}"));
        Ok(region.ok_or_else(missing)?.statistics())
    }

    fn running_tasks(&self) -> Vec<RunningTask> {
        self.inner.running_tasks()
    }

    fn settings(&self) -> StoreSettings {
        self.inner.settings()
    }

    fn update_settings(&self, settings: &StoreSettings) -> Result<()> {
        self.put_settings(settings)
    }

    fn list_snapshots(&self, table: &TableName) -> Result<Vec<SnapshotInfo>> {
        self.inner.list_snapshots(table)
    }

    fn open_snapshot(&self, table: &TableName, snapshot: &[u8]) -> Result<Arc<dyn Table>> {
        self.inner.open_snapshot(table, snapshot)
    }

    fn create_snapshot(&self, table: &TableName, snapshot: &[u8]) -> Result<SnapshotInfo> {
        self.inner.create_snapshot(table, snapshot)
    }

    fn delete_snapshot(&self, table: &TableName, snapshot: &[u8]) -> Result<()> {
        self.inner.delete_snapshot(table, snapshot)
    }

    fn rename_snapshot(&self, table: &TableName, from: &[u8], to: &[u8]) -> Result<()> {
        self.inner.rename_snapshot(table, from, to)
    }

    fn clone_snapshot(&self, table: &TableName, snapshot: &[u8], to: &TableName) -> Result<Arc<dyn Table>> {
        let state = self.inner.clone_snapshot(table, snapshot, to)?;
        Ok(self.inner.handle(state))
    }

    fn open_as_of(&self, table: &TableName, millis: i64) -> Result<Arc<dyn Table>> {
        self.inner.open_as_of(table, millis)
    }

    fn restore_table(&self, table: &TableName, point: &RestorePoint, prefix: &[u8]) -> Result<RowChanges> {
        self.inner.restore_table(table, point, prefix)
    }

    fn delete_range(&self, table: &TableName, start: &[u8], stop: &[u8]) -> Result<RowChanges> {
        self.inner.delete_range(table, start, stop)
    }

    fn merge_regions(&self, table: &TableName, row: &[u8]) -> Result<()> {
        self.inner.merge_regions(table, row)
    }

    fn exchange_tables(&self, one: &TableName, other: &TableName) -> Result<()> {
        self.inner.exchange_tables(one, other)
    }

    fn sync(&self) -> Result<()> {
        self.inner.services.wal()?.sync().inspect_err(|error| self.inner.services.note_failure(error))
    }

    fn damaged_files(&self) -> Vec<DamagedFile> {
        self.inner.damaged_files()
    }

    fn read_only_reason(&self) -> Option<String> {
        self.inner.services.read_only_reason()
    }

    fn slows_writers(&self) -> bool {
        self.inner.services.memory.slows_writers() || self.inner.services.holding.load(Ordering::Relaxed) > 0
    }

    fn free_space(&self) -> Result<u64> {
        self.inner.vfs.free_space(&self.inner.root)
    }
}
