//! The command itself: what it returns, what it says, and what survives.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use support::{CELLFS, Place, cellfs, text};

/// Exit code and the one line on stderr.
fn failure(output: &Output) -> (i32, String) {
    let said = text(&output.stderr);
    assert_eq!(said.trim_end().lines().count(), 1, "one line, not: {said}");
    (output.status.code().unwrap_or(-1), said.trim_end().to_owned())
}

fn path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[test]
fn help_teaches_and_wrong_usage_is_2() {
    for command in ["mount", "unmount", "check", "hfile", "import", "export"] {
        let output = cellfs(&[command, "--help"]);
        assert!(output.status.success());
        assert!(text(&output.stdout).contains("Example"), "{command} --help shows examples");
        assert_eq!(cellfs(&[command]).status.code(), Some(2), "{command} without arguments");
        assert_eq!(cellfs(&[command, "--nonsense"]).status.code(), Some(2));
    }
    assert!(text(&cellfs(&["--help"]).stdout).contains("cellfs mount"));
    assert_eq!(cellfs(&["--version"]).status.code(), Some(0));
    assert_eq!(cellfs(&["frobnicate"]).status.code(), Some(2));
    let (code, said) = failure(&cellfs(&["mount", "/tmp/s", "/tmp/m", "-o", "readonly"]));
    assert_eq!(code, 2);
    assert!(said.contains("readonly") && said.contains("allow_other"), "{said}");
}

#[test]
fn each_obstacle_is_named_in_one_line() {
    if !support::can_mount() {
        return;
    }
    let place = Place::new();
    let refused = |store: &Path, point: &Path| failure(&cellfs(&["mount", &path(store), &path(point)]));

    let (code, said) = refused(&place.store(), &place.outside().join("missing"));
    assert_eq!(code, 1);
    assert!(said.contains("does not exist") && said.contains("mkdir"), "{said}");
    assert!(!place.store().exists(), "nothing is made for a mount that cannot be");

    fs::create_dir(place.outside().join("other")).expect("mkdir");
    fs::write(place.outside().join("other/file"), b"precious").expect("write");
    let (code, said) = refused(&place.outside().join("other"), &place.point());
    assert_eq!(code, 1);
    assert!(said.contains("not a cellfs store") && said.contains("file"), "{said}");
    assert_eq!(fs::read_dir(place.outside().join("other")).expect("list").count(), 1, "it is left as it was");

    let (code, said) = refused(&place.outside().join("other/file"), &place.point());
    assert_eq!(code, 1, "{said}");

    let (code, said) = failure(&cellfs(&["mount", &path(&place.store()), &path(&place.point()), "-o", "ro"]));
    assert_eq!(code, 1);
    assert!(said.contains("not a cellfs store"), "{said}");

    place.mount(&[]);
    let second = place.outside().join("second");
    fs::create_dir(&second).expect("mkdir");
    let (code, said) = refused(&place.store(), &second);
    assert_eq!(code, 1);
    assert!(said.contains(&format!("process {}", place.daemon())), "the holder is named: {said}");
    let (code, said) = refused(&place.outside().join("new"), &place.point());
    assert_eq!(code, 1);
    assert!(said.contains("mount point already"), "{said}");
    let (code, said) = failure(&cellfs(&["check", &path(&place.store())]));
    assert_eq!(code, 2, "a mounted store cannot be judged: {said}");
    assert!(said.contains(&format!("process {}", place.daemon())), "{said}");

    let mut inside = Command::new("sleep").arg("600").current_dir(place.point()).spawn().expect("sleep runs");
    let (code, said) = failure(&cellfs(&["unmount", &path(&place.point())]));
    inside.kill().and_then(|()| inside.wait()).expect("sleep ends");
    assert_eq!(code, 1);
    assert!(said.contains("busy"), "{said}");
    place.unmount();
    let (code, said) = failure(&cellfs(&["unmount", &path(&place.point())]));
    assert_eq!(code, 1);
    assert!(said.contains("no store is mounted"), "{said}");
}

