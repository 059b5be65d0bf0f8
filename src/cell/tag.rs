//! Tags of a cell: u16 length (type and value) | u8 type | value, one after the other (hbase.md B2, HBase `Tag`).

use super::MalformedCell;
use bytes::{BufMut, Bytes, BytesMut};

/// Tag types in use here.
pub mod tag_type {
    /// HBase's per-cell time to live: 8 bytes, milliseconds (HBASE-10560).
    pub const TTL: u8 = 8;
    /// The first type free for products (HBase `Tag.CUSTOM_TAG_TYPE_RANGE`): a cell's file attributes in cellfs.
    pub const FILE_ATTRIBUTES: u8 = 64;
}

/// One tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The type, see [`tag_type`].
    pub kind: u8,
    /// The value.
    pub value: Bytes,
}

/// The wire form of `tags`, without the total length in front. Values over 65534 bytes are cut off by the width of the field; the
/// caller has checked the request.
pub fn encode_tags(tags: &[Tag]) -> Bytes {
    let mut out = BytesMut::with_capacity(tags.iter().map(|tag| 3 + tag.value.len()).sum());
    for tag in tags {
        out.put_u16(1 + tag.value.len() as u16);
        out.put_u8(tag.kind);
        out.put_slice(&tag.value);
    }
    out.freeze()
}

/// Walks encoded tags; ends at the first that does not fit (cells check their tags when they are made).
pub struct TagIterator<'a> {
    rest: &'a [u8],
}

impl<'a> TagIterator<'a> {
    /// Walks `tags`.
    pub fn new(tags: &'a [u8]) -> TagIterator<'a> {
        TagIterator { rest: tags }
    }
}

impl<'a> Iterator for TagIterator<'a> {
    type Item = (u8, &'a [u8]);

    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (length, after) = self.rest.split_first_chunk::<2>()?;
        let (tag, rest) = after.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
        self.rest = rest;
        tag.split_first().map(|(kind, value)| (*kind, value))
    }
}

/// Checks that `tags` is a whole number of tags.
pub(super) fn check_tags(tags: &[u8]) -> Result<(), MalformedCell> {
    let mut walk = TagIterator::new(tags);
    while walk.next().is_some() {}
    if walk.rest.is_empty() { Ok(()) } else { Err(MalformedCell::Tags) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_round_trip_and_truncations_are_refused() {
        let tags = [
            Tag { kind: tag_type::TTL, value: Bytes::from_static(&[0, 0, 0, 0, 0, 0, 0, 9]) },
            Tag { kind: tag_type::FILE_ATTRIBUTES, value: Bytes::new() },
        ];
        let encoded = encode_tags(&tags);
        let decoded: Vec<_> = TagIterator::new(&encoded).collect();
        assert_eq!(decoded, [(8, &[0u8, 0, 0, 0, 0, 0, 0, 9][..]), (64, &[][..])]);
        for len in 0..encoded.len() {
            assert_eq!(check_tags(&encoded[..len]).is_ok(), len == 0 || len == 11, "{len}");
        }
    }
}
