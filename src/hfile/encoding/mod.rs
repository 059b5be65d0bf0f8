//! Data block encodings: ways to write cells shorter (HBase `DataBlockEncoding`, hbase.md B3).
//!
//! An encoded block's payload is `u16 encoding id | body`. Decoding gives the plain layout of `data_block`, so everything behind it knows one form.

mod common;
mod diff;
mod fast_diff;
mod prefix;
mod rebuild;
mod row_index;
mod tag_dictionary;

use super::data_block::CellLayout;
use super::input::{Damage, Input, Parsed, put_compressed_int, put_vlong, vlong_len};
use crate::cell::Cell;
use crate::hfile::last_cell::LastCell;
use crate::schema::DataBlockEncoding;
use bytes::{BufMut, Bytes};
use rebuild::Rebuilder;
use row_index::RowIndex;
use std::ops::Range;
use tag_dictionary::TagDictionary;

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
    layout: CellLayout,
    tags_compressed: bool,
) -> Parsed<Bytes> {
    let mut input = Input::new(payload);
    let id = input.u16()?;
    if id != encoding_id(encoding) {
        return Err(Damage::new(format!("a block has the encoding {id}, not that of its file")));
    }
    let decode_differences = match encoding {
        DataBlockEncoding::None => return Ok(payload.slice(2..)),
        DataBlockEncoding::RowIndexV1 => return row_index::decode(&payload.slice(2..)),
        DataBlockEncoding::Prefix => prefix::decode,
        DataBlockEncoding::Diff => diff::decode,
        DataBlockEncoding::FastDiff => fast_diff::decode,
    };
    let mut cells = Rebuilder::new(input.rest(), layout, tags_compressed)?;
    decode_differences(&mut cells)?;
    cells.finish().map(Bytes::from)
}

/// Builds the payload of one data block after the other.
pub(crate) struct BlockEncoder {
    encoding: DataBlockEncoding,
    layout: CellLayout,
    out: Vec<u8>,
    /// What comes before the cells in `out`: encoding id and total.
    head_len: usize,
    plain_len: usize,
    /// Where FAST_DIFF wrote the last value.
    last_value: Range<usize>,
    row_index: RowIndex,
    /// For tags of the difference encodings.
    dictionary: Option<TagDictionary>,
}

impl BlockEncoder {
    pub(crate) fn new(encoding: DataBlockEncoding, layout: CellLayout, compress_tags: bool) -> BlockEncoder {
        let mut encoder = BlockEncoder {
            encoding,
            layout,
            out: Vec::new(),
            head_len: 0,
            plain_len: 0,
            last_value: 0..0,
            row_index: RowIndex::default(),
            dictionary: compress_tags.then(TagDictionary::default),
        };
        encoder.clear();
        encoder
    }

    /// Begins the next block.
    pub(crate) fn clear(&mut self) {
        self.out.clear();
        self.plain_len = 0;
        self.row_index.clear();
        if let Some(dictionary) = &mut self.dictionary {
            dictionary.clear();
        }
        if self.encoding != DataBlockEncoding::None {
            self.out.put_u16(encoding_id(self.encoding));
        }
        if is_difference(self.encoding) {
            self.out.put_u32(0);
        }
        self.head_len = self.out.len();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.plain_len == 0
    }

    /// Bytes of the cells so far, in the plain layout or encoded (with their row index), whichever are more: what BLOCKSIZE limits.
    pub(crate) fn len(&self) -> usize {
        self.plain_len.max(self.out.len() - self.head_len + self.row_index.len())
    }

    /// Appends a cell; `last` is the one before, of this block or an earlier one, and `same_row` says that it has the same row.
    pub(crate) fn append(&mut self, cell: &Cell, last: &LastCell, same_row: bool) {
        let previous = (!self.is_empty()).then_some(last);
        self.plain_len += plain_len(cell, self.layout);
        match self.encoding {
            DataBlockEncoding::None => append_plain(&mut self.out, cell, self.layout),
            DataBlockEncoding::RowIndexV1 => {
                self.row_index.note(previous.is_some() && same_row, self.out.len() - self.head_len);
                append_plain(&mut self.out, cell, self.layout);
            }
            DataBlockEncoding::Prefix => prefix::encode(cell, previous, &mut self.out),
            DataBlockEncoding::Diff => diff::encode(cell, previous, &mut self.out),
            DataBlockEncoding::FastDiff => fast_diff::encode(cell, previous, &mut self.last_value, &mut self.out),
        }
        if is_difference(self.encoding) {
            self.append_tail(cell);
        }
    }

    fn append_tail(&mut self, cell: &Cell) {
        if self.layout.tags {
            put_compressed_int(&mut self.out, cell.tags().len());
            match &mut self.dictionary {
                Some(dictionary) => dictionary.encode(cell.tags(), &mut self.out),
                None => self.out.put_slice(cell.tags()),
            }
        }
        if self.layout.sequence_ids {
            put_vlong(&mut self.out, cell.sequence_id() as i64);
        }
    }

    /// The payload of the block; the next one is built in `next`, which is empty.
    pub(crate) fn take(&mut self, next: Vec<u8>) -> Vec<u8> {
        self.finish();
        let payload = std::mem::replace(&mut self.out, next);
        self.clear();
        payload
    }

    /// The payload of the block.
    pub(crate) fn finish(&mut self) -> &[u8] {
        if self.encoding == DataBlockEncoding::RowIndexV1 {
            self.row_index.append_to(&mut self.out);
        }
        if is_difference(self.encoding)
            && let Some(total) = self.out.get_mut(2..6)
        {
            total.copy_from_slice(&(self.plain_len as u32).to_be_bytes());
        }
        &self.out
    }
}

fn is_difference(encoding: DataBlockEncoding) -> bool {
    matches!(encoding, DataBlockEncoding::Prefix | DataBlockEncoding::Diff | DataBlockEncoding::FastDiff)
}

/// Bytes of a cell in the plain layout.
pub(crate) fn plain_len(cell: &Cell, layout: CellLayout) -> usize {
    let tags = if layout.tags { 2 + cell.tags().len() } else { 0 };
    let sequence_id = if layout.sequence_ids { vlong_len(cell.sequence_id() as i64) } else { 0 };
    8 + cell.key_len() + cell.value_len() + tags + sequence_id
}

fn append_plain(out: &mut Vec<u8>, cell: &Cell, layout: CellLayout) {
    let (key_len, value_len) = (cell.key_len(), cell.value_len());
    out.put_u64((key_len as u64) << 32 | value_len as u64);
    out.put_slice(cell.encoded().get(..key_len + value_len).unwrap_or(&[]));
    if layout.tags {
        out.put_u16(cell.tags().len() as u16);
        out.put_slice(cell.tags());
    }
    if layout.sequence_ids {
        put_vlong(out, cell.sequence_id() as i64);
    }
}
