//! Writing an HFile: sorted cells in, blocks, index, filters and trailer out (HBase `HFileWriterImpl`, `StoreFileWriter`).

use super::block::BlockType;
use super::bloom::{BLOOM_CHUNK_LEN, is_family_marker};
use super::bloom_writer::BloomWriter;
use super::checksum::ChecksumType;
use super::codec::codec_ordinal;
use super::data_block::CellLayout;
use super::encoding::BlockEncoder;
use super::facts::{CellFacts, HFileSummary, StoreFileInfo, tags_compressed};
use super::index::separator;
use super::index_writer::{INDEX_CHUNK_LEN, INDEX_ENTRIES_MIN, IndexWriter};
use super::last_cell::LastCell;
use super::output::Output;
use super::trailer::{COMPARATOR, FileTrailer, append_trailer};
use super::write_through::{DataForm, WriteThrough};
use crate::cell::{Cell, compare_flat_keys};
use crate::error::{Error, Result};
use crate::schema::{BloomType, ColumnFamilyDescriptor, Compression, DataBlockEncoding};
use crate::vfs::File;
use std::cmp::Ordering;
use std::sync::Arc;

/// How a file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HFileWriterOptions {
    /// A data block ends with the cell that brings it to this size, in bytes before compression.
    pub block_size: usize,
    /// Codec of all blocks.
    pub compression: Compression,
    /// Encoding of data blocks.
    pub encoding: DataBlockEncoding,
    /// The general bloom filter.
    pub bloom: BloomType,
    /// Cells have a tags field. Without it a cell with tags is refused.
    pub tags: bool,
    /// With an encoding other than NONE and ROW_INDEX_V1: tags that repeat within a block are written as dictionary indexes.
    pub compress_tags: bool,
    /// Cells keep their sequence ids. Files for bulk loads have none.
    pub sequence_ids: bool,
    /// Checksums of blocks.
    pub checksum: ChecksumType,
    /// Bytes of a full bloom chunk before folding (`io.storefile.bloom.block.size`).
    pub bloom_chunk_size: usize,
    /// Bytes of a full index block (`hfile.index.block.max.size`).
    pub index_chunk_size: usize,
    /// A root index of at most so many entries stays one block (`hfile.index.block.min.entries`).
    pub index_entries_min: usize,
    /// Milliseconds since the epoch, noted as the time of creation.
    pub created: i64,
}

impl Default for HFileWriterOptions {
    fn default() -> Self {
        HFileWriterOptions {
            block_size: 64 * 1024,
            compression: Compression::None,
            encoding: DataBlockEncoding::None,
            bloom: BloomType::Row,
            tags: false,
            compress_tags: true,
            sequence_ids: true,
            checksum: ChecksumType::Crc32,
            bloom_chunk_size: BLOOM_CHUNK_LEN,
            index_chunk_size: INDEX_CHUNK_LEN,
            index_entries_min: INDEX_ENTRIES_MIN,
            created: 0,
        }
    }
}

impl HFileWriterOptions {
    /// The options of a family's store files; `tags` says whether any cell that will come has some.
    pub fn for_family(family: &ColumnFamilyDescriptor, tags: bool, created: i64) -> HFileWriterOptions {
        HFileWriterOptions {
            block_size: family.block_size as usize,
            compression: family.compression,
            encoding: family.data_block_encoding,
            bloom: family.bloom,
            tags,
            compress_tags: family.compress_tags(),
            created,
            ..HFileWriterOptions::default()
        }
    }
}

/// Writes one HFile of one family. Cells come in the order of [`compare`]. The file is sound only after [`HFileWriter::finish`], and
/// durable only after the caller has synced it and its directory.
pub struct HFileWriter {
    options: HFileWriterOptions,
    output: Output,
    encoder: BlockEncoder,
    index: IndexWriter,
    general_bloom: Option<BloomWriter>,
    delete_family_bloom: Option<BloomWriter>,
    facts: CellFacts,
    last_cell: LastCell,
    /// The last cell of the block before the current one.
    last_of_previous: Option<Cell>,
    first_of_block: Option<Cell>,
    first_data: i64,
    last_data: i64,
    data_blocks: u64,
}

