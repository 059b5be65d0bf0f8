//! `bench scale`: a table of a million rows, listed through the mount: how soon the first name comes, how long all take, and what the daemon's memory
//! does.

use super::Programs;
use crate::data;
use crate::figures::{Result, timed};
use crate::store;
use cellfs::client::{Mutation, Put};
use cellfs::schema::TableDescriptor;
use cellfs::server::StoreOptions;
use std::path::Path;
use std::process::{Command, Stdio};

/// Arguments of `bench scale`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Rows of one cell each.
    #[arg(long, default_value_t = 1_000_000)]
    pub rows: u64,
    #[command(flatten)]
    pub programs: Programs,
}

/// Makes the table, mounts it, lists it; true if every goal is reached.
pub fn run(directory: &Path, options: &Options) -> Result<bool> {
    let home = tempfile::Builder::new().prefix("cellfs-bench-").tempdir_in(directory)?;
    let store = home.path().join("store");
    let ((), elapsed) = timed(|| fill(&store, options.rows))?;
    println!("| {} rows | figure | goal |\n|---|---|---|", options.rows);
    println!("| load through the library | {:.1} s | |", elapsed.as_secs_f64());

    let point = home.path().join("mount");
    std::fs::create_dir(&point)?;
    let mounted = options.programs.mount_cellfs(&store, &point)?;
    let table = point.join("default").join("t");
    let before = resident_mb(mounted.pid())?;
    let (first, first_elapsed) = timed(|| shell("ls -f \"$1\" | head -1", &table))?;
    let (count, all_elapsed) = timed(|| shell("ls -f \"$1\" | wc -l", &table))?;
    let after = resident_mb(mounted.pid())?;
    mounted.unmount()?;

    // `.`, `..` and `.schema` are listed as well.
    let listed: u64 = count.trim().parse()?;
    let goals = [
        (
            "ls -f, first name",
            format!("{:.3} s", first_elapsed.as_secs_f64()),
            "under 0.1 s",
            first_elapsed.as_secs_f64() < 0.1,
        ),
        (
            "ls -f, all names",
            format!("{listed} in {:.2} s", all_elapsed.as_secs_f64()),
            "complete",
            listed == options.rows + 3,
        ),
        ("daemon's memory after", format!("{after:.0} MB"), "under 600 MB", after < 600.0),
        ("growth by the listings", format!("{:.1} MB", after - before), "under 64 MB", after - before < 64.0),
    ];
    for (name, figure, goal, reached) in &goals {
        println!("| {name} | {figure} | {goal}: {} |", if *reached { "met" } else { "MISSED" });
    }
    Ok(!first.trim().is_empty() && goals.iter().all(|(_, _, _, reached)| *reached))
}

fn fill(path: &Path, rows: u64) -> Result<()> {
    let store = store::open(path, StoreOptions::default())?;
    let (_, table) = store::create_table(&store, "t", TableDescriptor::with_family(&b"cf"[..]))?;
    let mut numbers = 0..rows;
    loop {
        let batch: Vec<Mutation> = numbers
            .by_ref()
            .take(10_000)
            .map(|number| {
                let key = data::key(42, number);
                Mutation::Put(Put::new(key.to_vec()).add(&b"cf"[..], &b"v"[..], number.to_string()))
            })
            .collect();
        if batch.is_empty() {
            break;
        }
        for outcome in table.batch(batch) {
            outcome?;
        }
    }
    Ok(store.close()?)
}

/// Runs a shell script with one argument; its output.
pub(super) fn shell(script: &str, argument: &Path) -> Result<String> {
    let output = Command::new("sh").args(["-c", script, "sh"]).arg(argument).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{script}: {}", output.status).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Resident memory of a process in MB (10^6), as the kernel counts it.
pub(super) fn resident_mb(pid: u32) -> Result<f64> {
    memory_mb(pid, "VmRSS:")
}

/// A field of a process' status in MB (10^6): `VmRSS:` is memory now, `VmHWM:` at its peak.
pub(super) fn memory_mb(pid: u32, field: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kb: f64 =
        line.ok_or_else(|| format!("no {field} in /proc/PID/status"))?.trim().trim_end_matches(" kB").parse()?;
    Ok(kb * 1024.0 / 1e6)
}
