//! The measured operations, on whatever is mounted at a directory, by one or several clients at a time.

use super::{Group, Options};
use crate::figures::{Figure, Result, timed};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of a small cell.
const SMALL: usize = 100;
/// Bytes of one write(2) or read(2) of the large cell.
const CHUNK: usize = 1 << 20;

/// What one client works on: nobody else touches its rows.
struct Share {
    rows: Vec<PathBuf>,
    cells: Vec<PathBuf>,
}

/// Several clients, each with its share.
struct Clients {
    shares: Vec<Share>,
}

/// Makes a table below `mount` and measures everything once; the figures in the order of the table.
pub fn measure(mount: &Path, options: &Options, clients: usize) -> Result<Vec<Figure>> {
    let table = mount.join("bench").join("t");
    fs::create_dir(mount.join("bench"))?;
    fs::create_dir(&table)?;
    let clients = Clients::new(&table, options, clients)?;
    let mut figures = Vec::new();
    // The others work on what this one has made.
    clients.create(&mut figures)?;
    if options.wants(Group::Small) {
        clients.small_cells(&mut figures)?;
    }
    if options.wants(Group::Listings) {
        clients.listings(&table, &mut figures)?;
    }
    if options.wants(Group::Names) {
        clients.renames_and_unlinks(&mut figures)?;
    }
    if options.wants(Group::Large) {
        clients.large_cells(options, &mut figures)?;
    }
    Ok(figures)
}

impl Clients {
    fn new(table: &Path, options: &Options, clients: usize) -> Result<Clients> {
        let rows: Vec<PathBuf> = (0..options.rows).map(|row| table.join(format!("row{row:06}"))).collect();
        for row in &rows {
            fs::create_dir(row)?;
        }
        let shares = rows.chunks(rows.len().div_ceil(clients.max(1)).max(1)).map(|rows| {
            let cell = |row: &PathBuf, cell: u64| row.join(format!("cf:c{cell:06}"));
            let cells = rows.iter().flat_map(|row| (0..options.cells).map(move |number| cell(row, number))).collect();
            Share { rows: rows.to_vec(), cells }
        });
        Ok(Clients { shares: shares.collect() })
    }

    /// All clients at once; the time until the last is done.
    fn together(&self, work: impl Fn(&Share) -> Result<()> + Sync) -> Result<Duration> {
        let ((), elapsed) = timed(|| {
            std::thread::scope(|scope| {
                let running: Vec<_> = self.shares.iter().map(|share| scope.spawn(|| work(share))).collect();
                running.into_iter().try_for_each(|client| client.join().map_err(|_| "a client panicked")?)
            })
        })?;
        Ok(elapsed)
    }

    fn figure(&self, name: &str, operations: u64, elapsed: Duration) -> Figure {
        let name = match self.shares.len() {
            1 => name.to_string(),
            clients => format!("{name}, {clients} clients"),
        };
        let figure = Figure::rate(name, operations, elapsed);
        eprintln!("  {}: {}", figure.name, figure.unit.show(figure.value));
        figure
    }

    fn each(&self, name: &str, operation: impl Fn(&Path) -> Result<()> + Sync) -> Result<Figure> {
        let elapsed = self.together(|share| share.cells.iter().try_for_each(|cell| operation(cell)))?;
        let cells: usize = self.shares.iter().map(|share| share.cells.len()).sum();
        Ok(self.figure(name, cells as u64, elapsed))
    }

    fn create(&self, figures: &mut Vec<Figure>) -> Result<()> {
        let value = [b'v'; SMALL];
        figures.push(self.each("create + write + close", |cell| Ok(File::create_new(cell)?.write_all(&value)?))?);
        Ok(())
    }

    fn small_cells(&self, figures: &mut Vec<Figure>) -> Result<()> {
        let value = [b'w'; SMALL];
        figures.push(self.each("overwrite", |cell| {
            Ok(OpenOptions::new().write(true).truncate(true).open(cell)?.write_all(&value)?)
        })?);
        forget()?;
        figures.push(self.each("stat, cold", stat)?);
        figures.push(self.each("stat, warm", stat)?);
        forget()?;
        figures.push(self.each("open + read + close, cold", read_small)?);
        figures.push(self.each("open + read + close, warm", read_small)?);
        Ok(())
    }

