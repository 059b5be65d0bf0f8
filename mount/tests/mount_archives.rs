//! Archives and copies on the real mount: what goes out comes back the same.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

mod support;

use support::Place;

/// A table `default/t` with rows and cells of many kinds: empty, binary, odd names, modes and times of their own.
fn with_table() -> Option<Place> {
    if !support::can_mount() {
        return None;
    }
    let place = Place::mounted();
    place.sh(r#"
        cd default; mkdir t
        for i in $(seq 1 20); do mkdir t/row$i; echo "value $i" > t/row$i/cf:a; : > t/row$i/cf:empty; done
        mkdir "t/with space" t/%2Fslash 't/%2Ehidden'
        printf '\0\1\377' > "t/with space/cf:b i n"
        echo x > 't/%2Fslash/cf:'; echo y > 't/%2Ehidden/cf:q%7E'
        chmod 600 t/row1/cf:a; chmod 755 t/row2/cf:a; chmod 700 t/row3
        # Not of this second: rsync compares whole seconds, and takes a directory just made for one that needs no time.
        touch -d '2020-05-06 07:08:09.5' t/*/* t/*/
        touch -d '2019-05-06 07:08:09' t/.schema
        touch -d '2002-03-04 05:06:07.123456789' t/row4/cf:a
        touch -d '1999-01-01 00:00:00' t/row5
    "#);
    Some(place)
}

/// Lists a tree with everything that an archive keeps; `.schema` without its time.
const LISTING: &str = r#"
    listing() { (cd "$1"; find . -mindepth 1 ! -name .schema -printf '%P %y %m %U:%G %T@ ' \
        \( -type f -printf '%s' -o -true \) -printf '\n' | sort); (cd "$1"; cat .schema); }
    contents() { (cd "$1"; find . -type f -print0 | sort -z | xargs -0 sha256sum); }
"#;

#[test]
fn tar_both_ways() {
    let Some(place) = with_table() else { return };
    let script = format!(
        r#"{LISTING}
        cd default
        tar cf "$OUT/t.tar" --format=posix -C t .
        mkdir "$OUT/plain"; tar xpf "$OUT/t.tar" -C "$OUT/plain"
        diff -r t "$OUT/plain"
        mkdir u; tar xpf "$OUT/t.tar" -C u
        diff <(contents t) <(contents u)
        diff <(listing t) <(listing u)
        tar cf - --format=posix -C "$OUT/plain" . | tar df - --exclude=.schema -C u
        "#
    );
    assert_eq!(place.sh(&script), "");
    place.unmount();
    place.mount(&[]);
    assert_eq!(
        place.sh(&format!(
            "{LISTING} cd default; diff <(listing t) <(listing u); tar df \"$OUT/t.tar\" --exclude=.schema -C u"
        )),
        ""
    );
    place.unmount();
}

#[test]
fn cp_a_copies_tables_and_rows() {
    let Some(place) = with_table() else { return };
    let script = format!(
        r#"{LISTING}
        cd default
        cp -a t u; diff <(listing t) <(listing u); diff <(contents t) <(contents u)
        cp -a t "$OUT/plain"; diff <(listing t) <(listing "$OUT/plain")
        cp -a "$OUT/plain" v; diff <(listing t) <(listing v)
        cp -a t/row1 t/row1copy; diff -r t/row1 t/row1copy
        rm -r v; ls
        "#
    );
    assert_eq!(place.sh(&script), "t\nu\n");
    place.unmount();
}

#[test]
fn a_second_rsync_transfers_nothing() {
    let Some(place) = with_table() else { return };
    if !support::has_tool("rsync") {
        return;
    }
    let script = format!(
        r#"{LISTING}
        cd default
        rsync -a t/ "$OUT/plain/"; diff <(listing t) <(listing "$OUT/plain")
        rsync -a --itemize-changes t/ "$OUT/plain/"
        rsync -a "$OUT/plain/" u/; diff <(listing t) <(listing u); diff <(contents t) <(contents u)
        rsync -a --itemize-changes "$OUT/plain/" u/
        rsync -ac --itemize-changes --delete "$OUT/plain/" u/
        echo changed > "$OUT/plain/row7/cf:a"
        rsync -a --itemize-changes "$OUT/plain/" u/ | cut -c1-4,12-
        cat u/row7/cf:a; ls -A u/row7
        rm -r "$OUT/plain/row8"; rsync -a --delete --itemize-changes "$OUT/plain/" u/ | grep deleting | sort
        "#
    );
    let expected = ">f.. row7/cf:a\nchanged\ncf:a\ncf:empty\n*deleting   row8/\n*deleting   row8/cf:a\n*deleting   row8/cf:empty\n";
    assert_eq!(place.sh(&script), expected);
    place.unmount();
    place.mount(&[]);
    assert_eq!(
        place.sh("cd default; rsync -a --exclude=.schema --itemize-changes \"$OUT/plain/\" u/"),
        "",
        "after a remount too"
    );
    place.unmount();
}

#[test]
fn tar_over_live_data_replaces_what_is_in_it_and_nothing_else() {
    let Some(place) = with_table() else { return };
    let output = place.sh(&format!(
        r#"{LISTING}
        cd default; tar cf "$OUT/t.tar" --format=posix -C t .; cp -a t before
        for i in 1 2 3; do echo "changed $i" > t/row$i/cf:a; chmod 640 t/row$i/cf:a; done; rm t/row4/cf:a; rm -r t/row5; echo stays > t/row6/cf:new
        tar xpf "$OUT/t.tar" -C t; cat t/row6/cf:new; ls t/row1/.versions/cf:a | grep -vc del; rm t/row6/cf:new; touch -r before/row6 t/row6
        diff <(contents before) <(contents t); diff <(listing before) <(listing t)
        tar xpf "$OUT/t.tar" -C t --overwrite --exclude=.schema; diff <(contents before) <(contents t)
        tar xpf "$OUT/t.tar" -C t --skip-old-files; tar df "$OUT/t.tar" --exclude=.schema -C t
        "#
    ));
    assert_eq!(output, "stays\n3\n");
    place.unmount();
}

#[test]
fn cpio_both_ways() {
    let Some(place) = with_table() else { return };
    if !support::has_tool("cpio") {
        return;
    }
    // cpio keeps whole seconds.
    let output = place.sh(&format!(
        r#"{LISTING} seconds() {{ listing "$1" | sed 's/\.[0-9]* / /'; }}
        cd default; (cd t; find . -depth -print0 | cpio -o0 --quiet -H newc) > "$OUT/t.cpio"
        mkdir "$OUT/plain" u; (cd "$OUT/plain"; cpio -idm --quiet < "$OUT/t.cpio"); diff -r t "$OUT/plain"
        (cd u; cpio -idm --quiet < "$OUT/t.cpio"); diff <(contents t) <(contents u); diff <(seconds t) <(seconds u)
        echo changed > u/row1/cf:a; (cd u; cpio -idmu --quiet < "$OUT/t.cpio"); diff <(contents t) <(contents u); diff <(seconds t) <(seconds u)
        (cd t; find . -depth -print0 | cpio -pdm0 --quiet ../v); diff <(contents t) <(contents v); diff <(seconds t) <(seconds v)
        "#
    ));
    assert_eq!(output, "");
    place.unmount();
}

#[test]
fn zip_and_unzip() {
    let Some(place) = with_table() else { return };
    if !support::has_tool("zip") || !support::has_tool("unzip") {
        return;
    }
    let output = place.sh(&format!(
        r#"{LISTING} seconds() {{ listing "$1" | sed 's/\.[0-9]* / /'; }}
        cd default; (cd t; zip -qr "$OUT/t.zip" .); unzip -q "$OUT/t.zip" -d u
        diff <(contents t) <(contents u); diff <(seconds t) <(seconds u)
        echo changed > u/row1/cf:a; unzip -qo "$OUT/t.zip" -d u; diff <(contents t) <(contents u)
        diff <(seconds t | grep ' f ') <(seconds u | grep ' f ') # unzip sets the times of directories that it makes, of no other
        unzip -qn "$OUT/t.zip" -d u; unzip -qt "$OUT/t.zip"; (cd u; echo more >> row2/cf:a; zip -qur "$OUT/t.zip" .; zip -qd "$OUT/t.zip" row3/cf:a); unzip -p "$OUT/t.zip" row2/cf:a
        "#
    ));
    assert!(output.starts_with("No errors detected"), "{output}");
    assert!(output.ends_with("value 2\nmore\n"), "{output}");
    place.unmount();
}

#[test]
fn rsync_updates_in_place_appends_and_deletes() {
    let Some(place) = with_table() else { return };
    if !support::has_tool("rsync") {
        return;
    }
    let output = place.sh(&format!(
        r#"{LISTING}
        cd default; rsync -aX t/ "$OUT/plain/"; rsync -aX "$OUT/plain/" u/; diff <(listing t) <(listing u)
        # rsync compares whole seconds: each change has its own.
        echo more >> "$OUT/plain/row1/cf:a"; rsync -a --append "$OUT/plain/" u/; cat u/row1/cf:a
        seq 2000 > "$OUT/plain/row2/cf:a"; rsync -a --inplace "$OUT/plain/" u/; sed -i 500d "$OUT/plain/row2/cf:a"; rsync -a --inplace --no-whole-file "$OUT/plain/" u/
        rm -r "$OUT/plain/row3" "$OUT/plain/row4/cf:a"; touch -d 2021-01-01 "$OUT"/plain/row*; rsync -a --delete "$OUT/plain/" u/; diff <(listing "$OUT/plain") <(listing u); diff <(contents "$OUT/plain") <(contents u)
        echo mine >> u/row1/cf:a; rm u/row5/cf:a; touch -d 2022-01-01 u/row*; rsync -aX --delete --inplace u/ "$OUT/plain/"; diff <(listing "$OUT/plain") <(listing u); diff <(contents "$OUT/plain") <(contents u)
        rsync -aXi u/ "$OUT/plain/"; rsync -aXi "$OUT/plain/" u/
        "#
    ));
    assert_eq!(output, "value 1\nmore\n");
    place.unmount();
}
