use crate::world::{START, World};
use cellfs_mount::magic::MagicNode;

fn filled() -> World {
    let world = World::new();
    world.schema("[family.cf]\nVERSIONS = 3\n[family.d]\n");
    for (row, column, timestamp, value) in [
        (&b"a"[..], &b"cf:x"[..], 10, &b"1"[..]),
        (b"a", b"cf:x", 20, b"2"),
        (b"a", b"d:y", 30, b"\xff"),
        (b"b/c", b"cf:x", 40, b"with,comma"),
        (b"b\x00", b"d:y", 50, b"tab\there"),
        (b"c", b"cf:z", 60, b""),
    ] {
        world.put(row, column, timestamp, value);
    }
    world
}

#[test]
fn keys_and_counts_of_ranges() {
    let world = filled();
    assert_eq!(world.read(".scan/keys"), "a\nb%00\nb%2Fc\nc\n");
    assert_eq!(world.read(".scan/count"), "4\n");
    assert_eq!(world.read(".scan/prefix=b/keys"), "b%00\nb%2Fc\n");
    assert_eq!(world.read(".scan/start=b/stop=c/count"), "2\n");
    assert_eq!(world.read(".scan/start=b%2Fc/upto=c/keys"), "b%2Fc\nc\n");
    assert_eq!(world.read(".scan/reverse=1/limit=2/keys"), "c\nb%2Fc\n");
    assert_eq!(world.read(".scan/limit=0/count"), "0\n");
    assert_eq!(world.read(".scan/limit=0/keys"), "");
    assert_eq!(world.read(".scan/columns=d:/keys"), "a\nb%00\n");
    assert_eq!(world.read(".scan/time=..@0.025/count"), "1\n");
}

#[test]
fn rows_in_every_form() {
    let world = filled();
    assert_eq!(
        world.read(".scan/stop=c/jsonl"),
        "{\"row\": \"a\", \"cells\": {\"cf:x\": \"2\", \"d:y\": {\"$b64\": \"/w==\"}}}\n\
         {\"row\": \"b%00\", \"cells\": {\"d:y\": \"tab\\there\"}}\n\
         {\"row\": \"b%2Fc\", \"cells\": {\"cf:x\": \"with,comma\"}}\n"
    );
    assert_eq!(
        world.read(".scan/versions=all/columns=cf:/limit=1/jsonl"),
        "{\"row\": \"a\", \"cells\": {\"cf:x\": [{\"ts\": 20, \"v\": \"2\"}, {\"ts\": 10, \"v\": \"1\"}]}}\n"
    );
    assert_eq!(
        world.read(".scan/cells"),
        "a\tcf:x\t20\tput\t2\na\td:y\t30\tput\t\\xFF\nb\\x00\td:y\t50\tput\ttab\\there\n\
         b/c\tcf:x\t40\tput\twith,comma\nc\tcf:z\t60\tput\t\n"
    );
    assert_eq!(
        world.read(".scan/columns=d:y,cf:x/start=b/tsv"),
        "row\td:y\tcf:x\nb\\x00\ttab\\there\t\nb/c\t\twith,comma\n"
    );
    assert_eq!(
        world.read_bytes(".scan/columns=d:y,cf:x/csv").unwrap(),
        b"row,d:y,cf:x\na,\xff,2\nb\x00,tab\there,\nb/c,,\"with,comma\"\n"
    );
    assert_eq!(world.list(".scan"), ["agg", "cells", "count", "jsonl", "keys", "rows"]);
    assert_eq!(
        world.list(".scan/columns=d:y/limit=1"),
        ["agg", "cells", "count", "csv", "jsonl", "keys", "rows", "tsv"]
    );
    assert_eq!(world.find(".scan/raw=1/rows").unwrap_err().errno, libc::EINVAL);
    assert_eq!(world.errno(".scan/tsv"), libc::ENOENT);
    assert_eq!(world.errno(".scan/columns=cf:/csv"), libc::ENOENT);
    assert_eq!(world.errno(".scan/nonsense=1/keys"), libc::ENOENT);
    assert_eq!(world.errno(".scan/raw=1/columns=cf:x/cells"), libc::EINVAL);
}

