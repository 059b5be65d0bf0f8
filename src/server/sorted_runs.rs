//! An external sort of cells: what does not fit into memory goes as sorted runs to the store's volume, and comes back merged.
//!
//! A run is a file among the store files, under a name of theirs that no manifest ever has, so the next opening removes what a crash leaves. It is made
//! of blocks, each `u32 length | u32 crc32 | records`; a record is `u64 sequence id | u64 line | u32 key length | u32 value length | u32 length | cell`,
//! all big-endian. Nothing is synced: a run that a crash meets is of no use to anybody.

use crate::cell::{Cell, compare};
use crate::error::{Error, Result};
use crate::region::RegionServices;
use crate::vfs::File;
use bytes::{Buf, BufMut, Bytes};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// A block is closed when it has so many bytes.
const BLOCK_BYTES: usize = 64 << 10;
const BLOCK_HEADER: usize = 8;
const RECORD_HEADER: usize = 28;
/// So many runs of one size become one.
const FAN_IN: usize = 64;
/// Or fewer, if a record of each takes more memory together than this.
const MERGE_BYTES: usize = 64 << 20;
/// What a cell takes in memory beside its bytes.
const CELL_OVERHEAD: usize = 64;

/// A cell to be sorted. The sequence id of the cell is its place in the input: of equal keys the last one comes first.
pub(super) struct Entry {
    pub(super) cell: Cell,
    /// Where it came from, for messages.
    pub(super) line: u64,
}

/// Takes cells in any order.
pub(super) struct Sorter {
    services: Arc<RegionServices>,
    /// Memory for cells that are not in runs yet.
    limit: usize,
    buffer: Vec<Entry>,
    bytes: usize,
    /// Runs by how often their cells have been written.
    levels: Vec<Vec<Run>>,
}

impl Sorter {
    pub(super) fn new(services: Arc<RegionServices>) -> Sorter {
        let limit = usize::try_from(services.config().load_sort_bytes).unwrap_or(usize::MAX);
        Sorter { services, limit, buffer: Vec::new(), bytes: 0, levels: Vec::new() }
    }

    pub(super) fn push(&mut self, entry: Entry) -> Result<()> {
        self.bytes += entry.cell.encoded().len() + CELL_OVERHEAD;
        self.buffer.push(entry);
        if self.bytes < self.limit {
            return Ok(());
        }
        let sorted = Source::Memory(self.take_sorted().into_iter());
        self.write(0, vec![sorted])
    }

    /// Everything in order.
    pub(super) fn finish(mut self) -> Result<Merged> {
        let mut sources = vec![Source::Memory(self.take_sorted().into_iter())];
        let runs = std::mem::take(&mut self.levels).into_iter().flatten();
        sources.extend(runs.map(|run| Source::Run(RunReader::new(run))));
        Merged::new(sources)
    }

    fn take_sorted(&mut self) -> Vec<Entry> {
        self.bytes = 0;
        let mut sorted = std::mem::take(&mut self.buffer);
        sorted.sort_unstable_by(|left, right| compare(&left.cell, &right.cell));
        sorted
    }

    /// Writes a run of `level`, and one of the next level when there are too many of this one.
    fn write(&mut self, level: usize, sources: Vec<Source>) -> Result<()> {
        // The reserve of the volume is for what makes room.
        self.services.watch_space()?;
        self.services.check_writable(false)?;
        let run = write_run(&self.services, &mut Merged::new(sources)?)?;
        if self.levels.len() <= level {
            self.levels.push(Vec::new());
        }
        let Some(runs) = self.levels.get_mut(level) else { return Ok(()) };
        runs.push(run);
        let records = runs.iter().map(|run| run.largest_block).sum::<usize>();
        if runs.len() < FAN_IN && (runs.len() < 2 || records < MERGE_BYTES) {
            return Ok(());
        }
        let sources = std::mem::take(runs).into_iter().map(|run| Source::Run(RunReader::new(run))).collect();
        self.write(level + 1, sources)
    }
}

/// A run on disk; dropped, its file is removed.
struct Run {
    services: Arc<RegionServices>,
    file_id: u64,
    file: Arc<dyn File>,
    len: u64,
    largest_block: usize,
}

impl Drop for Run {
    fn drop(&mut self) {
        self.services.store.discard(self.file_id);
    }
}

fn write_run(services: &Arc<RegionServices>, cells: &mut Merged) -> Result<Run> {
    let file_id = services.store.new_file_id();
    let file = services.store.vfs.create_new(&services.store.file_path(file_id))?;
    let mut run = Run { services: Arc::clone(services), file_id, file, len: 0, largest_block: 0 };
    let mut block = vec![0; BLOCK_HEADER];
    while let Some(Entry { cell, line }) = cells.next()? {
        let bytes = cell.encoded();
        block.put_u64(cell.sequence_id());
        block.put_u64(line);
        for length in [cell.key_len(), cell.value_len(), bytes.len()] {
            block.put_u32(u32::try_from(length).map_err(|_| Error::invalid("a cell of more than 4 GB"))?);
        }
        block.extend_from_slice(bytes);
        if block.len() >= BLOCK_BYTES {
            write_block(&mut run, &mut block)?;
        }
    }
    if block.len() > BLOCK_HEADER {
        write_block(&mut run, &mut block)?;
    }
    Ok(run)
}

