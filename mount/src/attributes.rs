//! Owner, mode and times of their own that cells and rows keep where they differ from the table's.
//!
//! A cell's are in a tag of type `FILE_ATTRIBUTES` (64) of its newest version, a row's in the value of the one cell of the row in the hidden family
//! `.attributes`. Both have this form, big-endian, fields in this order, each there if its bit is:
//!
//! ```text
//! u8 flags | u16 mode (bit 0) | u32 uid (bit 1) | u32 gid (bit 2) | i64 mtime (bit 3) | i64 atime (bit 4) | i64 ctime (bit 5) | i64 basis (bit 6)
//! ```
//!
//! Times are nanoseconds since the epoch. `basis` (rows only) is the newest timestamp in the row, in milliseconds, when mtime was set: a newer cell ends
//! the set time. Bytes after the known fields are ignored, so later versions may add some.

use crate::ops::{AttributeChanges, Attributes, FileKind, TimeChange};
use bytes::{BufMut, Bytes, BytesMut};
use cellfs::cell::{Cell, Tag, tag_type};
use cellfs::client::TableAttributes;

/// Permission bits a cell can have: set-id bits are dropped, the mount is nosuid.
pub const CELL_MODE: u32 = 0o1777;
/// Permission bits a directory can have.
pub const DIRECTORY_MODE: u32 = 0o7777;
/// Nanoseconds in a millisecond.
pub const MILLI: i64 = 1_000_000;

/// What differs from the table's own attributes; `None` = as the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileAttributes {
    /// Permission bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Set by utimens.
    pub mtime_nanos: Option<i64>,
    /// Set by utimens.
    pub atime_nanos: Option<i64>,
    /// When attributes were changed after the version was written.
    pub ctime_nanos: Option<i64>,
    /// Rows: the newest timestamp when mtime was set.
    pub basis_millis: Option<i64>,
}

/// What a cell or row has where it keeps nothing of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

impl Defaults {
    /// Of the rows of a table.
    pub fn of_rows(table: &TableAttributes) -> Defaults {
        Defaults { mode: table.mode & DIRECTORY_MODE, uid: table.uid, gid: table.gid }
    }

    /// Of the cells of a table: its mode without x.
    pub fn of_cells(table: &TableAttributes) -> Defaults {
        Defaults { mode: table.mode & 0o666, uid: table.uid, gid: table.gid }
    }
}

impl FileAttributes {
    /// Only owner and mode, as far as they differ from the defaults.
    pub fn owned(mode: u32, uid: u32, gid: u32, defaults: Defaults) -> FileAttributes {
        FileAttributes {
            mode: (mode != defaults.mode).then_some(mode),
            uid: (uid != defaults.uid).then_some(uid),
            gid: (gid != defaults.gid).then_some(gid),
            ..FileAttributes::default()
        }
    }

    /// True if there is nothing to store.
    pub fn is_empty(&self) -> bool {
        *self == FileAttributes::default()
    }

    /// The same with mode and owner said, whatever the table's are: for files that no table holds any more.
    #[must_use]
    pub fn spelled_out(self, defaults: Defaults) -> FileAttributes {
        FileAttributes {
            mode: Some(self.mode.unwrap_or(defaults.mode)),
            uid: Some(self.uid.unwrap_or(defaults.uid)),
            gid: Some(self.gid.unwrap_or(defaults.gid)),
            ..self
        }
    }

    /// What the next version of the cell takes over: mode and owner, no times.
    #[must_use]
    pub fn without_times(self) -> FileAttributes {
        FileAttributes { mode: self.mode, uid: self.uid, gid: self.gid, ..FileAttributes::default() }
    }

