//! Rewriting store files (HBase `HRegion.compact`, `Compactor`).

use super::Region;
use super::tasks::TaskGuard;
use crate::client::{TaskKind, TimeRange};
use crate::compaction::{CompactionKind, CompactionRequest, Selection, expired_files, select};
use crate::error::{Error, Result};
use crate::manifest::ManifestEdit;
use crate::scanner::{FamilyRules, ScanPolicy, StoreScan, StoreScanner};
use crate::store::{
    HStore, RowBounds, StoreFileRequest, StoreFileView, StoreFiles, WrittenStoreFile, write_store_file,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What a compaction did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionOutcome {
    /// Files that were replaced.
    pub files: usize,
    /// All files of the store were taken, so delete markers were dropped.
    pub all_files: bool,
    /// Files that were dropped unread, for everything in them had expired.
    pub expired_files: usize,
}

/// How fast a compaction goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionPace {
    /// In the background: at the throttle's rate.
    Throttled,
    /// Somebody waits for it.
    Free,
}

/// What a rewrite is.
#[derive(Clone, Copy)]
struct Rewrite {
    /// All files of the store are taken: delete markers may go.
    all_files: bool,
    /// It is a major compaction, asked for or due, and not one that happens to take all files (HBase `CompactionRequestImpl.isMajor`): it has a
    /// codec of its own.
    major: bool,
}

impl Region {
    /// Runs one compaction of the store, if the policy finds one (or the request asks for all files); `None` if there was nothing to do.
    ///
    /// # Errors
    /// Those of reading and writing files and of the manifest; [`Error::Busy`] when the region is split, closed or dropped meanwhile.
    pub fn compact(
        &self,
        store: &HStore,
        request: CompactionRequest,
        pace: CompactionPace,
    ) -> Result<Option<CompactionOutcome>> {
        let _maintenance = self.maintenance.read();
        let _one = store.compaction.lock();
        if self.stores.read().closed {
            return Ok(None);
        }
        let expired_files = self.drop_expired_files(store)?;
        let files = store.files();
        let now = self.services.store.clock.now_millis();
        let sound = files.sound();
        if request == CompactionRequest::Major
            && let Some(damage) = files.iter().find_map(|view| view.file.damage())
        {
            return Err(damage);
        }
        let facts: Vec<_> = sound.iter().map(StoreFileView::facts).collect();
        let config = self.services.config();
        let outcome = match select(&facts, &config.compaction, request, now, None) {
            Some(selection) => {
                let first = files.len() - sound.len();
                let range = selection.range.start + first..selection.range.end + first;
                self.run_compaction(store, &files, &Selection { range, ..selection }, pace)?
            }
            None if expired_files == 0 => return Ok(None),
            None => CompactionOutcome::default(),
        };
        Ok(Some(CompactionOutcome { expired_files, ..outcome }))
    }

    /// Drops files unread in which everything has expired, but never the newest; returns how many.
    fn drop_expired_files(&self, store: &HStore) -> Result<usize> {
        let files = store.files();
        let now = self.services.store.clock.now_millis();
        let facts: Vec<_> = files.iter().map(StoreFileView::facts).collect();
        let expired = expired_files(&facts, expired_before(store, now));
        let inputs: Vec<StoreFileView> = files
            .iter()
            .zip(&expired)
            .filter(|(view, expired)| **expired && view.file.damage().is_none())
            .map(|(view, _)| view.clone())
            .collect();
        if !inputs.is_empty() {
            self.install(store, &inputs, None)?;
        }
        Ok(inputs.len())
    }

    /// Compacts the files that stand at `places`, oldest first, one behind the other: for tests that choose by themselves. Places without a
    /// file, and files that have wholly expired, are passed over.
    ///
    /// # Errors
    /// As [`Region::compact`].
    pub fn compact_files(&self, store: &HStore, places: &[usize]) -> Result<CompactionOutcome> {
        let _maintenance = self.maintenance.read();
        let _one = store.compaction.lock();
        let before = store.files();
        let chosen: Vec<u64> =
            places.iter().filter_map(|place| Some(before.as_slice().get(*place)?.entry.file_id)).collect();
        let expired_files = self.drop_expired_files(store)?;
        let files = store.files();
        let places = files.iter().enumerate().filter(|(_, view)| chosen.contains(&view.entry.file_id));
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        let (Some(first), Some(last)) = (places.first(), places.last()) else {
            return Ok(CompactionOutcome { expired_files, ..CompactionOutcome::default() });
        };
        let selection = Selection { range: *first..*last + 1, kind: CompactionKind::Minor };
        Ok(CompactionOutcome { expired_files, ..self.run_compaction(store, &files, &selection, CompactionPace::Free)? })
    }

