use super::*;
use crate::error::Error;

fn at(path: &str) -> &Path {
    Path::new(path)
}

fn content(vfs: &SimVfs, path: &str) -> Vec<u8> {
    let file = vfs.open_read(at(path)).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn a_crash_keeps_what_was_synced() {
    let vfs = SimVfs::new();
    vfs.create_directory(at("/d")).unwrap();
    vfs.sync_directory(at("/")).unwrap();
    let file = vfs.create_new(at("/d/f")).unwrap();
    file.write_all_at(b"synced", 0).unwrap();
    file.sync_data().unwrap();
    assert!(!vfs.crash(Keep::None).exists(at("/d/f")).unwrap(), "its name was not synced");
    assert_eq!(content(&vfs.crash(Keep::All), "/d/f"), b"synced");
    vfs.sync_directory(at("/d")).unwrap();
    file.write_all_at(b"more", 6).unwrap();
    assert_eq!(content(&vfs.crash(Keep::None), "/d/f"), b"synced");
    assert_eq!(content(&vfs.crash(Keep::All), "/d/f"), b"syncedmore");
    vfs.rename(at("/d/f"), at("/d/g")).unwrap();
    assert!(vfs.crash(Keep::None).exists(at("/d/f")).unwrap());
    assert!(!vfs.crash(Keep::All).exists(at("/d/f")).unwrap());
    file.set_len(2).unwrap();
    file.allocate(4).unwrap();
    assert_eq!(content(&vfs, "/d/g"), b"sy\0\0");
    vfs.remove_file(at("/d/g")).unwrap();
    assert_eq!(content(&vfs.crash(Keep::None), "/d/f"), b"synced");
    vfs.sync_directory(at("/d")).unwrap();
    assert_eq!(vfs.crash(Keep::Random(1)).list(at("/d")).unwrap(), []);
}

#[test]
fn random_crashes_keep_sectors_apart() {
    let vfs = SimVfs::new();
    let file = vfs.create_new(at("f")).unwrap();
    file.write_all_at(&[1; 5000], 0).unwrap();
    file.sync_data().unwrap();
    vfs.sync_directory(at("/")).unwrap();
    file.write_all_at(&[2; 5000], 0).unwrap();
    let mut kinds = [0; 3];
    for seed in 0..20 {
        for sector in content(&vfs.crash(Keep::Random(seed)), "f").chunks(512) {
            let new = sector.iter().filter(|byte| **byte == 2).count();
            kinds[usize::from(new > 0) + usize::from(new == sector.len())] += 1;
        }
        assert_eq!(content(&vfs.crash(Keep::Random(seed)), "f"), content(&vfs.crash(Keep::Random(seed)), "f"));
    }
    assert!(kinds.iter().all(|count| *count > 0), "old, torn and new sectors: {kinds:?}");
}

/// A kernel writes whole pages back, in any order, and memory may be stored to meanwhile.
#[test]
fn random_crashes_keep_whole_pages_of_some_files_and_tear_bytewise() {
    let vfs = SimVfs::new();
    let file = vfs.create_new(at("f")).unwrap();
    file.write_all_at(&[1; 64 << 10], 0).unwrap();
    file.sync_data().unwrap();
    vfs.sync_directory(at("/")).unwrap();
    file.write_all_at(&[2; 64 << 10], 0).unwrap();
    let (mut paged, mut mixed) = (0, 0);
    for seed in 0..60 {
        let bytes = content(&vfs.crash(Keep::Random(seed)), "f");
        let new = |part: &[u8]| part.iter().filter(|byte| **byte == 2).count();
        let kept: Vec<bool> = bytes.chunks(512).map(|sector| new(sector) > 0).collect();
        paged += usize::from(kept.chunks(8).all(|page| page.iter().all(|sector| *sector == page[0])));
        let torn = bytes.chunks(512).filter(|sector| !sector.starts_with(&vec![2; new(sector)]));
        mixed += torn.count();
    }
    assert!((15..=45).contains(&paged), "{paged}");
    assert!(mixed > 0);
}

#[test]
fn a_failed_sync_drops_what_it_should_have_kept() {
    let vfs = SimVfs::new();
    let file = vfs.create_new(at("f")).unwrap();
    vfs.sync_directory(at("/")).unwrap();
    file.write_all_at(b"x", 0).unwrap();
    let rule =
        |operation, fault| FaultRule { operation: Some(operation), path: Some("f*".into()), skip: 0, times: 1, fault };
    vfs.add_fault(rule(SimOperation::Sync, Fault::Eio));
    assert!(matches!(file.sync_data(), Err(Error::Io { operation: "sync", .. })));
    assert_eq!(vfs.syncs_after_failure(), 0);
    file.sync_data().unwrap();
    assert_eq!(vfs.syncs_after_failure(), 1);
    assert_eq!(content(&vfs, "f"), b"x");
    assert_eq!(content(&vfs.crash(Keep::None), "f"), b"\0", "the second sync wrote nothing");
    vfs.add_fault(rule(SimOperation::Write, Fault::NoSpace));
    assert!(matches!(file.write_all_at(b"abcd", 0), Err(Error::NoSpace { .. })));
    assert_eq!(content(&vfs, "f"), b"ab");
    vfs.add_fault(rule(SimOperation::Read, Fault::Eio));
    assert!(file.read_at(&mut [0], 0).is_err());
}

#[test]
fn operations_are_counted_stopped_and_traced() {
    let run = || {
        let vfs = SimVfs::new();
        let file = vfs.create_new(at("f")).unwrap();
        file.write_all_at(b"1", 0).unwrap();
        file.read_at(&mut [0], 0).unwrap();
        assert_eq!(vfs.operations(), 2);
        vfs.stop_at(3);
        file.write_all_at(b"2", 1).unwrap();
        assert!(file.write_all_at(b"3", 2).is_err());
        assert!(vfs.open_read(at("f")).is_err());
        vfs.clear_faults();
        assert_eq!(content(&vfs, "f"), b"12");
        vfs.fail_at(vfs.operations(), Fault::ShortWrite);
        assert!(file.write_all_at(b"3456", 2).is_err());
        assert_eq!(content(&vfs, "f"), b"1234");
        vfs
    };
    let (first, second) = (run(), run());
    assert_eq!(first.trace_hash(), second.trace_hash());
    assert_eq!(first.recent_operations(), second.recent_operations());
    second.create_new(at("g")).unwrap();
    assert_ne!(first.trace_hash(), second.trace_hash());
}

#[test]
fn a_volume_can_be_full_and_locks_hold() {
    let vfs = SimVfs::new();
    vfs.set_capacity(100);
    let file = vfs.create_new(at("f")).unwrap();
    assert!(matches!(file.allocate(101), Err(Error::NoSpace { .. })));
    file.allocate(90).unwrap();
    assert_eq!(vfs.free_space(at("/")).unwrap(), 10);
    file.write_all_at(&[1; 90], 0).unwrap();
    assert!(matches!(file.write_all_at(&[1; 90], 11), Err(Error::NoSpace { .. })));
    vfs.remove_file(at("f")).unwrap();
    assert_eq!(vfs.free_space(at("/")).unwrap(), 100);
    let guard = vfs.lock(at("LOCK"), LockMode::Exclusive).unwrap();
    assert!(matches!(vfs.lock(at("LOCK"), LockMode::Shared), Err(Error::Locked { .. })));
    vfs.crash(Keep::All).lock(at("LOCK"), LockMode::Exclusive).unwrap();
    drop(guard);
    let _first = vfs.lock(at("LOCK"), LockMode::Shared).unwrap();
    let _second = vfs.lock(at("LOCK"), LockMode::Shared).unwrap();
    assert!(vfs.lock(at("LOCK"), LockMode::Exclusive).is_err());
}
