//! [`ManifestState`]: what the edits of a manifest add up to. Pure: no files, no clock.

use super::edit::{ManifestEdit, NamespaceEntry, RegionEntry, SnapshotEntry, StoreEntry, StoreFileEntry, TableEntry};
use crate::client::TableName;
use crate::error::{Error, Result};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Everything a store consists of beside the cells. Cloning is cheap: the entries are shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestState {
    /// Namespaces by identity.
    pub namespaces: BTreeMap<u64, Arc<NamespaceEntry>>,
    /// Tables by identity.
    pub tables: BTreeMap<u64, Arc<TableEntry>>,
    /// Regions by identity.
    pub regions: BTreeMap<u64, Arc<RegionEntry>>,
    /// Snapshots by identity, which is their order by age.
    pub snapshots: BTreeMap<u64, Arc<SnapshotEntry>>,
    /// The next free identity of a namespace, table, region or snapshot.
    pub next_id: u64,
    /// The next free identity of a store file. Files of this number and above that exist are what a crash left.
    pub next_file_id: u64,
    /// The first log segment that recovery needs.
    pub log_number: u64,
    /// No sequence id up to this one may be given out again (neither may those of the regions' files and of the log).
    pub last_sequence_id: u64,
}

impl Default for ManifestState {
    fn default() -> Self {
        ManifestState {
            namespaces: BTreeMap::new(),
            tables: BTreeMap::new(),
            regions: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            next_id: 1,
            next_file_id: 1,
            log_number: 1,
            last_sequence_id: 0,
        }
    }
}

impl ManifestState {
    /// The namespace of that name.
    pub fn namespace(&self, name: &str) -> Option<&Arc<NamespaceEntry>> {
        self.namespaces.values().find(|namespace| namespace.name == name)
    }

    /// The table of that name.
    pub fn table(&self, name: &TableName) -> Option<&Arc<TableEntry>> {
        self.tables.values().find(|table| table.name == *name)
    }

    /// The regions of a table in key order.
    pub fn regions_of(&self, table: u64) -> Vec<Arc<RegionEntry>> {
        let mut regions: Vec<_> = self.regions.values().filter(|region| region.table == table).cloned().collect();
        regions.sort_by(|left, right| left.start.cmp(&right.start));
        regions
    }

    /// The snapshots of a table, oldest first.
    pub fn snapshots_of(&self, table: u64) -> impl Iterator<Item = &Arc<SnapshotEntry>> {
        self.snapshots.values().filter(move |snapshot| snapshot.table == table)
    }

    /// The table's snapshot of that name.
    pub fn snapshot(&self, table: u64, name: &[u8]) -> Option<&Arc<SnapshotEntry>> {
        self.snapshots_of(table).find(|snapshot| snapshot.name == name)
    }

    /// Every region that has files: those of tables and those of snapshots.
    pub fn holders(&self) -> impl Iterator<Item = &Arc<RegionEntry>> {
        self.regions.values().chain(self.snapshots.values().flat_map(|snapshot| &snapshot.regions))
    }

    /// The identities of all live store files.
    pub fn live_files(&self) -> BTreeSet<u64> {
        let stores = self.holders().flat_map(|region| region.stores.values());
        stores.flat_map(|store| store.files.keys().copied()).collect()
    }

    /// True if any store of a region or snapshot has the file.
    pub fn is_live(&self, file_id: u64) -> bool {
        let mut stores = self.holders().flat_map(|region| region.stores.values());
        stores.any(|store| store.files.contains_key(&file_id))
    }

    /// The largest sequence id that must not be given out again, as far as the manifest knows.
    pub fn max_sequence_id(&self) -> u64 {
        let regions = self.holders().map(|region| {
            let files = region.stores.values().flat_map(|store| store.files.values());
            files.map(|file| file.max_sequence_id).fold(region.flushed_sequence_id, u64::max)
        });
        regions.fold(self.last_sequence_id, u64::max)
    }

    /// Applies one edit, or changes nothing.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] for an edit that does not fit the state: an identity or name that is taken or missing.
    pub fn apply(&mut self, edit: &ManifestEdit) -> Result<()> {
        match edit {
            ManifestEdit::CreateNamespace(_)
            | ManifestEdit::ModifyNamespace { .. }
            | ManifestEdit::SetNamespaceAttributes { .. }
            | ManifestEdit::DropNamespace { .. } => self.apply_to_namespaces(edit),
            ManifestEdit::CreateTable(_)
            | ManifestEdit::ModifyTable { .. }
            | ManifestEdit::SetTableAttributes { .. }
            | ManifestEdit::RenameTable { .. }
            | ManifestEdit::DropTable { .. } => self.apply_to_tables(edit),
            ManifestEdit::CreateSnapshot(_)
            | ManifestEdit::DeleteSnapshot { .. }
            | ManifestEdit::RenameSnapshot { .. } => self.apply_to_snapshots(edit),
            ManifestEdit::SetLogNumber { first_segment } => {
                self.log_number = self.log_number.max(*first_segment);
                Ok(())
            }
            ManifestEdit::SetLastSequenceId { sequence_id } => {
                self.last_sequence_id = self.last_sequence_id.max(*sequence_id);
                Ok(())
            }
            ManifestEdit::SetNextIds { next_id, next_file_id } => {
                self.next_id = self.next_id.max(*next_id);
                self.next_file_id = self.next_file_id.max(*next_file_id);
                Ok(())
            }
            _ => self.apply_to_regions(edit),
        }
    }

