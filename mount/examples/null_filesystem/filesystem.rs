//! [`Operations`] over a table of nodes under one lock.

use bytes::{Bytes, BytesMut};
use cellfs_mount::ops::{
    AttributeChanges, Attributes, Caller, DirectorySink, Entry, FileKind, FsError, FsResult, Lifetime, ListingCache,
    Opened, Operations, ROOT_INODE, TimeChange, VolumeFigures,
};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::ops::Bound;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file system in memory.
pub struct NullFileSystem {
    tree: RwLock<Tree>,
    listings: Mutex<HashMap<u64, Listing>>,
    last_handle: AtomicU64,
}

/// Where the last answer to a listing ended.
#[derive(Default)]
struct Listing {
    offset: u64,
    last: Bytes,
}

struct Tree {
    nodes: HashMap<u64, Node>,
    last_inode: u64,
    /// Stands in for time: grows with each change.
    ticks: i64,
}

struct Node {
    attributes: Attributes,
    content: Content,
    /// References the kernel holds.
    references: u64,
}

enum Content {
    Directory { children: BTreeMap<Bytes, u64>, parent: u64 },
    File(Bytes),
}

/// Offset after `.` and `..`.
const FIRST_CHILD: u64 = 2;

impl NullFileSystem {
    /// An empty root.
    pub fn new() -> NullFileSystem {
        let mut tree = Tree { nodes: HashMap::new(), last_inode: ROOT_INODE, ticks: 0 };
        let root = attributes(ROOT_INODE, FileKind::Directory, 0o755, &Caller { uid: 0, gid: 0, pid: 0 }, 0);
        let content = Content::Directory { children: BTreeMap::new(), parent: ROOT_INODE };
        tree.nodes.insert(ROOT_INODE, Node { attributes: root, content, references: 1 });
        NullFileSystem { tree: RwLock::new(tree), listings: Mutex::new(HashMap::new()), last_handle: AtomicU64::new(1) }
    }

    fn make(&self, caller: &Caller, parent: u64, name: &OsStr, kind: FileKind, mode: u32) -> FsResult<Entry> {
        let mut tree = self.tree.write();
        if tree.children(parent)?.contains_key(name.as_bytes()) {
            return Err(error(libc::EEXIST));
        }
        tree.last_inode += 1;
        tree.ticks += 1;
        let (inode, now) = (tree.last_inode, tree.ticks);
        let content = match kind {
            FileKind::Directory => Content::Directory { children: BTreeMap::new(), parent },
            FileKind::Regular => Content::File(Bytes::new()),
        };
        let attributes = attributes(inode, kind, mode, caller, now);
        let name = Bytes::copy_from_slice(name.as_bytes());
        tree.nodes.insert(inode, Node { attributes, content, references: 1 });
        tree.children_mut(parent)?.insert(name, inode);
        tree.touch(parent, now);
        Ok(entry(attributes))
    }

    fn remove(&self, parent: u64, name: &OsStr, kind: FileKind) -> FsResult<()> {
        let mut tree = self.tree.write();
        let inode = *tree.children(parent)?.get(name.as_bytes()).ok_or_else(FsError::not_found)?;
        tree.may_remove(inode, kind)?;
        tree.children_mut(parent)?.remove(name.as_bytes());
        tree.ticks += 1;
        let now = tree.ticks;
        tree.touch(parent, now);
        tree.unlink(inode);
        Ok(())
    }
}

impl Tree {
    fn node(&self, inode: u64) -> FsResult<&Node> {
        self.nodes.get(&inode).ok_or_else(|| error(libc::ESTALE))
    }

    fn node_mut(&mut self, inode: u64) -> FsResult<&mut Node> {
        self.nodes.get_mut(&inode).ok_or_else(|| error(libc::ESTALE))
    }

    fn children(&self, inode: u64) -> FsResult<&BTreeMap<Bytes, u64>> {
        match &self.node(inode)?.content {
            Content::Directory { children, .. } => Ok(children),
            Content::File(_) => Err(error(libc::ENOTDIR)),
        }
    }

