//! The way of a write, in HBase's order: log, durable as asked, memstores, visible (HBase `HRegion.doMiniBatchMutate`).

use super::mvcc::WriteEntry;
use super::services::RegionServices;
use super::{Region, RegionConfig};
use crate::cell::Cell;
use crate::client::Durability;
use crate::error::{Error, Result};
use crate::wal::WalEdit;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Cells for one region, made under the locks of their rows.
pub struct RegionCells<'a> {
    /// The region.
    pub region: &'a Region,
    /// The cells.
    pub cells: Vec<Cell>,
}

/// Writes cells of one or several regions as one: one log record, one sequence id, visible at one moment. The caller holds the row locks and has
/// entered the regions. Returns the sequence id, for [`super::Mvcc::wait_for`] once the row locks are free; the cells carry it then.
///
/// # Errors
/// Those of the log; then nothing has changed.
pub fn apply(services: &RegionServices, parts: &mut [RegionCells<'_>], durability: Durability) -> Result<u64> {
    for part in parts.iter() {
        // Every store is there before anything is logged: what is in the log can be applied.
        for cell in &part.cells {
            part.region.ensure_store(cell.family())?;
        }
    }
    let take =
        |part: &mut RegionCells<'_>| WalEdit { region: part.region.id(), cells: std::mem::take(&mut part.cells) };
    let mut single;
    let mut several;
    let edits: &mut [WalEdit] = if let [only] = &mut *parts {
        single = [take(only)];
        &mut single
    } else {
        several = parts.iter_mut().map(take).collect::<Vec<_>>();
        &mut several
    };
    let sequence_id = services.log(edits, durability)?;
    let entry = WriteEntry::new(&services.mvcc, sequence_id);
    for (part, edit) in parts.iter_mut().zip(edits.iter_mut()) {
        part.region.insert(&edit.cells);
        part.cells = std::mem::take(&mut edit.cells);
    }
    Ok(entry.complete())
}

impl Region {
    fn ensure_store(&self, family: &[u8]) -> Result<()> {
        if self.stores.read().get(family).is_some() {
            return Ok(());
        }
        self.store_for_write(family).map(|_| ())
    }

    /// Puts logged cells into the memstores, at one moment for all families. Cells of families that are gone are passed over: only
    /// recovery meets them.
    pub fn insert(&self, cells: &[Cell]) {
        let grown = {
            let stores = self.stores.read();
            let mut grown = 0;
            let mut rest = cells;
            while let Some(first) = rest.first() {
                let run = rest.iter().take_while(|cell| cell.family() == first.family()).count();
                let (family_cells, others) = rest.split_at(run);
                if let Some(store) = stores.get(first.family()) {
                    grown += store.insert(family_cells.iter().cloned());
                }
                rest = others;
            }
            self.active_bytes.fetch_add(grown, Ordering::Relaxed);
            grown
        };
        self.services.memory.add(grown);
        self.writes.fetch_add(cells.len() as u64, Ordering::Relaxed);
    }

    /// Puts cells of the log back, while the store is opened.
    ///
    /// # Errors
    /// None today; a store for the hidden family may have to be made.
    pub fn replay(&self, cells: &[Cell]) -> Result<()> {
        for cell in cells {
            if cell.family() == crate::schema::ROW_ATTRIBUTES_FAMILY {
                self.ensure_store(cell.family())?;
            }
        }
        self.insert(cells);
        Ok(())
    }

    /// Wakes the flusher if this write made a flush due.
    pub fn after_write(&self, flush_size: u64) {
        if self.wants_flush(flush_size) {
            self.services.work.raise();
        }
    }

    /// Holds the writer back in proportion to memory in use and store files piled up; before any lock is taken.
    ///
    /// # Errors
    /// [`Error::Busy`] when memory or files stay at their limit for the configured time; [`Error::NoSpace`] when that is because flushes
    /// find no room.
    pub fn wait_for_room(&self, bytes: u64, flush_size: u64, config: &RegionConfig) -> Result<()> {
        let services = &self.services;
        let blocking_files = config.compaction.blocking_files;
        let pressure = self.pressure(flush_size, blocking_files);
        services.memory.note_slowing(pressure > 0.5);
        if pressure <= 0.5 {
            return Ok(());
        }
        services.work.raise();
        if !services.work.has_workers() {
            return if pressure < 1.0 { Ok(()) } else { Err(self.too_busy()) };
        }
        let clock = &services.store.clock;
        let began = clock.monotonic();
        let pause = services.memory.pause_for(bytes, pressure.min(0.999));
        if !pause.is_zero() {
            services.memory.wait_freed(pause);
        }
        while self.pressure(flush_size, blocking_files) >= 1.0 {
            if clock.monotonic().saturating_sub(began) >= config.busy_timeout {
                return Err(self.too_busy());
            }
            services.check_writable(false)?;
            services.work.raise();
            services.memory.wait_freed(Duration::from_millis(20));
        }
        let waited = clock.monotonic().saturating_sub(began);
        services.memory.note_stall(waited);
        Ok(())
    }

    fn too_busy(&self) -> Error {
        Error::Busy { what: format!("region {} waits for flushes and compactions", self.encoded_name()) }
    }

    /// The highest of: all memstores against their limit, this region's against four times its flush size (HBase's block multiplier), and
    /// files of its fullest store against the blocking number. Files alone slow writers down, but never stop them: HBase too lets the flush
    /// through in the end.
    fn pressure(&self, flush_size: u64, blocking_files: usize) -> f64 {
        const BLOCK_MULTIPLIER: f64 = 4.0;
        const AT_BLOCKING: f64 = 0.75;
        const MOST: f64 = 0.95;
        let own = self.active_bytes() as f64 / (flush_size as f64 * BLOCK_MULTIPLIER);
        let memory = self.services.memory.pressure().max(own);
        if self.compaction_disabled.load(Ordering::Relaxed) {
            return memory;
        }
        let files = self.fullest_store.load(Ordering::Relaxed) as f64 / blocking_files.max(1) as f64;
        memory.max((files * AT_BLOCKING).min(MOST))
    }
}
