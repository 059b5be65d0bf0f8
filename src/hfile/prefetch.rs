//! All blocks of a file into the cache, ahead of those who will read them (HBase `HFilePreadReader`, PREFETCH_BLOCKS_ON_OPEN).

use super::block::BlockType;
use super::index::{BlockPointer, IndexBlock};
use super::reader::HFileReader;
use super::scanner::ReadAhead;
use crate::error::Result;

impl HFileReader {
    /// Reads every block of index, filters and data that the cache does not have, until the cache is full (what is there is never driven out) or
    /// `wanted` says no. It counts neither as blocks read nor as cache misses. Returns the number of blocks it put there.
    ///
    /// # Errors
    /// Those of reading the blocks.
    pub fn prefetch(&self, wanted: impl Fn() -> bool) -> Result<u64> {
        let mut prefetch = Prefetch { reader: self, wanted, ahead: ReadAhead::default(), blocks: 0 };
        for bloom in [&self.general_bloom, &self.delete_family_bloom].into_iter().flatten() {
            for pointer in pointers(&bloom.chunks) {
                if prefetch.misses(pointer) && prefetch.has_room(pointer) {
                    self.load_bloom_chunk(pointer)?;
                    prefetch.blocks += 1;
                }
            }
        }
        let root = self.root.clone();
        prefetch.below(&root, 1)?;
        Ok(prefetch.blocks)
    }
}

fn pointers(index: &IndexBlock) -> impl Iterator<Item = BlockPointer> {
    (0..index.len()).filter_map(|at| index.pointer(at))
}

struct Prefetch<'a, W> {
    reader: &'a HFileReader,
    wanted: W,
    ahead: ReadAhead,
    blocks: u64,
}

impl<W: Fn() -> bool> Prefetch<'_, W> {
    fn misses(&self, pointer: BlockPointer) -> bool {
        self.reader.cache().is_some_and(|cache| cache.get(self.reader.file_id(), pointer.offset).is_none())
    }

    /// True while a block of about that size fits without driving another out.
    fn has_room(&self, pointer: BlockPointer) -> bool {
        let fits = |bytes: u64, capacity: u64| bytes.saturating_add(2 * pointer.len as u64) <= capacity;
        self.reader.cache().is_some_and(|cache| fits(cache.bytes(), cache.capacity())) && (self.wanted)()
    }

    /// Whatever an index block of that level (1 = the root) points to.
    fn below(&mut self, index: &IndexBlock, level: u32) -> Result<()> {
        let levels = self.reader.index_levels();
        for pointer in pointers(index) {
            let missing = self.misses(pointer);
            if missing && !self.has_room(pointer) {
                return Ok(());
            }
            self.blocks += u64::from(missing);
            if level < levels {
                let kind = if level + 1 == levels { BlockType::LeafIndex } else { BlockType::IntermediateIndex };
                let child = self.reader.load_index_block(pointer, kind)?;
                self.below(&child, level + 1)?;
            } else if missing {
                self.reader.load_data_block(pointer, true, Some(&mut self.ahead))?;
            }
        }
        Ok(())
    }
}
