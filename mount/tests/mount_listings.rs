//! Listings that the kernel keeps: they cost the engine nothing, and are never out of date (docs/semantics.md, "Names").

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

mod support;

use support::Place;

fn place() -> Option<Place> {
    if !support::can_mount() {
        return None;
    }
    let place = Place::mounted();
    place.sh("mkdir default/t; cd default/t; for r in a b c; do mkdir $r; echo 1 > $r/cf:x; echo 2 > $r/cf:y; done");
    Some(place)
}

/// Scans and gets of the table since the mount.
fn engine_work(place: &Place) -> String {
    place.sh("grep -E '^(scans|gets) ' default/t/.stats")
}

#[test]
fn a_warm_ls_costs_no_engine_work() {
    let Some(place) = place() else { return };
    assert_eq!(place.sh("cd default/t; ls; ls -l a b | wc -l; ls -a a"), "a\nb\nc\n9\n.\n..\ncf:x\ncf:y\n");
    let before = engine_work(&place);
    for _ in 0..3 {
        assert_eq!(place.sh("cd default/t; ls; ls -l a b | wc -l; ls -a a"), "a\nb\nc\n9\n.\n..\ncf:x\ncf:y\n");
    }
    assert_eq!(engine_work(&place), before);
    place.unmount();
}

#[test]
fn what_changes_a_directory_is_seen_by_the_next_listing() {
    let Some(place) = place() else { return };
    let list = |directory: &str| place.sh(&format!("ls default/t/{directory} | tr '\\n' ' '"));
    assert_eq!((list(""), list("a"), list("b")), ("a b c ".into(), "cf:x cf:y ".into(), "cf:x cf:y ".into()));
    for (change, directory, expected) in [
        // By what the kernel does itself.
        ("echo 3 > a/cf:z", "a", "cf:x cf:y cf:z "),
        ("rm a/cf:y", "a", "cf:x cf:z "),
        ("mv a/cf:z b/cf:z", "a", "cf:x "),
        ("true", "b", "cf:x cf:y cf:z "),
        ("mkdir d", "", "a b c d "),
        ("rmdir d; mv c e", "", "a b e "),
        ("true", "e", "cf:x cf:y "),
        ("touch .t.csv.swp a/x~; rm .t.csv.swp", "", "a b e "),
        ("true", "a", "cf:x x~ "),
        ("mv a/x~ a/cf:w", "a", "cf:w cf:x "),
        // Past it.
        (r#"echo '{"cf:new": "1", "cf:x": null}' > a/.row.json"#, "a", "cf:new cf:w "),
        ("echo 5 > .cf/cf/a/v", "a", "cf:new cf:v cf:w "),
        ("rm .cf/cf/a/new", "a", "cf:v cf:w "),
        ("mkdir .cf/cf/f; echo 1 > .cf/cf/f/x", "", "a b e f "),
        ("printf 'HBASE_ROW_KEY\\tcf:x\\ng\\t1\\na\\t1\\n' > .import/tsv", "", "a b e f g "),
        ("true", "a", "cf:v cf:w cf:x "),
        ("echo 'delete_range e h' > .ctl", "", "a b "),
        ("mkdir .snap/s; echo 1 > a/cf:zz; mkdir q; echo 1 > q/cf:x; echo 'restore s' > .ctl", "", "a b "),
        ("true", "a", "cf:v cf:w cf:x "),
    ] {
        place.sh(&format!("cd default/t; {change}"));
        assert_eq!(list(directory), expected, "after {change}");
        assert_eq!(list(directory), expected, "again after {change}");
    }
    place.unmount();
}

#[test]
fn the_numbers_of_a_kept_listing_are_those_of_stat() {
    let Some(place) = place() else { return };
    let numbers = "cd default/t/a; for n in $(ls); do [ $(ls -i | grep \" $n\" | awk '{print $1}') = $(stat -c %i $n) ] || echo $n; done";
    place.sh("cd default/t/a; mv cf:x cf:z; ls -i; cd ..; mv b d; ls -i d");
    assert_eq!(place.sh(numbers), "");
    place.unmount();
}
