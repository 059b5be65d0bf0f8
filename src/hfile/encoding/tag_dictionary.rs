//! Tags written as indexes of tags seen before in the block (HBase `TagCompressionContext`, `LRUDictionary`).
//!
//! ```text
//! tag = u8 0xff | varint length | type and value      a new one, which enters the dictionary
//!     | u16 index                                     one that is in it (the first byte is never 0xff)
//! ```

use crate::cell::TagIterator;
use crate::hfile::input::{Damage, Input, Parsed, put_compressed_int};
use bytes::BufMut;

const CAPACITY: usize = 127;
const NOT_IN_DICTIONARY: u8 = 0xff;

/// The tags of a block, the one unused for longest giving way when it is full. Both sides keep it in step.
#[derive(Default)]
pub(super) struct TagDictionary {
    entries: Vec<Vec<u8>>,
    /// Indexes of entries, the last used first.
    recent: Vec<usize>,
}

impl TagDictionary {
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.recent.clear();
    }

    fn touch(&mut self, index: usize) {
        if let Some(place) = self.recent.iter().position(|at| *at == index) {
            self.recent.get_mut(..=place).unwrap_or(&mut []).rotate_right(1);
        }
    }

    fn add(&mut self, tag: &[u8]) {
        if self.entries.len() < CAPACITY {
            self.recent.insert(0, self.entries.len());
            self.entries.push(tag.to_vec());
        } else if let Some(oldest) = self.recent.last().copied() {
            if let Some(entry) = self.entries.get_mut(oldest) {
                *entry = tag.to_vec();
            }
            self.touch(oldest);
        }
    }

    /// Appends tags of `len` bytes, as [`crate::cell::encode_tags`] writes them, to `out`.
    pub(super) fn decode(&mut self, input: &mut Input<'_>, len: usize, out: &mut Vec<u8>) -> Parsed<()> {
        let end = out.len() + len;
        while out.len() < end {
            let status = input.u8()?;
            if status == NOT_IN_DICTIONARY {
                let tag_len = input.compressed_int()?;
                let tag = input.take(tag_len)?;
                append_tag(tag, out)?;
                if !tag.is_empty() {
                    self.add(tag);
                }
            } else {
                let index = usize::from(u16::from_be_bytes([status, input.u8()?]));
                let tag = self.entries.get(index);
                append_tag(tag.ok_or_else(|| Damage::new("a tag is not in the block's dictionary"))?, out)?;
                self.touch(index);
            }
        }
        if out.len() == end { Ok(()) } else { Err(Damage::new("compressed tags are longer than they say")) }
    }

    /// Appends encoded tags, compressed.
    pub(super) fn encode(&mut self, tags: &[u8], out: &mut Vec<u8>) {
        let mut rest = tags;
        for (_, value) in TagIterator::new(tags) {
            let (tag, after) = rest.get(2..).unwrap_or(&[]).split_at_checked(1 + value.len()).unwrap_or((&[], &[]));
            rest = after;
            match self.entries.iter().position(|entry| entry == tag) {
                Some(index) => {
                    self.touch(index);
                    out.put_u16(index as u16);
                }
                None => {
                    self.add(tag);
                    out.put_u8(NOT_IN_DICTIONARY);
                    put_compressed_int(out, tag.len());
                    out.put_slice(tag);
                }
            }
        }
    }
}

fn append_tag(tag: &[u8], out: &mut Vec<u8>) -> Parsed<()> {
    let len = u16::try_from(tag.len()).map_err(|_| Damage::new("a tag is over 64 KiB"))?;
    out.put_u16(len);
    out.put_slice(tag);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{Tag, encode_tags};

    #[test]
    fn both_sides_stay_in_step_beyond_the_capacity() {
        let (mut writer, mut reader) = (TagDictionary::default(), TagDictionary::default());
        let mut seed = 7u32;
        for _ in 0..3000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = (seed >> 16) % 300;
            let tags = encode_tags(&[
                Tag { kind: 64, value: value.to_string().into() },
                Tag { kind: 8, value: (value % 7).to_string().into() },
            ]);
            let mut compressed = Vec::new();
            writer.encode(&tags, &mut compressed);
            let (mut input, mut out) = (Input::new(&compressed), Vec::new());
            reader.decode(&mut input, tags.len(), &mut out).unwrap();
            assert!(input.is_empty());
            assert_eq!(out, tags);
        }
    }
}
