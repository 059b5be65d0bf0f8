//! Data blocks that a sequential scan will want next, decoded ahead of it.

use super::ahead::Ahead;
use super::data_block::DataBlock;
use super::index::BlockPointer;
use super::input::Parsed;
use super::write_through::DataForm;
use bytes::Bytes;
use std::collections::VecDeque;

/// At most so many blocks are decoded ahead of one scan.
const BLOCKS_MAX: usize = 8;
/// No more is begun when so many bytes on disk are.
const BYTES_MAX: usize = 512 * 1024;

/// What has been begun, in the order of the file.
#[derive(Default)]
pub(super) struct Upcoming {
    blocks: VecDeque<(BlockPointer, Ahead<Parsed<DataBlock>>)>,
    bytes: usize,
}

impl Upcoming {
    /// The block at `pointer` if it has been begun; what lies before it is let go, and everything if the scan has gone elsewhere.
    pub(super) fn take(&mut self, pointer: BlockPointer) -> Option<Parsed<DataBlock>> {
        while let Some((next, block)) = self.blocks.pop_front() {
            self.bytes -= next.len;
            if next == pointer {
                return Some(block.result(self.blocks.iter().map(|(_, block)| block)));
            }
        }
        None
    }

    /// True if the block at `pointer` has been begun, or the scan is past it.
    pub(super) fn has(&self, pointer: BlockPointer) -> bool {
        self.blocks.back().is_some_and(|(last, _)| pointer.offset <= last.offset)
    }

    /// True if another block may be begun.
    pub(super) fn has_room(&self) -> bool {
        self.blocks.len() < BLOCKS_MAX && self.bytes < BYTES_MAX
    }

    /// Begins to decode the block at `pointer`, whose bytes on disk are `raw`.
    pub(super) fn begin(&mut self, pointer: BlockPointer, raw: Bytes, form: DataForm) {
        self.bytes += pointer.len;
        self.blocks.push_back((pointer, Ahead::begin(move || form.decode(&raw))));
    }
}
