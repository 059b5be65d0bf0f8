//! write(2), close(2) and the last close of cells and scratch files.

use super::cells::{Content, Pending};
use super::handle::FileHandle;
use super::inode::{Inode, InodeState, Node};
use super::{CellFs, refuse};
use crate::magic::CellAddress;
use crate::names;
use crate::ops::{Caller, FsError, FsResult, Invalidation};
use bytes::Bytes;
use std::sync::Arc;

impl CellFs {
    pub(super) fn write_file(&self, caller: &Caller, file: &FileHandle, offset: u64, data: &[u8]) -> FsResult<u32> {
        if !file.writable {
            return refuse(libc::EBADF, "not open for writing");
        }
        self.writable()?;
        let mut state = file.inode.lock();
        let node = file.inode.node();
        let content = self.content_for(caller, &mut state, &file.inode, &node, file.number)?;
        let length = content.as_slice().len() as u64;
        let start = if file.append { length } else { offset };
        let end = start.checked_add(data.len() as u64).filter(|end| *end <= self.state.cell_max());
        let Some(end) = end else { return Err(self.too_large()) };
        if data.is_empty() {
            return Ok(0);
        }
        let grown = end.saturating_sub(length);
        self.reserve(&node, grown)?;
        let bytes = content.make_mut();
        if start == length {
            bytes.extend_from_slice(data);
        } else {
            if grown > 0 {
                bytes.resize(end as usize, 0);
            }
            if let Some(room) = bytes.get_mut(start as usize..end as usize) {
                room.copy_from_slice(data);
            }
        }
        self.touched(&mut state, file.number);
        Ok(data.len() as u32)
    }

    /// ftruncate(2).
    pub(super) fn truncate_handle(&self, caller: &Caller, file: &FileHandle, size: u64) -> FsResult<()> {
        if !file.writable {
            return refuse(libc::EINVAL, "not open for writing");
        }
        self.writable()?;
        let mut state = file.inode.lock();
        let node = file.inode.node();
        if size > self.state.cell_max() {
            return Err(self.too_large());
        }
        let content = self.content_for(caller, &mut state, &file.inode, &node, file.number)?;
        let length = content.as_slice().len() as u64;
        if size != length {
            self.reserve(&node, size.saturating_sub(length))?;
            content.make_mut().resize(size as usize, 0);
            if let Node::Scratch(_) = node {
                self.state.scratch.release(length.saturating_sub(size), false);
            }
        }
        self.touched(&mut state, file.number);
        Ok(())
    }

    fn too_large(&self) -> FsError {
        let limit = self.state.cell_max();
        FsError::new(libc::EFBIG, format!("a cell holds at most {limit} bytes (cell.max)"))
    }

    /// Space is refused while write(2) can still say so.
    fn reserve(&self, node: &Node, grown: u64) -> FsResult<()> {
        match node {
            Node::Scratch(_) if !self.state.scratch.reserve(grown, false) => {
                refuse(libc::ENOSPC, "scratch files take at most 256 MB together")
            }
            Node::Cell(_) => self.volume_has_room(grown),
            _ => Ok(()),
        }
    }

