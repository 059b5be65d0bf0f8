//! Snapshots of tables (HBase `SnapshotManager`): a name for the files that a table has at one moment, clones that share them, and the past.

use super::StoreInner;
use super::schema_change::{hold_all, in_id_order};
use super::table_state::TableState;
use super::views::{PastTable, SnapshotTable};
use crate::cell::MAX_ROW_LENGTH;
use crate::client::{SnapshotInfo, Table, TableAttributes, TableName};
use crate::error::{Error, Result};
use crate::manifest::{ManifestEdit, RegionEntry, SnapshotEntry, TableEntry};
use crate::region::{FrozenRegion, Region, TableCounters, encoded_region_name};
use crate::schema::TableDescriptor;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

fn info(entry: &SnapshotEntry) -> SnapshotInfo {
    SnapshotInfo {
        id: entry.id,
        name: entry.name.clone(),
        created_millis: entry.created_millis,
        automatic: entry.automatic,
    }
}

fn check_name(name: &[u8]) -> Result<()> {
    match name.len() {
        1..=MAX_ROW_LENGTH => Ok(()),
        _ => Err(Error::invalid("a snapshot's name has 1 to 32767 bytes")),
    }
}

impl StoreInner {
    pub(super) fn list_snapshots(&self, table: &TableName) -> Result<Vec<SnapshotInfo>> {
        let table = self.table_state(table)?.id;
        Ok(self.services.manifest.read(|state| state.snapshots_of(table).map(|entry| info(entry)).collect()))
    }

    fn snapshot(&self, table: &TableState, name: &[u8]) -> Result<Arc<SnapshotEntry>> {
        let entry = self.services.manifest.read(|state| state.snapshot(table.id, name).cloned());
        entry.ok_or_else(|| Error::NoSuchSnapshot(format!("{} {}", table.name(), name.escape_ascii())))
    }

    pub(super) fn create_snapshot(&self, table: &TableName, name: &[u8]) -> Result<SnapshotInfo> {
        check_name(name)?;
        let table = self.table_state(table)?;
        let entry = self.take_snapshot(&table, name, false, &[])?;
        Ok(info(&entry))
    }

    /// Memory is flushed first while everybody goes on. Then writers wait for the rest of it and one manifest edit: so every mutation, of
    /// however many regions, is in the snapshot or not at all. Automatic snapshots `outdated` go with the same edit.
    pub(super) fn take_snapshot(
        &self,
        table: &TableState,
        name: &[u8],
        automatic: bool,
        outdated: &[Arc<SnapshotEntry>],
    ) -> Result<SnapshotEntry> {
        let _structure = table.structure.lock();
        table.check_exists()?;
        self.services.check_writable(false)?;
        if self.snapshot(table, name).is_ok() {
            return Err(Error::SnapshotExists(format!("{} {}", table.name(), name.escape_ascii())));
        }
        let regions = in_id_order(table);
        for region in &regions {
            region.flush()?;
        }
        let held = hold_all(&regions);
        for region in &held {
            region.flush()?;
        }
        let entry = SnapshotEntry {
            id: self.new_id(),
            table: table.id,
            name: Bytes::copy_from_slice(name),
            created_millis: self.now(),
            sequence_id: self.services.wal()?.last_sequence_id(),
            automatic,
            descriptor: table.descriptor(),
            attributes: table.attributes(),
            regions: self.services.manifest.read(|state| state.regions_of(table.id)),
        };
        let mut edits = vec![ManifestEdit::CreateSnapshot(entry.clone())];
        edits.extend(outdated.iter().map(|old| ManifestEdit::DeleteSnapshot { id: old.id }));
        let _snapshots = self.snapshots.lock();
        self.services.commit(&edits)?;
        drop(held);
        outdated.iter().for_each(|old| self.bury_files_of(&old.regions));
        Ok(entry)
    }

    pub(super) fn delete_snapshot(&self, table: &TableName, name: &[u8]) -> Result<()> {
        self.services.check_writable(true)?;
        let table = self.table_state(table)?;
        let _snapshots = self.snapshots.lock();
        let entry = self.snapshot(&table, name)?;
        self.services.commit(&[ManifestEdit::DeleteSnapshot { id: entry.id }])?;
        self.bury_files_of(&entry.regions);
        Ok(())
    }

    pub(super) fn rename_snapshot(&self, table: &TableName, from: &[u8], to: &[u8]) -> Result<()> {
        check_name(to)?;
        self.services.check_writable(true)?;
        let table = self.table_state(table)?;
        let _snapshots = self.snapshots.lock();
        let entry = self.snapshot(&table, from)?;
        if from != to && self.snapshot(&table, to).is_ok() {
            return Err(Error::SnapshotExists(format!("{} {}", table.name(), to.escape_ascii())));
        }
        let name = Bytes::copy_from_slice(to);
        self.services.commit(&[ManifestEdit::RenameSnapshot { id: entry.id, name }])
    }

