//! Who sees what while somebody writes (docs/semantics.md, "Writing").

use crate::kernel::Kernel;
use cellfs::client::{Admin, Put, TableName, WriteTime};
use cellfs_mount::fs::FsOptions;
use cellfs_mount::invalidation::InvalidationQueue;
use cellfs_mount::magic::{Change, MountHooks};
use cellfs_mount::ops::{Invalidation, Lifetime, Operations};
use parking_lot::Mutex;
use std::sync::Arc;

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

/// The kernel would cut its one copy of the file under the reader.
#[test]
fn who_reads_through_the_page_cache_keeps_the_inode_when_others_write_into_the_cell() {
    for flags in [libc::O_WRONLY | libc::O_TRUNC, libc::O_RDWR, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC] {
        let mut kernel = row();
        kernel.write("default/t/r/cf:a", "old value").unwrap();
        let other = kernel.process(1);
        let begun = kernel.open("default/t/r/cf:a", libc::O_RDONLY).unwrap();
        assert_eq!(kernel.pread(begun, 0, 4).unwrap(), "old ");
        let unread = kernel.open("default/t/r/cf:a", libc::O_RDONLY).unwrap();

        let cuts = kernel.fs.open(&other, begun.inode, libc::O_RDONLY | libc::O_TRUNC).unwrap();
        kernel.fs.release(begun.inode, cuts.handle);
        let old = kernel.fs.open(&other, begun.inode, flags & !libc::O_CREAT).unwrap_err();
        assert_eq!((old.errno, old.reason.as_str()), (libc::ESTALE, ""), "the kernel asks again by itself");
        let writer = kernel.open_as(other, "default/t/r/cf:a", flags, 0o644).unwrap();
        assert_ne!(writer.inode, begun.inode);
        let listed = kernel.list_entries("default/t/r", 4096, false).unwrap();
        assert!(listed.iter().any(|(name, number, _)| name == "cf:a" && *number == writer.inode), "{listed:?}");
        kernel.pwrite_as(other, writer, 0, b"new").unwrap();
        kernel.close(writer).unwrap();
        assert_eq!(kernel.pread(begun, 4, 100).unwrap(), "value", "from its first byte to its last");
        assert_eq!(kernel.pread(unread, 0, 100).unwrap(), "old value");
        assert_eq!(kernel.fs.getattr(&kernel.caller, begun.inode).unwrap().0.size, 9);

        let expected = if flags & libc::O_TRUNC == 0 { "new value" } else { "new" };
        assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), expected);
        assert_eq!(kernel.stat("default/t/r/cf:a").unwrap().size, expected.len() as u64);
        for reader in [begun, unread] {
            kernel.close(reader).unwrap();
        }
        assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), expected);
    }
}

#[test]
fn readers_stay_out_of_the_page_cache_beside_a_writer_and_until_one_has_come_back() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "value").unwrap();
    let other = kernel.process(1);
    let inode = kernel.walk("default/t/r/cf:a").unwrap();
    let open = |kernel: &Kernel, inode| kernel.fs.open(&other, inode, libc::O_RDONLY).unwrap();
    let writer = kernel.open("default/t/r/cf:a", libc::O_WRONLY).unwrap();
    assert!(open(&kernel, inode).direct_io, "the kernel's size of the file is the writer's");
    kernel.close(writer).unwrap();
    let reader = open(&kernel, inode);
    assert!(!reader.direct_io);
    assert_eq!(kernel.fs.open(&kernel.caller, inode, libc::O_WRONLY).unwrap_err().errno, libc::ESTALE);
    assert_eq!(kernel.fs.open(&other, inode, libc::O_RDONLY).unwrap_err().errno, libc::ESTALE);
    kernel.forget_names();
    let again = kernel.walk("default/t/r/cf:a").unwrap();
    assert!(open(&kernel, again).direct_io, "the writer must not find a reader in its way again");
    let writer = kernel.open("default/t/r/cf:a", libc::O_WRONLY | libc::O_TRUNC).unwrap();
    assert_eq!(writer.inode, again);
    kernel.close(writer).unwrap();
    kernel.clock.add(2000);
    assert!(!open(&kernel, again).direct_io);
    assert_eq!(kernel.read(".cellfs/errors").unwrap(), "", "none of this is a failure");
}

#[test]
fn a_process_sees_its_own_work_through_what_it_had_open_before() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "old").unwrap();
    let reader = kernel.open("default/t/r/cf:a", libc::O_RDONLY).unwrap();
    assert_eq!(kernel.pread(reader, 0, 100).unwrap(), "old");
    let writer = kernel.open("default/t/r/cf:a", libc::O_WRONLY | libc::O_TRUNC).unwrap();
    assert_eq!(writer.inode, reader.inode);
    kernel.pwrite(writer, 0, b"its own").unwrap();
    kernel.close(writer).unwrap();
    assert_eq!(kernel.pread(reader, 0, 100).unwrap(), "its own");
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

