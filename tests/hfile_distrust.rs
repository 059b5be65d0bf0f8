//! A damaged HFile cannot make its reader ask for much more memory than the file itself has bytes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use cellfs::cell::{Cell, CellScanner, CellType};
use cellfs::hfile::{ChecksumType, HFileReader, HFileWriter, HFileWriterOptions, ReadOptions, StoreFileInfo};
use cellfs::schema::{Compression, DataBlockEncoding};
use cellfs::vfs::{OsVfs, Vfs};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell as Slot;
use std::path::Path;

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
