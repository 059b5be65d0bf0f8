//! Attaching to the kernel: opens /dev/fuse and mounts, by mount(2) as root and through fusermount3 otherwise. fuser could mount by itself, but as
//! root it says plain `fuse` in /proc/mounts, and its unmounting has defects that are fixed only after 0.18 (fuse.md section 1).

use super::mount_table::{self, FILE_SYSTEM_TYPE};
use super::{MountError, MountSettings};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const DEVICE: &str = "/dev/fuse";
const HELPER: &str = "fusermount3";

/// Read-ahead of the mount in KiB. The kernel starts with 128; 1024 lets one READ fetch 1 MiB.
const READ_AHEAD_KIB: &str = "1024";

/// Checks the mount point and resolves it: an absolute path without symbolic links.
///
/// A mount whose daemon died is taken away, since nothing can be reached through it.
pub(super) fn prepare(settings: &MountSettings) -> Result<PathBuf, MountError> {
    let given = &settings.mount_point;
    let resolved = match fs::canonicalize(given) {
        Ok(resolved) => resolved,
        Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => remove_dead(given)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(MountError::NoMountPoint { path: given.clone() });
        }
        Err(source) => return Err(MountError::Unreachable { path: given.clone(), source }),
    };
    let resolved = match fs::metadata(&resolved) {
        Ok(metadata) if metadata.is_dir() => resolved,
        Ok(_) => return Err(MountError::NotADirectory { path: given.clone() }),
        Err(error) if error.raw_os_error() == Some(libc::ENOTCONN) => remove_dead(given)?,
        Err(source) => return Err(MountError::Unreachable { path: given.clone(), source }),
    };
    let resolved = match mount_table::mount_at(&resolved).ok().flatten() {
        None => resolved,
        // Attributes may come from the kernel's memory; statfs is always asked of the daemon.
        Some(mount) if mount.is_cellfs() && rustix::fs::statvfs(&resolved).err() == Some(Errno::NOTCONN) => {
            remove_dead(given)?
        }
        Some(mount) => {
            return Err(MountError::Busy { path: given.clone(), source: mount.source, kind: mount.file_system_type });
        }
    };
    let store = Path::new(&settings.source);
    if store.is_absolute() && (store.starts_with(&resolved) || resolved.starts_with(store)) {
        return Err(MountError::OverStore { path: given.clone(), store: store.to_path_buf() });
    }
    Ok(resolved)
}

/// Takes away a mount whose daemon is gone, and resolves the path beneath.
fn remove_dead(given: &Path) -> Result<PathBuf, MountError> {
    log::warn!("{} was a mount whose daemon is gone; it is taken away", given.display());
    let dead = |source| MountError::Dead { path: given.to_path_buf(), source };
    let absolute = std::path::absolute(given).map_err(dead)?;
    detach(&absolute).map_err(dead)?;
    fs::canonicalize(given).map_err(dead)
}

/// Mounts at `mount_point`; the file descriptor carries the requests.
pub(super) fn attach(settings: &MountSettings, mount_point: &Path) -> Result<OwnedFd, MountError> {
    if rustix::process::geteuid().is_root() {
        match attach_directly(settings, mount_point) {
            // Root without CAP_SYS_ADMIN, as in a container: the helper may have it.
            Err(MountError::NotPermitted { .. }) => {}
            done => return done,
        }
    }
    attach_by_helper(settings, mount_point)
}

fn attach_directly(settings: &MountSettings, mount_point: &Path) -> Result<OwnedFd, MountError> {
    let device =
        rustix::fs::open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|errno| match errno {
            Errno::NOENT | Errno::NODEV | Errno::NXIO => MountError::NoDevice,
            Errno::PERM | Errno::ACCESS => MountError::DeviceRefused,
            _ => MountError::Unreachable { path: PathBuf::from(DEVICE), source: errno.into() },
        })?;
    let mut options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
    for option in kernel_options(settings) {
        options.push(',');
        options.push_str(option);
    }
    let mut flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOATIME;
    flags.set(MountFlags::RDONLY, settings.read_only);
    flags.set(MountFlags::NOEXEC, settings.no_exec);
    let options = CString::new(options)
        .map_err(|error| MountError::Refused { path: mount_point.to_path_buf(), what: error.to_string() })?;
    rustix::mount::mount(settings.source.as_os_str(), mount_point, FILE_SYSTEM_TYPE, flags, options.as_c_str())
        .map_err(|errno| match errno {
            Errno::PERM | Errno::ACCESS => MountError::NotPermitted { path: mount_point.to_path_buf() },
            Errno::NODEV => MountError::NoDevice,
            _ => MountError::Refused { path: mount_point.to_path_buf(), what: errno.to_string() },
        })?;
    Ok(device)
}

