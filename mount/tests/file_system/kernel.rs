//! A kernel in small for tests without a mount: paths, descriptors and a cache of names over [`Operations`].

use bytes::Bytes;
use cellfs::client::{Admin, Get, Scan, Table, TableName};
use cellfs::clock::ManualClock;
use cellfs::server::{BackgroundMode, Store, StoreOptions};
use cellfs::vfs::SimVfs;
use cellfs_mount::fs::{CellFs, FsOptions};
use cellfs_mount::ops::{
    AttributeChanges, Attributes, Caller, DirectorySink, Entry, FileKind, FsError, Operations, ROOT_INODE,
};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// The errno of a failed call.
pub type Errno = i32;
/// Result of a call, as a program sees it.
pub type Call<T> = Result<T, Errno>;

/// The moment at which each test begins, milliseconds since the epoch.
pub const BEGIN: i64 = 1_800_000_000_000;

/// An open file.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    pub inode: u64,
    pub handle: u64,
}

/// A file system with the part of the kernel that calls it.
pub struct Kernel {
    pub fs: CellFs,
    pub store: Arc<Store>,
    pub clock: Arc<ManualClock>,
    pub vfs: SimVfs,
    pub caller: Caller,
    /// Names that are kept, as the kernel's cache of names does; `None` = each call asks for each name.
    names: Option<HashMap<(u64, Vec<u8>), u64>>,
    /// Open files of each inode, and the references to give back when the last is closed.
    open: HashMap<u64, (u32, u64)>,
}

impl Kernel {
    /// A new store on a simulated disk, with a clock that stands.
    pub fn new() -> Kernel {
        Kernel::with(SimVfs::new(), FsOptions::default())
    }