    /// Applies a list as a whole, or changes nothing.
    ///
    /// # Errors
    /// As [`ManifestState::apply`].
    pub fn apply_all(&mut self, edits: &[ManifestEdit]) -> Result<()> {
        let mut next = self.clone();
        for edit in edits {
            next.apply(edit)?;
        }
        *self = next;
        Ok(())
    }

    fn apply_to_namespaces(&mut self, edit: &ManifestEdit) -> Result<()> {
        match edit {
            ManifestEdit::CreateNamespace(entry) => {
                if self.namespace(&entry.name).is_some() {
                    return refuse(format!("namespace {} exists", entry.name));
                }
                self.take_id(entry.id, self.namespaces.contains_key(&entry.id))?;
                self.namespaces.insert(entry.id, Arc::new(entry.clone()));
            }
            ManifestEdit::ModifyNamespace { id, descriptor } => {
                find(&mut self.namespaces, *id, "namespace")?.descriptor = descriptor.clone();
            }
            ManifestEdit::SetNamespaceAttributes { id, attributes } => {
                find(&mut self.namespaces, *id, "namespace")?.attributes = *attributes;
            }
            ManifestEdit::DropNamespace { id } => {
                let Some(entry) = self.namespaces.get(id) else { return missing("namespace", *id) };
                if self.tables.values().any(|table| table.name.namespace == entry.name) {
                    return refuse(format!("namespace {} holds tables", entry.name));
                }
                self.namespaces.remove(id);
            }
            _ => {}
        }
        Ok(())
    }

    fn apply_to_tables(&mut self, edit: &ManifestEdit) -> Result<()> {
        match edit {
            ManifestEdit::CreateTable(entry) => {
                self.check_free(&entry.name)?;
                self.take_id(entry.id, self.tables.contains_key(&entry.id))?;
                self.tables.insert(entry.id, Arc::new(entry.clone()));
            }
            ManifestEdit::ModifyTable { id, descriptor } => {
                find(&mut self.tables, *id, "table")?.descriptor = descriptor.clone();
            }
            ManifestEdit::SetTableAttributes { id, attributes } => {
                find(&mut self.tables, *id, "table")?.attributes = *attributes;
            }
            ManifestEdit::RenameTable { id, name } => {
                if self.tables.get(id).is_some_and(|table| table.name != *name) {
                    self.check_free(name)?;
                }
                find(&mut self.tables, *id, "table")?.name = name.clone();
            }
            ManifestEdit::DropTable { id } => {
                if self.snapshots_of(*id).next().is_some() {
                    return refuse(format!("table {id} has snapshots"));
                }
                if self.tables.remove(id).is_none() {
                    return missing("table", *id);
                }
                self.regions.retain(|_, region| region.table != *id);
            }
            _ => {}
        }
        Ok(())
    }

    fn apply_to_regions(&mut self, edit: &ManifestEdit) -> Result<()> {
        match edit {
            ManifestEdit::AddRegion(entry) => {
                if !self.tables.contains_key(&entry.table) {
                    return missing("table", entry.table);
                }
                self.take_id(entry.id, self.regions.contains_key(&entry.id))?;
                for file_id in entry.stores.values().flat_map(|store| store.files.keys()) {
                    self.take_file_id(*file_id);
                }
                self.regions.insert(entry.id, Arc::new(entry.clone()));
            }
            ManifestEdit::RemoveRegion { id } => {
                self.regions.remove(id).map_or_else(|| missing("region", *id), |_| Ok(()))?;
            }
            ManifestEdit::SetFlushedSequenceId { region, sequence_id } => {
                let region = find(&mut self.regions, *region, "region")?;
                region.flushed_sequence_id = region.flushed_sequence_id.max(*sequence_id);
            }
            ManifestEdit::AddStoreFile { region, family, file } => {
                let store = self.store(*region, family)?;
                if store.files.contains_key(&file.file_id) {
                    return refuse(format!("region {region} has store file {} already", file.file_id));
                }
                store.files.insert(file.file_id, file.clone());
                self.take_file_id(file.file_id);
            }
            ManifestEdit::RemoveStoreFile { region, family, file_id } => {
                if self.store_file(*region, family, *file_id).is_none() {
                    return refuse(format!("region {region} has no store file {file_id}"));
                }
                self.store(*region, family)?.files.remove(file_id);
            }
            ManifestEdit::SetHistoryCompleteSince { region, family, since_millis } => {
                let store = self.store(*region, family)?;
                store.history_complete_since = store.history_complete_since.max(Some(*since_millis));
            }
            ManifestEdit::RemoveStore { region, family } => {
                find(&mut self.regions, *region, "region")?.stores.remove(family);
            }
            _ => {}
        }
        Ok(())
    }

