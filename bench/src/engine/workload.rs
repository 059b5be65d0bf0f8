//! The workloads, each against any [`Peer`].

use super::Options;
use super::peer::{Open, Peer, Settings};
use crate::data::{self, Random, VALUE_BYTES, Values};
use crate::figures::{self, Figure, Result, Unit, percentile, timed};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Entries that follow a seek in the seek workload, the one sought included.
const SEEK_ENTRIES: u64 = 11;

/// Runs what `options` asks for on fresh directories below `directory`; the figures in the order of the table.
pub fn run(directory: &Path, open: Open, settings: Settings, options: &Options) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    if options.wants("fill") {
        let home = tempfile::Builder::new().prefix("cellfs-bench-").tempdir_in(directory)?;
        let peer = open(home.path(), settings)?;
        fill(&*peer, home.path(), options, &mut figures)?;
    }
    if options.wants("sync") {
        for threads in [1, 16] {
            let home = tempfile::Builder::new().prefix("cellfs-bench-").tempdir_in(directory)?;
            let peer = open(home.path(), settings)?;
            figures.push(fill_synced(&*peer, threads, options)?);
        }
    }
    Ok(figures)
}

/// Fill, reads before and after a major compaction, latency while compacting.
fn fill(peer: &dyn Peer, home: &Path, options: &Options, figures: &mut Vec<Figure>) -> Result<()> {
    let written_before = figures::bytes_written()?;
    let user_bytes = (options.n * (data::KEY_BYTES + VALUE_BYTES) as u64) as f64;
    let ((), elapsed) = timed(|| fill_random(peer, options))?;
    figures.push(report(Figure::rate("fillrandom", options.n, elapsed)));
    if options.wants("read") {
        reads(peer, options, "", figures)?;
    }
    peer.settle()?;
    let written = (figures::bytes_written()? - written_before) as f64;
    figures.push(report(Figure::new("write amplification", Unit::Ratio, written / user_bytes)));
    figures.push(report(Figure::new("bytes on disk", Unit::Bytes, figures::bytes_on_disk(home)? as f64)));
    if options.wants("compact") {
        peer.flush()?;
        let ((), elapsed) = timed(|| peer.major_compact())?;
        peer.settle()?;
        figures.push(report(Figure::rate("major compaction, entries", options.n, elapsed)));
        let written = (figures::bytes_written()? - written_before) as f64;
        figures.push(report(Figure::new("write amplification, compacted", Unit::Ratio, written / user_bytes)));
        figures.push(report(Figure::new(
            "bytes on disk, compacted",
            Unit::Bytes,
            figures::bytes_on_disk(home)? as f64,
        )));
        if options.wants("read") {
            reads(peer, options, ", compacted", figures)?;
        }
    }
    if options.wants("latency") {
        latency_while_compacting(peer, options, figures)?;
    }
    Ok(())
}

/// Shows progress on standard error and passes the figure on.
fn report(figure: Figure) -> Figure {
    eprintln!("  {}: {}", figure.name, figure.unit.show(figure.value));
    figure
}

fn fill_random(peer: &dyn Peer, options: &Options) -> Result<()> {
    let mut values = Values::new(options.seed);
    for number in 0..options.n {
        peer.put(&data::key(options.seed, number), &values.next(), false)?;
    }
    Ok(())
}

/// Synced puts from `threads` threads; fewer operations, since each waits for the disk.
fn fill_synced(peer: &dyn Peer, threads: u64, options: &Options) -> Result<Figure> {
    let per_thread = if threads == 1 { options.n / 100 } else { options.n / 25 / threads };
    let start = Instant::now();
    std::thread::scope(|scope| -> Result<()> {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || -> Result<()> {
                    let mut values = Values::new(options.seed ^ thread);
                    for number in 0..per_thread {
                        peer.put(&data::key(options.seed, thread * per_thread + number), &values.next(), true)?;
                    }
                    Ok(())
                })
            })
            .collect();
        for worker in workers {
            worker.join().map_err(|_| "a writer panicked")??;
        }
        Ok(())
    })?;
    let name = if threads == 1 { "fillsync, 1 thread".to_string() } else { format!("fillsync, {threads} threads") };
    Ok(report(Figure::rate(name, per_thread * threads, start.elapsed())))
}

/// The four read workloads; `state` is appended to their names.
fn reads(peer: &dyn Peer, options: &Options, state: &str, figures: &mut Vec<Figure>) -> Result<()> {
    let n = options.n;
    let mut random = Random::new(options.seed ^ 1);
    let ((), elapsed) = timed(|| {
        for _ in 0..n {
            let key = data::key(options.seed, random.below(n));
            if peer.get(&key)? != Some(VALUE_BYTES) {
                return Err("a key that was written is not found".into());
            }
        }
        Ok(())
    })?;
    figures.push(report(Figure::rate(format!("readrandom{state}"), n, elapsed)));

    let ((), elapsed) = timed(|| {
        for _ in 0..n {
            if peer.get(&data::key(options.seed, n + random.below(n)))?.is_some() {
                return Err("a key that was never written is found".into());
            }
        }
        Ok(())
    })?;
    figures.push(report(Figure::rate(format!("readmissing{state}"), n, elapsed)));

    let ((entries, _), elapsed) = timed(|| peer.scan(b"", u64::MAX))?;
    if entries != n {
        return Err(format!("a scan of {n} entries gave {entries}").into());
    }
    figures.push(report(Figure::rate(format!("scan{state}"), entries, elapsed)));

    let seeks = (n / 10).max(1);
    let ((), elapsed) = timed(|| {
        for _ in 0..seeks {
            let (entries, _) = peer.scan(&data::key(options.seed, random.below(n)), SEEK_ENTRIES)?;
            if entries == 0 {
                return Err("a seek to a key that was written finds nothing".into());
            }
        }
        Ok(())
    })?;
    figures.push(report(Figure::rate(format!("seek + 10 next{state}"), seeks, elapsed)));
    Ok(())
}

/// Overwrites while another thread compacts everything again and again; percentiles of single puts.
fn latency_while_compacting(peer: &dyn Peer, options: &Options, figures: &mut Vec<Figure>) -> Result<()> {
    let done = AtomicBool::new(false);
    let mut nanos = std::thread::scope(|scope| -> Result<Vec<u64>> {
        let compactor = scope.spawn(|| -> Result<u32> {
            let mut compactions = 0;
            while !done.load(Ordering::Relaxed) {
                peer.major_compact()?;
                compactions += 1;
            }
            Ok(compactions)
        });
        let puts = overwrite_and_time(peer, options);
        done.store(true, Ordering::Relaxed);
        let compactions = compactor.join().map_err(|_| "the compactor panicked")??;
        eprintln!("  {compactions} major compactions meanwhile");
        puts
    })?;
    nanos.sort_unstable();
    for (name, share) in [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)] {
        let value = percentile(&nanos, share) / 1e3;
        figures.push(report(Figure::new(format!("put {name} while compacting"), Unit::Microseconds, value)));
    }
    Ok(())
}

fn overwrite_and_time(peer: &dyn Peer, options: &Options) -> Result<Vec<u64>> {
    let mut random = Random::new(options.seed ^ 2);
    let mut values = Values::new(options.seed ^ 2);
    let puts = (options.n / 2).max(1);
    let mut nanos = Vec::with_capacity(puts as usize);
    for _ in 0..puts {
        let key = data::key(options.seed, random.below(options.n));
        let value = values.next();
        let start = Instant::now();
        peer.put(&key, &value, false)?;
        nanos.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
    Ok(nanos)
}
