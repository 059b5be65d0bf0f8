//! `agg`: counts and sums, of all rows or by the first bytes of their keys.

use crate::magic::forms::Encoder;
use crate::names;
use bytes::Bytes;
use cellfs::cell::Cell;
use cellfs::types::ColumnType;
use std::collections::BTreeMap;
use std::io::Write;

/// What is aggregated.
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregation {
    /// The column whose values are summed, and its type.
    pub(super) sum: Option<(Bytes, Bytes, Option<ColumnType>)>,
    /// The column is read for its sum only: a row that has nothing else does not count.
    pub(super) sum_only: bool,
    /// Bytes of the key that make a group.
    pub(super) group: Option<usize>,
}

/// A number as it was written: whole numbers stay exact.
#[derive(Clone, Copy, Debug)]
enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    /// Decimal text, spaces and a line end around it allowed.
    fn read(text: &str) -> Option<Number> {
        let text = text.trim_ascii();
        if let Ok(number) = text.parse::<i128>() {
            return Some(Number::Whole(number));
        }
        text.parse::<f64>().ok().filter(|number| number.is_finite()).map(Number::Real)
    }

    #[expect(clippy::cast_precision_loss, reason = "a number beyond 2^53 is shown rounded only beside fractions")]
    fn real(self) -> f64 {
        match self {
            Number::Whole(number) => number as f64,
            Number::Real(number) => number,
        }
    }

    fn plus(self, other: Number) -> Number {
        match (self, other) {
            (Number::Whole(left), Number::Whole(right)) => {
                left.checked_add(right).map_or_else(|| Number::Real(self.real() + other.real()), Number::Whole)
            }
            _ => Number::Real(self.real() + other.real()),
        }
    }

    fn is_less(self, other: Number) -> bool {
        match (self, other) {
            (Number::Whole(left), Number::Whole(right)) => left < right,
            _ => self.real() < other.real(),
        }
    }

    fn show(self) -> String {
        match self {
            Number::Whole(number) => number.to_string(),
            Number::Real(number) => number.to_string(),
        }
    }
}

#[derive(Debug, Default)]
struct Group {
    rows: u64,
    numbers: u64,
    skipped: u64,
    sum: Option<Number>,
    min: Option<Number>,
    max: Option<Number>,
}

impl Group {
    fn add(&mut self, number: Number) {
        self.numbers += 1;
        self.sum = Some(self.sum.map_or(number, |sum| sum.plus(number)));
        self.min = Some(self.min.filter(|min| !number.is_less(*min)).unwrap_or(number));
        self.max = Some(self.max.filter(|max| !max.is_less(number)).unwrap_or(number));
    }

    /// sum, min, max, avg; empty where there was no number.
    fn figures(&self) -> [(&'static str, Option<String>); 4] {
        let show = |number: Option<Number>| number.map(Number::show);
        #[expect(clippy::cast_precision_loss, reason = "a count of rows is far below 2^53")]
        let average = self.sum.map(|sum| (sum.real() / self.numbers as f64).to_string());
        let sum = Some(self.sum.map_or_else(|| "0".to_owned(), Number::show));
        [("sum", sum), ("min", show(self.min)), ("max", show(self.max)), ("avg", average)]
    }
}

/// Takes rows in and shows the figures at the end. Memory grows with the number of groups.
pub(super) struct AggregateEncoder {
    aggregation: Aggregation,
    groups: BTreeMap<Bytes, Group>,
    /// Of the row that is coming in: its group, once it counts; and whether its number has come.
    row: Option<Bytes>,
    summed: bool,
}

impl AggregateEncoder {
    pub(super) fn new(aggregation: Aggregation) -> AggregateEncoder {
        AggregateEncoder { aggregation, groups: BTreeMap::new(), row: None, summed: false }
    }

    fn group_of(&self, row: &[u8]) -> Bytes {
        let length = self.aggregation.group.unwrap_or(0).min(row.len());
        Bytes::copy_from_slice(row.get(..length).unwrap_or_default())
    }

    fn take(&mut self, cell: &Cell) {
        let summand = self.aggregation.sum.as_ref().and_then(|(family, qualifier, of)| {
            (cell.family() == family && cell.qualifier() == qualifier).then_some(*of)
        });
        if self.row.is_none() && !(self.aggregation.sum_only && summand.is_some()) {
            let group = self.group_of(cell.row());
            self.groups.entry(group.clone()).or_default().rows += 1;
            self.row = Some(group);
        }
        // Versions come newest first: the first one counts.
        if let Some(of) = summand
            && !cell.is_delete()
            && !std::mem::replace(&mut self.summed, true)
        {
            let text = match of {
                Some(of) => of.decode(cell.value()).ok(),
                None => std::str::from_utf8(cell.value()).ok().map(str::to_owned),
            };
            let group = self.groups.entry(self.group_of(cell.row())).or_default();
            match text.and_then(|text| Number::read(&text)) {
                Some(number) => group.add(number),
                None => group.skipped += 1,
            }
        }
    }
}

impl Encoder for AggregateEncoder {
    fn cells(&mut self, cells: &[Cell], more: bool, _out: &mut Vec<u8>) {
        for cell in cells {
            self.take(cell);
        }
        if !more {
            self.row = None;
            self.summed = false;
        }
    }

    // Writing to memory cannot fail.
    fn end(&mut self, out: &mut Vec<u8>) {
        let sums = self.aggregation.sum.is_some();
        if self.aggregation.group.is_none() {
            let all = self.groups.remove(&Bytes::new()).unwrap_or_default();
            let _ = writeln!(out, "count {}", all.rows);
            if sums {
                for (name, value) in all.figures() {
                    let _ = value.map_or(Ok(()), |value| writeln!(out, "{name} {value}"));
                }
                let _ = writeln!(out, "skipped {}", all.skipped);
            }
            return;
        }
        out.extend_from_slice(if sums { b"group\tcount\tsum\tmin\tmax\tavg\tskipped\n" } else { b"group\tcount\n" });
        for (key, group) in std::mem::take(&mut self.groups) {
            out.extend_from_slice(&names::encode_row(&key));
            let _ = write!(out, "\t{}", group.rows);
            if sums {
                for (_, value) in group.figures() {
                    let _ = write!(out, "\t{}", value.unwrap_or_default());
                }
                let _ = write!(out, "\t{}", group.skipped);
            }
            out.push(b'\n');
        }
    }
}
