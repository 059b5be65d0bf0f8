//! Tables made, changed, renamed, emptied and dropped: each by one manifest edit.

use super::StoreInner;
use super::namespaces::SYSTEM_NAMESPACE;
use super::table_state::TableState;
use crate::cell::MAX_ROW_LENGTH;
use crate::client::{AlterSchema, ResultScanner, Scan, TableAttributes, TableName};
use crate::error::{Error, Result};
use crate::manifest::{ManifestEdit, RegionEntry, StoreEntry, TableEntry};
use crate::region::{AsideFiles, ExclusiveRegion, Installation, Region, Share, TableCounters, encoded_region_name};
use crate::schema::TableDescriptor;
use crate::store::StoreFile;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Region borders: sorted, distinct, none empty.
fn check_splits(splits: &[Bytes]) -> Result<()> {
    for split in splits {
        if split.is_empty() || split.len() > MAX_ROW_LENGTH {
            return Err(Error::invalid("a split key has 1 to 32767 bytes"));
        }
    }
    match splits.windows(2).find(|pair| matches!(pair, [left, right] if left >= right)) {
        Some(_) => Err(Error::invalid("split keys must be sorted and distinct")),
        None => Ok(()),
    }
}

impl StoreInner {
    pub(super) fn create_table(
        &self,
        name: &TableName,
        descriptor: TableDescriptor,
        splits: &[Bytes],
        attributes: TableAttributes,
    ) -> Result<Arc<TableState>> {
        // A name made by hand has not been checked yet.
        TableName::new(name.namespace.clone(), name.qualifier.clone())?;
        descriptor.check()?;
        check_splits(splits)?;
        let _ddl = self.ddl.lock();
        self.services.check_writable(false)?;
        self.check_target(name)?;
        self.check_quota(&name.namespace, 1, splits.len() + 1)?;
        let (id, created_millis, descriptor) = (self.new_id(), self.now(), Arc::new(descriptor));
        let entries = self.region_entries(id, name, splits, created_millis);
        let counters = Arc::new(TableCounters::default());
        let regions = self.open_regions(&entries, &descriptor, &counters, &BTreeMap::new())?;
        let table =
            TableEntry { id, name: name.clone(), descriptor: Arc::clone(&descriptor), attributes, created_millis };
        let edits: Vec<_> = std::iter::once(ManifestEdit::CreateTable(table))
            .chain(entries.into_iter().map(ManifestEdit::AddRegion))
            .collect();
        self.services.commit(&edits)?;
        let state = Arc::new(TableState::new(id, name.clone(), descriptor, attributes, regions, counters));
        self.catalog.write().tables.insert(name.clone(), Arc::clone(&state));
        Ok(state)
    }

    /// A table may get the name.
    pub(super) fn check_target(&self, name: &TableName) -> Result<()> {
        if name.namespace == SYSTEM_NAMESPACE {
            return Err(Error::NotAllowed("tables in the namespace hbase are HBase's own".to_owned()));
        }
        let catalog = self.catalog.read();
        catalog.namespace(&name.namespace)?;
        if catalog.tables.contains_key(name) {
            return Err(Error::TableExists(name.to_string()));
        }
        Ok(())
    }

    /// New, empty regions between `splits`.
    fn region_entries(&self, table: u64, name: &TableName, splits: &[Bytes], born_millis: i64) -> Vec<RegionEntry> {
        let starts = std::iter::once(Bytes::new()).chain(splits.iter().cloned());
        let ends = splits.iter().cloned().chain(std::iter::once(Bytes::new()));
        let entry = |(start, end): (Bytes, Bytes)| RegionEntry {
            id: self.new_id(),
            table,
            encoded_name: encoded_region_name(name, &start, born_millis),
            start,
            end,
            parent: None,
            born_millis,
            flushed_sequence_id: self.services.mvcc.read_point(),
            stores: BTreeMap::new(),
        };
        starts.zip(ends).map(entry).collect()
    }

