//! Who sees what while somebody writes (docs/semantics.md, "Writing").

use crate::kernel::Kernel;
use cellfs_mount::ops::{Lifetime, Operations};

fn row() -> Kernel {
    let mut kernel = Kernel::new();
    kernel.mkdir("default/t").unwrap();
    kernel.mkdir("default/t/r").unwrap();
    kernel
}

#[test]
fn others_see_the_old_value_until_the_close() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "old value").unwrap();
    let other = kernel.process(1);
    let writer = kernel.open("default/t/r/cf:a", libc::O_RDWR | libc::O_TRUNC).unwrap();
    let size = |kernel: &Kernel, caller| kernel.fs.getattr(&caller, writer.inode).unwrap();
    assert_eq!(size(&kernel, kernel.caller).0.size, 0, "its own truncation");
    assert_eq!(size(&kernel, other).0.size, 9);
    assert_eq!(size(&kernel, other).1, Lifetime::None, "two sizes are true at once: nobody may remember one");
    kernel.pwrite(writer, 0, b"new").unwrap();
    assert_eq!(size(&kernel, kernel.caller).0.size, 3);
    assert_eq!(size(&kernel, other).0.size, 9);
    let reader = kernel.open_as(other, "default/t/r/cf:a", libc::O_RDONLY, 0).unwrap();
    assert_eq!(kernel.pread_as(other, reader, 0, 100).unwrap(), "old value");
    assert_eq!(kernel.pread(writer, 0, 100).unwrap(), "new");
    let second = kernel.open("default/t/r/cf:a", libc::O_RDONLY).unwrap();
    assert_eq!(kernel.pread(second, 0, 100).unwrap(), "new", "another descriptor of the writer's process");
    kernel.close(writer).unwrap();
    assert_eq!(kernel.pread_as(other, reader, 4, 100).unwrap(), "value", "half old, half new is never seen");
    assert_eq!(kernel.pread_as(other, reader, 0, 100).unwrap(), "new", "from the beginning again");
    assert_eq!(size(&kernel, other), (kernel.stat("default/t/r/cf:a").unwrap(), Lifetime::Forever));
    assert_eq!(size(&kernel, other).0.size, 3);
}

#[test]
fn a_reader_at_the_end_sees_what_is_appended() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "one\n").unwrap();
    let tail = kernel.open("default/t/r/cf:a", libc::O_RDONLY).unwrap();
    assert_eq!(kernel.pread(tail, 0, 100).unwrap(), "one\n");
    kernel.append("default/t/r/cf:a", "two\n").unwrap();
    assert_eq!(kernel.pread(tail, 4, 100).unwrap(), "two\n");
    kernel.write("default/t/r/cf:a", "something else, and longer").unwrap();
    assert_eq!(kernel.pread(tail, 8, 100).unwrap(), "", "a value that does not go on is not mixed in");
    kernel.close(tail).unwrap();
}

#[test]
fn the_page_cache_is_kept_exactly_while_it_is_right() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "1").unwrap();
    let inode = kernel.walk("default/t/r/cf:a").unwrap();
    let open = |kernel: &Kernel| kernel.fs.open(&kernel.caller, inode, libc::O_RDONLY).unwrap();
    let first = open(&kernel);
    assert!(!first.keep_cache && !first.direct_io && first.no_flush);
    let second = open(&kernel);
    assert!(second.keep_cache && !second.direct_io);
    kernel.write("default/t/r/cf:a", "2").unwrap();
    let third = open(&kernel);
    assert!(third.direct_io, "the pages still belong to readers of the old version");
    for opened in [first, second, third] {
        kernel.fs.release(inode, opened.handle);
    }
    let fourth = open(&kernel);
    assert!(!fourth.keep_cache && !fourth.direct_io);
    assert!(open(&kernel).keep_cache);
    let writer = kernel.fs.open(&kernel.caller, inode, libc::O_WRONLY).unwrap();
    assert!(writer.direct_io && !writer.no_flush);
}

#[test]
fn a_cell_being_created_is_an_empty_file_to_others() {
    let mut kernel = row();
    let other = kernel.process(1);
    let writer = kernel.open("default/t/r/cf:a", libc::O_WRONLY | libc::O_CREAT).unwrap();
    kernel.pwrite(writer, 0, b"value").unwrap();
    assert_eq!(kernel.fs.getattr(&other, writer.inode).unwrap().0.size, 0);
    assert_eq!(kernel.stat("default/t/r/cf:a").unwrap().size, 5);
    assert_eq!(
        kernel.open_as(other, "default/t/r/cf:a", libc::O_CREAT | libc::O_EXCL, 0o644).unwrap_err(),
        libc::EEXIST
    );
    let reader = kernel.open_as(other, "default/t/r/cf:a", libc::O_RDONLY, 0).unwrap();
    assert_eq!(kernel.pread_as(other, reader, 0, 100).unwrap(), "");
    assert_eq!(kernel.list("default/t/r").unwrap(), ["cf:a"]);
    assert_eq!(kernel.raw("t"), [] as [String; 0], "no scan has it");
    assert_eq!(kernel.rmdir("default/t/r"), Err(libc::ENOTEMPTY));
    kernel.close(writer).unwrap();
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), "value");
}

#[test]
fn a_cell_that_is_being_created_can_be_removed() {
    let mut kernel = row();
    let writer = kernel.open("default/t/r/cf:a", libc::O_WRONLY | libc::O_CREAT).unwrap();
    kernel.pwrite(writer, 0, b"value").unwrap();
    kernel.unlink("default/t/r/cf:a").unwrap();
    kernel.close(writer).unwrap();
    assert!(!kernel.exists("default/t/r/cf:a"));
    assert_eq!(kernel.raw("t"), [] as [String; 0]);
}
