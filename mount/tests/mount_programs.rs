//! Programs that work on whole trees of files, on the real mount: Python's library, sqlite, jq, git, backups, watchers, file managers.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

mod support;

use support::{Place, has_tool};

/// A table `default/t` with the rows ada and bob, where each of these tools is installed.
fn with_table(tools: &[&str]) -> Option<Place> {
    if !support::can_mount() || !tools.iter().all(|tool| has_tool(tool)) {
        return None;
    }
    let place = Place::mounted();
    place.sh(r#"
        cd default; mkdir t t/ada t/bob; echo Ada > t/ada/cf:name; printf '\0\1\377' > t/ada/cf:bytes; echo Bob > t/bob/cf:name; : > t/bob/cf:empty
        chmod 600 t/ada/cf:name; touch -d '2020-05-06 07:08:10.25' t/*/cf:* t/ada t/bob
    "#);
    Some(place)
}

#[test]
fn pythons_library() {
    let Some(place) = with_table(&["python3"]) else { return };
    let output = place.sh(r#"cd default; python3 - << 'PY'
import csv, json, mmap, os, pathlib, shutil, tempfile
t = pathlib.Path("t")
print(sorted(str(path) for path in t.rglob("cf:*")), (t / "ada" / "cf:name").read_text())
shutil.copytree("t", "u"); print(sorted(os.listdir("u/ada")), os.stat("u/ada/cf:name").st_mtime == os.stat("t/ada/cf:name").st_mtime)
shutil.move("t/bob/cf:empty", "u/ada/cf:moved"); shutil.move("t/bob", "u/carl"); print(os.path.exists("t/bob"), os.listdir("u/carl"))
with open("t/ada/cf:csv", "w", newline="") as out: csv.writer(out).writerows([["a", "b,c"], [1, 'quoted "x"']])
with open("t/ada/cf:csv", newline="") as table: print(list(csv.reader(table)))
with open("t/ada/cf:json", "w") as out: json.dump({"n": [1, None]}, out)
print(json.load(open("t/ada/cf:json")), json.load(open("t/ada/.row.json"))["cf:name"])
with open("t/ada/cf:json", "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as mapped: print(mapped[:4])
# The way to replace a file: write beside it, rename over it.
with tempfile.NamedTemporaryFile("w", dir="t/ada", delete=False) as beside: beside.write("new")
os.replace(beside.name, "t/ada/cf:name"); print(open("t/ada/cf:name").read(), sorted(os.listdir("t/ada")), len(os.listdir("t/ada/.versions/cf:name")))
with os.scandir("t/ada") as entries: print(sorted((entry.name, entry.stat().st_size, entry.is_file()) for entry in entries)[0])
os.truncate("t/ada/cf:csv", 1); os.utime("t/ada/cf:csv", (1, 2)); print(os.path.getsize("t/ada/cf:csv"), os.path.getmtime("t/ada/cf:csv"))
os.chmod("t/ada/cf:csv", 0o400); print(oct(os.stat("t/ada/cf:csv").st_mode), os.access("t/ada", os.W_OK), os.statvfs("t").f_namemax)
shutil.rmtree("u"); print(os.path.exists("u"), [name for root, _, names in os.walk("t") for name in names][:2])
PY
    "#);
    let expected = "\
['t/ada/cf:bytes', 't/ada/cf:name', 't/bob/cf:empty', 't/bob/cf:name'] Ada

['cf:bytes', 'cf:name'] True
False ['cf:name']
[['a', 'b,c'], ['1', 'quoted \"x\"']]
{'n': [1, None]} Ada

b'{\"n\"'
new ['cf:bytes', 'cf:csv', 'cf:json', 'cf:name'] 2
('cf:bytes', 3, True)
1 2.0
0o100400 True 255
False ['.schema', 'cf:bytes']
";
    assert_eq!(output, expected);
    place.unmount();
}

#[test]
fn sqlite_reads_and_writes_a_cell_and_jq_reads_streams() {
    let Some(place) = with_table(&["sqlite3", "jq"]) else { return };
    let output = place.sh(r#"
        cd default/t; sqlite3 "$OUT/db" 'create table x(a int, b text); insert into x values(1, "one"), (2, "two")'; cp "$OUT/db" ada/cf:db
        sqlite3 -readonly ada/cf:db 'select * from x'; sqlite3 'file:ada/cf:db?immutable=1' 'select count(*) from x'
        rm ada/cf:db ada/cf:bytes
        jq -c '[.row, .cells."cf:name"]' .scan/jsonl; jq -c keys ada/.row.json
        jq -n '{"cf:born": "1815"}' > ada/.row.json; jq -r '."cf:born"' ada/.row.json
    "#);
    assert_eq!(output, "1|one\n2|two\n2\n[\"ada\",\"Ada\\n\"]\n[\"bob\",\"Bob\\n\"]\n[\"cf:name\"]\n1815\n");
    place.unmount();
}

#[test]
fn a_table_is_the_work_tree_of_a_repository_elsewhere() {
    let Some(place) = with_table(&["git"]) else { return };
    let output = place.sh(r#"
        cd default; git init -q t 2>/dev/null || echo 'no place for a repository'
        export GIT_DIR="$OUT/repository" GIT_WORK_TREE="$PWD/t" GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
        git init -q; git add -A; git -c user.name=a -c user.email=b commit -qm all; git status --short
        git ls-files | tr '\n' ' '; echo changed > t/ada/cf:name; rm t/bob/cf:empty; git status --short
        git checkout -q -- .; cat t/ada/cf:name; git status --short; ls -A t | tr '\n' ' '
    "#);
    let expected = "no place for a repository\n.schema ada/cf:bytes ada/cf:name bob/cf:empty bob/cf:name  M ada/cf:name\n D bob/cf:empty\n\
        Ada\n.schema ada bob ";
    assert_eq!(output, expected);
    place.unmount();
}

#[test]
fn rclone_copies_and_syncs() {
    let Some(place) = with_table(&["rclone"]) else { return };
    let output = place.sh(r#"
        cd default; export RCLONE_CONFIG=/dev/null
        rclone copy t "$OUT/plain"; diff -r t "$OUT/plain" && echo same
        mkdir u; rclone sync "$OUT/plain" u; diff -r t u && echo same; stat -c %y u/ada/cf:bytes
        rclone sync "$OUT/plain" u -v 2>&1 | grep -o 'There was nothing to transfer'
        echo more >> "$OUT/plain/ada/cf:name"; rm "$OUT/plain/ada/cf:bytes"; rclone sync "$OUT/plain" u; ls -A u/ada; cat u/ada/cf:name; ls u/ada/.versions/cf:name | wc -l
        rclone check "$OUT/plain" u 2>&1 | grep -o '0 differences found'
    "#);
    let expected = "same\nsame\n2020-05-06 07:08:10.250000000 +0000\nThere was nothing to transfer\ncf:name\nAda\nmore\n2\n0 differences found\n";
    assert_eq!(output, expected);
    place.unmount();
}

#[test]
fn restic_and_borg_back_up_and_restore() {
    let Some(place) = with_table(&["restic", "borg"]) else { return };
    let output = place.sh(r#"
        listing() { (cd "$1"; find . -mindepth 1 ! -name .schema -printf '%P %y %m %U:%G %T@\n' | sort); }
        cd default; export HOME="$OUT" RESTIC_PASSWORD=x BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes
        restic init -q -r "$OUT/restic"; restic -q -r "$OUT/restic" backup t
        restic -r "$OUT/restic" backup t | grep -o '^Files:  *0 new,  *0 changed'; mkdir "$OUT/plain"
        restic -q -r "$OUT/restic" restore latest -t "$OUT/plain"; diff -r t "$OUT/plain/t"; diff <(listing t) <(listing "$OUT/plain/t")
        mv t saved; restic -q -r "$OUT/restic" restore latest -t .; diff -r saved t; diff <(listing saved) <(listing t); rm -r saved
        borg init -e none "$OUT/borg"; borg create "$OUT/borg::one" t; borg create --list --filter AM "$OUT/borg::two" t
        cp -a t before; echo more >> t/ada/cf:name; rm t/bob/cf:name; borg extract "$OUT/borg::one"
        diff -r before t; diff <(listing before) <(listing t); ls | tr '\n' ' '
    "#);
    assert_eq!(output, "Files:           0 new,     0 changed\nbefore t ");
    place.unmount();
}

#[test]
fn watchers_see_what_is_done_by_system_calls() {
    let Some(place) = with_table(&["inotifywait"]) else { return };
    let output = place.sh(r#"
        cd default/t
        inotifywait -m --format '%e %f' ada > "$OUT/events" 2> "$OUT/said" & watcher=$!
        until grep -q 'Watches established' "$OUT/said"; do :; done
        echo 1 > ada/cf:new; mv ada/cf:new ada/cf:newer; rm ada/cf:newer
        # What a document or an import changes is no system call on the cell.
        echo '{"cf:doc": "x"}' > ada/.row.json; printf 'row\tcf:imported\nada\tv\n' > .import/tsv; cat ada/cf:doc ada/cf:imported
        echo end > ada/cf:end; until grep -q 'CLOSE_WRITE,CLOSE cf:end' "$OUT/events"; do :; done
        kill $watcher; wait 2>/dev/null || true; grep -v -e cf:end -e row.json -e ^OPEN -e ^ACCESS -e NOWRITE "$OUT/events"
    "#);
    let expected = "xvCREATE cf:new\nMODIFY cf:new\nCLOSE_WRITE,CLOSE cf:new\nMOVED_FROM cf:new\nMOVED_TO cf:newer\nDELETE cf:newer\n";
    assert_eq!(output, expected);
    place.unmount();
}

#[test]
fn who_has_it_open_and_how_much_there_is() {
    let Some(place) = with_table(&["lsof", "fuser"]) else { return };
    let output = place.sh(r#"
        cd default/t; exec 5>> ada/cf:name; me=$BASHPID
        lsof -w -t ada/cf:name | grep -cx "$me"; fuser ada/cf:name 2>/dev/null | tr ' ' '\n' | grep -c "^$me$"; exec 5>&-
        lsof -w -t ada/cf:name || echo 'nobody'
        du -b ada | cut -f1; du -sb --apparent-size . | cut -f1 > "$OUT/bytes"; [ "$(cat "$OUT/bytes")" -gt 12 ]
        [ "$(df --output=size . | tail -1)" = "$(df --output=size "$OUT/store" | tail -1)" ]
        df --output=fstype,source . | tail -1 | tr -s ' ' | sed "s|$OUT|OUT|"; stat -f -c '%l' .; [ "$(stat -f -c %a .)" -le "$(stat -f -c %f .)" ]
    "#);
    assert_eq!(output, "1\n1\nnobody\n7\nfuse.cellfs OUT/store\n255\n");
    place.unmount();
}

#[test]
fn updatedb_passes_the_mount_over() {
    let Some(place) = with_table(&["updatedb", "plocate"]) else { return };
    // The advice of docs/operations.md, on this machine's list.
    let output = place.sh(r#"
        [ "$(findmnt -no FSTYPE "$OUT/mount")" = fuse.cellfs ]
        echo seen > "$OUT/cf:seen"
        printf '%s\n' 'PRUNE_BIND_MOUNTS="no"' 'PRUNEFS="nfs proc fuse.cellfs"' > "$OUT/updatedb.conf"
        find() { plocate -d "$OUT/found" cf: | sed "s|$OUT|OUT|" | sort; }
        updatedb -l 0 -o "$OUT/found" -U "$OUT" --prune-bind-mounts no --prunefs 'nfs proc fuse.cellfs' --prunepaths ''; find
        updatedb -l 0 -o "$OUT/found" -U "$OUT" --prune-bind-mounts no --prunefs 'nfs proc' --prunepaths ''; find | wc -l
    "#);
    assert_eq!(output, "OUT/cf:seen\n5\n");
    place.unmount();
}

#[test]
fn what_file_managers_look_for_is_not_there_and_cannot_be_made() {
    let Some(place) = with_table(&[]) else { return };
    let output = place.sh(r#"
        gets() { sed -n 's/^gets //p' default/t/.stats; }
        ls -la default/t default/t/ada > /dev/null; before=$(gets)
        for name in .hidden .Trash .Trash-0 .Trash-1000 .directory .thumbnails .git .gitignore .DS_Store ._x .localized .nomedia .xdg-volume-info .bzr .svn .hg; do
            for place in . default default/t default/t/ada; do
                if [ -e $place/$name ]; then echo "$place/$name is there"; fi
                if mkdir $place/$name 2>/dev/null; then echo "$place/$name was made"; fi
                if (: > $place/$name) 2>/dev/null; then echo "$place/$name was written"; fi
            done
        done
        [ "$(gets)" = "$before" ] || echo "$before reads became $(gets)"
        find . | sort | tr '\n' ' '
    "#);
    assert_eq!(
        output,
        ". ./default ./default/t ./default/t/.schema ./default/t/ada ./default/t/ada/cf:bytes ./default/t/ada/cf:name \
         ./default/t/bob ./default/t/bob/cf:empty ./default/t/bob/cf:name "
    );
    place.unmount();
}
