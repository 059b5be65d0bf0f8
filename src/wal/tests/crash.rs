use super::*;
use crate::vfs::{Fault, Keep};

/// What a run of the script was told.
#[derive(Default)]
struct Told {
    /// Appended records in order, without those that were refused for want of space.
    issued: Vec<WalRecord>,
    /// Ids up to here were acknowledged as synced.
    synced: u64,
    /// Ids up to here were acknowledged as written.
    written: u64,
    /// The log number that the manifest would hold.
    first_segment: u64,
    /// The last id that was forgotten.
    forgotten: u64,
    errors: Vec<Error>,
}

/// A life of a log: all durabilities, rolls, syncs, forgetting. Errors are noted, and life goes on.
fn live(vfs: &SimVfs) -> Told {
    let mut told = Told { first_segment: 1, ..Told::default() };
    let made = Wal::create(Arc::new(vfs.clone()), Path::new("w"), SMALL, RecoveredLog::default(), 1);
    let wal = match made {
        Ok(wal) => wal,
        Err(error) => {
            told.errors.push(error);
            return told;
        }
    };
    for number in 0..24u64 {
        // One cell is so large that it is written by itself.
        let value = if number == 15 { super::buffer::SHARED_CELL_BYTES } else { (number as usize * 7) % 60 };
        let mut edits = edits(number, value);
        let appended = match wal.append(&mut edits) {
            Ok(appended) => appended,
            Err(error) => {
                told.errors.push(error);
                continue;
            }
        };
        told.issued.push(WalRecord { sequence_id: appended.sequence_id, edits });
        let durability = [Durability::SyncWal, Durability::AsyncWal, Durability::FsyncWal][number as usize % 3];
        match wal.commit(appended.position, durability) {
            Ok(()) if durability == Durability::FsyncWal => told.synced = appended.sequence_id,
            Ok(()) if durability == Durability::SyncWal => told.written = appended.sequence_id,
            Ok(()) => {}
            Err(error) => {
                if matches!(error, Error::NoSpace { .. }) {
                    told.issued.pop();
                }
                told.errors.push(error);
            }
        }
        let last = wal.last_sequence_id();
        let maintained = match number {
            7 => wal.roll(),
            11 => wal.sync().map(|()| told.synced = last),
            13 => wal.reserve(500),
            17 => {
                let first = wal.first_needed_segment(10);
                (told.first_segment, told.forgotten) = (first, 10);
                wal.forget_before(first)
            }
            _ => Ok(()),
        };
        told.errors.extend(maintained.err());
    }
    match wal.close() {
        Ok(()) => told.synced = wal.last_sequence_id(),
        Err(error) => told.errors.push(error),
    }
    told
}

/// Recovers, checks, goes on, recovers again.
fn check(crashed: &SimVfs, told: &Told, at_least: u64, context: &str) {
    let dir = Path::new("w");
    let (recovered, log) =
        records_from(crashed, dir, told.first_segment).unwrap_or_else(|error| panic!("{context}: {error}"));
    let first = recovered.first().map_or(u64::MAX, |record| record.sequence_id);
    let skipped = told.issued.iter().take_while(|record| record.sequence_id < first).count();
    if let Some(record) = told.issued.get(..skipped).unwrap().last() {
        assert!(recovered.is_empty() || record.sequence_id <= told.forgotten, "{context}: the beginning is missing");
    }
    if !recovered.is_empty() {
        assert_eq!(recovered, told.issued[skipped..skipped + recovered.len()], "{context}: a hole");
    }
    let last = recovered.last().map_or(0, |record| record.sequence_id);
    // An id may be acknowledged whose record was refused or forgotten.
    let is_owed = |record: &&WalRecord| record.sequence_id > told.forgotten && record.sequence_id <= at_least;
    let owed = told.issued.iter().rfind(is_owed).map_or(0, |record| record.sequence_id);
    assert!(last >= owed, "{context}: {owed} was acknowledged, {last} is the last recovered");

    let next = log.last_sequence_id + 1;
    let wal = Wal::create(Arc::new(crashed.clone()), dir, SMALL, log, next).unwrap();
    assert_eq!(put(&wal, 7, 1, Durability::FsyncWal).unwrap(), next);
    drop(wal);
    let mut all = recovered;
    all.push(expected(next, edits(7, 1)));
    let (again, _) = records_from(&crashed.crash(Keep::None), dir, told.first_segment).unwrap();
    assert_eq!(again, all, "{context}: after going on");
}

fn check_all_crashes(vfs: &SimVfs, told: &Told, context: &str) {
    check(&vfs.crash(Keep::None), told, told.synced, &format!("{context}, nothing kept"));
    check(&vfs.crash(Keep::All), told, told.synced.max(told.written), &format!("{context}, all kept"));
    for seed in 0..6 {
        check(&vfs.crash(Keep::Random(seed)), told, told.synced, &format!("{context}, seed {seed}"));
    }
    assert_eq!(vfs.syncs_after_failure(), 0, "{context}");
}

