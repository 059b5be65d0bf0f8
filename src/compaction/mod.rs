//! Which store files to rewrite (a pure function), the rewriting itself, and the brake on it.
//!
//! The policy is HBase's `ExploringCompactionPolicy` under `SortedCompactionPolicy` (hbase.md A10).

mod config;
mod select;
mod throttle;

pub use config::CompactionConfig;
pub use select::{
    CompactionKind, CompactionRequest, Selection, StoreFileFacts, expired_files, needs_compaction, select,
};
pub use throttle::Throttle;
