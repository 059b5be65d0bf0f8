//! The kernel adapter. Here and in the modules below, and nowhere else, stand fuser's types: its next release breaks them all.
//!
//! A [`mount`] has one reading thread per core, each on its own clone of /dev/fuse. It serves most operations itself, without handing
//! them over, and gives to a worker what [`Operations::may_block`](crate::ops::Operations::may_block) names, with the reply. One more
//! thread tells the kernel what to forget. A panic in an operation is answered EIO, and the session goes on.

mod adapter;
mod convert;
mod directory;
mod mount_point;
mod mount_table;
mod server;
mod workers;

pub use mount_point::{detach, unmount};
pub use mount_table::{FILE_SYSTEM_TYPE, Mount, mount_at, mounts};

use crate::invalidation::InvalidationQueue;
use crate::ops::{Invalidation, Operations};
use adapter::Adapter;
use fuser::{BackgroundSession, Config, INodeNo, Notifier, Session, SessionACL};
use server::Server;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use workers::Workers;

/// Where and how to mount.
#[derive(Clone, Debug)]
pub struct MountSettings {
    /// What /proc/mounts shows as the source: the store directory, absolute.
    pub source: OsString,
    /// The directory to mount on.
    pub mount_point: PathBuf,
    /// Refuse all writes in the kernel.
    pub read_only: bool,
    /// Run no program from it.
    pub no_exec: bool,
    /// Let other users in; modes are then judged by the kernel.
    pub allow_other: bool,
    /// Threads that read requests; 0 for one per core.
    pub threads: usize,
}

/// Why a mount did not come to be. Each says what to do.
#[derive(Debug)]
pub enum MountError {
    /// /dev/fuse is missing.
    NoDevice,
    /// /dev/fuse may not be opened.
    DeviceRefused,
    /// fusermount3 is missing, and only root mounts without it.
    NoHelper,
    /// /etc/fuse.conf does not let users open their mounts to others.
    AllowOtherRefused,
    /// mount(2) is not permitted.
    NotPermitted {
        /// The mount point.
        path: PathBuf,
    },
    /// The mount point does not exist.
    NoMountPoint {
        /// The mount point.
        path: PathBuf,
    },
    /// The mount point is a file.
    NotADirectory {
        /// The mount point.
        path: PathBuf,
    },
    /// Something is mounted there already.
    Busy {
        /// The mount point.
        path: PathBuf,
        /// What is mounted.
        source: PathBuf,
        /// Its type.
        kind: String,
    },
    /// A mount whose daemon died is in the way and cannot be taken away.
    Dead {
        /// The mount point.
        path: PathBuf,
        /// Why it stays.
        source: io::Error,
    },
    /// The mount would cover the store, or lie in it.
    OverStore {
        /// The mount point.
        path: PathBuf,
        /// The store.
        store: PathBuf,
    },
    /// A path cannot be looked at.
    Unreachable {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel or fusermount3 refused for another reason.
    Refused {
        /// The mount point.
        path: PathBuf,
        /// What it said.
        what: String,
    },
}

impl fmt::Display for MountError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MountError::NoDevice => {
                f.write_str("/dev/fuse is missing: run `modprobe fuse` as root; in a container pass the device in")
            }
            MountError::DeviceRefused => {
                f.write_str("no permission to open /dev/fuse: mount as root, or let your user read and write it")
            }
            MountError::NoHelper => {
                f.write_str("fusermount3 is missing, without which only root can mount: install the package fuse3")
            }
            MountError::AllowOtherRefused => f.write_str(
                "allow_other is for root only, unless /etc/fuse.conf has a line `user_allow_other`: have root add it, or mount without",
            ),
            MountError::NotPermitted { path } => write!(
                f,
                "no permission to mount on {}: the process lacks CAP_SYS_ADMIN; in a container allow it",
                path.display()
            ),
            MountError::NoMountPoint { path } => {
                write!(f, "the mount point {} does not exist: make it with mkdir", path.display())
            }
            MountError::NotADirectory { path } => {
                write!(f, "{} is not a directory: choose one to mount on", path.display())
            }
            MountError::Busy { path, source, kind } => write!(
                f,
                "{} is a mount point already ({kind} of {}): unmount it first, or choose another",
                path.display(),
                source.display()
            ),
            MountError::Dead { path, source } => write!(
                f,
                "{} is a mount whose daemon is gone, and it cannot be taken away ({source}): run `umount -l {}` as root",
                path.display(),
                path.display()
            ),
            MountError::OverStore { path, store } => write!(
                f,
                "{} and the store {} lie in one another: mount on a directory outside the store",
                path.display(),
                store.display()
            ),
            MountError::Unreachable { path, source } => {
                write!(f, "cannot use {}: {source}; check the path and its permissions", path.display())
            }
            MountError::Refused { path, what } => write!(f, "cannot mount on {}: {what}", path.display()),
        }
    }
}

