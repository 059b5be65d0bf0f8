//! open(2) and creat(2).

use super::attributes::{CELL_MODE, Defaults, FileAttributes};
use super::cells::{Content, Creation, Pending, Writer};
use super::handle::{FileHandle, Handle, MagicHandle, Snapshot};
use super::inode::{Inode, InodeState, Node};
use super::lookup::{cell_entry, scratch_entry};
use super::scratch::{ScratchPlace, is_scratch_name};
use super::{CellFs, refuse};
use crate::magic::{CellAddress, MagicFile, MagicNode, Place, TableHandle};
use crate::names;
use crate::ops::{Caller, Entry, FsError, FsResult, Invalidation, Lifetime, Opened};
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;

/// The set-group-id bit: what is made in such a directory takes its group.
pub(super) const SET_GID: u32 = 0o2000;

impl CellFs {
    pub(super) fn open_file(&self, caller: &Caller, inode: &Arc<Inode>, flags: i32) -> FsResult<Opened> {
        match inode.node() {
            Node::Magic(node) => {
                if is_writing(flags) {
                    self.writable()?;
                }
                let file = self.magic.open(&node, caller, flags)?;
                Ok(self.open_magic(node, file))
            }
            Node::Cell(_) | Node::Scratch(_) => {
                let mut state = inode.lock();
                if inode.is_unlinked() && state.cell.handles == 0 || inode.is_superseded() {
                    // Removed or replaced between the kernel's lookup and this call, and nobody kept its value. The kernel
                    // looks the name up again, and opens what is there now (do_filp_open in fs/namei.c).
                    return refuse(libc::ESTALE, "the file was replaced or removed while it was being opened");
                }
                // Asked for again under the lock: a rename may have moved it.
                let cell = match inode.node() {
                    Node::Cell(cell) => Some(cell),
                    _ => None,
                };
                if let (Some(cell), true) = (&cell, is_writing(flags)) {
                    self.table_writable(&cell.table)?;
                    self.leave_to_readers(caller, inode, &mut state, cell, flags)?;
                }
                self.open_content(caller, inode, &mut state, cell.as_ref(), flags)
            }
            _ => refuse(libc::EISDIR, "a directory cannot be opened as a file"),
        }
    }

    fn open_magic(&self, node: MagicNode, file: Box<dyn MagicFile>) -> Opened {
        let hints = file.opened();
        let handle = self.handles.reserve();
        self.handles.insert(handle, Handle::Magic(MagicHandle { node, file: Mutex::new(file) }));
        Opened { handle, keep_cache: false, direct_io: hints.direct_io, no_flush: hints.no_flush, stream: false }
    }

    /// Opens a cell or scratch file that is there.
    fn open_content(
        &self,
        caller: &Caller,
        inode: &Arc<Inode>,
        state: &mut InodeState,
        cell: Option<&CellAddress>,
        flags: i32,
    ) -> FsResult<Opened> {
        let handle = self.handles.reserve();
        let writable = is_writing(flags);
        let mut snapshot = Snapshot::default();
        let (mut cached, mut keep_cache) = (false, true);
        if writable {
            let truncates = flags & libc::O_TRUNC != 0;
            let pending = state.cell.pending.get_or_insert_default();
            pending.writers.push(Writer::new(handle, caller.pid, truncates));
            if truncates {
                pending.changed_millis = self.state.now();
            }
        } else if let (Some(cell), false) = (cell, inode.is_unlinked()) {
            // Beside a writer the kernel's size of the file is the writer's, or on its way there.
            let written = state.cell.pending.is_some() || self.is_contended(inode);
            snapshot.version = self.committed(state, cell)?.map(|version| version.id);
            let same = snapshot.version.is_some() && state.cell.pages == snapshot.version;
            cached = !written && snapshot.version.is_some() && (same || state.cell.cached_readers == 0);
            keep_cache = cached && same;
            if cached {
                state.cell.pages = snapshot.version;
                state.cell.opened_cached(caller.pid);
            }
        }
        state.cell.handles += 1;
        let file = FileHandle {
            number: handle,
            inode: Arc::clone(inode),
            writable,
            append: flags & libc::O_APPEND != 0,
            cached,
            snapshot: Mutex::new(snapshot),
        };
        self.handles.insert(handle, Handle::File(file));
        Ok(Opened { handle, keep_cache, direct_io: !cached, no_flush: !writable, stream: false })
    }

    fn is_contended(&self, inode: &Inode) -> bool {
        self.state.contended.contains(|| inode.home(), || self.state.options.clock.monotonic())
    }

