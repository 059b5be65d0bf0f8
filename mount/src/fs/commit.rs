//! A working copy becomes a version: one put.

use super::attributes::{FileAttributes, MILLI};
use super::cells::{Version, VersionId};
use super::inode::{Inode, InodeState, Node};
use super::lookup::expires;
use super::rows::KeptRow;
use super::state::Room;
use super::{CellFs, refuse};
use crate::magic::CellAddress;
use crate::ops::{FsError, FsResult, Invalidation, VolumeFigures};
use bytes::Bytes;
use cellfs::cell::Cell;
use cellfs::client::{Put, PutCell, WriteTime};
use cellfs::schema::ROW_ATTRIBUTES_FAMILY;
use std::sync::Arc;
use std::time::Duration;

/// Room on the volume below which writes are refused, beside what they need: the log and a flush must still fit.
const MARGIN: u64 = 1 << 20;
/// How long what the volume said is believed.
const ROOM_IS_TRUE: Duration = Duration::from_millis(100);

impl CellFs {
    /// Commits the working copy as the version of one open handle.
    pub(super) fn commit(
        &self,
        inode: &Arc<Inode>,
        state: &mut InodeState,
        cell: &CellAddress,
        handle: u64,
    ) -> FsResult<()> {
        let own = self.next_attributes(state, cell)?;
        let Some(pending) = state.cell.pending.as_mut() else { return Ok(()) };
        let value = pending.content.get_or_insert_default().share();
        let version = pending.writer(handle).and_then(|writer| writer.version);
        let time = version.map_or(WriteTime::AfterNewest, WriteTime::ReplaceIfNewest);
        let committed = self.put_version(cell, value, own, time)?;
        let timestamp = committed.id.timestamp;
        if let Some(pending) = state.cell.pending.as_mut() {
            pending.base = Some(committed.id);
            pending.creating = None;
            pending.attributes = None;
            if let Some(writer) = pending.writer(handle) {
                writer.version = Some(timestamp);
            }
        }
        state.cell.known = Some(committed);
        if state.cell.cached_readers > 0 {
            self.state.invalidate(Invalidation::Inode { inode: inode.number, attributes_only: false });
        }
        self.state.row_changed(&cell.table, &cell.row, timestamp);
        Ok(())
    }

    /// What the next version of an open cell keeps of its own: what was set meanwhile, or the creator's, or the mode and owner of the last version.
    fn next_attributes(&self, state: &mut InodeState, cell: &CellAddress) -> FsResult<FileAttributes> {
        if let Some(pending) = &state.cell.pending {
            let made = match pending.creating {
                Some(creation) => {
                    let defaults = self.cell_defaults(&cell.table)?;
                    Some(FileAttributes::owned(creation.mode, creation.uid, creation.gid, defaults))
                }
                None => None,
            };
            if let Some(own) = pending.attributes.or(made) {
                return Ok(match pending.untouched_since() {
                    // Closing changes no file: one that was made and never written keeps the times it was made at.
                    Some(since) if since < self.state.now() => {
                        let since = Some(since.saturating_mul(MILLI));
                        FileAttributes {
                            mtime_nanos: own.mtime_nanos.or(since),
                            ctime_nanos: own.ctime_nanos.or(since),
                            ..own
                        }
                    }
                    // The version is newer than any change of attributes before it.
                    _ => FileAttributes { ctime_nanos: None, ..own },
                });
            }
        }
        Ok(self.committed(state, cell)?.map(|version| version.own().without_times()).unwrap_or_default())
    }

