//! Reading all of a file and holding its parts against each other: `cellfs check`.
//!
//! Blocks: checksum, sizes, chain of previous offsets, place in the file. Cells: order within and across blocks. Index: every data block
//! in order, each key between the cells at its border. Filters: they know every key. File info and trailer: they say what the cells say.

use super::block::{BLOCK_HEADER_LEN, Block, BlockHeader, BlockType};
use super::cache::BlockCache;
use super::index::BlockPointer;
use super::input::Damage;
use super::reader::HFileReader;
use crate::cell::{Cell, compare, compare_flat_keys};
use crate::error::{Error, Result};
use crate::vfs::File;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Enough for the filters' chunks and the index while a file is verified.
const CACHE_LEN: u64 = 32 * 1024 * 1024;

/// What a sound file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedHFile {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Blocks of each kind, by HBase's name.
    pub blocks: BTreeMap<&'static str, u64>,
    /// Cells.
    pub entries: u64,
    /// Delete markers of all four kinds.
    pub tombstones: u64,
    /// Oldest and newest timestamp of a cell.
    pub time_range: Option<(i64, i64)>,
    /// Levels of the data index.
    pub index_levels: u32,
}

/// Reads and checks all of a file.
///
/// # Errors
/// [`Error::Corruption`] for the first thing that is wrong, with its place; those of [`HFileReader::open`] and of reading.
pub fn verify(file: Arc<dyn File>) -> Result<VerifiedHFile> {
    let reader = HFileReader::open(file, 0, Some(Arc::new(BlockCache::new(CACHE_LEN))))?;
    let entries = index_entries(&reader)?;
    let mut verifier = Verifier {
        reader: &reader,
        entries: entries.into_iter(),
        previous: BTreeMap::new(),
        blocks: BTreeMap::new(),
        last: None,
        cells: 0,
        tombstones: 0,
        family_markers: 0,
        max_sequence_id: 0,
        time_range: None,
        data_offsets: None,
    };
    verifier.walk()?;
    verifier.conclude()?;
    Ok(VerifiedHFile {
        file_bytes: reader.info().file_bytes,
        blocks: verifier.blocks.iter().map(|(kind, count)| (kind.name(), *count)).collect(),
        entries: verifier.cells,
        tombstones: verifier.tombstones,
        time_range: verifier.time_range,
        index_levels: reader.index_levels(),
    })
}

/// All entries of the lowest level of the index.
fn index_entries(reader: &HFileReader) -> Result<Vec<(BlockPointer, Vec<u8>)>> {
    let lowest = reader.index_levels_below_root()?.pop().unwrap_or_default();
    let entries = lowest.iter().flat_map(|block| block.entries());
    Ok(entries.map(|(pointer, key)| (pointer, key.to_vec())).collect())
}

struct Verifier<'a> {
    reader: &'a HFileReader,
    entries: std::vec::IntoIter<(BlockPointer, Vec<u8>)>,
    /// Offset of the last block of each chain.
    previous: BTreeMap<BlockType, u64>,
    blocks: BTreeMap<BlockType, u64>,
    last: Option<Cell>,
    cells: u64,
    tombstones: u64,
    family_markers: u64,
    max_sequence_id: u64,
    time_range: Option<(i64, i64)>,
    /// First and last data block.
    data_offsets: Option<(u64, u64)>,
}

