//! Block checksums: 4 bytes per chunk of header and payload (HBase `ChecksumUtil`, hbase.md B1).

use super::input::{Damage, Parsed};
use bytes::BufMut;

/// How a block is protected (HBase `ChecksumType`; the code is in each block's header).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ChecksumType {
    /// No protection; the space is reserved and zero.
    Null,
    /// CRC-32 (IEEE). What cellfs writes: it is the fastest here.
    #[default]
    Crc32,
    /// CRC-32C (Castagnoli). What HBase 2.6 writes.
    Crc32c,
}

impl ChecksumType {
    /// The code in a block header.
    pub(crate) fn code(self) -> u8 {
        match self {
            ChecksumType::Null => 0,
            ChecksumType::Crc32 => 1,
            ChecksumType::Crc32c => 2,
        }
    }

    pub(crate) fn from_code(code: u8) -> Parsed<ChecksumType> {
        match code {
            0 => Ok(ChecksumType::Null),
            1 => Ok(ChecksumType::Crc32),
            2 => Ok(ChecksumType::Crc32c),
            _ => Err(Damage::new(format!("a block has the unknown checksum type {code}"))),
        }
    }

    /// HBase's name of it.
    pub fn name(self) -> &'static str {
        match self {
            ChecksumType::Null => "NULL",
            ChecksumType::Crc32 => "CRC32",
            ChecksumType::Crc32c => "CRC32C",
        }
    }

    fn of(self, chunk: &[u8]) -> u32 {
        match self {
            ChecksumType::Null => 0,
            ChecksumType::Crc32 => crc32fast::hash(chunk),
            ChecksumType::Crc32c => crc32c::crc32c(chunk),
        }
    }
}

/// Bytes that the checksums of `data_len` bytes take.
pub(crate) fn checksums_len(data_len: usize, bytes_per_checksum: usize) -> usize {
    data_len.div_ceil(bytes_per_checksum.max(1)) * 4
}

/// Appends the checksums of `out[from..]` to `out`.
pub(crate) fn append_checksums(out: &mut Vec<u8>, from: usize, kind: ChecksumType, bytes_per_checksum: usize) {
    let sums: Vec<u32> =
        out.get(from..).unwrap_or(&[]).chunks(bytes_per_checksum.max(1)).map(|chunk| kind.of(chunk)).collect();
    for sum in sums {
        out.put_u32(sum);
    }
}

/// Compares the checksums of `data` with `stored`.
pub(crate) fn verify_checksums(data: &[u8], stored: &[u8], kind: ChecksumType, per_checksum: usize) -> Parsed<()> {
    if stored.len() != checksums_len(data.len(), per_checksum) {
        return Err(Damage::new("a block has the wrong number of checksum bytes"));
    }
    if kind == ChecksumType::Null {
        // The bytes are reserved and zero: anything else is a checksum whose type has been damaged away.
        let zero = stored.iter().all(|byte| *byte == 0);
        return if zero { Ok(()) } else { Err(Damage::new("a block without checksum type has checksums")) };
    }
    let chunks = data.chunks(per_checksum.max(1)).zip(stored.chunks_exact(4));
    for (index, (chunk, want)) in chunks.enumerate() {
        if kind.of(chunk).to_be_bytes() != want {
            return Err(Damage::new(format!("the {} of chunk {index} of a block is wrong", kind.name())));
        }
    }
    Ok(())
}
