//! `cells`: a cell per line, `row TAB family:qualifier TAB timestamp TAB type TAB value`, every field with the escapes of `escape.rs`.

use super::columns::{ColumnNames, split_column};
use super::escape::{push_escaped, unescape};
use super::lines::{Line, Lines, overlong};
use super::{
    BadHeader, Decoder, Encoder, Incoming, IncomingCell, LineSink, check_marker, check_row, parse_timestamp, type_word,
    word_type,
};
use bytes::Bytes;
use cellfs::cell::Cell;
use std::io::Write;

/// Writes `cells`.
#[derive(Debug, Default)]
pub struct CellsEncoder;

impl Encoder for CellsEncoder {
    fn cells(&mut self, cells: &[Cell], _more: bool, out: &mut Vec<u8>) {
        for cell in cells {
            push_escaped(cell.row(), out);
            out.push(b'\t');
            push_escaped(cell.family(), out);
            out.push(b':');
            push_escaped(cell.qualifier(), out);
            // Writing to memory cannot fail.
            let _ = write!(out, "\t{}\t{}\t", cell.timestamp(), type_word(cell.cell_type()));
            push_escaped(cell.value(), out);
            out.push(b'\n');
        }
    }
}

/// Reads `cells`.
#[derive(Debug, Default)]
pub struct CellsDecoder {
    lines: Lines,
    columns: ColumnNames,
    /// The row of the last line: exports have a row's cells together.
    row: Bytes,
}

impl Decoder for CellsDecoder {
    fn push(&mut self, data: &[u8], sink: &mut dyn LineSink) -> Result<(), BadHeader> {
        let CellsDecoder { lines, columns, row } = self;
        lines.push(data, |number, line| take(number, line, columns, row, sink));
        Ok(())
    }

    fn finish(&mut self, sink: &mut dyn LineSink) -> Result<(), BadHeader> {
        let CellsDecoder { lines, columns, row } = self;
        lines.finish(|number, line| take(number, line, columns, row, sink));
        Ok(())
    }
}

fn take(number: u64, line: Line<'_>, columns: &mut ColumnNames, row: &mut Bytes, sink: &mut dyn LineSink) {
    match line {
        Line::Overlong => sink.reject(number, overlong()),
        Line::Whole([]) => {}
        Line::Whole(line) => match parse(line, columns, row) {
            Ok(record) => sink.record(number, record),
            Err(reason) => sink.reject(number, reason),
        },
    }
}

fn parse(line: &[u8], columns: &mut ColumnNames, last_row: &mut Bytes) -> Result<Incoming, String> {
    let mut fields = line.split(|b| *b == b'\t');
    let (Some(row), Some(column), Some(timestamp), Some(word), Some(value), None) =
        (fields.next(), fields.next(), fields.next(), fields.next(), fields.next(), fields.next())
    else {
        let found = line.iter().filter(|b| **b == b'\t').count() + 1;
        return Err(format!("{found} fields where there are five: row, column, timestamp, type, value"));
    };
    let row = unescape(row)?;
    if *row != last_row[..] {
        check_row(&row)?;
        *last_row = Bytes::copy_from_slice(&row);
    }
    let (family, qualifier) = columns.column(column, |escaped| {
        let column = unescape(escaped)?;
        let (family, qualifier) = split_column(&column)?;
        Ok((Bytes::copy_from_slice(family), Bytes::copy_from_slice(qualifier)))
    })?;
    let cell = IncomingCell {
        family,
        qualifier,
        timestamp: Some(parse_timestamp(timestamp)?),
        cell_type: word_type(word).ok_or_else(|| {
            format!("there is no type {}: put column version family family-version", word.escape_ascii())
        })?,
        value: Bytes::copy_from_slice(&unescape(value)?),
    };
    check_marker(&cell)?;
    Ok(Incoming { row: last_row.clone(), cells: vec![cell] })
}
