//! The commands of docs/backup.md, run on a real mount.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

mod support;

use std::path::Path;
use std::process::Command;

/// Ten versions, names that are hard to spell, modes and times, two snapshots.
const TABLE: &str = r#"
    town=$'b\303\274ro'; street=$'cf:stra\303\237e'
    mkdir ~/m; cellfs mount ~/data ~/m; cd ~/m/default; mkdir people
    sed -i 's/^VERSIONS = .*/VERSIONS = 10/; s/^KEEP_DELETED_CELLS = .*/KEEP_DELETED_CELLS = "TRUE"/' people/.schema
    mkdir people/ada people/%2Ehidden 'people/with %2F and "quotes"' $'people/new%0Aline' people/$town
    for i in $(seq 10); do echo "version $i" > people/ada/cf:v; done
    printf '\0\1\377%s' binary > people/%2Ehidden/cf:b; : > 'people/with %2F and "quotes"/cf:'
    echo x > $'people/new%0Aline/cf:q%7E'; echo y > people/$town/$street
    mkdir people/.snap/first; rm people/$town/$street; echo z > people/$town/cf:z; mkdir people/.snap/second
    chmod 600 people/ada/cf:v; chmod 700 people/$town; touch -d '2020-01-02 03:04:05.678' people/ada/cf:v people/$town
"#;

/// What holds after the command blocks, by number.
const HOLDS: [(usize, &str); 6] = [
    (1, "diff -r ~/m/default/people ~/m/default/from-tar; diff <(listing people) <(listing from-tar)"),
    (2, "diff -r ~/m/default/people mirror; [ \"$(rsync -ai --delete ~/m/default/people/ mirror/)\" = '' ]"),
    (3, "diff -r as-of ~/m/default/people; [ \"$(cat ~/m/default/people/ada/cf:v)\" = 'version 10' ]"),
    (
        4,
        "diff people.cells ~/m/default/from-cells/.scan/raw=1/versions=all/cells; diff -r ~/m/default/people ~/m/default/from-cells",
    ),
    (4, "[ \"$(ls ~/m/default/from-cells/ada/.versions/cf:v | wc -l)\" -ge 10 ]; cp -a ~/m/default live"),
    (
        5,
        "diff -r live ~/m/default; [ \"$(ls ~/m/default/people/.snap | tr '\\n' ' ')\" = 'first second ' ]; \
         cat ~/m/default/people/.snap/first/$'b\\303\\274ro'/$'cf:stra\\303\\237e'; cellfs unmount ~/m",
    ),
];

const LISTING: &str =
    r#"listing() { (cd ~/m/default/"$1"; find . -mindepth 1 ! -name .schema -printf '%P %m %U:%G %T@\n' | sort); }"#;

fn bash(home: &Path, script: &str) -> String {
    let programs = Path::new(support::CELLFS).parent().expect("a directory");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", script])
        .current_dir(home)
        .env("HOME", home)
        .env("PATH", path)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .expect("bash runs");
    let errors = std::fs::read_to_string(home.join("m/.cellfs/errors")).unwrap_or_default();
    let (out, err) = (support::text(&output.stdout), support::text(&output.stderr));
    assert!(output.status.success(), "{script}\n{out}\n{err}\nerrors:\n{errors}");
    out
}

#[test]
fn the_commands_of_the_page_restore_everything() {
    if !support::can_mount() {
        return;
    }
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/backup.md")).expect("the page");
    let blocks: Vec<&str> = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), HOLDS.last().expect("some").0 + 1, "what holds after each block is said above");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let home = directory.path();
    let unmounted = Unmount(home);
    bash(home, TABLE);
    for (number, block) in blocks.iter().enumerate() {
        bash(home, block);
        for (_, holds) in HOLDS.iter().filter(|(after, _)| *after == number) {
            let out = bash(home, &format!("{LISTING}\n{holds}"));
            assert_eq!(out, if number == 5 { "y\n" } else { "" }, "after:\n{block}");
        }
    }
    drop(unmounted);
}

/// After a failure the daemon must not stay.
struct Unmount<'a>(&'a Path);

impl Drop for Unmount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.join("m")).stderr(std::process::Stdio::null()).status();
    }
}
