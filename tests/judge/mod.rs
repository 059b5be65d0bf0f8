//! A real HBase as judge of store files, by way of the oracle, and the generator of what it is to judge.

mod random;

pub use random::Random;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What HBase says of one file.
pub struct Verdict {
    /// The report of its checks, one object of JSON.
    pub report: String,
    /// The cells it reads, in order, as [`cellfs::hfile::cell_json`] writes them.
    pub cells: Vec<String>,
}

impl Verdict {
    /// Fails unless HBase found nothing wrong with the file.
    pub fn assert_accepted(&self, name: &str) {
        assert!(self.report.contains("\"ok\":true"), "{name}: {}", self.report);
    }
}

/// The oracle (../shared/oracle, or below CELLFS_SHARED), which needs a JDK and Maven; without them says so, and fails where CELLFS_REQUIRE_JUDGE is set, as in CI.
pub fn oracle() -> Option<PathBuf> {
    let on_path = |tool: &str| {
        std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(tool).is_file()))
    };
    let base = std::env::var_os("CELLFS_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let oracle = base.join("oracle/oracle");
    if on_path("java") && on_path("mvn") && oracle.is_file() {
        return Some(oracle);
    }
    let needs = format!("needs java and mvn on PATH and {}", oracle.display());
    assert!(std::env::var_os("CELLFS_REQUIRE_JUDGE").is_none(), "HBase cannot judge: {needs}");
    eprintln!("skipped: {needs}");
    None
}

/// Runs many `hfile` commands, a line of JSON each, in one Java machine, for starting HBase takes longest. What they print comes back.
pub fn run(oracle: &Path, commands: String) -> String {
    let mut judge =
        Command::new(oracle).args(["hfile", "run"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = judge.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || input.write_all(commands.as_bytes()));
    let output = judge.wait_with_output().unwrap();
    feeder.join().unwrap().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Asks about all files.
pub fn judge(oracle: &Path, files: &[PathBuf]) -> Vec<Verdict> {
    let commands = files.iter().map(|path| format!("[\"check\",{path:?}]\n[\"dump\",{path:?}]\n")).collect();
    let output = run(oracle, commands);

    // A report is an object, a cell is an array.
    let mut verdicts: Vec<Verdict> = Vec::new();
    for line in output.lines() {
        match verdicts.last_mut() {
            Some(verdict) if line.starts_with('[') => verdict.cells.push(line.to_owned()),
            _ => verdicts.push(Verdict { report: line.to_owned(), cells: Vec::new() }),
        }
    }
    assert_eq!(verdicts.len(), files.len(), "HBase answers for each file: {:?}", verdicts.last().map(|v| &v.report));
    verdicts
}
