//! rename(2) of cells, rows and tables (docs/semantics.md, "Renaming").

use crate::kernel::Kernel;
use cellfs_mount::ops::Operations;
use cellfs_mount::ops::{AttributeChanges, TimeChange};

fn rows() -> Kernel {
    let mut kernel = Kernel::new();
    for path in ["default/t", "default/t/r", "default/t/s", "default/u", "default/u/r"] {
        kernel.mkdir(path).unwrap();
    }
    kernel
}

#[test]
fn a_cell_moves_with_its_attributes() {
    let mut kernel = rows();
    kernel.write("default/t/r/cf:a", "value").unwrap();
    let changes = AttributeChanges { mode: Some(0o600), mtime: Some(TimeChange::At(1234)), ..Default::default() };
    kernel.setattr("default/t/r/cf:a", changes).unwrap();
    let before = kernel.stat("default/t/r/cf:a").unwrap();
    for (from, to) in [("r/cf:a", "r/cf:b"), ("r/cf:b", "s/cf:b"), ("s/cf:b", "r/cf:a")] {
        kernel.clock.add(1000);
        kernel.rename(&format!("default/t/{from}"), &format!("default/t/{to}")).unwrap();
        assert!(!kernel.exists(&format!("default/t/{from}")));
        assert_eq!(kernel.read(&format!("default/t/{to}")).unwrap(), "value");
        let after = kernel.stat(&format!("default/t/{to}")).unwrap();
        assert_eq!((after.mode, after.mtime_nanos, after.inode), (0o600, 1234, before.inode));
    }
    let listed = kernel.list_entries("default/t/r", 10, true).unwrap();
    assert!(listed.iter().any(|(name, inode, _)| name == "cf:a" && *inode == before.inode), "d_ino is st_ino");
    let mut kernel = kernel.remount();
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), "value");
    assert_eq!(kernel.stat("default/t/r/cf:a").unwrap().mtime_nanos, 1234);
    assert!(!kernel.exists("default/t/s"));
}

#[test]
fn a_cell_replaces_a_cell_and_its_time_without_a_set_one_stays() {
    let mut kernel = rows();
    kernel.write("default/t/r/cf:a", "new").unwrap();
    kernel.write("default/t/r/cf:b", "old").unwrap();
    let written = kernel.stat("default/t/r/cf:a").unwrap().mtime_nanos;
    let reader = kernel.open("default/t/r/cf:b", libc::O_RDONLY).unwrap();
    kernel.clock.add(5000);
    assert_eq!(kernel.rename_flags("default/t/r/cf:a", "default/t/r/cf:b", libc::RENAME_NOREPLACE), Err(libc::EEXIST));
    kernel.rename("default/t/r/cf:a", "default/t/r/cf:b").unwrap();
    assert_eq!(kernel.list("default/t/r").unwrap(), ["cf:b"]);
    assert_eq!(kernel.read("default/t/r/cf:b").unwrap(), "new");
    assert_eq!(kernel.stat("default/t/r/cf:b").unwrap().mtime_nanos, written);
    assert_eq!(kernel.pread(reader, 0, 10).unwrap(), "old", "open handles keep the replaced value");
    kernel.close(reader).unwrap();
    kernel.rename_flags("default/t/r/cf:b", "default/t/r/cf:c", libc::RENAME_NOREPLACE).unwrap();
    assert_eq!(kernel.list("default/t/r").unwrap(), ["cf:c"]);
}

#[test]
fn a_writer_goes_on_under_the_new_name() {
    let mut kernel = rows();
    let file = kernel.open("default/t/r/cf:a", libc::O_RDWR | libc::O_CREAT).unwrap();
    kernel.pwrite(file, 0, b"one").unwrap();
    kernel.flush(file).unwrap();
    kernel.rename("default/t/r/cf:a", "default/t/r/cf:b").unwrap();
    kernel.pwrite(file, 3, b" two").unwrap();
    kernel.close(file).unwrap();
    assert_eq!(kernel.list("default/t/r").unwrap(), ["cf:b"]);
    assert_eq!(kernel.read("default/t/r/cf:b").unwrap(), "one two");
    assert_eq!(kernel.versions("t", "r", "cf:b").len(), 1);
    let file = kernel.open("default/t/r/cf:new", libc::O_RDWR | libc::O_CREAT).unwrap();
    kernel.pwrite(file, 0, b"never flushed yet").unwrap();
    kernel.rename("default/t/r/cf:new", "default/t/s/cf:new").unwrap();
    kernel.close(file).unwrap();
    assert_eq!(kernel.read("default/t/s/cf:new").unwrap(), "never flushed yet");
    assert_eq!(kernel.list("default/t/r").unwrap(), ["cf:b"]);
}

