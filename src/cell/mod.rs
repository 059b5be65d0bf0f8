//! Cell: one version of one column of one row, or a delete marker; its type codes, its one comparator, its tags.
//!
//! A cell is kept as the bytes HBase calls a flat key plus value (hbase.md B2, HBase `KeyValue`):
//!
//! ```text
//! key   = u16 row length | row | u8 family length | family | qualifier | i64 timestamp | u8 type     (big-endian)
//! cell  = key | value | [u16 tags length | tags]
//! ```
//!
//! The buffer is a [`Bytes`], so a cell read from an HFile block or kept in a memstore arena is a slice, not a copy.

mod comparator;
mod scanner;
mod tag;

pub(crate) use comparator::FlatKeyProbe;
pub use comparator::{compare, compare_flat_keys, compare_rows_and_columns, leading_bytes};
pub use scanner::CellScanner;
pub use tag::{Tag, TagIterator, encode_tags, tag_type};

use bytes::{BufMut, Bytes, BytesMut};
use std::fmt;

/// The timestamp that means "the server's now" in requests and "newer than everything" in search keys (HBase `HConstants.LATEST_TIMESTAMP`).
pub const LATEST_TIMESTAMP: i64 = i64::MAX;
/// The longest row key in bytes (HBase `HConstants.MAX_ROW_LENGTH`).
pub const MAX_ROW_LENGTH: usize = i16::MAX as usize;
/// The longest family name in bytes.
pub const MAX_FAMILY_LENGTH: usize = i8::MAX as usize;
/// Tags of one cell together, in bytes.
pub const MAX_TAGS_LENGTH: usize = u16::MAX as usize;

/// What a cell is: HBase `KeyValue.Type`. At one timestamp the higher code sorts first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CellType {
    /// A value.
    Put = 4,
    /// A marker that hides the put of exactly its timestamp.
    Delete = 8,
    /// A marker that hides every put of the family at exactly its timestamp.
    DeleteFamilyVersion = 10,
    /// A marker that hides every put of the column at or before its timestamp.
    DeleteColumn = 12,
    /// A marker that hides every put of the family at or before its timestamp.
    DeleteFamily = 14,
    /// Only in search keys: sorts before every stored type.
    Maximum = 255,
}

impl CellType {
    /// The type of a code byte, or `None` for a code that HBase never stores.
    pub fn from_code(code: u8) -> Option<CellType> {
        Some(match code {
            4 => CellType::Put,
            8 => CellType::Delete,
            10 => CellType::DeleteFamilyVersion,
            12 => CellType::DeleteColumn,
            14 => CellType::DeleteFamily,
            255 => CellType::Maximum,
            _ => return None,
        })
    }

    /// The code byte.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// True for the four delete markers.
    pub fn is_delete(self) -> bool {
        !matches!(self, CellType::Put | CellType::Maximum)
    }
}

/// Why bytes are not a cell; the reader that met them adds the file and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MalformedCell {
    /// The key is shorter than its own lengths say.
    KeyTooShort,
    /// The row is empty or over [`MAX_ROW_LENGTH`].
    RowLength,
    /// The type byte is none of HBase's.
    UnknownType(u8),
    /// The buffer is shorter than key, value and tags.
    Truncated,
    /// Tag lengths do not add up.
    Tags,
}

impl fmt::Display for MalformedCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MalformedCell::KeyTooShort => f.write_str("a cell key is shorter than its lengths say"),
            MalformedCell::RowLength => f.write_str("a cell has an empty or overlong row"),
            MalformedCell::UnknownType(code) => write!(f, "a cell has the unknown type {code}"),
            MalformedCell::Truncated => f.write_str("a cell ends before its lengths say"),
            MalformedCell::Tags => f.write_str("the tags of a cell do not add up"),
        }
    }
}

impl std::error::Error for MalformedCell {}

/// Bytes of a key beside row, family and qualifier: row length, family length, timestamp, type.
const KEY_OVERHEAD: usize = 2 + 1 + 8 + 1;

