//! The write-ahead log: framing, group commit, segments, recovery.
//!
//! One log for the whole store. A record is a list of [`WalEdit`]s that take effect together, under one sequence id; ids are given out
//! under the log's mutex, so their order is the order of the log. Bytes are in docs/wal-format.md; the rule that tells a torn tail from damage is in
//! [`recover`].
//!
//! A failed write or sync poisons the log: what was written may or may not be on disk, and asking again would get the answer "yes" for
//! pages that the kernel has dropped (PostgreSQL's fsync findings of 2018). Only reopening, which reads what is there, tells.

mod buffer;
mod core;
mod format;
mod recovery;
mod segment;
#[cfg(test)]
mod tests;

pub use recovery::{RecoveredLog, RecoveryOptions, TornTail, WalRecord, recover};

use self::buffer::Buffer;
use self::core::Core;
use crate::cell::Cell;
use crate::error::{Error, Result};
use crate::schema::Durability;
use crate::vfs::Vfs;
use format::{RECORD_HEADER_LEN, RecordKind};
use parking_lot::{Condvar, Mutex, MutexGuard};
use segment::OldSegment;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A segment begun by a record of so many bytes expects more of the kind...
const LARGE_RECORD_BYTES: usize = 1 << 20;
/// ...and is so many times larger.
const LARGE_SEGMENT_FACTOR: u64 = 4;

/// Changes of one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalEdit {
    /// The region's identity.
    pub region: u64,
    /// The cells, delete markers among them, of any families.
    pub cells: Vec<Cell>,
}

/// Sizes of a log.
#[derive(Clone, Copy, Debug)]
pub struct WalOptions {
    /// Bytes reserved for a segment. One that begins with a large record gets four times as much, a still larger record a segment of its own size.
    pub segment_bytes: u64,
    /// Bytes gathered before an append hands them to the operating system by itself; also what one write carries at most, a larger
    /// record apart.
    pub buffer_bytes: usize,
}

impl Default for WalOptions {
    fn default() -> Self {
        WalOptions { segment_bytes: 16 << 20, buffer_bytes: 1 << 20 }
    }
}

/// Where a record stands in the log; what [`Wal::commit`] waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPosition {
    start: u64,
    end: u64,
}

/// An appended record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// Its sequence id, which its cells carry now.
    pub sequence_id: u64,
    /// To commit it by.
    pub position: LogPosition,
}

/// The log of an open store. All methods may be called from many threads.
pub struct Wal {
    vfs: Arc<dyn Vfs>,
    directory: PathBuf,
    options: WalOptions,
    core: Mutex<Core>,
    /// Bytes were written, a roll ended, or the log was poisoned.
    written: Condvar,
    /// A sync ended, or the log was poisoned.
    synced: Condvar,
    /// Held while old segments are removed.
    forgetting: Mutex<()>,
}

impl Wal {
    /// Goes on behind a recovered log ([`RecoveredLog::default`] for a new store) in `directory`, which is made if it is missing. Removes
    /// the segments that recovery discarded and makes the others durable. The first segment is made by the first append, so that a full
    /// disk does not keep a store from opening.
    ///
    /// `next_sequence_id` must be above every id ever given out.
    ///
    /// # Errors
    /// Those of the files.
    pub fn create(
        vfs: Arc<dyn Vfs>,
        directory: &Path,
        options: WalOptions,
        recovered: RecoveredLog,
        next_sequence_id: u64,
    ) -> Result<Wal> {
        vfs.create_directory(directory)?;
        let parent = directory.parent().filter(|parent| !parent.as_os_str().is_empty());
        vfs.sync_directory(parent.unwrap_or(Path::new(".")))?;
        if !recovered.discard.is_empty() {
            for number in &recovered.discard {
                vfs.remove_file(&segment::path(directory, *number))?;
            }
            vfs.sync_directory(directory)?;
        }
        for old in &recovered.segments {
            // What was recovered may still be only in the page cache, and a new record must never be more durable than an old one.
            vfs.open_write(&segment::path(directory, old.number))?.sync_data()?;
        }
        Ok(Wal {
            vfs,
            directory: directory.to_path_buf(),
            options,
            core: Mutex::new(Core::new(recovered, next_sequence_id)),
            written: Condvar::new(),
            synced: Condvar::new(),
            forgetting: Mutex::new(()),
        })
    }

    /// Appends one record and stamps its sequence id into the cells. The record is only in memory until [`Wal::commit`], [`Wal::sync`] or
    /// a full buffer.
    ///
    /// # Errors
    /// No id is taken by a failed append. [`Error::NoSpace`] where a new segment is needed and cannot be made, [`Error::Poisoned`].
    pub fn append(&self, edits: &mut [WalEdit]) -> Result<Appended> {
        let mut record = format::encode_payload(edits)?;
        let payload_crc = record.crc_from(RECORD_HEADER_LEN);
        let appended = {
            let mut core = self.core.lock();
            self.make_room(&mut core, record.len())?;
            let sequence_id = core.allocate_sequence_id();
            let position = core.push(RecordKind::Edits, sequence_id, payload_crc, &mut record);
            Appended { sequence_id, position }
        };
        for cell in edits.iter_mut().flat_map(|edit| &mut edit.cells) {
            cell.set_sequence_id(appended.sequence_id);
        }
        Ok(appended)
    }

