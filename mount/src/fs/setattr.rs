//! chmod, chown, utimens and truncate.

use super::attributes::{CELL_MODE, DIRECTORY_MODE, Defaults, FileAttributes, MILLI};
use super::cells::Version;
use super::commit::row_attributes_cell;
use super::handle::Handle;
use super::inode::{Inode, InodeState, Node};
use super::rows::KeptRow;
use super::{CellFs, refuse};
use crate::magic::{CellAddress, TableHandle};
use crate::ops::{AttributeChanges, Attributes, Caller, FsError, FsResult, Lifetime, TimeChange};
use bytes::Bytes;
use cellfs::client::{Put, PutCell, TableAttributes, WriteTime};
use std::sync::Arc;

impl CellFs {
    pub(super) fn set_attributes(
        &self,
        caller: &Caller,
        inode: &Arc<Inode>,
        handle: Option<u64>,
        changes: &AttributeChanges,
    ) -> FsResult<(Attributes, Lifetime)> {
        self.writable()?;
        if let Some(size) = changes.size {
            self.truncate(caller, inode, handle, size)?;
        }
        let rest = AttributeChanges { size: None, ..*changes };
        if rest != AttributeChanges::default() {
            match inode.node() {
                Node::Root => return refuse(libc::EPERM, "owner and mode of the root are the mount's options"),
                Node::Namespace(_, name) => {
                    let (_, _, attributes) = self.admin.namespace(&name)?;
                    self.admin.set_namespace_attributes(&name, self.change_directory(attributes, &rest))?;
                }
                Node::Table(table) => self.set_table(&table, &rest)?,
                Node::Row(table, row) => self.set_row(inode, &table, &row, &rest)?,
                Node::Cell(cell) if !inode.is_unlinked() => {
                    self.table_writable(&cell.table)?;
                    self.set_cell(&mut inode.lock(), &cell, &rest)?;
                }
                Node::Via(..) => return refuse(libc::ESTALE, "not a directory of its own"),
                Node::Cell(_) | Node::Scratch(_) => self.set_orphan(&mut inode.lock(), &rest),
                // Dot files take any attributes and keep none, but for a schema's time: `cp -p` and `tar x` must go on.
                Node::Magic(node) => match rest.mtime {
                    Some(TimeChange::At(nanos)) => self.magic.set_time(&node, nanos),
                    Some(TimeChange::Now) => self.magic.set_time(&node, self.state.now().saturating_mul(MILLI)),
                    None => {}
                },
            }
        }
        self.attributes(caller, inode)
    }

    /// Attributes of a namespace or table after a change. Their times are milliseconds.
    fn change_directory(&self, attributes: TableAttributes, changes: &AttributeChanges) -> TableAttributes {
        let now = self.state.now();
        let modified = changes.mtime.map(|time| match time {
            TimeChange::Now => now,
            TimeChange::At(nanos) => nanos.div_euclid(MILLI),
        });
        TableAttributes {
            mode: changes.mode.map_or(attributes.mode, |mode| mode & DIRECTORY_MODE),
            uid: changes.uid.unwrap_or(attributes.uid),
            gid: changes.gid.unwrap_or(attributes.gid),
            changed_millis: now.max(attributes.changed_millis),
            modified_millis: modified.unwrap_or(attributes.modified_millis),
        }
    }

    fn set_table(&self, table: &TableHandle, changes: &AttributeChanges) -> FsResult<()> {
        let attributes = self.change_directory(self.table_facts(table)?, changes);
        self.admin.set_table_attributes(&table.0.name(), attributes)?;
        if let Some(facts) = self.state.tables.write().get_mut(&table.id()) {
            facts.attributes = attributes;
            facts.unsaved = false;
        }
        // Rows and cells without attributes of their own show the table's.
        self.state.forget_shown(table.id());
        Ok(())
    }

    fn set_row(&self, inode: &Inode, table: &TableHandle, row: &Bytes, changes: &AttributeChanges) -> FsResult<()> {
        self.table_writable(table)?;
        let defaults = Defaults::of_rows(&self.table_facts(table)?);
        if self.row_attributes(inode, table, row)?.is_none() {
            return Err(FsError::not_found());
        }
        let mut state = inode.lock();
        let Some(facts) = &mut state.row else { return Err(FsError::not_found()) };
        let now = self.state.now().saturating_mul(MILLI);
        let mut own = facts.own.changed(changes, defaults, DIRECTORY_MODE, now);
        if changes.mtime.is_some() {
            own.basis_millis = Some(facts.newest_millis);
        }
        let kept = KeptRow { own: Some(own), changed_millis: facts.newest_millis, renamed_nanos: None };
        if self.row_has_cells(table, row)? {
            let mut put = Put::new(row.clone()).durability(self.state.durability());
            put.cells.extend(row_attributes_cell(kept.own));
            table.0.put(put)?;
            facts.stored = true;
        } else {
            self.state.kept.insert(table.id(), row.clone(), kept);
        }
        facts.own = own;
        Ok(())
    }

