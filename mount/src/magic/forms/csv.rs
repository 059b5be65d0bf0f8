//! `csv`: RFC 4180. A header record `row,column...`, then a record per row. A field with a comma, a quote or a line break is quoted, a quote inside doubled;
//! an empty field is an absent cell. Records end in a newline alone; a carriage return before it is taken. Values are bytes as they are.
//!
//! A record that breaks the form costs its first line only: reading goes on with the line after it, even if an open quote had swallowed that one.

use super::columns::Header;
use super::lines::without_byte_order_mark;
use super::{
    BadHeader, Decoder, Encoder, Incoming, IncomingCell, LineSink, MAX_LINE, check_row, field_value, value_field,
};
use bytes::Bytes;
use cellfs::cell::{Cell, CellType};
use cellfs::schema::ColumnTypes;
use cellfs::types::ColumnType;
use std::sync::Arc;

/// Writes `csv`.
#[derive(Debug)]
pub struct CsvEncoder {
    row: RowOfColumns,
}

impl CsvEncoder {
    /// The rows as these columns, which have these types.
    pub fn new(columns: Vec<(Bytes, Bytes)>, types: &ColumnTypes) -> CsvEncoder {
        CsvEncoder { row: RowOfColumns::new(columns, types) }
    }
}

impl Encoder for CsvEncoder {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"row");
        for (family, qualifier) in self.row.columns() {
            out.push(b',');
            push_field(&[&family[..], b":", qualifier].concat(), out);
        }
        out.push(b'\n');
    }

    fn cells(&mut self, cells: &[Cell], more: bool, out: &mut Vec<u8>) {
        if let Some((row, values)) = self.row.add(cells, more) {
            push_field(&row, out);
            for value in values {
                out.push(b',');
                push_field(&value, out);
            }
            out.push(b'\n');
        }
    }
}

fn push_field(field: &[u8], out: &mut Vec<u8>) {
    // A mark in front of the first row would be taken for the stream's byte order mark.
    let quote = field.starts_with(b"\xEF\xBB\xBF") || field.iter().any(|b| matches!(b, b',' | b'"' | b'\n' | b'\r'));
    if !quote {
        out.extend_from_slice(field);
        return;
    }
    out.push(b'"');
    for b in field {
        if *b == b'"' {
            out.push(b'"');
        }
        out.push(*b);
    }
    out.push(b'"');
}

/// Collects the newest values of chosen columns of one row, over the parts in which it comes.
#[derive(Debug)]
pub(super) struct RowOfColumns {
    columns: Vec<(Bytes, Bytes)>,
    types: Vec<Option<ColumnType>>,
    row: Bytes,
    values: Vec<Option<Bytes>>,
}

impl RowOfColumns {
    pub(super) fn new(columns: Vec<(Bytes, Bytes)>, types: &ColumnTypes) -> RowOfColumns {
        let types = columns.iter().map(|(family, qualifier)| types.get(family, qualifier)).collect();
        RowOfColumns { values: vec![None; columns.len()], columns, types, row: Bytes::new() }
    }

    pub(super) fn columns(&self) -> &[(Bytes, Bytes)] {
        &self.columns
    }

    /// Takes cells; gives the row with the values of its columns (empty = absent) when it is whole and has any.
    pub(super) fn add(&mut self, cells: &[Cell], more: bool) -> Option<(Bytes, Vec<Bytes>)> {
        for cell in cells.iter().filter(|cell| !cell.is_delete()) {
            let wanted =
                |(family, qualifier): &(Bytes, Bytes)| cell.family() == family && cell.qualifier() == qualifier;
            let slot = self.columns.iter().position(wanted).and_then(|place| self.values.get_mut(place));
            if let Some(slot @ None) = slot {
                *slot = Some(cell.value_bytes());
                self.row = cell.row_bytes();
            }
        }
        if more || self.values.iter().all(Option::is_none) {
            return None;
        }
        let field = |(value, of): (&mut Option<Bytes>, &Option<ColumnType>)| {
            value.take().map(|value| value_field(&value, *of)).unwrap_or_default()
        };
        let values = self.values.iter_mut().zip(&self.types).map(field).collect();
        Some((std::mem::take(&mut self.row), values))
    }
}