/// True if this process may open the device by itself, which a clone of it needs; a device from the helper does without.
pub(super) fn device_opens() -> bool {
    rustix::fs::open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).is_ok()
}

/// Modes are judged by the kernel, but for root's own mount that nobody else can enter: root passes every check anyway, and each
/// path walk would cost a request more (fuse.md 5.8: +20 % on create, +50 % on unlink).
fn kernel_options(settings: &MountSettings) -> Vec<&'static str> {
    let mut options = Vec::new();
    if settings.allow_other {
        options.push("allow_other");
    }
    if settings.allow_other || !rustix::process::geteuid().is_root() {
        options.push("default_permissions");
    }
    options
}

/// The helper mounts with its own privileges and hands the open device over a socket (mount.fuse3(8)).
fn attach_by_helper(settings: &MountSettings, mount_point: &Path) -> Result<OwnedFd, MountError> {
    let refused = |what: String| MountError::Refused { path: mount_point.to_path_buf(), what };
    let (ours, theirs) = UnixStream::pair().map_err(|error| refused(error.to_string()))?;
    // Inherited on purpose, by the one child that is started here.
    fcntl_setfd(&theirs, FdFlags::empty()).map_err(|errno| refused(errno.to_string()))?;
    let child = Command::new(HELPER)
        .arg("-o")
        .arg(helper_options(settings))
        .arg("--")
        .arg(mount_point)
        .env("_FUSE_COMMFD", theirs.as_raw_fd().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn();
    drop(theirs);
    let child = match child {
        Ok(child) => child,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(MountError::NoHelper),
        Err(error) => return Err(refused(format!("{HELPER} does not start: {error}"))),
    };
    let device = receive_device(&ours);
    let output = child.wait_with_output().map_err(|error| refused(error.to_string()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().lines().last().unwrap_or("it gave no reason");
    match device {
        Ok(Some(device)) if output.status.success() => Ok(device),
        Err(error) => Err(refused(format!("{HELPER}: {error}"))),
        Ok(_) if said.contains("user_allow_other") => Err(MountError::AllowOtherRefused),
        Ok(_) if said.contains(DEVICE) && said.contains("not found") => Err(MountError::NoDevice),
        Ok(_) if said.contains("Permission denied") => Err(MountError::DeviceRefused),
        Ok(_) => Err(refused(said.to_owned())),
    }
}

/// Options in the helper's syntax, where commas and backslashes of the source are escaped.
fn helper_options(settings: &MountSettings) -> OsString {
    let mut options = b"nosuid,nodev,noatime,subtype=cellfs,fsname=".to_vec();
    for byte in settings.source.as_bytes() {
        if matches!(byte, b',' | b'\\') {
            options.push(b'\\');
        }
        options.push(*byte);
    }
    let read_only = if settings.read_only { Some("ro") } else { None };
    let no_exec = if settings.no_exec { Some("noexec") } else { None };
    for option in kernel_options(settings).into_iter().chain(read_only).chain(no_exec) {
        options.push(b',');
        options.extend_from_slice(option.as_bytes());
    }
    OsString::from_vec(options)
}

fn receive_device(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut byte = [0_u8];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    Ok(control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    }))
}

/// Unmounts, like umount(8): EBUSY while something is open or stands in the mount.
///
/// # Errors
/// What the kernel or fusermount3 says.
pub fn unmount(mount_point: &Path) -> io::Result<()> {
    leave(mount_point, UnmountFlags::NOFOLLOW, &["-u"])
}

/// Takes the mount out of the tree at once; what is still open in it goes on until it is closed.
///
/// # Errors
/// What the kernel or fusermount3 says.
pub fn detach(mount_point: &Path) -> io::Result<()> {
    leave(mount_point, UnmountFlags::NOFOLLOW | UnmountFlags::DETACH, &["-u", "-z"])
}

fn leave(mount_point: &Path, flags: UnmountFlags, helper_arguments: &[&str]) -> io::Result<()> {
    match rustix::mount::unmount(mount_point, flags) {
        Ok(()) => return Ok(()),
        Err(Errno::PERM) => {}
        Err(errno) => return Err(errno.into()),
    }
    let output =
        Command::new(HELPER).args(helper_arguments).arg("--").arg(mount_point).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim();
    if said.to_ascii_lowercase().contains("busy") {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    Err(io::Error::other(said.to_owned()))
}

/// Lets one READ fetch 1 MiB. Root only; without it large cold reads take more requests, no more.
pub(super) fn raise_read_ahead(mount_point: &Path) {
    let Ok(Some(mount)) = mount_table::mount_at(mount_point) else { return };
    let setting = Path::new("/sys/class/bdi").join(OsStr::new(&mount.device)).join("read_ahead_kb");
    if let Err(error) = fs::write(&setting, READ_AHEAD_KIB) {
        log::debug!("read-ahead stays as it is: {}: {error}", setting.display());
    }
}
