//! Reading a log back, and telling a torn tail from damage.
//!
//! Let X be the position behind the last whole record of one piece. Whatever stands behind X was either never made durable (the machine
//! stopped while it was being written), or it was and is damaged now. Every header, of records and of segments, says up to where the log was durable when
//! it was made; if any header behind X claims more than X, the bytes at X had been durable: that is damage. Otherwise they are a torn
//! tail, of which nobody was ever told that it would survive, and everything behind X is dropped: what is recovered has no hole.
//!
//! Segments form one piece by their base positions: a log that was cut at X goes on in a new segment whose base is X.

use super::WalEdit;
use super::format::{
    self, BadSegmentHeader, Place, RecordHeader, RecordKind, SEGMENT_HEADER_LEN, SegmentHeader, VERSION, VERSION_1,
};
use super::segment::{self, OldSegment};
use crate::error::{Error, Result};
use crate::vfs::{File, Vfs};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes read at once.
const READ_CHUNK: usize = 1 << 18;

/// What the reserve of a segment reads as.
static ZEROES: [u8; 4096] = [0; 4096];

/// One record: edits that take effect together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalRecord {
    /// Its id, which the cells carry.
    pub sequence_id: u64,
    /// The edits.
    pub edits: Vec<WalEdit>,
}

/// How to recover.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoveryOptions {
    /// The first segment that is needed (the manifest's log number). Earlier ones are ignored; if it is missing while later ones exist,
    /// the log is damaged.
    pub first_segment: u64,
    /// Treats damage as a torn tail: recovers up to it and drops what follows. Only on the user's explicit wish, for it loses data.
    pub point_in_time: bool,
}

/// Where an unfinished write was cut off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// The segment.
    pub file: PathBuf,
    /// Bytes of it that count.
    pub offset: u64,
}

/// What recovery found, and what [`super::Wal::create`] needs in order to go on.
#[derive(Clone, Debug, Default)]
pub struct RecoveredLog {
    /// The largest sequence id that the log knows to have been given out; 0 for none.
    pub last_sequence_id: u64,
    /// The number of the last segment that is kept; the next one follows it.
    pub last_segment: u64,
    /// The torn tail, if there was one.
    pub torn_tail: Option<TornTail>,
    /// Segments to keep.
    pub(super) segments: Vec<OldSegment>,
    /// Segments to remove: not needed, or behind the end.
    pub(super) discard: Vec<u64>,
    /// Position of the end.
    pub(super) end_position: u64,
}

/// Calls `sink` with every record of the log in `directory`, in order. Writes nothing; memory is bounded by the largest record.
///
/// # Errors
/// [`Error::Corruption`] for damage, [`Error::Unsupported`] for another format version, those of `sink` and of reading. What `sink` has got by then is to be
/// thrown away.
pub fn recover(
    vfs: &dyn Vfs,
    directory: &Path,
    options: RecoveryOptions,
    mut sink: impl FnMut(WalRecord) -> Result<()>,
) -> Result<RecoveredLog> {
    let (stale, numbers): (Vec<u64>, Vec<u64>) =
        segment::list(vfs, directory)?.into_iter().partition(|number| *number < options.first_segment);
    let mut recovery = Recovery {
        options,
        log: RecoveredLog { discard: stale, ..RecoveredLog::default() },
        end: None,
        stopped: false,
    };
    if let Some(first) = numbers.first().filter(|first| **first > options.first_segment && options.first_segment > 0) {
        let missing = segment::path(directory, options.first_segment);
        let what = format!("this log segment is missing, and the next one is {first}");
        recovery.stop(Error::corruption(missing, 0, what))?;
    }
    for number in &numbers {
        let file = vfs.open_read(&segment::path(directory, *number))?;
        recovery.read_segment(file, *number, numbers.last() == Some(number), &mut sink)?;
    }
    recovery.finish()
}

/// The end of the log so far.
struct End {
    file: Arc<dyn File>,
    place: Place,
    offset: u64,
    position: u64,
}

