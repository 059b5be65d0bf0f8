//! Modes and owners where dot names read or write many cells at once: what a caller may not read by its path is left out of scans and row
//! documents, and a version written past the path keeps the mode and owner of the one before (contract.md, section 3: a write never opens a secret).

use super::node::{CellAddress, TableHandle};
use crate::attributes::{Defaults, FileAttributes};
use crate::ops::{Caller, FsResult};
use bytes::Bytes;
use cellfs::cell::{Cell, Tag};
use cellfs::client::{Get, PutCell, TableAttributes};
use cellfs::schema::ROW_ATTRIBUTES_FAMILY;

/// The bits of one class of users.
const READ: u32 = 4;
const SEARCH: u32 = 1;

/// Who looks at a table's cells. Root and the table's owner, who can drop it all, see everything; supplementary groups do not count.
pub(super) struct Viewer {
    table: TableHandle,
    caller: Caller,
    cells: Defaults,
    rows: Defaults,
    /// The row last asked about, and whether it is open to the caller.
    row: Option<(Bytes, bool)>,
}

impl Viewer {
    /// The viewer that `caller` is; `None` for one who sees everything.
    pub(super) fn new(table: &TableHandle, attributes: &TableAttributes, caller: &Caller) -> Option<Viewer> {
        if caller.uid == 0 || caller.uid == attributes.uid {
            return None;
        }
        let (cells, rows) = (Defaults::of_cells(attributes), Defaults::of_rows(attributes));
        Some(Viewer { table: table.clone(), caller: *caller, cells, rows, row: None })
    }

    /// True if the caller could read the cell by its path. A row whose own attributes cannot be read is closed.
    pub(super) fn may_read(&mut self, cell: &Cell) -> bool {
        self.may_enter(cell) && self.allows(FileAttributes::of_cell(cell), self.cells, READ)
    }

    fn may_enter(&mut self, cell: &Cell) -> bool {
        if let Some((row, open)) = &self.row
            && row == cell.row()
        {
            return *open;
        }
        let get = Get::new(cell.row_bytes()).column(ROW_ATTRIBUTES_FAMILY, Bytes::new());
        let own =
            match self.table.0.descriptor().families.contains_key(ROW_ATTRIBUTES_FAMILY) {
                false => Some(FileAttributes::default()),
                true => self.table.0.get(&get).ok().map(|found| {
                    found.cells.first().map(|cell| FileAttributes::decode(cell.value())).unwrap_or_default()
                }),
            };
        let open = own.is_some_and(|own| self.allows(own, self.rows, SEARCH));
        self.row = Some((cell.row_bytes(), open));
        open
    }

    fn allows(&self, own: FileAttributes, defaults: Defaults, wanted: u32) -> bool {
        let mode = own.mode.unwrap_or(defaults.mode);
        let shift = if self.caller.uid == own.uid.unwrap_or(defaults.uid) {
            6
        } else if self.caller.gid == own.gid.unwrap_or(defaults.gid) {
            3
        } else {
            0
        };
        (mode >> shift) & wanted == wanted
    }
}

/// Mode, owner and group of a cell's versions: those of its newest one.
///
/// # Errors
/// What the store says.
pub(super) fn owner_of(cell: &CellAddress, attributes: &TableAttributes) -> FsResult<(u32, u32, u32)> {
    let defaults = Defaults::of_cells(attributes);
    let found = cell.table.0.get(&Get::new(cell.row.clone()).column(cell.family.clone(), cell.qualifier.clone()))?;
    let own = found.cells.first().map(FileAttributes::of_cell).unwrap_or_default();
    let (uid, gid) = (own.uid.unwrap_or(defaults.uid), own.gid.unwrap_or(defaults.gid));
    Ok((own.mode.unwrap_or(defaults.mode), uid, gid))
}

/// Gives the cells of a put the mode and owner of the versions they follow.
///
/// # Errors
/// What the store says.
pub(super) fn carry_on(table: &TableHandle, row: &Bytes, cells: &mut [PutCell]) -> FsResult<()> {
    let columns =
        cells.iter().fold(Get::new(row.clone()), |get, cell| get.column(cell.family.clone(), cell.qualifier.clone()));
    let found = table.0.get(&columns)?;
    for present in found.cells.iter().filter(|present| !present.tags().is_empty()) {
        let tags: Vec<Tag> = FileAttributes::of_cell(present).without_times().tags(None);
        if tags.is_empty() {
            continue;
        }
        for cell in cells.iter_mut() {
            if cell.family == present.family() && cell.qualifier == present.qualifier() {
                cell.tags.clone_from(&tags);
            }
        }
    }
    Ok(())
}
