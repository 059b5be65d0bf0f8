//! An open HFile: its index and filters, and blocks by offset (HBase `HFileReaderImpl`, `StoreFileReader`).

use super::block::{BLOCK_HEADER_LEN, Block, BlockHeader, BlockType};
use super::bloom::{BloomMeta, chunk_contains, row_column_key};
use super::cache::{BlockCache, CachedBlock};
use super::codec::codec_from_ordinal;
use super::data_block::{CellLayout, DataBlock};
use super::file_info::{FileInfo, key};
use super::index::{BlockPointer, IndexBlock, MidKey, parse_mid_key};
use super::info::{HFileCounters, HFileInfo, bloom_of, encoding_of};
use super::input::{Damage, Parsed};
use super::scanner::{HFileScanner, ReadAhead, ReadOptions};
use super::trailer::{FileTrailer, ParsedTrailer, TRAILER_LEN, parse_trailer};
use super::write_through::DataForm;
use crate::cell::Cell;
use crate::error::{Error, Result};
use crate::schema::{BloomType, Compression};
use crate::vfs::File;
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// HBase stops at 16 levels of index.
const INDEX_LEVELS_MAX: u32 = 16;

/// An open HFile. The root of the index, the file info and the index of each filter stay in memory; everything else comes through the cache.
pub struct HFileReader {
    file: Arc<dyn File>,
    file_id: u64,
    cache: Option<Arc<BlockCache>>,
    counters: Arc<HFileCounters>,
    /// The family is IN_MEMORY.
    in_memory: AtomicBool,
    pub(super) trailer: ParsedTrailer,
    /// Where the trailer begins: no block reaches beyond.
    blocks_end: u64,
    file_info: FileInfo,
    info: HFileInfo,
    layout: CellLayout,
    tags_compressed: bool,
    pub(super) root: Arc<IndexBlock>,
    pub(super) mid_key: Option<MidKey>,
    pub(super) meta_index: IndexBlock,
    pub(super) general_bloom: Option<BloomMeta>,
    pub(super) delete_family_bloom: Option<BloomMeta>,
}

/// The blocks behind `load_on_open_data_offset`, parsed.
struct LoadOnOpen {
    root: IndexBlock,
    mid_key: Option<MidKey>,
    meta_index: IndexBlock,
    file_info: FileInfo,
    general_bloom: Option<BloomMeta>,
    delete_family_bloom: Option<BloomMeta>,
}

impl HFileReader {
    /// Opens a file. `file_id` names it in the cache and is never given to another file; without a cache every block is read anew.
    ///
    /// # Errors
    /// [`Error::Corruption`] where the file is no sound HFile, [`Error::Unsupported`] for a codec or an encryption that cellfs does not
    /// know, and those of reading.
    pub fn open(file: Arc<dyn File>, file_id: u64, cache: Option<Arc<BlockCache>>) -> Result<Arc<HFileReader>> {
        HFileReader::open_counted(file, file_id, cache, Arc::default())
    }

    /// As [`HFileReader::open`], counting in `counters`, which several readers may share.
    ///
    /// # Errors
    /// Those of [`HFileReader::open`].
    pub fn open_counted(
        file: Arc<dyn File>,
        file_id: u64,
        cache: Option<Arc<BlockCache>>,
        counters: Arc<HFileCounters>,
    ) -> Result<Arc<HFileReader>> {
        let file_len = file.len()?;
        let tail_len = file_len.min(TRAILER_LEN as u64);
        let mut tail = vec![0; tail_len as usize];
        file.read_exact_at(&mut tail, file_len - tail_len)?;
        let trailer = parse_trailer(&tail).map_err(|damage| damage.at(file.path(), file_len - tail_len))?;
        let blocks_end = file_len - trailer.len as u64;
        let codec = supported_codec(&trailer.fields, file.path())?;
        let loaded = load_on_open(&*file, &trailer.fields, blocks_end, codec)?;
        let info_offset = trailer.fields.file_info_offset();
        let (layout, tags_compressed) =
            layout_of(&loaded.file_info).map_err(|damage| damage.at(file.path(), info_offset))?;
        supported_index(&loaded.file_info, file.path())?;
        let info = gather_info(&trailer.fields, &loaded, file_len, codec)
            .map_err(|damage| damage.at(file.path(), info_offset))?;
        Ok(Arc::new(HFileReader {
            file,
            file_id,
            cache,
            counters,
            in_memory: AtomicBool::new(false),
            trailer,
            blocks_end,
            file_info: loaded.file_info,
            info,
            layout,
            tags_compressed,
            root: Arc::new(loaded.root),
            mid_key: loaded.mid_key,
            meta_index: loaded.meta_index,
            general_bloom: loaded.general_bloom,
            delete_family_bloom: loaded.delete_family_bloom,
        }))
    }

