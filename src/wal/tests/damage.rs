use super::format::SEGMENT_HEADER_LEN;
use super::*;
use crate::vfs::Keep;

const RECORDS: u64 = 8;

/// A log of several segments, closed cleanly, and what is in it.
fn closed_log() -> (SimVfs, Vec<WalRecord>) {
    let (vfs, wal) = simulated(700);
    for number in 0..RECORDS {
        let durability = if number % 3 == 0 { Durability::FsyncWal } else { Durability::SyncWal };
        put(&wal, number, 20 + number as usize * 11, durability).unwrap();
    }
    wal.close().unwrap();
    let records = records(&vfs, Path::new("w")).unwrap().0;
    assert_eq!(records.len() as u64, RECORDS);
    (vfs, records)
}

fn segments(vfs: &SimVfs) -> Vec<(PathBuf, u64)> {
    let entries = vfs.list(Path::new("w")).unwrap();
    entries.into_iter().map(|entry| (Path::new("w").join(entry.name), entry.len)).collect()
}

/// Damage of a cleanly closed log is found, or hurts nothing; the closing mark alone may go unnoticed.
#[test]
fn every_flipped_byte_is_found() {
    let (vfs, all) = closed_log();
    let segments = segments(&vfs);
    assert!(segments.len() >= 3);
    let mut found = 0;
    for (path, len) in &segments {
        for offset in 0..*len {
            for bits in [1 << (offset % 8), 0xff] {
                vfs.damage(path, offset, |byte| byte ^ bits).unwrap();
                match records(&vfs, Path::new("w")) {
                    Ok((recovered, _)) => assert_eq!(recovered, all, "{} {offset}", path.display()),
                    Err(Error::Corruption { file, .. }) => {
                        found += 1;
                        assert!(file.starts_with("w"));
                    }
                    Err(other) => panic!("{other}"),
                }
                vfs.damage(path, offset, |byte| byte ^ bits).unwrap();
            }
        }
    }
    assert!(found > 2000, "{found}");
    assert_eq!(records(&vfs, Path::new("w")).unwrap().0, all);
}

/// Without the closing mark the last synced group may look torn, but what is recovered is a prefix, and nothing before the last claim is lost.
#[test]
fn a_flipped_byte_of_an_open_log_leaves_a_prefix() {
    let (vfs, wal) = simulated(700);
    for number in 0..RECORDS {
        put(&wal, number, 30, Durability::SyncWal).unwrap();
        if number == 3 {
            wal.sync().unwrap();
        }
    }
    let all = records(&vfs, Path::new("w")).unwrap().0;
    let (mut torn, mut found) = (0, 0);
    for (path, len) in segments(&vfs) {
        for offset in 0..len {
            vfs.damage(&path, offset, |byte| !byte).unwrap();
            match records(&vfs, Path::new("w")) {
                Ok((recovered, _)) => {
                    assert_eq!(recovered, all[..recovered.len()]);
                    assert!(recovered.len() >= 4, "the first four were synced");
                    torn += usize::from(recovered.len() < all.len());
                }
                Err(Error::Corruption { .. }) => found += 1,
                Err(other) => panic!("{other}"),
            }
            vfs.damage(&path, offset, |byte| !byte).unwrap();
        }
    }
    assert!(torn > 100 && found > 100, "{torn} {found}");
}

#[test]
fn every_truncation_is_a_prefix_or_found() {
    let (vfs, all) = closed_log();
    for (index, (path, len)) in segments(&vfs).iter().enumerate() {
        for cut in 0..*len {
            let copy = vfs.crash(Keep::All);
            copy.open_write(path).unwrap().set_len(cut).unwrap();
            match records(&copy, Path::new("w")) {
                Ok((recovered, _)) => {
                    assert_eq!(recovered, all[..recovered.len()]);
                    let is_last = index + 1 == segments(&vfs).len();
                    assert!(recovered.len() == all.len() || is_last, "{} {cut}", path.display());
                }
                Err(Error::Corruption { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_missing_or_foreign_segment_is_found() {
    let (vfs, all) = closed_log();
    let segments = segments(&vfs);
    for (path, _) in &segments[..segments.len() - 1] {
        let copy = vfs.crash(Keep::All);
        copy.remove_file(path).unwrap();
        match records_from(&copy, Path::new("w"), 1) {
            Err(Error::Corruption { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    let copy = vfs.crash(Keep::All);
    copy.rename(&segments[0].0, &segments[1].0).unwrap();
    assert!(matches!(records_from(&copy, Path::new("w"), 1), Err(Error::Corruption { .. })));
    vfs.create_new(Path::new("w/1.wal")).unwrap();
    vfs.create_new(Path::new("w/notes")).unwrap();
    assert_eq!(records(&vfs, Path::new("w")).unwrap().0, all);
}

#[test]
fn damage_is_passed_over_when_the_user_says_so() {
    let (vfs, all) = closed_log();
    let (path, _) = segments(&vfs)[1].clone();
    vfs.damage(&path, format::SEGMENT_HEADER_LEN as u64 + 50, |byte| !byte).unwrap();
    assert!(records(&vfs, Path::new("w")).is_err());
    let mut kept = Vec::new();
    let options = RecoveryOptions { first_segment: 1, point_in_time: true };
    let log = recover(&vfs, Path::new("w"), options, |record| {
        kept.push(record);
        Ok(())
    });
    let log = log.unwrap();
    assert_eq!(kept, all[..kept.len()]);
    assert!(!kept.is_empty() && kept.len() < all.len());
    let next = all.len() as u64 + 1;
    let wal = Wal::create(Arc::new(vfs.clone()), Path::new("w"), SMALL, log, next).unwrap();
    put(&wal, 99, 1, Durability::FsyncWal).unwrap();
    kept.push(expected(next, edits(99, 1)));
    assert_eq!(records(&vfs, Path::new("w")).unwrap().0, kept);
}

/// The proof of damage is found wherever it stands in the blocks that are searched, also when zeroes lie between.
#[test]
fn a_proof_is_found_at_every_offset() {
    for value in (3900..4200).chain(8000..8200) {
        let (vfs, wal) = simulated(32 << 10);
        put(&wal, 0, value, Durability::FsyncWal).unwrap();
        put(&wal, 1, 1, Durability::FsyncWal).unwrap();
        drop(wal);
        let (path, _) = &segments(&vfs)[0];
        vfs.damage(path, SEGMENT_HEADER_LEN as u64, |byte| !byte).unwrap();
        match records(&vfs, Path::new("w")) {
            Err(Error::Corruption { offset, .. }) => assert_eq!(offset, SEGMENT_HEADER_LEN as u64),
            other => panic!("{value}: {other:?}"),
        }
    }
}