#[test]
fn everything_closed_survives_a_killed_daemon() {
    if !support::can_mount() {
        return;
    }
    let place = Place::mounted();
    place.sh("mkdir default/t");
    for round in 1..=3 {
        place.sh(&format!(
            "cd default/t; for i in $(seq 30); do mkdir -p r$i; echo {round}-$i > r$i/cf:a; done; rm r{round}/cf:a"
        ));
        place.kill_daemon();
        let error = fs::read_dir(place.point()).expect_err("the mount is dead");
        assert_eq!(error.raw_os_error(), Some(libc::ENOTCONN));
        // Mounting over the dead mount takes it away.
        place.mount(&[]);
        let output = place.sh("cd default/t; cat r*/cf:a | sort -u | wc -l; ls -d r*/cf:a 2>/dev/null | wc -l");
        assert_eq!(output, "29\n29\n", "round {round}");
    }
    place.kill_daemon();
    assert!(cellfs(&["unmount", &path(&place.point())]).status.success(), "a dead mount can be unmounted");
    let check = cellfs(&["check", &path(&place.store())]);
    assert!(check.status.success(), "{}{}", text(&check.stdout), text(&check.stderr));
}

#[test]
fn signals_unmount_cleanly_and_the_front_stays_in_front() {
    if !support::can_mount() {
        return;
    }
    for signal in ["TERM", "INT"] {
        let place = Place::new();
        let mut daemon = Command::new(CELLFS)
            .args(["mount", "-f", &path(&place.store()), &path(&place.point())])
            .stdin(Stdio::null())
            .spawn()
            .expect("the command runs");
        while !place.point().join(".cellfs/status").exists() {
            assert!(daemon.try_wait().expect("wait").is_none(), "it stays in front");
            std::thread::yield_now();
        }
        assert_eq!(place.daemon(), daemon.id());
        place.sh("mkdir default/t default/t/r; echo kept > default/t/r/cf:a");
        Command::new("kill").args(["-s", signal, &daemon.id().to_string()]).status().expect("kill runs");
        assert!(daemon.wait().expect("wait").success());
        assert_eq!(fs::read_dir(place.point()).expect("the bare directory").count(), 0);
        place.mount(&["-o", "ro"]);
        assert_eq!(place.sh("cat default/t/r/cf:a"), "kept\n");
        assert!(!place.try_sh("echo new > default/t/r/cf:a").status.success(), "ro means read only");
        place.unmount();
    }
}

#[test]
fn a_mount_right_after_umount_waits_for_the_store() {
    if !support::can_mount() {
        return;
    }
    let place = Place::mounted();
    place.sh("mkdir default/t default/t/r");
    for round in 0..5 {
        place.sh(&format!("head -c 300000 /dev/urandom > default/t/r/cf:big; echo {round} > default/t/r/cf:n"));
        assert!(Command::new("umount").arg(place.point()).status().expect("umount runs").success());
        place.mount(&[]);
        assert_eq!(place.sh("cat default/t/r/cf:n"), format!("{round}\n"));
    }
    place.unmount();
}

