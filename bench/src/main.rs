//! cellfs measured: the engine beside fjall, the mount beside a null filesystem, and both against the textbook's figures.
//!
//! `scripts/bench` builds and runs this; docs/performance.md keeps what came out.

mod data;
mod engine;
mod figures;
mod fs;
mod hfile;
mod store;
mod textbook;

use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Benchmarks of cellfs. Figures mean little while the machine does something else: look at the load in the head line.
#[derive(Parser)]
#[command(name = "bench")]
struct Arguments {
    /// Where data directories are made and removed again.
    #[arg(long, env = "CELLFS_BENCH_DIR", global = true)]
    dir: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The engine beside fjall: fills, reads, scans, latency while compacting, bytes.
    Engine(engine::Options),
    /// File operations on the mount beside a null file system. Needs root and /dev/fuse.
    Fs(fs::Options),
    /// A table of a million rows, listed. Exits non-zero when a goal is missed.
    Scale(fs::scale::Options),
    /// A million rows through every form of `.import` and `.scan`. Exits non-zero when something is missing or memory grows.
    Streams(fs::streams::Options),
    /// Store files written and read in each encoding and codec, beside HBase. Exits non-zero when a goal is missed.
    Hfile(hfile::Options),
    /// The textbook's experiments: exact counts and sizes. Exits non-zero when a figure is off.
    Textbook(textbook::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let directory = arguments.dir.unwrap_or_else(std::env::temp_dir);
    println!("{}", figures::machine());
    let outcome = match arguments.command {
        Command::Engine(options) => engine::run(&directory, &options).map(|()| true),
        Command::Fs(options) => fs::run(&directory, &options).map(|()| true),
        Command::Scale(options) => fs::scale::run(&directory, &options),
        Command::Streams(options) => fs::streams::run(&directory, &options),
        Command::Hfile(options) => hfile::run(&directory, &options),
        Command::Textbook(options) => textbook::run(&directory, &options),
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            eprintln!("bench: {failure}");
            ExitCode::FAILURE
        }
    }
}
