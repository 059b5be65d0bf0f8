//! read(2): a reader sees one version from its first byte to its last; a writer sees its own work.

use super::CellFs;
use super::cells::{self, Content, VersionId};
use super::handle::{FileHandle, Snapshot};
use super::inode::{InodeState, Node};
use crate::magic::CellAddress;
use crate::ops::{Caller, FsResult};
use bytes::Bytes;

impl CellFs {
    pub(super) fn read_file(&self, caller: &Caller, file: &FileHandle, offset: u64, size: usize) -> FsResult<Bytes> {
        let mut state = file.inode.lock();
        let unlinked = file.inode.is_unlinked();
        let Node::Cell(cell) = file.inode.node() else {
            return Ok(read_pending(&state, offset, size));
        };
        if let Some(pending) = state.cell.pending.as_mut().filter(|_| !file.cached) {
            let own = if unlinked { pending.content.is_some() } else { pending.is_dirty_for(caller.pid) };
            if own {
                return Ok(read_pending(&state, offset, size));
            }
        }
        let mut snapshot = file.snapshot.lock();
        if unlinked {
            let value = snapshot.value.clone().or_else(|| state.cell.orphan.clone()).unwrap_or_default();
            return Ok(cells::slice(&value, offset, size));
        }
        self.refresh(&mut state, file, &cell, &mut snapshot, offset)?;
        Ok(snapshot.value.as_ref().map(|value| cells::slice(value, offset, size)).unwrap_or_default())
    }

    /// Makes the snapshot right for a read at `offset`. A reader's first read takes the newest version; a later one moves on to a newer version at the beginning,
    /// and at the end if the newer version only goes on: it never sees a value half old and half new. Who can write as well always reads the newest: its own commits above all.
    fn refresh(
        &self,
        state: &mut InodeState,
        file: &FileHandle,
        cell: &CellAddress,
        snapshot: &mut Snapshot,
        offset: u64,
    ) -> FsResult<()> {
        if let Some(value) = &snapshot.value {
            let at_end = offset >= value.len() as u64;
            let alone = !file.cached || state.cell.cached_readers == 1;
            if !(file.writable || alone && (offset == 0 || at_end)) {
                return Ok(());
            }
            if self.committed(state, cell)?.map(|version| version.id) == snapshot.version {
                return Ok(());
            }
            let Some((newer, version)) = self.fetch_value(state, cell)? else { return Ok(()) };
            if !file.writable && offset != 0 && !newer.starts_with(value) {
                return Ok(());
            }
            *snapshot = Snapshot { value: Some(newer), version: Some(version) };
        } else {
            match self.fetch_value(state, cell)? {
                Some((value, version)) => *snapshot = Snapshot { value: Some(value), version: Some(version) },
                // Being created, or deleted behind the mount's back: an empty file, to be asked again.
                None => return Ok(()),
            }
        }
        if file.cached {
            state.cell.pages = snapshot.version;
        }
        Ok(())
    }

    /// Reads the committed value.
    pub(super) fn fetch_value(
        &self,
        state: &mut InodeState,
        cell: &CellAddress,
    ) -> FsResult<Option<(Bytes, VersionId)>> {
        let found = self.fetch(cell)?;
        let version = found.as_ref().map(|found| self.version_of(cell, found));
        state.cell.known.clone_from(&version);
        Ok(found.zip(version).map(|(found, version)| (found.value_bytes(), version.id)))
    }
}

fn read_pending(state: &InodeState, offset: u64, size: usize) -> Bytes {
    let pending = state.cell.pending.as_ref().filter(|pending| !pending.is_marked());
    let content = pending.and_then(|pending| pending.content.as_ref());
    content.map(|content: &Content| content.read(offset, size)).unwrap_or_default()
}
