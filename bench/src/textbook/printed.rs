//! Our store files as HBase's own tool prints them (`oracle hfile print`, HBase `HFilePrettyPrinter -v -m -p`): what it counts and says must be
//! what we say of the file.

use super::{Tolerance, Verdict};
use crate::figures::Result;
use cellfs::hfile::HFileReader;
use cellfs::vfs::{OsVfs, Vfs};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Asks HBase about files, if it can be had.
pub struct Printer {
    oracle: Option<PathBuf>,
}

impl Printer {
    /// Sets HBase up, which takes a JDK and Maven; says so if it is not to be had.
    pub fn new(verdict: &mut Verdict) -> Printer {
        let shared = std::env::var_os("CELLFS_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
        let oracle = shared.join("oracle/oracle");
        let ready = Command::new(&oracle).arg("setup").output().is_ok_and(|output| output.status.success());
        if !ready {
            verdict.note(
                "files as HFilePrettyPrinter prints them",
                "no HBase here: a JDK, Maven and the oracle are needed",
            );
        }
        Printer { oracle: ready.then_some(oracle) }
    }

    /// Judges what HBase prints of the newest store file of the store in `home` against what we say of it.
    pub fn judge_newest(&self, name: &str, home: &Path, verdict: &mut Verdict) -> Result<()> {
        let Some(oracle) = &self.oracle else { return Ok(()) };
        let file = newest_store_file(home)?;
        let printed = print(oracle, &file)?;
        let ours = HFileReader::open(OsVfs.open_read(&file)?, 0, None)?.describe()?;
        let codec = ours.compression.to_lowercase();
        let same_codec = printed.get("compression").is_some_and(|theirs| theirs.to_lowercase() == codec);
        verdict.judge(&format!("{name}: printed codec is {codec}"), 1.0, f64::from(same_codec), EXACT);
        let mut figures = vec![
            ("entries", "entries", ours.entries),
            ("cells it scanned", "Scanned kv count", ours.entries),
            ("bytes", "length", std::fs::metadata(&file)?.len()),
            ("uncompressed bytes", "totalUncomressedBytes", ours.uncompressed_bytes),
        ];
        if let Some(bloom) = ours.blooms.first().filter(|bloom| bloom.kind != "DELETE_FAMILY") {
            figures.extend([
                ("bytes of bloom filter", "BloomSize", bloom.bytes),
                ("keys in it", "No of Keys in bloom", bloom.keys),
                ("keys that fit", "Max Keys for bloom", bloom.keys_max),
                ("chunks", "Number of chunks", bloom.chunks),
            ]);
        } else {
            verdict.judge(
                &format!("{name}: bloom filters printed"),
                f64::from(u8::from(printed.contains_key("BloomSize"))),
                0.0,
                EXACT,
            );
        }
        for (what, key, found) in figures {
            let theirs =
                printed.get(key).ok_or_else(|| format!("HFilePrettyPrinter says no {key} of {}", file.display()))?;
            verdict.judge(&format!("{name}: {what}, as printed"), theirs.parse()?, found as f64, EXACT);
        }
        Ok(())
    }
}

const EXACT: Tolerance = Tolerance::Absolute(0.0);

/// Store files are named by an id that grows.
fn newest_store_file(home: &Path) -> Result<PathBuf> {
    let files = std::fs::read_dir(home.join("data"))?.filter_map(|entry| Some(entry.ok()?.path()));
    Ok(files.max().ok_or_else(|| format!("no store files in {}", home.display()))?)
}

/// What is printed beside the cells, by name. The general bloom filter comes first and is what counts.
fn print(oracle: &Path, file: &Path) -> Result<BTreeMap<String, String>> {
    let output = Command::new(oracle).args(["hfile", "print"]).arg(file).output()?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("HFilePrettyPrinter refuses {}: {errors}", file.display()).into());
    }
    let mut printed = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines().filter(|line| !line.starts_with("K: ")) {
        let parts = ["=", ": ", " -> "].into_iter().find_map(|separator| line.split_once(separator));
        let Some((key, value)) = parts else { continue };
        let value = value.trim().trim_end_matches(',').to_owned();
        printed.entry(key.trim().to_owned()).or_insert(value);
    }
    Ok(printed)
}
