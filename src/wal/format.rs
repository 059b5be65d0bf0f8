//! Bytes of a log segment: its header, record headers, payloads (docs/wal-format.md). Pure; all numbers big-endian.

use super::WalEdit;
use super::buffer::{Buffer, SHARED_CELL_BYTES};
use crate::cell::Cell;
use crate::error::{Error, Result};
use bytes::Bytes;

/// First bytes of a segment.
const MAGIC: [u8; 8] = *b"CELLFSWL";
/// The format version of what is written.
pub(super) const VERSION: u32 = 2;
/// An earlier one, which is still read: longer record headers, and every number of a payload in four or eight bytes.
pub(super) const VERSION_1: u32 = 1;
/// Bytes of a segment header.
pub(super) const SEGMENT_HEADER_LEN: usize = 48;
/// Bytes of a record header.
pub(super) const RECORD_HEADER_LEN: usize = 25;
/// The same in version 1.
const RECORD_HEADER_LEN_1: usize = 37;
/// The least bytes in front of a cell: its key's length, its value's and its tags'.
const CELL_HEADER_LEN: usize = 3;
/// `unsynced` of a record header that claims nothing.
const UNSYNCED_MAX: u32 = u32::MAX;

/// What a segment says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    /// Version of the format of its records.
    pub(super) version: u32,
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
    /// The place of its records.
    pub(super) fn place(&self) -> Place {
        Place { version: self.version, segment: self.segment, base: self.base }
    }

    /// magic | u32 version | u64 segment | u64 base | u64 synced | u64 next sequence id | u32 crc of what is before.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SEGMENT_HEADER_LEN);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.version.to_be_bytes());
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
        if version != VERSION && version != VERSION_1 {
            return Err(BadSegmentHeader::Version(version));
        }
        let mut number = || take_u64(&mut fields).ok_or(damaged);
        let header = SegmentHeader {
            version,
            segment: number()?,
            base: number()?,
            synced: number()?,
            next_sequence_id: number()?,
        };
        // A file under another number's name is not what its name says.
        if header.segment == segment { Ok(header) } else { Err(damaged) }
    }
}

/// What the headers of a segment's records leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Version of the format.
    pub(super) version: u32,
    /// The segment's number.
    pub(super) segment: u64,
    /// Position in the log of its first record.
    pub(super) base: u64,
}

impl Place {
    /// The position in the log of what stands at `offset` of the segment.
    pub(super) fn position(&self, offset: u64) -> u64 {
        self.base.saturating_add(offset.saturating_sub(SEGMENT_HEADER_LEN as u64))
    }

    /// Bytes of its records' headers.
    pub(super) fn record_header_len(&self) -> usize {
        if self.version == VERSION_1 { RECORD_HEADER_LEN_1 } else { RECORD_HEADER_LEN }
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
    /// Position up to which the log was durable when the record was made.
    pub(super) synced: u64,
    pub(super) sequence_id: u64,
}

impl RecordHeader {
    /// u32 crc | u32 payload crc | u32 length | u8 kind | u32 bytes before the record that were not synced | u64 sequence id, for `offset` of a segment.
    pub(super) fn encode(&self, place: Place, offset: u64) -> [u8; RECORD_HEADER_LEN] {
        let mut tail = [0u8; RECORD_HEADER_LEN - 4];
        let kind = match self.kind {
            RecordKind::Edits => 1,
            RecordKind::Mark => 2,
            RecordKind::Cancelled => 3,
        };
        let unsynced = place.position(offset).saturating_sub(self.synced);
        let parts: [&[u8]; 5] = [
            &self.payload_crc.to_be_bytes(),
            &self.length.to_be_bytes(),
            &[kind],
            &u32::try_from(unsynced).unwrap_or(UNSYNCED_MAX).to_be_bytes(),
            &self.sequence_id.to_be_bytes(),
        ];
        fill(&mut tail, &parts);
        let mut out = [0u8; RECORD_HEADER_LEN];
        fill(&mut out, &[&header_crc(place, offset, &tail).to_be_bytes(), &tail]);
        out
    }