/// One version of one column of one row, or a delete marker. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Cell {
    buf: Bytes,
    key_len: u32,
    value_len: u32,
    row_len: u16,
    family_len: u8,
    sequence_id: u64,
}

impl Cell {
    /// A cell without tags. Lengths over the format's limits are a programming error of the caller, who has checked the request
    /// ([`MAX_ROW_LENGTH`], [`MAX_FAMILY_LENGTH`]); they are cut off here only by the width of the fields.
    pub fn new(row: &[u8], family: &[u8], qualifier: &[u8], timestamp: i64, cell_type: CellType, value: &[u8]) -> Cell {
        Cell::with_tags(row, family, qualifier, timestamp, cell_type, value, &[])
    }

    /// A cell with encoded tags ([`encode_tags`]).
    pub fn with_tags(
        row: &[u8],
        family: &[u8],
        qualifier: &[u8],
        timestamp: i64,
        cell_type: CellType,
        value: &[u8],
        tags: &[u8],
    ) -> Cell {
        let size = Cell::encoded_len(row.len(), family.len(), qualifier.len(), value.len(), tags.len());
        let mut arena = BytesMut::with_capacity(size);
        Cell::encode_into(&mut arena, row, family, qualifier, timestamp, cell_type, value, tags)
    }

    /// Bytes that [`Cell::encode_into`] appends.
    pub fn encoded_len(row: usize, family: usize, qualifier: usize, value: usize, tags: usize) -> usize {
        KEY_OVERHEAD + row + family + qualifier + value + if tags == 0 { 0 } else { 2 + tags }
    }

    /// Appends the cell to `arena` and splits it off: cells made one after the other from one arena share its allocation.
    #[allow(clippy::too_many_arguments)]
    pub fn encode_into(
        arena: &mut BytesMut,
        row: &[u8],
        family: &[u8],
        qualifier: &[u8],
        timestamp: i64,
        cell_type: CellType,
        value: &[u8],
        tags: &[u8],
    ) -> Cell {
        debug_assert!(
            row.len() <= MAX_ROW_LENGTH && family.len() <= MAX_FAMILY_LENGTH && tags.len() <= MAX_TAGS_LENGTH
        );
        arena.reserve(Cell::encoded_len(row.len(), family.len(), qualifier.len(), value.len(), tags.len()));
        arena.put_u16(row.len() as u16);
        arena.put_slice(row);
        arena.put_u8(family.len() as u8);
        arena.put_slice(family);
        arena.put_slice(qualifier);
        arena.put_i64(timestamp);
        arena.put_u8(cell_type.code());
        arena.put_slice(value);
        if !tags.is_empty() {
            arena.put_u16(tags.len() as u16);
            arena.put_slice(tags);
        }
        Cell {
            key_len: (KEY_OVERHEAD + row.len() + family.len() + qualifier.len()) as u32,
            value_len: value.len() as u32,
            row_len: row.len() as u16,
            family_len: family.len() as u8,
            sequence_id: 0,
            buf: arena.split().freeze(),
        }
    }

