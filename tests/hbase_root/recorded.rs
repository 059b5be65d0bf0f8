//! Recorded root directories.

use crate::dump::{assert_same, dump, open, recorded, shared, unpack};
use cellfs::client::{Admin, Get, Scan, Table, TableName};
use cellfs::hbase_root::HBaseRoot;
use cellfs::schema::{KeySpelling, describe_table};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn json(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Files of a directory that end so, with what is before.
fn named(directory: &Path, end: &str) -> Vec<(String, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let stem = name.strip_suffix(end)?.to_owned();
            Some((stem, directory.join(name)))
        })
        .collect();
    found.sort();
    found
}

/// `namespace.table` or `snapshot.name`.
fn table_of(root: &HBaseRoot, stem: &str, expected: &Path) -> std::sync::Arc<dyn Table> {
    let (namespace, name) = stem.split_once('.').unwrap();
    if namespace == "snapshot" {
        let all = json(&expected.join("snapshots.json"));
        let known = all["snapshots"].as_array().unwrap().iter().find(|known| known["snapshot"] == name).unwrap();
        let table = TableName::parse(known["table"].as_str().unwrap()).unwrap();
        let listed = root.list_snapshots(&table).unwrap();
        let info = listed.iter().find(|info| info.name == name).unwrap_or_else(|| panic!("{name} in {listed:?}"));
        assert_eq!(known["created"], info.created_millis);
        return root.open_snapshot(&table, name.as_bytes()).unwrap();
    }
    root.table(&TableName::new(namespace, name).unwrap()).unwrap_or_else(|error| panic!("{stem}: {error}"))
}

/// Compares all dumps below `dumps` whose names begin so.
fn compare_dumps(root: &HBaseRoot, dumps: &Path, expected: &Path, begin: &str) -> usize {
    let mut compared = 0;
    for (stem, path) in named(dumps, ".jsonl").into_iter().filter(|(stem, _)| stem.starts_with(begin)) {
        let (stem, raw) = match stem.strip_suffix(".raw") {
            Some(stem) => (stem.to_owned(), true),
            None => (stem, false),
        };
        let table = table_of(root, &stem, expected);
        let what = path.display().to_string();
        assert_same(
            &dump(table.as_ref(), raw).unwrap_or_else(|error| panic!("{what}: {error}")),
            &recorded(&path),
            &what,
        );
        if !raw {
            reads_agree(table.as_ref(), &what);
        }
        compared += 1;
    }
    compared
}

/// A reversed scan and gets give what the scan gives.
fn reads_agree(table: &dyn Table, what: &str) {
    let all = |scan: Scan| {
        let mut rows = Vec::new();
        let mut scanner = table.scan(&scan).unwrap();
        while let Some(row) = scanner.next().unwrap() {
            rows.push(row);
        }
        rows
    };
    let forward = all(Scan { max_versions: u32::MAX, ..Scan::new() });
    let mut reversed = all(Scan { max_versions: u32::MAX, reversed: true, ..Scan::new() });
    reversed.reverse();
    assert_eq!(forward, reversed, "{what}");
    for row in &forward {
        let get = Get { max_versions: u32::MAX, ..Get::new(row.row().to_vec()) };
        assert_eq!(&table.get(&get).unwrap(), row, "{what}");
        let cell = &row.cells[0];
        let get = Get::new(row.row().to_vec()).column(cell.family().to_vec(), cell.qualifier().to_vec());
        assert_eq!(table.get(&get).unwrap().cells.first(), Some(cell), "{what}");
    }
}

struct Plain;

impl KeySpelling for Plain {
    fn spell_row(&self, row: &[u8]) -> String {
        cellfs::hfile::to_string_binary(row)
    }

    fn parse_row(&self, _: &str) -> Option<bytes::Bytes> {
        None
    }

    fn spell_family(&self, family: &[u8]) -> String {
        cellfs::hfile::to_string_binary(family)
    }

    fn spell_qualifier(&self, qualifier: &[u8]) -> String {
        cellfs::hfile::to_string_binary(qualifier)
    }

    fn parse_qualifier(&self, _: &str) -> Option<bytes::Bytes> {
        None
    }

    fn parse_family(&self, _: &str) -> Option<bytes::Bytes> {
        None
    }
}

