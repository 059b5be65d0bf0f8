use crate::world::{ROOT, START, World};
use bytes::Bytes;
use cellfs_mount::magic::{Change, MagicNode, Place};

#[test]
fn a_row_document_round_trips_and_is_one_mutation() {
    let world = World::new();
    world.schema("[family.cf]\nVERSIONS = 3\n[family.d]\n");
    let text = "{\n  \"cf:\": \"e\",\n  \"cf:a%2Fb\": \"v\\n\",\n  \"d:x\": {\"$b64\": \"/w==\"}\n}\n";
    world.write("row=r/.row.json", text).unwrap();
    assert_eq!(world.read("row=r/.row.json"), text);
    assert_eq!(world.magic.attributes(&world.find("row=r/.row.json").unwrap(), &ROOT).unwrap().size, text.len() as u64);
    assert_eq!(
        world.hooks.changes.lock().last(),
        Some(&Change::Rows { table: world.table.id(), rows: vec!["r".into()] })
    );
    world.write("row=r/.row.json", "{\"cf:\": null, \"d:y\": \"new\"}").unwrap();
    assert_eq!(world.read(".scan/cells").lines().count(), 3);
    // A family deleted and written in one document holds what is written.
    world.write("row=r/.row.json", "{\"cf:q\": \"w\", \"cf\": null}\n").unwrap();
    assert_eq!(world.read(".scan/columns=cf:/jsonl"), "{\"row\": \"r\", \"cells\": {\"cf:q\": \"w\"}}\n");
    world.write("row=r/.row.json", "null\n").unwrap();
    assert_eq!(world.read("row=r/.row.json"), "{}\n");
    assert_eq!(world.read(".scan/count"), "0\n");
}

#[test]
fn a_document_runs_in_the_write_that_completes_it() {
    let world = World::new();
    let mut file = world.open_to_write("row=r/.row.json").unwrap();
    file.write(0, b"{\"cf:a\": {\"$b64\": \"").unwrap();
    file.write(19, b"YQ==\"}").unwrap();
    assert_eq!(world.read(".scan/count"), "0\n");
    file.write(25, b"}\n").unwrap();
    assert_eq!(world.read(".scan/jsonl"), "{\"row\": \"r\", \"cells\": {\"cf:a\": \"a\"}}\n");
    let error = file.write(27, b"{\"nope:a\": \"x\"}\n").unwrap_err();
    assert_eq!(error.errno, libc::EINVAL);
    assert!(error.reason.contains("cf"), "{error}");
    assert_eq!(file.write(0, b"{\"cf:a\" 1}").unwrap_err().errno, libc::EINVAL);
    file.write(0, b"{\"cf:a\": \"b\"").unwrap();
    assert_eq!(file.flush().unwrap_err().errno, libc::EINVAL);
    file.flush().unwrap();
    assert_eq!(world.read("row=r/.row.json"), "{\n  \"cf:a\": \"a\"\n}\n");
}

#[test]
fn a_condition_decides_over_the_whole_document() {
    let world = World::new();
    world.write("row=r/.row.json", "{\"cf:a\": \"1\"}\n").unwrap();
    let write = |text: &str| world.write("row=r/.row.json", text).map_err(|error| error.errno);
    assert_eq!(write("{\"$if\": {\"cf:a\": \"2\"}, \"cf:a\": \"3\", \"$incr\": {\"cf:n\": 1}}"), Err(libc::ECANCELED));
    assert_eq!(world.read("row=r/.row.json"), "{\n  \"cf:a\": \"1\"\n}\n");
    assert_eq!(write("{\"$if\": {\"cf:a\": \"1\", \"cf:b\": null}, \"cf:a\": \"2\", \"cf:b\": \"\"}"), Ok(()));
    // An empty cell is there, so null does not match it.
    assert_eq!(write("{\"$if\": {\"cf:b\": null}, \"cf:a\": \"3\"}"), Err(libc::ECANCELED));
    assert_eq!(write("{\"$if\": {\"cf:b\": \"\"}}"), Ok(()));
    assert_eq!(write("{\"$if\": {\"nope:b\": null}, \"cf:a\": \"3\"}"), Err(libc::EINVAL));
    assert_eq!(world.read("row=r/.row.json"), "{\n  \"cf:a\": \"2\",\n  \"cf:b\": \"\"\n}\n");
    let error = world.write("row=r/.row.json", "{\"$if\": {\"cf:a\": \"x\"}}").unwrap_err();
    assert!(error.reason.contains("$if does not hold"), "{error}");
}