impl std::error::Error for MountError {}

/// A mounted file system. Served until it is unmounted, by [`unmount`] or by anyone else.
pub struct Mounted<F: Operations> {
    session: BackgroundSession,
    server: Arc<Server<F>>,
    workers: Workers,
    notifier: JoinHandle<()>,
    mount_point: PathBuf,
}

impl<F: Operations> Mounted<F> {
    /// The mount point, absolute and without symbolic links.
    pub fn mount_point(&self) -> &Path {
        &self.mount_point
    }

    /// Waits for the unmount, finishes what is under way and has the file system close ([`Operations::unmounted`]).
    ///
    /// # Errors
    /// The connection to the kernel failed. The file system is closed all the same.
    pub fn wait(self) -> io::Result<()> {
        let ended = self.session.join();
        self.workers.close();
        self.server.invalidations.close();
        if self.notifier.join().is_err() {
            log::error!("the notifying thread panicked");
        }
        self.server.operations.unmounted();
        ended
    }
}

/// Checks what can be checked before the store is opened: the mount point is there and free.
///
/// # Errors
/// See [`MountError`].
pub fn check_mount_point(settings: &MountSettings) -> Result<(), MountError> {
    mount_point::prepare(settings).map(|_| ())
}

/// Mounts `operations` and serves them. Once this returns the mount is usable.
///
/// # Errors
/// See [`MountError`]; nothing is left mounted then.
pub fn mount<F: Operations>(
    operations: Arc<F>,
    invalidations: Arc<InvalidationQueue>,
    settings: &MountSettings,
) -> Result<Mounted<F>, MountError> {
    let mount_point = mount_point::prepare(settings)?;
    let device = mount_point::attach(settings, &mount_point)?;
    let server = Arc::new(Server { operations, invalidations });
    match start(device, &server, settings) {
        Ok((session, workers, notifier)) => {
            mount_point::raise_read_ahead(&mount_point);
            Ok(Mounted { session, server, workers, notifier, mount_point })
        }
        Err(error) => {
            if let Err(error) = detach(&mount_point) {
                log::error!("{} stays mounted: {error}", mount_point.display());
            }
            Err(MountError::Refused { path: mount_point, what: error.to_string() })
        }
    }
}

type Started = (BackgroundSession, Workers, JoinHandle<()>);

fn start<F: Operations>(
    device: std::os::fd::OwnedFd,
    server: &Arc<Server<F>>,
    settings: &MountSettings,
) -> io::Result<Started> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut config = Config::default();
    config.n_threads = Some(if settings.threads == 0 { cores } else { settings.threads });
    config.clone_fd = mount_point::device_opens();
    let workers = Workers::new();
    let adapter = Adapter { server: Arc::clone(server), workers: workers.clone() };
    // All: the kernel keeps other users out by itself; fuser's own check would refuse the FLUSH of a descriptor passed to another user.
    let session = Session::from_fd(adapter, device, SessionACL::All, config)?.spawn()?;
    let kernel = session.notifier();
    server.invalidations.attach(Box::new(move |invalidation| deliver(&kernel, invalidation)));
    let queue = Arc::clone(&server.invalidations);
    let notifier = thread::Builder::new().name("cellfs-notify".to_owned()).spawn(move || queue.run())?;
    Ok((session, workers, notifier))
}

/// A negative offset leaves the pages alone: taking pages of an open file may wait for a read that waits for us.
const ATTRIBUTES_ONLY: i64 = -1;

fn deliver(kernel: &Notifier, invalidation: &Invalidation) {
    let told = match invalidation {
        Invalidation::Name { parent, name } => kernel.inval_entry(INodeNo(*parent), OsStr::from_bytes(name)),
        Invalidation::Inode { inode, attributes_only } => {
            kernel.inval_inode(INodeNo(*inode), if *attributes_only { ATTRIBUTES_ONLY } else { 0 }, 0)
        }
    };
    if let Err(error) = told {
        log::debug!("the kernel was not told of {invalidation:?}: {error}");
    }
}
