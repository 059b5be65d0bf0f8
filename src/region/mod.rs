//! A range of rows: row locks, MVCC, flush, reads.
