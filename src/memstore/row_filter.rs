//! A bloom filter over the rows of a segment, which answers most lookups of absent rows without touching the tree.
//!
//! Blocked (one cache line per probe) and growing: a full layer is followed by one four times as large, so nothing is ever rehashed and
//! readers need no lock. A million rows are five layers.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use xxhash_rust::xxh3::xxh3_64;

/// Words of 64 bits in a block: one cache line.
const BLOCK_WORDS: usize = 8;
/// Rows per block. 512 bits over 40 rows with 6 bits each: about 1 % false positives.
const ROWS_PER_BLOCK: u64 = 40;
const BITS_PER_ROW: u32 = 6;
const FIRST_LAYER_BLOCKS: u64 = 32;
const GROWTH: u64 = 4;
const LAYERS: usize = 14;

/// Rows of one segment. Additions come one at a time (under the segment's lock); probes come at any time.
#[derive(Debug, Default)]
pub(super) struct RowFilter {
    layers: [OnceLock<Box<[AtomicU64]>>; LAYERS],
    rows: AtomicU64,
}

impl RowFilter {
    /// Adds a row unless it seems to be there.
    pub(super) fn add(&self, row: &[u8]) {
        let hash = xxh3_64(row);
        if self.contains_hash(hash) {
            return;
        }
        let rows = self.rows.fetch_add(1, Ordering::Relaxed);
        let (index, blocks) = layer_of(rows);
        let Some(layer) = self.layers.get(index) else { return };
        let words = layer.get_or_init(|| (0..blocks as usize * BLOCK_WORDS).map(|_| AtomicU64::new(0)).collect());
        for (word, bit) in probes(hash, words) {
            word.fetch_or(bit, Ordering::Release);
        }
    }

    /// False if `row` was never added.
    pub(super) fn may_contain(&self, row: &[u8]) -> bool {
        self.contains_hash(xxh3_64(row))
    }

    /// Bytes allocated.
    pub(super) fn heap_bytes(&self) -> u64 {
        self.layers.iter().filter_map(OnceLock::get).map(|words| words.len() as u64 * 8).sum()
    }

    fn contains_hash(&self, hash: u64) -> bool {
        if self.rows.load(Ordering::Acquire) > rows_in_all_layers() {
            return true;
        }
        self.layers
            .iter()
            .map_while(OnceLock::get)
            .any(|words| probes(hash, words).all(|(word, bit)| word.load(Ordering::Acquire) & bit != 0))
    }
}

/// The layer that takes the row number `rows`, and its size in blocks.
fn layer_of(rows: u64) -> (usize, u64) {
    let (mut index, mut blocks, mut end) = (0, FIRST_LAYER_BLOCKS, FIRST_LAYER_BLOCKS * ROWS_PER_BLOCK);
    while rows >= end && index < LAYERS {
        index += 1;
        blocks *= GROWTH;
        end += blocks * ROWS_PER_BLOCK;
    }
    (index, blocks)
}

fn rows_in_all_layers() -> u64 {
    (0..LAYERS as u32).map(|layer| FIRST_LAYER_BLOCKS * GROWTH.pow(layer) * ROWS_PER_BLOCK).sum()
}

/// The words and bits of one row: the upper half of the hash chooses the block, six bits each of the rest a word and a bit in turn.
fn probes(hash: u64, words: &[AtomicU64]) -> impl Iterator<Item = (&AtomicU64, u64)> {
    let blocks = (words.len() / BLOCK_WORDS) as u64;
    let block = (((hash >> 32) * blocks) >> 32) as usize * BLOCK_WORDS;
    let mut bits = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (0..BITS_PER_ROW).filter_map(move |_| {
        let word = words.get(block + (bits >> 61) as usize)?;
        let bit = 1u64 << (bits >> 55 & 63);
        bits = bits.rotate_left(10);
        Some((word, bit))
    })
}
