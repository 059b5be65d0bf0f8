//! Keys as file names: one bijection between bytes and names (docs/semantics.md, "Names").
//!
//! A name is the key with `%XX` (upper-case hex) in place of 0x00-0x1F, 0x7F, `/`, `%`, every byte that is not part of valid UTF-8, a leading `.` of a
//! row and a trailing `~` of a qualifier. Where a qualifier stands alone (below `.cf/<family>/`) both are escaped, and the empty one is a lone `%`. Decoding undoes the escapes and then encodes again: what does not come back byte for byte is no name, so
//! no two names lead to one key.
//!
//! A name over [`MAX_NAME`] bytes has a short form: the longest prefix of whole characters and escapes within 221 bytes, then `%~`, then the XXH3-128 of the key
//! as 32 lower-case hex digits. `%~` occurs in no other name, because `%` is followed by hex digits everywhere else.

use bytes::{Bytes, BytesMut};
use cellfs::cell::{MAX_FAMILY_LENGTH, MAX_ROW_LENGTH};
use std::borrow::Cow;
use xxhash_rust::xxh3::xxh3_128;

/// The longest file name that is given out or taken (NAME_MAX).
pub const MAX_NAME: usize = 255;

/// What separates prefix and hash of a short name.
const SHORT_MARK: &[u8] = b"%~";
/// Hex digits of the hash.
const HASH_DIGITS: usize = 32;

/// What a name of a row directory stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowName {
    /// This key.
    Key(Bytes),
    /// The one row whose [`row_name`] is this short name; the key begins with these bytes.
    Short(Bytes),
}

/// What a name of a cell stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CellName {
    /// This column.
    Column(Bytes, Bytes),
    /// The one column whose [`cell_name`] is this short name; `family:qualifier` begins with these bytes.
    Short(Bytes),
}

/// What a name of a qualifier that stands alone stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QualifierName {
    /// This qualifier.
    Key(Bytes),
    /// The one qualifier whose [`qualifier_name`] is this short name; it begins with these bytes.
    Short(Bytes),
}

/// The name of the empty qualifier where it stands alone.
const EMPTY_QUALIFIER: &[u8] = b"%";

/// A family and a qualifier, borrowed from the name where it needs no decoding.
pub type DecodedColumn<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// The whole spelling of a row key, however long: as `.scan`, verbs and exports write it.
pub fn encode_row(row: &[u8]) -> Cow<'_, [u8]> {
    encode(row, Place::Row)
}

/// The whole spelling of a qualifier, however long.
pub fn encode_qualifier(qualifier: &[u8]) -> Cow<'_, [u8]> {
    encode(qualifier, Place::Qualifier)
}

/// The whole spelling of a column, `family:qualifier`, however long.
pub fn encode_column(family: &[u8], qualifier: &[u8]) -> Vec<u8> {
    let family = encode(family, Place::Family);
    let qualifier = encode(qualifier, Place::Qualifier);
    let mut name = Vec::with_capacity(family.len() + 1 + qualifier.len());
    name.extend_from_slice(&family);
    name.push(b':');
    name.extend_from_slice(&qualifier);
    name
}

/// The row key of a whole spelling; `None` if no row is spelled so.
pub fn decode_row(name: &[u8]) -> Option<Cow<'_, [u8]>> {
    decode(name, Place::Row).filter(|row| !row.is_empty() && row.len() <= MAX_ROW_LENGTH)
}

/// The family and qualifier of a whole spelling; `None` if no column is spelled so. Split at the first `:`.
pub fn decode_column(name: &[u8]) -> Option<DecodedColumn<'_>> {
    let colon = name.iter().position(|byte| *byte == b':')?;
    let (family, qualifier) = name.split_at_checked(colon)?;
    let family = decode(family, Place::Family)?;
    if !is_legal_family(&family) {
        return None;
    }
    Some((family, decode(qualifier.get(1..)?, Place::Qualifier)?))
}

/// The file name of a row: its spelling, or its short form.
pub fn row_name(row: &[u8]) -> Cow<'_, [u8]> {
    let name = encode_row(row);
    if name.len() <= MAX_NAME { name } else { Cow::Owned(shorten(&name, xxh3_128(row))) }
}

