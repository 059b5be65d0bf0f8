//! `bench fs`: file operations on cellfs, and in the same run on a file system in memory behind the same kernel adapter. The ratio is what the
//! engine costs.

mod mounted;
mod operations;
pub mod scale;

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
    /// Client and daemons on this CPU: a wake-up across CPUs costs as much as the rest of a round trip and is noise here.
    #[arg(long)]
    pub pin: Option<usize>,
    /// Measure these: cellfs, null, plain (an ordinary directory). The last one is compared with.
    #[arg(long, value_delimiter = ',', default_values_t = ["cellfs".to_string(), "null".to_string()])]
    pub peers: Vec<String>,
    #[command(flatten)]
    pub programs: Programs,
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

    fn mount_null(&self, point: &Path) -> Result<Mounted> {
        let mut command = Command::new(&self.null);
        command.arg(point);
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
        options.pin.map_or("not pinned".to_string(), |cpu| format!("client and daemon on CPU {cpu}")),
        options.runs
    );
    if let Some(cpu) = options.pin {
        pin(cpu)?;
    }
    let mut reports: Vec<(&str, Vec<Vec<Figure>>)> =
        options.peers.iter().map(|name| (name.as_str(), Vec::new())).collect();
    for run in 0..options.runs {
        for (name, runs) in &mut reports {
            eprintln!("{name}, run {} of {}", run + 1, options.runs);
            runs.push(measure(name, directory, options)?);
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

fn measure(name: &str, directory: &Path, options: &Options) -> Result<Vec<Figure>> {
    let home = tempfile::Builder::new().prefix("cellfs-bench-").tempdir_in(directory)?;
    let point = home.path().join("mount");
    std::fs::create_dir(&point)?;
    let mounted = match name {
        "cellfs" => Some(options.programs.mount_cellfs(&home.path().join("store"), &point)?),
        "null" => Some(options.programs.mount_null(&point)?),
        "plain" => None,
        _ => return Err(format!("no file system {name}; there are: cellfs null plain").into()),
    };
    let figures = operations::measure(&point, options)?;
    if let Some(mounted) = mounted {
        mounted.unmount()?;
    }
    Ok(figures)
}

/// The ratio to the null file system that each figure shall reach.
fn goal(name: &str) -> Option<f64> {
    Some(if name == "stat, warm" { 0.95 } else { 0.6 })
}

/// Keeps this process, and what it starts, on one CPU.
fn pin(cpu: usize) -> Result<()> {
    let status = Command::new("taskset")
        .args(["-a", "-c", "-p", &cpu.to_string(), &std::process::id().to_string()])
        .stdout(std::process::Stdio::null())
        .status()
        .map_err(|error| format!("taskset: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("taskset: {status}").into()) }
}
