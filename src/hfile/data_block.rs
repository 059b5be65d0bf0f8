//! A decoded data block: cells in the plain layout and where each begins.
//!
//! ```text
//! cell = u32 key length | u32 value length | key | value | [u16 tags length | tags] | [vlong sequence id]        (HBase `NoneEncoder`)
//! ```
//!
//! Every cell is checked once, when the block is decoded. After that a cell is found by number, so that a seek is a binary search and a
//! step costs no parsing of its neighbours, and cells are slices that share the block's bytes.

use super::input::{Damage, Input, Parsed};
use super::row_prefix::RowPrefixes;
use crate::cell::{self, Cell, FlatKeyProbe};
use bytes::Bytes;
use std::cmp::Ordering;

/// Which optional parts cells of a file have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct CellLayout {
    pub tags: bool,
    pub sequence_ids: bool,
}

/// A decoded data block; it has at least one cell.
#[derive(Debug)]
pub(crate) struct DataBlock {
    bytes: Bytes,
    layout: CellLayout,
    /// Where each cell begins.
    starts: Box<[u32]>,
    rows: RowPrefixes,
    /// Where the last cell ends.
    end: usize,
}

/// Where the parts of one cell end, relative to the whole.
struct Extent {
    key_len: usize,
    value_len: usize,
    /// End of key, value and tags without the empty tags' length.
    cell_end: usize,
    sequence_id: u64,
}

impl DataBlock {
    /// Checks `cells`, which are in the plain layout.
    pub(crate) fn from_plain(cells: Bytes, layout: CellLayout) -> Parsed<DataBlock> {
        let mut input = Input::new(&cells);
        // Cells are seldom shorter.
        let mut starts = Vec::with_capacity((cells.len() / 48).min(4096));
        while !input.is_empty() {
            let start = cells.len() - input.rest().len();
            starts.push(u32::try_from(start).map_err(|_| Damage::new("a data block is over 4 GiB"))?);
            check_cell(&mut input, layout).map_err(|damage| damage.in_cell(starts.len() - 1))?;
        }
        let (Some(first), Some(last)) = (starts.first(), starts.last()) else {
            return Err(Damage::new("a data block has no cells"));
        };
        let row = |start: &u32| row_at(&cells, *start as usize);
        let rows = RowPrefixes::new(row(first), row(last), starts.iter().map(row));
        Ok(DataBlock { end: cells.len(), rows, bytes: cells, layout, starts: starts.into_boxed_slice() })
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Memory it takes in the cache.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.bytes.len() + self.starts.len() * 4 + self.rows.heap_bytes() + size_of::<DataBlock>()
    }

    /// A copy that pins no more memory than its own bytes: the block may be a slice of a larger read.
    pub(crate) fn into_compact(mut self) -> DataBlock {
        self.bytes = Bytes::copy_from_slice(&self.bytes);
        self
    }

    fn cell_bytes(&self, index: usize) -> Option<(usize, &[u8])> {
        let start = *self.starts.get(index)? as usize;
        let end = self.starts.get(index + 1).map_or(self.end, |next| *next as usize);
        Some((start, self.bytes.get(start..end)?))
    }

    /// The cell of that number.
    pub(crate) fn cell(&self, index: usize) -> Option<Cell> {
        let (start, bytes) = self.cell_bytes(index)?;
        let extent = self.extent(bytes)?;
        let buf = self.bytes.slice(start + 8..start + extent.cell_end);
        Some(Cell::from_checked(buf, extent.key_len as u32, extent.value_len as u32, extent.sequence_id))
    }

    fn extent(&self, bytes: &[u8]) -> Option<Extent> {
        let (lengths, _) = bytes.split_first_chunk::<8>()?;
        let [k0, k1, k2, k3, v0, v1, v2, v3] = *lengths;
        let key_len = u32::from_be_bytes([k0, k1, k2, k3]) as usize;
        let value_len = u32::from_be_bytes([v0, v1, v2, v3]) as usize;
        let mut end = 8 + key_len + value_len;
        let mut cell_end = end;
        if self.layout.tags {
            let tags_len = bytes.get(end..)?.first_chunk::<2>().map(|be| usize::from(u16::from_be_bytes(*be)))?;
            end += 2 + tags_len;
            cell_end = if tags_len == 0 { cell_end } else { end };
        }
        let sequence_id = if self.layout.sequence_ids {
            match bytes.get(end..)? {
                [0, ..] => 0,
                rest => Input::new(rest).vlong().ok()? as u64,
            }
        } else {
            0
        };
        Some(Extent { key_len, value_len, cell_end, sequence_id })
    }

    /// Compares cell `index` with `key`; past the end everything is greater.
    fn compare(&self, index: usize, key: &Cell, probe: &FlatKeyProbe<'_>) -> Ordering {
        let Some((_, bytes)) = self.cell_bytes(index) else { return Ordering::Greater };
        let key_len = bytes.first_chunk::<4>().map_or(0, |be| u32::from_be_bytes(*be) as usize);
        match probe.compare_to_probe(bytes.get(8..8 + key_len).unwrap_or(&[])) {
            Ordering::Equal => {
                let own = self.extent(bytes).map_or(0, |extent| extent.sequence_id);
                key.sequence_id().cmp(&own)
            }
            order => order,
        }
    }

    /// The number of the first cell at or after `key`; [`DataBlock::len`] when there is none.
    pub(crate) fn lower_bound(&self, key: &Cell) -> usize {
        let range = self.rows.range(key.row());
        self.lower_bound_between(key, range.start, range.end)
    }

    /// As [`DataBlock::lower_bound`], but not before cell `from`; cheap when the answer is near.
    pub(crate) fn lower_bound_from(&self, key: &Cell, from: usize) -> usize {
        let probe = FlatKeyProbe::new(key.key());
        let (mut low, mut step) = (from, 1);
        while low < self.len() {
            let at = low + step - 1;
            if at >= self.len() || self.compare(at, key, &probe) != Ordering::Less {
                return self.lower_bound_between(key, low, at.min(self.len()));
            }
            low = at + 1;
            step *= 2;
        }
        self.len()
    }

    /// The first cell in `[low, high)` at or after `key`, or `high`.
    fn lower_bound_between(&self, key: &Cell, mut low: usize, mut high: usize) -> usize {
        let probe = FlatKeyProbe::new(key.key());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.compare(middle, key, &probe) == Ordering::Less {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The row of the cell that begins at `start`.
fn row_at(cells: &[u8], start: usize) -> &[u8] {
    let key = cells.get(start + 8..).unwrap_or(&[]);
    let len = key.first_chunk::<2>().map_or(0, |be| usize::from(u16::from_be_bytes(*be)));
    key.get(2..2 + len).unwrap_or(&[])
}

fn check_cell(input: &mut Input<'_>, layout: CellLayout) -> Parsed<()> {
    let (key_len, value_len) = (input.length()?, input.length()?);
    let key = input.take(key_len)?;
    input.take(value_len)?;
    let mut tags: &[u8] = &[];
    if layout.tags {
        let tags_len = usize::from(input.u16()?);
        tags = input.take(tags_len)?;
    }
    if layout.sequence_ids && input.vlong()? < 0 {
        return Err(Damage::new("a sequence id is negative"));
    }
    cell::check_encoded(key, tags).map_err(|malformed| Damage::new(malformed.to_string()))
}
