//! Memory for the names of a listing.

use crate::names;
use bytes::{Bytes, BytesMut};

/// Names are laid one behind the other into small pieces of memory: one allocation for many, and clones allocate nothing. A name that outlives its
/// listing in an inode keeps its piece, never the blocks it was read from.
#[derive(Default)]
pub(super) struct NameArena(BytesMut);

impl NameArena {
    const PIECE: usize = 1024;

    /// A copy.
    pub(super) fn copy(&mut self, bytes: &[u8]) -> Bytes {
        let room = self.room(bytes.len());
        room.extend_from_slice(bytes);
        room.split().freeze()
    }

    /// The name of a cell, and its qualifier, which shares the name's bytes where it is spelled as it is.
    pub(super) fn cell_name(&mut self, family: &[u8], qualifier: &[u8]) -> (Bytes, Bytes) {
        let room = self.room(names::MAX_NAME);
        let as_it_is = names::append_cell_name(room, family, qualifier);
        let name = room.split().freeze();
        let qualifier = match name.len().checked_sub(qualifier.len()) {
            Some(start) if as_it_is => name.slice(start..),
            _ => self.copy(qualifier),
        };
        (name, qualifier)
    }

    /// Room for `bytes`, shared with nobody yet.
    fn room(&mut self, bytes: usize) -> &mut BytesMut {
        if self.0.capacity() < bytes {
            self.0 = BytesMut::with_capacity(bytes.max(Self::PIECE));
        }
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_qualifiers_are_those_of_names() {
        let mut arena = NameArena::default();
        let long = vec![b'q'; 2000];
        let qualifiers: [&[u8]; 7] = [b"", b"plain", b"a/b", b"ends~", b"\xff\x00", &long, "gr\u{fc}n".as_bytes()];
        for _ in 0..100 {
            for qualifier in qualifiers {
                let (name, copy) = arena.cell_name(b"cf", qualifier);
                assert_eq!(name, names::cell_name(b"cf", qualifier));
                assert_eq!(copy, qualifier);
                assert_eq!(arena.copy(qualifier), qualifier);
            }
        }
    }
}
