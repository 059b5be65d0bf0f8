//! The same random system calls on a table of a real mount and on a plain directory, with every result compared (docs/semantics.md, last section):
//! by one process and by four at once, on two mounts, as another user, through a bind mount. `CELLFS_SEED` replays one sequence.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may fail anywhere")]

mod support;

use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, UNIX_EPOCH};
use support::{Place, can_mount, has_tool, text};

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
    /// A directory, and what the names begin with that are compared.
    List(String, String),
}

struct Random {
    state: u64,
    /// What the rows' names begin with.
    prefix: String,
}

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % limit
    }

    fn row(&mut self) -> String {
        let number = 1 + self.below(3);
        format!("{}r{number}", self.prefix)
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
            _ if self.below(2) == 0 => Step::List(String::new(), self.prefix.clone()),
            _ => Step::List(self.row(), String::new()),
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
        Step::List(path, prefix) => fs::read_dir(root.join(path)).and_then(|entries| {
            let names: io::Result<Vec<_>> = entries.map(|entry| entry.map(|entry| entry.file_name())).collect();
            let mut names = names?;
            names.retain(|name| name != ".schema" && name.to_string_lossy().starts_with(prefix));
            names.sort();
            Ok(format!("{names:?}"))
        }),
    };
    result.map_err(|error| error.raw_os_error().unwrap_or(0))
}

/// The same random calls on both directories; `between` is called before each.
fn compare(table: &Path, plain: &Path, prefix: &str, seed: u64, mut between: impl FnMut(usize)) {
    let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut random = Random { state, prefix: prefix.into() };
    let (mut ours, mut theirs): ([Option<File>; FILES], [Option<File>; FILES]) = Default::default();
    let mut trace = vec![format!("CELLFS_SEED={seed}")];
    for number in 0..STEPS {
        between(number);
        let step = random.step();
        trace.push(format!("{step:?}"));
        let expected = act(plain, &mut theirs, &step);
        let result = act(table, &mut ours, &step);
        assert!(
            result == expected,
            "{result:?}, a plain directory: {expected:?}\n{}\n{}",
            trace.join("\n"),
            fs::read_to_string(table.join("../../.cellfs/errors")).unwrap_or_default()
        );
    }
}

#[test]
fn random_system_calls_do_what_they_do_on_a_plain_directory() {
    if !can_mount() {
        return;
    }
    let place = Place::mounted();
    let only = std::env::var("CELLFS_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    for seed in only.map_or(0..SEQUENCES, |seed| seed..seed + 1) {
        let (table, plain) = directories(&place, seed);
        compare(&table, &plain, "", seed, |_| {});
    }
}

/// A table of the mount, and a plain directory to compare it with.
fn directories(place: &Place, number: u64) -> (PathBuf, PathBuf) {
    let table = place.point().join(format!("default/t{number}"));
    let plain = place.outside().join(format!("plain{number}"));
    fs::create_dir(&table).expect("a table");
    fs::create_dir(&plain).expect("a directory");
    (table, plain)
}

/// What several processes do to the same cells, between calls on rows of their own. Nothing of it depends on who is first.
struct Contender {
    shared: PathBuf,
    number: u64,
}

impl Contender {
    fn value(number: u64, step: usize) -> String {
        format!("{number} {step} {} {number} {step}", "x".repeat(step * 977 % 20_000))
    }

    /// Reads a cell that is always there. That it is replaced twice while it is opened is told as ESTALE.
    fn read(path: &Path) -> String {
        loop {
            match fs::read_to_string(path) {
                Err(error) if error.raw_os_error() == Some(libc::ESTALE) => {}
                read => return read.expect("always there"),
            }
        }
    }

    /// What is read was written by one process in one piece.
    fn check(name: &str, shown: &str) {
        let mut words = shown.split(' ');
        let mut next = || words.next().and_then(|word| word.parse().ok());
        let written = next().zip(next()).map(|(number, step)| Contender::value(number, step as usize));
        let ends = (shown.get(..20).unwrap_or(shown), shown.len(), written.as_ref().map(String::len));
        assert!(written.as_deref() == Some(shown), "{name} is torn: {ends:?}");
    }

