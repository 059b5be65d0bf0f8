//! The only code that touches the operating system's files: the traits [`Vfs`] and [`File`], and their two implementations.
//!
//! [`OsVfs`] is the real one; [`SimVfs`], for tests, keeps everything in memory, remembers what was synced, and plays crashes and failing disks.

mod os;
mod os_lock;
mod os_map;
#[cfg(test)]
mod os_tests;
mod sim;
#[cfg(test)]
mod sim_tests;

pub use os::OsVfs;
pub use sim::{Fault, FaultRule, Keep, SimOperation, SimVfs};

use crate::error::Result;
use std::path::Path;
use std::sync::Arc;

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The name, without the directory.
    pub name: String,
    /// True for directories.
    pub is_directory: bool,
    /// Length in bytes of a file; 0 for directories.
    pub len: u64,
}

/// How a lock file is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// One holder.
    Exclusive,
    /// Many readers, no exclusive holder.
    Shared,
}

/// A held lock; dropped, it is released.
pub trait LockGuard: Send + Sync {}

/// A file system. Paths are absolute or relative to the process; errors are [`crate::Error::Io`], `NoSpace` or `ReadOnly` with path and operation.
pub trait Vfs: Send + Sync + 'static {
    /// Opens an existing file for reading.
    fn open_read(&self, path: &Path) -> Result<Arc<dyn File>>;
    /// Opens an existing file for reading and writing.
    fn open_write(&self, path: &Path) -> Result<Arc<dyn File>>;
    /// Creates a file (mode 0600) for reading and writing; it is an error if it exists.
    fn create_new(&self, path: &Path) -> Result<Arc<dyn File>>;
    /// Renames a file, replacing the target.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> Result<()>;
    /// Creates a directory (mode 0700); an existing directory is no error.
    fn create_directory(&self, path: &Path) -> Result<()>;
    /// Lets everybody read a file (mode 0644) or enter and list a directory (0755): for what other programs are to take.
    fn let_all_read(&self, path: &Path) -> Result<()>;
    /// Removes an empty directory.
    fn remove_directory(&self, path: &Path) -> Result<()>;
    /// The entries of a directory, sorted by name.
    fn list(&self, path: &Path) -> Result<Vec<DirectoryEntry>>;
    /// True if a file or directory of that name exists.
    fn exists(&self, path: &Path) -> Result<bool>;
    /// Makes creations, renames and removals in the directory durable.
    fn sync_directory(&self, path: &Path) -> Result<()>;
    /// Bytes free on the volume that holds `path`.
    fn free_space(&self, path: &Path) -> Result<u64>;
    /// Takes the lock file at `path`, creating it if needed; [`crate::Error::Locked`] names the holder.
    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn LockGuard>>;
}

/// An open file. All offsets and lengths are in bytes.
pub trait File: Send + Sync {
    /// The path it was opened by, for error messages.
    fn path(&self) -> &Path;
    /// Current length.
    fn len(&self) -> Result<u64>;
    /// True if the length is 0.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
    /// Fills `buf` from `offset`. A file that ends before is [`crate::Error::Corruption`] at `offset`.
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()>;
    /// Reads up to `buf.len()` bytes; fewer only at the end of the file.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize>;
    /// Writes all of `data` at `offset`, extending the file as needed.
    fn write_all_at(&self, data: &[u8], offset: u64) -> Result<()>;
    /// Makes the data and the length durable (fdatasync). Never call it again after it failed.
    fn sync_data(&self) -> Result<()>;
    /// Makes data and attributes durable (fsync). Never call it again after it failed.
    fn sync_all(&self) -> Result<()>;
    /// Reserves blocks for `[0, len)` without changing what has been written; the file becomes at least `len` long, new bytes read as zero.
    fn allocate(&self, len: u64) -> Result<()>;
    /// Lets small writes within `[0, len)`, whose blocks are allocated, go through memory that is shared with the page cache instead of a system
    /// call each. They mean the same and fail the same. A hint: where it cannot be done, nothing changes.
    fn map_writes(&self, len: u64);
    /// Cuts or extends the file.
    fn set_len(&self, len: u64) -> Result<()>;
    /// Starts writing the range back without waiting (sync_file_range); a hint.
    fn start_writeback(&self, offset: u64, len: u64);
    /// Tells the page cache that the range will not be read soon; a hint.
    fn advise_dont_need(&self, offset: u64, len: u64);
}