#[test]
fn a_row_moves_as_a_whole() {
    let mut kernel = rows();
    kernel.mkdir_mode("default/t/old", 0o750).unwrap();
    for cell in ["cf:", "cf:a", "cf:b"] {
        kernel.write(&format!("default/t/old/{cell}"), cell).unwrap();
    }
    kernel.unlink("default/t/old/cf:b").unwrap();
    let writer = kernel.open("default/t/old/cf:a", libc::O_WRONLY | libc::O_APPEND).unwrap();
    kernel.rename("default/t/old", "default/t/new").unwrap();
    assert!(!kernel.exists("default/t/old"));
    assert_eq!(kernel.list("default/t/new").unwrap(), ["cf:", "cf:a"]);
    assert_eq!(kernel.stat("default/t/new").unwrap().mode, 0o750);
    kernel.pwrite(writer, 0, b"+").unwrap();
    kernel.close(writer).unwrap();
    assert_eq!(kernel.read("default/t/new/cf:a").unwrap(), "cf:a+");
    kernel.rename("default/t/new", "default/t/old").unwrap();
    assert_eq!(kernel.list("default/t/old").unwrap(), ["cf:", "cf:a"], "back over its own tombstones");
    kernel.mkdir("default/t/empty").unwrap();
    kernel.rename("default/t/old", "default/t/empty").unwrap();
    assert_eq!(kernel.rename("default/t/r", "default/t/empty"), Err(libc::ENOTEMPTY));
    assert_eq!(kernel.rename_flags("default/t/empty", "default/t/s", libc::RENAME_NOREPLACE), Err(libc::EEXIST));
    kernel.rename("default/t/r", "default/t/moved-empty").unwrap();
    let mut kernel = kernel.remount();
    assert_eq!(kernel.list("default/t").unwrap(), [".schema", "empty"]);
    assert_eq!(kernel.stat("default/t/empty").unwrap().mode, 0o750);
    assert_eq!(kernel.read("default/t/empty/cf:").unwrap(), "cf:");
}

#[test]
fn tables_move_between_namespaces_and_open_handles_go_on() {
    let mut kernel = rows();
    kernel.mkdir("ns").unwrap();
    kernel.write("default/t/r/cf:a", "x").unwrap();
    let file = kernel.open("default/t/r/cf:a", libc::O_RDWR).unwrap();
    let number = kernel.stat("default/t").unwrap().inode;
    kernel.rename("default/t", "ns/renamed").unwrap();
    kernel.pwrite(file, 1, b"y").unwrap();
    kernel.close(file).unwrap();
    assert_eq!(kernel.read("ns/renamed/r/cf:a").unwrap(), "xy");
    assert_eq!(kernel.stat("ns/renamed").unwrap().inode, number);
    assert_eq!(kernel.rename("default/u", "ns/renamed"), Err(libc::ENOTEMPTY));
    assert_eq!(kernel.rename_flags("default/u", "ns/renamed", libc::RENAME_NOREPLACE), Err(libc::EEXIST));
    kernel.mkdir("ns/empty").unwrap();
    kernel.rename("ns/renamed", "ns/empty").unwrap();
    assert_eq!(kernel.list("ns").unwrap(), ["empty"]);
    assert_eq!(kernel.rename("ns/empty", "ns/a b"), Err(libc::EINVAL));
    assert_eq!(kernel.rename("ns", "other"), Err(libc::EINVAL));
}

#[test]
fn what_cannot_move_is_refused() {
    let mut kernel = rows();
    kernel.write("default/t/r/cf:a", "x").unwrap();
    for (from, to, errno) in [
        ("default/t/r/cf:a", "default/u/r/cf:a", libc::EXDEV),
        ("default/t/r", "default/u/r2", libc::EXDEV),
        ("default/t/r/cf:a", "default/t/r/plain", libc::EINVAL),
        ("default/t/r/cf:a", "default/t/r/other:a", libc::EINVAL),
        ("default/t/r/cf:a", "default/t/cf:a", libc::EINVAL),
        ("default/t/r", "default/r", libc::EINVAL),
        ("default/t/r", "default/t/%41", libc::EINVAL),
        ("default/t", "t", libc::EINVAL),
        ("default/t/r/cf:none", "default/t/r/cf:b", libc::ENOENT),
    ] {
        assert_eq!(kernel.rename(from, to), Err(errno), "{from} {to}");
    }
    assert_eq!(kernel.rename_flags("default/t/r", "default/u/r", libc::RENAME_EXCHANGE), Err(libc::EINVAL));
    kernel.rename("default/t/r/cf:a", "default/t/r/cf:a").unwrap();
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), "x");
}

#[test]
fn an_empty_row_that_is_renamed_changes_its_ctime_alone() {
    let mut kernel = rows();
    let before = kernel.stat("default/t/r").unwrap();
    kernel.clock.add(1000);
    kernel.rename("default/t/r", "default/t/q").unwrap();
    let after = kernel.stat("default/t/q").unwrap();
    assert_eq!(after.mtime_nanos, before.mtime_nanos);
    assert_eq!(after.ctime_nanos, before.ctime_nanos + 1_000_000_000);
}

#[test]
fn an_open_that_comes_after_the_replacement_is_stale_and_not_empty() {
    let mut kernel = rows();
    kernel.write("default/t/r/cf:a", "new").unwrap();
    kernel.write("default/t/r/cf:b", "old").unwrap();
    let late = |kernel: &mut Kernel, path| kernel.walk(path).unwrap();
    let replaced = late(&mut kernel, "default/t/r/cf:b");
    kernel.rename("default/t/r/cf:a", "default/t/r/cf:b").unwrap();
    let removed = late(&mut kernel, "default/t/r/cf:b");
    kernel.unlink("default/t/r/cf:b").unwrap();
    for inode in [replaced, removed] {
        for flags in [libc::O_RDONLY, libc::O_WRONLY, libc::O_RDWR | libc::O_TRUNC] {
            assert_eq!(kernel.fs.open(&kernel.caller, inode, flags).unwrap_err().errno, libc::ESTALE);
        }
    }
    assert!(!kernel.exists("default/t/r/cf:b"));
}
