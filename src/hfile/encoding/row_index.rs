//! ROW_INDEX_V1: plain cells with an index of rows behind them (HBase `RowIndexCodecV1`).
//!
//! ```text
//! cells in the plain layout | u32 rows | rows x u32 offset of the row's first cell | u32 bytes of the cells
//! ```

use crate::hfile::input::{Damage, Input, Parsed};
use bytes::{BufMut, Bytes};

/// Where each row of a block begins.
#[derive(Default)]
pub(super) struct RowIndex {
    starts: Vec<u32>,
}

impl RowIndex {
    pub(super) fn clear(&mut self) {
        self.starts.clear();
    }

    /// Notes the cell at `offset`; `same_row` if the one before it in the block has its row.
    pub(super) fn note(&mut self, same_row: bool, offset: usize) {
        if !same_row {
            self.starts.push(offset as u32);
        }
    }

    /// Bytes of the offsets so far (HBase `RowIndexEncoderV1` counts them towards the block's size).
    pub(super) fn len(&self) -> usize {
        4 * self.starts.len()
    }

    /// Appends the index; `out` holds the encoding id and the cells.
    pub(super) fn append_to(&self, out: &mut Vec<u8>) {
        let cells_len = out.len() - 2;
        out.put_u32(self.starts.len() as u32);
        self.starts.iter().for_each(|start| out.put_u32(*start));
        out.put_u32(cells_len as u32);
    }
}

/// The cells of a body. The row index is checked against the body's size and left: every cell is indexed when the block is decoded.
pub(super) fn decode(body: &Bytes) -> Parsed<Bytes> {
    let wrong = || Damage::new("the row index of a block does not fit it");
    let (_, last) = body.split_last_chunk::<4>().ok_or_else(wrong)?;
    let cells_len = u32::from_be_bytes(*last) as usize;
    let mut index = Input::new(body.get(cells_len..).ok_or_else(wrong)?);
    let rows = index.length()?;
    if rows.checked_mul(4).and_then(|len| len.checked_add(4)) != Some(index.rest().len()) {
        return Err(wrong());
    }
    Ok(body.slice(..cells_len))
}
