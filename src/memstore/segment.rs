//! One sorted set of cells.

use super::row_filter::RowFilter;
use super::segment_scanner::SegmentScanner;
use crate::cell::{Cell, CellType, compare, leading_bytes};
use crate::client::TimeRange;
use parking_lot::RwLock;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering as Memory};

/// Heap of a cell beside its encoded bytes: the cell's struct, its allocation, its slot in a tree node two thirds full.
const CELL_OVERHEAD: u64 = 56 + 16 + 24;
/// Sizes at which the prefixes are chosen anew, while that is still cheap.
const REKEY_AT: [usize; 4] = [64, 1024, 8192, 65536];

/// A sorted set of cells that only grows.
#[derive(Debug)]
pub struct Segment {
    tree: RwLock<Tree>,
    rows: RowFilter,
    bytes: AtomicU64,
    cells: AtomicU64,
    deletes: AtomicU64,
    tags: AtomicBool,
    min_timestamp: AtomicI64,
    max_timestamp: AtomicI64,
    min_sequence_id: AtomicU64,
    max_sequence_id: AtomicU64,
}

#[derive(Debug, Default)]
struct Tree {
    entries: BTreeSet<Entry>,
    prefix: PrefixRule,
}

/// A cell and the part of its row that decides most comparisons without following the pointer.
#[derive(Debug)]
struct Entry {
    prefix: u64,
    cell: Box<Cell>,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        self.prefix.cmp(&other.prefix).then_with(|| compare(&self.cell, &other.cell))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}

/// How rows become prefixes: the eight bytes that follow what most rows of the segment begin with. Rows that begin otherwise become 0 or
/// the maximum, whichever side they are on, so that prefixes never contradict the order of rows.
#[derive(Debug, Default, Clone)]
struct PrefixRule {
    common: Vec<u8>,
}

impl PrefixRule {
    fn prefix(&self, row: &[u8]) -> u64 {
        match row.strip_prefix(self.common.as_slice()) {
            Some(rest) => leading_bytes(rest),
            None if row < self.common.as_slice() => 0,
            None => u64::MAX,
        }
    }
}

impl Default for Segment {
    fn default() -> Self {
        Segment::new()
    }
}

impl Segment {
    /// An empty segment.
    pub fn new() -> Segment {
        Segment {
            tree: RwLock::default(),
            rows: RowFilter::default(),
            bytes: AtomicU64::new(0),
            cells: AtomicU64::new(0),
            deletes: AtomicU64::new(0),
            tags: AtomicBool::new(false),
            min_timestamp: AtomicI64::new(i64::MAX),
            max_timestamp: AtomicI64::new(i64::MIN),
            min_sequence_id: AtomicU64::new(u64::MAX),
            max_sequence_id: AtomicU64::new(0),
        }
    }

    /// An empty segment that expects rows like those of `before`.
    pub(super) fn after(before: &Segment) -> Segment {
        let segment = Segment::new();
        segment.tree.write().prefix = before.tree.read().prefix.clone();
        segment
    }

    /// Adds cells and returns by how many bytes of heap the segment grew; see [`super::MemStore::insert`].
    pub fn insert(&self, cells: impl IntoIterator<Item = Cell>) -> i64 {
        let mut tree = self.tree.write();
        let mut grown = 0i64;
        for cell in cells {
            self.note(&cell);
            let added = (cell.encoded().len() as u64 + CELL_OVERHEAD) as i64;
            let entry = Entry { prefix: tree.prefix.prefix(cell.row()), cell: Box::new(cell) };
            match tree.entries.replace(entry) {
                Some(old) => grown += added - (old.cell.encoded().len() as u64 + CELL_OVERHEAD) as i64,
                None => {
                    grown += added;
                    self.cells.fetch_add(1, Memory::Relaxed);
                }
            }
            if REKEY_AT.contains(&tree.entries.len()) {
                tree.choose_prefix();
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
        let start = tree.bound(after);
        let mut walk = tree.entries.range((start, Bound::Unbounded));
        for _ in 0..VISITS {
            let entry = walk.next()?;
            if entry.cell.sequence_id() <= read_point {
                batch.push(Cell::clone(&entry.cell));
                if batch.len() >= wanted {
                    return Some(Cell::clone(&entry.cell));
                }
            }
        }
        walk.next().map(|entry| Cell::clone(&entry.cell)).inspect(|last| {
            if last.sequence_id() <= read_point {
                batch.push(last.clone());
            }
        })
    }

    /// The last cell before `row`'s first, visible or not; the last of all for `None`.
    pub(super) fn last_before_row(&self, row: Option<&[u8]>) -> Option<Cell> {
        let tree = self.tree.read();
        let key = row.map(Cell::first_on_row);
        let end = tree.bound(key.as_ref().map_or(Bound::Unbounded, Bound::Excluded));
        tree.entries.range((Bound::Unbounded, end)).next_back().map(|entry| Cell::clone(&entry.cell))
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
        if cell.is_delete() {
            self.deletes.fetch_add(1, Memory::Relaxed);
        }
    }
}

impl Tree {
    fn bound(&self, bound: Bound<&Cell>) -> Bound<Entry> {
        bound.map(|cell| Entry { prefix: self.prefix.prefix(cell.row()), cell: Box::new(cell.clone()) })
    }

    /// Makes what the first and the last row have in common the rule, if that is news.
    fn choose_prefix(&mut self) {
        let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) else { return };
        let (first, last) = (first.cell.row(), last.cell.row());
        let common = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let rule = PrefixRule { common: first.get(..common).unwrap_or(&[]).to_vec() };
        if rule.common == self.prefix.common {
            return;
        }
        let entries = std::mem::take(&mut self.entries);
        self.entries = entries.into_iter().map(|e| Entry { prefix: rule.prefix(e.cell.row()), cell: e.cell }).collect();
        self.prefix = rule;
    }
}
