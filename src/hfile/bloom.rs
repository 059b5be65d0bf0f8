//! Bloom filters in chunks (HBase `BloomFilterChunk`, `BloomFilterUtil`, `CompoundBloomFilter`; hbase.md B7).
//!
//! A chunk block holds bits only. The meta block is:
//!
//! ```text
//! u32 version 3 | u64 bytes of all chunks | u32 hashes | u32 hash kind (1 murmur2) | u64 keys | u64 keys that would fit | u32 chunks
//! | vint length, comparator class | root-format index: first key of each chunk
//! ```

use super::index::IndexBlock;
use super::input::{Damage, Input, Parsed};
use crate::cell::{Cell, CellType, LATEST_TIMESTAMP};
use bytes::{BufMut, Bytes};

/// Bytes of a full chunk (`io.storefile.bloom.block.size`).
pub(crate) const BLOOM_CHUNK_LEN: usize = 128 * 1024;
/// Wanted share of false positives (`io.storefile.bloom.error.rate`).
const ERROR_RATE: f64 = 0.01;
/// A chunk with few keys is folded in half up to this often (`io.storefile.bloom.max.fold`: its size is a multiple of 2^7).
const FOLDS_MAX: u32 = 7;
const VERSION: i32 = 3;
const MURMUR2: i32 = 1;
/// The comparator of a row-column filter's chunk index.
pub(crate) const ROWCOL_COMPARATOR: &str = "org.apache.hadoop.hbase.CellComparatorImpl";

/// MurmurHash2 as HBase computes it: bytes of the tail are sign-extended (`org.apache.hadoop.hbase.util.MurmurHash`).
pub(crate) fn murmur2(key: &[u8], seed: i32) -> i32 {
    const M: i32 = 0x5bd1_e995;
    let mut hash = seed ^ key.len() as i32;
    let mut words = key.chunks_exact(4);
    for word in &mut words {
        let mut k = word.first_chunk::<4>().map_or(0, |le| i32::from_le_bytes(*le));
        k = k.wrapping_mul(M);
        k ^= (k as u32 >> 24) as i32;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    let tail = words.remainder();
    for (index, byte) in tail.iter().enumerate().rev() {
        hash ^= i32::from(*byte as i8) << (8 * index);
    }
    if !tail.is_empty() {
        hash = hash.wrapping_mul(M);
    }
    hash ^= (hash as u32 >> 13) as i32;
    hash = hash.wrapping_mul(M);
    hash ^ (hash as u32 >> 15) as i32
}

/// The two hashes from which all bit positions of a key come.
#[derive(Clone, Copy)]
struct Hashes(i32, i32);

impl Hashes {
    fn of(key: &[u8]) -> Hashes {
        let first = murmur2(key, 0);
        Hashes(first, murmur2(key, first))
    }

    fn bits(self, count: u32, len: usize) -> impl Iterator<Item = usize> {
        // No sum is larger than 2^31: more bits than that make no difference to the remainder.
        let bits = u32::try_from(len as u64 * 8).unwrap_or(u32::MAX).max(1);
        (0..count as i32).map(move |i| {
            let sum = self.0.wrapping_add(i.wrapping_mul(self.1));
            (sum.unsigned_abs() % bits) as usize
        })
    }
}

/// How chunks of a filter are made: bytes, hashes, keys that fit (HBase `BloomFilterUtil.createBySize`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct BloomParameters {
    pub chunk_len: usize,
    pub hashes: u32,
    pub keys_max: u64,
}

impl BloomParameters {
    /// For chunks of about `chunk_len` bytes; row-column filters are asked twice for each read and are made twice as exact.
    pub(crate) fn new(chunk_len: usize, row_column: bool) -> BloomParameters {
        let rate = if row_column { 1.0 - (1.0 - ERROR_RATE).sqrt() } else { ERROR_RATE };
        let chunk_len = chunk_len.max(1).next_multiple_of(1 << FOLDS_MAX);
        let bits = chunk_len as f64 * 8.0;
        let ideal = (bits * (2f64.ln().powi(2) / -rate.ln())).floor();
        let hashes = (2f64.ln() * (bits / ideal).floor()).ceil();
        let keys_max = (-bits / hashes * (1.0 - (rate.ln() / hashes).exp()).ln()) as u64;
        BloomParameters { chunk_len, hashes: hashes as u32, keys_max }
    }
}

/// A chunk that is being filled.
pub(crate) struct BloomChunk {
    bits: Vec<u8>,
    hashes: u32,
    keys: u64,
    keys_max: u64,
    pub first_key: Vec<u8>,
}

impl BloomChunk {
    pub(crate) fn new(parameters: BloomParameters, first_key: &[u8]) -> BloomChunk {
        BloomChunk {
            bits: vec![0; parameters.chunk_len],
            hashes: parameters.hashes,
            keys: 0,
            keys_max: parameters.keys_max,
            first_key: first_key.to_vec(),
        }
    }

    pub(crate) fn add(&mut self, key: &[u8]) {
        for bit in Hashes::of(key).bits(self.hashes, self.bits.len()) {
            if let Some(byte) = self.bits.get_mut(bit / 8) {
                *byte |= 1 << (bit % 8);
            }
        }
        self.keys += 1;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.keys >= self.keys_max
    }

    /// Folds the bits in half while twice the keys would still fit; returns the bits and how many keys they are made for.
    pub(crate) fn finish(mut self) -> (Vec<u8>, u64) {
        while self.bits.len().is_multiple_of(2) && self.keys_max > 2 * self.keys {
            let upper = self.bits.split_off(self.bits.len() / 2);
            self.bits.iter_mut().zip(upper).for_each(|(low, high)| *low |= high);
            self.keys_max /= 2;
        }
        (self.bits, self.keys_max)
    }
}

