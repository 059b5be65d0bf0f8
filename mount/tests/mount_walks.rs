//! Nothing under a dot name loops or grows without end: the walkers of every day, over the mount and over every dot name entered by hand.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test may fail anywhere")]

mod support;

use std::fs;
use std::process::Command;
use support::Place;

/// More than any of these trees has; a loop has no end.
const MANY: usize = 5000;
/// Seconds after which a walk counts as endless.
const PATIENCE: &str = "120";

/// Runs a walker on a directory; returns the lines it wrote.
fn walk(place: &Place, directory: &str, command: &[&str]) -> usize {
    let output = Command::new("timeout")
        .arg(PATIENCE)
        .args(command)
        .current_dir(place.point().join(directory))
        .env("LC_ALL", "C")
        .output()
        .expect("timeout runs");
    let code = output.status.code().unwrap_or(-1);
    assert_ne!(code, 124, "{command:?} in {directory} does not end");
    let complaints = support::text(&output.stderr);
    // find and du say so when a directory is its own ancestor.
    for complaint in ["loop", "circular", "hard link", "Too many levels"] {
        assert!(!complaints.contains(complaint), "{command:?} in {directory}: {complaints}");
    }
    let lines = output.stdout.iter().filter(|byte| **byte == b'\n').count();
    assert!(lines < MANY, "{command:?} in {directory}: {lines} lines");
    lines
}

/// A table with two families, four rows, a snapshot and several versions; returns a moment between two of them.
fn filled(place: &Place) -> String {
    place
        .sh(r#"
        mkdir default/t default/t/.cf/info default/u; cd default/t
        for row in a b c d; do
            mkdir $row; echo one > $row/cf:text; echo two > $row/info:text; printf '\0\0\0\7' > $row/cf:n
        done
        mkdir .snap/before; date +%s%3N
    "#)
        .lines()
        .last()
        .map(|now| {
            place.sh("cd default/t; for row in a b; do echo three > $row/cf:text; done; echo flush > .ctl");
            now.to_owned()
        })
        .expect("a time")
}

#[test]
fn walks_end_over_the_mount_and_over_every_dot_name() {
    if !support::can_mount() {
        return;
    }
    let place = Place::mounted();
    let moment = filled(&place);
    // From the top, each cell is met once: 12 cells and the schemas of two tables.
    assert_eq!(walk(&place, ".", &["find", "-L", ".", "-type", "f"]), 14);
    let mut directories: Vec<String> = [
        ".cellfs",
        ".cellfs/guide",
        ".at",
        "default/t/.cf",
        "default/t/.cf/cf",
        "default/t/.cf/info/a",
        "default/t/.via",
        "default/t/.via/reverse",
        "default/t/.via/md5-4",
        "default/t/.via/hex",
        "default/t/.via/revts",
        "default/t/.snap",
        "default/t/.snap/before",
        "default/t/.snap/before/.cf",
        "default/t/.snap/before/.scan",
        "default/t/.snap/before/.via",
        "default/t/.snap/before/a/.versions",
        "default/t/.snap/before/a/.as",
        "default/t/.at",
        "default/t/.scan",
        "default/t/.scan/prefix=a",
        "default/t/.scan/prefix=a/limit=1",
        "default/t/.scan/rows",
        "default/t/.regions",
        "default/t/.import",
        "default/t/a/.as",
        "default/t/a/.as/int",
        "default/t/a/.versions",
        "default/t/a/.versions/cf:text",
        "default/t/a/.at",
        "hbase",
    ]
    .map(str::to_owned)
    .into();
    directories.push(format!(".at/{moment}"));
    directories.push(format!("default/t/.at/{moment}"));
    directories.push(format!("default/t/.at/{moment}/.cf"));
    directories.push(format!("default/t/a/.at/{moment}"));
    for directory in &directories {
        let found = walk(&place, directory, &["find", "-L", "."]);
        assert!(found > 0, "{directory} is not there");
        walk(&place, directory, &["du", "-a", "-L", "."]);
        walk(&place, directory, &["grep", "-r", "-I", "-s", "three", "."]);
        walk(&place, directory, &["tar", "-c", "-f", "/dev/null", "-h", "-v", "."]);
        walk(&place, directory, &["ls", "-laR", "."]);
    }
    place.unmount();
}

/// Nothing that shows another time, or another way to the rows, leads on to one more.
#[test]
fn nothing_leads_from_one_view_into_another() {
    if !support::can_mount() {
        return;
    }
    let place = Place::mounted();
    let moment = filled(&place);
    let table = place.point().join("default/t");
    let views = [
        ".snap/before".to_owned(),
        format!(".at/{moment}"),
        ".snap/before/a".to_owned(),
        format!(".at/{moment}/a"),
        ".cf/cf/a".to_owned(),
        format!("a/.at/{moment}"),
    ];
    for view in &views {
        assert!(fs::metadata(table.join(view)).is_ok(), "{view}");
        for further in [".snap", ".at", ".regions", ".ctl", ".import", ".stats", ".health"] {
            let path = table.join(view).join(further);
            assert!(fs::metadata(&path).is_err(), "{}", path.display());
        }
    }
    for path in [
        ".cf/cf/a/.cf",
        ".cf/cf/a/.versions",
        ".cf/cf/.cf",
        ".cf/.cf",
        ".via/reverse/a/.via",
        ".scan/rows/a/.scan",
        ".snap/.snap",
        ".scan/.scan",
    ] {
        assert!(fs::metadata(table.join(path)).is_err(), "{path}");
    }
    place.unmount();
}
