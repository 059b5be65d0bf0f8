//! Files that real HBase wrote (../shared/hfiles) give exactly the cells that HBase reads from them.
//!
//! The files live beside the repository, or where CELLFS_SHARED says; without them there is nothing to compare with. CELLFS_GOLDEN names directories
//! with more sets of the oracle's golden.py, separated by colons.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use cellfs::cell::{Cell, CellScanner, CellType, compare};
use cellfs::hfile::{
    BlockCache, ChecksumType, HFileReader, HFileWriter, HFileWriterOptions, ReadOptions, StoreFileInfo, cell_json,
    verify,
};
use cellfs::schema::{BloomType, Compression, DataBlockEncoding};
use cellfs::vfs::{OsVfs, Vfs};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn shared(below: &str) -> Option<PathBuf> {
    let base = std::env::var_os("CELLFS_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let found = base.join(below);
    if !found.is_dir() {
        assert!(std::env::var_os("CELLFS_REQUIRE_JUDGE").is_none(), "{} is missing", found.display());
        eprintln!("skipped: {} is not there", found.display());
        return None;
    }
    Some(found)
}

/// The directories with sets of files that HBase 2.6 wrote, each with its recorded cells.
fn sets() -> Vec<PathBuf> {
    let more = std::env::var_os("CELLFS_GOLDEN");
    shared("hfiles/hbase-2.6").into_iter().chain(more.iter().flat_map(std::env::split_paths)).collect()
}

fn files(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|have| have == extension))
        .collect();
    found.sort();
    found
}

fn open(path: &Path) -> Arc<HFileReader> {
    let file = OsVfs::new().open_read(path).unwrap();
    HFileReader::open(file, 1, Some(Arc::new(BlockCache::new(1 << 24)))).unwrap()
}

fn cells(reader: &Arc<HFileReader>) -> Vec<Cell> {
    let mut scanner = reader.scanner(ReadOptions::streaming());
    scanner.seek_to_first().unwrap();
    let mut cells = Vec::new();
    while let Some(cell) = scanner.peek() {
        cells.push(cell.clone());
        scanner.advance().unwrap();
    }
    cells
}

/// The cell that is wanted by a key must be found by it, and the row before by its row.
fn check_seeks(name: &str, reader: &Arc<HFileReader>, cells: &[Cell]) {
    let mut scanner = reader.scanner(ReadOptions::default());
    let step = (cells.len() / 500).max(1);
    for (at, cell) in cells.iter().enumerate().step_by(step) {
        scanner.seek(cell).unwrap();
        assert_eq!(
            scanner.peek().map(|found| compare(found, cell)),
            Some(std::cmp::Ordering::Equal),
            "{name} {cell:?}"
        );
        scanner.seek_to_previous_row(cell.row()).unwrap();
        let before = cells[..at].iter().rfind(|other| other.row() < cell.row());
        assert_eq!(scanner.peek().map(|found| found.row()), before.map(|found| found.row()), "{name} before {cell:?}");
        assert!(reader.may_contain_row(cell.row()).unwrap(), "{name} {cell:?}");
        assert!(reader.may_contain_column(cell.row(), cell.qualifier()).unwrap(), "{name} {cell:?}");
        if matches!(cell.cell_type(), CellType::DeleteFamily | CellType::DeleteFamilyVersion) {
            assert!(reader.may_contain_family_marker(cell.row()).unwrap(), "{name} {cell:?}");
            assert!(reader.may_contain_column(cell.row(), b"no such column").unwrap(), "{name} {cell:?}");
        }
    }
}

