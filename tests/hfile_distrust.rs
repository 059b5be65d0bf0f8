//! Damaged HFiles, those of HBase too: the right cells or an error that says where, never a panic, and no request for much more memory than the
//! file has bytes.
//!
//! CELLFS_DISTRUST=all damages every byte and tries every length of the files of HBase, which takes an hour; otherwise a sample of each is.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use cellfs::cell::{Cell, CellScanner, CellType};
use cellfs::hfile::{ChecksumType, HFileReader, HFileWriter, HFileWriterOptions, ReadOptions, StoreFileInfo};
use cellfs::schema::{Compression, DataBlockEncoding};
use cellfs::vfs::{OsVfs, SimVfs, Vfs};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell as Slot;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Notes the largest request of each thread.
struct Watching;

thread_local! {
    static LARGEST: Slot<usize> = const { Slot::new(0) };
}

fn note(size: usize) {
    // During the end of a thread there is nothing left to note in.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(size)));
}

// SAFETY: every request goes unchanged to the system's allocator, which keeps the contract; noting neither allocates nor unwinds.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(block, layout, size) }
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

fn read(path: &Path) -> cellfs::Result<usize> {
    let reader = HFileReader::open(OsVfs::new().open_read(path)?, 1, None)?;
    reader.may_contain_row(b"row-0007")?;
    let mut scanner = reader.scanner(ReadOptions::default());
    scanner.seek_to_first()?;
    let mut cells = 0;
    while scanner.peek().is_some() {
        cells += 1;
        scanner.advance()?;
    }
    Ok(cells)
}

/// Checksums are off, so that the damage reaches everything behind them.
#[test]
fn damaged_lengths_do_not_allocate() {
    let directory = tempfile::tempdir().unwrap();
    let encodings = [DataBlockEncoding::None, DataBlockEncoding::Prefix, DataBlockEncoding::Diff];
    let codecs = [Compression::None, Compression::Zstd, Compression::Lz4, Compression::Snappy, Compression::Gz];
    for (number, compression) in codecs.into_iter().enumerate() {
        let path = directory.path().join(format!("{number}"));
        let options = HFileWriterOptions {
            block_size: 256,
            index_chunk_size: 300,
            index_entries_min: 2,
            checksum: ChecksumType::Null,
            encoding: encodings[number % 3],
            compression,
            ..HFileWriterOptions::default()
        };
        let mut writer = HFileWriter::create(OsVfs::new().create_new(&path).unwrap(), options).unwrap();
        for i in 0..40 {
            let row = format!("row-{i:04}");
            writer.append(&Cell::new(row.as_bytes(), b"f", b"q", i, CellType::Put, b"some value")).unwrap();
        }
        writer.finish(StoreFileInfo::default()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let damaged = directory.path().join("damaged");
        let limit = (64 * bytes.len()).max(1 << 20);
        // A sample of everything before the trailer's padding.
        for at in (number..bytes.len() - 3900).step_by(13) {
            for value in [0x7f, 0xff] {
                let mut bad = bytes.clone();
                bad[at] = value;
                std::fs::write(&damaged, &bad).unwrap();
                LARGEST.set(0);
                let _ = read(&damaged);
                let largest = LARGEST.get();
                assert!(largest <= limit, "{compression:?}: {largest} bytes asked for after byte {at} became {value}");
            }
        }
    }
}

/// The files of HBase 2.6 and of Hudi (../shared/hfiles, or below CELLFS_SHARED).
fn golden() -> Vec<PathBuf> {
    let base = std::env::var_os("CELLFS_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let mut found = Vec::new();
    for directory in ["hfiles", "hfiles/hbase-2.6"] {
        let entries = std::fs::read_dir(base.join(directory)).into_iter().flatten();
        found.extend(
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension() == Some("hfile".as_ref())),
        );
    }
    assert!(!found.is_empty() || std::env::var_os("CELLFS_REQUIRE_JUDGE").is_none(), "the files of HBase are missing");
    if found.is_empty() {
        eprintln!("skipped: there are no files of HBase below {}", base.display());
    }
    found.sort();
    found
}

/// What a reader makes of a file: its cells, and what the filters say of the first.
fn contents(vfs: &SimVfs, path: &Path) -> cellfs::Result<Vec<Cell>> {
    let reader = HFileReader::open(vfs.open_read(path)?, 1, None)?;
    let mut scanner = reader.scanner(ReadOptions::streaming());
    scanner.seek_to_first()?;
    let mut cells = Vec::new();
    while let Some(cell) = scanner.take() {
        cells.push(cell);
        scanner.advance()?;
    }
    if let Some(first) = cells.first() {
        reader.may_contain_column(first.row(), first.qualifier())?;
        reader.may_contain_family_marker(first.row())?;
        reader.mid_row()?;
    }
    Ok(cells)
}

/// Reads the damaged file and holds what came out against `sound`, unless nothing in it protects the cells.
fn check(vfs: &SimVfs, path: &Path, sound: Option<&[Cell]>, limit: usize, damage: &dyn std::fmt::Display) {
    LARGEST.set(0);
    match contents(vfs, path) {
        Ok(cells) => assert!(sound.is_none_or(|sound| cells == sound), "{}: {damage}: other cells", path.display()),
        Err(cellfs::Error::Corruption { file, .. } | cellfs::Error::Unsupported { file, .. }) => assert_eq!(file, path),
        Err(other) => panic!("{}: {damage}: {other}", path.display()),
    }
    assert!(LARGEST.get() <= limit, "{}: {damage}: {} bytes asked for", path.display(), LARGEST.get());
}

#[test]
fn hbases_files_with_a_flipped_byte_or_cut_short_give_their_cells_or_an_error() {
    let all = std::env::var_os("CELLFS_DISTRUST").is_some_and(|value| value == "all");
    for (number, source) in golden().into_iter().enumerate() {
        let bytes = std::fs::read(&source).unwrap();
        let vfs = Arc::new(SimVfs::new());
        let path = Path::new("/").join(source.file_name().unwrap());
        let write = |content: &[u8]| vfs.create_new(&path).unwrap().write_all_at(content, 0).unwrap();
        write(&bytes);
        let cells = contents(&vfs, &path).unwrap();
        let sound = (!path.to_string_lossy().contains("NULL")).then_some(&cells[..]);
        let limit = (64 * bytes.len()).max(1 << 20);
        let (flips, cuts) = if all { (usize::MAX, usize::MAX) } else { ((1 << 23) / bytes.len().max(1 << 16), 12) };
        // Behind its fields the trailer is zeros.
        let end = bytes.len() - 4096 + 160;
        let step = end.checked_div(flips).map_or(1, |step| step.max(1));
        for at in (number % step..end).step_by(step).chain([bytes.len() - 200, bytes.len() - 4, bytes.len() - 1]) {
            let bit = 1u8 << (at % 8);
            vfs.damage(&path, at as u64, |byte| byte ^ bit).unwrap();
            check(&vfs, &path, sound, limit, &format_args!("bit {} of byte {at}", at % 8));
            vfs.damage(&path, at as u64, |byte| byte ^ bit).unwrap();
        }
        let step = bytes.len().checked_div(cuts).map_or(1, |step| step.max(1));
        for len in (number % step..bytes.len()).step_by(step) {
            vfs.remove_file(&path).unwrap();
            write(&bytes[..len]);
            assert!(contents(&vfs, &path).is_err(), "{}: the first {len} bytes are a file", path.display());
        }
    }
}
