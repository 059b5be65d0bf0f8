//! The one order of cells (HBase `CellComparatorImpl`, `InnerStoreCellComparator`).

use super::Cell;
use std::cmp::Ordering;

/// Row, family, qualifier ascending as unsigned bytes; then timestamp, type and sequence id descending.
pub fn compare(left: &Cell, right: &Cell) -> Ordering {
    compare_rows_and_columns(left, right)
        .then_with(|| right.timestamp().cmp(&left.timestamp()))
        .then_with(|| right.type_code().cmp(&left.type_code()))
        .then_with(|| right.sequence_id().cmp(&left.sequence_id()))
}

/// Row, family and qualifier only.
pub fn compare_rows_and_columns(left: &Cell, right: &Cell) -> Ordering {
    left.row()
        .cmp(right.row())
        .then_with(|| left.family().cmp(right.family()))
        .then_with(|| left.qualifier().cmp(right.qualifier()))
}

/// The first eight bytes of `bytes` as a number that sorts as they do, ties aside: most comparisons of rows need no more.
pub fn leading_bytes(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(eight) => u64::from_be_bytes(*eight),
        None => bytes.iter().rev().fold(0, |number, byte| number >> 8 | u64::from(*byte) << 56),
    }
}

/// The order of [`compare`] on flat keys (HFile index keys), without sequence ids. Keys that are too short sort as if padded with nothing.
pub fn compare_flat_keys(left: &[u8], right: &[u8]) -> Ordering {
    FlatKeyProbe::new(right).compare_to_probe(left)
}

/// One flat key that many are compared with: it is taken apart once.
pub(crate) struct FlatKeyProbe<'a>(FlatKey<'a>);

impl<'a> FlatKeyProbe<'a> {
    pub(crate) fn new(key: &'a [u8]) -> FlatKeyProbe<'a> {
        FlatKeyProbe(FlatKey::parse(key))
    }

    /// How `stored` sorts relative to the probe, as [`compare_flat_keys`] has it.
    pub(crate) fn compare_to_probe(&self, stored: &[u8]) -> Ordering {
        // Most keys differ in the row: the rest is looked at only when it counts.
        match row_of(stored).cmp(self.0.row) {
            Ordering::Equal => {}
            order => return order,
        }
        let (l, r) = (FlatKey::parse(stored), &self.0);
        l.family
            .cmp(r.family)
            .then_with(|| l.qualifier.cmp(r.qualifier))
            .then_with(|| r.timestamp.cmp(&l.timestamp))
            .then_with(|| r.type_code.cmp(&l.type_code))
    }

    pub(crate) fn row(&self) -> &'a [u8] {
        self.0.row
    }
}

struct FlatKey<'a> {
    row: &'a [u8],
    family: &'a [u8],
    qualifier: &'a [u8],
    timestamp: i64,
    type_code: u8,
}

fn row_of(key: &[u8]) -> &[u8] {
    let row_len = key.first_chunk::<2>().map_or(0, |be| usize::from(u16::from_be_bytes(*be)));
    key.get(2..2 + row_len).unwrap_or(&[])
}

impl<'a> FlatKey<'a> {
    fn parse(key: &'a [u8]) -> FlatKey<'a> {
        let row_len = key.first_chunk::<2>().map_or(0, |be| usize::from(u16::from_be_bytes(*be)));
        let row = row_of(key);
        let family_len = key.get(2 + row_len).copied().map_or(0, usize::from);
        let family_start = 3 + row_len;
        let family = key.get(family_start..family_start + family_len).unwrap_or(&[]);
        let tail = key.len().saturating_sub(9);
        let qualifier = key.get(family_start + family_len..tail).unwrap_or(&[]);
        let timestamp =
            key.get(tail..tail + 8).and_then(|be| <[u8; 8]>::try_from(be).ok()).map_or(i64::MAX, i64::from_be_bytes);
        FlatKey { row, family, qualifier, timestamp, type_code: key.last().copied().unwrap_or(u8::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::CellType;
    use super::*;

    #[test]
    fn order_is_hbases() {
        let ordered = [
            Cell::first_on_row(b"a"),
            Cell::new(b"a", b"f", b"", 9, CellType::DeleteFamily, b""),
            Cell::new(b"a", b"f", b"q", 9, CellType::DeleteColumn, b""),
            Cell::new(b"a", b"f", b"q", 9, CellType::Delete, b""),
            Cell::new(b"a", b"f", b"q", 9, CellType::Put, b"x").with_sequence_id(5),
            Cell::new(b"a", b"f", b"q", 9, CellType::Put, b"x").with_sequence_id(4),
            Cell::new(b"a", b"f", b"q", -9, CellType::Put, b"x"),
            Cell::new(b"a", b"f", b"q\0", 9, CellType::Put, b"x"),
            Cell::new(b"a\0", b"f", b"", 9, CellType::Put, b"x"),
            Cell::new(b"\xff", b"f", b"", 9, CellType::Put, b"x"),
        ];
        for pair in ordered.windows(2) {
            assert_eq!(compare(&pair[0], &pair[1]), Ordering::Less, "{pair:?}");
            if pair[0].sequence_id() == pair[1].sequence_id() {
                assert_eq!(compare_flat_keys(pair[0].key(), pair[1].key()), Ordering::Less, "{pair:?}");
            }
        }
    }
}
