//! What a writer learns from its cells, and the file info that it makes of it (hbase.md B6).

use super::file_info::{FileInfo, compaction_event, key};
use super::info::{bloom_name, encoding_name};
use super::writer::HFileWriterOptions;
use crate::cell::{Cell, CellType};
use crate::schema::{BloomType, DataBlockEncoding};
use bytes::Bytes;

/// What a store knows about a file beside its cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreFileInfo {
    /// The sequence id up to which the file holds every edit of its family.
    pub max_sequence_id: Option<u64>,
    /// Written by a compaction of all files of the store.
    pub major_compaction: bool,
    /// For a file that is to be bulk loaded: the time, in milliseconds.
    pub bulk_load_time: Option<i64>,
    /// Names of the store files that were compacted into this one; none for a flush. `None` says nothing, as files for bulk loads do.
    pub compacted: Option<Vec<String>>,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HFileSummary {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Cells.
    pub entries: u64,
    /// Delete markers of all four kinds.
    pub tombstones: u64,
    /// Bytes of all flat keys.
    pub key_bytes: u64,
    /// Bytes of all values.
    pub value_bytes: u64,
    /// Oldest and newest timestamp (markers that reach back to the beginning count as 0); `None` without cells.
    pub time_range: Option<(i64, i64)>,
    /// First and last row; `None` without cells.
    pub rows: Option<(Bytes, Bytes)>,
    /// The greatest sequence id of a cell.
    pub max_cell_sequence_id: u64,
    /// Data blocks.
    pub data_blocks: u64,
    /// Bytes of the data index, uncompressed.
    pub index_bytes: u64,
    /// Bytes of the bloom filters' bits.
    pub bloom_bytes: u64,
}

/// Sums and extremes over the cells of a file.
#[derive(Debug, Default)]
pub(crate) struct CellFacts {
    pub entries: u64,
    tombstones: u64,
    family_markers: u64,
    key_bytes: u64,
    value_bytes: u64,
    time_range: Option<(i64, i64)>,
    earliest_put: Option<i64>,
    max_sequence_id: u64,
    tags_len_max: usize,
    biggest: Option<Cell>,
    biggest_len: u64,
    first: Option<Cell>,
}

impl CellFacts {
    pub(crate) fn note(&mut self, cell: &Cell, tags: bool) {
        self.entries += 1;
        self.key_bytes += cell.key_len() as u64;
        self.value_bytes += cell.value_len() as u64;
        let (cell_type, timestamp) = (cell.cell_type(), cell.timestamp());
        // HBase TimeRangeTracker.includeTimestamp: these two markers concern everything back to 0.
        let oldest = match cell_type {
            CellType::DeleteColumn | CellType::DeleteFamily => timestamp.min(0),
            _ => timestamp,
        };
        let (min, max) = self.time_range.unwrap_or((oldest, timestamp));
        self.time_range = Some((min.min(oldest), max.max(timestamp)));
        match cell_type {
            CellType::Put => self.earliest_put = Some(self.earliest_put.map_or(timestamp, |old| old.min(timestamp))),
            CellType::DeleteFamily | CellType::DeleteFamilyVersion => self.family_markers += 1,
            _ => {}
        }
        self.tombstones += u64::from(cell_type.is_delete());
        self.max_sequence_id = self.max_sequence_id.max(cell.sequence_id());
        let tags_len = cell.tags().len();
        self.tags_len_max = self.tags_len_max.max(tags_len);
        // HBase PrivateCellUtil.estimatedSerializedSizeOf: the plain layout without sequence id, and 4 bytes of length.
        let tags_field = if tags && tags_len > 0 { 2 + tags_len } else { 0 };
        let len = (4 + 8 + cell.key_len() + cell.value_len() + tags_field) as u64;
        if len > self.biggest_len {
            self.biggest_len = len;
            self.biggest = Some(cell.clone());
        }
        if self.first.is_none() {
            self.first = Some(cell.clone());
        }
    }

