//! What a writer must know of the cell before the current one, in a buffer of its own.
//!
//! A clone would share the cell's bytes, but counting who shares them is an atomic operation for each cell, which waits until all that was written
//! before it has left the processor: more than the few bytes of a key cost to copy.

use crate::cell::Cell;
use bytes::Bytes;
use std::cmp::Ordering;

/// Key and lengths of the last cell.
#[derive(Default)]
pub(super) struct LastCell {
    key: Vec<u8>,
    row_len: usize,
    family_len: usize,
    value_len: usize,
    sequence_id: u64,
}

impl LastCell {
    /// Takes the place of the cell before.
    pub(super) fn set(&mut self, cell: &Cell) {
        self.key.clear();
        self.key.extend_from_slice(cell.key());
        (self.row_len, self.family_len, self.value_len) = (cell.row().len(), cell.family().len(), cell.value_len());
        self.sequence_id = cell.sequence_id();
    }

    /// False before the first cell: every key has at least its own lengths.
    pub(super) fn is_some(&self) -> bool {
        !self.key.is_empty()
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn row(&self) -> &[u8] {
        self.key.get(2..2 + self.row_len).unwrap_or(&[])
    }

    pub(super) fn family(&self) -> &[u8] {
        let start = 3 + self.row_len;
        self.key.get(start..start + self.family_len).unwrap_or(&[])
    }

    pub(super) fn qualifier(&self) -> &[u8] {
        let start = 3 + self.row_len + self.family_len;
        self.key.get(start..self.key.len().saturating_sub(9)).unwrap_or(&[])
    }

    pub(super) fn timestamp(&self) -> i64 {
        self.key.last_chunk::<9>().map_or(0, |[timestamp @ .., _]| i64::from_be_bytes(*timestamp))
    }

    pub(super) fn type_code(&self) -> u8 {
        self.key.last().copied().unwrap_or(0)
    }

    pub(super) fn value_len(&self) -> usize {
        self.value_len
    }

    /// The order of [`crate::cell::compare`] behind equal rows.
    pub(super) fn compare_behind_row(&self, cell: &Cell) -> Ordering {
        self.family()
            .cmp(cell.family())
            .then_with(|| self.qualifier().cmp(cell.qualifier()))
            .then_with(|| cell.timestamp().cmp(&self.timestamp()))
            .then_with(|| cell.type_code().cmp(&self.type_code()))
            .then_with(|| cell.sequence_id().cmp(&self.sequence_id))
    }

    /// A cell of this key, without a value.
    pub(super) fn to_cell(&self) -> Cell {
        Cell::from_checked(Bytes::copy_from_slice(&self.key), self.key.len() as u32, 0, self.sequence_id)
    }
}
