//! Work on blocks that is begun before its result is needed: a block is compressed while the next one is filled, and decoded while the one before is
//! read.
//!
//! A few threads of the process do it: one fewer than it has CPUs, at most [`THREADS_MAX`]. Whoever needs a result that nobody has begun makes it himself,
//! so nothing waits for a thread that is busy elsewhere, and with one CPU everything happens on the caller's thread. The work is pure, bytes in and bytes
//! out: files are read and written by their owners alone, in an order that no thread's pace decides.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, OnceLock};

/// More threads than this are no help to one writer or scanner.
const THREADS_MAX: usize = 4;

enum State<T> {
    Waiting(Box<dyn FnOnce() -> T + Send>),
    Begun,
    /// A panic is carried to who asks for the result.
    Done(std::thread::Result<T>),
}

struct Task<T> {
    state: Mutex<State<T>>,
    done: Condvar,
}

trait Run: Send + Sync {
    /// Does the work unless somebody has begun it; true if it was done here.
    fn run(&self) -> bool;
}

impl<T> Task<T> {
    fn begin(&self) -> Option<Box<dyn FnOnce() -> T + Send>> {
        let mut state = self.state.lock();
        if !matches!(*state, State::Waiting(_)) {
            return None;
        }
        match std::mem::replace(&mut *state, State::Begun) {
            State::Waiting(work) => Some(work),
            _ => None,
        }
    }
}

impl<T: Send> Run for Task<T> {
    fn run(&self) -> bool {
        let Some(work) = self.begin() else { return false };
        let result = catch_unwind(AssertUnwindSafe(work));
        *self.state.lock() = State::Done(result);
        self.done.notify_one();
        true
    }
}

/// A result that is being made. Dropped, work that nobody has begun is not done.
pub(super) struct Ahead<T> {
    task: Arc<Task<T>>,
}

impl<T: Send + 'static> Ahead<T> {
    /// Lets `work` be done by whoever is free first.
    pub(super) fn begin(work: impl FnOnce() -> T + Send + 'static) -> Ahead<T> {
        let task = Arc::new(Task { state: Mutex::new(State::Waiting(Box::new(work))), done: Condvar::new() });
        if let Some(threads) = threads() {
            threads.push(Arc::clone(&task) as Arc<dyn Run>);
        }
        Ahead { task }
    }

    /// A result that is there already.
    pub(super) fn have(result: T) -> Ahead<T> {
        Ahead { task: Arc::new(Task { state: Mutex::new(State::Done(Ok(result))), done: Condvar::new() }) }
    }

    /// Does the work here unless somebody has begun it; true if it was done here.
    fn help(&self) -> bool {
        self.task.run()
    }

    fn is_done(&self) -> bool {
        matches!(*self.task.state.lock(), State::Done(_))
    }

    /// The result. While another thread is still at it, something of `rest`, which will be needed next, is done here.
    pub(super) fn result<'a>(self, rest: impl Iterator<Item = &'a Ahead<T>>) -> T {
        self.help();
        for next in rest {
            if self.is_done() {
                break;
            }
            next.help();
        }
        let mut state = self.task.state.lock();
        loop {
            match std::mem::replace(&mut *state, State::Begun) {
                State::Done(Ok(result)) => return result,
                State::Done(Err(panic)) => resume_unwind(panic),
                unfinished => *state = unfinished,
            }
            self.task.done.wait(&mut state);
        }
    }
}

impl<T> Drop for Ahead<T> {
    fn drop(&mut self) {
        self.task.begin();
    }
}

/// The threads and what they are to do.
struct Threads {
    queue: Mutex<Queue>,
    pushed: Condvar,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Arc<dyn Run>>,
    idle: usize,
}

impl Threads {
    fn push(&self, task: Arc<dyn Run>) {
        let mut queue = self.queue.lock();
        queue.tasks.push_back(task);
        if queue.idle > 0 {
            self.pushed.notify_one();
        }
    }

    fn work(&self) {
        let mut queue = self.queue.lock();
        loop {
            while let Some(task) = queue.tasks.pop_front() {
                drop(queue);
                task.run();
                drop(task);
                queue = self.queue.lock();
            }
            queue.idle += 1;
            self.pushed.wait(&mut queue);
            queue.idle -= 1;
        }
    }
}

/// Started with the first task; `None` where there is one CPU, or no thread can be had.
fn threads() -> Option<&'static Threads> {
    static THREADS: OnceLock<Option<&'static Threads>> = OnceLock::new();
    *THREADS.get_or_init(|| {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let threads: &'static Threads =
            Box::leak(Box::new(Threads { queue: Mutex::default(), pushed: Condvar::new() }));
        let started = (1..cpus.min(THREADS_MAX + 1)).filter(|number| {
            let thread = std::thread::Builder::new().name(format!("cellfs-block-{number}"));
            thread.spawn(|| threads.work()).is_ok()
        });
        (started.count() > 0).then_some(threads)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_in_which_they_are_asked_for() {
        let mut tasks: VecDeque<_> = (0..200u64).map(|n| Ahead::begin(move || (0..n * 50).sum::<u64>())).collect();
        let mut n = 0;
        while let Some(task) = tasks.pop_front() {
            assert_eq!(task.result(tasks.iter()), (0..n * 50).sum::<u64>());
            n += 1;
        }
    }

    #[test]
    fn a_panic_reaches_who_asks() {
        let task = Ahead::begin(|| assert_eq!(1, 2, "a bug in a decoder"));
        assert!(catch_unwind(AssertUnwindSafe(|| task.result(std::iter::empty()))).is_err());
        // The threads have survived it.
        assert_eq!(Ahead::begin(|| 7).result(std::iter::empty()), 7);
    }

    #[test]
    fn work_that_nobody_needs_is_let_go() {
        let held = Arc::new(());
        let tasks: Vec<_> = (0..50)
            .map(|_| {
                Ahead::begin({
                    let held = Arc::clone(&held);
                    move || drop(held)
                })
            })
            .collect();
        // What a thread has begun is finished by it; what none has, dropping takes back.
        let last = Ahead::begin(|| ());
        drop(tasks);
        last.result(std::iter::empty());
        while Arc::strong_count(&held) > 1 {
            std::thread::yield_now();
        }
    }
}
