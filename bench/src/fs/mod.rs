//! `bench fs`: file operations on cellfs, and in the same run on a file system in memory behind the same kernel adapter. The ratio is what the
//! engine costs.

mod mounted;
mod operations;
pub mod scale;
pub mod streams;
mod trees;

use crate::figures::{self, Figure, Result};
use mounted::Mounted;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Arguments of `bench fs`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Rows, each a directory.
    #[arg(long, default_value_t = 100)]
    pub rows: u64,
    /// Cells of each row, files of 100 bytes.
    #[arg(long, default_value_t = 100)]
    pub cells: u64,
    /// Size of the large cell in MB.
    #[arg(long, default_value_t = 8)]
    pub large_mb: u64,
    /// Times that the large cell is written and read.
    #[arg(long, default_value_t = 8)]
    pub large_times: u64,
    /// Times that everything is run; the median counts.
    #[arg(long, default_value_t = 3)]
    pub runs: u32,
    /// Numbers of clients that work at the same time, each on rows of its own; measured one number after the other.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2])]
    pub clients: Vec<usize>,
    /// A single client and the daemons on this CPU: a wake-up across CPUs costs as much as the rest of a round trip and is noise here. Several clients
    /// have all CPUs.
    #[arg(long)]
    pub pin: Option<usize>,
    /// Only these groups (cells are made in any case).
    #[arg(long, value_enum, value_delimiter = ',')]
    pub only: Vec<Group>,
    /// Rows of one cell that `rm -rf` removes.
    #[arg(long, default_value_t = 100_000)]
    pub tree_rows: u64,
    /// Cells that `tar c` reads, 100 in a row.
    #[arg(long, default_value_t = 1_000_000)]
    pub tar_cells: u64,
    /// Measure these: cellfs, null, plain (an ordinary directory). The last one is compared with.
    #[arg(long, value_delimiter = ',', default_values_t = ["cellfs".to_string(), "null".to_string()])]
    pub peers: Vec<String>,
    #[command(flatten)]
    pub programs: Programs,
}

/// What can be measured by itself.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Overwrite, stat, open and read.
    Small,
    /// readdir and `ls -l`.
    Listings,
    /// rename and unlink.
    Names,
    /// A large cell written and read.
    Large,
    /// `rm -rf`.
    Remove,
    /// `tar c`, and the daemon's memory.
    Tar,
}

impl Group {
    /// Measured on a tree that is there from the start, once for all numbers of clients.
    const TREES: [Group; 2] = [Group::Remove, Group::Tar];
}

impl Options {
    fn wants(&self, group: Group) -> bool {
        self.only.is_empty() || self.only.contains(&group)
    }

    fn wants_operations(&self) -> bool {
        self.only.is_empty() || self.only.iter().any(|group| !Group::TREES.contains(group))
    }
}

/// The daemons' programs.
#[derive(clap::Args, Debug)]
pub struct Programs {
    /// The program `cellfs`.
    #[arg(long, default_value = "target/release/cellfs")]
    pub cellfs: PathBuf,
    /// The program of the null file system; its argument is the mount point.
    #[arg(long, default_value = "target/release/examples/null_filesystem")]
    pub null: PathBuf,
}

impl Programs {
    /// Mounts the store at `home`/store on `point`.
    pub fn mount_cellfs(&self, store: &Path, point: &Path) -> Result<Mounted> {
        let mut command = Command::new(&self.cellfs);
        command.arg("mount").arg("-f").arg(store).arg(point);
        Mounted::start(command, point)
    }

    /// Mounts the null file system on `point`, with so many rows of so many cells in it.
    fn mount_null(&self, point: &Path, filled: Option<(u64, u64)>) -> Result<Mounted> {
        let mut command = Command::new(&self.null);
        command.arg(point);
        if let Some((rows, cells)) = filled {
            command.arg(rows.to_string()).arg(cells.to_string());
        }
        Mounted::start(command, point)
    }
}

/// Runs the operations and prints a table.
pub fn run(directory: &Path, options: &Options) -> Result<()> {
    println!(
        "{} rows of {} cells of 100 bytes, large cell {} MB, {}, median of {} runs",
        options.rows,
        options.cells,
        options.large_mb,
        options.pin.map_or("not pinned".to_string(), |cpu| format!("a single client and the daemon on CPU {cpu}")),
        options.runs
    );
    let mut reports: Vec<(&str, Vec<Vec<Figure>>)> =
        options.peers.iter().map(|name| (name.as_str(), Vec::new())).collect();
    for run in 0..options.runs {
        for (name, runs) in &mut reports {
            eprintln!("{name}, run {} of {}", run + 1, options.runs);
            let mut figures = Vec::new();
            for clients in options.clients.iter().filter(|_| options.wants_operations()) {
                pin(options.pin.filter(|_| *clients == 1))?;
                figures.extend(measure(name, directory, options, *clients)?);
            }
            figures.extend(trees::measure(name, directory, options)?);
            runs.push(figures);
        }
    }
    let medians: Vec<(&str, Vec<Figure>)> = reports.iter().map(|(name, runs)| (*name, figures::median(runs))).collect();
    let Some(((theirs_name, theirs), ours)) = medians.split_last() else { return Ok(()) };
    for (name, figures) in ours {
        print!("{}", figures::compare(name, figures, theirs_name, theirs, goal));
    }
    if ours.is_empty() {
        print!("{}", figures::compare(theirs_name, theirs, "-", &[], |_| None));
    }
    Ok(())
}

fn measure(name: &str, directory: &Path, options: &Options, clients: usize) -> Result<Vec<Figure>> {
    let home = tempfile::Builder::new().prefix("cellfs-bench-").tempdir_in(directory)?;
    let point = home.path().join("mount");
    std::fs::create_dir(&point)?;
    let mounted = match name {
        "cellfs" => Some(options.programs.mount_cellfs(&home.path().join("store"), &point)?),
        "null" => Some(options.programs.mount_null(&point, None)?),
        "plain" => None,
        _ => return Err(format!("no file system {name}; there are: cellfs null plain").into()),
    };
    let figures = operations::measure(&point, options, clients)?;
    if let Some(mounted) = mounted {
        mounted.unmount()?;
    }
    Ok(figures)
}

/// The ratio to the null file system that each figure shall reach.
fn goal(name: &str) -> Option<f64> {
    match name {
        _ if name.starts_with("stat, warm") => Some(0.95),
        _ if name.starts_with("rm -rf") => Some(1.0 / 1.5),
        _ if name.starts_with("tar c") => Some(1.0 / 1.3),
        // What a file system keeps in memory is not its speed.
        _ if name.starts_with("daemon's memory") => None,
        _ => Some(0.75),
    }
}

/// Keeps this process, and what it starts, on one CPU; without one, on all.
fn pin(cpu: Option<usize>) -> Result<()> {
    let cpus = cpu.map_or_else(|| "0-1023".to_string(), |cpu| cpu.to_string());
    let status = Command::new("taskset")
        .args(["-a", "-c", "-p", &cpus, &std::process::id().to_string()])
        .stdout(std::process::Stdio::null())
        .status()
        .map_err(|error| format!("taskset: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("taskset: {status}").into()) }
}
