//! scripts/demo, on the sample that the repository ships.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

mod support;

use std::path::Path;
use std::process::Command;
use support::{CELLFS, cellfs, text};

#[test]
fn the_demo_loads_a_package_index_and_shows_ten_commands() {
    if !support::can_mount() {
        return;
    }
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let demo = |input: &str| {
        Command::new(repository.join("scripts/demo"))
            .arg(input)
            .current_dir(repository)
            .env("CELLFS", CELLFS)
            .env("CELLFS_DEMO_DIR", directory.path())
            .output()
            .expect("bash runs")
    };
    // Twice: the second takes away what the first left.
    for _ in 0..2 {
        let output = demo("scripts/demo-data/packages");
        let said = text(&output.stdout);
        assert!(output.status.success(), "{said}\n{}", text(&output.stderr));
        assert!(said.contains("rows=6 cells=48 rejected=0"), "{said}");
        assert!(said.contains("10. Figures of the table") && said.contains("unmount"), "{said}");
        assert!(said.contains("99.0-1") && said.contains("5.2.15-2+b7"), "{said}");
    }
    assert!(!demo("no/such/file").status.success());
    let mount = directory.path().join("mount");
    let row = std::fs::read_to_string(mount.join("default/packages/bash/text:Description")).expect("the cell");
    assert!(row.ends_with("Quotes \"like these\" and back\\slashes are part of the value."), "{row}");
    assert!(cellfs(&["unmount", &mount.to_string_lossy()]).status.success());
}
