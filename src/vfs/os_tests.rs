use super::*;
use crate::error::Error;
use std::process::{Command, Stdio};

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn files_hold_what_was_written() {
    let dir = scratch();
    let path = dir.path().join("f");
    let vfs = OsVfs::new();
    let file = vfs.create_new(&path).unwrap();
    assert!(matches!(vfs.create_new(&path), Err(Error::Io { operation: "create", .. })));
    file.write_all_at(b"hello", 3).unwrap();
    file.allocate(100).unwrap();
    file.sync_data().unwrap();
    file.start_writeback(0, 100);
    file.advise_dont_need(0, 100);
    assert_eq!(file.len().unwrap(), 100);
    let mut buf = [1u8; 200];
    assert_eq!(file.read_at(&mut buf, 0).unwrap(), 100);
    assert_eq!(&buf[..9], b"\0\0\0hello\0");
    match file.read_exact_at(&mut buf, 0) {
        Err(Error::Corruption { file, offset: 0, .. }) => assert_eq!(file, path),
        other => panic!("{other:?}"),
    }
    file.set_len(4).unwrap();
    file.sync_all().unwrap();
    assert_eq!(vfs.open_read(&path).unwrap().len().unwrap(), 4);
    assert!(vfs.open_read(&path).unwrap().write_all_at(b"x", 0).is_err());
    vfs.open_write(&path).unwrap().write_all_at(b"x", 0).unwrap();
}

#[test]
fn directories_list_sorted_and_files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let dir = scratch();
    let vfs = OsVfs::new();
    let sub = dir.path().join("s");
    vfs.create_directory(&sub).unwrap();
    vfs.create_directory(&sub).unwrap();
    for name in ["b", "a"] {
        vfs.create_new(&sub.join(name)).unwrap().write_all_at(b"12", 0).unwrap();
    }
    vfs.create_directory(&sub.join("c")).unwrap();
    vfs.sync_directory(&sub).unwrap();
    let listed: Vec<_> = vfs.list(&sub).unwrap().into_iter().map(|e| (e.name, e.is_directory, e.len)).collect();
    assert_eq!(listed, [("a".into(), false, 2), ("b".into(), false, 2), ("c".to_string(), true, 0)]);
    assert_eq!(std::fs::metadata(&sub).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(std::fs::metadata(sub.join("a")).unwrap().permissions().mode() & 0o777, 0o600);
    vfs.rename(&sub.join("a"), &sub.join("b")).unwrap();
    assert!(!vfs.exists(&sub.join("a")).unwrap());
    assert!(vfs.remove_directory(&sub).is_err());
    vfs.remove_file(&sub.join("b")).unwrap();
    vfs.remove_directory(&sub.join("c")).unwrap();
    vfs.remove_directory(&sub).unwrap();
    assert!(vfs.free_space(dir.path()).unwrap() > 0);
    assert!(vfs.list(&sub).is_err());
}

#[test]
fn a_process_meets_its_own_locks() {
    let dir = scratch();
    let path = dir.path().join("LOCK");
    let vfs = OsVfs::new();
    drop(vfs.lock(&path, LockMode::Shared).unwrap());
    assert!(!vfs.exists(&path).unwrap(), "a shared lock writes nothing");
    let exclusive = vfs.lock(&path, LockMode::Exclusive).unwrap();
    for mode in [LockMode::Exclusive, LockMode::Shared] {
        match vfs.lock(&path, mode) {
            Err(Error::Locked { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
            other => panic!("{:?}", other.err()),
        }
    }
    drop(exclusive);
    let first = vfs.lock(&path, LockMode::Shared).unwrap();
    let second = vfs.lock(&path, LockMode::Shared).unwrap();
    drop(first);
    assert!(vfs.lock(&path, LockMode::Exclusive).is_err());
    drop(second);
    vfs.lock(&path, LockMode::Exclusive).unwrap();
}

/// Runs as the other process of [`another_process_is_named`]; on its own it does nothing.
#[test]
fn hold_a_lock_for_another_test() {
    let Ok(path) = std::env::var("CELLFS_TEST_LOCK") else { return };
    let mode = if std::env::var_os("CELLFS_TEST_SHARED").is_some() { LockMode::Shared } else { LockMode::Exclusive };
    let _guard = OsVfs::new().lock(Path::new(&path), mode).unwrap();
    eprintln!("held");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

#[test]
fn another_process_is_named() {
    use std::io::{BufRead, BufReader};
    let dir = scratch();
    let path = dir.path().join("LOCK");
    let vfs = OsVfs::new();
    drop(vfs.lock(&path, LockMode::Exclusive).unwrap());
    for shared in [false, true] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "vfs::os_tests::hold_a_lock_for_another_test", "--nocapture"]);
        command.env("CELLFS_TEST_LOCK", &path).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        if shared {
            command.env("CELLFS_TEST_SHARED", "1");
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("held")));
        match vfs.lock(&path, LockMode::Exclusive) {
            Err(Error::Locked { pid, .. }) => assert_eq!(pid, Some(child.id())),
            other => panic!("{:?}", other.err()),
        }
        assert_eq!(vfs.lock(&path, LockMode::Shared).is_ok(), shared);
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
        vfs.lock(&path, LockMode::Exclusive).unwrap();
    }
}

