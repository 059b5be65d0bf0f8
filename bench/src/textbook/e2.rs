//! E2: what codecs save on three kinds of data. "ZSTD saves about 40 %" is right against SNAPPY; against nothing it saves far more.

use super::printed::Printer;
use super::{BYTES, Tolerance, Verdict};
use crate::data::Random;
use crate::figures::{Result, timed};
use crate::store;
use bytes::Bytes;
use cellfs::client::{Admin, Mutation, Put, Scan, Table, TableName};
use cellfs::schema::{ColumnFamilyDescriptor, Compression, TableDescriptor};
use cellfs::server::{Store, StoreOptions};
use std::path::Path;

const ROWS: u64 = 100_000;
const BATCH: usize = 5_000;
/// 2023-11-14T22:13:20Z, in seconds.
const START_SECONDS: u64 = 1_700_000_000;

/// A data set: its rows in order, and the bytes of HBase's files with NONE, SNAPPY and ZSTD.
struct DataSet {
    name: &'static str,
    row: fn(u64, &mut Random) -> Put,
    hbase_bytes: [f64; 3],
}

const DATA_SETS: [DataSet; 3] = [
    DataSet { name: "A actions", row: action, hbase_bytes: [16_723_717.0, 3_285_427.0, 2_058_150.0] },
    DataSet { name: "B sensor", row: sensor, hbase_bytes: [12_155_695.0, 2_016_891.0, 1_132_019.0] },
    DataSet { name: "C orders", row: order, hbase_bytes: [18_795_610.0, 7_742_050.0, 4_308_376.0] },
];

/// Runs E2.
pub fn run(home: &Path, verdict: &mut Verdict) -> Result<()> {
    let printer = Printer::new(verdict);
    for (number, set) in DATA_SETS.iter().enumerate() {
        let home = home.join(number.to_string());
        let store = store::open(&home, StoreOptions { cache_bytes: 1 << 20, ..Default::default() })?;
        measure(&store, set, &home, &printer, verdict)?;
    }
    Ok(())
}

/// Loads a set once and rewrites it by alter and major compaction for each codec.
fn measure(store: &Store, set: &DataSet, home: &Path, printer: &Printer, verdict: &mut Verdict) -> Result<()> {
    let (name, table) = store::create_table(store, "e2", descriptor(Compression::None))?;
    load(&*table, set)?;
    store.flush_table(&name)?;
    let mut sizes = Vec::new();
    let mut scanned = Vec::new();
    let codecs = [Compression::None, Compression::Snappy, Compression::Zstd];
    for (codec, expected) in codecs.into_iter().zip(set.hbase_bytes) {
        store.modify_table(&name, descriptor(codec))?;
        store.major_compact_table(&name, None)?;
        let bytes = store::figure(store, &name, "file_bytes")? as f64;
        verdict.judge(&format!("E2 {}, {codec:?}: bytes of the file", set.name), expected, bytes, BYTES);
        printer.judge_newest(&format!("E2 {}, {codec:?}", set.name), home, verdict)?;
        sizes.push((bytes, expected));
        scanned.push(scan(&*table, &name)?);
    }
    let [none, snappy, zstd] = sizes.as_slice() else { return Ok(()) };
    saving(verdict, &format!("E2 {}: % saved from Snappy to Zstd", set.name), *snappy, *zstd);
    saving(verdict, &format!("E2 {}: % saved from None to Zstd", set.name), *none, *zstd);
    if let [_, snappy_read, zstd_read] = scanned.as_slice() {
        let (read, file) = (1.0 - zstd_read / snappy_read, 1.0 - zstd.0 / snappy.0);
        let name = format!("E2 {}: % fewer bytes read by an uncached scan, as the file", set.name);
        // A scan reads no bloom filter, the part of a file that no codec makes smaller.
        verdict.judge(&name, file * 100.0, read * 100.0, Tolerance::Absolute(3.0));
    }
    Ok(())
}

