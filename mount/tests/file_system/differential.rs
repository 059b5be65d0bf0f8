//! The same random calls on the core and on a model of a local directory, with the results compared (docs/semantics.md, last section).
//!
//! Rows are the model's directories, cells its files. One process makes all calls, so it sees its own work at once. `CELLFS_SEED` replays one sequence.

use crate::kernel::{Call, Descriptor, Kernel};
use cellfs_mount::ops::{AttributeChanges, TimeChange};
use std::collections::BTreeMap;

const SEQUENCES: u64 = 30;
const STEPS: usize = 80;
const ROWS: [&str; 3] = ["r1", "r2", "r3"];
const CELLS: [&str; 3] = ["cf:a", "cf:b", "cf:c"];

/// A file of the model; names and descriptors lead to it by number.
#[derive(Clone, Default)]
struct File {
    bytes: Vec<u8>,
    mode: u32,
    mtime: Option<i64>,
}

#[derive(Default)]
struct Model {
    files: Vec<File>,
    rows: BTreeMap<String, BTreeMap<String, usize>>,
}

struct Open {
    descriptor: Descriptor,
    file: usize,
    append: bool,
    readable: bool,
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

struct Run {
    kernel: Kernel,
    model: Model,
    open: Vec<Open>,
    random: Random,
    trace: Vec<String>,
}

impl Model {
    fn find(&self, row: &str, cell: &str) -> Call<usize> {
        self.rows.get(row).and_then(|cells| cells.get(cell)).copied().ok_or(libc::ENOENT)
    }

    fn open(&mut self, row: &str, cell: &str, flags: i32) -> Call<usize> {
        let cells = self.rows.get_mut(row).ok_or(libc::ENOENT)?;
        let file = match cells.get(cell) {
            Some(_) if flags & libc::O_EXCL != 0 => return Err(libc::EEXIST),
            Some(file) => *file,
            None if flags & libc::O_CREAT == 0 => return Err(libc::ENOENT),
            None => {
                self.files.push(File { mode: 0o644, ..File::default() });
                cells.insert(cell.into(), self.files.len() - 1);
                self.files.len() - 1
            }
        };
        if flags & libc::O_TRUNC != 0 {
            self.files[file].bytes.clear();
            self.files[file].mtime = None;
        }
        Ok(file)
    }

    fn rename_cell(&mut self, from: (&str, &str), to: (&str, &str)) -> Call<()> {
        let file = self.find(from.0, from.1)?;
        let target = self.rows.get_mut(to.0).ok_or(libc::ENOENT)?;
        target.insert(to.1.into(), file);
        if from != to {
            self.rows.get_mut(from.0).unwrap().remove(from.1);
        }
        Ok(())
    }

    fn rename_row(&mut self, from: &str, to: &str) -> Call<()> {
        let cells = self.rows.get(from).ok_or(libc::ENOENT)?.clone();
        if from == to {
            return Ok(());
        }
        if self.rows.get(to).is_some_and(|target| !target.is_empty()) {
            return Err(libc::ENOTEMPTY);
        }
        self.rows.remove(from);
        self.rows.insert(to.into(), cells);
        Ok(())
    }
}

impl Run {
    fn new(seed: u64) -> Run {
        let mut kernel = Kernel::new();
        if seed.is_multiple_of(2) {
            kernel = kernel.forgetful();
        }
        kernel.mkdir("default/t").unwrap();
        let random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        Run { kernel, model: Model::default(), open: Vec::new(), random, trace: Vec::new() }
    }

    fn path(row: &str, cell: &str) -> String {
        format!("default/t/{row}/{cell}")
    }

    fn same<T: PartialEq + std::fmt::Debug>(&self, what: &str, ours: T, expected: T) {
        assert!(ours == expected, "{what}: {ours:?}, a local directory: {expected:?}\n{}", self.trace.join("\n"));
    }

