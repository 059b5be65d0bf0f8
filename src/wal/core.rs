//! What the log's mutex protects.

use super::LogPosition;
use super::buffer::Buffer;
use super::format::{RECORD_HEADER_LEN, RecordHeader, RecordKind, SegmentHeader, VERSION};
use super::recovery::RecoveredLog;
use super::segment::{OldSegment, Segment};
use crate::error::{Error, Result};
use crate::vfs::File;
use std::sync::Arc;

/// Positions count the bytes of records from the beginning of the log, over all segments: synced <= written <= appended.
pub(super) struct Core {
    next_sequence_id: u64,
    pub(super) poisoned: Option<String>,
    /// Appended and not yet taken by a writer: always for the present segment, and ending at `appended`.
    pub(super) buffer: Buffer,
    /// The other buffer, empty, while no writer has it.
    spare: Buffer,
    pub(super) appended: u64,
    pub(super) written: u64,
    pub(super) synced: u64,
    /// A thread is writing a taken buffer, which begins at `written`.
    pub(super) writing: bool,
    /// A thread is syncing.
    pub(super) syncing: bool,
    /// Threads that wait for the sync under way.
    pub(super) sync_waiters: usize,
    /// Threads that waited for the last sync: they may come again at once.
    pub(super) sync_followers: usize,
    /// A thread is making a new segment: nobody appends.
    pub(super) rolling: bool,
    pub(super) segment: Option<Arc<Segment>>,
    /// The highest number any segment has had.
    pub(super) last_segment: u64,
    /// Earlier segments with bytes that are not synced.
    unsynced: Vec<(u64, Arc<dyn File>)>,
    /// Earlier segments that still exist, ascending.
    pub(super) old: Vec<OldSegment>,
}

impl Core {
    pub(super) fn new(recovered: RecoveredLog, next_sequence_id: u64) -> Core {
        Core {
            next_sequence_id: next_sequence_id.max(recovered.last_sequence_id.saturating_add(1)),
            poisoned: None,
            buffer: Buffer::default(),
            spare: Buffer::default(),
            appended: recovered.end_position,
            written: recovered.end_position,
            synced: recovered.end_position,
            writing: false,
            syncing: false,
            sync_waiters: 0,
            sync_followers: 0,
            rolling: false,
            segment: None,
            last_segment: recovered.last_segment,
            unsynced: Vec::new(),
            old: recovered.segments,
        }
    }

