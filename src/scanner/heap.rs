//! The merge of several sorted sources (HBase `KeyValueHeap`), as a loser tree.
//!
//! Each source's current cell is kept here beside the first eight bytes of its row, so a comparison is one of two numbers, and of bytes only when
//! they tie; no call goes through a source to compare.

use crate::cell::{Cell, CellScanner, compare, leading_bytes};
use crate::error::Result;
use std::cmp::Ordering;

/// A merge of cell sources in the order of [`compare`]; cells that are equal in everything come from the source that was given first.
pub(super) struct CellHeap {
    sources: Vec<Source>,
    /// `tree[0]` is the source with the smallest cell; `tree[node]` the loser of the match played at that node.
    tree: Vec<usize>,
    /// The winner's cell has been taken, its source not yet moved: who stops there saves the step.
    taken: bool,
}

struct Source {
    scanner: Box<dyn CellScanner>,
    /// `None`: exhausted, or left out of the merge.
    cell: Option<Cell>,
    /// Of `cell`'s row; the largest number without a cell.
    prefix: u64,
}

impl Source {
    fn load(&mut self) {
        self.cell = self.scanner.take();
        self.prefix = self.cell.as_ref().map_or(u64::MAX, |cell| leading_bytes(cell.row()));
    }

    fn leave_out(&mut self) {
        self.cell = None;
        self.prefix = u64::MAX;
    }
}

impl CellHeap {
    /// A merge that stands nowhere. `sources` newest first.
    pub(super) fn new(sources: Vec<Box<dyn CellScanner>>) -> CellHeap {
        let sources: Vec<Source> =
            sources.into_iter().map(|scanner| Source { scanner, cell: None, prefix: u64::MAX }).collect();
        CellHeap { tree: vec![0; sources.len()], sources, taken: false }
    }

    /// The smallest cell.
    pub(super) fn peek(&mut self) -> Result<Option<&Cell>> {
        if self.taken {
            self.step()?;
        }
        Ok(self.tree.first().and_then(|winner| self.sources.get(*winner)?.cell.as_ref()))
    }

    /// Takes the smallest cell.
    pub(super) fn pop(&mut self) -> Result<Option<Cell>> {
        if self.taken {
            self.step()?;
        }
        let source = self.tree.first().and_then(|winner| self.sources.get_mut(*winner));
        let cell = source.and_then(|source| source.cell.take());
        self.taken = cell.is_some();
        Ok(cell)
    }

    fn step(&mut self) -> Result<()> {
        self.taken = false;
        let Some(&winner) = self.tree.first() else { return Ok(()) };
        let Some(source) = self.sources.get_mut(winner) else { return Ok(()) };
        let advanced = source.scanner.advance();
        source.load();
        self.replay(winner);
        advanced
    }

    /// Moves every source to `key` or the first cell after it.
    pub(super) fn seek(&mut self, key: &Cell) -> Result<()> {
        self.taken = false;
        for source in &mut self.sources {
            source.scanner.seek(key)?;
            source.load();
        }
        self.rebuild();
        Ok(())
    }

    /// Moves the sources that stand before `key` to it or the first cell after it.
    pub(super) fn reseek(&mut self, key: &Cell) -> Result<()> {
        if self.taken {
            self.step()?;
        }
        for source in &mut self.sources {
            if source.cell.as_ref().is_some_and(|cell| compare(cell, key) == Ordering::Less) {
                source.scanner.reseek(key)?;
                source.load();
            }
        }
        self.rebuild();
        Ok(())
    }

    /// Moves every source to the start of its last row before `row` (its last row for `None`), then merges those that stand on the
    /// last of these rows; see [`CellHeap::gather_last_row`].
    pub(super) fn seek_to_row_before(&mut self, row: Option<&[u8]>) -> Result<()> {
        self.taken = false;
        for source in &mut self.sources {
            match row {
                Some(row) => source.scanner.seek_to_previous_row(row)?,
                None => source.scanner.seek_to_last_row()?,
            }
        }
        self.gather_last_row();
        Ok(())
    }

    /// After `row` was merged: moves the sources that took part to their rows before it, and merges the last of all sources' rows.
    pub(super) fn retreat_from_row(&mut self, row: &[u8]) -> Result<()> {
        self.taken = false;
        for source in &mut self.sources {
            // A source that took part may have given its cell away; one that waits shows it.
            if source.scanner.peek().is_none_or(|cell| cell.row() >= row) {
                source.scanner.seek_to_previous_row(row)?;
            }
        }
        self.gather_last_row();
        Ok(())
    }

    /// The sources stand on starts of rows: those on the last row take part in the merge, the others wait.
    fn gather_last_row(&mut self) {
        let last = self.sources.iter().filter_map(|source| source.scanner.peek()).map(Cell::row_bytes).max();
        for source in &mut self.sources {
            match (&last, source.scanner.peek()) {
                (Some(last), Some(cell)) if cell.row() == last => source.load(),
                _ => source.leave_out(),
            }
        }
        self.rebuild();
    }

    #[expect(clippy::indexing_slicing, reason = "the tree holds indices of sources, and is as long as they are")]
    fn less(&self, left: usize, right: usize) -> bool {
        let (l, r) = (&self.sources[left], &self.sources[right]);
        if l.prefix != r.prefix {
            return l.prefix < r.prefix;
        }
        match (&l.cell, &r.cell) {
            (Some(a), Some(b)) => compare(a, b).then(left.cmp(&right)) == Ordering::Less,
            (Some(_), None) => true,
            _ => false,
        }
    }

    #[expect(clippy::indexing_slicing, reason = "nodes on the way up from a leaf are below the number of sources")]
    fn replay(&mut self, leaf: usize) {
        let mut winner = leaf;
        let mut node = (leaf + self.sources.len()) / 2;
        while node > 0 {
            if self.less(self.tree[node], winner) {
                std::mem::swap(&mut self.tree[node], &mut winner);
            }
            node /= 2;
        }
        self.tree[0] = winner;
    }

    fn rebuild(&mut self) {
        if !self.sources.is_empty() {
            let winner = self.play(1);
            if let Some(root) = self.tree.first_mut() {
                *root = winner;
            }
        }
    }

    /// Plays the matches below `node`, leaves the losers there, returns the winner. Leaves are numbered from the number of sources on.
    fn play(&mut self, node: usize) -> usize {
        if node >= self.sources.len() {
            return node - self.sources.len();
        }
        let (left, right) = (self.play(2 * node), self.play(2 * node + 1));
        let (winner, loser) = if self.less(left, right) { (left, right) } else { (right, left) };
        if let Some(slot) = self.tree.get_mut(node) {
            *slot = loser;
        }
        winner
    }
}
