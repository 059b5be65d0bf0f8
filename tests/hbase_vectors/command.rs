//! What `scripts/hbase-vectors` runs: recorded scripts, or scripts that HBase answers meanwhile, on the engine.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "what breaks on a script that is no script counts as its failure"
)]

mod filters;
mod live;
mod protocol;
mod region;
mod replay;
mod schema;

use live::{Oracle, Recorded};
use region::{SETTINGS, Setting};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const USAGE: &str = "\
usage: scripts/hbase-vectors [OPTION...] PATH...
       scripts/hbase-vectors [OPTION...] --live --seeds A..B

Replays scripts on the engine and compares every answer with HBase's. PATH is a recorded script (*.jsonl) or a folder of
them; with --live the scripts of seeds A to B, B included, are made, and HBase runs them too (a JDK, Maven and Python).
Prints PASS or FAIL for each, with the first difference, then how many; exit 1 if any failed.

  --setting NAME   one setting of the engine (memory, tiny, reopened, recovered); without it each script runs in all
  --jobs N         so many at once; default 1
  --keep DIR       with --live: writes the scripts that failed to DIR, as HBase answered them
  --oracle DIR     the oracle's folder; default $CELLFS_SHARED/oracle, else ../shared/oracle";

struct Options {
    paths: Vec<PathBuf>,
    seeds: Option<(u64, u64)>,
    settings: Vec<&'static Setting>,
    jobs: usize,
    keep: Option<PathBuf>,
    oracle: PathBuf,
}

fn options() -> Result<Options, String> {
    let shared = std::env::var_os("CELLFS_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let settings = SETTINGS.iter().collect();
    let oracle = shared.join("oracle");
    let mut options = Options { paths: Vec::new(), seeds: None, settings, jobs: 1, keep: None, oracle };
    let mut live = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--live" => live = true,
            "--seeds" => options.seeds = Some(seeds(&value()?)?),
            "--jobs" => options.jobs = value()?.parse().map_err(|error| format!("--jobs: {error}"))?,
            "--keep" => options.keep = Some(value()?.into()),
            "--oracle" => options.oracle = value()?.into(),
            "--setting" => {
                let name = value()?;
                options.settings.retain(|setting| setting.name == name);
                if options.settings.is_empty() {
                    return Err(format!("there is no setting {name}"));
                }
            }
            option if option.starts_with("--") => return Err(format!("there is no option {option}")),
            path => options.paths.push(path.into()),
        }
    }
    match (live, options.seeds.is_some(), options.paths.is_empty()) {
        (true, true, true) | (false, false, false) => Ok(options),
        _ => Err("either paths, or --live with --seeds".to_owned()),
    }
}

fn seeds(text: &str) -> Result<(u64, u64), String> {
    let parsed = text.split_once("..").and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    parsed.ok_or_else(|| format!("--seeds takes A..B, not {text}"))
}

/// The scripts of files and folders, sorted within each folder.
fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let entries = std::fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        found.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        found.sort();
        files.extend(found);
    }
    Ok(files)
}

#[derive(Default)]
struct Totals {
    passed: AtomicUsize,
    failed: AtomicUsize,
    skipped: AtomicUsize,
}

impl Totals {
    /// Prints how a script went; true if it passed.
    fn note(&self, name: &str, difference: Option<&str>) -> bool {
        match difference {
            None => println!("PASS {name}"),
            Some(difference) => println!("FAIL {name} {difference}"),
        }
        let count = if difference.is_none() { &self.passed } else { &self.failed };
        count.fetch_add(1, Ordering::Relaxed);
        difference.is_none()
    }

    fn skip(&self, name: &str, why: &str) {
        println!("SKIP {name} {why}");
        self.skipped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Replays one script in all settings; says what differs.
fn difference(script: &str, settings: &[&'static Setting]) -> Option<String> {
    settings.iter().find_map(|setting| {
        let replayed = catch_unwind(AssertUnwindSafe(|| replay::replay(script, setting)));
        let difference = match replayed {
            Ok(report) => report.difference?,
            Err(_) => "the replay broke down".to_owned(),
        };
        Some(format!("({}) {difference}", setting.name))
    })
}

fn replay_files(options: &Options, totals: &Totals) -> Result<(), String> {
    let files = files(&options.paths)?;
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            match std::fs::read_to_string(path) {
                Ok(script) => drop(totals.note(&name, difference(&script, &options.settings).as_deref())),
                Err(error) => drop(totals.note(&name, Some(&format!("{}: {error}", path.display())))),
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(work);
        }
    });
    Ok(())
}

fn replay_live(options: &Options, totals: &Totals, first: u64, last: u64) -> Result<(), String> {
    let next = AtomicU64::new(first);
    let failure: Mutex<Option<String>> = Mutex::new(None);
    let work = || {
        let mut oracle = Oracle::new(&options.oracle);
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed > last {
                return;
            }
            if let Err(error) = judge_seed(&mut oracle, options, totals, seed) {
                *failure.lock().unwrap() = Some(format!("seed {seed}: {error}"));
                next.store(last + 1, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(work);
        }
    });
    failure.into_inner().unwrap().map_or(Ok(()), Err)
}

fn judge_seed(oracle: &mut Oracle, options: &Options, totals: &Totals, seed: u64) -> Result<(), String> {
    let name = format!("seed-{seed}");
    let Recorded::Script(script) = oracle.record(seed)? else {
        totals.skip(&name, "HBase never ends");
        return Ok(());
    };
    let found = difference(&script, &options.settings);
    if let Some(text) = &found {
        // As far as HBase comes, if that is beyond the difference.
        let (Recorded::Script(plain) | Recorded::Endless(plain)) = oracle.record_plain(seed)?;
        let line =
            text.split("line ").nth(1).and_then(|rest| rest.split(':').next()?.parse().ok()).unwrap_or(usize::MAX);
        if plain.lines().count() >= line && difference(&plain, &options.settings).is_none() {
            totals
                .skip(&name, &format!("line {line}: HBase answers as cellfs once no block ends and no codec is there"));
            return Ok(());
        }
        if let Some(folder) = &options.keep {
            keep(folder, seed, &script);
        }
    }
    totals.note(&name, found.as_deref());
    Ok(())
}

fn keep(folder: &Path, seed: u64, script: &str) {
    let path = folder.join(format!("seed-{seed}.jsonl"));
    if let Err(error) = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, script)) {
        eprintln!("{}: {error}", path.display());
    }
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let totals = Totals::default();
    let done = match options.seeds {
        Some((first, last)) => replay_live(&options, &totals, first, last),
        None => replay_files(&options, &totals),
    };
    let count = |count: &AtomicUsize| count.load(Ordering::Relaxed);
    let skipped = match count(&totals.skipped) {
        0 => String::new(),
        skipped => format!(", {skipped} skipped"),
    };
    println!("{} passed, {} failed{skipped}", count(&totals.passed), count(&totals.failed));
    if let Err(error) = &done {
        eprintln!("{error}");
        return ExitCode::from(2);
    }
    ExitCode::from(u8::from(count(&totals.failed) > 0))
}
