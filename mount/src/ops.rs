//! The file operations a mount must answer, without a word of FUSE: [`Operations`] is what `fuse.rs` serves to the kernel, what the
//! file system in `fs/` implements, and what tests call without a mount.
//!
//! Contract with the kernel adapter: every method returns quickly unless [`Operations::may_block`] says otherwise; the adapter then runs it
//! on a worker. Times are nanoseconds since the epoch. Sizes and offsets are bytes. Names are bytes, never text.

use bytes::Bytes;
use std::ffi::OsStr;
use std::fmt;

/// The root's inode number (FUSE_ROOT_ID).
pub const ROOT_INODE: u64 = 1;

/// An errno and, where the bare number does not say it all, the reason for `.cellfs/errors`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FsError {
    /// The errno, positive.
    pub errno: i32,
    /// What and where and what next; empty only for a plain ENOENT of a lookup and for what the kernel tries again.
    pub reason: String,
}

impl FsError {
    /// An error with a reason.
    pub fn new(errno: i32, reason: impl Into<String>) -> FsError {
        FsError { errno, reason: reason.into() }
    }

    /// A name that is not there, not worth a line in `.cellfs/errors`.
    pub fn not_found() -> FsError {
        FsError { errno: libc::ENOENT, reason: String::new() }
    }

    /// An error upon which the kernel tries again by itself, not worth a line either.
    pub fn retried(errno: i32) -> FsError {
        FsError { errno, reason: String::new() }
    }
}

impl fmt::Display for FsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason, std::io::Error::from_raw_os_error(self.errno))
    }
}

impl std::error::Error for FsError {}

/// Result of a file operation.
pub type FsResult<T> = Result<T, FsError>;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Thread id as FUSE gives it; the thread group is read from /proc where it matters.
    pub pid: u32,
}

/// What kind of file an inode is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A directory.
    Directory,
    /// A regular file.
    Regular,
}

/// Whether the kernel keeps the names of an open directory, for this listing and later ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListingCache {
    /// No: each listing asks.
    None,
    /// Yes, but what it has is wrong (FOPEN_CACHE_DIR).
    Renewed,
    /// Yes, and what it has is right (FOPEN_CACHE_DIR with FOPEN_KEEP_CACHE).
    Kept,
}

/// What stat(2) shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// Inode number.
    pub inode: u64,
    /// Kind.
    pub kind: FileKind,
    /// Permission bits.
    pub mode: u32,
    /// Links.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// Last change of content.
    pub mtime_nanos: i64,
    /// Last change of content or attributes.
    pub ctime_nanos: i64,
    /// Last access, as far as it is kept (equal to mtime unless set).
    pub atime_nanos: i64,
}

/// How long the kernel may believe an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Ask again each time.
    None,
    /// Until this many milliseconds from now (a cell with a TTL).
    Millis(u64),
    /// Until told otherwise through [`Invalidation`].
    Forever,
}

/// The answer to a lookup, mkdir or create. The kernel then holds one more reference to the inode, given back by [`Operations::forget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The attributes.
    pub attributes: Attributes,
    /// Lifetime of the name.
    pub name_lifetime: Lifetime,
    /// Lifetime of the attributes.
    pub attribute_lifetime: Lifetime,
}

/// How the kernel shall treat an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The handle, passed back with each operation on the open file.
    pub handle: u64,
    /// Page cache kept from earlier opens is still right.
    pub keep_cache: bool,
    /// No page cache: each read and write comes here.
    pub direct_io: bool,
    /// close(2) need not ask.
    pub no_flush: bool,
    /// Not seekable: a stream.
    pub stream: bool,
}

/// Changes of setattr; `None` leaves a value alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttributeChanges {
    /// chmod.
    pub mode: Option<u32>,
    /// chown.
    pub uid: Option<u32>,
    /// chgrp.
    pub gid: Option<u32>,
    /// truncate.
    pub size: Option<u64>,
    /// utimens.
    pub atime: Option<TimeChange>,
    /// utimens.
    pub mtime: Option<TimeChange>,
}

/// utimens' two ways to give a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeChange {
    /// The clock's now (UTIME_NOW).
    Now,
    /// This one, nanoseconds since the epoch.
    At(i64),
}

/// Sizes of the volume, for statfs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeFigures {
    /// Block size.
    pub block_size: u32,
    /// Blocks in all.
    pub blocks: u64,
    /// Blocks free.
    pub blocks_free: u64,
    /// Blocks free to an ordinary user.
    pub blocks_available: u64,
    /// Files in all and free; 0 where unknown.
    pub files: u64,
    /// See `files`.
    pub files_free: u64,
}

/// Takes directory entries until it is full.
pub trait DirectorySink {
    /// Adds an entry; `next_offset` resumes after it. True = full: this entry was not taken. With `entry` the kernel learns the attributes as well and
    /// holds a reference (readdirplus); `inode` and `kind` are always given.
    fn add(&mut self, inode: u64, kind: FileKind, name: &[u8], next_offset: u64, entry: Option<&Entry>) -> bool;
}

/// Something the kernel must forget, because it changed without its doing; sent through [`crate::invalidation::InvalidationQueue`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalidation {
    /// A name of a directory, with what it led to.
    Name {
        /// The directory.
        parent: u64,
        /// The name.
        name: Bytes,
    },
    /// Attributes and cached pages of an inode.
    Inode {
        /// The inode.
        inode: u64,
        /// Only the attributes: for inodes with open handles.
        attributes_only: bool,
    },
}