    /// The same after chmod, chown, utimens at `now_nanos`; `allowed` masks the mode. Sizes are for the caller.
    #[must_use]
    pub fn changed(
        self,
        changes: &AttributeChanges,
        defaults: Defaults,
        allowed: u32,
        now_nanos: i64,
    ) -> FileAttributes {
        let mode = changes.mode.map(|mode| mode & allowed).unwrap_or(self.mode.unwrap_or(defaults.mode));
        let uid = changes.uid.unwrap_or(self.uid.unwrap_or(defaults.uid));
        let gid = changes.gid.unwrap_or(self.gid.unwrap_or(defaults.gid));
        let owned = FileAttributes::owned(mode, uid, gid, defaults);
        let time = |change: TimeChange| match change {
            TimeChange::Now => now_nanos,
            TimeChange::At(nanos) => nanos,
        };
        FileAttributes {
            mtime_nanos: changes.mtime.map(time).or(self.mtime_nanos),
            atime_nanos: changes.atime.map(time).or(self.atime_nanos),
            ctime_nanos: Some(now_nanos),
            basis_millis: self.basis_millis,
            // What was asked for is kept even where it equals the table's own: `cp -a` makes a table 0700, fills it, and opens it last.
            mode: owned.mode.or(changes.mode.map(|_| mode)).or(self.mode),
            uid: owned.uid.or(changes.uid).or(self.uid),
            gid: owned.gid.or(changes.gid).or(self.gid),
        }
    }

    /// The stored form; empty where there is nothing to store.
    pub fn encode(&self) -> Bytes {
        if self.is_empty() {
            return Bytes::new();
        }
        let mut out = BytesMut::with_capacity(43);
        let bits = [
            self.mode.is_some(),
            self.uid.is_some(),
            self.gid.is_some(),
            self.mtime_nanos.is_some(),
            self.atime_nanos.is_some(),
            self.ctime_nanos.is_some(),
            self.basis_millis.is_some(),
        ];
        out.put_u8(bits.iter().enumerate().fold(0, |flags, (bit, set)| flags | u8::from(*set) << bit));
        if let Some(mode) = self.mode {
            out.put_u16(mode as u16);
        }
        for id in [self.uid, self.gid].into_iter().flatten() {
            out.put_u32(id);
        }
        for time in [self.mtime_nanos, self.atime_nanos, self.ctime_nanos, self.basis_millis].into_iter().flatten() {
            out.put_i64(time);
        }
        out.freeze()
    }

    /// Reads the stored form; what is cut short counts as not there, for a listing must not fail for one odd tag.
    pub fn decode(bytes: &[u8]) -> FileAttributes {
        let Some((flags, mut rest)) = bytes.split_first() else { return FileAttributes::default() };
        let has = |bit: u8| flags & (1 << bit) != 0;
        let mut attributes = FileAttributes::default();
        if has(0) {
            attributes.mode = take(&mut rest).map(|mode| u32::from(u16::from_be_bytes(mode)));
        }
        for (bit, field) in [(1, &mut attributes.uid), (2, &mut attributes.gid)] {
            if has(bit) {
                *field = take(&mut rest).map(u32::from_be_bytes);
            }
        }
        for (bit, field) in [
            (3, &mut attributes.mtime_nanos),
            (4, &mut attributes.atime_nanos),
            (5, &mut attributes.ctime_nanos),
            (6, &mut attributes.basis_millis),
        ] {
            if has(bit) {
                *field = take(&mut rest).map(i64::from_be_bytes);
            }
        }
        attributes
    }

    /// Those of a cell's version.
    pub fn of_cell(cell: &Cell) -> FileAttributes {
        cell.tag_iter()
            .find(|(kind, _)| *kind == tag_type::FILE_ATTRIBUTES)
            .map(|(_, value)| FileAttributes::decode(value))
            .unwrap_or_default()
    }

    /// The tags of a version that has these attributes and the other tags of `previous`.
    pub fn tags(&self, previous: Option<&Cell>) -> Vec<Tag> {
        let mut tags: Vec<Tag> = previous
            .into_iter()
            .flat_map(Cell::tag_iter)
            .filter(|(kind, _)| *kind != tag_type::FILE_ATTRIBUTES)
            .map(|(kind, value)| Tag { kind, value: Bytes::copy_from_slice(value) })
            .collect();
        let value = self.encode();
        if !value.is_empty() {
            tags.push(Tag { kind: tag_type::FILE_ATTRIBUTES, value });
        }
        tags
    }

