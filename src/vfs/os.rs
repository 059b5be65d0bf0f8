//! The operating system's files. With `os_lock.rs` and `os_map.rs` the only code of the engine that calls it.

use super::os_map::SharedMapping;
use super::{DirectoryEntry, File, LockGuard, LockMode, Vfs, os_lock};
use crate::error::{Error, Result};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Mode of every file the engine makes: a store is its owner's.
pub(super) const FILE_MODE: u32 = 0o600;
/// Mode of every directory the engine makes.
const DIRECTORY_MODE: u32 = 0o700;

/// Writes up to this many bytes go through shared memory where a file allows it: beyond that page faults cost more than a system call.
const MAPPED_WRITE_BYTES: usize = 16 << 10;

/// The real file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsVfs;

impl OsVfs {
    /// The real file system.
    pub fn new() -> OsVfs {
        OsVfs
    }
}

impl Vfs for OsVfs {
    fn open_read(&self, path: &Path) -> Result<Arc<dyn File>> {
        OsFile::open(path, "open", fs::OpenOptions::new().read(true))
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn File>> {
        OsFile::open(path, "open", fs::OpenOptions::new().read(true).write(true))
    }

    fn create_new(&self, path: &Path) -> Result<Arc<dyn File>> {
        OsFile::open(path, "create", fs::OpenOptions::new().read(true).write(true).create_new(true).mode(FILE_MODE))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to).map_err(|source| Error::io("rename", from, source))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).map_err(|source| Error::io("remove", path, source))
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        match fs::DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
            Err(exists) if exists.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
            made => made.map_err(|source| Error::io("create", path, source)),
        }
    }

    fn let_all_read(&self, path: &Path) -> Result<()> {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .map_err(|source| Error::io("change the mode of", path, source))
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        fs::remove_dir(path).map_err(|source| Error::io("remove", path, source))
    }

    fn list(&self, path: &Path) -> Result<Vec<DirectoryEntry>> {
        let failed = |source| Error::io("list", path, source);
        let mut entries = Vec::new();
        for entry in fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let metadata = match entry.metadata() {
                // Removed since it was listed.
                Err(gone) if gone.kind() == io::ErrorKind::NotFound => continue,
                metadata => metadata.map_err(failed)?,
            };
            entries.push(DirectoryEntry {
                // The engine makes only ASCII names; a stranger's name is shown as well as it can be.
                name: entry.file_name().to_string_lossy().into_owned(),
                is_directory: metadata.is_dir(),
                len: if metadata.is_dir() { 0 } else { metadata.len() },
            });
        }
        entries.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(entries)
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        match fs::symlink_metadata(path) {
            Ok(_) => Ok(true),
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(Error::io("look up", path, source)),
        }
    }

    fn sync_directory(&self, path: &Path) -> Result<()> {
        fs::File::open(path)
            .and_then(|directory| directory.sync_all())
            .map_err(|source| Error::io("sync directory", path, source))
    }

    fn free_space(&self, path: &Path) -> Result<u64> {
        let volume = nix::sys::statvfs::statvfs(path)
            .map_err(|errno| Error::io("measure free space of", path, io::Error::from(errno)))?;
        Ok(volume.blocks_available().saturating_mul(volume.fragment_size()))
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn LockGuard>> {
        os_lock::lock(path, mode)
    }
}

/// An open file of the operating system.
struct OsFile {
    file: fs::File,
    path: PathBuf,
    mapping: OnceLock<SharedMapping>,
}

impl OsFile {
    fn open(path: &Path, operation: &'static str, options: &fs::OpenOptions) -> Result<Arc<dyn File>> {
        let file = options.open(path).map_err(|source| Error::io(operation, path, source))?;
        Ok(Arc::new(OsFile { file, path: path.to_path_buf(), mapping: OnceLock::new() }))
    }

    fn failed(&self, operation: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = self.path.clone();
        move |source| Error::io(operation, path, source)
    }
}

/// An offset or length as the kernel takes it. Beyond `i64::MAX` no file reaches, so the call then fails by itself (EFBIG).
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl File for OsFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> Result<u64> {
        self.file.metadata().map(|metadata| metadata.len()).map_err(self.failed("measure"))
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        match self.file.read_exact_at(buf, offset) {
            Err(short) if short.kind() == io::ErrorKind::UnexpectedEof => {
                let what = format!("the file ends before the {} bytes that should be here", buf.len());
                Err(Error::corruption(&self.path, offset, what))
            }
            read => read.map_err(self.failed("read")),
        }
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buf.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, offset.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(again) if again.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.failed("read")(source)),
            }
        }
        Ok(filled)
    }

    fn write_all_at(&self, data: &[u8], offset: u64) -> Result<()> {
        let mapping = self.mapping.get().filter(|_| data.len() <= MAPPED_WRITE_BYTES);
        if mapping.is_some_and(|mapping| mapping.write(data, offset)) {
            return Ok(());
        }
        self.file.write_all_at(data, offset).map_err(self.failed("write"))
    }

    fn sync_data(&self) -> Result<()> {
        self.file.sync_data().map_err(self.failed("sync"))
    }

    fn sync_all(&self) -> Result<()> {
        self.file.sync_all().map_err(self.failed("sync"))
    }

    fn allocate(&self, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        loop {
            match nix::fcntl::posix_fallocate(&self.file, 0, signed(len)) {
                Err(nix::errno::Errno::EINTR) => {}
                allocated => return allocated.map_err(|errno| self.failed("allocate")(io::Error::from(errno))),
            }
        }
    }

    fn map_writes(&self, len: u64) {
        if let Some(mapping) = SharedMapping::new(&self.file, len) {
            // A second mapping of one file would be as good as the first, which stays.
            let _ = self.mapping.set(mapping);
        }
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(self.failed("resize"))
    }

    #[expect(
        unsafe_code,
        reason = "no safe binding has this call; it moves the cost of a sync out of its caller's way"
    )]
    fn start_writeback(&self, offset: u64, len: u64) {
        // SAFETY: takes no pointer; the descriptor is open as long as `self.file` lives. A failure only means that the hint was not taken.
        unsafe {
            libc::sync_file_range(self.file.as_raw_fd(), signed(offset), signed(len), libc::SYNC_FILE_RANGE_WRITE);
        }
    }

    fn advise_dont_need(&self, offset: u64, len: u64) {
        let advice = nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED;
        // A hint: where the kernel does not take it, pages stay a little longer.
        let _ = nix::fcntl::posix_fadvise(&self.file, signed(offset), signed(len), advice);
    }
}
