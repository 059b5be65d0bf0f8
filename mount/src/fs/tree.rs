//! mkdir, unlink, rmdir.

use super::attributes::{DIRECTORY_MODE, Defaults, FileAttributes};
use super::inode::{Inode, InodeState, Node, Way};
use super::lookup::{lasting, show_directory, table_name};
use super::open::{SET_GID, not_a_cell};
use super::rows::{KeptRow, RowFacts};
use super::scratch::{ScratchPlace, is_scratch_name};
use super::{CellFs, refuse};
use crate::magic::{CellAddress, MagicNode, Place, TableHandle};
use crate::names;
use crate::ops::{Caller, Entry, FsError, FsResult, Lifetime};
use bytes::Bytes;
use cellfs::client::{Delete, DeleteMarker, Scan, TableAttributes, TableName, WriteTime};
use cellfs::schema::{NamespaceDescriptor, ROW_ATTRIBUTES_FAMILY, TableDescriptor};
use std::sync::Arc;

impl CellFs {
    pub(super) fn make_directory(&self, caller: &Caller, parent: &Inode, name: &[u8], mode: u32) -> FsResult<Entry> {
        self.writable()?;
        let mode = mode & !self.state.options.umask & DIRECTORY_MODE;
        let entry = match parent.node() {
            Node::Root => self.make_namespace(caller, name, mode),
            Node::Namespace(id, namespace) => {
                let (_, _, directory) = self.admin.namespace(&namespace)?;
                self.make_table(caller, id, &namespace, name, inherit(caller, mode, &directory))
            }
            Node::Table(table) => self.make_row(caller, parent, &table, name, mode),
            Node::Row(..) => refuse(libc::EPERM, "a row holds cells, which are files"),
            Node::Magic(MagicNode::ViaKeys(table, scheme)) => {
                let row = self.stored_key(&table, &scheme, name)?;
                self.make_row_by(caller, &table, Way::Key(scheme), row, mode)
            }
            Node::Magic(MagicNode::FamilyRows(table, family)) => {
                self.make_row_in_family(caller, &table, family, name, mode)
            }
            Node::Magic(MagicNode::Families(table)) => {
                let family = self.magic.add_family(&table, name)?;
                self.magic_entry(caller, family, Lifetime::None)
            }
            Node::Magic(MagicNode::Snapshots(table)) => {
                let snapshot = self.magic.snapshot_name(name)?;
                self.admin.create_snapshot(&table.0.name(), &snapshot)?;
                let view = self.admin.open_snapshot(&table.0.name(), &snapshot)?;
                self.magic_entry(caller, MagicNode::View(TableHandle(view)), Lifetime::None)
            }
            Node::Magic(_) => refuse(libc::EPERM, "no directory can be made here"),
            Node::Cell(_) | Node::Scratch(_) | Node::Via(..) => {
                refuse(libc::ENOTDIR, "a cell is a file, not a directory")
            }
        }?;
        parent.lock().absent.remove(name);
        Ok(entry)
    }

    fn make_namespace(&self, caller: &Caller, name: &[u8], mode: u32) -> FsResult<Entry> {
        let shown = name.escape_ascii().to_string();
        let name = std::str::from_utf8(name).map_err(|_| {
            FsError::new(libc::EINVAL, format!("{shown} is not a legal namespace: letters, digits and _ are"))
        })?;
        let attributes = self.new_attributes((mode, caller.uid, caller.gid));
        self.admin.create_namespace(name, NamespaceDescriptor::default(), attributes)?;
        self.state.note_root_changed();
        let (id, _, attributes) = self.admin.namespace(name)?;
        let inode = self.state.inodes.reference(Node::Namespace(id, name.into()));
        Ok(lasting(show_directory(inode.number, &attributes)))
    }

    fn make_table(&self, caller: &Caller, _id: u64, namespace: &str, name: &[u8], owner: Owner) -> FsResult<Entry> {
        let name = legal_table_name(namespace, name)?;
        let descriptor = TableDescriptor::with_family(self.state.options.family.clone().into_bytes());
        let table = self.admin.create_table(&name, descriptor, &[], self.new_attributes(owner))?;
        self.touch_namespace(namespace)?;
        self.state.note_made(table.id(), caller.pid);
        self.table_entry(TableHandle(table))
    }

    fn new_attributes(&self, (mode, uid, gid): Owner) -> TableAttributes {
        let now = self.state.now();
        TableAttributes { mode, uid, gid, changed_millis: now, modified_millis: now }
    }

    /// A table came or went.
    pub(super) fn touch_namespace(&self, namespace: &str) -> FsResult<()> {
        let (_, _, attributes) = self.admin.namespace(namespace)?;
        let now = self.state.now().max(attributes.modified_millis);
        let attributes = TableAttributes { changed_millis: now, modified_millis: now, ..attributes };
        Ok(self.admin.set_namespace_attributes(namespace, attributes)?)
    }

