//! rename(2): tables, cells and scratch files; rows are in `rename_row`.

use super::attributes::{CELL_MODE, FileAttributes, MILLI};
use super::cells::{Content, Pending, Version};
use super::commit::row_attributes_cell;
use super::inode::{Inode, InodeState, Node};
use super::open::not_a_cell;
use super::scratch::{HIDING, HiddenCell, ScratchPlace, is_scratch_name};
use super::tree::legal_table_name;
use super::{CellFs, refuse};
use crate::magic::{CellAddress, MagicNode, Place, TableHandle};
use crate::ops::{Caller, FsError, FsResult, Invalidation};
use bytes::Bytes;
use cellfs::cell::Cell;
use cellfs::client::{Delete, DeleteMarker, Mutation, Put, PutCell, RowMutations, WriteTime};
use parking_lot::MutexGuard;
use std::sync::Arc;

/// A directory and a name in it.
pub(super) type Spot<'a> = (&'a Arc<Inode>, &'a [u8]);

/// What a file name in a table or row leads to.
enum File {
    Cell(CellAddress),
    Scratch(ScratchPlace),
    Schema(MagicNode),
}

impl CellFs {
    /// RENAME_EXCHANGE of two tables: the way to switch to a rebuilt one.
    fn exchange_tables(&self, from: Spot<'_>, to: Spot<'_>) -> FsResult<()> {
        let (Node::Namespace(_, source), Node::Namespace(_, target)) = (from.0.node(), to.0.node()) else {
            return refuse(libc::EINVAL, "only two tables can be exchanged");
        };
        let (one, other) = (legal_table_name(&source, from.1)?, legal_table_name(&target, to.1)?);
        self.admin.exchange_tables(&one, &other)?;
        self.touch_namespace(&source)?;
        self.touch_namespace(&target)
    }

    pub(super) fn rename_name(&self, caller: &Caller, from: Spot<'_>, to: Spot<'_>, flags: u32) -> FsResult<()> {
        self.writable()?;
        if flags == libc::RENAME_EXCHANGE {
            return self.exchange_tables(from, to);
        }
        if flags & !libc::RENAME_NOREPLACE != 0 {
            return refuse(
                libc::EINVAL,
                "of the ways to rename only RENAME_NOREPLACE and RENAME_EXCHANGE are known here",
            );
        }
        let keep = flags & libc::RENAME_NOREPLACE != 0;
        if from.0.number == to.0.number && from.1 == to.1 {
            return Ok(());
        }
        let result = match (from.0.node(), to.0.node()) {
            (Node::Namespace(_, source), Node::Namespace(_, target)) => {
                self.rename_table((&source, from.1), (&target, to.1), keep)
            }
            (Node::Table(source), Node::Table(target)) if !self.is_file(&source, from.1) => {
                if source != target {
                    return refuse(libc::EXDEV, "a row cannot move to another table; mv copies it");
                }
                self.rename_row(&source, from.1, to.1, keep)
            }
            (Node::Table(_) | Node::Row(..), Node::Table(_) | Node::Row(..)) => {
                self.rename_file(caller, from, to, keep)
            }
            (Node::Magic(MagicNode::Snapshots(source)), Node::Magic(MagicNode::Snapshots(target))) => {
                if source != target {
                    return refuse(libc::EXDEV, "a snapshot belongs to its table");
                }
                let (old, new) = (self.magic.snapshot_name(from.1)?, self.magic.snapshot_name(to.1)?);
                Ok(self.admin.rename_snapshot(&source.0.name(), &old, &new)?)
            }
            (Node::Magic(MagicNode::ViaKeys(source, by)), Node::Magic(MagicNode::ViaKeys(target, to_by))) => {
                if source != target {
                    return refuse(libc::EXDEV, "a row cannot move to another table; mv copies it");
                }
                self.rename_row_via(&source, (&by, from.1), (&to_by, to.1), keep)
            }
            (Node::Magic(MagicNode::FamilyRows(..)), Node::Magic(MagicNode::FamilyRows(..))) => {
                refuse(libc::EXDEV, "here a row is its cells of one family: mv copies them; a row moves in its table")
            }
            (Node::Magic(MagicNode::Families(_)), Node::Magic(MagicNode::Families(_))) => {
                refuse(libc::EINVAL, "a family cannot be renamed")
            }
            (Node::Root, Node::Root) => refuse(libc::EINVAL, "a namespace cannot be renamed"),
            _ => {
                refuse(libc::EINVAL, "tables move between namespaces, rows within their table, cells between its rows")
            }
        };
        if result.is_ok() {
            to.0.lock().absent.remove(to.1);
        }
        result
    }

