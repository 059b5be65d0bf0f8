//! Each operation from question to reply: calls [`Operations`], keeps a panic from the session, notes the reason of an error, answers. The
//! replies travel with the call, so that the same code serves inline and on a worker.

use super::convert;
use super::directory::{GENERATION, Plain, Plus};
use crate::invalidation::InvalidationQueue;
use crate::ops::{AttributeChanges, Caller, DirectorySink, FileKind, FsError, FsResult, Lifetime, Operations};
use fuser::{
    Errno, FileHandle, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr,
};
use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Longest name, as local file systems have it. The kernel would let 4095 bytes through.
pub(super) const NAME_MAX: u32 = 255;

/// How long a worker's reply may wait for the kernel to forget what the operation changed. Only a kernel that waits for that very reply takes
/// longer than microseconds.
const FORGET_PATIENCE: Duration = Duration::from_secs(1);

/// Where a request came from and what it is about: for the error log, and to find who asks.
#[derive(Clone, Copy)]
pub(super) struct Question {
    pub(super) caller: Caller,
    pub(super) operation: &'static str,
    pub(super) inode: u64,
}

/// The served file system.
pub(super) struct Server<F> {
    pub(super) operations: Arc<F>,
    pub(super) invalidations: Arc<InvalidationQueue>,
}

impl<F: Operations> Server<F> {
    /// Calls the file system; a panic becomes EIO. Reasons go to the error log, but for a plain "not there".
    pub(super) fn ask<T>(
        &self,
        question: &Question,
        name: Option<&OsStr>,
        work: impl FnOnce(&F, &Caller) -> FsResult<T>,
    ) -> Result<T, Errno> {
        let result = catch_unwind(AssertUnwindSafe(|| work(&self.operations, &question.caller))).unwrap_or_else(|_| {
            Err(FsError::new(libc::EIO, "the operation failed by a defect of cellfs; see its log"))
        });
        result.map_err(|error| {
            if !error.reason.is_empty() {
                let note = || {
                    self.operations.note_error(&question.caller, question.operation, question.inode, name, &error);
                };
                if catch_unwind(AssertUnwindSafe(note)).is_err() {
                    log::error!("{} failed and could not be noted: {error}", question.operation);
                }
            }
            Errno::from_i32(error.errno)
        })
    }

    /// Refuses what the data model has no place for.
    pub(super) fn refuse(&self, question: &Question, name: &OsStr, errno: i32, reason: &str) -> Errno {
        match self.ask(question, Some(name), |_, _| Err::<(), _>(FsError::new(errno, reason))) {
            Ok(()) => Errno::EIO,
            Err(errno) => errno,
        }
    }

    /// Called on a worker before it replies to an operation that may have changed names: whoever sees the reply sees the change.
    pub(super) fn settle(&self) {
        self.invalidations.wait_until_delivered(FORGET_PATIENCE);
    }

    /// As [`Server::settle`], after names may have changed in directories that are all another way to something: where one is the thing itself, the
    /// kernel holds the very lock that forgetting takes.
    fn settle_names(&self, directories: &[u64]) {
        if directories.iter().all(|directory| self.operations.is_another_way(*directory)) {
            self.settle();
        }
    }

    pub(super) fn lookup(&self, question: &Question, name: &OsStr, reply: ReplyEntry) {
        let parent = question.inode;
        match self.ask(question, Some(name), |operations, caller| operations.lookup(caller, parent, name)) {
            Ok(Some(entry)) => reply.entry_with_ttls(
                &convert::lifetime(entry.attribute_lifetime),
                &convert::lifetime(entry.name_lifetime),
                &convert::attributes(&entry.attributes),
                GENERATION,
            ),
            Ok(None) => reply.entry(&convert::lifetime(Lifetime::Forever), &convert::nothing(), GENERATION),
            Err(errno) => reply.error(errno),
        }
    }

    pub(super) fn getattr(&self, question: &Question, reply: ReplyAttr) {
        match self.ask(question, None, |operations, caller| operations.getattr(caller, question.inode)) {
            Ok((attributes, lifetime)) => reply.attr(&convert::lifetime(lifetime), &convert::attributes(&attributes)),
            Err(errno) => reply.error(errno),
        }
    }

