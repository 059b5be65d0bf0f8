//! Round trips of written files against a sorted `Vec`.

mod decoders;
mod distrust;
mod model;

use super::*;
use crate::cell::{Cell, CellScanner, CellType, compare};
use crate::error::{Error, Result};
use crate::schema::{BloomType, Compression, DataBlockEncoding};
use crate::vfs::File;
use parking_lot::RwLock;
use std::path::Path;
use std::sync::Arc;

/// A file in memory.
pub(super) struct MemoryFile(pub RwLock<Vec<u8>>);

impl MemoryFile {
    pub(super) fn with(bytes: Vec<u8>) -> Arc<MemoryFile> {
        Arc::new(MemoryFile(RwLock::new(bytes)))
    }
}

impl File for MemoryFile {
    fn path(&self) -> &Path {
        Path::new("memory.hfile")
    }
    fn len(&self) -> Result<u64> {
        Ok(self.0.read().len() as u64)
    }
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        match self.read_at(buf, offset)? {
            count if count == buf.len() => Ok(()),
            _ => Err(Error::corruption(self.path(), offset, "the file ends")),
        }
    }
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let bytes = self.0.read();
        let from = bytes.get(offset as usize..).unwrap_or(&[]);
        let count = from.len().min(buf.len());
        buf[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }
    fn write_all_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let mut bytes = self.0.write();
        bytes.truncate(offset as usize);
        assert_eq!(bytes.len(), offset as usize, "store files are written front to back");
        bytes.extend_from_slice(data);
        Ok(())
    }
    fn sync_data(&self) -> Result<()> {
        Ok(())
    }
    fn sync_all(&self) -> Result<()> {
        Ok(())
    }
    fn allocate(&self, _: u64) -> Result<()> {
        Ok(())
    }
    fn map_writes(&self, _: u64) {}
    fn set_len(&self, _: u64) -> Result<()> {
        Ok(())
    }
    fn start_writeback(&self, _: u64, _: u64) {}
    fn advise_dont_need(&self, _: u64, _: u64) {}
}

pub(super) fn write(cells: &[Cell], options: HFileWriterOptions) -> (Vec<u8>, HFileSummary) {
    let file = MemoryFile::with(Vec::new());
    let mut writer = HFileWriter::create(file.clone(), options).unwrap();
    cells.iter().for_each(|cell| writer.append(cell).unwrap());
    let summary = writer.finish(StoreFileInfo { max_sequence_id: Some(9), ..StoreFileInfo::default() }).unwrap();
    let bytes = file.0.read().clone();
    (bytes, summary)
}

pub(super) fn open(bytes: Vec<u8>, cache: bool) -> Result<Arc<HFileReader>> {
    HFileReader::open(MemoryFile::with(bytes), 1, cache.then(|| Arc::new(BlockCache::new(1 << 22))))
}

pub(super) fn scan(scanner: &mut HFileScanner) -> Result<Vec<Cell>> {
    let mut cells = Vec::new();
    scanner.seek_to_first()?;
    while let Some(cell) = scanner.peek() {
        cells.push(cell.clone());
        scanner.advance()?;
    }
    Ok(cells)
}

/// Rows of one to four cells with markers, versions and sequence ids.
pub(super) fn sample(rows: usize) -> Vec<Cell> {
    let mut cells = Vec::new();
    for i in 0..rows {
        let row = format!("row-{:05}", i * 3);
        for q in 0..1 + i % 3 {
            let qualifier = format!("q{q}");
            let value = vec![b'v'; (i * 7) % 90];
            let cell = Cell::new(row.as_bytes(), b"f", qualifier.as_bytes(), 1000 + i as i64, CellType::Put, &value);
            cells.push(cell.with_sequence_id(i as u64 * 50));
        }
        if i % 5 == 0 {
            cells.push(Cell::new(row.as_bytes(), b"f", b"", 1500, CellType::DeleteFamily, b"").with_sequence_id(3));
        }
    }
    cells.sort_by(compare);
    cells
}

