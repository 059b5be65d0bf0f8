use super::*;

fn lived() -> ManifestState {
    let mut state = ManifestState::default();
    let namespace = |id, name: &str| {
        ManifestEdit::CreateNamespace(NamespaceEntry {
            id,
            name: name.into(),
            descriptor: Arc::default(),
            attributes: attributes(7),
        })
    };
    state.apply_all(&[namespace(1, "default"), namespace(20, "ns")]).unwrap();
    for day in days() {
        state.apply_all(&day).unwrap();
    }
    state
}

#[test]
fn edits_that_do_not_fit_change_nothing() {
    let family = Bytes::from_static(b"cf");
    let name = |name: &str| TableName::parse(name).unwrap();
    let state = lived();
    let misfits = [
        table(2, "other"),
        table(30, "u"),
        table(30, "nowhere:t"),
        ManifestEdit::ModifyTable { id: 9, descriptor: Arc::default() },
        ManifestEdit::RenameTable { id: 9, name: name("x") },
        ManifestEdit::RenameTable { id: 2, name: name("nowhere:x") },
        ManifestEdit::DropTable { id: 9 },
        ManifestEdit::DropNamespace { id: 1 },
        ManifestEdit::DropNamespace { id: 2 },
        ManifestEdit::SetNamespaceAttributes { id: 2, attributes: attributes(1) },
        region(3, 2),
        region(40, 9),
        ManifestEdit::RemoveRegion { id: 6 },
        ManifestEdit::SetFlushedSequenceId { region: 6, sequence_id: 1 },
        ManifestEdit::AddStoreFile { region: 3, family: family.clone(), file: file(3) },
        ManifestEdit::RemoveStoreFile { region: 3, family: family.clone(), file_id: 1 },
        ManifestEdit::RemoveStore { region: 6, family },
        ManifestEdit::DropTable { id: 2 },
        ManifestEdit::CreateSnapshot(snapshot(30, 9, "a", 3)),
        ManifestEdit::CreateSnapshot(snapshot(30, 2, "s", 3)),
        ManifestEdit::CreateSnapshot(snapshot(4, 2, "a", 3)),
        ManifestEdit::DeleteSnapshot { id: 9 },
        ManifestEdit::RenameSnapshot { id: 9, name: Bytes::from_static(b"x") },
    ];
    for misfit in misfits {
        let mut changed = state.clone();
        assert!(matches!(changed.apply(&misfit), Err(Error::NotAllowed(_))), "{misfit:?}");
        assert_eq!(changed, state, "{misfit:?}");
        assert!(changed.apply_all(&[ManifestEdit::SetLastSequenceId { sequence_id: 600 }, misfit]).is_err());
        assert_eq!(changed, state);
    }
}

#[test]
fn marks_and_counters_never_move_back() {
    let mut state = lived();
    let family = Bytes::from_static(b"cf");
    let before = state.clone();
    state
        .apply_all(&[
            ManifestEdit::SetLogNumber { first_segment: 1 },
            ManifestEdit::SetLastSequenceId { sequence_id: 1 },
            ManifestEdit::SetNextIds { next_id: 1, next_file_id: 1 },
            ManifestEdit::SetFlushedSequenceId { region: 3, sequence_id: 1 },
            ManifestEdit::SetHistoryCompleteSince { region: 3, family, since_millis: -5 },
        ])
        .unwrap();
    assert_eq!(state, before);
    assert_eq!((state.next_id, state.next_file_id), (21, 4), "identities of what was dropped are not free");
}

#[test]
fn a_file_lives_as_long_as_any_region_has_it() {
    let mut state = lived();
    let family = Bytes::from_static(b"cf");
    let mut daughters = Vec::new();
    for (id, start, end) in [(30, "", "m"), (31, "m", "")] {
        let ManifestEdit::AddRegion(mut entry) = region(id, 2) else { unreachable!() };
        (entry.start, entry.end, entry.parent) = (start.into(), end.into(), Some(format!("{:032x}", 3)));
        entry.stores = state.regions[&3].stores.clone();
        daughters.push(ManifestEdit::AddRegion(entry));
    }
    daughters.insert(0, ManifestEdit::RemoveRegion { id: 3 });
    state.apply_all(&daughters).unwrap();
    assert_eq!(state.regions_of(2).iter().map(|region| region.id).collect::<Vec<_>>(), [30, 31]);
    for (region, alive) in [(31, true), (30, true)] {
        state.apply(&ManifestEdit::RemoveStoreFile { region, family: family.clone(), file_id: 3 }).unwrap();
        assert_eq!(state.is_live(3), alive);
        assert_eq!(state.live_files().contains(&3), alive);
    }
    // The snapshot of the second region has it still.
    state.apply(&ManifestEdit::RenameSnapshot { id: 4, name: Bytes::from_static(b"mine") }).unwrap();
    let kept = state.snapshot(2, b"mine").unwrap();
    assert!(!kept.automatic && state.is_live(3));
    state.apply(&ManifestEdit::DeleteSnapshot { id: 4 }).unwrap();
    assert!(!state.is_live(3) && state.live_files().is_empty());
    state.apply(&ManifestEdit::DropTable { id: 2 }).unwrap();
}

#[test]
fn a_state_can_be_told_as_edits() {
    let state = lived();
    let mut again = ManifestState::default();
    again.apply_all(&state.to_edits()).unwrap();
    assert_eq!(again, state);
}
