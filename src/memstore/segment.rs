//! One sorted set of cells.

use super::row_filter::RowFilter;
use super::segment_scanner::SegmentScanner;
use super::tree::{CellTree, PrefixRule};
use crate::cell::{Cell, CellType, compare_rows_and_columns};
use crate::client::TimeRange;
use parking_lot::RwLock;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering as Memory};

/// Heap of a cell beside its encoded bytes: the cell's struct and prefix in a leaf two thirds full.
const CELL_OVERHEAD: u64 = (56 + 8) * 3 / 2;

/// The first cell of a column in the order of cells: the newest, and of one timestamp the marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewestCell {
    /// This one.
    Cell(Cell),
    /// None is there.
    Nothing,
    /// There are markers of families, which stand elsewhere.
    Undecided,
}

/// A sorted set of cells that only grows.
#[derive(Debug)]
pub struct Segment {
    tree: RwLock<CellTree>,
    rows: RowFilter,
    bytes: AtomicU64,
    cells: AtomicU64,
    deletes: AtomicU64,
    family_markers: AtomicBool,
    tags: AtomicBool,
    min_timestamp: AtomicI64,
    max_timestamp: AtomicI64,
    min_sequence_id: AtomicU64,
    max_sequence_id: AtomicU64,
}

impl Default for Segment {
    fn default() -> Self {
        Segment::new()
    }
}

impl Segment {
    /// An empty segment.
    pub fn new() -> Segment {
        Segment::with_rule(PrefixRule::default())
    }

    fn with_rule(rule: PrefixRule) -> Segment {
        Segment {
            tree: RwLock::new(CellTree::new(rule)),
            rows: RowFilter::default(),
            bytes: AtomicU64::new(0),
            cells: AtomicU64::new(0),
            deletes: AtomicU64::new(0),
            family_markers: AtomicBool::new(false),
            tags: AtomicBool::new(false),
            min_timestamp: AtomicI64::new(i64::MAX),
            max_timestamp: AtomicI64::new(i64::MIN),
            min_sequence_id: AtomicU64::new(u64::MAX),
            max_sequence_id: AtomicU64::new(0),
        }
    }

    /// An empty segment that expects rows like those of `before`.
    pub(super) fn after(before: &Segment) -> Segment {
        Segment::with_rule(before.tree.read().rule().clone())
    }

    /// Adds cells and returns by how many bytes of heap the segment grew; see [`super::MemStore::insert`].
    pub fn insert(&self, cells: impl IntoIterator<Item = Cell>) -> i64 {
        let mut tree = self.tree.write();
        let mut grown = 0i64;
        for cell in cells {
            self.note(&cell);
            let added = (cell.encoded().len() as u64 + CELL_OVERHEAD) as i64;
            match tree.insert(cell) {
                Some(old) => grown += added - (old.encoded().len() as u64 + CELL_OVERHEAD) as i64,
                None => {
                    grown += added;
                    self.cells.fetch_add(1, Memory::Relaxed);
                }
            }
        }
        self.bytes.fetch_add(grown as u64, Memory::Relaxed);
        grown
    }

    /// A scanner that sees the cells with sequence ids up to `read_point`; it stands nowhere.
    pub fn scanner(self: &Arc<Self>, read_point: u64) -> SegmentScanner {
        SegmentScanner::new(Arc::clone(self), read_point)
    }

    /// False if the segment has no cell of `row`; true may be wrong, rarely.
    pub fn may_contain_row(&self, row: &[u8]) -> bool {
        self.rows.may_contain(row)
    }

    /// False if no cell of the segment can matter to a read of `range` in a family whose oldest living timestamp is `oldest_unexpired`
    /// (HBase `Segment.shouldSeek`).
    pub fn may_matter(&self, range: TimeRange, oldest_unexpired: i64) -> bool {
        let (min, max) = (self.min_timestamp.load(Memory::Relaxed), self.max_timestamp.load(Memory::Relaxed));
        min <= max && max >= oldest_unexpired && max >= range.min() && (range.max() == i64::MAX || min < range.max())
    }

    /// The first cell of a column with a sequence id up to `read_point`.
    pub fn newest_of_column(&self, family: &[u8], row: &[u8], qualifier: &[u8], read_point: u64) -> NewestCell {
        if !self.may_contain_row(row) {
            return NewestCell::Nothing;
        }
        if self.may_contain_family_marker() {
            return NewestCell::Undecided;
        }
        let key = Cell::first_on_column(row, family, qualifier);
        let tree = self.tree.read();
        let mut position = tree.lower_bound(&key, true);
        while let Some(cell) = position.and_then(|position| tree.get(position))
            && compare_rows_and_columns(cell, &key) == Ordering::Equal
        {
            if cell.sequence_id() <= read_point {
                return NewestCell::Cell(cell.clone());
            }
            position = position.and_then(|position| tree.next(position));
        }
        NewestCell::Nothing
    }