    pub(super) fn make_row(
        &self,
        caller: &Caller,
        parent: &Inode,
        table: &TableHandle,
        name: &[u8],
        mode: u32,
    ) -> FsResult<Entry> {
        self.table_writable(table)?;
        let Some(names::RowName::Key(row)) = names::parse_row(name) else {
            return refuse(libc::EINVAL, format!("{} is not the name of a row key (docs: Names)", name.escape_ascii()));
        };
        // What was said to be absent and has not been taken back needs no second look.
        let absent = parent.lock().absent.remove(name);
        if !absent && self.read_row_facts(table, &row)?.is_some() {
            return refuse(libc::EEXIST, "the row exists");
        }
        let directory = self.table_facts(table)?;
        let (mode, uid, gid) = inherit(caller, mode, &directory);
        let own = FileAttributes::owned(mode, uid, gid, Defaults::of_rows(&directory));
        // Attributes of an earlier row of this key must not come back.
        let stored = self.stored_row_attributes(table, &row)?.is_some();
        let now = self.state.now();
        let own_to_store = (stored || !own.is_empty()).then_some(own);
        self.state.kept.insert(
            table.id(),
            row.clone(),
            KeptRow { own: own_to_store, changed_millis: now, renamed_nanos: None },
        );
        self.state.table_changed(table.id(), now);
        self.magic.table_changed(table.id());
        let inode = self.state.inodes.reference(Node::Row(table.clone(), row.clone()));
        let facts = RowFacts { own, stored, newest_millis: now, epoch: self.state.epoch() };
        inode.lock().row = Some(Box::new(facts));
        match self.row_attributes(&inode, table, &row)? {
            Some(attributes) => Ok(self.row_entry(table, attributes)),
            None => Err(FsError::not_found()),
        }
    }

    pub(super) fn remove_file(&self, caller: &Caller, parent: &Inode, name: &[u8]) -> FsResult<()> {
        self.writable()?;
        match parent.node() {
            Node::Row(table, row) => {
                if self.remove_scratch(&ScratchPlace { table: table.id(), row: Some(row.clone()) }, name) {
                    return Ok(());
                }
                if name.starts_with(b".") {
                    return self.remove_magic(&Place::Row(&table.0, &row), name);
                }
                match self.resolve_cell(&table, &row, name)? {
                    Some(cell) => self.remove_cell(caller, &cell),
                    None => Err(FsError::not_found()),
                }
            }
            Node::Table(table) => {
                if self.remove_scratch(&ScratchPlace { table: table.id(), row: None }, name) {
                    return Ok(());
                }
                if name.starts_with(b".") {
                    return self.remove_magic(&Place::Table(&table.0), name);
                }
                refuse(libc::EISDIR, "a row is a directory: rmdir removes it")
            }
            Node::Namespace(_, namespace) if name.starts_with(b".") => {
                self.remove_magic(&Place::Namespace(&namespace), name)
            }
            Node::Root if name.starts_with(b".") => self.remove_magic(&Place::Root, name),
            Node::Root | Node::Namespace(..) => refuse(libc::EISDIR, "namespaces and tables are directories"),
            Node::Magic(MagicNode::ViaKeys(..) | MagicNode::FamilyRows(..)) if !name.starts_with(b".") => {
                refuse(libc::EISDIR, "a row is a directory: rmdir removes it")
            }
            Node::Magic(magic) => self.remove_magic(&Place::Magic(&magic), name),
            Node::Cell(_) | Node::Scratch(_) | Node::Via(..) => {
                refuse(libc::ENOTDIR, "a cell is a file, not a directory")
            }
        }
    }

    fn remove_magic(&self, place: &Place<'_>, name: &[u8]) -> FsResult<()> {
        match self.magic.lookup(place, name)? {
            Some(node) => self.magic.unlink(&node),
            None => Err(FsError::not_found()),
        }
    }

    fn remove_scratch(&self, place: &ScratchPlace, name: &[u8]) -> bool {
        if !is_scratch_name(name) {
            return false;
        }
        let Some(inode) = self.state.scratch.remove(place, name) else { return false };
        self.discard_scratch(&inode);
        true
    }

    /// No name leads to the scratch file any more; its space is free when nobody has it open.
    pub(super) fn discard_scratch(&self, inode: &Arc<Inode>) {
        let mut state = inode.lock();
        self.state.inodes.unlink(inode);
        if state.cell.handles == 0 {
            let size = state.cell.pending.take().map_or(0, |pending| pending.size());
            self.state.scratch.release(size, true);
        }
    }

