//! The numbers of the compaction policy, under HBase's defaults.

/// HBase `CompactionConfiguration`; sizes in bytes, times in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionConfig {
    /// Fewest files of a minor compaction (`hbase.hstore.compaction.min`).
    pub min_files: usize,
    /// Most files of a minor compaction (`hbase.hstore.compaction.max`).
    pub max_files: usize,
    /// A file is taken only if it is at most this times the sum of the others (`hbase.hstore.compaction.ratio`).
    pub ratio: f64,
    /// A selection smaller than this together need not keep the ratio (`hbase.hstore.compaction.min.size`, the flush size).
    pub min_size: u64,
    /// Files over this are left out of minor compactions (`hbase.hstore.compaction.max.size`).
    pub max_size: u64,
    /// From this many files on the store counts as stuck and the policy takes what it can (`hbase.hstore.blockingStoreFiles`).
    pub blocking_files: usize,
    /// How old the oldest file may become before all are rewritten (`hbase.hregion.majorcompaction`); 0 = never.
    pub major_period_millis: i64,
    /// The share of the period by which stores differ, so that they do not all start at once (`hbase.hregion.majorcompaction.jitter`).
    pub major_jitter: f64,
    /// The hours of the day (UTC, first inclusive, last exclusive, also over midnight) in which scheduled major compactions begin; `None` = any.
    pub major_hours: Option<(u8, u8)>,
    /// Bytes per second that compactions write while no store is under pressure; 0 = no limit
    /// (`hbase.hstore.compaction.throughput.lower.bound`, 50 MB there: our machines have fewer cores).
    pub throttle_bytes_per_second: u64,
}

impl Default for CompactionConfig {
    fn default() -> Self {
        CompactionConfig {
            min_files: 3,
            max_files: 10,
            ratio: 1.2,
            min_size: 128 << 20,
            max_size: u64::MAX,
            blocking_files: 16,
            major_period_millis: 7 * 24 * 3600 * 1000,
            major_jitter: 0.5,
            major_hours: None,
            throttle_bytes_per_second: 32 << 20,
        }
    }
}

impl CompactionConfig {
    /// True if a scheduled major compaction may begin now.
    pub fn is_major_hour(&self, now_millis: i64) -> bool {
        let hour = now_millis.div_euclid(3_600_000).rem_euclid(24);
        self.major_hours.is_none_or(|(from, to)| {
            let (from, to) = (i64::from(from), i64::from(to));
            if from <= to { (from..to).contains(&hour) } else { hour >= from || hour < to }
        })
    }

    /// The period of scheduled major compactions of the store whose oldest file is `seed`: the same for the same file, spread over
    /// period +- period * jitter. `None`: never.
    pub fn jittered_major_period(&self, seed: u64) -> Option<i64> {
        if self.major_period_millis <= 0 {
            return None;
        }
        // SplitMix64's finaliser spreads neighbouring file ids over the whole range.
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        let unit = (mixed >> 11) as f64 / (1u64 << 53) as f64;
        let period = self.major_period_millis as f64;
        Some((period + period * self.major_jitter * (2.0 * unit - 1.0)) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_may_go_over_midnight() {
        let at = |hours, hour: i64| {
            let config = CompactionConfig { major_hours: hours, ..CompactionConfig::default() };
            config.is_major_hour(1_764_460_800_000 + hour * 3_600_000)
        };
        assert!(at(None, 0) && at(None, 23));
        assert!(at(Some((2, 6)), 2) && at(Some((2, 6)), 5) && !at(Some((2, 6)), 6) && !at(Some((2, 6)), 1));
        assert!(at(Some((22, 4)), 23) && at(Some((22, 4)), 3) && !at(Some((22, 4)), 4) && !at(Some((22, 4)), 21));
        assert!(at(Some((20, 24)), 23) && !at(Some((20, 24)), 0));
    }
}
