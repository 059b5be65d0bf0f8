//! Blocks that go to the cache as they are written, so that whoever reads what was just written finds it there (HBase `HFileWriterImpl.doCacheOnWrite`).

use super::block::{Block, BlockType};
use super::cache::{BlockCache, CachedBlock};
use super::data_block::{CellLayout, DataBlock};
use super::encoding;
use super::index::{BlockPointer, IndexBlock};
use super::input::Parsed;
use crate::schema::{CacheOnWrite, Compression, DataBlockEncoding};
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
    pub(super) compression: Compression,
    pub(super) encoding: DataBlockEncoding,
    pub(super) layout: CellLayout,
    pub(super) tags_compressed: bool,
}

impl DataForm {
    /// The cells of a data block whose bytes on disk are `raw`.
    pub(super) fn decode(&self, raw: &Bytes) -> Parsed<DataBlock> {
        self.cells(&Block::decode(raw, self.compression)?)
    }

    /// The cells of a data block.
    pub(super) fn cells(&self, block: &Block) -> Parsed<DataBlock> {
        let encoded = self.encoding != DataBlockEncoding::None;
        block.expect(if encoded { BlockType::EncodedData } else { BlockType::Data })?;
        self.cells_of_payload(&block.payload)
    }

    fn cells_of_payload(&self, payload: &Bytes) -> Parsed<DataBlock> {
        let plain = match self.encoding {
            DataBlockEncoding::None => payload.clone(),
            encoding => encoding::decode(payload, encoding, self.layout, self.tags_compressed)?,
        };
        DataBlock::from_plain(plain, self.layout)
    }
}

impl WriteThrough {
    /// Puts a block into the cache as a reader would have it. One that cannot be decoded is left to the reader, who will say why.
    pub(super) fn block(&self, kind: BlockType, payload: &[u8], pointer: BlockPointer, form: DataForm) {
        let copy = || Bytes::copy_from_slice(payload);
        let block = match kind {
            BlockType::Data | BlockType::EncodedData if self.kinds.data => {
                form.cells_of_payload(&copy()).ok().map(|block| CachedBlock::Data(Arc::new(block)))
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
