//! Many rows changed at once, by store files that one manifest edit installs: a table becomes what it was, a range of rows goes. New versions
//! and markers are written, so what was there before is history like any other.

use super::StoreInner;
use super::schema_change::{hold_all, in_id_order};
use super::table::TableHandle;
use crate::cell::{Cell, CellType};
use crate::client::{RestorePoint, ResultScanner, RowChanges, RowResult, Scan, Table, TableName};
use crate::error::{Error, Result};
use crate::hfile::StoreFileInfo;
use crate::manifest::{ManifestEdit, StoreFileEntry};
use crate::region::{Region, WriteEntry};
use crate::store::{HStore, StoreFileWriter};
use bytes::Bytes;
use std::cmp::Ordering;
use std::sync::Arc;

/// A family of the region at hand, and the file that its changes go to once there are any.
struct Target<'a> {
    region: Arc<Region>,
    store: Arc<HStore>,
    writer: Option<StoreFileWriter<'a>>,
}

type Written = Vec<(Arc<Region>, Arc<HStore>, StoreFileEntry)>;

impl StoreInner {
    pub(super) fn restore_table(
        self: &Arc<Self>,
        name: &TableName,
        point: &RestorePoint,
        prefix: &[u8],
    ) -> Result<RowChanges> {
        let scan = Scan { prefix: Bytes::copy_from_slice(prefix), ..Scan::new() };
        let goal = match point {
            RestorePoint::Snapshot(snapshot) => self.open_snapshot(name, snapshot)?,
            RestorePoint::AsOf(millis) => self.open_as_of(name, *millis)?,
        };
        self.rewrite(name, &scan, Some(goal.as_ref()))
    }

    pub(super) fn delete_range(self: &Arc<Self>, name: &TableName, start: &[u8], stop: &[u8]) -> Result<RowChanges> {
        if !stop.is_empty() && start > stop {
            return Err(Error::invalid("the range ends before it begins"));
        }
        if start == stop && !start.is_empty() {
            return Ok(RowChanges::default());
        }
        let (start_row, stop_row) = (Bytes::copy_from_slice(start), Bytes::copy_from_slice(stop));
        self.rewrite(name, &Scan { start_row, stop_row, ..Scan::new() }, None)
    }

    /// Makes the rows of `scan` show what they show in `goal`, nothing for `None`. Writers of the table wait meanwhile; so nothing comes
    /// between the look and the change.
    fn rewrite(self: &Arc<Self>, name: &TableName, scan: &Scan, goal: Option<&dyn Table>) -> Result<RowChanges> {
        // Callers that must not wait hear of it before anybody does.
        self.services.holding.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let changed = self.rewrite_held(name, scan, goal);
        self.services.holding.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        changed
    }

    fn rewrite_held(self: &Arc<Self>, name: &TableName, scan: &Scan, goal: Option<&dyn Table>) -> Result<RowChanges> {
        let services = &self.services;
        let table = self.table_state(name)?;
        let _structure = table.structure.lock();
        table.check_exists()?;
        table.check_not_read_only()?;
        services.check_writable(false)?;
        let regions = in_id_order(&table);
        for region in &regions {
            region.flush()?;
        }
        let held = hold_all(&regions);
        for region in &held {
            region.flush()?;
        }
        // What others still have on its way must not hide what is complete here.
        services.mvcc.wait_for(services.wal()?.last_sequence_id());
        let sequence_id = services.wal()?.allocate_sequence_id();
        let entry = WriteEntry::new(&services.mvcc, sequence_id);
        let live = TableHandle { store: Arc::clone(self), state: Arc::clone(&table) };
        let mut changes = RowChanges::default();
        let mut written: Written = Vec::new();
        let installed = self
            .write_changes(&live, scan, goal, sequence_id, &mut changes, &mut written)
            .and_then(|()| self.install(&written, sequence_id));
        if let Err(error) = installed {
            // After a failed sync of the manifest nobody knows whether it names the files: they must stay.
            if !matches!(error, Error::Poisoned { .. }) {
                written.iter().for_each(|(_, _, file)| services.store.discard(file.file_id));
            }
            return Err(error);
        }
        entry.complete();
        drop(held);
        services.work.raise();
        Ok(changes)
    }

    fn install(&self, written: &Written, sequence_id: u64) -> Result<()> {
        if written.is_empty() {
            return Ok(());
        }
        let mut edits = vec![ManifestEdit::SetLastSequenceId { sequence_id }];
        let mut views = Vec::with_capacity(written.len());
        for (region, store, file) in written {
            views.push((region, store, store.open_file(file.clone())?));
            let family = store.family().clone();
            edits.push(ManifestEdit::AddStoreFile { region: region.id(), family, file: file.clone() });
        }
        self.services.store.sync_directory()?;
        self.services.commit(&edits)?;
        for (region, store, view) in views {
            region.publish_file(store, view);
        }
        Ok(())
    }

