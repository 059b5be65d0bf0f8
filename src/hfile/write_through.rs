//! Blocks that go to the cache as they are written, so that whoever reads what was just written finds it there (HBase `HFileWriterImpl.doCacheOnWrite`).

use super::block::BlockType;
use super::cache::{BlockCache, CachedBlock};
use super::data_block::{CellLayout, DataBlock};
use super::encoding;
use super::index::{BlockPointer, IndexBlock};
use crate::schema::{CacheOnWrite, DataBlockEncoding};
use bytes::Bytes;
use std::sync::Arc;

/// Where the blocks of a file being written go, and which.
#[derive(Clone)]
pub struct WriteThrough {
    /// The cache.
    pub cache: Arc<BlockCache>,
    /// The file's identity in it.
    pub file_id: u64,
    /// The family is IN_MEMORY.
    pub in_memory: bool,
    /// Which kinds of blocks.
    pub kinds: CacheOnWrite,
}

/// How a file's data blocks are decoded.
#[derive(Clone, Copy)]
pub(super) struct DataForm {
    pub(super) encoding: DataBlockEncoding,
    pub(super) layout: CellLayout,
    pub(super) tags_compressed: bool,
}

impl WriteThrough {
    /// Puts a block into the cache as a reader would have it. One that cannot be decoded is left to the reader, who will say why.
    pub(super) fn block(&self, kind: BlockType, payload: &[u8], pointer: BlockPointer, form: DataForm) {
        let copy = || Bytes::copy_from_slice(payload);
        let block = match kind {
            BlockType::Data | BlockType::EncodedData if self.kinds.data => {
                let plain = match form.encoding {
                    DataBlockEncoding::None => Ok(copy()),
                    encoding => encoding::decode(&copy(), encoding, form.layout, form.tags_compressed),
                };
                let decoded = plain.and_then(|plain| DataBlock::from_plain(plain, form.layout));
                decoded.ok().map(|block| CachedBlock::Data(Arc::new(block)))
            }
            BlockType::LeafIndex | BlockType::IntermediateIndex if self.kinds.indexes => {
                IndexBlock::parse(&copy()).ok().map(|block| CachedBlock::Index(Arc::new(block)))
            }
            BlockType::BloomChunk if self.kinds.blooms => Some(CachedBlock::Bloom(copy())),
            _ => None,
        };
        if let Some(block) = block {
            self.cache.insert(self.file_id, pointer.offset, block, self.in_memory);
        }
    }
}
