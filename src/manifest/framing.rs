//! The manifest file as a log of records: framing, writing order, and telling a torn tail from damage (docs/manifest-format.md).

use crate::error::{Error, Result};
use crate::vfs::File;

/// First bytes of a manifest.
const MAGIC: [u8; 8] = *b"CELLFSMF";
/// The only format version so far.
const VERSION: u32 = 1;
/// Bytes of the file header.
pub(super) const FILE_HEADER_LEN: usize = 24;
/// Bytes of a record header.
pub(super) const RECORD_HEADER_LEN: usize = 13;
/// Bytes read at once when looking for records behind damage.
const SCAN_CHUNK: usize = 1 << 16;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// The edits of one commit.
    Edits,
    /// Nothing, but proof that everything before it was durable when it was written.
    Mark,
}

impl RecordKind {
    fn code(self) -> u8 {
        match self {
            RecordKind::Edits => 1,
            RecordKind::Mark => 2,
        }
    }

    fn from_code(code: u8) -> Option<RecordKind> {
        match code {
            1 => Some(RecordKind::Edits),
            2 => Some(RecordKind::Mark),
            _ => None,
        }
    }
}

/// magic | u32 version | u64 number | u32 crc of the 20 bytes before.
pub(super) fn encode_file_header(number: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(FILE_HEADER_LEN);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_be_bytes());
    out.extend_from_slice(&number.to_be_bytes());
    let crc = crc32fast::hash(&out);
    out.extend_from_slice(&crc.to_be_bytes());
    out
}

/// The header and payload of a record that will stand at `offset` of manifest `number`.
///
/// # Errors
/// [`Error::InvalidArgument`] for a payload over 4 GB.
pub(super) fn encode_record(number: u64, offset: u64, kind: RecordKind, payload: &[u8]) -> Result<Vec<u8>> {
    let length = u32::try_from(payload.len()).map_err(|_| Error::invalid("a manifest record over 4 GB"))?;
    let header = RecordHeader { payload_crc: crc32fast::hash(payload), length, kind };
    let mut out = Vec::with_capacity(RECORD_HEADER_LEN + payload.len());
    out.extend_from_slice(&header.crc(number, offset).to_be_bytes());
    out.extend_from_slice(&header.tail());
    out.extend_from_slice(payload);
    Ok(out)
}

struct RecordHeader {
    payload_crc: u32,
    length: u32,
    kind: RecordKind,
}

impl RecordHeader {
    fn tail(&self) -> [u8; RECORD_HEADER_LEN - 4] {
        let [a, b, c, d] = self.payload_crc.to_be_bytes();
        let [e, f, g, h] = self.length.to_be_bytes();
        [a, b, c, d, e, f, g, h, self.kind.code()]
    }

    /// The number and the offset go into the checksum: a record is valid only where it was written.
    fn crc(&self, number: u64, offset: u64) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&number.to_be_bytes());
        hasher.update(&offset.to_be_bytes());
        hasher.update(&self.tail());
        hasher.finalize()
    }

    fn decode(bytes: &[u8], number: u64, offset: u64) -> Option<RecordHeader> {
        let (crc, rest) = bytes.split_first_chunk::<4>()?;
        let (payload_crc, rest) = rest.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let kind = RecordKind::from_code(*rest.first()?)?;
        let header =
            RecordHeader { payload_crc: u32::from_be_bytes(*payload_crc), length: u32::from_be_bytes(*length), kind };
        (header.crc(number, offset) == u32::from_be_bytes(*crc)).then_some(header)
    }
}

/// Where a manifest ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// Offset behind the last whole record.
    pub(super) offset: u64,
    /// True if a commit was under way when the machine stopped.
    pub(super) torn: bool,
}

