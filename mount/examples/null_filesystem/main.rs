//! The null file system: directories and files in memory behind the very adapter that serves cellfs, with no engine. What an operation
//! costs here is the price of FUSE itself; `scripts/bench` compares with it.
//!
//! `null_filesystem DIR [ROWS CELLS]` mounts on DIR and stays in front until DIR is unmounted. With numbers it holds `/default/t` from the start: so many
//! directories of so many files of 100 bytes.

mod filesystem;

use cellfs_mount::fuse::{self, MountSettings};
use cellfs_mount::invalidation::InvalidationQueue;
use cellfs_mount::ops::{Caller, FsResult, Operations, ROOT_INODE};
use filesystem::NullFileSystem;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

const CONTENT: [u8; 100] = [b'v'; 100];

/// Makes `/default/t` with `rows` directories of `cells` files each.
fn fill(filesystem: &NullFileSystem, rows: u64, cells: u64) -> FsResult<()> {
    let caller = Caller { uid: 0, gid: 0, pid: 0 };
    let directory = |parent: u64, name: &str| -> FsResult<u64> {
        let made = filesystem.mkdir(&caller, parent, OsStr::new(name), 0o755)?.attributes.inode;
        filesystem.forget(made, 1);
        Ok(made)
    };
    let table = directory(directory(ROOT_INODE, "default")?, "t")?;
    for row in 0..rows {
        let row = directory(table, &format!("row{row:06}"))?;
        for cell in 0..cells {
            let name = format!("cf:c{cell:06}");
            let (made, _) = filesystem.create(&caller, row, OsStr::new(&name), 0o644, 0)?;
            filesystem.write(&caller, made.attributes.inode, 0, 0, &CONTENT)?;
            filesystem.forget(made.attributes.inode, 1);
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let Some(mount_point) = std::env::args_os().nth(1) else {
        eprintln!("usage: null_filesystem DIR [ROWS CELLS]");
        return ExitCode::from(2);
    };
    let filesystem = NullFileSystem::new();
    let numbers: Vec<u64> = std::env::args().skip(2).filter_map(|number| number.parse().ok()).collect();
    if let [rows, cells] = numbers[..]
        && let Err(error) = fill(&filesystem, rows, cells)
    {
        eprintln!("null_filesystem: {error}");
        return ExitCode::FAILURE;
    }
    let settings = MountSettings {
        source: OsString::from("null"),
        mount_point: PathBuf::from(mount_point),
        read_only: false,
        no_exec: false,
        allow_other: false,
        threads: 0,
    };
    let mounted = match fuse::mount(Arc::new(filesystem), InvalidationQueue::new(), &settings) {
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