    /// Before somebody writes into a cell, or cuts it, that others are reading: they keep the inode, with the value that it has.
    ///
    /// The kernel has one size and one page cache for all who have an inode open, so it would cut the file under those who are in its middle
    /// (`fuse_open` with O_TRUNC, `fuse_direct_write_iter`). The writer gets ESTALE, upon which the kernel looks the name up again (`do_filp_open`
    /// in fs/namei.c) and finds another inode. Until then readers must not come between: see [`Contended`]. What is appended leaves a reader's part alone.
    ///
    /// [`Contended`]: super::contended::Contended
    pub(super) fn leave_to_readers(
        &self,
        caller: &Caller,
        inode: &Arc<Inode>,
        state: &mut InodeState,
        cell: &CellAddress,
        flags: i32,
    ) -> FsResult<()> {
        let appends = flags & (libc::O_APPEND | libc::O_TRUNC) == libc::O_APPEND;
        // Cutting without writing is judged by the kernel after this (ETXTBSY in `handle_truncate`), by the inode that is being executed.
        let only_cuts = flags & libc::O_ACCMODE == libc::O_RDONLY;
        if appends
            || only_cuts
            || inode.is_unlinked()
            || state.cell.pending.is_some()
            || !state.cell.is_read_by_others(caller.pid)
        {
            return Ok(());
        }
        self.save_for_handles(state, cell)?;
        self.state.contended.insert(inode.home(), self.state.options.clock.monotonic());
        self.state.inodes.supersede(inode);
        let parent = self.state.inodes.number(&Node::Row(cell.table.clone(), cell.row.clone()));
        let name = Bytes::from(names::cell_name(&cell.family, &cell.qualifier));
        self.state.invalidate(Invalidation::Name { parent, name });
        Err(FsError::retried(libc::ESTALE))
    }

    pub(super) fn create_file(
        &self,
        caller: &Caller,
        parent: &Inode,
        name: &[u8],
        mode: u32,
        flags: i32,
    ) -> FsResult<(Entry, Opened)> {
        self.writable()?;
        let mode = mode & !self.state.options.umask & CELL_MODE;
        match parent.node() {
            Node::Row(table, row) => {
                if name.starts_with(b".") && !is_scratch_name(name) {
                    return self.create_magic(caller, &Place::Row(&table.0, &row), name, flags);
                }
                match self.resolve_cell(&table, &row, name)? {
                    Some(cell) => self.create_cell(caller, parent, cell, name, mode, flags),
                    None if is_scratch_name(name) => {
                        let place = ScratchPlace { table: table.id(), row: Some(row) };
                        self.create_scratch(caller, place, name, mode, flags)
                    }
                    None => Err(not_a_cell(&table, name)),
                }
            }
            Node::Table(table) if is_scratch_name(name) => {
                let place = ScratchPlace { table: table.id(), row: None };
                self.create_scratch(caller, place, name, mode, flags)
            }
            Node::Table(table) if name.starts_with(b".") => {
                self.create_magic(caller, &Place::Table(&table.0), name, flags)
            }
            Node::Namespace(_, namespace) if name.starts_with(b".") => {
                self.create_magic(caller, &Place::Namespace(&namespace), name, flags)
            }
            Node::Magic(MagicNode::ViaKeys(..) | MagicNode::FamilyRows(..)) => {
                refuse(libc::EPERM, "rows are directories: mkdir makes one; cells are files in a row")
            }
            Node::Magic(magic) => self.create_magic(caller, &Place::Magic(&magic), name, flags),
            Node::Table(_) => refuse(
                libc::EPERM,
                "a table holds rows, which are directories: mkdir makes one; cells are files in a row",
            ),
            Node::Root | Node::Namespace(..) => refuse(libc::EPERM, "files are cells: they live in a row of a table"),
            Node::Cell(_) | Node::Scratch(_) | Node::Via(..) => {
                refuse(libc::ENOTDIR, "a cell is a file, not a directory")
            }
        }
    }

    fn create_magic(&self, caller: &Caller, place: &Place<'_>, name: &[u8], flags: i32) -> FsResult<(Entry, Opened)> {
        let (node, file) = self.magic.create(place, name, caller, flags)?;
        if let Place::Table(table) = place {
            self.state.note_schema_made(table.id());
        }
        let entry = self.magic_entry(caller, node.clone(), Lifetime::None)?;
        let opened = self.open_magic(node, file);
        Ok((entry, opened))
    }

