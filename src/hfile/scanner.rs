//! A cursor over a file's cells (HBase `HFileReaderImpl.HFileScannerImpl`, `StoreFileScanner`).

use super::block::BlockType;
use super::data_block::DataBlock;
use super::index::{BlockPointer, IndexBlock};
use super::input::Parsed;
use super::reader::HFileReader;
use super::upcoming::Upcoming;
use super::write_through::DataForm;
use crate::cell::{Cell, CellScanner, compare_flat_keys};
use crate::error::Result;
use crate::schema::Compression;
use crate::vfs::File;
use bytes::{Bytes, BytesMut};
use std::cmp::Ordering;
use std::sync::Arc;

/// How a scanner reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Keep data blocks that are read in the block cache.
    pub cache_blocks: bool,
    /// Read far ahead when blocks are wanted one after the other.
    pub read_ahead: bool,
    /// Tell the page cache to let go of what has been read: for compactions, whose inputs are not read again.
    pub drop_behind: bool,
}

impl Default for ReadOptions {
    /// Of gets and short scans.
    fn default() -> Self {
        ReadOptions { cache_blocks: true, read_ahead: false, drop_behind: false }
    }
}

impl ReadOptions {
    /// Of scans over much of a file.
    pub fn streaming() -> ReadOptions {
        ReadOptions { cache_blocks: false, read_ahead: true, drop_behind: false }
    }

    /// Of compactions.
    pub fn compaction() -> ReadOptions {
        ReadOptions { cache_blocks: false, read_ahead: true, drop_behind: true }
    }
}

const WINDOW_MIN: usize = 64 * 1024;
const WINDOW_MAX: usize = 1024 * 1024;

/// What a sequential scan has read in advance. The window doubles while blocks follow one another.
#[derive(Default)]
pub(super) struct ReadAhead {
    bytes: Bytes,
    /// The window before, whose last block the scan may still be in; its memory is that of the next window unless somebody keeps cells of it.
    before: Bytes,
    start: u64,
    /// Where the next block begins if the reading is sequential.
    expected: u64,
    window: usize,
    drop_behind: bool,
    upcoming: Upcoming,
}

impl ReadAhead {
    pub(super) fn read(&mut self, file: &dyn File, pointer: BlockPointer, data_end: u64) -> Result<Bytes> {
        let end = pointer.offset + pointer.len as u64;
        // Inline blocks of index and blooms lie between data blocks: a small gap is still sequential.
        let sequential = pointer.offset >= self.expected && pointer.offset - self.expected <= WINDOW_MIN as u64;
        self.expected = end;
        if let Some(have) = self.have(pointer) {
            return Ok(have);
        }
        self.window = if sequential { (self.window * 2).clamp(WINDOW_MIN, WINDOW_MAX) } else { 0 };
        let until = data_end.saturating_sub(pointer.offset).min(self.window as u64) as usize;
        let mut buf = self.room(until.max(pointer.len));
        file.read_exact_at(&mut buf, pointer.offset)?;
        if self.drop_behind {
            file.advise_dont_need(pointer.offset, buf.len() as u64);
        }
        self.start = pointer.offset;
        self.bytes = buf.freeze();
        Ok(self.bytes.slice(..pointer.len))
    }

    /// Memory for the next window: fresh pages cost as much as reading them from the page cache does.
    fn room(&mut self, len: usize) -> BytesMut {
        let before = std::mem::replace(&mut self.before, std::mem::take(&mut self.bytes));
        match before.try_into_mut() {
            Ok(mut room) => {
                room.resize(len, 0);
                room
            }
            Err(_) => BytesMut::zeroed(len),
        }
    }

    /// The bytes of the block if they have been read.
    fn have(&self, pointer: BlockPointer) -> Option<Bytes> {
        let skip = pointer.offset.checked_sub(self.start)? as usize;
        let end = skip.checked_add(pointer.len).filter(|end| *end <= self.bytes.len())?;
        Some(self.bytes.slice(skip..end))
    }

    /// The block if it has been decoded ahead.
    pub(super) fn decoded(&mut self, pointer: BlockPointer) -> Option<Parsed<DataBlock>> {
        let block = self.upcoming.take(pointer)?;
        self.expected = pointer.offset + pointer.len as u64;
        Some(block)
    }

