//! A store file whose bytes are wrong or missing: what needs it fails and says which file it is, everything else goes on, and nothing removes it.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that meets the unexpected has failed"
)]

use bytes::Bytes;
use cellfs::Error;
use cellfs::client::{Admin, Get, Put, Scan, TableAttributes, TableName};
use cellfs::clock::ManualClock;
use cellfs::schema::{ColumnFamilyDescriptor, TableDescriptor};
use cellfs::server::{BackgroundMode, Store, StoreOptions};
use cellfs::vfs::{Fault, FaultRule, SimOperation, SimVfs, Vfs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const ATTRIBUTES: TableAttributes =
    TableAttributes { mode: 0o755, uid: 1, gid: 2, changed_millis: 3, modified_millis: 4 };

fn name(name: &str) -> TableName {
    TableName::parse(name).unwrap()
}

fn try_open(vfs: &SimVfs) -> cellfs::Result<Store> {
    let options = StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() };
    Store::open_with(Arc::new(vfs.clone()), Arc::new(ManualClock::new(1_800_000_000_000)), Path::new("/s"), options)
}

fn put(store: &Store, table: &str, row: &str) {
    store.table(&name(table)).unwrap().put(Put::new(row.to_owned()).add("cf", "q", row.to_owned())).unwrap();
}

fn rows(store: &Store, table: &str, scan: &Scan) -> cellfs::Result<Vec<Bytes>> {
    let mut scanner = store.table(&name(table)).unwrap().scan(scan)?;
    let mut rows = Vec::new();
    while let Some(row) = scanner.next()? {
        rows.push(Bytes::copy_from_slice(row.row()));
    }
    Ok(rows)
}

fn range(start: &str, stop: &str) -> Scan {
    Scan { start_row: start.to_owned().into(), stop_row: stop.to_owned().into(), ..Scan::new() }
}

/// Tables `a` (rows a00 to a49 in one file, b00 to b49 in the next) and `other`; returns the older file of `a`.
fn filled(vfs: &SimVfs) -> PathBuf {
    let store = try_open(vfs).unwrap();
    for table in ["a", "other"] {
        store.create_table(&name(table), TableDescriptor::with_family("cf"), &[], ATTRIBUTES).unwrap();
    }
    for number in 0..50 {
        put(&store, "a", &format!("a{number:02}"));
        put(&store, "other", &format!("{number:02}"));
    }
    store.flush_table(&name("a")).unwrap();
    store.flush_table(&name("other")).unwrap();
    let file = store.open_regions(&name("a")).unwrap()[0].stores()[0].files().as_slice()[0].file.path();
    for number in 0..50 {
        put(&store, "a", &format!("b{number:02}"));
    }
    store.flush_table(&name("a")).unwrap();
    store.close().unwrap();
    file
}

