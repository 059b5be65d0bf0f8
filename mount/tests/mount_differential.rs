//! The same random system calls on a table of a real mount and on a plain directory, with every result compared (docs/semantics.md, last section).
//! `CELLFS_SEED` replays one sequence.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may fail anywhere")]

mod support;

use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};
use support::{Place, can_mount};

const SEQUENCES: u64 = 20;
const STEPS: usize = 250;
const FILES: usize = 4;

#[derive(Clone, Debug)]
enum Step {
    Mkdir(String),
    Rmdir(String),
    Unlink(String),
    Rename(String, String),
    /// Path, flags, and the slot that the descriptor goes to.
    Open(String, i32, usize),
    /// Closes a duplicate of a descriptor: a FLUSH in between.
    Duplicate(usize),
    Close(usize),
    Write(usize, u64, Vec<u8>),
    Read(usize, u64),
    Truncate(usize, u64),
    Fsync(usize),
    Size(usize),
    Chmod(String, u32),
    Utimes(String, u64),
    Stat(String),
    Cat(String),
    Overwrite(String, Vec<u8>),
    List(String),
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn row(&mut self) -> String {
        ["r1", "r2", "r3"][self.below(3)].into()
    }

    fn cell(&mut self) -> String {
        format!("{}/{}", self.row(), ["cf:a", "cf:b", "cf:c"][self.below(3)])
    }

    /// A row or a cell, so that calls meet the wrong kind, too.
    fn path(&mut self) -> String {
        if self.below(5) == 0 { self.row() } else { self.cell() }
    }

    fn data(&mut self) -> Vec<u8> {
        let length = if self.below(8) == 0 { 5000 + self.below(10_000) } else { self.below(20) };
        (0..length).map(|_| b'a' + self.below(26) as u8).collect()
    }

    fn step(&mut self) -> Step {
        let slot = self.below(FILES);
        match self.below(24) {
            0 | 1 => Step::Mkdir(self.row()),
            2 => Step::Rmdir(self.path()),
            3 => Step::Unlink(self.path()),
            4 => Step::Rename(self.cell(), self.cell()),
            5 => Step::Rename(self.row(), self.row()),
            6 | 7 => {
                let access = [libc::O_WRONLY, libc::O_RDWR][self.below(2)];
                let more =
                    [0, libc::O_CREAT, libc::O_CREAT | libc::O_TRUNC, libc::O_CREAT | libc::O_EXCL, libc::O_APPEND];
                Step::Open(self.cell(), access | more[self.below(more.len())], slot)
            }
            8 => Step::Duplicate(slot),
            9 | 10 => Step::Close(slot),
            11..=13 => Step::Write(slot, self.below(3000) as u64, self.data()),
            14 => Step::Read(slot, self.below(3000) as u64),
            15 => Step::Truncate(slot, self.below(6000) as u64),
            16 => Step::Size(slot),
            17 => Step::Chmod(self.path(), [0o600, 0o644, 0o700, 0o755][self.below(4)]),
            18 => Step::Utimes(self.cell(), 1_000_000_000 + self.below(1_000_000) as u64),
            19 => Step::Stat(self.path()),
            20 | 21 => Step::Cat(self.cell()),
            22 => Step::Overwrite(self.cell(), self.data()),
            _ if self.below(6) == 0 => Step::Fsync(slot),
            _ => Step::List(if self.below(2) == 0 { String::new() } else { self.row() }),
        }
    }
}