struct Recovery {
    options: RecoveryOptions,
    log: RecoveredLog,
    end: Option<End>,
    /// Everything that follows is dropped.
    stopped: bool,
}

impl Recovery {
    fn read_segment(
        &mut self,
        file: Arc<dyn File>,
        number: u64,
        is_last: bool,
        sink: &mut impl FnMut(WalRecord) -> Result<()>,
    ) -> Result<()> {
        let header = read_segment_header(file.as_ref(), number)?;
        if self.stopped {
            return self.drop_segment(file.as_ref(), number, header.as_ref());
        }
        let Some(header) = header else {
            // A header is durable before the first record is written, so without a record behind it this segment was never used.
            if let Some(offset) = find_any_record(file.as_ref(), number)? {
                let what = format!("the header of a log segment is damaged, for a record stands at byte {offset}");
                self.stop(Error::corruption(file.path(), 0, what))?;
            } else if self.end.is_none() && !is_last {
                let what = "the header of the first log segment is damaged, for there are later segments";
                self.stop(Error::corruption(file.path(), 0, what))?;
            }
            self.log.discard.push(number);
            return Ok(());
        };
        if self.end.as_ref().is_some_and(|end| end.position != header.base) {
            // Without a record it may be what a roll left that failed and could not clean up: its absence would make no hole.
            if find_record(file.as_ref(), header.place(), SEGMENT_HEADER_LEN as u64, |_| true)?.is_some() {
                self.check_tail()?;
                self.stopped = true;
            }
            return self.drop_segment(file.as_ref(), number, Some(&header));
        }
        self.log.last_sequence_id = self.log.last_sequence_id.max(header.next_sequence_id.saturating_sub(1));
        let place = header.place();
        let offset = self.replay(&file, place, sink)?;
        let position = place.position(offset);
        self.log.segments.push(OldSegment { number, last_sequence_id: self.log.last_sequence_id });
        self.end = Some(End { file, place, offset, position });
        Ok(())
    }

    /// Delivers the records of one segment; returns the offset behind the last whole one.
    fn replay(
        &mut self,
        file: &Arc<dyn File>,
        place: Place,
        sink: &mut impl FnMut(WalRecord) -> Result<()>,
    ) -> Result<u64> {
        let mut reader = SegmentReader::new(file.clone(), SEGMENT_HEADER_LEN as u64)?;
        loop {
            let offset = reader.offset();
            let Some((header, payload)) = reader.next_record(place)? else { return Ok(offset) };
            let last = &mut self.log.last_sequence_id;
            if header.kind != RecordKind::Mark {
                if header.sequence_id <= *last {
                    let what = format!("sequence id {} follows {last}", header.sequence_id);
                    return Err(Error::corruption(file.path(), offset, what));
                }
                *last = header.sequence_id;
            }
            if header.kind == RecordKind::Edits {
                let edits = format::decode_payload(&payload, place.version, header.sequence_id);
                let edits = edits.map_err(|what| Error::corruption(file.path(), offset, what))?;
                sink(WalRecord { sequence_id: header.sequence_id, edits })?;
            }
        }
    }

    /// A segment behind the end of the log: damage if anything in it claims that more had been durable, or if it has lost the header without which
    /// its claims cannot be read.
    fn drop_segment(&mut self, file: &dyn File, number: u64, header: Option<&SegmentHeader>) -> Result<()> {
        self.log.discard.push(number);
        let Some(end) = &self.end else { return Ok(()) };
        let claims = |synced: u64| synced > end.position;
        let proof = match header {
            Some(header) if claims(header.synced) => Some(0),
            Some(header) => {
                find_record(file, header.place(), SEGMENT_HEADER_LEN as u64, |record| claims(record.synced))?
            }
            None => find_any_record(file, number)?,
        };
        match proof {
            Some(offset) => {
                let what = format!(
                    "a log record is damaged or missing: {} at byte {offset} says that it was durable",
                    file.path().display()
                );
                let damage = Error::corruption(end.file.path(), end.offset, what);
                self.stop(damage)
            }
            None => Ok(()),
        }
    }

