//! `.row.json`: the whole row as one JSON object; written, one atomic mutation of the row (contract.md, section 3).

use super::access::{Viewer, carry_on};
use super::file::{MagicFile, MagicOpened, slice};
use super::forms::{explain, push_string, push_typed};
use super::hooks::{Change, MountHooks};
use super::node::TableHandle;
use super::row_document::{RowChange, RowDocument};
use crate::names;
use crate::ops::{FsError, FsResult};
use bytes::Bytes;
use cellfs::client::{CheckAndMutate, Get, Mutation, RowMutations};
use std::sync::Arc;

/// The largest document that is taken, in bytes.
const MAX_DOCUMENT: usize = 300 << 20;

/// The row as text: an object with a column a line, in key order, and a newline. What the viewer may not read is left out.
///
/// # Errors
/// What the store says.
pub(super) fn row_text(
    table: &TableHandle,
    row: &Bytes,
    hooks: &dyn MountHooks,
    mut viewer: Option<&mut Viewer>,
) -> FsResult<Bytes> {
    let found = table.0.get(&Get::new(row.clone()))?;
    let (hides, types) = (hooks.hides_any(table.id()), table.0.descriptor().column_types());
    let mut out = vec![b'{'];
    let mut first = true;
    for cell in &found.cells {
        let hidden = hides && hooks.is_hidden(table.id(), row, cell.family(), cell.qualifier());
        if hidden || !viewer.as_mut().is_none_or(|viewer| viewer.may_read(cell)) {
            continue;
        }
        out.extend_from_slice(if first { b"\n  " } else { b",\n  " });
        first = false;
        push_string(&String::from_utf8_lossy(&names::encode_column(cell.family(), cell.qualifier())), &mut out);
        out.extend_from_slice(b": ");
        push_typed(cell.value(), types.get(cell.family(), cell.qualifier()), &mut out);
    }
    out.extend_from_slice(if first { b"}\n" } else { b"\n}\n" });
    Ok(out.into())
}

/// A `.row.json` that is open for writing. A document runs in the write(2) that completes it; what is incomplete at close is an error there.
pub(super) struct RowJsonFile {
    table: TableHandle,
    row: Bytes,
    hooks: Arc<dyn MountHooks>,
    content: Bytes,
    written: Vec<u8>,
}

impl RowJsonFile {
    /// Opens the row; `content` is what reading gives.
    pub(super) fn open(table: TableHandle, row: Bytes, hooks: Arc<dyn MountHooks>, content: Bytes) -> RowJsonFile {
        RowJsonFile { table, row, hooks, content, written: Vec::new() }
    }

    fn run(&mut self, document: RowDocument) -> FsResult<()> {
        let RowChange { condition, mut mutations } =
            document.change(&self.row, &self.table.0.descriptor().column_types())?;
        if mutations.is_empty() && condition.is_none() {
            return Ok(());
        }
        for mutation in &mut mutations {
            if let Mutation::Put(put) = mutation {
                carry_on(&self.table, &self.row, &mut put.cells)?;
            }
        }
        let row = self.row.clone();
        let then = RowMutations { row: row.clone(), mutations };
        let outcome = match condition {
            None => self.table.0.mutate_row(then)?,
            Some(condition) => self.table.0.check_and_mutate(CheckAndMutate { row, condition, then })?,
        };
        if !outcome.applied {
            return Err(FsError::new(libc::ECANCELED, "$if does not hold: nothing was changed"));
        }
        self.hooks.changed(Change::Rows { table: self.table.id(), rows: vec![self.row.clone()] });
        Ok(())
    }
}

impl MagicFile for RowJsonFile {
    fn read(&mut self, offset: u64, size: usize) -> FsResult<Bytes> {
        Ok(slice(&self.content, offset, size))
    }

    fn write(&mut self, _offset: u64, data: &[u8]) -> FsResult<usize> {
        if self.written.len() + data.len() > MAX_DOCUMENT {
            return Err(FsError::new(libc::EFBIG, format!("a row document is at most {} MB", MAX_DOCUMENT >> 20)));
        }
        self.written.extend_from_slice(data);
        let text = self.written.trim_ascii();
        // Only what may be whole is parsed, so that a long document is not parsed with each piece of it.
        if text.is_empty() || !(text.ends_with(b"}") || text.ends_with(b"null")) {
            return Ok(data.len());
        }
        match serde_json::from_slice::<RowDocument>(text) {
            Ok(document) => {
                self.written.clear();
                self.run(document)?;
                Ok(data.len())
            }
            Err(error) if error.is_eof() => Ok(data.len()),
            Err(error) => {
                self.written.clear();
                Err(FsError::new(libc::EINVAL, explain(&error)))
            }
        }
    }

    fn truncate(&mut self, _size: u64) -> FsResult<()> {
        self.written.clear();
        Ok(())
    }

    fn flush(&mut self) -> FsResult<()> {
        let written = std::mem::take(&mut self.written);
        let text = written.trim_ascii();
        if text.is_empty() {
            return Ok(());
        }
        match serde_json::from_slice::<RowDocument>(text) {
            Ok(document) => self.run(document),
            Err(error) => Err(FsError::new(libc::EINVAL, explain(&error))),
        }
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn opened(&self) -> MagicOpened {
        MagicOpened { direct_io: true, no_flush: false }
    }
}
