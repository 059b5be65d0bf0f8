use super::*;
use crate::cell::{CellType, Tag, encode_tags};
use crate::vfs::OsVfs;
use bytes::Bytes;

pub(super) fn cell(number: u64, value: usize) -> Cell {
    let tags = encode_tags(&[Tag { kind: 64, value: Bytes::from_static(b"t") }]);
    let row = format!("row{number}");
    let value = vec![number as u8; value];
    Cell::with_tags(row.as_bytes(), b"cf", b"q", number as i64, CellType::Put, &value, &tags)
}

pub(super) fn edits(number: u64, value: usize) -> Vec<WalEdit> {
    vec![
        WalEdit { region: number % 3, cells: vec![cell(number, value), cell(number + 1, 3)] },
        WalEdit { region: 77, cells: vec![Cell::new(b"r", b"f", b"", 5, CellType::DeleteFamily, b"")] },
    ]
}

/// The records that `edits(1..)` make, as recovery gives them back.
pub(super) fn records(vfs: &dyn Vfs, dir: &Path) -> Result<(Vec<WalRecord>, RecoveredLog)> {
    let mut records = Vec::new();
    let log = recover(vfs, dir, RecoveryOptions::default(), |record| {
        records.push(record);
        Ok(())
    })?;
    Ok((records, log))
}

pub(super) fn expected(sequence_id: u64, mut edits: Vec<WalEdit>) -> WalRecord {
    for cell in edits.iter_mut().flat_map(|edit| &mut edit.cells) {
        cell.set_sequence_id(sequence_id);
    }
    WalRecord { sequence_id, edits }
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