/// Reads `csv`.
#[derive(Debug)]
pub struct CsvDecoder {
    types: Arc<ColumnTypes>,
    pending: Vec<u8>,
    /// Bytes of `pending` that were looked at without finding the record's end.
    looked_at: usize,
    /// A line over [`MAX_LINE`] was refused; what is left of it is dropped as it comes.
    dropping: bool,
    /// Whether the bytes looked at end inside quotes.
    in_quotes: bool,
    /// Whole lines before `pending`.
    lines: u64,
    header: Option<Result<Header, BadHeader>>,
}

/// How far the reading of a record came.
enum Step {
    /// A record of this many bytes, with its fields.
    Record(usize, Vec<Vec<u8>>),
    /// It does not end here; true: a quote is open.
    More(bool),
    /// It breaks the form.
    Broken(&'static str),
}

impl Decoder for CsvDecoder {
    fn push(&mut self, data: &[u8], sink: &mut dyn LineSink) -> Result<(), BadHeader> {
        self.pending.extend_from_slice(data);
        self.read(false, sink)
    }

    fn finish(&mut self, sink: &mut dyn LineSink) -> Result<(), BadHeader> {
        self.read(true, sink)
    }
}

impl CsvDecoder {
    /// For columns with these types.
    pub fn new(types: Arc<ColumnTypes>) -> CsvDecoder {
        CsvDecoder {
            types,
            pending: Vec::new(),
            looked_at: 0,
            dropping: false,
            in_quotes: false,
            lines: 0,
            header: None,
        }
    }