    fn run_compaction(
        &self,
        store: &HStore,
        files: &StoreFiles,
        selection: &Selection,
        pace: CompactionPace,
    ) -> Result<CompactionOutcome> {
        let inputs = files.as_slice().get(selection.range.clone()).unwrap_or(&[]);
        let all_files = inputs.len() == files.len();
        let major = selection.kind == CompactionKind::Major;
        let written = self
            .rewrite(store, inputs, Rewrite { all_files, major }, pace)
            .inspect_err(|error| inputs.iter().for_each(|view| view.file.note_damage(error)))?;
        let counters = store.counters();
        counters.expired_cells.fetch_add(written.losses.expired, Ordering::Relaxed);
        self.install(store, inputs, Some(written))?;
        let kind = if all_files { &counters.compactions_major } else { &counters.compactions_minor };
        kind.fetch_add(1, Ordering::Relaxed);
        let bytes = inputs.iter().map(|view| view.entry.size).sum();
        counters.compacted_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(CompactionOutcome { files: inputs.len(), all_files, expired_files: 0 })
    }

    /// Writes one file from `inputs`.
    fn rewrite(
        &self,
        store: &HStore,
        inputs: &[StoreFileView],
        Rewrite { all_files, major }: Rewrite,
        pace: CompactionPace,
    ) -> Result<WrittenStoreFile> {
        let context = &self.services.store;
        let descriptor = store.descriptor().for_compaction(major);
        let rules = FamilyRules::of(&descriptor, context.clock.now_millis());
        let smallest_read_point = self.services.mvcc.smallest_read_point();
        let policy = if all_files {
            let earliest = inputs.iter().filter_map(|view| view.file.opened()?.info().earliest_put).min();
            ScanPolicy::DropDeletes { smallest_read_point, earliest_put_timestamp: earliest.unwrap_or(i64::MAX) }
        } else {
            ScanPolicy::Retain { smallest_read_point }
        };
        // Files in which everything has expired are left out even where nothing that is read would be dropped (NEW_VERSION_BEHAVIOR), as in
        // HBase `StoreScanner.selectScannersFrom`; flushes read everything.
        let oldest = rules.oldest_that_matters();
        let (matter, expired): (Vec<_>, Vec<_>) = inputs
            .iter()
            .rev()
            .partition(|view| !rules.new_version_behavior || view.may_matter(TimeRange::ALL, oldest));
        let sources = matter.into_iter().map(|view| view.scanner_for_compaction()).collect();
        let mut scanner = StoreScanner::new(sources, &StoreScan::compaction(policy, rules));
        let max_sequence_id = inputs.iter().map(|view| view.entry.max_sequence_id).max().unwrap_or(0);
        let bounds = RowBounds { start: self.start.clone(), end: self.end.clone() };
        let tags = inputs.iter().any(|view| view.file.opened().is_some_and(|reader| reader.info().tags));
        let compacted: Vec<String> = inputs.iter().map(StoreFileView::hbase_name).collect();
        let request = StoreFileRequest { max_sequence_id, major: all_files, tags, compacted: &compacted };
        let task = self.begin_task(store, inputs, all_files);
        let mut progress = |bytes| {
            task.advance(bytes);
            self.pace_compaction(bytes, store.files().len(), pace)
        };
        let mut written = write_store_file(context, &descriptor, &mut scanner, &bounds, request, &mut progress)?;
        let unread = expired.into_iter().filter_map(|view| expired_since(view, &rules)).max();
        written.losses.newest_moment = written.losses.newest_moment.max(unread);
        Ok(written)
    }

