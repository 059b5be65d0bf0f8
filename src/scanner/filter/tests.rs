//! Filters by themselves; what they do in gets and scans, the scripts recorded from HBase judge (`tests/hbase_vectors`).

use super::{CellFilter, ReturnCode, compile};
use crate::cell::{Cell, CellType};
use crate::client::{BitOperator, Comparator, CompareOperator, Comparison, Filter, FilterRowRange};
use crate::error::Error;

fn cell(row: &str, qualifier: &str, timestamp: i64, value: &[u8]) -> Cell {
    Cell::new(row.as_bytes(), b"f", qualifier.as_bytes(), timestamp, CellType::Put, value)
}

fn passes(comparator: Comparator, operator: CompareOperator, value: &[u8]) -> bool {
    let mut filter = compile(&Filter::Value(Comparison { operator, comparator }), false).unwrap();
    filter.filter_cell(&cell("r", "q", 1, value)).unwrap() == ReturnCode::Include
}

#[test]
fn comparators_compare() {
    use CompareOperator::{Equal, Greater, Less, NoOp, NotEqual};
    let binary = |value: &'static str| Comparator::Binary(value.into());
    assert!(passes(binary("b"), Less, b"a") && passes(binary("b"), Greater, b"ba") && !passes(binary("b"), NoOp, b"b"));
    let prefix = || Comparator::BinaryPrefix("ab".into());
    assert!(passes(prefix(), Equal, b"abc") && passes(prefix(), Less, b"a") && !passes(prefix(), Equal, b"a"));
    let component = || Comparator::BinaryComponent { value: "bc".into(), offset: 1 };
    assert!(passes(component(), Equal, b"abcd") && passes(component(), NotEqual, b"a"));
    let substring = || Comparator::Substring("\u{c4}b".into());
    assert!(passes(substring(), Equal, "x\u{e4}BX".as_bytes()) && passes(substring(), NotEqual, b"\xffab"));
    let regex = |ignore_case| Comparator::Regex { pattern: "^a.c".into(), ignore_case };
    assert!(passes(regex(false), Equal, b"a\nc9") && !passes(regex(false), Equal, b"ABC"));
    assert!(passes(regex(true), Equal, b"ABC"));
    let bit = |operator| Comparator::Bit { value: (&b"\x01\x02"[..]).into(), operator };
    assert!(passes(bit(BitOperator::And), Equal, b"\x00\x02") && !passes(bit(BitOperator::And), Equal, b"\x02\x01"));
    assert!(passes(bit(BitOperator::Or), Equal, b"\x00\x00") && !passes(bit(BitOperator::Xor), Equal, b"\x01\x02"));
    assert!(!passes(bit(BitOperator::Or), Equal, b"\x01"));
    assert!(!passes(Comparator::Null, Equal, b"") && passes(Comparator::Null, NotEqual, b""));
    assert!(passes(Comparator::Long(-5), Greater, &1i64.to_be_bytes()));
    let mut long =
        compile(&Filter::Value(Comparison { operator: Equal, comparator: Comparator::Long(1) }), false).unwrap();
    assert!(matches!(long.filter_cell(&cell("r", "q", 1, b"1")), Err(Error::InvalidArgument(_))));
}

#[test]
fn what_cannot_mean_anything_is_refused() {
    let regex = Comparator::Regex { pattern: "(".into(), ignore_case: false };
    let nested = (0..200).fold(Filter::FirstKeyOnly, |filter, _| Filter::Skip(Box::new(filter)));
    let bad = [
        Filter::Row(Comparison { operator: CompareOperator::Equal, comparator: regex }),
        Filter::Timestamps { timestamps: [-1].into() },
        Filter::MultiRowRange { ranges: Vec::new() },
        nested,
    ];
    for filter in bad {
        assert!(matches!(compile(&filter, false), Err(Error::InvalidArgument(_))));
    }
}

fn rows_of(filter: &mut dyn CellFilter, rows: &[&str]) -> Vec<String> {
    let mut passed = Vec::new();
    for row in rows {
        if filter.filter_all_remaining() {
            break;
        }
        let included = !filter.filter_row_key(row.as_bytes()).unwrap()
            && filter.filter_cell(&cell(row, "q", 1, b"")).unwrap().includes();
        if included {
            passed.push((*row).to_string());
        }
        filter.reset();
    }
    passed
}

#[test]
fn several_ranges_of_rows_in_both_directions() {
    let range = |start: &'static str, include_start, stop: &'static str, include_stop| FilterRowRange {
        start: start.into(),
        include_start,
        stop: stop.into(),
        include_stop,
    };
    let ranges = vec![range("f", true, "h", false), range("b", false, "c", true), range("g", true, "g", true)];
    let filter = Filter::MultiRowRange { ranges };
    let mut rows = ["a", "b", "bb", "c", "d", "f", "g", "h", "i"];
    let mut forward = compile(&filter, false).unwrap();
    assert_eq!(rows_of(forward.as_mut(), &rows), ["bb", "c", "f", "g"]);
    assert!(forward.filter_all_remaining());
    rows.reverse();
    let mut backward = compile(&filter, true).unwrap();
    assert_eq!(rows_of(backward.as_mut(), &rows), ["g", "f", "c", "bb"]);
    let mut hinting = compile(&filter, false).unwrap();
    assert!(!hinting.filter_row_key(b"d").unwrap());
    assert_eq!(hinting.filter_cell(&cell("d", "q", 1, b"")).unwrap(), ReturnCode::SeekNextUsingHint);
    assert_eq!(hinting.next_cell_hint(&cell("d", "q", 1, b"")).unwrap().row(), b"f");
}

#[test]
fn dependent_columns_keep_the_timestamps_of_one() {
    let filter = Filter::DependentColumn {
        family: "f".into(),
        qualifier: "a".into(),
        drop_dependent_column: true,
        comparison: Some(Comparison::equal("yes")),
    };
    let mut filter = compile(&filter, false).unwrap();
    let cells = [cell("r", "a", 5, b"yes"), cell("r", "a", 4, b"no"), cell("r", "b", 5, b""), cell("r", "b", 4, b"")];
    let mut row: Vec<Cell> =
        cells.into_iter().filter(|cell| filter.filter_cell(cell).unwrap() == ReturnCode::Include).collect();
    assert_eq!(row.len(), 2);
    filter.filter_row_cells(&mut row);
    assert_eq!(row.iter().map(Cell::timestamp).collect::<Vec<_>>(), [5]);
}

#[test]
fn a_prefix_is_compared_with_the_key_alone() {
    // HBase 2.6.4 would take the bytes behind a shorter key into account, here the length of the family.
    let prefix = Filter::Prefix { prefix: (&b"a\x00"[..]).into() };
    let mut filter = compile(&prefix, false).unwrap();
    assert_eq!(rows_of(filter.as_mut(), &["a", "a\u{0}", "a\u{0}b", "a\u{1}"]), ["a\u{0}", "a\u{0}b"]);
    assert!(filter.filter_all_remaining());
}