    pub(super) fn setattr(
        &self,
        question: &Question,
        handle: Option<u64>,
        changes: &AttributeChanges,
        reply: ReplyAttr,
    ) {
        match self.ask(question, None, |operations, caller| operations.setattr(caller, question.inode, handle, changes))
        {
            Ok((attributes, lifetime)) => reply.attr(&convert::lifetime(lifetime), &convert::attributes(&attributes)),
            Err(errno) => reply.error(errno),
        }
    }

    pub(super) fn mkdir(&self, question: &Question, name: &OsStr, mode: u32, reply: ReplyEntry) {
        let made =
            self.ask(question, Some(name), |operations, caller| operations.mkdir(caller, question.inode, name, mode));
        self.settle_names(&[question.inode]);
        match made {
            Ok(entry) => reply.entry_with_ttls(
                &convert::lifetime(entry.attribute_lifetime),
                &convert::lifetime(entry.name_lifetime),
                &convert::attributes(&entry.attributes),
                GENERATION,
            ),
            Err(errno) => reply.error(errno),
        }
    }

    /// mknod(2) of a regular file: made and closed, empty.
    pub(super) fn make_file(&self, question: &Question, name: &OsStr, mode: u32, reply: ReplyEntry) {
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY;
        let made = self.ask(question, Some(name), |operations, caller| {
            let (entry, opened) = operations.create(caller, question.inode, name, mode, flags)?;
            let inode = entry.attributes.inode;
            let closed = operations.flush(caller, inode, opened.handle);
            operations.release(inode, opened.handle);
            closed.map(|()| entry)
        });
        match made {
            Ok(entry) => reply.entry(&Duration::ZERO, &convert::attributes(&entry.attributes), GENERATION),
            Err(errno) => reply.error(errno),
        }
    }

    pub(super) fn unlink(&self, question: &Question, name: &OsStr, reply: ReplyEmpty) {
        let done = self.ask(question, Some(name), |operations, caller| operations.unlink(caller, question.inode, name));
        self.settle_names(&[question.inode]);
        answer(done, reply);
    }

    pub(super) fn rmdir(&self, question: &Question, name: &OsStr, reply: ReplyEmpty) {
        let done = self.ask(question, Some(name), |operations, caller| operations.rmdir(caller, question.inode, name));
        self.settle_names(&[question.inode]);
        answer(done, reply);
    }

    pub(super) fn rename(
        &self,
        question: &Question,
        name: &OsStr,
        new_parent: u64,
        new_name: &OsStr,
        flags: u32,
        reply: ReplyEmpty,
    ) {
        let done = self.ask(question, Some(name), |operations, caller| {
            operations.rename(caller, question.inode, name, new_parent, new_name, flags)
        });
        self.settle_names(&[question.inode, new_parent]);
        answer(done, reply);
    }

    pub(super) fn create(&self, question: &Question, name: &OsStr, mode: u32, flags: i32, reply: ReplyCreate) {
        let made = self.ask(question, Some(name), |operations, caller| {
            operations.create(caller, question.inode, name, mode, flags)
        });
        self.settle_names(&[question.inode]);
        match made {
            // fuser has one lifetime for both; the shorter is right for either.
            Ok((entry, opened)) => reply.created(
                &convert::lifetime(entry.name_lifetime).min(convert::lifetime(entry.attribute_lifetime)),
                &convert::attributes(&entry.attributes),
                GENERATION,
                FileHandle(opened.handle),
                convert::open_flags(&opened),
            ),
            Err(errno) => reply.error(errno),
        }
    }

    pub(super) fn open(&self, question: &Question, flags: i32, reply: ReplyOpen) {
        match self.ask(question, None, |operations, caller| operations.open(caller, question.inode, flags)) {
            Ok(opened) => reply.opened(FileHandle(opened.handle), convert::open_flags(&opened)),
            Err(errno) => reply.error(errno),
        }
    }

    pub(super) fn read(&self, question: &Question, handle: u64, offset: u64, size: u32, reply: ReplyData) {
        match self
            .ask(question, None, |operations, caller| operations.read(caller, question.inode, handle, offset, size))
        {
            Ok(bytes) => reply.data(&bytes),
            Err(errno) => reply.error(errno),
        }
    }

    pub(super) fn write(&self, question: &Question, handle: u64, offset: u64, data: &[u8]) -> Result<u32, Errno> {
        self.ask(question, None, |operations, caller| operations.write(caller, question.inode, handle, offset, data))
    }