    /// Looks behind the end of the log in its last segment.
    fn check_tail(&mut self) -> Result<()> {
        let Some(end) = &self.end else { return Ok(()) };
        let proof = find_record(end.file.as_ref(), end.place, end.offset + 1, |header| header.synced > end.position)?;
        if let Some(offset) = proof {
            let what = format!("a log record is damaged: the one at byte {offset} says that it was durable");
            let damage = Error::corruption(end.file.path(), end.offset, what);
            self.stop(damage)?;
        }
        Ok(())
    }

    /// Ends the log here because of `damage`, if the user wants that; fails otherwise.
    fn stop(&mut self, damage: Error) -> Result<()> {
        if !self.options.point_in_time {
            return Err(damage);
        }
        log::warn!("what follows in the log is dropped, as asked: {damage}");
        self.stopped = true;
        Ok(())
    }

    fn finish(mut self) -> Result<RecoveredLog> {
        // The numbers of discarded segments are used again, so that the manifest's log number never names a segment that is skipped.
        let kept = self.log.segments.last().map_or(0, |segment| segment.number);
        self.log.last_segment = kept.max(self.options.first_segment.saturating_sub(1));
        // Nearly always the rest of the segment is its untouched reserve: zeroes, which hold no header, are read once.
        let ends_clean = match &self.end {
            Some(end) if !self.stopped => !has_content(end.file.as_ref(), end.offset)?,
            _ => false,
        };
        if !self.stopped && !ends_clean {
            self.check_tail()?;
        }
        if let Some(end) = &self.end {
            self.log.end_position = end.position;
            if !ends_clean {
                self.log.torn_tail = Some(TornTail { file: end.file.path().to_path_buf(), offset: end.offset });
            }
        }
        if let Some(torn) = &self.log.torn_tail {
            log::warn!("{}: the last write was interrupted; cut at byte {}", torn.file.display(), torn.offset);
        }
        Ok(self.log)
    }
}

fn read_segment_header(file: &dyn File, number: u64) -> Result<Option<SegmentHeader>> {
    let mut bytes = [0u8; SEGMENT_HEADER_LEN];
    let read = file.read_at(&mut bytes, 0)?;
    match SegmentHeader::decode(bytes.get(..read).unwrap_or(&[]), number) {
        Ok(header) => Ok(Some(header)),
        Err(BadSegmentHeader::Damaged) => Ok(None),
        Err(BadSegmentHeader::Version(version)) => {
            let what = format!("log format version {version} (this build knows {VERSION_1} and {VERSION})");
            Err(Error::Unsupported { file: file.path().to_path_buf(), what })
        }
    }
}

/// Reads whole records one after the other.
struct SegmentReader {
    file: Arc<dyn File>,
    len: u64,
    chunk: Vec<u8>,
    /// What of the chunk has not been used yet.
    at: usize,
    filled: usize,
    /// Offset in the file of `chunk[at]`.
    offset: u64,
}

impl SegmentReader {
    fn new(file: Arc<dyn File>, offset: u64) -> Result<SegmentReader> {
        let len = file.len()?;
        Ok(SegmentReader { file, len, chunk: vec![0; READ_CHUNK], at: 0, filled: 0, offset })
    }

    fn offset(&self) -> u64 {
        self.offset
    }

    fn unused(&self) -> &[u8] {
        self.chunk.get(self.at..self.filled).unwrap_or(&[])
    }

    fn skip(&mut self, bytes: usize) {
        self.at += bytes;
        self.offset += bytes as u64;
    }

    /// Makes at least `wanted` bytes available if the file has them.
    fn fill(&mut self, wanted: usize) -> Result<()> {
        if self.filled - self.at >= wanted {
            return Ok(());
        }
        self.filled = self.file.read_at(&mut self.chunk, self.offset)?;
        self.at = 0;
        Ok(())
    }

