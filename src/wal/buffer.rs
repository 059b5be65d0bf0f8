//! Bytes on their way to a segment: records are copied one after the other, but large cells stay where they are and are only referred to.

use bytes::Bytes;

/// Cells of at least this many bytes are written from their own memory: copying them costs more than a write of their own.
pub(super) const SHARED_CELL_BYTES: usize = 64 << 10;

/// A record, or records that will be written together.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    /// All that is not shared.
    own: Vec<u8>,
    /// What is shared, each with the number of own bytes before it; ascending.
    shared: Vec<(usize, Bytes)>,
    shared_len: usize,
}

impl Buffer {
    /// Empty, with room for own bytes.
    pub(super) fn with_capacity(own: usize) -> Buffer {
        Buffer { own: Vec::with_capacity(own), ..Buffer::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.own.len() + self.shared_len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory beside what is shared.
    pub(super) fn capacity(&self) -> usize {
        self.own.capacity()
    }

    pub(super) fn clear(&mut self) {
        self.own.clear();
        self.shared.clear();
        self.shared_len = 0;
    }

    /// Adds a copy.
    pub(super) fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.own.extend_from_slice(bytes);
    }

    /// Adds a reference.
    pub(super) fn share(&mut self, bytes: Bytes) {
        self.shared_len += bytes.len();
        self.shared.push((self.own.len(), bytes));
    }

    /// Adds what another buffer has; what is shared stays so.
    pub(super) fn append(&mut self, other: &Buffer) {
        let before = self.own.len();
        self.own.extend_from_slice(&other.own);
        self.shared.extend(other.shared.iter().map(|(place, bytes)| (before + place, bytes.clone())));
        self.shared_len += other.shared_len;
    }

    /// The bytes in order, in pieces that are not empty.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.shared.iter().map(|(place, _)| *place));
        let ends = self.shared.iter().map(|(place, _)| *place).chain(std::iter::once(self.own.len()));
        let own = starts.zip(ends).map(|(start, end)| self.own.get(start..end).unwrap_or(&[]));
        let shared = self.shared.iter().map(|(_, bytes)| &bytes[..]).chain(std::iter::once(&[][..]));
        own.zip(shared).flat_map(|(own, shared)| [own, shared]).filter(|piece| !piece.is_empty())
    }

    /// CRC-32 of the bytes from `start` on.
    pub(super) fn crc_from(&self, start: usize) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        let mut skip = start;
        for piece in self.pieces() {
            hasher.update(piece.get(skip..).unwrap_or(&[]));
            skip = skip.saturating_sub(piece.len());
        }
        hasher.finalize()
    }

    /// `N` own bytes from `index` on, to be changed; `None` where they are not all own.
    pub(super) fn chunk_mut<const N: usize>(&mut self, index: usize) -> Option<&mut [u8; N]> {
        let mut before = 0;
        let mut limit = self.own.len();
        for (place, bytes) in &self.shared {
            if place + before > index {
                limit = *place;
                break;
            }
            before += bytes.len();
            if place + before > index {
                return None;
            }
        }
        self.own.get_mut(index.checked_sub(before)?..limit)?.first_chunk_mut::<N>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(buffer: &Buffer) -> Vec<u8> {
        buffer.pieces().collect::<Vec<_>>().concat()
    }

    #[test]
    fn shared_bytes_stand_among_copied_ones() {
        let mut record = Buffer::with_capacity(8);
        record.extend_from_slice(b"ab");
        record.share(Bytes::from_static(b"CDE"));
        record.share(Bytes::from_static(b"F"));
        record.extend_from_slice(b"gh");
        let mut buffer = Buffer::default();
        buffer.extend_from_slice(b"12");
        buffer.append(&record);
        buffer.append(&record);
        assert_eq!(whole(&buffer), b"12abCDEFghabCDEFgh");
        assert_eq!(buffer.len(), 18);
        assert_eq!(buffer.pieces().count(), 7);
        for start in 0..=18 {
            assert_eq!(buffer.crc_from(start), crc32fast::hash(&whole(&buffer)[start..]), "from {start}");
        }
        buffer.clear();
        assert!(buffer.is_empty() && whole(&buffer).is_empty());
    }

    #[test]
    fn only_own_bytes_can_be_changed() {
        let mut buffer = Buffer::default();
        buffer.extend_from_slice(b"ab");
        buffer.share(Bytes::from_static(b"CDE"));
        buffer.extend_from_slice(b"fghi");
        assert_eq!(buffer.chunk_mut::<2>(0).copied(), Some(*b"ab"));
        assert_eq!(buffer.chunk_mut::<2>(1), None);
        assert_eq!(buffer.chunk_mut::<1>(3), None);
        assert_eq!(buffer.chunk_mut::<3>(6).copied(), Some(*b"ghi"));
        assert_eq!(buffer.chunk_mut::<3>(7), None);
        *buffer.chunk_mut::<2>(5).unwrap() = *b"xy";
        assert_eq!(whole(&buffer), b"abCDExyhi");
    }
}
