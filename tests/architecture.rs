//! The rules of the house as a test: who may import whom, where the operating system may be touched, how long a file may be. A rule that
//! stands in ARCHITECTURE.md and is not checked here is a wish.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The engine's rooms, lowest first. A room imports from lower levels only; rooms of one level do not know each other.
const ENGINE: &[&[&str]] = &[
    &["error"],
    &["cell", "clock", "types"],
    &["schema"],
    &["client", "vfs"],
    &["hfile", "manifest", "memstore", "wal"],
    &["scanner"],
    &["compaction"],
    &["store"],
    &["region"],
    &["hbase_root", "server"],
];

/// The same for the mount.
const MOUNT: &[&[&str]] = &[&["ops"], &["attributes", "invalidation", "names"], &["magic"], &["fs", "fuse"], &["cli"]];

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;

/// Where `unsafe` may stand, each block with its reason.
const UNSAFE_FILES: &[&str] = &["src/vfs/os.rs", "src/vfs/os_lock.rs", "src/vfs/os_map.rs", "src/vfs/system.rs"];

struct Source {
    /// Relative to the repository.
    path: PathBuf,
    text: String,
}

impl Source {
    /// The lines with code: comments and strings' contents are blanked roughly, tests at the end of the file are left out.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let tests = self.text.find("#[cfg(test)]\nmod tests {").unwrap_or(self.text.len());
        let code = self.text.get(..tests).unwrap_or_default();
        code.lines().enumerate().map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
    }

    fn is_test(&self) -> bool {
        self.path.iter().any(|part| part == "tests" || part == "benches")
            || self.path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
    }

    fn below(&self, directory: &str) -> bool {
        self.path.starts_with(directory)
    }
}

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(directories: &[&str]) -> Vec<Source> {
    let mut found = Vec::new();
    for directory in directories {
        collect(&repository().join(directory), &mut found);
    }
    assert!(!found.is_empty());
    found
}

fn collect(directory: &Path, found: &mut Vec<Source>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries {
        let path = entry.expect("a directory entry").path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("source is text");
            let path = path.strip_prefix(repository()).expect("below the repository").to_path_buf();
            found.push(Source { path, text });
        }
    }
}

fn all_sources() -> Vec<Source> {
    sources(&["src", "tests", "mount", "bench", "examples"])
}

/// Fails with every offence, not just the first.
fn assert_none(rule: &str, offences: &[String]) {
    assert!(offences.is_empty(), "{rule}:\n  {}", offences.join("\n  "));
}

fn level(rooms: &[&[&str]], room: &str) -> Option<usize> {
    rooms.iter().position(|level| level.contains(&room))
}

/// The rooms that a line imports: the word after `crate::`, or each word of a group.
fn imported(line: &str) -> Vec<String> {
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut rooms = Vec::new();
    for (at, found) in line.match_indices("crate::") {
        let rest = line.get(at + found.len()..).unwrap_or_default();
        match rest.strip_prefix('{') {
            Some(group) => rooms.extend(group.split(',').map(|part| word(part.trim()))),
            None => rooms.push(word(rest)),
        }
    }
    rooms
}

fn upward_imports(sources: &[Source], root: &str, rooms: &[&[&str]]) -> Vec<String> {
    let mut offences = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let inside = source.path.strip_prefix(root).expect("below its root");
        let room = inside.iter().next().map(|part| part.to_string_lossy().trim_end_matches(".rs").to_owned());
        let Some(own) = room.as_deref().filter(|room| !["lib", "main"].contains(room)) else { continue };
        let Some(own_level) = level(rooms, own) else {
            offences.push(format!("{} is in no room of the list", source.path.display()));
            continue;
        };
        for (number, line) in source.code() {
            for other in imported(line) {
                if other != own && level(rooms, &other).is_some_and(|other_level| other_level >= own_level) {
                    offences.push(format!("{}:{number} imports {other}", source.path.display()));
                }
            }
        }
    }
    offences
}

