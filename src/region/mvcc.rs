//! Which writes are visible: the read point (HBase `MultiVersionConcurrencyControl`).
//!
//! Sequence ids are given out by the log, one after the other. A write is complete when its cells are in the memstores, or when it failed and
//! will never be. The read point is the largest id up to which every id is complete, so a reader never sees a write in front of an older
//! one that is still on its way (architecture.md, invariant 2). One instance serves the whole store, since one log record may change several regions.

use parking_lot::{Condvar, Mutex};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The read point and what moves it.
#[derive(Debug)]
pub struct Mvcc {
    /// Mirror of `Pending::read_point`, read without the lock.
    read_point: AtomicU64,
    pending: Mutex<Pending>,
    advanced: Condvar,
    /// Read points of open scanners, and how many stand at each.
    readers: Mutex<BTreeMap<u64, usize>>,
}

#[derive(Debug)]
struct Pending {
    read_point: u64,
    /// Complete ids above a gap.
    complete: BinaryHeap<Reverse<u64>>,
    waiters: usize,
}

impl Mvcc {
    /// Everything up to `read_point` is visible; the next id is `read_point + 1`.
    pub fn new(read_point: u64) -> Mvcc {
        Mvcc {
            read_point: AtomicU64::new(read_point),
            pending: Mutex::new(Pending { read_point, complete: BinaryHeap::new(), waiters: 0 }),
            advanced: Condvar::new(),
            readers: Mutex::new(BTreeMap::new()),
        }
    }

    /// The newest id that readers may see.
    pub fn read_point(&self) -> u64 {
        self.read_point.load(Ordering::Acquire)
    }

    /// Marks `id` complete. Every id that the log gave out must be completed exactly once, failed writes too.
    pub fn complete(&self, id: u64) {
        let mut pending = self.pending.lock();
        self.complete_locked(&mut pending, id);
    }

    /// Moves the read point forward without writes: while the log is replayed, in its order.
    pub fn advance_to(&self, id: u64) {
        let mut pending = self.pending.lock();
        pending.read_point = pending.read_point.max(id);
        self.read_point.store(pending.read_point, Ordering::Release);
    }

    /// Waits until everything up to `id` is visible, so that the writer reads its own write. What it waits for are older writes on their way
    /// to the log's disk; none of them waits for this one.
    pub fn wait_for(&self, id: u64) {
        if self.read_point() >= id {
            return;
        }
        let mut pending = self.pending.lock();
        while pending.read_point < id {
            pending.waiters += 1;
            self.advanced.wait(&mut pending);
            pending.waiters -= 1;
        }
    }

    fn complete_locked(&self, pending: &mut Pending, id: u64) {
        if id != pending.read_point + 1 {
            pending.complete.push(Reverse(id));
            return;
        }
        pending.read_point = id;
        while pending.complete.peek().is_some_and(|next| next.0 == pending.read_point + 1) {
            pending.complete.pop();
            pending.read_point += 1;
        }
        self.read_point.store(pending.read_point, Ordering::Release);
        if pending.waiters > 0 {
            self.advanced.notify_all();
        }
    }

    /// Registers a reader at the current read point: until it is dropped, flushes and compactions keep what it may see.
    pub fn open_reader(self: &Arc<Mvcc>) -> ReadPoint {
        let mut readers = self.readers.lock();
        let point = self.read_point();
        *readers.entry(point).or_insert(0) += 1;
        ReadPoint { mvcc: Arc::clone(self), point }
    }

    /// The smallest read point of any open reader; readers opened later stand at it or above.
    pub fn smallest_read_point(&self) -> u64 {
        let readers = self.readers.lock();
        let newest = self.read_point();
        readers.first_key_value().map_or(newest, |(point, _)| newest.min(*point))
    }
}

/// A registered reader's read point.
#[derive(Debug)]
pub struct ReadPoint {
    mvcc: Arc<Mvcc>,
    point: u64,
}

impl ReadPoint {
    /// The newest id it may see.
    pub fn get(&self) -> u64 {
        self.point
    }
}

impl Drop for ReadPoint {
    fn drop(&mut self) {
        let mut readers = self.mvcc.readers.lock();
        if let Some(count) = readers.get_mut(&self.point) {
            *count -= 1;
            if *count == 0 {
                readers.remove(&self.point);
            }
        }
    }
}

/// A sequence id that the log has given out and that is not complete yet. Dropped on an error path, it completes without cells, so a
/// failed write never holds back the ones behind it.
pub struct WriteEntry<'a> {
    mvcc: &'a Mvcc,
    id: u64,
    done: bool,
}

impl<'a> WriteEntry<'a> {
    /// Takes charge of `id`.
    pub fn new(mvcc: &'a Mvcc, id: u64) -> WriteEntry<'a> {
        WriteEntry { mvcc, id, done: false }
    }

    /// The cells are in the memstores: completes the id; [`Mvcc::wait_for`] it when the row locks are free.
    pub fn complete(mut self) -> u64 {
        self.done = true;
        self.mvcc.complete(self.id);
        self.id
    }
}

impl Drop for WriteEntry<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.mvcc.complete(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_read_point_never_passes_a_gap() {
        let mvcc = Mvcc::new(10);
        mvcc.complete(12);
        mvcc.complete(13);
        assert_eq!(mvcc.read_point(), 10);
        let failed = WriteEntry::new(&mvcc, 11);
        drop(failed);
        assert_eq!(mvcc.read_point(), 13);
        assert_eq!(WriteEntry::new(&mvcc, 14).complete(), 14);
        assert_eq!(mvcc.read_point(), 14);
    }

    #[test]
    fn open_readers_hold_the_smallest_read_point() {
        let mvcc = Arc::new(Mvcc::new(0));
        mvcc.complete(1);
        let old = mvcc.open_reader();
        let twin = mvcc.open_reader();
        mvcc.complete(2);
        assert_eq!((old.get(), mvcc.read_point(), mvcc.smallest_read_point()), (1, 2, 1));
        drop(old);
        assert_eq!(mvcc.smallest_read_point(), 1);
        drop(twin);
        assert_eq!(mvcc.smallest_read_point(), 2);
    }

    #[test]
    fn a_writer_waits_until_older_ones_are_complete() {
        let mvcc = Arc::new(Mvcc::new(0));
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                mvcc.complete(2);
                mvcc.wait_for(2);
                mvcc.read_point()
            });
            mvcc.complete(1);
            assert!(waiter.join().unwrap() >= 2);
        });
    }
}
