//! The dictionaries of a compressed log: each value that was seen has a number, and the one unused for longest gives its number away (HBase
//! `LRUDictionary`, `CompressionContext`, `TagCompressionContext`).
//!
//! ```text
//! value = u8 0xff | varint length | bytes        a new one, which enters the dictionary unless it is empty
//!       | u16 number                             one that is in it (the first byte is never 0xff)
//! ```

use super::input::{Fault, LogInput, Read, damaged};
use bytes::{BufMut, Bytes};

const NOT_IN_DICTIONARY: u8 = 0xff;
const NOBODY: usize = usize::MAX;

#[derive(Clone, Debug)]
struct Entry {
    value: Bytes,
    newer: usize,
    older: usize,
}

/// One dictionary, kept in step with the writer's.
#[derive(Clone, Debug)]
pub(super) struct Dictionary {
    capacity: usize,
    entries: Vec<Entry>,
    newest: usize,
    oldest: usize,
}

impl Dictionary {
    pub(super) fn new(capacity: usize) -> Dictionary {
        Dictionary { capacity, entries: Vec::new(), newest: NOBODY, oldest: NOBODY }
    }

    /// The next value of the log.
    pub(super) fn read(&mut self, input: &mut LogInput) -> Read<Bytes> {
        let status = input.u8()?;
        if status == NOT_IN_DICTIONARY {
            let length = input.varint()?;
            let value = input.take(length)?;
            if !value.is_empty() {
                self.add(value.clone());
            }
            return Ok(value);
        }
        let number = usize::from(u16::from_be_bytes([status, input.u8()?]));
        let Some(value) = self.entries.get(number).map(|entry| entry.value.clone()) else {
            return damaged(format!("the number {number} is not in the log's dictionary"));
        };
        self.unlink(number);
        self.link_newest(number);
        Ok(value)
    }

    fn add(&mut self, value: Bytes) {
        let number = if self.entries.len() < self.capacity {
            self.entries.push(Entry { value, newer: NOBODY, older: NOBODY });
            self.entries.len() - 1
        } else {
            let number = self.oldest;
            self.unlink(number);
            if let Some(entry) = self.entries.get_mut(number) {
                entry.value = value;
            }
            number
        };
        self.link_newest(number);
    }

    fn unlink(&mut self, number: usize) {
        let Some((newer, older)) = self.entries.get(number).map(|entry| (entry.newer, entry.older)) else { return };
        match self.entries.get_mut(newer) {
            Some(entry) => entry.older = older,
            None => self.newest = older,
        }
        match self.entries.get_mut(older) {
            Some(entry) => entry.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn link_newest(&mut self, number: usize) {
        let before = self.newest;
        if let Some(entry) = self.entries.get_mut(number) {
            (entry.newer, entry.older) = (NOBODY, before);
        }
        match self.entries.get_mut(before) {
            Some(entry) => entry.newer = number,
            None => self.oldest = number,
        }
        self.newest = number;
    }
}

/// All dictionaries of one log.
#[derive(Clone, Debug)]
pub(super) struct Dictionaries {
    pub(super) region: Dictionary,
    pub(super) table: Dictionary,
    pub(super) family: Dictionary,
    pub(super) qualifier: Dictionary,
    pub(super) row: Dictionary,
    tags: Dictionary,
}

/// Java's Short.MAX_VALUE and Byte.MAX_VALUE.
const LARGE: usize = 32_767;
const SMALL: usize = 127;

impl Dictionaries {
    /// A log of recovered edits is of one region.
    pub(super) fn new(recovered_edits: bool) -> Dictionaries {
        let names = if recovered_edits { 1 } else { LARGE };
        Dictionaries {
            region: Dictionary::new(names),
            table: Dictionary::new(names),
            family: Dictionary::new(SMALL),
            qualifier: Dictionary::new(SMALL),
            row: Dictionary::new(LARGE),
            tags: Dictionary::new(LARGE),
        }
    }

    /// Tags of `length` bytes, appended to `out`.
    pub(super) fn read_tags(&mut self, input: &mut LogInput, length: usize, out: &mut Vec<u8>) -> Read<()> {
        let end = out.len() + length;
        while out.len() < end {
            let tag = self.tags.read(input)?;
            let size = u16::try_from(tag.len()).map_err(|_| Fault::Damaged("a tag is over 64 KiB".to_owned()))?;
            out.put_u16(size);
            out.put_slice(&tag);
        }
        if out.len() == end { Ok(()) } else { damaged("tags are longer than they say") }
    }
}
