//! Store files made of given cells (HBase `HRegion.bulkLoadHFiles` of files with an assigned sequence id).

use super::{Region, WriteEntry};
use crate::cell::Cell;
use crate::client::TimeRange;
use crate::error::{Error, Result};
use crate::manifest::ManifestEdit;
use crate::memstore::Segment;
use crate::scanner::{FamilyRules, ScanPolicy, StoreScan, StoreScanner};
use crate::store::{HStore, RowBounds, StoreFileRequest, write_store_file};
use std::sync::Arc;

impl Region {
    /// Adds a store file of `cells`, which all get one sequence id that is newer than everything written before, and does so even where
    /// markers among them hide others. The memstore is flushed first.
    ///
    /// # Errors
    /// Those of flushing, of writing the file and of the manifest; [`Error::NotAllowed`] for a region that has been closed.
    pub fn load_cells(&self, store: &HStore, cells: Vec<Cell>) -> Result<()> {
        self.flush()?;
        let _maintenance = self.maintenance.read();
        let _one = store.compaction.lock();
        if self.stores.read().closed {
            return Err(Error::NotAllowed("the region was closed".to_owned()));
        }
        let context = &self.services.store;
        let sequence_id = self.services.wal()?.allocate_sequence_id();
        let entry = WriteEntry::new(&self.services.mvcc, sequence_id);
        let segment = Arc::new(Segment::new());
        segment.insert(cells.into_iter().map(|cell| cell.with_sequence_id(sequence_id)));
        let mut scan = StoreScan::compaction(ScanPolicy::Raw, FamilyRules::of(&store.descriptor(), 0));
        (scan.max_versions, scan.time_range) = (u32::MAX, TimeRange::ALL);
        let mut scanner = StoreScanner::new(vec![Box::new(segment.scanner(u64::MAX))], &scan);
        let request = StoreFileRequest { max_sequence_id: sequence_id, major: false, tags: segment.has_tags() };
        let bounds = RowBounds { start: self.start.clone(), end: self.end.clone() };
        let written = write_store_file(context, &store.descriptor(), &mut scanner, &bounds, request, &mut |_| Ok(()))?;
        {
            let file = written.entry;
            let view = store.open_file(file.clone())?;
            context.sync_directory()?;
            let family = store.family().clone();
            self.services.commit(&[
                ManifestEdit::AddStoreFile { region: self.id, family, file },
                ManifestEdit::SetLastSequenceId { sequence_id },
            ])?;
            let _stores = self.stores.write();
            store.replace_files(&[], vec![view]);
        }
        entry.complete();
        Ok(())
    }
}
