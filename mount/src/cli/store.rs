//! Opening a store: waits for a daemon that is just closing it, and names the one that is not.

use super::error::{CliError, CliResult};
use crate::fuse;
use cellfs::Error;
use cellfs::client::TableAttributes;
use cellfs::clock::{Clock, SystemClock};
use cellfs::server::{Store, StoreOptions};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// umount(8) returns before the daemon has closed the store, since the kernel does not wait for it. Looked at this often, so many times.
const CLOSING_LOOK: Duration = Duration::from_millis(20);
const CLOSING_LOOKS: u32 = 3000;

/// The store's path, absolute and without symbolic links as far as it exists.
pub(super) fn absolute(given: &Path) -> CliResult<PathBuf> {
    let failed = |error: io::Error| CliError::io("find the store", given, &error);
    match fs::canonicalize(given) {
        Ok(resolved) => Ok(resolved),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let absolute = std::path::absolute(given).map_err(failed)?;
            match (absolute.parent(), absolute.file_name()) {
                (Some(parent), Some(name)) => Ok(fs::canonicalize(parent).map_err(failed)?.join(name)),
                _ => Ok(absolute),
            }
        }
        Err(error) => Err(failed(error)),
    }
}

/// Opens the store. One whose daemon is no longer mounted is waited for.
pub(super) fn open(path: &Path, options: &StoreOptions) -> CliResult<Store> {
    Ok(when_closed(path, || Store::open(path, options.clone()))?)
}

/// Tries what needs the store's lock until the daemon that is just closing the store has given it up.
pub(super) fn when_closed<T>(path: &Path, mut attempt: impl FnMut() -> cellfs::Result<T>) -> cellfs::Result<T> {
    let mut looks = 0;
    loop {
        match attempt() {
            Err(Error::Locked { pid, .. }) if looks < CLOSING_LOOKS && is_closing(path, pid) => {
                looks += 1;
                thread::sleep(CLOSING_LOOK);
            }
            done => return done,
        }
    }
}

/// How the command opens stores: what a new one's `default` namespace gets belongs to `uid` and `gid`.
pub(super) fn options(read_only: bool, uid: u32, gid: u32, umask: u32) -> StoreOptions {
    let now = SystemClock::new().now_millis();
    let default_namespace =
        TableAttributes { mode: 0o755 & !umask, uid, gid, changed_millis: now, modified_millis: now };
    StoreOptions { read_only, default_namespace, ..StoreOptions::default() }
}

/// True if the holder is a mount that has been unmounted: it is about to end.
fn is_closing(path: &Path, pid: Option<u32>) -> bool {
    let Some(pid) = pid else { return false };
    let mounted =
        fuse::mounts().map_or(true, |mounts| mounts.iter().any(|mount| mount.is_cellfs() && mount.source == path));
    !mounted && is_mount_process(pid)
}

fn is_mount_process(pid: u32) -> bool {
    match fs::read(format!("/proc/{pid}/cmdline")) {
        // A process that is just ending has no command line any more, and may still have its locks.
        Ok(line) => line.is_empty() || line.split(|byte| *byte == 0).nth(1) == Some(b"mount"),
        // Gone meanwhile, so the lock is free or about to be.
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_does_not_exist_yet_has_a_path_all_the_same() {
        let directory = tempfile::tempdir().expect("a directory");
        let real = fs::canonicalize(directory.path()).expect("it exists");
        assert_eq!(absolute(&directory.path().join("new")).expect("its parent exists"), real.join("new"));
        assert!(absolute(&directory.path().join("a/b")).is_err());
    }
}
