//! Writing and reading store files: each encoding with each codec, beside HBase's own writer and reader in a warmed-up Java machine.

use crate::data::Random;
use crate::figures::{Result, timed};
use cellfs::cell::{Cell, CellScanner, CellType};
use cellfs::hfile::{ChecksumType, HFileReader, HFileWriter, HFileWriterOptions, ReadOptions, StoreFileInfo};
use cellfs::schema::{Compression, DataBlockEncoding};
use cellfs::vfs::{OsVfs, Vfs};
use clap::Args;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

const ENCODINGS: [(DataBlockEncoding, &str); 5] = [
    (DataBlockEncoding::None, "NONE"),
    (DataBlockEncoding::Prefix, "PREFIX"),
    (DataBlockEncoding::Diff, "DIFF"),
    (DataBlockEncoding::FastDiff, "FAST_DIFF"),
    (DataBlockEncoding::RowIndexV1, "ROW_INDEX_V1"),
];
const CODECS: [(Compression, &str); 5] = [
    (Compression::None, "NONE"),
    (Compression::Gz, "GZ"),
    (Compression::Snappy, "SNAPPY"),
    (Compression::Lz4, "LZ4"),
    (Compression::Zstd, "ZSTD"),
];
/// How many times HBase's cells a second cellfs is to reach.
const GOAL: f64 = 2.0;
const CELLS_PER_ROW: u64 = 6;

/// Options of `scripts/bench hfile`.
#[derive(Args)]
pub struct Options {
    /// Cells of a file.
    #[arg(long, default_value_t = 300_000)]
    cells: u64,
    /// Measured rounds; the median counts.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Rounds that HBase runs before it is measured.
    #[arg(long, default_value_t = 3)]
    warmups: usize,
    /// Leave HBase out, which needs a JDK, Maven and the oracle.
    #[arg(long)]
    alone: bool,
    /// With --alone: only this encoding, for a profiler.
    #[arg(long, requires = "alone")]
    encoding: Option<String>,
    /// With --alone: only this codec.
    #[arg(long, requires = "alone")]
    codec: Option<String>,
}

/// Nanoseconds of each round and bytes of the file, by operation, encoding and codec.
type Measured = BTreeMap<(String, String, String), (Vec<u64>, u64)>;

/// Measures; false if a goal was missed.
pub fn run(directory: &Path, options: &Options) -> Result<bool> {
    let scratch = tempfile::Builder::new().prefix("cellfs-bench").tempdir_in(directory)?;
    let cells = cells(options.cells);
    let plain: usize = cells.iter().map(|cell| cell.encoded().len() + 8).sum();
    println!(
        "{} cells, {:.1} MB in the plain layout, in {}",
        cells.len(),
        plain as f64 / 1e6,
        scratch.path().display()
    );
    let data = scratch.path().join("data.hfile");
    write(&data, &cells, HFileWriterOptions::default())?;
    let mut ours = Measured::new();
    for round in 0..=options.rounds {
        for (encoding, encoding_name) in ENCODINGS.into_iter().filter(|(_, name)| chosen(&options.encoding, name)) {
            for (compression, codec) in CODECS.into_iter().filter(|(_, name)| chosen(&options.codec, name)) {
                let writer = HFileWriterOptions {
                    encoding,
                    compression,
                    checksum: ChecksumType::Crc32c,
                    ..HFileWriterOptions::default()
                };
                let path = scratch.path().join("cellfs.hfile");
                let (bytes, written) = timed(|| write(&path, &cells, writer))?;
                let (count, read) = timed(|| read(&path))?;
                std::fs::remove_file(&path)?;
                if count != cells.len() as u64 {
                    return Err(format!("{encoding_name} {codec}: {count} cells were read").into());
                }
                // The first round warms caches.
                for (operation, elapsed) in [("write", written), ("read", read)].into_iter().filter(|_| round > 0) {
                    let key = (operation.to_owned(), encoding_name.to_owned(), codec.to_owned());
                    let entry = ours.entry(key).or_default();
                    entry.0.push(elapsed.as_nanos() as u64);
                    entry.1 = bytes;
                }
            }
        }
    }
    let theirs = if options.alone { Measured::new() } else { hbase(scratch.path(), &data, options)? };
    Ok(report(&ours, &theirs, cells.len() as f64, plain as f64))
}

fn chosen(choice: &Option<String>, name: &str) -> bool {
    choice.as_ref().is_none_or(|chosen| chosen == name)
}

/// Readings of devices: rows of several cells, some values that compress well and some that do not, a few versions.
fn cells(count: u64) -> Vec<Cell> {
    let mut random = Random::new(17);
    let mut cells = Vec::with_capacity(count as usize);
    let qualifiers: [&[u8]; CELLS_PER_ROW as usize] = [b"action", b"agent", b"amount", b"page", b"state", b"token"];
    for number in 0..count {
        let row = format!("user-{:08}-{:06}", number / CELLS_PER_ROW / 50, number / CELLS_PER_ROW % 50);
        let at = (number % CELLS_PER_ROW) as usize;
        let qualifier = qualifiers.get(at).copied().unwrap_or_default();
        let value = match at {
            0 => ["click", "view", "cart", "buy"].get(random.below(4) as usize).copied().unwrap_or_default().to_owned(),
            1 => format!("Mozilla/5.0 (X11; Linux x86_64; rv:{}.0) Gecko/20100101", 90 + random.below(30)),
            2 => format!("{}.{:02}", random.below(2000), random.below(100)),
            3 => format!("/catalogue/section/{}/product/{}", random.below(20), random.below(5000)),
            4 => String::new(),
            _ => format!("{:016x}{:016x}", random.next(), random.next()),
        };
        let time = 1_700_000_000_000 + (number / CELLS_PER_ROW * 37) as i64 + random.below(20) as i64;
        let cell = Cell::new(row.as_bytes(), b"d", qualifier, time, CellType::Put, value.as_bytes());
        cells.push(cell.with_sequence_id(1 + number / CELLS_PER_ROW));
    }
    cells
}

