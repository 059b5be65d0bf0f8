//! What an HFile is made of, for people and programs: `cellfs hfile`.

use super::block::{BLOCK_HEADER_LEN, BlockHeader};
use super::bloom::BloomMeta;
use super::codec::codec_name;
use super::file_info::key;
use super::index::IndexBlock;
use super::info::{bloom_name, encoding_name};
use super::reader::HFileReader;
use crate::cell::Cell;
use crate::error::Result;
use bytes::Bytes;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// Everything about a file but its cells. Sizes in bytes, times in milliseconds, rows as [`to_string_binary`] spells them. Serialised, it is the
/// JSON of `cellfs hfile --json`.
#[derive(Clone, Debug, Serialize)]
pub struct HFileDescription {
    /// Path of the file.
    pub file: String,
    /// Format version, `major.minor`.
    pub version: String,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of all blocks before compression.
    pub uncompressed_bytes: u64,
    /// HBase's name of the codec.
    pub compression: &'static str,
    /// HBase's name of the data block encoding.
    pub encoding: &'static str,
    /// Cells.
    pub entries: u64,
    /// Bytes of all keys, as precise as the stored average.
    pub key_bytes: u64,
    /// Bytes of all values, as precise as the stored average.
    pub value_bytes: u64,
    /// Row of the first cell.
    pub first_row: Option<String>,
    /// Row of the last cell.
    pub last_row: Option<String>,
    /// The row near the middle, where a region is split.
    pub mid_row: Option<String>,
    /// Oldest timestamp.
    pub oldest_timestamp: Option<i64>,
    /// Newest timestamp.
    pub newest_timestamp: Option<i64>,
    /// The sequence id up to which the file holds edits.
    pub max_sequence_id: Option<u64>,
    /// The greatest sequence id of a cell.
    pub max_cell_sequence_id: u64,
    /// Cells have a tags field.
    pub tags: bool,
    /// Written by a compaction of all files.
    pub major_compaction: bool,
    /// When the file was made.
    pub created_millis: Option<i64>,
    /// When the file was made for a bulk load.
    pub bulk_load_millis: Option<i64>,
    /// DeleteFamily and DeleteFamilyVersion markers, where the file says.
    pub family_markers: Option<u64>,
    /// The Java class that orders the cells.
    pub comparator: String,
    /// Offset of the first block that is read when the file is opened.
    pub load_on_open_offset: u64,
    /// HBase's name of the general bloom filter.
    pub bloom: &'static str,
    /// The filters.
    pub blooms: Vec<BloomDescription>,
    /// Bytes of the data index before compression.
    pub index_bytes: u64,
    /// The data index, level by level from the root.
    pub index: Vec<IndexLevel>,
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
        let row = |row: &Option<Bytes>| row.as_ref().map(|row| text(row));
        Ok(HFileDescription {
            file: self.path().display().to_string(),
            version: format!("{major}.{minor}"),
            file_bytes: info.file_bytes,
            uncompressed_bytes: info.uncompressed_bytes,
            compression: codec_name(info.compression),
            encoding: encoding_name(info.encoding),
            entries: info.entries,
            key_bytes: info.key_bytes,
            value_bytes: info.value_bytes,
            first_row: row(&info.first_row),
            last_row: row(&info.last_row),
            mid_row: row(&self.mid_row()?),
            oldest_timestamp: info.time_range.map(|(oldest, _)| oldest),
            newest_timestamp: info.time_range.map(|(_, newest)| newest),
            max_sequence_id: info.max_sequence_id,
            max_cell_sequence_id: info.max_cell_sequence_id,
            tags: info.tags,
            major_compaction: info.major_compaction,
            created_millis: info.created,
            bulk_load_millis: info.bulk_load_time,
            family_markers: info.family_markers,
            comparator: trailer.comparator_class_name().to_owned(),
            load_on_open_offset: trailer.load_on_open_data_offset(),
            bloom: bloom_name(info.bloom),
            blooms: blooms
                .iter()
                .filter_map(|(kind, bloom)| bloom.as_ref().map(|bloom| describe_bloom(kind, bloom)))
                .collect(),
            index_bytes: info.index_bytes,
            index: self.index_by_level()?,
            blocks: self.count_blocks()?,
            meta_blocks: names.map(text).collect(),
            file_info: self.file_info().iter().map(|(name, value)| (text(name), property(name, value))).collect(),
        })
    }

    fn index_by_level(&self) -> Result<Vec<IndexLevel>> {
        let level = |blocks: Vec<Arc<IndexBlock>>| IndexLevel {
            blocks: blocks.len() as u64,
            entries: blocks.iter().map(|block| block.len() as u64).sum(),
        };
        Ok(self.index_levels_below_root()?.into_iter().map(level).collect())
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

impl HFileDescription {
    fn facts(&self) -> [(&'static str, Option<String>); 24] {
        let number = |value: Option<u64>| value.map(|value| value.to_string());
        let time = |value: Option<i64>| value.map(|value| value.to_string());
        [
            ("file", Some(self.file.clone())),
            ("version", Some(self.version.clone())),
            ("file_bytes", number(Some(self.file_bytes))),
            ("uncompressed_bytes", number(Some(self.uncompressed_bytes))),
            ("compression", Some(self.compression.to_owned())),
            ("encoding", Some(self.encoding.to_owned())),
            ("entries", number(Some(self.entries))),
            ("key_bytes", number(Some(self.key_bytes))),
            ("value_bytes", number(Some(self.value_bytes))),
            ("first_row", self.first_row.clone()),
            ("last_row", self.last_row.clone()),
            ("mid_row", self.mid_row.clone()),
            ("oldest_timestamp", time(self.oldest_timestamp)),
            ("newest_timestamp", time(self.newest_timestamp)),
            ("max_sequence_id", number(self.max_sequence_id)),
            ("max_cell_sequence_id", number(Some(self.max_cell_sequence_id))),
            ("tags", Some(self.tags.to_string())),
            ("major_compaction", Some(self.major_compaction.to_string())),
            ("created_millis", time(self.created_millis)),
            ("bulk_load_millis", time(self.bulk_load_millis)),
            ("family_markers", number(self.family_markers)),
            ("comparator", Some(self.comparator.clone())),
            ("load_on_open_offset", number(Some(self.load_on_open_offset))),
            ("bloom", Some(self.bloom.to_owned())),
        ]
    }
}

impl std::fmt::Display for HFileDescription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (name, value) in self.facts() {
            if let Some(value) = value {
                writeln!(f, "{name}: {value}")?;
            }
        }
        for bloom in &self.blooms {
            write!(f, "  {}: {} of {} keys, ", bloom.kind, bloom.keys, bloom.keys_max)?;
            writeln!(f, "{} hashes, {} chunks, {} bytes", bloom.hashes, bloom.chunks, bloom.bytes)?;
        }
        writeln!(f, "index_bytes: {}", self.index_bytes)?;
        for (level, index) in self.index.iter().enumerate() {
            writeln!(f, "  level {level}: {} blocks, {} entries", index.blocks, index.entries)?;
        }
        writeln!(f, "blocks:")?;
        for (kind, count) in &self.blocks {
            writeln!(f, "  {kind}: {}, {} bytes, {} uncompressed", count.count, count.on_disk, count.uncompressed)?;
        }
        if !self.meta_blocks.is_empty() {
            writeln!(f, "meta_blocks: {}", self.meta_blocks.join(" "))?;
        }
        writeln!(f, "file_info:")?;
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