#[test]
fn cells_that_expire_are_believed_no_longer_than_they_live() {
    let mut kernel = row();
    let family = cellfs::schema::ColumnFamilyDescriptor { ttl_seconds: 10, ..Default::default() };
    let descriptor = cellfs::schema::TableDescriptor::default().family("cf", family);
    kernel.store.modify_table(&TableName::parse("t").unwrap(), descriptor).unwrap();
    kernel.write("default/t/r/cf:a", "x").unwrap();
    let inode = kernel.walk("default/t/r/cf:a").unwrap();
    kernel.clock.add(4000);
    assert_eq!(kernel.fs.getattr(&kernel.caller, inode).unwrap().1, Lifetime::Millis(6000));
    kernel.clock.add(6001);
    assert_eq!(kernel.fs.getattr(&kernel.caller, inode).unwrap_err().errno, libc::ENOENT);
    let mut kernel = kernel.forgetful();
    assert!(!kernel.exists("default/t/r/cf:a"));
    assert_eq!(kernel.list("default/t/r").unwrap(), [] as [String; 0]);
}

#[test]
fn a_ttl_that_is_set_later_is_seen_by_cells_the_kernel_remembers() {
    let queue = InvalidationQueue::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&told);
    queue.attach(Box::new(move |invalidation| record.lock().push(invalidation.clone())));
    let options = FsOptions { invalidations: Arc::clone(&queue), ..FsOptions::default() };
    let mut kernel = Kernel::with(cellfs::vfs::SimVfs::new(), options);
    kernel.mkdir("default/t").unwrap();
    kernel.mkdir("default/t/r").unwrap();
    kernel.write("default/t/r/cf:a", "x").unwrap();
    let inode = kernel.walk("default/t/r/cf:a").unwrap();
    assert_eq!(kernel.fs.getattr(&kernel.caller, inode).unwrap().1, Lifetime::Forever);
    kernel.write("default/t/.schema", "[family.cf]\nTTL = 10\n").unwrap();
    let runner = Arc::clone(&queue);
    let thread = std::thread::spawn(move || runner.run());
    queue.wait_until_delivered(std::time::Duration::from_secs(60));
    queue.close();
    thread.join().unwrap();
    assert!(told.lock().contains(&Invalidation::Inode { inode, attributes_only: false }));
    assert_eq!(kernel.fs.getattr(&kernel.caller, inode).unwrap().1, Lifetime::Millis(10_000));
}

/// What verbs, imports and row documents change reaches the kernel's caches.
#[test]
fn names_said_to_be_absent_are_taken_back_when_they_appear_past_the_files() {
    let queue = InvalidationQueue::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&told);
    queue.attach(Box::new(move |invalidation| record.lock().push(invalidation.clone())));
    let runner = Arc::clone(&queue);
    let thread = std::thread::spawn(move || runner.run());
    let options = FsOptions { invalidations: Arc::clone(&queue), ..FsOptions::default() };
    let mut kernel = Kernel::with(cellfs::vfs::SimVfs::new(), options);
    kernel.mkdir("default/t").unwrap();
    kernel.mkdir("default/t/r").unwrap();
    kernel.write("default/t/r/cf:a", "old").unwrap();
    assert!(!kernel.exists("default/t/new") && !kernel.exists("default/t/r/cf:b"));
    let (table, row) = (kernel.walk("default/t").unwrap(), kernel.walk("default/t/r").unwrap());
    let cell = kernel.walk("default/t/r/cf:a").unwrap();
    for (row, column) in [("new", "a"), ("r", "a"), ("r", "b")] {
        let put = Put::new(row).add_at("cf", column, WriteTime::AfterNewest, "by an import");
        kernel.table("t").put(put).unwrap();
    }
    let rows = vec!["new".into(), "r".into()];
    kernel.fs.state().changed(Change::Rows { table: kernel.table("t").id(), rows });
    queue.wait_until_delivered(std::time::Duration::from_secs(60));
    let told = told.lock().clone();
    for expected in [
        Invalidation::Name { parent: table, name: "new".into() },
        Invalidation::Name { parent: row, name: "cf:b".into() },
        Invalidation::Inode { inode: cell, attributes_only: false },
    ] {
        assert!(told.contains(&expected), "{expected:?} is not in {told:?}");
    }
    assert!(!told.contains(&Invalidation::Name { parent: table, name: "default".into() }));
    assert_eq!(kernel.read("default/t/r/cf:a").unwrap(), "by an import");
    assert_eq!(kernel.read("default/t/r/cf:b").unwrap(), "by an import");
    assert_eq!(kernel.read("default/t/new/cf:a").unwrap(), "by an import");
    queue.close();
    thread.join().unwrap();
}