    fn is_file(&self, table: &TableHandle, name: &[u8]) -> bool {
        let place = ScratchPlace { table: table.id(), row: None };
        name.starts_with(b".") || is_scratch_name(name) && self.state.scratch.get(&place, name).is_some()
    }

    fn rename_table(&self, from: (&str, &[u8]), to: (&str, &[u8]), keep: bool) -> FsResult<()> {
        let source = legal_table_name(from.0, from.1)?;
        let target = legal_table_name(to.0, to.1)?;
        match self.admin.table(&target) {
            Ok(_) if keep => return refuse(libc::EEXIST, format!("the table {target} exists")),
            Ok(table) => self.drop_empty_table(&TableHandle(table), &target)?,
            // Of a namespace that is not there, and of HBase's own, the store says what is wrong.
            Err(cellfs::Error::NoSuchTable(_) | cellfs::Error::NoSuchNamespace(_)) => {}
            Err(error) => return Err(error.into()),
        }
        self.admin.rename_table(&source, &target)?;
        self.touch_namespace(from.0)?;
        if from.0 != to.0 {
            self.touch_namespace(to.0)?;
        }
        Ok(())
    }

    /// What a name leads to, or could lead to.
    fn file_at(&self, directory: &Inode, name: &[u8], target: bool) -> FsResult<File> {
        let (table, row) = match directory.node() {
            Node::Table(table) => (table, None),
            Node::Row(table, row) => (table, Some(row)),
            _ => return refuse(libc::EINVAL, "not a place for files"),
        };
        let place = ScratchPlace { table: table.id(), row: row.clone() };
        let there = self.state.scratch.get(&place, name).is_some();
        if there {
            return Ok(File::Scratch(place));
        }
        if let (b".schema", None) = (name, &row)
            && let Some(node) = self.magic.lookup(&Place::Table(&table.0), name)?
        {
            return Ok(File::Schema(node));
        }
        if let Some(row) = &row
            && let Some(cell) = self.resolve_cell(&table, row, name)?
        {
            return Ok(File::Cell(cell));
        }
        if target && is_scratch_name(name) {
            return Ok(File::Scratch(place));
        }
        match row {
            _ if !target => Err(FsError::not_found()),
            Some(_) => Err(not_a_cell(&table, name)),
            None => refuse(libc::EINVAL, "a file lives in a row, not in a table"),
        }
    }

    fn rename_file(&self, caller: &Caller, from: Spot<'_>, to: Spot<'_>, keep: bool) -> FsResult<()> {
        let (source, target) = (self.file_at(from.0, from.1, false)?, self.file_at(to.0, to.1, true)?);
        let table = |file: &File| match file {
            File::Cell(cell) => cell.table.id(),
            File::Scratch(place) => place.table,
            File::Schema(node) => node.table().map_or(0, TableHandle::id),
        };
        if table(&source) != table(&target) {
            return refuse(libc::EXDEV, "a cell cannot move to another table; mv copies it");
        }
        match (source, target) {
            (File::Cell(source), File::Cell(target)) => self.rename_cell(&source, &target, keep),
            (File::Cell(source), File::Scratch(place)) => self.hide_cell(&source, place, to.1, keep),
            (File::Scratch(place), File::Cell(target)) => self.scratch_to_cell(&place, from.1, &target, keep),
            (File::Scratch(place), File::Scratch(target)) => {
                self.rename_scratch((&place, from.1), (target, to.1), keep)
            }
            (File::Scratch(place), File::Schema(node)) => {
                self.scratch_to_schema(caller, (&place, from.1), &node, to, keep)
            }
            (File::Schema(_), _) | (File::Cell(_), File::Schema(_)) => {
                refuse(libc::EINVAL, ".schema can be replaced by a file with the new text, not moved")
            }
        }
    }

