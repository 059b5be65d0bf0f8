//! Open dot files: what each can do, and the plain kinds of them.

use crate::ops::{FsError, FsResult};
use bytes::Bytes;

/// How the kernel shall treat an open dot file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MagicOpened {
    /// No page cache: each read and write comes to the file. False only where contents cannot change while it is open.
    pub direct_io: bool,
    /// close(2) need not ask: the file was opened for reading.
    pub no_flush: bool,
}

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

/// What a write to a file says that only shows something.
pub(super) fn read_only() -> FsError {
    FsError::new(libc::EACCES, "this file only shows something; it cannot be written")
}

/// A slice of `content` as read(2) gives it.
pub(super) fn slice(content: &Bytes, offset: u64, size: usize) -> Bytes {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
    content.slice(start..start.saturating_add(size).min(content.len()))
}

/// A file whose content was made when it was opened.
pub(super) struct TextFile(pub(super) Bytes);

impl MagicFile for TextFile {
    fn read(&mut self, offset: u64, size: usize) -> FsResult<Bytes> {
        Ok(slice(&self.0, offset, size))
    }

    fn write(&mut self, _offset: u64, _data: &[u8]) -> FsResult<usize> {
        Err(read_only())
    }

    fn truncate(&mut self, _size: u64) -> FsResult<()> {
        Err(read_only())
    }

    fn flush(&mut self) -> FsResult<()> {
        Ok(())
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn opened(&self) -> MagicOpened {
        MagicOpened { direct_io: true, no_flush: true }
    }
}

/// True if open(2)'s flags ask for writing.
pub(super) fn for_writing(flags: i32) -> bool {
    flags & libc::O_ACCMODE != libc::O_RDONLY
}
