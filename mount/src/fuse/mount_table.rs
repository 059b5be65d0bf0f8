//! The kernel's table of mounts, /proc/self/mountinfo (proc_pid_mountinfo(5)): what is mounted where, and by which store.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// The type under which stores are mounted.
pub const FILE_SYSTEM_TYPE: &str = "fuse.cellfs";

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Device number as `major:minor`; names the mount's read-ahead setting and its connection under /sys.
    pub device: String,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// The type, `fuse.cellfs` for ours.
    pub file_system_type: String,
    /// What is mounted: for ours the store directory.
    pub source: PathBuf,
}

impl Mount {
    /// True if a cellfs store is mounted here.
    pub fn is_cellfs(&self) -> bool {
        self.file_system_type == FILE_SYSTEM_TYPE
    }
}

/// All mounts of this process's namespace, in the order in which they were made.
///
/// # Errors
/// /proc is not there or not readable.
pub fn mounts() -> io::Result<Vec<Mount>> {
    Ok(parse(&fs::read("/proc/self/mountinfo")?))
}

/// The topmost mount at exactly `mount_point`, an absolute path without symbolic links.
///
/// # Errors
/// As [`mounts`].
pub fn mount_at(mount_point: &Path) -> io::Result<Option<Mount>> {
    Ok(mounts()?.into_iter().rfind(|mount| mount.mount_point == mount_point))
}

fn parse(table: &[u8]) -> Vec<Mount> {
    table.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

/// `36 35 98:0 /root /mount/point options [optional fields] - type source options`
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let device = fields.nth(2)?;
    let mount_point = fields.nth(1)?;
    let mut after_separator = fields.skip_while(|field| *field != b"-").skip(1);
    let file_system_type = after_separator.next()?;
    let source = after_separator.next()?;
    Some(Mount {
        device: String::from_utf8(device.to_vec()).ok()?,
        mount_point: path(mount_point),
        file_system_type: String::from_utf8(file_system_type.to_vec()).ok()?,
        source: path(source),
    })
}

/// Undoes the kernel's escapes: space, tab, newline and backslash as three octal digits.
fn path(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let escaped = match after.first_chunk::<3>() {
            Some(digits) if *first == b'\\' => octal(digits),
            _ => None,
        };
        match escaped {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

fn octal(digits: &[u8; 3]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel_are_read_with_their_escapes() {
        let table = b"25 30 0:23 / /sys rw,nosuid - sysfs sysfs rw\n\
            61 30 0:57 / /mnt/my\\040store\\134x rw,nosuid shared:31 master:2 - fuse.cellfs /data/a\\011b rw,user_id=0\n\
            broken line\n";
        let mounts = parse(table);
        assert_eq!(mounts.len(), 2);
        assert!(!mounts[0].is_cellfs());
        assert_eq!(
            mounts[1],
            Mount {
                device: "0:57".to_owned(),
                mount_point: PathBuf::from("/mnt/my store\\x"),
                file_system_type: "fuse.cellfs".to_owned(),
                source: PathBuf::from("/data/a\tb"),
            }
        );
        assert!(mounts[1].is_cellfs());
    }

    #[test]
    fn the_running_system_has_a_root() {
        assert!(mount_at(Path::new("/")).expect("/proc is there").is_some());
    }
}
