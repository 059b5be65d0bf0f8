//! Temporaries of tools, and cells behind an editor's backup (docs/semantics.md, "Scratch files").

use crate::kernel::Kernel;
use cellfs::vfs::Keep;
use cellfs_mount::magic::MountHooks;
use cellfs_mount::ops::{AttributeChanges, TimeChange};

fn row() -> Kernel {
    let mut kernel = Kernel::new();
    kernel.mkdir("default/t").unwrap();
    kernel.mkdir("default/t/r").unwrap();
    kernel
}

#[test]
fn a_temporary_renamed_onto_a_cell_is_one_version() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "old").unwrap();
    // As rsync does it.
    let file = kernel.open("default/t/r/.cf:a.AbC123", libc::O_RDWR | libc::O_CREAT | libc::O_EXCL).unwrap();
    kernel.pwrite(file, 0, b"new ").unwrap();
    kernel.pwrite(file, 4, b"value").unwrap();
    kernel.close(file).unwrap();
    assert_eq!(kernel.list("default/t/r").unwrap(), [".cf:a.AbC123", "cf:a"]);
    let changes = AttributeChanges { mode: Some(0o640), mtime: Some(TimeChange::At(777)), ..Default::default() };
    kernel.setattr("default/t/r/.cf:a.AbC123", changes).unwrap();
    assert_eq!(kernel.raw("t").len(), 1, "scratch files are no cells");
    kernel.rename("default/t/r/.cf:a.AbC123", "default/t/r/cf:a").unwrap();
    assert_eq!(kernel.list("default/t/r").unwrap(), ["cf:a"]);
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), "new value");
    let shown = kernel.stat("default/t/r/cf:a").unwrap();
    assert_eq!((shown.mode, shown.mtime_nanos, shown.size), (0o640, 777, 9));
    assert_eq!(kernel.raw("t").len(), 2);
    assert_eq!(kernel.fs.state().scratch.bytes(), 0);
    assert_eq!(kernel.fs.state().scratch.count(), 0);
}

#[test]
fn scratch_files_survive_the_kernels_forgetting_and_end_with_the_mount() {
    let mut kernel = row().forgetful();
    kernel.write("default/t/r/cf:a~", "backup").unwrap();
    kernel.write("default/t/sedAb12cd", "in a table").unwrap();
    let inode = kernel.walk("default/t/r/cf:a~").unwrap();
    use cellfs_mount::ops::Operations;
    kernel.fs.forget(inode, 1000);
    assert_eq!(kernel.read("default/t/r/cf:a~").unwrap(), "backup");
    assert_eq!(kernel.list("default/t").unwrap(), [".schema", "sedAb12cd", "r"]);
    kernel.rename("default/t/r/cf:a~", "default/t/r/4913").unwrap();
    assert_eq!(kernel.list("default/t/r").unwrap(), ["4913"]);
    kernel.unlink("default/t/r/4913").unwrap();
    assert_eq!(kernel.unlink("default/t/r/4913"), Err(libc::ENOENT));
    let mut kernel = kernel.remount();
    assert_eq!(kernel.list("default/t").unwrap(), [".schema"]);
}

#[test]
fn a_row_of_a_scratch_name_wins() {
    let mut kernel = row();
    kernel.mkdir("default/t/4913").unwrap();
    kernel.write("default/t/4913/cf:a", "x").unwrap();
    assert_eq!(kernel.read("default/t/4913/cf:a").unwrap(), "x");
    assert_eq!(kernel.open("default/t/4913", libc::O_RDWR).unwrap_err(), libc::EISDIR);
}

/// vim with backupcopy=no: the cell becomes the backup, a new cell is written, the backup goes.
#[test]
fn a_cell_behind_its_backup_goes_on_when_it_is_written_again() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "old").unwrap();
    kernel.rename("default/t/r/cf:a", "default/t/r/cf:a~").unwrap();
    assert_eq!(kernel.list("default/t/r").unwrap(), ["cf:a~"]);
    assert_eq!(kernel.read("default/t/r/cf:a~").unwrap(), "old");
    assert!(!kernel.exists("default/t/r/cf:a"));
    let table = kernel.table("t").id();
    assert!(kernel.fs.state().hides_any(table) && kernel.fs.state().is_hidden(table, b"r", b"cf", b"a"));
    kernel.write("default/t/r/cf:a", "new").unwrap();
    assert!(!kernel.fs.state().hides_any(table));
    kernel.unlink("default/t/r/cf:a~").unwrap();
    kernel.clock.add(120_000);
    kernel.fs.state().bury_due(Some(cellfs::clock::Clock::monotonic(&*kernel.clock)));
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), "new");
    assert!(kernel.raw("t").iter().all(|line| line.ends_with("Put")), "no tombstone: {:?}", kernel.raw("t"));
}

#[test]
fn a_cell_that_is_not_written_again_gets_its_tombstone_in_time() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "x").unwrap();
    kernel.rename("default/t/r/cf:a", "default/t/r/cf:a~").unwrap();
    let due = |kernel: &Kernel| kernel.fs.state().bury_due(Some(cellfs::clock::Clock::monotonic(&*kernel.clock)));
    due(&kernel);
    assert_eq!(kernel.raw("t").len(), 1);
    kernel.clock.add(60_001);
    due(&kernel);
    assert!(kernel.raw("t").iter().any(|line| line.ends_with("DeleteColumn")));
    assert!(!kernel.exists("default/t/r/cf:a"));
    assert_eq!(kernel.read("default/t/r/cf:a~").unwrap(), "x");
    let mut kernel = kernel.remount();
    assert!(!kernel.exists("default/t/r"));
}

#[test]
fn a_hidden_cell_is_deleted_by_unmount_and_back_after_a_crash() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "x").unwrap();
    kernel.write("default/t/r/cf:b", "y").unwrap();
    kernel.rename("default/t/r/cf:a", "default/t/r/cf:a~").unwrap();
    let mut crashed = Kernel::with(kernel.vfs.crash(Keep::All), Default::default());
    assert_eq!(crashed.read("default/t/r/cf:a").unwrap(), "x");
    let mut kernel = kernel.remount();
    assert_eq!(kernel.list("default/t/r").unwrap(), ["cf:b"]);
}

#[test]
fn a_backup_moved_back_is_the_cell_again() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "x").unwrap();
    kernel.rename("default/t/r/cf:a", "default/t/r/cf:a~").unwrap();
    kernel.rename("default/t/r/cf:a~", "default/t/r/cf:a").unwrap();
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), "x");
    assert!(!kernel.fs.state().hides_any(kernel.table("t").id()));
    let mut kernel = kernel.remount();
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), "x");
}

#[test]
fn scratch_space_is_bounded() {
    let mut kernel = row();
    let file = kernel.open("default/t/r/x~", libc::O_RDWR | libc::O_CREAT).unwrap();
    assert!(kernel.fs.state().scratch.reserve(255 << 20, false));
    assert_eq!(kernel.pwrite(file, 2 << 20, b"x"), Err(libc::ENOSPC));
    kernel.pwrite(file, 0, b"x").unwrap();
    kernel.close(file).unwrap();
}
