//! The kernel adapter on a real mount, with file systems that have no engine.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

#[path = "../examples/null_filesystem/filesystem.rs"]
mod filesystem;
mod support;

use bytes::Bytes;
use cellfs_mount::fuse::{self, MountError, MountSettings, Mounted};
use cellfs_mount::invalidation::InvalidationQueue;
use cellfs_mount::ops::{
    AttributeChanges, Attributes, Caller, DirectorySink, Entry, FileKind, FsError, FsResult, Invalidation, Lifetime,
    ListingCache, Opened, OperationKind, Operations, ROOT_INODE, VolumeFigures,
};
use filesystem::NullFileSystem;
use parking_lot::{Condvar, Mutex};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

fn settings(mount_point: &Path) -> MountSettings {
    MountSettings {
        source: OsString::from("test"),
        mount_point: mount_point.to_path_buf(),
        read_only: false,
        no_exec: false,
        allow_other: false,
        threads: 0,
    }
}

fn mounted<F: Operations>(operations: Arc<F>, point: &Path) -> Mounted<F> {
    fuse::mount(operations, InvalidationQueue::new(), &settings(point)).expect("it mounts")
}

fn unmount<F: Operations>(mounted: Mounted<F>) {
    fuse::unmount(mounted.mount_point()).expect("it unmounts");
    mounted.wait().expect("the session ends well");
}

#[test]
fn files_and_directories_behave_and_the_table_of_mounts_names_cellfs() {
    if !support::can_mount() {
        return;
    }
    let point = tempfile::tempdir().expect("a directory");
    let mounted = mounted(Arc::new(NullFileSystem::new()), point.path());
    let root = point.path();

    let mount = fuse::mount_at(&fs::canonicalize(root).expect("it is there")).expect("/proc").expect("it is mounted");
    assert!(mount.is_cellfs());
    assert_eq!(mount.source, Path::new("test"));

    fs::create_dir(root.join("d")).expect("mkdir");
    fs::write(root.join("d/a"), b"value").expect("write");
    assert_eq!(fs::read(root.join("d/a")).expect("read"), b"value");
    assert_eq!(fs::metadata(root.join("d/a")).expect("stat").len(), 5);
    OpenOptions::new().append(true).open(root.join("d/a")).and_then(|mut f| f.write_all(b"+")).expect("append");
    assert_eq!(fs::read(root.join("d/a")).expect("read"), b"value+");
    fs::rename(root.join("d/a"), root.join("b")).expect("rename");
    assert!(!root.join("d/a").exists());
    fs::remove_dir(root.join("d")).expect("rmdir");
    let names: Vec<_> = fs::read_dir(root).expect("list").map(|entry| entry.expect("entry").file_name()).collect();
    assert_eq!(names, ["b"]);
    let file = File::open(root.join("b")).expect("open");
    fs::remove_file(root.join("b")).expect("unlink");
    let mut at = [0; 3];
    file.read_exact_at(&mut at, 1).expect("an unlinked file is read on");
    assert_eq!(&at, b"alu");
    drop(file);
    unmount(mounted);
    assert_eq!(fs::read_dir(root).expect("the bare directory").count(), 0);
}

#[test]
fn modes_are_masked_and_times_before_1970_arrive_whole() {
    if !support::can_mount() {
        return;
    }
    let point = tempfile::tempdir().expect("a directory");
    let mounted = mounted(Arc::new(NullFileSystem::new()), point.path());
    let path = point.path().join("f");
    OpenOptions::new().write(true).create(true).truncate(true).mode(0o777).open(&path).expect("create");
    let status = fs::read_to_string("/proc/self/status").expect("/proc");
    let umask = status.lines().find_map(|line| line.strip_prefix("Umask:")).expect("the kernel tells the umask");
    let umask = u32::from_str_radix(umask.trim(), 8).expect("octal");
    assert_eq!(fs::metadata(&path).expect("stat").permissions().mode() & 0o777, 0o777 & !umask);
    let time = UNIX_EPOCH - Duration::new(1, 750_000_000);
    File::options().write(true).open(&path).and_then(|file| file.set_modified(time)).expect("utimens");
    let metadata = fs::metadata(&path).expect("stat");
    assert_eq!((metadata.mtime(), metadata.mtime_nsec()), (-2, 250_000_000));
    unmount(mounted);
}