    fn step(&self, step: usize) {
        let cell = |name: &str| self.shared.join(name);
        match step % 5 {
            0 => {
                let log = OpenOptions::new().append(true).create(true).open(cell("cf:log")).expect("the log opens");
                let line = format!("{} {step}\n", self.number);
                assert_eq!(io::Write::write(&mut &log, line.as_bytes()).expect("append"), line.len());
            }
            1 => {
                for name in ["cf:value".to_owned(), format!("cf:own{}", self.number)] {
                    fs::write(cell(&name), Contender::value(self.number, step)).expect("a whole value");
                }
            }
            2 => {
                let beside = cell(&format!("cf:beside{}", self.number));
                fs::write(&beside, Contender::value(self.number, step)).expect("beside it");
                fs::rename(beside, cell("cf:replaced")).expect("over it");
            }
            3 => {
                // What several truncate and write in place at once is a mixture, as on a local disk; what one writes so is read whole by all.
                for name in ["cf:replaced", "cf:own1", "cf:own2", "cf:own3", "cf:own4"] {
                    Contender::check(name, &Contender::read(&cell(name)));
                }
            }
            _ => {
                let mine = cell(&format!("cf:token{}", self.number));
                match fs::rename(cell("cf:token"), &mine) {
                    Ok(()) => {
                        assert_eq!(fs::read_to_string(&mine).expect("it is mine"), "token");
                        fs::rename(&mine, cell("cf:token")).expect("back");
                    }
                    Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOENT)),
                }
            }
        }
    }

    /// What there is before any of them begins.
    fn prepare(shared: &Path) {
        fs::create_dir(shared).expect("a row");
        for name in ["cf:value", "cf:replaced", "cf:own1", "cf:own2", "cf:own3", "cf:own4"] {
            fs::write(shared.join(name), Contender::value(0, 0)).expect("a first value");
        }
        fs::write(shared.join("cf:token"), "token").expect("the token");
    }

    /// What there must be when all of them are through.
    fn judge(shared: &Path, numbers: std::ops::Range<u64>) {
        let log = fs::read_to_string(shared.join("cf:log")).expect("the log");
        for number in numbers.clone() {
            let theirs: Vec<&str> = log.lines().filter(|line| line.starts_with(&format!("{number} "))).collect();
            let expected: Vec<String> = (0..STEPS).step_by(5).map(|step| format!("{number} {step}")).collect();
            assert_eq!(theirs, expected, "appends are neither lost nor out of order");
        }
        assert_eq!(log.lines().count(), numbers.clone().count() * STEPS.div_ceil(5));
        for (name, of) in [("cf:value", 1), ("cf:replaced", 2)] {
            let last = (0..STEPS).rev().find(|step| step % 5 == of).expect("a step");
            let shown = fs::read_to_string(shared.join(name)).expect("a value");
            assert!(numbers.clone().any(|number| Contender::value(number, last) == shown), "{name}: {shown:?}");
        }
        assert_eq!(fs::read_to_string(shared.join("cf:token")).expect("the token"), "token");
        let names: Vec<_> =
            fs::read_dir(shared).expect("the row").map(|entry| entry.expect("an entry").file_name()).collect();
        assert_eq!(
            names,
            ["cf:log", "cf:own1", "cf:own2", "cf:own3", "cf:own4", "cf:replaced", "cf:token", "cf:value"]
        );
    }
}

const TABLE: &str = "CELLFS_TEST_TABLE";
const PLAIN: &str = "CELLFS_TEST_PLAIN";
const NUMBER: &str = "CELLFS_TEST_NUMBER";

/// Does nothing unless a test below runs it in a process of its own.
#[test]
fn one_process_of_several() {
    let Ok(number) = std::env::var(NUMBER) else { return };
    let number = number.parse().expect("a number");
    let directory = |name| PathBuf::from(std::env::var_os(name).expect("a directory"));
    let (table, plain) = (directory(TABLE), directory(PLAIN));
    let contender = Contender { shared: table.join("shared"), number };
    let contends = contender.shared.exists();
    let prefix = if contends { format!("p{number}") } else { String::new() };
    compare(&table, &plain, &prefix, 1000 + number, |step| {
        if contends {
            contender.step(step);
        }
    });
}

/// Another process that makes the calls of [`one_process_of_several`], behind the command that `before` begins with, if any.
fn process(before: &[&str], program: &Path, number: u64, table: &Path, plain: &Path) -> std::process::Child {
    let mut words = before.iter().map(Path::new).chain([program]);
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).args(["--exact", "one_process_of_several", "--nocapture"]);
    command.env(NUMBER, number.to_string()).env(TABLE, table).env(PLAIN, plain).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs")
}

