//! What is to be done in the background, and doing it: flushes, compactions, splits, old log segments.

use super::StoreInner;
use super::table_state::{TableState, flush_size, max_file_size};
use crate::compaction::CompactionRequest;
use crate::error::{Error, Result};
use crate::manifest::ManifestEdit;
use crate::region::{CompactionPace, Region, split_threshold};
use std::sync::Arc;

impl StoreInner {
    /// All regions, with their tables.
    pub(super) fn all_regions(&self) -> Vec<(Arc<TableState>, Arc<Region>)> {
        let tables = self.catalog.read().all_tables();
        let mut regions = Vec::new();
        for table in tables {
            regions.extend(table.regions().iter().map(|region| (Arc::clone(&table), Arc::clone(region))));
        }
        regions
    }

    /// Flushes regions that are due: asked for, over their size, the largest while memory is short, the oldest while the log is long.
    /// True if anything was flushed.
    ///
    /// # Errors
    /// The first failure; the others are tried all the same.
    pub(super) fn flush_due_regions(&self) -> Result<bool> {
        let config = self.services.config();
        let mut outcome = Ok(false);
        for (table, region) in self.all_regions() {
            if region.flush_due(flush_size(&table.descriptor(), &config)) {
                outcome = both(outcome, region.flush());
            }
        }
        if self.services.memory.bytes() >= self.services.memory.flush_mark() {
            let largest = self.all_regions().into_iter().max_by_key(|(_, region)| region.active_bytes());
            if let Some((_, region)) = largest.filter(|(_, region)| region.active_bytes() > 0) {
                outcome = both(outcome, region.flush());
            }
        }
        if self.services.wal()?.segment_count() > self.options.max_log_segments {
            let regions = self.all_regions();
            let oldest = regions.iter().filter_map(|(_, region)| Some((region.oldest_unflushed()?, region)));
            if let Some((_, region)) = oldest.min_by_key(|(oldest, _)| *oldest) {
                outcome = both(outcome, region.flush());
            }
        }
        self.forget_log()?;
        outcome
    }

    /// Removes log segments whose every edit is in store files.
    ///
    /// # Errors
    /// Those of the manifest and of removing files.
    pub(super) fn forget_log(&self) -> Result<()> {
        let _one = self.forgetting.lock();
        let wal = self.services.wal()?;
        // First the read point: every write up to it is in a memstore, where the next line finds it if it is not in a file.
        let read_point = self.services.mvcc.read_point();
        let oldest = self.all_regions().iter().filter_map(|(_, region)| region.oldest_unflushed()).min();
        let bound = oldest.map_or(read_point, |oldest| read_point.min(oldest.saturating_sub(1)));
        let first_segment = wal.first_needed_segment(bound);
        if first_segment > self.services.manifest.state().log_number {
            self.services.commit(&[
                ManifestEdit::SetLogNumber { first_segment },
                ManifestEdit::SetLastSequenceId { sequence_id: wal.last_sequence_id() },
            ])?;
        }
        wal.forget_before(first_segment)
    }

    /// Runs one due compaction of some store; true if there was one.
    ///
    /// # Errors
    /// Those of the compaction.
    pub(super) fn compact_one(&self) -> Result<bool> {
        for (table, region) in self.all_regions() {
            let descriptor = table.descriptor();
            if descriptor.compaction_disabled || descriptor.read_only {
                continue;
            }
            for store in region.compaction_due() {
                match region.compact(&store, CompactionRequest::Policy, CompactionPace::Throttled) {
                    Ok(Some(_)) => return Ok(true),
                    Ok(None) | Err(Error::Busy { .. }) => {}
                    // The file is known as damaged now and is left alone; others are not to wait for it.
                    Err(error @ Error::Corruption { .. }) => log::error!("compaction: {error}"),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(false)
    }

    /// Splits one region that has outgrown its size; true if there was one.
    ///
    /// # Errors
    /// Those of the split.
    pub(super) fn split_one(self: &Arc<Self>) -> Result<bool> {
        let config = self.services.config();
        for (table, region) in self.all_regions() {
            let descriptor = table.descriptor();
            if descriptor.split_disabled {
                continue;
            }
            let (flush, max) = (flush_size(&descriptor, &config), max_file_size(&descriptor, &config));
            let threshold = split_threshold(descriptor.split_policy(), table.regions().len(), flush, max);
            if !threshold.is_some_and(|threshold| region.split_due(threshold)) {
                continue;
            }
            if let Some(row) = region.split_point(&descriptor)?
                && self.split_region(&table, &region, &row)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the blocks of one newly opened file into the cache whose family wants it so; true if there was one.
    pub(super) fn prefetch_one(&self) -> bool {
        let context = &self.services.store;
        let Some(file) = context.next_prefetch() else { return false };
        let read = file.reader().and_then(|reader| reader.prefetch(|| !self.services.is_closing()));
        if let Err(error) = read {
            // Whoever reads the block meets the damage; nobody asked for it yet.
            log::warn!("prefetch: {error}");
        }
        true
    }

    /// Everything that is due, until nothing is.
    pub(super) fn run_pending_work(self: &Arc<Self>) -> Result<()> {
        while self.flush_due_regions()? {}
        while self.compact_one()? {}
        while self.split_one()? {
            while self.compact_one()? {}
        }
        while self.prefetch_one() {}
        while self.take_due_snapshot()? {}
        Ok(())
    }

    /// Flushes everything for a clean end: the next start has nothing to replay.
    pub(super) fn flush_all_for_close(&self) -> Result<()> {
        let Ok(wal) = self.services.wal() else { return Ok(()) };
        let mut outcome = wal.sync().map(|()| false);
        if outcome.is_ok() {
            for (_, region) in self.all_regions() {
                outcome = both(outcome, region.flush());
            }
        }
        outcome = outcome.and_then(|done| self.forget_log().map(|()| done));
        let closed = wal.close();
        outcome.and(closed)
    }
}

/// The first failure, or whether either did something.
fn both(first: Result<bool>, second: Result<bool>) -> Result<bool> {
    match (first, second) {
        (Ok(one), Ok(other)) => Ok(one || other),
        (Err(error), _) | (Ok(_), Err(error)) => Err(error),
    }
}
