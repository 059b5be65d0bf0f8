use super::*;
use crate::vfs::{Fault, Keep};

/// What a run was told.
struct Told {
    /// The states that were in force, oldest first; the last commit that was acknowledged made the last one.
    states: Vec<ManifestState>,
    /// The state a commit with an unknown end would have made.
    unknown: Option<ManifestState>,
    created: bool,
    errors: Vec<Error>,
}

/// Creation, commits, a reopening with its rewrite, a rewrite for size. Errors are noted, and life goes on as far as it can.
fn live(vfs: &SimVfs) -> Told {
    let mut told = Told { states: Vec::new(), unknown: None, created: false, errors: Vec::new() };
    let root = Path::new(ROOT);
    let manifest = match Manifest::create(Arc::new(vfs.clone()), root, attributes(1)) {
        Ok((manifest, state)) => {
            told.created = true;
            told.states.push(state);
            manifest
        }
        Err(error) => {
            told.errors.push(error);
            return told;
        }
    };
    let (first, second) = (days()[..4].to_vec(), days()[4..].to_vec());
    commit_all(&manifest, first, &mut told);
    drop(manifest);
    if told.unknown.is_some() {
        return told;
    }
    match open(vfs, false) {
        Ok((manifest, state)) => {
            assert_eq!(state, *told.states.last().unwrap());
            manifest.inner.lock().rewrite_bytes = 0;
            commit_all(&manifest, second, &mut told);
        }
        Err(error) => told.errors.push(error),
    }
    told
}

fn commit_all(manifest: &Manifest, days: Vec<Vec<ManifestEdit>>, told: &mut Told) {
    for day in days {
        let mut next = told.states.last().unwrap().clone();
        if next.apply_all(&day).is_err() {
            // A day before it was refused.
            continue;
        }
        match manifest.commit(&day) {
            Ok(()) => told.states.push(next),
            Err(error) => {
                if matches!(error, Error::Poisoned { .. }) && told.unknown.is_none() {
                    told.unknown = Some(next);
                }
                told.errors.push(error);
            }
        }
        assert_eq!(manifest.state(), *told.states.last().unwrap());
    }
}

fn check(crashed: &SimVfs, told: &Told, context: &str) {
    let wanted = told.states.last();
    let found = match open(crashed, false) {
        Ok((manifest, state)) => {
            let edit = ManifestEdit::SetLastSequenceId { sequence_id: 9999 };
            manifest.commit(std::slice::from_ref(&edit)).unwrap();
            let mut next = state.clone();
            next.apply(&edit).unwrap();
            assert_eq!(open(&crashed.crash(Keep::None), false).unwrap().1, next, "{context}: after going on");
            assert_eq!(crashed.list(Path::new(ROOT)).unwrap().len(), 2, "{context}: nothing is left over");
            state
        }
        Err(Error::NotAStore { .. }) if !told.created => {
            Manifest::create(Arc::new(crashed.clone()), Path::new(ROOT), attributes(1)).unwrap();
            return;
        }
        Err(error) => panic!("{context}: {error}"),
    };
    match wanted {
        Some(wanted) => assert!(found == *wanted || Some(&found) == told.unknown.as_ref(), "{context}: {found:#?}"),
        None => assert_eq!(found.tables.len(), 0),
    }
}

fn check_all_crashes(vfs: &SimVfs, told: &Told, context: &str) {
    vfs.clear_faults();
    check(&vfs.crash(Keep::None), told, &format!("{context}, nothing kept"));
    check(&vfs.crash(Keep::All), told, &format!("{context}, all kept"));
    for seed in 0..6 {
        check(&vfs.crash(Keep::Random(seed)), told, &format!("{context}, seed {seed}"));
    }
    assert_eq!(vfs.syncs_after_failure(), 0, "{context}");
}

fn fresh() -> SimVfs {
    let vfs = SimVfs::new();
    vfs.create_directory(Path::new(ROOT)).unwrap();
    vfs.sync_directory(Path::new("/")).unwrap();
    vfs
}