    fn children_mut(&mut self, inode: u64) -> FsResult<&mut BTreeMap<Bytes, u64>> {
        match &mut self.node_mut(inode)?.content {
            Content::Directory { children, .. } => Ok(children),
            Content::File(_) => Err(error(libc::ENOTDIR)),
        }
    }

    fn touch(&mut self, inode: u64, now: i64) {
        if let Some(node) = self.nodes.get_mut(&inode) {
            node.attributes.mtime_nanos = now;
            node.attributes.ctime_nanos = now;
        }
    }

    fn may_remove(&self, inode: u64, kind: FileKind) -> FsResult<()> {
        match (&self.node(inode)?.content, kind) {
            (Content::Directory { children, .. }, FileKind::Directory) if children.is_empty() => Ok(()),
            (Content::Directory { .. }, FileKind::Directory) => Err(error(libc::ENOTEMPTY)),
            (Content::File(_), FileKind::Regular) => Ok(()),
            (Content::Directory { .. }, FileKind::Regular) => Err(error(libc::EISDIR)),
            (Content::File(_), FileKind::Directory) => Err(error(libc::ENOTDIR)),
        }
    }

    /// An unlinked node lives on while the kernel refers to it.
    fn unlink(&mut self, inode: u64) {
        if let Some(node) = self.nodes.get_mut(&inode) {
            node.attributes.links = 0;
            if node.references == 0 {
                self.nodes.remove(&inode);
            }
        }
    }

    fn resize(&mut self, inode: u64, size: u64) -> FsResult<()> {
        let size = usize::try_from(size).map_err(|_| error(libc::EFBIG))?;
        self.change(inode, |bytes| bytes.resize(size, 0))
    }

    /// Changes content in place where nobody else holds it.
    fn change(&mut self, inode: u64, change: impl FnOnce(&mut BytesMut)) -> FsResult<()> {
        self.ticks += 1;
        let now = self.ticks;
        let node = self.node_mut(inode)?;
        let Content::File(content) = &mut node.content else { return Err(error(libc::EISDIR)) };
        let mut bytes = std::mem::take(content).try_into_mut().unwrap_or_else(|shared| BytesMut::from(shared.as_ref()));
        change(&mut bytes);
        *content = bytes.freeze();
        node.attributes.size = content.len() as u64;
        node.attributes.mtime_nanos = now;
        node.attributes.ctime_nanos = now;
        Ok(())
    }
}

impl Operations for NullFileSystem {
    fn lookup(&self, _caller: &Caller, parent: u64, name: &OsStr) -> FsResult<Option<Entry>> {
        let mut tree = self.tree.write();
        let Some(inode) = tree.children(parent)?.get(name.as_bytes()).copied() else { return Ok(None) };
        let node = tree.node_mut(inode)?;
        node.references += 1;
        Ok(Some(entry(node.attributes)))
    }

    fn forget(&self, inode: u64, count: u64) {
        let mut tree = self.tree.write();
        let Some(node) = tree.nodes.get_mut(&inode) else { return };
        node.references = node.references.saturating_sub(count);
        if node.references == 0 && node.attributes.links == 0 {
            tree.nodes.remove(&inode);
        }
    }

    fn getattr(&self, _caller: &Caller, inode: u64) -> FsResult<(Attributes, Lifetime)> {
        Ok((self.tree.read().node(inode)?.attributes, Lifetime::Forever))
    }

    fn setattr(
        &self,
        _caller: &Caller,
        inode: u64,
        _handle: Option<u64>,
        changes: &AttributeChanges,
    ) -> FsResult<(Attributes, Lifetime)> {
        let mut tree = self.tree.write();
        if let Some(size) = changes.size {
            tree.resize(inode, size)?;
        }
        tree.ticks += 1;
        let now = tree.ticks;
        let attributes = &mut tree.node_mut(inode)?.attributes;
        attributes.mode = changes.mode.unwrap_or(attributes.mode);
        attributes.uid = changes.uid.unwrap_or(attributes.uid);
        attributes.gid = changes.gid.unwrap_or(attributes.gid);
        attributes.ctime_nanos = now;
        let time = |change: TimeChange| match change {
            TimeChange::Now => now,
            TimeChange::At(nanos) => nanos,
        };
        attributes.atime_nanos = changes.atime.map_or(attributes.atime_nanos, time);
        attributes.mtime_nanos = changes.mtime.map_or(attributes.mtime_nanos, time);
        Ok((*attributes, Lifetime::Forever))
    }

