//! A real HBase judges the files that cellfs writes: it checks each with its own readers and gives back exactly the cells that went in, and
//! what it writes itself of the same cells with the same settings is as large.
//!
//! Needs a JDK, Maven and the oracle (../shared/oracle, or below CELLFS_SHARED); without them it says so and passes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

mod judge;

use cellfs::cell::{Cell, CellScanner, CellType, Tag, compare, encode_tags};
use cellfs::hfile::{
    ChecksumType, HFileReader, HFileWriter, HFileWriterOptions, ReadOptions, StoreFileInfo, cell_json,
};
use cellfs::schema::{BloomType, Compression, DataBlockEncoding};
use cellfs::vfs::{OsVfs, Vfs};
use judge::{Random, judge, oracle, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const CODECS: [Compression; 5] =
    [Compression::None, Compression::Gz, Compression::Snappy, Compression::Lz4, Compression::Zstd];
const ENCODINGS: [DataBlockEncoding; 5] = [
    DataBlockEncoding::None,
    DataBlockEncoding::Prefix,
    DataBlockEncoding::Diff,
    DataBlockEncoding::FastDiff,
    DataBlockEncoding::RowIndexV1,
];
const BLOOMS: [BloomType; 4] = [BloomType::None, BloomType::Row, BloomType::RowCol, BloomType::RowPrefixFixedLength(6)];

/// Cells of every kind: binary and long rows, empty and long qualifiers and values, all markers, extreme timestamps, equal keys.
fn cells(count: usize, sequence_ids: bool, tags: bool) -> Vec<Cell> {
    let mut random = Random(count as u64 + 7);
    let mut cells = Vec::new();
    let types = [
        CellType::Put,
        CellType::Delete,
        CellType::DeleteColumn,
        CellType::DeleteFamily,
        CellType::DeleteFamilyVersion,
    ];
    while cells.len() < count {
        let row = match random.below(4) {
            0 => random.bytes(20),
            1 => vec![0x17; 300],
            _ => format!("row-{:05}", random.below(60 + count as u64 / 8)).into_bytes(),
        };
        for _ in 0..1 + random.below(8) {
            let kind = if random.below(3) == 0 { types[random.below(5) as usize] } else { CellType::Put };
            let family_marker = matches!(kind, CellType::DeleteFamily | CellType::DeleteFamilyVersion);
            let qualifier = match random.below(5) {
                _ if family_marker => Vec::new(),
                0 => Vec::new(),
                1 => b"long-qualifier-".repeat(6),
                _ => format!("q{}", random.below(20)).into_bytes(),
            };
            let timestamp = match random.below(6) {
                0 => random.below(10) as i64,
                1 => i64::MAX - 1,
                _ => 1_600_000_000_000 + random.below(1 << 20) as i64,
            };
            let value = match random.below(6) {
                _ if kind != CellType::Put => Vec::new(),
                0 => Vec::new(),
                1 => random.bytes(200),
                2 if random.below(20) == 0 => random.bytes(9000),
                _ => b"value-".repeat(random.below(6) as usize),
            };
            let tags = if tags && random.below(2) == 0 {
                encode_tags(&[
                    Tag { kind: 64, value: random.below(200).to_string().into() },
                    Tag { kind: 65, value: "one that repeats".into() },
                ])
            } else {
                Default::default()
            };
            let cell = Cell::with_tags(&row, b"f", &qualifier, timestamp, kind, &value, &tags);
            cells.push(cell.with_sequence_id(if sequence_ids { random.below(1 << 40) } else { 0 }));
        }
    }
    cells.sort_by(compare);
    cells.dedup_by(|later, earlier| compare(later, earlier).is_eq());
    cells
}

fn many_rows(count: u64) -> Vec<Cell> {
    (0..count)
        .map(|i| {
            let row = format!("key-{:08}", i * 7);
            Cell::new(row.as_bytes(), b"f", b"q", 1_600_000_000_000 + i as i64, CellType::Put, b"value")
        })
        .collect()
}

/// Every file: its name, cells, options, and what the store says of it.
fn plan() -> Vec<(String, Vec<Cell>, HFileWriterOptions, StoreFileInfo)> {
    let base = HFileWriterOptions { created: 1_000_000_000_000, ..HFileWriterOptions::default() };
    let mut files = Vec::new();
    let mut add = |name: String, cells: Vec<Cell>, options: &HFileWriterOptions| {
        files.push((name, cells, options.clone(), StoreFileInfo::default()));
    };
    for encoding in ENCODINGS {
        let options = HFileWriterOptions { encoding, tags: true, block_size: 4096, ..base.clone() };
        add(format!("full-{encoding:?}"), cells(900, true, true), &options);
        let plain_tags = HFileWriterOptions { compress_tags: false, sequence_ids: false, ..options.clone() };
        add(format!("plain-tags-{encoding:?}"), cells(700, false, true), &plain_tags);
        let deep = HFileWriterOptions {
            encoding,
            block_size: 256,
            index_chunk_size: 512,
            index_entries_min: 4,
            bloom_chunk_size: 512,
            ..base.clone()
        };
        add(format!("deep-{encoding:?}"), many_rows(3000), &deep);
    }
    for bloom in BLOOMS {
        for chunk in [1024, 128 * 1024] {
            let options = HFileWriterOptions { bloom, bloom_chunk_size: chunk, ..base.clone() };
            add(
                format!("bloom-{bloom:?}-{chunk}-markers").replace(['(', ')'], "-"),
                cells(2000, true, false),
                &options,
            );
            add(format!("bloom-{bloom:?}-{chunk}-rows").replace(['(', ')'], "-"), many_rows(3000), &options);
        }
        for compression in [Compression::None, Compression::Gz, Compression::Zstd] {
            let options = HFileWriterOptions { bloom, compression, ..base.clone() };
            add(format!("empty-{bloom:?}-{compression:?}").replace(['(', ')'], "-"), Vec::new(), &options);
            add(format!("one-{bloom:?}-{compression:?}").replace(['(', ')'], "-"), many_rows(1), &options);
        }
    }
    for checksum in [ChecksumType::Null, ChecksumType::Crc32c] {
        let options = HFileWriterOptions { checksum, ..base.clone() };
        add(format!("checksum-{checksum:?}"), cells(500, true, false), &options);
    }
    for index_chunk_size in [512, 4096] {
        let options = HFileWriterOptions { block_size: 512, index_chunk_size, index_entries_min: 4, ..base.clone() };
        add(format!("index-{index_chunk_size}"), cells(3000, true, false), &options);
    }
    let compacted = Some(vec!["0".repeat(32), "1".repeat(32)]);
    let compaction =
        StoreFileInfo { max_sequence_id: Some(4711), major_compaction: true, bulk_load_time: None, compacted };
    files.push(("major".to_owned(), cells(300, true, false), base.clone(), compaction));
    let bulk = StoreFileInfo { bulk_load_time: Some(1_000_000_000_000), ..StoreFileInfo::default() };
    let options = HFileWriterOptions { sequence_ids: false, tags: true, ..base };
    files.push(("bulk".to_owned(), cells(300, false, true), options, bulk));
    files
}

#[test]
fn hbase_accepts_every_file_and_reads_the_same_cells() {
    let Some(oracle) = oracle() else { return };
    let directory = tempfile::tempdir().unwrap();
    let (mut files, mut expected) = (Vec::new(), Vec::new());
    for (name, cells, options, store) in plan() {
        let path = directory.path().join(format!("{name}.hfile"));
        let mut writer = HFileWriter::create(OsVfs::new().create_new(&path).unwrap(), options).unwrap();
        cells.iter().for_each(|cell| writer.append(cell).unwrap());
        writer.finish(store).unwrap();
        files.push(path);
        expected.push((name, cells));
    }
    for ((name, cells), verdict) in expected.iter().zip(judge(&oracle, &files)) {
        verdict.assert_accepted(name);
        for (found, wanted) in verdict.cells.iter().zip(cells) {
            assert_eq!(found, &cell_json(wanted), "{name}");
        }
        assert_eq!(verdict.cells.len(), cells.len(), "{name}: HBase reads another number of cells");
    }
}

/// A file of the cross, for both writers.
struct Pair {
    name: String,
    options: HFileWriterOptions,
    /// The generated cells.
    cells: PathBuf,
    theirs: PathBuf,
    ours: PathBuf,
}

impl Pair {
    /// The oracle's command that writes the same file.
    fn command(&self) -> String {
        let options = &self.options;
        let encoding = match options.encoding {
            DataBlockEncoding::None => "NONE",
            DataBlockEncoding::Prefix => "PREFIX",
            DataBlockEncoding::Diff => "DIFF",
            DataBlockEncoding::FastDiff => "FAST_DIFF",
            DataBlockEncoding::RowIndexV1 => "ROW_INDEX_V1",
        };
        let codec = format!("{:?}", options.compression).to_uppercase();
        let checksum = format!("{:?}", options.checksum).to_uppercase();
        let block_size = options.block_size.to_string();
        let mut words = vec!["write", "--encoding", encoding, "--compression", &codec, "--checksum", &checksum];
        words.extend(["--blocksize", &block_size]);
        words.extend(match options.bloom {
            BloomType::None => &["--bloom", "NONE"][..],
            BloomType::Row => &["--bloom", "ROW"],
            BloomType::RowCol => &["--bloom", "ROWCOL"],
            BloomType::RowPrefixFixedLength(_) => &["--bloom", "ROWPREFIX_FIXED_LENGTH", "--bloom-param", "6"],
        });
        match (options.tags, options.compress_tags) {
            (false, _) => {}
            (true, true) => words.push("--tags"),
            (true, false) => words.push("--plain-tags"),
        }
        if !options.sequence_ids {
            words.push("--no-mvcc");
        }
        let (cells, target) = (self.cells.to_str().unwrap(), self.theirs.to_str().unwrap());
        words.extend(["--cells", cells, target]);
        format!("{words:?}\n")
    }
}

/// Every encoding with every codec and every filter, and between them every form of tags, sequence ids and checksums with each of these.
fn cross(oracle: &Path, directory: &Path) -> Vec<Pair> {
    let sets = [("plain", &[][..]), ("seqs", &["--seqs"]), ("tags", &["--tags"]), ("full", &["--seqs", "--tags"])];
    for (name, flags) in sets {
        let made = Command::new("python3")
            .arg(oracle.with_file_name("generate.py"))
            .args(["cells", "--seed", "4711", "--count", "1500"])
            .args(flags)
            .output()
            .unwrap();
        assert!(made.status.success());
        std::fs::write(directory.join(name), made.stdout).unwrap();
    }
    let checksums = [ChecksumType::Crc32, ChecksumType::Crc32c, ChecksumType::Null];
    let mut pairs = Vec::new();
    for (e, encoding) in ENCODINGS.into_iter().enumerate() {
        for (c, compression) in CODECS.into_iter().enumerate() {
            for (b, bloom) in BLOOMS.into_iter().enumerate() {
                let kind = (e + c + b) % 4;
                let name = format!("{encoding:?}-{compression:?}-{b}-{}", sets[kind].0);
                let options = HFileWriterOptions {
                    block_size: if (e + b) % 2 == 0 { 2048 } else { 64 * 1024 },
                    compression,
                    encoding,
                    bloom,
                    tags: kind >= 2,
                    compress_tags: (e + c) % 2 == 0,
                    sequence_ids: kind != 0 || b > 1,
                    checksum: checksums[(e + 2 * c + b) % 3],
                    created: 1_000_000_000_000,
                    ..HFileWriterOptions::default()
                };
                let file = |writer: &str| directory.join(format!("{name}-{writer}.hfile"));
                let cells = directory.join(sets[kind].0);
                pairs.push(Pair { theirs: file("hbase"), ours: file("cellfs"), name, options, cells });
            }
        }
    }
    pairs
}

/// Writes anew what HBase wrote.
fn rewrite(pair: &Pair) {
    let reader = HFileReader::open(OsVfs.open_read(&pair.theirs).unwrap(), 0, None).unwrap();
    let mut writer = HFileWriter::create(OsVfs.create_new(&pair.ours).unwrap(), pair.options.clone()).unwrap();
    let mut scanner = reader.scanner(ReadOptions::streaming());
    scanner.seek_to_first().unwrap();
    while let Some(cell) = scanner.peek() {
        writer.append(cell).unwrap();
        scanner.advance().unwrap();
    }
    writer.finish(StoreFileInfo::default()).unwrap();
}

/// A line of cells; what is not said of a cell is a sequence id of 0.
fn cell_of(line: &str) -> Value {
    let mut cell: Value = serde_json::from_str(line).unwrap();
    let parts = cell.as_array_mut().unwrap();
    if parts.len() == 6 {
        parts.push(Value::Object(serde_json::Map::new()));
    }
    parts[6].as_object_mut().unwrap().entry("seq").or_insert(Value::from(0));
    cell
}

#[test]
fn files_hold_the_cells_that_went_in_and_are_as_large_as_those_that_hbase_writes() {
    let Some(oracle) = oracle() else { return };
    let directory = tempfile::tempdir().unwrap();
    let pairs = cross(&oracle, directory.path());
    assert_eq!(run(&oracle, pairs.iter().map(Pair::command).collect()), "");
    pairs.iter().for_each(rewrite);
    let ours: Vec<PathBuf> = pairs.iter().map(|pair| pair.ours.clone()).collect();
    let mut worst = (0.0, String::new());
    for (pair, verdict) in pairs.iter().zip(judge(&oracle, &ours)) {
        verdict.assert_accepted(&pair.name);
        let generated = std::fs::read_to_string(&pair.cells).unwrap();
        let wanted: Vec<Value> = generated.lines().map(cell_of).collect();
        let found: Vec<Value> = verdict.cells.iter().map(|line| cell_of(line)).collect();
        assert!(found == wanted, "{}: HBase reads other cells", pair.name);
        let size = |path: &Path| std::fs::metadata(path).unwrap().len() as f64;
        let more = size(&pair.ours) / size(&pair.theirs) - 1.0;
        assert!(more <= 0.03, "{} is {:.1} % larger than HBase's", pair.name, more * 100.0);
        if more.abs() > f64::abs(worst.0) {
            worst = (more, pair.name.clone());
        }
    }
    println!("farthest from HBase's size: {} by {:.2} %", worst.1, worst.0 * 100.0);
}