/// HBase's text of an attribute, out of the schema that is shown.
fn shown_value(text: &toml::Value) -> String {
    match text {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn same_attribute(shown: &str, hbases: &str) -> bool {
    let sizes = [("KB", 1u64 << 10), ("MB", 1 << 20), ("GB", 1 << 30)];
    let bytes = |text: &str| {
        sizes.iter().find_map(|(unit, size)| text.strip_suffix(unit)?.trim().parse::<u64>().ok().map(|n| n * size))
    };
    shown == hbases
        || bytes(shown).is_some_and(|bytes| bytes.to_string() == hbases)
        || shown == "FOREVER" && hbases == "2147483647"
}

fn compare_schema(root: &HBaseRoot, stem: &str, path: &Path, expected: &Path) {
    let schema = json(path);
    let table = table_of(root, stem, expected);
    let descriptor = table.descriptor();
    let shown: toml::Table = describe_table(&descriptor, &[], &Plain).parse().unwrap();
    let attribute = |section: &toml::Value, name: &str| {
        section.get(name).or_else(|| section.get("metadata")?.get(name)).map(shown_value)
    };
    for (name, value) in schema["attributes"].as_object().unwrap() {
        let found = attribute(&shown["table"], name).unwrap_or_else(|| panic!("{stem} has no {name}"));
        assert!(same_attribute(&found, value.as_str().unwrap()), "{stem} {name}: {found}, not {value}");
    }
    let families = schema["families"].as_object().unwrap();
    assert_eq!(families.len(), descriptor.families.len(), "{stem}");
    for (family, attributes) in families {
        let section = &shown["family"][family.as_str()];
        for (name, value) in attributes.as_object().unwrap() {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let Some(found) = attribute(section, name) else {
                assert_eq!(name, "configuration", "{stem} {family}");
                continue;
            };
            assert!(same_attribute(&found, &value), "{stem} {family} {name}: {found}, not {value}");
        }
    }
    if stem.starts_with("snapshot.") {
        return;
    }
    let name = table.name();
    let regions: Vec<_> = root
        .regions(&name)
        .unwrap()
        .into_iter()
        .map(|region| {
            let text = cellfs::hfile::to_string_binary;
            (region.encoded_name.clone(), text(&region.start), text(&region.end))
        })
        .collect();
    let field = |region: &Value, name: &str| region[name].as_str().unwrap().to_owned();
    let recorded: Vec<_> = schema["regions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|region| (field(region, "encoded"), field(region, "start"), field(region, "end")))
        .collect();
    assert_eq!(regions, recorded, "{stem}");
    assert_eq!(root.report().disabled_tables.contains(&name), !schema["enabled"].as_bool().unwrap(), "{stem}");
}

fn compare_lists(root: &HBaseRoot, expected: &Path) {
    let list = json(&expected.join("list.json"));
    let namespaces: BTreeSet<String> = list["namespaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|namespace| {
            let name = namespace["namespace"].as_str().unwrap().to_owned();
            let metadata = &root.namespace(&name).unwrap().1.metadata;
            for (key, value) in namespace["configuration"].as_object().unwrap() {
                assert_eq!(metadata.get(key).map(String::as_str), value.as_str(), "{name} {key}");
            }
            name
        })
        .filter(|name| name != "hbase")
        .collect();
    assert_eq!(root.list_namespaces().unwrap().into_iter().collect::<BTreeSet<_>>(), namespaces);
    let tables: Vec<String> =
        list["tables"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    let shown: Vec<String> = namespaces
        .iter()
        .flat_map(|namespace| root.list_tables(namespace).unwrap())
        .map(|name| name.to_string())
        .collect();
    assert_eq!(shown, tables);
}

/// Everything that was recorded of one archive. After a crash `replayed/` is what is shown, and without the logs of the tables `unreplayed/`.
fn compare(archive: &Path) {
    let expected = archive.with_extension("").with_extension("expected");
    let directory = unpack(archive);
    let root = open(directory.path());
    assert_eq!(root.report().logs_not_read, 0, "{:?}", root.report());
    let replayed = expected.join("replayed");
    let dumps = if replayed.is_dir() { &replayed } else { &expected };
    let mut compared = compare_dumps(&root, dumps, &expected, "");
    if replayed.is_dir() {
        compared += compare_dumps(&root, &expected, &expected, "snapshot.");
    }
    for (stem, path) in named(&expected, ".schema.json") {
        compare_schema(&root, &stem, &path, &expected);
    }
    compare_lists(&root, &expected);
    assert!(compared > 0, "{}", archive.display());
    let logs = directory.path().join("WALs");
    if replayed.is_dir() && logs.is_dir() {
        remove_table_logs(&logs);
        compare_dumps(&open(directory.path()), &expected.join("unreplayed"), &expected, "");
    }
}

fn remove_table_logs(logs: &Path) {
    for server in std::fs::read_dir(logs).unwrap() {
        for log in std::fs::read_dir(server.unwrap().path()).unwrap() {
            let path = log.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "meta") {
                std::fs::remove_file(path).unwrap();
            }
        }
    }
}

fn archives(directory: &Path) -> Vec<PathBuf> {
    named(directory, ".tar.zst").into_iter().map(|(_, path)| path).collect()
}

#[test]
fn what_hbase_showed_is_shown() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hbase_root/fixtures");
    let more = std::env::var_os("CELLFS_ROOTDIRS");
    let directories = shared("rootdir").into_iter().chain([own]).chain(more.iter().flat_map(std::env::split_paths));
    for archive in directories.flat_map(|directory| archives(&directory)) {
        compare(&archive);
    }
}