    fn remove_cell(&self, _caller: &Caller, cell: &CellAddress) -> FsResult<()> {
        self.table_writable(&cell.table)?;
        let Some(inode) = self.state.inodes.find(&Node::Cell(cell.clone())) else {
            return match self.fetch(cell)? {
                Some(_) => self.state.delete_cell(cell),
                None => Err(FsError::not_found()),
            };
        };
        let mut state = inode.lock();
        let version = self.committed(&mut state, cell)?;
        let creating = state.cell.pending.as_ref().is_some_and(|pending| pending.creating.is_some());
        if version.is_none() && !creating {
            return Err(FsError::not_found());
        }
        self.save_for_handles(&mut state, cell)?;
        if version.is_some() {
            self.state.delete_cell(cell)?;
        } else {
            self.state.kept.keep(cell.table.id(), &cell.row, self.state.now());
        }
        self.detach(&inode, &mut state);
        Ok(())
    }

    /// Open handles keep the value and the attributes that the cell has now.
    pub(super) fn save_for_handles(&self, state: &mut InodeState, cell: &CellAddress) -> FsResult<()> {
        if state.cell.handles == 0 {
            return Ok(());
        }
        let defaults = self.cell_defaults(&cell.table)?;
        state.cell.orphan = self.fetch_value(state, cell)?.map(|(value, _)| value);
        let known = state.cell.known.as_mut();
        let written = known.as_ref().map_or(0, |version| version.id.timestamp);
        let mut own = known.as_ref().map(|version| version.own());
        if let Some(pending) = state.cell.pending.as_mut() {
            let made = pending.creating.map(|made| FileAttributes::owned(made.mode, made.uid, made.gid, defaults));
            own = pending.attributes.or(made).or(own);
            pending.attributes = own.map(|own| own.spelled_out(defaults));
            pending.changed_millis = pending.changed_millis.max(written);
        }
        if let (Some(version), Some(own)) = (known, own) {
            version.attributes = Some(Box::new(own.spelled_out(defaults)));
        }
        Ok(())
    }

    /// The cell is gone from its name. An inode that is open goes on without one; else the number serves when the name comes back.
    pub(super) fn detach(&self, inode: &Arc<Inode>, state: &mut InodeState) {
        if state.cell.handles > 0 {
            self.state.inodes.unlink(inode);
        } else {
            state.cell.known = None;
            state.cell.pages = None;
        }
    }

    pub(super) fn remove_directory(&self, _caller: &Caller, parent: &Inode, name: &[u8]) -> FsResult<()> {
        self.writable()?;
        match parent.node() {
            Node::Root if name.starts_with(b".") => refuse(libc::EPERM, "not a directory that can be removed"),
            Node::Root => {
                let name = std::str::from_utf8(name).map_err(|_| FsError::not_found())?;
                self.admin.drop_namespace(name)?;
                self.state.note_root_changed();
                Ok(())
            }
            Node::Namespace(_, namespace) => self.remove_table(&namespace, name),
            Node::Table(table) => self.remove_row(&table, name),
            Node::Row(table, row) => match self.resolve_cell(&table, &row, name)? {
                Some(_) => refuse(libc::ENOTDIR, "a cell is a file: unlink removes it"),
                None if is_scratch_name(name) => refuse(libc::ENOTDIR, "a scratch file is a file: unlink removes it"),
                None => Err(not_a_cell(&table, name)),
            },
            Node::Magic(MagicNode::ViaKeys(table, scheme)) => self.remove_row_via(&table, &scheme, name),
            Node::Magic(MagicNode::FamilyRows(table, family)) => self.remove_row_in_family(&table, &family, name),
            Node::Magic(MagicNode::Families(table)) => self.magic.drop_family(&table, name),
            Node::Magic(MagicNode::Snapshots(table)) => {
                let snapshot = self.magic.snapshot_name(name)?;
                Ok(self.admin.delete_snapshot(&table.0.name(), &snapshot)?)
            }
            Node::Magic(_) => refuse(libc::EPERM, "not a directory that can be removed"),
            Node::Cell(_) | Node::Scratch(_) | Node::Via(..) => {
                refuse(libc::ENOTDIR, "a cell is a file, not a directory")
            }
        }
    }

    fn remove_table(&self, namespace: &str, name: &[u8]) -> FsResult<()> {
        let Some(name) = table_name(namespace, name) else { return Err(FsError::not_found()) };
        let table = TableHandle(self.admin.table(&name)?);
        self.drop_empty_table(&table, &name)?;
        self.touch_namespace(namespace)
    }

