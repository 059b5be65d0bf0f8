//! A file system under measurement: a daemon that is started, mounted, and unmounted again.

use crate::figures::Result;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a daemon may take to come up or go down.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running daemon and its mount point. Dropped, it is unmounted.
pub struct Mounted {
    daemon: Child,
    point: PathBuf,
    unmounted: bool,
}

impl Mounted {
    /// Starts `command`, which must stay in front, and waits until `point` is a mount point.
    pub fn start(mut command: Command, point: &Path) -> Result<Mounted> {
        let daemon = command.stdin(Stdio::null()).spawn().map_err(|error| format!("{command:?}: {error}"))?;
        let mut mounted = Mounted { daemon, point: point.to_path_buf(), unmounted: false };
        let start = Instant::now();
        while !is_mount_point(point)? {
            if let Some(status) = mounted.daemon.try_wait()? {
                mounted.unmounted = true;
                return Err(format!("{command:?} ended with {status} before it mounted").into());
            }
            if start.elapsed() > PATIENCE {
                return Err(format!("{command:?} has not mounted {} after {PATIENCE:?}", point.display()).into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(mounted)
    }

    /// The daemon's process.
    pub fn pid(&self) -> u32 {
        self.daemon.id()
    }

    /// Unmounts and waits for the daemon to end.
    pub fn unmount(mut self) -> Result<()> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<()> {
        if self.unmounted {
            return Ok(());
        }
        self.unmounted = true;
        let status = Command::new("umount").arg(&self.point).status()?;
        if !status.success() {
            self.daemon.kill()?;
            return Err(format!("umount {} failed: {status}", self.point.display()).into());
        }
        self.daemon.wait()?;
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if let Err(failure) = self.take_down() {
            eprintln!("bench: {failure}");
        }
    }
}

fn is_mount_point(point: &Path) -> Result<bool> {
    let mounts = std::fs::read_to_string("/proc/self/mounts")?;
    let point = point.to_string_lossy();
    Ok(mounts.lines().any(|line| line.split(' ').nth(1) == Some(&*point)))
}