    fn begin_task(&self, store: &HStore, inputs: &[StoreFileView], all_files: bool) -> TaskGuard<'_> {
        let kind = if all_files { TaskKind::MajorCompaction } else { TaskKind::MinorCompaction };
        let total = inputs.iter().filter_map(|view| Some(view.file.opened()?.info().uncompressed_bytes)).sum();
        let since = self.services.store.clock.monotonic();
        self.services.tasks.begin(kind, &self.encoded_name, Some(store.family()), since, total)
    }

    /// Between megabytes: gives up when the region goes away, and keeps to the throttle.
    fn pace_compaction(&self, bytes: u64, files: usize, pace: CompactionPace) -> Result<()> {
        let config = self.services.config();
        let pressure = match pace {
            CompactionPace::Free => 1.0,
            CompactionPace::Throttled => files as f64 / config.compaction.blocking_files.max(1) as f64,
        };
        let mut pause = self.services.throttle.charge(bytes, pressure);
        loop {
            if self.services.is_closing() || self.interrupted.load(Ordering::Acquire) {
                return Err(Error::Busy { what: "the compaction gave way".to_owned() });
            }
            if pause.is_zero() || !self.services.work.has_workers() {
                return Ok(());
            }
            let step = pause.min(Duration::from_millis(50));
            self.services.work.pause(step);
            pause -= step;
        }
    }

    /// Replaces `inputs` by what was written, in one manifest edit.
    fn install(&self, store: &HStore, inputs: &[StoreFileView], written: Option<WrittenStoreFile>) -> Result<()> {
        let (region, family) = (self.id, store.family());
        let context = &self.services.store;
        let removed: Vec<u64> = inputs.iter().map(|view| view.entry.file_id).collect();
        let mut edits: Vec<ManifestEdit> = removed
            .iter()
            .map(|file_id| ManifestEdit::RemoveStoreFile { region, family: family.clone(), file_id: *file_id })
            .collect();
        let since = match &written {
            // What nothing by timestamps had hidden is lost to every moment until now.
            Some(written) => match written.losses.newest_moment {
                Some(i64::MAX) => Some(context.clock.now_millis()),
                moment => moment,
            },
            None => {
                let rules = FamilyRules::of(&store.descriptor(), 0);
                inputs.iter().filter_map(|view| expired_since(view, &rules)).max()
            }
        };
        if let Some(since_millis) = since {
            edits.push(ManifestEdit::SetHistoryCompleteSince { region, family: family.clone(), since_millis });
        }
        let entry = written.map(|written| written.entry);
        let file_id = entry.as_ref().map(|entry| entry.file_id);
        if let Some(file) = entry.clone() {
            edits.push(ManifestEdit::AddStoreFile { region, family: family.clone(), file });
        }
        let commit = || -> Result<Option<StoreFileView>> {
            let view = entry.map(|entry| store.open_file(entry)).transpose()?;
            if view.is_some() {
                context.sync_directory()?;
            }
            self.services.commit(&edits)?;
            Ok(view)
        };
        let view = commit().inspect_err(|error| {
            if let (Some(file_id), false) = (file_id, matches!(error, Error::Poisoned { .. })) {
                context.discard(file_id);
            }
        })?;
        {
            let stores = self.stores.write();
            store.replace_files(&removed, view.into_iter().collect());
            self.note_files(&stores);
            if let Some(since) = since {
                store.move_history(since);
            }
        }
        self.bury(inputs);
        Ok(())
    }

    /// Marks files dead that no store has any more.
    fn bury(&self, inputs: &[StoreFileView]) {
        let state = self.services.manifest.state();
        for view in inputs.iter().filter(|view| !state.is_live(view.entry.file_id)) {
            view.file.mark_dead();
        }
    }

    /// Stores that the policy would compact now, but for those being compacted already.
    pub fn compaction_due(&self) -> Vec<Arc<HStore>> {
        let config = self.services.config();
        let now = self.services.store.clock.now_millis();
        let due = |store: &Arc<HStore>| {
            if store.compaction.is_locked() {
                return false;
            }
            let facts: Vec<_> = store.files().sound().iter().map(StoreFileView::facts).collect();
            select(&facts, &config.compaction, CompactionRequest::Policy, now, expired_before(store, now)).is_some()
        };
        self.stores().into_iter().filter(due).collect()
    }
}

/// Since when everything in a file that is dropped unread has been expired: its newest cell's time to live had passed then.
fn expired_since(view: &StoreFileView, rules: &FamilyRules) -> Option<i64> {
    let newest = Some(view.entry.max_timestamp).filter(|_| view.entry.entries > 0)?;
    Some(newest.saturating_add(rules.ttl_millis.unwrap_or(0)).saturating_add(1))
}

/// The timestamp below which everything in the store has expired; `None` where something may stay.
fn expired_before(store: &HStore, now: i64) -> Option<i64> {
    let rules = FamilyRules::of(&store.descriptor(), now);
    rules.ttl_millis.filter(|_| rules.min_versions == 0).map(|_| rules.oldest_unexpired())
}