    /// Drops a table without rows.
    pub(super) fn drop_empty_table(&self, table: &TableHandle, name: &TableName) -> FsResult<()> {
        if !table.is_live() {
            return refuse(libc::EROFS, format!("{name} is only shown"));
        }
        if self.has_rows(table)? {
            return refuse(libc::ENOTEMPTY, format!("the table {name} has rows; `.ctl` knows truncate and drop"));
        }
        self.admin.drop_table(name)?;
        if let Some(inode) = self.state.inodes.find(&Node::Table(table.clone())) {
            self.state.inodes.unlink(&inode);
        }
        self.state.forget_table(table.id());
        Ok(())
    }

    /// True if the table shows a row, or has a scratch file.
    fn has_rows(&self, table: &TableHandle) -> FsResult<bool> {
        if self.state.kept.next_after(table.id(), None).is_some() {
            return Ok(true);
        }
        if self.state.scratch.next_after(&ScratchPlace { table: table.id(), row: None }, None).is_some() {
            return Ok(true);
        }
        let scan = Scan { first_cell_only: true, limit: Some(1), ..Scan::new() };
        Ok(table.0.scan(&scan)?.next()?.is_some())
    }

    pub(super) fn remove_row(&self, table: &TableHandle, name: &[u8]) -> FsResult<()> {
        self.table_writable(table)?;
        if name.starts_with(b".") {
            return refuse(libc::EPERM, "not a directory that can be removed");
        }
        let Some(row) = self.resolve_row(table, name)? else { return Err(FsError::not_found()) };
        let Some(facts) = self.read_row_facts(table, &row)? else {
            let place = ScratchPlace { table: table.id(), row: None };
            let scratch = self.state.scratch.get(&place, name).is_some();
            return if scratch { refuse(libc::ENOTDIR, "a scratch file is a file") } else { Err(FsError::not_found()) };
        };
        if self.shows_anything(table, &row)? {
            return refuse(libc::ENOTEMPTY, "the row has cells");
        }
        for hidden in self.state.hidden.of_row(table.id(), &row) {
            self.state.bury(table, &hidden)?;
        }
        let now = self.state.now();
        if facts.stored {
            let delete = Delete::row(row.clone()).marker(attributes_marker());
            table.0.delete(delete)?;
        }
        self.state.kept.remove(table.id(), &row);
        self.state.table_changed(table.id(), now);
        self.magic.table_changed(table.id());
        if let Some(inode) = self.state.inodes.find(&Node::Row(table.clone(), row)) {
            inode.lock().row = None;
        }
        Ok(())
    }

    /// True if a listing of the row is not empty.
    pub(super) fn shows_anything(&self, table: &TableHandle, row: &Bytes) -> FsResult<bool> {
        let place = ScratchPlace { table: table.id(), row: Some(row.clone()) };
        if self.state.scratch.next_after(&place, None).is_some() {
            return Ok(true);
        }
        if !self.state.hidden.any_of(table.id()) {
            return Ok(self.row_has_cells(table, row)? || self.is_being_made_in(table, row, None));
        }
        let mut scanner = table.0.scan(&super::lookup::row_scan(row))?;
        while let Some(part) = scanner.next()? {
            let shown = |cell: &cellfs::cell::Cell| {
                !self.state.hidden.contains(table.id(), row, cell.family(), cell.qualifier())
            };
            if part.cells.iter().any(shown) {
                return Ok(true);
            }
        }
        Ok(self.is_being_made_in(table, row, None))
    }
}

/// Mode, owner and group.
type Owner = (u32, u32, u32);

/// Owner and mode of what is made in a directory: its group where that has the set-group-id bit, which goes on to directories.
fn inherit(caller: &Caller, mode: u32, directory: &TableAttributes) -> Owner {
    if directory.mode & SET_GID == 0 {
        (mode, caller.uid, caller.gid)
    } else {
        (mode | SET_GID, caller.uid, directory.gid)
    }
}

/// The table's name, or which rule it breaks.
pub(super) fn legal_table_name(namespace: &str, name: &[u8]) -> FsResult<TableName> {
    let text = std::str::from_utf8(name)
        .map_err(|_| FsError::new(libc::EINVAL, format!("{} is not a legal table name", name.escape_ascii())))?;
    Ok(TableName::new(namespace, text)?)
}

/// The tombstone of a cell.
pub(super) fn column_marker(cell: &CellAddress) -> DeleteMarker {
    DeleteMarker::Column {
        family: cell.family.clone(),
        qualifier: cell.qualifier.clone(),
        time: WriteTime::AfterNewest,
    }
}

/// The tombstone of what a row keeps of its own.
pub(super) fn attributes_marker() -> DeleteMarker {
    DeleteMarker::Column {
        family: Bytes::from_static(ROW_ATTRIBUTES_FAMILY),
        qualifier: Bytes::new(),
        time: WriteTime::AfterNewest,
    }
}