fn tiny(compression: Compression, bloom: BloomType) -> HFileWriterOptions {
    HFileWriterOptions {
        block_size: 200,
        index_chunk_size: 300,
        index_entries_min: 3,
        bloom_chunk_size: 128,
        compression,
        bloom,
        ..HFileWriterOptions::default()
    }
}

#[test]
fn cells_come_back_from_every_codec_and_index_depth() {
    for compression in [Compression::None, Compression::Gz, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        for rows in [0, 1, 10, 300, 1500] {
            let cells = sample(rows);
            let (bytes, summary) = write(&cells, tiny(compression, BloomType::Row));
            assert_eq!((summary.file_bytes, summary.entries), (bytes.len() as u64, cells.len() as u64));
            let reader = open(bytes, false).unwrap();
            if rows == 1500 {
                assert!(reader.trailer().num_data_index_levels() > 2);
            }
            for options in [ReadOptions::default(), ReadOptions::streaming(), ReadOptions::compaction()] {
                assert_eq!(scan(&mut reader.scanner(options)).unwrap(), cells);
            }
        }
    }
}

#[test]
fn seeks_agree_with_a_sorted_vec() {
    for rows in [0, 1, 7, 120, 1500] {
        let cells = sample(rows);
        let (bytes, _) = write(&cells, tiny(Compression::None, BloomType::None));
        let reader = open(bytes, true).unwrap();
        let mut scanner = reader.scanner(ReadOptions::default());
        let mut forward = reader.scanner(ReadOptions::default());
        for i in 0..rows * 3 + 2 {
            let row = format!("row-{i:05}");
            for key in [
                Cell::first_on_row(row.as_bytes()),
                Cell::first_on_column(row.as_bytes(), b"f", b"q1"),
                Cell::new(row.as_bytes(), b"f", b"q1", 1001, CellType::Put, b""),
            ] {
                let want = cells.iter().find(|cell| compare(cell, &key).is_ge());
                scanner.seek(&key).unwrap();
                assert_eq!(scanner.peek(), want, "{key:?}");
                forward.reseek(&key).unwrap();
                assert_eq!(forward.peek(), want, "{key:?}");
            }
            scanner.seek_to_previous_row(row.as_bytes()).unwrap();
            let before = cells.iter().rfind(|cell| cell.row() < row.as_bytes());
            let want = before.and_then(|last| cells.iter().find(|cell| cell.row() == last.row()));
            assert_eq!(scanner.peek(), want, "before {row}");
        }
        scanner.seek_to_last_row().unwrap();
        let want = cells.last().and_then(|last| cells.iter().find(|cell| cell.row() == last.row()));
        assert_eq!(scanner.peek(), want);
    }
}

#[test]
fn filters_know_every_key_and_deny_most_others() {
    let cells = sample(1000);
    let kinds = [BloomType::Row, BloomType::RowCol, BloomType::RowPrefixFixedLength(9)];
    for bloom in kinds {
        let (bytes, _) = write(&cells, tiny(Compression::Lz4, bloom));
        let reader = open(bytes, true).unwrap();
        assert_eq!(reader.info().bloom, bloom);
        for cell in &cells {
            assert!(reader.may_contain_row(cell.row()).unwrap());
            assert!(reader.may_contain_column(cell.row(), cell.qualifier()).unwrap());
            if cell.cell_type() == CellType::DeleteFamily {
                assert!(reader.may_contain_family_marker(cell.row()).unwrap());
                assert!(reader.may_contain_column(cell.row(), b"other").unwrap());
            }
        }
        let before = reader.counters().counts();
        for i in 0..1000 {
            reader.may_contain_column(format!("row-{:05}", i * 3 + 1).as_bytes(), b"q0").unwrap();
        }
        let after = reader.counters().counts();
        assert_eq!(after.bloom_asked - before.bloom_asked, 1000);
        assert!(after.bloom_negative - before.bloom_negative > 950, "{bloom:?}");
    }
}

