//! What every store of a process shares: where its files are, how they are opened, and how they are named.

use super::file::StoreFile;
use crate::clock::Clock;
use crate::error::Result;
use crate::hfile::BlockCache;
use crate::vfs::Vfs;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// Shared by all stores of one store directory.
pub struct StoreContext {
    /// The file system.
    pub vfs: Arc<dyn Vfs>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Decoded blocks.
    pub cache: Arc<BlockCache>,
    /// The directory that holds the store files.
    data: PathBuf,
    next_file_id: AtomicU64,
    /// Files whose blocks are to be read into the cache.
    prefetches: Mutex<VecDeque<Weak<StoreFile>>>,
    /// The files that are open: whoever has a file, of tables and of snapshots, shares one.
    open_files: Mutex<HashMap<u64, Weak<StoreFile>>>,
}

impl StoreContext {
    /// Files of `data` are named from `next_file_id` on.
    pub fn new(
        vfs: Arc<dyn Vfs>,
        clock: Arc<dyn Clock>,
        cache: Arc<BlockCache>,
        data: PathBuf,
        next_file_id: u64,
    ) -> StoreContext {
        StoreContext {
            vfs,
            clock,
            cache,
            data,
            next_file_id: AtomicU64::new(next_file_id),
            prefetches: Mutex::default(),
            open_files: Mutex::default(),
        }
    }

    /// The directory that holds the store files.
    pub fn data_directory(&self) -> &Path {
        &self.data
    }

    /// A file id that no file has had before.
    pub fn new_file_id(&self) -> u64 {
        self.next_file_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Where the file is: its id as 32 hex digits, a legal HBase store file name.
    pub fn file_path(&self, file_id: u64) -> PathBuf {
        self.data.join(store_file_name(file_id))
    }

    /// Makes the names of new files durable.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn sync_directory(&self) -> Result<()> {
        self.vfs.sync_directory(&self.data)
    }

    /// Notes a file whose blocks are to be read into the cache; whoever does background work takes it from there.
    pub(super) fn prefetch_later(&self, file: &Arc<StoreFile>) {
        self.prefetches.lock().push_back(Arc::downgrade(file));
    }

    /// The next file that is to be prefetched and still there.
    pub fn next_prefetch(&self) -> Option<Arc<StoreFile>> {
        let mut waiting = self.prefetches.lock();
        while let Some(file) = waiting.pop_front() {
            if let Some(file) = file.upgrade() {
                return Some(file);
            }
        }
        None
    }

    /// Removes a file that never became live, and forgets what the cache has of it; what cannot be removed now is removed when the store is opened next.
    /// The file, if it is open.
    pub fn open_file(&self, file_id: u64) -> Option<Arc<StoreFile>> {
        self.open_files.lock().get(&file_id)?.upgrade()
    }

    /// Makes an opened file known; whoever came first keeps it.
    pub(super) fn note_open(&self, file: Arc<StoreFile>) -> Arc<StoreFile> {
        let mut open = self.open_files.lock();
        let earlier = open.get(&file.file_id()).and_then(Weak::upgrade);
        if let Some(earlier) = earlier {
            // The lock first: dropping the second one asks for it.
            drop(open);
            return earlier;
        }
        open.insert(file.file_id(), Arc::downgrade(&file));
        file
    }

    pub(super) fn note_closed(&self, file_id: u64) {
        let mut open = self.open_files.lock();
        if open.get(&file_id).is_some_and(|file| file.strong_count() == 0) {
            open.remove(&file_id);
        }
    }

    /// Removes files that the manifest no longer names: now, or when their last reader is gone.
    pub fn bury(&self, file_ids: impl IntoIterator<Item = u64>) {
        for file_id in file_ids {
            match self.open_file(file_id) {
                Some(file) => file.mark_dead(),
                None => self.discard(file_id),
            }
        }
    }

    /// Removes a file that never became live; what cannot be removed now is removed when the store is opened next.
    pub fn discard(&self, file_id: u64) {
        self.cache.forget_file(file_id);
        if let Err(error) = self.vfs.remove_file(&self.file_path(file_id)) {
            log::debug!("an unfinished store file stays until the next start: {error}");
        }
    }
}

/// The name of a store file.
pub fn store_file_name(file_id: u64) -> String {
    format!("{file_id:032x}")
}

/// The id in a store file's name; `None` for names this store never gives.
pub fn parse_store_file_name(name: &str) -> Option<u64> {
    let id = u64::from_str_radix(name, 16).ok()?;
    (store_file_name(id) == name).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_strangers_are_seen() {
        assert_eq!(store_file_name(255), "000000000000000000000000000000ff");
        assert_eq!(parse_store_file_name(&store_file_name(u64::MAX)), Some(u64::MAX));
        for stranger in ["", "ff", "000000000000000000000000000000FF", "000000000000000000000000000000fg", "lost+found"]
        {
            assert_eq!(parse_store_file_name(stranger), None, "{stranger}");
        }
    }
}
