//! PREFIX: what a key has in common with the one before is left out (HBase `PrefixKeyDeltaEncoder`).
//!
//! ```text
//! cell = varint key length - common | varint value length | varint common | rest of key | value
//! ```

use super::common::common_prefix;
use super::rebuild::Rebuilder;
use crate::cell::Cell;
use crate::hfile::input::{Parsed, put_compressed_int};
use crate::hfile::last_cell::LastCell;
use bytes::BufMut;

pub(super) fn decode(cells: &mut Rebuilder<'_>) -> Parsed<()> {
    while !cells.input.is_empty() {
        let rest = cells.input.compressed_int()?;
        let value_len = cells.input.compressed_int()?;
        let common = cells.input.compressed_int()?;
        cells.begin(rest.saturating_add(common), value_len);
        cells.repeat_key(common)?;
        cells.copy(rest)?;
        cells.copy(value_len)?;
        cells.end()?;
    }
    Ok(())
}

pub(super) fn encode(cell: &Cell, previous: Option<&LastCell>, out: &mut Vec<u8>) {
    let common = previous.map_or(0, |previous| common_prefix(cell, previous, true));
    put_compressed_int(out, cell.key_len() - common);
    put_compressed_int(out, cell.value_len());
    put_compressed_int(out, common);
    out.put_slice(cell.key().get(common..).unwrap_or(&[]));
    out.put_slice(cell.value());
}
