//! A file system in memory for tests: it remembers what was synced, plays crashes, and fails on request. Nothing in it depends on time or
//! chance but for the seeds it is given.

mod fault;
mod image;

pub use fault::{Fault, FaultRule, SimOperation};
pub use image::Keep;

use super::{DirectoryEntry, File, LockGuard, LockMode, Vfs};
use crate::error::{Error, Result};
use fault::Faults;
use image::{DirectoryNode, FileNode, Node, Random};
use parking_lot::{Mutex, MutexGuard};
use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a volume whose size nobody set.
const DEFAULT_CAPACITY: u64 = 1 << 40;

/// The simulated file system. Clones share it. Paths are taken from its root, whether they begin with `/` or not; the root exists and is
/// durable.
#[derive(Clone)]
pub struct SimVfs {
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    root: Arc<Mutex<DirectoryNode>>,
    faults: Faults,
    capacity: u64,
    locks: BTreeMap<PathBuf, (LockMode, usize)>,
}

impl Default for SimVfs {
    fn default() -> Self {
        SimVfs::new()
    }
}

impl SimVfs {
    /// An empty file system.
    pub fn new() -> SimVfs {
        SimVfs::with_root(Arc::default())
    }

    fn with_root(root: Arc<Mutex<DirectoryNode>>) -> SimVfs {
        let shared = Shared { root, faults: Faults::default(), capacity: DEFAULT_CAPACITY, locks: BTreeMap::new() };
        SimVfs { shared: Arc::new(Mutex::new(shared)) }
    }

    /// What a machine that stopped now would find when it starts again: everything synced, and of the rest what `keep` says. The new
    /// file system has no faults and no locks; this one is unchanged.
    pub fn crash(&self, keep: Keep) -> SimVfs {
        let shared = self.shared.lock();
        let mut random = Random::new(keep);
        let root = shared.root.lock().crash(&mut random);
        SimVfs::with_root(Arc::new(Mutex::new(root)))
    }

    /// How many operations that change something (syncs among them) have been asked for.
    pub fn operations(&self) -> u64 {
        self.shared.lock().faults.operations()
    }

    /// Lets every operation from number `operation` (counted as in [`SimVfs::operations`]) on fail without effect, as if the machine had
    /// stopped before it. Follow it by [`SimVfs::crash`].
    pub fn stop_at(&self, operation: u64) {
        self.shared.lock().faults.stop_at(operation);
    }

    /// Lets operation number `operation` fail, once.
    pub fn fail_at(&self, operation: u64, fault: Fault) {
        self.shared.lock().faults.fail_at(operation, fault);
    }

    /// Adds a rule.
    pub fn add_fault(&self, rule: FaultRule) {
        self.shared.lock().faults.add(rule);
    }

    /// Removes all rules and stops.
    pub fn clear_faults(&self) {
        self.shared.lock().faults.clear();
    }

    /// Sets the size of the volume in bytes: files that would grow beyond it meet ENOSPC.
    pub fn set_capacity(&self, bytes: u64) {
        self.shared.lock().capacity = bytes;
    }

    /// How often a file was synced again by a handle whose sync had failed, which must never happen.
    pub fn syncs_after_failure(&self) -> u64 {
        self.shared.lock().faults.syncs_after_failure()
    }

    /// A hash of all operations so far, reads included, with paths, ranges and data: two runs from one seed have the same.
    pub fn trace_hash(&self) -> u64 {
        self.shared.lock().faults.trace_hash()
    }

    /// The latest operations, one a line, for the message of a failing test.
    pub fn recent_operations(&self) -> Vec<String> {
        self.shared.lock().faults.recent()
    }