fn expect(process: std::process::Child) {
    let output = process.wait_with_output().expect("it ends");
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success() && out.contains("1 passed"), "{out}\n{err}");
}

fn this_program() -> PathBuf {
    std::env::current_exe().expect("this program")
}

/// Every cell of the plain directory is in the table, with its bytes, and no row of that prefix has more.
fn same_cells(table: &Path, plain: &Path) {
    for row in fs::read_dir(plain).expect("a directory") {
        let row = row.expect("an entry");
        for cell in fs::read_dir(row.path()).expect("a row") {
            let cell = cell.expect("an entry");
            let ours = fs::read(table.join(row.file_name()).join(cell.file_name())).expect("the cell");
            assert_eq!(ours, fs::read(cell.path()).expect("the file"), "{}", cell.path().display());
        }
        let count = |directory: PathBuf| fs::read_dir(directory).map_or(0, Iterator::count);
        assert_eq!(count(table.join(row.file_name())), count(row.path()));
    }
}

#[test]
fn four_processes_at_once_lose_nothing_and_tear_nothing() {
    if !can_mount() {
        return;
    }
    let place = Place::mounted();
    let table = place.point().join("default/t");
    fs::create_dir(&table).expect("a table");
    Contender::prepare(&table.join("shared"));
    let plains: Vec<PathBuf> = (1..=4).map(|number| place.outside().join(format!("plain{number}"))).collect();
    let processes: Vec<_> = (1..=4)
        .zip(&plains)
        .map(|(number, plain)| {
            fs::create_dir(plain).expect("a directory");
            process(&[], &this_program(), number, &table, plain)
        })
        .collect();
    processes.into_iter().for_each(expect);
    Contender::judge(&table.join("shared"), 1..5);
    place.unmount();
    place.mount(&[]);
    Contender::judge(&table.join("shared"), 1..5);
    plains.iter().for_each(|plain| same_cells(&table, plain));
    place.unmount();
}

#[test]
fn two_mounts_of_two_stores_know_nothing_of_each_other() {
    if !can_mount() {
        return;
    }
    let places = [Place::mounted(), Place::mounted()];
    let mut running = Vec::new();
    for (number, place) in (1..).zip(&places) {
        let (table, plain) = directories(place, 0);
        running.push((process(&[], &this_program(), number, &table, &plain), table, plain));
    }
    let pairs: Vec<_> = running
        .into_iter()
        .map(|(process, table, plain)| {
            expect(process);
            (table, plain)
        })
        .collect();
    for place in &places {
        place.sh("mkdir default/own default/own/r; printf '%s' \"$OUT\" > default/own/r/cf:a");
    }
    let (one, other) = (places[0].point().join("default/own/r/cf:a"), places[1].point().join("default/own/r/cf:b"));
    assert_eq!(fs::rename(&one, &other).expect_err("two file systems").raw_os_error(), Some(libc::EXDEV));
    fs::copy(&one, &other).expect("a copy");
    assert_eq!(fs::read_to_string(&other).expect("the copy"), places[0].outside().to_string_lossy());
    places[0].unmount();
    assert_eq!(fs::read_to_string(&other).expect("still mounted"), places[0].outside().to_string_lossy());
    places[0].mount(&[]);
    pairs.iter().for_each(|(table, plain)| same_cells(table, plain));
    places.iter().for_each(Place::unmount);
}

const NOBODY: u32 = 65534;

fn is_root() -> bool {
    if fs::metadata("/proc/self").expect("/proc is there").uid() == 0 {
        return true;
    }
    eprintln!("SKIPPED, not root");
    false
}

