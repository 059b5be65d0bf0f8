//! What the kernel must forget, on its way from the file system to the kernel.
//!
//! The mount is the store's only writer, so names and attributes live in the kernel without end; what changes behind its back (a verb, an
//! import, a cell written through another name) goes through an [`InvalidationQueue`]. The file system sends and never waits. The
//! adapter attaches the kernel at one end. Two rules come from the kernel:
//!
//! - Forgetting a name or pages takes locks that the process whose request is being served may hold, so it happens on a thread of its own, never
//!   in a handler (fuse.md section 2, Caches). Handlers of long operations may wait for it, within bounds: [`InvalidationQueue::wait_until_delivered`].
//! - Forgetting only attributes takes no such lock, so it happens at once, inside [`InvalidationQueue::send`]: whoever sees the reply sees
//!   fresh attributes.

use crate::ops::Invalidation;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How one invalidation reaches the kernel. Called from any thread, never with a lock of the queue held.
pub type Deliver = Box<dyn Fn(&Invalidation) + Send + Sync>;

/// Invalidations in the order they were sent; without a kernel attached they vanish.
#[derive(Default)]
pub struct InvalidationQueue {
    deliver: OnceLock<Deliver>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Invalidation>,
    /// Invalidations ever queued.
    queued: u64,
    /// Of these, how many the kernel has.
    delivered: u64,
    closed: bool,
}

impl InvalidationQueue {
    /// An empty queue with nobody at its other end.
    pub fn new() -> Arc<InvalidationQueue> {
        Arc::new(InvalidationQueue::default())
    }

    /// Tells the kernel to forget. Returns at once.
    pub fn send(&self, invalidation: Invalidation) {
        let Some(deliver) = self.deliver.get() else { return };
        if let Invalidation::Inode { attributes_only: true, .. } = invalidation {
            deliver(&invalidation);
            return;
        }
        let mut state = self.state.lock();
        if state.closed || state.waiting.back() == Some(&invalidation) {
            return;
        }
        state.waiting.push_back(invalidation);
        state.queued += 1;
        drop(state);
        self.changed.notify_all();
    }

    /// Attaches the kernel; the first to attach stays.
    pub fn attach(&self, deliver: Deliver) {
        let _ = self.deliver.set(deliver);
    }

    /// Waits until everything sent before the call has reached the kernel, at most `patience`: a handler that waits here may be what the
    /// kernel itself is waiting for.
    pub fn wait_until_delivered(&self, patience: Duration) {
        let mut state = self.state.lock();
        let goal = state.queued;
        self.changed.wait_while_for(&mut state, |state| state.delivered < goal && !state.closed, patience);
    }

    /// Delivers until [`InvalidationQueue::close`]: the body of the notifying thread.
    pub fn run(&self) {
        let Some(deliver) = self.deliver.get() else { return };
        let mut state = self.state.lock();
        while !state.closed {
            match state.waiting.pop_front() {
                None => self.changed.wait(&mut state),
                Some(invalidation) => {
                    drop(state);
                    deliver(&invalidation);
                    state = self.state.lock();
                    state.delivered += 1;
                    self.changed.notify_all();
                }
            }
        }
    }

    /// Ends [`InvalidationQueue::run`]: the mount is gone, nothing is worth telling any more.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.waiting.clear();
        drop(state);
        self.changed.notify_all();
    }
}

impl fmt::Debug for InvalidationQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("InvalidationQueue").field("queued", &state.queued).field("delivered", &state.delivered).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::thread;

    fn name(parent: u64) -> Invalidation {
        Invalidation::Name { parent, name: Bytes::from_static(b"n") }
    }

    fn recording() -> (Arc<InvalidationQueue>, Arc<Mutex<Vec<Invalidation>>>) {
        let queue = InvalidationQueue::new();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let record = Arc::clone(&seen);
        queue.attach(Box::new(move |invalidation| record.lock().push(invalidation.clone())));
        (queue, seen)
    }

    #[test]
    fn nothing_is_kept_while_nobody_listens() {
        let queue = InvalidationQueue::new();
        queue.send(name(1));
        assert_eq!(queue.state.lock().queued, 0);
        queue.wait_until_delivered(Duration::from_secs(60));
    }

    #[test]
    fn attributes_are_forgotten_before_send_returns() {
        let (queue, seen) = recording();
        let attributes = Invalidation::Inode { inode: 7, attributes_only: true };
        queue.send(attributes.clone());
        assert_eq!(*seen.lock(), vec![attributes]);
    }

    #[test]
    fn names_wait_for_the_thread_and_keep_their_order() {
        let (queue, seen) = recording();
        for parent in [1, 2, 2, 3] {
            queue.send(name(parent));
        }
        assert!(seen.lock().is_empty());
        let runner = Arc::clone(&queue);
        let thread = thread::spawn(move || runner.run());
        queue.wait_until_delivered(Duration::from_secs(60));
        assert_eq!(*seen.lock(), vec![name(1), name(2), name(3)]);
        queue.close();
        thread.join().expect("the notifier ends");
        queue.send(name(4));
        queue.wait_until_delivered(Duration::from_secs(60));
        assert_eq!(seen.lock().len(), 3);
    }
}