fn content(vfs: &SimVfs, path: &Path) -> Vec<u8> {
    let file = vfs.open_read(path).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn replace(vfs: &SimVfs, path: &Path, bytes: &[u8]) {
    if vfs.exists(path).unwrap() {
        vfs.remove_file(path).unwrap();
    }
    let file = vfs.create_new(path).unwrap();
    file.write_all_at(bytes, 0).unwrap();
    file.sync_all().unwrap();
    vfs.sync_directory(path.parent().unwrap()).unwrap();
}

/// Everything that is there is read; what needs the file says so.
fn check_reads(store: &Store, file: &Path, context: &str) {
    let located = |error: Error| {
        assert!(error.to_string().contains(&file.display().to_string()), "{context}: {error}");
    };
    let table = store.table(&name("a")).unwrap();
    let get = |row: &str| table.get(&Get::new(row.to_owned()));
    assert_eq!(get("b07").unwrap().cells.len(), 1, "{context}");
    assert!(get("a99").unwrap().is_empty() && get("zz").unwrap().is_empty(), "{context}: no file spans these rows");
    located(get("a07").unwrap_err());
    located(table.exists(&Get::new("a07")).unwrap_err());
    located(rows(store, "a", &Scan::new()).unwrap_err());
    located(rows(store, "a", &Scan { reversed: true, ..Scan::new() }).unwrap_err());
    located(rows(store, "a", &range("a49", "b01")).unwrap_err());
    located(rows(store, "a", &Scan { first_cell_only: true, ..range("a", "b") }).unwrap_err());
    assert_eq!(rows(store, "a", &range("b", "c")).unwrap().len(), 50, "{context}");
    assert_eq!(rows(store, "other", &Scan::new()).unwrap().len(), 50, "{context}");
    let damaged = store.damaged_files();
    assert!(!damaged.is_empty(), "{context}");
    for found in damaged {
        assert_eq!((&found.table, &found.path, &found.family[..]), (&name("a"), &file.to_path_buf(), &b"cf"[..]));
    }
}

/// Whether the manifest has the file still.
fn is_live(store: &Store, file: &Path) -> bool {
    let stores = store.open_regions(&name("a")).unwrap();
    let files = stores.iter().flat_map(|region| region.stores()).flat_map(|store| store.files().as_slice().to_vec());
    files.into_iter().any(|view| view.file.path() == file)
}

fn go_on(vfs: &SimVfs, file: &Path, context: &str) {
    let store = try_open(vfs).unwrap_or_else(|error| panic!("{context}: {error}"));
    check_reads(&store, file, context);
    // Writes go on, and newer files are rewritten among themselves.
    for round in 0..12 {
        put(&store, "a", &format!("c{round:02}"));
        put(&store, "a", "a07");
        store.flush_table(&name("a")).unwrap();
    }
    store.run_pending_work().unwrap();
    store.compact_table(&name("a"), None).unwrap();
    let files = store.open_regions(&name("a")).unwrap()[0].stores()[0].files().len();
    assert!(files < 10, "{context}: {files} files");
    assert!(store.major_compact_table(&name("a"), None).unwrap_err().to_string().contains(&file.display().to_string()));
    assert!(is_live(&store, file), "{context}");
    check_reads(&store, file, context);
    // A split gives it to the daughters that need it.
    store.split_table(&name("a"), Some(b"a30")).unwrap();
    store.run_pending_work().unwrap();
    assert_eq!(store.open_regions(&name("a")).unwrap().len(), 2);
    check_reads(&store, file, context);
    store.create_snapshot(&name("a"), b"s").unwrap();
    let snapshot = store.open_snapshot(&name("a"), b"s").unwrap();
    assert!(snapshot.get(&Get::new("a07")).is_err() && snapshot.get(&Get::new("b07")).unwrap().cells.len() == 1);
    drop(snapshot);
    store.delete_snapshot(&name("a"), b"s").unwrap();
    store.close().unwrap();
    let store = try_open(vfs).unwrap();
    check_reads(&store, file, context);
    assert!(is_live(&store, file), "{context}");
}

#[test]
fn one_damaged_file_keeps_nothing_else_from_being_used() {
    type Damage = fn(&SimVfs, &Path);
    let damages: [(&str, Damage); 5] = [
        ("a flipped bit of the trailer", |vfs, path| {
            let mut bytes = content(vfs, path);
            let place = bytes.len() - 4096 + 20;
            bytes[place] ^= 1;
            replace(vfs, path, &bytes);
        }),
        ("cut in half", |vfs, path| {
            let bytes = content(vfs, path);
            replace(vfs, path, &bytes[..bytes.len() / 2]);
        }),
        ("cut to nothing", |vfs, path| replace(vfs, path, &[])),
        ("missing", |vfs, path| vfs.remove_file(path).unwrap()),
        ("another file", |vfs, path| replace(vfs, path, &[0x5A; 10_000])),
    ];
    for (context, damage) in damages {
        let vfs = SimVfs::new();
        let file = filled(&vfs);
        let sound = content(&vfs, &file);
        damage(&vfs, &file);
        go_on(&vfs, &file, context);
        assert_eq!(vfs.exists(&file).unwrap(), context != "missing", "{context}: nothing removes it");
        // Put back, it is read again, without opening anew.
        let store = try_open(&vfs).unwrap();
        replace(&vfs, &file, &sound);
        assert_eq!(rows(&store, "a", &Scan::new()).unwrap().len(), 112, "{context}");
        assert_eq!(store.damaged_files(), [], "{context}");
        store.run_pending_work().unwrap();
        store.major_compact_table(&name("a"), None).unwrap();
        assert_eq!(rows(&store, "a", &Scan::new()).unwrap().len(), 112, "{context}");
        assert!(!is_live(&store, &file) && !vfs.exists(&file).unwrap(), "{context}: it is rewritten like others");
    }
}

#[test]
fn a_file_whose_blocks_cannot_be_read_is_named_as_well() {
    let vfs = SimVfs::new();
    let file = filled(&vfs);
    let of_file = Some(file.display().to_string());
    vfs.add_fault(FaultRule {
        operation: Some(SimOperation::Read),
        path: of_file,
        skip: 0,
        times: u64::MAX,
        fault: Fault::Eio,
    });
    go_on(&vfs, &file, "EIO");
    vfs.clear_faults();
    assert_eq!(rows(&try_open(&vfs).unwrap(), "a", &Scan::new()).unwrap().len(), 112);
}

#[test]
fn damage_that_a_compaction_meets_holds_up_no_other() {
    let vfs = SimVfs::new();
    let file = filled(&vfs);
    let mut bytes = content(&vfs, &file);
    bytes[40] ^= 1;
    replace(&vfs, &file, &bytes);
    let store = try_open(&vfs).unwrap();
    assert_eq!(store.damaged_files(), [], "nobody has read the block yet");
    for round in 0..5 {
        for table in ["a", "other"] {
            put(&store, table, &format!("z{round}"));
            store.flush_table(&name(table)).unwrap();
        }
    }
    store.run_pending_work().unwrap();
    let files = |table: &str| store.open_regions(&name(table)).unwrap()[0].stores()[0].files().len();
    assert_eq!(store.damaged_files().len(), 1, "{:?}", store.damaged_files());
    assert!(files("other") < 4 && files("a") < 7, "{} {}", files("other"), files("a"));
    assert!(is_live(&store, &file));
    assert!(rows(&store, "a", &Scan::new()).is_err());
    assert_eq!(rows(&store, "a", &range("b", "c")).unwrap().len(), 50);
}

#[test]
fn what_removes_all_removes_a_damaged_file_too() {
    let vfs = SimVfs::new();
    let file = filled(&vfs);
    replace(&vfs, &file, &[]);
    let store = try_open(&vfs).unwrap();
    // A family is not seen to be empty while it cannot be read.
    store
        .alter_table(&name("a"), &|present| {
            let mut wanted = present.clone();
            wanted.families.insert("new".into(), ColumnFamilyDescriptor::default());
            wanted.families.remove(&b"cf"[..]);
            Ok(wanted)
        })
        .unwrap_err();
    assert!(is_live(&store, &file));
    store.truncate_table(&name("a")).unwrap();
    assert_eq!(rows(&store, "a", &Scan::new()).unwrap().len(), 0);
    assert_eq!((store.damaged_files().len(), vfs.exists(&file).unwrap()), (0, false));
}

#[test]
fn files_that_have_expired_stay_while_they_are_damaged() {
    let vfs = SimVfs::new();
    let file = filled(&vfs);
    let damaged = content(&vfs, &file);
    replace(&vfs, &file, &damaged[..100]);
    let store = try_open(&vfs).unwrap();
    let mut descriptor = (*store.table(&name("a")).unwrap().descriptor()).clone();
    descriptor.families.get_mut(&b"cf"[..]).unwrap().ttl_seconds = 1;
    store.modify_table(&name("a"), descriptor).unwrap();
    store.close().unwrap();
    let clock = Arc::new(ManualClock::new(1_900_000_000_000));
    let options = StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() };
    let store = Store::open_with(Arc::new(vfs.clone()), clock, Path::new("/s"), options).unwrap();
    store.run_pending_work().unwrap();
    store.compact_table(&name("a"), None).unwrap();
    assert!(is_live(&store, &file) && vfs.exists(&file).unwrap());
}

/// What says nothing about the file does not make it damaged: the opening fails and can be tried again.
#[test]
fn a_file_that_may_not_be_opened_now_is_not_called_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let options = || StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() };
    let store = Store::open(directory.path().join("s"), options()).unwrap();
    store.create_table(&name("a"), TableDescriptor::with_family("cf"), &[], ATTRIBUTES).unwrap();
    put(&store, "a", "r");
    store.flush_table(&name("a")).unwrap();
    let file = store.open_regions(&name("a")).unwrap()[0].stores()[0].files().as_slice()[0].file.path();
    store.close().unwrap();
    // Not even root can open a loop of links.
    let aside = file.with_extension("aside");
    std::fs::rename(&file, &aside).unwrap();
    std::os::unix::fs::symlink(&file, &file).unwrap();
    assert!(Store::open(directory.path().join("s"), options()).is_err());
    std::fs::remove_file(&file).unwrap();
    std::fs::rename(&aside, &file).unwrap();
    let store = Store::open(directory.path().join("s"), options()).unwrap();
    assert_eq!(rows(&store, "a", &Scan::new()).unwrap().len(), 1);
}