    /// A store on this disk.
    pub fn with(vfs: SimVfs, options: FsOptions) -> Kernel {
        let clock = Arc::new(ManualClock::new(BEGIN));
        let store_options = StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() };
        let store = Store::open_with(Arc::new(vfs.clone()), clock.clone(), Path::new("/store"), store_options).unwrap();
        let store = Arc::new(store);
        let options = FsOptions { clock: clock.clone(), background: false, ..options };
        let admin: Arc<dyn Admin> = store.clone();
        let fs = CellFs::new(admin, options);
        let caller = Caller { uid: 1000, gid: 1000, pid: 4_000_001 };
        Kernel { fs, store, clock, vfs, caller, names: Some(HashMap::new()), open: HashMap::new() }
    }

    /// Asks for every name anew.
    #[must_use]
    pub fn forgetful(mut self) -> Kernel {
        self.names = None;
        self
    }

    /// Unmounts and mounts again, a second later.
    #[must_use]
    pub fn remount(self) -> Kernel {
        self.remount_with(FsOptions::default())
    }

    /// Unmounts and mounts again with these options.
    #[must_use]
    pub fn remount_with(self, options: FsOptions) -> Kernel {
        let Kernel { fs, store, clock, vfs, caller, names, .. } = self;
        fs.unmounted();
        drop(fs);
        Arc::into_inner(store).expect("nobody else has the store").close().unwrap();
        let millis = cellfs::clock::Clock::now_millis(&*clock);
        let again = Kernel::with(vfs, options);
        again.clock.set(millis + 1000);
        Kernel { caller, names: names.map(|_| HashMap::new()), ..again }
    }

    /// Another process.
    pub fn process(&self, number: u32) -> Caller {
        Caller { pid: 4_000_001 + number, ..self.caller }
    }

    /// A table of the engine, for looking behind the files.
    pub fn table(&self, name: &str) -> Arc<dyn Table> {
        self.store.table(&TableName::parse(name).unwrap()).unwrap()
    }

    /// All versions of a cell in the engine, newest first: timestamps and values.
    pub fn versions(&self, table: &str, row: &str, column: &str) -> Vec<(i64, Bytes)> {
        let (family, qualifier) = column.split_once(':').unwrap();
        let get = Get::new(row.to_owned()).column(family.to_owned(), qualifier.to_owned()).versions(100);
        let result = self.table(table).get(&get).unwrap();
        result.cells.iter().map(|cell| (cell.timestamp(), cell.value_bytes())).collect()
    }

    /// Everything stored of a table, markers too: `row family:qualifier timestamp type`.
    pub fn raw(&self, table: &str) -> Vec<String> {
        let scan = Scan { raw: true, max_versions: 100, ..Scan::new() };
        let mut scanner = self.table(table).scan(&scan).unwrap();
        let mut lines = Vec::new();
        while let Some(row) = scanner.next().unwrap() {
            lines.extend(row.cells.iter().map(|cell| {
                let (row, family) = (cell.row().escape_ascii(), cell.family().escape_ascii());
                let qualifier = cell.qualifier().escape_ascii();
                format!("{row} {family}:{qualifier} {} {:?}", cell.timestamp(), cell.cell_type())
            }));
        }
        lines
    }

    fn failed(&self, operation: &'static str, inode: u64, name: Option<&[u8]>, error: &FsError) -> Errno {
        if !error.reason.is_empty() {
            self.fs.note_error(&self.caller, operation, inode, name.map(OsStr::from_bytes), error);
        }
        error.errno
    }

    fn child(&mut self, parent: u64, name: &[u8]) -> Call<u64> {
        if let Some(found) = self.names.as_ref().and_then(|names| names.get(&(parent, name.to_vec()))) {
            return Ok(*found);
        }
        match self.fs.lookup(&self.caller, parent, OsStr::from_bytes(name)) {
            Ok(Some(entry)) => Ok(self.keep(parent, name, &entry)),
            Ok(None) => Err(libc::ENOENT),
            Err(error) => Err(self.failed("lookup", parent, Some(name), &error)),
        }
    }

    /// Notes a reference that the file system has given.
    fn keep(&mut self, parent: u64, name: &[u8], entry: &Entry) -> u64 {
        let inode = entry.attributes.inode;
        let old = self.names.as_mut().and_then(|names| names.insert((parent, name.to_vec()), inode));
        if let Some(old) = old {
            self.forget(old, 1);
        }
        inode
    }

    /// Gives references back: at once, or when the last file that is open on the inode is closed.
    pub fn forget(&mut self, inode: u64, count: u64) {
        match self.open.get_mut(&inode) {
            Some((_, later)) => *later += count,
            None => self.fs.forget(inode, count),
        }
    }

    fn opened(&mut self, inode: u64) {
        self.open.entry(inode).or_default().0 += 1;
    }

    fn closed(&mut self, file: Descriptor) {
        self.fs.release(file.inode, file.handle);
        let Some((open, later)) = self.open.get_mut(&file.inode) else { return };
        *open -= 1;
        if *open == 0 {
            let later = *later;
            self.open.remove(&file.inode);
            if later > 0 {
                self.fs.forget(file.inode, later);
            }
        }
    }

    fn drop_name(&mut self, parent: u64, name: &[u8]) -> Option<u64> {
        self.names.as_mut()?.remove(&(parent, name.to_vec()))
    }

    /// The inode of a path. Without a cache its references leak, as those of a busy kernel do for a while.
    pub fn walk(&mut self, path: &str) -> Call<u64> {
        let mut inode = ROOT_INODE;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            inode = self.child(inode, name.as_bytes())?;
        }
        Ok(inode)
    }

    fn parent(&mut self, path: &str) -> Call<(u64, Vec<u8>)> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok((self.walk(parent)?, name.as_bytes().to_vec()))
    }

    pub fn stat(&mut self, path: &str) -> Call<Attributes> {
        let inode = self.walk(path)?;
        self.fs
            .getattr(&self.caller, inode)
            .map(|(shown, _)| shown)
            .map_err(|error| self.failed("getattr", inode, None, &error))
    }

    pub fn exists(&mut self, path: &str) -> bool {
        self.stat(path).is_ok()
    }

    pub fn mkdir(&mut self, path: &str) -> Call<()> {
        self.mkdir_mode(path, 0o755)
    }

    pub fn mkdir_mode(&mut self, path: &str, mode: u32) -> Call<()> {
        let (parent, name) = self.parent(path)?;
        if self.child(parent, &name).is_ok() {
            return Err(libc::EEXIST);
        }
        match self.fs.mkdir(&self.caller, parent, OsStr::from_bytes(&name), mode) {
            Ok(entry) => {
                self.keep(parent, &name, &entry);
                Ok(())
            }
            Err(error) => Err(self.failed("mkdir", parent, Some(&name), &error)),
        }
    }

    pub fn rmdir(&mut self, path: &str) -> Call<()> {
        let (parent, name) = self.parent(path)?;
        self.child(parent, &name)?;
        let result = self.fs.rmdir(&self.caller, parent, OsStr::from_bytes(&name));
        self.removed("rmdir", parent, &name, result)
    }

    pub fn unlink(&mut self, path: &str) -> Call<()> {
        let (parent, name) = self.parent(path)?;
        self.child(parent, &name)?;
        let result = self.fs.unlink(&self.caller, parent, OsStr::from_bytes(&name));
        self.removed("unlink", parent, &name, result)
    }

    fn removed(&mut self, operation: &'static str, parent: u64, name: &[u8], result: Result<(), FsError>) -> Call<()> {
        match result {
            Ok(()) => {
                if let Some(inode) = self.drop_name(parent, name) {
                    self.forget(inode, 1);
                }
                Ok(())
            }
            Err(error) => Err(self.failed(operation, parent, Some(name), &error)),
        }
    }

    pub fn rename(&mut self, from: &str, to: &str) -> Call<()> {
        self.rename_flags(from, to, 0)
    }

    pub fn rename_flags(&mut self, from: &str, to: &str, flags: u32) -> Call<()> {
        let (parent, name) = self.parent(from)?;
        let (new_parent, new_name) = self.parent(to)?;
        let source = self.child(parent, &name)?;
        let target = self.child(new_parent, &new_name);
        let (old, new) = (OsStr::from_bytes(&name), OsStr::from_bytes(&new_name));
        if let Err(error) = self.fs.rename(&self.caller, parent, old, new_parent, new, flags) {
            return Err(self.failed("rename", parent, Some(&name), &error));
        }
        if target == Ok(source) {
            return Ok(());
        }
        if let Some(replaced) = self.drop_name(new_parent, &new_name) {
            self.forget(replaced, 1);
        }
        if let Some(moved) = self.drop_name(parent, &name)
            && let Some(names) = &mut self.names
        {
            names.insert((new_parent, new_name), moved);
        }
        Ok(())
    }

    /// open(2) with O_CREAT if the flags say so.
    pub fn open(&mut self, path: &str, flags: i32) -> Call<Descriptor> {
        self.open_as(self.caller, path, flags, 0o644)
    }

    /// As when the kernel looks every name up again.
    pub fn forget_names(&mut self) {
        for (_, inode) in self.names.as_mut().map(std::mem::take).unwrap_or_default() {
            self.forget(inode, 1);
        }
    }

    /// As `do_filp_open`: after ESTALE the name is looked up again, once.
    pub fn open_as(&mut self, caller: Caller, path: &str, flags: i32, mode: u32) -> Call<Descriptor> {
        match self.try_open(caller, path, flags, mode) {
            Err(libc::ESTALE) => {
                let (parent, name) = self.parent(path)?;
                if let Some(old) = self.names.as_mut().and_then(|names| names.remove(&(parent, name))) {
                    self.forget(old, 1);
                }
                self.try_open(caller, path, flags, mode)
            }
            opened => opened,
        }
    }

    fn try_open(&mut self, caller: Caller, path: &str, flags: i32, mode: u32) -> Call<Descriptor> {
        let (parent, name) = self.parent(path)?;
        match self.child(parent, &name) {
            Ok(_) if flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0 => Err(libc::EEXIST),
            Ok(inode) => match self.fs.open(&caller, inode, flags & !libc::O_CREAT) {
                Ok(opened) => {
                    self.opened(inode);
                    Ok(Descriptor { inode, handle: opened.handle })
                }
                Err(error) => Err(self.failed("open", inode, None, &error)),
            },
            Err(libc::ENOENT) if flags & libc::O_CREAT != 0 => {
                match self.fs.create(&caller, parent, OsStr::from_bytes(&name), mode, flags) {
                    Ok((entry, opened)) => {
                        let inode = self.keep(parent, &name, &entry);
                        self.opened(inode);
                        Ok(Descriptor { inode, handle: opened.handle })
                    }
                    Err(error) => Err(self.failed("create", parent, Some(&name), &error)),
                }
            }
            Err(errno) => Err(errno),
        }
    }

    pub fn pwrite(&mut self, file: Descriptor, offset: u64, data: &[u8]) -> Call<()> {
        self.pwrite_as(self.caller, file, offset, data)
    }

    pub fn pwrite_as(&mut self, caller: Caller, file: Descriptor, offset: u64, data: &[u8]) -> Call<()> {
        match self.fs.write(&caller, file.inode, file.handle, offset, data) {
            Ok(written) => {
                assert_eq!(written as usize, data.len());
                Ok(())
            }
            Err(error) => Err(self.failed("write", file.inode, None, &error)),
        }
    }

    pub fn pread(&self, file: Descriptor, offset: u64, size: u32) -> Call<Bytes> {
        self.pread_as(self.caller, file, offset, size)
    }

    pub fn pread_as(&self, caller: Caller, file: Descriptor, offset: u64, size: u32) -> Call<Bytes> {
        let result = self.fs.read(&caller, file.inode, file.handle, offset, size);
        result.map_err(|error| self.failed("read", file.inode, None, &error))
    }

    pub fn ftruncate(&mut self, file: Descriptor, size: u64) -> Call<()> {
        let changes = AttributeChanges { size: Some(size), ..AttributeChanges::default() };
        let result = self.fs.setattr(&self.caller, file.inode, Some(file.handle), &changes);
        result.map(|_| ()).map_err(|error| self.failed("setattr", file.inode, None, &error))
    }

    /// close(2) of one of several descriptors of an open.
    pub fn flush(&mut self, file: Descriptor) -> Call<()> {
        let result = self.fs.flush(&self.caller, file.inode, file.handle);
        result.map_err(|error| self.failed("flush", file.inode, None, &error))
    }

    /// The last close(2).
    pub fn close(&mut self, file: Descriptor) -> Call<()> {
        let result = self.flush(file);
        self.closed(file);
        result
    }

    pub fn setattr(&mut self, path: &str, changes: AttributeChanges) -> Call<Attributes> {
        let inode = self.walk(path)?;
        let result = self.fs.setattr(&self.caller, inode, None, &changes);
        result.map(|(shown, _)| shown).map_err(|error| self.failed("setattr", inode, None, &error))
    }

    /// `printf DATA > path`
    pub fn write(&mut self, path: &str, data: impl AsRef<[u8]>) -> Call<()> {
        self.write_flags(path, libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC, data)
    }

    /// `printf DATA >> path`
    pub fn append(&mut self, path: &str, data: impl AsRef<[u8]>) -> Call<()> {
        self.write_flags(path, libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND, data)
    }

    pub fn write_flags(&mut self, path: &str, flags: i32, data: impl AsRef<[u8]>) -> Call<()> {
        let file = self.open(path, flags)?;
        let written = self.pwrite(file, 0, data.as_ref());
        let closed = self.close(file);
        written.and(closed)
    }

    /// `cat path`
    pub fn read(&mut self, path: &str) -> Call<Bytes> {
        let file = self.open(path, libc::O_RDONLY)?;
        let mut all = Vec::new();
        loop {
            let part = self.pread(file, all.len() as u64, 64 << 10)?;
            if part.is_empty() {
                break;
            }
            all.extend_from_slice(&part);
        }
        self.closed(file);
        Ok(all.into())
    }

    /// Names of a directory, in the order in which they are listed, without `.` and `..`.
    pub fn list(&mut self, path: &str) -> Call<Vec<String>> {
        Ok(self
            .list_entries(path, 1000, false)?
            .into_iter()
            .map(|(name, _, _)| name)
            .filter(|name| name != "." && name != "..")
            .collect())
    }

    /// Name, inode and kind of each entry, `room` entries per call.
    pub fn list_entries(&mut self, path: &str, room: usize, plus: bool) -> Call<Vec<(String, u64, FileKind)>> {
        let inode = self.walk(path)?;
        let (handle, _) = self.fs.opendir(&self.caller, inode).map_err(|error| error.errno)?;
        let mut all = Vec::new();
        let mut offset = 0;
        loop {
            let mut page = Page { room, entries: Vec::new(), offset, referenced: Vec::new() };
            let result = self.fs.readdir(&self.caller, inode, handle, offset, plus, &mut page);
            result.map_err(|error| self.failed("readdir", inode, None, &error))?;
            for inode in page.referenced {
                self.forget(inode, 1);
            }
            offset = page.offset;
            if page.entries.is_empty() {
                break;
            }
            all.extend(page.entries);
        }
        self.fs.releasedir(inode, handle);
        Ok(all)
    }
}

struct Page {
    room: usize,
    entries: Vec<(String, u64, FileKind)>,
    offset: u64,
    referenced: Vec<u64>,
}

impl DirectorySink for Page {
    fn add(&mut self, inode: u64, kind: FileKind, name: &[u8], next_offset: u64, entry: Option<&Entry>) -> bool {
        if self.entries.len() == self.room {
            return true;
        }
        self.entries.push((String::from_utf8(name.to_vec()).unwrap(), inode, kind));
        self.offset = next_offset;
        self.referenced.extend(entry.map(|entry| entry.attributes.inode));
        false
    }
}

impl Kernel {
    /// RELEASE without a flush before it.
    pub fn fs_release(&mut self, file: Descriptor) {
        self.closed(file);
        // The kernel drops a name when it is told to; here names of files that are gone are dropped at once.
        if let Some(names) = &mut self.names {
            let fs = &self.fs;
            names.retain(|_, inode| {
                *inode != file.inode || fs.state().inodes.get(*inode).is_some_and(|inode| !inode.is_unlinked())
            });
        }
    }
}