fn operations() -> u64 {
    let vfs = SimVfs::new();
    let told = live(&vfs);
    assert!(told.errors.is_empty(), "{:?}", told.errors);
    assert_eq!(told.issued.len(), 24);
    check_all_crashes(&vfs, &told, "undisturbed");
    vfs.operations()
}

#[test]
fn a_crash_at_any_operation_leaves_what_was_acknowledged() {
    for operation in 0..operations() {
        let vfs = SimVfs::new();
        vfs.stop_at(operation);
        let told = live(&vfs);
        vfs.clear_faults();
        check_all_crashes(&vfs, &told, &format!("crash at {operation}"));
    }
}

#[test]
fn an_error_at_any_operation_loses_nothing_acknowledged() {
    for operation in 0..operations() {
        for fault in [Fault::Eio, Fault::ShortWrite] {
            let vfs = SimVfs::new();
            vfs.fail_at(operation, fault);
            let told = live(&vfs);
            assert!(!told.errors.is_empty() || operation_is_a_hint(&vfs), "{fault:?} at {operation} went unnoticed");
            check_all_crashes(&vfs, &told, &format!("{fault:?} at {operation}"));
        }
    }
}

/// Giving reserved blocks back may fail unnoticed.
fn operation_is_a_hint(vfs: &SimVfs) -> bool {
    vfs.recent_operations().iter().any(|line| line.contains("resize") && line.contains("Some"))
}

#[test]
fn a_full_disk_at_any_operation_leaves_the_log_usable() {
    for operation in 0..operations() {
        let vfs = SimVfs::new();
        vfs.fail_at(operation, Fault::NoSpace);
        let told = live(&vfs);
        let synced = vfs.recent_operations().iter().any(|line| line.contains("sync") && line.contains("NoSpace"));
        let poisoned = told.errors.iter().any(|error| matches!(error, Error::Poisoned { .. }));
        assert!(synced || !poisoned, "a full disk at {operation}: {:?}", told.errors);
        check_all_crashes(&vfs, &told, &format!("a full disk at {operation}"));
    }
}

#[test]
fn a_full_volume_is_no_space_and_room_made_ends_it() {
    let (vfs, wal) = simulated(2048);
    vfs.set_capacity(3000);
    let mut acknowledged = Vec::new();
    let error = loop {
        let number = acknowledged.len() as u64;
        match put(&wal, number, 200, Durability::SyncWal) {
            Ok(sequence_id) => acknowledged.push(expected(sequence_id, edits(number, 200))),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::NoSpace { .. }));
    assert!(matches!(wal.reserve(1000), Err(Error::NoSpace { .. })));
    assert_eq!(wal.last_sequence_id(), acknowledged.len() as u64, "no id is lost");
    vfs.set_capacity(1 << 20);
    let sequence_id = put(&wal, 50, 1, Durability::FsyncWal).unwrap();
    acknowledged.push(expected(sequence_id, edits(50, 1)));
    assert_eq!(records(&vfs, Path::new("w")).unwrap().0, acknowledged);
}

#[test]
fn a_record_refused_for_space_does_not_come_back() {
    let (vfs, wal) = simulated(1 << 16);
    put(&wal, 0, 1, Durability::SyncWal).unwrap();
    put(&wal, 1, 1, Durability::AsyncWal).unwrap();
    vfs.fail_at(vfs.operations(), Fault::NoSpace);
    assert!(matches!(put(&wal, 2, 1, Durability::SyncWal), Err(Error::NoSpace { .. })));
    put(&wal, 3, 1, Durability::SyncWal).unwrap();
    let (recovered, log) = records(&vfs, Path::new("w")).unwrap();
    assert_eq!(recovered, [expected(1, edits(0, 1)), expected(2, edits(1, 1)), expected(4, edits(3, 1))]);
    assert_eq!(log.last_sequence_id, 4);
}

#[test]
fn a_failed_sync_poisons_the_log() {
    let (vfs, wal) = simulated(1 << 16);
    put(&wal, 0, 1, Durability::FsyncWal).unwrap();
    vfs.fail_at(vfs.operations() + 1, Fault::Eio);
    assert!(matches!(put(&wal, 1, 1, Durability::FsyncWal), Err(Error::Poisoned { .. })));
    assert!(wal.poisoned().unwrap().contains("sync"));
    let operations = vfs.operations();
    assert!(matches!(wal.append(&mut edits(2, 1)), Err(Error::Poisoned { .. })));
    for refused in [wal.sync(), wal.roll(), wal.reserve(1), wal.close()] {
        assert!(matches!(refused, Err(Error::Poisoned { .. })));
    }
    assert_eq!((vfs.operations(), vfs.syncs_after_failure()), (operations, 0));
    assert_eq!(records(&vfs.crash(Keep::None), Path::new("w")).unwrap().0, [expected(1, edits(0, 1))]);
}

#[test]
fn the_same_life_leaves_the_same_trace() {
    let run = || {
        let vfs = SimVfs::new();
        live(&vfs);
        vfs.trace_hash()
    };
    assert_eq!(run(), run());
}
