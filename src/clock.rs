//! Wall-clock time behind a trait, so that a simulated run replays from its seed (architecture.md, invariant 8).

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where the engine gets the time. Nothing else in the engine asks the operating system for it.
pub trait Clock: Send + Sync + 'static {
    /// Milliseconds since the epoch, as HBase stamps cells. May step back.
    fn now_millis(&self) -> i64;

    /// Monotonic time since an arbitrary moment, for measuring durations and pacing.
    fn monotonic(&self) -> Duration;
}

/// The operating system's clock.
#[derive(Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl SystemClock {
    /// A clock whose monotonic time starts now.
    pub fn new() -> SystemClock {
        SystemClock { origin: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now_millis(&self) -> i64 {
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
        }
    }

    fn monotonic(&self) -> Duration {
        self.origin.elapsed()
    }
}

/// A clock that moves only when told to (HBase `ManualEnvironmentEdge`).
#[derive(Debug)]
pub struct ManualClock {
    millis: AtomicI64,
}

impl ManualClock {
    /// A clock that stands at `millis`.
    pub fn new(millis: i64) -> ManualClock {
        ManualClock { millis: AtomicI64::new(millis) }
    }

    /// Sets the time, forward or back.
    pub fn set(&self, millis: i64) {
        self.millis.store(millis, Ordering::SeqCst);
    }

    /// Moves the time by `millis`, which may be negative.
    pub fn add(&self, millis: i64) {
        self.millis.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_millis(&self) -> i64 {
        self.millis.load(Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.millis.load(Ordering::SeqCst).unsigned_abs())
    }
}