    /// Refuses where the target is there and must stay; else lets its open handles keep what it has. True if it is there.
    fn make_way(&self, state: &mut InodeState, target: &CellAddress, keep: bool) -> FsResult<()> {
        let creating = state.cell.pending.as_ref().is_some_and(|pending| pending.creating.is_some());
        if keep && (creating || self.committed(state, target)?.is_some()) {
            return refuse(libc::EEXIST, "the cell exists");
        }
        self.save_for_handles(state, target)
    }

    fn rename_cell(&self, source: &CellAddress, target: &CellAddress, keep: bool) -> FsResult<()> {
        self.table_writable(&source.table)?;
        if source == target {
            return Ok(());
        }
        let source_inode = self.state.inodes.reference(Node::Cell(source.clone()));
        let target_inode = self.state.inodes.reference(Node::Cell(target.clone()));
        let result = (|| {
            let (mut state, mut replaced) = lock_both(&source_inode, &target_inode);
            self.make_way(&mut replaced, target, keep)?;
            let found = self.fetch(source)?;
            let making = state.cell.pending.as_ref().is_some_and(|pending| pending.creating.is_some());
            match &found {
                Some(found) => self.move_cell(&mut state, source, target, found)?,
                None if making => self.state.kept.keep(source.table.id(), &source.row, self.state.now()),
                None => return Err(FsError::not_found()),
            }
            self.state.inodes.rename(&source_inode, Node::Cell(target.clone()));
            Ok(())
        })();
        self.state.inodes.forget(source_inode.number, 1);
        self.state.inodes.forget(target_inode.number, 1);
        result
    }

    /// One record: the value under its new name, a tombstone under the old one.
    fn move_cell(
        &self,
        state: &mut InodeState,
        source: &CellAddress,
        target: &CellAddress,
        found: &Cell,
    ) -> FsResult<()> {
        let kept = self.state.kept.get(target.table.id(), &target.row);
        let mut put = Put::new(target.row.clone());
        put.durability = self.state.durability();
        put.cells.push(moved_cell(found, target.family.clone(), target.qualifier.clone()));
        put.cells.extend(row_attributes_cell(kept.as_ref().and_then(|kept| kept.own)));
        // What was found is the newest that shows: a marker at its time is enough, and a version that came meanwhile past the mount stays.
        let mut delete = Delete::row(source.row.clone()).marker(DeleteMarker::Column {
            family: source.family.clone(),
            qualifier: source.qualifier.clone(),
            time: WriteTime::At(found.timestamp().max(self.state.now())),
        });
        delete.durability = self.state.durability();
        let (put, delete) = (Mutation::Put(put), Mutation::Delete(delete));
        let outcome = if source.row == target.row {
            source.table.0.mutate_row(RowMutations { row: source.row.clone(), mutations: vec![put, delete] })?
        } else {
            let of = |row: &Bytes, mutation| RowMutations { row: row.clone(), mutations: vec![mutation] };
            source.table.0.mutate_rows(vec![of(&target.row, put), of(&source.row, delete)])?
        };
        let Some(written) = outcome.written.first() else {
            return refuse(libc::EIO, "the store renamed a cell without saying its timestamp");
        };
        let version = Version { size: found.value_len() as u64, ..self.version_of(target, written) };
        let old = super::commit::id_of(found);
        if let Some(pending) = state.cell.pending.as_mut() {
            for writer in pending.writers.iter_mut().filter(|writer| writer.version == Some(old.timestamp)) {
                writer.version = Some(version.id.timestamp);
            }
            if pending.base == Some(old) {
                pending.base = Some(version.id);
            }
        }
        if state.cell.pages == Some(old) {
            state.cell.pages = Some(version.id);
        }
        let millis = version.id.timestamp;
        state.cell.known = Some(version);
        self.row_has_data(target, kept.as_ref());
        self.state.hidden.show(target.table.id(), &target.row, &target.family, &target.qualifier);
        self.state.kept.keep(source.table.id(), &source.row, millis);
        self.state.row_changed(&source.table, &source.row, millis);
        self.state.row_changed(&target.table, &target.row, millis);
        Ok(())
    }

