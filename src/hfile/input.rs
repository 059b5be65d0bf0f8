//! Reading numbers and lengths out of untrusted bytes: big-endian integers, Hadoop's VLong, 7-bit varints.

use crate::error::Error;
use bytes::{BufMut, Bytes};
use std::borrow::Cow;
use std::path::Path;

/// What is wrong with some bytes. Format code is pure and knows no file; the reader adds file and offset ([`Damage::at`]).
#[derive(Debug)]
pub(crate) struct Damage(Cow<'static, str>);

/// The result of parsing bytes.
pub(crate) type Parsed<T> = Result<T, Damage>;

impl Damage {
    pub(crate) fn new(what: impl Into<Cow<'static, str>>) -> Damage {
        Damage(what.into())
    }

    /// The same damage, found in the cell of that number of a data block.
    pub(crate) fn in_cell(self, number: usize) -> Damage {
        Damage(Cow::Owned(format!("cell {number} of a data block: {}", self.0)))
    }

    /// The engine's error for this damage at `offset` of `file`.
    pub(crate) fn at(self, file: &Path, offset: u64) -> Error {
        Error::corruption(file, offset, self.0)
    }
}

const ENDS_EARLY: Damage = Damage(Cow::Borrowed("a structure ends before its lengths say"));

/// A cursor over bytes; every read checks that the bytes are there.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn take(&mut self, count: usize) -> Parsed<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(ENDS_EARLY)?;
        self.rest = rest;
        Ok(taken)
    }

    fn chunk<const N: usize>(&mut self) -> Parsed<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(ENDS_EARLY)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Parsed<u8> {
        self.chunk::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Parsed<u16> {
        self.chunk().map(u16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Parsed<i32> {
        self.chunk().map(i32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Parsed<i64> {
        self.chunk().map(i64::from_be_bytes)
    }

    /// A 4-byte length or count, which Java writes as int: never negative.
    pub(crate) fn length(&mut self) -> Parsed<usize> {
        usize::try_from(self.i32()?).map_err(|_| Damage::new("a length is negative"))
    }

    /// An 8-byte file offset: never negative.
    pub(crate) fn offset(&mut self) -> Parsed<u64> {
        u64::try_from(self.i64()?).map_err(|_| Damage::new("an offset is negative"))
    }

    /// Hadoop's `WritableUtils` VLong.
    pub(crate) fn vlong(&mut self) -> Parsed<i64> {
        let first = self.u8()? as i8;
        if first >= -112 {
            return Ok(i64::from(first));
        }
        let negative = first < -120;
        let count = if negative { -120 - i32::from(first) } else { -112 - i32::from(first) };
        // Mostly there are eight bytes to be taken at once.
        let value = match (self.rest.first_chunk::<8>(), count as usize) {
            (Some(eight), count @ 1..=8) => {
                let value = u64::from_be_bytes(*eight) >> (64 - 8 * count);
                self.rest = self.rest.get(count..).unwrap_or(&[]);
                value as i64
            }
            (_, count) => self.take(count)?.iter().fold(0i64, |value, byte| (value << 8) | i64::from(*byte)),
        };
        Ok(if negative { !value } else { value })
    }

    /// A length written as Hadoop VInt.
    pub(crate) fn vint_length(&mut self) -> Parsed<usize> {
        u32::try_from(self.vlong()?).map(|n| n as usize).map_err(|_| Damage::new("a length is negative"))
    }

    /// A 7-bit little-endian varint of at most 32 bits (HBase `ByteBufferUtils.readCompressedInt`, protobuf's raw varint32).
    pub(crate) fn compressed_int(&mut self) -> Parsed<usize> {
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.u8()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value as usize);
            }
        }
        Err(Damage::new("a compressed integer is too long"))
    }
}

/// Appends Hadoop's VLong; returns its length.
pub(crate) fn put_vlong(out: &mut Vec<u8>, value: i64) -> usize {
    if (-112..=127).contains(&value) {
        out.put_u8(value as u8);
        return 1;
    }
    let (magnitude, base) = if value < 0 { (!value, -120i8) } else { (value, -112i8) };
    let count = 8 - magnitude.leading_zeros() as usize / 8;
    // All nine bytes at once; those that are too many are cut off again.
    let len = out.len();
    out.put_i8(base - count as i8);
    out.put_i64(magnitude << (64 - 8 * count));
    out.truncate(len + 1 + count);
    1 + count
}

/// Bytes that [`put_vlong`] appends.
pub(crate) fn vlong_len(value: i64) -> usize {
    if (-112..=127).contains(&value) {
        return 1;
    }
    let magnitude = if value < 0 { !value } else { value };
    9 - magnitude.leading_zeros() as usize / 8
}

/// Appends a 7-bit varint.
pub(crate) fn put_compressed_int(out: &mut Vec<u8>, mut value: usize) {
    while value > 0x7f {
        out.put_u8((value as u8) | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

/// The part of `whole` that `part`, a slice borrowed from it, covers, sharing its bytes.
pub(crate) fn share(whole: &Bytes, part: &[u8]) -> Bytes {
    if part.is_empty() { Bytes::new() } else { whole.slice_ref(part) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_and_truncations_are_refused() {
        let edges = [0, 1, 127, 128, -1, -112, -113, 255, 256, 65535, 1 << 40, i64::MAX, i64::MIN, -256, -257];
        for value in edges {
            let mut out = Vec::new();
            assert_eq!(put_vlong(&mut out, value), out.len());
            assert_eq!(vlong_len(value), out.len());
            assert_eq!(Input::new(&out).vlong().unwrap(), value);
            for len in 0..out.len() {
                assert!(Input::new(&out[..len]).vlong().is_err());
            }
        }
        for value in [0usize, 127, 128, 16384, i32::MAX as usize] {
            let mut out = Vec::new();
            put_compressed_int(&mut out, value);
            assert_eq!(Input::new(&out).compressed_int().unwrap(), value);
        }
        assert!(Input::new(&[0xff; 9]).compressed_int().is_err());
    }
}
