//! Shells and the tools of every script on the real mount: redirections of every kind, find, xargs, split, modes of whole trees.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

mod support;

use support::{Place, has_tool};

#[test]
fn redirections_of_bash() {
    let Some(place) = Place::with_row() else { return };
    let output = place.sh(r#"
        cd default/t/r; versions() { ls ".versions/$1" | wc -l; }
        echo 1 > cf:a; set -o noclobber; (echo no > cf:a) 2>/dev/null && echo clobbered; echo 2 >| cf:a; set +o noclobber; cat cf:a
        echo both &> cf:b; ls nothing &>> cf:b || true; sed 's/:.*//' cf:b
        { echo out; echo err >&2; } > cf:c 2>&1; cat cf:c
        exec 3<> cf:a; read -r -u 3 x; echo "got $x"; echo more >&3; exec 3>&-; cat cf:a
        exec {fd}> cf:d; echo one >&$fd; echo two >&$fd; exec {fd}>&-; cat cf:d; versions cf:d
        cat > cf:e <<< 'here string'; cat cf:e
        cat << END > cf:f
here
END
        echo "$(< cf:f)"; mapfile -t lines < cf:d; echo ${#lines[@]} ${lines[1]}
        tee -a cf:f cf:g < cf:e > /dev/null; cat cf:f cf:g
        diff cf:a <(cat cf:a) && echo same
        while read -r line; do echo "<$line>"; done < cf:d > cf:i; cat cf:i; versions cf:i
        cat 0< cf:i 1> cf:j 2>/dev/null; cmp cf:i cf:j
        coproc cat > cf:k; echo co >&${COPROC[1]}; exec {COPROC[1]}>&-; wait; cat cf:k
        : > cf:l; > cf:m; stat -c '%n %s' cf:l cf:m
        printf x >> cf:n; printf y >> cf:n; cat cf:n; echo
        echo self > cf:o; cat cf:o >> cf:o 2>/dev/null || echo 'cat refuses'; cat cf:o
        (echo sub; exec >> cf:p; echo inner); cat cf:p
    "#);
    let expected = "2\nboth\nls\nout\nerr\ngot 2\n2\nmore\none\ntwo\n1\nhere string\nhere\n2 two\nhere\nhere string\nhere string\nsame\n\
        <one>\n<two>\n1\nco\ncf:l 0\ncf:m 0\nxy\ncat refuses\nself\nsub\ninner\n";
    assert_eq!(output, expected);
    place.unmount();
}

#[test]
fn redirections_of_dash() {
    let Some(place) = Place::with_row() else { return };
    if !has_tool("dash") {
        return;
    }
    let output = place.sh(r#"dash -eu << 'SCRIPT'
        cd default/t/r
        echo 1 > cf:a; echo 2 >> cf:a; cat < cf:a
        set -C; (echo no > cf:a) 2>/dev/null || echo kept; echo 3 >| cf:a; set +C; cat cf:a
        { echo out; echo err >&2; } > cf:c 2>&1; cat cf:c
        exec 3<> cf:a; read -r x <&3; echo "got $x"; echo more >&3; exec 3>&-; cat cf:a
        exec 4> cf:d; echo one >&4; echo two >&4; exec 4>&-; cat cf:d; ls .versions/cf:d | wc -l
        cat << END > cf:f
here
END
        cat cf:f; while read -r line; do echo "<$line>"; done < cf:d > cf:i; cat cf:i
        for i in 1 2 3; do echo $i; done | tail -n 2 > cf:q; cat cf:q
        : > cf:a; test ! -s cf:a && echo empty
SCRIPT
    "#);
    let expected = "1\n2\nkept\n3\nout\nerr\ngot 3\n3\nmore\none\ntwo\n1\nhere\n<one>\n<two>\n2\n3\nempty\n";
    assert_eq!(output, expected);
    place.unmount();
}

#[test]
fn split_find_xargs_and_awk() {
    let Some(place) = Place::with_row() else { return };
    let output = place.sh(r#"
        cd default/t/r; seq 1000 > cf:lines
        split -l 300 cf:lines cf:part-; ls | tr '\n' ' '; cat cf:part-* | cmp - cf:lines && echo whole
        touch -d '2020-01-01' cf:part-aa; find . -newer cf:part-aa -name 'cf:part*' | sort | tr '\n' ' '; echo
        find . -name 'cf:part*' -size -1100c -delete; ls | tr '\n' ' '; echo
        ls cf:* | xargs -P 4 -I{} cp {} {}.copy; ls | wc -l; cmp cf:lines cf:lines.copy
        awk '{ sum += $1 } END { print sum > "cf:sum"; print "done" > "/dev/stderr" }' cf:lines 2> cf:said; cat cf:sum cf:said
        find .. -mindepth 1 -empty -type f | wc -l; find . -perm 644 -user "$(id -u)" | wc -l
    "#);
    let expected = "cf:lines cf:part-aa cf:part-ab cf:part-ac cf:part-ad whole\n./cf:part-ab ./cf:part-ac ./cf:part-ad \n\
        cf:lines cf:part-ab cf:part-ac \n6\n500500\ndone\n0\n8\n";
    assert_eq!(output, expected);
    place.unmount();
}

#[test]
fn patch_and_gawk_in_place() {
    let Some(place) = Place::with_row() else { return };
    if !has_tool("patch") || !has_tool("gawk") {
        return;
    }
    let output = place.sh(r#"
        cd default/t/r; echo one > cf:a; echo two > "$OUT/two"
        diff -u cf:a "$OUT/two" > "$OUT/diff" || true
        patch -s cf:a < "$OUT/diff"; cat cf:a; patch -s -b -R cf:a < "$OUT/diff"; cat cf:a cf:a.orig
        before=$(ls .versions/cf:a | wc -l)
        gawk -i inplace '{ print $1, "more" }' cf:a; cat cf:a; echo $(($(ls .versions/cf:a | wc -l) - before)); ls -A | tr '\n' ' '
    "#);
    assert_eq!(output, "two\none\ntwo\none more\n1\ncf:a cf:a.orig ");
    place.unmount();
}

#[test]
fn modes_owners_and_times_of_whole_trees() {
    let Some(place) = Place::with_row() else { return };
    let root = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").expect("/proc is there")) == 0;
    let owner = if root { "1234:5" } else { "$(id -u):$(id -g)" };
    let output = place.sh(&format!(
        r#"
        cd default; for i in 1 2 3; do mkdir t/row$i; echo $i > t/row$i/cf:a; done; rmdir t/r
        ls t/row1/.versions/cf:a > "$OUT/before"
        chmod -R u=rwX,go= t; chown -R {owner} t; touch -d '2001-02-03 04:05:06.5' t/row*/cf:a t/row*
        find t -mindepth 1 ! -name .schema -printf '%P %m %TY-%Tm-%Td %TT\n' | sort
        [ "$(find t ! -uid "$(echo {owner} | cut -d: -f1)" | wc -l)" = 0 ]
        ls -lR t | grep -c ' cf:a$'; ls t/row1/.versions/cf:a | diff - "$OUT/before" | wc -l
        stat -c '%n %F %s %h %b %B' t/row1/cf:a t/row1
        "#
    ));
    let time = "2001-02-03 04:05:06.5000000000";
    let rows: String =
        ["row1", "row2", "row3"].iter().map(|row| format!("{row} 700 {time}\n{row}/cf:a 600 {time}\n")).collect();
    assert_eq!(output, format!("{rows}3\n0\nt/row1/cf:a regular file 2 1 1 512\nt/row1 directory 0 1 0 512\n"));
    place.unmount();
}

/// As many as the programs can remove in a time that a test may take.
const ROWS: u32 = if cfg!(debug_assertions) { 20_000 } else { 100_000 };

#[test]
fn rm_rf_removes_every_row_in_one_pass() {
    if !support::can_mount() {
        return;
    }
    let place = Place::mounted();
    let output = place.sh(&format!(
        r#"
        cd default; mkdir t
        {{ printf 'row\tcf:a\n'; seq -f 'row%06.0f%%09x' {ROWS} | sed 's/%09/\t/'; }} > t/.import/tsv
        ls t | wc -l
        rm -rf t; ls -A; mkdir t; ls t
        "#
    ));
    assert_eq!(output, format!("{ROWS}\n"));
    place.unmount();
}

#[test]
fn what_a_killed_program_wrote_is_committed() {
    let Some(place) = Place::with_row() else { return };
    // The kernel closes a dead program's files: what it wrote is taken for the whole, but for what is still beside the cell.
    let output = place.sh(r#"
        cd default/t/r; echo old > cf:a; echo old > cf:b
        bash -c 'exec 3> cf:a 4> cf:b~; printf half >&3; printf half >&4; kill -9 $$' || true
        cat cf:a; echo; cat cf:b; ls -A; ls .versions/cf:a | wc -l
    "#);
    assert_eq!(output, "half\nold\ncf:a\ncf:b\ncf:b~\n2\n");
    place.unmount();
}