    /// The working copy, for a writer that is about to change it.
    fn content_for<'a>(
        &self,
        caller: &Caller,
        state: &'a mut InodeState,
        inode: &Inode,
        node: &Node,
        handle: u64,
    ) -> FsResult<&'a mut Content> {
        let cell = match node {
            Node::Cell(cell) if !inode.is_unlinked() => Some(cell),
            _ => None,
        };
        let InodeState { cell: file, .. } = &mut *state;
        let pending = file.pending.get_or_insert_default();
        let dirty = pending.is_dirty();
        if let Some(writer) = pending.writer(handle) {
            writer.used_by(caller.pid);
        }
        let (base, missing) = (pending.base, pending.content.is_none());
        if pending.is_marked() {
            self.truncate_marked(pending, node);
        } else if let Some(cell) = cell {
            let stale = missing || !dirty && self.committed(state, cell)?.map(|version| version.id) != base;
            if stale {
                self.load(state, cell)?;
            }
        } else if missing {
            let value = state.cell.orphan.clone().unwrap_or_default();
            state.cell.pending.get_or_insert_default().content = Some(Content::new(value));
        }
        Ok(state.cell.pending.get_or_insert_default().content.get_or_insert_default())
    }

    /// The truncations that opens have announced happen now.
    fn truncate_marked(&self, pending: &mut Pending, node: &Node) {
        let gone = pending.apply_marks();
        if matches!(node, Node::Scratch(_)) {
            self.state.scratch.release(gone, false);
        }
    }

    /// Takes the committed value as the working copy.
    pub(super) fn load(&self, state: &mut InodeState, cell: &CellAddress) -> FsResult<()> {
        let (value, base) = match self.fetch_value(state, cell)? {
            Some((value, version)) => (value, Some(version)),
            None => (Bytes::new(), None),
        };
        let pending = state.cell.pending.get_or_insert_default();
        pending.content = Some(Content::new(value));
        pending.base = base;
        Ok(())
    }

    /// The handle has changed the working copy: set times are over.
    fn touched(&self, state: &mut InodeState, handle: u64) {
        let now = self.state.now();
        let Some(pending) = state.cell.pending.as_mut() else { return };
        pending.changed_millis = now;
        pending.attributes = pending.attributes.map(|set| set.without_times());
        if let Some(writer) = pending.writer(handle) {
            writer.dirty = true;
            writer.failed = false;
        }
    }

    /// close(2): what the handle has changed becomes its one version.
    pub(super) fn flush_file(&self, _caller: &Caller, file: &FileHandle) -> FsResult<()> {
        if !file.writable {
            return Ok(());
        }
        let mut state = file.inode.lock();
        self.commit_handle(&file.inode, &mut state, file.number)
    }

    pub(super) fn commit_handle(&self, inode: &Arc<Inode>, state: &mut InodeState, handle: u64) -> FsResult<()> {
        let node = inode.node();
        let Some(pending) = state.cell.pending.as_mut() else { return Ok(()) };
        if !pending.writer(handle).is_some_and(|writer| writer.is_dirty()) {
            return Ok(());
        }
        self.truncate_marked(pending, &node);
        let result = match &node {
            Node::Cell(cell) if !inode.is_unlinked() => self.commit(inode, state, cell, handle),
            // A scratch file, or one without a name: there is nothing to commit to.
            _ => Ok(()),
        };
        if let Some(writer) = state.cell.pending.as_mut().and_then(|pending| pending.writer(handle)) {
            writer.dirty = result.is_err();
            writer.failed = result.is_err();
        }
        result
    }

    /// The last descriptor of an open is gone. What was written after the last close (through a mapping) is committed; a mere truncation mark is dropped.
    pub(super) fn release_file(&self, file: &FileHandle) {
        let mut state = file.inode.lock();
        if file.writable {
            let dirty = state.cell.pending.as_mut().and_then(|pending| pending.writer(file.number));
            let left = dirty.is_some_and(|writer| writer.dirty && !writer.failed && !writer.truncate_mark);
            let made = state.cell.pending.as_ref().is_some_and(|pending| {
                // A cell that was created and neither written nor flushed: the kernel has given the open up.
                pending.creating.is_none() || pending.size() > 0
            });
            if left
                && made
                && let Err(error) = self.commit_handle(&file.inode, &mut state, file.number)
            {
                let caller = Caller { uid: 0, gid: 0, pid: 0 };
                self.state.note_error(&caller, "release", self.state.path_of(&file.inode.node()), &error);
            }
            self.drop_writer(&file.inode, &mut state, file.number);
        }
        state.cell.handles = state.cell.handles.saturating_sub(1);
        if file.cached {
            state.cell.cached_readers = state.cell.cached_readers.saturating_sub(1);
        }
        if state.cell.handles == 0 && file.inode.is_unlinked() {
            if let (Node::Scratch(_), Some(pending)) = (file.inode.node(), &state.cell.pending) {
                self.state.scratch.release(pending.size(), true);
            }
            state.cell.pending = None;
            state.cell.orphan = None;
        }
    }

    fn drop_writer(&self, inode: &Arc<Inode>, state: &mut InodeState, handle: u64) {
        let Some(pending) = state.cell.pending.as_mut() else { return };
        pending.writers.retain(|writer| writer.handle != handle);
        if !pending.writers.is_empty() || inode.is_unlinked() {
            return;
        }
        let Node::Cell(cell) = inode.node() else { return };
        let never_made = pending.creating.is_some();
        state.cell.pending = None;
        if never_made {
            self.state.inodes.unlink(inode);
            let parent = self.state.inodes.number(&Node::Row(cell.table.clone(), cell.row.clone()));
            let name = Bytes::from(names::cell_name(&cell.family, &cell.qualifier));
            self.state.invalidate(Invalidation::Name { parent, name });
        }
    }
}