    /// Takes the next sequence id for something that is not logged.
    pub fn allocate_sequence_id(&self) -> u64 {
        self.core.lock().allocate_sequence_id()
    }

    /// The last sequence id given out.
    pub fn last_sequence_id(&self) -> u64 {
        self.core.lock().last_sequence_id()
    }

    /// Waits until a record is as durable as asked: [`Durability::SyncWal`] (and `UseDefault`) = handed to the operating system,
    /// [`Durability::FsyncWal`] = on disk; the others wait for nothing. Whoever comes first writes or syncs for all that have come.
    ///
    /// # Errors
    /// [`Error::Poisoned`]: only reopening will tell whether the record was kept. [`Error::NoSpace`]: it was not; its id stays unused.
    pub fn commit(&self, position: LogPosition, durability: Durability) -> Result<()> {
        let mut core = self.core.lock();
        loop {
            let tried = match durability {
                Durability::SkipWal | Durability::AsyncWal => return Ok(()),
                Durability::UseDefault | Durability::SyncWal => self.write_until(&mut core, position.end),
                Durability::FsyncWal => self.sync_until(&mut core, position.end),
            };
            match tried {
                Err(full @ Error::NoSpace { .. }) => {
                    while core.writing {
                        self.written.wait(&mut core);
                    }
                    if core.cancel(position) {
                        return Err(full);
                    }
                    // Another thread has written it meanwhile.
                }
                done => return done,
            }
        }
    }

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// As [`Wal::commit`], but [`Error::NoSpace`] cancels nothing: the records wait for the next attempt.
    pub fn sync(&self) -> Result<()> {
        let mut core = self.core.lock();
        let end = core.appended;
        self.sync_until(&mut core, end)
    }

    /// Bytes that a power loss would lose now.
    pub fn unsynced_bytes(&self) -> u64 {
        let core = self.core.lock();
        core.appended.saturating_sub(core.synced)
    }

    /// Why the log refuses everything, if it does.
    pub fn poisoned(&self) -> Option<String> {
        self.core.lock().poisoned.clone()
    }

    /// Begins a new segment, unless the present one is empty.
    ///
    /// # Errors
    /// As [`Wal::append`].
    pub fn roll(&self) -> Result<()> {
        let mut core = self.core.lock();
        self.wait_for_roll(&mut core)?;
        if core.segment_is_empty() { Ok(()) } else { self.roll_segment(&mut core, 0) }
    }

    /// Makes sure that a record of `bytes` bytes of cells would find its room now; a new segment is begun if needed. Others may still use
    /// it up.
    ///
    /// # Errors
    /// As [`Wal::append`].
    pub fn reserve(&self, bytes: usize) -> Result<()> {
        let mut core = self.core.lock();
        self.wait_for_roll(&mut core)?;
        let length = bytes.saturating_add(RECORD_HEADER_LEN);
        if core.fits(length) { Ok(()) } else { self.roll_segment(&mut core, length) }
    }

    /// How many segments there are.
    pub fn segment_count(&self) -> usize {
        let core = self.core.lock();
        core.old.len() + usize::from(core.segment.is_some())
    }

    /// The first segment that recovery needs once everything up to `sequence_id` is in store files. Record it in the manifest
    /// (`SetLogNumber`), then call [`Wal::forget_before`].
    pub fn first_needed_segment(&self, sequence_id: u64) -> u64 {
        self.core.lock().first_needed_segment(sequence_id)
    }

    /// Removes the segments before `first_segment`, the oldest first, each durably before the next: what is left is always one piece.
    ///
    /// # Errors
    /// Those of the files; what is left is tried again by the next call.
    pub fn forget_before(&self, first_segment: u64) -> Result<()> {
        let _one_at_a_time = self.forgetting.lock();
        loop {
            let Some(old) = self.core.lock().take_old_before(first_segment) else { return Ok(()) };
            if let Err(error) = self.remove_segment(old) {
                self.core.lock().old.insert(0, old);
                return Err(error);
            }
        }
    }

    fn remove_segment(&self, old: OldSegment) -> Result<()> {
        let path = segment::path(&self.directory, old.number);
        if self.vfs.exists(&path)? {
            self.vfs.remove_file(&path)?;
        }
        self.vfs.sync_directory(&self.directory)
    }

    /// Syncs, and leaves a mark that proves it: damage to anything before will then be told from a torn tail.
    ///
    /// # Errors
    /// As [`Wal::sync`].
    pub fn close(&self) -> Result<()> {
        self.sync()?;
        let mut core = self.core.lock();
        self.wait_for_roll(&mut core)?;
        let mut mark = Buffer::with_capacity(RECORD_HEADER_LEN);
        mark.extend_from_slice(&[0; RECORD_HEADER_LEN]);
        if core.segment_is_empty() || !core.fits(mark.len()) {
            return Ok(());
        }
        let sequence_id = core.last_sequence_id();
        let position = core.push(RecordKind::Mark, sequence_id, crc32fast::hash(&[]), &mut mark);
        self.write_until(&mut core, position.end)
    }