    fn read(&mut self, last: bool, sink: &mut dyn LineSink) -> Result<(), BadHeader> {
        if let Some(Err(bad)) = &self.header {
            return Err(bad.clone());
        }
        if !last && self.must_wait() {
            return Ok(());
        }
        let pending = std::mem::take(&mut self.pending);
        let mut rest = pending.as_slice();
        if self.dropping {
            let end = rest.iter().position(|b| *b == b'\n');
            self.dropping = end.is_none() && !last;
            rest = end.and_then(|end| rest.get(end + 1..)).unwrap_or(&[]);
        }
        while !rest.is_empty() {
            let number = self.lines + 1;
            let mark = rest.len() - without_byte_order_mark(number, rest).len();
            let step = match next_record(rest.get(mark..).unwrap_or(rest), last) {
                Step::More(_) if rest.len() > MAX_LINE => {
                    Step::Broken("the record is too long, or a quote is not closed")
                }
                Step::More(_) if last => Step::Broken("a quote is not closed"),
                step => step,
            };
            let good = match step {
                Step::More(in_quotes) => {
                    self.in_quotes = in_quotes;
                    break;
                }
                Step::Broken(reason) => Err(reason.to_owned()),
                Step::Record(length, fields) => self.record(number, fields, sink).map(|()| mark + length),
            };
            let length = match good {
                Ok(length) => length,
                Err(reason) => {
                    let end = rest.iter().position(|b| *b == b'\n');
                    if end.is_none() && !last && rest.len() <= MAX_LINE {
                        // The line that is to be dropped has not come whole yet.
                        self.in_quotes = false;
                        break;
                    }
                    self.dropping = end.is_none() && !last;
                    self.broken(number, reason, sink)?;
                    end.map_or(rest.len(), |end| end + 1)
                }
            };
            let (record, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
            self.lines += record.iter().filter(|b| **b == b'\n').count() as u64;
            self.lines += u64::from(record.last() != Some(&b'\n'));
            rest = after;
        }
        self.looked_at = rest.len();
        self.pending = rest.to_vec();
        Ok(())
    }

    /// True if what came since the last look cannot end the record, so that a long one is not read over and over.
    fn must_wait(&self) -> bool {
        if self.looked_at == 0 || self.pending.len() > MAX_LINE {
            return false;
        }
        let fresh = self.pending.get(self.looked_at..).unwrap_or(&[]);
        let decisive = if self.in_quotes { &b"\""[..] } else { &b"\n\""[..] };
        let long = self.looked_at > 1 << 20 && self.pending.len() < 2 * self.looked_at;
        long || !fresh.iter().any(|b| decisive.contains(b))
    }

    fn broken(&mut self, number: u64, reason: String, sink: &mut dyn LineSink) -> Result<(), BadHeader> {
        match &self.header {
            None => {
                let bad = BadHeader(format!("line {number}: {reason}"));
                self.header = Some(Err(bad.clone()));
                Err(bad)
            }
            Some(Err(bad)) => Err(bad.clone()),
            Some(Ok(_)) => {
                sink.reject(number, reason);
                Ok(())
            }
        }
    }

    fn record(&mut self, number: u64, fields: Vec<Vec<u8>>, sink: &mut dyn LineSink) -> Result<(), String> {
        if matches!(&fields[..], [only] if only.is_empty()) {
            return Ok(());
        }
        match &self.header {
            Some(Ok(header)) => sink.record(number, row_of(fields, header)?),
            _ => self.header = Some(Ok(Header::parse(fields.iter().map(Vec::as_slice), &self.types)?)),
        }
        Ok(())
    }
}

fn row_of(fields: Vec<Vec<u8>>, header: &Header) -> Result<Incoming, String> {
    if fields.len() != header.fields.len() {
        return Err(format!("{} fields where the header has {}", fields.len(), header.fields.len()));
    }
    let mut record = Incoming { row: Bytes::new(), cells: Vec::with_capacity(fields.len()) };
    for ((value, column), of) in fields.into_iter().zip(&header.fields).zip(&header.types) {
        match column {
            None => {
                check_row(&value)?;
                record.row = value.into();
            }
            Some(_) if value.is_empty() => {}
            Some((family, qualifier)) => record.cells.push(IncomingCell {
                family: family.clone(),
                qualifier: qualifier.clone(),
                timestamp: None,
                cell_type: CellType::Put,
                value: if of.is_some() { field_value(&value, *of)? } else { value.into() },
            }),
        }
    }
    Ok(record)
}

/// Reads one record at the start of `text`; with `last` the end of the text ends the record.
fn next_record(text: &[u8], last: bool) -> Step {
    let mut fields = Vec::new();
    let mut at = 0;
    loop {
        let mut field = Vec::new();
        if text.get(at) == Some(&b'"') {
            at += 1;
            loop {
                let rest = text.get(at..).unwrap_or(&[]);
                let Some(quote) = rest.iter().position(|b| *b == b'"') else {
                    return Step::More(true);
                };
                field.extend_from_slice(rest.get(..quote).unwrap_or(&[]));
                at += quote + 1;
                match text.get(at) {
                    Some(b'"') => {
                        field.push(b'"');
                        at += 1;
                    }
                    None if !last => return Step::More(false),
                    _ => break,
                }
            }
        } else {
            let rest = text.get(at..).unwrap_or(&[]);
            let end = rest.iter().position(|b| matches!(b, b',' | b'\n' | b'"')).unwrap_or(rest.len());
            match rest.get(end) {
                Some(b'"') => return Step::Broken("a quote inside a field that is not quoted"),
                None if !last => return Step::More(false),
                _ => {}
            }
            field.extend_from_slice(rest.get(..end).unwrap_or(&[]));
            at += end;
            if rest.get(end) != Some(&b',') && field.last() == Some(&b'\r') {
                field.pop();
            }
        }
        fields.push(field);
        match (text.get(at), text.get(at + 1)) {
            (Some(b','), _) => at += 1,
            (Some(b'\n'), _) => return Step::Record(at + 1, fields),
            (Some(b'\r'), Some(b'\n')) => return Step::Record(at + 2, fields),
            (Some(b'\r'), None) if !last => return Step::More(false),
            (Some(b'\r'), None) => return Step::Record(at + 1, fields),
            (None, _) => return Step::Record(at, fields),
            (Some(_), _) => return Step::Broken("text after a closing quote"),
        }
    }
}
