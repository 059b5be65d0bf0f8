//! What a file says about itself, and what a reader counts.

use super::file_info::{FileInfo, key};
use super::input::{Damage, Parsed};
use crate::schema::{BloomType, Compression, DataBlockEncoding};
use bytes::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};

/// Facts about an open file; sizes in bytes, times in milliseconds.
#[derive(Clone, Debug)]
pub struct HFileInfo {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of all blocks before compression.
    pub uncompressed_bytes: u64,
    /// Bytes of the data index, uncompressed.
    pub index_bytes: u64,
    /// Bytes of the bloom filters' bits.
    pub bloom_bytes: u64,
    /// Cells.
    pub entries: u64,
    /// Bytes of all flat keys, as precise as the stored average.
    pub key_bytes: u64,
    /// Bytes of all values, as precise as the stored average.
    pub value_bytes: u64,
    /// Oldest and newest timestamp; `None` when the file does not say or has no cells.
    pub time_range: Option<(i64, i64)>,
    /// Oldest timestamp of a put.
    pub earliest_put: Option<i64>,
    /// Row of the first cell; `None` without cells.
    pub first_row: Option<Bytes>,
    /// Row of the last cell; `None` without cells, or when the file does not say.
    pub last_row: Option<Bytes>,
    /// DeleteFamily and DeleteFamilyVersion markers, where the file says.
    pub family_markers: Option<u64>,
    /// The sequence id up to which the file holds edits (`MAX_SEQ_ID_KEY`).
    pub max_sequence_id: Option<u64>,
    /// The greatest sequence id of a cell.
    pub max_cell_sequence_id: u64,
    /// Written by a compaction of all files.
    pub major_compaction: bool,
    /// When the file was made.
    pub created: Option<i64>,
    /// When the file was made for a bulk load.
    pub bulk_load_time: Option<i64>,
    /// True if cells have a tags field.
    pub tags: bool,
    /// Data block encoding.
    pub encoding: DataBlockEncoding,
    /// Codec.
    pub compression: Compression,
    /// The general bloom filter.
    pub bloom: BloomType,
}

/// The encoding of a file, from its info.
pub(crate) fn encoding_of(info: &FileInfo) -> Parsed<DataBlockEncoding> {
    match info.get(key::DATA_BLOCK_ENCODING).map(|name| &name[..]) {
        None | Some(b"NONE") => Ok(DataBlockEncoding::None),
        Some(b"PREFIX") => Ok(DataBlockEncoding::Prefix),
        Some(b"DIFF") => Ok(DataBlockEncoding::Diff),
        Some(b"FAST_DIFF") => Ok(DataBlockEncoding::FastDiff),
        Some(b"ROW_INDEX_V1") => Ok(DataBlockEncoding::RowIndexV1),
        Some(other) => Err(Damage::new(format!("the data block encoding {} is unknown", other.escape_ascii()))),
    }
}

/// HBase's name of an encoding.
pub(crate) fn encoding_name(encoding: DataBlockEncoding) -> &'static str {
    match encoding {
        DataBlockEncoding::None => "NONE",
        DataBlockEncoding::Prefix => "PREFIX",
        DataBlockEncoding::Diff => "DIFF",
        DataBlockEncoding::FastDiff => "FAST_DIFF",
        DataBlockEncoding::RowIndexV1 => "ROW_INDEX_V1",
    }
}

/// The kind of the general bloom filter, from a file's info.
pub(crate) fn bloom_of(info: &FileInfo) -> Parsed<BloomType> {
    match info.get(key::BLOOM_TYPE).map(|name| &name[..]) {
        None | Some(b"NONE") => Ok(BloomType::None),
        Some(b"ROW") => Ok(BloomType::Row),
        Some(b"ROWCOL") => Ok(BloomType::RowCol),
        Some(b"ROWPREFIX_FIXED_LENGTH") => match info.i32(key::BLOOM_PARAM)?.map(u32::try_from) {
            Some(Ok(length)) => Ok(BloomType::RowPrefixFixedLength(length)),
            _ => Err(Damage::new("a row prefix bloom filter has no prefix length")),
        },
        Some(other) => Err(Damage::new(format!("the bloom filter type {} is unknown", other.escape_ascii()))),
    }
}

/// HBase's name of a filter kind.
pub(crate) fn bloom_name(bloom: BloomType) -> &'static str {
    match bloom {
        BloomType::None => "NONE",
        BloomType::Row => "ROW",
        BloomType::RowCol => "ROWCOL",
        BloomType::RowPrefixFixedLength(_) => "ROWPREFIX_FIXED_LENGTH",
    }
}

/// What readers have done. One may be shared by all readers of a store, so that it outlives files.
#[derive(Debug, Default)]
pub struct HFileCounters {
    data_blocks_read: AtomicU64,
    cache_hits: AtomicU64,
    cache_misses: AtomicU64,
    bloom_asked: AtomicU64,
    bloom_negative: AtomicU64,
    bloom_false_positive: AtomicU64,
}

/// The values of [`HFileCounters`] at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HFileCounts {
    /// Data blocks read from the file and decoded.
    pub data_blocks_read: u64,
    /// Blocks of any kind found in the cache.
    pub cache_hits: u64,
    /// Blocks of any kind looked for in the cache and not found.
    pub cache_misses: u64,
    /// Questions to bloom filters.
    pub bloom_asked: u64,
    /// Questions answered with "surely not".
    pub bloom_negative: u64,
    /// Questions answered with "perhaps" where there was nothing, as far as the caller has told.
    pub bloom_false_positive: u64,
}

impl HFileCounters {
    /// The values now.
    pub fn counts(&self) -> HFileCounts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        HFileCounts {
            data_blocks_read: get(&self.data_blocks_read),
            cache_hits: get(&self.cache_hits),
            cache_misses: get(&self.cache_misses),
            bloom_asked: get(&self.bloom_asked),
            bloom_negative: get(&self.bloom_negative),
            bloom_false_positive: get(&self.bloom_false_positive),
        }
    }

    /// For whoever asked a filter, heard "perhaps", looked, and found nothing.
    pub fn note_bloom_false_positive(&self) {
        self.bloom_false_positive.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_data_block_read(&self) {
        self.data_blocks_read.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_cache(&self, hit: bool) {
        let counter = if hit { &self.cache_hits } else { &self.cache_misses };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_bloom(&self, maybe: bool) {
        self.bloom_asked.fetch_add(1, Ordering::Relaxed);
        if !maybe {
            self.bloom_negative.fetch_add(1, Ordering::Relaxed);
        }
    }
}