    /// The cell in `buf` = key | value | [u16 tags length | tags], verified. `buf` must hold exactly the cell.
    ///
    /// # Errors
    /// [`MalformedCell`] where the lengths or the type are not a cell's.
    pub fn from_encoded(buf: Bytes, key_len: usize, value_len: usize, sequence_id: u64) -> Result<Cell, MalformedCell> {
        let body = key_len.checked_add(value_len).ok_or(MalformedCell::Truncated)?;
        if buf.len() < body {
            return Err(MalformedCell::Truncated);
        }
        let (row_len, family_len) = check_key(buf.get(..key_len).ok_or(MalformedCell::Truncated)?)?;
        let rest = buf.get(body..).unwrap_or(&[]);
        if !rest.is_empty() {
            let tags_len = match rest {
                [high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
                _ => return Err(MalformedCell::Tags),
            };
            if rest.len() != 2 + tags_len {
                return Err(MalformedCell::Tags);
            }
            tag::check_tags(rest.get(2..).unwrap_or(&[]))?;
        }
        let key_len = u32::try_from(key_len).map_err(|_| MalformedCell::Truncated)?;
        let value_len = u32::try_from(value_len).map_err(|_| MalformedCell::Truncated)?;
        Ok(Cell { buf, key_len, value_len, row_len, family_len, sequence_id })
    }

    /// The cell in `buf`, which whoever decoded the block of it has checked with [`check_encoded`]: key | value | [u16 tags length | tags].
    /// A buffer that is no cell gives a cell with empty parts, never a panic.
    pub(crate) fn from_checked(buf: Bytes, key_len: u32, value_len: u32, sequence_id: u64) -> Cell {
        let row_len = buf.first_chunk::<2>().map_or(0, |be| u16::from_be_bytes(*be));
        let family_len = buf.get(2 + usize::from(row_len)).copied().unwrap_or(0);
        Cell { buf, key_len, value_len, row_len, family_len, sequence_id }
    }

    /// A search key that sorts before every cell of `row`.
    pub fn first_on_row(row: &[u8]) -> Cell {
        Cell::new(row, b"", b"", LATEST_TIMESTAMP, CellType::Maximum, b"")
    }

    /// A search key that sorts before every cell of the column.
    pub fn first_on_column(row: &[u8], family: &[u8], qualifier: &[u8]) -> Cell {
        Cell::new(row, family, qualifier, LATEST_TIMESTAMP, CellType::Maximum, b"")
    }

    /// The flat key.
    pub fn key(&self) -> &[u8] {
        self.slice(0, self.key_len as usize)
    }

    /// The row key.
    pub fn row(&self) -> &[u8] {
        self.slice(2, 2 + usize::from(self.row_len))
    }

    /// The row key, sharing the cell's bytes.
    pub fn row_bytes(&self) -> Bytes {
        self.buf.slice(2..2 + usize::from(self.row_len))
    }

    /// The family name.
    pub fn family(&self) -> &[u8] {
        let start = 3 + usize::from(self.row_len);
        self.slice(start, start + usize::from(self.family_len))
    }

    /// The qualifier; may be empty.
    pub fn qualifier(&self) -> &[u8] {
        self.slice(self.qualifier_start(), self.key_len as usize - 9)
    }

    /// The qualifier, sharing the cell's bytes.
    pub fn qualifier_bytes(&self) -> Bytes {
        self.buf.slice(self.qualifier_start()..self.key_len as usize - 9)
    }

    /// Milliseconds since the epoch, or whatever number the writer chose.
    pub fn timestamp(&self) -> i64 {
        let end = self.key_len as usize - 1;
        let mut be = [0u8; 8];
        be.copy_from_slice(self.slice(end - 8, end));
        i64::from_be_bytes(be)
    }

    /// The type.
    pub fn cell_type(&self) -> CellType {
        CellType::from_code(self.type_code()).unwrap_or(CellType::Maximum)
    }

    /// The type's code byte, as the comparator uses it.
    pub fn type_code(&self) -> u8 {
        self.buf.get(self.key_len as usize - 1).copied().unwrap_or(0)
    }

    /// The value; empty for markers.
    pub fn value(&self) -> &[u8] {
        self.slice(self.key_len as usize, self.key_len as usize + self.value_len as usize)
    }

    /// The value, sharing the cell's bytes.
    pub fn value_bytes(&self) -> Bytes {
        self.buf.slice(self.key_len as usize..self.key_len as usize + self.value_len as usize)
    }

    /// The encoded tags, without their length; empty when there are none.
    pub fn tags(&self) -> &[u8] {
        self.buf.get(self.key_len as usize + self.value_len as usize + 2..).unwrap_or(&[])
    }

    /// The tags one by one.
    pub fn tag_iter(&self) -> TagIterator<'_> {
        TagIterator::new(self.tags())
    }

    /// The sequence id (HBase: mvcc) under which the cell was written; 0 where it no longer matters.
    pub fn sequence_id(&self) -> u64 {
        self.sequence_id
    }