/// Which operation is asked about in [`Operations::may_block`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// An operation that waits for the disk or for long work: fsync, verbs, streams.
    Handle(u64),
    /// An operation on an inode.
    Inode(u64),
}

/// The operations of a mounted file system. Errors are errnos with reasons.
#[allow(unused_variables)]
pub trait Operations: Send + Sync + 'static {
    /// True if the operation may wait (for the disk, for a verb, for a stream): the adapter then serves it on a worker thread.
    fn may_block(&self, operation: OperationKind) -> bool {
        false
    }
    /// True if names made and removed below the directory are names below another one as well, so that the kernel has to be told.
    fn is_another_way(&self, directory: u64) -> bool {
        false
    }
    /// Finds a name. `Ok(None)` is a negative entry the kernel may keep.
    fn lookup(&self, caller: &Caller, parent: u64, name: &OsStr) -> FsResult<Option<Entry>>;
    /// The kernel gives back `count` references.
    fn forget(&self, inode: u64, count: u64);
    /// Attributes of an inode and how long they hold. The handle is not known here (fuse.md 5.12).
    fn getattr(&self, caller: &Caller, inode: u64) -> FsResult<(Attributes, Lifetime)>;
    /// Changes attributes.
    fn setattr(
        &self,
        caller: &Caller,
        inode: u64,
        handle: Option<u64>,
        changes: &AttributeChanges,
    ) -> FsResult<(Attributes, Lifetime)>;
    /// Makes a directory; `mode` is already masked by umask.
    fn mkdir(&self, caller: &Caller, parent: u64, name: &OsStr, mode: u32) -> FsResult<Entry>;
    /// Removes a file.
    fn unlink(&self, caller: &Caller, parent: u64, name: &OsStr) -> FsResult<()>;
    /// Removes a directory.
    fn rmdir(&self, caller: &Caller, parent: u64, name: &OsStr) -> FsResult<()>;
    /// renameat2(2); `flags` are RENAME_*.
    fn rename(
        &self,
        caller: &Caller,
        parent: u64,
        name: &OsStr,
        new_parent: u64,
        new_name: &OsStr,
        flags: u32,
    ) -> FsResult<()>;
    /// Creates and opens a file; `flags` are open(2)'s, `mode` is already masked by umask.
    fn create(&self, caller: &Caller, parent: u64, name: &OsStr, mode: u32, flags: i32) -> FsResult<(Entry, Opened)>;
    /// Opens a file; `flags` are open(2)'s, O_TRUNC included.
    fn open(&self, caller: &Caller, inode: u64, flags: i32) -> FsResult<Opened>;
    /// Reads; fewer bytes than asked only at the end of the file.
    fn read(&self, caller: &Caller, inode: u64, handle: u64, offset: u64, size: u32) -> FsResult<Bytes>;
    /// Writes; `offset` is ignored for handles opened with O_APPEND.
    fn write(&self, caller: &Caller, inode: u64, handle: u64, offset: u64, data: &[u8]) -> FsResult<u32>;
    /// close(2) of one descriptor: commits what is dirty.
    fn flush(&self, caller: &Caller, inode: u64, handle: u64) -> FsResult<()>;
    /// fsync(2) or fdatasync(2) of a file.
    fn fsync(&self, caller: &Caller, inode: u64, handle: u64) -> FsResult<()>;
    /// The last descriptor is gone. Errors reach nobody but `.cellfs/errors`.
    fn release(&self, inode: u64, handle: u64);
    /// Opens a directory; returns the handle, and whether the kernel may answer from what it has.
    fn opendir(&self, caller: &Caller, inode: u64) -> FsResult<(u64, ListingCache)>;
    /// Lists from `offset` (0 = from the start, on a fresh snapshot) until the sink is full or the directory ends. `plus`: give attributes too.
    fn readdir(
        &self,
        caller: &Caller,
        inode: u64,
        handle: u64,
        offset: u64,
        plus: bool,
        sink: &mut dyn DirectorySink,
    ) -> FsResult<()>;
    /// The directory handle is gone.
    fn releasedir(&self, inode: u64, handle: u64);
    /// fsync(2) of a directory.
    fn fsyncdir(&self, caller: &Caller, inode: u64, handle: u64) -> FsResult<()>;
    /// True if extended attributes are served (`-o xattr`). Without, the kernel is told so once and asks no more.
    fn has_extended_attributes(&self) -> bool {
        false
    }
    /// The value of an extended attribute; `None` where there is none of that name.
    fn getxattr(&self, caller: &Caller, inode: u64, name: &OsStr) -> FsResult<Option<Bytes>> {
        Ok(None)
    }
    /// Figures of the volume.
    fn statfs(&self, inode: u64) -> FsResult<VolumeFigures>;
    /// The mount ends: commit everything, close the store.
    fn unmounted(&self);
    /// Keeps the reason of a failed operation for `.cellfs/errors`; called by the adapter for every error but a plain ENOENT.
    fn note_error(&self, caller: &Caller, operation: &'static str, inode: u64, name: Option<&OsStr>, error: &FsError);
}
