//! Directory listings: [`DirectorySink`] over the two reply buffers of readdir and readdirplus.

use super::convert;
use crate::ops::{DirectorySink, Entry, FileKind};
use fuser::{Generation, INodeNo, ReplyDirectory, ReplyDirectoryPlus};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// Inode numbers are never reused, so one generation does.
pub(super) const GENERATION: Generation = Generation(0);

/// Names and kinds.
pub(super) struct Plain(pub(super) ReplyDirectory);

impl DirectorySink for Plain {
    fn add(&mut self, inode: u64, kind: FileKind, name: &[u8], next_offset: u64, _entry: Option<&Entry>) -> bool {
        self.0.add(INodeNo(inode), next_offset, convert::kind(kind), OsStr::from_bytes(name))
    }
}

/// Names with attributes; the kernel holds a reference to each but `.` and `..`.
pub(super) struct Plus(pub(super) ReplyDirectoryPlus);

impl DirectorySink for Plus {
    fn add(&mut self, inode: u64, kind: FileKind, name: &[u8], next_offset: u64, entry: Option<&Entry>) -> bool {
        let name = OsStr::from_bytes(name);
        match entry {
            // fuser has one lifetime for both; the shorter is right for either.
            Some(entry) => {
                let lifetime = convert::lifetime(entry.name_lifetime).min(convert::lifetime(entry.attribute_lifetime));
                let attributes = convert::attributes(&entry.attributes);
                self.0.add(INodeNo(inode), next_offset, name, &lifetime, &attributes, GENERATION)
            }
            // `.` and `..`: the kernel reads no more than name, number and kind of these, and counts no reference.
            None => {
                let attributes = convert::placeholder(inode, kind);
                self.0.add(INodeNo(inode), next_offset, name, &Duration::ZERO, &attributes, GENERATION)
            }
        }
    }
}