    /// The same cell under another sequence id.
    #[must_use]
    pub fn with_sequence_id(mut self, sequence_id: u64) -> Cell {
        self.sequence_id = sequence_id;
        self
    }

    /// Moves the cell under another sequence id.
    pub fn set_sequence_id(&mut self, sequence_id: u64) {
        self.sequence_id = sequence_id;
    }

    /// key | value | [u16 tags length | tags].
    pub fn encoded(&self) -> &Bytes {
        &self.buf
    }

    /// Length of the flat key in bytes.
    pub fn key_len(&self) -> usize {
        self.key_len as usize
    }

    /// Length of the value in bytes.
    pub fn value_len(&self) -> usize {
        self.value_len as usize
    }

    /// True for the four delete markers.
    pub fn is_delete(&self) -> bool {
        self.cell_type().is_delete()
    }

    fn qualifier_start(&self) -> usize {
        3 + usize::from(self.row_len) + usize::from(self.family_len)
    }

    /// The constructors have checked every length, so the range is always inside.
    fn slice(&self, start: usize, end: usize) -> &[u8] {
        self.buf.get(start..end).unwrap_or(&[])
    }
}

/// Checks a flat key and encoded tags (without their length) once for the many times that [`Cell::from_checked`] makes the cell.
pub(crate) fn check_encoded(key: &[u8], tags: &[u8]) -> Result<(), MalformedCell> {
    check_key(key)?;
    tag::check_tags(tags)
}

/// Checks a flat key and returns its row and family lengths.
///
/// # Errors
/// [`MalformedCell`] where the lengths or the type are not a cell's.
pub fn check_key(key: &[u8]) -> Result<(u16, u8), MalformedCell> {
    let row_len = match key {
        [high, low, ..] => u16::from_be_bytes([*high, *low]),
        _ => return Err(MalformedCell::KeyTooShort),
    };
    if usize::from(row_len) > MAX_ROW_LENGTH {
        return Err(MalformedCell::RowLength);
    }
    let family_len = *key.get(2 + usize::from(row_len)).ok_or(MalformedCell::KeyTooShort)?;
    if key.len() < KEY_OVERHEAD + usize::from(row_len) + usize::from(family_len) {
        return Err(MalformedCell::KeyTooShort);
    }
    let code = key.last().copied().ok_or(MalformedCell::KeyTooShort)?;
    CellType::from_code(code).ok_or(MalformedCell::UnknownType(code))?;
    Ok((row_len, family_len))
}

impl fmt::Debug for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}:{}/{}/{:?}/vlen={}/seqid={}",
            self.row().escape_ascii(),
            self.family().escape_ascii(),
            self.qualifier().escape_ascii(),
            self.timestamp(),
            self.cell_type(),
            self.value_len,
            self.sequence_id
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back() {
        let tags = encode_tags(&[Tag { kind: 64, value: Bytes::from_static(b"t") }]);
        let cell = Cell::with_tags(b"row", b"cf", b"q", -5, CellType::Put, b"value", &tags).with_sequence_id(7);
        assert_eq!(cell.row(), b"row");
        assert_eq!(cell.family(), b"cf");
        assert_eq!(cell.qualifier(), b"q");
        assert_eq!(cell.timestamp(), -5);
        assert_eq!(cell.cell_type(), CellType::Put);
        assert_eq!(cell.value(), b"value");
        assert_eq!(cell.tags(), &tags[..]);
        let again = Cell::from_encoded(cell.encoded().clone(), cell.key_len(), cell.value_len(), 7).unwrap();
        assert_eq!(again, cell);
    }

    #[test]
    fn every_truncation_is_refused() {
        let cell = Cell::new(b"row", b"cf", b"q", 1, CellType::Put, b"v");
        for len in 0..cell.encoded().len() {
            assert!(Cell::from_encoded(cell.encoded().slice(..len), cell.key_len(), cell.value_len(), 0).is_err());
        }
        for key_len in 0..cell.key_len() {
            assert!(check_key(&cell.key()[..key_len]).is_err());
        }
    }
}
