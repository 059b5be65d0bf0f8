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
            throttle_bytes_per_second: 32 << 20,
        }
    }
}

impl CompactionConfig {
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