#[test]
fn mount_8_finds_its_helper() {
    if !support::can_mount() {
        return;
    }
    let place = Place::new();
    let helper = place.outside().join("mount.cellfs");
    std::os::unix::fs::symlink(CELLFS, &helper).expect("symlink");
    let run = |arguments: &[&str]| {
        let places = [path(&place.store()), path(&place.point())];
        Command::new(&helper).args(&places).args(arguments).output().expect("the helper runs")
    };
    assert!(run(&["-f", "-o", "rw"]).status.success(), "-f is a mount in pretence");
    assert!(!place.store().exists());
    assert_eq!(run(&["-o", "bogus"]).status.code(), Some(2));
    let output =
        run(&["-s", "-n", "-v", "-o", "rw,noauto,nofail,x-systemd.automount,bogus,family=info", "-t", "cellfs"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    place.sh("mkdir default/t default/t/r; echo x > default/t/r/info:a");
    place.unmount();
}

#[test]
fn check_finds_damage_and_tells_where() {
    if !support::can_mount() {
        return;
    }
    let place = Place::mounted();
    place.sh(r#"
        mkdir default/t; cd default/t
        for i in $(seq 200); do mkdir r$i; echo "value $i" > r$i/cf:a; done; echo flush > .ctl
    "#);
    place.unmount();
    let store = path(&place.store());
    let check = cellfs(&["check", &store, "--json"]);
    assert!(check.status.success(), "{}", text(&check.stderr));
    assert!(text(&check.stdout).contains("\"sound\":true"), "{}", text(&check.stdout));
    assert_eq!(cellfs(&["check", &path(place.outside())]).status.code(), Some(2), "no store");

    let file = fs::read_dir(place.store().join("data")).expect("list").next().expect("a file").expect("entry").path();
    let mut bytes = fs::read(&file).expect("read");
    bytes[100] ^= 1;
    fs::write(&file, &bytes).expect("write");
    let check = cellfs(&["check", &store]);
    assert_eq!(check.status.code(), Some(1));
    let name = file.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(text(&check.stdout).contains(&name) && text(&check.stdout).contains("at byte"), "{}", text(&check.stdout));

    fs::remove_file(&file).expect("remove");
    let check = cellfs(&["check", &store]);
    assert_eq!(check.status.code(), Some(1));
    assert!(text(&check.stdout).contains("the directory does not"), "{}", text(&check.stdout));
}

#[test]
fn import_takes_every_form_and_names_what_it_refuses() {
    if !support::can_mount() {
        return;
    }
    let place = Place::new();
    let outside = place.outside().to_path_buf();
    fs::write(outside.join("a.csv"), "row,cf:a,cf:b\nr1,one,\"two, quoted\"\nr2,,b\n").expect("write");
    fs::write(outside.join("b.tsv"), "row\tcf:a\nr3\ttab\\there\n").expect("write");
    fs::write(outside.join("c.jsonl"), "{\"row\": \"r4\", \"cells\": {\"cf:a\": \"j\"}}\nnonsense\n").expect("write");
    let import = |arguments: &[&str]| {
        let mut command = Command::new(CELLFS);
        command.current_dir(&outside).args(["import", "store", "default:t"]).args(arguments);
        command.stdin(Stdio::null()).output().expect("the command runs")
    };
    let (code, said) = failure(&import(&["a.csv"]));
    assert_eq!(code, 1);
    assert!(said.contains("--create"), "{said}");
    let output = import(&["a.csv", "b.tsv", "--create", "cf"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "rows=3 cells=4 rejected=0\n");
    let output = import(&["c.jsonl"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout), "rows=1 cells=1 rejected=1\n");
    let rejects = fs::read_to_string(outside.join("cellfs-import-rejects.txt")).expect("the list");
    assert!(rejects.starts_with("c.jsonl: line 2: "), "{rejects}");

    // All of several files or nothing.
    fs::write(outside.join("d.csv"), "row,cf:a\nr6,new\nr1,again\n").expect("write");
    let output = import(&["d.csv", "c.jsonl", "--atomic"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), "rows=0 cells=0 rejected=1\n".to_owned()));
    assert!(text(&output.stderr).contains("line 2 of file 2: "), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("1 lines were refused, so nothing was imported"), "{}", text(&output.stderr));
    let output = import(&["d.csv", "--new"]);
    assert!(text(&output.stderr).contains("d.csv: line 3: the row r1 exists"), "{}", text(&output.stderr));
    assert_eq!(import(&["d.csv", "--new", "--replace"]).status.code(), Some(2), "one or the other");
    assert_eq!(failure(&import(&["d.csv", "--form", "hfile", "--atomic"])).0, 2);
    let of = ["import", "store", "default:w", "d.csv", "b.tsv", "--create", "cf"];
    let whole = |mode: &str| {
        let output = Command::new(CELLFS).current_dir(&outside).args(of).arg(mode).output().expect("the command runs");
        text(&output.stdout)
    };
    assert_eq!(whole("--new"), "rows=3 cells=3 rejected=0\n");
    assert_eq!(whole("--atomic"), "rows=3 cells=3 rejected=0\n");
    assert_eq!(whole("--replace"), "rows=3 cells=3 rejected=0\n");

    place.mount(&[]);
    assert_eq!(place.sh("ls default/w; cat default/w/r3/cf:a"), "r1\nr3\nr6\ntab\there");
    let output = place
        .sh("cd default/t; cat r1/cf:b; echo; ls r2; od -An -c r3/cf:a; cat r4/cf:a; echo; echo major_compact > .ctl");
    assert_eq!(output, "two, quoted\ncf:b\n   t   a   b  \\t   h   e   r   e\nj\n");
    place.unmount();

    // A store file of the table, copied out, goes into another table with its timestamps.
    let file = fs::read_dir(place.store().join("data")).expect("list").next().expect("a file").expect("entry").path();
    let explained = cellfs(&["hfile", &path(&file), "--cells"]);
    assert!(text(&explained.stdout).contains("entries: 5"), "{}", text(&explained.stdout));
    let cells = cellfs(&["hfile", &path(&file), "--cells", "--json"]);
    let cells = text(&cells.stdout);
    let cells: Vec<serde_json::Value> =
        cells.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect();
    assert_eq!(cells.len(), 5, "one line a cell and nothing else: {cells:?}");
    assert_eq!(cells[0][0], "r1");
    assert_eq!(cells[0][4], "Put");
    assert!(cells[0][6]["seq"].is_u64(), "{}", cells[0]);
    fs::copy(&file, outside.join("copied")).expect("copy");
    let output = Command::new(CELLFS)
        .current_dir(&outside)
        .args(["import", "store", "default:u", "copied", "--create", "cf"])
        .output()
        .expect("the command runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    place.mount(&[]);
    assert_eq!(place.sh("diff default/t/.scan/cells default/u/.scan/cells; ls default/u"), "r1\nr2\nr3\nr4\n");
    place.unmount();
}

#[test]
fn an_export_imported_again_holds_the_same_cells() {
    let place = Place::new();
    let (store, other, lines) = (place.store(), place.outside().join("other"), place.outside().join("lines.cells"));
    let mut cells = String::new();
    for row in 0..50 {
        // The old value is gone with the flush: the family keeps one version.
        cells += &format!(
            "r{row:02}\tcf:a\t3\tput\tnew {row}\nr{row:02}\tcf:a\t2\tcolumn\t\nr{row:02}\tcf:a\t1\tput\told\n"
        );
        cells += &format!("r{row:02}\tcf:\t2\tfamily\t\nr{row:02}\tinfo:\\x00\t7\tput\t\\xFF\n");
    }
    fs::write(&lines, cells).expect("write");
    let import = |store: &Path, files: &[String]| {
        let mut arguments = vec!["import".to_owned(), path(store), "default:t".to_owned()];
        arguments.extend(files.iter().cloned());
        arguments.extend(["--create".to_owned(), "cf,info".to_owned()]);
        let output = cellfs(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    // The exported files and, family by family, what they hold.
    let export = |store: &Path, target: &Path| {
        let output = cellfs(&["export", &path(store), "default:t", &path(target)]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).starts_with("files=2 cells=200 bytes="), "{}", text(&output.stdout));
        let mut files = Vec::new();
        for family in ["cf", "info"] {
            files.extend(
                fs::read_dir(target.join(family)).expect("list").map(|entry| path(&entry.expect("file").path())),
            );
        }
        let dumps =
            files.iter().map(|file| text(&cellfs(&["hfile", file, "--cells", "--json"]).stdout)).collect::<Vec<_>>();
        (files, dumps)
    };
    import(&store, &[path(&lines)]);
    let (files, first) = export(&store, &place.outside().join("first"));
    assert_eq!(first.iter().map(|dump| dump.lines().count()).collect::<Vec<_>>(), [150, 50]);
    import(&other, &files);
    let (_, second) = export(&other, &place.outside().join("second"));
    assert_eq!(first, second);

    let (cut, rows) = (place.outside().join("cut"), place.outside().join("rows"));
    fs::write(&rows, "r40\r\n\nr\\x31\\x30\n").expect("write");
    let options = ["--split", "r20", "--splits", &path(&rows), "--compression", "gz"];
    let output = cellfs(&[&["export", &path(&store), "default:t", &path(&cut)][..], &options].concat());
    assert!(text(&output.stdout).starts_with("files=8 cells=200 bytes="), "{}", text(&output.stderr));
    let files = fs::read_dir(cut.join("cf")).expect("list").map(|entry| path(&entry.expect("file").path()));
    let mut rows: Vec<String> = files
        .map(|file| {
            let described = text(&cellfs(&["hfile", &file, "--json"]).stdout);
            let described: serde_json::Value = serde_json::from_str(&described).expect("JSON");
            assert_eq!(described["compression"], "GZ");
            described["first_row"].as_str().expect("a row").to_owned()
        })
        .collect();
    rows.sort();
    assert_eq!(rows, ["r00", "r10", "r20", "r40"]);
    let (code, said) = failure(&cellfs(&["export", &path(&store), "default:t", "x", "--split", "a\\q"]));
    assert!(code == 2 && said.contains("no escape"), "{said}");

    let (code, said) = failure(&cellfs(&["export", &path(&store), "default:t", &path(&place.outside().join("first"))]));
    assert!(code == 1 && said.contains("not empty"), "{said}");
    let (code, said) =
        failure(&cellfs(&["export", &path(&store), "default:no", &path(&place.outside().join("third"))]));
    assert!(code == 1 && said.contains("default:no"), "{said}");
    let (code, _) = failure(&cellfs(&["export", &path(&place.outside().join("none")), "default:t", "x"]));
    assert!(code == 1 && !place.outside().join("none").exists(), "no store is made");
}
