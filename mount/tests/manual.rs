//! The manual pages in docs/man/ are what their sources make.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{cellfs, text};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/man")
}

#[test]
fn the_pages_are_what_the_sources_make() {
    let pages = cellfs_mount::cli::manual_pages().expect("the pages are made");
    for (name, made) in &pages {
        let kept = fs::read_to_string(directory().join(name)).unwrap_or_default();
        assert!(kept == *made, "docs/man/{name} is not what its sources make: run scripts/man");
    }
    let made: BTreeSet<String> = pages.into_iter().map(|(name, _)| name).collect();
    let entries = fs::read_dir(directory()).expect("the pages are there");
    let kept: BTreeSet<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    assert_eq!(kept, made);
    for page in ["cellfs.1", "cellfs-mount.1", "mount.cellfs.8", "cellfs-tree.7"] {
        assert!(made.contains(page), "{page}");
    }
}

#[test]
fn man_shows_the_pages_without_a_warning() {
    if !support::has_tool("man") {
        return;
    }
    for (name, _) in cellfs_mount::cli::manual_pages().expect("the pages are made") {
        let page = directory().join(&name);
        let output = Command::new("man")
            .args(["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z"])
            .arg(&page)
            .env("LC_ALL", "C.UTF-8")
            .env("MANROFFSEQ", "")
            .output()
            .expect("man runs");
        assert!(output.status.success() && output.stderr.is_empty(), "{name}: {}", text(&output.stderr));
        assert!(output.stdout.len() > 1000, "{name} is shown");
    }
}

#[test]
fn shells_get_completions() {
    for (shell, word) in [("bash", "complete -F _cellfs"), ("zsh", "#compdef cellfs"), ("fish", "complete -c cellfs")] {
        let output = cellfs(&["completion", shell]);
        assert!(output.status.success() && text(&output.stdout).contains(word), "{shell}");
    }
    let script = text(&cellfs(&["completion", "bash"]).stdout);
    let ask =
        format!("{script}\nCOMP_WORDS=(cellfs unm); COMP_CWORD=1; _cellfs cellfs unm cellfs; echo ${{COMPREPLY[@]}}");
    let output = Command::new("bash").args(["-c", &ask]).output().expect("bash runs");
    assert_eq!(text(&output.stdout), "unmount\n", "{}", text(&output.stderr));
}

/// The paragraphs and points of a page, without headings, tables and code.
fn statements(page: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let (mut code, mut goes_on) = (false, false);
    for line in page.lines() {
        let fence = line.starts_with("```");
        code ^= fence;
        if code || fence || line.is_empty() || line.starts_with(['#', '|']) {
            goes_on = false;
            continue;
        }
        let numbered = line.split_once(". ").is_some_and(|(number, _)| number.parse::<u8>().is_ok());
        match found.last_mut() {
            Some(statement) if goes_on && !numbered && !line.starts_with("* ") => {
                *statement = format!("{statement} {}", line.trim());
            }
            _ => found.push(line.into()),
        }
        goes_on = true;
    }
    found
}

/// The names of the tests in each source file, by its path in the repository.
fn tests_by_file(root: &Path, below: &str, found: &mut BTreeMap<String, BTreeSet<String>>) {
    for entry in fs::read_dir(root.join(below)).expect("a directory of sources") {
        let entry = entry.expect("an entry");
        let path = format!("{below}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            tests_by_file(root, &path, found);
        } else if path.ends_with(".rs") {
            let source = fs::read_to_string(entry.path()).expect("a source file");
            let tests = source.split("#[test]").skip(1).filter_map(|rest| rest.split_once("fn ")?.1.split('(').next());
            found.insert(path, tests.map(str::to_owned).collect());
        }
    }
}

/// What is wrong with a statement's citations: `*(FILE: `TEST`, `TEST`; FILE: `TEST`)*`; the file may be left out.
fn wrong_citations(statement: &str, tests: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut named = 0;
    let citations = statement.split("*(").skip(1).filter_map(|rest| rest.split_once(")*"));
    for part in citations.flat_map(|(citation, _)| citation.split(';')) {
        let (file, names) = match part.trim().split_once(": ") {
            Some((file, names)) => (Some(file), names),
            None => (None, part),
        };
        let places = |place: &str| file.map(|file| format!("{place}{file}"));
        let places = ["mount/tests/file_system/", "mount/tests/", ""].iter().filter_map(|place| places(place));
        let of_file = places.filter_map(|path| tests.get(&path)).next();
        if let (Some(file), None) = (file, of_file) {
            wrong.push(format!("there is no {file}"));
        }
        for name in names.split('`').skip(1).step_by(2) {
            named += 1;
            if !of_file.map_or_else(|| tests.values().any(|all| all.contains(name)), |all| all.contains(name)) {
                wrong.push(format!("there is no test {name} in {}", file.unwrap_or("any file")));
            }
        }
    }
    if named == 0 {
        wrong.push("no test is named".into());
    }
    wrong
}

#[test]
fn every_statement_of_the_contract_names_tests_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut tests = BTreeMap::new();
    for below in ["src", "tests", "mount/src", "mount/tests"] {
        tests_by_file(&root, below, &mut tests);
    }
    let page = fs::read_to_string(root.join("docs/semantics.md")).expect("the page");
    let (introduction, contract) = page.split_once("\n## ").expect("sections");
    assert!(introduction.starts_with("# "));
    let statements = statements(contract.split_once('\n').expect("a heading").1);
    assert!(statements.len() > 50, "{statements:#?}");
    let wrong: Vec<String> = statements
        .iter()
        .filter_map(|statement| {
            let wrong = wrong_citations(statement, &tests);
            (!wrong.is_empty()).then(|| format!("{wrong:?}: {statement}"))
        })
        .collect();
    assert!(wrong.is_empty(), "docs/semantics.md:\n{}", wrong.join("\n"));
    let made_up = "A sentence. *(tree.rs: `no_such_test`; nowhere.rs: `any_key_comes_back`; `any_key_comes_back`)*";
    assert_eq!(wrong_citations(made_up, &tests).len(), 2);
    assert_eq!(wrong_citations("A sentence.", &tests).len(), 1);
}
