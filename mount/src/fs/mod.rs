//! The file system: namespaces, tables, rows and cells as directories and files, by the rules of docs/semantics.md.
//!
//! [`CellFs`] implements [`Operations`] over the engine's traits and knows no FUSE type, so tests call it without a mount. Each file holds one subject:
//! `lookup` (names and attributes), `directory` (listings), `open`, `read`, `write` and `commit` (a cell's bytes), `tree` (mkdir, unlink, rmdir),
//! `rename`, `setattr`, `scratch` (temporaries), `rows` (rows as directories), `via` (rows under logical keys), `family` (a table seen through one
//! family).

use crate::attributes;
pub mod cells;
mod commit;
mod contended;
mod directory;
mod errno;
pub mod errors;
mod family;
mod handle;
mod hidden;
pub mod inode;
mod lookup;
mod name_arena;
mod open;
mod read;
mod rename;
mod rename_row;
pub mod rows;
pub mod scratch;
mod setattr;
mod snapshots;
pub mod state;
mod tree;
mod via;
mod write;
mod xattr;

pub use state::{FsOptions, MountState};

use crate::magic::{Magic, MagicNode, MountHooks};
use crate::ops::{
    AttributeChanges, Attributes, Caller, DirectorySink, Entry, FsError, FsResult, Invalidation, Lifetime,
    ListingCache, Opened, OperationKind, Operations, VolumeFigures,
};
use bytes::Bytes;
use cellfs::client::Admin;
use family::NameUse;
use handle::{Handle, Handles};
use inode::{Inode, Node};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// A mounted store.
pub struct CellFs {
    pub(super) admin: Arc<dyn Admin>,
    pub(super) state: Arc<MountState>,
    pub(super) magic: Magic,
    pub(super) handles: Handles,
}

impl CellFs {
    /// The file system of a store.
    pub fn new(admin: Arc<dyn Admin>, options: FsOptions) -> CellFs {
        let state = Arc::new(MountState::new(options));
        let hooks: Arc<dyn MountHooks> = Arc::<MountState>::clone(&state);
        CellFs { magic: Magic::new(Arc::clone(&admin), hooks), admin, state, handles: Handles::default() }
    }

    /// What is shared with the dot names.
    pub fn state(&self) -> &Arc<MountState> {
        &self.state
    }

    /// The inode of a number as the kernel knows it.
    fn shown_inode(&self, number: u64) -> FsResult<Arc<Inode>> {
        let inode = self.state.inodes.get(number);
        inode.ok_or_else(|| FsError::new(libc::ESTALE, "the kernel names an inode it has given back"))
    }

    /// The inode of a number; a row on another way is the row.
    fn inode(&self, number: u64) -> FsResult<Arc<Inode>> {
        let inode = self.shown_inode(number)?;
        Ok(inode.target().cloned().unwrap_or(inode))
    }

    fn writable(&self) -> FsResult<()> {
        if self.state.options.read_only {
            return Err(FsError::new(libc::EROFS, "mounted read-only"));
        }
        match self.admin.read_only_reason() {
            Some(reason) => Err(FsError::new(libc::EROFS, format!("the store is read-only: {reason}"))),
            None => Ok(()),
        }
    }

    /// Refuses to change anything in a snapshot or in the past.
    fn changeable(&self, inode: &Inode) -> FsResult<()> {
        match lookup::table_of(&inode.node()).filter(|table| !table.is_live()) {
            Some(view) => Err(FsError::new(libc::EROFS, format!("{} is only shown", view.path()))),
            None => Ok(()),
        }
    }

    /// True if operations on the node may wait.
    fn node_blocks(&self, node: &Node) -> bool {
        matches!(node, Node::Magic(magic) if self.magic.may_block(magic))
    }
}

/// An error with its reason.
pub(super) fn refuse<T>(errno: i32, reason: impl Into<String>) -> FsResult<T> {
    Err(FsError::new(errno, reason))
}

