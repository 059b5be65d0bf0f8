//! One region becomes two (HBase `SplitTransactionImpl`), while readers and writers go on.

use super::StoreInner;
use super::table_state::TableState;
use crate::compaction::CompactionRequest;
use crate::error::{Error, Result};
use crate::manifest::{ManifestEdit, RegionEntry, StoreEntry};
use crate::region::{CompactionPace, Region, encoded_region_name};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl StoreInner {
    /// Splits `region` at `row`; false if it has been replaced meanwhile.
    ///
    /// Memory is flushed first while everybody goes on. Then writers wait for the switch: what they wrote in between is flushed, one manifest edit
    /// puts the daughters in the parent's place, and they share its files until compactions have rewritten them. Readers never wait.
    pub(super) fn split_region(&self, table: &Arc<TableState>, region: &Arc<Region>, row: &Bytes) -> Result<bool> {
        let _structure = table.structure.lock();
        table.check_exists()?;
        if !region.can_split_at(row) {
            return Err(Error::invalid(format!("the region cannot be split at {}", row.escape_ascii())));
        }
        self.drop_references(region)?;
        region.flush()?;
        let mut exclusive = region.exclusive();
        if exclusive.is_closed() {
            return Ok(false);
        }
        exclusive.flush()?;
        let state = self.services.manifest.state();
        let Some(parent) = state.regions.get(&region.id()) else { return Ok(false) };
        let born_millis = self.now().max(parent.born_millis + 1);
        let name = table.name();
        let daughter = |start: &Bytes, end: &Bytes| RegionEntry {
            id: self.new_id(),
            table: table.id,
            encoded_name: encoded_region_name(&name, start, born_millis),
            start: start.clone(),
            end: end.clone(),
            parent: Some(parent.encoded_name.clone()),
            born_millis,
            flushed_sequence_id: parent.flushed_sequence_id,
            stores: inherited(&parent.stores, start, end),
        };
        let entries = [daughter(&parent.start, row), daughter(row, &parent.end)];
        // The daughters are opened before the manifest knows them: what can fail has not happened yet.
        let views = region.stores();
        let files = views.iter().flat_map(|store| store.files().as_slice().to_vec());
        let open_files: BTreeMap<u64, _> = files.map(|view| (view.entry.file_id, view.file)).collect();
        let descriptor = table.descriptor();
        let mut daughters = Vec::with_capacity(entries.len());
        let mut edits = vec![ManifestEdit::RemoveRegion { id: region.id() }];
        for entry in entries {
            let opened = Region::open(&self.services, &entry, &descriptor, &table.counters, &open_files)?;
            daughters.push(Arc::new(opened));
            edits.push(ManifestEdit::AddRegion(entry));
        }
        self.services.commit(&edits)?;
        exclusive.close();
        table.replace_region(region.id(), daughters);
        table.counters.splits.fetch_add(1, Ordering::Relaxed);
        drop(exclusive);
        self.bury_unused(&open_files);
        self.services.work.raise();
        Ok(true)
    }

    /// Rewrites files that the region shares with another one, as HBase does before a region may split again.
    pub(super) fn drop_references(&self, region: &Region) -> Result<()> {
        for store in region.stores() {
            while store.files().has_references() {
                if region.compact(&store, CompactionRequest::Major, CompactionPace::Free)?.is_none() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Marks files dead that no region has any more.
    pub(super) fn bury_unused(&self, files: &BTreeMap<u64, Arc<crate::store::StoreFile>>) {
        let state = self.services.manifest.state();
        for (_, file) in files.iter().filter(|(file_id, _)| !state.is_live(**file_id)) {
            file.mark_dead();
        }
    }
}

/// A daughter's share of the parent's stores: the files that have rows in its range, as references where they have others too.
fn inherited(stores: &BTreeMap<Bytes, StoreEntry>, start: &Bytes, end: &Bytes) -> BTreeMap<Bytes, StoreEntry> {
    let share = |store: &StoreEntry| {
        let mut share = StoreEntry { files: BTreeMap::new(), history_complete_since: store.history_complete_since };
        for (file_id, file) in &store.files {
            let begins_before_end = end.is_empty() || file.first_row < end;
            let ends_after_start = file.last_row >= start;
            if begins_before_end && ends_after_start {
                let mut file = file.clone();
                file.is_reference = file.first_row < start || !end.is_empty() && file.last_row >= end;
                share.files.insert(*file_id, file);
            }
        }
        share
    };
    stores.iter().map(|(family, store)| (family.clone(), share(store))).collect()
}
