//! `bench engine`: the same workloads on cellfs and on fjall, in one run.
//!
//! Settings are the same for both: cache, memstore size, bloom filters on, the same codec, the same sync level. Everything else is each
//! engine's default. Runs alternate between the peers, and medians are compared, because a shared machine is noisy.

mod cellfs;
mod fjall;
mod peer;
mod workload;

use crate::figures::{self, Figure, Result};
use peer::{Open, Settings};
use std::path::Path;

/// Arguments of `bench engine`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Entries of the large workloads.
    #[arg(long, default_value_t = 1_000_000)]
    pub n: u64,
    /// Seed of keys, values and orders.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
    /// Times that everything is run; the median counts.
    #[arg(long, default_value_t = 1)]
    pub runs: u32,
    /// Block cache in MB (2^20).
    #[arg(long, default_value_t = 256)]
    pub cache_mb: u64,
    /// Memstore in MB (2^20) before it is flushed.
    #[arg(long, default_value_t = 64)]
    pub memstore_mb: u64,
    /// LZ4 in both; without it neither compresses.
    #[arg(long)]
    pub lz4: bool,
    /// Measure only these peers.
    #[arg(long, value_delimiter = ',', default_values_t = ["cellfs".to_string(), "fjall".to_string()])]
    pub peers: Vec<String>,
    /// Run only workloads whose group is named here: fill, read, compact, latency, sync. Reads need fill.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
}

impl Options {
    /// True if the group of workloads is wanted.
    fn wants(&self, group: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|wanted| wanted == group)
    }
}

/// The peers that exist; ours first.
const PEERS: [(&str, Open); 2] = [("cellfs", cellfs::open), ("fjall", fjall::open)];

/// Runs the workloads and prints a table.
pub fn run(directory: &Path, options: &Options) -> Result<()> {
    let settings =
        Settings { cache_bytes: options.cache_mb << 20, memstore_bytes: options.memstore_mb << 20, lz4: options.lz4 };
    println!(
        "{} entries of 16 + 100 bytes, seed {}, cache {} MB, memstore {} MB, bloom filters on, {}, median of {} runs",
        options.n,
        options.seed,
        options.cache_mb,
        options.memstore_mb,
        if options.lz4 { "LZ4" } else { "no compression" },
        options.runs
    );
    let peers: Vec<(&str, Open)> =
        PEERS.into_iter().filter(|(name, _)| options.peers.iter().any(|wanted| wanted == name)).collect();
    let mut reports: Vec<(&str, Vec<Vec<Figure>>)> = peers.iter().map(|(name, _)| (*name, Vec::new())).collect();
    for run in 0..options.runs {
        for ((name, open), (_, runs)) in peers.iter().zip(&mut reports) {
            eprintln!("{name}, run {} of {}", run + 1, options.runs);
            runs.push(workload::run(directory, *open, settings, options)?);
        }
    }
    let medians: Vec<(&str, Vec<Figure>)> = reports.iter().map(|(name, runs)| (*name, figures::median(runs))).collect();
    match medians.as_slice() {
        [(ours_name, ours), (theirs_name, theirs)] => {
            print!("{}", figures::compare(ours_name, ours, theirs_name, theirs, goal))
        }
        [(name, figures)] => print!("{}", figures::compare(name, figures, "-", &[], |_| None)),
        _ => println!("no such peer; there are: {}", PEERS.map(|(name, _)| name).join(" ")),
    }
    Ok(())
}

/// The ratio to fjall that each figure shall reach.
fn goal(name: &str) -> Option<f64> {
    match name {
        "fillrandom" | "scan" | "scan, compacted" => Some(1.2),
        _ => Some(1.0),
    }
}
