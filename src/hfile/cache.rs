//! The block cache: decoded blocks of all files, bounded by bytes (HBase `BlockCache`).

use super::data_block::DataBlock;
use super::index::IndexBlock;
use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;

/// A block as it is used, decompressed and decoded.
#[derive(Clone)]
pub(crate) enum CachedBlock {
    Data(Arc<DataBlock>),
    Index(Arc<IndexBlock>),
    Bloom(Bytes),
}

/// File id and offset in the file.
type BlockKey = (u64, u64);

#[derive(Clone)]
struct ByBytes;

impl Weighter<BlockKey, CachedBlock> for ByBytes {
    fn weight(&self, _: &BlockKey, block: &CachedBlock) -> u64 {
        let bytes = match block {
            CachedBlock::Data(block) => block.heap_bytes(),
            CachedBlock::Index(block) => block.heap_bytes(),
            CachedBlock::Bloom(bits) => bits.len(),
        };
        bytes as u64 + 128
    }
}

/// A cache of decoded blocks, shared by all readers of a store. File ids are never used twice.
pub struct BlockCache {
    blocks: Cache<BlockKey, CachedBlock, ByBytes>,
}

impl BlockCache {
    /// A cache of at most `capacity` bytes.
    pub fn new(capacity: u64) -> BlockCache {
        let blocks_expected = (capacity / (16 * 1024)).clamp(64, 1 << 20) as usize;
        BlockCache { blocks: Cache::with_weighter(blocks_expected, capacity, ByBytes) }
    }

    /// The limit in bytes.
    pub fn capacity(&self) -> u64 {
        self.blocks.capacity()
    }

    /// Changes the limit; blocks over it leave.
    pub fn set_capacity(&self, capacity: u64) {
        self.blocks.set_capacity(capacity);
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.blocks.weight()
    }

    /// Blocks held.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// True if it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Lets go of the blocks of a file that is gone.
    pub fn forget_file(&self, file_id: u64) {
        self.blocks.retain(|key, _| key.0 != file_id);
    }

    pub(crate) fn get(&self, file_id: u64, offset: u64) -> Option<CachedBlock> {
        self.blocks.get(&(file_id, offset))
    }

    pub(crate) fn insert(&self, file_id: u64, offset: u64, block: CachedBlock) {
        self.blocks.insert((file_id, offset), block);
    }
}

impl std::fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BlockCache {{ blocks: {}, bytes: {} of {} }}", self.len(), self.bytes(), self.capacity())
    }
}