#[test]
fn counters_and_appends_are_hbases_and_part_of_the_one_mutation() {
    let world = World::new();
    let write = |text: &str| world.write("row=r/.row.json", text);
    let counter = |value: i64| value.to_be_bytes().to_vec();
    let stored = |column: &str| -> Vec<(i64, Vec<u8>)> {
        let (family, qualifier) = column.split_once(':').unwrap();
        let get = cellfs::client::Get::new("r").column(family.to_owned(), qualifier.to_owned());
        let found = world.table.get(&get).unwrap();
        found.cells.iter().map(|cell| (cell.timestamp(), cell.value().to_vec())).collect()
    };
    write("{\"cf:a\": \"v\", \"$incr\": {\"cf:n\": 5}, \"$append\": {\"cf:log\": \"one \"}}").unwrap();
    write("{\"$incr\": {\"cf:n\": -7}, \"$append\": {\"cf:log\": {\"$b64\": \"dHdv\"}}}").unwrap();
    assert_eq!(stored("cf:n"), [(START + 1, counter(-2))]);
    assert_eq!(stored("cf:log"), [(START + 1, b"one two".to_vec())]);
    // What is no counter is refused, and nothing else of the document happens.
    let error = write("{\"$incr\": {\"cf:a\": 1}, \"cf:b\": \"x\"}").unwrap_err();
    assert_eq!(error.errno, libc::EINVAL);
    assert!(error.reason.contains("cf:a"), "{error}");
    assert_eq!(stored("cf:b"), []);
    // Deleted and counted again within one millisecond: the new cell shows.
    write("{\"cf:n\": null}").unwrap();
    assert_eq!(stored("cf:n"), []);
    write("{\"$incr\": {\"cf:n\": 1}}").unwrap();
    assert_eq!(stored("cf:n"), [(START + 2, counter(1))]);
}

#[test]
fn concurrent_documents_lose_no_increment() {
    let world = World::new();
    world.write("row=r/.row.json", "{\"cf:done\": \"0\"}").unwrap();
    let (threads, rounds) = (4, 50);
    let taken: usize = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut taken = 0;
                    for _ in 0..rounds {
                        let count = "{\"$incr\": {\"cf:n\": 1}, \"$append\": {\"cf:log\": \"x\"}}\n";
                        world.write("row=r/.row.json", count).unwrap();
                        let claim = "{\"$if\": {\"cf:won\": null}, \"cf:won\": \"me\", \"$incr\": {\"cf:wins\": 1}}\n";
                        match world.write("row=r/.row.json", claim) {
                            Ok(()) => taken += 1,
                            Err(error) => assert_eq!(error.errno, libc::ECANCELED),
                        }
                    }
                    taken
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).sum()
    });
    assert_eq!(taken, 1);
    let value = |qualifier: &str| {
        let get = cellfs::client::Get::new("r").column("cf", qualifier.to_owned());
        world.table.get(&get).unwrap().cells[0].value().to_vec()
    };
    assert_eq!(value("n"), (threads * rounds as i64).to_be_bytes());
    assert_eq!(value("log").len(), threads as usize * rounds);
    assert_eq!(value("wins"), 1i64.to_be_bytes());
}

#[test]
fn the_key_is_the_bytes() {
    let world = World::new();
    let key = MagicNode::RowKey(cellfs_mount::magic::TableHandle(world.table.clone()), Bytes::from_static(b"\xff/\n"));
    let found = world.magic.lookup(&Place::Row(&world.table, b"\xff/\n"), b".key").unwrap();
    assert_eq!(found, Some(key.clone()));
    assert_eq!(world.read_node(&key).unwrap(), b"\xff/\n");
    assert_eq!(world.magic.attributes(&key, &ROOT).unwrap().size, 3);
}

