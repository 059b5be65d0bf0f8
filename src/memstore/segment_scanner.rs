//! The cursor over a segment.

use super::segment::Segment;
use crate::cell::{Cell, CellScanner, compare};
use crate::error::Result;
use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

/// The first batch after a seek: a point read rarely needs more.
const FIRST_BATCH: usize = 2;
const LARGEST_BATCH: usize = 256;

/// Walks a segment in batches that it copies under the segment's lock; between two calls it holds no lock. Cells inserted meanwhile
/// with sequence ids above the read point stay invisible.
#[derive(Debug)]
pub struct SegmentScanner {
    segment: Arc<Segment>,
    read_point: u64,
    batch: Vec<Cell>,
    position: usize,
    /// The cell after which the next batch begins; `None` when the segment ends with this batch, or the scanner stands nowhere.
    resume_after: Option<Cell>,
    batch_size: usize,
    /// Nobody wants cells before this one: no seek goes there.
    first: Option<Cell>,
}

impl SegmentScanner {
    pub(super) fn new(segment: Arc<Segment>, read_point: u64) -> SegmentScanner {
        SegmentScanner {
            segment,
            read_point,
            batch: Vec::new(),
            position: 0,
            resume_after: None,
            batch_size: FIRST_BATCH,
            first: None,
        }
    }

    /// The same scanner, which never seeks to a cell before `first`.
    #[must_use]
    pub fn starting_at(self, first: Option<Cell>) -> SegmentScanner {
        SegmentScanner { first, ..self }
    }

    fn fill(&mut self, after: Bound<&Cell>) {
        let (wanted, read_point) = (self.batch_size, self.read_point);
        self.position = 0;
        self.batch.clear();
        self.resume_after = self.segment.copy_batch(after, wanted, read_point, &mut self.batch);
        while self.batch.is_empty()
            && let Some(last) = self.resume_after.take()
        {
            let after = Bound::Excluded(&last);
            self.resume_after = self.segment.copy_batch(after, wanted, read_point, &mut self.batch);
        }
    }

    fn stand_nowhere(&mut self) {
        self.batch.clear();
        self.position = 0;
        self.resume_after = None;
    }

    /// To the start of the row of `candidate`, or of the nearest row before it that has a visible cell.
    fn settle_on_row(&mut self, mut candidate: Option<Cell>) -> Result<()> {
        while let Some(cell) = candidate {
            self.seek(&Cell::first_on_row(cell.row()))?;
            if self.peek().is_some_and(|found| found.row() == cell.row()) {
                return Ok(());
            }
            candidate = self.segment.last_before_row(Some(cell.row()));
        }
        self.stand_nowhere();
        Ok(())
    }
}

impl CellScanner for SegmentScanner {
    fn peek(&self) -> Option<&Cell> {
        self.batch.get(self.position)
    }

    fn advance(&mut self) -> Result<()> {
        self.position += 1;
        if self.position >= self.batch.len()
            && let Some(last) = self.resume_after.take()
        {
            self.batch_size = (self.batch_size * 4).min(LARGEST_BATCH);
            self.fill(Bound::Excluded(&last));
        }
        Ok(())
    }

    fn seek(&mut self, key: &Cell) -> Result<()> {
        self.batch_size = FIRST_BATCH;
        match self.first.take() {
            Some(first) => {
                self.fill(Bound::Included(if compare(key, &first) == Ordering::Less { &first } else { key }));
                self.first = Some(first);
            }
            None => self.fill(Bound::Included(key)),
        }
        Ok(())
    }

    fn reseek(&mut self, key: &Cell) -> Result<()> {
        let rest = self.batch.get(self.position..).unwrap_or(&[]);
        let before = rest.partition_point(|cell| compare(cell, key) == Ordering::Less);
        if before < rest.len() {
            self.position += before;
            return Ok(());
        }
        match self.resume_after.take() {
            None => self.stand_nowhere(),
            Some(last) if compare(&last, key) == Ordering::Less => self.fill(Bound::Included(key)),
            Some(last) => self.fill(Bound::Excluded(&last)),
        }
        Ok(())
    }

    fn seek_to_previous_row(&mut self, row: &[u8]) -> Result<()> {
        let candidate = self.segment.last_before_row(Some(row));
        self.settle_on_row(candidate)
    }

    fn seek_to_last_row(&mut self) -> Result<()> {
        let candidate = self.segment.last_before_row(None);
        self.settle_on_row(candidate)
    }
}
