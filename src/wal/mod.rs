//! The write-ahead log: framing, group commit, segments, recovery.