impl Verifier<'_> {
    fn wrong<T>(&self, offset: u64, what: impl Into<String>) -> Result<T> {
        Err(Error::corruption(self.reader.path(), offset, what))
    }

    fn walk(&mut self) -> Result<()> {
        let (mut offset, end) = (0, self.reader.blocks_end());
        while offset < end {
            let mut header = [0; BLOCK_HEADER_LEN];
            self.reader.file().read_exact_at(&mut header, offset)?;
            let header = BlockHeader::parse(&header).map_err(|damage| damage.at(self.reader.path(), offset))?;
            let pointer = BlockPointer { offset, len: header.on_disk_len };
            let block = self.reader.read_block(pointer, None)?;
            self.place(pointer, &header)?;
            if header.kind.is_data() {
                self.data_block(pointer, &block)?;
            }
            offset += pointer.len as u64;
        }
        Ok(())
    }

    /// The block's link to the one before of its kind, and whether it may be in this part of the file.
    fn place(&mut self, pointer: BlockPointer, header: &BlockHeader) -> Result<()> {
        let before = self.previous.insert(header.kind.chain(), pointer.offset);
        if header.previous != before.map_or(-1, |offset| offset as i64) {
            let what = format!("a {} block points back to {}", header.kind.name(), header.previous);
            return self.wrong(pointer.offset, what);
        }
        *self.blocks.entry(header.kind).or_default() += 1;
        let on_open = matches!(
            header.kind,
            BlockType::RootIndex | BlockType::FileInfo | BlockType::GeneralBloomMeta | BlockType::DeleteFamilyBloomMeta
        );
        if on_open != (pointer.offset >= self.reader.trailer().load_on_open_data_offset()) {
            return self.wrong(pointer.offset, format!("a {} block stands in the wrong section", header.kind.name()));
        }
        Ok(())
    }

    fn data_block(&mut self, pointer: BlockPointer, block: &Block) -> Result<()> {
        let at = |damage: Damage| self.reader.damaged(damage, pointer);
        let cells = self.reader.data_form().cells(block).map_err(at)?;
        let Some(first) = cells.cell(0) else { return self.wrong(pointer.offset, "a data block has no cells") };
        match self.entries.next() {
            Some((entry, key)) if entry == pointer => self.border(pointer, &key, &first)?,
            _ => return self.wrong(pointer.offset, "the index does not have this data block in its place"),
        }
        for number in 0..cells.len() {
            match cells.cell(number) {
                Some(cell) => self.cell(pointer, cell)?,
                None => return self.wrong(pointer.offset, format!("cell {number} of a data block cannot be read")),
            }
        }
        let start = self.data_offsets.map_or(pointer.offset, |(start, _)| start);
        self.data_offsets = Some((start, pointer.offset));
        Ok(())
    }

    fn border(&self, pointer: BlockPointer, key: &[u8], first: &Cell) -> Result<()> {
        let after_last = match &self.last {
            Some(last) => compare_flat_keys(last.key(), key) == Ordering::Less,
            None => key == first.key(),
        };
        if after_last && compare_flat_keys(key, first.key()) != Ordering::Greater {
            return Ok(());
        }
        self.wrong(pointer.offset, "the index key of a data block does not lie between its neighbours")
    }

    fn cell(&mut self, pointer: BlockPointer, cell: Cell) -> Result<()> {
        if let Some(last) = &self.last
            && compare(last, &cell) == Ordering::Greater
        {
            return self.wrong(pointer.offset, format!("{cell:?} is behind {last:?}"));
        }
        self.filters(pointer, &cell)?;
        self.cells += 1;
        self.tombstones += u64::from(cell.is_delete());
        self.max_sequence_id = self.max_sequence_id.max(cell.sequence_id());
        let (min, max) = self.time_range.unwrap_or((i64::MAX, i64::MIN));
        self.time_range = Some((min.min(cell.timestamp()), max.max(cell.timestamp())));
        self.last = Some(cell);
        Ok(())
    }

    fn filters(&mut self, pointer: BlockPointer, cell: &Cell) -> Result<()> {
        let is_family_marker = super::bloom::is_family_marker(cell);
        self.family_markers += u64::from(is_family_marker);
        let same_row = self.last.as_ref().is_some_and(|last| last.row() == cell.row());
        let same_column = same_row && self.last.as_ref().is_some_and(|last| last.qualifier() == cell.qualifier());
        if !same_column && !self.reader.may_contain_column(cell.row(), cell.qualifier())? {
            return self.wrong(pointer.offset, format!("the bloom filter does not know {cell:?}"));
        }
        if is_family_marker && !self.reader.may_contain_family_marker(cell.row())? {
            return self.wrong(pointer.offset, format!("the delete family filter does not know {cell:?}"));
        }
        Ok(())
    }

    /// What the trailer and the file info say of the whole.
    fn conclude(&mut self) -> Result<()> {
        let (trailer, info) = (self.reader.trailer(), self.reader.info());
        let end = self.reader.blocks_end();
        if let Some((pointer, _)) = self.entries.next() {
            return self.wrong(pointer.offset, "the index has a data block that is not in the file");
        }
        if self.cells != info.entries {
            return self.wrong(end, format!("the trailer counts {} cells, the file has {}", info.entries, self.cells));
        }
        if let Some((first, last)) = self.data_offsets
            && (trailer.first_data_block_offset(), trailer.last_data_block_offset()) != (first, last)
        {
            return self.wrong(end, format!("the data blocks begin at {first} and {last}, the trailer says otherwise"));
        }
        let info_offset = trailer.file_info_offset();
        let last_key = self.reader.file_info().get(super::file_info::key::LAST_KEY);
        if let (Some(said), Some(last)) = (last_key, &self.last)
            && said[..] != *last.key()
        {
            return self.wrong(info_offset, "the file info has another last key than the file");
        }
        if let (Some((min, max)), Some((said_min, said_max))) = (self.time_range, info.time_range)
            && (min < said_min || max > said_max)
        {
            return self.wrong(info_offset, format!("cells are of {min} to {max}, the file info says otherwise"));
        }
        if info.family_markers.is_some_and(|said| said != self.family_markers) {
            return self.wrong(info_offset, "the file info has another count of family markers than the file");
        }
        if self.max_sequence_id > info.max_cell_sequence_id {
            return self.wrong(info_offset, "a cell has a greater sequence id than the file info says");
        }
        self.chunk_counts(end)
    }

    fn chunk_counts(&self, end: u64) -> Result<()> {
        let blooms = [&self.reader.general_bloom, &self.reader.delete_family_bloom];
        let chunks: u64 = blooms.into_iter().flatten().map(|bloom| bloom.chunks.len() as u64).sum();
        if self.blocks.get(&BlockType::BloomChunk).copied().unwrap_or(0) != chunks {
            return self.wrong(end, "the bloom filters have another count of chunks than the file");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{MemoryFile, sample, write};
    use super::*;
    use crate::cell::CellType;
    use crate::hfile::HFileWriterOptions;

    #[test]
    fn a_sound_file_passes_and_says_what_it_holds() {
        let cells = sample(400);
        let options = HFileWriterOptions { block_size: 300, index_chunk_size: 400, ..HFileWriterOptions::default() };
        let (bytes, summary) = write(&cells, options);
        let verified = verify(MemoryFile::with(bytes)).unwrap();
        assert_eq!((verified.entries, verified.tombstones), (cells.len() as u64, summary.tombstones));
        assert_eq!(verified.blocks["DATA"], summary.data_blocks);
        assert!(verified.index_levels > 1);
        assert!(cells.iter().any(|cell| cell.cell_type() == CellType::DeleteFamily));
    }

    #[test]
    fn a_flipped_byte_anywhere_in_the_blocks_is_found() {
        let (bytes, _) = write(&sample(40), HFileWriterOptions { block_size: 300, ..HFileWriterOptions::default() });
        let blocks_end = bytes.len() - 4096;
        for at in 0..blocks_end {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << (at % 8);
            assert!(matches!(verify(MemoryFile::with(bad)), Err(Error::Corruption { .. })), "byte {at}");
        }
    }
}
