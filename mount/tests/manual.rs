//! The manual pages in docs/man/ are what their sources make.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

mod support;

use std::collections::BTreeSet;
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
