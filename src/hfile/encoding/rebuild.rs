//! What the three difference encodings share: cells are rebuilt from the one before, in the plain layout.
//!
//! ```text
//! body = u32 bytes of the cells in the plain layout | cells, each followed by [varint tags length | tags] [vlong sequence id]
//! ```

use super::tag_dictionary::TagDictionary;
use crate::hfile::data_block::CellLayout;
use crate::hfile::input::{Damage, Input, Parsed};
use bytes::BufMut;

/// Bytes of timestamp and type at the end of a key.
pub(super) const TAIL: usize = 8 + 1;

/// Plain cells as they are rebuilt from a body.
pub(super) struct Rebuilder<'a> {
    pub input: Input<'a>,
    out: Vec<u8>,
    layout: CellLayout,
    dictionary: Option<TagDictionary>,
    total: usize,
    /// The key and value of the last whole cell, as ranges of `out`.
    last: Option<Parts>,
    key_start: usize,
    key_len: usize,
    value_len: usize,
}

#[derive(Clone, Copy)]
struct Parts {
    key_start: usize,
    key_len: usize,
    value_len: usize,
}

/// The end of a key.
#[derive(Clone, Copy)]
pub(super) struct KeyTail {
    pub timestamp: i64,
    pub type_code: u8,
}

fn no_previous() -> Damage {
    Damage::new("an encoded cell leans on more of the one before than there is")
}

impl<'a> Rebuilder<'a> {
    pub(super) fn new(body: &'a [u8], layout: CellLayout, tags_compressed: bool) -> Parsed<Rebuilder<'a>> {
        let mut input = Input::new(body);
        let total = input.length()?;
        // The claim is only a hint for the first allocation; what is really rebuilt is held against it cell by cell.
        let out = Vec::with_capacity(total.min(body.len().saturating_mul(4)));
        let dictionary = tags_compressed.then(TagDictionary::default);
        Ok(Rebuilder { input, out, layout, dictionary, total, last: None, key_start: 0, key_len: 0, value_len: 0 })
    }

    /// Begins a cell of these lengths.
    pub(super) fn begin(&mut self, key_len: usize, value_len: usize) {
        self.out.put_u32(key_len as u32);
        self.out.put_u32(value_len as u32);
        self.key_start = self.out.len();
        (self.key_len, self.value_len) = (key_len, value_len);
    }

    /// Takes `count` bytes from the body.
    pub(super) fn copy(&mut self, count: usize) -> Parsed<()> {
        let bytes = self.input.take(count)?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Takes the first `common` bytes of the last key.
    pub(super) fn repeat_key(&mut self, common: usize) -> Parsed<()> {
        if common == 0 {
            return Ok(());
        }
        let last = self.last.filter(|last| common <= last.key_len).ok_or_else(no_previous)?;
        self.out.extend_from_within(last.key_start..last.key_start + common);
        Ok(())
    }

    /// Takes the last value.
    pub(super) fn repeat_value(&mut self) -> Parsed<()> {
        let last = self.last.filter(|last| last.value_len == self.value_len).ok_or_else(no_previous)?;
        let start = last.key_start + last.key_len;
        self.out.extend_from_within(start..start + last.value_len);
        Ok(())
    }

    pub(super) fn last_lengths(&self) -> Parsed<(usize, usize)> {
        self.last.map(|last| (last.key_len, last.value_len)).ok_or_else(no_previous)
    }

    pub(super) fn is_first(&self) -> bool {
        self.last.is_none()
    }

    fn last_key(&self) -> &[u8] {
        self.last.and_then(|last| self.out.get(last.key_start..last.key_start + last.key_len)).unwrap_or(&[])
    }

    pub(super) fn last_tail(&self) -> Parsed<KeyTail> {
        let tail = self.last_key().last_chunk::<TAIL>().ok_or_else(no_previous)?;
        let [timestamp @ .., type_code] = *tail;
        Ok(KeyTail { timestamp: i64::from_be_bytes(timestamp), type_code })
    }

    /// Length byte and name of the family in the last key.
    pub(super) fn last_family(&self) -> Parsed<Vec<u8>> {
        let key = self.last_key();
        let start = 2 + row_len(key)?;
        let len = usize::from(*key.get(start).ok_or_else(no_previous)?);
        key.get(start..start + 1 + len).map(<[u8]>::to_vec).ok_or_else(no_previous)
    }

    /// Row, family and qualifier, of which `common` bytes are the last key's. A row that differs comes without the family, which is the
    /// same in all of a file.
    pub(super) fn columns(&mut self, common: usize, family: &[u8]) -> Parsed<()> {
        let last_row_end = if self.is_first() { usize::MAX } else { 2 + row_len(self.last_key())? };
        self.repeat_key(common)?;
        if common < last_row_end {
            self.copy(2usize.saturating_sub(common))?;
            let row_end = 2 + row_len(self.out.get(self.key_start..).unwrap_or(&[]))?;
            let rest = row_end.checked_sub(common.max(2)).ok_or_else(no_previous)?;
            self.copy(rest)?;
            self.put(family);
        }
        let have = self.out.len() - self.key_start;
        let qualifier = self.key_len.checked_sub(have + TAIL);
        self.copy(qualifier.ok_or_else(|| Damage::new("an encoded key is shorter than its parts"))?)
    }

    /// Ends a cell: tags and sequence id follow the value.
    pub(super) fn end(&mut self) -> Parsed<()> {
        let key_and_value = self.out.len() - self.key_start;
        if key_and_value != self.key_len + self.value_len {
            return Err(Damage::new("an encoded cell is not as long as it says"));
        }
        if self.layout.tags {
            self.tags()?;
        }
        if self.layout.sequence_ids {
            let mut after = self.input;
            after.vlong()?;
            self.copy(self.input.rest().len() - after.rest().len())?;
        }
        if self.out.len() > self.total {
            return Err(Damage::new("the cells of an encoded block are longer than it says"));
        }
        self.last = Some(Parts { key_start: self.key_start, key_len: self.key_len, value_len: self.value_len });
        Ok(())
    }

    fn tags(&mut self) -> Parsed<()> {
        let wide = self.input.compressed_int()?;
        let len = u16::try_from(wide).map_err(|_| Damage::new("the tags of an encoded cell are over 64 KiB"))?;
        self.out.put_u16(len);
        match &mut self.dictionary {
            Some(dictionary) => dictionary.decode(&mut self.input, usize::from(len), &mut self.out),
            None => self.copy(usize::from(len)),
        }
    }

    /// The cells.
    pub(super) fn finish(self) -> Parsed<Vec<u8>> {
        if self.out.len() == self.total {
            Ok(self.out)
        } else {
            Err(Damage::new("the cells of an encoded block are shorter than it says"))
        }
    }
}

fn row_len(key: &[u8]) -> Parsed<usize> {
    key.first_chunk::<2>().map(|be| usize::from(u16::from_be_bytes(*be))).ok_or_else(no_previous)
}