fn check_facts(name: &str, facts: &Value, reader: &Arc<HFileReader>) {
    let described = reader.describe().unwrap();
    assert_eq!(Value::from(described.entries), facts["entries"], "{name}");
    assert_eq!(Value::from(described.encoding), facts["encoding"], "{name}");
    assert_eq!(Value::from(described.compression), facts["compression"], "{name}");
    assert_eq!(Value::from(described.index.len()), facts["index_levels"], "{name}");
    let blocks: serde_json::Map<String, Value> =
        described.blocks.iter().map(|(kind, count)| (kind.to_string(), Value::from(count.count))).collect();
    assert_eq!(Value::Object(blocks), facts["blocks"], "{name}");
    let info: Vec<Value> = described.file_info.keys().map(|key| Value::from(key.as_str())).collect();
    assert_eq!(Value::Array(info), facts["info"], "{name}");
    if let Some(mid) = facts.get("mid_row") {
        assert_eq!(described.mid_row.as_deref(), mid.as_str(), "{name}");
    }
    assert_eq!(Value::from(reader.info().max_cell_sequence_id), facts["max_cell_seq"], "{name}");
    if let Some(keys) = facts.get("bloom_keys") {
        let general = described.blooms.iter().find(|bloom| bloom.kind != "DELETE_FAMILY");
        if let Some(general) = general {
            assert_eq!(Value::from(general.keys), *keys, "{name}");
            assert_eq!(Value::from(general.kind), facts["bloom"], "{name}");
        }
    }
}

#[test]
fn files_of_hbase_2_6_give_their_recorded_cells() {
    for directory in sets() {
        let all = files(&directory, "hfile");
        assert!(all.len() > 40, "{} files", all.len());
        all.iter().for_each(|path| check_recorded(&directory, path));
    }
}

fn check_recorded(directory: &Path, path: &Path) {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let facts: Value = serde_json::from_str(&std::fs::read_to_string(path.with_extension("json")).unwrap()).unwrap();
    let recorded = std::fs::read_to_string(directory.join(facts["cells"].as_str().unwrap())).unwrap();
    let reader = open(path);
    let cells = cells(&reader);
    let dump: String = cells.iter().map(|cell| cell_json(cell) + "\n").collect();
    assert!(dump == recorded, "{name} differs from {}", facts["cells"]);
    check_seeks(&name, &reader, &cells);
    check_facts(&name, &facts, &reader);
    verify(OsVfs::new().open_read(path).unwrap()).unwrap();
}

#[test]
fn files_of_hudi_and_hbase_2_4_are_read() {
    let Some(directory) = shared("hfiles") else { return };
    let all = files(&directory, "hfile");
    assert!(all.len() > 8, "{} files", all.len());
    for path in all {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let reader = open(&path);
        let cells = cells(&reader);
        assert_eq!(cells.len() as u64, reader.info().entries, "{name}");
        for cell in &cells {
            assert_eq!((cell.cell_type(), cell.timestamp()), (CellType::Put, i64::MAX), "{name}");
            assert!(cell.row().windows(8).any(|part| part == b"hudi-key"), "{name} {cell:?}");
        }
        check_seeks(&name, &reader, &cells);
        assert!(reader.meta_block(b"bloomFilter").unwrap().is_some(), "{name}");
        assert!(reader.meta_block(b"none").unwrap().is_none());
        verify(OsVfs::new().open_read(&path).unwrap()).unwrap();
    }
}