fn write_block(run: &mut Run, block: &mut Vec<u8>) -> Result<()> {
    let records = block.split_off(BLOCK_HEADER);
    block.clear();
    block.put_u32(u32::try_from(records.len()).map_err(|_| Error::invalid("a block of more than 4 GB"))?);
    block.put_u32(crc32fast::hash(&records));
    block.extend_from_slice(&records);
    run.file.write_all_at(block, run.len)?;
    run.file.start_writeback(run.len, block.len() as u64);
    run.len += block.len() as u64;
    run.largest_block = run.largest_block.max(records.len());
    block.truncate(BLOCK_HEADER);
    Ok(())
}

/// Reads a run once from its beginning.
struct RunReader {
    run: Run,
    offset: u64,
    block: Bytes,
}

impl RunReader {
    fn new(run: Run) -> RunReader {
        RunReader { run, offset: 0, block: Bytes::new() }
    }

    fn next(&mut self) -> Result<Option<Entry>> {
        if self.block.is_empty() {
            if self.offset >= self.run.len {
                return Ok(None);
            }
            self.read_block()?;
        }
        let damaged = || self.damaged("a record ends before its lengths say");
        if self.block.len() < RECORD_HEADER {
            return Err(damaged());
        }
        let mut header = self.block.split_to(RECORD_HEADER);
        let (sequence_id, line) = (header.get_u64(), header.get_u64());
        let (key_len, value_len, len) = (header.get_u32(), header.get_u32(), header.get_u32() as usize);
        if self.block.len() < len {
            return Err(self.damaged("a record ends before its lengths say"));
        }
        let bytes = self.block.split_to(len);
        let cell = Cell::from_encoded(bytes, key_len as usize, value_len as usize, sequence_id);
        let cell = cell.map_err(|malformed| self.damaged(&malformed.to_string()))?;
        Ok(Some(Entry { cell, line }))
    }

    fn read_block(&mut self) -> Result<()> {
        let mut header = [0; BLOCK_HEADER];
        self.run.file.read_exact_at(&mut header, self.offset)?;
        let mut fields = &header[..];
        let (len, crc) = (fields.get_u32(), fields.get_u32());
        if len as usize > self.run.largest_block {
            return Err(self.damaged("a block is longer than any that was written"));
        }
        let mut block = vec![0; len as usize];
        self.run.file.read_exact_at(&mut block, self.offset + BLOCK_HEADER as u64)?;
        if crc32fast::hash(&block) != crc {
            return Err(self.damaged("the checksum of a block is wrong"));
        }
        let whole = u64::from(len) + BLOCK_HEADER as u64;
        self.run.file.advise_dont_need(self.offset, whole);
        self.offset += whole;
        self.block = block.into();
        Ok(())
    }

    fn damaged(&self, what: &str) -> Error {
        Error::corruption(self.run.file.path(), self.offset, what)
    }
}

/// Where cells come from in order.
enum Source {
    Memory(std::vec::IntoIter<Entry>),
    Run(RunReader),
}

impl Source {
    fn next(&mut self) -> Result<Option<Entry>> {
        match self {
            Source::Memory(entries) => Ok(entries.next()),
            Source::Run(run) => run.next(),
        }
    }
}

/// Sources as one.
pub(super) struct Merged {
    sources: Vec<Source>,
    heads: BinaryHeap<Head>,
}

/// The next cell of a source; the first in order is the greatest.
struct Head {
    entry: Entry,
    source: usize,
}

impl Ord for Head {
    fn cmp(&self, other: &Head) -> Ordering {
        compare(&other.entry.cell, &self.entry.cell)
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Head) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Head) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head {}

impl Merged {
    fn new(sources: Vec<Source>) -> Result<Merged> {
        let mut merged = Merged { heads: BinaryHeap::with_capacity(sources.len()), sources };
        for source in 0..merged.sources.len() {
            merged.pull(source)?;
        }
        Ok(merged)
    }

    fn pull(&mut self, source: usize) -> Result<()> {
        let next = self.sources.get_mut(source).map(Source::next).transpose()?.flatten();
        self.heads.extend(next.map(|entry| Head { entry, source }));
        Ok(())
    }

    /// The next cell in order.
    pub(super) fn next(&mut self) -> Result<Option<Entry>> {
        let Some(Head { entry, source }) = self.heads.pop() else { return Ok(None) };
        self.pull(source)?;
        Ok(Some(entry))
    }
}
