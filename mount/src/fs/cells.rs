//! What a cell's inode knows: the committed version, and the shared buffer while somebody has the cell open for writing.

use super::attributes::FileAttributes;
use bytes::Bytes;
use std::fs;

/// State of a cell or scratch file.
#[derive(Debug, Default)]
pub struct CellState {
    /// The newest visible version, as last seen; see [`Version::epoch`].
    pub known: Option<Version>,
    /// Which version's bytes the kernel's page cache may hold.
    pub pages: Option<VersionId>,
    /// Open handles whose reads go through the page cache.
    pub cached_readers: u32,
    /// The process that opened all of them; [`SEVERAL_PROCESSES`] if they are of more than one.
    pub cached_reader: u32,
    /// Open handles in all.
    pub handles: u32,
    /// Value that open handles go on with after unlink, for those that had not read it yet.
    pub orphan: Option<Bytes>,
    /// The working copy while there are writers; of scratch files always.
    pub pending: Option<Box<Pending>>,
}

/// In place of a process: more than one.
const SEVERAL_PROCESSES: u32 = 0;

impl CellState {
    /// A process opens the cell to read it through the page cache.
    pub fn opened_cached(&mut self, pid: u32) {
        if self.cached_readers == 0 {
            self.cached_reader = pid;
        } else if !same_group(self.cached_reader, pid) {
            self.cached_reader = SEVERAL_PROCESSES;
        }
        self.cached_readers += 1;
    }

    /// True if a process other than `pid` reads the cell through the page cache.
    pub fn is_read_by_others(&self, pid: u32) -> bool {
        self.cached_readers > 0 && (self.cached_reader == SEVERAL_PROCESSES || !same_group(self.cached_reader, pid))
    }
}

/// Tells versions of one cell apart: a later flush of one open replaces the value at the same timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VersionId {
    /// Milliseconds since the epoch.
    pub timestamp: i64,
    /// The write's sequence id; 0 where the engine has dropped it.
    pub sequence_id: u64,
}

/// Facts of a committed version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Which.
    pub id: VersionId,
    /// Bytes.
    pub size: u64,
    /// What it keeps of its own; none for most.
    pub attributes: Option<Box<FileAttributes>>,
    /// When it stops being visible, milliseconds since the epoch (TTL).
    pub expires_millis: Option<i64>,
    /// The mount's change count when this was read: after a change that came past the file operations it must be read again.
    pub epoch: u64,
}

impl Version {
    /// What it keeps of its own.
    pub fn own(&self) -> FileAttributes {
        self.attributes.as_deref().copied().unwrap_or_default()
    }
}

/// The bytes of an open cell: shared with the engine after a commit, owned while they change.
#[derive(Debug, Default)]
pub struct Content {
    /// As committed; then `owned` is empty.
    shared: Option<Bytes>,
    owned: Vec<u8>,
}

impl Content {
    /// Committed bytes.
    pub fn new(bytes: Bytes) -> Content {
        Content { shared: Some(bytes), owned: Vec::new() }
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.shared.as_deref().unwrap_or(&self.owned)
    }

    /// At most `size` bytes from `offset`.
    pub fn read(&self, offset: u64, size: usize) -> Bytes {
        match &self.shared {
            Some(bytes) => slice(bytes, offset, size),
            None => {
                let (start, end) = range(self.owned.len(), offset, size);
                Bytes::copy_from_slice(self.owned.get(start..end).unwrap_or(&[]))
            }
        }
    }

    /// The bytes, to be changed.
    pub fn make_mut(&mut self) -> &mut Vec<u8> {
        if let Some(bytes) = self.shared.take() {
            self.owned = bytes.into();
        }
        &mut self.owned
    }

    /// The bytes, shared from now on.
    pub fn share(&mut self) -> Bytes {
        self.shared.get_or_insert_with(|| Bytes::from(std::mem::take(&mut self.owned))).clone()
    }
}

/// At most `size` bytes of `bytes` from `offset`.
pub fn slice(bytes: &Bytes, offset: u64, size: usize) -> Bytes {
    let (start, end) = range(bytes.len(), offset, size);
    bytes.slice(start..end)
}

fn range(len: usize, offset: u64, size: usize) -> (usize, usize) {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(len);
    (start, start.saturating_add(size).min(len))
}

/// Who makes a cell, until its first commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Creation {
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Milliseconds since the epoch.
    pub since_millis: i64,
}

/// The working copy that all writers of a cell share.
#[derive(Debug, Default)]
pub struct Pending {
    /// The bytes; `None` until somebody needs them.
    pub content: Option<Content>,
    /// The cell is being created.
    pub creating: Option<Creation>,
    /// What the next version keeps of its own, where it was set since the last one.
    pub attributes: Option<FileAttributes>,
    /// Which version `content` was, when nothing is dirty.
    pub base: Option<VersionId>,
    /// The open handles that can write.
    pub writers: Vec<Writer>,
    /// Milliseconds since the epoch of the last write or truncation.
    pub changed_millis: i64,
}

