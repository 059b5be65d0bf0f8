//! `bench streams`: a million rows through every form of `.import` and `.scan`: how long it takes, and what the daemon's memory does meanwhile. Each
//! stream is larger than what the daemon may keep.

use super::Programs;
use super::scale::{memory_mb, shell};
use crate::data;
use crate::figures::{Result, timed};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The daemon's memory at any time, in MB: memstores and block cache under their defaults, and what a stream may take beside them.
const PEAK_MB: f64 = 600.0;

/// Arguments of `bench streams`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Rows of two cells each, in no order.
    #[arg(long, default_value_t = 1_000_000)]
    pub rows: u64,
    #[command(flatten)]
    pub programs: Programs,
}

const FORMS: [&str; 4] = ["jsonl", "cells", "tsv", "csv"];

/// Writes and reads them all; true if every goal is reached.
pub fn run(directory: &Path, options: &Options) -> Result<bool> {
    let home = tempfile::Builder::new().prefix("cellfs-bench-").tempdir_in(directory)?;
    let inputs: Vec<PathBuf> =
        FORMS.iter().map(|form| write_input(home.path(), form, options.rows)).collect::<Result<_>>()?;
    let point = home.path().join("mount");
    std::fs::create_dir(&point)?;
    let mounted = options.programs.mount_cellfs(&home.path().join("store"), &point)?;
    let namespace = point.join("default");
    println!("| {} rows | seconds | rows a second | peak of the daemon | under {PEAK_MB:.0} MB |", options.rows);
    println!("|---|---|---|---|---|");
    let mut reached = true;
    for (mode, prefix) in [("", "lines"), ("atomic/", "whole"), ("new/", "new"), ("replace/", "whole")] {
        for (form, input) in FORMS.iter().zip(&inputs) {
            let table = namespace.join(format!("{prefix}-{form}"));
            std::fs::create_dir_all(&table)?;
            let target = table.join(format!(".import/{mode}{form}"));
            reset_peak(mounted.pid())?;
            let ((), elapsed) = timed(|| copy(input, &target))?;
            let last = std::fs::read_to_string(table.join(".import/last"))?;
            let complete = last.starts_with(&format!("rows={} cells={} rejected=0", options.rows, 2 * options.rows));
            let name = format!(".import/{mode}{form}, {:.0} MB", std::fs::metadata(input)?.len() as f64 / 1e6);
            reached &= report(&name, options.rows, elapsed, mounted.pid(), complete)?;
        }
    }
    let table = namespace.join("whole-cells");
    for (scan, lines) in [
        ("keys", options.rows),
        ("count", 1),
        ("sum=cf:n/agg", 6),
        ("jsonl", options.rows),
        ("versions=all/jsonl", options.rows),
        ("cells", 2 * options.rows),
        ("columns=cf:n,cf:v/tsv", options.rows + 1),
        ("columns=cf:n,cf:v/csv", options.rows + 1),
        ("reverse=1/keys", options.rows),
    ] {
        reset_peak(mounted.pid())?;
        let path = table.join(".scan").join(scan);
        let (found, elapsed) = timed(|| shell("cat \"$1\" | wc -l", &path))?;
        reached &=
            report(&format!(".scan/{scan}"), options.rows, elapsed, mounted.pid(), found.trim() == lines.to_string())?;
    }
    reset_peak(mounted.pid())?;
    let (found, elapsed) = timed(|| shell("ls -f \"$1\" | wc -l", &table.join(".scan/rows")))?;
    let complete = found.trim() == (options.rows + 2).to_string();
    reached &= report(".scan/rows/", options.rows, elapsed, mounted.pid(), complete)?;
    mounted.unmount()?;
    Ok(reached)
}

/// One line of the table; false if something is missing or the memory was over its limit.
fn report(name: &str, rows: u64, elapsed: Duration, pid: u32, complete: bool) -> Result<bool> {
    let peak = memory_mb(pid, "VmHWM:")?;
    let seconds = elapsed.as_secs_f64();
    let verdict = match (complete, peak < PEAK_MB) {
        (true, true) => "met",
        (true, false) => "MISSED",
        (false, _) => "INCOMPLETE",
    };
    println!("| {name} | {seconds:.1} | {:.0} k | {peak:.0} MB | {verdict} |", rows as f64 / seconds / 1e3);
    Ok(verdict == "met")
}

fn write_input(home: &Path, form: &str, rows: u64) -> Result<PathBuf> {
    let path = home.join(form);
    let mut out = BufWriter::new(File::create(&path)?);
    match form {
        "tsv" => out.write_all(b"row\tcf:n\tcf:v\n")?,
        "csv" => out.write_all(b"row,cf:n,cf:v\n")?,
        _ => {}
    }
    let text = "what a row of a table says about itself, ";
    for number in 0..rows {
        let row: String = data::key(42, number).iter().map(|byte| format!("{byte:02x}")).collect();
        match form {
            "jsonl" => {
                writeln!(out, r#"{{"row": "{row}", "cells": {{"cf:n": "{number}", "cf:v": "{text}{number}"}}}}"#)?;
            }
            "cells" => {
                writeln!(out, "{row}\tcf:n\t1\tput\t{number}\n{row}\tcf:v\t1\tput\t{text}{number}")?;
            }
            "tsv" => writeln!(out, "{row}\t{number}\t{text}{number}")?,
            _ => writeln!(out, "{row},{number},\"{text}{number}\"")?,
        }
    }
    out.flush()?;
    Ok(path)
}

/// As cat(1): the verdict of close(2) is that of the import.
fn copy(input: &Path, target: &Path) -> Result<()> {
    let script = format!("cat '{}' > \"$1\"", input.display());
    shell(&script, target).map(|_| ())
}

/// The peak counts from now on.
fn reset_peak(pid: u32) -> Result<()> {
    Ok(std::fs::write(format!("/proc/{pid}/clear_refs"), "5")?)
}