    /// The header at `offset` of a segment, or `None` where there is none.
    pub(super) fn decode(bytes: &[u8], place: Place, offset: u64) -> Option<RecordHeader> {
        let bytes = bytes.get(..place.record_header_len())?;
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
        let synced = if place.version == VERSION_1 {
            // Compared before the checksum: the search for records behind damage tries every byte.
            if take_u64(&mut rest)? != place.segment {
                return None;
            }
            take_u64(&mut rest)?
        } else {
            match take_u32(&mut rest)? {
                UNSYNCED_MAX => 0,
                unsynced => place.position(offset).saturating_sub(u64::from(unsynced)),
            }
        };
        let sequence_id = take_u64(&mut rest)?;
        let header = RecordHeader { payload_crc, length, kind, synced, sequence_id };
        (header_crc(place, offset, tail) == u32::from_be_bytes(*crc)).then_some(header)
    }
}

/// Segment and offset go into the checksum: a record is valid only where it was written, not where a value holds a copy of it. (Version 1 has the segment
/// in the header itself.)
fn header_crc(place: Place, offset: u64, tail: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    if place.version != VERSION_1 {
        hasher.update(&place.segment.to_be_bytes());
    }
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

/// Bytes of a number in the form of [`push_varint`].
fn varint_len(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

/// Seven bits a byte, the lowest first; a byte with its high bit set is not the last.
fn push_varint(out: &mut Buffer, mut number: u64) {
    let mut bytes = [0u8; 10];
    let len = varint_len(number);
    for (index, byte) in bytes.iter_mut().take(len).enumerate() {
        *byte = (number & 0x7f) as u8 | if index + 1 < len { 0x80 } else { 0 };
        number >>= 7;
    }
    out.extend_from_slice(bytes.get(..len).unwrap_or(&[]));
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The lengths that stand in front of a cell: its key's, its value's and what follows them (tags).
fn cell_lengths(cell: &Cell) -> [u64; 3] {
    let (key, value) = (cell.key_len(), cell.value_len());
    [key, value, cell.encoded().len().saturating_sub(key + value)].map(|length| length as u64)
}

/// A whole record with its header still blank: the payload is encoded and summed before the log's mutex is taken. Large cells are shared with it.
///
/// Payload = edits, each region | cells, each key length | value length | length of what follows them | the cell as [`Cell::encoded`], tags
/// included; counts, lengths and regions as varints.
///
/// # Errors
/// [`Error::CellTooLarge`] for more than 4 GB.
pub(super) fn encode_payload(edits: &[WalEdit]) -> Result<Buffer> {
    let (mut length, mut shared) = (varint_len(edits.len() as u64), 0);
    for edit in edits {
        length += varint_len(edit.region) + varint_len(edit.cells.len() as u64);
        for cell in &edit.cells {
            let size = cell.encoded().len();
            length += cell_lengths(cell).map(varint_len).iter().sum::<usize>() + size;
            shared += if size >= SHARED_CELL_BYTES { size } else { 0 };
        }
    }
    if u32::try_from(length).is_err() {
        return Err(Error::CellTooLarge { size: length as u64, limit: u64::from(u32::MAX) });
    }
    let mut out = Buffer::with_capacity(RECORD_HEADER_LEN + length - shared);
    out.extend_from_slice(&[0; RECORD_HEADER_LEN]);
    push_varint(&mut out, edits.len() as u64);
    for edit in edits {
        push_varint(&mut out, edit.region);
        push_varint(&mut out, edit.cells.len() as u64);
        for cell in &edit.cells {
            cell_lengths(cell).into_iter().for_each(|length| push_varint(&mut out, length));
            if cell.encoded().len() >= SHARED_CELL_BYTES {
                out.share(cell.encoded().clone());
            } else {
                out.extend_from_slice(cell.encoded());
            }
        }
    }
    Ok(out)
}

/// The numbers of a payload, as a version of the format has them.
struct Numbers<'a> {
    version: u32,
    rest: &'a [u8],
}

impl Numbers<'_> {
    fn count(&mut self) -> Option<usize> {
        let count =
            if self.version == VERSION_1 { u64::from(take_u32(&mut self.rest)?) } else { take_varint(&mut self.rest)? };
        usize::try_from(count).ok()
    }

    fn region(&mut self) -> Option<u64> {
        if self.version == VERSION_1 { take_u64(&mut self.rest) } else { take_varint(&mut self.rest) }
    }

    /// Lengths of a cell, its key and its value. Version 1 has them in this order, later ones as [`cell_lengths`].
    fn cell(&mut self) -> Option<(usize, usize, usize)> {
        let (first, second, third) = (self.count()?, self.count()?, self.count()?);
        if self.version == VERSION_1 {
            return Some((first, second, third));
        }
        Some((first.checked_add(second)?.checked_add(third)?, first, second))
    }
}

/// The edits of a payload, or what is wrong with it. Cells share the payload's memory.
pub(super) fn decode_payload(
    payload: &Bytes,
    version: u32,
    sequence_id: u64,
) -> std::result::Result<Vec<WalEdit>, String> {
    let short = || "a log record ends before its content".to_owned();
    let mut numbers = Numbers { version, rest: &payload[..] };
    let count = numbers.count().ok_or_else(short)?;
    let mut edits = Vec::new();
    for _ in 0..count {
        let region = numbers.region().ok_or_else(short)?;
        let cell_count = numbers.count().ok_or_else(short)?;
        // The claimed number is believed only as far as the bytes can hold it.
        let mut cells = Vec::with_capacity(cell_count.min(numbers.rest.len() / CELL_HEADER_LEN));
        for _ in 0..cell_count {
            let (length, key_len, value_len) = numbers.cell().ok_or_else(short)?;
            let start = payload.len() - numbers.rest.len();
            numbers.rest = numbers.rest.get(length..).ok_or_else(short)?;
            let cell = Cell::from_encoded(payload.slice(start..start + length), key_len, value_len, sequence_id);
            cells.push(cell.map_err(|malformed| malformed.to_string())?);
        }
        edits.push(WalEdit { region, cells });
    }
    if numbers.rest.is_empty() { Ok(edits) } else { Err("a log record is longer than its content".to_owned()) }
}
