//! `jsonl`: a row per line, `{"row": "...", "cells": {"cf:a": "v"}}`, row and columns spelled as file names; with versions each cell is a list of
//! `{"ts": N, "v": "..."}` and `{"ts": N, "del": "column|version|family|family-version"}`, markers of a family under `family:`.

use super::columns::ColumnNames;
use super::json::{Payload, Slot, push_string, push_typed};
use super::lines::{Line, Lines, overlong, without_byte_order_mark};
use super::{BadHeader, Decoder, Encoder, Incoming, IncomingCell, LineSink, check_marker, check_row, type_word};
use crate::names;
use bytes::Bytes;
use cellfs::cell::{Cell, CellType};
use cellfs::schema::ColumnTypes;
use serde::de::{self, DeserializeSeed, MapAccess, Visitor};
use std::fmt;
use std::io::Write;
use std::sync::Arc;

/// How jsonl shows cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueForm {
    /// The newest value alone.
    Newest,
    /// A list of versions and markers with their timestamps.
    Versions,
}

/// Writes `jsonl`.
#[derive(Debug)]
pub struct JsonlEncoder {
    form: ValueForm,
    types: Arc<ColumnTypes>,
    /// The column last written of the row that is begun.
    begun: Option<Cell>,
}

impl JsonlEncoder {
    /// In the given form, of columns with these types.
    pub fn new(form: ValueForm, types: Arc<ColumnTypes>) -> JsonlEncoder {
        JsonlEncoder { form, types, begun: None }
    }

    fn cell(&mut self, cell: &Cell, out: &mut Vec<u8>) {
        let same_column = self
            .begun
            .as_ref()
            .is_some_and(|last| last.family() == cell.family() && last.qualifier() == cell.qualifier());
        match (&self.begun, self.form) {
            (None, _) => {
                out.extend_from_slice(b"{\"row\": ");
                push_name(&names::encode_row(cell.row()), out);
                out.extend_from_slice(b", \"cells\": {");
            }
            (Some(_), ValueForm::Newest) if same_column => return,
            (Some(_), ValueForm::Versions) if same_column => out.extend_from_slice(b", "),
            (Some(_), ValueForm::Newest) => out.extend_from_slice(b", "),
            (Some(_), ValueForm::Versions) => out.extend_from_slice(b"], "),
        }
        if !same_column {
            push_name(&names::encode_column(cell.family(), cell.qualifier()), out);
            out.extend_from_slice(if self.form == ValueForm::Versions { b": [" } else { b": " });
        }
        let of = self.types.get(cell.family(), cell.qualifier());
        if self.form == ValueForm::Newest {
            push_typed(cell.value(), of, out);
        } else {
            // Writing to memory cannot fail.
            let _ = write!(out, "{{\"ts\": {}, ", cell.timestamp());
            if cell.is_delete() {
                let _ = write!(out, "\"del\": \"{}\"}}", type_word(cell.cell_type()));
            } else {
                out.extend_from_slice(b"\"v\": ");
                push_typed(cell.value(), of, out);
                out.push(b'}');
            }
        }
        self.begun = Some(cell.clone());
    }
}

impl Encoder for JsonlEncoder {
    fn cells(&mut self, cells: &[Cell], more: bool, out: &mut Vec<u8>) {
        for cell in cells {
            self.cell(cell, out);
        }
        if !more && self.begun.take().is_some() {
            out.extend_from_slice(if self.form == ValueForm::Versions { b"]}}\n" } else { b"}}\n" });
        }
    }
}

/// Names are valid UTF-8: everything else in them is escaped.
fn push_name(name: &[u8], out: &mut Vec<u8>) {
    push_string(&String::from_utf8_lossy(name), out);
}

/// Reads `jsonl`.
#[derive(Debug)]
pub struct JsonlDecoder {
    lines: Lines,
    columns: ColumnNames,
    types: Arc<ColumnTypes>,
}

impl JsonlDecoder {
    /// For columns with these types.
    pub fn new(types: Arc<ColumnTypes>) -> JsonlDecoder {
        JsonlDecoder { lines: Lines::default(), columns: ColumnNames::default(), types }
    }
}

impl Decoder for JsonlDecoder {
    fn push(&mut self, data: &[u8], sink: &mut dyn LineSink) -> Result<(), BadHeader> {
        let JsonlDecoder { lines, columns, types } = self;
        lines.push(data, |number, line| take(number, line, Columns { names: columns, types }, sink));
        Ok(())
    }

