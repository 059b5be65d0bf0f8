//! The measured operations, on whatever is mounted at a directory.

use super::Options;
use crate::figures::{Figure, Result, timed};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Bytes of a small cell.
const SMALL: usize = 100;
/// Bytes of one write(2) or read(2) of the large cell.
const CHUNK: usize = 1 << 20;

/// Makes a table below `mount` and measures everything once; the figures in the order of the table.
pub fn measure(mount: &Path, options: &Options) -> Result<Vec<Figure>> {
    let table = mount.join("bench").join("t");
    fs::create_dir(mount.join("bench"))?;
    fs::create_dir(&table)?;
    let rows: Vec<PathBuf> = (0..options.rows).map(|row| table.join(format!("row{row:06}"))).collect();
    for row in &rows {
        fs::create_dir(row)?;
    }
    let cells: Vec<PathBuf> =
        rows.iter().flat_map(|row| (0..options.cells).map(move |cell| row.join(format!("cf:c{cell:06}")))).collect();

    let mut figures = small_cells(&cells)?;
    figures.extend(listings(&table, &rows, cells.len())?);
    figures.extend(renames_and_unlinks(&cells)?);
    figures.extend(large_cell(&rows, options)?);
    Ok(figures)
}

fn each(name: &str, cells: &[PathBuf], operation: impl Fn(&Path) -> Result<()>) -> Result<Figure> {
    let ((), elapsed) = timed(|| cells.iter().try_for_each(|cell| operation(cell)))?;
    let figure = Figure::rate(name, cells.len() as u64, elapsed);
    eprintln!("  {}: {}", figure.name, figure.unit.show(figure.value));
    Ok(figure)
}

fn small_cells(cells: &[PathBuf]) -> Result<Vec<Figure>> {
    let value = [b'v'; SMALL];
    let mut figures = Vec::new();
    figures.push(each("create + write + close", cells, |cell| Ok(File::create_new(cell)?.write_all(&value)?))?);
    figures.push(each("overwrite", cells, |cell| {
        Ok(OpenOptions::new().write(true).truncate(true).open(cell)?.write_all(&value)?)
    })?);
    forget()?;
    figures.push(each("stat, cold", cells, stat)?);
    figures.push(each("stat, warm", cells, stat)?);
    forget()?;
    figures.push(each("open + read + close, cold", cells, read_small)?);
    figures.push(each("open + read + close, warm", cells, read_small)?);
    Ok(figures)
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

fn listings(table: &Path, rows: &[PathBuf], cells: usize) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (name, with_attributes) in [("readdir, entries", false), ("ls -l, entries", true)] {
        forget()?;
        let (entries, elapsed) = timed(|| {
            let mut entries = list(table, with_attributes)?.min(rows.len());
            for row in rows {
                entries += list(row, with_attributes)?;
            }
            Ok(entries)
        })?;
        if entries != cells + rows.len() {
            return Err(format!("listings gave {entries} entries, not {}", cells + rows.len()).into());
        }
        let figure = Figure::rate(name, entries as u64, elapsed);
        eprintln!("  {}: {}", figure.name, figure.unit.show(figure.value));
        figures.push(figure);
    }
    Ok(figures)
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

fn renames_and_unlinks(cells: &[PathBuf]) -> Result<Vec<Figure>> {
    let renamed: Vec<PathBuf> = cells
        .iter()
        .map(|cell| cell.with_file_name(cell.file_name().unwrap_or_default().to_string_lossy().replace("cf:c", "cf:d")))
        .collect();
    let pairs: Vec<(&PathBuf, &PathBuf)> = cells.iter().zip(&renamed).collect();
    let ((), elapsed) = timed(|| pairs.iter().try_for_each(|(from, to)| Ok(fs::rename(from, to)?)))?;
    let rename = Figure::rate("rename", cells.len() as u64, elapsed);
    eprintln!("  {}: {}", rename.name, rename.unit.show(rename.value));
    let unlink = each("unlink", &renamed, |cell| Ok(fs::remove_file(cell)?))?;
    Ok(vec![rename, unlink])
}

/// Writes a large cell, reads it with nothing cached and again with everything cached; chunks of 1 MB a second.
fn large_cell(rows: &[PathBuf], options: &Options) -> Result<Vec<Figure>> {
    let cell = rows.first().ok_or("no row")?.join("cf:large");
    let chunk = vec![b'x'; CHUNK];
    let chunks = options.large_mb * options.large_times;
    let mut figures = Vec::new();
    let mut rate = |name: &str, elapsed| {
        let figure = Figure::rate(name, chunks, elapsed);
        eprintln!("  {}: {}", figure.name, figure.unit.show(figure.value));
        figures.push(figure);
    };
    let ((), elapsed) = timed(|| {
        for _ in 0..options.large_times {
            let mut file = File::create(&cell)?;
            for _ in 0..options.large_mb {
                file.write_all(&chunk)?;
            }
        }
        Ok(())
    })?;
    rate("large cell, write, MB", elapsed);
    let mut cold = std::time::Duration::ZERO;
    let mut warm = std::time::Duration::ZERO;
    for _ in 0..options.large_times {
        forget()?;
        cold += timed(|| read_large(&cell, options))?.1;
        warm += timed(|| read_large(&cell, options))?.1;
    }
    rate("large cell, read cold, MB", cold);
    rate("large cell, read warm, MB", warm);
    Ok(figures)
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
fn forget() -> Result<()> {
    // Twice: the first round frees dentries, and with them the last references to inodes.
    for _ in 0..2 {
        fs::write("/proc/sys/vm/drop_caches", "2").map_err(|error| format!("drop_caches (needs root): {error}"))?;
    }
    Ok(())
}
