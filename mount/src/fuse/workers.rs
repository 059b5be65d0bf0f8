//! Threads for operations that may wait: a verb, a stream, the disk. The threads that read from the kernel never wait themselves, so that a
//! compaction started by one process does not stop `ls` in another.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Threads at most. Each waits for the disk or for a verb; more would not make either faster.
const THREADS_MAX: usize = 64;

/// An idle thread ends after this long.
const IDLE: Duration = Duration::from_secs(10);

/// Work that owns its reply.
pub(super) type Job = Box<dyn FnOnce() + Send>;

/// A bounded set of threads made when there is work for them.
#[derive(Clone)]
pub(super) struct Workers(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    work: Condvar,
    gone: Condvar,
    threads_max: usize,
}

/// Jobs queue only while `threads_max` are busy; the kernel bounds them by the number of processes that wait.
#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
    closing: bool,
}

impl Workers {
    pub(super) fn new() -> Workers {
        Workers::with_threads(THREADS_MAX)
    }

    fn with_threads(threads_max: usize) -> Workers {
        Workers(Arc::new(Shared {
            state: Mutex::new(State::default()),
            work: Condvar::new(),
            gone: Condvar::new(),
            threads_max,
        }))
    }

    /// Runs the job on a worker, soon. Where the system gives no thread at all, it runs here.
    pub(super) fn submit(&self, job: Job) {
        let mut state = self.0.state.lock();
        state.jobs.push_back(job);
        if state.jobs.len() <= state.idle || state.threads >= self.0.threads_max {
            drop(state);
            self.0.work.notify_one();
            return;
        }
        state.threads += 1;
        drop(state);
        let shared = Arc::clone(&self.0);
        if thread::Builder::new().name("cellfs-worker".to_owned()).spawn(move || shared.work()).is_err() {
            let mut state = self.0.state.lock();
            state.threads -= 1;
            let stranded = if state.threads == 0 { state.jobs.pop_front() } else { None };
            drop(state);
            if let Some(job) = stranded {
                run(job);
            }
        }
    }

    /// Finishes all jobs and ends the threads; returns when they are gone.
    pub(super) fn close(&self) {
        let mut state = self.0.state.lock();
        state.closing = true;
        self.0.work.notify_all();
        while state.threads > 0 {
            self.0.gone.wait(&mut state);
        }
    }
}

impl Shared {
    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                run(job);
                state = self.state.lock();
                continue;
            }
            if state.closing {
                break;
            }
            state.idle += 1;
            let timed_out = self.work.wait_for(&mut state, IDLE).timed_out();
            state.idle -= 1;
            if timed_out && state.jobs.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        drop(state);
        self.gone.notify_all();
    }
}

/// A job that panics has dropped its reply, which answers EIO; the thread goes on.
fn run(job: Job) {
    if catch_unwind(AssertUnwindSafe(job)).is_err() {
        log::error!("an operation panicked; it was answered with an I/O error");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    #[test]
    fn a_blocked_job_does_not_hold_up_the_next() {
        let workers = Workers::with_threads(2);
        let (release, blocked) = mpsc::channel::<()>();
        let (done, finished) = mpsc::channel();
        workers.submit(Box::new(move || {
            let _ = blocked.recv();
        }));
        workers.submit(Box::new(move || {
            let _ = done.send(());
        }));
        finished.recv().expect("the second job runs while the first waits");
        drop(release);
        workers.close();
    }

    #[test]
    fn threads_are_bounded_and_every_job_runs_even_after_a_panic() {
        let workers = Workers::with_threads(3);
        let count = Arc::new(AtomicUsize::new(0));
        for number in 0..100 {
            let count = Arc::clone(&count);
            workers.submit(Box::new(move || {
                assert!(number % 10 != 3, "this job panics on purpose");
                count.fetch_add(1, Ordering::SeqCst);
            }));
            assert!(workers.0.state.lock().threads <= 3);
        }
        workers.close();
        assert_eq!(count.load(Ordering::SeqCst), 90);
        assert_eq!(workers.0.state.lock().threads, 0);
    }
}
