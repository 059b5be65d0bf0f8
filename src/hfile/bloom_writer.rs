//! Writing a bloom filter chunk by chunk between the data blocks (HBase `CompoundBloomFilterWriter`, `BloomContext`).

use super::bloom::{BloomChunk, BloomParameters, BloomTotals, encode_bloom_meta, row_column_key};
use super::index::{BlockPointer, IndexChunk};
use crate::cell::Cell;
use crate::schema::BloomType;
use std::collections::VecDeque;

/// A filter that is being written. Keys come in cell order; a key that repeats the one before is left out.
pub(crate) struct BloomWriter {
    kind: BloomType,
    parameters: BloomParameters,
    chunk: Option<BloomChunk>,
    full: VecDeque<BloomChunk>,
    chunks: IndexChunk,
    totals: BloomTotals,
    last_key: Option<Vec<u8>>,
    key: Vec<u8>,
}

impl BloomWriter {
    /// A filter of `kind`, which is not NONE.
    pub(crate) fn new(kind: BloomType, chunk_len: usize) -> BloomWriter {
        let parameters = BloomParameters::new(chunk_len, kind == BloomType::RowCol);
        BloomWriter {
            kind,
            parameters,
            chunk: None,
            full: VecDeque::new(),
            chunks: IndexChunk::default(),
            totals: BloomTotals { hashes: parameters.hashes, ..BloomTotals::default() },
            last_key: None,
            key: Vec::new(),
        }
    }

    /// Adds a cell; `same_row` if its row is that of the cell before, which was added too.
    pub(crate) fn add(&mut self, cell: &Cell, same_row: bool) {
        if same_row && self.kind != BloomType::RowCol {
            return;
        }
        match self.kind {
            BloomType::RowCol => row_column_key(cell.row(), cell.qualifier(), &mut self.key),
            BloomType::RowPrefixFixedLength(length) => {
                self.key.clear();
                self.key.extend_from_slice(cell.row().get(..length as usize).unwrap_or(cell.row()));
            }
            BloomType::Row | BloomType::None => {
                self.key.clear();
                self.key.extend_from_slice(cell.row());
            }
        }
        if self.last_key.as_ref() == Some(&self.key) {
            return;
        }
        if self.chunk.as_ref().is_some_and(BloomChunk::is_full) {
            self.full.extend(self.chunk.take());
        }
        self.chunk.get_or_insert_with(|| BloomChunk::new(self.parameters, &self.key)).add(&self.key);
        self.totals.keys += 1;
        std::mem::swap(self.last_key.get_or_insert_default(), &mut self.key);
    }

    /// True if a chunk is to be written as an inline block.
    pub(crate) fn chunk_is_due(&self) -> bool {
        !self.full.is_empty()
    }

    /// The next chunk to be written as an inline block; with `closing`, the unfinished one too.
    pub(crate) fn next_chunk(&mut self, closing: bool) -> Option<(Vec<u8>, Vec<u8>)> {
        let chunk = self.full.pop_front().or_else(|| if closing { self.chunk.take() } else { None })?;
        let first_key = chunk.first_key.clone();
        let (bits, keys_max) = chunk.finish();
        self.totals.total_len += bits.len() as u64;
        self.totals.keys_max += keys_max;
        Some((bits, first_key))
    }

    /// Notes where a chunk has been written.
    pub(crate) fn chunk_written(&mut self, first_key: &[u8], pointer: BlockPointer) {
        self.chunks.add(first_key, pointer);
    }

    pub(crate) fn keys(&self) -> u64 {
        self.totals.keys
    }

    /// Bytes of bits written.
    pub(crate) fn total_len(&self) -> u64 {
        self.totals.total_len
    }

    pub(crate) fn last_key(&self) -> Option<&[u8]> {
        self.last_key.as_deref()
    }

    pub(crate) fn encode_meta(&self) -> Vec<u8> {
        encode_bloom_meta(&self.totals, &self.chunks, self.kind == BloomType::RowCol)
    }
}