    /// Bytes of heap.
    pub fn heap_bytes(&self) -> u64 {
        self.bytes.load(Memory::Relaxed) + self.rows.heap_bytes()
    }

    /// Number of cells.
    pub fn len(&self) -> u64 {
        self.cells.load(Memory::Relaxed)
    }

    /// True without cells.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of delete markers that were inserted.
    pub fn deletes(&self) -> u64 {
        self.deletes.load(Memory::Relaxed)
    }

    /// False if no DeleteFamily or DeleteFamilyVersion marker was ever inserted: a column's reader may then skip the row's start.
    pub fn may_contain_family_marker(&self) -> bool {
        self.family_markers.load(Memory::Relaxed)
    }

    /// True if any cell has tags: a store file then needs room for them.
    pub fn has_tags(&self) -> bool {
        self.tags.load(Memory::Relaxed)
    }

    /// The smallest and largest timestamp that the segment concerns, both inclusive; `None` without cells. A DeleteColumn or DeleteFamily
    /// marker concerns every timestamp down to 0 (HBase `TimeRangeTracker.includeTimestamp`).
    pub fn timestamps(&self) -> Option<(i64, i64)> {
        let (min, max) = (self.min_timestamp.load(Memory::Relaxed), self.max_timestamp.load(Memory::Relaxed));
        (min <= max).then_some((min, max))
    }

    /// The smallest and largest sequence id; `None` without cells.
    pub fn sequence_ids(&self) -> Option<(u64, u64)> {
        let (min, max) = (self.min_sequence_id.load(Memory::Relaxed), self.max_sequence_id.load(Memory::Relaxed));
        (min <= max).then_some((min, max))
    }

    /// Copies visible cells that follow `after` into `batch`, at most `wanted`, and returns where the walk ended: `None` at the end of the
    /// segment. Looks at a bounded number of cells, so the batch may be short, even empty.
    pub(super) fn copy_batch(
        &self,
        after: Bound<&Cell>,
        wanted: usize,
        read_point: u64,
        batch: &mut Vec<Cell>,
    ) -> Option<Cell> {
        const VISITS: usize = 1024;
        let tree = self.tree.read();
        let mut position = match after {
            Bound::Unbounded => tree.first(),
            Bound::Included(key) => tree.lower_bound(key, true),
            Bound::Excluded(key) => tree.lower_bound(key, false),
        };
        let mut visits = 0;
        while let Some(cell) = position.and_then(|position| tree.get(position)) {
            if cell.sequence_id() <= read_point {
                batch.push(cell.clone());
            }
            visits += 1;
            if batch.len() >= wanted || visits >= VISITS {
                return Some(cell.clone());
            }
            position = position.and_then(|position| tree.next(position));
        }
        None
    }

    /// The last cell before `row`'s first, visible or not; the last of all for `None`.
    pub(super) fn last_before_row(&self, row: Option<&[u8]>) -> Option<Cell> {
        let tree = self.tree.read();
        let position = match row.and_then(|row| tree.lower_bound(&Cell::first_on_row(row), true)) {
            Some(position) => tree.previous(position),
            None => tree.last(),
        };
        tree.get(position?).cloned()
    }

    fn note(&self, cell: &Cell) {
        self.rows.add(cell.row());
        let timestamp = cell.timestamp();
        let oldest = match cell.cell_type() {
            CellType::DeleteColumn | CellType::DeleteFamily => timestamp.min(0),
            _ => timestamp,
        };
        self.min_timestamp.fetch_min(oldest, Memory::Relaxed);
        self.max_timestamp.fetch_max(timestamp, Memory::Relaxed);
        self.min_sequence_id.fetch_min(cell.sequence_id(), Memory::Relaxed);
        self.max_sequence_id.fetch_max(cell.sequence_id(), Memory::Relaxed);
        if !cell.tags().is_empty() {
            self.tags.store(true, Memory::Relaxed);
        }
        if matches!(cell.cell_type(), CellType::DeleteFamily | CellType::DeleteFamilyVersion) {
            self.family_markers.store(true, Memory::Relaxed);
        }
        if cell.is_delete() {
            self.deletes.fetch_add(1, Memory::Relaxed);
        }
    }
}
