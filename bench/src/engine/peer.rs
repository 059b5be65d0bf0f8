//! What a storage engine must do to be measured.

use crate::figures::Result;
use std::path::Path;

/// How every peer is set up.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bytes of block cache.
    pub cache_bytes: u64,
    /// Bytes of a memstore before it is flushed.
    pub memstore_bytes: u64,
    /// LZ4 in data blocks; off means no compression at all.
    pub lz4: bool,
}

/// A storage engine under measurement. Bloom filters are on, everything else is the engine's default.
pub trait Peer: Send + Sync {
    /// Writes one entry. Unsynced: handed to the operating system before it returns, so that it survives the death of the process. Synced: on disk.
    fn put(&self, key: &[u8], value: &[u8], synced: bool) -> Result<()>;

    /// Reads one entry; the length of its value.
    fn get(&self, key: &[u8]) -> Result<Option<usize>>;

    /// Reads up to `limit` entries at or after `from`; returns entries and bytes of keys and values.
    fn scan(&self, from: &[u8], limit: u64) -> Result<(u64, u64)>;

    /// Writes the memstore out and waits for it.
    fn flush(&self) -> Result<()>;

    /// Compacts everything; returns when done.
    fn major_compact(&self) -> Result<()>;

    /// Waits until nothing is flushed or compacted in the background any more.
    fn settle(&self) -> Result<()>;
}

/// Opens a peer in an empty directory.
pub type Open = fn(&Path, Settings) -> Result<Box<dyn Peer>>;