#[test]
fn imports_point_downward() {
    assert_none("the engine imports upward", &upward_imports(&sources(&["src"]), "src", ENGINE));
    assert_none("the mount imports upward", &upward_imports(&sources(&["mount/src"]), "mount/src", MOUNT));
}

fn occurrences(sources: &[Source], words: &[&str], allowed: impl Fn(&Source) -> bool) -> Vec<String> {
    let mut offences = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test() && !allowed(source)) {
        for (number, line) in source.code() {
            for word in words.iter().filter(|word| line.contains(**word)) {
                offences.push(format!("{}:{number} has {word}", source.path.display()));
            }
        }
    }
    offences
}

#[test]
fn files_clock_and_chance_are_behind_vfs_and_clock() {
    let engine = sources(&["src"]);
    let words = ["std::fs", "SystemTime", "Instant", "rand::", "getrandom", "thread_rng"];
    let offences = occurrences(&engine, &words, |source| source.below("src/vfs") || source.below("src/clock.rs"));
    assert_none("the engine goes past Vfs and Clock", &offences);
    let mount = sources(&["mount/src"]);
    let offences = occurrences(&mount, &["SystemTime::now", "Instant::now", "rand::"], |_| false);
    assert_none("the mount goes past Clock", &offences);
    // cells.rs asks /proc which process a thread belongs to.
    let allowed = ["mount/src/cli", "mount/src/fuse", "mount/src/fs/cells.rs"];
    let offences = occurrences(&mount, &["std::fs"], |source| allowed.iter().any(|path| source.below(path)));
    assert_none("the file system touches files by itself", &offences);
}

#[test]
fn fuser_is_named_in_the_adapter_only() {
    let adapter = |source: &Source| source.below("mount/src/fuse") || source.below("mount/src/fuse.rs");
    assert_none("fuser leaks", &occurrences(&sources(&["mount/src"]), &["fuser::", "use fuser"], adapter));
}

#[test]
fn unsafe_code_stays_where_it_is_listed() {
    let allowed = |source: &Source| UNSAFE_FILES.iter().any(|file| source.below(file));
    assert_none("unsafe code", &occurrences(&sources(&["src", "mount/src"]), &["unsafe ", "unsafe{"], allowed));
}

#[test]
fn files_and_functions_are_short() {
    let mut offences = Vec::new();
    for source in all_sources() {
        let lines: Vec<&str> = source.text.lines().collect();
        if lines.len() > FILE_LINES_MAX {
            offences.push(format!("{} has {} lines of {FILE_LINES_MAX}", source.path.display(), lines.len()));
        }
        if source.is_test() {
            continue;
        }
        for (index, length) in long_functions(&lines) {
            offences.push(format!(
                "{}:{} has {length} lines of {FUNCTION_LINES_MAX}",
                source.path.display(),
                index + 1
            ));
        }
    }
    assert_none("too long", &offences);
}

/// Functions by their layout, which rustfmt fixes: the closing brace stands under the first letter of the head.
fn long_functions(lines: &[&str]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let head = line.trim_start();
        let indent = line.len() - head.len();
        let is_function = head.starts_with("fn ") || head.split("fn ").next().is_some_and(is_qualifiers);
        if !is_function || !head.contains("fn ") || head.ends_with(';') || head.ends_with('}') {
            continue;
        }
        let closing = format!("{}}}", " ".repeat(indent));
        let end = lines.iter().skip(index).position(|line| *line == closing);
        if let Some(length) = end.map(|end| end + 1).filter(|length| *length > FUNCTION_LINES_MAX) {
            found.push((index, length));
        }
    }
    found
}

fn is_qualifiers(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let qualifier = |word: &str| word.starts_with("pub") || ["const", "async", "super)", "crate)"].contains(&word);
    !words.is_empty() && words.iter().all(|word| qualifier(word))
}