#[test]
fn raw_scans_show_markers_and_go_back_in() {
    let world = filled();
    world.write("row=a/.row.json", "{\"cf:x\": null}\n").unwrap();
    let raw = world.read(".scan/raw=1/stop=b/cells");
    assert_eq!(
        raw,
        format!("a\tcf:x\t{START}\tcolumn\t\na\tcf:x\t20\tput\t2\na\tcf:x\t10\tput\t1\na\td:y\t30\tput\t\\xFF\n")
    );
    let json = world.read(".scan/raw=1/stop=b/jsonl");
    assert!(json.contains(&format!("{{\"ts\": {START}, \"del\": \"column\"}}, {{\"ts\": 20, ")), "{json}");
    for form in ["cells", "jsonl"] {
        let all = world.read(&format!(".scan/raw=1/{form}"));
        let copy = World::new();
        copy.schema("[family.cf]\nVERSIONS = 3\n[family.d]\n");
        copy.write(&format!(".import/{form}"), &all).unwrap();
        assert_eq!(copy.read(&format!(".scan/raw=1/{form}")), all);
        assert_eq!(copy.read(".scan/jsonl"), world.read(".scan/jsonl"));
    }
}

#[test]
fn a_stream_is_read_forward_or_again_from_its_start() {
    let world = filled();
    let node = world.find(".scan/keys").unwrap();
    let mut file = world.magic.open(&node, &crate::world::ROOT, libc::O_RDONLY).unwrap();
    assert_eq!(file.read(0, 4).unwrap(), "a\nb%");
    assert_eq!(file.read(2, 4).unwrap_err().errno, libc::ESPIPE);
    assert_eq!(file.read(7, 100).unwrap(), "b%2Fc\nc\n");
    assert_eq!(file.read(100, 4).unwrap(), "");
    world.put(b"0", b"cf:x", 1, b"");
    assert_eq!(file.read(0, 100).unwrap(), "0\na\nb%00\nb%2Fc\nc\n");
    assert_eq!(world.magic.attributes(&node, &crate::world::ROOT).unwrap().size, 0);
    assert!(matches!(node, MagicNode::ScanStream(..)));
}

#[test]
fn a_scan_stands_at_one_point_while_writers_go_on() {
    let world = World::new();
    for row in 0..5000 {
        world.put(format!("r{row:05}").as_bytes(), b"cf:x", 1, b"v");
    }
    let node = world.find(".scan/keys").unwrap();
    let mut file = world.magic.open(&node, &crate::world::ROOT, libc::O_RDONLY).unwrap();
    let mut read = file.read(0, 70).unwrap().len();
    for row in 0..5000 {
        world.put(format!("r{row:05}x").as_bytes(), b"cf:x", 1, b"v");
    }
    loop {
        let piece = file.read(read as u64, 4096).unwrap();
        read += piece.len();
        if piece.is_empty() {
            break;
        }
    }
    assert_eq!(read, 5000 * 7);
}

#[test]
fn hidden_cells_are_left_out() {
    let world = filled();
    world.hooks.hidden.lock().push(("b\0".into(), "y".into()));
    world.hooks.hidden.lock().push(("a".into(), "x".into()));
    assert_eq!(world.read(".scan/keys"), "a\nb%2Fc\nc\n");
    assert_eq!(world.read(".scan/count"), "3\n");
    assert_eq!(world.read("row=a/.row.json"), "{\n  \"d:y\": {\"$b64\": \"/w==\"}\n}\n");
    assert!(!world.read(".scan/cells").contains("cf:x\t20"));
    assert_eq!(world.read(".scan/start=b/limit=2/keys"), "b%2Fc\nc\n");
    assert_eq!(
        world.read(".scan/limit=1/start=b/jsonl"),
        "{\"row\": \"b%2Fc\", \"cells\": {\"cf:x\": \"with,comma\"}}\n"
    );
}
