//! Open files and directories, by the number that the kernel passes back.

use super::directory::Listing;
use super::inode::Inode;
use crate::magic::{MagicFile, MagicNode};
use crate::ops::{FsError, FsResult};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Something open.
pub enum Handle {
    /// A cell or a scratch file.
    File(FileHandle),
    /// A dot file.
    Magic(MagicHandle),
    /// A directory.
    Directory(Box<DirectoryHandle>),
}

/// An open cell or scratch file.
pub struct FileHandle {
    /// The handle's own number.
    pub number: u64,
    /// The file.
    pub inode: Arc<Inode>,
    /// Opened for writing.
    pub writable: bool,
    /// Writes go to the end.
    pub append: bool,
    /// Reads go through the kernel's page cache.
    pub cached: bool,
    /// What a reader reads.
    pub snapshot: Mutex<Snapshot>,
}

/// The value that an open reader sees.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The value; `None` until it is read.
    pub value: Option<Bytes>,
    /// Which version it is.
    pub version: Option<super::cells::VersionId>,
}

/// An open dot file.
pub struct MagicHandle {
    /// What it is.
    pub node: MagicNode,
    /// The open file.
    pub file: Mutex<Box<dyn MagicFile>>,
}

/// An open directory.
pub struct DirectoryHandle {
    /// The directory.
    pub inode: Arc<Inode>,
    /// The inode that the kernel opened: `inode`, or another directory of the same row.
    pub shown: Arc<Inode>,
    /// Names below it lead to what other names lead to as well: the kernel is to remember none of them.
    pub alias: bool,
    /// The kernel may keep its names, so the inode counts it.
    pub kept: bool,
    /// How far the listing is.
    pub listing: Mutex<Listing>,
}

impl DirectoryHandle {
    /// The handle is gone.
    pub fn closed(&self) {
        if self.kept {
            self.inode.listing.closed();
        }
    }
}

const SHARDS: usize = 16;

type Shard = Mutex<HashMap<u64, Arc<Handle>>>;

/// All open handles.
pub struct Handles {
    shards: Vec<Shard>,
    next: AtomicU64,
}

impl Default for Handles {
    fn default() -> Self {
        Handles { shards: (0..SHARDS).map(|_| Shard::default()).collect(), next: AtomicU64::new(1) }
    }
}

impl Handles {
    /// A number for a handle that is about to be made.
    pub fn reserve(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Adds a handle under a reserved number.
    pub fn insert(&self, number: u64, handle: Handle) {
        self.shard(number).lock().insert(number, Arc::new(handle));
    }

    /// An open handle.
    pub fn get(&self, number: u64) -> Option<Arc<Handle>> {
        self.shard(number).lock().get(&number).cloned()
    }

    /// An open handle.
    ///
    /// # Errors
    /// EBADF where there is none.
    pub fn find(&self, number: u64) -> FsResult<Arc<Handle>> {
        self.get(number).ok_or_else(|| FsError::new(libc::EBADF, "the handle is not open"))
    }

    /// Closes a handle.
    pub fn remove(&self, number: u64) -> Option<Arc<Handle>> {
        self.shard(number).lock().remove(&number)
    }

    /// All open handles.
    pub fn all(&self) -> Vec<Arc<Handle>> {
        self.shards.iter().flat_map(|shard| shard.lock().values().cloned().collect::<Vec<_>>()).collect()
    }

    #[expect(clippy::indexing_slicing, reason = "the index is taken modulo the number of shards")]
    fn shard(&self, number: u64) -> &Shard {
        &self.shards[number as usize % SHARDS]
    }
}