    fn step(&mut self) {
        let (row, cell) = (self.random.pick(&ROWS), self.random.pick(&CELLS));
        let path = Run::path(row, cell);
        if self.random.below(4) == 0 {
            self.kernel.clock.add(self.random.below(3) as i64 - 1);
        }
        match self.random.below(14) {
            0 => {
                self.trace.push(format!("mkdir {row}"));
                let expected = if self.model.rows.contains_key(row) { Err(libc::EEXIST) } else { Ok(()) };
                self.model.rows.entry(row.into()).or_default();
                let ours = self.kernel.mkdir(&format!("default/t/{row}"));
                self.same("mkdir", ours, expected);
            }
            1 => {
                self.trace.push(format!("rmdir {row}"));
                let expected = match self.model.rows.get(row) {
                    None => Err(libc::ENOENT),
                    Some(cells) if !cells.is_empty() => Err(libc::ENOTEMPTY),
                    Some(_) => self.model.rows.remove(row).map(|_| ()).ok_or(libc::ENOENT),
                };
                let ours = self.kernel.rmdir(&format!("default/t/{row}"));
                self.same("rmdir", ours, expected);
            }
            2 => {
                self.trace.push(format!("unlink {path}"));
                let expected = self.model.find(row, cell).map(|_| ());
                if let Some(cells) = self.model.rows.get_mut(row) {
                    cells.remove(cell);
                }
                let ours = self.kernel.unlink(&path);
                self.same("unlink", ours, expected);
            }
            3 => {
                let (to_row, to_cell) = (self.random.pick(&ROWS), self.random.pick(&CELLS));
                self.trace.push(format!("rename {path} {}", Run::path(to_row, to_cell)));
                let expected = self.model.rename_cell((row, cell), (to_row, to_cell));
                let ours = self.kernel.rename(&path, &Run::path(to_row, to_cell));
                self.same("rename", ours, expected);
            }
            4 if self.random.below(2) == 0 => {
                let to = self.random.pick(&ROWS);
                self.trace.push(format!("rename {row} {to}"));
                let expected = self.model.rename_row(row, to);
                let ours = self.kernel.rename(&format!("default/t/{row}"), &format!("default/t/{to}"));
                self.same("rename of a row", ours, expected);
            }
            5 | 6 => self.open_file(row, cell),
            7 => self.close_file(),
            8..=10 => self.use_file(),
            11 => self.set_attributes(row, cell),
            12 => self.truncate(row, cell),
            _ => self.remount_or_check(),
        }
    }

    fn open_file(&mut self, row: &str, cell: &str) {
        if self.open.len() == 4 {
            return;
        }
        let access = [libc::O_WRONLY, libc::O_RDWR][self.random.below(2)];
        let more = [
            0,
            libc::O_CREAT,
            libc::O_CREAT | libc::O_TRUNC,
            libc::O_CREAT | libc::O_EXCL,
            libc::O_APPEND | libc::O_CREAT,
        ];
        let flags = access | more[self.random.below(more.len())];
        let path = Run::path(row, cell);
        self.trace.push(format!("open {path} {flags:o}"));
        let expected = self.model.open(row, cell, flags);
        let ours = self.kernel.open(&path, flags);
        self.same("open", ours.map(|_| ()), expected.map(|_| ()));
        if let (Ok(descriptor), Ok(file)) = (ours, expected) {
            let (append, readable) = (flags & libc::O_APPEND != 0, access == libc::O_RDWR);
            self.open.push(Open { descriptor, file, append, readable });
        }
    }

    fn close_file(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let at = self.random.below(self.open.len());
        let descriptor = self.open[at].descriptor;
        if self.random.below(3) == 0 {
            self.trace.push(format!("close a duplicate of {descriptor:?}"));
            self.kernel.flush(descriptor).unwrap();
            return;
        }
        self.trace.push(format!("close {descriptor:?}"));
        self.open.remove(at);
        self.kernel.close(descriptor).unwrap();
    }

