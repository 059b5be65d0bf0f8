//! DIFF: common prefixes, equal lengths and types left out, timestamps as differences (HBase `DiffKeyDeltaEncoder`).
//!
//! ```text
//! block = u8 family length | family | cells
//! cell  = u8 flags | [varint key length] | [varint value length] | varint common | rest of row and qualifier
//!       | timestamp, little-endian, 1 to 8 bytes | [u8 type] | value
//! ```

use super::common::{common_prefix, put_columns};
use super::rebuild::Rebuilder;
use crate::cell::Cell;
use crate::hfile::input::{Parsed, put_compressed_int};
use crate::hfile::last_cell::LastCell;
use bytes::BufMut;

const SAME_KEY_LENGTH: u8 = 1;
const SAME_VALUE_LENGTH: u8 = 2;
const SAME_TYPE: u8 = 4;
const TIMESTAMP_IS_DIFFERENCE: u8 = 8;
/// Three bits: bytes of the timestamp, less one.
const TIMESTAMP_WIDTH_SHIFT: u32 = 4;
const NEGATIVE: u8 = 0x80;

pub(super) fn decode(cells: &mut Rebuilder<'_>) -> Parsed<()> {
    let family_len = cells.input.u8()?;
    let mut family = vec![family_len];
    family.extend_from_slice(cells.input.take(usize::from(family_len))?);
    while !cells.input.is_empty() {
        decode_cell(cells, &family)?;
    }
    Ok(())
}

fn decode_cell(cells: &mut Rebuilder<'_>, family: &[u8]) -> Parsed<()> {
    let flags = cells.input.u8()?;
    let key_len = if flags & SAME_KEY_LENGTH == 0 { cells.input.compressed_int()? } else { cells.last_lengths()?.0 };
    let value_len =
        if flags & SAME_VALUE_LENGTH == 0 { cells.input.compressed_int()? } else { cells.last_lengths()?.1 };
    let common = cells.input.compressed_int()?;
    cells.begin(key_len, value_len);
    cells.columns(common, family)?;

    let width = usize::from((flags >> TIMESTAMP_WIDTH_SHIFT) & 7) + 1;
    let mut magnitude = [0u8; 8];
    magnitude.iter_mut().zip(cells.input.take(width)?).for_each(|(to, from)| *to = *from);
    let mut timestamp = i64::from_le_bytes(magnitude);
    if flags & NEGATIVE != 0 {
        timestamp = timestamp.wrapping_neg();
    }
    if flags & TIMESTAMP_IS_DIFFERENCE != 0 {
        timestamp = cells.last_tail()?.timestamp.wrapping_sub(timestamp);
    }
    cells.put(&timestamp.to_be_bytes());
    let type_code = if flags & SAME_TYPE == 0 { cells.input.u8()? } else { cells.last_tail()?.type_code };
    cells.put(&[type_code]);
    cells.copy(value_len)?;
    cells.end()
}

/// The fewest bytes that hold the number; negative ones (the magnitude of the least) take all 8.
fn width_of(magnitude: i64) -> u8 {
    (8 - magnitude.leading_zeros() as u8 / 8).max(1)
}

pub(super) fn encode(cell: &Cell, previous: Option<&LastCell>, out: &mut Vec<u8>) {
    let mut flags = 0;
    let mut common = 0;
    let mut number = cell.timestamp();
    if let Some(previous) = previous {
        common = common_prefix(cell, previous, false);
        if cell.key_len() == previous.key().len() {
            flags |= SAME_KEY_LENGTH;
        }
        if cell.value_len() == previous.value_len() {
            flags |= SAME_VALUE_LENGTH;
        }
        if cell.type_code() == previous.type_code() {
            flags |= SAME_TYPE;
        }
        let difference = previous.timestamp().wrapping_sub(cell.timestamp());
        if width_of(difference.wrapping_abs()) < width_of(number.wrapping_abs()) {
            flags |= TIMESTAMP_IS_DIFFERENCE;
            number = difference;
        }
    } else {
        out.put_u8(cell.family().len() as u8);
        out.put_slice(cell.family());
    }
    if number < 0 {
        flags |= NEGATIVE;
        number = number.wrapping_neg();
    }
    let width = width_of(number);
    out.put_u8(flags | ((width - 1) << TIMESTAMP_WIDTH_SHIFT));
    if flags & SAME_KEY_LENGTH == 0 {
        put_compressed_int(out, cell.key_len());
    }
    if flags & SAME_VALUE_LENGTH == 0 {
        put_compressed_int(out, cell.value_len());
    }
    put_compressed_int(out, common);
    put_columns(cell, common, out);
    out.put_slice(number.to_le_bytes().get(..usize::from(width)).unwrap_or(&[]));
    if flags & SAME_TYPE == 0 {
        out.put_u8(cell.type_code());
    }
    out.put_slice(cell.value());
}