impl Pending {
    /// The writer of a handle.
    pub fn writer(&mut self, handle: u64) -> Option<&mut Writer> {
        self.writers.iter_mut().find(|writer| writer.handle == handle)
    }

    /// True if some writer has something to commit.
    pub fn is_dirty(&self) -> bool {
        self.writers.iter().any(Writer::is_dirty)
    }

    /// True if the process (its thread group) has something to commit, so that it sees its own work.
    pub fn is_dirty_for(&mut self, pid: u32) -> bool {
        self.writers.iter_mut().any(|writer| writer.is_dirty() && writer.belongs_to(pid))
    }

    /// When the cell was made, if nobody has written to it or cut it since: milliseconds since the epoch.
    pub fn untouched_since(&self) -> Option<i64> {
        let since = self.creating?.since_millis;
        (self.size() == 0 && self.changed_millis == since).then_some(since)
    }

    /// Bytes of the working copy.
    pub fn size(&self) -> u64 {
        self.content.as_ref().map_or(0, |content| content.as_slice().len() as u64)
    }

    /// True if some writer opened with O_TRUNC and nothing has happened since: its process sees an empty file.
    pub fn is_marked(&self) -> bool {
        self.writers.iter().any(|writer| writer.truncate_mark)
    }

    /// Does what the marks announced; returns the bytes that went.
    pub fn apply_marks(&mut self) -> u64 {
        if !self.is_marked() {
            return 0;
        }
        let gone = self.size();
        self.content = Some(Content::default());
        for writer in self.writers.iter_mut().filter(|writer| writer.truncate_mark) {
            writer.truncate_mark = false;
            writer.dirty = true;
        }
        gone
    }
}

/// One open handle that can write.
#[derive(Debug)]
pub struct Writer {
    /// The handle.
    pub handle: u64,
    /// Writes or truncations since its last commit.
    pub dirty: bool,
    /// Opened with O_TRUNC, and neither written nor flushed since: nothing has happened yet.
    pub truncate_mark: bool,
    /// The last commit failed and close(2) said so: release does not try again.
    pub failed: bool,
    /// The timestamp of the one version that this open makes.
    pub version: Option<i64>,
    processes: Vec<Process>,
}

#[derive(Debug)]
struct Process {
    pid: u32,
    /// Read from /proc when first asked for; 0 if the process is gone by then.
    group: Option<u32>,
}

impl Writer {
    /// A writer that `pid` opens.
    pub fn new(handle: u64, pid: u32, truncate_mark: bool) -> Writer {
        let processes = vec![Process { pid, group: None }];
        Writer { handle, dirty: false, truncate_mark, failed: false, version: None, processes }
    }

    /// True if there is something that a flush commits.
    pub fn is_dirty(&self) -> bool {
        self.dirty || self.truncate_mark
    }

    /// A process writes through the handle: inherited descriptors have several.
    pub fn used_by(&mut self, pid: u32) {
        const KEPT: usize = 8;
        if self.processes.last().is_none_or(|last| last.pid != pid) {
            self.processes.retain(|process| process.pid != pid);
            if self.processes.len() == KEPT {
                self.processes.remove(1);
            }
            self.processes.push(Process { pid, group: None });
        }
    }

    /// True if the thread is of a thread group that opened the handle or wrote through it.
    fn belongs_to(&mut self, pid: u32) -> bool {
        if self.processes.iter().any(|process| process.pid == pid) {
            return true;
        }
        let Some(group) = thread_group(pid) else { return false };
        self.processes
            .iter_mut()
            .any(|process| *process.group.get_or_insert_with(|| thread_group(process.pid).unwrap_or(0)) == group)
    }
}

/// True if two threads are of one thread group.
pub fn same_group(one: u32, other: u32) -> bool {
    one == other || thread_group(one).is_some_and(|group| Some(group) == thread_group(other))
}

/// The thread group of a thread, from the Tgid line of /proc/PID/status (proc(5)); FUSE gives thread ids.
fn thread_group(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_shared_after_a_commit_and_owned_while_it_changes() {
        let mut content = Content::new(Bytes::from_static(b"abc"));
        assert_eq!(content.read(1, 10), "bc");
        content.make_mut().extend_from_slice(b"def");
        assert_eq!(content.read(2, 2), "cd");
        assert_eq!(content.read(9, 2), "");
        assert_eq!(content.share(), "abcdef");
        assert_eq!(content.as_slice(), b"abcdef");
        assert_eq!(content.make_mut().len(), 6);
        assert_eq!(content.read(u64::MAX, usize::MAX), "");
    }

    #[test]
    fn threads_of_the_writer_see_its_work() {
        let own = std::process::id();
        let mut writer = Writer::new(1, own, true);
        assert!(writer.belongs_to(own));
        let thread = std::thread::spawn(|| {
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            let pid = status.lines().find_map(|line| line.strip_prefix("Pid:")).unwrap().trim().parse().unwrap();
            Writer::new(2, own_group(), false).belongs_to(pid)
        });
        assert!(thread.join().unwrap());
        assert!(!writer.belongs_to(1));
        writer.used_by(1);
        assert!(writer.belongs_to(1));
    }

    fn own_group() -> u32 {
        std::process::id()
    }
}
