//! Two neighbouring regions become one (HBase `MergeTableRegionsProcedure`), while readers go on.

use super::StoreInner;
use super::schema_change::hold_all;
use crate::client::TableName;
use crate::error::{Error, Result};
use crate::manifest::{ManifestEdit, RegionEntry};
use crate::region::{Region, encoded_region_name};
use std::collections::BTreeMap;
use std::sync::Arc;

impl StoreInner {
    /// Joins the region that begins at `row` with the one before. Both lose the files they share with others first: such a file may hold
    /// rows of the neighbour that the neighbour has rewritten since.
    pub(super) fn merge_regions(&self, name: &TableName, row: &[u8]) -> Result<()> {
        let table = self.table_state(name)?;
        let _structure = table.structure.lock();
        table.check_exists()?;
        self.services.check_writable(false)?;
        table.check_not_read_only()?;
        if !table.descriptor().merge_enabled() {
            return Err(Error::NotAllowed(format!("regions of {name} are not merged: MERGE_ENABLED is false")));
        }
        let all = table.regions();
        let place = all.iter().position(|region| region.start()[..] == *row && !row.is_empty());
        let pair = place.and_then(|place| all.get(place.checked_sub(1)?..=place));
        let Some(pair @ [low, high]) = pair else {
            return Err(Error::invalid(format!("no region of {name} begins at {} behind another", row.escape_ascii())));
        };
        for region in pair {
            self.drop_references(region)?;
            region.flush()?;
        }
        let mut in_order = pair.to_vec();
        in_order.sort_by_key(|region| region.id());
        let mut held = hold_all(&in_order);
        for region in &held {
            region.flush()?;
        }
        if pair.iter().any(|region| region.has_references()) {
            return Err(Error::Busy { what: format!("a region of {name} still shares files") });
        }
        let state = self.services.manifest.state();
        let entry = |region: &Region| state.regions.get(&region.id()).cloned();
        let (Some(first), Some(second)) = (entry(low), entry(high)) else {
            return Err(Error::Busy { what: format!("regions of {name} are being replaced") });
        };
        let born_millis = self.now().max(first.born_millis.max(second.born_millis) + 1);
        let mut merged = RegionEntry {
            id: self.new_id(),
            encoded_name: encoded_region_name(name, &first.start, born_millis),
            end: second.end.clone(),
            parent: None,
            born_millis,
            flushed_sequence_id: first.flushed_sequence_id.max(second.flushed_sequence_id),
            ..(*first).clone()
        };
        for (family, store) in &second.stores {
            let joined = merged.stores.entry(family.clone()).or_default();
            joined.files.extend(store.files.clone());
            joined.history_complete_since = joined.history_complete_since.max(store.history_complete_since);
        }
        let opened = Region::open(&self.services, &merged, &table.descriptor(), &table.counters, &BTreeMap::new())?;
        self.services.commit(&[
            ManifestEdit::RemoveRegion { id: first.id },
            ManifestEdit::RemoveRegion { id: second.id },
            ManifestEdit::AddRegion(merged),
        ])?;
        held.iter_mut().for_each(|region| region.close());
        let rest = all.iter().filter(|region| region.id() != first.id && region.id() != second.id).cloned();
        table.set_regions(rest.chain([Arc::new(opened)]).collect());
        drop(held);
        self.services.work.raise();
        Ok(())
    }
}
