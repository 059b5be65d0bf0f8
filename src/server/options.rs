//! How a store is opened.

use crate::client::TableAttributes;
use crate::region::RegionConfig;
use crate::wal::WalOptions;
use std::time::Duration;

/// Who flushes, compacts and splits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BackgroundMode {
    /// Threads of the store.
    #[default]
    Threads,
    /// Nobody but [`super::Store::run_pending_work`]: a simulated run replays from its seed.
    Manual,
}

/// Options of a store; sizes in bytes.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Opens an existing store for reading; nothing is written, the log is replayed in memory.
    pub read_only: bool,
    /// Numbers of regions and compactions.
    pub region: RegionConfig,
    /// Memory of all memstores together (memstore.size).
    pub memstore_bytes: u64,
    /// Memory of the block cache (cache.size).
    pub cache_bytes: u64,
    /// The log's sizes.
    pub wal: WalOptions,
    /// The log is synced at least this often (wal.sync_interval).
    pub sync_interval: Duration,
    /// A region that holds the oldest part of a log of more segments than this is flushed (`hbase.regionserver.maxlogs`).
    pub max_log_segments: usize,
    /// Threads that compact (compaction.threads).
    pub compaction_threads: usize,
    /// Who does background work.
    pub background: BackgroundMode,
    /// Recovers a damaged log up to the damage. Only on the user's explicit wish, for it loses data.
    pub point_in_time_recovery: bool,
    /// Owner and mode of the namespace `default` of a new store.
    pub default_namespace: TableAttributes,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            read_only: false,
            region: RegionConfig::default(),
            memstore_bytes: 256 << 20,
            cache_bytes: 128 << 20,
            wal: WalOptions::default(),
            sync_interval: Duration::from_secs(1),
            // As HBase reckons it: logs for twice what the memstores hold, at least 32.
            max_log_segments: 32,
            compaction_threads: 1,
            background: BackgroundMode::Threads,
            point_in_time_recovery: false,
            default_namespace: TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 },
        }
    }
}