impl Operations for CellFs {
    fn may_block(&self, operation: OperationKind) -> bool {
        match operation {
            OperationKind::Inode(number) => {
                self.admin.slows_writers()
                    || self.state.inodes.get(number).is_some_and(|inode| self.node_blocks(&inode.node()))
            }
            OperationKind::Handle(number) => match self.handles.get(number).as_deref() {
                Some(Handle::File(file)) => file.writable && (self.state.options.sync || self.admin.slows_writers()),
                Some(Handle::Magic(magic)) => self.magic.may_block(&magic.node),
                Some(Handle::Directory(directory)) => self.node_blocks(&directory.inode.node()),
                None => false,
            },
        }
    }

    fn is_another_way(&self, directory: u64) -> bool {
        let rows = |node| matches!(node, Node::Magic(MagicNode::ViaKeys(..) | MagicNode::FamilyRows(..)));
        let inode = self.state.inodes.get(directory);
        inode.is_some_and(|inode| inode.target().is_some() || rows(inode.node()))
    }

    fn lookup(&self, caller: &Caller, parent: u64, name: &OsStr) -> FsResult<Option<Entry>> {
        let (directory, spelled) = self.spot(parent, name, NameUse::Find)?;
        match directory.number == parent {
            true => self.lookup_name(caller, &directory, &spelled),
            false => self.find_name(caller, &directory, &spelled).and_then(via::short_lived),
        }
    }

    fn forget(&self, inode: u64, count: u64) {
        self.state.inodes.forget(inode, count);
    }

    fn getattr(&self, caller: &Caller, inode: u64) -> FsResult<(Attributes, Lifetime)> {
        let target = self.inode(inode)?;
        let shown = self.attributes(caller, &target)?;
        Ok(if target.number == inode { shown } else { via::shown_as(shown, inode) })
    }

    fn setattr(
        &self,
        caller: &Caller,
        inode: u64,
        handle: Option<u64>,
        changes: &AttributeChanges,
    ) -> FsResult<(Attributes, Lifetime)> {
        let target = self.inode(inode)?;
        self.changeable(&target)?;
        let shown = self.set_attributes(caller, &target, handle, changes)?;
        if target.number == inode {
            return Ok(shown);
        }
        self.state.invalidate(Invalidation::Inode { inode: target.number, attributes_only: true });
        Ok(via::shown_as(shown, inode))
    }

    fn mkdir(&self, caller: &Caller, parent: u64, name: &OsStr, mode: u32) -> FsResult<Entry> {
        let (parent, name) = self.spot(parent, name, NameUse::Make)?;
        self.changeable(&parent)?;
        self.make_directory(caller, &parent, &name, mode)
    }

    fn unlink(&self, caller: &Caller, parent: u64, name: &OsStr) -> FsResult<()> {
        let (directory, name) = self.spot(parent, name, NameUse::Find)?;
        self.changeable(&directory)?;
        self.remove_file(caller, &directory, &name)?;
        self.name_changed_via(&directory, parent, &name);
        Ok(())
    }

    fn rmdir(&self, caller: &Caller, parent: u64, name: &OsStr) -> FsResult<()> {
        let (parent, name) = self.spot(parent, name, NameUse::Find)?;
        self.changeable(&parent)?;
        self.remove_directory(caller, &parent, &name)
    }

    fn rename(
        &self,
        caller: &Caller,
        parent: u64,
        name: &OsStr,
        new_parent: u64,
        new_name: &OsStr,
        flags: u32,
    ) -> FsResult<()> {
        let (source, name) = self.spot(parent, name, NameUse::Find)?;
        let (target, new_name) = self.spot(new_parent, new_name, NameUse::Make)?;
        self.changeable(&source)?;
        self.changeable(&target)?;
        self.rename_name(caller, (&source, &name), (&target, &new_name), flags)?;
        self.name_changed_via(&source, parent, &name);
        self.name_changed_via(&target, new_parent, &new_name);
        Ok(())
    }

    fn create(&self, caller: &Caller, parent: u64, name: &OsStr, mode: u32, flags: i32) -> FsResult<(Entry, Opened)> {
        let (directory, name) = self.spot(parent, name, NameUse::Make)?;
        self.changeable(&directory)?;
        let (entry, opened) = self.create_file(caller, &directory, &name, mode, flags)?;
        if directory.number == parent {
            return Ok((entry, opened));
        }
        self.name_changed_via(&directory, parent, &name);
        Ok((Entry { name_lifetime: Lifetime::None, ..entry }, opened))
    }

