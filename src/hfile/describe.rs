//! What an HFile is made of, for people and programs: `cellfs hfile`.

use super::block::{BLOCK_HEADER_LEN, BlockHeader, BlockType};
use super::bloom::BloomMeta;
use super::codec::codec_name;
use super::file_info::key;
use super::info::{bloom_name, encoding_name};
use super::reader::HFileReader;
use crate::cell::Cell;
use crate::error::Result;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Everything about a file but its cells. Sizes in bytes. Serialised, it is the JSON of `cellfs hfile --json`.
#[derive(Clone, Debug, Serialize)]
pub struct HFileDescription {
    /// Path of the file.
    pub file: String,
    /// Bytes of the file.
    pub bytes: u64,
    /// Format version, `major.minor`.
    pub version: String,
    /// Cells.
    pub entries: u64,
    /// HBase's name of the codec.
    pub compression: &'static str,
    /// HBase's name of the data block encoding.
    pub encoding: &'static str,
    /// The Java class that orders the cells.
    pub comparator: String,
    /// Offset of the first block that is read when the file is opened.
    pub load_on_open_offset: u64,
    /// Bytes of all blocks before compression.
    pub uncompressed_bytes: u64,
    /// The row near the middle, where a region is split.
    pub mid_row: Option<String>,
    /// The data index, level by level from the root.
    pub index: Vec<IndexLevel>,
    /// Bytes of the data index before compression.
    pub index_bytes: u64,
    /// The filters.
    pub blooms: Vec<BloomDescription>,
    /// Blocks of each kind, by HBase's name.
    pub blocks: BTreeMap<&'static str, BlockCount>,
    /// Names of meta blocks.
    pub meta_blocks: Vec<String>,
    /// File info, numbers as numbers where their meaning is known.
    pub file_info: BTreeMap<String, String>,
}

/// One level of the data index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct IndexLevel {
    /// Blocks of the level.
    pub blocks: u64,
    /// Entries in all of them.
    pub entries: u64,
}

/// A bloom filter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BloomDescription {
    /// ROW, ROWCOL, ROWPREFIX_FIXED_LENGTH, or DELETE_FAMILY.
    pub kind: &'static str,
    /// Chunks.
    pub chunks: u64,
    /// Bytes of bits in all chunks.
    pub bytes: u64,
    /// Hashes of a key.
    pub hashes: u32,
    /// Keys in the filter.
    pub keys: u64,
    /// Keys that would fit at the wanted error rate.
    pub keys_max: u64,
}

/// Blocks of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockCount {
    /// How many.
    pub count: u64,
    /// Their bytes in the file, headers and checksums included.
    pub on_disk: u64,
    /// Bytes of their payloads before compression.
    pub uncompressed: u64,
}

impl HFileReader {
    /// Describes the file. Reads the headers of all blocks and the blocks of the index.
    ///
    /// # Errors
    /// Those of reading; damage met on the way.
    pub fn describe(&self) -> Result<HFileDescription> {
        let (trailer, info, (major, minor)) = (self.trailer(), self.info(), self.version());
        let blooms = [(bloom_name(info.bloom), &self.general_bloom), ("DELETE_FAMILY", &self.delete_family_bloom)];
        let names = (0..self.meta_index.len()).filter_map(|at| self.meta_index.key(at));
        let text = |bytes: &[u8]| to_string_binary(bytes);
        Ok(HFileDescription {
            file: self.path().display().to_string(),
            bytes: info.file_bytes,
            version: format!("{major}.{minor}"),
            entries: info.entries,
            compression: codec_name(info.compression),
            encoding: encoding_name(info.encoding),
            comparator: trailer.comparator_class_name().to_owned(),
            load_on_open_offset: trailer.load_on_open_data_offset(),
            uncompressed_bytes: info.uncompressed_bytes,
            mid_row: self.mid_row()?.map(|row| text(&row)),
            index: self.index_by_level()?,
            index_bytes: info.index_bytes,
            blooms: blooms
                .iter()
                .filter_map(|(kind, bloom)| bloom.as_ref().map(|bloom| describe_bloom(kind, bloom)))
                .collect(),
            blocks: self.count_blocks()?,
            meta_blocks: names.map(text).collect(),
            file_info: self.file_info().iter().map(|(name, value)| (text(name), property(name, value))).collect(),
        })
    }

    fn index_by_level(&self) -> Result<Vec<IndexLevel>> {
        let mut levels = vec![IndexLevel { blocks: 1, entries: self.root.len() as u64 }];
        let mut blocks = vec![self.root.clone()];
        for level in 1..self.index_levels() {
            let kind =
                if level + 1 == self.index_levels() { BlockType::LeafIndex } else { BlockType::IntermediateIndex };
            let mut below = Vec::new();
            for pointer in blocks.iter().flat_map(|block| (0..block.len()).filter_map(|at| block.pointer(at))) {
                below.push(self.index_block(pointer, kind)?);
            }
            let entries = below.iter().map(|block| block.len() as u64).sum();
            levels.push(IndexLevel { blocks: below.len() as u64, entries });
            blocks = below;
        }
        Ok(levels)
    }

    fn count_blocks(&self) -> Result<BTreeMap<&'static str, BlockCount>> {
        let mut counts = BTreeMap::<&'static str, BlockCount>::new();
        let mut offset = 0;
        while offset < self.blocks_end() {
            let mut header = [0; BLOCK_HEADER_LEN];
            self.file().read_exact_at(&mut header, offset)?;
            let header = BlockHeader::parse(&header).map_err(|damage| damage.at(self.path(), offset))?;
            let count = counts.entry(header.kind.name()).or_default();
            count.count += 1;
            count.on_disk += header.on_disk_len as u64;
            count.uncompressed += header.uncompressed_len as u64;
            offset += header.on_disk_len as u64;
        }
        Ok(counts)
    }
}

