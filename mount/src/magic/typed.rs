//! `.as/<type>/<cell>`: a cell as the text of a type (contract.md, section 7).

use super::MagicListing;
use super::access::carry_on;
use super::file::{MagicFile, MagicOpened};
use super::hooks::{Change, MountHooks};
use super::node::{CellAddress, MagicNode, TableHandle};
use crate::names;
use crate::ops::{FsError, FsResult};
use bytes::Bytes;
use cellfs::cell::Cell;
use cellfs::client::{Get, Put, WriteTime};
use cellfs::types::ColumnType;
use std::sync::Arc;

/// The newest version of the cell, unless the mount hides it.
fn newest(cell: &CellAddress, hooks: &dyn MountHooks) -> FsResult<Option<Cell>> {
    if hooks.is_hidden(cell.table.id(), &cell.row, &cell.family, &cell.qualifier) {
        return Ok(None);
    }
    let get = Get::new(cell.row.clone()).column(cell.family.clone(), cell.qualifier.clone());
    Ok(cell.table.0.get(&get)?.cells.into_iter().next())
}

/// The text of a cell and a newline.
///
/// # Errors
/// ENOENT without the cell, EINVAL for bytes that are no value of the type.
pub(super) fn text(cell: &CellAddress, of: ColumnType, hooks: &dyn MountHooks) -> FsResult<Bytes> {
    let found = newest(cell, hooks)?.ok_or_else(FsError::not_found)?;
    let mut text = of.decode(found.value())?;
    text.push('\n');
    Ok(text.into())
}

/// The address of a column of the table's families; `None` for another name. A short form is looked for in the row.
pub(super) fn address(table: &TableHandle, row: &Bytes, name: &[u8]) -> FsResult<Option<CellAddress>> {
    let at =
        |family: Bytes, qualifier: Bytes| CellAddress { table: table.clone(), row: row.clone(), family, qualifier };
    Ok(match names::parse_cell(name) {
        Some(names::CellName::Column(family, qualifier)) => {
            table.0.descriptor().families.contains_key(&family).then(|| at(family, qualifier))
        }
        Some(names::CellName::Short(_)) => {
            let found = table.0.get(&Get::new(row.clone()))?;
            let named = |cell: &&Cell| names::cell_name(cell.family(), cell.qualifier()) == name;
            let cell = found.cells.iter().find(named);
            cell.map(|cell| at(Bytes::copy_from_slice(cell.family()), cell.qualifier_bytes()))
        }
        None => None,
    })
}

/// Finds a cell that is there.
pub(super) fn lookup(
    table: &TableHandle,
    row: &Bytes,
    of: ColumnType,
    name: &[u8],
    hooks: &dyn MountHooks,
) -> FsResult<Option<MagicNode>> {
    let Some(cell) = address(table, row, name)? else { return Ok(None) };
    Ok(newest(&cell, hooks)?.map(|_| MagicNode::AsCell(cell, of)))
}

/// Lists the row's cells.
pub(super) fn list(
    table: &TableHandle,
    row: &Bytes,
    of: ColumnType,
    hooks: &Arc<dyn MountHooks>,
) -> FsResult<MagicListing> {
    let (table, row, hooks) = (table.clone(), row.clone(), Arc::clone(hooks));
    let found = table.0.get(&Get::new(row.clone()))?;
    Ok(Box::new(found.cells.into_iter().filter_map(move |cell| {
        let (family, qualifier) = (Bytes::copy_from_slice(cell.family()), cell.qualifier_bytes());
        if hooks.is_hidden(table.id(), &row, &family, &qualifier) {
            return None;
        }
        let name = Bytes::from(names::cell_name(&family, &qualifier));
        let address = CellAddress { table: table.clone(), row: row.clone(), family, qualifier };
        Some(Ok((name, MagicNode::AsCell(address, of))))
    })))
}

/// A cell that is open to be written as text. A line written with its newline is a version when write(2) returns; what has none becomes one at close. One
/// open is one version: what is written later replaces it.
pub(super) struct TypedFile {
    cell: CellAddress,
    of: ColumnType,
    hooks: Arc<dyn MountHooks>,
    content: Vec<u8>,
    dirty: bool,
    appends: bool,
    /// The timestamp of the version that this open has made.
    version: Option<i64>,
}

impl TypedFile {
    /// Opens the cell over its present text, or none.
    pub(super) fn open(
        cell: CellAddress,
        of: ColumnType,
        hooks: Arc<dyn MountHooks>,
        present: Bytes,
        flags: i32,
    ) -> TypedFile {
        let appends = flags & libc::O_APPEND != 0;
        TypedFile { cell, of, hooks, content: present.into(), dirty: false, appends, version: None }
    }

    fn checked(&self, size: u64) -> FsResult<usize> {
        // A byte takes two digits in hex, and never more.
        let limit = self.hooks.cell_max().saturating_mul(2).saturating_add(1);
        match usize::try_from(size) {
            Ok(fits) if size <= limit => Ok(fits),
            _ => Err(FsError::new(libc::EFBIG, format!("a cell as text is at most {limit} bytes"))),
        }
    }

    fn commit(&mut self) -> FsResult<()> {
        self.dirty = false;
        let line = self.content.strip_suffix(b"\n").unwrap_or(&self.content);
        let text = std::str::from_utf8(line).map_err(|_| FsError::new(libc::EINVAL, "a value as text is UTF-8"))?;
        let value = self.of.encode(text)?;
        let time = self.version.map_or(WriteTime::AfterNewest, WriteTime::ReplaceIfNewest);
        let CellAddress { table, row, family, qualifier } = &self.cell;
        let mut put = Put::new(row.clone()).add_at(family.clone(), qualifier.clone(), time, value);
        carry_on(table, row, &mut put.cells)?;
        let outcome = table.0.put(put)?;
        self.version = outcome.written.first().map(Cell::timestamp);
        self.hooks.changed(Change::Cell {
            table: table.id(),
            row: row.clone(),
            family: family.clone(),
            qualifier: qualifier.clone(),
        });
        Ok(())
    }
}

impl MagicFile for TypedFile {
    fn read(&mut self, offset: u64, size: usize) -> FsResult<Bytes> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.content.len());
        let end = start.saturating_add(size).min(self.content.len());
        Ok(Bytes::copy_from_slice(self.content.get(start..end).unwrap_or(&[])))
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> FsResult<usize> {
        let offset = if self.appends { self.content.len() as u64 } else { offset };
        let end = self.checked(offset.saturating_add(data.len() as u64))?;
        if self.content.len() < end {
            self.content.resize(end, b' ');
        }
        if let Some(target) = self.content.get_mut(end - data.len()..end) {
            target.copy_from_slice(data);
        }
        self.dirty = true;
        if self.content.ends_with(b"\n") {
            self.commit()?;
        }
        Ok(data.len())
    }

    fn truncate(&mut self, size: u64) -> FsResult<()> {
        let size = self.checked(size)?;
        self.content.resize(size, b' ');
        Ok(())
    }

    fn flush(&mut self) -> FsResult<()> {
        if self.dirty { self.commit() } else { Ok(()) }
    }

    fn size(&self) -> Option<u64> {
        Some(self.content.len() as u64)
    }

    fn opened(&self) -> MagicOpened {
        MagicOpened { direct_io: true, no_flush: false }
    }
}
