//! What a measurement is and how it is shown: rates, percentiles, tables that can be pasted into docs/performance.md.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Any failure of a benchmark; it ends the run.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Result of a benchmark's step.
pub type Result<T> = std::result::Result<T, Failure>;

/// How a figure reads, and which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Operations a second; more is better.
    PerSecond,
    /// Microseconds; less is better.
    Microseconds,
    /// Seconds; less is better.
    Seconds,
    /// Bytes; less is better.
    Bytes,
    /// A plain ratio such as write amplification; less is better.
    Ratio,
}

impl Unit {
    /// The figure as text.
    pub fn show(self, value: f64) -> String {
        match self {
            Unit::PerSecond if value >= 1e6 => format!("{:.2} M/s", value / 1e6),
            Unit::PerSecond if value >= 1e3 => format!("{:.1} k/s", value / 1e3),
            Unit::PerSecond => format!("{value:.1} /s"),
            Unit::Microseconds if value >= 1e3 => format!("{:.2} ms", value / 1e3),
            Unit::Microseconds => format!("{value:.1} us"),
            Unit::Seconds => format!("{value:.2} s"),
            Unit::Bytes => format!("{:.1} MB", value / 1e6),
            Unit::Ratio => format!("{value:.2}"),
        }
    }

    /// How many times better `ours` is than `theirs`.
    pub fn ratio(self, ours: f64, theirs: f64) -> f64 {
        match self {
            Unit::PerSecond => ours / theirs,
            _ => theirs / ours,
        }
    }
}

/// One line of a report.
#[derive(Clone, Debug)]
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// The measured value.
    pub value: f64,
}

impl Figure {
    /// `operations` done in `elapsed`.
    pub fn rate(name: impl Into<String>, operations: u64, elapsed: Duration) -> Figure {
        let value = operations as f64 / elapsed.as_secs_f64().max(1e-9);
        Figure { name: name.into(), unit: Unit::PerSecond, value }
    }

    /// Any other figure.
    pub fn new(name: impl Into<String>, unit: Unit, value: f64) -> Figure {
        Figure { name: name.into(), unit, value }
    }
}

/// The median of each figure over several runs of the same report.
pub fn median(runs: &[Vec<Figure>]) -> Vec<Figure> {
    let Some(first) = runs.first() else { return Vec::new() };
    let mut medians = Vec::new();
    for figure in first {
        let mut values: Vec<f64> =
            runs.iter().flatten().filter(|other| other.name == figure.name).map(|other| other.value).collect();
        values.sort_by(f64::total_cmp);
        let value = values.get(values.len() / 2).copied().unwrap_or(figure.value);
        medians.push(Figure { value, ..figure.clone() });
    }
    medians
}

/// The value below which `share` (0 to 1) of the sorted values lie.
pub fn percentile(sorted_nanos: &[u64], share: f64) -> f64 {
    let last = sorted_nanos.len().saturating_sub(1);
    let at = ((last as f64) * share).round() as usize;
    sorted_nanos.get(at).copied().unwrap_or(0) as f64
}

/// Runs `work` and tells how long it took.
pub fn timed<T>(work: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
    let start = Instant::now();
    let result = work()?;
    Ok((result, start.elapsed()))
}

/// A Markdown table of our figures beside the peer's. `goal` gives the ratio to reach for a figure, if there is one.
pub fn compare(
    ours_name: &str,
    ours: &[Figure],
    theirs_name: &str,
    theirs: &[Figure],
    goal: impl Fn(&str) -> Option<f64>,
) -> String {
    let mut table =
        format!("| workload | {ours_name} | {theirs_name} | times better | goal |\n|---|---|---|---|---|\n");
    for figure in ours {
        let peer = theirs.iter().find(|peer| peer.name == figure.name);
        let (shown, ratio) = match peer {
            Some(peer) => (peer.unit.show(peer.value), figure.unit.ratio(figure.value, peer.value)),
            None => ("-".to_string(), f64::NAN),
        };
        let goal = match goal(&figure.name) {
            Some(goal) if ratio.is_nan() => format!("{goal:.2}"),
            Some(goal) if ratio >= goal => format!("{goal:.2} met"),
            Some(goal) => format!("{goal:.2} MISSED"),
            None => String::new(),
        };
        let ratio = if ratio.is_nan() { "-".to_string() } else { format!("{ratio:.2}") };
        let _ =
            writeln!(table, "| {} | {} | {shown} | {ratio} | {goal} |", figure.name, figure.unit.show(figure.value));
    }
    table
}

/// Bytes that this process has made the kernel write to disk since it began, in whole pages, whether by write(2) or through mapped memory (Linux
/// `/proc/self/io` write_bytes: a page counts when it becomes dirty). Directories in memory (tmpfs) count nothing.
pub fn bytes_written() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/io")?;
    let line =
        text.lines().find_map(|line| line.strip_prefix("write_bytes: ")).ok_or("/proc/self/io has no write_bytes")?;
    Ok(line.trim().parse()?)
}

/// Bytes that the files below `directory` occupy on disk (allocated blocks, as `du` counts).
pub fn bytes_on_disk(directory: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut total = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        // A background worker may remove a file between the listing and this look.
        let Ok(metadata) = entry.metadata() else { continue };
        total += if metadata.is_dir() { bytes_on_disk(&entry.path())? } else { metadata.blocks() * 512 };
    }
    Ok(total)
}

/// The machine's facts, one line, for the head of a report.
pub fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cpus = std::thread::available_parallelism().map_or(0, usize::from);
    let memory_kb: u64 = read("/proc/meminfo")
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse().ok())
        .unwrap_or(0);
    format!(
        "{cpus} CPUs ({}), {} GB memory, Linux {}, load {}",
        model.map_or("unknown", |(_, name)| name),
        memory_kb / 1_000_000,
        read("/proc/sys/kernel/osrelease").trim(),
        read("/proc/loadavg").split(' ').next().unwrap_or("?"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_say_how_many_times_better() {
        assert_eq!(Unit::PerSecond.ratio(200.0, 100.0), 2.0);
        assert_eq!(Unit::Microseconds.ratio(50.0, 100.0), 2.0);
    }

    #[test]
    fn percentiles_of_a_hundred() {
        let sorted: Vec<u64> = (0..=100).collect();
        assert_eq!(percentile(&sorted, 0.5), 50.0);
        assert_eq!(percentile(&sorted, 0.99), 99.0);
        assert_eq!(percentile(&[], 0.5), 0.0);
    }
}
