//! One family of one region: a memstore and an immutable list of store files (HBase `HStore`).

mod context;
mod file;
mod newest;
mod part;
mod point;
mod view;
mod writer;

pub use context::{StoreContext, parse_store_file_name, store_file_name};
pub use file::{StoreFile, StoreFileView, StoreFiles};
pub use newest::Newest;
pub use part::StoreFilePart;
pub use point::PointRead;
pub use view::StoreView;
pub use writer::{RowBounds, StoreFileRequest, StoreFileWriter, WrittenStoreFile, is_disk_failure, write_store_file};

use crate::cell::Cell;
use crate::hfile::HFileCounters;
use crate::manifest::StoreFileEntry;
use crate::memstore::{MemStore, Segment};
use crate::schema::ColumnFamilyDescriptor;
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// What a family of a table counts, in all its regions, since the store was opened.
#[derive(Debug, Default)]
pub struct FamilyCounters {
    /// Blocks, cache and bloom filters.
    pub hfile: Arc<HFileCounters>,
    /// Files that reads opened a scanner on.
    pub files_considered: Arc<AtomicU64>,
    /// Files written by flushes.
    pub flushes: AtomicU64,
    /// Compactions of a part of the files.
    pub compactions_minor: AtomicU64,
    /// Compactions of all files.
    pub compactions_major: AtomicU64,
    /// Bytes that compactions read.
    pub compacted_bytes: AtomicU64,
    /// Cells whose time to live had passed when a flush or compaction met them.
    pub expired_cells: AtomicU64,
}

/// No mark: nothing has ever been dropped.
const HISTORY_WHOLE: i64 = i64::MIN;

/// A store.
pub struct HStore {
    context: Arc<StoreContext>,
    family: Bytes,
    descriptor: RwLock<Arc<ColumnFamilyDescriptor>>,
    memstore: MemStore,
    files: RwLock<Arc<StoreFiles>>,
    counters: Arc<FamilyCounters>,
    history_complete_since: AtomicI64,
    /// Held by the one compaction that may run.
    pub compaction: Mutex<()>,
}

impl HStore {
    /// A store with `files` and an empty memstore.
    pub fn new(
        context: &Arc<StoreContext>,
        family: Bytes,
        descriptor: Arc<ColumnFamilyDescriptor>,
        counters: Arc<FamilyCounters>,
        files: Vec<StoreFileView>,
        history_complete_since: Option<i64>,
    ) -> HStore {
        files.iter().for_each(|view| view.file.follow(&descriptor));
        HStore {
            context: Arc::clone(context),
            family,
            descriptor: RwLock::new(descriptor),
            memstore: MemStore::new(),
            files: RwLock::new(Arc::new(StoreFiles::new(files))),
            counters,
            history_complete_since: AtomicI64::new(history_complete_since.unwrap_or(HISTORY_WHOLE)),
            compaction: Mutex::new(()),
        }
    }

    /// The family's name.
    pub fn family(&self) -> &Bytes {
        &self.family
    }

    /// The family's attributes.
    pub fn descriptor(&self) -> Arc<ColumnFamilyDescriptor> {
        Arc::clone(&self.descriptor.read())
    }

    /// Replaces the family's attributes; files written from now on follow them, and reads of all files as far as the cache is concerned.
    pub fn set_descriptor(&self, descriptor: Arc<ColumnFamilyDescriptor>) {
        self.files().iter().for_each(|view| view.file.follow(&descriptor));
        *self.descriptor.write() = descriptor;
    }

    /// What all stores of the process share.
    pub fn context(&self) -> &Arc<StoreContext> {
        &self.context
    }

    /// The family's counters.
    pub fn counters(&self) -> &Arc<FamilyCounters> {
        &self.counters
    }

    /// The memstore.
    pub fn memstore(&self) -> &MemStore {
        &self.memstore
    }

    /// Adds cells to the memstore; returns by how many bytes it grew.
    pub fn insert(&self, cells: impl IntoIterator<Item = Cell>) -> i64 {
        self.memstore.insert(cells)
    }

    /// Segments and files of this moment. The caller holds the region's lock, so that all its families show one moment.
    pub fn view(&self) -> StoreView {
        StoreView {
            family: self.family.clone(),
            descriptor: self.descriptor(),
            segments: self.memstore.segments(),
            files: self.files(),
            files_considered: Arc::clone(&self.counters.files_considered),
        }
    }

    /// The files of this moment.
    pub fn files(&self) -> Arc<StoreFiles> {
        Arc::clone(&self.files.read())
    }

    /// Publishes a flushed file and forgets the snapshot that is in it. The manifest has the file already.
    pub fn publish_flush(&self, file: StoreFileView) {
        self.replace_files(&[], vec![file]);
        self.memstore.clear_snapshot();
    }

    /// Publishes another list of files: without `removed`, with `added`.
    pub fn replace_files(&self, removed: &[u64], added: Vec<StoreFileView>) {
        let mut files = self.files.write();
        *files = Arc::new(files.replaced(removed, added));
    }

    /// Since when the family's history is complete in this store; `None` = nothing was ever dropped.
    pub fn history_complete_since(&self) -> Option<i64> {
        Some(self.history_complete_since.load(Ordering::Acquire)).filter(|since| *since != HISTORY_WHOLE)
    }

    /// True if anything was ever written to it, as far as one can tell.
    pub fn has_history(&self) -> bool {
        !self.files().is_empty() || !self.memstore.is_empty() || self.history_complete_since().is_some()
    }

    /// Moves the mark forward, after the manifest has.
    pub fn move_history(&self, since: i64) {
        self.history_complete_since.fetch_max(since, Ordering::AcqRel);
    }

    /// Opens a file just written, or one that the manifest names.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn open_file(&self, entry: StoreFileEntry) -> crate::Result<StoreFileView> {
        let file = StoreFile::open(&self.context, entry.file_id, Arc::clone(&self.counters.hfile))?;
        file.follow(&self.descriptor());
        Ok(StoreFileView { file, entry })
    }

    /// The segment that a flush writes, if there is anything.
    pub fn start_flush(&self) -> Option<Arc<Segment>> {
        if self.memstore.is_empty() { None } else { Some(self.memstore.snapshot()) }
    }
}
