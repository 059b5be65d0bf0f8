//! The sorted set of a segment: a B+ tree of cells that only grows.
//!
//! Nodes keep the first bytes of their keys' rows as an array of numbers, so a descent touches a few cache lines per level and looks at a cell
//! only where numbers tie.

use crate::cell::{Cell, compare, leading_bytes};
use std::cmp::Ordering;

/// Cells in a leaf. Larger leaves make scans cheaper and inserts dearer.
const LEAF_CELLS: usize = 32;
/// Children of an inner node.
const INNER_CHILDREN: usize = 64;
/// No leaf.
const NONE: usize = usize::MAX;
/// Sizes at which the prefixes are chosen anew, while that is still cheap.
const REKEY_AT: [usize; 4] = [64, 1024, 8192, 65536];

/// How rows become prefixes: the eight bytes that follow what most rows of the segment begin with. Rows that begin otherwise become 0 or
/// the maximum, whichever side they are on, so that prefixes never contradict the order of rows.
#[derive(Debug, Default, Clone)]
pub(super) struct PrefixRule {
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

#[derive(Debug)]
struct Leaf {
    /// Of `cells`, and as many.
    prefixes: [u64; LEAF_CELLS],
    cells: Vec<Cell>,
    previous: usize,
    next: usize,
}

#[derive(Debug, Default)]
struct Inner {
    /// Of `separators`, and as many.
    prefixes: Vec<u64>,
    /// The smallest cell ever put under each child but the first.
    separators: Vec<Cell>,
    children: Vec<usize>,
}

/// A node that was split: its right half, and the smallest cell there.
struct Split {
    prefix: u64,
    separator: Cell,
    right: usize,
}

/// Where a cell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    leaf: usize,
    index: usize,
}

/// See the module.
#[derive(Debug)]
pub(super) struct CellTree {
    #[expect(clippy::vec_box, reason = "growing the vector must not copy the leaves")]
    leaves: Vec<Box<Leaf>>,
    inner: Vec<Inner>,
    root: usize,
    /// Levels of inner nodes; with none the root is a leaf.
    height: usize,
    last_leaf: usize,
    len: usize,
    rule: PrefixRule,
}

impl CellTree {
    /// An empty tree that expects rows as `rule` has it.
    pub(super) fn new(rule: PrefixRule) -> CellTree {
        CellTree {
            leaves: vec![Box::new(Leaf::new())],
            inner: Vec::new(),
            root: 0,
            height: 0,
            last_leaf: 0,
            len: 0,
            rule,
        }
    }

    pub(super) fn rule(&self) -> &PrefixRule {
        &self.rule
    }

    /// Adds a cell; returns the one it replaces, which is equal to it in the order of cells.
    pub(super) fn insert(&mut self, cell: Cell) -> Option<Cell> {
        let prefix = self.rule.prefix(cell.row());
        let (replaced, split) = self.insert_below(self.root, self.height, prefix, cell);
        if let Some(split) = split {
            let root = Inner {
                prefixes: vec![split.prefix],
                separators: vec![split.separator],
                children: vec![self.root, split.right],
            };
            self.inner.push(root);
            self.root = self.inner.len() - 1;
            self.height += 1;
        }
        if replaced.is_none() {
            self.len += 1;
            if REKEY_AT.contains(&self.len) {
                self.choose_prefix();
            }
        }
        replaced
    }

    /// The first cell at or after `key`, or after it only.
    pub(super) fn lower_bound(&self, key: &Cell, inclusive: bool) -> Option<Position> {
        let prefix = self.rule.prefix(key.row());
        let mut node = self.root;
        for _ in 0..self.height {
            let inner = self.inner.get(node)?;
            let child = rank(&inner.prefixes, &inner.separators, prefix, key, true);
            node = *inner.children.get(child)?;
        }
        let leaf = self.leaves.get(node)?;
        let index = rank(leaf.prefixes.get(..leaf.cells.len())?, &leaf.cells, prefix, key, !inclusive);
        self.settle(Position { leaf: node, index })
    }

    /// The first cell.
    pub(super) fn first(&self) -> Option<Position> {
        self.settle(Position { leaf: 0, index: 0 })
    }

    /// The last cell.
    pub(super) fn last(&self) -> Option<Position> {
        let cells = self.leaves.get(self.last_leaf)?.cells.len();
        Some(Position { leaf: self.last_leaf, index: cells.checked_sub(1)? })
    }

    /// The cell after.
    pub(super) fn next(&self, position: Position) -> Option<Position> {
        self.settle(Position { index: position.index + 1, ..position })
    }

    /// The cell before.
    pub(super) fn previous(&self, position: Position) -> Option<Position> {
        if let Some(index) = position.index.checked_sub(1) {
            return Some(Position { index, ..position });
        }
        let leaf = self.leaves.get(position.leaf)?.previous;
        let cells = self.leaves.get(leaf)?.cells.len();
        Some(Position { leaf, index: cells.checked_sub(1)? })
    }

    /// The cell at a position that this tree gave out since it last grew.
    pub(super) fn get(&self, position: Position) -> Option<&Cell> {
        self.leaves.get(position.leaf)?.cells.get(position.index)
    }

    /// Moves a position past the end of a leaf to the start of the next. Leaves but the first of an empty tree are never empty.
    fn settle(&self, position: Position) -> Option<Position> {
        let leaf = self.leaves.get(position.leaf)?;
        if position.index < leaf.cells.len() {
            return Some(position);
        }
        (leaf.next != NONE).then_some(Position { leaf: leaf.next, index: 0 })
    }

