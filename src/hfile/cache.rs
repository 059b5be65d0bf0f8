//! The block cache: decoded blocks of all files, bounded by bytes (HBase `BlockCache`).

use super::data_block::DataBlock;
use super::index::IndexBlock;
use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

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

type Blocks = Cache<BlockKey, CachedBlock, ByBytes>;

/// The part of the cache, one in so many, that IN_MEMORY families cannot lose to others (`hbase.lru.blockcache.memory.percentage`, 0.25).
const MEMORY_SHARE: u64 = 4;

/// A cache of decoded blocks, shared by all readers of a store. File ids are never used twice.
///
/// Blocks of IN_MEMORY families live apart. Either side may use what the other leaves free, but neither can take from the other what is within its
/// share: a quarter for those families, three quarters for the rest (HBase `LruBlockCache`, whose single-access and multi-access shares are the
/// replacement policy's business here: what was read once leaves before what was read again).
pub struct BlockCache {
    capacity: AtomicU64,
    blocks: Blocks,
    memory: Blocks,
    /// An IN_MEMORY family has put a block: from then on the two sides are kept in balance.
    balanced: AtomicBool,
}

impl BlockCache {
    /// A cache of at most `capacity` bytes.
    pub fn new(capacity: u64) -> BlockCache {
        let blocks_expected = (capacity / (16 * 1024)).clamp(64, 1 << 20) as usize;
        BlockCache {
            capacity: AtomicU64::new(capacity),
            blocks: Cache::with_weighter(blocks_expected, capacity, ByBytes),
            memory: Cache::with_weighter(blocks_expected, capacity, ByBytes),
            balanced: AtomicBool::new(false),
        }
    }

    /// The limit in bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Changes the limit; blocks over it leave.
    pub fn set_capacity(&self, capacity: u64) {
        self.capacity.store(capacity, Ordering::Relaxed);
        self.blocks.set_capacity(capacity);
        self.memory.set_capacity(capacity);
        self.balance();
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        self.blocks.weight() + self.memory_bytes()
    }

    /// Bytes held for IN_MEMORY families.
    pub fn memory_bytes(&self) -> u64 {
        if self.balanced.load(Ordering::Relaxed) { self.memory.weight() } else { 0 }
    }

    /// Blocks held.
    pub fn len(&self) -> usize {
        self.blocks.len() + self.memory.len()
    }

    /// True if it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Blocks held of one file.
    pub fn blocks_of_file(&self, file_id: u64) -> usize {
        let of_file = |blocks: &Blocks| blocks.iter().filter(|(key, _)| key.0 == file_id).count();
        of_file(&self.blocks) + of_file(&self.memory)
    }

    /// Lets go of the blocks of a file that is gone.
    pub fn forget_file(&self, file_id: u64) {
        self.blocks.retain(|key, _| key.0 != file_id);
        if self.balanced.load(Ordering::Relaxed) {
            self.memory.retain(|key, _| key.0 != file_id);
        }
    }

    /// True if the block is there; it does not count as a use.
    pub(crate) fn has(&self, file_id: u64, offset: u64) -> bool {
        let key = (file_id, offset);
        self.blocks.contains_key(&key) || self.balanced.load(Ordering::Relaxed) && self.memory.contains_key(&key)
    }

    pub(crate) fn get(&self, file_id: u64, offset: u64) -> Option<CachedBlock> {
        let key = (file_id, offset);
        match self.blocks.get(&key) {
            None if self.balanced.load(Ordering::Relaxed) => self.memory.get(&key),
            found => found,
        }
    }

    /// Keeps a block; `in_memory` for those of IN_MEMORY families.
    pub(crate) fn insert(&self, file_id: u64, offset: u64, block: CachedBlock, in_memory: bool) {
        if in_memory {
            self.balanced.store(true, Ordering::Relaxed);
        }
        let (side, other) = if in_memory { (&self.memory, &self.blocks) } else { (&self.blocks, &self.memory) };
        side.insert((file_id, offset), block);
        if self.balanced.load(Ordering::Relaxed) {
            // Where the family has just become IN_MEMORY, or no longer is, the block may be on the other side too.
            other.remove(&(file_id, offset));
            self.balance();
        }
    }

    /// Gives each side what the other leaves free, its own share at least.
    fn balance(&self) {
        if !self.balanced.load(Ordering::Relaxed) {
            return;
        }
        let capacity = self.capacity();
        let memory_share = capacity / MEMORY_SHARE;
        let limit = |share: u64, other: &Blocks| share.max(capacity.saturating_sub(other.weight()));
        for (side, share, other) in
            [(&self.memory, memory_share, &self.blocks), (&self.blocks, capacity - memory_share, &self.memory)]
        {
            let (limit, now) = (limit(share, other), side.capacity());
            // Room gained may wait for a step worth the locks; room lost may not.
            if limit < now || limit - now > capacity / 64 {
                side.set_capacity(limit);
            }
        }
    }
}

impl std::fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "BlockCache {{ blocks: {}, bytes: {} of {} }}", self.len(), self.bytes(), self.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(cache: &BlockCache, file_id: u64, blocks: u64, in_memory: bool) {
        for offset in 0..blocks {
            cache.insert(file_id, offset, CachedBlock::Bloom(vec![0; 1000].into()), in_memory);
        }
    }

    #[test]
    fn in_memory_blocks_keep_their_share_and_take_what_is_free() {
        let cache = BlockCache::new(4 << 20);
        let block = 1128;
        fill(&cache, 1, 500, true);
        let held = cache.memory_bytes();
        assert!(held >= 490 * block, "{held}");
        // Others fill the rest many times over: what is within the share stays.
        fill(&cache, 2, 20_000, false);
        assert_eq!(cache.memory_bytes(), held);
        assert!(cache.bytes() <= cache.capacity(), "{}", cache.bytes());
        // Over its share it gives way, to its share and no further.
        fill(&cache, 3, 20_000, true);
        let share = cache.capacity() / 4;
        assert!(cache.memory_bytes() <= share && cache.memory_bytes() > share - 64 * block, "{}", cache.memory_bytes());
        assert!(cache.bytes() <= cache.capacity());
        // Alone it may use everything.
        cache.forget_file(2);
        fill(&cache, 4, 20_000, true);
        assert!(cache.memory_bytes() > 2 * share, "{}", cache.memory_bytes());
        cache.set_capacity(1 << 20);
        assert!(cache.bytes() <= 1 << 20);
        cache.forget_file(1);
        cache.forget_file(3);
        cache.forget_file(4);
        assert!(cache.is_empty());
    }
}