    fn create_cell(
        &self,
        caller: &Caller,
        parent: &Inode,
        cell: CellAddress,
        name: &[u8],
        mode: u32,
        flags: i32,
    ) -> FsResult<(Entry, Opened)> {
        self.table_writable(&cell.table)?;
        let gid = self.new_group(caller, parent, &cell.table, &cell.row)?;
        // What was said to be absent and has not been taken back needs no second look.
        let absent = parent.lock().absent.remove(name);
        let inode = self.state.inodes.reference(Node::Cell(cell.clone()));
        let mut state = inode.lock();
        let made = (|| {
            let being_made = state.cell.pending.as_ref().is_some_and(|pending| pending.creating.is_some());
            let there = being_made || !absent && self.committed(&mut state, &cell)?.is_some();
            if there && flags & libc::O_EXCL != 0 {
                return refuse(libc::EEXIST, "the cell exists");
            }
            if there {
                self.leave_to_readers(caller, &inode, &mut state, &cell, flags)?;
                return self.open_content(caller, &inode, &mut state, Some(&cell), flags);
            }
            let now = self.state.now();
            state.cell.known = None;
            state.cell.orphan = None;
            state.cell.pending = Some(Box::new(Pending {
                content: Some(Content::default()),
                creating: Some(Creation { mode, uid: caller.uid, gid, since_millis: now }),
                changed_millis: now,
                ..Pending::default()
            }));
            let opened = self.open_content(caller, &inode, &mut state, Some(&cell), flags | libc::O_WRONLY)?;
            if let Some(writer) = state.cell.pending.as_mut().and_then(|pending| pending.writer(opened.handle)) {
                writer.dirty = true;
                writer.truncate_mark = false;
            }
            Ok(opened)
        })();
        let shown = made.and_then(|opened| {
            let shown = self.cell_attributes(caller, &inode, &mut state, &cell)?;
            shown
                .map(|(attributes, lifetime)| (cell_entry(&cell.table, attributes, lifetime), opened))
                .ok_or_else(FsError::not_found)
        });
        drop(state);
        if shown.is_err() {
            self.state.inodes.forget(inode.number, 1);
        }
        shown
    }

    /// The group of what is made in a row: the caller's, or the row's if that has the set-group-id bit.
    pub(super) fn new_group(&self, caller: &Caller, parent: &Inode, table: &TableHandle, row: &Bytes) -> FsResult<u32> {
        let shown = self.row_attributes(parent, table, row)?;
        Ok(shown.filter(|row| row.mode & SET_GID != 0).map_or(caller.gid, |row| row.gid))
    }

    fn create_scratch(
        &self,
        caller: &Caller,
        place: ScratchPlace,
        name: &[u8],
        mode: u32,
        flags: i32,
    ) -> FsResult<(Entry, Opened)> {
        if let Some(inode) = self.state.scratch.get(&place, name) {
            if flags & libc::O_EXCL != 0 {
                return refuse(libc::EEXIST, "the scratch file exists");
            }
            let opened = self.open_content(caller, &inode, &mut inode.lock(), None, flags)?;
            self.state.inodes.reference_again(&inode);
            let (attributes, _) = self.attributes(caller, &inode)?;
            return Ok((scratch_entry(attributes), opened));
        }
        let inode = self.new_scratch(mode, caller.uid, caller.gid, Bytes::new())?;
        let opened = self.open_content(caller, &inode, &mut inode.lock(), None, flags)?;
        self.state.scratch.insert(place, Bytes::copy_from_slice(name), Arc::clone(&inode));
        let (attributes, _) = self.attributes(caller, &inode)?;
        Ok((scratch_entry(attributes), opened))
    }

    /// A scratch file with a reference of the kernel and no name yet.
    pub(super) fn new_scratch(&self, mode: u32, uid: u32, gid: u32, content: Bytes) -> FsResult<Arc<Inode>> {
        if !self.state.scratch.reserve(content.len() as u64, true) {
            return refuse(libc::ENOSPC, "scratch files take at most 256 MB together");
        }
        let inode = self.state.inodes.reference(self.state.inodes.new_scratch());
        let own = FileAttributes { mode: Some(mode), uid: Some(uid), gid: Some(gid), ..FileAttributes::default() };
        inode.lock().cell.pending = Some(Box::new(Pending {
            content: Some(Content::new(content)),
            attributes: Some(own),
            changed_millis: self.state.now(),
            ..Pending::default()
        }));
        Ok(inode)
    }

    /// Refuses to change a table whose READONLY attribute is set.
    pub(super) fn table_writable(&self, table: &TableHandle) -> FsResult<()> {
        self.writable()?;
        if table.0.descriptor().read_only {
            return refuse(libc::EROFS, format!("the table {} is READONLY", table.0.name()));
        }
        Ok(())
    }

    /// What a cell of the table has where it keeps nothing of its own.
    pub(super) fn cell_defaults(&self, table: &TableHandle) -> FsResult<Defaults> {
        Ok(Defaults::of_cells(&self.table_facts(table)?))
    }
}

/// Why a name can be no cell of the table.
pub(super) fn not_a_cell(table: &TableHandle, name: &[u8]) -> FsError {
    let shown = name.escape_ascii();
    let descriptor = table.0.descriptor();
    let families: Vec<String> = descriptor.families.keys().map(|family| family.escape_ascii().to_string()).collect();
    let families = families.join(" ");
    let reason = match names::parse_cell(name) {
        Some(_) => format!("{shown} names no family of {}; the table has: {families}", table.0.name()),
        None => {
            format!("{shown} is not a cell's name, which is family:qualifier; the table has the families: {families}")
        }
    };
    FsError::new(libc::EINVAL, reason)
}

fn is_writing(flags: i32) -> bool {
    flags & libc::O_ACCMODE != libc::O_RDONLY || flags & libc::O_TRUNC != 0
}