    /// The path it was opened by.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The id it was opened by.
    pub fn file_id(&self) -> u64 {
        self.file_id
    }

    /// What the file says about itself.
    pub fn info(&self) -> &HFileInfo {
        &self.info
    }

    /// The file's properties by name.
    pub fn file_info(&self) -> &FileInfo {
        &self.file_info
    }

    /// The trailer.
    pub fn trailer(&self) -> &FileTrailer {
        &self.trailer.fields
    }

    /// Major and minor version of the format.
    pub fn version(&self) -> (u32, u8) {
        (self.trailer.major, self.trailer.minor)
    }

    /// The content of a named block beside the data (HBase `HFile.Reader.getMetaBlock`).
    ///
    /// # Errors
    /// Those of reading the block.
    pub fn meta_block(&self, name: &[u8]) -> Result<Option<Bytes>> {
        let found = self.meta_index.find_by(|key| key.cmp(name)).filter(|at| self.meta_index.key(*at) == Some(name));
        let Some(pointer) = found.and_then(|at| self.meta_index.pointer(at)) else { return Ok(None) };
        let block = self.read_block(pointer, None)?;
        block.expect(BlockType::Meta).map_err(|damage| self.damaged(damage, pointer))?;
        Ok(Some(block.payload))
    }

    /// What has been read through this reader (and through those that share its counters).
    pub fn counters(&self) -> &Arc<HFileCounters> {
        &self.counters
    }

    /// A cursor over the file's cells.
    pub fn scanner(self: &Arc<Self>, options: ReadOptions) -> HFileScanner {
        HFileScanner::new(self.clone(), options)
    }

    /// False if the general filter knows that no cell has this row. A row-column filter cannot tell and says true.
    ///
    /// # Errors
    /// Those of reading the filter.
    pub fn may_contain_row(&self, row: &[u8]) -> Result<bool> {
        match (self.info.bloom, &self.general_bloom) {
            (BloomType::Row, Some(bloom)) => self.ask(bloom, row),
            (BloomType::RowPrefixFixedLength(length), Some(bloom)) => {
                self.ask(bloom, row.get(..length as usize).unwrap_or(row))
            }
            _ => Ok(true),
        }
    }

    /// False if the general filter knows that no cell has this row and qualifier and no family marker has this row.
    ///
    /// # Errors
    /// Those of reading the filter.
    pub fn may_contain_column(&self, row: &[u8], qualifier: &[u8]) -> Result<bool> {
        let (BloomType::RowCol, Some(bloom)) = (self.info.bloom, &self.general_bloom) else {
            return self.may_contain_row(row);
        };
        let mut name = Vec::with_capacity(12 + row.len() + qualifier.len());
        row_column_key(row, qualifier, &mut name);
        let mut maybe = self.probe(bloom, &name)?;
        if !maybe && !qualifier.is_empty() && self.info.family_markers != Some(0) {
            // Family markers have the empty qualifier and hide every column (HBase `StoreFileReader.checkGeneralBloomFilter`).
            row_column_key(row, b"", &mut name);
            maybe = self.probe(bloom, &name)?;
        }
        self.counters.note_bloom(maybe);
        Ok(maybe)
    }

