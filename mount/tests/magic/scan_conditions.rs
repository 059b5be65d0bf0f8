//! `where=`, `filter=`, `agg` and `sample=` below `.scan`.

use crate::world::{ROOT, World};
use cellfs::client::Admin;
use cellfs_mount::ops::Caller;
use std::collections::BTreeSet;

fn people() -> World {
    let world = World::new();
    world.schema("[family.cf]\nVERSIONS = 3\n[family.info]\n");
    for (row, column, timestamp, value) in [
        ("ann", "cf:city", 10, "Rome"),
        ("ann", "cf:city", 20, "Oslo"),
        ("ann", "info:age", 20, "31\n"),
        ("bob", "cf:city", 10, "Rome"),
        ("bob", "info:age", 10, "7.5"),
        ("cleo", "info:age", 10, "old"),
        ("dan", "cf:city", 10, "a/b,c=d%"),
        ("dan", "cf:x=y", 10, "1"),
    ] {
        world.put(row.as_bytes(), column.as_bytes(), timestamp, value.as_bytes());
    }
    world
}

fn reason(world: &World, path: &str) -> String {
    let error = world.find(path).map(|_| ()).unwrap_err();
    assert_eq!(error.errno, libc::ENOENT, "{path}: {error}");
    error.reason.to_string()
}

#[test]
fn where_looks_at_the_newest_value() {
    let world = people();
    assert_eq!(world.read(".scan/where=cf:city=Rome/keys"), "bob\n");
    assert_eq!(world.read(".scan/where=cf:city=Oslo/versions=all/count"), "1\n");
    assert_eq!(world.read(".scan/time=..@0.015/where=cf:city=Rome/keys"), "ann\nbob\n");
    assert_eq!(world.read(".scan/where=cf:city=a%2Fb%2Cc=d%25/keys"), "dan\n");
    assert_eq!(world.read(".scan/where=cf:x%3Dy=1/keys"), "dan\n");
    assert_eq!(world.read(".scan/where=cf:none=/keys"), "");
    // The column is looked at, but shown only where it was asked for.
    assert_eq!(
        world.read(".scan/where=cf:city=Oslo/columns=info:age/jsonl"),
        "{\"row\": \"ann\", \"cells\": {\"info:age\": \"31\\n\"}}\n"
    );
    assert_eq!(world.read(".scan/where=cf:city=Oslo/columns=info:none/count"), "0\n");
    assert_eq!(world.read(".scan/columns=cf:city/where=cf:city=Rome/cells"), "bob\tcf:city\t10\tput\tRome\n");
    assert!(reason(&world, ".scan/where=cf:city").contains("cf:a=VALUE"));
    assert!(reason(&world, ".scan/where=nope:a=1").contains("the table has: cf info"));
    assert!(reason(&world, ".scan/where=cf:city=%4").contains("two hex digits"));
    assert_eq!(world.errno(".scan/raw=1/where=cf:a=1/keys"), libc::EINVAL);
}

#[test]
fn where_takes_text_of_the_columns_type() {
    let world = World::new();
    world.schema("[family.cf]\n[family.cf.types]\nage = \"int\"\n");
    world.put(b"a", b"cf:age", 1, &42i32.to_be_bytes());
    world.put(b"b", b"cf:age", 1, &43i32.to_be_bytes());
    assert_eq!(world.read(".scan/where=cf:age=42/keys"), "a\n");
    assert_eq!(world.read(".scan/sum=cf:age/agg"), "count 2\nsum 85\nmin 42\nmax 43\navg 42.5\nskipped 0\n");
    assert!(reason(&world, ".scan/where=cf:age=x").contains("where=cf:age=x"));
}

#[test]
fn filters_are_hbases_language() {
    let world = people();
    assert_eq!(world.read(".scan/filter=PrefixFilter('b')/keys"), "bob\n");
    assert_eq!(
        world.read(".scan/filter=ValueFilter(=, 'substring:ROME') OR RowFilter(>, 'binary:c')/keys"),
        // As in HBase a filter sees older versions too, and ann has lived in Rome.
        "ann\nbob\ncleo\ndan\n"
    );
    assert_eq!(world.read(".scan/filter=PrefixFilter('a') OR PrefixFilter('d')/reverse=1/keys"), "dan\nann\n");
    assert_eq!(world.read(".scan/limit=2/filter=QualifierFilter(=, 'binary:age')/count"), "2\n");
    assert_eq!(world.read(".scan/filter=ValueFilter(=, 'binary:a%2Fb%2Cc=d%25')/keys"), "dan\n");
    assert_eq!(world.read(".scan/filter=PageFilter(2)/keys"), "ann\nbob\n");
    assert_eq!(
        world.read(".scan/versions=all/filter=FirstKeyOnlyFilter() AND KeyOnlyFilter()/limit=1/jsonl"),
        "{\"row\": \"ann\", \"cells\": {\"cf:city\": [{\"ts\": 20, \"v\": \"\"}]}}\n"
    );
    assert_eq!(
        world.read(".scan/where=cf:city=Rome/filter=FamilyFilter(=, 'binary:info')/cells"),
        "bob\tinfo:age\t10\tput\t7.5\n"
    );
    assert!(reason(&world, ".scan/filter=PrefixFilter(b)").contains("at byte 13"));
    assert!(reason(&world, ".scan/filter=Nope()").contains("there are: KeyOnlyFilter"));
}

