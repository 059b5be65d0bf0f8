//! Bytes of a log segment: its header, record headers, payloads (docs/wal-format.md). Pure; all numbers big-endian.

use super::WalEdit;
use super::buffer::{Buffer, SHARED_CELL_BYTES};
use crate::cell::Cell;
use crate::error::{Error, Result};
use bytes::Bytes;

/// First bytes of a segment.
const MAGIC: [u8; 8] = *b"CELLFSWL";
/// The only format version so far.
pub(super) const VERSION: u32 = 1;
/// Bytes of a segment header.
pub(super) const SEGMENT_HEADER_LEN: usize = 48;
/// Bytes of a record header.
pub(super) const RECORD_HEADER_LEN: usize = 37;
/// Bytes in front of a cell: its length, its key's and its value's.
const CELL_HEADER_LEN: usize = 12;

/// What a segment says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// Its number, also in its name.
    pub(super) segment: u64,
    /// Position in the log of the segment's first record.
    pub(super) base: u64,
    /// Position up to which the log was durable when the segment was made.
    pub(super) synced: u64,
    /// The id the next record would get when the segment was made.
    pub(super) next_sequence_id: u64,
}

/// Why a segment header is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadSegmentHeader {
    /// Torn or damaged.
    Damaged,
    /// Whole, but of another format version.
    Version(u32),
}

impl SegmentHeader {
    /// magic | u32 version | u64 segment | u64 base | u64 synced | u64 next sequence id | u32 crc of what is before.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SEGMENT_HEADER_LEN);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_be_bytes());
        for number in [self.segment, self.base, self.synced, self.next_sequence_id] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        let crc = crc32fast::hash(&out);
        out.extend_from_slice(&crc.to_be_bytes());
        out
    }

    /// The header of segment `segment`.
    pub(super) fn decode(bytes: &[u8], segment: u64) -> std::result::Result<SegmentHeader, BadSegmentHeader> {
        let damaged = BadSegmentHeader::Damaged;
        let (body, crc) = bytes.split_last_chunk::<4>().ok_or(damaged)?;
        let mut fields = body.strip_prefix(&MAGIC).ok_or(damaged)?;
        if bytes.len() != SEGMENT_HEADER_LEN || crc32fast::hash(body) != u32::from_be_bytes(*crc) {
            return Err(damaged);
        }
        let version = take_u32(&mut fields).ok_or(damaged)?;
        if version != VERSION {
            return Err(BadSegmentHeader::Version(version));
        }
        let mut number = || take_u64(&mut fields).ok_or(damaged);
        let header =
            SegmentHeader { segment: number()?, base: number()?, synced: number()?, next_sequence_id: number()? };
        // A file under another number's name is not what its name says.
        if header.segment == segment { Ok(header) } else { Err(damaged) }
    }
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// Edits that take effect together.
    Edits,
    /// Nothing, but proof of what was durable when it was written.
    Mark,
    /// Edits whose writer was told that there was no room for them.
    Cancelled,
}

/// What stands before a record's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    /// CRC-32 of the payload.
    pub(super) payload_crc: u32,
    /// Bytes of the payload.
    pub(super) length: u32,
    pub(super) kind: RecordKind,
    /// The segment the record was written to.
    pub(super) segment: u64,
    /// Position up to which the log was durable when the record was made.
    pub(super) synced: u64,
    pub(super) sequence_id: u64,
}

impl RecordHeader {
    /// u32 crc | u32 payload crc | u32 length | u8 kind | u64 segment | u64 synced | u64 sequence id, for a place at `offset` of its segment.
    pub(super) fn encode(&self, offset: u64) -> [u8; RECORD_HEADER_LEN] {
        let mut tail = [0u8; RECORD_HEADER_LEN - 4];
        let kind = match self.kind {
            RecordKind::Edits => 1,
            RecordKind::Mark => 2,
            RecordKind::Cancelled => 3,
        };
        let parts: [&[u8]; 6] = [
            &self.payload_crc.to_be_bytes(),
            &self.length.to_be_bytes(),
            &[kind],
            &self.segment.to_be_bytes(),
            &self.synced.to_be_bytes(),
            &self.sequence_id.to_be_bytes(),
        ];
        fill(&mut tail, &parts);
        let mut out = [0u8; RECORD_HEADER_LEN];
        fill(&mut out, &[&header_crc(offset, &tail).to_be_bytes(), &tail]);
        out
    }