    /// Fails once the log is poisoned.
    pub(super) fn check(&self) -> Result<()> {
        match &self.poisoned {
            Some(reason) => Err(Error::Poisoned { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    pub(super) fn allocate_sequence_id(&mut self) -> u64 {
        let sequence_id = self.next_sequence_id;
        self.next_sequence_id += 1;
        sequence_id
    }

    pub(super) fn last_sequence_id(&self) -> u64 {
        self.next_sequence_id.saturating_sub(1)
    }

    /// True if the present segment has room for a record of `length` bytes.
    pub(super) fn fits(&self, length: usize) -> bool {
        self.segment
            .as_ref()
            .is_some_and(|segment| segment.offset(self.appended).saturating_add(length as u64) <= segment.capacity)
    }

    /// True if there is no segment, or no record in it.
    pub(super) fn segment_is_empty(&self) -> bool {
        self.segment.as_ref().is_none_or(|segment| segment.base == self.appended)
    }

    /// Appends `record`, whose header is blank and filled in here, to the buffer. There must be a segment that it fits.
    pub(super) fn push(
        &mut self,
        kind: RecordKind,
        sequence_id: u64,
        payload_crc: u32,
        record: &mut Buffer,
    ) -> LogPosition {
        let header = RecordHeader {
            payload_crc,
            // Checked when the payload was encoded.
            length: (record.len() - RECORD_HEADER_LEN) as u32,
            kind,
            synced: self.synced,
            sequence_id,
        };
        if let (Some(segment), Some(blank)) = (&self.segment, record.chunk_mut::<RECORD_HEADER_LEN>(0)) {
            *blank = header.encode(segment.place(), segment.offset(self.appended));
        }
        self.buffer.append(record);
        let start = self.appended;
        self.appended += record.len() as u64;
        LogPosition { start, end: self.appended }
    }

    /// Makes a record that is still in the buffer one that recovery skips; false if it has been written.
    pub(super) fn cancel(&mut self, position: LogPosition) -> bool {
        let Some(segment) = &self.segment else { return false };
        let buffer_start = self.appended - self.buffer.len() as u64;
        let Some(index) = position.start.checked_sub(buffer_start) else { return false };
        let offset = segment.offset(position.start);
        let index = usize::try_from(index).ok();
        let header = index.and_then(|index| self.buffer.chunk_mut::<RECORD_HEADER_LEN>(index));
        let Some(blank) = header else { return false };
        let Some(header) = RecordHeader::decode(blank.as_slice(), segment.place(), offset) else { return false };
        *blank = RecordHeader { kind: RecordKind::Cancelled, ..header }.encode(segment.place(), offset);
        true
    }

    /// Where the buffer goes; `None` when it is empty.
    pub(super) fn write_target(&self) -> Option<(Arc<Segment>, u64)> {
        let segment = self.segment.as_ref().filter(|_| !self.buffer.is_empty())?;
        Some((segment.clone(), segment.offset(self.written)))
    }

    pub(super) fn take_buffer(&mut self) -> Buffer {
        std::mem::replace(&mut self.buffer, std::mem::take(&mut self.spare))
    }

    /// Keeps a written buffer for reuse, unless one huge record has blown it up.
    pub(super) fn give_spare(&mut self, mut bytes: Buffer, usual: usize) {
        if bytes.capacity() <= usual.saturating_mul(4) {
            bytes.clear();
            self.spare = bytes;
        }
    }

    /// Puts an unwritten buffer in front of what has been appended since.
    pub(super) fn put_back(&mut self, mut bytes: Buffer) {
        bytes.append(&self.buffer);
        self.buffer = bytes;
    }

    /// The files that hold everything between `synced` and `written`.
    pub(super) fn unsynced_files(&mut self) -> Vec<Arc<dyn File>> {
        let mut files: Vec<_> = self.unsynced.drain(..).map(|(_, file)| file).collect();
        if let Some(segment) = self.segment.as_ref().filter(|segment| self.written > segment.base) {
            files.push(segment.file.clone());
        }
        files
    }

    pub(super) fn next_segment_header(&self) -> SegmentHeader {
        SegmentHeader {
            version: VERSION,
            segment: self.last_segment + 1,
            base: self.appended,
            synced: self.synced,
            next_sequence_id: self.next_sequence_id,
        }
    }

    /// Puts a new segment in place of the present one, everything of which has been written; returns its file and where its records end.
    pub(super) fn switch_segment(&mut self, segment: Arc<Segment>) -> Option<(Arc<dyn File>, u64)> {
        self.last_segment = segment.number;
        let old = self.segment.replace(segment)?;
        self.old.push(OldSegment { number: old.number, last_sequence_id: self.last_sequence_id() });
        if self.synced < self.appended {
            self.unsynced.push((old.number, old.file.clone()));
        }
        Some((old.file.clone(), old.offset(self.appended)))
    }

    pub(super) fn first_needed_segment(&self, sequence_id: u64) -> u64 {
        let old = self.old.iter().find(|old| old.last_sequence_id > sequence_id).map(|old| old.number);
        let present = || self.segment.as_ref().map_or(self.last_segment + 1, |segment| segment.number);
        old.unwrap_or_else(present)
    }

    /// Takes the oldest segment off the list if it is before `first_segment`.
    pub(super) fn take_old_before(&mut self, first_segment: u64) -> Option<OldSegment> {
        let oldest = self.old.first().copied().filter(|old| old.number < first_segment)?;
        self.old.remove(0);
        self.unsynced.retain(|(number, _)| *number != oldest.number);
        Some(oldest)
    }
}