/// Calls `apply` with offset and payload of each commit.
///
/// # Errors
/// [`Error::Corruption`] for damage, also where only a later record proves that the damaged bytes had been durable;
/// [`Error::Unsupported`] for another format version; those of `apply` and of reading.
pub(super) fn replay(file: &dyn File, number: u64, mut apply: impl FnMut(u64, &[u8]) -> Result<()>) -> Result<End> {
    let len = file.len()?;
    check_file_header(file, number)?;
    let mut offset = FILE_HEADER_LEN as u64;
    while let Some((kind, payload)) = read_record(file, number, offset, len)? {
        if kind == RecordKind::Edits {
            apply(offset, &payload)?;
        }
        offset += (RECORD_HEADER_LEN + payload.len()) as u64;
    }
    if offset == FILE_HEADER_LEN as u64 {
        return Err(Error::corruption(
            file.path(),
            offset,
            "the first record, without which no manifest is put in force, is damaged",
        ));
    }
    let torn = inspect_tail(file, number, offset, len)?;
    Ok(End { offset, torn })
}

fn check_file_header(file: &dyn File, number: u64) -> Result<()> {
    let mut header = [0u8; FILE_HEADER_LEN];
    file.read_exact_at(&mut header, 0)?;
    if header.as_slice() == encode_file_header(number).as_slice() {
        return Ok(());
    }
    let damaged = || Error::corruption(file.path(), 0, "the file header is not that of this manifest");
    let (body, crc) = header.split_last_chunk::<4>().ok_or_else(damaged)?;
    let version = body.get(8..12).and_then(|bytes| bytes.first_chunk::<4>()).map(|bytes| u32::from_be_bytes(*bytes));
    match version {
        Some(version)
            if body.starts_with(&MAGIC) && crc32fast::hash(body) == u32::from_be_bytes(*crc) && version != VERSION =>
        {
            let what = format!("manifest format version {version} (this build knows {VERSION})");
            Err(Error::Unsupported { file: file.path().to_path_buf(), what })
        }
        _ => Err(damaged()),
    }
}

/// The record at `offset`, or `None` where none is whole.
fn read_record(file: &dyn File, number: u64, offset: u64, len: u64) -> Result<Option<(RecordKind, Vec<u8>)>> {
    let mut header = [0u8; RECORD_HEADER_LEN];
    if file.read_at(&mut header, offset)? < RECORD_HEADER_LEN {
        return Ok(None);
    }
    let Some(header) = RecordHeader::decode(&header, number, offset) else { return Ok(None) };
    let start = offset + RECORD_HEADER_LEN as u64;
    // The length is believed only within the file: nothing larger than the file is ever allocated.
    if u64::from(header.length) > len.saturating_sub(start) {
        return Ok(None);
    }
    let mut payload = vec![0u8; header.length as usize];
    file.read_exact_at(&mut payload, start)?;
    Ok((crc32fast::hash(&payload) == header.payload_crc).then_some((header.kind, payload)))
}

/// Looks at what follows the last whole record: zeroes (allocated in advance) are a clean end, anything else a torn commit, unless a record
/// stands behind it. A record is written only after everything before it was synced, so in that case the bad bytes had been good.
fn inspect_tail(file: &dyn File, number: u64, end: u64, len: u64) -> Result<bool> {
    let mut torn = false;
    let mut at = end;
    let mut chunk = vec![0u8; SCAN_CHUNK + RECORD_HEADER_LEN];
    while at < len {
        let read = file.read_at(&mut chunk, at)?;
        let bytes = chunk.get(..read).unwrap_or(&[]);
        let own = bytes.get(..SCAN_CHUNK.min(bytes.len())).unwrap_or(&[]);
        if own.iter().any(|byte| *byte != 0) {
            torn = true;
            for (index, window) in bytes.windows(RECORD_HEADER_LEN).enumerate().take(SCAN_CHUNK) {
                let candidate = at + index as u64;
                if candidate > end && RecordHeader::decode(window, number, candidate).is_some() {
                    let what = format!("a record is damaged, for the one at byte {candidate} was written after it");
                    return Err(Error::corruption(file.path(), end, what));
                }
            }
        }
        if own.is_empty() {
            break;
        }
        at += own.len() as u64;
    }
    Ok(torn)
}
