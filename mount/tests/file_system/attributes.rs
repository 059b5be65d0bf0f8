//! Modes, owners and times (docs/semantics.md, "Attributes").

use crate::kernel::{BEGIN, Kernel};
use cellfs_mount::ops::{AttributeChanges, TimeChange};

const MILLI: i64 = 1_000_000;

fn row() -> Kernel {
    let mut kernel = Kernel::new();
    kernel.mkdir("default/t").unwrap();
    kernel.mkdir("default/t/r").unwrap();
    kernel
}

fn mode(mode: u32) -> AttributeChanges {
    AttributeChanges { mode: Some(mode), ..AttributeChanges::default() }
}

fn mtime(nanos: i64) -> AttributeChanges {
    AttributeChanges {
        mtime: Some(TimeChange::At(nanos)),
        atime: Some(TimeChange::At(nanos + 1)),
        ..AttributeChanges::default()
    }
}

#[test]
fn attributes_make_no_version_and_move_no_timestamp() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "x").unwrap();
    kernel.clock.add(5000);
    kernel.setattr("default/t/r/cf:a", mode(0o600)).unwrap();
    kernel.setattr("default/t/r/cf:a", AttributeChanges { uid: Some(7), gid: Some(8), ..Default::default() }).unwrap();
    kernel.setattr("default/t/r/cf:a", mtime(1_234_567_891)).unwrap();
    assert_eq!(kernel.versions("t", "r", "cf:a"), [(BEGIN, "x".into())]);
    for _ in 0..2 {
        let shown = kernel.stat("default/t/r/cf:a").unwrap();
        assert_eq!((shown.mode, shown.uid, shown.gid), (0o600, 7, 8));
        assert_eq!((shown.mtime_nanos, shown.atime_nanos), (1_234_567_891, 1_234_567_892));
        assert_eq!(shown.ctime_nanos, (BEGIN + 5000) * MILLI);
        kernel = kernel.remount();
    }
}

#[test]
fn mode_and_owner_go_on_and_times_end_with_the_next_write() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "secret").unwrap();
    kernel.setattr("default/t/r/cf:a", mode(0o600)).unwrap();
    kernel.setattr("default/t/r/cf:a", mtime(5)).unwrap();
    kernel.clock.add(1000);
    kernel.write("default/t/r/cf:a", "more").unwrap();
    let shown = kernel.stat("default/t/r/cf:a").unwrap();
    assert_eq!(
        (shown.mode, shown.mtime_nanos, shown.ctime_nanos),
        (0o600, (BEGIN + 1000) * MILLI, (BEGIN + 1000) * MILLI)
    );
    let mut kernel = kernel.remount();
    kernel.append("default/t/r/cf:a", "!").unwrap();
    assert_eq!(kernel.stat("default/t/r/cf:a").unwrap().mode, 0o600);
}

/// cp -p and tar set everything on the open descriptor, after the last write and before the close.
#[test]
fn attributes_set_on_an_open_file_stay_with_what_it_wrote() {
    let mut kernel = row();
    let file = kernel.open("default/t/r/cf:a", libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL).unwrap();
    kernel.pwrite(file, 0, b"copied").unwrap();
    kernel.setattr("default/t/r/cf:a", mtime(42)).unwrap();
    kernel.setattr("default/t/r/cf:a", mode(0o444)).unwrap();
    assert_eq!(kernel.stat("default/t/r/cf:a").unwrap().mtime_nanos, 42);
    kernel.close(file).unwrap();
    let shown = kernel.stat("default/t/r/cf:a").unwrap();
    assert_eq!((shown.mode, shown.mtime_nanos, shown.size), (0o444, 42, 6));
    assert_eq!(kernel.versions("t", "r", "cf:a").len(), 1);
    // Over an existing cell a stricter mode protects what others read before the close, too.
    let file = kernel.open("default/t/r/cf:a", libc::O_WRONLY | libc::O_TRUNC).unwrap();
    kernel.pwrite(file, 0, b"again").unwrap();
    kernel.setattr("default/t/r/cf:a", mode(0o400)).unwrap();
    let other = kernel.process(1);
    use cellfs_mount::ops::Operations;
    assert_eq!(kernel.fs.getattr(&other, file.inode).unwrap().0.mode, 0o400);
    kernel.close(file).unwrap();
    assert_eq!(kernel.stat("default/t/r/cf:a").unwrap().mode, 0o400);
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), "again");
}