#[test]
fn another_users_calls_are_judged_as_on_a_plain_directory() {
    if !can_mount() || !is_root() || !has_tool("setpriv") {
        return;
    }
    let place = Place::new();
    place.mount(&["-o", "allow_other"]);
    // Where the other user may reach it.
    let program = place.outside().join("program");
    fs::copy(this_program(), &program).expect("a copy");
    fs::set_permissions(place.outside(), Permissions::from_mode(0o755)).expect("chmod");
    let before = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    for number in 1..=4 {
        let (table, plain) = directories(&place, number);
        for root in [&table, &plain] {
            // A row of the user's, one that only root may change, and one that everybody may.
            for (row, owner, mode) in [("r1", NOBODY, 0o755), ("r2", 0, 0o755), ("r3", 0, 0o777)] {
                let row = root.join(row);
                fs::create_dir(&row).expect("a row");
                for (cell, owner, mode) in [("cf:a", 0, 0o644), ("cf:b", 0, 0o600), ("cf:c", NOBODY, 0o640)] {
                    fs::write(row.join(cell), cell).expect("a cell");
                    fs::set_permissions(row.join(cell), Permissions::from_mode(mode)).expect("chmod");
                    std::os::unix::fs::chown(row.join(cell), Some(owner), Some(owner)).expect("chown");
                }
                fs::set_permissions(&row, Permissions::from_mode(mode)).expect("chmod");
                std::os::unix::fs::chown(&row, Some(owner), Some(owner)).expect("chown");
            }
            let mode = if number % 2 == 0 { 0o1777 } else { 0o777 };
            fs::set_permissions(root, Permissions::from_mode(mode)).expect("chmod");
        }
        expect(process(&before, &program, number, &table, &plain));
        same_cells(&table, &plain);
    }
    place.unmount();
}

#[test]
fn calls_through_a_bind_mount_are_the_same() {
    if !can_mount() || !is_root() || !has_tool("unshare") {
        return;
    }
    let place = Place::mounted();
    let bound = place.outside().join("bound");
    fs::create_dir(&bound).expect("a directory");
    for number in 1..=4 {
        let (table, plain) = directories(&place, number);
        // Seen by this process alone.
        let script = format!("mount --bind '{}' '{}'; exec \"$0\" \"$@\"", table.display(), bound.display());
        let before = ["unshare", "--mount", "--propagation", "private", "bash", "-euc", &script];
        expect(process(&before, &this_program(), number, &bound, &plain));
        same_cells(&table, &plain);
    }
    place.unmount();
}

#[test]
fn handles_of_a_daemon_that_is_gone_stay_dead_and_nothing_comes_through_them() {
    if !can_mount() {
        return;
    }
    let place = Place::mounted();
    place.sh("mkdir default/t default/t/r; echo old > default/t/r/cf:a; echo old > default/t/r/cf:b");
    let row = place.point().join("default/t/r");
    let daemon = rustix::process::Pid::from_raw(i32::try_from(place.daemon()).expect("a pid")).expect("a pid");
    let reader = File::open(row.join("cf:a")).expect("open");
    let writer = OpenOptions::new().read(true).write(true).open(row.join("cf:b")).expect("open");
    writer.write_at(b"never closed", 0).expect("write");
    let maker = File::create(row.join("cf:c")).expect("create");
    maker.write_at(b"never closed", 0).expect("write");
    let directory = File::open(&row).expect("open");
    let through = format!("/proc/self/fd/{}/cf:a", std::os::fd::AsRawFd::as_raw_fd(&directory));
    // Without a process in between: it would close its copies of the descriptors, and with that commit them.
    rustix::process::kill_process(daemon, rustix::process::Signal::KILL).expect("kill");
    while fs::metadata(place.point().join(".cellfs/status")).is_ok() {
        std::thread::yield_now();
    }
    for when in ["dead", "mounted again"] {
        let calls = [
            reader.read_at(&mut [0; 8], 0).map(|_| ()),
            writer.write_at(b"late", 0).map(|_| ()),
            writer.set_len(1),
            writer.sync_all(),
            maker.write_at(b"late", 0).map(|_| ()),
            maker.sync_all(),
            directory.sync_all(),
            File::open(&through).map(|_| ()),
        ];
        for (number, call) in calls.into_iter().enumerate() {
            let errno = call.map_err(|error| error.raw_os_error());
            assert_eq!(errno, Err(Some(libc::ENOTCONN)), "call {number}, {when}");
        }
        if when == "dead" {
            place.mount(&[]);
        }
    }
    assert_eq!(place.sh("cd default/t/r; ls; cat cf:a cf:b; echo new > cf:b"), "cf:a\ncf:b\nold\nold\n");
    drop((reader, writer, maker, directory));
    assert_eq!(place.sh("cat default/t/r/cf:b"), "new\n");
    place.unmount();
}