/// Whether a chunk may hold the key.
pub(crate) fn chunk_contains(bits: &[u8], hashes: u32, key: &[u8]) -> bool {
    !bits.is_empty()
        && Hashes::of(key)
            .bits(hashes, bits.len())
            .all(|bit| bits.get(bit / 8).is_some_and(|byte| byte & (1 << (bit % 8)) != 0))
}

/// The key of a row-column filter: a flat key without family.
pub(crate) fn row_column_key(row: &[u8], qualifier: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.put_u16(row.len() as u16);
    out.put_slice(row);
    out.put_u8(0);
    out.put_slice(qualifier);
    out.put_i64(LATEST_TIMESTAMP);
    out.put_u8(CellType::Maximum.code());
}

/// A filter's meta block: what is kept of it while the file is open.
#[derive(Clone, Debug)]
pub(crate) struct BloomMeta {
    pub total_len: u64,
    pub hashes: u32,
    pub keys: u64,
    pub keys_max: u64,
    /// True when keys are flat keys, compared as cells.
    pub row_column: bool,
    pub chunks: IndexBlock,
}

impl BloomMeta {
    pub(crate) fn parse(payload: &Bytes) -> Parsed<BloomMeta> {
        let mut input = Input::new(payload);
        let version = input.i32()?;
        if version != VERSION {
            return Err(Damage::new(format!("a bloom filter has the unknown version {version}")));
        }
        let total_len = input.offset()?;
        let hashes = input.length()?;
        let kind = input.i32()?;
        if kind != MURMUR2 {
            return Err(Damage::new(format!("a bloom filter has the unknown hash kind {kind}")));
        }
        if hashes == 0 || hashes > 64 {
            return Err(Damage::new(format!("a bloom filter cannot have {hashes} hashes")));
        }
        let (keys, keys_max) = (input.offset()?, input.offset()?);
        let count = input.length()?;
        let comparator_len = input.vint_length()?;
        let comparator = input.take(comparator_len)?;
        let (chunks, rest) = IndexBlock::parse_root(&super::input::share(payload, input.rest()), count)?;
        if !rest.is_empty() {
            return Err(Damage::new("a bloom filter's index has bytes behind it"));
        }
        Ok(BloomMeta { total_len, hashes: hashes as u32, keys, keys_max, row_column: !comparator.is_empty(), chunks })
    }

    /// The index of the chunk that would hold `key`; `None` when `key` sorts before all.
    pub(crate) fn chunk_of(&self, key: &[u8]) -> Option<usize> {
        if self.row_column {
            self.chunks.find_by(|first| crate::cell::compare_flat_keys(first, key))
        } else {
            self.chunks.find_by(|first| first.cmp(key))
        }
    }
}

/// The meta block of a filter.
pub(crate) fn encode_bloom_meta(meta: &BloomTotals, chunks: &super::index::IndexChunk, row_column: bool) -> Vec<u8> {
    let mut out = Vec::new();
    out.put_i32(VERSION);
    out.put_u64(meta.total_len);
    out.put_u32(meta.hashes);
    out.put_i32(MURMUR2);
    out.put_u64(meta.keys);
    out.put_u64(meta.keys_max);
    out.put_u32(chunks.len() as u32);
    let comparator = if row_column { ROWCOL_COMPARATOR } else { "" };
    super::input::put_vlong(&mut out, comparator.len() as i64);
    out.put_slice(comparator.as_bytes());
    chunks.encode_root(&mut out);
    out
}

/// Sums over the chunks of a filter that is written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BloomTotals {
    pub total_len: u64,
    pub hashes: u32,
    pub keys: u64,
    pub keys_max: u64,
}

/// True when the filter has to know the row of this marker: it hides cells of every column.
pub(crate) fn is_family_marker(cell: &Cell) -> bool {
    matches!(cell.cell_type(), CellType::DeleteFamily | CellType::DeleteFamilyVersion)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_have_hbases_sizes() {
        let row = BloomParameters::new(BLOOM_CHUNK_LEN, false);
        assert_eq!((row.chunk_len, row.hashes, row.keys_max), (131_072, 7, 109_306));
        assert_eq!(BloomParameters::new(BLOOM_CHUNK_LEN, true).hashes, 8);
    }

    #[test]
    fn folded_chunks_keep_every_key_and_few_others() {
        for count in [1u32, 30, 1000, 50_000] {
            let parameters = BloomParameters::new(BLOOM_CHUNK_LEN, false);
            let mut chunk = BloomChunk::new(parameters, b"");
            (0..count).for_each(|i| chunk.add(format!("row-{i}").as_bytes()));
            let (bits, _) = chunk.finish();
            for i in 0..count {
                assert!(chunk_contains(&bits, parameters.hashes, format!("row-{i}").as_bytes()));
            }
            let wrong = (0..10_000).filter(|i| chunk_contains(&bits, 7, format!("other-{i}").as_bytes())).count();
            assert!(wrong < 400, "{wrong} false positives of 10000 at {count} keys");
        }
    }

    #[test]
    fn the_hash_takes_tail_bytes_as_signed() {
        // A byte over 127 in the tail spreads its sign over the higher bits.
        assert_ne!(murmur2(b"\x80", 0), murmur2(b"\x80\0", 0));
        assert_eq!(murmur2(b"", 0), 0);
    }
}
