//! Cells hidden behind an editor's backup: their tombstones follow in time. And the end of a mount.

use super::CellFs;
use super::handle::Handle;
use super::inode::Node;
use super::scratch::HiddenCell;
use super::tree::attributes_marker;
use crate::magic::{CellAddress, TableHandle};
use crate::ops::{Caller, FsResult};
use cellfs::client::Delete;

impl CellFs {
    /// Writes the tombstones of hidden cells whose time is over. Called now and then by whoever runs the mount; see [`CellFs::next_deadline`].
    pub fn expire_hidden(&self) {
        self.bury_all(self.state.hidden.due(Some(self.state.options.clock.monotonic())));
    }

    /// When [`CellFs::expire_hidden`] has something to do next, on the monotonic clock.
    pub fn next_deadline(&self) -> Option<std::time::Duration> {
        self.state.hidden.next_deadline()
    }

    fn bury_all(&self, cells: Vec<HiddenCell>) {
        for hidden in cells {
            let table = self.state.tables.read().get(&hidden.table).map(|facts| facts.table.clone());
            let Some(table) = table else { continue };
            if let Err(error) = self.bury(&table, &hidden) {
                let caller =
                    Caller { uid: self.state.options.uid, gid: self.state.options.gid, pid: std::process::id() };
                let path = self.state.path_of(&Node::Cell(address(&table, &hidden)));
                self.state.note_error(&caller, "hide", path, &error);
            }
        }
    }

    /// Writes the tombstone of a hidden cell.
    pub(super) fn bury(&self, table: &TableHandle, hidden: &HiddenCell) -> FsResult<()> {
        let cell = address(table, hidden);
        // Shown again meanwhile: written, so it lives on.
        if !self.state.hidden.contains(hidden.table, &hidden.row, &hidden.family, &hidden.qualifier) {
            return Ok(());
        }
        self.delete_cell(&cell)?;
        self.state.hidden.show(hidden.table, &hidden.row, &hidden.family, &hidden.qualifier);
        Ok(())
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
        self.bury_all(self.state.hidden.due(None));
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

fn address(table: &TableHandle, hidden: &HiddenCell) -> CellAddress {
    CellAddress {
        table: table.clone(),
        row: hidden.row.clone(),
        family: hidden.family.clone(),
        qualifier: hidden.qualifier.clone(),
    }
}
