//! Building the data index while blocks are written (HBase `HFileBlockIndex.BlockIndexWriter`).
//!
//! Leaves are written between the data blocks as they fill up. If none filled up, their entries are the root. A root over the chunk size
//! gets intermediate levels above the leaves.

use super::index::{BlockPointer, IndexChunk};

/// Bytes of an index block (`hfile.index.block.max.size`).
pub(crate) const INDEX_CHUNK_LEN: usize = 128 * 1024;
/// A root of at most so many entries is not split further (`hfile.index.block.min.entries`).
pub(crate) const INDEX_ENTRIES_MIN: usize = 16;

pub(crate) struct IndexWriter {
    chunk_len: usize,
    entries_min: usize,
    blocks: u64,
    leaf: IndexChunk,
    /// The last so many entries of the leaf do not know yet where their blocks are.
    unplaced: usize,
    leaves: IndexChunk,
    /// Bytes of all index blocks.
    pub uncompressed_len: u64,
}

impl IndexWriter {
    pub(crate) fn new(chunk_len: usize, entries_min: usize) -> IndexWriter {
        IndexWriter {
            chunk_len,
            entries_min: entries_min.max(1),
            blocks: 0,
            leaf: IndexChunk::default(),
            unplaced: 0,
            leaves: IndexChunk::default(),
            uncompressed_len: 0,
        }
    }

    /// Notes a data block; [`IndexWriter::placed`] says where it is.
    pub(crate) fn add(&mut self, key: &[u8]) {
        self.leaf.add(key, BlockPointer { offset: 0, len: 0 });
        self.unplaced += 1;
        self.blocks += 1;
    }

    /// Notes where the oldest data block is whose place was not known.
    pub(crate) fn placed(&mut self, pointer: BlockPointer) {
        self.leaf.locate(self.leaf.len() - self.unplaced, pointer);
        self.unplaced -= 1;
    }

    /// True if a leaf is to be written as an inline block.
    pub(crate) fn leaf_is_due(&self, closing: bool) -> bool {
        if closing { self.leaves.len() > 0 && self.leaf.len() > 0 } else { self.leaf.non_root_len() >= self.chunk_len }
    }

    /// The next leaf to be written as an inline block: its payload and its first key. All its blocks have been placed.
    pub(crate) fn next_leaf(&mut self, closing: bool) -> Option<(Vec<u8>, Vec<u8>)> {
        if !self.leaf_is_due(closing) {
            return None;
        }
        let leaf = std::mem::take(&mut self.leaf);
        let first_key = leaf.first_key()?.to_vec();
        let mut payload = Vec::with_capacity(leaf.non_root_len());
        leaf.encode_non_root(&mut payload);
        self.uncompressed_len += payload.len() as u64;
        Some((payload, first_key))
    }

    /// Notes where a leaf has been written.
    pub(crate) fn leaf_written(&mut self, first_key: &[u8], pointer: BlockPointer) {
        self.leaves.add_leaf(first_key, pointer, self.blocks);
    }

    /// Ends the index: writes intermediate blocks through `write` (payload to pointer) and returns the root's payload, its entries, and
    /// the number of levels.
    pub(crate) fn finish<E>(
        &mut self,
        mut write: impl FnMut(&[u8]) -> Result<BlockPointer, E>,
    ) -> Result<(Vec<u8>, usize, u32), E> {
        let mut payload = Vec::new();
        if self.leaves.len() == 0 {
            self.leaf.encode_root(&mut payload);
            self.uncompressed_len += payload.len() as u64;
            return Ok((payload, self.leaf.len(), 1));
        }
        let mut mid_key = Vec::new();
        self.leaves.encode_mid_key(&mut mid_key);
        let mut root = std::mem::take(&mut self.leaves);
        let mut levels = 2;
        while root.root_len() > self.chunk_len && root.len() > self.entries_min && levels < 16 {
            root = self.intermediate_level(&root, &mut write)?;
            levels += 1;
        }
        root.encode_root(&mut payload);
        payload.extend_from_slice(&mid_key);
        self.uncompressed_len += payload.len() as u64;
        Ok((payload, root.len(), levels))
    }

    fn intermediate_level<E>(
        &mut self,
        level: &IndexChunk,
        write: &mut impl FnMut(&[u8]) -> Result<BlockPointer, E>,
    ) -> Result<IndexChunk, E> {
        let mut parent = IndexChunk::default();
        let mut chunk = IndexChunk::default();
        for (number, (pointer, key)) in level.iter().enumerate() {
            chunk.add(key, pointer);
            let full = number >= self.entries_min && chunk.root_len() >= self.chunk_len;
            if full || number + 1 == level.len() {
                let mut payload = Vec::with_capacity(chunk.non_root_len());
                chunk.encode_non_root(&mut payload);
                self.uncompressed_len += payload.len() as u64;
                let pointer = write(&payload)?;
                parent.add(chunk.first_key().unwrap_or(&[]), pointer);
                chunk = IndexChunk::default();
            }
        }
        Ok(parent)
    }
}
