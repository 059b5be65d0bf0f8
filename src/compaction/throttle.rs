//! A token bucket over the bytes that compactions write, paced by the clock's monotonic time.

use crate::clock::Clock;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// Spreads compaction writes so that flushes and readers keep their share of the disk (HBase `PressureAwareCompactionThroughputController`).
///
/// It only computes pauses; who waits, and on what, is the worker's business, so that a simulated run never waits.
pub struct Throttle {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    bytes_per_second: u64,
    /// Moment up to which the bytes written so far are paid for.
    paid_until: Duration,
}

/// How far the bucket may run ahead: writes after an idle time are not held back for this long.
const BURST: Duration = Duration::from_millis(100);

impl Throttle {
    /// A throttle at `bytes_per_second`; 0 = no limit.
    pub fn new(clock: Arc<dyn Clock>, bytes_per_second: u64) -> Throttle {
        Throttle { clock, state: Mutex::new(State { bytes_per_second, paid_until: Duration::ZERO }) }
    }

    /// Changes the rate; 0 = no limit.
    pub fn set_rate(&self, bytes_per_second: u64) {
        self.state.lock().bytes_per_second = bytes_per_second;
    }

    /// Charges `bytes` just written and returns how long the writer should pause before it goes on. `pressure` is 0 where no store waits
    /// for compactions and 1 where writers are blocked by the number of files: the rate doubles on the way, and at 1 there is no pause.
    pub fn charge(&self, bytes: u64, pressure: f64) -> Duration {
        let mut state = self.state.lock();
        if state.bytes_per_second == 0 || pressure >= 1.0 {
            return Duration::ZERO;
        }
        let now = self.clock.monotonic();
        let rate = state.bytes_per_second as f64 * (1.0 + pressure.max(0.0));
        state.paid_until =
            state.paid_until.max(now.saturating_sub(BURST)) + Duration::from_secs_f64(bytes as f64 / rate);
        state.paid_until.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::ManualClock;

    #[test]
    fn the_rate_is_kept_on_average_and_pressure_lifts_it() {
        let clock = Arc::new(ManualClock::new(1_000_000));
        let throttle = Throttle::new(clock.clone(), 1_000_000);
        assert_eq!(throttle.charge(100_000, 0.0), Duration::ZERO);
        assert_eq!(throttle.charge(500_000, 0.0), Duration::from_millis(500));
        clock.add(500);
        assert_eq!(throttle.charge(1_000_000, 1.0), Duration::ZERO);
        assert_eq!(throttle.charge(300_000, 0.5), Duration::from_millis(200));
        throttle.set_rate(0);
        assert_eq!(throttle.charge(1 << 40, 0.0), Duration::ZERO);
    }
}
