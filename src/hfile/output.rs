//! The end of a file that is being written: blocks become bytes there, one behind the other.
//!
//! Data blocks are compressed ahead: while some are still at it, the writer fills the next. They are placed in the order in which they came, by counts
//! that depend on the cells alone, so that the file and the order of its writes are those of a writer that does one thing after the other.

use super::ahead::Ahead;
use super::block::{BLOCK_HEADER_LEN, BlockType, append_block};
use super::checksum::ChecksumType;
use super::codec::Compressor;
use super::encoding::BlockEncoder;
use super::index::BlockPointer;
use super::write_through::{DataForm, WriteThrough};
use super::writer::HFileWriterOptions;
use crate::error::{Error, Result};
use crate::schema::Compression;
use crate::vfs::File;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;

/// Blocks are gathered to writes of this size, and their writing back to the device is begun as often, so that the last sync is short.
const WRITE_LEN: usize = 1024 * 1024;
/// At most so many blocks are being compressed.
const AHEAD_BLOCKS: usize = 8;
/// At most so many bytes are, or one block.
const AHEAD_BYTES: usize = 1024 * 1024;
const KINDS: usize = 10;

/// The file's end as it grows.
pub(super) struct Output {
    file: Arc<dyn File>,
    pub(super) pending: Vec<u8>,
    /// Bytes given to the file.
    pub(super) written: u64,
    codec: Compression,
    compressors: Arc<Compressors>,
    checksum: ChecksumType,
    /// Offset of the last block of each kind.
    previous: [i64; KINDS],
    pub(super) uncompressed: u64,
    pub(super) write_through: Option<WriteThrough>,
    form: DataForm,
    ahead: VecDeque<Ahead<Compressing>>,
    ahead_bytes: usize,
    kind: BlockType,
    /// Buffers of payloads that have been placed.
    spare: Vec<Vec<u8>>,
}

/// A data block on its way: its payload, and that compressed.
struct Compressing {
    payload: Vec<u8>,
    stored: std::io::Result<Vec<u8>>,
}

/// A file's compressors: as many as work on it at a time.
struct Compressors {
    codec: Compression,
    free: Mutex<Vec<Compressor>>,
}

impl Compressors {
    fn compress(&self, payload: &[u8]) -> std::io::Result<Vec<u8>> {
        let free = self.free.lock().pop();
        let mut compressor = match free {
            Some(compressor) => compressor,
            None => Compressor::new(self.codec)?,
        };
        let mut stored = Vec::new();
        compressor.append(payload, &mut stored)?;
        self.free.lock().push(compressor);
        Ok(stored)
    }
}

/// True if a block is ready where it is filled: there is nothing to do, or less than it costs to hand the block to another CPU (SNAPPY: 530
/// MB/s alone, 480 with two).
fn is_at_once(codec: Compression) -> bool {
    matches!(codec, Compression::None | Compression::Snappy)
}

impl Output {
    pub(super) fn new(
        file: Arc<dyn File>,
        options: &HFileWriterOptions,
        kind: BlockType,
        form: DataForm,
    ) -> Result<Output> {
        let codec = options.compression;
        let compressor =
            Compressor::new(codec).map_err(|error| Error::io("make a compressor for", file.path(), error))?;
        Ok(Output {
            file,
            pending: Vec::with_capacity(WRITE_LEN + options.block_size.min(WRITE_LEN)),
            written: 0,
            codec,
            compressors: Arc::new(Compressors { codec, free: Mutex::new(vec![compressor]) }),
            checksum: options.checksum,
            previous: [-1; KINDS],
            uncompressed: 0,
            write_through: None,
            form,
            ahead: VecDeque::new(),
            ahead_bytes: 0,
            kind,
            spare: Vec::new(),
        })
    }

    /// Where the next block will stand, those that are being compressed aside.
    pub(super) fn offset(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    pub(super) fn path(&self) -> &std::path::Path {
        self.file.path()
    }

    /// Takes the data block that has been built; [`Output::place`] will say where it went.
    pub(super) fn begin(&mut self, encoder: &mut BlockEncoder) {
        let payload = encoder.take(self.spare.pop().unwrap_or_default());
        self.ahead_bytes += payload.len();
        let compressors = Arc::clone(&self.compressors);
        let block = match self.codec {
            Compression::None => Ahead::have(Compressing { payload, stored: Ok(Vec::new()) }),
            _ if is_at_once(self.codec) => {
                let stored = compressors.compress(&payload);
                Ahead::have(Compressing { payload, stored })
            }
            _ => Ahead::begin(move || {
                let stored = compressors.compress(&payload);
                Compressing { payload, stored }
            }),
        };
        self.ahead.push_back(block);
    }

    /// Places the oldest data block that is being compressed, if there are more than enough of them or all are due.
    ///
    /// # Errors
    /// Those of compressing and writing.
    pub(super) fn place(&mut self, all: bool) -> Result<Option<BlockPointer>> {
        let plain = self.codec == Compression::None;
        let enough = is_at_once(self.codec) || self.ahead.len() > AHEAD_BLOCKS || self.ahead_bytes > AHEAD_BYTES;
        let Some(oldest) = self.ahead.pop_front_if(|_| all || enough) else { return Ok(None) };
        let Compressing { mut payload, stored } = oldest.result(self.ahead.iter());
        self.ahead_bytes -= payload.len();
        let stored = stored.map_err(|error| self.not_compressed(error))?;
        let pointer = self.append(self.kind, &payload, (!plain).then_some(&stored))?;
        payload.clear();
        self.spare.push(payload);
        Ok(Some(pointer))
    }

    fn not_compressed(&self, error: std::io::Error) -> Error {
        Error::io("compress a block of", self.file.path(), error)
    }

    /// Appends a block at once.
    ///
    /// # Errors
    /// Those of compressing and writing.
    pub(super) fn block(&mut self, kind: BlockType, payload: &[u8]) -> Result<BlockPointer> {
        if self.codec == Compression::None {
            return self.append(kind, payload, None);
        }
        let stored = self.compressors.compress(payload).map_err(|error| self.not_compressed(error))?;
        self.append(kind, payload, Some(&stored))
    }

    /// `stored` is the payload compressed, if it is.
    fn append(&mut self, kind: BlockType, payload: &[u8], stored: Option<&[u8]>) -> Result<BlockPointer> {
        let offset = self.offset();
        let slot = self.previous.get_mut(kind.chain() as usize);
        let previous = slot.map_or(-1, |last| std::mem::replace(last, offset as i64));
        let stored = stored.unwrap_or(payload);
        let len = append_block(&mut self.pending, kind, stored, payload.len(), previous, self.checksum);
        self.uncompressed += (BLOCK_HEADER_LEN + payload.len()) as u64;
        if self.pending.len() >= WRITE_LEN {
            self.flush()?;
        }
        let pointer = BlockPointer { offset, len };
        if let Some(cache) = &self.write_through {
            cache.block(kind, payload, pointer, self.form);
        }
        Ok(pointer)
    }

    /// Gives what has been gathered to the file.
    ///
    /// # Errors
    /// Those of writing.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.file.write_all_at(&self.pending, self.written)?;
        self.file.start_writeback(self.written, self.pending.len() as u64);
        self.written += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }
}
