//! Reading out of a log's bytes, with the difference that matters at its end: bytes that are not there, and bytes that are wrong.

use bytes::Bytes;

/// Why an entry could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The log ends in the middle of it.
    Torn,
    /// It is no entry.
    Damaged(String),
}

/// The result of reading a part of an entry.
pub(super) type Read<T> = Result<T, Fault>;

/// A fault in the bytes themselves.
pub(super) fn damaged<T>(what: impl Into<String>) -> Read<T> {
    Err(Fault::Damaged(what.into()))
}

/// A cursor over a log.
#[derive(Clone, Debug)]
pub(super) struct LogInput {
    bytes: Bytes,
    at: usize,
}

impl LogInput {
    pub(super) fn new(bytes: Bytes) -> LogInput {
        LogInput { bytes, at: 0 }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Leaves out what is behind `end`.
    pub(super) fn cut(&mut self, end: usize) {
        self.bytes.truncate(end);
    }

    /// True if what is left cannot hold an entry: the beginning of a trailer, or zeros that a file system left.
    pub(super) fn is_only_a_tail(&self) -> bool {
        const TRAILER: [u8; 8] = *b"\0\0\0\0LAWP";
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        TRAILER.starts_with(rest) || rest.iter().all(|byte| *byte == 0)
    }

    pub(super) fn take(&mut self, count: usize) -> Read<Bytes> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len()).ok_or(Fault::Torn)?;
        let taken = self.bytes.slice(self.at..end);
        self.at = end;
        Ok(taken)
    }

    pub(super) fn u8(&mut self) -> Read<u8> {
        let byte = *self.bytes.get(self.at).ok_or(Fault::Torn)?;
        self.at += 1;
        Ok(byte)
    }

    /// A 4-byte length, which Java writes as int.
    pub(super) fn length(&mut self) -> Read<usize> {
        let bytes = self.take(4)?;
        let number = bytes.first_chunk::<4>().map_or(-1, |be| i32::from_be_bytes(*be));
        usize::try_from(number).or_else(|_| damaged("a length is negative"))
    }

    /// A length as a varint of at most 32 bits.
    pub(super) fn varint(&mut self) -> Read<usize> {
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.u8()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return if value > i32::MAX as u32 { damaged("a length is negative") } else { Ok(value as usize) };
            }
        }
        damaged("a length is no 32-bit number")
    }
}