    /// A cell renamed to a scratch name: the scratch file has its bytes; the cell is hidden, and its tombstone follows if it is not written again.
    fn hide_cell(&self, cell: &CellAddress, place: ScratchPlace, name: &[u8], keep: bool) -> FsResult<()> {
        self.table_writable(&cell.table)?;
        let there = self.state.scratch.get(&place, name);
        if keep && there.is_some() {
            return refuse(libc::EEXIST, "the scratch file exists");
        }
        let defaults = self.cell_defaults(&cell.table)?;
        let inode = self.state.inodes.reference(Node::Cell(cell.clone()));
        let result = (|| {
            let mut state = inode.lock();
            let found = self.fetch(cell)?;
            let making = state.cell.pending.as_ref().and_then(|pending| pending.creating);
            if found.is_none() && making.is_none() {
                return Err(FsError::not_found());
            }
            let value = found.as_ref().map(Cell::value_bytes).unwrap_or_default();
            let size = state.cell.pending.as_ref().map_or(0, |pending| pending.size()).max(value.len() as u64);
            if !self.state.scratch.reserve(size, true) {
                return refuse(libc::ENOSPC, "scratch files take at most 256 MB together");
            }
            let own = match (&found, making) {
                (Some(found), _) => kept_attributes(found),
                (None, Some(made)) => FileAttributes::owned(made.mode, made.uid, made.gid, defaults),
                (None, None) => FileAttributes::default(),
            };
            let pending = state.cell.pending.get_or_insert_with(|| Box::new(Pending::default()));
            pending.content.get_or_insert_with(|| Content::new(value));
            pending.creating = None;
            pending.base = None;
            pending.attributes = Some(own.spelled_out(defaults));
            state.cell.known = None;
            if found.is_some() {
                let deadline = self.state.options.clock.monotonic() + HIDING;
                let CellAddress { table, row, family, qualifier } = cell.clone();
                self.state.hidden.hide(HiddenCell { table: table.id(), row, family, qualifier, deadline });
                self.watch_hidden();
            }
            self.state.inodes.rename(&inode, self.state.inodes.new_scratch());
            Ok(())
        })();
        if result.is_ok() {
            if let Some(replaced) = self.state.scratch.insert(place, Bytes::copy_from_slice(name), Arc::clone(&inode)) {
                self.discard_scratch(&replaced);
            }
            let now = self.state.now();
            self.state.kept.keep(cell.table.id(), &cell.row, now);
            self.state.row_changed(&cell.table, &cell.row, now);
        }
        self.state.inodes.forget(inode.number, 1);
        result
    }

