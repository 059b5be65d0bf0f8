//! The part of a store file that a store has: a half (HBase `HalfStoreFileReader`), and cells under the sequence id of their bulk load.

use crate::cell::{Cell, CellScanner};
use crate::error::Result;
use crate::scanner::RowRange;
use std::ops::Bound;

/// What of a file belongs to a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFilePart {
    /// The rows.
    pub rows: RowRange,
    /// The sequence id of every cell, whatever the file says (HBase `StoreFileScanner.setCurrentCell`, for bulk-loaded files).
    pub sequence_id: Option<u64>,
}

impl Default for StoreFilePart {
    /// All of it, as it is.
    fn default() -> Self {
        StoreFilePart { rows: RowRange::ALL, sequence_id: None }
    }
}

impl StoreFilePart {
    pub(super) fn is_whole(&self) -> bool {
        self.rows == RowRange::ALL && self.sequence_id.is_none()
    }
}

/// A cursor over a part of a file.
pub(super) struct PartScanner {
    whole: Box<dyn CellScanner>,
    part: StoreFilePart,
    current: Option<Cell>,
}

impl PartScanner {
    pub(super) fn new(whole: Box<dyn CellScanner>, part: StoreFilePart) -> PartScanner {
        PartScanner { whole, part, current: None }
    }

    /// Takes the cell under the whole's cursor, if it is inside.
    fn settle(&mut self) {
        let inside = self.whole.peek().filter(|cell| self.part.rows.contains(cell.row()));
        self.current = inside.cloned().map(|cell| match self.part.sequence_id {
            Some(id) => cell.with_sequence_id(id),
            None => cell,
        });
    }

    /// The first row that is inside, if there is a low end.
    fn first_key(&self) -> Option<Cell> {
        match &self.part.rows.low {
            Bound::Included(row) => Some(Cell::first_on_row(row)),
            Bound::Excluded(row) => Some(Cell::first_on_row(&[row, &[0][..]].concat())),
            Bound::Unbounded => None,
        }
    }

    fn is_before_part(&self, row: &[u8]) -> bool {
        !self.part.rows.reaches(row)
    }
}

impl CellScanner for PartScanner {
    fn peek(&self) -> Option<&Cell> {
        self.current.as_ref()
    }

    fn advance(&mut self) -> Result<()> {
        self.current = None;
        self.whole.advance()?;
        self.settle();
        Ok(())
    }

    fn seek(&mut self, key: &Cell) -> Result<()> {
        self.current = None;
        match self.first_key() {
            Some(first) if self.is_before_part(key.row()) => self.whole.seek(&first)?,
            _ => self.whole.seek(key)?,
        }
        self.settle();
        Ok(())
    }

    fn reseek(&mut self, key: &Cell) -> Result<()> {
        self.current = None;
        self.whole.reseek(key)?;
        self.settle();
        Ok(())
    }

    fn seek_to_previous_row(&mut self, row: &[u8]) -> Result<()> {
        if !self.part.rows.precedes_end(row) {
            return self.seek_to_last_row();
        }
        self.current = None;
        self.whole.seek_to_previous_row(row)?;
        self.settle();
        Ok(())
    }

    fn seek_to_last_row(&mut self) -> Result<()> {
        self.current = None;
        match self.part.rows.high.clone() {
            Bound::Unbounded => self.whole.seek_to_last_row()?,
            Bound::Excluded(row) => self.whole.seek_to_previous_row(&row)?,
            Bound::Included(row) => self.whole.seek_to_previous_row(&[&row[..], &[0][..]].concat())?,
        }
        self.settle();
        Ok(())
    }
}
