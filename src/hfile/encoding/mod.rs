//! Data block encodings: ways to write cells shorter (HBase `DataBlockEncoding`, hbase.md B3).
//!
//! An encoded block's payload is `u16 encoding id | body`. Decoding gives the plain layout of `data_block`, so everything behind it knows one form.

mod row_index;

use super::data_block::CellLayout;
use super::input::{Damage, Input, Parsed, put_vlong, vlong_len};
use crate::cell::Cell;
use crate::schema::DataBlockEncoding;
use bytes::{BufMut, Bytes};
use row_index::RowIndex;

fn encoding_id(encoding: DataBlockEncoding) -> u16 {
    match encoding {
        DataBlockEncoding::None => 0,
        DataBlockEncoding::Prefix => 2,
        DataBlockEncoding::Diff => 3,
        DataBlockEncoding::FastDiff => 4,
        DataBlockEncoding::RowIndexV1 => 7,
    }
}

/// The cells of an encoded block's payload in the plain layout.
pub(crate) fn decode(
    payload: &Bytes,
    encoding: DataBlockEncoding,
    _layout: CellLayout,
    _tags_compressed: bool,
) -> Parsed<Bytes> {
    let mut input = Input::new(payload);
    let id = input.u16()?;
    if id != encoding_id(encoding) {
        return Err(Damage::new(format!("a block has the encoding {id}, not that of its file")));
    }
    match encoding {
        DataBlockEncoding::RowIndexV1 => row_index::decode(&payload.slice(2..)),
        _ => Err(Damage::new(format!("the data block encoding {} is not read", super::info::encoding_name(encoding)))),
    }
}

/// Builds the payload of one data block after the other.
pub(crate) struct BlockEncoder {
    encoding: DataBlockEncoding,
    layout: CellLayout,
    out: Vec<u8>,
    cells: usize,
    plain_len: usize,
    row_index: RowIndex,
}

impl BlockEncoder {
    pub(crate) fn new(encoding: DataBlockEncoding, layout: CellLayout) -> BlockEncoder {
        let mut encoder =
            BlockEncoder { encoding, layout, out: Vec::new(), cells: 0, plain_len: 0, row_index: RowIndex::default() };
        encoder.clear();
        encoder
    }

    /// Begins the next block.
    pub(crate) fn clear(&mut self) {
        self.out.clear();
        self.cells = 0;
        self.plain_len = 0;
        self.row_index.clear();
        if self.encoding != DataBlockEncoding::None {
            self.out.put_u16(encoding_id(self.encoding));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.cells == 0
    }

    /// Bytes so far, in the plain layout or encoded, whichever are more: what BLOCKSIZE limits.
    pub(crate) fn len(&self) -> usize {
        self.plain_len.max(self.out.len())
    }

    pub(crate) fn append(&mut self, cell: &Cell) {
        self.cells += 1;
        self.plain_len += plain_len(cell, self.layout);
        if self.encoding == DataBlockEncoding::RowIndexV1 {
            self.row_index.note(cell.row(), self.out.len() - 2);
        }
        append_plain(&mut self.out, cell, self.layout);
    }

    /// The payload of the block.
    pub(crate) fn finish(&mut self) -> &[u8] {
        if self.encoding == DataBlockEncoding::RowIndexV1 {
            self.row_index.append_to(&mut self.out);
        }
        &self.out
    }
}

/// Bytes of a cell in the plain layout.
pub(crate) fn plain_len(cell: &Cell, layout: CellLayout) -> usize {
    let tags = if layout.tags { 2 + cell.tags().len() } else { 0 };
    let sequence_id = if layout.sequence_ids { vlong_len(cell.sequence_id() as i64) } else { 0 };
    8 + cell.key_len() + cell.value_len() + tags + sequence_id
}

fn append_plain(out: &mut Vec<u8>, cell: &Cell, layout: CellLayout) {
    out.put_u32(cell.key_len() as u32);
    out.put_u32(cell.value_len() as u32);
    out.put_slice(cell.key());
    out.put_slice(cell.value());
    if layout.tags {
        out.put_u16(cell.tags().len() as u16);
        out.put_slice(cell.tags());
    }
    if layout.sequence_ids {
        put_vlong(out, cell.sequence_id() as i64);
    }
}