    fn open_regions(
        &self,
        entries: &[RegionEntry],
        descriptor: &TableDescriptor,
        counters: &Arc<TableCounters>,
        files: &BTreeMap<u64, Arc<StoreFile>>,
    ) -> Result<Vec<Arc<Region>>> {
        let open = |entry| Region::open(&self.services, entry, descriptor, counters, files).map(Arc::new);
        entries.iter().map(open).collect()
    }

    pub(super) fn modify_table(&self, name: &TableName, descriptor: TableDescriptor) -> Result<()> {
        let table = self.catalog.read().table(name)?;
        let _structure = table.structure.lock();
        self.replace_descriptor(&table, descriptor, |_| Ok(()))
    }

    pub(super) fn alter_table(self: &Arc<Self>, name: &TableName, alter: AlterSchema<'_>) -> Result<()> {
        let table = self.catalog.read().table(name)?;
        let _structure = table.structure.lock();
        let present = table.descriptor();
        let wanted = alter(&present)?;
        if wanted == *present {
            return table.check_exists();
        }
        self.replace_descriptor(&table, wanted, |family| {
            let mut scan = Scan { limit: Some(1), first_cell_only: true, cache_blocks: false, ..Scan::new() };
            scan.columns.add_family(family.clone());
            match super::scan::TableScanner::open(self, &table, scan)?.next()? {
                Some(_) => Err(Error::FamilyNotEmpty(format!("{} of {}", family.escape_ascii(), table.name()))),
                None => Ok(()),
            }
        })
    }

    /// Makes a new schema effective. `may_go` judges each family that is missing from it while nobody writes.
    fn replace_descriptor(
        &self,
        table: &TableState,
        descriptor: TableDescriptor,
        may_go: impl Fn(&Bytes) -> Result<()>,
    ) -> Result<()> {
        descriptor.check()?;
        table.check_exists()?;
        self.services.check_writable(false)?;
        let old = table.descriptor();
        let descriptor = Arc::new(descriptor);
        let modify = ManifestEdit::ModifyTable { id: table.id, descriptor: Arc::clone(&descriptor) };
        let dropped: Vec<&Bytes> =
            old.families.keys().filter(|family| !descriptor.families.contains_key(*family)).collect();
        let regions = in_id_order(table);
        if dropped.is_empty() && keeps_families(&old, &descriptor) {
            self.services.commit(&[modify])?;
            regions.iter().for_each(|region| region.apply_descriptor(&descriptor));
            table.set_descriptor(descriptor);
            return Ok(());
        }
        // What is in memory still goes by the old schema, as in HBase, which closes regions to change it. Nobody writes while families go, and
        // nothing of them stays in memory or in the part of the log that a replay would read.
        let exclusive = hold_all(&regions);
        dropped.iter().try_for_each(|family| may_go(family))?;
        let mut edits = vec![modify];
        for (region, held) in regions.iter().zip(&exclusive) {
            held.flush()?;
            for family in &dropped {
                let (region, family) = (region.id(), (*family).clone());
                edits.push(ManifestEdit::RemoveStore { region, family: family.clone() });
                // If a family of that name comes again, its past is not to look whole.
                edits.push(ManifestEdit::SetHistoryCompleteSince { region, family, since_millis: self.now() });
            }
        }
        self.services.commit(&edits)?;
        regions.iter().for_each(|region| region.apply_descriptor(&descriptor));
        table.set_descriptor(descriptor);
        Ok(())
    }

