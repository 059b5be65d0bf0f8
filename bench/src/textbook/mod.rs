//! `bench textbook`: experiments whose outcome is known from a real HBase 2.6.4 with the same set-up; cellfs must give the same counts (within
//! 2 %) and bytes (within 5 %). Times are shown for orientation and never judged.

mod e1;
mod e10;
mod e11;
mod e2;
mod printed;

use crate::figures::Result;
use std::path::Path;

/// Arguments of `bench textbook`.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Which experiments: E1 E2 E10 E11; all when none is named.
    pub experiments: Vec<String>,
}

/// An experiment: fills the verdict with its figures, in a directory of its own.
type Experiment = fn(&Path, &mut Verdict) -> Result<()>;

const EXPERIMENTS: [(&str, Experiment); 4] = [("E1", e1::run), ("E2", e2::run), ("E10", e10::run), ("E11", e11::run)];

/// What a figure may differ by.
#[derive(Clone, Copy, Debug)]
pub enum Tolerance {
    /// A share of the expected value.
    Share(f64),
    /// So much, up or down.
    Absolute(f64),
    /// Not above the expected value.
    AtMost,
}

/// Counts blocks, files and entries: within 2 %.
pub const COUNT: Tolerance = Tolerance::Share(0.02);
/// Bytes: within 5 %.
pub const BYTES: Tolerance = Tolerance::Share(0.05);

/// The figures found so far and whether all of them were right.
#[derive(Default)]
pub struct Verdict {
    wrong: u32,
}

impl Verdict {
    /// Judges a figure and shows it.
    pub fn judge(&mut self, name: &str, expected: f64, found: f64, tolerance: Tolerance) {
        let right = match tolerance {
            Tolerance::Share(share) => (found - expected).abs() <= expected.abs() * share,
            Tolerance::Absolute(difference) => (found - expected).abs() <= difference,
            Tolerance::AtMost => found <= expected,
        };
        if !right {
            self.wrong += 1;
        }
        let verdict = if right { "same" } else { "OFF" };
        println!("| {name} | {} | {} | {verdict} |", number(expected), number(found));
    }

    /// Shows something that is not judged.
    pub fn note(&mut self, name: &str, found: &str) {
        println!("| {name} | | {found} | not judged |");
    }
}

fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

/// Runs the experiments; true if every figure was right.
pub fn run(directory: &Path, options: &Options) -> Result<bool> {
    let known = |name: &&String| !EXPERIMENTS.iter().any(|(known, _)| known == name);
    if let Some(unknown) = options.experiments.iter().find(known) {
        return Err(
            format!("no experiment {unknown}; there are: {}", EXPERIMENTS.map(|(name, _)| name).join(" ")).into()
        );
    }
    println!("| experiment | HBase 2.6.4 | cellfs | verdict |\n|---|---|---|---|");
    let mut verdict = Verdict::default();
    for (name, experiment) in EXPERIMENTS {
        if options.experiments.is_empty() || options.experiments.iter().any(|wanted| wanted == name) {
            let home = tempfile::Builder::new().prefix("cellfs-textbook-").tempdir_in(directory)?;
            experiment(home.path(), &mut verdict)?;
        }
    }
    match verdict.wrong {
        0 => println!("every figure is HBase's"),
        wrong => println!("{wrong} figures are off"),
    }
    Ok(verdict.wrong == 0)
}