    fn finish(&mut self, sink: &mut dyn LineSink) -> Result<(), BadHeader> {
        let JsonlDecoder { lines, columns, types } = self;
        lines.finish(|number, line| take(number, line, Columns { names: columns, types }, sink));
        Ok(())
    }
}

/// What is known about columns while a line is read.
struct Columns<'a> {
    names: &'a mut ColumnNames,
    types: &'a ColumnTypes,
}

fn take(number: u64, line: Line<'_>, columns: Columns<'_>, sink: &mut dyn LineSink) {
    let line = match line {
        Line::Whole(line) => without_byte_order_mark(number, line),
        Line::Overlong => return sink.reject(number, overlong()),
    };
    if line.trim_ascii().is_empty() {
        return;
    }
    match parse(line, columns) {
        Ok(record) => sink.record(number, record),
        Err(reason) => sink.reject(number, reason),
    }
}

fn parse(line: &[u8], columns: Columns<'_>) -> Result<Incoming, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    let record = RowSeed(columns).deserialize(&mut deserializer).map_err(|error| explain(&error))?;
    deserializer.end().map_err(|error| explain(&error))?;
    Ok(record)
}

/// What serde_json says, with the column alone: the line is known.
pub fn explain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) if error.column() > 0 => format!("{what} at column {}", error.column()),
        Some((what, _)) => what.to_owned(),
        None => text,
    }
}

/// Reads the object of a row.
struct RowSeed<'a>(Columns<'a>);

impl<'de> DeserializeSeed<'de> for RowSeed<'_> {
    type Value = Incoming;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Incoming, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = Incoming;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{\"row\": \"...\", \"cells\": {...}}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Incoming, A::Error> {
        let RowSeed(columns) = self;
        let (mut row, mut cells) = (None, None);
        while let Some(key) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            match key.as_ref() {
                "row" if row.is_none() => {
                    let name: String = map.next_value()?;
                    let key = names::decode_row(name.as_bytes())
                        .ok_or_else(|| de::Error::custom(format!("{name:?} spells no row key")))?;
                    check_row(&key).map_err(de::Error::custom)?;
                    row = Some(Bytes::copy_from_slice(&key));
                }
                "cells" if cells.is_none() => {
                    cells = Some(
                        map.next_value_seed(CellsSeed(Columns { names: &mut *columns.names, types: columns.types }))?,
                    )
                }
                _ => return Err(de::Error::custom(format!("there is no {key:?} in a row, or it is there twice"))),
            }
        }
        match (row, cells) {
            (Some(row), Some(cells)) => Ok(Incoming { row, cells }),
            (None, _) => Err(de::Error::custom("the line has no \"row\"")),
            (_, None) => Err(de::Error::custom("the line has no \"cells\"")),
        }
    }
}

/// Reads the object of a row's cells.
struct CellsSeed<'a>(Columns<'a>);

impl<'de> DeserializeSeed<'de> for CellsSeed<'_> {
    type Value = Vec<IncomingCell>;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for CellsSeed<'_> {
    type Value = Vec<IncomingCell>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of cells")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let CellsSeed(columns) = self;
        let mut cells = Vec::new();
        while let Some(name) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            let (family, qualifier) =
                columns.names.column(name.as_bytes(), decode_column).map_err(de::Error::custom)?;
            let of = columns.types.get(&family, &qualifier);
            let resolve =
                |payload: Payload| payload.bytes(of).map_err(|reason| de::Error::custom(format!("{name}: {reason}")));
            let mut add = |timestamp, cell_type, value| {
                let (family, qualifier) = (family.clone(), qualifier.clone());
                cells.push(IncomingCell { family, qualifier, timestamp, cell_type, value });
            };
            match map.next_value()? {
                Slot::Value(payload) => add(None, CellType::Put, resolve(payload)?),
                Slot::Null => return Err(de::Error::custom(format!("{name} is null: an absent cell is left out"))),
                Slot::Versions(versions) => {
                    for version in versions {
                        let value = match version.cell_type {
                            CellType::Put => resolve(version.value)?,
                            _ => Bytes::new(),
                        };
                        add(Some(version.timestamp), version.cell_type, value);
                    }
                }
            }
        }
        cells.iter().try_for_each(check_marker).map_err(de::Error::custom)?;
        Ok(cells)
    }
}

fn decode_column(name: &[u8]) -> Result<(Bytes, Bytes), String> {
    names::decode_column(name)
        .map(|(family, qualifier)| (Bytes::copy_from_slice(&family), Bytes::copy_from_slice(&qualifier)))
        .ok_or_else(|| format!("{} spells no column: family:qualifier", name.escape_ascii()))
}