fn versions() -> World {
    let world = World::new();
    world.schema("[family.cf]\nVERSIONS = 9\n[family.d]\n");
    for timestamp in [5, 7, 9] {
        world.put(b"r", b"cf:a", timestamp, format!("v{timestamp}").as_bytes());
    }
    world.put(b"r", b"cf:ab", 6, b"other");
    world.put(b"r", b"d:", 8, b"d");
    world
}

#[test]
fn versions_are_listed_read_made_and_removed() {
    let world = versions();
    assert_eq!(world.list("row=r/.versions"), ["cf:a", "cf:ab", "d:"]);
    assert_eq!(world.list("row=r/.versions/cf:a"), ["9", "7", "5"]);
    assert_eq!(world.read("row=r/.versions/cf:a/7"), "v7");
    let attributes = world.magic.attributes(&world.find("row=r/.versions/cf:a/7").unwrap(), &ROOT).unwrap();
    assert_eq!((attributes.size, attributes.mtime_nanos, attributes.uid), (2, 7_000_000, 5));
    assert_eq!(world.errno("row=r/.versions/cf:a/6"), libc::ENOENT);
    assert_eq!(world.errno("row=r/.versions/cf:a/07"), libc::ENOENT);
    assert!(world.list("row=r/.versions/cf:none").is_empty());
    assert_eq!(world.errno("row=r/.versions/nope:a"), libc::ENOENT);

    world.magic.unlink(&world.find("row=r/.versions/cf:a/7").unwrap()).unwrap();
    assert_eq!(world.list("row=r/.versions/cf:a"), ["9", "7.del", "5"]);
    assert_eq!(world.errno("row=r/.versions/cf:a/7"), libc::ENOENT);
    assert_eq!(world.read("row=r/.versions/cf:a/7.del"), "");
    let marker = world.find("row=r/.versions/cf:a/7.del").unwrap();
    assert_eq!(world.magic.unlink(&marker).unwrap_err().errno, libc::EPERM);
    let expected =
        Change::Cell { table: world.table.id(), row: "r".into(), family: "cf".into(), qualifier: "a".into() };
    assert_eq!(world.hooks.changes.lock().last(), Some(&expected));

    let cell = world.find("row=r/.versions/cf:a").unwrap();
    let flags = libc::O_WRONLY | libc::O_CREAT;
    let (node, mut file) = world.magic.create(&Place::Magic(&cell), b"8", &ROOT, flags).unwrap();
    assert_eq!(world.magic.attributes(&node, &ROOT).unwrap().size, 0);
    file.write(0, b"ei").unwrap();
    file.write(2, b"ght").unwrap();
    assert_eq!(file.size(), Some(5));
    file.flush().unwrap();
    drop(file);
    assert_eq!(world.list("row=r/.versions/cf:a"), ["9", "8", "7.del", "5"]);
    assert_eq!(world.read("row=r/.versions/cf:a/8"), "eight");
    for (name, errno) in [(&b"x"[..], libc::EINVAL), (b"08", libc::EINVAL), (b"8.del", libc::EPERM)] {
        let refused = world.magic.create(&Place::Magic(&cell), name, &ROOT, flags).err().unwrap();
        assert_eq!(refused.errno, errno);
    }
    let exclusive = world.magic.create(&Place::Magic(&cell), b"8", &ROOT, flags | libc::O_EXCL).err().unwrap();
    assert_eq!(exclusive.errno, libc::EEXIST);
    world.write("row=r/.versions/cf:a/5", "five").unwrap();
    assert_eq!(world.read("row=r/.versions/cf:a/5"), "five");
}

