//! The dot names: everything that is not a namespace, a table, a row or a cell (contract.md, sections 1 and 7 to 10).
//!
//! The file system asks [`Magic`] for a name that begins with a dot, and for everything below a dot directory. A [`MagicNode`] is such a file's
//! identity; [`MagicFile`] is an open one.

pub mod forms;
mod hooks;
mod node;
mod scan;

pub use hooks::{Change, MountHooks};
pub use node::{CellAddress, ImportForm, InstanceFile, MagicNode, TableHandle};
pub use scan::{ScanForm, ScanParts};

use crate::ops::{Caller, FileKind, FsError, FsResult};
use bytes::Bytes;
use cellfs::client::{Admin, Table};
use std::sync::Arc;

/// Where a name is looked for.
pub enum Place<'a> {
    /// The mount's root.
    Root,
    /// A namespace.
    Namespace(&'a str),
    /// A table.
    Table(&'a Arc<dyn Table>),
    /// A row.
    Row(&'a Arc<dyn Table>, &'a [u8]),
    /// A dot directory or a directory below one.
    Magic(&'a MagicNode),
}

/// What stat(2) shows of a dot file, but for its inode number and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MagicAttributes {
    /// Kind.
    pub kind: FileKind,
    /// Permission bits.
    pub mode: u32,
    /// Bytes; 0 for streams.
    pub size: u64,
    /// Last change, nanoseconds since the epoch.
    pub mtime_nanos: i64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// How the kernel shall treat an open dot file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MagicOpened {
    /// No page cache: each read and write comes to the file. False only where contents cannot change while it is open.
    pub direct_io: bool,
    /// close(2) need not ask: the file was opened for reading.
    pub no_flush: bool,
}

/// A directory listing: names with what they lead to, in order, produced as they are asked for.
pub type MagicListing = Box<dyn Iterator<Item = FsResult<(Bytes, MagicNode)>> + Send>;

/// An open dot file. Dropping it is the last close.
pub trait MagicFile: Send {
    /// Reads; fewer bytes than asked only at the end.
    fn read(&mut self, offset: u64, size: usize) -> FsResult<Bytes>;
    /// Writes all of `data`; the offset is the kernel's.
    fn write(&mut self, offset: u64, data: &[u8]) -> FsResult<usize>;
    /// ftruncate(2).
    fn truncate(&mut self, size: u64) -> FsResult<()>;
    /// close(2) of one descriptor: does what is still to be done.
    fn flush(&mut self) -> FsResult<()>;
    /// What stat(2) shows the writer as the size, where it differs from the committed one.
    fn size(&self) -> Option<u64>;
    /// Hints for the kernel.
    fn opened(&self) -> MagicOpened;
}

/// The dot names of one mount.
pub struct Magic {
    store: Arc<dyn Admin>,
    hooks: Arc<dyn MountHooks>,
}

impl Magic {
    /// The dot names over `store`.
    pub fn new(store: Arc<dyn Admin>, hooks: Arc<dyn MountHooks>) -> Magic {
        Magic { store, hooks }
    }

    /// Finds a name; `None` where there is none. Of the names in namespaces, tables and rows only those that begin with a dot are asked for.
    ///
    /// # Errors
    /// What the store says; for a wrong part below `.scan`, ENOENT with the reason.
    pub fn lookup(&self, place: &Place<'_>, name: &[u8]) -> FsResult<Option<MagicNode>> {
        Ok(match (place, name) {
            (Place::Root, b".help") => Some(MagicNode::Help),
            (Place::Root, b".cellfs") => Some(MagicNode::Instance),
            _ => None,
        })
    }

    /// True while the table's `.schema` is to be found: not unlinked, or written or overtaken since (contract.md, section 1).
    pub fn schema_is_visible(&self, _table: u64) -> bool {
        true
    }

    /// The table has changed through the file system: an unlinked `.schema` is back.
    pub fn table_changed(&self, _table: u64) {}

    /// Attributes of a node.
    ///
    /// # Errors
    /// ENOENT where what the node shows is gone; what the store says.
    pub fn attributes(&self, node: &MagicNode, _caller: &Caller) -> FsResult<MagicAttributes> {
        let (uid, gid) = self.hooks.owner();
        Ok(MagicAttributes {
            kind: node.kind(),
            mode: 0o444,
            size: 0,
            mtime_nanos: self.hooks.mounted_nanos(),
            uid,
            gid,
        })
    }

    /// Lists a directory, without `.` and `..`.
    ///
    /// # Errors
    /// ENOTDIR for a file; what the store says.
    pub fn list(&self, node: &MagicNode) -> FsResult<MagicListing> {
        match node.kind() {
            FileKind::Directory => Ok(Box::new(std::iter::empty())),
            FileKind::Regular => Err(FsError::new(libc::ENOTDIR, "not a directory")),
        }
    }

    /// Opens a file; `flags` are open(2)'s, O_TRUNC included.
    ///
    /// # Errors
    /// EISDIR for a directory; what the store says.
    pub fn open(&self, _node: &MagicNode, _caller: &Caller, _flags: i32) -> FsResult<Box<dyn MagicFile>> {
        Err(FsError::new(libc::ENOENT, format!("not there: {:?}", self.store.read_only_reason())))
    }

    /// Creates and opens a file: a version below `.versions/<cell>/`, or a hidden `.schema` of a table or namespace.
    ///
    /// # Errors
    /// EPERM where nothing can be created, EINVAL for a name that is no timestamp.
    pub fn create(
        &self,
        _place: &Place<'_>,
        name: &[u8],
        _caller: &Caller,
        _flags: i32,
    ) -> FsResult<(MagicNode, Box<dyn MagicFile>)> {
        Err(FsError::new(libc::EPERM, format!("{} cannot be created", name.escape_ascii())))
    }

    /// Removes a file: a version, or `.schema`, which it hides.
    ///
    /// # Errors
    /// EPERM for everything else.
    pub fn unlink(&self, _node: &MagicNode) -> FsResult<()> {
        Err(FsError::new(libc::EPERM, "not a file that can be removed"))
    }

    /// Replaces a file's content by that of a scratch file renamed onto it (`sed -i`, editors).
    ///
    /// # Errors
    /// As the write of the same text.
    pub fn replace(&self, _node: &MagicNode, _caller: &Caller, _content: &[u8]) -> FsResult<()> {
        Err(FsError::new(libc::EINVAL, "not a file that can be replaced"))
    }

    /// True if reading, writing or flushing the node may wait for the disk or for long work.
    pub fn may_block(&self, node: &MagicNode) -> bool {
        !matches!(
            node,
            MagicNode::Help
                | MagicNode::Instance
                | MagicNode::InstanceFile(InstanceFile::Version | InstanceFile::Errors | InstanceFile::LastError)
                | MagicNode::RowKey(..)
        )
    }
}