    fn mkdir(&self, caller: &Caller, parent: u64, name: &OsStr, mode: u32) -> FsResult<Entry> {
        self.make(caller, parent, name, FileKind::Directory, mode)
    }

    fn unlink(&self, _caller: &Caller, parent: u64, name: &OsStr) -> FsResult<()> {
        self.remove(parent, name, FileKind::Regular)
    }

    fn rmdir(&self, _caller: &Caller, parent: u64, name: &OsStr) -> FsResult<()> {
        self.remove(parent, name, FileKind::Directory)
    }

    fn rename(
        &self,
        _caller: &Caller,
        parent: u64,
        name: &OsStr,
        new_parent: u64,
        new_name: &OsStr,
        flags: u32,
    ) -> FsResult<()> {
        let mut tree = self.tree.write();
        let inode = *tree.children(parent)?.get(name.as_bytes()).ok_or_else(FsError::not_found)?;
        let kind = tree.node(inode)?.attributes.kind;
        let target = tree.children(new_parent)?.get(new_name.as_bytes()).copied();
        if flags & !libc::RENAME_NOREPLACE != 0 {
            return Err(error(libc::EINVAL));
        }
        if let Some(target) = target {
            if flags & libc::RENAME_NOREPLACE != 0 {
                return Err(error(libc::EEXIST));
            }
            tree.may_remove(target, kind)?;
        }
        tree.children_mut(parent)?.remove(name.as_bytes());
        let new_name = Bytes::copy_from_slice(new_name.as_bytes());
        tree.children_mut(new_parent)?.insert(new_name, inode);
        if let Content::Directory { parent, .. } = &mut tree.node_mut(inode)?.content {
            *parent = new_parent;
        }
        if let Some(target) = target.filter(|target| *target != inode) {
            tree.unlink(target);
        }
        tree.ticks += 1;
        let now = tree.ticks;
        tree.touch(parent, now);
        tree.touch(new_parent, now);
        Ok(())
    }

    fn create(&self, caller: &Caller, parent: u64, name: &OsStr, mode: u32, flags: i32) -> FsResult<(Entry, Opened)> {
        Ok((self.make(caller, parent, name, FileKind::Regular, mode)?, opened(flags)))
    }

    fn open(&self, _caller: &Caller, inode: u64, flags: i32) -> FsResult<Opened> {
        if flags & libc::O_TRUNC != 0 {
            self.tree.write().resize(inode, 0)?;
        }
        Ok(opened(flags))
    }

    fn read(&self, _caller: &Caller, inode: u64, _handle: u64, offset: u64, size: u32) -> FsResult<Bytes> {
        let tree = self.tree.read();
        let Content::File(content) = &tree.node(inode)?.content else { return Err(error(libc::EISDIR)) };
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
        let end = start.saturating_add(size as usize).min(content.len());
        Ok(content.slice(start..end))
    }

    fn write(&self, _caller: &Caller, inode: u64, _handle: u64, offset: u64, data: &[u8]) -> FsResult<u32> {
        let start = usize::try_from(offset).map_err(|_| error(libc::EFBIG))?;
        let end = start.checked_add(data.len()).ok_or_else(|| error(libc::EFBIG))?;
        self.tree.write().change(inode, |bytes| {
            if bytes.len() == start {
                bytes.extend_from_slice(data);
                return;
            }
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            if let Some(place) = bytes.get_mut(start..end) {
                place.copy_from_slice(data);
            }
        })?;
        u32::try_from(data.len()).map_err(|_| error(libc::EINVAL))
    }

    fn flush(&self, _caller: &Caller, _inode: u64, _handle: u64) -> FsResult<()> {
        Ok(())
    }