#[test]
fn mapped_writes_are_writes() {
    let dir = scratch();
    let path = dir.path().join("f");
    let vfs = OsVfs::new();
    let file = vfs.create_new(&path).unwrap();
    file.allocate(1 << 16).unwrap();
    file.map_writes(1 << 16);
    let mut expected = vec![0u8; 100_000];
    for (round, (offset, length)) in
        [(0, 10), (10, 200), (4_000, 9_000), (13_000, 30_000), (43_000, 5), (65_530, 20), (80_000, 20_000)]
            .iter()
            .enumerate()
    {
        let data = vec![round as u8 + 1; *length];
        file.write_all_at(&data, *offset as u64).unwrap();
        expected[*offset..*offset + *length].copy_from_slice(&data);
    }
    file.sync_data().unwrap();
    assert_eq!(file.len().unwrap(), 100_000);
    assert!(std::fs::read(&path).unwrap() == expected);
}

#[test]
fn a_mapped_file_that_is_cut_takes_writes_as_any_other() {
    let dir = scratch();
    let path = dir.path().join("f");
    let vfs = OsVfs::new();
    let file = vfs.create_new(&path).unwrap();
    file.allocate(1 << 16).unwrap();
    file.map_writes(1 << 16);
    file.write_all_at(b"before", 0).unwrap();
    vfs.open_write(&path).unwrap().set_len(4096).unwrap();
    file.write_all_at(b"behind the end", 20_000).unwrap();
    file.write_all_at(b"and on", 30_000).unwrap();
    file.write_all_at(b"within", 100).unwrap();
    let content = std::fs::read(&path).unwrap();
    assert_eq!(content.len(), 30_006);
    assert_eq!((&content[..6], &content[100..106]), (&b"before"[..], &b"within"[..]));
    assert_eq!((&content[20_000..20_014], &content[30_000..]), (&b"behind the end"[..], &b"and on"[..]));
    // Another mapping is none the worse for it.
    let other = vfs.create_new(&dir.path().join("g")).unwrap();
    other.allocate(4096).unwrap();
    other.map_writes(4096);
    other.write_all_at(b"well", 4092).unwrap();
    assert_eq!(other.len().unwrap(), 4096);
}

#[test]
fn where_nothing_can_be_mapped_writes_go_on() {
    let dir = scratch();
    let vfs = OsVfs::new();
    // More files than there may be mappings.
    let files: Vec<_> = (0..70).map(|number| vfs.create_new(&dir.path().join(number.to_string())).unwrap()).collect();
    for file in &files {
        file.allocate(4096).unwrap();
        file.map_writes(4096);
        file.write_all_at(b"written", 10).unwrap();
    }
    for file in &files {
        assert!(std::fs::read(file.path()).unwrap()[10..].starts_with(b"written"));
    }
    let read_only = vfs.open_read(files[0].path()).unwrap();
    read_only.map_writes(4096);
    assert!(read_only.write_all_at(b"x", 0).is_err());
}

/// Not a test of its own: the child of the next one.
#[test]
fn map_a_file_for_another_test() {
    let Some(path) = std::env::var_os("CELLFS_TEST_MAP") else { return };
    let file = OsVfs::new().create_new(std::path::Path::new(&path)).unwrap();
    file.allocate(4096).unwrap();
    file.map_writes(4096);
    file.write_all_at(b"mapped", 0).unwrap();
    println!("mapped");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

#[test]
fn a_bus_error_of_something_else_is_as_fatal_as_ever() {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::ExitStatusExt;
    let dir = scratch();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["vfs::os_tests::map_a_file_for_another_test", "--exact", "--nocapture"])
        .env("CELLFS_TEST_MAP", dir.path().join("f"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("mapped")));
    // The first one ends with the standard library's handler, which restores the default action and hopes for a second one.
    let ended = loop {
        let signal = Command::new("kill").args(["-BUS", &child.id().to_string()]).status().unwrap();
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None => assert!(signal.success()),
        }
    };
    assert_eq!(ended.signal(), Some(7));
}
