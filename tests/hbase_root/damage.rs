//! What is missing or damaged is told, and concerns nothing else.

use crate::dump::{assert_same, dump, open, recorded, shared, unpack};
use cellfs::Error;
use cellfs::client::{Admin, Put, Table, TableName};
use cellfs::hbase_root::{HBaseRoot, HBaseRootOptions};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn refused(root: &Path) -> String {
    match HBaseRoot::open(root, &HBaseRootOptions::default()) {
        Ok(_) => panic!("{} is opened", root.display()),
        Err(error) => error.to_string(),
    }
}

fn table(root: &HBaseRoot, name: &str) -> Arc<dyn Table> {
    root.table(&TableName::parse(name).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files_below(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

#[test]
fn what_is_no_root_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    assert!(refused(&directory.path().join("missing")).contains("does not exist"));
    let said = refused(directory.path());
    assert!(said.contains("no HBase root directory") && said.contains("hbase.version"), "{said}");
    fs::write(directory.path().join("hbase.version"), b"PBUF\x0a\x0299").unwrap();
    let said = refused(directory.path());
    assert!(said.contains("99") && said.contains("not supported"), "{said}");
    fs::write(directory.path().join("hbase.version"), b"nonsense").unwrap();
    assert!(refused(directory.path()).contains("hbase.version is damaged"));
}

#[test]
fn a_damaged_file_concerns_its_table_alone() {
    let Some(shared) = shared("rootdir") else { return };
    let (directory, expected) = (unpack(&shared.join("flushed.tar.zst")), shared.join("flushed.expected"));
    let orders = directory.path().join("data/shop/orders");
    let is_store_file = |path: &PathBuf| path.parent().unwrap().ends_with("d");
    let victim = files_below(&orders).into_iter().find(is_store_file).unwrap();
    let bytes = fs::read(&victim).unwrap();
    fs::write(&victim, &bytes[..bytes.len() / 2]).unwrap();
    fs::write(directory.path().join("data/shop/rules/.tabledesc/.tableinfo.0000000002.9"), b"PBUF\xff\xff").unwrap();
    for descriptor in files_below(&directory.path().join("data/shop/bulk/.tabledesc")) {
        fs::write(descriptor, b"PBUF\xff\xff").unwrap();
    }
    let root = open(directory.path());
    match dump(table(&root, "shop:orders").as_ref(), false) {
        Err(Error::Corruption { file, .. }) => assert_eq!(file, victim),
        other => panic!("{:?}", other.map(|lines| lines.len())),
    }
    // The newest descriptor that can be read counts; without any the table is there and says why it cannot be read.
    let rules = dump(table(&root, "shop:rules").as_ref(), false).unwrap();
    assert_same(&rules, &recorded(&expected.join("shop.rules.jsonl")), "rules");
    let bulk = root.table(&TableName::parse("shop:bulk").unwrap()).err().unwrap().to_string();
    assert!(bulk.contains(".tableinfo"), "{bulk}");
    assert!(root.report().remarks.iter().any(|remark| remark.contains("shop:bulk")), "{:?}", root.report());
    let codecs = dump(table(&root, "shop:codecs").as_ref(), false).unwrap();
    assert_same(&codecs, &recorded(&expected.join("shop.codecs.jsonl")), "codecs");
}

#[test]
fn without_meta_regions_are_chosen_by_age() {
    let Some(shared) = shared("rootdir") else { return };
    let (directory, expected) = (unpack(&shared.join("flushed.tar.zst")), shared.join("flushed.expected"));
    fs::remove_dir_all(directory.path().join("data/hbase")).unwrap();
    let root = open(directory.path());
    assert!(root.report().remarks.iter().any(|remark| remark.contains("hbase:meta")), "{:?}", root.report());
    for name in ["shop:halves", "shop:merged", "depot:clone2", "shop:orders", "shop:off"] {
        let shown = dump(table(&root, name).as_ref(), true).unwrap();
        assert_same(&shown, &recorded(&expected.join(format!("{}.raw.jsonl", name.replace(':', ".")))), name);
    }
}

#[test]
fn snapshots_alone_are_enough() {
    let Some(shared) = shared("rootdir") else { return };
    let (directory, expected) = (unpack(&shared.join("flushed.tar.zst")), shared.join("flushed.expected"));
    let gone = TableName::parse("shop:gone").unwrap();
    let whole = open(directory.path());
    assert!(!whole.list_tables("shop").unwrap().contains(&gone), "a dropped table is not listed");
    assert!(dump(whole.table(&gone).unwrap().as_ref(), true).unwrap().is_empty());
    for unneeded in ["data", "WALs", "oldWALs", "MasterData"] {
        let _ = fs::remove_dir_all(directory.path().join(unneeded));
    }
    fs::remove_file(directory.path().join("hbase.version")).unwrap();
    let root = open(directory.path());
    assert!(root.list_tables("shop").unwrap().contains(&gone), "nothing else is there to be listed");
    for (name, snapshot) in [("shop:gone", "gone_v1"), ("shop:changed", "changed_v1")] {
        let table = root.open_snapshot(&TableName::parse(name).unwrap(), snapshot.as_bytes()).unwrap();
        let shown = dump(table.as_ref(), true).unwrap();
        assert_same(&shown, &recorded(&expected.join(format!("snapshot.{snapshot}.raw.jsonl"))), snapshot);
    }
    let orders = root.open_snapshot(&TableName::parse("shop:orders").unwrap(), b"orders_v1").unwrap();
    let said = dump(orders.as_ref(), false).unwrap_err().to_string();
    assert!(said.contains("neither in data/ nor in archive/"), "{said}");
    assert!(matches!(root.open_snapshot(&gone, b"other"), Err(Error::NoSuchSnapshot(_))));
}

#[test]
fn logs_that_cannot_be_read_are_counted() {
    let Some(shared) = shared("rootdir") else { return };
    let directory = unpack(&shared.join("crashed.tar.zst"));
    let whole = open(directory.path()).report().clone();
    assert!(whole.logs_read == 4 && whole.logs_not_read == 0 && whole.cells_replayed > 50, "{whole:?}");
    let logs = files_below(&directory.path().join("WALs"));
    let log = logs.iter().find(|path| path.extension().is_none_or(|extension| extension != "meta")).unwrap();
    let bytes = fs::read(log).unwrap();
    fs::write(log, &bytes[..bytes.len() - 5]).unwrap();
    let torn = open(directory.path()).report().clone();
    assert_eq!((torn.logs_torn, torn.logs_not_read), (1, 0), "{torn:?}");
    fs::write(log, b"PWAL\x02\x12\x00").unwrap();
    let unread = open(directory.path()).report().clone();
    assert_eq!((unread.logs_read, unread.logs_not_read), (3, 1), "{unread:?}");
    assert!(unread.remarks.iter().any(|remark| remark.contains("encrypted")), "{unread:?}");
    let facts = unread.facts();
    assert!(facts.contains(&("logs_not_read".to_owned(), "1".to_owned())), "{facts:?}");
}

#[test]
fn nothing_is_written() {
    let Some(shared) = shared("rootdir") else { return };
    let directory = unpack(&shared.join("flushed.tar.zst"));
    let before = files_below(directory.path());
    let root = open(directory.path());
    let orders = table(&root, "shop:orders");
    assert!(matches!(orders.put(Put::new("r").add("d", "q", "v")), Err(Error::ReadOnly { .. })));
    assert!(matches!(root.drop_table(&orders.name()), Err(Error::ReadOnly { .. })));
    assert!(matches!(root.flush_table(&orders.name()), Err(Error::ReadOnly { .. })));
    assert!(root.read_only_reason().is_some());
    assert!(dump(table(&root, "hbase:meta").as_ref(), false).unwrap().len() > 50);
    assert!(!root.list_namespaces().unwrap().contains(&"hbase".to_owned()));
    drop(root);
    assert_eq!(files_below(directory.path()), before);
}

/// Small files that say what there is, each damaged at some bytes: whatever is shown then, nothing ends the reader.
#[test]
fn damaged_descriptions_are_survived() {
    let Some(shared) = shared("rootdir") else { return };
    let directory = unpack(&shared.join("flushed.tar.zst"));
    let describes = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        let below = |part: &str| path.to_string_lossy().contains(part);
        (below("/shop/halves/") || below("/shop/tracked/") || below("/.hbase-snapshot/gone_v1/"))
            && fs::metadata(path).unwrap().len() < 5000
            && (name.starts_with('.') || name.starts_with('f') || name.contains('.') || below(".snap"))
    };
    let victims: Vec<_> = files_below(directory.path()).into_iter().filter(describes).collect();
    assert!(victims.len() >= 8, "{victims:?}");
    for (number, victim) in victims.iter().enumerate() {
        let bytes = fs::read(victim).unwrap();
        if bytes.is_empty() {
            continue;
        }
        for at in [number % bytes.len(), bytes.len() / 2, bytes.len() - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (number % 8);
            fs::write(victim, damaged).unwrap();
            let root = open(directory.path());
            for name in ["shop:halves", "shop:tracked"] {
                if let Ok(table) = root.table(&TableName::parse(name).unwrap()) {
                    let _ = dump(table.as_ref(), true);
                }
            }
            if let Ok(table) = root.open_snapshot(&TableName::parse("shop:gone").unwrap(), b"gone_v1") {
                let _ = dump(table.as_ref(), true);
            }
        }
        fs::write(victim, &bytes).unwrap();
    }
}