    /// A scratch file renamed onto a cell's name: exactly one version.
    fn scratch_to_cell(&self, place: &ScratchPlace, name: &[u8], cell: &CellAddress, keep: bool) -> FsResult<()> {
        self.table_writable(&cell.table)?;
        let Some(inode) = self.state.scratch.get(place, name) else { return Err(FsError::not_found()) };
        let defaults = self.cell_defaults(&cell.table)?;
        let target = self.state.inodes.reference(Node::Cell(cell.clone()));
        let result = (|| {
            let (mut state, mut replaced) = lock_both(&inode, &target);
            self.make_way(&mut replaced, cell, keep)?;
            let pending = state.cell.pending.get_or_insert_default();
            let value = pending.content.get_or_insert_default().share();
            let size = value.len() as u64;
            let set = pending.attributes.unwrap_or_default();
            let own = FileAttributes {
                mtime_nanos: set.mtime_nanos,
                atime_nanos: set.atime_nanos,
                ..FileAttributes::owned(
                    set.mode.unwrap_or(defaults.mode) & CELL_MODE,
                    set.uid.unwrap_or(defaults.uid),
                    set.gid.unwrap_or(defaults.gid),
                    defaults,
                )
            };
            let version = self.put_version(cell, value, own, WriteTime::AfterNewest)?;
            pending.attributes = None;
            pending.base = Some(version.id);
            for writer in &mut pending.writers {
                writer.dirty = false;
                writer.version = Some(version.id.timestamp);
            }
            if pending.writers.is_empty() {
                state.cell.pending = None;
            }
            let millis = version.id.timestamp;
            state.cell.known = Some(version);
            state.cell.pages = None;
            self.state.inodes.rename(&inode, Node::Cell(cell.clone()));
            self.state.scratch.remove(place, name);
            self.state.scratch.release(size, true);
            self.state.row_changed(&cell.table, &cell.row, millis);
            Ok(())
        })();
        self.state.inodes.forget(target.number, 1);
        result
    }

    fn rename_scratch(&self, from: (&ScratchPlace, &[u8]), to: (ScratchPlace, &[u8]), keep: bool) -> FsResult<()> {
        if keep && self.state.scratch.get(&to.0, to.1).is_some() {
            return refuse(libc::EEXIST, "the scratch file exists");
        }
        let Some(inode) = self.state.scratch.remove(from.0, from.1) else { return Err(FsError::not_found()) };
        if let Some(replaced) = self.state.scratch.insert(to.0, Bytes::copy_from_slice(to.1), inode) {
            self.discard_scratch(&replaced);
        }
        Ok(())
    }

    /// `sed -i`, rsync and editors replace `.schema` through a scratch file.
    fn scratch_to_schema(
        &self,
        caller: &Caller,
        from: (&ScratchPlace, &[u8]),
        node: &MagicNode,
        to: Spot<'_>,
        keep: bool,
    ) -> FsResult<()> {
        if keep {
            return refuse(libc::EEXIST, ".schema exists");
        }
        let Some(inode) = self.state.scratch.get(from.0, from.1) else { return Err(FsError::not_found()) };
        let mut state = inode.lock();
        let pending = state.cell.pending.get_or_insert_default();
        let text = pending.content.get_or_insert_default().share();
        self.magic.replace(node, caller, &text)?;
        if let Some(mtime) = pending.attributes.and_then(|set| set.mtime_nanos) {
            self.magic.set_time(node, mtime);
        }
        self.state.scratch.remove(from.0, from.1);
        self.state.scratch.release(text.len() as u64, true);
        state.cell.pending = None;
        // The kernel has moved the scratch file's inode to the name; the next lookup finds the right one.
        self.state.inodes.unlink(&inode);
        self.state.invalidate(Invalidation::Name { parent: to.0.number, name: Bytes::copy_from_slice(to.1) });
        Ok(())
    }
}

/// A cell under another name: the same value, attributes and shown times, as the newest version there.
pub(super) fn moved_cell(found: &Cell, family: Bytes, qualifier: Bytes) -> PutCell {
    let tags = kept_attributes(found).tags(Some(found));
    PutCell { family, qualifier, time: WriteTime::AfterNewest, value: found.value_bytes(), tags }
}

/// What a version keeps of its own when its bytes move: its time as well.
fn kept_attributes(found: &Cell) -> FileAttributes {
    let own = FileAttributes::of_cell(found);
    let written = found.timestamp().saturating_mul(MILLI);
    FileAttributes { mtime_nanos: Some(own.mtime_nanos.unwrap_or(written)), ctime_nanos: None, ..own }
}

/// Locks the states of two different inodes in the order of their numbers.
fn lock_both<'a>(first: &'a Inode, second: &'a Inode) -> (MutexGuard<'a, InodeState>, MutexGuard<'a, InodeState>) {
    if first.number < second.number {
        let state = first.lock();
        (state, second.lock())
    } else {
        let state = second.lock();
        (first.lock(), state)
    }
}
