//! Cells that somebody wants to write into while others read them.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long readers keep out of the page cache: the kernel's second look at the name takes microseconds.
const KEPT: Duration = Duration::from_secs(1);

/// Cells whose readers must leave the kernel's page cache alone for a moment, because a writer is about to open them once more: the kernel asks a second
/// time, but not a third.
#[derive(Debug, Default)]
pub struct Contended {
    /// False for sure when there are none.
    any: AtomicBool,
    /// The number that the hash of each gives, and until when.
    cells: Mutex<Vec<(u64, Duration)>>,
}

impl Contended {
    /// A writer of the cell whose hash gives `home` has been sent to look again, at the monotonic time `now`.
    pub fn insert(&self, home: u64, now: Duration) {
        let mut cells = self.cells.lock();
        cells.retain(|(cell, until)| *cell != home && *until > now);
        cells.push((home, now + KEPT));
        self.any.store(true, Ordering::Release);
    }

    /// True if that was a moment ago.
    pub fn contains(&self, home: impl FnOnce() -> u64, now: impl FnOnce() -> Duration) -> bool {
        if !self.any.load(Ordering::Acquire) {
            return false;
        }
        let (home, now) = (home(), now());
        let mut cells = self.cells.lock();
        cells.retain(|(_, until)| *until > now);
        self.any.store(!cells.is_empty(), Ordering::Release);
        cells.iter().any(|(cell, _)| *cell == home)
    }
}
