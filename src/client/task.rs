//! Work that goes on in the background or on behalf of a verb.

use super::admin::TableName;
use bytes::Bytes;

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// Memory is written to store files.
    Flush,
    /// Some store files become one.
    MinorCompaction,
    /// All store files of a store become one.
    MajorCompaction,
}

impl TaskKind {
    /// As shown to people.
    pub fn name(self) -> &'static str {
        match self {
            TaskKind::Flush => "flush",
            TaskKind::MinorCompaction => "compaction",
            TaskKind::MajorCompaction => "major_compaction",
        }
    }
}

/// A task that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningTask {
    /// What it does.
    pub kind: TaskKind,
    /// The table.
    pub table: TableName,
    /// HBase's encoded name of the region.
    pub region: String,
    /// The family; `None` for all.
    pub family: Option<Bytes>,
    /// Milliseconds since it began.
    pub millis: u64,
    /// Bytes done, as cells in memory.
    pub done: u64,
    /// Bytes to do at most, of the same kind.
    pub total: u64,
}