    /// Changes a byte of a file, durable image included, behind everybody's back.
    ///
    /// # Errors
    /// If there is no such file or byte.
    pub fn damage(&self, path: &Path, offset: u64, change: impl FnOnce(u8) -> u8) -> Result<()> {
        let shared = self.shared.lock();
        let file = shared.file(path)?;
        let mut file = file.lock();
        let mut byte = [0u8];
        if file.live.read(&mut byte, offset) == 0 {
            return Err(not_found(path));
        }
        let [old] = byte;
        file.write(&[change(old)], offset);
        file.sync();
        Ok(())
    }

    /// Begins an operation that changes something.
    fn begin(&self, operation: SimOperation, path: &Path) -> Result<MutexGuard<'_, Shared>> {
        let mut shared = self.shared.lock();
        match shared.faults.begin(operation, path, &[]) {
            None => Ok(shared),
            Some(fault) => Err(fault.error(operation, path)),
        }
    }
}

impl Shared {
    fn directory(&self, path: &Path) -> Result<Arc<Mutex<DirectoryNode>>> {
        let mut at = self.root.clone();
        for name in names(path) {
            let next = at.lock().live.get(name).cloned();
            match next {
                Some(Node::Directory(directory)) => at = directory,
                Some(Node::File(_)) => return Err(refused("look up", path, io::ErrorKind::NotADirectory)),
                None => return Err(not_found(path)),
            }
        }
        Ok(at)
    }

    /// The directory that holds `path`, and the last name.
    fn parent<'a>(&self, path: &'a Path) -> Result<(Arc<Mutex<DirectoryNode>>, &'a str)> {
        let name = names(path).last().ok_or_else(|| refused("look up", path, io::ErrorKind::InvalidInput))?;
        Ok((self.directory(path.parent().unwrap_or(Path::new("")))?, name))
    }

    fn node(&self, path: &Path) -> Result<Node> {
        if names(path).next().is_none() {
            return Ok(Node::Directory(self.root.clone()));
        }
        let (directory, name) = self.parent(path)?;
        let node = directory.lock().live.get(name).cloned();
        node.ok_or_else(|| not_found(path))
    }

    fn file(&self, path: &Path) -> Result<Arc<Mutex<FileNode>>> {
        match self.node(path)? {
            Node::File(file) => Ok(file),
            Node::Directory(_) => Err(refused("open", path, io::ErrorKind::IsADirectory)),
        }
    }

    fn used(&self) -> u64 {
        self.root.lock().bytes()
    }

    /// Checks that a file may grow from `from` to `to` bytes.
    fn check_growth(&self, path: &Path, from: u64, to: u64) -> Result<()> {
        let limited = self.capacity != DEFAULT_CAPACITY;
        if limited && to > from && self.used().saturating_add(to - from) > self.capacity {
            return Err(Error::NoSpace { path: path.to_path_buf() });
        }
        Ok(())
    }
}

fn names(path: &Path) -> impl Iterator<Item = &str> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => name.to_str(),
        _ => None,
    })
}

fn refused(operation: &'static str, path: &Path, kind: io::ErrorKind) -> Error {
    Error::io(operation, path, io::Error::from(kind))
}

fn not_found(path: &Path) -> Error {
    refused("open", path, io::ErrorKind::NotFound)
}

impl Vfs for SimVfs {
    fn open_read(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.open(path, false)
    }

    fn open_write(&self, path: &Path) -> Result<Arc<dyn File>> {
        self.open(path, true)
    }

