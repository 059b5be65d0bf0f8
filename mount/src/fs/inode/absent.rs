//! Names said not to exist.

use super::NumberHash;
use bytes::Bytes;
use std::collections::HashSet;

/// The names of a directory that the kernel may remember as absent. Most inodes are no directories, or have none.
#[derive(Debug, Default)]
#[expect(clippy::box_collection, reason = "a set is six times as large as a pointer, and most inodes have none")]
pub struct AbsentNames(Option<Box<HashSet<Bytes, NumberHash>>>);

impl AbsentNames {
    /// Adds a name.
    pub fn insert(&mut self, name: &[u8]) {
        self.0.get_or_insert_default().insert(Bytes::copy_from_slice(name));
    }

    /// Takes a name back; true if it was there.
    pub fn remove(&mut self, name: &[u8]) -> bool {
        self.0.as_mut().is_some_and(|names| names.remove(name))
    }

    /// Takes all names.
    pub fn take(&mut self) -> impl Iterator<Item = Bytes> {
        self.0.take().into_iter().flat_map(|names| *names)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |names| names.len())
    }

    /// True without names.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
