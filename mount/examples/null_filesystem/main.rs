//! The null file system: directories and files in memory behind the very adapter that serves cellfs, with no engine. What an operation
//! costs here is the price of FUSE itself; `scripts/bench` compares with it.
//!
//! `null_filesystem DIR` mounts on DIR and stays in front until DIR is unmounted.

mod filesystem;

use cellfs_mount::fuse::{self, MountSettings};
use cellfs_mount::invalidation::InvalidationQueue;
use filesystem::NullFileSystem;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

fn main() -> ExitCode {
    let Some(mount_point) = std::env::args_os().nth(1) else {
        eprintln!("usage: null_filesystem DIR");
        return ExitCode::from(2);
    };
    let settings = MountSettings {
        source: OsString::from("null"),
        mount_point: PathBuf::from(mount_point),
        read_only: false,
        no_exec: false,
        allow_other: false,
        threads: 0,
    };
    let mounted = match fuse::mount(Arc::new(NullFileSystem::new()), InvalidationQueue::new(), &settings) {
        Ok(mounted) => mounted,
        Err(error) => {
            eprintln!("null_filesystem: {error}");
            return ExitCode::FAILURE;
        }
    };
    match mounted.wait() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("null_filesystem: {error}");
            ExitCode::FAILURE
        }
    }
}