#[test]
fn links_and_special_files_are_refused_and_long_names_too() {
    if !support::can_mount() {
        return;
    }
    let point = tempfile::tempdir().expect("a directory");
    let mounted = mounted(Arc::new(NullFileSystem::new()), point.path());
    let errno = |result: std::io::Result<()>| result.err().and_then(|error| error.raw_os_error());
    fs::write(point.path().join("a"), b"").expect("create");
    assert_eq!(errno(fs::hard_link(point.path().join("a"), point.path().join("b"))), Some(libc::EPERM));
    assert_eq!(errno(std::os::unix::fs::symlink("a", point.path().join("c"))), Some(libc::EPERM));
    assert_eq!(errno(fs::write(point.path().join("n".repeat(256)), b"")), Some(libc::ENAMETOOLONG));
    fs::write(point.path().join("n".repeat(255)), b"").expect("255 bytes are a name");
    unmount(mounted);
}

#[test]
fn a_mount_point_must_be_a_free_directory_outside_the_store() {
    let directory = tempfile::tempdir().expect("a directory");
    let check = |path: &Path| fuse::check_mount_point(&settings(path));
    assert!(matches!(check(&directory.path().join("missing")), Err(MountError::NoMountPoint { .. })));
    fs::write(directory.path().join("file"), b"").expect("write");
    assert!(matches!(check(&directory.path().join("file")), Err(MountError::NotADirectory { .. })));
    assert!(matches!(check(Path::new("/proc")), Err(MountError::Busy { .. })));
    let store = fs::canonicalize(directory.path()).expect("it is there").join("s");
    fs::create_dir_all(store.join("inside")).expect("mkdir");
    for point in [store.clone(), store.join("inside"), directory.path().to_path_buf()] {
        let covering = MountSettings { source: store.clone().into(), ..settings(&point) };
        assert!(matches!(fuse::check_mount_point(&covering), Err(MountError::OverStore { .. })), "{}", point.display());
    }
}

/// A directory of three odd files: `panics` when read, `waits` in read until told, and `text`, whose size is told when told to.
#[derive(Default)]
struct Odd {
    size: Mutex<u64>,
    released: Mutex<bool>,
    release: Condvar,
    noted: Mutex<Vec<String>>,
    ended: Mutex<bool>,
}

const PANICS: u64 = 2;
const WAITS: u64 = 3;
const TEXT: u64 = 4;

impl Odd {
    fn attributes(&self, inode: u64) -> Attributes {
        let kind = if inode == ROOT_INODE { FileKind::Directory } else { FileKind::Regular };
        let size = *self.size.lock();
        Attributes {
            inode,
            kind,
            mode: 0o755,
            links: 1,
            uid: 0,
            gid: 0,
            size,
            mtime_nanos: 0,
            ctime_nanos: 0,
            atime_nanos: 0,
        }
    }
}

impl Operations for Odd {
    fn may_block(&self, operation: OperationKind) -> bool {
        operation == OperationKind::Handle(WAITS)
    }
    fn lookup(&self, _: &Caller, _: u64, name: &OsStr) -> FsResult<Option<Entry>> {
        let inode = match name.to_str() {
            Some("panics") => PANICS,
            Some("waits") => WAITS,
            Some("text") => TEXT,
            _ => return Ok(None),
        };
        let attributes = self.attributes(inode);
        Ok(Some(Entry { attributes, name_lifetime: Lifetime::Forever, attribute_lifetime: Lifetime::Forever }))
    }
    fn forget(&self, _: u64, _: u64) {}
    fn getattr(&self, _: &Caller, inode: u64) -> FsResult<(Attributes, Lifetime)> {
        Ok((self.attributes(inode), Lifetime::Forever))
    }
    fn setattr(&self, _: &Caller, _: u64, _: Option<u64>, _: &AttributeChanges) -> FsResult<(Attributes, Lifetime)> {
        Err(FsError::new(libc::EROFS, "nothing changes here"))
    }
    fn mkdir(&self, _: &Caller, _: u64, _: &OsStr, _: u32) -> FsResult<Entry> {
        Err(FsError::new(libc::EDQUOT, "no directory more"))
    }
    fn unlink(&self, _: &Caller, _: u64, _: &OsStr) -> FsResult<()> {
        Err(FsError::not_found())
    }
    fn rmdir(&self, _: &Caller, _: u64, _: &OsStr) -> FsResult<()> {
        Err(FsError::not_found())
    }
    fn rename(&self, _: &Caller, _: u64, _: &OsStr, _: u64, _: &OsStr, _: u32) -> FsResult<()> {
        Err(FsError::not_found())
    }
    fn create(&self, _: &Caller, _: u64, _: &OsStr, _: u32, _: i32) -> FsResult<(Entry, Opened)> {
        Err(FsError::new(libc::EROFS, "nothing is made here"))
    }
    fn open(&self, _: &Caller, inode: u64, _: i32) -> FsResult<Opened> {
        Ok(Opened { handle: inode, keep_cache: false, direct_io: true, no_flush: true, stream: inode == WAITS })
    }
    fn read(&self, _: &Caller, inode: u64, _: u64, offset: u64, _: u32) -> FsResult<Bytes> {
        match (inode, offset) {
            (PANICS, _) => panic!("on purpose"),
            (WAITS, 0) => {
                let mut released = self.released.lock();
                self.release.wait_while(&mut released, |released| !*released);
                Ok(Bytes::from_static(b"done"))
            }
            _ => Ok(Bytes::new()),
        }
    }
    fn write(&self, _: &Caller, _: u64, _: u64, _: u64, _: &[u8]) -> FsResult<u32> {
        Err(FsError::new(libc::EROFS, "nothing changes here"))
    }
    fn flush(&self, _: &Caller, _: u64, _: u64) -> FsResult<()> {
        Ok(())
    }
    fn fsync(&self, _: &Caller, _: u64, _: u64) -> FsResult<()> {
        Err(FsError::new(libc::EIO, "the log failed"))
    }
    fn release(&self, _: u64, _: u64) {}
    fn opendir(&self, _: &Caller, _: u64) -> FsResult<(u64, ListingCache)> {
        Ok((0, ListingCache::None))
    }
    fn readdir(&self, _: &Caller, _: u64, _: u64, _: u64, _: bool, _: &mut dyn DirectorySink) -> FsResult<()> {
        Ok(())
    }
    fn releasedir(&self, _: u64, _: u64) {}
    fn fsyncdir(&self, _: &Caller, _: u64, _: u64) -> FsResult<()> {
        Ok(())
    }
    fn statfs(&self, _: u64) -> FsResult<VolumeFigures> {
        Err(FsError::new(libc::ENOSYS, "no volume"))
    }
    fn unmounted(&self) {
        *self.ended.lock() = true;
    }
    fn note_error(&self, _: &Caller, operation: &'static str, inode: u64, name: Option<&OsStr>, error: &FsError) {
        let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        self.noted.lock().push(format!("{operation} {inode} {name}: {}", error.errno));
    }
}

