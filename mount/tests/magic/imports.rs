use crate::world::{ROOT, START, World};
use cellfs::client::{Admin, Get, Put, PutCell, WriteTime};
use cellfs_mount::attributes::FileAttributes;
use cellfs_mount::magic::Change;

#[test]
fn good_lines_are_kept_and_bad_ones_named() {
    let world = World::new();
    let lines = "{\"row\": \"a\", \"cells\": {\"cf:x\": \"1\", \"cf:y\": \"2\"}}\n\
                 {\"row\": \"b\", \"cells\": {\"nope:x\": \"1\"}}\n\
                 no json\n\
                 {\"row\": \"c\", \"cells\": {\"cf:x\": \"3\"}}";
    let error = world.write(".import/jsonl", lines).unwrap_err();
    assert_eq!(error.errno, libc::EINVAL);
    assert!(error.reason.starts_with("2 lines were refused"), "{error}");
    assert_eq!(world.read(".scan/keys"), "a\nc\n");
    let errors = world.read(".import/errors");
    let errors: Vec<&str> = errors.lines().collect();
    assert_eq!(errors[0], "line 2: no family nope; the table has: cf");
    assert!(errors[1].starts_with("line 3: expected"), "{errors:?}");
    let last = world.read(".import/last");
    assert!(last.starts_with("rows=2 cells=3 rejected=2 seconds=0.0"), "{last}");
    let rows: Vec<_> = world.hooks.changes.lock().iter().cloned().collect();
    assert_eq!(
        rows[..],
        [
            Change::Rows { table: world.table.id(), rows: vec!["a".into()] },
            Change::Rows { table: world.table.id(), rows: vec!["c".into()] }
        ]
    );
    world.write(".import/jsonl", "{\"row\": \"a\", \"cells\": {\"cf:x\": \"4\"}}\n").unwrap();
    assert_eq!(world.read(".import/errors"), "");
    assert_eq!(world.read(".scan/limit=1/columns=cf:x/jsonl"), "{\"row\": \"a\", \"cells\": {\"cf:x\": \"4\"}}\n");
    assert_eq!(world.list(".import"), ["atomic", "cells", "csv", "errors", "jsonl", "last", "new", "replace", "tsv"]);
}

#[test]
fn imports_are_newer_than_what_is_there() {
    let world = World::new();
    world.write(".import/tsv", "row\tcf:x\nr\told\n").unwrap();
    world.write("row=r/.row.json", "null").unwrap();
    world.write(".import/csv", "row,cf:x\nr,new\n").unwrap();
    assert_eq!(
        world.read(".scan/versions=1/jsonl"),
        format!("{{\"row\": \"r\", \"cells\": {{\"cf:x\": [{{\"ts\": {}, \"v\": \"new\"}}]}}}}\n", START + 1)
    );
}

#[test]
fn a_column_that_comes_again_in_one_stream_is_newer_each_time() {
    let world = World::new();
    world.schema("[family.cf]\nVERSIONS = 9\n");
    let lines = "row,cf:x\nr,1\ns,1\nr,2\nr,3\ns,2\n";
    world.write(".import/csv", lines).unwrap();
    assert_eq!(world.read(".scan/jsonl").matches("\"3\"").count(), 1);
    let expected = ["3", "2", "1"]
        .iter()
        .zip([2, 1, 0])
        .map(|(value, after)| format!("r\tcf:x\t{}\tput\t{value}\n", START + after));
    assert_eq!(world.read(".scan/stop=s/versions=all/cells"), expected.collect::<String>());
}

#[test]
fn a_stream_in_pieces_is_one_import() {
    let world = World::new();
    let text = b"row\tcf:a\tcf:b\nr1\tx\t\nr2\t\ty\nr3\tz";
    let mut file = world.open_to_write(".import/tsv").unwrap();
    for (index, piece) in text.chunks(5).enumerate() {
        file.write(index as u64 * 5, piece).unwrap();
    }
    assert_eq!(world.read(".scan/count"), "2\n");
    assert_eq!(file.write(3, b"x").unwrap_err().errno, libc::ESPIPE);
    assert_eq!(file.flush().unwrap_err().errno, libc::EINVAL);
    assert_eq!(file.flush().unwrap_err().errno, libc::EINVAL);
    assert_eq!(world.read(".import/errors"), "line 4: 2 fields where the header has 3\n");
}

#[test]
fn a_header_that_says_nothing_is_refused_at_once() {
    let world = World::new();
    let mut file = world.open_to_write(".import/csv").unwrap();
    let error = file.write(0, b"name,cf:x\na,1\n").unwrap_err();
    assert_eq!(error.errno, libc::EINVAL);
    assert!(error.reason.contains("line 1"), "{error}");
    assert_eq!(file.flush().unwrap_err().errno, libc::EINVAL);
    assert_eq!(world.read(".scan/count"), "0\n");
}