    pub(super) fn rename_table(&self, from: &TableName, to: &TableName) -> Result<()> {
        TableName::new(to.namespace.clone(), to.qualifier.clone())?;
        let _ddl = self.ddl.lock();
        self.services.check_writable(true)?;
        let table = self.catalog.read().table(from)?;
        if from == to {
            return Ok(());
        }
        self.check_target(to)?;
        if from.namespace != to.namespace {
            self.check_quota(&to.namespace, 1, table.regions().len())?;
        }
        self.services.commit(&[ManifestEdit::RenameTable { id: table.id, name: to.clone() }])?;
        let mut catalog = self.catalog.write();
        catalog.tables.remove(from);
        table.set_name(to.clone());
        catalog.tables.insert(to.clone(), table);
        Ok(())
    }

    pub(super) fn drop_table(&self, name: &TableName) -> Result<()> {
        let _ddl = self.ddl.lock();
        self.services.check_writable(true)?;
        let table = self.catalog.read().table(name)?;
        let _structure = table.structure.lock();
        if self.services.manifest.read(|state| state.snapshots_of(table.id).next().is_some()) {
            return Err(Error::HasSnapshots(name.to_string()));
        }
        let regions = in_id_order(&table);
        let mut exclusive = hold_all(&regions);
        self.services.commit(&[ManifestEdit::DropTable { id: table.id }])?;
        table.set_dropped();
        self.catalog.write().tables.remove(name);
        exclusive.iter_mut().for_each(ExclusiveRegion::close);
        drop(exclusive);
        self.bury_unused(&files_of(&regions));
        Ok(())
    }

    pub(super) fn truncate_table(&self, name: &TableName) -> Result<()> {
        let table = self.catalog.read().table(name)?;
        let _structure = table.structure.lock();
        table.check_exists()?;
        table.check_not_read_only()?;
        self.services.check_writable(true)?;
        let splits: Vec<Bytes> = table.regions().iter().skip(1).map(|region| region.start().clone()).collect();
        self.replace_all_regions(&table, &splits)
    }

    pub(super) fn presplit_table(self: &Arc<Self>, name: &TableName, splits: &[Bytes]) -> Result<()> {
        check_splits(splits)?;
        let table = self.catalog.read().table(name)?;
        let _structure = table.structure.lock();
        table.check_exists()?;
        self.services.check_writable(false)?;
        self.check_quota(&name.namespace, 0, (splits.len() + 1).saturating_sub(table.regions().len()))?;
        self.replace_all_regions_if(&table, splits, |store| {
            let scan = Scan { limit: Some(1), ..Scan::new() };
            match super::scan::TableScanner::open(store, &table, scan)?.next()? {
                Some(_) => Err(Error::TableNotEmpty(name.to_string())),
                None => Ok(()),
            }
        })
    }

    fn replace_all_regions(&self, table: &TableState, splits: &[Bytes]) -> Result<()> {
        let regions = in_id_order(table);
        let exclusive = hold_all(&regions);
        self.replace_held_regions(table, &regions, exclusive, splits, None)
    }

    /// What the table holds goes and `content` comes, by one edit; regions begin where they did.
    pub(super) fn replace_content(&self, table: &TableState, content: AsideFiles) -> Result<()> {
        let _structure = table.structure.lock();
        table.check_exists()?;
        table.check_not_read_only()?;
        self.services.check_writable(false)?;
        let splits: Vec<Bytes> = table.regions().iter().skip(1).map(|region| region.start().clone()).collect();
        let regions = in_id_order(table);
        let exclusive = hold_all(&regions);
        let content = Installation::begin(&self.services, content)?;
        self.replace_held_regions(table, &regions, exclusive, &splits, Some(content))
    }

    fn replace_all_regions_if(
        self: &Arc<Self>,
        table: &TableState,
        splits: &[Bytes],
        check: impl FnOnce(&Arc<StoreInner>) -> Result<()>,
    ) -> Result<()> {
        let regions = in_id_order(table);
        let exclusive = hold_all(&regions);
        check(self)?;
        self.replace_held_regions(table, &regions, exclusive, splits, None)
    }

