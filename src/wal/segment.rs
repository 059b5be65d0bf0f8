//! Segments: the files of a log.

use super::buffer::Buffer;
use super::format::{Place, SEGMENT_HEADER_LEN, SegmentHeader, VERSION};
use crate::error::{Error, Result};
use crate::vfs::{File, Vfs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const SUFFIX: &str = ".wal";
/// Where a whole segment finds no room, one with this much beside the record is tried: on a full disk deletes must still work.
const SMALL_SEGMENT_BYTES: u64 = 256 << 10;
/// A segment left early gives back reserved blocks above this many bytes.
const SLACK_BYTES: u64 = 1 << 20;

/// The segment being written.
pub(super) struct Segment {
    pub(super) number: u64,
    /// Position in the log of its first record.
    pub(super) base: u64,
    /// Bytes reserved, its header included.
    pub(super) capacity: u64,
    pub(super) file: Arc<dyn File>,
}

impl Segment {
    /// Where in the file a position of the log is.
    pub(super) fn offset(&self, position: u64) -> u64 {
        SEGMENT_HEADER_LEN as u64 + position.saturating_sub(self.base)
    }

    /// What its records' headers leave out.
    pub(super) fn place(&self) -> Place {
        Place { version: VERSION, segment: self.number, base: self.base }
    }

    /// Hands a buffer to the operating system: one write, but for large cells.
    pub(super) fn write(&self, buffer: &Buffer, mut offset: u64) -> Result<()> {
        for piece in buffer.pieces() {
            self.file.write_all_at(piece, offset)?;
            offset += piece.len() as u64;
        }
        Ok(())
    }
}

/// A segment that will get no more records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OldSegment {
    pub(super) number: u64,
    /// No record in it has a larger id.
    pub(super) last_sequence_id: u64,
}

/// Where segment `number` is.
pub(super) fn path(directory: &Path, number: u64) -> PathBuf {
    directory.join(format!("{number:010}{SUFFIX}"))
}

/// The numbers of the segments in `directory`, ascending; none where there is no directory.
pub(super) fn list(vfs: &dyn Vfs, directory: &Path) -> Result<Vec<u64>> {
    if !vfs.exists(directory)? {
        return Ok(Vec::new());
    }
    let numbers = vfs.list(directory)?.into_iter().filter_map(|entry| {
        let number = entry.name.strip_suffix(SUFFIX)?.parse().ok()?;
        // Only names the log gives: nothing else is read or removed.
        (path(directory, number).file_name()?.to_str()? == entry.name).then_some(number)
    });
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Makes a segment with a durable header, of `bytes` or at least of room for `needed`. What a failure leaves is removed if possible.
pub(super) fn make(
    vfs: &dyn Vfs,
    directory: &Path,
    header: &SegmentHeader,
    bytes: u64,
    needed: u64,
) -> Result<Arc<Segment>> {
    let least = SEGMENT_HEADER_LEN as u64 + needed;
    let small = least + SMALL_SEGMENT_BYTES;
    match make_sized(vfs, directory, header, bytes.max(least)) {
        Err(Error::NoSpace { .. }) if small < bytes => make_sized(vfs, directory, header, small),
        made => made,
    }
}

fn make_sized(vfs: &dyn Vfs, directory: &Path, header: &SegmentHeader, capacity: u64) -> Result<Arc<Segment>> {
    let path = path(directory, header.segment);
    let file = vfs.create_new(&path)?;
    let prepared = (|| {
        file.allocate(capacity)?;
        file.write_all_at(&header.encode(), 0)?;
        file.sync_all()?;
        vfs.sync_directory(directory)
    })();
    if let Err(error) = prepared {
        if let Err(remaining) = vfs.remove_file(&path) {
            log::warn!("an unused log segment stays: {remaining}");
        }
        return Err(error);
    }
    file.map_writes(capacity);
    Ok(Arc::new(Segment { number: header.segment, base: header.base, capacity, file }))
}

/// Gives back what was reserved behind `end`.
pub(super) fn cut_slack(file: &dyn File, end: u64) {
    match file.len() {
        Ok(len) if len.saturating_sub(end) > SLACK_BYTES => {
            if let Err(error) = file.set_len(end) {
                log::debug!("a log segment keeps its reserve: {error}");
            }
        }
        _ => {}
    }
}
