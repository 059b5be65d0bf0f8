//! Row locks: one writer per row at a time, whatever it reads first.
//!
//! HBase keeps a lock object per row (`HRegion.getRowLock`). Here rows share a fixed set of locks by hash: nothing is allocated, and a
//! request that locks many rows holds at most that set. Two rows of one lock only wait for each other, which is harmless: a holder waits
//! for nothing but the log. Requests over several rows take their locks in one order, so they cannot wait in a circle.

use parking_lot::{Mutex, MutexGuard};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Number of locks; at 16 writers two meet by chance about once in nine writes of all of them together.
const LOCKS: usize = 1024;

/// One lock on a cache line of its own.
#[repr(align(64))]
struct Stripe(Mutex<()>);

/// The locks of all rows of a store.
pub struct RowLocks {
    stripes: Vec<Stripe>,
}

/// The locks of the rows of one request; dropped, they are free.
pub struct RowLockGuard<'a> {
    _guards: Guards<'a>,
}

enum Guards<'a> {
    One(#[expect(dead_code, reason = "held, not read")] MutexGuard<'a, ()>),
    Many(#[expect(dead_code, reason = "held, not read")] Vec<MutexGuard<'a, ()>>),
}

impl RowLocks {
    /// All free.
    pub fn new() -> RowLocks {
        RowLocks { stripes: (0..LOCKS).map(|_| Stripe(Mutex::new(()))).collect() }
    }

    /// Locks one row of a table.
    pub fn lock(&self, table: u64, row: &[u8]) -> RowLockGuard<'_> {
        RowLockGuard { _guards: Guards::One(self.stripe(slot(table, row)).lock()) }
    }

    /// Locks several rows of a table; each may be named more than once.
    pub fn lock_all<'r>(&self, table: u64, rows: impl Iterator<Item = &'r [u8]>) -> RowLockGuard<'_> {
        let mut slots: Vec<usize> = rows.map(|row| slot(table, row)).collect();
        slots.sort_unstable();
        slots.dedup();
        RowLockGuard { _guards: Guards::Many(slots.into_iter().map(|slot| self.stripe(slot).lock()).collect()) }
    }

    #[expect(clippy::indexing_slicing, reason = "slot() is below LOCKS, the length of stripes")]
    fn stripe(&self, slot: usize) -> &Mutex<()> {
        &self.stripes[slot].0
    }
}

impl Default for RowLocks {
    fn default() -> Self {
        RowLocks::new()
    }
}

fn slot(table: u64, row: &[u8]) -> usize {
    (xxh3_64_with_seed(row, table) % LOCKS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_of_one_row_take_turns_and_circles_are_impossible() {
        let locks = RowLocks::new();
        let counter = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (locks, counter) = (&locks, &counter);
                scope.spawn(move || {
                    let rows: [&[u8]; 3] = if thread % 2 == 0 { [b"a", b"b", b"a"] } else { [b"b", b"a", b"c"] };
                    for _ in 0..500 {
                        let _guard = locks.lock_all(7, rows.iter().copied());
                        let seen = counter.load(std::sync::atomic::Ordering::Relaxed);
                        counter.store(seen + 1, std::sync::atomic::Ordering::Relaxed);
                        drop(_guard);
                        let _one = locks.lock(7, b"a");
                        let seen = counter.load(std::sync::atomic::Ordering::Relaxed);
                        counter.store(seen + 1, std::sync::atomic::Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(counter.into_inner(), 4000);
    }
}