#[test]
fn facts_of_a_file_are_kept() {
    let cells = sample(300);
    let (bytes, summary) = write(&cells, tiny(Compression::None, BloomType::Row));
    let reader = open(bytes, true).unwrap();
    let info = reader.info();
    assert_eq!(info.entries, cells.len() as u64);
    assert_eq!(info.max_sequence_id, Some(9));
    assert_eq!(info.time_range, Some((0, 1500)));
    assert_eq!(info.time_range, summary.time_range);
    assert_eq!(info.earliest_put, Some(1000));
    assert_eq!(info.family_markers, Some(60));
    assert_eq!((info.first_row.clone(), info.last_row.clone()), (Some("row-00000".into()), Some("row-00897".into())));
    assert_eq!(summary.rows, info.first_row.clone().zip(info.last_row.clone()));
    assert_eq!(info.max_cell_sequence_id, 299 * 50);
    assert_eq!(summary.tombstones, 60);
    let mid = reader.mid_row().unwrap().unwrap();
    assert!(mid > "row-00300" && mid < "row-00600", "{mid:?}");
}

#[test]
fn cells_out_of_place_are_refused() {
    let file = MemoryFile::with(Vec::new());
    let mut writer = HFileWriter::create(file, HFileWriterOptions::default()).unwrap();
    let cell = |row: &[u8], family: &[u8], tags: &[u8]| Cell::with_tags(row, family, b"", 1, CellType::Put, b"", tags);
    writer.append(&cell(b"b", b"f", b"")).unwrap();
    assert!(matches!(writer.append(&cell(b"a", b"f", b"")), Err(Error::InvalidArgument(_))));
    assert!(matches!(writer.append(&cell(b"c", b"g", b"")), Err(Error::InvalidArgument(_))));
    assert!(matches!(writer.append(&cell(b"c", b"f", &[0, 1, 64])), Err(Error::InvalidArgument(_))));
}

#[test]
fn the_cache_serves_blocks_and_counts() {
    let cells = sample(300);
    let (bytes, _) = write(&cells, tiny(Compression::Zstd, BloomType::None));
    let reader = open(bytes, true).unwrap();
    scan(&mut reader.scanner(ReadOptions::default())).unwrap();
    let first = reader.counters().counts();
    assert!(first.data_blocks_read > 10 && first.cache_misses >= first.data_blocks_read);
    assert_eq!(scan(&mut reader.scanner(ReadOptions::streaming())).unwrap(), cells);
    assert_eq!(reader.counters().counts().data_blocks_read, first.data_blocks_read);
}

/// Blocks are compressed by whoever is free: the bytes of the file, and where its writes begin and end, are the same.
#[test]
fn the_same_cells_give_the_same_bytes_whoever_compresses() {
    let cells = sample(3000);
    for compression in [Compression::Gz, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
        let options = || HFileWriterOptions { block_size: 2048, ..tiny(compression, BloomType::Row) };
        let files = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..4).map(|_| scope.spawn(|| write(&cells, options()).0)).collect();
            writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>()
        });
        assert!(files.windows(2).all(|pair| pair[0] == pair[1]), "{compression:?}");
        let reader = open(files[0].clone(), false).unwrap();
        let verified = verify(MemoryFile::with(files[0].clone())).unwrap();
        assert_eq!(verified.entries, cells.len() as u64);
        assert_eq!(scan(&mut reader.scanner(ReadOptions::streaming())).unwrap(), cells);
    }
}

/// A scan that reads far ahead may turn anywhere: what has been decoded in vain is let go.
#[test]
fn scans_that_decode_ahead_may_turn_anywhere() {
    let cells = sample(4000);
    for encoding in [DataBlockEncoding::None, DataBlockEncoding::FastDiff] {
        let options = HFileWriterOptions { encoding, block_size: 512, ..tiny(Compression::Snappy, BloomType::None) };
        let reader = open(write(&cells, options).0, true).unwrap();
        let mut scanner = reader.scanner(ReadOptions { cache_blocks: true, ..ReadOptions::streaming() });
        let mut at = 0;
        for step in 0..400usize {
            at = (at * 7 + step * 131) % cells.len();
            scanner.seek(&cells[at]).unwrap();
            for cell in cells.iter().skip(at).take(step % 90 + 1) {
                assert_eq!(scanner.peek(), Some(cell));
                scanner.advance().unwrap();
            }
        }
        assert_eq!(scan(&mut scanner).unwrap(), cells);
    }
}