#[test]
fn a_new_version_without_content_is_empty() {
    let world = versions();
    let cell = world.find("row=r/.versions/cf:a").unwrap();
    let (_, mut file) = world.magic.create(&Place::Magic(&cell), b"11", &ROOT, libc::O_WRONLY).unwrap();
    file.flush().unwrap();
    assert_eq!(world.read("row=r/.versions/cf:a/11"), "");
    let mut file = world.magic.open(&world.find("row=r/.versions/cf:a/9").unwrap(), &ROOT, libc::O_RDWR).unwrap();
    assert_eq!(file.read(0, 10).unwrap(), "v9");
    file.truncate(1).unwrap();
    file.write(3, b"x").unwrap();
    file.flush().unwrap();
    assert_eq!(world.read("row=r/.versions/cf:a/9"), "v\0\0x");
    assert_eq!(file.write(64 << 20, b"x").unwrap_err().errno, libc::EFBIG);
}

#[test]
fn tombstones_of_columns_and_families_show() {
    let world = versions();
    world.write("row=r/.row.json", "{\"cf:a\": null}\n").unwrap();
    assert_eq!(world.list("row=r/.versions/cf:a"), [format!("{START}.del"), "9".into(), "7".into(), "5".into()]);
    assert_eq!(world.read("row=r/.versions/cf:a/9"), "v9");
    world.hooks.clock.add(10);
    world.write("row=r/.row.json", "null\n").unwrap();
    assert_eq!(world.list("row=r/.versions/d:"), [format!("{}.del", START + 10), "8".into()]);
    assert_eq!(world.list("row=r/.versions"), ["cf:a", "cf:ab", "d:"]);
}

#[test]
fn long_column_names_have_versions_too() {
    let world = World::new();
    let qualifier = vec![0xFE; 300];
    world.put(b"r", &[b"cf:", &qualifier[..]].concat(), 4, b"x");
    let names = world.list("row=r/.versions");
    assert!(names[0].len() <= 255, "{names:?}");
    assert_eq!(world.read(&format!("row=r/.versions/{}/4", names[0])), "x");
}

#[test]
fn modes_hold_for_those_who_read_many_cells_at_once() {
    use cellfs::cell::{Tag, tag_type};
    use cellfs::client::{Put, PutCell, WriteTime};
    use cellfs_mount::attributes::FileAttributes;
    use cellfs_mount::ops::Caller;
    let world = World::new();
    let secret = FileAttributes { mode: Some(0o600), uid: Some(9), ..FileAttributes::default() };
    let cell = |qualifier: &str, tags: Vec<Tag>| PutCell {
        family: "cf".into(),
        qualifier: qualifier.to_owned().into(),
        time: WriteTime::At(5),
        value: "v".into(),
        tags,
    };
    let tag = Tag { kind: tag_type::FILE_ATTRIBUTES, value: secret.encode() };
    let cells = vec![cell("open", vec![]), cell("secret", vec![tag])];
    world.table.put(Put { cells, ..Put::new("r") }).unwrap();
    let seen = |path: &str, uid: u32| {
        let node = world.find(path).unwrap();
        let mut file = world.magic.open(&node, &Caller { uid, gid: uid, pid: 1 }, libc::O_RDONLY).unwrap();
        String::from_utf8(file.read(0, 1000).unwrap().to_vec()).unwrap()
    };
    for path in ["row=r/.row.json", ".scan/jsonl", ".scan/cells"] {
        for (uid, sees) in [(0, true), (5, true), (9, true), (10, false)] {
            let text = seen(path, uid);
            assert!(text.contains("cf:open"), "{path} {uid}");
            assert_eq!(text.contains("cf:secret"), sees, "{path} {uid}");
        }
    }
    assert_eq!(world.magic.attributes(&world.find("row=r/.versions/cf:secret/5").unwrap(), &ROOT).unwrap().mode, 0o600);
    // Versions written past the path stay as closed as those before.
    world.write("row=r/.row.json", "{\"cf:secret\": \"new\"}\n").unwrap();
    assert!(!seen(".scan/jsonl", 10).contains("new"));
    world.write(".import/tsv", "row\tcf:secret\nr\tnewer\n").unwrap();
    assert!(seen(".scan/jsonl", 9).contains("newer") && !seen(".scan/jsonl", 10).contains("newer"));
}
