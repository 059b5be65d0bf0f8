//! A few bytes of each row beside the sorted keys themselves, so that a search rarely touches the keys.
//!
//! Rows of one block mostly share a long prefix. What tells them apart are the bytes behind it: the first four of those are kept as a
//! number for each key. A binary search over the numbers stays within a few cache lines and leaves only the keys that tie.

use std::cmp::Ordering;
use std::ops::Range;

/// Numbers that sort as the rows do, ties aside.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowPrefixes {
    common: Box<[u8]>,
    numbers: Box<[u32]>,
}

impl RowPrefixes {
    /// For rows in ascending order, of which `first` and `last` are the ends.
    pub(crate) fn new<'a>(first: &[u8], last: &[u8], rows: impl Iterator<Item = &'a [u8]>) -> RowPrefixes {
        let len = first.iter().zip(last).take_while(|(l, r)| l == r).count();
        let common: Box<[u8]> = first.get(..len).unwrap_or(&[]).into();
        RowPrefixes { numbers: rows.map(|row| number_behind(row, len)).collect(), common }
    }

    /// The keys that may have this row: those before it have smaller rows, those behind it greater ones.
    pub(crate) fn range(&self, row: &[u8]) -> Range<usize> {
        let len = self.common.len();
        match row.get(..len.min(row.len())).unwrap_or(&[]).cmp(&self.common) {
            Ordering::Less => 0..0,
            Ordering::Greater => self.numbers.len()..self.numbers.len(),
            Ordering::Equal => {
                let number = number_behind(row, len);
                let low = self.numbers.partition_point(|other| *other < number);
                let ties = self.numbers.get(low..).unwrap_or(&[]);
                // Ties are few: most often one.
                let high = match ties.get(1) {
                    Some(next) if *next == number => low + ties.partition_point(|other| *other <= number),
                    _ => low + usize::from(ties.first() == Some(&number)),
                };
                low..high
            }
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.common.len() + self.numbers.len() * 4
    }
}

fn number_behind(row: &[u8], len: usize) -> u32 {
    let rest = row.get(len..).unwrap_or(&[]);
    match rest.first_chunk::<4>() {
        Some(four) => u32::from_be_bytes(*four),
        None => rest.iter().rev().fold(0, |number, byte| number >> 8 | u32::from(*byte) << 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_exactly_the_rows_that_may_be_equal() {
        let rows: Vec<&[u8]> = vec![b"pre", b"pre\0", b"prea", b"preaaaa1", b"preaaaa2", b"preb", b"preb\xff", b"pref"];
        let prefixes = RowPrefixes::new(rows[0], rows[rows.len() - 1], rows.iter().copied());
        let probes: [&[u8]; 12] =
            [b"", b"a", b"pr", b"pre", b"pre\0", b"preaaaa", b"preaaaa2", b"preb\xfe", b"pree", b"preg", b"q", b"pqz"];
        for probe in probes {
            let range = prefixes.range(probe);
            assert!(rows[..range.start].iter().all(|row| *row < probe), "{probe:?} {range:?}");
            assert!(rows[range.end..].iter().all(|row| *row > probe), "{probe:?} {range:?}");
        }
        assert_eq!(prefixes.range(b"prea"), 2..3);
    }
}
