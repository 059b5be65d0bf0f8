mod crash;
mod damage;
mod group;
mod payload;
mod version_1;

use super::*;
use crate::cell::{CellType, Tag, encode_tags};
use crate::vfs::{OsVfs, SimVfs};
use bytes::Bytes;

/// Segments that hold a few records.
const SMALL: WalOptions = WalOptions { segment_bytes: 900, buffer_bytes: 400 };

fn cell(number: u64, value: usize) -> Cell {
    let tags = encode_tags(&[Tag { kind: 64, value: Bytes::from_static(b"t") }]);
    let row = format!("row{number}");
    let value = vec![number as u8; value];
    Cell::with_tags(row.as_bytes(), b"cf", b"q", number as i64, CellType::Put, &value, &tags)
}

fn edits(number: u64, value: usize) -> Vec<WalEdit> {
    vec![
        WalEdit { region: number % 3, cells: vec![cell(number, value), cell(number + 1, 3)] },
        WalEdit { region: 77, cells: vec![Cell::new(b"r", b"f", b"", 5, CellType::DeleteFamily, b"")] },
    ]
}

fn records_from(vfs: &dyn Vfs, dir: &Path, first_segment: u64) -> Result<(Vec<WalRecord>, RecoveredLog)> {
    let mut records = Vec::new();
    let options = RecoveryOptions { first_segment, point_in_time: false };
    let log = recover(vfs, dir, options, |record| {
        records.push(record);
        Ok(())
    })?;
    Ok((records, log))
}

fn records(vfs: &dyn Vfs, dir: &Path) -> Result<(Vec<WalRecord>, RecoveredLog)> {
    records_from(vfs, dir, 0)
}

/// The record that `edits` make under that id.
fn expected(sequence_id: u64, mut edits: Vec<WalEdit>) -> WalRecord {
    for cell in edits.iter_mut().flat_map(|edit| &mut edit.cells) {
        cell.set_sequence_id(sequence_id);
    }
    WalRecord { sequence_id, edits }
}

/// An empty log `w` on a new simulated file system.
fn simulated(segment_bytes: u64) -> (SimVfs, Wal) {
    let vfs = SimVfs::new();
    let options = WalOptions { segment_bytes, buffer_bytes: 512 };
    let wal = Wal::create(Arc::new(vfs.clone()), Path::new("w"), options, RecoveredLog::default(), 1).unwrap();
    (vfs, wal)
}

fn put(wal: &Wal, number: u64, value: usize, durability: Durability) -> Result<u64> {
    let appended = wal.append(&mut edits(number, value))?;
    wal.commit(appended.position, durability)?;
    Ok(appended.sequence_id)
}

#[test]
fn records_come_back_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wal");
    let vfs: Arc<dyn Vfs> = Arc::new(OsVfs::new());
    let options = WalOptions { segment_bytes: 4096, buffer_bytes: 512 };
    let mut recovered = RecoveredLog::default();
    let mut next = 1;
    for round in 0..3 {
        let wal = Wal::create(vfs.clone(), &path, options, recovered, next).unwrap();
        for number in 0..50 {
            let number = round * 50 + number;
            let mut edits = edits(number, (number as usize * 37) % 6000);
            let appended = wal.append(&mut edits).unwrap();
            assert_eq!(appended.sequence_id, number + 1);
            assert!(edits.iter().flat_map(|edit| &edit.cells).all(|cell| cell.sequence_id() == number + 1));
            let durability = [Durability::AsyncWal, Durability::SyncWal, Durability::FsyncWal][number as usize % 3];
            wal.commit(appended.position, durability).unwrap();
        }
        if round == 1 {
            wal.sync().unwrap()
        } else {
            wal.close().unwrap()
        }
        drop(wal);
        let (records, log) = records(vfs.as_ref(), &path).unwrap();
        assert_eq!(records.len() as u64, (round + 1) * 50);
        for (index, record) in records.into_iter().enumerate() {
            let number = index as u64;
            assert_eq!(record, expected(number + 1, edits(number, (index * 37) % 6000)));
        }
        assert_eq!(log.torn_tail, None);
        next = log.last_sequence_id + 1;
        recovered = log;
    }
}

