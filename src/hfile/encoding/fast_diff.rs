//! FAST_DIFF: as DIFF, with timestamps by their common leading bytes, and equal values left out (HBase `FastDiffDeltaEncoder`).
//!
//! ```text
//! first cell = u8 0 | varint key length | varint value length | varint 0 | key | value
//! cell       = u8 flags | [varint key length] | [varint value length] | varint common | rest of row and qualifier
//!            | trailing bytes of the timestamp | [u8 type] | [value]
//! ```

use super::common::{common_len, common_prefix, put_columns};
use super::rebuild::Rebuilder;
use crate::cell::Cell;
use crate::hfile::input::{Damage, Parsed, put_compressed_int};
use crate::hfile::last_cell::LastCell;
use bytes::BufMut;
use std::ops::Range;

/// Three bits: leading bytes of the timestamp that are the previous one's.
const TIMESTAMP_PREFIX: u8 = 7;
const SAME_KEY_LENGTH: u8 = 8;
const SAME_VALUE_LENGTH: u8 = 16;
const SAME_TYPE: u8 = 32;
const SAME_VALUE: u8 = 64;

pub(super) fn decode(cells: &mut Rebuilder<'_>) -> Parsed<()> {
    let mut family = Vec::new();
    while !cells.input.is_empty() {
        if cells.is_first() {
            decode_first(cells)?;
            family = cells.last_family()?;
        } else {
            decode_cell(cells, &family)?;
        }
    }
    Ok(())
}

fn decode_first(cells: &mut Rebuilder<'_>) -> Parsed<()> {
    let flags = cells.input.u8()?;
    let key_len = cells.input.compressed_int()?;
    let value_len = cells.input.compressed_int()?;
    let common = cells.input.compressed_int()?;
    if flags != 0 || common != 0 {
        return Err(Damage::new("the first cell of an encoded block leans on one before"));
    }
    cells.begin(key_len, value_len);
    cells.copy(key_len)?;
    cells.copy(value_len)?;
    cells.end()
}

fn decode_cell(cells: &mut Rebuilder<'_>, family: &[u8]) -> Parsed<()> {
    let flags = cells.input.u8()?;
    let (last_key_len, last_value_len) = cells.last_lengths()?;
    let key_len = if flags & SAME_KEY_LENGTH == 0 { cells.input.compressed_int()? } else { last_key_len };
    let value_len = if flags & SAME_VALUE_LENGTH == 0 { cells.input.compressed_int()? } else { last_value_len };
    let common = cells.input.compressed_int()?;
    let last = cells.last_tail()?;
    cells.begin(key_len, value_len);
    cells.columns(common, family)?;

    let prefix = usize::from(flags & TIMESTAMP_PREFIX);
    let mut timestamp = last.timestamp.to_be_bytes();
    let fresh = cells.input.take(8 - prefix)?;
    timestamp.iter_mut().skip(prefix).zip(fresh).for_each(|(to, from)| *to = *from);
    cells.put(&timestamp);
    let type_code = if flags & SAME_TYPE == 0 { cells.input.u8()? } else { last.type_code };
    cells.put(&[type_code]);
    if flags & SAME_VALUE == 0 {
        cells.copy(value_len)?
    } else {
        cells.repeat_value()?
    }
    cells.end()
}

/// `last_value` is where in `out` the value of the cell before stands; it moves to this cell's.
pub(super) fn encode(cell: &Cell, previous: Option<&LastCell>, last_value: &mut Range<usize>, out: &mut Vec<u8>) {
    let Some(previous) = previous else {
        out.put_u8(0);
        put_compressed_int(out, cell.key_len());
        put_compressed_int(out, cell.value_len());
        put_compressed_int(out, 0);
        out.put_slice(cell.key());
        put_value(cell, last_value, out);
        return;
    };
    let common = common_prefix(cell, previous, false);
    let timestamp = cell.timestamp().to_be_bytes();
    let prefix = common_len(&timestamp, &previous.timestamp().to_be_bytes()).min(usize::from(TIMESTAMP_PREFIX));
    let mut flags = prefix as u8;
    if cell.key_len() == previous.key().len() {
        flags |= SAME_KEY_LENGTH;
    }
    if cell.value_len() == previous.value_len() {
        flags |= SAME_VALUE_LENGTH;
    }
    if cell.type_code() == previous.type_code() {
        flags |= SAME_TYPE;
    }
    if out.get(last_value.clone()) == Some(cell.value()) {
        flags |= SAME_VALUE;
    }
    out.put_u8(flags);
    if flags & SAME_KEY_LENGTH == 0 {
        put_compressed_int(out, cell.key_len());
    }
    if flags & SAME_VALUE_LENGTH == 0 {
        put_compressed_int(out, cell.value_len());
    }
    put_compressed_int(out, common);
    put_columns(cell, common, out);
    out.put_slice(timestamp.get(prefix..).unwrap_or(&[]));
    if flags & SAME_TYPE == 0 {
        out.put_u8(cell.type_code());
    }
    if flags & SAME_VALUE == 0 {
        put_value(cell, last_value, out);
    }
}

fn put_value(cell: &Cell, last_value: &mut Range<usize>, out: &mut Vec<u8>) {
    let start = out.len();
    out.put_slice(cell.value());
    *last_value = start..out.len();
}