    /// False if no DeleteFamily or DeleteFamilyVersion marker has this row. It is not counted among the answers of filters: it spares no file.
    ///
    /// # Errors
    /// Those of reading the filter.
    pub fn may_contain_family_marker(&self, row: &[u8]) -> Result<bool> {
        match &self.delete_family_bloom {
            _ if self.info.family_markers == Some(0) => Ok(false),
            Some(bloom) => self.probe(bloom, row),
            None => Ok(true),
        }
    }

    /// The row near the middle of the file's bytes: where a region is split. It may be a shortened row that no cell has.
    ///
    /// # Errors
    /// Those of reading a leaf of the index.
    pub fn mid_row(&self) -> Result<Option<Bytes>> {
        let leaf;
        let found = match self.mid_key {
            Some(mid) => {
                leaf = self.index_block(mid.leaf, BlockType::LeafIndex)?;
                leaf.key(mid.entry)
            }
            None => self.root.key(self.root.len() / 2),
        };
        Ok(found.and_then(row_of))
    }

    fn ask(&self, bloom: &BloomMeta, name: &[u8]) -> Result<bool> {
        let maybe = self.probe(bloom, name)?;
        self.counters.note_bloom(maybe);
        Ok(maybe)
    }

    fn probe(&self, bloom: &BloomMeta, name: &[u8]) -> Result<bool> {
        let Some(pointer) = bloom.chunk_of(name).and_then(|chunk| bloom.chunks.pointer(chunk)) else {
            return Ok(false);
        };
        Ok(chunk_contains(&self.bloom_chunk(pointer)?, bloom.hashes, name))
    }

    fn cached(&self, pointer: BlockPointer) -> Option<CachedBlock> {
        let found = self.cache.as_ref()?.get(self.file_id, pointer.offset);
        self.counters.note_cache(found.is_some());
        found
    }

    fn keep(&self, pointer: BlockPointer, block: CachedBlock) {
        if let Some(cache) = &self.cache {
            cache.insert(self.file_id, pointer.offset, block, self.in_memory.load(Ordering::Relaxed));
        }
    }

    /// Blocks read from now on go to the part of the cache that IN_MEMORY families have, or to that of all others.
    pub fn set_in_memory(&self, in_memory: bool) {
        self.in_memory.store(in_memory, Ordering::Relaxed);
    }

    pub(super) fn cache(&self) -> Option<&Arc<BlockCache>> {
        self.cache.as_ref()
    }

    fn bloom_chunk(&self, pointer: BlockPointer) -> Result<Bytes> {
        if let Some(CachedBlock::Bloom(bits)) = self.cached(pointer) {
            return Ok(bits);
        }
        self.load_bloom_chunk(pointer)
    }

    pub(super) fn load_bloom_chunk(&self, pointer: BlockPointer) -> Result<Bytes> {
        let block = self.read_block(pointer, None)?;
        block.expect(BlockType::BloomChunk).map_err(|damage| self.damaged(damage, pointer))?;
        self.keep(pointer, CachedBlock::Bloom(block.payload.clone()));
        Ok(block.payload)
    }

    /// An index block below the root.
    pub(super) fn index_block(&self, pointer: BlockPointer, kind: BlockType) -> Result<Arc<IndexBlock>> {
        if let Some(CachedBlock::Index(block)) = self.cached(pointer) {
            return Ok(block);
        }
        self.load_index_block(pointer, kind)
    }

    pub(super) fn load_index_block(&self, pointer: BlockPointer, kind: BlockType) -> Result<Arc<IndexBlock>> {
        let block = self.read_block(pointer, None)?;
        let parsed = block.expect(kind).and_then(|()| IndexBlock::parse(&block.payload));
        let parsed = Arc::new(parsed.map_err(|damage| self.damaged(damage, pointer))?);
        self.keep(pointer, CachedBlock::Index(parsed.clone()));
        Ok(parsed)
    }