#[test]
fn panics_waits_and_errors_leave_the_mount_in_order() {
    if !support::can_mount() {
        return;
    }
    let point = tempfile::tempdir().expect("a directory");
    let odd = Arc::new(Odd::default());
    let mounted = mounted(Arc::clone(&odd), point.path());
    let errno = |error: std::io::Error| error.raw_os_error();

    assert_eq!(fs::read(point.path().join("panics")).map_err(errno), Err(Some(libc::EIO)));
    assert_eq!(fs::read(point.path().join("text")).map_err(errno), Ok(Vec::new()));
    assert_eq!(fs::create_dir(point.path().join("new")).map_err(errno), Err(Some(libc::EDQUOT)));
    let text = File::open(point.path().join("text")).expect("open");
    assert_eq!(text.sync_all().map_err(errno), Err(Some(libc::EIO)));

    // Four readers wait on workers, more than there are reading threads; the mount answers all the same.
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let path = point.path().join("waits");
            thread::spawn(move || {
                let mut file = File::open(path).expect("open");
                let mut text = String::new();
                file.read_to_string(&mut text).expect("read");
                assert!(file.seek(SeekFrom::Start(1)).is_err(), "a stream has no position to set");
                text
            })
        })
        .collect();
    assert_eq!(fs::read(point.path().join("text")).map_err(errno), Ok(Vec::new()));
    *odd.released.lock() = true;
    odd.release.notify_all();
    for reader in readers {
        assert_eq!(reader.join().expect("no panic"), "done");
    }
    drop(text);
    unmount(mounted);
    assert!(*odd.ended.lock());
    assert_eq!(*odd.noted.lock(), ["read 2 : 5", "mkdir 1 new: 122", "fsync 4 : 5"]);
}

#[test]
fn the_kernel_forgets_what_it_is_told_to_forget() {
    if !support::can_mount() {
        return;
    }
    let point = tempfile::tempdir().expect("a directory");
    let odd = Arc::new(Odd::default());
    let queue = InvalidationQueue::new();
    let mounted = fuse::mount(Arc::clone(&odd), Arc::clone(&queue), &settings(point.path())).expect("it mounts");
    let size = || fs::metadata(point.path().join("text")).expect("stat").len();
    assert_eq!(size(), 0);
    *odd.size.lock() = 7;
    assert_eq!(size(), 0, "attributes live in the kernel without end");
    queue.send(Invalidation::Inode { inode: TEXT, attributes_only: true });
    assert_eq!(size(), 7, "told, the kernel asks again");
    *odd.size.lock() = 8;
    queue.send(Invalidation::Name { parent: ROOT_INODE, name: Bytes::from_static(b"text") });
    queue.send(Invalidation::Inode { inode: TEXT, attributes_only: false });
    queue.wait_until_delivered(Duration::from_secs(60));
    assert_eq!(size(), 8);
    unmount(mounted);
}