#[test]
fn a_filter_tells_nothing_about_cells_one_cannot_read() {
    let world = people();
    world.hooks.hidden.lock().push(("bob".into(), "city".into()));
    assert_eq!(world.read(".scan/where=cf:city=Rome/keys"), "");
    assert_eq!(world.read(".scan/filter=PrefixFilter('b')/cells"), "bob\tinfo:age\t10\tput\t7.5\n");
    assert_eq!(world.read(".scan/filter=PageFilter(2)/keys"), "ann\nbob\n");
    assert_eq!(world.read(".scan/limit=1/filter=FirstKeyOnlyFilter()/start=b/jsonl").lines().count(), 1);
    // Nobody but the owner may read cells of a table that is open to him only.
    world.hooks.hidden.lock().clear();
    let name = world.table.name();
    let mut closed = world.store.table_attributes(&name).unwrap();
    closed.mode = 0o700;
    world.store.set_table_attributes(&name, closed).unwrap();
    let node = world.find(".scan/where=cf:city=Rome/keys").unwrap();
    let read = |caller: &Caller| {
        let mut file = world.magic.open(&node, caller, libc::O_RDONLY).unwrap();
        file.read(0, 100).unwrap()
    };
    assert_eq!(read(&ROOT), "bob\n");
    assert_eq!(read(&Caller { uid: 99, gid: 99, pid: 1 }), "");
}

#[test]
fn aggregates_over_what_reads_as_a_number() {
    let world = people();
    assert_eq!(world.read(".scan/agg"), "count 4\n");
    assert_eq!(world.read(".scan/sum=info:age/agg"), "count 4\nsum 38.5\nmin 7.5\nmax 31\navg 19.25\nskipped 1\n");
    assert_eq!(world.read(".scan/columns=cf:city/sum=info:age/stop=d/agg").lines().next(), Some("count 2"));
    assert_eq!(world.read(".scan/start=cleo/sum=info:age/agg"), "count 2\nsum 0\nskipped 1\n");
    assert_eq!(world.read(".scan/prefix=zz/sum=info:age/agg"), "count 0\nsum 0\nskipped 0\n");
    assert_eq!(
        world.read(".scan/sum=info:age/group=1/agg"),
        "group\tcount\tsum\tmin\tmax\tavg\tskipped\na\t1\t31\t31\t31\t31\t0\nb\t1\t7.5\t7.5\t7.5\t7.5\t0\n\
         c\t1\t0\t\t\t\t1\nd\t1\t0\t\t\t\t0\n"
    );
    assert_eq!(world.read(".scan/group=9/where=cf:city=Rome/agg"), "group\tcount\nbob\t1\n");
    assert_eq!(world.errno(".scan/sum=info:age/keys"), libc::EINVAL);
    world.put(b"x", b"info:age", 1, b"9223372036854775807");
    world.put(b"y", b"info:age", 1, b"9223372036854775807");
    assert!(world.read(".scan/start=x/sum=info:age/agg").contains("sum 18446744073709551614\n"));
}

#[test]
fn a_sample_is_spread_over_the_keys() {
    let world = World::new();
    for row in 0..1000 {
        world.put(format!("user{row:04}").as_bytes(), b"cf:x", 1, b"v");
    }
    let rows = |path: &str| world.read(path).lines().map(str::to_owned).collect::<Vec<_>>();
    let ten = rows(".scan/sample=10/keys");
    assert_eq!(ten.len(), 10);
    let numbers: Vec<i32> = ten.iter().map(|row| row[4..].parse().unwrap()).collect();
    let gaps: Vec<i32> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(gaps.iter().all(|gap| (20..=300).contains(gap)), "{numbers:?}");
    assert_eq!(rows(".scan/sample=10/reverse=1/keys"), ten.iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!(rows(".scan/sample=2000/count"), ["1000"]);
    assert_eq!(rows(".scan/sample=0/keys").len(), 0);
    let one: i32 = rows(".scan/sample=1/keys")[0][4..].parse().unwrap();
    assert!((200..800).contains(&one), "{one}");
    let some = rows(".scan/start=user0100/stop=user0200/sample=7/limit=5/keys");
    assert_eq!(some.len(), 5);
    assert!(some.iter().all(|row| row.starts_with("user01")), "{some:?}");
    assert_eq!(rows(".scan/sample=5/filter=RowFilter(=, 'regexstring:7$')/keys").len(), 5);
    assert!(rows(".scan/sample=5/filter=RowFilter(=, 'regexstring:7$')/keys").iter().all(|row| row.ends_with('7')));
    assert_eq!(rows(".scan/sample=5/jsonl").iter().cloned().collect::<BTreeSet<_>>().len(), 5);
    assert_eq!(rows(".scan/prefix=nobody/sample=5/keys").len(), 0);
}