    /// What stat(2) shows of a cell's version written at `timestamp`.
    pub fn show_cell(&self, inode: u64, size: u64, timestamp: i64, defaults: Defaults) -> Attributes {
        let written = timestamp.saturating_mul(MILLI);
        let mtime_nanos = self.mtime_nanos.unwrap_or(written);
        Attributes {
            inode,
            kind: FileKind::Regular,
            mode: self.mode.unwrap_or(defaults.mode),
            links: 1,
            uid: self.uid.unwrap_or(defaults.uid),
            gid: self.gid.unwrap_or(defaults.gid),
            size,
            mtime_nanos,
            ctime_nanos: self.ctime_nanos.unwrap_or(written),
            atime_nanos: self.atime_nanos.unwrap_or(mtime_nanos),
        }
    }

    /// What stat(2) shows of a row whose newest put or delete is at `newest` (milliseconds).
    pub fn show_row(&self, inode: u64, newest: i64, defaults: Defaults) -> Attributes {
        let written = newest.saturating_mul(MILLI);
        let set = self.basis_millis.is_none_or(|basis| newest <= basis);
        let mtime_nanos = self.mtime_nanos.filter(|_| set).unwrap_or(written);
        Attributes {
            inode,
            kind: FileKind::Directory,
            mode: self.mode.unwrap_or(defaults.mode),
            links: 1,
            uid: self.uid.unwrap_or(defaults.uid),
            gid: self.gid.unwrap_or(defaults.gid),
            size: 0,
            mtime_nanos,
            ctime_nanos: self.ctime_nanos.map_or(written, |changed| changed.max(written)),
            atime_nanos: self.atime_nanos.filter(|_| set).unwrap_or(mtime_nanos),
        }
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (field, after) = rest.split_first_chunk::<N>()?;
    *rest = after;
    Some(*field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DEFAULTS: Defaults = Defaults { mode: 0o644, uid: 10, gid: 20 };

    proptest! {
        #[test]
        fn the_stored_form_comes_back(
            mode in proptest::option::of(0u32..0o10000), uid: Option<u32>, gid: Option<u32>,
            mtime_nanos: Option<i64>, atime_nanos: Option<i64>, ctime_nanos: Option<i64>, basis_millis: Option<i64>,
        ) {
            let attributes = FileAttributes { mode, uid, gid, mtime_nanos, atime_nanos, ctime_nanos, basis_millis };
            let stored = attributes.encode();
            prop_assert_eq!(FileAttributes::decode(&stored), attributes);
            for length in 0..stored.len() {
                let _ = FileAttributes::decode(&stored[..length]);
            }
        }
    }

    #[test]
    fn only_what_differs_or_was_asked_for_is_stored() {
        assert!(FileAttributes::owned(0o644, 10, 20, DEFAULTS).encode().is_empty());
        let own = FileAttributes::owned(0o600, 10, 21, DEFAULTS);
        assert_eq!(own, FileAttributes { mode: Some(0o600), gid: Some(21), ..FileAttributes::default() });
        assert_eq!(own.encode().len(), 1 + 2 + 4);
        let back = AttributeChanges { mode: Some(0o4644), gid: Some(20), ..AttributeChanges::default() };
        let changed = own.changed(&back, DEFAULTS, CELL_MODE, 5);
        let asked = FileAttributes { mode: Some(0o644), gid: Some(20), ..FileAttributes::default() };
        assert_eq!(changed, FileAttributes { ctime_nanos: Some(5), ..asked });
    }

    #[test]
    fn a_newer_cell_ends_the_set_time_of_a_row() {
        let own = FileAttributes { mtime_nanos: Some(7), basis_millis: Some(100), ..FileAttributes::default() };
        assert_eq!(own.show_row(1, 100, DEFAULTS).mtime_nanos, 7);
        assert_eq!(own.show_row(1, 101, DEFAULTS).mtime_nanos, 101 * MILLI);
    }
}