    /// Begins to decode those of the `next` blocks that have been read, once the reading is sequential. Blocks that are not compressed are decoded
    /// sooner than another thread has taken them.
    pub(super) fn decode(&mut self, next: impl Iterator<Item = BlockPointer>, form: DataForm) {
        if self.window <= WINDOW_MIN || form.compression == Compression::None {
            return;
        }
        for pointer in next {
            if self.upcoming.has(pointer) {
                continue;
            }
            match self.have(pointer).filter(|_| self.upcoming.has_room()) {
                Some(raw) => self.upcoming.begin(pointer, raw, form),
                None => break,
            }
        }
    }
}

/// A cursor over the cells of a file. Between cells of one block it costs no lookups; a reseek to a near cell stays in the block.
pub struct HFileScanner {
    reader: Arc<HFileReader>,
    options: ReadOptions,
    ahead: Option<ReadAhead>,
    /// The index blocks from the root to the lowest level, and the entry taken in each.
    path: Vec<(Arc<IndexBlock>, usize)>,
    block: Option<Arc<DataBlock>>,
    at: usize,
    current: Option<Cell>,
}

impl HFileScanner {
    pub(super) fn new(reader: Arc<HFileReader>, options: ReadOptions) -> HFileScanner {
        let ahead = options.read_ahead.then(|| ReadAhead { drop_behind: options.drop_behind, ..ReadAhead::default() });
        HFileScanner { reader, options, ahead, path: Vec::new(), block: None, at: 0, current: None }
    }

    /// Moves to the first cell.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.seek(&super::reader::before_everything())
    }

    fn clear(&mut self) {
        self.block = None;
        self.current = None;
    }

    fn index_kind(&self, level: usize) -> BlockType {
        if level + 1 == self.reader.index_levels() as usize {
            BlockType::LeafIndex
        } else {
            BlockType::IntermediateIndex
        }
    }

    /// Walks from the last block of `path` down to the lowest level, taking the entry that `choose` says in each.
    fn descend(&mut self, choose: impl Fn(&IndexBlock) -> usize) -> Result<()> {
        while self.path.len() < self.reader.index_levels() as usize {
            let Some(pointer) = self.path.last().and_then(|(block, at)| block.pointer(*at)) else { return Ok(()) };
            let child = self.reader.index_block(pointer, self.index_kind(self.path.len()))?;
            let at = choose(&child);
            self.path.push((child, at));
        }
        Ok(())
    }

    /// Where the path points to.
    fn pointer(&self) -> Option<BlockPointer> {
        self.path.last().and_then(|(block, at)| block.pointer(*at))
    }

    /// Loads the data block that the path points to.
    fn load(&mut self) -> Result<Option<Arc<DataBlock>>> {
        let Some(pointer) = self.pointer() else { return Ok(None) };
        let block = self.reader.data_block(pointer, self.options.cache_blocks, self.ahead.as_mut())?;
        if let (Some(ahead), Some((leaf, at))) = (&mut self.ahead, self.path.last()) {
            self.reader.decode_ahead(leaf, *at, ahead);
        }
        Ok(Some(block))
    }

    /// Moves the path to the next data block; false at the end, where the path stays.
    fn next_pointer(&mut self) -> Result<bool> {
        let Some(level) = self.path.iter().rposition(|(block, at)| at + 1 < block.len()) else { return Ok(false) };
        self.path.truncate(level + 1);
        if let Some((_, at)) = self.path.last_mut() {
            *at += 1;
        }
        self.descend(|_| 0)?;
        Ok(true)
    }

    /// Moves the path to the previous data block; false at the beginning, where the path stays.
    fn previous_pointer(&mut self) -> Result<bool> {
        let Some(level) = self.path.iter().rposition(|(_, at)| *at > 0) else { return Ok(false) };
        self.path.truncate(level + 1);
        if let Some((_, at)) = self.path.last_mut() {
            *at -= 1;
        }
        self.descend(|block| block.len().saturating_sub(1))?;
        Ok(true)
    }

    /// Stands on the first cell at or after `key`. At the end of the file the last block stays loaded and `at` is its length.
    fn locate(&mut self, key: &Cell) -> Result<()> {
        self.current = None;
        self.path.clear();
        self.path.push((self.reader.root.clone(), self.reader.root.find(key)));
        self.descend(|block| block.find(key))?;
        self.block = self.load()?;
        if let Some(block) = &self.block {
            self.at = block.lower_bound(key);
        }
        self.settle()
    }

    /// Goes on to the next block if the cursor is behind the last cell of its block, and makes the current cell.
    fn settle(&mut self) -> Result<()> {
        self.current = None;
        while let Some(block) = &self.block {
            self.current = block.cell(self.at);
            if self.current.is_some() {
                break;
            }
            let end = self.pointer().map_or(0, |pointer| pointer.offset + pointer.len as u64);
            if !self.next_pointer()? {
                break;
            }
            if let Some(next) = self.pointer() {
                self.reader.check_forward(end, next)?;
            }
            self.block = self.load()?;
            self.at = 0;
        }
        Ok(())
    }

    /// One cell back; false at the beginning.
    fn step_back(&mut self) -> Result<bool> {
        if self.at == 0 {
            if self.block.is_none() || !self.previous_pointer()? {
                return Ok(false);
            }
            self.block = self.load()?;
            self.at = self.block.as_ref().map_or(0, |block| block.len());
        }
        self.at = self.at.saturating_sub(1);
        Ok(self.block.is_some())
    }

    /// From any cell of a row to the row's first cell.
    fn back_to_row_start(&mut self) -> Result<()> {
        let Some(cell) = self.block.as_ref().and_then(|block| block.cell(self.at)) else {
            self.clear();
            return Ok(());
        };
        let start = Cell::first_on_row(cell.row());
        if let Some(block) = &self.block {
            self.at = block.lower_bound(&start);
        }
        if self.at == 0 {
            // The row may begin in an earlier block.
            return self.locate(&start);
        }
        self.settle()
    }

    fn try_reseek(&mut self, key: &Cell) -> Result<()> {
        let (Some(block), Some((leaf, at))) = (&self.block, self.path.last()) else { return self.locate(key) };
        if self.current.as_ref().is_some_and(|cell| crate::cell::compare(cell, key) != Ordering::Less) {
            return Ok(());
        }
        match leaf.key(at + 1) {
            // The next block of this leaf begins behind the key.
            Some(next) if compare_flat_keys(next, key.key()) == Ordering::Greater => {
                self.at = block.lower_bound_from(key, self.at);
                self.settle()
            }
            _ => self.locate(key),
        }
    }

    fn or_nowhere(&mut self, result: Result<()>) -> Result<()> {
        if result.is_err() {
            self.clear();
        }
        result
    }
}