fn write(path: &Path, cells: &[Cell], options: HFileWriterOptions) -> Result<u64> {
    let mut writer = HFileWriter::create(OsVfs.create_new(path)?, options)?;
    for cell in cells {
        writer.append(cell)?;
    }
    Ok(writer.finish(StoreFileInfo { max_sequence_id: Some(1), ..StoreFileInfo::default() })?.file_bytes)
}

fn read(path: &Path) -> Result<u64> {
    let reader = HFileReader::open(OsVfs.open_read(path)?, 0, None)?;
    let mut scanner = reader.scanner(ReadOptions::streaming());
    scanner.seek_to_first()?;
    let (mut count, mut bytes) = (0, 0);
    while let Some(cell) = scanner.take() {
        count += 1;
        bytes += cell.row().len() + cell.qualifier().len() + cell.value().len();
        scanner.advance()?;
    }
    std::hint::black_box(bytes);
    Ok(count)
}

/// Compiles bench/java/HFileBench.java against the oracle's class path and runs it.
fn hbase(scratch: &Path, data: &Path, options: &Options) -> Result<Measured> {
    let shared = std::env::var_os("CELLFS_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let oracle = shared.join("oracle/oracle");
    let set_up = Command::new(&oracle).arg("setup").status();
    if !set_up.is_ok_and(|status| status.success()) {
        return Err(format!("{} cannot be set up: --alone leaves HBase out", oracle.display()).into());
    }
    let cache = match (std::env::var_os("CELLFS_ORACLE_CACHE"), std::env::var_os("HOME")) {
        (Some(cache), _) => PathBuf::from(cache),
        (None, home) => PathBuf::from(home.unwrap_or_default()).join(".cache/cellfs-oracle"),
    };
    let build = std::fs::read_dir(cache)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("ready").exists())
        .max_by_key(|path| path.metadata().and_then(|metadata| metadata.modified()).ok())
        .ok_or("the oracle has no class path")?;
    let jars = std::fs::read_to_string(build.join("cp.txt"))?;
    let classes = scratch.join("classes");
    let class_path = format!("{}:{}:{}", classes.display(), build.join("oracle.jar").display(), jars.trim());
    let compiled = Command::new("javac")
        .args(["-nowarn", "-Xlint:none", "-cp", &class_path, "-d"])
        .arg(&classes)
        .arg("bench/java/HFileBench.java")
        .status()?;
    if !compiled.success() {
        return Err("bench/java/HFileBench.java does not compile".into());
    }
    let output = Command::new("java")
        .args(["-Xms2g", "-Xmx2g", &format!("@{}", shared.join("oracle/java.opts").display()), "-cp", &class_path])
        .arg("HFileBench")
        .args([data, scratch])
        .args([options.warmups.to_string(), options.rounds.to_string()])
        .output()?;
    if !output.status.success() {
        return Err(format!("HBase failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let mut measured = Measured::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let [operation, encoding, codec, nanos, bytes] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        let entry = measured.entry((operation.to_owned(), encoding.to_owned(), codec.to_owned())).or_default();
        entry.0.push(nanos.parse()?);
        entry.1 = bytes.parse()?;
    }
    Ok(measured)
}

fn median(measured: &Measured, operation: &str, encoding: &str, codec: &str) -> Option<(f64, u64)> {
    let (nanos, bytes) = measured.get(&(operation.to_owned(), encoding.to_owned(), codec.to_owned()))?;
    let mut nanos = nanos.clone();
    nanos.sort_unstable();
    Some((*nanos.get(nanos.len() / 2)? as f64 / 1e9, *bytes))
}

/// Prints a table for each operation; false if a goal was missed.
fn report(ours: &Measured, theirs: &Measured, cells: f64, plain: f64) -> bool {
    let mut met = true;
    for operation in ["write", "read"] {
        println!(
            "\n| {operation} | MB/s | beside NONE | cells/s | HBase, cells/s | times better | goal | file, beside HBase's |"
        );
        println!("|---|---|---|---|---|---|---|---|");
        let base = median(ours, operation, "NONE", "NONE").map_or(1.0, |(seconds, _)| seconds);
        for (_, encoding) in ENCODINGS {
            for (_, codec) in CODECS {
                let Some((seconds, bytes)) = median(ours, operation, encoding, codec) else { continue };
                let (mut rate, mut times, mut goal, mut size) =
                    ("-".to_owned(), "-".to_owned(), String::new(), "-".to_owned());
                if let Some((their_seconds, their_bytes)) = median(theirs, operation, encoding, codec) {
                    let better = their_seconds / seconds;
                    met &= better >= GOAL;
                    rate = format!("{:.2} M", cells / their_seconds / 1e6);
                    times = format!("{better:.2}");
                    goal = format!("{GOAL:.1} {}", if better >= GOAL { "met" } else { "MISSED" });
                    size = format!("{:.3}", bytes as f64 / their_bytes as f64);
                }
                println!(
                    "| {encoding} {codec} | {:.0} | {:.2} | {:.2} M | {rate} | {times} | {goal} | {size} |",
                    plain / seconds / 1e6,
                    base / seconds,
                    cells / seconds / 1e6,
                );
            }
        }
    }
    met
}