    /// Returns when a record of `length` bytes fits the segment and the buffer.
    fn make_room(&self, core: &mut MutexGuard<'_, Core>, length: usize) -> Result<()> {
        loop {
            self.wait_for_roll(core)?;
            if !core.fits(length) {
                self.roll_segment(core, length)?;
            } else if core.buffer.is_empty() || core.buffer.len() + length <= self.options.buffer_bytes {
                return Ok(());
            } else {
                self.write_step(core)?;
            }
        }
    }

    fn wait_for_roll(&self, core: &mut MutexGuard<'_, Core>) -> Result<()> {
        loop {
            core.check()?;
            if !core.rolling {
                return Ok(());
            }
            self.written.wait(core);
        }
    }

    fn write_until(&self, core: &mut MutexGuard<'_, Core>, end: u64) -> Result<()> {
        while core.written < end {
            self.write_step(core)?;
        }
        Ok(())
    }

    /// Hands the buffer to the operating system, or waits for the thread that is doing it. Appends go on into the other buffer meanwhile.
    fn write_step(&self, core: &mut MutexGuard<'_, Core>) -> Result<()> {
        core.check()?;
        if core.writing {
            self.written.wait(core);
            return Ok(());
        }
        let Some((segment, offset)) = core.write_target() else { return Ok(()) };
        let bytes = core.take_buffer();
        core.writing = true;
        let result = MutexGuard::unlocked(core, || segment.write(&bytes, offset));
        core.writing = false;
        let result = match result {
            Ok(()) => {
                core.written += bytes.len() as u64;
                core.give_spare(bytes, self.options.buffer_bytes);
                Ok(())
            }
            // The segment's blocks were reserved, yet a copy-on-write volume may run out. Nothing is lost: the bytes wait.
            Err(full @ Error::NoSpace { .. }) => {
                core.put_back(bytes);
                Err(full)
            }
            Err(error) => Err(self.poison(core, &error)),
        };
        self.written.notify_all();
        result
    }

    fn sync_until(&self, core: &mut MutexGuard<'_, Core>, end: u64) -> Result<()> {
        while core.synced < end {
            core.check()?;
            if core.syncing {
                core.sync_waiters += 1;
                self.synced.wait(core);
                core.sync_waiters -= 1;
                continue;
            }
            core.syncing = true;
            let result = self.sync_step(core);
            core.syncing = false;
            core.sync_followers = core.sync_waiters;
            self.synced.notify_all();
            result?;
        }
        Ok(())
    }

    /// Writes and syncs all that has been appended, for everybody who waits.
    fn sync_step(&self, core: &mut MutexGuard<'_, Core>) -> Result<()> {
        // Writers who were woken by the last sync are just coming: let them join. A lone writer would only give its turn on the CPU away, which
        // costs milliseconds where the machine is busy.
        if core.sync_followers > 0 {
            MutexGuard::unlocked(core, std::thread::yield_now);
        }
        let appended = core.appended;
        self.write_until(core, appended)?;
        core.check()?;
        let target = core.written;
        let files = core.unsynced_files();
        match MutexGuard::unlocked(core, || files.iter().try_for_each(|file| file.sync_data())) {
            Ok(()) => {
                core.synced = target;
                Ok(())
            }
            Err(error) => Err(self.poison(core, &error)),
        }
    }

    fn poison(&self, core: &mut Core, error: &Error) -> Error {
        let reason = core.poisoned.get_or_insert_with(|| error.to_string()).clone();
        self.written.notify_all();
        self.synced.notify_all();
        Error::Poisoned { reason }
    }

    /// Begins a segment with room for `length` bytes. Appends wait; whatever fails leaves the log as it was.
    fn roll_segment(&self, core: &mut MutexGuard<'_, Core>, length: usize) -> Result<()> {
        core.rolling = true;
        let result = self.roll_segment_alone(core, length);
        core.rolling = false;
        self.written.notify_all();
        result
    }

    fn roll_segment_alone(&self, core: &mut MutexGuard<'_, Core>, length: usize) -> Result<()> {
        let appended = core.appended;
        self.write_until(core, appended)?;
        let header = core.next_segment_header();
        // A segment takes two syncs to make: large records shall not need one each.
        let factor = if length >= LARGE_RECORD_BYTES { LARGE_SEGMENT_FACTOR } else { 1 };
        let bytes = self.options.segment_bytes.saturating_mul(factor);
        let made = MutexGuard::unlocked(core, || {
            segment::make(self.vfs.as_ref(), &self.directory, &header, bytes, length as u64)
        });
        core.check()?;
        match made {
            Ok(segment) => {
                if let Some((file, end)) = core.switch_segment(segment) {
                    MutexGuard::unlocked(core, || segment::cut_slack(file.as_ref(), end));
                }
                Ok(())
            }
            Err(error) => {
                if self.vfs.exists(&segment::path(&self.directory, header.segment)).unwrap_or(true) {
                    core.last_segment = header.segment;
                }
                Err(error)
            }
        }
    }
}