impl CellScanner for HFileScanner {
    fn peek(&self) -> Option<&Cell> {
        self.current.as_ref()
    }

    fn take(&mut self) -> Option<Cell> {
        self.current.take()
    }

    fn advance(&mut self) -> Result<()> {
        self.at += 1;
        if let Some(block) = &self.block
            && let Some(cell) = block.cell(self.at)
        {
            self.current = Some(cell);
            return Ok(());
        }
        let result = self.settle();
        self.or_nowhere(result)
    }

    fn seek(&mut self, key: &Cell) -> Result<()> {
        let result = self.locate(key);
        self.or_nowhere(result)
    }

    fn reseek(&mut self, key: &Cell) -> Result<()> {
        let result = self.try_reseek(key);
        self.or_nowhere(result)
    }

    fn seek_to_previous_row(&mut self, row: &[u8]) -> Result<()> {
        let result = self.locate(&Cell::first_on_row(row)).and_then(|()| match self.step_back()? {
            true => self.back_to_row_start(),
            false => {
                self.clear();
                Ok(())
            }
        });
        self.or_nowhere(result)
    }

    fn seek_to_last_row(&mut self) -> Result<()> {
        self.current = None;
        self.path.clear();
        self.path.push((self.reader.root.clone(), self.reader.root.len().saturating_sub(1)));
        let result = self.descend(|block| block.len().saturating_sub(1)).and_then(|()| {
            self.block = self.load()?;
            self.at = self.block.as_ref().map_or(0, |block| block.len().saturating_sub(1));
            self.back_to_row_start()
        });
        self.or_nowhere(result)
    }
}
