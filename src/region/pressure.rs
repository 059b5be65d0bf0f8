//! Memory of all memstores, and how writers slow down as it fills (HBase `RegionServerAccounting`, `MemStoreFlusher.reclaimMemStoreMemory`).
//!
//! HBase stops writers at a limit. Here every byte written pays a delay that grows with pressure from half of the limit on, so that
//! flushes catch up before the limit is met; at the limit writers wait for memory, for a bounded time (architecture.md, invariant 10).

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// Below this share of the limit nobody is slowed.
const FREE_SHARE: f64 = 0.5;
/// Bytes per second that writers are held to at three quarters of the limit.
const PACE: f64 = 64.0 * 1024.0 * 1024.0;
/// Delays shorter than this are saved up: a pause of the thread costs more.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// One write is never delayed longer by pace alone.
const LONGEST_PAUSE: Duration = Duration::from_millis(5);

/// The bytes of all memstores against their limit.
#[derive(Debug)]
pub struct MemoryPressure {
    bytes: AtomicI64,
    limit: AtomicU64,
    /// Nanoseconds of delay that writers owe.
    debt_nanos: AtomicU64,
    stalled_nanos: AtomicU64,
    slowing: AtomicBool,
    freed: Condvar,
    waiting: Mutex<()>,
}

impl MemoryPressure {
    /// No bytes, against `limit`.
    pub fn new(limit: u64) -> MemoryPressure {
        MemoryPressure {
            bytes: AtomicI64::new(0),
            limit: AtomicU64::new(limit.max(1)),
            debt_nanos: AtomicU64::new(0),
            stalled_nanos: AtomicU64::new(0),
            slowing: AtomicBool::new(false),
            freed: Condvar::new(),
            waiting: Mutex::new(()),
        }
    }

    /// Bytes of all memstores.
    pub fn bytes(&self) -> u64 {
        u64::try_from(self.bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// The limit (memstore.size).
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes the limit.
    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit.max(1), Ordering::Relaxed);
    }

    /// Memory above which flushes begin although no region has reached its own size: early enough that a flush ends before writers feel it.
    pub fn flush_mark(&self) -> u64 {
        self.limit() / 8 * 3
    }

    /// Accounts for memory taken (positive) or freed.
    pub fn add(&self, bytes: i64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if bytes < 0 {
            // The next write looks anew; without one nobody is slowed.
            self.note_slowing(false);
            drop(self.waiting.lock());
            self.freed.notify_all();
        }
    }

    /// The share of the limit that is in use.
    pub fn pressure(&self) -> f64 {
        self.bytes() as f64 / self.limit() as f64
    }

    /// Milliseconds that writers have been held back.
    pub fn stalled_millis(&self) -> u64 {
        self.stalled_nanos.load(Ordering::Relaxed) / 1_000_000
    }

    /// True while the writes of late were slowed down, so that the next one may have to wait.
    pub fn slows_writers(&self) -> bool {
        self.slowing.load(Ordering::Relaxed)
    }

    /// Remembers whether a write met pressure; the line is written only when that changes.
    pub fn note_slowing(&self, slowing: bool) {
        if self.slows_writers() != slowing {
            self.slowing.store(slowing, Ordering::Relaxed);
        }
    }

    /// Remembers time that a writer waited.
    pub fn note_stall(&self, waited: Duration) {
        self.stalled_nanos.fetch_add(waited.as_nanos() as u64, Ordering::Relaxed);
    }

    /// The pause that a write of `bytes` should make at `pressure` (of memory or store files, whichever is higher); mostly none.
    pub fn pause_for(&self, bytes: u64, pressure: f64) -> Duration {
        if pressure <= FREE_SHARE {
            return Duration::ZERO;
        }
        // At 0.5 no delay, at 0.75 one byte takes 1 / PACE, towards 1 without bound.
        let share = (pressure - FREE_SHARE) / (1.0 - pressure).max(0.001);
        let nanos = (bytes as f64 * share / PACE * 1e9) as u64;
        let owed = self.debt_nanos.fetch_add(nanos, Ordering::Relaxed) + nanos;
        if Duration::from_nanos(owed) < SHORTEST_PAUSE {
            return Duration::ZERO;
        }
        self.debt_nanos.store(0, Ordering::Relaxed);
        Duration::from_nanos(owed).min(LONGEST_PAUSE)
    }

    /// Waits until memory is freed, or for `timeout`.
    pub fn wait_freed(&self, timeout: Duration) {
        let mut waiting = self.waiting.lock();
        let _ = self.freed.wait_for(&mut waiting, timeout);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_begin_at_half_and_grow_with_pressure() {
        let memory = MemoryPressure::new(1000);
        memory.add(500);
        assert_eq!(memory.pressure(), 0.5);
        assert_eq!(memory.pause_for(1 << 30, memory.pressure()), Duration::ZERO);
        let pauses: Vec<Duration> = [0.6, 0.75, 0.9].iter().map(|p| memory.pause_for(128 << 10, *p)).collect();
        // 128 KB at 64 MB/s are 2 ms; what is under a millisecond is owed, nothing is over 5 ms.
        assert_eq!(pauses[0], Duration::ZERO);
        assert!(pauses[1] >= Duration::from_millis(2) && pauses[1] < Duration::from_millis(3), "{pauses:?}");
        assert_eq!(pauses[2], Duration::from_millis(5));
        memory.add(-600);
        assert_eq!(memory.bytes(), 0);
    }

    #[test]
    fn freed_memory_ends_the_slowing_without_another_write() {
        let memory = MemoryPressure::new(10);
        memory.add(8);
        memory.note_slowing(true);
        assert!(memory.slows_writers());
        memory.add(-8);
        assert!(!memory.slows_writers());
    }

    #[test]
    fn freed_memory_wakes_a_waiting_writer() {
        let memory = MemoryPressure::new(10);
        memory.add(20);
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                while memory.pressure() >= 1.0 {
                    memory.wait_freed(Duration::from_secs(5));
                }
            });
            memory.add(-15);
            waiter.join().unwrap();
        });
    }
}
