//! Snapshots and the past as directories, with bash and common tools on a real mount.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

mod support;

use support::Place;

/// A table `default/t` that keeps five versions and its deleted cells, with three rows.
fn with_table() -> Option<Place> {
    if !support::can_mount() {
        return None;
    }
    let place = Place::mounted();
    place.sh(r#"
        cd default; mkdir t
        sed -i 's/^VERSIONS = .*/VERSIONS = 5/; s/^KEEP_DELETED_CELLS = .*/KEEP_DELETED_CELLS = "TRUE"/' t/.schema
        for i in 1 2 3; do mkdir t/row$i; echo "old $i" > t/row$i/cf:a; done
        mkdir t/%2Edot; echo hidden > t/%2Edot/cf:q; chmod 700 t/row3
    "#);
    Some(place)
}

#[test]
fn a_snapshot_is_a_directory_that_stays() {
    let Some(place) = with_table() else { return };
    let out = place.sh(r#"
        cd default; cp -a t "$OUT/then"
        mkdir t/.snap/one
        echo new > t/row1/cf:a; rm -r t/row2; mkdir t/row9; echo 9 > t/row9/cf:a
        diff -r "$OUT/then" t/.snap/one
        [ "$(stat -c %a t/.snap/one/row3)" = 700 ]
        [ "$(cat t/.snap/one/row1/.key)" = row1 ]
        cat t/.snap/one/.scan/limit=1/keys t/.snap/one/row1/.row.json
        for change in 'echo x > t/.snap/one/row1/cf:a' 'rm t/.snap/one/row1/cf:a' 'mkdir t/.snap/one/rowX' \
            'mv t/.snap/one/row1 t/.snap/one/rowX' 'touch t/.snap/one/row1/cf:z' 'chmod 600 t/.snap/one/row1/cf:a'; do
            if eval "$change" 2>"$OUT/error"; then echo "accepted: $change"; fi
            grep -q 'Read-only file system' "$OUT/error" || cat "$OUT/error"
        done
        mkdir t/.snap/one 2>/dev/null && echo "taken twice"
        rmdir t 2>"$OUT/error" || grep -q 'not empty' "$OUT/error"
        mkdir t/.snap/two; ls t/.snap
        mv t/.snap/two t/.snap/zwei; ls t/.snap
        cp -a t/.snap/one/row2 t/; cmp t/row2/cf:a "$OUT/then/row2/cf:a"
        tar cf - -C t/.snap/one . | tar xf - -C "$OUT" --one-top-level=tarred; diff -r "$OUT/then" "$OUT/tarred"
        find -L t/.snap | wc -l; du -s t/.snap > "$OUT/du"; ls -a t/.snap/one | head -3 | tr '\n' ' '
        echo major_compact > t/.ctl; echo 'truncate t' > t/.ctl
    "#);
    let keys = "%2Edot\n{\n  \"cf:a\": \"old 1\\n\"\n}\n";
    assert_eq!(out, format!("{keys}one\ntwo\none\nzwei\n21\n%2Edot . .. "));
    place.unmount();
    place.mount(&[]);
    let out = place.sh(r#"
        cd default; diff -r "$OUT/then" t/.snap/one
        echo 'clone one default:copy' > t/.ctl; diff -r "$OUT/then" copy
        echo more > copy/row1/cf:b; ls copy/row1; ls t/.snap/one/row1
        rmdir t/.snap/one t/.snap/zwei; ls t/.snap; rmdir t; ls; cat copy/row2/cf:a
    "#);
    assert_eq!(out, "cf:a\ncf:b\ncf:a\ncopy\nold 2\n");
}

#[test]
fn the_past_is_a_directory_too() {
    let Some(place) = with_table() else { return };
    let out = place.sh(r#"
        count() { pattern="$1"; shift; { "$@" 2>&1 || true; } | grep -c "$pattern"; }
        cd default; cp -a t "$OUT/then"; sleep 0.02; then=$(date +%s%3N); sleep 0.02
        echo new > t/row1/cf:a; rm -r t/row2; mkdir t/row9; echo 9 > t/row9/cf:a
        diff -r "$OUT/then" t/.at/$then && diff -r "$OUT/then" ../.at/$then/default/t
        ls ../.at/$then; ls ../.at/$then/default; cat t/row1/.at/$then/cf:a
        count 'No such file' ls t/row9/.at/$then
        ls t/.at/-0s/
        echo x 2>/dev/null > t/.at/$then/row1/cf:a || echo refused
        count 'Invalid argument' ls t/.at/12345; count 'No such file' ls t/.at/when
        find -L t/.at/$then ../.at/$then | wc -l; ls t/.at ../.at
        sed -i 's/^VERSIONS = .*/VERSIONS = 1/; s/^KEEP_DELETED_CELLS = .*/KEEP_DELETED_CELLS = "FALSE"/' t/.schema
        echo newer > t/row1/cf:a; echo major_compact > t/.ctl
        count 'No data available' ls t/.at/$then; count 'No data available' ls t/row1/.at/$then
        ls ../.at/$then/default; count 'No data available' ls ../.at/$then/default/t
        grep -c 'VERSIONS = 1' ../.cellfs/errors; ls t/.at/-0s/
    "#);
    let lines: Vec<&str> = out.lines().collect();
    let rows_then = ["default", "t", "old 1", "1"];
    assert_eq!(lines.get(..4), Some(&rows_then[..]), "{out}");
    let rest = ["%2Edot", "row1", "row3", "row9", "refused", "1", "1", "22"];
    assert_eq!(lines.get(4..12), Some(&rest[..]), "{out}");
    assert!(out.contains("1\n1\nt\n1\n"), "{out}");
    assert!(out.ends_with("%2Edot\nrow1\nrow3\nrow9\n"), "{out}");
}

#[test]
fn two_tables_change_places() {
    let Some(place) = with_table() else { return };
    let out = place.sh(r#"
        cd default; mkdir u; mkdir u/r; echo rebuilt > u/r/cf:a
        python3 -c 'import ctypes; libc = ctypes.CDLL(None, use_errno=True)
assert libc.renameat2(-100, b"t", -100, b"u", 2) == 0, ctypes.get_errno()'
        cat t/r/cf:a u/row1/cf:a
    "#);
    assert_eq!(out, "rebuilt\nold 1\n");
}

#[test]
fn a_table_becomes_what_it_was() {
    let Some(place) = with_table() else { return };
    let out = place.sh(r#"
        cd default; cp -a t "$OUT/then"; mkdir t/.snap/s; sleep 0.02; then=$(date +%s%3N); sleep 0.02
        echo new > t/row1/cf:a; rm -r t/row2; mkdir t/row9; echo 9 > t/row9/cf:a; mkdir t/zeta; echo z > t/zeta/cf:a
        echo "restore $then prefix=row" > t/.ctl; ls t; cat t/row1/cf:a
        echo 'restore s' > t/.ctl; diff -r "$OUT/then" t
        echo 'split row2' > t/.ctl; echo 'merge row2' > t/.ctl; ls t/.regions | wc -l
        echo 'delete_range row1 row3' > t/.ctl; ls t; cat t/row3/cf:a
        echo 'restore nothing' > t/.ctl || echo refused
        mkdir p; echo 'presplit hex 4' > p/.ctl; ls p/.regions | wc -l; echo 'presplit m c' > p/.ctl; ls p/.regions | wc -l
        grep SPLITS p/.schema; echo 'presplit c' > t/.ctl || echo refused
    "#);
    assert_eq!(
        out,
        "%2Edot\nrow1\nrow2\nrow3\nzeta\nold 1\n1\n%2Edot\nrow3\nold 3\nrefused\n4\n3\nSPLITS = [\"c\", \"m\"]\nrefused\n"
    );
}
