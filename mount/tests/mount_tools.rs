//! The everyday tools of a Unix user on the real mount.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

mod support;

use support::Place;

#[test]
fn echo_cat_append_truncate_and_tee() {
    let Some(place) = Place::with_row() else { return };
    let output = place.sh(r#"
        cd default/t/r
        echo one > cf:a; cat cf:a
        echo two >> cf:a; cat cf:a
        printf '%s' 'no newline' | tee cf:b; echo; cat cf:b; echo
        : > cf:a; stat -c '%s' cf:a
        printf '\0\xff\x80' > cf:bin; od -An -tx1 cf:bin
        for i in 1 2 3; do /bin/echo $i; done > cf:loop; tr '\n' ' ' < cf:loop; echo
        ls .versions/cf:loop | wc -l
        ls .versions/cf:a | wc -l
    "#);
    assert_eq!(output, "one\none\ntwo\nno newline\nno newline\n0\n 00 ff 80\n1 2 3 \n1\n3\n");
    place.unmount();
}

#[test]
fn cp_mv_rm_and_dd() {
    let Some(place) = Place::with_row() else { return };
    let output = place.sh(r#"
        cd default/t
        echo value > r/cf:a
        cp r/cf:a r/cf:b
        touch -d '2001-02-03 04:05:06.789012345' r/cf:a; chmod 640 r/cf:a
        cp -p r/cf:a r/cf:c; stat -c '%y %a' r/cf:c
        mv r/cf:c r/cf:d; cat r/cf:d; ls r
        mkdir s; mv r/cf:d s/cf:d; ls s
        mv s s2; ls s2
        dd if=/dev/zero of=r/cf:zero bs=64k count=32 status=none; stat -c '%s' r/cf:zero
        dd if=r/cf:zero of=/dev/null bs=1M status=none
        printf XY | dd of=r/cf:b bs=1 seek=1 conv=notrunc status=none; cat r/cf:b
        truncate -s 3 r/cf:b; cat r/cf:b; echo
        truncate -s 5 r/cf:b; od -An -c r/cf:b
        rm r/cf:a; ls r
        rm -r r s2; ls
        cd ..; rmdir t; ls
    "#);
    let expected = "2001-02-03 04:05:06.789012345 +0000 640\nvalue\ncf:a\ncf:b\ncf:d\ncf:d\ncf:d\n2097152\nvXYue\nvXY\n\
         \x20  v   X   Y  \\0  \\0\ncf:b\ncf:zero\n";
    assert_eq!(output, expected);
    place.unmount();
}

#[test]
fn one_family_is_seen_from_both_sides() {
    let Some(place) = Place::with_row() else { return };
    let output = place.sh(r#"
        cd default/t
        mkdir .cf/info; ls .cf
        echo one > r/info:a; cat .cf/info/r/a; ls .cf/info .cf/cf
        echo two > .cf/info/r/a; cat r/info:a
        ls r; echo three > .cf/info/r/b; ls r
        cat r/cf:c 2>/dev/null || echo three > .cf/cf/r/c; cat r/cf:c
        rm .cf/cf/r/c; cat r/cf:c 2>/dev/null || echo gone
        mv .cf/info/r/b .cf/cf/r/c; cat r/cf:c; cat .cf/info/r/b 2>/dev/null || echo moved
        chmod 600 r/info:a; stat -c %a .cf/info/r/a
        rmdir .cf/info 2>/dev/null || echo 'not empty'
        cp -r .cf/info/r .cf/info/s; cat s/info:a
        rm -r .cf/info/*; ls . .cf/info; rmdir .cf/info; ls .cf
        ls -d .cf/cf/r; tar cf - -C .cf/cf . | tar tf - | grep -c /c
    "#);
    let expected = "cf\ninfo\none\n.cf/cf:\n\n.cf/info:\nr\ntwo\ninfo:a\ninfo:a\ninfo:b\nthree\ngone\nthree\nmoved\n600\nnot empty\ntwo\n\
                    .:\nr\n\n.cf/info:\ncf\n.cf/cf/r\n1\n";
    assert_eq!(output, expected);
    place.unmount();
}

#[test]
fn ls_find_du_df_and_grep() {
    let Some(place) = Place::with_row() else { return };
    place.sh(r#"
        cd default/t
        for row in r1 r2 r3; do mkdir $row; echo "text of $row" > $row/cf:text; printf 12345 > $row/cf:n; done
        rmdir r
    "#);
    let output = place.sh(r#"
        cd default
        ls -a t; ls t/r1
        ls -l t/r2 | awk 'NF > 2 {print $1, $2, $5, $9}'
        find t -type f | sort
        find t -name 'cf:n' -size -6c | wc -l
        grep -r 'of r2' t | cat
        du -sb t/r1 | cut -f1
        stat -f -c '%T' . ; df -T . | awk 'NR==2 {print $2}'
        stat -c '%i' t/r1/cf:n | wc -w
        test "$(ls -i t/r1 | awk '$2 == "cf:n" {print $1}')" = "$(stat -c '%i' t/r1/cf:n)"
        find t -printf '' ; find .. -name .schema | wc -l
    "#);
    let expected = "\
.
..
.schema
r1
r2
r3
cf:n
cf:text
-rw-r--r-- 1 5 cf:n
-rw-r--r-- 1 11 cf:text
t/.schema
t/r1/cf:n
t/r1/cf:text
t/r2/cf:n
t/r2/cf:text
t/r3/cf:n
t/r3/cf:text
3
t/r2/cf:text:text of r2
16
fuse
fuse.cellfs
1
1
";
    assert_eq!(output.replace("fuseblk", "fuse"), expected);
    place.unmount();
}

#[test]
fn two_appenders_lose_nothing() {
    let Some(place) = Place::with_row() else { return };
    let output = place.sh(r#"
        cd default/t/r
        (for i in $(seq 100); do echo "a$i" >> cf:log; done) &
        (for i in $(seq 100); do echo "b$i" >> cf:log; done) &
        wait
        wc -l < cf:log; grep -c '^a' cf:log; sort -u cf:log | wc -l
    "#);
    assert_eq!(output, "200\n100\n200\n");
    place.unmount();
}

#[test]
fn python_maps_and_seeks() {
    let Some(place) = Place::with_row() else { return };
    if !support::has_tool("python3") {
        return;
    }
    let output = place.sh(r#"
        cd default/t/r
        printf 'hello mapped world' > cf:m
        python3 - <<'PY'
import mmap, os
with open("cf:m", "rb") as f:
    m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
    print(m[6:12].decode(), len(m), m.find(b"world"))
    m.close()
with open("cf:m", "r+b") as f:
    f.seek(6); f.write(b"MAPPED"); f.flush(); os.fsync(f.fileno())
    f.seek(0); print(f.read().decode())
    f.truncate(5)
print(open("cf:m").read(), os.stat("cf:m").st_size)
fd = os.open("cf:new", os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
print(os.pwrite(fd, b"tail", 4), os.pread(fd, 8, 0)); os.close(fd)
try:
    os.open("cf:new", os.O_CREAT | os.O_EXCL | os.O_RDWR)
except FileExistsError:
    print("exists")
print(oct(os.stat("cf:new").st_mode))
PY
    "#);
    let expected = "mapped 18 13\nhello MAPPED world\nhello 5\n4 b'\\x00\\x00\\x00\\x00tail'\nexists\n0o100600\n";
    assert_eq!(output, expected);
    place.unmount();
}

#[test]
fn errors_have_their_number_and_a_reason() {
    let Some(place) = Place::with_row() else { return };
    let output = place.sh(r#"
        cd default/t
        echo x > r/cf:a
        try() { "$@" 2>&1 && echo "no error: $*" || true; }
        try rmdir r; try mkdir r; try rmdir ../t
        try cat missing; try bash -c 'echo x > r/nofamily:a'; try bash -c 'echo x > file'
        try ln r/cf:a r/cf:b; try ln -s x r/cf:l; try mkfifo r/cf:p; try mkdir r/cf:d
        grep -o 'nofamily.*' ../../.cellfs/errors | head -1 | cut -c1-8
    "#);
    let expected = "\
rmdir: failed to remove 'r': Directory not empty
mkdir: cannot create directory 'r': File exists
rmdir: failed to remove '../t': Directory not empty
cat: missing: No such file or directory
bash: line 1: r/nofamily:a: Invalid argument
bash: line 1: file: Operation not permitted
ln: failed to create hard link 'r/cf:b' => 'r/cf:a': Operation not permitted
ln: failed to create symbolic link 'r/cf:l': Operation not permitted
mkfifo: cannot create fifo 'r/cf:p': Operation not permitted
mkdir: cannot create directory 'r/cf:d': Operation not permitted
nofamily
";
    assert_eq!(output, expected);
    place.unmount();
}

#[test]
fn rows_by_their_logical_keys_are_the_same_rows() {
    let Some(place) = Place::with_row() else { return };
    // The kernel remembers names on the one way that change on the other.
    let output = place.sh(r#"
        cd default/t
        ls 24c9_user1 2>/dev/null || mkdir .via/md5-4/user1
        cat 24c9_user1/cf:a 2>/dev/null || echo v > .via/md5-4/user1/cf:a
        cat 24c9_user1/cf:a; ls . 24c9_user1 .via/md5-4 .via/md5-4/user1
        echo w > 24c9_user1/cf:a; cat .via/md5-4/user1/cf:a
        echo long line > .via/md5-4/user1/cf:a; cat 24c9_user1/cf:a; stat -c %s 24c9_user1/cf:a
        rm .via/md5-4/user1/cf:a; test ! -e 24c9_user1/cf:a
        echo x > 24c9_user1/cf:b; cat .via/md5-4/user1/cf:b
        rm 24c9_user1/cf:b; test ! -e .via/md5-4/user1/cf:b
        echo 7 > .via/md5-4/user1/.as/long/cf:n; od -An -tx1 24c9_user1/cf:n; cat 24c9_user1/.as/long/cf:n
        ls .via/md5-4/user1/.versions; ls 24c9_user1/.versions
        mv .via/md5-4/user1 .via/md5-4/user2; ls .
        rm -r .via/md5-4/user2; test ! -e 7e58_user2; ls .; ls .via/md5-4
        mkdir -p .via/salt-4/a .via/salt-4/b; find .via/salt-4 | sort
    "#);
    let expected = "v\n.:\n24c9_user1\nr\n\n.via/md5-4:\nuser1\n\n.via/md5-4/user1:\ncf:a\n\n24c9_user1:\ncf:a\n\
        w\nlong line\n10\nx\n 00 00 00 00 00 00 00 07\n7\ncf:a\ncf:b\ncf:n\ncf:a\ncf:b\ncf:n\n7e58_user2\nr\nr\n\
        .via/salt-4\n.via/salt-4/a\n.via/salt-4/b\n";
    assert_eq!(output, expected);
    place.unmount();
}

#[test]
fn counters_conditions_and_types_from_a_shell() {
    let Some(place) = Place::with_row() else { return };
    let output = place.sh(r#"
        cd default/t
        printf '\n[family.cf.types]\nage = "int"\n' >> .schema; grep -A1 '^\[family.cf.types\]' .schema
        cd r
        for writer in 1 2 3 4; do
            (for i in $(seq 25); do echo '{"$incr": {"cf:n": 1}, "$append": {"cf:log": "x"}}' > .row.json; done) &
        done
        wait
        cat .as/long/cf:n; stat -c %s cf:n cf:log
        echo '{"$if": {"cf:n": null}, "cf:a": "no"}' > .row.json 2>/dev/null && echo done || echo refused
        grep -c 'ECANCELED.*\$if does not hold' "$OLDPWD/../../.cellfs/errors"
        echo '{"$if": {"cf:a": null}, "cf:a": "yes"}' > .row.json; cat cf:a; echo
        echo 34 > .as/int/cf:age; od -An -tx1 cf:age; grep age .row.json
        echo many > .as/int/cf:age 2>/dev/null && echo done || echo refused
        cat .as/int/cf:age; cat .as/long/cf:age 2>/dev/null || echo unreadable
        ls .as/int
    "#);
    let expected = "[family.cf.types]\nage = \"int\"\n100\n8\n100\nrefused\n1\nyes\n 00 00 00 22\n  \"cf:age\": 34,\nrefused\n34\n\
        unreadable\ncf:a\ncf:age\ncf:log\ncf:n\n";
    assert_eq!(output, expected);
    place.unmount();
}

#[test]
fn of_eight_movers_one_gets_each_task() {
    if !support::can_mount() {
        return;
    }
    let place = Place::mounted();
    let output = place.sh(r#"
        cd default; mkdir t t/tasks; for i in $(seq 20); do echo $i > t/tasks/cf:$i; done
        for w in 1 2 3 4 5 6 7 8; do
            mkdir t/w$w
            (for i in $(seq 20); do if mv t/tasks/cf:$i t/w$w/cf:$i 2>/dev/null; then echo $i; fi; done > "$OUT/$w") &
        done
        wait
        ls t/tasks; cat "$OUT"/[1-8] | sort -n | uniq -c | awk '$1 != 1'; cat "$OUT"/[1-8] | wc -l; cat t/w*/cf:* | sort -n | uniq | wc -l
    "#);
    assert_eq!(output, "20\n20\n");
    place.unmount();
}

#[test]
fn whole_imports_are_seen_at_once_or_not_at_all() {
    let Some(place) = Place::with_row() else { return };
    let output = place.sh(r#"
        cd default/t
        echo old > r/cf:a; cat r/cf:a; stat -c %s r/cf:a; test -e new/cf:a || echo absent
        seq -f 'r%06g,v' 5000 -1 1 | sed '1i row,cf:a' > "$OUT"/big.csv
        printf 'row,cf:a\nr,changed\nnew,there\n' | cat > .import/atomic/csv; cat .import/last | cut -d' ' -f1-3
        cat r/cf:a; echo; stat -c %s r/cf:a; cat new/cf:a; echo
        cat "$OUT"/big.csv > .import/new/csv; cat .scan/count
        cat "$OUT"/big.csv > .import/new/csv 2> "$OUT"/said || echo refused; grep -c 'Invalid argument' "$OUT"/said
        wc -l < .import/errors; head -1 .import/errors
        (echo row,cf:a; echo only,this) | cat > .import/replace/csv
        ls; test -e r || echo gone; cat only/cf:a; echo
    "#);
    let expected = [
        "old\n4\nabsent\nrows=2 cells=2 rejected=0\nchanged\n7\nthere\n5002\n",
        "refused\n1\n5000\nline 5001: the row r000001 exists\nonly\ngone\nthis\n",
    ];
    assert_eq!(output, expected.concat());
    place.unmount();
}

#[test]
fn archives_and_copies_that_go_on_where_they_were() {
    if !support::can_mount() {
        return;
    }
    let place = Place::mounted();
    let output = place.sh(r#"
        cd default; mkdir t t/r; echo 1 > t/r/cf:a
        mkdir "$OUT/src"; seq 1000 > "$OUT/src/cf:p"
        rsync -a --inplace "$OUT/src/" t/r/; echo more >> "$OUT/src/cf:p"; rsync -aX --append "$OUT/src/" t/r/; cmp "$OUT/src/cf:p" t/r/cf:p
        tar cf "$OUT/0.tar" -g "$OUT/state" t; echo x > t/r/cf:new; tar cf "$OUT/1.tar" -g "$OUT/state" t; tar tf "$OUT/1.tar"
        install -m 640 "$OUT/src/cf:p" t/r/cf:i; stat -c '%a %s' t/r/cf:i; cp --reflink=auto t/r/cf:i t/r/cf:j; cmp t/r/cf:i t/r/cf:j
        mkdir u u/r; mv t/r/cf:j u/r/; ls u/r; dash -c 'echo one > u/r/cf:d; echo two >> u/r/cf:d; cat < u/r/cf:d'
        git init -q t/r/g 2>/dev/null || echo "no place for a repository"
    "#);
    let listed = "t/\nt/r/\nt/r/cf:new\n640 3898\ncf:j\none\ntwo\nno place for a repository\n";
    assert_eq!(output, listed);
    place.unmount();
}
