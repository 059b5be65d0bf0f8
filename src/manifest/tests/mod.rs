mod crash;
mod damage;
mod encoding;
mod state;

use super::*;
use crate::client::TableName;
use crate::schema::TableDescriptor;
use crate::vfs::{OsVfs, SimVfs};
use bytes::Bytes;
use std::collections::BTreeMap;

/// The store's directory on the simulated file system.
const ROOT: &str = "/s";

fn simulated() -> (SimVfs, Manifest) {
    let vfs = SimVfs::new();
    vfs.create_directory(Path::new(ROOT)).unwrap();
    vfs.sync_directory(Path::new("/")).unwrap();
    let manifest = Manifest::create(Arc::new(vfs.clone()), Path::new(ROOT), attributes(0o755)).unwrap().0;
    (vfs, manifest)
}

fn open(vfs: &SimVfs, read_only: bool) -> Result<(Manifest, ManifestState)> {
    Manifest::open(Arc::new(vfs.clone()), Path::new(ROOT), read_only)
}

/// The commits of a store's first days, in order.
fn days() -> Vec<Vec<ManifestEdit>> {
    let family = Bytes::from_static(b"cf");
    let add = |file_id| ManifestEdit::AddStoreFile { region: 3, family: family.clone(), file: file(file_id) };
    let remove = |file_id| ManifestEdit::RemoveStoreFile { region: 3, family: family.clone(), file_id };
    vec![
        vec![table(2, "t"), region(3, 2)],
        vec![add(1), ManifestEdit::SetFlushedSequenceId { region: 3, sequence_id: 10 }],
        vec![add(2), ManifestEdit::SetLogNumber { first_segment: 4 }],
        vec![
            add(3),
            remove(1),
            remove(2),
            ManifestEdit::SetHistoryCompleteSince { region: 3, family: family.clone(), since_millis: 7 },
        ],
        vec![ManifestEdit::RenameTable { id: 2, name: TableName::parse("u").unwrap() }],
        vec![ManifestEdit::CreateSnapshot(snapshot(4, 2, "s", 3))],
        vec![table(5, "v"), region(6, 5), region(7, 5)],
        vec![ManifestEdit::DropTable { id: 5 }, ManifestEdit::SetLastSequenceId { sequence_id: 500 }],
    ]
}

/// The states after each of the days, the empty store's first.
fn states(first: ManifestState) -> Vec<ManifestState> {
    let mut states = vec![first];
    for day in days() {
        let mut state = states.last().unwrap().clone();
        state.apply_all(&day).unwrap();
        states.push(state);
    }
    states
}

fn attributes(mode: u32) -> TableAttributes {
    TableAttributes { mode, uid: 1, gid: 2, changed_millis: -3, modified_millis: 4 }
}

fn file(file_id: u64) -> StoreFileEntry {
    StoreFileEntry {
        file_id,
        size: 1000,
        max_sequence_id: file_id * 10,
        entries: 7,
        tombstones: 1,
        min_timestamp: -1,
        max_timestamp: i64::MAX,
        first_row: Bytes::from_static(b"a"),
        last_row: Bytes::from_static(b"\xff\x00"),
        is_reference: file_id.is_multiple_of(2),
        created_millis: 5,
        major: true,
    }
}

fn table(id: u64, name: &str) -> ManifestEdit {
    ManifestEdit::CreateTable(TableEntry {
        id,
        name: TableName::parse(name).unwrap(),
        descriptor: Arc::new(TableDescriptor::with_family("cf")),
        attributes: attributes(0o755),
        created_millis: 99,
    })
}

/// A snapshot of region 3 with one file.
fn snapshot(id: u64, table: u64, name: &'static str, file_id: u64) -> SnapshotEntry {
    let store = StoreEntry { files: BTreeMap::from([(file_id, file(file_id))]), history_complete_since: Some(7) };
    let mut region = region_entry(3, table);
    region.stores = BTreeMap::from([(Bytes::from_static(b"cf"), store)]);
    SnapshotEntry {
        id,
        table,
        name: Bytes::from_static(name.as_bytes()),
        created_millis: 11,
        sequence_id: 30,
        automatic: true,
        descriptor: Arc::new(TableDescriptor::with_family("cf")),
        attributes: attributes(0o700),
        regions: vec![Arc::new(region)],
    }
}

fn region(id: u64, table: u64) -> ManifestEdit {
    ManifestEdit::AddRegion(region_entry(id, table))
}

fn region_entry(id: u64, table: u64) -> RegionEntry {
    RegionEntry {
        id,
        table,
        encoded_name: format!("{id:032x}"),
        start: Bytes::new(),
        end: Bytes::new(),
        parent: None,
        born_millis: 1,
        flushed_sequence_id: 0,
        stores: BTreeMap::new(),
    }
}

#[test]
fn commits_survive_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let vfs: Arc<dyn Vfs> = Arc::new(OsVfs::new());
    assert!(matches!(Manifest::open(vfs.clone(), dir.path(), false), Err(Error::NotAStore { .. })));
    let (manifest, state) = Manifest::create(vfs.clone(), dir.path(), attributes(0o755)).unwrap();
    assert_eq!(state.namespace("default").unwrap().id, DEFAULT_NAMESPACE_ID);
    assert_eq!(state.next_id, 2);
    let family = Bytes::from_static(b"cf");
    manifest.commit(&[table(2, "t"), region(3, 2)]).unwrap();
    manifest
        .commit(&[
            ManifestEdit::AddStoreFile { region: 3, family: family.clone(), file: file(7) },
            ManifestEdit::SetFlushedSequenceId { region: 3, sequence_id: 66 },
            ManifestEdit::SetHistoryCompleteSince { region: 3, family, since_millis: 12 },
        ])
        .unwrap();
    let refused = manifest.commit(&[table(9, "u"), table(10, "t")]);
    assert!(matches!(refused, Err(Error::NotAllowed(_))));
    let state = manifest.state();
    assert_eq!((state.next_id, state.next_file_id, state.max_sequence_id()), (4, 8, 70));
    assert!(state.is_live(7) && state.live_files().len() == 1);
    drop(manifest);
    for read_only in [true, false, false] {
        let (manifest, reopened) = Manifest::open(vfs.clone(), dir.path(), read_only).unwrap();
        assert_eq!(reopened, state);
        if read_only {
            assert!(matches!(manifest.commit(&[]), Err(Error::ReadOnly { .. })));
        }
    }
    assert_eq!(vfs.list(dir.path()).unwrap().len(), 2);
    assert!(matches!(Manifest::create(vfs, dir.path(), attributes(0)), Err(Error::NotAllowed(_))));
}