    fn create_new(&self, path: &Path) -> Result<Arc<dyn File>> {
        let shared = self.begin(SimOperation::Create, path)?;
        let (directory, name) = shared.parent(path)?;
        let mut directory = directory.lock();
        if directory.live.contains_key(name) {
            return Err(refused("create", path, io::ErrorKind::AlreadyExists));
        }
        let node = Arc::new(Mutex::new(FileNode::default()));
        directory.link(name, Node::File(node.clone()));
        Ok(self.handle(path, node, true))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let shared = self.begin(SimOperation::Rename, from)?;
        let node = shared.node(from)?;
        let (source, source_name) = shared.parent(from)?;
        let (target, target_name) = shared.parent(to)?;
        if Arc::ptr_eq(&source, &target) {
            source.lock().rename(source_name, target_name, node);
        } else {
            target.lock().link(target_name, node);
            source.lock().unlink(source_name);
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        let shared = self.begin(SimOperation::Remove, path)?;
        shared.file(path)?;
        let (directory, name) = shared.parent(path)?;
        directory.lock().unlink(name);
        Ok(())
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        let shared = self.begin(SimOperation::CreateDirectory, path)?;
        if names(path).next().is_none() {
            return Ok(());
        }
        let (directory, name) = shared.parent(path)?;
        let mut directory = directory.lock();
        match directory.live.get(name) {
            Some(Node::Directory(_)) => {}
            Some(Node::File(_)) => return Err(refused("create", path, io::ErrorKind::AlreadyExists)),
            None => directory.link(name, Node::Directory(Arc::default())),
        }
        Ok(())
    }

    /// There are no modes here.
    fn let_all_read(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        let shared = self.begin(SimOperation::Remove, path)?;
        if !shared.directory(path)?.lock().live.is_empty() {
            return Err(refused("remove", path, io::ErrorKind::DirectoryNotEmpty));
        }
        let (directory, name) = shared.parent(path)?;
        directory.lock().unlink(name);
        Ok(())
    }

    fn list(&self, path: &Path) -> Result<Vec<DirectoryEntry>> {
        let mut shared = self.shared.lock();
        if let Some(fault) = shared.faults.begin(SimOperation::List, path, &[]) {
            return Err(fault.error(SimOperation::List, path));
        }
        let directory = shared.directory(path)?;
        let directory = directory.lock();
        let entries = directory.live.iter().map(|(name, node)| match node {
            Node::File(file) => DirectoryEntry { name: name.clone(), is_directory: false, len: file.lock().live.len },
            Node::Directory(_) => DirectoryEntry { name: name.clone(), is_directory: true, len: 0 },
        });
        Ok(entries.collect())
    }

    fn exists(&self, path: &Path) -> Result<bool> {
        match self.shared.lock().node(path) {
            Ok(_) => Ok(true),
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn sync_directory(&self, path: &Path) -> Result<()> {
        let shared = self.begin(SimOperation::SyncDirectory, path)?;
        shared.directory(path)?.lock().sync();
        Ok(())
    }

    fn free_space(&self, _path: &Path) -> Result<u64> {
        let shared = self.shared.lock();
        Ok(shared.capacity.saturating_sub(shared.used()))
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn LockGuard>> {
        let missing = !self.exists(path)?;
        if missing && mode == LockMode::Exclusive {
            self.create_new(path)?;
        }
        let mut shared = self.shared.lock();
        let held = shared.locks.entry(path.to_path_buf()).or_insert((mode, 0));
        if held.1 > 0 && (mode == LockMode::Exclusive || held.0 == LockMode::Exclusive) {
            return Err(Error::Locked { path: path.to_path_buf(), pid: Some(std::process::id()) });
        }
        *held = (mode, held.1 + 1);
        Ok(Box::new(SimLock { vfs: self.clone(), path: path.to_path_buf() }))
    }
}

impl SimVfs {
    fn open(&self, path: &Path, writable: bool) -> Result<Arc<dyn File>> {
        let mut shared = self.shared.lock();
        if let Some(fault) = shared.faults.begin(SimOperation::Open, path, &[]) {
            return Err(fault.error(SimOperation::Open, path));
        }
        Ok(self.handle(path, shared.file(path)?, writable))
    }

    fn handle(&self, path: &Path, node: Arc<Mutex<FileNode>>, writable: bool) -> Arc<dyn File> {
        let sync_failed = AtomicBool::new(false);
        Arc::new(SimFile { vfs: self.clone(), path: path.to_path_buf(), node, writable, sync_failed })
    }
}

/// A held lock.
struct SimLock {
    vfs: SimVfs,
    path: PathBuf,
}

impl LockGuard for SimLock {}

impl Drop for SimLock {
    fn drop(&mut self) {
        if let Some(held) = self.vfs.shared.lock().locks.get_mut(&self.path) {
            held.1 = held.1.saturating_sub(1);
        }
    }
}

/// An open file.
struct SimFile {
    vfs: SimVfs,
    path: PathBuf,
    node: Arc<Mutex<FileNode>>,
    writable: bool,
    sync_failed: AtomicBool,
}

impl SimFile {
    fn check_writable(&self, operation: &'static str) -> Result<()> {
        if self.writable { Ok(()) } else { Err(refused(operation, &self.path, io::ErrorKind::PermissionDenied)) }
    }

    fn sync(&self) -> Result<()> {
        let mut shared = self.vfs.shared.lock();
        let mut node = self.node.lock();
        if self.sync_failed.load(Ordering::SeqCst) {
            shared.faults.count_sync_after_failure();
        }
        if let Some(fault) = shared.faults.begin(SimOperation::Sync, &self.path, &[]) {
            // As Linux does it: the pages stay readable, but count as clean and are never written.
            node.forget_dirty();
            self.sync_failed.store(true, Ordering::SeqCst);
            return Err(fault.error(SimOperation::Sync, &self.path));
        }
        node.sync();
        Ok(())
    }

    /// Makes the file at least (`exactly`: exactly) `len` long.
    fn resize(&self, operation: SimOperation, len: u64, exactly: bool) -> Result<()> {
        self.check_writable("resize")?;
        let shared = self.vfs.begin(operation, &self.path)?;
        let old = self.node.lock().live.len;
        shared.check_growth(&self.path, old, len)?;
        if exactly || len > old {
            self.node.lock().set_len(len);
        }
        Ok(())
    }
}

impl File for SimFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn len(&self) -> Result<u64> {
        Ok(self.node.lock().live.len)
    }

    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        if self.read_at(buf, offset)? < buf.len() {
            let what = format!("the file ends before the {} bytes that should be here", buf.len());
            return Err(Error::corruption(&self.path, offset, what));
        }
        Ok(())
    }

    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        let range = [offset.to_be_bytes(), (buf.len() as u64).to_be_bytes()].concat();
        let fault = self.vfs.shared.lock().faults.begin(SimOperation::Read, &self.path, &range);
        if let Some(fault) = fault {
            return Err(fault.error(SimOperation::Read, &self.path));
        }
        Ok(self.node.lock().live.read(buf, offset))
    }

    fn write_all_at(&self, data: &[u8], offset: u64) -> Result<()> {
        self.check_writable("write")?;
        let mut shared = self.vfs.shared.lock();
        let detail = [&offset.to_be_bytes()[..], data].concat();
        let end = offset.saturating_add(data.len() as u64);
        let old = self.node.lock().live.len;
        match shared.faults.begin(SimOperation::Write, &self.path, &detail) {
            None => shared.check_growth(&self.path, old, end)?,
            Some(fault) => {
                let written = if fault.writes_half() { data.len() / 2 } else { 0 };
                self.node.lock().write(data.get(..written).unwrap_or(&[]), offset);
                return Err(fault.error(SimOperation::Write, &self.path));
            }
        }
        self.node.lock().write(data, offset);
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        self.sync()
    }

    fn sync_all(&self) -> Result<()> {
        self.sync()
    }

    fn allocate(&self, len: u64) -> Result<()> {
        self.resize(SimOperation::Allocate, len, false)
    }

    /// Nothing to gain here. What a crash leaves of such a write it may leave of any: see [`Keep::Random`].
    fn map_writes(&self, _len: u64) {}

    fn set_len(&self, len: u64) -> Result<()> {
        self.resize(SimOperation::SetLen, len, true)
    }

    fn start_writeback(&self, _offset: u64, _len: u64) {}

    fn advise_dont_need(&self, _offset: u64, _len: u64) {}
}
