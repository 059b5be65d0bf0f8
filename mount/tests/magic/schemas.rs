use crate::world::{ROOT, World, attributes};
use cellfs::client::{Admin, TableName};
use cellfs::schema::{Compression, TableDescriptor};
use cellfs_mount::magic::{Change, Place};
use cellfs_mount::ops::FsError;
use std::time::Duration;

#[test]
fn a_schema_is_read_edited_and_put_back() {
    let world = World::new();
    let text = world.read(".schema");
    assert_eq!(world.magic.attributes(&world.find(".schema").unwrap(), &ROOT).unwrap().size, text.len() as u64);
    world.schema(&text.replace("COMPRESSION = \"NONE\"", "COMPRESSION = \"ZSTD\""));
    assert_eq!(world.table.descriptor().families[&b"cf"[..]].compression, Compression::Zstd);
    assert_eq!(world.hooks.changes.lock()[..], [Change::Schema { table: world.table.id(), cells: false }]);
    let edited = world.read(".schema");
    assert!(edited.contains("COMPRESSION = \"ZSTD\"\n"));
    world.magic.replace(&world.find(".schema").unwrap(), &ROOT, text.as_bytes()).unwrap();
    assert_eq!(world.read(".schema"), text);
}

#[test]
fn a_wrong_text_names_its_line_and_changes_nothing() {
    let world = World::new();
    let before = world.read(".schema");
    for (text, line) in
        [("[family.cf]\nVERSIONS = 0\n", 2), ("[family.cf]\n\nTLT = 5\n", 3), ("[family.cf\n", 1), ("[table]\n", 2)]
    {
        let error = world.write(".schema", text).unwrap_err();
        assert_eq!(error.errno, libc::EINVAL, "{error}");
        assert!(error.reason.starts_with(&format!("line {line}: ")), "{error}");
    }
    assert_eq!(world.write(".schema", b"[table]\n\xff").unwrap_err().errno, libc::EINVAL);
    assert_eq!(world.read(".schema"), before);
    let mut truncated = world.open_to_write(".schema").unwrap();
    truncated.flush().unwrap();
    assert_eq!(world.read(".schema"), before);
}

#[test]
fn families_come_and_go_but_not_with_cells() {
    let world = World::new();
    world.schema("[family.a]\n[family.b]\n");
    let names: Vec<_> = world.table.descriptor().families.keys().cloned().collect();
    assert_eq!(names, [&b"a"[..], b"b"]);
    world.put(b"r", b"a:x", 1, b"v");
    let error = world.write(".schema", "[family.b]\n").unwrap_err();
    assert_eq!(error.errno, libc::ENOTEMPTY);
    assert!(error.reason.contains("family a"), "{error}");
    world.write("row=r/.row.json", "{\"a:x\": null}").unwrap();
    world.schema("[family.b]\n");
    // Nothing that showed has gone: rows without cells are there still.
    assert!(world.hooks.changes.lock().iter().all(|change| !matches!(change, Change::Table { .. })));
    world.schema("[family.b]\nTTL = 60\n");
    let last = world.hooks.changes.lock().last().cloned();
    assert_eq!(last, Some(Change::Schema { table: world.table.id(), cells: true }));
}

#[test]
fn splits_take_effect_while_the_table_is_empty() {
    let world = World::new();
    world.schema("[table]\nSPLITS = [\"p\", \"g%2Fx\"]\n[family.cf]\n");
    assert!(world.read(".schema").contains("SPLITS = [\"g%2Fx\", \"p\"]\n"));
    world.put(b"r", b"cf:x", 1, b"v");
    world.schema("[table]\nSPLITS = [\"z\"]\n[family.cf]\nVERSIONS = 2\n");
    assert!(world.read(".schema").contains("SPLITS = [\"g%2Fx\", \"p\"]\n"));
    assert!(world.read(".schema").contains("VERSIONS = 2\n"));
    assert!(world.hooks.remarks.lock()[0].starts_with("/default/t/.schema: SPLITS is ignored"));
    assert_eq!(world.read(".scan/count"), "1\n");
}

#[test]
fn an_unlinked_schema_hides_until_it_is_written_or_a_minute_has_passed() {
    let world = World::new();
    let text = world.read(".schema");
    let id = world.table.id();
    let unlink = || world.magic.unlink(&world.find(".schema").unwrap()).unwrap();
    unlink();
    assert!(!world.magic.schema_is_visible(id));
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
    let (node, mut file) = world.magic.create(&Place::Table(&world.table), b".schema", &ROOT, flags).unwrap();
    assert_eq!(node, world.find(".schema").unwrap());
    file.write(0, text.as_bytes()).unwrap();
    file.flush().unwrap();
    assert!(world.magic.schema_is_visible(id));
    unlink();
    world.magic.table_changed(id);
    assert!(world.magic.schema_is_visible(id));
    unlink();
    world.hooks.clock.add(Duration::from_secs(61).as_millis() as i64);
    assert!(world.magic.schema_is_visible(id));
}

#[test]
fn namespaces_have_schemas_too() {
    let world = World::new();
    world.store.create_namespace("ns", Default::default(), attributes()).unwrap();
    let node = world.magic.lookup(&Place::Namespace("ns"), b".schema").unwrap().unwrap();
    let write = |text: &str| world.magic.replace(&node, &ROOT, text.as_bytes());
    write("[namespace]\nMAXTABLES = 4\nowner = \"me\"\n").unwrap();
    assert_eq!(
        String::from_utf8(world.read_node(&node).unwrap()).unwrap(),
        "[namespace]\nMAXTABLES = 4\nMAXREGIONS = \"UNLIMITED\"\nowner = \"me\"\n"
    );
    write("[namespace]\nMAXTABLES = 1\n").unwrap();
    let make = |name: &str| {
        let name = TableName::new("ns", name).unwrap();
        let made = world.store.create_table(&name, TableDescriptor::with_family("cf"), &[], attributes());
        made.map(|_| ()).map_err(FsError::from)
    };
    make("a").unwrap();
    assert_eq!(make("b").unwrap_err().errno, libc::EDQUOT);
    assert_eq!(write("[namespace]\nMAXTABLES = 0\n").unwrap_err().errno, libc::EINVAL);
    assert_eq!(world.magic.unlink(&node).unwrap_err().errno, libc::EPERM);
}
