//! Appends, holes, truncation, limits (docs/semantics.md, "Writing").

use crate::kernel::Kernel;
use cellfs::client::Admin;
use cellfs_mount::ops::AttributeChanges;

fn row() -> Kernel {
    row_with(Default::default())
}

fn row_with(options: cellfs_mount::fs::FsOptions) -> Kernel {
    let mut kernel = Kernel::with(cellfs::vfs::SimVfs::new(), options);
    kernel.mkdir("default/t").unwrap();
    kernel.mkdir("default/t/r").unwrap();
    kernel
}

#[test]
fn two_appenders_lose_nothing() {
    let mut kernel = row();
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND;
    let first = kernel.open("default/t/r/cf:a", flags).unwrap();
    let second = kernel.open("default/t/r/cf:a", flags).unwrap();
    for _ in 0..3 {
        kernel.pwrite(first, 0, b"1").unwrap();
        kernel.pwrite(second, 0, b"2").unwrap();
    }
    kernel.close(first).unwrap();
    kernel.pwrite(second, 0, b"3").unwrap();
    kernel.close(second).unwrap();
    kernel.append("default/t/r/cf:a", "4").unwrap();
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), "12121234");
}

#[test]
fn holes_read_as_zeros_and_truncation_works_both_ways() {
    let mut kernel = row();
    let file = kernel.open("default/t/r/cf:a", libc::O_RDWR | libc::O_CREAT).unwrap();
    kernel.pwrite(file, 4, b"x").unwrap();
    assert_eq!(kernel.pread(file, 0, 10).unwrap(), &b"\0\0\0\0x"[..]);
    kernel.ftruncate(file, 2).unwrap();
    kernel.ftruncate(file, 3).unwrap();
    kernel.close(file).unwrap();
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), &b"\0\0\0"[..]);
    let resize = |size| AttributeChanges { size: Some(size), ..AttributeChanges::default() };
    assert_eq!(kernel.setattr("default/t/r/cf:a", resize(1)).unwrap().size, 1);
    assert_eq!(kernel.setattr("default/t/r/cf:a", resize(2)).unwrap().size, 2);
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), &b"\0\0"[..]);
    assert_eq!(kernel.setattr("default/t/r", resize(1)).unwrap_err(), libc::EISDIR);
}

#[test]
fn parts_are_written_over_what_is_there() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "abcdef").unwrap();
    let file = kernel.open("default/t/r/cf:a", libc::O_RDWR).unwrap();
    assert_eq!(kernel.pread(file, 0, 3).unwrap(), "abc");
    kernel.pwrite(file, 2, b"XX").unwrap();
    assert_eq!(kernel.pread(file, 0, 10).unwrap(), "abXXef");
    kernel.close(file).unwrap();
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), "abXXef");
}

#[test]
fn too_large_a_cell_is_refused_in_write() {
    let mut kernel = row_with(cellfs_mount::fs::FsOptions { cell_max: 10, ..Default::default() });
    let file = kernel.open("default/t/r/cf:a", libc::O_WRONLY | libc::O_CREAT).unwrap();
    kernel.pwrite(file, 0, b"0123456789").unwrap();
    assert_eq!(kernel.pwrite(file, 10, b"x"), Err(libc::EFBIG));
    assert_eq!(kernel.pwrite(file, u64::MAX, b"x"), Err(libc::EFBIG));
    assert_eq!(kernel.ftruncate(file, 11), Err(libc::EFBIG));
    kernel.close(file).unwrap();
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), "0123456789");
    assert!(kernel.fs.state().errors.text().contains("EFBIG a cell holds at most 10 bytes"));
}

#[test]
fn descriptors_open_for_one_thing_do_not_do_another() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "x").unwrap();
    let reader = kernel.open("default/t/r/cf:a", libc::O_RDONLY).unwrap();
    assert_eq!(kernel.pwrite(reader, 0, b"y"), Err(libc::EBADF));
    assert_eq!(kernel.ftruncate(reader, 0), Err(libc::EINVAL));
    kernel.close(reader).unwrap();
    assert_eq!(kernel.pread(reader, 0, 1), Err(libc::EBADF), "closed");
}

#[test]
fn a_change_past_the_files_is_not_lost_by_a_later_append() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "one ").unwrap();
    let file = kernel.open("default/t/r/cf:a", libc::O_WRONLY | libc::O_APPEND).unwrap();
    kernel.pwrite(file, 0, b"two ").unwrap();
    kernel.flush(file).unwrap();
    let put = cellfs::client::Put::new("r").add_at("cf", "a", cellfs::client::WriteTime::AfterNewest, "three ");
    kernel.table("t").put(put).unwrap();
    let change = cellfs_mount::magic::Change::Cell {
        table: kernel.table("t").id(),
        row: "r".into(),
        family: "cf".into(),
        qualifier: "a".into(),
    };
    cellfs_mount::magic::MountHooks::changed(&**kernel.fs.state(), change);
    kernel.pwrite(file, 0, b"four").unwrap();
    kernel.close(file).unwrap();
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), "three four");
}

#[test]
fn a_full_volume_refuses_in_write_and_deleting_still_works() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "x").unwrap();
    let used = (1 << 40) - kernel.store.free_space().unwrap();
    kernel.vfs.set_capacity(used + (2 << 20));
    kernel.clock.add(1000);
    let file = kernel.open("default/t/r/cf:b", libc::O_WRONLY | libc::O_CREAT).unwrap();
    assert_eq!(kernel.pwrite(file, 0, &vec![b'x'; 2 << 20]), Err(libc::ENOSPC));
    kernel.close(file).unwrap();
    kernel.unlink("default/t/r/cf:a").unwrap();
    kernel.vfs.set_capacity(1 << 40);
    kernel.clock.add(1000);
    kernel.write("default/t/r/cf:b", vec![b'x'; 2 << 20]).unwrap();
    assert_eq!(kernel.stat("default/t/r/cf:b").unwrap().size, 2 << 20, "room made ends it");
}

#[test]
fn who_reads_and_writes_sees_its_commits_anywhere_in_the_cell() {
    let mut kernel = Kernel::new();
    kernel.mkdir("default/t").unwrap();
    kernel.mkdir("default/t/r").unwrap();
    let file = kernel.open("default/t/r/cf:a", libc::O_RDWR | libc::O_CREAT).unwrap();
    for round in [&b"first value"[..], b"other value", b"third value"] {
        kernel.pwrite(file, 0, round).unwrap();
        kernel.flush(file).unwrap();
        assert_eq!(kernel.pread(file, 2, 3).unwrap(), round[2..5], "in the middle, after a commit");
    }
    let other = kernel.open("default/t/r/cf:a", libc::O_RDWR).unwrap();
    assert_eq!(kernel.pread(other, 2, 3).unwrap(), "ird");
    kernel.pwrite(file, 0, b"fourth one!").unwrap();
    kernel.flush(file).unwrap();
    assert_eq!(kernel.pread(other, 2, 3).unwrap(), "urt", "another writer's commit");
    kernel.close(file).unwrap();
    kernel.close(other).unwrap();
}