    fn open(&self, caller: &Caller, inode: u64, flags: i32) -> FsResult<Opened> {
        let inode = self.inode(inode)?;
        if flags & libc::O_ACCMODE != libc::O_RDONLY || flags & libc::O_TRUNC != 0 {
            self.changeable(&inode)?;
        }
        self.open_file(caller, &inode, flags)
    }

    fn read(&self, caller: &Caller, _inode: u64, handle: u64, offset: u64, size: u32) -> FsResult<Bytes> {
        match &*self.handles.find(handle)? {
            Handle::File(file) => self.read_file(caller, file, offset, size as usize),
            Handle::Magic(magic) => magic.file.lock().read(offset, size as usize),
            Handle::Directory(_) => refuse(libc::EISDIR, "a directory is listed, not read"),
        }
    }

    fn write(&self, caller: &Caller, _inode: u64, handle: u64, offset: u64, data: &[u8]) -> FsResult<u32> {
        match &*self.handles.find(handle)? {
            Handle::File(file) => self.write_file(caller, file, offset, data),
            Handle::Magic(magic) => magic.file.lock().write(offset, data).map(|written| written as u32),
            Handle::Directory(_) => refuse(libc::EISDIR, "a directory is not written"),
        }
    }

    fn flush(&self, caller: &Caller, _inode: u64, handle: u64) -> FsResult<()> {
        match &*self.handles.find(handle)? {
            Handle::File(file) => self.flush_file(caller, file),
            Handle::Magic(magic) => magic.file.lock().flush(),
            Handle::Directory(_) => Ok(()),
        }
    }

    fn fsync(&self, caller: &Caller, inode: u64, handle: u64) -> FsResult<()> {
        self.flush(caller, inode, handle)?;
        Ok(self.admin.sync()?)
    }

    fn release(&self, _inode: u64, handle: u64) {
        if let Some(Handle::File(file)) = self.handles.remove(handle).as_deref() {
            self.release_file(file);
        }
    }

    fn opendir(&self, caller: &Caller, inode: u64) -> FsResult<(u64, ListingCache)> {
        let shown = self.shown_inode(inode)?;
        if let Node::Table(table) = shown.node() {
            self.state.note_listed(table.id(), caller.pid);
        }
        self.open_directory(&shown)
    }

    fn readdir(
        &self,
        caller: &Caller,
        _inode: u64,
        handle: u64,
        offset: u64,
        plus: bool,
        sink: &mut dyn DirectorySink,
    ) -> FsResult<()> {
        match &*self.handles.find(handle)? {
            Handle::Directory(directory) => self.list(caller, directory, offset, plus, sink),
            _ => refuse(libc::ENOTDIR, "a file is read, not listed"),
        }
    }

    fn releasedir(&self, _inode: u64, handle: u64) {
        if let Some(Handle::Directory(directory)) = self.handles.remove(handle).as_deref() {
            directory.closed();
        }
    }

    fn fsyncdir(&self, _caller: &Caller, _inode: u64, _handle: u64) -> FsResult<()> {
        Ok(self.admin.sync()?)
    }

    fn has_extended_attributes(&self) -> bool {
        self.state.options.xattr
    }

    fn getxattr(&self, caller: &Caller, inode: u64, name: &OsStr) -> FsResult<Option<Bytes>> {
        self.extended_attribute(caller, &*self.inode(inode)?, name.as_bytes())
    }

    fn statfs(&self, _inode: u64) -> FsResult<VolumeFigures> {
        self.volume()
    }

    fn unmounted(&self) {
        self.end();
    }

    fn note_error(&self, caller: &Caller, operation: &'static str, inode: u64, name: Option<&OsStr>, error: &FsError) {
        let mut path =
            self.state.inodes.get(inode).map_or_else(|| "?".into(), |inode| self.state.path_of(&inode.node()));
        if let Some(name) = name {
            if !path.ends_with('/') {
                path.push('/');
            }
            path.push_str(&String::from_utf8_lossy(name.as_bytes()));
        }
        self.state.note_error(caller, operation, path, error);
    }
}