/// The numbers of the operations of an undisturbed life.
fn operations() -> std::ops::Range<u64> {
    let vfs = fresh();
    let first = vfs.operations();
    let told = live(&vfs);
    assert!(told.errors.is_empty(), "{:?}", told.errors);
    assert_eq!(told.states.len(), days().len() + 1);
    check_all_crashes(&vfs, &told, "undisturbed");
    first..vfs.operations()
}

#[test]
fn a_crash_at_any_operation_leaves_what_was_acknowledged() {
    for operation in operations() {
        let vfs = fresh();
        vfs.stop_at(operation);
        let told = live(&vfs);
        check_all_crashes(&vfs, &told, &format!("crash at {operation}"));
    }
}

#[test]
fn an_error_at_any_operation_is_all_or_nothing() {
    for operation in operations() {
        for fault in [Fault::Eio, Fault::ShortWrite] {
            let vfs = fresh();
            vfs.fail_at(operation, fault);
            let told = live(&vfs);
            check_all_crashes(&vfs, &told, &format!("{fault:?} at {operation}"));
        }
    }
}

#[test]
fn a_full_disk_at_any_operation_is_no_more_than_that() {
    for operation in operations() {
        let vfs = fresh();
        vfs.fail_at(operation, Fault::NoSpace);
        let told = live(&vfs);
        // A sync, or the switch to a rewritten manifest, that fails half-way leaves no certainty, whatever the reason.
        let uncertain = |line: &String| line.contains("NoSpace") && (line.contains("sync") || line.contains("rename"));
        let poisoned = told.errors.iter().any(|error| matches!(error, Error::Poisoned { .. }));
        assert!(!poisoned || vfs.recent_operations().iter().any(uncertain), "at {operation}: {:?}", told.errors);
        check_all_crashes(&vfs, &told, &format!("a full disk at {operation}"));
    }
}

#[test]
fn a_store_on_a_full_disk_opens_and_commits() {
    let (vfs, manifest) = simulated();
    let states = states(manifest.state());
    manifest.commit(&days()[0]).unwrap();
    drop(manifest);
    vfs.set_capacity(0);
    let (manifest, state) = open(&vfs, false).unwrap();
    assert_eq!(state, states[1]);
    manifest.commit(&days()[1]).unwrap();
    drop(manifest);
    vfs.set_capacity(1 << 30);
    assert_eq!(open(&vfs.crash(Keep::None), false).unwrap().1, states[2]);
}

#[test]
fn a_failed_sync_poisons_the_manifest() {
    let (vfs, manifest) = simulated();
    vfs.fail_at(vfs.operations() + 1, Fault::Eio);
    assert!(matches!(manifest.commit(&days()[0]), Err(Error::Poisoned { .. })));
    let operations = vfs.operations();
    assert!(matches!(manifest.commit(&[]), Err(Error::Poisoned { .. })));
    assert_eq!((vfs.operations(), vfs.syncs_after_failure()), (operations, 0));
    assert!(manifest.poisoned().is_some());
}

#[test]
fn a_large_manifest_is_rewritten() {
    let (vfs, manifest) = simulated();
    manifest.commit(&days()[0]).unwrap();
    manifest.inner.lock().rewrite_bytes = 1000;
    for sequence_id in 0..300 {
        manifest.commit(&[ManifestEdit::SetFlushedSequenceId { region: 3, sequence_id }]).unwrap();
        manifest.inner.lock().rewrite_bytes = 1000;
    }
    let names: Vec<String> = vfs.list(Path::new(ROOT)).unwrap().into_iter().map(|entry| entry.name).collect();
    assert!(names.len() == 2 && names[1] != "MANIFEST-0000000001", "{names:?}");
    assert_eq!(open(&vfs.crash(Keep::None), true).unwrap().1, manifest.state());
}
