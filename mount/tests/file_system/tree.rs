//! Directories and files, on the core without a mount: what can be made and removed where (docs/semantics.md, "The tree", "Writing").

use crate::kernel::Kernel;

#[test]
fn namespaces_tables_rows_and_cells_come_and_go() {
    let mut kernel = Kernel::new();
    assert_eq!(kernel.list("").unwrap(), ["default"]);
    kernel.mkdir("shop").unwrap();
    assert_eq!(kernel.mkdir("shop"), Err(libc::EEXIST));
    kernel.mkdir("shop/orders").unwrap();
    kernel.mkdir("shop/orders/r1").unwrap();
    kernel.write("shop/orders/r1/cf:a", "value").unwrap();
    assert_eq!(kernel.read("shop/orders/r1/cf:a").unwrap(), "value");
    assert_eq!(kernel.list("shop/orders/r1").unwrap(), ["cf:a"]);
    assert_eq!(kernel.rmdir("shop/orders/r1"), Err(libc::ENOTEMPTY));
    assert_eq!(kernel.rmdir("shop/orders"), Err(libc::ENOTEMPTY));
    assert_eq!(kernel.rmdir("shop"), Err(libc::ENOTEMPTY));
    kernel.unlink("shop/orders/r1/cf:a").unwrap();
    assert_eq!(kernel.unlink("shop/orders/r1/cf:a"), Err(libc::ENOENT));
    assert_eq!(kernel.list("shop/orders").unwrap(), [".schema", "r1"], "an emptied row stays a directory");
    assert_eq!(kernel.rmdir("shop/orders"), Err(libc::ENOTEMPTY));
    kernel.rmdir("shop/orders/r1").unwrap();
    assert!(!kernel.exists("shop/orders/r1"));
    kernel.rmdir("shop/orders").unwrap();
    kernel.rmdir("shop").unwrap();
    assert_eq!(kernel.list("").unwrap(), ["default"]);
    assert!(kernel.rmdir("default").is_err());
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let mut kernel = Kernel::new();
    kernel.mkdir("default/t").unwrap();
    kernel.mkdir("default/t/r").unwrap();
    for (path, errno) in [
        ("file", libc::EPERM),
        ("default/file", libc::EPERM),
        ("default/t/file", libc::EPERM),
        ("default/t/r/file", libc::EINVAL),
        ("default/t/r/other:q", libc::EINVAL),
        ("default/t/r/cf:%61", libc::EINVAL),
        ("default/t/r/.hidden", libc::EPERM),
    ] {
        assert_eq!(kernel.write(path, "x"), Err(errno), "{path}");
    }
    for (path, errno) in [
        ("default/t/r/dir", libc::EPERM),
        ("default/a b", libc::EINVAL),
        ("default/-t", libc::EINVAL),
        ("n-s", libc::EINVAL),
        ("default/t/%41", libc::EINVAL),
        ("default/t/.row", libc::EINVAL),
    ] {
        assert_eq!(kernel.mkdir(path), Err(errno), "{path}");
    }
    let errors = kernel.fs.state().errors.text();
    assert!(errors.contains("the table has: cf"), "{errors}");
    assert!(errors.contains(" create /default/t/r/other:q EINVAL "), "{errors}");
    let long = format!("default/t/{}", "k".repeat(256));
    assert_eq!(kernel.mkdir(&long), Err(libc::ENAMETOOLONG));
    assert_eq!(kernel.stat(&long).unwrap_err(), libc::ENAMETOOLONG);
    for probe in [".git", "default/t/.git", "default/t/r/.Trash-0", "default/t/%61", "default/t/r/cf:%61"] {
        assert_eq!(kernel.stat(probe).unwrap_err(), libc::ENOENT, "{probe}");
    }
}

#[test]
fn the_default_family_is_an_option() {
    let options = cellfs_mount::fs::FsOptions { family: "info".into(), ..Default::default() };
    let mut kernel = Kernel::with(cellfs::vfs::SimVfs::new(), options);
    kernel.mkdir("default/t").unwrap();
    kernel.mkdir("default/t/r").unwrap();
    kernel.write("default/t/r/info:", "empty qualifier").unwrap();
    assert_eq!(kernel.list("default/t/r").unwrap(), ["info:"]);
    assert_eq!(kernel.write("default/t/r/cf:a", "x"), Err(libc::EINVAL));
}