    fn apply_to_snapshots(&mut self, edit: &ManifestEdit) -> Result<()> {
        match edit {
            ManifestEdit::CreateSnapshot(entry) => {
                if !self.tables.contains_key(&entry.table) {
                    return missing("table", entry.table);
                }
                self.check_snapshot_name(entry.table, &entry.name)?;
                self.take_id(entry.id, self.snapshots.contains_key(&entry.id))?;
                let stores = entry.regions.iter().flat_map(|region| region.stores.values());
                stores.flat_map(|store| store.files.keys()).for_each(|file_id| self.take_file_id(*file_id));
                self.snapshots.insert(entry.id, Arc::new(entry.clone()));
            }
            ManifestEdit::DeleteSnapshot { id } => {
                self.snapshots.remove(id).map_or_else(|| missing("snapshot", *id), |_| Ok(()))?;
            }
            ManifestEdit::RenameSnapshot { id, name } => {
                let Some(entry) = self.snapshots.get(id) else { return missing("snapshot", *id) };
                if entry.name != *name {
                    self.check_snapshot_name(entry.table, name)?;
                }
                let entry = find(&mut self.snapshots, *id, "snapshot")?;
                entry.name = name.clone();
                entry.automatic = false;
            }
            _ => {}
        }
        Ok(())
    }

    fn check_snapshot_name(&self, table: u64, name: &[u8]) -> Result<()> {
        match self.snapshot(table, name) {
            Some(_) => refuse(format!("table {table} has a snapshot {}", name.escape_ascii())),
            None => Ok(()),
        }
    }

    fn store(&mut self, region: u64, family: &Bytes) -> Result<&mut StoreEntry> {
        Ok(find(&mut self.regions, region, "region")?.stores.entry(family.clone()).or_default())
    }

    fn store_file(&self, region: u64, family: &Bytes, file_id: u64) -> Option<&StoreFileEntry> {
        self.regions.get(&region)?.stores.get(family)?.files.get(&file_id)
    }

    /// A table may take the name: its namespace is there and no table has it.
    fn check_free(&self, name: &TableName) -> Result<()> {
        if self.namespace(&name.namespace).is_none() {
            return refuse(format!("no namespace {}", name.namespace));
        }
        if self.table(name).is_some() {
            return refuse(format!("table {name} exists"));
        }
        Ok(())
    }

    fn take_id(&mut self, id: u64, taken: bool) -> Result<()> {
        if taken {
            return refuse(format!("identity {id} is taken"));
        }
        self.next_id = self.next_id.max(id.saturating_add(1));
        Ok(())
    }

    fn take_file_id(&mut self, file_id: u64) {
        self.next_file_id = self.next_file_id.max(file_id.saturating_add(1));
    }

    /// Edits that lead from an empty state to this one: what a rewritten manifest begins with.
    pub fn to_edits(&self) -> Vec<ManifestEdit> {
        let mut edits = vec![ManifestEdit::SetNextIds { next_id: self.next_id, next_file_id: self.next_file_id }];
        edits.push(ManifestEdit::SetLogNumber { first_segment: self.log_number });
        edits.push(ManifestEdit::SetLastSequenceId { sequence_id: self.last_sequence_id });
        edits.extend(self.namespaces.values().map(|entry| ManifestEdit::CreateNamespace((**entry).clone())));
        edits.extend(self.tables.values().map(|entry| ManifestEdit::CreateTable((**entry).clone())));
        edits.extend(self.regions.values().map(|entry| ManifestEdit::AddRegion((**entry).clone())));
        edits.extend(self.snapshots.values().map(|entry| ManifestEdit::CreateSnapshot((**entry).clone())));
        edits
    }
}

fn find<'a, T: Clone>(entries: &'a mut BTreeMap<u64, Arc<T>>, id: u64, what: &str) -> Result<&'a mut T> {
    match entries.get_mut(&id) {
        Some(entry) => Ok(Arc::make_mut(entry)),
        None => missing(what, id),
    }
}

fn missing<T>(what: &str, id: u64) -> Result<T> {
    refuse(format!("no {what} with identity {id}"))
}

fn refuse<T>(what: String) -> Result<T> {
    Err(Error::NotAllowed(format!("manifest: {what}")))
}