    fn fsync(&self, _caller: &Caller, _inode: u64, _handle: u64) -> FsResult<()> {
        Ok(())
    }

    fn release(&self, _inode: u64, _handle: u64) {}

    fn opendir(&self, _caller: &Caller, _inode: u64) -> FsResult<(u64, ListingCache)> {
        Ok((self.last_handle.fetch_add(1, Ordering::Relaxed), ListingCache::None))
    }

    fn readdir(
        &self,
        _caller: &Caller,
        inode: u64,
        handle: u64,
        offset: u64,
        plus: bool,
        sink: &mut dyn DirectorySink,
    ) -> FsResult<()> {
        let mut tree = self.tree.write();
        let Content::Directory { children, parent } = &tree.node(inode)?.content else {
            return Err(error(libc::ENOTDIR));
        };
        if offset < 1 && sink.add(inode, FileKind::Directory, b".", 1, None)
            || offset < FIRST_CHILD && sink.add(*parent, FileKind::Directory, b"..", FIRST_CHILD, None)
        {
            return Ok(());
        }
        // Offsets count entries; each open directory remembers the name that its last answer ended with.
        let mut listings = self.listings.lock();
        let listing = listings.entry(handle).or_default();
        let after = match offset {
            ..=FIRST_CHILD => Bound::Unbounded,
            _ if listing.offset == offset => Bound::Excluded(listing.last.clone()),
            _ => children
                .keys()
                .nth((offset - FIRST_CHILD - 1) as usize)
                .map_or(Bound::Unbounded, |name| Bound::Excluded(name.clone())),
        };
        let mut given = Vec::new();
        let rest = children.range::<Bytes, _>((after, Bound::Unbounded));
        for (next, (name, child)) in (offset.max(FIRST_CHILD) + 1..).zip(rest) {
            let attributes = tree.node(*child)?.attributes;
            let entry = entry(attributes);
            let entry = if plus { Some(&entry) } else { None };
            if sink.add(*child, attributes.kind, name, next, entry) {
                break;
            }
            *listing = Listing { offset: next, last: name.clone() };
            given.push(*child);
        }
        if plus {
            for child in given {
                tree.node_mut(child)?.references += 1;
            }
        }
        Ok(())
    }

    fn releasedir(&self, _inode: u64, handle: u64) {
        self.listings.lock().remove(&handle);
    }

    fn fsyncdir(&self, _caller: &Caller, _inode: u64, _handle: u64) -> FsResult<()> {
        Ok(())
    }

    fn statfs(&self, _inode: u64) -> FsResult<VolumeFigures> {
        Ok(VolumeFigures {
            block_size: 4096,
            blocks: 1 << 20,
            blocks_free: 1 << 19,
            blocks_available: 1 << 19,
            files: 0,
            files_free: 0,
        })
    }

    fn unmounted(&self) {}

    fn note_error(&self, _caller: &Caller, _operation: &'static str, _inode: u64, _name: Option<&OsStr>, _: &FsError) {}
}

fn attributes(inode: u64, kind: FileKind, mode: u32, caller: &Caller, now: i64) -> Attributes {
    Attributes {
        inode,
        kind,
        mode,
        links: 1,
        uid: caller.uid,
        gid: caller.gid,
        size: 0,
        mtime_nanos: now,
        ctime_nanos: now,
        atime_nanos: now,
    }
}

fn entry(attributes: Attributes) -> Entry {
    Entry { attributes, name_lifetime: Lifetime::Forever, attribute_lifetime: Lifetime::Forever }
}

/// As cellfs opens: readers keep their pages and need no flush, writers bypass the page cache.
fn opened(flags: i32) -> Opened {
    let reads = flags & libc::O_ACCMODE == libc::O_RDONLY;
    let writes = flags & libc::O_ACCMODE == libc::O_WRONLY;
    Opened { handle: 0, keep_cache: !writes, direct_io: writes, no_flush: reads, stream: false }
}

fn error(errno: i32) -> FsError {
    FsError::new(errno, "null file system")
}
