//! The cells of an entry.
//!
//! ```text
//! plain      = i32 length of what follows | i32 key length | i32 value length | key | value | [u16 tags length | tags]
//! compressed = varint key length | varint value length | varint tags length | row | family | qualifier (dictionary values)
//!            | i64 timestamp | u8 type | value | tags
//! value      = bytes | varint compressed length | bytes (value compression; each stands for itself, empty ones too, a gzip
//!              stream or a block in Hadoop's framing: HBASE-26353, as 2.6.4 writes them)
//! tags       = bytes | dictionary values (tag compression)
//! ```

use super::dictionary::Dictionaries;
use super::input::{LogInput, Read, damaged};
use crate::cell::{Cell, MAX_FAMILY_LENGTH, MAX_ROW_LENGTH};
use crate::hfile::decompress;
use crate::schema::Compression;
use bytes::{BufMut, Bytes};

/// Timestamp and type.
const TAIL: usize = 9;
/// What a key has beside row, family and qualifier.
const KEY_OVERHEAD: usize = 12;

/// How a log's cells are written.
pub(super) enum CellForm {
    /// As they are.
    Plain,
    /// By dictionaries.
    Compressed(Box<CompressedForm>),
}

/// The state of a compressed log.
pub(super) struct CompressedForm {
    pub(super) dictionaries: Dictionaries,
    pub(super) tags: bool,
    pub(super) values: Option<Compression>,
}

impl CellForm {
    /// The next cell, under the entry's sequence id.
    pub(super) fn read(&mut self, input: &mut LogInput, sequence_id: u64) -> Read<Cell> {
        match self {
            CellForm::Plain => read_plain(input, sequence_id),
            CellForm::Compressed(form) => form.read(input, sequence_id),
        }
    }
}

fn read_plain(input: &mut LogInput, sequence_id: u64) -> Read<Cell> {
    let length = input.length()?;
    let whole = input.take(length)?;
    let mut inner = LogInput::new(whole.clone());
    let (Ok(key), Ok(value)) = (inner.length(), inner.length()) else { return damaged("a cell has no lengths") };
    checked(whole.slice(inner.position()..), key, value, sequence_id)
}

fn checked(bytes: Bytes, key: usize, value: usize, sequence_id: u64) -> Read<Cell> {
    match Cell::from_encoded(bytes, key, value, sequence_id) {
        Ok(cell) => Ok(cell),
        Err(malformed) => damaged(malformed.to_string()),
    }
}

impl CompressedForm {
    fn read(&mut self, input: &mut LogInput, sequence_id: u64) -> Read<Cell> {
        let (key, value, tags) = (input.varint()?, input.varint()?, input.varint()?);
        let row = self.dictionaries.row.read(input)?;
        let family = self.dictionaries.family.read(input)?;
        let qualifier = self.dictionaries.qualifier.read(input)?;
        if row.len() > MAX_ROW_LENGTH || family.len() > MAX_FAMILY_LENGTH {
            return damaged("a row or family is too long");
        }
        if key != KEY_OVERHEAD + row.len() + family.len() + qualifier.len() {
            return damaged("the parts of a key are not as long as it says");
        }
        let mut out = Vec::with_capacity(key);
        out.put_u16(row.len() as u16);
        out.put_slice(&row);
        out.put_u8(family.len() as u8);
        out.put_slice(&family);
        out.put_slice(&qualifier);
        out.put_slice(&input.take(TAIL)?);
        match self.values {
            Some(codec) => {
                let length = input.varint()?;
                match decompress(codec, &input.take(length)?, value) {
                    Ok(plain) => out.extend(plain),
                    Err(_) => return damaged("a compressed value cannot be decompressed"),
                }
            }
            None => out.put_slice(&input.take(value)?),
        }
        if tags > 0 {
            let Ok(length) = u16::try_from(tags) else { return damaged("tags are over 64 KiB") };
            out.put_u16(length);
            if self.tags {
                self.dictionaries.read_tags(input, tags, &mut out)?;
            } else {
                out.put_slice(&input.take(tags)?);
            }
        }
        checked(out.into(), key, value, sequence_id)
    }
}