#[test]
fn what_equals_the_tables_own_follows_it() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "x").unwrap();
    let (cell, directory) = (kernel.stat("default/t/r/cf:a").unwrap(), kernel.stat("default/t/r").unwrap());
    assert_eq!((cell.mode, cell.uid, cell.gid, cell.links), (0o644, 1000, 1000, 1));
    assert_eq!((directory.mode, directory.uid, directory.links), (0o755, 1000, 1));
    kernel.setattr("default/t", mode(0o750)).unwrap();
    assert_eq!(kernel.stat("default/t/r/cf:a").unwrap().mode, 0o640);
    assert_eq!(kernel.stat("default/t/r").unwrap().mode, 0o750);
    kernel.setattr("default/t/r/cf:a", mode(0o644)).unwrap();
    assert_eq!(kernel.stat("default/t/r/cf:a").unwrap().mode, 0o644, "its own now");
    let mut kernel = kernel.remount();
    assert_eq!(kernel.stat("default/t").unwrap().mode, 0o750);
    assert_eq!(kernel.stat("default/t/r").unwrap().mode, 0o750);
    assert_eq!(kernel.stat("default/t/r/cf:a").unwrap().mode, 0o644);
}

#[test]
fn set_id_bits_of_cells_are_dropped_and_directories_pass_their_group_on() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "x").unwrap();
    assert_eq!(kernel.setattr("default/t/r/cf:a", mode(0o6755)).unwrap().mode, 0o755);
    let group = AttributeChanges { gid: Some(50), mode: Some(0o2775), ..AttributeChanges::default() };
    kernel.setattr("default/t/r", group).unwrap();
    kernel.write("default/t/r/cf:b", "x").unwrap();
    assert_eq!(kernel.stat("default/t/r/cf:b").unwrap().gid, 50);
    kernel.setattr("default/t", group).unwrap();
    kernel.mkdir("default/t/s").unwrap();
    let made = kernel.stat("default/t/s").unwrap();
    assert_eq!((made.gid, made.mode), (50, 0o2755));
}

#[test]
fn rows_and_tables_show_their_last_change() {
    let mut kernel = row();
    let at = |kernel: &mut Kernel, path: &str| (kernel.stat(path).unwrap().mtime_nanos / MILLI) - BEGIN;
    kernel.clock.add(10);
    kernel.write("default/t/r/cf:a", "x").unwrap();
    assert_eq!(at(&mut kernel, "default/t/r"), 10);
    assert_eq!(at(&mut kernel, "default/t"), 0);
    kernel.clock.add(10);
    kernel.unlink("default/t/r/cf:a").unwrap();
    assert_eq!(at(&mut kernel, "default/t/r"), 20);
    kernel.write("default/t/r/cf:b", "x").unwrap();
    kernel.setattr("default/t/r", mtime(99)).unwrap();
    assert_eq!(kernel.stat("default/t/r").unwrap().mtime_nanos, 99);
    kernel = kernel.remount();
    assert_eq!(kernel.stat("default/t/r").unwrap().mtime_nanos, 99);
    kernel.clock.add(10);
    kernel.write("default/t/r/cf:c", "x").unwrap();
    assert_eq!(at(&mut kernel, "default/t/r"), 1030);
    kernel.mkdir("default/t/s").unwrap();
    assert_eq!(at(&mut kernel, "default/t"), 1030);
    kernel = kernel.remount();
    assert_eq!(at(&mut kernel, "default/t"), 1030);
    assert_eq!(at(&mut kernel, "default/t/r"), 1030);
}

#[test]
fn attributes_of_empty_rows_wait_for_the_first_cell() {
    let mut kernel = row();
    kernel.setattr("default/t/r", mode(0o711)).unwrap();
    assert_eq!(kernel.stat("default/t/r").unwrap().mode, 0o711);
    kernel.write("default/t/r/cf:a", "x").unwrap();
    let mut kernel = kernel.remount();
    assert_eq!(kernel.stat("default/t/r").unwrap().mode, 0o711);
}

#[test]
fn closing_a_new_empty_cell_changes_none_of_its_times() {
    let mut kernel = row();
    for flags in [libc::O_RDONLY, libc::O_WRONLY] {
        kernel.clock.add(1000);
        let path = if flags == libc::O_RDONLY { "default/t/r/cf:read" } else { "default/t/r/cf:write" };
        let file = kernel.open(path, flags | libc::O_CREAT).unwrap();
        let made = kernel.stat(path).unwrap();
        kernel.clock.add(1000);
        kernel.close(file).unwrap();
        let closed = kernel.stat(path).unwrap();
        assert_eq!((closed.mtime_nanos, closed.ctime_nanos), (made.mtime_nanos, made.ctime_nanos));
    }
}

#[test]
fn what_is_written_after_a_change_of_mode_is_the_newest_change() {
    let mut kernel = row();
    let file = kernel.open("default/t/r/cf:a", libc::O_WRONLY | libc::O_CREAT).unwrap();
    kernel.setattr("default/t/r/cf:a", mode(0o600)).unwrap();
    kernel.clock.add(1000);
    kernel.pwrite(file, 0, b"x").unwrap();
    kernel.close(file).unwrap();
    let shown = kernel.stat("default/t/r/cf:a").unwrap();
    assert_eq!((shown.mode, shown.ctime_nanos), (0o600, (BEGIN + 1000) * MILLI));
}