/// The file name of a cell: its spelling, or its short form.
pub fn cell_name(family: &[u8], qualifier: &[u8]) -> Vec<u8> {
    let name = encode_column(family, qualifier);
    if name.len() <= MAX_NAME {
        return name;
    }
    let mut column = Vec::with_capacity(family.len() + 1 + qualifier.len());
    column.extend_from_slice(family);
    column.push(b':');
    column.extend_from_slice(qualifier);
    shorten(&name, xxh3_128(&column))
}

/// Appends the file name of a cell to `names`. True if it ends with the qualifier as it is, which then needs no copy.
pub fn append_cell_name(names: &mut BytesMut, family: &[u8], qualifier: &[u8]) -> bool {
    let (spelled, tail) = (encode(family, Place::Family), encode(qualifier, Place::Qualifier));
    if spelled.len() + 1 + tail.len() > MAX_NAME {
        names.extend_from_slice(&cell_name(family, qualifier));
        return false;
    }
    names.extend_from_slice(&spelled);
    names.extend_from_slice(b":");
    names.extend_from_slice(&tail);
    matches!(tail, Cow::Borrowed(_))
}

/// Reads the file name of a row; `None` if no row can have it.
pub fn parse_row(name: &[u8]) -> Option<RowName> {
    if name.len() > MAX_NAME {
        return None;
    }
    match short_prefix(name) {
        Some(prefix) => Some(RowName::Short(prefix)),
        None => decode_row(name).map(|row| RowName::Key(Bytes::copy_from_slice(&row))),
    }
}

/// Reads the file name of a cell; `None` if no cell can have it.
pub fn parse_cell(name: &[u8]) -> Option<CellName> {
    if name.len() > MAX_NAME {
        return None;
    }
    match short_prefix(name) {
        Some(prefix) => Some(CellName::Short(prefix)),
        None => decode_column(name).map(|(family, qualifier)| {
            CellName::Column(Bytes::copy_from_slice(&family), Bytes::copy_from_slice(&qualifier))
        }),
    }
}

/// Reads the file name of a cell as [`parse_cell`], and whole spellings that no file name is long enough for.
pub fn parse_column(name: &[u8]) -> Option<CellName> {
    if name.len() <= MAX_NAME {
        return parse_cell(name);
    }
    let (family, qualifier) = decode_column(name)?;
    Some(CellName::Column(Bytes::copy_from_slice(&family), Bytes::copy_from_slice(&qualifier)))
}

/// The file name that a listing of the row gives to the cell of a name: its short form, for whole spellings that no file name is long enough for.
pub fn listed_name(name: &[u8]) -> Bytes {
    match parse_column(name) {
        Some(CellName::Column(family, qualifier)) if name.len() > MAX_NAME => cell_name(&family, &qualifier).into(),
        _ => Bytes::copy_from_slice(name),
    }
}

/// The spelling of a family.
pub fn encode_family(family: &[u8]) -> Cow<'_, [u8]> {
    encode(family, Place::Family)
}

/// The family of a spelling; `None` if no family is spelled so.
pub fn decode_family(name: &[u8]) -> Option<Cow<'_, [u8]>> {
    decode(name, Place::Family).filter(|family| is_legal_family(family))
}

/// The file name of a qualifier that stands alone: its spelling, or its short form.
pub fn qualifier_name(qualifier: &[u8]) -> Vec<u8> {
    if qualifier.is_empty() {
        return EMPTY_QUALIFIER.to_vec();
    }
    let name = encode(qualifier, Place::Alone);
    if name.len() <= MAX_NAME { name.into_owned() } else { shorten(&name, xxh3_128(qualifier)) }
}

/// Reads the file name of a qualifier that stands alone; `None` if no qualifier can have it.
pub fn parse_qualifier(name: &[u8]) -> Option<QualifierName> {
    if name == EMPTY_QUALIFIER {
        return Some(QualifierName::Key(Bytes::new()));
    }
    if name.is_empty() || name.len() > MAX_NAME {
        return None;
    }
    match short_prefix(name) {
        Some(prefix) => Some(QualifierName::Short(prefix)),
        None => decode(name, Place::Alone).map(|qualifier| QualifierName::Key(Bytes::copy_from_slice(&qualifier))),
    }
}