#[test]
fn what_the_engine_refuses_costs_its_line() {
    let world = World::new();
    let long = "k".repeat(32_768);
    let error =
        world.write(".import/cells", format!("a\tcf:x\t1\tput\tv\n{long}\tcf:x\t1\tput\tv\nb\tcf:x\t1\tput\tv\n"));
    assert_eq!(error.unwrap_err().errno, libc::EINVAL);
    assert_eq!(world.read(".scan/keys"), "a\nb\n");
    world.schema("[table]\nREADONLY = true\n[family.cf]\n");
    assert_eq!(world.write(".import/cells", "c\tcf:x\t1\tput\tv\n").unwrap_err().errno, libc::EROFS);
}

#[test]
fn appending_writers_and_descriptors_never_closed() {
    let world = World::new();
    let node = world.find(".import/cells").unwrap();
    let mut file = world.magic.open(&node, &ROOT, libc::O_WRONLY | libc::O_APPEND).unwrap();
    file.write(999, b"a\tcf:x\t1\tput\tv\nb\tcf:x\t1\tput\tv").unwrap();
    drop(file);
    assert_eq!(world.read(".scan/keys"), "a\nb\n");
    assert!(world.read(".import/last").starts_with("rows=2 cells=2 rejected=0 "));
}

#[test]
fn an_atomic_import_is_there_as_a_whole_when_it_is_closed() {
    let world = World::new();
    world.put(b"a", b"cf:x", START + 9, b"newer than now");
    assert_eq!(world.list(".import/atomic"), ["cells", "csv", "jsonl", "tsv"]);
    let mut file = world.open_to_write(".import/atomic/csv").unwrap();
    let lines = b"row,cf:x\nb,2\na,1\nb,3\n";
    file.write(0, lines).unwrap();
    assert_eq!(world.read(".scan/keys"), "a\n");
    file.flush().unwrap();
    assert_eq!(world.read(".scan/columns=cf:x/tsv"), "row\tcf:x\na\t1\nb\t3\n");
    // Newer than what was there, by the clock and by what is ahead of it; the last line of a cell is the only one.
    world.schema("[family.cf]\nVERSIONS = 9\n");
    assert_eq!(
        world.read(".scan/versions=all/cells"),
        format!(
            "a\tcf:x\t{}\tput\t1\na\tcf:x\t{}\tput\tnewer than now\nb\tcf:x\t{START}\tput\t3\n",
            START + 10,
            START + 9
        )
    );
    assert!(world.read(".import/last").starts_with("rows=2 cells=2 rejected=0 "), "{}", world.read(".import/last"));
    assert_eq!(world.hooks.changes.lock()[..1], [Change::AnyRow { table: world.table.id() }]);
    // What comes after a close of the same descriptor, as a shell's second command makes it, is one more import.
    file.write(lines.len() as u64, b"c,4\n").unwrap();
    assert_eq!(world.read(".scan/keys"), "a\nb\n");
    file.flush().unwrap();
    file.flush().unwrap();
    assert_eq!(world.read(".scan/keys"), "a\nb\nc\n");
    assert!(world.read(".import/last").starts_with("rows=3 cells=3 rejected=0 "));
}

#[test]
fn a_bad_line_refuses_the_whole_of_an_atomic_import() {
    let world = World::new();
    let lines = "{\"row\": \"a\", \"cells\": {\"cf:x\": \"1\"}}\n\
                 {\"row\": \"b\", \"cells\": {\"nope:x\": \"1\"}}\n\
                 no json\n\
                 {\"row\": \"c\", \"cells\": {\"cf:x\": \"3\"}}\n";
    for mode in ["atomic", "new", "replace"] {
        world.put(b"there", b"cf:x", 1, b"v");
        let mut file = world.open_to_write(&format!(".import/{mode}/jsonl")).unwrap();
        file.write(0, lines.as_bytes()).unwrap();
        let error = file.flush().unwrap_err();
        assert_eq!(error.errno, libc::EINVAL);
        assert!(error.reason.starts_with("2 lines were refused, so nothing was imported"), "{error}");
        assert_eq!(world.read(".scan/keys"), "there\n", "{mode}");
        let errors = world.read(".import/errors");
        assert!(errors.starts_with("line 2: no family nope; the table has: cf\nline 3: expected"), "{errors}");
        let last = world.read(".import/last");
        assert!(last.starts_with("rows=0 cells=0 rejected=2 "), "{last}");
        // Nor does anything come behind it.
        let more = file.write(lines.len() as u64, b"{\"row\": \"d\", \"cells\": {\"cf:x\": \"1\"}}\n");
        assert_eq!(more.unwrap_err().errno, libc::EINVAL);
        drop(file);
        assert_eq!(world.read(".scan/keys"), "there\n", "{mode}");
        assert!(world.hooks.changes.lock().is_empty());
    }
    // What the engine refuses is a bad line as well, and so is a header.
    let long = "k".repeat(32_768);
    let cells = format!("a\tcf:x\t1\tput\tv\n{long}\tcf:x\t1\tput\tv\n");
    assert_eq!(world.write(".import/atomic/cells", cells).unwrap_err().errno, libc::EINVAL);
    assert_eq!(world.write(".import/replace/csv", "name,cf:x\na,1\n").unwrap_err().errno, libc::EINVAL);
    assert_eq!(world.read(".scan/keys"), "there\n");
}