#[test]
fn sources_are_documented_ascii_without_loose_ends() {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X ")];
    let mut offences = Vec::new();
    for source in all_sources() {
        if !source.is_test() && !source.text.starts_with("//!") {
            offences.push(format!("{} does not begin with its purpose", source.path.display()));
        }
        for (index, line) in source.text.lines().enumerate() {
            if !line.is_ascii() {
                offences.push(format!("{}:{} is not ASCII", source.path.display(), index + 1));
            }
            if marks.iter().any(|mark| line.contains(mark)) {
                offences.push(format!("{}:{} has a loose end", source.path.display(), index + 1));
            }
        }
    }
    assert_none("sources", &offences);
}

fn dependencies(manifest: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(repository().join(manifest)).expect("the manifest is there");
    let table: toml::Table = text.parse().expect("the manifest is TOML");
    let mut names = BTreeSet::new();
    for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
        if let Some(section) = table.get(section).and_then(toml::Value::as_table) {
            names.extend(section.keys().cloned());
        }
    }
    names
}

#[test]
fn every_dependency_is_explained() {
    let needed: BTreeSet<String> = ["Cargo.toml", "mount/Cargo.toml"].into_iter().flat_map(dependencies).collect();
    let text = fs::read_to_string(repository().join("docs/dependencies.md")).expect("the list is there");
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")).skip(1);
    let names: Vec<String> = rows.filter_map(|row| row.split_whitespace().next()).map(str::to_owned).collect();
    assert!(names.is_sorted(), "docs/dependencies.md is sorted by name");
    assert_eq!(names.into_iter().collect::<BTreeSet<_>>(), needed, "docs/dependencies.md against the manifests");
}

/// What stands between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// What is wrong with the tests that an invariant names: by file, or by function in one of the files it names.
fn missing_tests(invariant: &str, sources: &[Source]) -> Vec<String> {
    let heading = invariant.lines().next().unwrap_or_default();
    let Some((_, tests)) = invariant.split_once("*Test:*") else { return vec![format!("no test of: {heading}")] };
    let mut missing = Vec::new();
    let mut named: Vec<&Source> = Vec::new();
    for file in quoted(tests).filter(|word| word.ends_with(".rs") && !word.contains('*')) {
        let found: Vec<&Source> = sources.iter().filter(|source| source.path.ends_with(file)).collect();
        if found.is_empty() {
            missing.push(format!("no file {file} of: {heading}"));
        }
        named.extend(found);
    }
    let is_function =
        |word: &str| word.contains('_') && word.chars().all(|c| c.is_ascii_lowercase() || "_0123456789".contains(c));
    for function in quoted(tests).filter(|word| is_function(word)) {
        let head = format!("fn {function}(");
        if !named.iter().any(|source| source.text.contains(&head)) {
            missing.push(format!("no test {function} in the files named with: {heading}"));
        }
    }
    for path in quoted(tests).filter(|word| word.starts_with("scripts/") || word.ends_with('/')) {
        let path = path.split(' ').next().unwrap_or_default();
        if !repository().join(path).exists() {
            missing.push(format!("no {path} of: {heading}"));
        }
    }
    missing
}

#[test]
fn every_invariant_names_tests_that_exist() {
    let map = fs::read_to_string(repository().join("ARCHITECTURE.md")).expect("the map is there");
    let (_, rest) = map.split_once("## Invariants\n").expect("the map lists the invariants");
    let list = rest.split("\n## ").next().unwrap_or_default();
    let mut invariants: Vec<String> = Vec::new();
    for line in list.lines() {
        if line.starts_with(|first: char| first.is_ascii_digit()) {
            invariants.push(String::new());
        }
        if let Some(invariant) = invariants.last_mut() {
            invariant.push_str(line);
            invariant.push('\n');
        }
    }
    assert!(invariants.len() >= 10, "{} invariants", invariants.len());
    let sources = all_sources();
    let missing: Vec<String> = invariants.iter().flat_map(|invariant| missing_tests(invariant, &sources)).collect();
    assert_none("ARCHITECTURE.md names tests that are not there", &missing);
}