/// Does a step and returns what a program could tell.
fn act(root: &Path, open: &mut [Option<File>; FILES], step: &Step) -> Result<String, i32> {
    let done = |result: io::Result<()>| result.map(|()| String::new());
    let file = |slot: usize, open: &[Option<File>; FILES]| {
        open[slot].as_ref().map(File::try_clone).transpose()?.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))
    };
    let result = match step {
        Step::Mkdir(path) => done(fs::create_dir(root.join(path))),
        Step::Rmdir(path) => done(fs::remove_dir(root.join(path))),
        Step::Unlink(path) => done(fs::remove_file(root.join(path))),
        Step::Rename(from, to) => done(fs::rename(root.join(from), root.join(to))),
        Step::Open(path, flags, slot) => {
            let mut options = OpenOptions::new();
            // The standard library knows no O_CREAT without write access of its own kind: flags go past it.
            options.read(flags & libc::O_ACCMODE == libc::O_RDWR).write(true).mode(0o644);
            options.custom_flags(flags & !libc::O_ACCMODE);
            options.open(root.join(path)).map(|file| {
                open[*slot] = Some(file);
                String::new()
            })
        }
        Step::Duplicate(slot) => file(*slot, open).map(|duplicate| {
            drop(duplicate);
            String::new()
        }),
        Step::Close(slot) => {
            open[*slot] = None;
            Ok(String::new())
        }
        Step::Write(slot, offset, data) => match &open[*slot] {
            Some(file) => file.write_at(data, *offset).map(|written| written.to_string()),
            None => Ok(String::new()),
        },
        Step::Read(slot, offset) => match &open[*slot] {
            Some(file) => {
                let mut data = vec![0; 4096];
                file.read_at(&mut data, *offset).map(|read| String::from_utf8_lossy(&data[..read]).into_owned())
            }
            None => Ok(String::new()),
        },
        Step::Truncate(slot, size) => match &open[*slot] {
            Some(file) => done(file.set_len(*size)),
            None => Ok(String::new()),
        },
        Step::Fsync(slot) => match &open[*slot] {
            Some(file) => done(file.sync_all()),
            None => Ok(String::new()),
        },
        Step::Size(slot) => match &open[*slot] {
            Some(file) => file.metadata().map(|shown| format!("{} {:o}", shown.len(), shown.mode())),
            None => Ok(String::new()),
        },
        Step::Chmod(path, mode) => done(fs::set_permissions(root.join(path), Permissions::from_mode(*mode))),
        Step::Utimes(path, seconds) => File::open(root.join(path)).and_then(|file| {
            let time = UNIX_EPOCH + Duration::new(*seconds, 123_456_789);
            file.set_times(FileTimes::new().set_modified(time))?;
            let shown = fs::metadata(root.join(path))?;
            Ok(format!("{} {}", shown.mtime(), shown.mtime_nsec()))
        }),
        Step::Stat(path) => fs::metadata(root.join(path)).map(|shown| {
            let size = if shown.is_dir() { 0 } else { shown.len() };
            format!("{size} {:o}", shown.mode())
        }),
        Step::Cat(path) => fs::read(root.join(path)).map(|data| String::from_utf8_lossy(&data).into_owned()),
        Step::Overwrite(path, data) => done(fs::write(root.join(path), data)),
        Step::List(path) => fs::read_dir(root.join(path)).and_then(|entries| {
            let names: io::Result<Vec<_>> = entries.map(|entry| entry.map(|entry| entry.file_name())).collect();
            let mut names = names?;
            names.retain(|name| name != ".schema");
            names.sort();
            Ok(format!("{names:?}"))
        }),
    };
    result.map_err(|error| error.raw_os_error().unwrap_or(0))
}

#[test]
fn random_system_calls_do_what_they_do_on_a_plain_directory() {
    if !can_mount() {
        return;
    }
    let place = Place::mounted();
    let only = std::env::var("CELLFS_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    for seed in only.map_or(0..SEQUENCES, |seed| seed..seed + 1) {
        let table = place.point().join(format!("default/t{seed}"));
        let plain = place.outside().join(format!("plain{seed}"));
        fs::create_dir(&table).expect("a table");
        fs::create_dir(&plain).expect("a directory");
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let (mut ours, mut theirs): ([Option<File>; FILES], [Option<File>; FILES]) = Default::default();
        let mut trace = vec![format!("CELLFS_SEED={seed}")];
        for _ in 0..STEPS {
            let step = random.step();
            trace.push(format!("{step:?}"));
            let expected = act(&plain, &mut theirs, &step);
            let result = act(&table, &mut ours, &step);
            assert!(
                result == expected,
                "{result:?}, a plain directory: {expected:?}\n{}\n{}",
                trace.join("\n"),
                fs::read_to_string(place.point().join(".cellfs/errors")).unwrap_or_default()
            );
        }
    }
}