    pub(super) fn flush(&self, question: &Question, handle: u64) -> Result<(), Errno> {
        self.ask(question, None, |operations, caller| operations.flush(caller, question.inode, handle))
    }

    pub(super) fn fsync(&self, question: &Question, handle: u64) -> Result<(), Errno> {
        self.ask(question, None, |operations, caller| operations.fsync(caller, question.inode, handle))
    }

    pub(super) fn release(&self, question: &Question, handle: u64, reply: ReplyEmpty) {
        let done = self.ask(question, None, |operations, _| {
            operations.release(question.inode, handle);
            Ok(())
        });
        answer(done, reply);
    }

    pub(super) fn opendir(&self, question: &Question, reply: ReplyOpen) {
        match self.ask(question, None, |operations, caller| operations.opendir(caller, question.inode)) {
            Ok((handle, cache)) => reply.opened(FileHandle(handle), convert::listing_flags(cache)),
            Err(errno) => reply.error(errno),
        }
    }

    pub(super) fn readdir(&self, question: &Question, handle: u64, offset: u64, reply: ReplyDirectory) {
        let mut sink = Plain(reply);
        match self.list(question, handle, offset, false, &mut sink) {
            Ok(()) => sink.0.ok(),
            Err(errno) => sink.0.error(errno),
        }
    }

    pub(super) fn readdirplus(&self, question: &Question, handle: u64, offset: u64, reply: ReplyDirectoryPlus) {
        let mut sink = Plus(reply);
        match self.list(question, handle, offset, true, &mut sink) {
            Ok(()) => sink.0.ok(),
            Err(errno) => sink.0.error(errno),
        }
    }

    fn list(
        &self,
        question: &Question,
        handle: u64,
        offset: u64,
        plus: bool,
        sink: &mut dyn DirectorySink,
    ) -> Result<(), Errno> {
        self.ask(question, None, |operations, caller| {
            operations.readdir(caller, question.inode, handle, offset, plus, sink)
        })
    }

    pub(super) fn releasedir(&self, question: &Question, handle: u64, reply: ReplyEmpty) {
        let done = self.ask(question, None, |operations, _| {
            operations.releasedir(question.inode, handle);
            Ok(())
        });
        answer(done, reply);
    }

    pub(super) fn fsyncdir(&self, question: &Question, handle: u64, reply: ReplyEmpty) {
        let done = self.ask(question, None, |operations, caller| operations.fsyncdir(caller, question.inode, handle));
        answer(done, reply);
    }

    /// A size of 0 asks for the length.
    pub(super) fn getxattr(&self, question: &Question, name: &OsStr, size: u32, reply: ReplyXattr) {
        match self.ask(question, Some(name), |operations, caller| operations.getxattr(caller, question.inode, name)) {
            Ok(None) => reply.error(Errno::NO_XATTR),
            Ok(Some(value)) if size == 0 => reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX)),
            Ok(Some(value)) if value.len() > size as usize => reply.error(Errno::ERANGE),
            Ok(Some(value)) => reply.data(&value),
            Err(errno) => reply.error(errno),
        }
    }

    pub(super) fn statfs(&self, question: &Question, reply: ReplyStatfs) {
        match self.ask(question, None, |operations, _| operations.statfs(question.inode)) {
            Ok(figures) => reply.statfs(
                figures.blocks,
                figures.blocks_free,
                figures.blocks_available,
                figures.files,
                figures.files_free,
                figures.block_size,
                NAME_MAX,
                figures.block_size,
            ),
            Err(errno) => reply.error(errno),
        }
    }

    /// access(2), asked only where the kernel does not judge modes itself: then the caller is root, who may do all but run what nobody may run.
    pub(super) fn access(&self, question: &Question, execute: bool, reply: ReplyEmpty) {
        let done = self.ask(question, None, |operations, caller| operations.getattr(caller, question.inode)).and_then(
            |(attributes, _)| {
                let runnable = attributes.kind == FileKind::Directory || attributes.mode & 0o111 != 0;
                if execute && !runnable { Err(Errno::EACCES) } else { Ok(()) }
            },
        );
        answer(done, reply);
    }
}

pub(super) fn answer(done: Result<(), Errno>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}

pub(super) fn answer_written(done: Result<u32, Errno>, reply: ReplyWrite) {
    match done {
        Ok(size) => reply.written(size),
        Err(errno) => reply.error(errno),
    }
}
