//! `cellfs unmount`: umount(8) that returns once the store is closed.

use super::error::{CliError, CliResult};
use super::lock_holder;
use crate::fuse::{self, Mount};
use clap::Args;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// How long the daemon may take to write what it holds.
const CLOSE_PATIENCE_SECONDS: i64 = 120;

/// Unmount a store; returns once everything is on disk
#[derive(Args)]
#[command(after_help = "\
The same as `umount DIR` or `fusermount3 -u DIR`, but it waits until the store is closed, and it takes away a
mount whose daemon was killed.

Example:
  cellfs unmount ~/m")]
pub(super) struct UnmountCommand {
    /// Where the store is mounted
    #[arg(value_name = "DIR")]
    mount_point: PathBuf,
}

pub(super) fn run(command: &UnmountCommand) -> CliResult<()> {
    let given = &command.mount_point;
    let mount_point = resolve(given)?;
    let mount = match fuse::mount_at(&mount_point) {
        Ok(Some(mount)) if mount.is_cellfs() => mount,
        Ok(Some(mount)) => {
            return Err(CliError::Failed(format!(
                "{} is a mount of type {}, not a store: use umount",
                given.display(),
                mount.file_system_type
            )));
        }
        Ok(None) => {
            return Err(CliError::Failed(format!(
                "no store is mounted on {}; `grep cellfs /proc/mounts` lists the mounted ones",
                given.display()
            )));
        }
        Err(error) => return Err(CliError::Failed(format!("cannot read the table of mounts: {error}"))),
    };
    let daemon = daemon_of(&mount);
    fuse::unmount(&mount_point).map_err(|error| refused(given, &error))?;
    match daemon {
        Some(daemon) => wait_for_end(&daemon, given),
        None => Ok(()),
    }
}

/// The path without symbolic links; the last part is not looked at, since a dead mount cannot be.
fn resolve(given: &Path) -> CliResult<PathBuf> {
    let failed = |error: io::Error| CliError::io("find", given, &error);
    let absolute = std::path::absolute(given).map_err(failed)?;
    match std::fs::canonicalize(&absolute) {
        Ok(resolved) => Ok(resolved),
        Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => match (absolute.parent(), absolute.file_name()) {
            (Some(parent), Some(name)) => Ok(std::fs::canonicalize(parent).map_err(failed)?.join(name)),
            _ => Ok(absolute),
        },
        Err(error) => Err(failed(error)),
    }
}

/// The process that serves the mount, held so that its number cannot come to mean another.
fn daemon_of(mount: &Mount) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(lock_holder::holder(&mount.source)?).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

fn wait_for_end(daemon: &OwnedFd, given: &Path) -> CliResult<()> {
    let patience = Timespec { tv_sec: CLOSE_PATIENCE_SECONDS, tv_nsec: 0 };
    match poll(&mut [PollFd::new(daemon, PollFlags::IN)], Some(&patience)) {
        Ok(0) => Err(CliError::Failed(format!(
            "{} is unmounted, but its daemon still writes after {CLOSE_PATIENCE_SECONDS} s; see its log",
            given.display()
        ))),
        Ok(_) => Ok(()),
        Err(errno) => Err(CliError::Failed(format!("cannot wait for the daemon of {}: {errno}", given.display()))),
    }
}

fn refused(given: &Path, error: &io::Error) -> CliError {
    match error.raw_os_error() {
        Some(libc::EBUSY) => CliError::Failed(format!(
            "{0} is busy: a process has a file open in it or stands in it (`fuser -vm {0}` shows which); end that first",
            given.display()
        )),
        Some(libc::EPERM) => {
            CliError::Failed(format!("no permission to unmount {}: only who mounted it, or root, may", given.display()))
        }
        _ => CliError::io("unmount", given, error),
    }
}