    /// The index level by level from the root; blocks of a level stand one behind the other in the file, so that no index, however it points,
    /// has more than fit.
    pub(super) fn index_levels_below_root(&self) -> Result<Vec<Vec<Arc<IndexBlock>>>> {
        let mut levels = vec![vec![Arc::clone(&self.root)]];
        for level in 1..self.index_levels() {
            let kind =
                if level + 1 == self.index_levels() { BlockType::LeafIndex } else { BlockType::IntermediateIndex };
            let (mut below, mut behind) = (Vec::new(), 0);
            for block in levels.last().into_iter().flatten() {
                for (pointer, key) in block.entries() {
                    self.check_forward(behind, pointer)?;
                    behind = pointer.offset + pointer.len as u64;
                    let child = self.index_block(pointer, kind)?;
                    if child.key(0) != Some(key) {
                        let what = "an index block does not begin with the key that its parent has for it";
                        return Err(Error::corruption(self.path(), pointer.offset, what));
                    }
                    below.push(child);
                }
            }
            levels.push(below);
        }
        Ok(levels)
    }

    /// An index that goes back in the file could go on for ever.
    pub(super) fn check_forward(&self, behind: u64, pointer: BlockPointer) -> Result<()> {
        if pointer.offset >= behind {
            return Ok(());
        }
        Err(Error::corruption(self.path(), pointer.offset, "the index goes back from one block to the next"))
    }

    /// A block of cells; `ahead` is where a sequential scan keeps what it has read in advance.
    pub(super) fn data_block(
        &self,
        pointer: BlockPointer,
        keep: bool,
        ahead: Option<&mut ReadAhead>,
    ) -> Result<Arc<DataBlock>> {
        if let Some(CachedBlock::Data(block)) = self.cached(pointer) {
            return Ok(block);
        }
        self.counters.note_data_block_read();
        self.load_data_block(pointer, keep, ahead)
    }

    pub(super) fn load_data_block(
        &self,
        pointer: BlockPointer,
        keep: bool,
        ahead: Option<&mut ReadAhead>,
    ) -> Result<Arc<DataBlock>> {
        let keep = keep && self.cache.is_some();
        let mut ahead = ahead;
        let mut cells = match ahead.as_mut().and_then(|ahead| ahead.decoded(pointer)) {
            Some(decoded) => decoded,
            None => self.data_form().cells(&self.read_block(pointer, ahead)?),
        }
        .map_err(|damage| self.damaged(damage, pointer))?;
        if keep && self.info.compression == Compression::None {
            cells = cells.into_compact();
        }
        let cells = Arc::new(cells);
        if keep {
            self.keep(pointer, CachedBlock::Data(cells.clone()));
        }
        Ok(cells)
    }

    /// How data blocks become cells.
    pub(super) fn data_form(&self) -> DataForm {
        DataForm {
            compression: self.info.compression,
            encoding: self.info.encoding,
            layout: self.layout,
            tags_compressed: self.tags_compressed,
        }
    }

    /// Begins to decode those of the next data blocks of `leaf`, behind entry `at`, that a sequential scan has read in advance.
    pub(super) fn decode_ahead(&self, leaf: &IndexBlock, at: usize, ahead: &mut ReadAhead) {
        let next = (at + 1..leaf.len()).map_while(|entry| leaf.pointer(entry));
        let in_cache =
            |pointer: BlockPointer| self.cache.as_ref().is_some_and(|cache| cache.has(self.file_id, pointer.offset));
        ahead.decode(next.filter(|pointer| !in_cache(*pointer)), self.data_form());
    }

    /// The verified block at `pointer`, which may be a claim of a damaged index: it is held against the file's size first.
    pub(super) fn read_block(&self, pointer: BlockPointer, ahead: Option<&mut ReadAhead>) -> Result<Block> {
        let end = pointer.offset.checked_add(pointer.len as u64);
        if pointer.len < BLOCK_HEADER_LEN || end.is_none_or(|end| end > self.blocks_end) {
            let what = format!("an index points to {} bytes at {}, not a block", pointer.len, pointer.offset);
            return Err(Error::corruption(self.path(), pointer.offset, what));
        }
        let raw = match ahead {
            Some(ahead) => ahead.read(&*self.file, pointer, self.trailer.fields.load_on_open_data_offset())?,
            None => {
                let mut raw = vec![0; pointer.len];
                self.file.read_exact_at(&mut raw, pointer.offset)?;
                Bytes::from(raw)
            }
        };
        Block::decode(&raw, self.info.compression).map_err(|damage| self.damaged(damage, pointer))
    }