    /// The header at `offset` of segment `segment`, or `None` where there is none.
    pub(super) fn decode(bytes: &[u8], segment: u64, offset: u64) -> Option<RecordHeader> {
        let bytes = bytes.first_chunk::<RECORD_HEADER_LEN>()?;
        let (crc, tail) = bytes.split_first_chunk::<4>()?;
        let mut rest = tail;
        let payload_crc = take_u32(&mut rest)?;
        let length = take_u32(&mut rest)?;
        let (kind, mut rest) = rest.split_first()?;
        let kind = match kind {
            1 => RecordKind::Edits,
            2 => RecordKind::Mark,
            3 => RecordKind::Cancelled,
            _ => return None,
        };
        // Compared before the checksum: the search for records behind damage tries every byte.
        if take_u64(&mut rest)? != segment {
            return None;
        }
        let (synced, sequence_id) = (take_u64(&mut rest)?, take_u64(&mut rest)?);
        let header = RecordHeader { payload_crc, length, kind, segment, synced, sequence_id };
        (header_crc(offset, tail) == u32::from_be_bytes(*crc)).then_some(header)
    }
}

/// The offset goes into the checksum: a record is valid only where it was written, not where a value holds a copy of it.
fn header_crc(offset: u64, tail: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&offset.to_be_bytes());
    hasher.update(tail);
    hasher.finalize()
}

fn fill(mut out: &mut [u8], parts: &[&[u8]]) {
    for part in parts {
        if let Some((head, rest)) = std::mem::take(&mut out).split_at_mut_checked(part.len()) {
            head.copy_from_slice(part);
            out = rest;
        }
    }
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_be_bytes(*number))
}

fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_be_bytes(*number))
}

/// A whole record with its header still blank: the payload is encoded and summed before the log's mutex is taken. Large cells are shared with it.
///
/// Payload = u32 edits, each u64 region | u32 cells, each u32 length | u32 key length | u32 value length | the cell as
/// [`Cell::encoded`], tags included.
///
/// # Errors
/// [`Error::CellTooLarge`] for more than 4 GB.
pub(super) fn encode_payload(edits: &[WalEdit]) -> Result<Buffer> {
    let (mut length, mut shared) = (4usize, 0);
    for edit in edits {
        length += 12;
        for cell in &edit.cells {
            let size = cell.encoded().len();
            length += CELL_HEADER_LEN + size;
            shared += if size >= SHARED_CELL_BYTES { size } else { 0 };
        }
    }
    if u32::try_from(length).is_err() {
        return Err(Error::CellTooLarge { size: length as u64, limit: u64::from(u32::MAX) });
    }
    let mut out = Buffer::with_capacity(RECORD_HEADER_LEN + length - shared);
    out.extend_from_slice(&[0; RECORD_HEADER_LEN]);
    // No count or length is larger than the whole, which fits.
    out.extend_from_slice(&(edits.len() as u32).to_be_bytes());
    for edit in edits {
        out.extend_from_slice(&edit.region.to_be_bytes());
        out.extend_from_slice(&(edit.cells.len() as u32).to_be_bytes());
        for cell in &edit.cells {
            for number in [cell.encoded().len(), cell.key_len(), cell.value_len()] {
                out.extend_from_slice(&(number as u32).to_be_bytes());
            }
            if cell.encoded().len() >= SHARED_CELL_BYTES {
                out.share(cell.encoded().clone());
            } else {
                out.extend_from_slice(cell.encoded());
            }
        }
    }
    Ok(out)
}

/// The edits of a payload, or what is wrong with it. Cells share the payload's memory.
pub(super) fn decode_payload(payload: &Bytes, sequence_id: u64) -> std::result::Result<Vec<WalEdit>, String> {
    let short = || "a log record ends before its content".to_owned();
    let mut rest = &payload[..];
    let count = take_u32(&mut rest).ok_or_else(short)?;
    let mut edits = Vec::new();
    for _ in 0..count {
        let region = take_u64(&mut rest).ok_or_else(short)?;
        let cell_count = take_u32(&mut rest).ok_or_else(short)?;
        // The claimed number is believed only as far as the bytes can hold it.
        let mut cells = Vec::with_capacity((cell_count as usize).min(rest.len() / CELL_HEADER_LEN));
        for _ in 0..cell_count {
            let mut length = || take_u32(&mut rest).map(|length| length as usize).ok_or_else(short);
            let (length, key_len, value_len) = (length()?, length()?, length()?);
            let start = payload.len() - rest.len();
            rest = rest.get(length..).ok_or_else(short)?;
            let cell = Cell::from_encoded(payload.slice(start..start + length), key_len, value_len, sequence_id);
            cells.push(cell.map_err(|malformed| malformed.to_string())?);
        }
        edits.push(WalEdit { region, cells });
    }
    if rest.is_empty() { Ok(edits) } else { Err("a log record is longer than its content".to_owned()) }
}