    /// Removes the files of regions that are gone, as far as nothing else has them.
    fn bury_files_of(&self, regions: &[Arc<RegionEntry>]) {
        let dead: Vec<u64> = self.services.manifest.read(|state| {
            let live = state.live_files();
            let files = regions.iter().flat_map(|region| region.stores.values()).flat_map(|store| store.files.keys());
            files.filter(|file| !live.contains(file)).copied().collect()
        });
        self.services.store.bury(dead);
    }

    pub(super) fn open_snapshot(self: &Arc<Self>, table: &TableName, name: &[u8]) -> Result<Arc<dyn Table>> {
        let state = self.table_state(table)?;
        // The snapshot is not deleted between the look and the opening of its files.
        let _snapshots = self.snapshots.lock();
        let entry = self.snapshot(&state, name)?;
        if let Some(open) = self.open_snapshots.lock().get(&entry.id).and_then(std::sync::Weak::upgrade) {
            return Ok(Arc::new(SnapshotTable { state, entry, regions: open, _store: Arc::clone(self) }));
        }
        let counters = TableCounters::default();
        let open =
            |region: &Arc<RegionEntry>| FrozenRegion::open(&self.services.store, region, &entry.descriptor, &counters);
        let regions = Arc::new(entry.regions.iter().map(open).collect::<Result<Vec<_>>>()?);
        let mut open_snapshots = self.open_snapshots.lock();
        open_snapshots.retain(|_, open| open.strong_count() > 0);
        open_snapshots.insert(entry.id, Arc::downgrade(&regions));
        drop(open_snapshots);
        Ok(Arc::new(SnapshotTable { state, entry, regions, _store: Arc::clone(self) }))
    }

    pub(super) fn open_as_of(self: &Arc<Self>, table: &TableName, millis: i64) -> Result<Arc<dyn Table>> {
        let state = self.table_state(table)?;
        state.check_exists()?;
        for region in state.regions().iter() {
            region.check_as_of(millis)?;
        }
        Ok(Arc::new(PastTable { store: Arc::clone(self), state, millis }))
    }

    pub(super) fn clone_snapshot(&self, table: &TableName, name: &[u8], to: &TableName) -> Result<Arc<TableState>> {
        TableName::new(to.namespace.clone(), to.qualifier.clone())?;
        let _ddl = self.ddl.lock();
        self.services.check_writable(false)?;
        let source = self.table_state(table)?;
        let _snapshots = self.snapshots.lock();
        let snapshot = self.snapshot(&source, name)?;
        self.check_target(to)?;
        self.check_quota(&to.namespace, 1, snapshot.regions.len())?;
        let (id, born_millis) = (self.new_id(), self.now());
        let descriptor = Arc::new(TableDescriptor { read_only: false, ..(*snapshot.descriptor).clone() });
        let changed =
            TableAttributes { changed_millis: born_millis, modified_millis: born_millis, ..snapshot.attributes };
        let entry = TableEntry {
            id,
            name: to.clone(),
            descriptor: Arc::clone(&descriptor),
            attributes: changed,
            created_millis: born_millis,
        };
        let counters = Arc::new(TableCounters::default());
        let mut edits = vec![ManifestEdit::CreateTable(entry)];
        let mut regions = Vec::with_capacity(snapshot.regions.len());
        for region in &snapshot.regions {
            let copy = RegionEntry {
                id: self.new_id(),
                table: id,
                encoded_name: encoded_region_name(to, &region.start, born_millis),
                parent: None,
                born_millis,
                flushed_sequence_id: self.services.mvcc.read_point(),
                ..(**region).clone()
            };
            regions.push(Arc::new(Region::open(&self.services, &copy, &descriptor, &counters, &BTreeMap::new())?));
            edits.push(ManifestEdit::AddRegion(copy));
        }
        self.services.commit(&edits)?;
        let state = Arc::new(TableState::new(id, to.clone(), descriptor, changed, regions, counters));
        self.catalog.write().tables.insert(to.clone(), Arc::clone(&state));
        Ok(state)
    }

    pub(super) fn exchange_tables(&self, one: &TableName, other: &TableName) -> Result<()> {
        let _ddl = self.ddl.lock();
        self.services.check_writable(true)?;
        let (first, second) = (self.table_state(one)?, self.table_state(other)?);
        if first.id == second.id {
            return Ok(());
        }
        // No table can have this name, and nobody sees it: the three edits are one.
        let between = TableName { namespace: one.namespace.clone(), qualifier: ".exchange".to_owned() };
        self.services.commit(&[
            ManifestEdit::RenameTable { id: first.id, name: between },
            ManifestEdit::RenameTable { id: second.id, name: one.clone() },
            ManifestEdit::RenameTable { id: first.id, name: other.clone() },
        ])?;
        let mut catalog = self.catalog.write();
        first.set_name(other.clone());
        second.set_name(one.clone());
        catalog.tables.insert(other.clone(), first);
        catalog.tables.insert(one.clone(), second);
        Ok(())
    }
}