fn describe_bloom(kind: &'static str, bloom: &BloomMeta) -> BloomDescription {
    BloomDescription {
        kind,
        chunks: bloom.chunks.len() as u64,
        bytes: bloom.total_len,
        hashes: bloom.hashes,
        keys: bloom.keys,
        keys_max: bloom.keys_max,
    }
}

/// A file info value as text: numbers and booleans of known keys read, everything else escaped.
fn property(name: &[u8], value: &[u8]) -> String {
    let number = |bytes: &[u8]| match bytes.len() {
        4 => bytes.first_chunk().map(|be| i64::from(i32::from_be_bytes(*be))),
        _ => bytes.first_chunk().map(|be| i64::from_be_bytes(*be)),
    };
    let read = match std::str::from_utf8(name).unwrap_or("") {
        key::AVG_KEY_LEN
        | key::AVG_VALUE_LEN
        | key::CREATE_TIME
        | key::MAX_TAGS_LEN
        | key::LEN_OF_BIGGEST_CELL
        | key::KEY_VALUE_VERSION
        | key::MAX_MEMSTORE_TS
        | key::MAX_SEQ_ID
        | key::EARLIEST_PUT
        | key::BLOOM_PARAM
        | key::DELETE_FAMILY_COUNT
        | key::BULKLOAD_TIMESTAMP => number(value).map(|number| number.to_string()),
        key::TAGS_COMPRESSED | key::MAJOR_COMPACTION | key::HISTORICAL => {
            value.first().map(|byte| (*byte != 0).to_string())
        }
        key::TIME_RANGE if value.len() == 16 => {
            let (min, max) = value.split_at(8);
            number(min).zip(number(max)).map(|(min, max)| format!("{min}..{max}"))
        }
        _ => None,
    };
    read.unwrap_or_else(|| to_string_binary(value))
}

impl std::fmt::Display for HFileDescription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "file {}", self.file)?;
        writeln!(f, "version {}  {} bytes  {} cells", self.version, self.bytes, self.entries)?;
        writeln!(f, "compression {}  encoding {}", self.compression, self.encoding)?;
        writeln!(f, "comparator {}", self.comparator)?;
        writeln!(f, "load-on-open at {}  uncompressed {} bytes", self.load_on_open_offset, self.uncompressed_bytes)?;
        if let Some(row) = &self.mid_row {
            writeln!(f, "middle row {row}")?;
        }
        writeln!(f, "index: {} levels, {} bytes", self.index.len(), self.index_bytes)?;
        for (level, index) in self.index.iter().enumerate() {
            writeln!(f, "  level {level}: {} blocks, {} entries", index.blocks, index.entries)?;
        }
        for bloom in &self.blooms {
            write!(f, "bloom {}: {} of {} keys, ", bloom.kind, bloom.keys, bloom.keys_max)?;
            writeln!(f, "{} hashes, {} chunks, {} bytes", bloom.hashes, bloom.chunks, bloom.bytes)?;
        }
        writeln!(f, "blocks:")?;
        for (kind, count) in &self.blocks {
            writeln!(f, "  {kind}: {}, {} bytes, {} uncompressed", count.count, count.on_disk, count.uncompressed)?;
        }
        for name in &self.meta_blocks {
            writeln!(f, "meta block {name}")?;
        }
        writeln!(f, "file info:")?;
        self.file_info.iter().try_for_each(|(name, value)| writeln!(f, "  {name} = {value}"))
    }
}

/// Bytes as text: printable ASCII but the backslash as it is, everything else as `\xNN` (HBase `Bytes.toStringBinary`).
pub fn to_string_binary(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        if (b' '..=b'~').contains(byte) && *byte != b'\\' {
            text.push(char::from(*byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "\\x{byte:02X}");
        }
    }
    text
}

/// HBase's name of a cell's type.
pub fn cell_type_name(cell: &Cell) -> &'static str {
    use crate::cell::CellType;
    match cell.cell_type() {
        CellType::Put => "Put",
        CellType::Delete => "Delete",
        CellType::DeleteFamilyVersion => "DeleteFamilyVersion",
        CellType::DeleteColumn => "DeleteColumn",
        CellType::DeleteFamily => "DeleteFamily",
        CellType::Maximum => "Maximum",
    }
}

/// A cell as one line of JSON: `[row, family, qualifier, timestamp, type, value, {"seq": n, "tags": [[type, value], ...]}]`, byte strings
/// as [`to_string_binary`] spells them, without spaces; `tags` only where there are some.
pub fn cell_json(cell: &Cell) -> String {
    let mut line = String::with_capacity(64 + 2 * cell.encoded().len());
    line.push('[');
    for bytes in [cell.row(), cell.family(), cell.qualifier()] {
        push_json(&mut line, bytes);
        line.push(',');
    }
    let _ = write!(line, "{},\"{}\",", cell.timestamp(), cell_type_name(cell));
    push_json(&mut line, cell.value());
    let _ = write!(line, ",{{\"seq\":{}", cell.sequence_id());
    if !cell.tags().is_empty() {
        line.push_str(",\"tags\":[");
        for (at, (kind, value)) in cell.tag_iter().enumerate() {
            let _ = write!(line, "{}[{kind},", if at == 0 { "" } else { "," });
            push_json(&mut line, value);
            line.push(']');
        }
        line.push(']');
    }
    line.push_str("}]");
    line
}

fn push_json(line: &mut String, bytes: &[u8]) {
    line.push('"');
    for letter in to_string_binary(bytes).chars() {
        if matches!(letter, '"' | '\\') {
            line.push('\\');
        }
        line.push(letter);
    }
    line.push('"');
}