#[test]
fn an_import_of_new_rows_refuses_those_that_exist() {
    let world = World::new();
    world.put(b"b", b"cf:x", 1, b"old");
    world.put(b"d", b"cf:x", 1, b"old");
    let error = world.write(".import/new/tsv", "row\tcf:x\nc\t1\nd\t1\nb\t1\na\t1\n").unwrap_err();
    assert_eq!(error.errno, libc::EINVAL);
    assert_eq!(world.read(".import/errors"), "line 4: the row b exists\nline 3: the row d exists\n");
    assert_eq!(world.read(".scan/keys"), "b\nd\n");
    world.write(".import/new/tsv", "row\tcf:x\nc\t1\na\t1\n").unwrap();
    assert_eq!(world.read(".scan/keys"), "a\nb\nc\nd\n");
}

#[test]
fn an_import_that_replaces_leaves_what_was_to_snapshots() {
    let world = World::new();
    world.put(b"a", b"cf:x", START + 5, b"old");
    world.put(b"old", b"cf:x", 1, b"v");
    world.store.create_snapshot(&world.table.name(), b"s").unwrap();
    world.write(".import/replace/csv", "row,cf:x\nb,1\na,2\n").unwrap();
    assert_eq!(world.read(".scan/versions=all/cells"), format!("a\tcf:x\t{START}\tput\t2\nb\tcf:x\t{START}\tput\t1\n"));
    assert_eq!(world.hooks.changes.lock()[..], [Change::Table { table: world.table.id() }]);
    let snapshot = world.store.open_snapshot(&world.table.name(), b"s").unwrap();
    assert!(snapshot.exists(&Get::new("old")).unwrap());
    // A shell's truncation alone does nothing, and what comes after a first close adds.
    drop(world.open_to_write(".import/replace/csv").unwrap());
    assert_eq!(world.read(".scan/count"), "2\n");
    let mut file = world.open_to_write(".import/replace/csv").unwrap();
    file.write(0, b"row,cf:x\nc,1\n").unwrap();
    file.flush().unwrap();
    file.write(13, b"d,1\n").unwrap();
    file.flush().unwrap();
    assert_eq!(world.read(".scan/keys"), "c\nd\n");
    world.write(".import/replace/csv", "row,cf:x\n").unwrap();
    assert_eq!(world.read(".scan/count"), "0\n");
}

#[test]
fn whole_imports_keep_types_modes_and_refusals() {
    let world = World::new();
    world.schema("[family.cf]\n[family.cf.types]\nn = \"int\"\n");
    world.write(".import/atomic/csv", "row,cf:n\na,7\n").unwrap();
    assert_eq!(world.read(".scan/columns=cf:n/csv"), "row,cf:n\na,7\n");
    assert_eq!(world.write(".import/atomic/csv", "row,cf:n\na,seven\n").unwrap_err().errno, libc::EINVAL);
    let attributes = FileAttributes { mode: Some(0o600), ..FileAttributes::default() };
    let mut put = Put::new("secret");
    let (family, qualifier, time) = ("cf".into(), "x".into(), WriteTime::Now);
    put.cells.push(PutCell { family, qualifier, time, value: "v".into(), tags: attributes.tags(None) });
    world.table.put(put).unwrap();
    let tags = |row: &str| {
        let get = Get::new(row.to_owned()).column("cf", "x");
        FileAttributes::of_cell(&world.table.get(&get).unwrap().cells[0])
    };
    let before = tags("secret");
    assert_eq!(before.mode, Some(0o600));
    world.write(".import/atomic/tsv", "row\tcf:x\nsecret\tnew\n").unwrap();
    assert_eq!(tags("secret"), before);
    world.schema("[table]\nREADONLY = true\n[family.cf]\n");
    for mode in ["atomic", "new", "replace"] {
        let error = world.write(&format!(".import/{mode}/cells"), "c\tcf:x\t1\tput\tv\n").unwrap_err();
        assert_eq!(error.errno, libc::EROFS, "{error}");
    }
}

#[test]
fn a_whole_import_keeps_markers_and_timestamps() {
    let world = World::new();
    let lines = "b\tcf:x\t7\tput\tnew\nb\tcf:x\t5\tcolumn\t\na\tcf:\t9\tfamily\t\nb\tcf:x\t6\tput\told\n";
    world.schema("[family.cf]\nVERSIONS = 9\n");
    world.write(".import/atomic/cells", lines).unwrap();
    let expected = "a\tcf:\t9\tfamily\t\nb\tcf:x\t7\tput\tnew\nb\tcf:x\t6\tput\told\nb\tcf:x\t5\tcolumn\t\n";
    assert_eq!(world.read(".scan/raw=1/versions=all/cells"), expected);
}
