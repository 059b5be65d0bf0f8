use crate::world::{ROOT, START, World};
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
    assert_eq!(world.list(".import"), ["cells", "csv", "errors", "jsonl", "last", "tsv"]);
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