    /// The record at the offset, or `None` (the offset stays) where none is whole.
    fn next_record(&mut self, place: Place) -> Result<Option<(RecordHeader, Bytes)>> {
        let header_len = place.record_header_len();
        self.fill(header_len)?;
        let Some(header) = RecordHeader::decode(self.unused(), place, self.offset) else { return Ok(None) };
        let start = self.offset + header_len as u64;
        // A length is believed only within the file: nothing larger is ever allocated.
        if u64::from(header.length) > self.len.saturating_sub(start) {
            return Ok(None);
        }
        let length = header.length as usize;
        let whole = header_len + length;
        let payload = if whole <= READ_CHUNK {
            self.fill(whole)?;
            let Some(payload) = self.unused().get(header_len..whole) else { return Ok(None) };
            Bytes::copy_from_slice(payload)
        } else {
            let mut payload = vec![0; length];
            self.file.read_exact_at(&mut payload, start)?;
            Bytes::from(payload)
        };
        if crc32fast::hash(&payload) != header.payload_crc {
            return Ok(None);
        }
        if whole <= READ_CHUNK {
            self.skip(whole);
        } else {
            self.at = 0;
            self.filled = 0;
            self.offset += whole as u64;
        }
        Ok(Some((header, payload)))
    }
}

/// The offset of the first header at or behind `from` that `wanted` accepts, at whatever byte it stands. The checksum of a header binds it to its
/// segment and offset, so copies in values do not matter, nor does chance: a header is believed only if its payload fits the file.
fn find_record(
    file: &dyn File,
    place: Place,
    from: u64,
    wanted: impl Fn(&RecordHeader) -> bool,
) -> Result<Option<u64>> {
    let header_len = place.record_header_len();
    let len = file.len()?;
    let mut chunk = vec![0u8; READ_CHUNK + header_len];
    let mut at = from;
    loop {
        let read = file.read_at(&mut chunk, at)?;
        let bytes = chunk.get(..read).unwrap_or(&[]);
        for start in (0..read).step_by(ZEROES.len()) {
            let block = bytes.get(start..).unwrap_or(&[]);
            // The headers that begin in a block may reach into the next one.
            let block = block.get(..ZEROES.len() + header_len - 1).unwrap_or(block);
            if is_zero(block) {
                continue;
            }
            for (index, window) in block.windows(header_len).enumerate() {
                let offset = at + (start + index) as u64;
                let fits = |header: &RecordHeader| offset + header_len as u64 + u64::from(header.length) <= len;
                if RecordHeader::decode(window, place, offset).is_some_and(|header| fits(&header) && wanted(&header)) {
                    return Ok(Some(offset));
                }
            }
        }
        if read < chunk.len() {
            return Ok(None);
        }
        at += READ_CHUNK as u64;
    }
}

/// The offset of a record of any version, in a segment whose header is lost.
fn find_any_record(file: &dyn File, number: u64) -> Result<Option<u64>> {
    for version in [VERSION, VERSION_1] {
        // Where the segment begins in the log matters only to what a record claims.
        let place = Place { version, segment: number, base: 0 };
        if let Some(offset) = find_record(file, place, 0, |_| true)? {
            return Ok(Some(offset));
        }
    }
    Ok(None)
}

/// True if anything but zeroes, which were reserved in advance, stands behind `from`.
fn has_content(file: &dyn File, from: u64) -> Result<bool> {
    let mut chunk = vec![0u8; READ_CHUNK];
    let mut at = from;
    loop {
        let read = file.read_at(&mut chunk, at)?;
        if !is_zero(chunk.get(..read).unwrap_or(&[])) {
            return Ok(true);
        }
        if read < chunk.len() {
            return Ok(false);
        }
        at += read as u64;
    }
}

/// Compared with zeroes by `memcmp`, which is fast in every build: most of what is read here is the reserve of a segment. No header is all
/// zero, for its kind is not.
fn is_zero(bytes: &[u8]) -> bool {
    bytes.chunks(ZEROES.len()).all(|block| ZEROES.get(..block.len()) == Some(block))
}
