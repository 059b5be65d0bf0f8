//! `tsv`: a header line `row TAB column...`, then a row per line, every field with the escapes of `escape.rs`; an empty field is an absent cell.

use super::columns::Header;
use super::csv::RowOfColumns;
use super::escape::{push_escaped, unescape};
use super::lines::{Line, Lines, overlong, without_byte_order_mark};
use super::{BadHeader, Decoder, Encoder, Incoming, IncomingCell, LineSink, check_row, field_value};
use bytes::Bytes;
use cellfs::cell::{Cell, CellType};
use cellfs::schema::ColumnTypes;
use std::sync::Arc;

/// Writes `tsv`.
#[derive(Debug)]
pub struct TsvEncoder {
    row: RowOfColumns,
}

impl TsvEncoder {
    /// The rows as these columns, which have these types.
    pub fn new(columns: Vec<(Bytes, Bytes)>, types: &ColumnTypes) -> TsvEncoder {
        TsvEncoder { row: RowOfColumns::new(columns, types) }
    }
}

impl Encoder for TsvEncoder {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"row");
        for (family, qualifier) in self.row.columns() {
            out.push(b'\t');
            push_escaped(family, out);
            out.push(b':');
            push_escaped(qualifier, out);
        }
        out.push(b'\n');
    }

    fn cells(&mut self, cells: &[Cell], more: bool, out: &mut Vec<u8>) {
        if let Some((row, values)) = self.row.add(cells, more) {
            push_escaped(&row, out);
            for value in values {
                out.push(b'\t');
                push_escaped(&value, out);
            }
            out.push(b'\n');
        }
    }
}

/// Reads `tsv`.
#[derive(Debug)]
pub struct TsvDecoder {
    lines: Lines,
    header: Option<Result<Header, BadHeader>>,
    types: Arc<ColumnTypes>,
}

impl TsvDecoder {
    /// For columns with these types.
    pub fn new(types: Arc<ColumnTypes>) -> TsvDecoder {
        TsvDecoder { lines: Lines::default(), header: None, types }
    }
}

impl Decoder for TsvDecoder {
    fn push(&mut self, data: &[u8], sink: &mut dyn LineSink) -> Result<(), BadHeader> {
        let TsvDecoder { lines, header, types } = self;
        lines.push(data, |number, line| take(number, line, (header, types), sink));
        verdict(header)
    }

    fn finish(&mut self, sink: &mut dyn LineSink) -> Result<(), BadHeader> {
        let TsvDecoder { lines, header, types } = self;
        lines.finish(|number, line| take(number, line, (header, types), sink));
        verdict(header)
    }
}

fn verdict(header: &Option<Result<Header, BadHeader>>) -> Result<(), BadHeader> {
    match header {
        Some(Err(bad)) => Err(bad.clone()),
        _ => Ok(()),
    }
}

fn take(
    number: u64,
    line: Line<'_>,
    (header, types): (&mut Option<Result<Header, BadHeader>>, &ColumnTypes),
    sink: &mut dyn LineSink,
) {
    let line = match line {
        Line::Whole(line) => without_byte_order_mark(number, line),
        Line::Overlong => return sink.reject(number, overlong()),
    };
    match header {
        _ if line.is_empty() => {}
        None => {
            *header = Some(parse_header(line, types).map_err(|reason| BadHeader(format!("line {number}: {reason}"))))
        }
        Some(Err(_)) => {}
        Some(Ok(header)) => match parse(line, header) {
            Ok(record) => sink.record(number, record),
            Err(reason) => sink.reject(number, reason),
        },
    }
}

fn parse_header(line: &[u8], types: &ColumnTypes) -> Result<Header, String> {
    let fields = line.split(|b| *b == b'\t').map(unescape).collect::<Result<Vec<_>, _>>()?;
    Header::parse(fields.iter().map(|field| field.as_ref()), types)
}

fn parse(line: &[u8], header: &Header) -> Result<Incoming, String> {
    let count = line.iter().filter(|b| **b == b'\t').count() + 1;
    if count != header.fields.len() {
        return Err(format!("{count} fields where the header has {}", header.fields.len()));
    }
    let mut record = Incoming { row: Bytes::new(), cells: Vec::with_capacity(count - 1) };
    for ((field, column), of) in line.split(|b| *b == b'\t').zip(&header.fields).zip(&header.types) {
        let value = unescape(field)?;
        match column {
            None => {
                check_row(&value)?;
                record.row = Bytes::copy_from_slice(&value);
            }
            Some(_) if value.is_empty() => {}
            Some((family, qualifier)) => record.cells.push(IncomingCell {
                family: family.clone(),
                qualifier: qualifier.clone(),
                timestamp: None,
                cell_type: CellType::Put,
                value: field_value(&value, *of)?,
            }),
        }
    }
    Ok(record)
}