    fn use_file(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let at = self.random.below(self.open.len());
        let Open { descriptor, file, append, readable } = self.open[at];
        let offset = self.random.below(12);
        match self.random.below(4) {
            0 if readable => {
                self.trace.push(format!("pread {descriptor:?} {offset}"));
                let bytes = &self.model.files[file].bytes;
                let expected = bytes[offset.min(bytes.len())..].to_vec();
                let ours = self.kernel.pread(descriptor, offset as u64, 100).unwrap();
                self.same("pread", ours.to_vec(), expected);
            }
            1 => {
                self.trace.push(format!("ftruncate {descriptor:?} {offset}"));
                self.model.files[file].bytes.resize(offset, 0);
                self.model.files[file].mtime = None;
                self.kernel.ftruncate(descriptor, offset as u64).unwrap();
            }
            _ => {
                let data: Vec<u8> = (0..=self.random.below(5)).map(|_| b'a' + self.random.below(26) as u8).collect();
                self.trace.push(format!("pwrite {descriptor:?} {offset} {data:?}"));
                let model = &mut self.model.files[file];
                let start = if append { model.bytes.len() } else { offset };
                let end = start + data.len();
                model.bytes.resize(model.bytes.len().max(end), 0);
                model.bytes[start..end].copy_from_slice(&data);
                model.mtime = None;
                self.kernel.pwrite(descriptor, offset as u64, &data).unwrap();
            }
        }
    }

    fn set_attributes(&mut self, row: &str, cell: &str) {
        let path = Run::path(row, cell);
        let mode = [0o600, 0o644, 0o755][self.random.below(3)];
        let mtime = self.random.below(1000) as i64;
        let both = self.random.below(2) == 0;
        self.trace.push(format!("chmod {mode:o} {path}, utimens {both} {mtime}"));
        let changes = AttributeChanges {
            mode: Some(mode),
            mtime: both.then_some(TimeChange::At(mtime)),
            ..AttributeChanges::default()
        };
        let expected = self.model.find(row, cell).map(|file| {
            self.model.files[file].mode = mode;
            if both {
                self.model.files[file].mtime = Some(mtime);
            }
        });
        let ours = self.kernel.setattr(&path, changes).map(|_| ());
        self.same("setattr", ours, expected);
    }

    fn truncate(&mut self, row: &str, cell: &str) {
        let path = Run::path(row, cell);
        let size = self.random.below(10);
        self.trace.push(format!("truncate {path} {size}"));
        let expected = self.model.find(row, cell).map(|file| {
            self.model.files[file].bytes.resize(size, 0);
            self.model.files[file].mtime = None;
        });
        let changes = AttributeChanges { size: Some(size as u64), ..AttributeChanges::default() };
        let ours = self.kernel.setattr(&path, changes).map(|_| ());
        self.same("truncate", ours, expected);
    }

    fn remount_or_check(&mut self) {
        if self.random.below(4) == 0 {
            self.trace.push("remount".into());
            while let Some(open) = self.open.pop() {
                self.kernel.close(open.descriptor).unwrap();
            }
            self.model.rows.retain(|_, cells| !cells.is_empty());
            let kernel = std::mem::replace(&mut self.kernel, Kernel::new());
            self.kernel = kernel.remount();
        }
        self.check();
    }

    /// Everything that can be seen is the same.
    fn check(&mut self) {
        let rows: Vec<String> = self.kernel.list("default/t").unwrap().into_iter().skip(1).collect();
        self.same("rows", rows.clone(), self.model.rows.keys().cloned().collect());
        for row in rows {
            let cells = self.kernel.list(&format!("default/t/{row}")).unwrap();
            self.same("cells", cells.clone(), self.model.rows[&row].keys().cloned().collect());
            for cell in cells {
                let file = self.model.files[self.model.rows[&row][&cell]].clone();
                let path = Run::path(&row, &cell);
                let shown = self.kernel.stat(&path).unwrap();
                self.same(&format!("size of {path}"), shown.size, file.bytes.len() as u64);
                self.same(&format!("mode of {path}"), shown.mode, file.mode);
                if let Some(mtime) = file.mtime {
                    self.same(&format!("mtime of {path}"), shown.mtime_nanos, mtime);
                }
                let bytes = self.kernel.read(&path).unwrap().to_vec();
                self.same(&format!("bytes of {path}"), bytes, file.bytes);
            }
        }
    }
}

#[test]
fn random_calls_do_what_they_do_on_a_local_directory() {
    let only = std::env::var("CELLFS_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    for seed in only.map_or(0..SEQUENCES, |seed| seed..seed + 1) {
        let mut run = Run::new(seed);
        run.trace.push(format!("CELLFS_SEED={seed}"));
        for _ in 0..STEPS {
            run.step();
        }
        run.check();
    }
}
