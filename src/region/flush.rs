//! From memory to store files (HBase `HRegion.internalFlushcache`, `StoreFlusher`).

use super::Region;
use super::tasks::TaskGuard;
use crate::client::TaskKind;
use crate::error::Result;
use crate::manifest::ManifestEdit;
use crate::memstore::Segment;
use crate::scanner::{FamilyRules, ScanPolicy, StoreScan, StoreScanner};
use crate::store::{
    HStore, RowBounds, StoreFileRequest, StoreFileView, WrittenStoreFile, is_disk_failure, write_store_file,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a region remembers between flushes; its lock is held by the flush under way.
#[derive(Debug, Default)]
pub(super) struct FlushState {
    /// An earlier flush failed and left snapshots: the id it was to be recorded under, and their bytes.
    pending: Option<Pending>,
    /// Consecutive failures of the disk.
    failures: u32,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    sequence_id: u64,
    bytes: i64,
}

/// A family's snapshot on its way to a file.
struct Snapshot {
    store: Arc<HStore>,
    segment: Arc<Segment>,
}

/// A disk that fails this often in a row turns the store read-only.
const MAX_FAILURES: u32 = 2;

impl Region {
    /// Writes the memstores to store files, one per family, in one manifest edit; false if there was nothing to write. Writers and readers go
    /// on: only the switch of segments and the publication hold the region's lock, and neither waits.
    ///
    /// # Errors
    /// Those of writing files and of the manifest. Nothing is lost by a failure: the snapshot stays and the next flush writes it again, into
    /// another file. Two disk failures in a row turn the store read-only.
    pub fn flush(&self) -> Result<bool> {
        let _maintenance = self.maintenance.read();
        self.flush_once(0)
    }

    /// As [`Region::flush`], until nothing is left in memory; for the holder of the region. The files' sequence id is at least `sequence_id`.
    pub(super) fn flush_everything(&self, sequence_id: u64) -> Result<()> {
        while self.flush_once(sequence_id)? {}
        Ok(())
    }

    fn flush_once(&self, sequence_id: u64) -> Result<bool> {
        let mut state = self.flush.lock();
        self.flush_requested.store(false, Ordering::Release);
        if self.stores.read().closed {
            return Ok(false);
        }
        let Some((pending, snapshots)) = self.take_snapshots(&mut state) else { return Ok(false) };
        match self.write_snapshots(pending, &snapshots, sequence_id) {
            Ok(()) => {
                state.pending = None;
                state.failures = 0;
                self.services.memory.add(-pending.bytes);
                self.services.work.raise();
                Ok(true)
            }
            Err(error) => {
                if is_disk_failure(&error) {
                    state.failures += 1;
                    if state.failures >= MAX_FAILURES {
                        self.services.poison(&format!("a flush failed {MAX_FAILURES} times: {error}"));
                    }
                }
                self.services.note_failure(&error);
                Err(error)
            }
        }
    }

    /// Turns active segments into snapshots.
    ///
    /// The id to record is the read point before the switch: every write up to it is complete, so it is in these snapshots or in files. Later
    /// writes may be in them too; replayed from the log after a crash they are the same cells under the same ids, of which readers show one.
    fn take_snapshots(&self, state: &mut FlushState) -> Option<(Pending, Vec<Snapshot>)> {
        let stores = self.stores.write();
        let read_point = self.services.mvcc.read_point();
        let mut snapshots = Vec::new();
        for store in &stores.stores {
            // While an earlier snapshot waits to be written, it comes first; what is in the active segments follows with the next flush.
            let waits = state.pending.is_some() && store.memstore().segments().len() < 2;
            if waits {
                continue;
            }
            if let Some(segment) = store.start_flush() {
                snapshots.push(Snapshot { store: Arc::clone(store), segment });
            }
        }
        if snapshots.is_empty() {
            return None;
        }
        let pending = state.pending.unwrap_or_else(|| Pending {
            sequence_id: read_point,
            bytes: self.active_bytes.swap(0, Ordering::Relaxed),
        });
        state.pending = Some(pending);
        Some((pending, snapshots))
    }

    fn write_snapshots(&self, pending: Pending, snapshots: &[Snapshot], sequence_id: u64) -> Result<()> {
        let context = &self.services.store;
        let smallest_read_point = self.services.mvcc.smallest_read_point();
        let mut edits = Vec::new();
        let mut files: Vec<StoreFileView> = Vec::with_capacity(snapshots.len());
        let mut written_ids = Vec::new();
        let total = snapshots.iter().map(|snapshot| snapshot.segment.heap_bytes()).sum();
        let task =
            self.services.tasks.begin(TaskKind::Flush, &self.encoded_name, None, context.clock.monotonic(), total);
        let result = (|| {
            for snapshot in snapshots {
                let written = self.write_snapshot(snapshot, smallest_read_point, sequence_id, &task)?;
                snapshot.store.counters().expired_cells.fetch_add(written.losses.expired, Ordering::Relaxed);
                let family = snapshot.store.family().clone();
                if let Some(since_millis) = written.losses.newest_moment {
                    // What nothing by timestamps had hidden is lost to every moment until now.
                    let since_millis = if since_millis == i64::MAX { context.clock.now_millis() } else { since_millis };
                    let region = self.id;
                    edits.push(ManifestEdit::SetHistoryCompleteSince { region, family: family.clone(), since_millis });
                }
                let entry = written.entry;
                written_ids.push(entry.file_id);
                edits.push(ManifestEdit::AddStoreFile { region: self.id, family, file: entry.clone() });
                files.push(snapshot.store.open_file(entry)?);
            }
            context.sync_directory()?;
            edits.push(ManifestEdit::SetFlushedSequenceId { region: self.id, sequence_id: pending.sequence_id });
            self.services.commit(&edits)
        })();
        if let Err(error) = result {
            // After a failed sync of the manifest nobody knows whether it names the files: they must stay.
            if !matches!(error, crate::Error::Poisoned { .. }) {
                drop(files);
                written_ids.iter().for_each(|file_id| context.discard(*file_id));
            }
            return Err(error);
        }
        self.publish(snapshots, files, &edits);
        self.flushed_sequence_id.fetch_max(pending.sequence_id, Ordering::AcqRel);
        Ok(())
    }

    fn write_snapshot(
        &self,
        snapshot: &Snapshot,
        smallest_read_point: u64,
        sequence_id: u64,
        task: &TaskGuard<'_>,
    ) -> Result<WrittenStoreFile> {
        let context = &self.services.store;
        let descriptor = snapshot.store.descriptor();
        let rules = FamilyRules::of(&descriptor, context.clock.now_millis());
        let scan = StoreScan::compaction(ScanPolicy::Retain { smallest_read_point }, rules);
        let mut scanner = StoreScanner::new(vec![Box::new(snapshot.segment.scanner(u64::MAX))], &scan);
        let max_sequence_id = snapshot.segment.sequence_ids().map_or(0, |(_, max)| max).max(sequence_id);
        let request =
            StoreFileRequest { max_sequence_id, major: false, tags: snapshot.segment.has_tags(), compacted: &[] };
        write_store_file(context, &descriptor, &mut scanner, &RowBounds::default(), request, &mut |bytes| {
            task.advance(bytes);
            Ok(())
        })
    }

    fn publish(&self, snapshots: &[Snapshot], files: Vec<StoreFileView>, edits: &[ManifestEdit]) {
        let stores = self.stores.write();
        for (snapshot, file) in snapshots.iter().zip(files) {
            snapshot.store.counters().flushes.fetch_add(1, Ordering::Relaxed);
            snapshot.store.publish_flush(file);
        }
        self.note_files(&stores);
        for edit in edits {
            if let ManifestEdit::SetHistoryCompleteSince { family, since_millis, .. } = edit
                && let Some(store) = stores.get(family)
            {
                store.move_history(*since_millis);
            }
        }
    }

    /// Gives back the memory of snapshots that will not be written: the region is gone.
    pub(super) fn forget_snapshots(&self) {
        if let Some(pending) = self.flush.lock().pending.take() {
            self.services.memory.add(-pending.bytes);
        }
    }

    /// The smallest sequence id that is only in memory; `None` when nothing is.
    pub fn oldest_unflushed(&self) -> Option<u64> {
        let stores = self.stores.read();
        let segments = stores.stores.iter().flat_map(|store| store.memstore().segments());
        segments.filter_map(|segment| segment.sequence_ids()).map(|(min, _)| min).min()
    }

    /// Asks for a flush if the region's memory is over its size; true if somebody should be woken.
    pub(super) fn wants_flush(&self, flush_size: u64) -> bool {
        let memory = &self.services.memory;
        let active = self.active_bytes();
        let due =
            active >= flush_size || active > 0 && memory.bytes() >= memory.flush_mark() && active >= memory.bytes() / 4;
        due && !self.flush_requested.swap(true, Ordering::AcqRel)
    }

    /// True if a flush is asked for, or due by size.
    pub fn flush_due(&self, flush_size: u64) -> bool {
        self.flush_requested.load(Ordering::Acquire) || self.active_bytes() >= flush_size
    }
}