impl HFileWriter {
    /// Begins a file at offset 0 of `file`, which is empty.
    ///
    /// # Errors
    /// A compressor that cannot be made, an empty row prefix.
    pub fn create(file: Arc<dyn File>, options: HFileWriterOptions) -> Result<HFileWriter> {
        if options.bloom == BloomType::RowPrefixFixedLength(0) {
            return Err(Error::invalid("a row prefix bloom filter needs a prefix length"));
        }
        let layout = CellLayout { tags: options.tags, sequence_ids: options.sequence_ids };
        let form = DataForm {
            compression: options.compression,
            encoding: options.encoding,
            layout,
            tags_compressed: tags_compressed(&options),
        };
        let kind = match options.encoding {
            DataBlockEncoding::None => BlockType::Data,
            _ => BlockType::EncodedData,
        };
        let bloom = |kind| BloomWriter::new(kind, options.bloom_chunk_size);
        Ok(HFileWriter {
            output: Output::new(file, &options, kind, form)?,
            encoder: BlockEncoder::new(options.encoding, layout, tags_compressed(&options)),
            index: IndexWriter::new(options.index_chunk_size, options.index_entries_min),
            general_bloom: (options.bloom != BloomType::None).then(|| bloom(options.bloom)),
            // A row-column filter answers for family markers by their empty qualifier.
            delete_family_bloom: (options.bloom != BloomType::RowCol).then(|| bloom(BloomType::Row)),
            facts: CellFacts::default(),
            last_cell: LastCell::default(),
            last_of_previous: None,
            first_of_block: None,
            first_data: -1,
            last_data: -1,
            data_blocks: 0,
            options,
        })
    }

    /// From now on blocks go to the cache as well. If the file comes to nothing, the caller lets the cache forget it.
    pub fn write_through(&mut self, cache: WriteThrough) {
        self.output.write_through = Some(cache);
    }

    /// Bytes of the file so far, without the blocks that are being filled and compressed.
    pub fn len(&self) -> u64 {
        self.output.offset()
    }

    /// True before the first cell.
    pub fn is_empty(&self) -> bool {
        !self.last_cell.is_some()
    }

    /// Appends a cell.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a cell out of order, of another family, or with tags in a file without; those of writing, after
    /// which the file is of no use.
    pub fn append(&mut self, cell: &Cell) -> Result<()> {
        let same_row = self.check(cell)?;
        if self.encoder.len() >= self.options.block_size && !self.encoder.is_empty() && !self.repeats_key(cell) {
            self.finish_block()?;
            self.write_inline_blocks(false)?;
        }
        if self.encoder.is_empty() {
            self.first_of_block = Some(cell.clone());
        }
        self.encoder.append(cell, &self.last_cell, same_row);
        if let Some(bloom) = &mut self.general_bloom {
            bloom.add(cell, same_row);
        }
        if let Some(bloom) = &mut self.delete_family_bloom
            && is_family_marker(cell)
        {
            // The marker before may be of this row, or the cell before no marker.
            bloom.add(cell, false);
        }
        self.facts.note(cell, self.options.tags);
        self.last_cell.set(cell);
        Ok(())
    }

    /// Cells of one key, told apart by sequence ids alone, never straddle blocks: the index could not tell them apart.
    fn repeats_key(&self, cell: &Cell) -> bool {
        self.last_cell.is_some() && compare_flat_keys(self.last_cell.key(), cell.key()) == Ordering::Equal
    }

    /// True if the cell has the row of the one before.
    fn check(&self, cell: &Cell) -> Result<bool> {
        let refuse = |what: &str| Err(Error::invalid(format!("{what}: {cell:?}")));
        if !cell.tags().is_empty() && !self.options.tags {
            return refuse("a cell with tags for a file without");
        }
        let last = &self.last_cell;
        if !last.is_some() {
            return Ok(false);
        }
        let rows = last.row().cmp(cell.row());
        if rows.then_with(|| last.compare_behind_row(cell)) == Ordering::Greater {
            return refuse("a cell out of order");
        }
        if last.family() != cell.family() {
            return refuse("a cell of a second family");
        }
        Ok(rows == Ordering::Equal)
    }