    /// Walks over both states, row by row, and writes what leads from one to the other.
    fn write_changes(
        &self,
        live: &TableHandle,
        scan: &Scan,
        goal: Option<&dyn Table>,
        sequence_id: u64,
        changes: &mut RowChanges,
        written: &mut Written,
    ) -> Result<()> {
        let mut present = Rows::new(live.scan(scan)?)?;
        let mut wanted = goal.map(|goal| goal.scan(scan).and_then(Rows::new)).transpose()?;
        let mut targets: Vec<Target<'_>> = Vec::new();
        let nothing = RowResult::default();
        loop {
            let ahead = wanted.as_ref().and_then(|rows| rows.ahead.as_ref());
            let order = match (&present.ahead, ahead) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(present), Some(wanted)) => present.row().cmp(wanted.row()),
            };
            let now = if order == Ordering::Greater { None } else { present.step()? };
            let then =
                if order == Ordering::Less { None } else { wanted.as_mut().map(Rows::step).transpose()?.flatten() };
            let (now, then) = (now.as_ref().unwrap_or(&nothing), then.as_ref().unwrap_or(&nothing));
            let row = if now.is_empty() { then.row() } else { now.row() };
            let inside = targets.first().is_some_and(|target| target.region.contains(row));
            if !inside {
                finish(&mut targets, sequence_id, written)?;
                let region = live.state.region_for(row)?;
                let target = |store| Target { region: Arc::clone(&region), store, writer: None };
                targets = region.stores().into_iter().map(target).collect();
            }
            let before = changes.cells;
            for target in &mut targets {
                changes.cells += self.write_row(target, row, now, then, sequence_id)?;
            }
            changes.rows += u64::from(changes.cells > before);
        }
        finish(&mut targets, sequence_id, written)
    }

    /// Writes the changes of one family of a row; returns how many cells that took.
    fn write_row<'a>(
        &'a self,
        target: &mut Target<'a>,
        row: &[u8],
        now: &RowResult,
        then: &RowResult,
        sequence_id: u64,
    ) -> Result<u64> {
        let family = target.store.family().clone();
        let of_family = |cell: &&Cell| cell.family() == &family[..];
        let floor = self.now();
        let view = target.store.view();
        let mut cells: Vec<Cell> = Vec::new();
        let present: Vec<&Cell> = now.cells.iter().filter(of_family).collect();
        let wanted: Vec<&Cell> = then.cells.iter().filter(of_family).collect();
        if wanted.is_empty() && !present.is_empty() {
            let time = view.newest_of_row(row, floor)?.unwrap_or(floor);
            cells.push(Cell::new(row, &family, b"", time, CellType::DeleteFamily, b""));
        } else {
            for gone in present.iter().filter(|cell| then.cell(&family, cell.qualifier()).is_none()) {
                let time = view.newest_of_column(row, gone.qualifier(), floor)?.any().unwrap_or(floor);
                cells.push(Cell::new(row, &family, gone.qualifier(), time, CellType::DeleteColumn, b""));
            }
            for cell in wanted {
                let same = now.cell(&family, cell.qualifier());
                if same.is_some_and(|same| same.value() == cell.value() && same.tags() == cell.tags()) {
                    continue;
                }
                let newest = view.newest_of_column(row, cell.qualifier(), floor)?.any();
                let time = newest.map_or(floor, |newest| newest.saturating_add(1));
                let (qualifier, value, tags) = (cell.qualifier(), cell.value(), cell.tags());
                cells.push(Cell::with_tags(row, &family, qualifier, time, CellType::Put, value, tags));
            }
            cells.sort_by(crate::cell::compare);
        }
        if cells.is_empty() {
            return Ok(0);
        }
        let writer = match &mut target.writer {
            Some(writer) => writer,
            none => none.insert(StoreFileWriter::create(&self.services.store, &target.store.descriptor(), true)?),
        };
        for cell in &cells {
            writer.append(&cell.clone().with_sequence_id(sequence_id))?;
        }
        Ok(cells.len() as u64)
    }
}

/// Ends the files of the region that has been left.
fn finish(targets: &mut Vec<Target<'_>>, sequence_id: u64, written: &mut Written) -> Result<()> {
    for target in targets.drain(..) {
        if let Some(writer) = target.writer {
            let entry = writer.finish(sequence_id, StoreFileInfo::default())?;
            written.push((target.region, target.store, entry));
        }
    }
    Ok(())
}

/// The rows of a scan, one ahead.
struct Rows {
    scanner: Box<dyn ResultScanner>,
    ahead: Option<RowResult>,
}

impl Rows {
    fn new(mut scanner: Box<dyn ResultScanner>) -> Result<Rows> {
        let ahead = scanner.next()?;
        Ok(Rows { scanner, ahead })
    }

    fn step(&mut self) -> Result<Option<RowResult>> {
        let next = self.scanner.next()?;
        Ok(std::mem::replace(&mut self.ahead, next))
    }
}
