//! The store's own numbers: in force at once, kept over an end, refused as a whole.

#![allow(missing_docs, clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

use cellfs::Error;
use cellfs::client::{Admin, Put, TableAttributes, TableName};
use cellfs::schema::TableDescriptor;
use cellfs::server::{Store, StoreOptions};
use std::fs;

fn attributes() -> TableAttributes {
    TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 }
}

#[test]
fn settings_are_in_force_at_once_and_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().join("s");
    let store = Store::open(&root, StoreOptions::default()).expect("a new store");
    let name = TableName::parse("t").expect("a name");
    let table = store.create_table(&name, TableDescriptor::with_family("cf"), &[], attributes()).expect("a table");
    table.put(Put::new("r").add("cf", "a", vec![b'x'; 3000])).expect("far below the limit");
    assert!(!root.join("CONFIG").exists(), "nothing differs from the defaults");

    let text = "cell.max = \"2KB\"\ncompaction.threads = 3\nwal.sync_interval = \"20ms\"\n";
    let settings = store.settings().changed_by(text).expect("good settings");
    store.update_settings(&settings).expect("it is written");
    let refused = table.put(Put::new("r").add("cf", "a", vec![b'x'; 3000]));
    assert!(matches!(refused, Err(Error::CellTooLarge { limit: 2048, .. })), "{refused:?}");
    assert_eq!(
        fs::read_to_string(root.join("CONFIG")).expect("there"),
        "compaction.threads = 3\ncell.max = \"2KB\"\nwal.sync_interval = \"20ms\"\n"
    );
    drop(table);
    store.close().expect("a clean end");

    let store = Store::open(&root, StoreOptions::default()).expect("it opens again");
    assert_eq!(store.settings(), settings);
    store.close().expect("a clean end");
    let reader = Store::open(&root, StoreOptions { read_only: true, ..StoreOptions::default() }).expect("for reading");
    assert_eq!(reader.settings(), settings);
    assert!(matches!(reader.update_settings(&settings), Err(Error::ReadOnly { .. })));
    drop(reader);

    fs::write(root.join("CONFIG"), "\ncell.max = 0\n").expect("write");
    let error = Store::open(&root, StoreOptions::default()).err().expect("refused").to_string();
    assert!(error.contains("CONFIG") && error.contains("line 2"), "{error}");
}