    fn insert_below(&mut self, node: usize, height: usize, prefix: u64, cell: Cell) -> (Option<Cell>, Option<Split>) {
        if height == 0 {
            return self.insert_in_leaf(node, prefix, cell);
        }
        let Some(inner) = self.inner.get(node) else { return (None, None) };
        let at = rank(&inner.prefixes, &inner.separators, prefix, &cell, true);
        let Some(&child) = inner.children.get(at) else { return (None, None) };
        let (replaced, split) = self.insert_below(child, height - 1, prefix, cell);
        let Some(split) = split else { return (replaced, None) };
        let Some(inner) = self.inner.get_mut(node) else { return (replaced, None) };
        inner.prefixes.insert(at, split.prefix);
        inner.separators.insert(at, split.separator);
        inner.children.insert(at + 1, split.right);
        if inner.children.len() <= INNER_CHILDREN {
            return (replaced, None);
        }
        // The middle separator goes up; at the right edge the left half stays nearly full, since rows often arrive in order.
        let middle = if at + 2 == inner.children.len() { INNER_CHILDREN - 4 } else { INNER_CHILDREN / 2 };
        let right = Inner {
            prefixes: inner.prefixes.split_off(middle + 1),
            separators: inner.separators.split_off(middle + 1),
            children: inner.children.split_off(middle + 1),
        };
        let (Some(prefix), Some(separator)) = (inner.prefixes.pop(), inner.separators.pop()) else {
            return (replaced, None);
        };
        self.inner.push(right);
        (replaced, Some(Split { prefix, separator, right: self.inner.len() - 1 }))
    }

    fn insert_in_leaf(&mut self, node: usize, prefix: u64, cell: Cell) -> (Option<Cell>, Option<Split>) {
        let fresh = self.leaves.len();
        let Some(leaf) = self.leaves.get_mut(node) else { return (None, None) };
        let at = rank(leaf.prefixes.get(..leaf.cells.len()).unwrap_or(&[]), &leaf.cells, prefix, &cell, false);
        // Where the numbers differ there is no need to look at the cell, which is seldom in the processor's cache.
        if leaf.prefixes.get(at) == Some(&prefix)
            && let Some(present) = leaf.cells.get_mut(at)
            && compare(present, &cell) == Ordering::Equal
        {
            return (Some(std::mem::replace(present, cell)), None);
        }
        if leaf.cells.len() < LEAF_CELLS {
            leaf.insert(at, prefix, cell);
            return (None, None);
        }
        let ascending = at == LEAF_CELLS && leaf.next == NONE;
        let mut right = leaf.split_off(if ascending { LEAF_CELLS } else { LEAF_CELLS / 2 });
        match at.checked_sub(leaf.cells.len()) {
            Some(at) if ascending || at > 0 => right.insert(at, prefix, cell),
            _ => leaf.insert(at, prefix, cell),
        }
        right.previous = node;
        right.next = std::mem::replace(&mut leaf.next, fresh);
        let after = right.next;
        let split = right.cells.first().cloned().zip(right.prefixes.first().copied());
        self.leaves.push(right);
        match self.leaves.get_mut(after) {
            Some(after) => after.previous = fresh,
            None => self.last_leaf = fresh,
        }
        (None, split.map(|(separator, prefix)| Split { prefix, separator, right: fresh }))
    }

    /// Makes what the first and the last row have in common the rule, if that is news. The order of cells does not change by it.
    fn choose_prefix(&mut self) {
        let (first, last) = (self.first().and_then(|at| self.get(at)), self.last().and_then(|at| self.get(at)));
        let (Some(first), Some(last)) = (first.map(Cell::row), last.map(Cell::row)) else { return };
        let common = first.iter().zip(last).take_while(|(a, b)| a == b).count();
        let rule = PrefixRule { common: first.get(..common).unwrap_or(&[]).to_vec() };
        if rule.common == self.rule.common {
            return;
        }
        for leaf in &mut self.leaves {
            for (prefix, cell) in leaf.prefixes.iter_mut().zip(&leaf.cells) {
                *prefix = rule.prefix(cell.row());
            }
        }
        for inner in &mut self.inner {
            for (prefix, cell) in inner.prefixes.iter_mut().zip(&inner.separators) {
                *prefix = rule.prefix(cell.row());
            }
        }
        self.rule = rule;
    }
}

impl Leaf {
    fn new() -> Leaf {
        Leaf { prefixes: [0; LEAF_CELLS], cells: Vec::with_capacity(LEAF_CELLS), previous: NONE, next: NONE }
    }

    /// The leaf is not full.
    fn insert(&mut self, at: usize, prefix: u64, cell: Cell) {
        self.prefixes.copy_within(at..self.cells.len(), at + 1);
        if let Some(slot) = self.prefixes.get_mut(at) {
            *slot = prefix;
        }
        self.cells.insert(at, cell);
    }

    fn split_off(&mut self, at: usize) -> Box<Leaf> {
        let mut right = Box::new(Leaf::new());
        right.cells.extend(self.cells.drain(at..));
        for (new, old) in right.prefixes.iter_mut().zip(self.prefixes.iter().skip(at)) {
            *new = *old;
        }
        right
    }
}

/// How many of the sorted `cells` are before `key`, or with `equal_too` at or before it. `prefixes` are those of the cells.
fn rank(prefixes: &[u64], cells: &[Cell], prefix: u64, key: &Cell, equal_too: bool) -> usize {
    let low = prefixes.partition_point(|one| *one < prefix);
    let ties = prefixes.get(low..).unwrap_or(&[]).partition_point(|one| *one == prefix);
    let tied = cells.get(low..low + ties).unwrap_or(&[]);
    low + tied.partition_point(|cell| match compare(cell, key) {
        Ordering::Less => true,
        Ordering::Equal => equal_too,
        Ordering::Greater => false,
    })
}
