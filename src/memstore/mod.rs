//! Cells not yet flushed: active and snapshot segments (HBase `DefaultMemStore`, `CellSet`, `SegmentScanner`).
//!
//! A [`Segment`] is a sorted set of cells behind a read-write lock. Writers come one at a time (the log orders them), point reads hold the
//! lock for one descent, scanners copy small batches and hold nothing in between. Cells share the bytes they were encoded into, so
//! a batch is reference counts, not copies.
//!
//! A flush turns the active segment into the snapshot, writes that to a store file and drops it; readers see both meanwhile.

mod row_filter;
mod segment;
mod segment_scanner;
#[cfg(test)]
mod tests;
mod tree;

pub use segment::{NewestCell, Segment};
pub use segment_scanner::SegmentScanner;

use crate::cell::{Cell, compare};
use parking_lot::RwLock;
use std::cmp::Ordering;
use std::sync::Arc;

/// The memstore of one family of one region.
#[derive(Debug, Default)]
pub struct MemStore {
    segments: RwLock<Segments>,
}

#[derive(Debug, Default)]
struct Segments {
    active: Arc<Segment>,
    snapshot: Option<Arc<Segment>>,
}

impl MemStore {
    /// An empty memstore.
    pub fn new() -> MemStore {
        MemStore::default()
    }

    /// Adds cells, each under the sequence id it carries. A cell equal in everything, sequence id included, replaces the one before it:
    /// the later of two puts of one column in one batch wins. Returns by how many bytes of heap the memstore grew.
    ///
    /// The outer lock is held while the segment takes the cells, so a snapshot never misses part of a batch.
    pub fn insert(&self, cells: impl IntoIterator<Item = Cell>) -> i64 {
        self.segments.read().active.insert(cells)
    }

    /// Closes the active segment and makes it the snapshot, to be flushed. While a snapshot exists (an earlier flush failed) it is returned
    /// again and the active segment stays open.
    pub fn snapshot(&self) -> Arc<Segment> {
        let mut segments = self.segments.write();
        if let Some(snapshot) = &segments.snapshot {
            return Arc::clone(snapshot);
        }
        let next = Arc::new(Segment::after(&segments.active));
        let snapshot = std::mem::replace(&mut segments.active, next);
        segments.snapshot = Some(Arc::clone(&snapshot));
        snapshot
    }

    /// Drops the snapshot, whose cells are in a store file now. Open scanners keep what they hold.
    pub fn clear_snapshot(&self) {
        self.segments.write().snapshot = None;
    }

    /// The segments, newest first.
    pub fn segments(&self) -> Vec<Arc<Segment>> {
        let segments = self.segments.read();
        std::iter::once(&segments.active).chain(&segments.snapshot).map(Arc::clone).collect()
    }

    /// One scanner per segment that is not empty, newest first.
    pub fn scanners(&self, read_point: u64) -> Vec<SegmentScanner> {
        self.segments().into_iter().filter(|segment| !segment.is_empty()).map(|s| s.scanner(read_point)).collect()
    }

    /// The first cell of a column that a reader at `read_point` sees, over all segments.
    pub fn newest_of_column(&self, family: &[u8], row: &[u8], qualifier: &[u8], read_point: u64) -> NewestCell {
        let segments = self.segments.read();
        let mut newest = NewestCell::Nothing;
        for segment in std::iter::once(&segments.active).chain(&segments.snapshot) {
            match (segment.newest_of_column(family, row, qualifier, read_point), &newest) {
                (NewestCell::Undecided, _) => return NewestCell::Undecided,
                (NewestCell::Nothing, _) => {}
                (NewestCell::Cell(cell), NewestCell::Cell(other)) if compare(other, &cell) == Ordering::Less => {}
                (found, _) => newest = found,
            }
        }
        newest
    }

    /// False if no segment has a cell of `row`; true may be wrong, rarely.
    pub fn may_contain_row(&self, row: &[u8]) -> bool {
        let segments = self.segments.read();
        segments.active.may_contain_row(row) || segments.snapshot.as_ref().is_some_and(|s| s.may_contain_row(row))
    }

    /// Bytes of heap of all segments.
    pub fn heap_bytes(&self) -> u64 {
        self.segments().iter().map(|segment| segment.heap_bytes()).sum()
    }

    /// Bytes of heap of the active segment: what the next flush would free.
    pub fn active_heap_bytes(&self) -> u64 {
        self.segments.read().active.heap_bytes()
    }

    /// Number of cells.
    pub fn len(&self) -> u64 {
        self.segments().iter().map(|segment| segment.len()).sum()
    }

    /// True without cells.
    pub fn is_empty(&self) -> bool {
        self.segments().iter().all(|segment| segment.is_empty())
    }
}