    fn listings(&self, table: &Path, figures: &mut Vec<Figure>) -> Result<()> {
        let expected: usize = self.shares.iter().map(|share| share.cells.len() + share.rows.len()).sum();
        for (name, with_attributes) in [("readdir, entries", false), ("ls -l, entries", true)] {
            forget()?;
            let rows: usize = self.shares.iter().map(|share| share.rows.len()).sum();
            let (listed, table_elapsed) = timed(|| Ok(list(table, with_attributes)?.min(rows)))?;
            let count = std::sync::atomic::AtomicUsize::new(listed);
            let elapsed = self.together(|share| {
                for row in &share.rows {
                    count.fetch_add(list(row, with_attributes)?, std::sync::atomic::Ordering::Relaxed);
                }
                Ok(())
            })?;
            if count.into_inner() != expected {
                return Err(format!("listings do not give {expected} entries").into());
            }
            figures.push(self.figure(name, expected as u64, table_elapsed + elapsed));
        }
        Ok(())
    }

    fn renames_and_unlinks(&self, figures: &mut Vec<Figure>) -> Result<()> {
        let renamed = |cell: &Path| {
            let name = cell.file_name().unwrap_or_default().to_string_lossy().replace("cf:c", "cf:d");
            cell.with_file_name(name)
        };
        figures.push(self.each("rename", |cell| Ok(fs::rename(cell, renamed(cell))?))?);
        figures.push(self.each("unlink", |cell| Ok(fs::remove_file(renamed(cell))?))?);
        Ok(())
    }

    /// Each writes a large cell, reads it with nothing cached and again with everything cached; chunks of 1 MB a second.
    fn large_cells(&self, options: &Options, figures: &mut Vec<Figure>) -> Result<()> {
        let chunk = vec![b'x'; CHUNK];
        let cell =
            |share: &Share| Ok::<_, crate::figures::Failure>(share.rows.first().ok_or("no row")?.join("cf:large"));
        let chunks = options.large_mb * options.large_times * self.shares.len() as u64;
        let elapsed = self.together(|share| {
            let cell = cell(share)?;
            for _ in 0..options.large_times {
                let mut file = File::create(&cell)?;
                for _ in 0..options.large_mb {
                    file.write_all(&chunk)?;
                }
            }
            Ok(())
        })?;
        figures.push(self.figure("large cell, write, MB", chunks, elapsed));
        let (mut cold, mut warm) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..options.large_times {
            forget()?;
            cold += self.together(|share| read_large(&cell(share)?, options))?;
            warm += self.together(|share| read_large(&cell(share)?, options))?;
        }
        figures.push(self.figure("large cell, read cold, MB", chunks, cold));
        figures.push(self.figure("large cell, read warm, MB", chunks, warm));
        Ok(())
    }
}

fn stat(cell: &Path) -> Result<()> {
    if fs::symlink_metadata(cell)?.len() != SMALL as u64 {
        return Err(format!("{} has the wrong size", cell.display()).into());
    }
    Ok(())
}

fn read_small(cell: &Path) -> Result<()> {
    let mut buffer = [0; 4096];
    if File::open(cell)?.read(&mut buffer)? != SMALL {
        return Err(format!("{} has the wrong content", cell.display()).into());
    }
    Ok(())
}

fn list(directory: &Path, with_attributes: bool) -> Result<usize> {
    let mut entries = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if with_attributes {
            entry.metadata()?;
        }
        entries += 1;
    }
    Ok(entries)
}

fn read_large(cell: &Path, options: &Options) -> Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut file = File::open(cell)?;
    let mut total = 0;
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => total += read as u64,
        }
    }
    if total != options.large_mb << 20 {
        return Err(format!("{} has {total} bytes", cell.display()).into());
    }
    Ok(())
}

/// Makes the kernel forget names, attributes and pages of the mount (an inode that goes takes its pages along). It needs root.
pub(super) fn forget() -> Result<()> {
    // Twice: the first round frees dentries, and with them the last references to inodes.
    for _ in 0..2 {
        fs::write("/proc/sys/vm/drop_caches", "2").map_err(|error| format!("drop_caches (needs root): {error}"))?;
    }
    Ok(())
}
