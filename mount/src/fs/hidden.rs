//! Cells hidden behind an editor's backup: their tombstones follow in time. And the end of a mount.

use super::CellFs;
use super::handle::Handle;
use super::inode::Node;
use super::scratch::HiddenCell;
use super::state::MountState;
use super::tree::{attributes_marker, column_marker};
use crate::magic::{CellAddress, TableHandle};
use crate::ops::{Caller, FsResult};
use cellfs::client::{Delete, Durability};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

/// The watching thread looks this often at least, so that it ends soon after the mount.
const LOOK: Duration = Duration::from_secs(1);

impl MountState {
    /// How far a change has gone when the call returns.
    pub(super) fn durability(&self) -> Durability {
        if self.options.sync { Durability::FsyncWal } else { Durability::UseDefault }
    }

    /// Writes a cell's tombstone; its row stays a directory.
    pub(super) fn delete_cell(&self, cell: &CellAddress) -> FsResult<()> {
        let mut delete = Delete::row(cell.row.clone()).marker(column_marker(cell));
        delete.durability = self.durability();
        let outcome = cell.table.0.delete(delete)?;
        let millis = outcome.written.first().map_or_else(|| self.now(), |marker| marker.timestamp());
        self.kept.keep(cell.table.id(), &cell.row, millis);
        self.row_changed(&cell.table, &cell.row, millis);
        Ok(())
    }

    /// Writes the tombstone of a hidden cell, unless it was written again meanwhile.
    pub(super) fn bury(&self, table: &TableHandle, hidden: &HiddenCell) -> FsResult<()> {
        let HiddenCell { row, family, qualifier, .. } = hidden;
        if self.hidden.contains(hidden.table, row, family, qualifier) {
            self.delete_cell(&address(table, hidden))?;
            self.hidden.show(hidden.table, row, family, qualifier);
        }
        Ok(())
    }

    /// Writes the tombstones of the hidden cells whose time is over by `now`; of all without it.
    pub fn bury_due(&self, now: Option<Duration>) {
        for hidden in self.hidden.due(now) {
            let table = self.tables.read().get(&hidden.table).map(|facts| facts.table.clone());
            let Some(table) = table else { continue };
            if let Err(error) = self.bury(&table, &hidden) {
                let caller = Caller { uid: self.options.uid, gid: self.options.gid, pid: std::process::id() };
                let path = self.path_of(&Node::Cell(address(&table, &hidden)));
                self.note_error(&caller, "hide", path, &error);
                // Tried again with the next one: a full disk or a lagging compaction passes.
            }
        }
    }
}

impl CellFs {
    /// Sees to it that the tombstones of hidden cells are written in time.
    pub(super) fn watch_hidden(&self) {
        if self.state.options.background && !self.state.watching.swap(true, Ordering::AcqRel) {
            let state = Arc::downgrade(&self.state);
            let watcher = thread::Builder::new().name("cellfs-hidden".into()).spawn(move || watch(&state));
            if let Err(error) = watcher {
                // Without the thread they are written at unmount.
                log::warn!("no thread for hidden cells: {error}");
                self.state.watching.store(false, Ordering::Release);
            }
        }
    }

    /// The mount ends: what is open is committed, hidden cells get their tombstones, and nothing is left of empty rows.
    pub(super) fn end(&self) {
        for handle in self.handles.all() {
            if let Handle::File(file) = &*handle
                && file.writable
            {
                self.release_file(file);
                self.handles.remove(file.number);
            }
        }
        self.state.bury_due(None);
        let tables: Vec<_> = self.state.tables.read().values().cloned().collect();
        for facts in tables.iter().filter(|facts| facts.unsaved && !self.state.options.read_only) {
            // The times of a directory are not worth failing an unmount for.
            if let Err(error) = self.admin.set_table_attributes(&facts.table.0.name(), facts.attributes) {
                log::warn!("the times of {} are not kept: {error}", facts.table.0.name());
            }
        }
        for (table, row) in self.state.kept.all() {
            let Some(facts) = tables.iter().find(|facts| facts.table.id() == table) else { continue };
            let empty = matches!(self.row_has_cells(&facts.table, &row), Ok(false));
            if empty && matches!(self.stored_row_attributes(&facts.table, &row), Ok(Some(_))) {
                let delete = Delete::row(row).marker(attributes_marker());
                if let Err(error) = facts.table.0.delete(delete) {
                    log::warn!("the attributes of an empty row of {} stay: {error}", facts.table.0.name());
                }
            }
        }
    }
}

/// The watching thread: ends when nothing is hidden, or with the mount.
fn watch(state: &Weak<MountState>) {
    loop {
        let Some(state) = state.upgrade() else { return };
        let now = state.options.clock.monotonic();
        state.bury_due(Some(now));
        let Some(deadline) = state.hidden.next_deadline() else {
            state.watching.store(false, Ordering::Release);
            // One hidden since then has seen a watcher that is about to leave.
            if state.hidden.next_deadline().is_none() || state.watching.swap(true, Ordering::AcqRel) {
                return;
            }
            continue;
        };
        drop(state);
        thread::park_timeout(deadline.saturating_sub(now).clamp(Duration::from_millis(1), LOOK));
    }
}

fn address(table: &TableHandle, hidden: &HiddenCell) -> CellAddress {
    CellAddress {
        table: table.clone(),
        row: hidden.row.clone(),
        family: hidden.family.clone(),
        qualifier: hidden.qualifier.clone(),
    }
}