    pub(super) fn damaged(&self, damage: Damage, pointer: BlockPointer) -> Error {
        damage.at(self.path(), pointer.offset)
    }

    pub(super) fn file(&self) -> &dyn File {
        &*self.file
    }

    /// Where the blocks end and the trailer begins.
    pub(super) fn blocks_end(&self) -> u64 {
        self.blocks_end
    }

    /// Levels of the data index; 1 is the root alone.
    pub(super) fn index_levels(&self) -> u32 {
        self.trailer.fields.num_data_index_levels.unwrap_or(1).max(1)
    }
}

impl std::fmt::Debug for HFileReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HFileReader {{ {}, {} cells }}", self.path().display(), self.info.entries)
    }
}

fn row_of(flat_key: &[u8]) -> Option<Bytes> {
    let (length, rest) = flat_key.split_first_chunk::<2>()?;
    rest.get(..usize::from(u16::from_be_bytes(*length))).map(Bytes::copy_from_slice)
}

fn supported_codec(trailer: &FileTrailer, path: &Path) -> Result<Compression> {
    let unsupported = |what: String| Error::Unsupported { file: path.to_path_buf(), what };
    if trailer.encryption_key.is_some() {
        return Err(unsupported("an encrypted HFile".to_owned()));
    }
    codec_from_ordinal(trailer.compression_codec.unwrap_or(2))
        .map_err(|name| unsupported(format!("{name} compression")))
}

fn supported_index(info: &FileInfo, path: &Path) -> Result<()> {
    match info.get(key::INDEX_BLOCK_ENCODING).map(|name| &name[..]) {
        None | Some(b"NONE") => Ok(()),
        Some(name) => Err(Error::Unsupported {
            file: path.to_path_buf(),
            what: format!("the index block encoding {}", name.escape_ascii()),
        }),
    }
}

fn load_on_open(file: &dyn File, trailer: &FileTrailer, end: u64, codec: Compression) -> Result<LoadOnOpen> {
    let start = trailer.load_on_open_data_offset();
    let levels = trailer.num_data_index_levels.unwrap_or(1);
    if start >= end || levels > INDEX_LEVELS_MAX {
        let what = format!("the trailer says that {levels} index levels begin at {start} of {end}");
        return Err(Error::corruption(file.path(), end, what));
    }
    let mut raw = vec![0; (end - start) as usize];
    file.read_exact_at(&mut raw, start)?;
    let mut section = Section { rest: Bytes::from(raw), offset: start, codec };
    let at = |offset: u64| move |damage: Damage| damage.at(file.path(), offset);

    let offset = section.offset;
    let (root, mid_key) = section
        .next(BlockType::RootIndex)
        .and_then(|payload| IndexBlock::parse_root(&payload, trailer.data_index_count() as usize))
        .and_then(|(root, rest)| Ok((root, mid_key_behind(&rest, levels)?)))
        .map_err(at(offset))?;
    let offset = section.offset;
    let meta_index = section
        .next(BlockType::RootIndex)
        .and_then(|payload| IndexBlock::parse_root(&payload, trailer.meta_index_count() as usize))
        .and_then(|(index, rest)| mid_key_behind(&rest, 1).map(|_| index))
        .map_err(at(offset))?;
    let offset = section.offset;
    if offset != trailer.file_info_offset() {
        let what = "the file info is not where the trailer says";
        return Err(Error::corruption(file.path(), offset, what));
    }
    let file_info =
        section.next(BlockType::FileInfo).and_then(|payload| FileInfo::parse(&payload)).map_err(at(offset))?;
    let (mut general_bloom, mut delete_family_bloom) = (None, None);
    while !section.rest.is_empty() {
        let offset = section.offset;
        let (kind, bloom) = section
            .block()
            .and_then(|block| Ok((block.header.kind, BloomMeta::parse(&block.payload)?)))
            .map_err(at(offset))?;
        match kind {
            BlockType::GeneralBloomMeta => general_bloom = Some(bloom),
            BlockType::DeleteFamilyBloomMeta => delete_family_bloom = Some(bloom),
            _ => return Err(Error::corruption(file.path(), offset, "a block stands where none is due")),
        }
    }
    Ok(LoadOnOpen { root, mid_key, meta_index, file_info, general_bloom, delete_family_bloom })
}

