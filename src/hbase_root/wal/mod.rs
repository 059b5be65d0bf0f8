//! HBase's write-ahead log: what a root directory holds that no store file has (HBase `AbstractProtobufWALReader`, `WALCellCodec`,
//! `WALKeyImpl`; docs/hbase.md). Nothing in a log is trusted: a length is held against the file, a cell is checked, and what cannot be read is
//! told with its place.

mod cells;
mod dictionary;
mod input;
mod reader;
#[cfg(test)]
mod tests;

pub(super) use reader::{LogEnd, LogEntry, WalReader};

/// The family of entries that are no data but marks of what happened to a region (HBase `WALEdit.METAFAMILY`).
pub(super) const META_FAMILY: &[u8] = b"METAFAMILY";
/// The qualifier of the mark of a finished compaction (HBase `WALEdit.COMPACTION`).
pub(super) const COMPACTION_MARK: &[u8] = b"HBASE::COMPACTION";
