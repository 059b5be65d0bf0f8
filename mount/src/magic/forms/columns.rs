//! Column names of lines and headers.

use bytes::Bytes;
use cellfs::schema::ColumnTypes;
use cellfs::types::ColumnType;
use std::collections::HashMap;

/// Distinct column names kept at most.
const KEPT: usize = 4096;

/// Splits `family:qualifier` at the first colon: families have none.
pub(super) fn split_column(column: &[u8]) -> Result<(&[u8], &[u8]), String> {
    match column.iter().position(|b| *b == b':') {
        Some(0) => Err(format!("the column {} has no family", column.escape_ascii())),
        Some(colon) => {
            let (family, rest) = column.split_at(colon);
            Ok((family, rest.get(1..).unwrap_or(&[])))
        }
        None => Err(format!("{} is no column: family:qualifier", column.escape_ascii())),
    }
}

/// Remembers the columns that were read, because the same few come again with each line: they are parsed once and shared.
#[derive(Debug, Default)]
pub(super) struct ColumnNames {
    known: HashMap<Box<[u8]>, (Bytes, Bytes)>,
}

impl ColumnNames {
    /// The column that `name` stands for by `parse`.
    pub(super) fn column(
        &mut self,
        name: &[u8],
        parse: impl FnOnce(&[u8]) -> Result<(Bytes, Bytes), String>,
    ) -> Result<(Bytes, Bytes), String> {
        if let Some(column) = self.known.get(name) {
            return Ok(column.clone());
        }
        let column = parse(name)?;
        if self.known.len() < KEPT {
            self.known.insert(name.into(), column.clone());
        }
        Ok(column)
    }
}

/// The header of tsv and csv: which field is the row, which columns the others are.
#[derive(Debug)]
pub(super) struct Header {
    /// One per field; `None` is the row.
    pub(super) fields: Vec<Option<(Bytes, Bytes)>>,
    /// The type of each field's column.
    pub(super) types: Vec<Option<ColumnType>>,
}

impl Header {
    /// Reads the fields of a header. `row` may stand anywhere, and HBase's `ImportTsv` name for it is taken.
    pub(super) fn parse<'a>(fields: impl Iterator<Item = &'a [u8]>, types: &ColumnTypes) -> Result<Header, String> {
        let mut parsed: Vec<Option<(Bytes, Bytes)>> = Vec::new();
        for field in fields {
            let column = match field {
                b"row" | b"HBASE_ROW_KEY" => None,
                _ => {
                    let (family, qualifier) = split_column(field)?;
                    Some((Bytes::copy_from_slice(family), Bytes::copy_from_slice(qualifier)))
                }
            };
            if parsed.contains(&column) {
                return Err(format!("the header names {} twice", field.escape_ascii()));
            }
            parsed.push(column);
        }
        if !parsed.contains(&None) {
            return Err("the header line has no field `row`".to_owned());
        }
        let of = |column: &Option<(Bytes, Bytes)>| column.as_ref().and_then(|(f, q)| types.get(f, q));
        Ok(Header { types: parsed.iter().map(of).collect(), fields: parsed })
    }
}