    /// Puts new regions in the place of all, empty but for `content`; the log's edits of the old ones are passed over by every later replay.
    fn replace_held_regions(
        &self,
        table: &TableState,
        regions: &[Arc<Region>],
        mut exclusive: Vec<ExclusiveRegion<'_>>,
        splits: &[Bytes],
        mut content: Option<Installation<'_>>,
    ) -> Result<()> {
        let newest = regions.iter().map(|region| region.born_millis()).max().unwrap_or(0);
        let born_millis = self.now().max(newest.saturating_add(1));
        let mut entries = self.region_entries(table.id, &table.name(), splits, born_millis);
        let descriptor = table.descriptor();
        if regions.iter().flat_map(|region| region.stores()).any(|store| store.has_history()) {
            // What was there is gone with its past.
            let empty = StoreEntry { files: BTreeMap::new(), history_complete_since: Some(self.now()) };
            for entry in &mut entries {
                entry.stores.extend(descriptor.families.keys().map(|family| (family.clone(), empty.clone())));
            }
        }
        let mut files = BTreeMap::new();
        if let Some(content) = &content {
            files = give_content(&mut entries, content, &descriptor)?;
        }
        let fresh = self.open_regions(&entries, &descriptor, &table.counters, &files)?;
        let edits: Vec<_> = regions
            .iter()
            .map(|region| ManifestEdit::RemoveRegion { id: region.id() })
            .chain(entries.into_iter().map(ManifestEdit::AddRegion))
            .collect();
        match &mut content {
            Some(content) => content.commit(edits).map(|_| ())?,
            None => self.services.commit(&edits)?,
        }
        exclusive.iter_mut().for_each(|held| held.close());
        table.set_regions(fresh);
        if let Some(content) = content {
            content.complete();
        }
        drop(exclusive);
        self.bury_unused(&files_of(regions));
        Ok(())
    }
}

/// Puts the files of a load into the regions to be; returns them open.
fn give_content(
    entries: &mut [RegionEntry],
    content: &Installation<'_>,
    descriptor: &TableDescriptor,
) -> Result<BTreeMap<u64, Arc<StoreFile>>> {
    let borders: Vec<(Bytes, Bytes)> = entries.iter().map(|entry| (entry.start.clone(), entry.end.clone())).collect();
    let mut files = BTreeMap::new();
    for Share { region, family, view } in content.shares(borders.iter().map(|(start, end)| (start, end)))? {
        if !descriptor.families.contains_key(&family) {
            let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
            let known = descriptor.families.keys().map(|name| text(name)).collect();
            return Err(Error::NoSuchColumnFamily { family: text(&family), known });
        }
        if let Some(entry) = entries.get_mut(region) {
            entry.stores.entry(family).or_default().files.insert(view.entry.file_id, view.entry.clone());
        }
        files.insert(view.entry.file_id, view.file);
    }
    Ok(files)
}

/// True if no family of the old schema has other attributes in the new one.
fn keeps_families(old: &TableDescriptor, new: &TableDescriptor) -> bool {
    old.families.iter().all(|(name, attributes)| new.families.get(name) == Some(attributes))
}

/// A table's regions, in the order in which writers of several regions enter them.
pub(super) fn in_id_order(table: &TableState) -> Vec<Arc<Region>> {
    let mut regions = table.regions().to_vec();
    regions.sort_by_key(|region| region.id());
    regions
}

/// Holds all regions; they come in the order of their ids.
pub(super) fn hold_all(regions: &[Arc<Region>]) -> Vec<ExclusiveRegion<'_>> {
    regions.iter().map(|region| region.exclusive()).collect()
}

/// The open files of regions, by id.
fn files_of(regions: &[Arc<Region>]) -> BTreeMap<u64, Arc<StoreFile>> {
    let stores = regions.iter().flat_map(|region| region.stores());
    let views = stores.flat_map(|store| store.files().as_slice().to_vec());
    views.map(|view| (view.entry.file_id, view.file)).collect()
}