/// Judges a saving, in percent, within two points.
fn saving(verdict: &mut Verdict, name: &str, from: (f64, f64), to: (f64, f64)) {
    let share = |from: f64, to: f64| (1.0 - to / from) * 100.0;
    verdict.judge(name, share(from.1, to.1), share(from.0, to.0), Tolerance::Absolute(3.0));
}

fn descriptor(compression: Compression) -> TableDescriptor {
    let family = ColumnFamilyDescriptor { compression, ..Default::default() };
    TableDescriptor { split_disabled: true, ..TableDescriptor::default().family(&b"d"[..], family) }
}

fn load(table: &dyn Table, set: &DataSet) -> Result<()> {
    let mut random = Random::new(5);
    let mut batch = Vec::with_capacity(BATCH);
    for row in 0..ROWS {
        batch.push(Mutation::Put((set.row)(row, &mut random)));
        if batch.len() == BATCH || row + 1 == ROWS {
            for outcome in table.batch(std::mem::take(&mut batch)) {
                outcome?;
            }
        }
    }
    Ok(())
}

/// Scans everything without the block cache; bytes that the process read for it.
fn scan(table: &dyn Table, name: &TableName) -> Result<f64> {
    let before = bytes_read()?;
    let (rows, _) = timed(|| {
        let mut scanner = table.scan(&Scan { cache_blocks: false, ..Scan::new() })?;
        let mut rows = 0;
        while scanner.next()?.is_some() {
            rows += 1;
        }
        Ok(rows)
    })?;
    if rows != ROWS {
        return Err(format!("a scan of {name} gave {rows} of {ROWS} rows").into());
    }
    Ok((bytes_read()? - before) as f64)
}

/// Bytes that this process has taken from read(2) and its kin since it began (Linux `/proc/self/io` rchar).
fn bytes_read() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/io")?;
    let line = text.lines().find_map(|line| line.strip_prefix("rchar: ")).ok_or("/proc/self/io has no rchar")?;
    Ok(line.trim().parse()?)
}

fn pick(random: &mut Random, words: &[&'static str]) -> Bytes {
    let word = words.get(random.below(words.len() as u64) as usize).copied().unwrap_or_default();
    Bytes::from_static(word.as_bytes())
}

/// Four events a user, one a minute: what was done, on which system, on which page.
fn action(row: u64, random: &mut Random) -> Put {
    let millis = START_SECONDS * 1000 + row * 60_000 + random.below(4) * 1_000;
    let page = format!("3c_sku_{}", random.below(1_000));
    Put::new(format!("u_{:07}_{millis:013}", row / 4))
        .add(&b"d"[..], &b"action"[..], pick(random, &["click", "view", "cart", "buy", "search"]))
        .add(&b"d"[..], &b"os"[..], pick(random, &["ios", "android", "web"]))
        .add(&b"d"[..], &b"page"[..], page)
}

/// 500 readings a device, newest first by the reversed time in the key.
fn sensor(row: u64, random: &mut Random) -> Put {
    let reversed = i64::MAX as u64 - (START_SECONDS + 500 * 60) + (row % 500) * 60;
    Put::new(format!("device{:03}_{reversed:019}", row / 500))
        .add(&b"d"[..], &b"temp"[..], format!("{}.{}", 20 + random.below(10), random.below(10)))
        .add(&b"d"[..], &b"humidity"[..], (30 + random.below(60)).to_string())
}

/// One document a row, with two random numbers that no codec can squeeze below half.
fn order(row: u64, random: &mut Random) -> Put {
    let json = format!(
        r#"{{"user_id":"user_{}","sku":"sku_{}","amount":{}.{:02},"status":"{}","time":{},"trace":"{:016x}","token":"{:016x}"}}"#,
        random.below(100_000),
        random.below(1_000),
        random.below(1_000),
        random.below(100),
        ["new", "paid", "sent", "done"].get(random.below(4) as usize).copied().unwrap_or_default(),
        (START_SECONDS + random.below(86_400)) * 1000,
        random.next(),
        random.next(),
    );
    Put::new(format!("order_{row}")).add(&b"d"[..], &b"json"[..], json)
}