    /// Changes what the newest version of a cell keeps of its own: the same version, rewritten in its place.
    fn set_cell(&self, state: &mut InodeState, cell: &CellAddress, changes: &AttributeChanges) -> FsResult<()> {
        let defaults = self.cell_defaults(&cell.table)?;
        let now = self.state.now().saturating_mul(MILLI);
        let committed = self.committed(state, cell)?.map(|version| version.own());
        if let Some(pending) =
            state.cell.pending.as_mut().filter(|pending| pending.creating.is_some() || pending.is_dirty())
        {
            let base = pending.attributes.or_else(|| {
                let made = pending.creating.map(|made| FileAttributes::owned(made.mode, made.uid, made.gid, defaults));
                made.or(committed.map(FileAttributes::without_times))
            });
            pending.attributes = Some(base.unwrap_or_default().changed(changes, defaults, CELL_MODE, now));
            // Times belong to what is being written; owner and mode protect what others read now.
            let guarded = AttributeChanges { atime: None, mtime: None, ..*changes };
            if pending.creating.is_some() || guarded == AttributeChanges::default() {
                return Ok(());
            }
            return self.rewrite(state, cell, &guarded, defaults, now);
        }
        self.rewrite(state, cell, changes, defaults, now)
    }

    fn rewrite(
        &self,
        state: &mut InodeState,
        cell: &CellAddress,
        changes: &AttributeChanges,
        defaults: Defaults,
        now_nanos: i64,
    ) -> FsResult<()> {
        let Some(found) = self.fetch(cell)? else { return Err(FsError::not_found()) };
        let own = FileAttributes::of_cell(&found).changed(changes, defaults, CELL_MODE, now_nanos);
        let mut put = Put::new(cell.row.clone()).durability(self.state.durability());
        put.cells.push(PutCell {
            family: cell.family.clone(),
            qualifier: cell.qualifier.clone(),
            time: WriteTime::ReplaceIfNewest(found.timestamp()),
            value: found.value_bytes(),
            tags: own.tags(Some(&found)),
        });
        let outcome = cell.table.0.put(put)?;
        let Some(written) = outcome.written.first() else { return Ok(()) };
        let version = Version { size: found.value_len() as u64, ..self.version_of(cell, written) };
        // The bytes are the same, so pages and working copies stay right.
        let old = super::commit::id_of(&found);
        if state.cell.pages == Some(old) {
            state.cell.pages = Some(version.id);
        }
        if let Some(pending) = state.cell.pending.as_mut().filter(|pending| pending.base == Some(old)) {
            pending.base = Some(version.id);
        }
        state.cell.known = Some(version);
        Ok(())
    }

    fn set_orphan(&self, state: &mut InodeState, changes: &AttributeChanges) {
        let defaults = Defaults { mode: 0o600, uid: 0, gid: 0 };
        let now = self.state.now().saturating_mul(MILLI);
        let known = state.cell.known.as_ref().map(Version::own);
        if let Some(pending) = state.cell.pending.as_mut() {
            let own = pending.attributes.or(known).unwrap_or_default();
            let own = own.changed(changes, defaults, CELL_MODE, now);
            // Said in full: what equals these defaults may differ from those of the cell that the file is renamed onto.
            pending.attributes = Some(FileAttributes {
                mode: Some(own.mode.unwrap_or(defaults.mode)),
                uid: Some(own.uid.unwrap_or(defaults.uid)),
                gid: Some(own.gid.unwrap_or(defaults.gid)),
                ..own
            });
        }
    }

    fn truncate(&self, caller: &Caller, inode: &Arc<Inode>, handle: Option<u64>, size: u64) -> FsResult<()> {
        match handle.map(|handle| self.handles.find(handle)).transpose()?.as_deref() {
            Some(Handle::File(file)) => return self.truncate_handle(caller, file, size),
            Some(Handle::Magic(magic)) => return magic.file.lock().truncate(size),
            Some(Handle::Directory(_)) => return refuse(libc::EISDIR, "a directory has no size"),
            None => {}
        }
        match inode.node() {
            Node::Magic(magic) => {
                let mut file = self.magic.open(&magic, caller, libc::O_WRONLY)?;
                file.truncate(size)?;
                file.flush()
            }
            Node::Cell(_) | Node::Scratch(_) => self.truncate_path(caller, inode, size),
            _ => refuse(libc::EISDIR, "a directory has no size"),
        }
    }

    /// truncate(2): an open, a change of size and a close in one.
    fn truncate_path(&self, caller: &Caller, inode: &Arc<Inode>, size: u64) -> FsResult<()> {
        if size > self.state.cell_max() {
            return refuse(libc::EFBIG, format!("a cell holds at most {} bytes", self.state.cell_max()));
        }
        let opened = self.open_file(caller, inode, libc::O_WRONLY)?;
        let handle = self.handles.find(opened.handle)?;
        let result = match &*handle {
            Handle::File(file) => self.truncate_handle(caller, file, size).and_then(|()| self.flush_file(caller, file)),
            _ => Err(FsError::new(libc::EISDIR, "a directory has no size")),
        };
        if let Some(Handle::File(file)) = self.handles.remove(opened.handle).as_deref() {
            self.release_file(file);
        }
        result
    }
}