/// The options with which the oracle made a golden file.
fn writer_options(facts: &Value) -> HFileWriterOptions {
    let list: Vec<&str> = facts["options"].as_array().unwrap().iter().map(|option| option.as_str().unwrap()).collect();
    let given = |name: &str| list.iter().position(|option| *option == name);
    let value = |name: &str| given(name).map(|at| list[at + 1]);
    let number = |name: &str, default: usize| value(name).map_or(default, |text| text.parse().unwrap());
    let defaults = HFileWriterOptions::default();
    HFileWriterOptions {
        block_size: number("--blocksize", defaults.block_size),
        compression: match facts["compression"].as_str().unwrap() {
            "GZ" => Compression::Gz,
            "SNAPPY" => Compression::Snappy,
            "LZ4" => Compression::Lz4,
            "ZSTD" => Compression::Zstd,
            _ => Compression::None,
        },
        encoding: match facts["encoding"].as_str().unwrap() {
            "PREFIX" => DataBlockEncoding::Prefix,
            "DIFF" => DataBlockEncoding::Diff,
            "FAST_DIFF" => DataBlockEncoding::FastDiff,
            "ROW_INDEX_V1" => DataBlockEncoding::RowIndexV1,
            _ => DataBlockEncoding::None,
        },
        bloom: match value("--bloom") {
            Some("NONE") => BloomType::None,
            Some("ROWCOL") => BloomType::RowCol,
            Some("ROWPREFIX_FIXED_LENGTH") => BloomType::RowPrefixFixedLength(number("--bloom-param", 0) as u32),
            _ => BloomType::Row,
        },
        tags: given("--tags").is_some() || given("--plain-tags").is_some(),
        compress_tags: given("--plain-tags").is_none(),
        sequence_ids: given("--no-mvcc").is_none(),
        checksum: match value("--checksum") {
            Some("NULL") => ChecksumType::Null,
            Some("CRC32") => ChecksumType::Crc32,
            _ => ChecksumType::Crc32c,
        },
        bloom_chunk_size: number("--bloom-chunk", defaults.bloom_chunk_size),
        index_chunk_size: number("--index-chunk", defaults.index_chunk_size),
        index_entries_min: number("--index-entries", defaults.index_entries_min),
        created: 1_000_000_000_000,
    }
}

/// Written from the same cells with the same options, a file is HBase's byte for byte up to the file info; compressed ones, whose
/// compressors differ, have the same blocks and nearly the same size.
#[test]
fn files_are_written_as_hbase_writes_them() {
    for path in sets().iter().flat_map(|directory| files(directory, "hfile")) {
        let scratch = tempfile::tempdir().unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let facts: Value =
            serde_json::from_str(&std::fs::read_to_string(path.with_extension("json")).unwrap()).unwrap();
        let theirs = open(&path);
        let options = writer_options(&facts);
        let compressed = options.compression != Compression::None;
        let copy = scratch.path().join(&name);
        let mut writer = HFileWriter::create(OsVfs::new().create_new(&copy).unwrap(), options).unwrap();
        cells(&theirs).iter().for_each(|cell| writer.append(cell).unwrap());
        let store = StoreFileInfo {
            max_sequence_id: theirs.info().max_sequence_id,
            major_compaction: theirs.info().major_compaction,
            bulk_load_time: theirs.info().bulk_load_time,
            compacted: None,
        };
        writer.finish(store).unwrap();

        let ours = open(&copy).describe().unwrap();
        let described = theirs.describe().unwrap();
        let counts = |description: &cellfs::hfile::HFileDescription| -> Vec<_> {
            description.blocks.iter().map(|(kind, count)| (*kind, count.count, count.uncompressed)).collect()
        };
        let without_info = |mut counts: Vec<(&'static str, u64, u64)>| {
            counts.retain(|count| count.0 != "FILE_INFO");
            counts
        };
        assert_eq!(without_info(counts(&ours)), without_info(counts(&described)), "{name}");
        assert_eq!(ours.blooms, described.blooms, "{name}");
        assert_eq!(ours.mid_row, described.mid_row, "{name}");
        let limit = described.file_bytes as f64 * 1.03;
        assert!(ours.file_bytes as f64 <= limit, "{name}: {} bytes, HBase {}", ours.file_bytes, described.file_bytes);
        if !compressed {
            let (ours_bytes, their_bytes) = (std::fs::read(&copy).unwrap(), std::fs::read(&path).unwrap());
            let end = described.load_on_open_offset as usize;
            let differs = ours_bytes.iter().zip(&their_bytes).position(|(a, b)| a != b).unwrap_or(end);
            assert!(differs >= end, "{name} differs at {differs} of {end}");
        }
        for (key, value) in &ours.file_info {
            assert_eq!(Some(value), described.file_info.get(key), "{name} {key}");
        }
    }
}
