//! Families added, changed and dropped while others write and read, on the real mount: nothing acknowledged is lost, and no error is a wrong one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets the unexpected has failed"
)]

mod support;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use support::Place;

/// Families that come and go.
const FAMILIES: usize = 30;

/// Writes a file as one version; what the call says at last is what was acknowledged.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = fs::File::create(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn errno(result: &io::Result<()>) -> i32 {
    result.as_ref().err().map_or(0, |error| error.raw_os_error().unwrap_or(-1))
}

fn family(number: usize) -> String {
    format!("f{number:02}")
}

/// Ends the others' loops when a thread is through, in whatever way.
struct StopsOthers<'a>(&'a AtomicBool);

impl Drop for StopsOthers<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Writes and reads back the same cells of a family that stays, until told to stop; returns how many versions were acknowledged.
fn use_what_stays(table: &Path, row: &str, stop: &AtomicBool) -> usize {
    let mut rounds = 0;
    fs::create_dir(table.join(row)).unwrap();
    while !stop.load(Ordering::Acquire) {
        let cell = table.join(row).join(format!("cf:q{}", rounds % 7));
        write(&cell, &format!("{row} {rounds}")).unwrap_or_else(|error| panic!("{}: {error}", cell.display()));
        assert_eq!(fs::read_to_string(&cell).unwrap(), format!("{row} {rounds}"));
        if rounds % 10 == 0 {
            assert!(fs::read_dir(table.join(row)).unwrap().count() >= (rounds + 1).min(7));
            assert!(fs::read_to_string(table.join(".schema")).unwrap().contains("[family.cf]"));
        }
        rounds += 1;
    }
    rounds
}

/// Tries each family until a write to it is acknowledged; from then on it must stay. Returns the cells.
fn write_where_families_come(table: &Path, stop: &AtomicBool) -> Vec<PathBuf> {
    let _stops = StopsOthers(stop);
    fs::create_dir(table.join("moving")).unwrap();
    let mut acknowledged = Vec::new();
    for number in 0..FAMILIES {
        let cell = table.join("moving").join(format!("{}:q", family(number)));
        loop {
            assert!(!stop.load(Ordering::Acquire), "another thread has failed");
            let result = write(&cell, "kept");
            match errno(&result) {
                0 => break,
                // There is no such family, when the file is made or when its value is committed; or its name was there for a moment only.
                libc::EINVAL | libc::ENOENT => {}
                other => panic!("{}: {other} {result:?}", cell.display()),
            }
        }
        assert_eq!(fs::read_to_string(&cell).unwrap(), "kept");
        acknowledged.push(cell);
    }
    acknowledged
}

/// Makes each family, and drops and makes it again until somebody has written to it; changes the one that stays meanwhile.
fn change_families(table: &Path, stop: &AtomicBool) -> usize {
    let mut drops = 0;
    for number in 0..FAMILIES {
        let directory = table.join(".cf").join(family(number));
        loop {
            // Until the last one has been written to.
            if stop.load(Ordering::Acquire) {
                return drops;
            }
            fs::create_dir(&directory).unwrap();
            let dropped = fs::remove_dir(&directory);
            match errno(&dropped) {
                0 => drops += 1,
                libc::ENOTEMPTY => break,
                other => panic!("{}: {other}", directory.display()),
            }
            // Every other time it stays for a moment, so that writers meet it.
            if drops % 2 == 0 {
                fs::create_dir(&directory).unwrap();
                let versions = 1 + drops % 5;
                let schema = fs::read_to_string(table.join(".schema")).unwrap();
                let line = schema.lines().find(|line| line.starts_with("VERSIONS")).unwrap();
                write(&table.join(".schema"), &schema.replacen(line, &format!("VERSIONS = {versions}"), 1)).unwrap();
                match errno(&fs::remove_dir(&directory)) {
                    0 => {}
                    libc::ENOTEMPTY => break,
                    other => panic!("{}: {other}", directory.display()),
                }
            }
        }
    }
    drops
}

#[test]
fn families_change_under_writers_and_readers() {
    if !support::can_mount() {
        return;
    }
    let place = Place::mounted();
    let table = place.point().join("default/t");
    fs::create_dir(&table).unwrap();
    // Who makes a table does not see its schema at first (docs/semantics.md, The tree).
    assert!((0..10).any(|_| fs::read_to_string(table.join(".schema")).is_ok()));
    let stop = AtomicBool::new(false);
    let (kept, drops) = thread::scope(|scope| {
        let steady: Vec<_> = ["one", "two"]
            .map(|row| {
                scope.spawn({
                    let (table, stop) = (&table, &stop);
                    move || use_what_stays(table, row, stop)
                })
            })
            .into();
        let moving = scope.spawn(|| write_where_families_come(&table, &stop));
        let changes = scope.spawn(|| {
            let _stops = StopsOthers(&stop);
            change_families(&table, &stop)
        });
        let (kept, drops) = (moving.join(), changes.join());
        let rounds: Vec<_> = steady.into_iter().map(|thread| thread.join()).collect();
        assert!(rounds.into_iter().all(|rounds| rounds.is_ok_and(|rounds| rounds > 0)));
        (kept.unwrap(), drops.unwrap())
    });
    let check = || {
        for cell in &kept {
            assert_eq!(fs::read_to_string(cell).unwrap(), "kept", "{}", cell.display());
        }
        assert_eq!(fs::read_dir(table.join(".cf")).unwrap().count(), FAMILIES + 1);
    };
    assert_eq!(kept.len(), FAMILIES);
    println!("{drops} families were dropped while somebody wrote");
    check();
    // What was acknowledged is in the log as well, over all the changes.
    place.kill_daemon();
    let _ = std::process::Command::new("umount").arg("-l").arg(place.point()).status();
    place.mount(&[]);
    check();
    place.unmount();
}
