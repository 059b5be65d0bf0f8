//! Editors on the real mount: each save is one version of the cell, and no temporary is left.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

mod support;

use support::Place;

fn with_cell() -> Option<Place> {
    if !support::can_mount() {
        return None;
    }
    let place = Place::mounted();
    place.sh("mkdir default/t default/t/r; echo 'first line' > default/t/r/cf:a");
    Some(place)
}

#[test]
fn sed_in_place_makes_one_version_and_keeps_a_backup_cell() {
    let Some(place) = with_cell() else { return };
    let output = place.sh(r#"
        cd default/t/r
        chmod 600 cf:a
        sed -i 's/first/second/' cf:a; cat cf:a; ls -A; ls .versions/cf:a | wc -l; stat -c '%a' cf:a
        sed -i.bak 's/second/third/' cf:a; cat cf:a cf:a.bak; ls -A
    "#);
    assert_eq!(output, "second line\ncf:a\n2\n600\nthird line\nsecond line\ncf:a\ncf:a.bak\n");
    place.unmount();
}

#[test]
fn perl_and_sort_in_place_make_one_version_each() {
    let Some(place) = with_cell() else { return };
    let output = place.sh(r#"
        cd default/t/r
        seq 3 -1 1 > cf:n; sort -n -o cf:n cf:n; tr '\n' ' ' < cf:n; ls .versions/cf:n | wc -l
        perl -pi -e 's/first/second/' cf:a; cat cf:a; ls -A | tr '\n' ' '; ls .versions/cf:a | wc -l
    "#);
    assert_eq!(output, "1 2 3 2\nsecond line\ncf:a cf:n 2\n");
    place.unmount();
}

/// Types into nano on a terminal of its own, and awaits what nano answers.
const TYPIST: &str = r#"
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.environ["TERM"] = "xterm"
    os.execvp("nano", ["nano", "--ignorercfiles"] + sys.argv[1:])
seen = b""
for awaited, keys in [(b"^X", b"typed \x0f"), (b"File Name", b"\r"), (b"Wrote", b"\x18")]:
    while awaited not in seen:
        seen += os.read(terminal, 4096)
    seen = seen.split(awaited, 1)[1]
    os.write(terminal, keys)
try:
    while os.read(terminal, 4096): pass
except OSError: pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

#[test]
fn nano_saves_with_and_without_a_backup() {
    let Some(place) = with_cell() else { return };
    if !support::has_tool("nano") || !support::has_tool("python3") {
        return;
    }
    std::fs::write(place.outside().join("typist.py"), TYPIST).expect("the script");
    let output = place.sh(r#"
        cd default/t/r
        python3 "$OUT/typist.py" cf:a; cat cf:a; ls .versions/cf:a | wc -l; ls -A | tr '\n' ' '
        python3 "$OUT/typist.py" -B cf:a; cat cf:a; ls .versions/cf:a | wc -l; ls -A | tr '\n' ' '; cat cf:a~
        python3 "$OUT/typist.py" -G cf:b; cat cf:b; ls -A | tr '\n' ' '
    "#);
    let expected =
        "typed first line\n2\ncf:a typed typed first line\n3\ncf:a cf:a~ typed first line\ntyped \ncf:a cf:a~ cf:b ";
    assert_eq!(output, expected);
    place.unmount();
}

#[test]
fn emacs_saves_in_every_way_of_keeping_a_backup() {
    let Some(place) = with_cell() else { return };
    if !support::has_tool("emacs") {
        return;
    }
    for (settings, beside) in [
        ("make-backup-files nil", ""),
        ("make-backup-files t", "cf:a~ "),
        ("make-backup-files t backup-by-copying t", "cf:a~ "),
        ("make-backup-files t version-control t", "cf:a.~1~ "),
        ("make-backup-files nil file-precious-flag t", ""),
        ("make-backup-files t file-precious-flag t create-lockfiles t", "cf:a~ "),
    ] {
        let output = place.sh(&format!(
            r#"cd default/t/r; echo 'first line' > cf:a; before=$(ls .versions/cf:a | wc -l)
            emacs -Q -nw --batch --eval '(setq backup-enable-predicate (lambda (name) t) {settings})' cf:a \
                --eval '(progn (goto-char (point-max)) (insert "more\n") (do-auto-save) (save-buffer))' 2>/dev/null
            cat cf:a; echo $(($(ls .versions/cf:a | wc -l) - before)); ls -A | tr '\n' ' '; rm -f cf:a*~"#
        ));
        assert_eq!(output, format!("first line\nmore\n1\ncf:a {beside}"), "emacs with {settings}");
    }
    place.unmount();
}

#[test]
fn vim_saves_in_every_way_of_keeping_a_backup() {
    let Some(place) = with_cell() else { return };
    if !support::has_tool("vim") {
        return;
    }
    for (number, settings) in [
        "backupcopy=auto",
        "backupcopy=yes",
        "backupcopy=no",
        "backupcopy=auto backup",
        "backupcopy=yes backup",
        "backupcopy=no backup",
        "backupcopy=no nowritebackup",
        "backupcopy=yes swapfile",
    ]
    .iter()
    .enumerate()
    {
        let set: String = settings.split(' ').map(|setting| format!("-c 'set {setting}' ")).collect();
        let output = place.sh(&format!(
            "cd default/t/r; before=$(ls .versions/cf:a | wc -l)
             vim -u NONE -i NONE -N -es -c 'set backupskip=' {set} -c '%s/^[a-z0-9]* line/save{number} line/' -c 'wq' cf:a </dev/null
             cat cf:a; echo $(($(ls .versions/cf:a | wc -l) - before)); ls -A | sed '/~$/d'; ls -A | sed -n '/~$/p' | wc -l"
        ));
        let backup = usize::from(settings.ends_with(" backup"));
        assert_eq!(output, format!("save{number} line\n1\ncf:a\n{backup}\n"), "vim with {settings}");
        place.sh("cd default/t/r; rm -f cf:a~");
    }
    place.unmount();
    place.mount(&[]);
    assert_eq!(place.sh("cd default/t/r; cat cf:a; ls -A"), "save7 line\ncf:a\n");
    place.unmount();
}
