//! The text forms of rows: `jsonl`, `cells`, `tsv`, `csv`. Each has an encoder, which streams out the rows of a scan, and a decoder, which takes
//! the same bytes in pieces of any size. What the one writes the other reads back to the very same cells; docs/scan-and-import.md gives the
//! forms to the byte.
//!
//! Memory does not grow with the stream: encoders keep a row's columns at most (tsv, csv) or nothing (jsonl, cells), decoders a line.

mod cells;
mod columns;
mod csv;
pub(crate) mod escape;
mod json;
mod jsonl;
mod lines;
mod tsv;

pub use cells::{CellsDecoder, CellsEncoder};
pub use csv::{CsvDecoder, CsvEncoder};
pub use json::{Payload, Slot, SlotVersion, push_string, push_typed, push_value};
pub use jsonl::{JsonlDecoder, JsonlEncoder, ValueForm, explain};
pub use tsv::{TsvDecoder, TsvEncoder};

use super::node::ImportForm;
use bytes::Bytes;
use cellfs::cell::{Cell, CellType};
use cellfs::schema::ColumnTypes;
use cellfs::types::ColumnType;
use std::sync::Arc;

/// The longest line or CSV record that is taken, in bytes: the largest cell with every byte as `\xNN`, and some.
pub const MAX_LINE: usize = 300 << 20;

/// One cell of a line that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncomingCell {
    /// The family.
    pub family: Bytes,
    /// The qualifier.
    pub qualifier: Bytes,
    /// The timestamp, where the form carries one.
    pub timestamp: Option<i64>,
    /// A put, or which marker.
    pub cell_type: CellType,
    /// The value; empty for markers.
    pub value: Bytes,
}

/// One good line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The row key.
    pub row: Bytes,
    /// Its cells, in the order of the line.
    pub cells: Vec<IncomingCell>,
}

/// Takes what a decoder finds.
pub trait LineSink {
    /// A good line. `line` counts from 1 and is the first of the record.
    fn record(&mut self, line: u64, record: Incoming);
    /// A line that breaks the form, and why.
    fn reject(&mut self, line: u64, reason: String);
}

/// The header of a tsv or csv stream is unusable, so no line of it can be read: why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadHeader(pub String);

/// Reads a form, piece by piece.
pub trait Decoder: Send {
    /// Takes the next piece of the stream.
    ///
    /// # Errors
    /// [`BadHeader`], again with each later call.
    fn push(&mut self, data: &[u8], sink: &mut dyn LineSink) -> Result<(), BadHeader>;

    /// The stream ends: a last line without newline is read.
    ///
    /// # Errors
    /// As [`Decoder::push`].
    fn finish(&mut self, sink: &mut dyn LineSink) -> Result<(), BadHeader>;
}

/// Writes a form, part of a row by part of a row.
pub trait Encoder: Send {
    /// What stands before the first row.
    fn begin(&mut self, _out: &mut Vec<u8>) {}

    /// Cells of one row, in the order of the scan; `more` if the row's next cells come with the next call.
    fn cells(&mut self, cells: &[Cell], more: bool, out: &mut Vec<u8>);

    /// What stands after the last row.
    fn end(&mut self, _out: &mut Vec<u8>) {}
}

/// The decoder of a form, for a table whose columns have these types. `cells` is bytes as they are.
pub fn decoder(form: ImportForm, types: Arc<ColumnTypes>) -> Box<dyn Decoder> {
    match form {
        ImportForm::Jsonl => Box::new(JsonlDecoder::new(types)),
        ImportForm::Cells => Box::new(CellsDecoder::default()),
        ImportForm::Tsv => Box::new(TsvDecoder::new(types)),
        ImportForm::Csv => Box::new(CsvDecoder::new(types)),
    }
}

/// A field of tsv or csv in a column of type `of`.
fn field_value(field: &[u8], of: Option<ColumnType>) -> Result<Bytes, String> {
    let Some(of) = of else { return Ok(Bytes::copy_from_slice(field)) };
    let text = std::str::from_utf8(field).map_err(|_| format!("{} is no text", field.escape_ascii()))?;
    of.encode(text).map_err(|error| error.to_string())
}

/// A value as a field of tsv or csv; what is no value of its type is shown as the bytes it is.
fn value_field(value: &Bytes, of: Option<ColumnType>) -> Bytes {
    of.and_then(|of| of.decode(value).ok()).map_or_else(|| value.clone(), Bytes::from)
}

/// The word for a cell's type in `cells`, and for a marker's in jsonl.
pub fn type_word(cell_type: CellType) -> &'static str {
    match cell_type {
        CellType::Put | CellType::Maximum => "put",
        CellType::Delete => "version",
        CellType::DeleteColumn => "column",
        CellType::DeleteFamily => "family",
        CellType::DeleteFamilyVersion => "family-version",
    }
}

/// The type of a word.
fn word_type(word: &[u8]) -> Option<CellType> {
    Some(match word {
        b"put" => CellType::Put,
        b"version" => CellType::Delete,
        b"column" => CellType::DeleteColumn,
        b"family" => CellType::DeleteFamily,
        b"family-version" => CellType::DeleteFamilyVersion,
        _ => return None,
    })
}

/// A marker of a family names no column.
fn check_marker(cell: &IncomingCell) -> Result<(), String> {
    let of_family = matches!(cell.cell_type, CellType::DeleteFamily | CellType::DeleteFamilyVersion);
    if of_family && !cell.qualifier.is_empty() {
        return Err(format!("a {} marker is written to `family:`, without a qualifier", type_word(cell.cell_type)));
    }
    if cell.cell_type.is_delete() && !cell.value.is_empty() {
        return Err("a marker has no value".to_owned());
    }
    Ok(())
}

/// A timestamp as it is written: digits alone. The largest number stands for "now" in HBase and is none.
fn parse_timestamp(text: &[u8]) -> Result<i64, String> {
    std::str::from_utf8(text)
        .ok()
        .filter(|text| text.bytes().all(|b| b.is_ascii_digit()))
        .and_then(|text| text.parse::<i64>().ok())
        .map_or_else(|| Err(format!("{} is not a timestamp", text.escape_ascii())), check_timestamp)
}

fn check_timestamp(timestamp: i64) -> Result<i64, String> {
    if (0..i64::MAX).contains(&timestamp) { Ok(timestamp) } else { Err(format!("{timestamp} is not a timestamp")) }
}

/// A row key of legal length.
fn check_row(row: &[u8]) -> Result<(), String> {
    match row.len() {
        0 => Err("the row key is empty".to_owned()),
        1..=cellfs::cell::MAX_ROW_LENGTH => Ok(()),
        long => Err(format!("the row key is {long} bytes long, over {}", cellfs::cell::MAX_ROW_LENGTH)),
    }
}

#[cfg(test)]
mod tests;
