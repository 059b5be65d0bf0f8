//! Logs of format version 1 are read as ever; new segments go on behind them in the present version.

use super::*;
use crate::vfs::Keep;
use crate::wal::format::{SEGMENT_HEADER_LEN, SegmentHeader, VERSION_1};

fn be(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

fn payload(edits: &[WalEdit]) -> Vec<u8> {
    let mut out = be(&[edits.len() as u32]);
    for edit in edits {
        out.extend(edit.region.to_be_bytes());
        out.extend(be(&[edit.cells.len() as u32]));
        for cell in &edit.cells {
            out.extend(be(&[cell.encoded().len() as u32, cell.key_len() as u32, cell.value_len() as u32]));
            out.extend_from_slice(cell.encoded());
        }
    }
    out
}

/// A segment as version 1 wrote it: every record says that the ones before it were synced.
fn segment(number: u64, base: u64, first_id: u64, records: &[Vec<WalEdit>]) -> Vec<u8> {
    let header = SegmentHeader { version: VERSION_1, segment: number, base, synced: base, next_sequence_id: first_id };
    let mut out = header.encode();
    for (edits, id) in records.iter().zip(first_id..) {
        let payload = payload(edits);
        let offset = out.len() as u64;
        let synced = base + offset - SEGMENT_HEADER_LEN as u64;
        let mut tail = be(&[crc32fast::hash(&payload), payload.len() as u32]);
        tail.push(1);
        for field in [number, synced, id] {
            tail.extend(field.to_be_bytes());
        }
        let crc = crc32fast::hash(&[&offset.to_be_bytes()[..], &tail].concat());
        out.extend(be(&[crc]));
        out.extend([tail, payload].concat());
    }
    out
}

fn write(vfs: &SimVfs, number: u64, bytes: &[u8]) {
    let file = vfs.create_new(&segment::path(Path::new("w"), number)).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file.allocate(bytes.len() as u64 + 500).unwrap();
    file.sync_all().unwrap();
}

fn old_log() -> SimVfs {
    let vfs = SimVfs::new();
    vfs.create_directory(Path::new("w")).unwrap();
    let first = segment(1, 0, 1, &[edits(0, 10), edits(1, 300)]);
    let base = (first.len() - SEGMENT_HEADER_LEN) as u64;
    write(&vfs, 1, &first);
    write(&vfs, 2, &segment(2, base, 3, &[edits(2, 20), edits(3, 0)]));
    vfs.sync_directory(Path::new("w")).unwrap();
    vfs
}

#[test]
fn a_log_of_version_1_goes_on() {
    let vfs = old_log();
    let (before, log) = records(&vfs, Path::new("w")).unwrap();
    let mut all: Vec<WalRecord> =
        [10, 300, 20, 0].iter().zip(0..).map(|(value, number)| expected(number + 1, edits(number, *value))).collect();
    assert_eq!(before, all);
    assert_eq!(log.torn_tail, None);
    let wal = Wal::create(Arc::new(vfs.clone()), Path::new("w"), SMALL, log, 5).unwrap();
    put(&wal, 4, 40, Durability::FsyncWal).unwrap();
    all.push(expected(5, edits(4, 40)));
    assert_eq!(records(&vfs, Path::new("w")).unwrap().0, all);
}

#[test]
fn damage_and_torn_tails_of_version_1_are_told_apart() {
    let vfs = old_log();
    for (number, last_is_torn) in [(1, false), (2, true)] {
        let path = segment::path(Path::new("w"), number);
        let len = vfs.open_read(&path).unwrap().len().unwrap() - 500;
        for offset in 0..len {
            let copy = vfs.crash(Keep::All);
            copy.damage(&path, offset, |byte| !byte).unwrap();
            match records(&copy, Path::new("w")) {
                Err(Error::Corruption { .. }) => {}
                // The last record, which no later one speaks for.
                Ok((recovered, log)) => {
                    assert!(last_is_torn && recovered.len() == 3 && log.torn_tail.is_some(), "{number} {offset}");
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}
