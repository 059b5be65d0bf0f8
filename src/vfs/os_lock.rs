//! Lock files of the real file system: POSIX record locks (`fcntl(2)`, F_SETLK), whose holder the kernel can name (F_GETLK), which
//! neither `flock(2)` nor open-file-description locks can.
//!
//! Record locks belong to the process: a second lock in the same process always succeeds, and closing any descriptor of the file drops
//! them all. Hence the registry: within a process it decides, and no descriptor of a held lock file is ever opened again. A process that
//! forks after taking a lock does not hand it to its child.

use super::os::FILE_MODE;
use super::{LockGuard, LockMode};
use crate::error::{Error, Result};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Device and inode number: what a record lock is bound to, whatever path led there.
type FileIdentity = (u64, u64);

/// A lock this process holds.
struct Held {
    mode: LockMode,
    holders: usize,
    /// Keeps the descriptor, and with it the lock.
    _file: fs::File,
}

/// Every lock file this process holds. Its mutex is kept over opening and locking, so that two threads cannot do both at once.
static HELD: Mutex<BTreeMap<FileIdentity, Held>> = Mutex::new(BTreeMap::new());

/// A share in a held lock; `None` where the media cannot be locked.
struct OsLock {
    identity: Option<FileIdentity>,
}

impl LockGuard for OsLock {}

impl Drop for OsLock {
    fn drop(&mut self) {
        let Some(identity) = self.identity else { return };
        let mut held = HELD.lock();
        if let Some(entry) = held.get_mut(&identity) {
            entry.holders -= 1;
            if entry.holders == 0 {
                held.remove(&identity);
            }
        }
    }
}

/// [`super::Vfs::lock`] of the real file system. A shared lock writes nothing: where there is no lock file, or the media have no locks,
/// nobody can hold an exclusive one, and the guard stands for nothing.
pub(super) fn lock(path: &Path, mode: LockMode) -> Result<Box<dyn LockGuard>> {
    let failed = |source: io::Error| Error::io("lock", path, source);
    let mut held = HELD.lock();
    match fs::metadata(path) {
        Ok(metadata) => {
            if let Some(entry) = held.get_mut(&identity_of(&metadata)) {
                if mode == LockMode::Exclusive || entry.mode == LockMode::Exclusive {
                    return Err(Error::Locked { path: path.to_path_buf(), pid: Some(std::process::id()) });
                }
                entry.holders += 1;
                return Ok(Box::new(OsLock { identity: Some(identity_of(&metadata)) }));
            }
        }
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
            if mode == LockMode::Shared {
                return Ok(Box::new(OsLock { identity: None }));
            }
        }
        Err(source) => return Err(failed(source)),
    }
    let mut options = fs::OpenOptions::new();
    options.read(true);
    if mode == LockMode::Exclusive {
        options.write(true).create(true).truncate(false).mode(FILE_MODE);
    }
    let file = options.open(path).map_err(failed)?;
    match fcntl(&file, FcntlArg::F_SETLK(&record_lock(mode))) {
        Ok(_) => {}
        Err(Errno::EACCES | Errno::EAGAIN) => {
            return Err(Error::Locked { path: path.to_path_buf(), pid: holder(&file, mode) });
        }
        Err(Errno::ENOLCK | Errno::EOPNOTSUPP | Errno::EINVAL | Errno::ENOSYS) if mode == LockMode::Shared => {
            return Ok(Box::new(OsLock { identity: None }));
        }
        Err(errno) => return Err(failed(io::Error::from(errno))),
    }
    let identity = identity_of(&file.metadata().map_err(failed)?);
    held.insert(identity, Held { mode, holders: 1, _file: file });
    Ok(Box::new(OsLock { identity: Some(identity) }))
}

fn identity_of(metadata: &fs::Metadata) -> FileIdentity {
    (metadata.dev(), metadata.ino())
}

/// The whole file, as `struct flock` says it.
fn record_lock(mode: LockMode) -> libc::flock {
    let kind = match mode {
        LockMode::Exclusive => libc::F_WRLCK,
        LockMode::Shared => libc::F_RDLCK,
    };
    // The constants are C ints that fit the struct's shorts on every platform.
    libc::flock { l_type: kind as _, l_whence: libc::SEEK_SET as _, l_start: 0, l_len: 0, l_pid: 0 }
}

/// The process whose lock stands in the way; `None` when it has gone meanwhile or lives in another pid namespace.
fn holder(file: &fs::File, mode: LockMode) -> Option<u32> {
    let mut other = record_lock(mode);
    fcntl(file, FcntlArg::F_GETLK(&mut other)).ok()?;
    if other.l_type == libc::F_UNLCK as libc::c_short {
        return None;
    }
    u32::try_from(other.l_pid).ok().filter(|pid| *pid != 0)
}