    fn finish_block(&mut self) -> Result<()> {
        let Some(first) = self.first_of_block.take() else { return Ok(()) };
        // The first block's key is the file's first key, which readers take as such.
        let key = match &self.last_of_previous {
            Some(before) => separator(before, &first),
            None => first.key().to_vec(),
        };
        self.index.add(&key);
        self.last_of_previous = Some(self.last_cell.to_cell());
        self.data_blocks += 1;
        self.output.begin(&mut self.encoder);
        self.place_blocks(false)
    }

    /// Notes where the data blocks went that have been compressed: all of them, or as many as are not to wait any longer.
    fn place_blocks(&mut self, all: bool) -> Result<()> {
        while let Some(pointer) = self.output.place(all)? {
            self.index.placed(pointer);
            self.last_data = pointer.offset as i64;
            if self.first_data < 0 {
                self.first_data = self.last_data;
            }
        }
        Ok(())
    }

    fn write_inline_blocks(&mut self, closing: bool) -> Result<()> {
        let mut blooms = [&self.general_bloom, &self.delete_family_bloom].into_iter().flatten();
        let due = closing || self.index.leaf_is_due(false) || blooms.any(BloomWriter::chunk_is_due);
        drop(blooms);
        if !due {
            return Ok(());
        }
        self.place_blocks(true)?;
        while let Some((payload, first_key)) = self.index.next_leaf(closing) {
            let pointer = self.output.block(BlockType::LeafIndex, &payload)?;
            self.index.leaf_written(&first_key, pointer);
        }
        for bloom in [&mut self.general_bloom, &mut self.delete_family_bloom].into_iter().flatten() {
            while let Some((bits, first_key)) = bloom.next_chunk(closing) {
                let pointer = self.output.block(BlockType::BloomChunk, &bits)?;
                bloom.chunk_written(&first_key, pointer);
            }
        }
        Ok(())
    }

    /// Ends the file. What was given is handed to the operating system, not synced.
    ///
    /// # Errors
    /// Those of writing.
    pub fn finish(mut self, store: StoreFileInfo) -> Result<HFileSummary> {
        self.finish_block()?;
        self.write_inline_blocks(true)?;
        let last = self.last_cell.is_some().then(|| self.last_cell.to_cell());
        let output = &mut self.output;
        let (root, root_entries, levels) =
            self.index.finish(|payload| output.block(BlockType::IntermediateIndex, payload))?;
        let load_on_open = output.block(BlockType::RootIndex, &root)?;
        output.block(BlockType::RootIndex, &[])?;
        let blooms = [&self.general_bloom, &self.delete_family_bloom];
        let blooms = blooms.map(|bloom| bloom.as_ref().filter(|bloom| bloom.keys() > 0));
        let info =
            self.facts.file_info(&self.options, &store, last.as_ref(), blooms[0].and_then(BloomWriter::last_key));
        let file_info = output.block(BlockType::FileInfo, &info.encode())?;
        let kinds = [BlockType::GeneralBloomMeta, BlockType::DeleteFamilyBloomMeta];
        for (kind, bloom) in kinds.into_iter().zip(blooms) {
            if let Some(bloom) = bloom {
                output.block(kind, &bloom.encode_meta())?;
            }
        }
        let trailer = FileTrailer {
            file_info_offset: Some(file_info.offset),
            load_on_open_data_offset: Some(load_on_open.offset),
            uncompressed_data_index_size: Some(self.index.uncompressed_len),
            total_uncompressed_bytes: Some(output.uncompressed + super::trailer::TRAILER_LEN as u64),
            data_index_count: Some(root_entries as u32),
            meta_index_count: Some(0),
            entry_count: Some(self.facts.entries),
            num_data_index_levels: Some(levels),
            first_data_block_offset: Some(self.first_data as u64),
            last_data_block_offset: Some(self.last_data as u64),
            comparator_class_name: Some(COMPARATOR.to_owned()),
            compression_codec: Some(codec_ordinal(self.options.compression)),
            encryption_key: None,
        };
        append_trailer(&mut output.pending, &trailer);
        output.flush()?;
        let bloom_bytes = blooms.iter().flatten().map(|bloom| bloom.total_len()).sum();
        let index_bytes = self.index.uncompressed_len;
        Ok(self.facts.summary(output.written, self.data_blocks, index_bytes, bloom_bytes, last.as_ref()))
    }
}

impl std::fmt::Debug for HFileWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HFileWriter {{ {}, {} cells }}", self.output.path().display(), self.facts.entries)
    }
}