#[test]
fn records_may_be_larger_than_segments_and_chunks() {
    let (vfs, wal) = simulated(4096);
    for (number, value) in [(0, 10), (1, 700_000), (2, 10), (3, 262_000), (4, 5)] {
        put(&wal, number, value, Durability::SyncWal).unwrap();
    }
    let (records, _) = records(&vfs, Path::new("w")).unwrap();
    assert_eq!(records[1], expected(2, edits(1, 700_000)));
    assert_eq!(records.len(), 5);
}

#[test]
fn large_records_share_a_larger_segment() {
    let (vfs, wal) = simulated(1 << 20);
    for number in 0..3 {
        put(&wal, number, 1 << 20, Durability::SyncWal).unwrap();
    }
    assert_eq!(wal.segment_count(), 1);
    put(&wal, 3, 1 << 20, Durability::SyncWal).unwrap();
    assert_eq!(wal.segment_count(), 2);
    let lengths: Vec<u64> = vfs.list(Path::new("w")).unwrap().into_iter().map(|entry| entry.len).collect();
    // What the first one had left is given back.
    assert!(lengths[0] <= 4 << 20 && lengths[1] == 4 << 20, "{lengths:?}");
    assert_eq!(records(&vfs, Path::new("w")).unwrap().0.len(), 4);
}

#[test]
fn async_appends_stay_in_memory_until_the_buffer_is_full() {
    let (vfs, wal) = simulated(1 << 20);
    let first = vfs.operations();
    put(&wal, 0, 10, Durability::AsyncWal).unwrap();
    let with_segment = vfs.operations();
    assert!(with_segment > first);
    put(&wal, 1, 10, Durability::AsyncWal).unwrap();
    assert_eq!(vfs.operations(), with_segment);
    assert!(wal.unsynced_bytes() > 0);
    put(&wal, 2, 600, Durability::AsyncWal).unwrap();
    assert_eq!(vfs.operations(), with_segment + 1);
    wal.sync().unwrap();
    assert_eq!(vfs.operations(), with_segment + 3);
    wal.sync().unwrap();
    assert_eq!(vfs.operations(), with_segment + 3, "nothing new to sync");
    assert_eq!(wal.unsynced_bytes(), 0);
}

#[test]
fn segments_are_forgotten_whole_and_in_order() {
    let (vfs, wal) = simulated(1024);
    for number in 0..10 {
        put(&wal, number, 300, Durability::SyncWal).unwrap();
    }
    assert_eq!(wal.segment_count(), 5);
    assert_eq!(wal.first_needed_segment(0), 1);
    assert_eq!(wal.first_needed_segment(2), 2);
    assert_eq!(wal.first_needed_segment(5), 3);
    assert_eq!(wal.first_needed_segment(10), 5, "the present segment stays");
    wal.roll().unwrap();
    wal.roll().unwrap();
    assert_eq!(wal.first_needed_segment(10), 6);
    wal.forget_before(3).unwrap();
    assert_eq!(wal.segment_count(), 4);
    let (kept, log) = records_from(&vfs, Path::new("w"), 3).unwrap();
    assert_eq!(kept.iter().map(|record| record.sequence_id).collect::<Vec<_>>(), [5, 6, 7, 8, 9, 10]);
    assert!(matches!(records_from(&vfs, Path::new("w"), 2), Err(Error::Corruption { .. })), "a segment is missing");
    let again = Wal::create(Arc::new(vfs.clone()), Path::new("w"), SMALL, log, 11).unwrap();
    again.forget_before(again.first_needed_segment(10)).unwrap();
    assert_eq!(vfs.list(Path::new("w")).unwrap().len(), 0);
    assert_eq!(again.allocate_sequence_id(), 11);
    put(&again, 0, 0, Durability::FsyncWal).unwrap();
    assert_eq!(records_from(&vfs, Path::new("w"), 7).unwrap().0, [expected(12, edits(0, 0))]);
}
