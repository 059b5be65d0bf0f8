//! [`fuser::Filesystem`] over [`Operations`]: decides, per request, whether the reading thread serves it or a worker does.

use super::convert;
use super::server::{NAME_MAX, Question, Server, answer, answer_written};
use super::workers::Workers;
use crate::ops::{AttributeChanges, OperationKind, Operations};
use fuser::{
    AccessFlags, CopyFileRangeFlags, Errno, FileHandle, Filesystem, INodeNo, InitFlags, IoctlFlags, KernelConfig,
    LockOwner, OpenFlags, PollEvents, PollFlags, PollNotifier, RenameFlags, ReplyAttr, ReplyBmap, ReplyCreate,
    ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLseek, ReplyOpen,
    ReplyPoll, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// One WRITE and one READ carry at most this much.
const MAX_WRITE: u32 = 1 << 20;

/// Requests in the background (RELEASE, read-ahead, asynchronous direct I/O) before the kernel holds new ones back.
const MAX_BACKGROUND: u16 = 64;

/// Asked of the kernel where it offers them (fuse.md 5.2):
/// ATOMIC_O_TRUNC: open and truncation are one request, so one version. PARALLEL_DIROPS: lookups in one directory run side by side.
/// READDIRPLUS_AUTO: attributes come with names only for who looks at them. NO_EXPORT_SUPPORT: no file handles that outlive inodes. ASYNC_DIO:
/// large direct reads in flight together. DIRECT_IO_ALLOW_MMAP: files open for writing bypass the page cache and can be mapped all the same.
/// Not asked: WRITEBACK_CACHE (a put would become three requests, and close would lie about EIO).
const WANTED: [InitFlags; 7] = [
    InitFlags::FUSE_ATOMIC_O_TRUNC,
    InitFlags::FUSE_PARALLEL_DIROPS,
    InitFlags::FUSE_DO_READDIRPLUS,
    InitFlags::FUSE_READDIRPLUS_AUTO,
    InitFlags::FUSE_NO_EXPORT_SUPPORT,
    InitFlags::FUSE_ASYNC_DIO,
    InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
];

const NO_HARD_LINK: &str = "a cell has one name: hard links are not kept (cp makes a second cell)";
const NO_SYMBOLIC_LINK: &str = "a table holds cells only: symbolic links are not kept";
const NO_SPECIAL_FILE: &str = "a table holds cells only: devices, pipes and sockets are not kept";

/// The file system as fuser wants it.
pub(super) struct Adapter<F: Operations> {
    pub(super) server: Arc<Server<F>>,
    pub(super) workers: Workers,
}

impl<F: Operations> Adapter<F> {
    /// Serves here, or on a worker where the operation may wait. The two closures do the same; one borrows, one owns.
    fn on_worker(&self, work: impl FnOnce(&Server<F>) + Send + 'static) {
        let server = Arc::clone(&self.server);
        self.workers.submit(Box::new(move || work(&server)));
    }

    fn xattrs(&self) -> bool {
        self.server.operations.has_extended_attributes()
    }

    fn inode_waits(&self, inode: INodeNo) -> bool {
        self.server.operations.may_block(OperationKind::Inode(inode.0))
    }

    /// True if an operation on names of a directory may wait: also for the kernel to forget what they are called elsewhere.
    fn names_wait(&self, directory: INodeNo) -> bool {
        self.inode_waits(directory) || self.server.operations.is_another_way(directory.0)
    }

    fn handle_waits(&self, handle: FileHandle) -> bool {
        self.server.operations.may_block(OperationKind::Handle(handle.0))
    }
}

fn question(request: &Request, operation: &'static str, inode: INodeNo) -> Question {
    Question { caller: convert::caller(request), operation, inode: inode.0 }
}

fn permissions(mode: u32, umask: u32) -> u32 {
    mode & !umask & 0o7777
}

/// Longer names end in tools that cannot hold them, so they are refused here as local file systems do.
fn too_long(name: &OsStr) -> bool {
    name.len() > NAME_MAX as usize
}

impl<F: Operations> Filesystem for Adapter<F> {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for flag in WANTED {
            if config.add_capabilities(flag).is_err() {
                log::info!("the kernel does not offer {flag:?}");
            }
        }
        // Otherwise the kernel would ask for security.capability before each write. Set-id bits of cells are never kept, so there is none to drop.
        if self.xattrs() && config.add_capabilities(InitFlags::FUSE_HANDLE_KILLPRIV_V2).is_err() {
            log::info!("the kernel asks for extended attributes before each write");
        }
        // These answer Err with the nearest value allowed, which they do not set themselves.
        if let Err(nearest) = config.set_max_write(MAX_WRITE) {
            let _ = config.set_max_write(nearest);
        }
        if let Err(nearest) = config.set_max_readahead(MAX_WRITE) {
            let _ = config.set_max_readahead(nearest);
        }
        let _ = config.set_max_background(MAX_BACKGROUND);
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let question = question(request, "lookup", parent);
        if too_long(name) {
            reply.error(Errno::ENAMETOOLONG);
        } else if self.inode_waits(parent) {
            let name = name.to_os_string();
            self.on_worker(move |server| server.lookup(&question, &name, reply));
        } else {
            self.server.lookup(&question, name, reply);
        }
    }

    fn forget(&self, request: &Request, inode: INodeNo, count: u64) {
        let question = question(request, "forget", inode);
        let _ = self.server.ask(&question, None, |operations, _| {
            operations.forget(inode.0, count);
            Ok(())
        });
    }

    fn getattr(&self, request: &Request, inode: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        let question = question(request, "getattr", inode);
        if self.inode_waits(inode) {
            self.on_worker(move |server| server.getattr(&question, reply));
        } else {
            self.server.getattr(&question, reply);
        }
    }

    fn setattr(
        &self,
        request: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        handle: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<fuser::BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let question = question(request, "setattr", inode);
        let changes = AttributeChanges {
            mode: mode.map(|mode| mode & 0o7777),
            uid,
            gid,
            size,
            atime: atime.map(convert::time_change),
            mtime: mtime.map(convert::time_change),
        };
        let handle = handle.map(|handle| handle.0);
        if self.inode_waits(inode) {
            self.on_worker(move |server| server.setattr(&question, handle, &changes, reply));
        } else {
            self.server.setattr(&question, handle, &changes, reply);
        }
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _device: u32,
        reply: ReplyEntry,
    ) {
        let question = question(request, "mknod", parent);
        let kind = mode & libc::S_IFMT;
        if kind != libc::S_IFREG && kind != 0 {
            reply.error(self.server.refuse(&question, name, libc::EPERM, NO_SPECIAL_FILE));
        } else if too_long(name) {
            reply.error(Errno::ENAMETOOLONG);
        } else {
            let name = name.to_os_string();
            self.on_worker(move |server| server.make_file(&question, &name, permissions(mode, umask), reply));
        }
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let question = question(request, "mkdir", parent);
        let mode = permissions(mode, umask);
        if too_long(name) {
            reply.error(Errno::ENAMETOOLONG);
        } else if self.names_wait(parent) {
            let name = name.to_os_string();
            self.on_worker(move |server| server.mkdir(&question, &name, mode, reply));
        } else {
            self.server.mkdir(&question, name, mode, reply);
        }
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let question = question(request, "unlink", parent);
        if self.names_wait(parent) {
            let name = name.to_os_string();
            self.on_worker(move |server| server.unlink(&question, &name, reply));
        } else {
            self.server.unlink(&question, name, reply);
        }
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let question = question(request, "rmdir", parent);
        if self.names_wait(parent) {
            let name = name.to_os_string();
            self.on_worker(move |server| server.rmdir(&question, &name, reply));
        } else {
            self.server.rmdir(&question, name, reply);
        }
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, _target: &Path, reply: ReplyEntry) {
        let question = question(request, "symlink", parent);
        reply.error(self.server.refuse(&question, name, libc::EPERM, NO_SYMBOLIC_LINK));
    }

    fn link(&self, request: &Request, _inode: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let question = question(request, "link", parent);
        reply.error(self.server.refuse(&question, name, libc::EPERM, NO_HARD_LINK));
    }

    fn readlink(&self, _request: &Request, _inode: INodeNo, reply: ReplyData) {
        reply.error(Errno::EINVAL);
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let question = question(request, "rename", parent);
        let (new_parent, flags) = (new_parent.0, flags.bits());
        if too_long(new_name) {
            reply.error(Errno::ENAMETOOLONG);
        } else if self.names_wait(parent) {
            let (name, new_name) = (name.to_os_string(), new_name.to_os_string());
            self.on_worker(move |server| server.rename(&question, &name, new_parent, &new_name, flags, reply));
        } else {
            self.server.rename(&question, name, new_parent, new_name, flags, reply);
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let question = question(request, "create", parent);
        let mode = permissions(mode, umask);
        if too_long(name) {
            reply.error(Errno::ENAMETOOLONG);
        } else if self.names_wait(parent) {
            let name = name.to_os_string();
            self.on_worker(move |server| server.create(&question, &name, mode, flags, reply));
        } else {
            self.server.create(&question, name, mode, flags, reply);
        }
    }

    fn open(&self, request: &Request, inode: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let question = question(request, "open", inode);
        if self.inode_waits(inode) {
            self.on_worker(move |server| server.open(&question, flags.0, reply));
        } else {
            self.server.open(&question, flags.0, reply);
        }
    }

    fn read(
        &self,
        request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let question = question(request, "read", inode);
        if self.handle_waits(handle) {
            self.on_worker(move |server| server.read(&question, handle.0, offset, size, reply));
        } else {
            self.server.read(&question, handle.0, offset, size, reply);
        }
    }

    fn write(
        &self,
        request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let question = question(request, "write", inode);
        if self.handle_waits(handle) {
            let data = data.to_vec();
            self.on_worker(move |server| {
                let done = server.write(&question, handle.0, offset, &data);
                server.settle();
                answer_written(done, reply);
            });
        } else {
            answer_written(self.server.write(&question, handle.0, offset, data), reply);
        }
    }

    fn flush(&self, request: &Request, inode: INodeNo, handle: FileHandle, _owner: LockOwner, reply: ReplyEmpty) {
        let question = question(request, "flush", inode);
        if self.handle_waits(handle) {
            self.on_worker(move |server| {
                let done = server.flush(&question, handle.0);
                server.settle();
                answer(done, reply);
            });
        } else {
            answer(self.server.flush(&question, handle.0), reply);
        }
    }

    fn fsync(&self, request: &Request, inode: INodeNo, handle: FileHandle, _data_only: bool, reply: ReplyEmpty) {
        let question = question(request, "fsync", inode);
        self.on_worker(move |server| {
            let done = server.fsync(&question, handle.0);
            server.settle();
            answer(done, reply);
        });
    }

    fn release(
        &self,
        request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let question = question(request, "release", inode);
        if self.handle_waits(handle) {
            self.on_worker(move |server| server.release(&question, handle.0, reply));
        } else {
            self.server.release(&question, handle.0, reply);
        }
    }

    fn opendir(&self, request: &Request, inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let question = question(request, "opendir", inode);
        if self.inode_waits(inode) {
            self.on_worker(move |server| server.opendir(&question, reply));
        } else {
            self.server.opendir(&question, reply);
        }
    }

    fn readdir(&self, request: &Request, inode: INodeNo, handle: FileHandle, offset: u64, reply: ReplyDirectory) {
        let question = question(request, "readdir", inode);
        if self.inode_waits(inode) {
            self.on_worker(move |server| server.readdir(&question, handle.0, offset, reply));
        } else {
            self.server.readdir(&question, handle.0, offset, reply);
        }
    }

    fn readdirplus(
        &self,
        request: &Request,
        inode: INodeNo,
        handle: FileHandle,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        let question = question(request, "readdir", inode);
        if self.inode_waits(inode) {
            self.on_worker(move |server| server.readdirplus(&question, handle.0, offset, reply));
        } else {
            self.server.readdirplus(&question, handle.0, offset, reply);
        }
    }

    fn releasedir(&self, request: &Request, inode: INodeNo, handle: FileHandle, _flags: OpenFlags, reply: ReplyEmpty) {
        self.server.releasedir(&question(request, "releasedir", inode), handle.0, reply);
    }

    fn fsyncdir(&self, request: &Request, inode: INodeNo, handle: FileHandle, _data_only: bool, reply: ReplyEmpty) {
        let question = question(request, "fsyncdir", inode);
        self.on_worker(move |server| server.fsyncdir(&question, handle.0, reply));
    }

    fn statfs(&self, request: &Request, inode: INodeNo, reply: ReplyStatfs) {
        self.server.statfs(&question(request, "statfs", inode), reply);
    }

    fn access(&self, request: &Request, inode: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        let execute = mask.contains(AccessFlags::X_OK);
        self.server.access(&question(request, "access", inode), execute, reply);
    }

    // Extended attributes are read-only, and there with `-o xattr` only. What follows is answered once: the kernel then stops asking and does without (xattr, poll, lseek), or falls back to plain
    // reads and writes (fallocate, copy_file_range).

    fn setxattr(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _name: &OsStr,
        _value: &[u8],
        _flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        reply.error(if self.xattrs() { Errno::EOPNOTSUPP } else { Errno::ENOSYS });
    }

    fn getxattr(&self, request: &Request, inode: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        if !self.xattrs() {
            return reply.error(Errno::ENOSYS);
        }
        let (question, name) = (question(request, "getxattr", inode), name.to_os_string());
        self.on_worker(move |server| server.getxattr(&question, &name, size, reply));
    }

    fn listxattr(&self, _request: &Request, _inode: INodeNo, size: u32, reply: ReplyXattr) {
        match (self.xattrs(), size) {
            (false, _) => reply.error(Errno::ENOSYS),
            (true, 0) => reply.size(0),
            (true, _) => reply.data(&[]),
        }
    }

    fn removexattr(&self, _request: &Request, _inode: INodeNo, _name: &OsStr, reply: ReplyEmpty) {
        reply.error(if self.xattrs() { Errno::EOPNOTSUPP } else { Errno::ENOSYS });
    }

    fn bmap(&self, _request: &Request, _inode: INodeNo, _block_size: u32, _index: u64, reply: ReplyBmap) {
        reply.error(Errno::ENOSYS);
    }

    fn ioctl(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        _flags: IoctlFlags,
        _command: u32,
        _data: &[u8],
        _out_size: u32,
        reply: ReplyIoctl,
    ) {
        reply.error(Errno::ENOTTY);
    }

    fn poll(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        _notifier: PollNotifier,
        _events: PollEvents,
        _flags: PollFlags,
        reply: ReplyPoll,
    ) {
        reply.error(Errno::ENOSYS);
    }

    fn fallocate(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        _offset: u64,
        _length: u64,
        _mode: i32,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::ENOSYS);
    }

    fn lseek(
        &self,
        _request: &Request,
        _inode: INodeNo,
        _handle: FileHandle,
        _offset: i64,
        _whence: i32,
        reply: ReplyLseek,
    ) {
        reply.error(Errno::ENOSYS);
    }

    fn copy_file_range(
        &self,
        _request: &Request,
        _inode_in: INodeNo,
        _handle_in: FileHandle,
        _offset_in: u64,
        _inode_out: INodeNo,
        _handle_out: FileHandle,
        _offset_out: u64,
        _length: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        reply.error(Errno::ENOSYS);
    }
}