    pub(crate) fn file_info(
        &self,
        options: &HFileWriterOptions,
        store: &StoreFileInfo,
        last: Option<&Cell>,
        bloom_key: Option<&[u8]>,
    ) -> FileInfo {
        let mut info = FileInfo::default();
        let average = |sum: u64| (sum.checked_div(self.entries).unwrap_or(0) as u32).to_be_bytes();
        info.set(key::AVG_KEY_LEN, average(self.key_bytes));
        info.set(key::AVG_VALUE_LEN, average(self.value_bytes));
        info.set(key::CREATE_TIME, options.created.to_be_bytes());
        if let Some(last) = last {
            info.set(key::LAST_KEY, last.key());
        }
        if let Some(biggest) = &self.biggest {
            info.set(key::KEY_OF_BIGGEST_CELL, biggest.key());
            info.set(key::LEN_OF_BIGGEST_CELL, self.biggest_len.to_be_bytes());
        }
        if options.tags {
            info.set(key::MAX_TAGS_LEN, (self.tags_len_max as u32).to_be_bytes());
            info.set_bool(key::TAGS_COMPRESSED, tags_compressed(options));
        }
        if options.sequence_ids {
            info.set(key::KEY_VALUE_VERSION, 1u32.to_be_bytes());
            info.set(key::MAX_MEMSTORE_TS, self.max_sequence_id.to_be_bytes());
        }
        if options.encoding != DataBlockEncoding::None {
            info.set(key::DATA_BLOCK_ENCODING, encoding_name(options.encoding));
        }
        self.store_info(&mut info, options, store, bloom_key);
        info
    }

    /// What HBase's `StoreFileWriter` adds.
    fn store_info(
        &self,
        info: &mut FileInfo,
        options: &HFileWriterOptions,
        store: &StoreFileInfo,
        bloom_key: Option<&[u8]>,
    ) {
        // An empty tracker is stored inside out.
        let (min, max) = self.time_range.unwrap_or((i64::MAX, -1));
        info.set(key::TIME_RANGE, [min.to_be_bytes(), max.to_be_bytes()].concat());
        info.set(key::EARLIEST_PUT, self.earliest_put.unwrap_or(i64::MAX).to_be_bytes());
        info.set(key::DELETE_FAMILY_COUNT, self.family_markers.to_be_bytes());
        info.set_bool(key::HISTORICAL, false);
        info.set_bool(key::MAJOR_COMPACTION, store.major_compaction);
        if let Some(id) = store.max_sequence_id {
            info.set(key::MAX_SEQ_ID, id.to_be_bytes());
        }
        if let Some(names) = &store.compacted {
            info.set(key::COMPACTION_EVENT, compaction_event(names));
        }
        if let Some(time) = store.bulk_load_time {
            info.set(key::BULKLOAD_TIMESTAMP, time.to_be_bytes());
        }
        if let Some(bloom_key) = bloom_key {
            info.set(key::BLOOM_TYPE, bloom_name(options.bloom));
            info.set(key::LAST_BLOOM_KEY, bloom_key);
            if let BloomType::RowPrefixFixedLength(length) = options.bloom {
                info.set(key::BLOOM_PARAM, length.to_be_bytes());
            }
        }
    }

    pub(crate) fn summary(
        &self,
        file_bytes: u64,
        data_blocks: u64,
        index_bytes: u64,
        bloom_bytes: u64,
        last: Option<&Cell>,
    ) -> HFileSummary {
        let row = |cell: &Cell| Bytes::copy_from_slice(cell.row());
        HFileSummary {
            file_bytes,
            entries: self.entries,
            tombstones: self.tombstones,
            key_bytes: self.key_bytes,
            value_bytes: self.value_bytes,
            time_range: self.time_range,
            rows: self.first.as_ref().zip(last).map(|(first, last)| (row(first), row(last))),
            max_cell_sequence_id: self.max_sequence_id,
            data_blocks,
            index_bytes,
            bloom_bytes,
        }
    }
}

/// True if tags are written as dictionary indexes: only the difference encodings know them (HBase `HFileWriterImpl`).
pub(crate) fn tags_compressed(options: &HFileWriterOptions) -> bool {
    options.compress_tags && options.encoding != DataBlockEncoding::None
}