#[test]
fn an_empty_row_is_gone_after_unmount_and_a_full_one_is_not() {
    let mut kernel = Kernel::new();
    kernel.mkdir("default/t").unwrap();
    kernel.mkdir_mode("default/t/empty", 0o700).unwrap();
    kernel.mkdir_mode("default/t/full", 0o700).unwrap();
    kernel.write("default/t/full/cf:a", "x").unwrap();
    kernel.mkdir_mode("default/t/emptied", 0o700).unwrap();
    kernel.write("default/t/emptied/cf:a", "x").unwrap();
    kernel.unlink("default/t/emptied/cf:a").unwrap();
    assert_eq!(kernel.list("default/t").unwrap(), [".schema", "emptied", "empty", "full"]);
    let mut kernel = kernel.remount();
    assert_eq!(kernel.list("default/t").unwrap(), [".schema", "full"]);
    assert_eq!(kernel.stat("default/t/full").unwrap().mode, 0o700);
    kernel.mkdir_mode("default/t/emptied", 0o755).unwrap();
    kernel.write("default/t/emptied/cf:a", "x").unwrap();
    let mut kernel = kernel.remount();
    assert_eq!(kernel.stat("default/t/emptied").unwrap().mode, 0o755, "attributes of an earlier row do not come back");
}

#[test]
fn open_handles_keep_what_is_unlinked() {
    let mut kernel = Kernel::new();
    kernel.mkdir("default/t").unwrap();
    kernel.mkdir("default/t/r").unwrap();
    kernel.write("default/t/r/cf:a", "old").unwrap();
    let reader = kernel.open("default/t/r/cf:a", libc::O_RDONLY).unwrap();
    let writer = kernel.open("default/t/r/cf:a", libc::O_RDWR).unwrap();
    kernel.unlink("default/t/r/cf:a").unwrap();
    assert_eq!(kernel.pread(reader, 0, 100).unwrap(), "old");
    kernel.pwrite(writer, 3, b"er").unwrap();
    assert_eq!(kernel.pread(writer, 0, 100).unwrap(), "older");
    kernel.write("default/t/r/cf:a", "new").unwrap();
    let new = kernel.stat("default/t/r/cf:a").unwrap();
    assert_ne!(new.inode, reader.inode, "the deleted file is still open under its number");
    assert!(kernel.list_entries("default/t/r", 10, false).unwrap().iter().any(|(_, inode, _)| *inode == new.inode));
    assert_eq!(kernel.pread(reader, 0, 100).unwrap(), "old");
    kernel.close(writer).unwrap();
    kernel.close(reader).unwrap();
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), "new");
}

#[test]
fn removing_and_writing_again_in_one_millisecond_shows_the_new_value() {
    let mut kernel = Kernel::new();
    kernel.mkdir("default/t").unwrap();
    kernel.mkdir("default/t/r").unwrap();
    for round in 0..5 {
        let value = format!("value {round}");
        kernel.write("default/t/r/cf:a", &value).unwrap();
        assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), value);
        kernel.unlink("default/t/r/cf:a").unwrap();
        assert!(!kernel.exists("default/t/r/cf:a"));
    }
    kernel.clock.add(-5000);
    kernel.write("default/t/r/cf:a", "after the clock stepped back").unwrap();
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), "after the clock stepped back");
}

#[test]
fn a_read_only_mount_changes_nothing() {
    let mut kernel = Kernel::new();
    kernel.mkdir("default/t").unwrap();
    kernel.mkdir("default/t/r").unwrap();
    kernel.write("default/t/r/cf:a", "x").unwrap();
    let options = cellfs_mount::fs::FsOptions { read_only: true, ..Default::default() };
    let mut kernel = kernel.remount_with(options);
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), "x");
    assert_eq!(kernel.write("default/t/r/cf:a", "y"), Err(libc::EROFS));
    assert_eq!(kernel.write("default/t/r/cf:b", "y"), Err(libc::EROFS));
    assert_eq!(kernel.mkdir("default/u"), Err(libc::EROFS));
    assert_eq!(kernel.unlink("default/t/r/cf:a"), Err(libc::EROFS));
    assert_eq!(kernel.rename("default/t/r/cf:a", "default/t/r/cf:b"), Err(libc::EROFS));
}