/// What follows the entries of a root: the mid-key if there are levels below, else nothing. A wrong count of entries shows here.
fn mid_key_behind(rest: &[u8], levels: u32) -> Parsed<Option<MidKey>> {
    match (levels > 1, rest.is_empty()) {
        (true, _) => parse_mid_key(rest).map(Some),
        (false, true) => Ok(None),
        (false, false) => Err(Damage::new("a root index has bytes behind its entries")),
    }
}

/// Blocks one after the other.
struct Section {
    rest: Bytes,
    offset: u64,
    codec: Compression,
}

impl Section {
    fn block(&mut self) -> Parsed<Block> {
        let len = BlockHeader::parse(&self.rest)?.on_disk_len;
        if len > self.rest.len() {
            return Err(Damage::new("a block reaches into the trailer"));
        }
        let raw = self.rest.split_to(len);
        self.offset += len as u64;
        Block::decode(&raw, self.codec)
    }

    fn next(&mut self, kind: BlockType) -> Parsed<Bytes> {
        let block = self.block()?;
        block.expect(kind)?;
        Ok(block.payload)
    }
}

fn layout_of(info: &FileInfo) -> Parsed<(CellLayout, bool)> {
    let layout = CellLayout {
        tags: info.get(key::MAX_TAGS_LEN).is_some(),
        sequence_ids: info.i32(key::KEY_VALUE_VERSION)? == Some(1),
    };
    Ok((layout, layout.tags && info.bool(key::TAGS_COMPRESSED)?.unwrap_or(false)))
}

fn gather_info(trailer: &FileTrailer, loaded: &LoadOnOpen, file_len: u64, codec: Compression) -> Parsed<HFileInfo> {
    let info = &loaded.file_info;
    let unsigned = |value: Option<i64>| value.and_then(|id| u64::try_from(id).ok());
    let entries = trailer.entry_count();
    let average = |name: &str| -> Parsed<u64> { Ok(info.i32(name)?.and_then(|n| u64::try_from(n).ok()).unwrap_or(0)) };
    let blooms = [&loaded.general_bloom, &loaded.delete_family_bloom];
    Ok(HFileInfo {
        file_bytes: file_len,
        uncompressed_bytes: trailer.total_uncompressed_bytes(),
        index_bytes: trailer.uncompressed_data_index_size(),
        bloom_bytes: blooms.into_iter().flatten().map(|bloom| bloom.total_len).fold(0, u64::saturating_add),
        entries,
        key_bytes: average(key::AVG_KEY_LEN)?.saturating_mul(entries),
        value_bytes: average(key::AVG_VALUE_LEN)?.saturating_mul(entries),
        time_range: info.time_range()?,
        earliest_put: info.i64(key::EARLIEST_PUT)?,
        first_row: loaded.root.key(0).and_then(row_of),
        last_row: info.get(key::LAST_KEY).and_then(|last| row_of(last)),
        family_markers: unsigned(info.i64(key::DELETE_FAMILY_COUNT)?),
        max_sequence_id: unsigned(info.i64(key::MAX_SEQ_ID)?),
        max_cell_sequence_id: unsigned(info.i64(key::MAX_MEMSTORE_TS)?).unwrap_or(0),
        major_compaction: info.bool(key::MAJOR_COMPACTION)?.unwrap_or(false),
        created: info.i64(key::CREATE_TIME)?,
        bulk_load_time: info.i64(key::BULKLOAD_TIMESTAMP)?,
        tags: info.get(key::MAX_TAGS_LEN).is_some(),
        encoding: encoding_of(info)?,
        compression: codec,
        bloom: bloom_of(info)?,
    })
}

/// The search key in front of every cell of a file.
pub(super) fn before_everything() -> Cell {
    Cell::first_on_row(b"")
}