    /// Writes one version, and with the first cell of a kept row what that row keeps of its own.
    pub(super) fn put_version(
        &self,
        cell: &CellAddress,
        value: Bytes,
        own: FileAttributes,
        time: WriteTime,
    ) -> FsResult<Version> {
        let size = value.len() as u64;
        let kept = self.state.kept.get(cell.table.id(), &cell.row);
        let mut put = Put::new(cell.row.clone()).durability(self.state.durability());
        put.cells.push(PutCell {
            family: cell.family.clone(),
            qualifier: cell.qualifier.clone(),
            time,
            value,
            tags: own.tags(None),
        });
        put.cells.extend(row_attributes_cell(kept.as_ref().and_then(|kept| kept.own)));
        let outcome = cell.table.0.put(put)?;
        let Some(written) = outcome.written.first() else {
            return refuse(libc::EIO, "the store took a version without saying its timestamp");
        };
        self.row_has_data(cell, kept.as_ref());
        self.state.hidden.show(cell.table.id(), &cell.row, &cell.family, &cell.qualifier);
        Ok(Version { size, ..self.version_of(cell, written) })
    }

    /// The row exists by its cells now, so it needs not be kept.
    pub(super) fn row_has_data(&self, cell: &CellAddress, kept: Option<&KeptRow>) {
        match kept {
            // Its cells may vanish by themselves; the directory stays.
            Some(kept) if expires(&cell.table) => {
                self.state.kept.insert(cell.table.id(), cell.row.clone(), KeptRow { own: None, ..kept.clone() });
            }
            Some(_) => {
                self.state.kept.remove(cell.table.id(), &cell.row);
            }
            None => {}
        }
        if kept.is_some_and(|kept| kept.own.is_some())
            && let Some(row) = self.state.inodes.find(&Node::Row(cell.table.clone(), cell.row.clone()))
            && let Some(facts) = &mut row.lock().row
        {
            facts.stored = true;
        }
    }

    /// Refuses a write for which the volume has no room. The volume is asked once for many small writes.
    pub(super) fn volume_has_room(&self, bytes: u64) -> FsResult<()> {
        let now = self.state.options.clock.monotonic();
        let mut room = self.state.room.lock();
        if room.bytes < bytes || now.saturating_sub(room.asked) > ROOM_IS_TRUE {
            let free = self.admin.free_space()?;
            if free < bytes.saturating_add(MARGIN) {
                room.bytes = 0;
                return refuse(libc::ENOSPC, "the volume of the store is full; deleting still works");
            }
            // A part only: others write to the volume as well.
            *room = Room { bytes: ((free - MARGIN) / 64).max(bytes), asked: now };
        }
        room.bytes -= bytes;
        Ok(())
    }

    /// Figures of the store's volume.
    pub(super) fn volume(&self) -> FsResult<VolumeFigures> {
        const BLOCK: u64 = 4096;
        if let Some(path) = &self.state.options.store_path {
            let figures = rustix::fs::statvfs(path)
                .map_err(|error| FsError::new(error.raw_os_error(), format!("statvfs {}: {error}", path.display())))?;
            return Ok(VolumeFigures {
                block_size: u32::try_from(figures.f_frsize).unwrap_or(BLOCK as u32),
                blocks: figures.f_blocks,
                blocks_free: figures.f_bfree,
                blocks_available: figures.f_bavail,
                files: figures.f_files,
                files_free: figures.f_ffree,
            });
        }
        let free = self.admin.free_space()? / BLOCK;
        Ok(VolumeFigures {
            block_size: BLOCK as u32,
            blocks: free,
            blocks_free: free,
            blocks_available: free,
            files: 0,
            files_free: 0,
        })
    }
}

/// The hidden cell that stores what a row keeps of its own.
pub(super) fn row_attributes_cell(own: Option<FileAttributes>) -> Option<PutCell> {
    own.map(|own| PutCell {
        family: Bytes::from_static(ROW_ATTRIBUTES_FAMILY),
        qualifier: Bytes::new(),
        time: WriteTime::AfterNewest,
        value: own.encode(),
        tags: Vec::new(),
    })
}

/// A version's identity.
pub(super) fn id_of(cell: &Cell) -> VersionId {
    VersionId { timestamp: cell.timestamp(), sequence_id: cell.sequence_id() }
}