/// HBase `ColumnFamilyDescriptorBuilder.isLegalColumnFamilyName` (hbase.md A8), as far as a name can break it.
fn is_legal_family(family: &[u8]) -> bool {
    !family.is_empty()
        && family.len() <= MAX_FAMILY_LENGTH
        && !family.starts_with(b".")
        && !family.iter().any(|byte| byte.is_ascii_control() || matches!(byte, b'/' | b'\\' | b':'))
}

/// Which of the two rules for single places applies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Row,
    Family,
    Qualifier,
    /// A qualifier without its family.
    Alone,
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, 0x20..=0x7E) && byte != b'/' && byte != b'%'
}

fn encode(key: &[u8], place: Place) -> Cow<'_, [u8]> {
    let dot = matches!(place, Place::Row | Place::Alone) && key.first() == Some(&b'.');
    let tilde = matches!(place, Place::Qualifier | Place::Alone) && key.last() == Some(&b'~');
    if !dot && !tilde && key.iter().all(|byte| is_plain(*byte)) {
        return Cow::Borrowed(key);
    }
    let mut name = Vec::with_capacity(key.len() + 16);
    let mut rest = key;
    if dot {
        escape(&mut name, b'.');
        rest = rest.get(1..).unwrap_or(&[]);
    }
    if tilde {
        rest = rest.split_last().map_or(rest, |(_, front)| front);
    }
    for chunk in rest.utf8_chunks() {
        for byte in chunk.valid().bytes() {
            if is_plain(byte) || byte >= 0x80 { name.push(byte) } else { escape(&mut name, byte) }
        }
        for byte in chunk.invalid() {
            escape(&mut name, *byte);
        }
    }
    if tilde {
        escape(&mut name, b'~');
    }
    Cow::Owned(name)
}

fn decode(name: &[u8], place: Place) -> Option<Cow<'_, [u8]>> {
    let key = unescape(name)?;
    (*encode(&key, place) == *name).then_some(key)
}

/// Undoes the escapes; whether they were the right ones is for the caller to see.
fn unescape(name: &[u8]) -> Option<Cow<'_, [u8]>> {
    if !name.contains(&b'%') {
        return Some(Cow::Borrowed(name));
    }
    let mut key = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == b'%' {
            let (digits, after) = after.split_first_chunk::<2>()?;
            let digit = |hex: u8| match hex {
                b'0'..=b'9' => Some(hex - b'0'),
                b'A'..=b'F' => Some(hex - b'A' + 10),
                _ => None,
            };
            key.push(digit(digits[0])? << 4 | digit(digits[1])?);
            rest = after;
        } else {
            key.push(*byte);
        }
    }
    Some(Cow::Owned(key))
}

fn escape(name: &mut Vec<u8>, byte: u8) {
    let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'A' + nibble - 10 };
    name.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
}

/// The short form of an encoded name.
fn shorten(name: &[u8], hash: u128) -> Vec<u8> {
    let room = MAX_NAME - SHORT_MARK.len() - HASH_DIGITS;
    let mut end = 0;
    let mut next = 0;
    while next <= room {
        end = next;
        next += match name.get(next) {
            Some(b'%') => 3,
            Some(0x00..=0x7F) => 1,
            Some(0xC0..=0xDF) => 2,
            Some(0xE0..=0xEF) => 3,
            Some(_) => 4,
            None => break,
        };
    }
    let mut short = name.get(..end).unwrap_or(&[]).to_vec();
    short.extend_from_slice(SHORT_MARK);
    short.extend_from_slice(format!("{hash:032x}").as_bytes());
    short
}

/// The bytes with which the key of a short name begins; `None` if it is not a short name.
fn short_prefix(name: &[u8]) -> Option<Bytes> {
    let (front, hash) = name.split_at_checked(name.len().checked_sub(HASH_DIGITS)?)?;
    let prefix = front.strip_suffix(SHORT_MARK)?;
    if !hash.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    unescape(prefix).map(|prefix| Bytes::copy_from_slice(&prefix))
}

#[cfg(test)]
mod tests;
