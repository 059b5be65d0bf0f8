//! How far two keys are the same, and what of a key is then written (HBase `PrivateCellUtil.findCommonPrefixInFlatKey`).

use crate::cell::Cell;
use crate::hfile::last_cell::LastCell;
use bytes::BufMut;

pub(super) fn common_len(left: &[u8], right: &[u8]) -> usize {
    let mut common = 0;
    // Eight bytes at a time: what differs first is the lowest byte that is not the same.
    let (lefts, rights) = (left.as_chunks::<8>().0, right.as_chunks::<8>().0);
    for (l, r) in lefts.iter().zip(rights) {
        let differs = u64::from_le_bytes(*l) ^ u64::from_le_bytes(*r);
        if differs != 0 {
            return common + differs.trailing_zeros() as usize / 8;
        }
        common += 8;
    }
    let (left, right) = (left.get(common..).unwrap_or(&[]), right.get(common..).unwrap_or(&[]));
    common + left.iter().zip(right).take_while(|(l, r)| l == r).count()
}

/// Bytes of the flat key that are the same as the previous one's: of the row, or of row, family and qualifier, or with `tail` of
/// timestamp and type too. The family is the same in all of a file.
pub(super) fn common_prefix(cell: &Cell, previous: &LastCell, tail: bool) -> usize {
    let (row, previous_row) = (cell.row(), previous.row());
    if row.len() != previous_row.len() {
        // The two bytes of the row's length: the first may be the same.
        return usize::from(row.len() >> 8 == previous_row.len() >> 8);
    }
    let common_row = common_len(row, previous_row);
    if common_row < row.len() {
        return 2 + common_row;
    }
    let columns = columns_start(cell);
    let common_qualifier = common_len(cell.qualifier(), previous.qualifier());
    let whole = cell.qualifier().len() == previous.qualifier().len() && common_qualifier == cell.qualifier().len();
    if !tail || !whole {
        return columns + common_qualifier;
    }
    let from = columns + common_qualifier;
    from + common_len(cell.key().get(from..).unwrap_or(&[]), previous.key().get(from..).unwrap_or(&[]))
}

fn columns_start(cell: &Cell) -> usize {
    2 + cell.row().len() + 1 + cell.family().len()
}

/// Appends the rest of row and qualifier; a row that differs goes without the family.
pub(super) fn put_columns(cell: &Cell, common: usize, out: &mut Vec<u8>) {
    let row_end = 2 + cell.row().len();
    if common < row_end {
        out.put_slice(cell.key().get(common..row_end).unwrap_or(&[]));
        out.put_slice(cell.qualifier());
    } else {
        let skip = common.saturating_sub(columns_start(cell));
        out.put_slice(cell.qualifier().get(skip..).unwrap_or(&[]));
    }
}
