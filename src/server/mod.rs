//! A store directory, open: namespaces, tables, regions, recovery, background work (HBase `HRegionServer` and `HMaster` in one process).
//!
//! ```text
//! STORE/LOCK            held while the store is open, with the holder's pid
//! STORE/CONFIG          settings that differ from the defaults, if any (settings.rs)
//! STORE/CURRENT         names the manifest in force
//! STORE/MANIFEST-<n>    what exists
//! STORE/wal/<n>.wal     the log
//! STORE/data/<id>       store files, 32 hex digits each
//! ```

mod admin;
mod automatic;
mod batch;
mod bulk_load;
mod catalog;
mod export;
mod maintenance;
mod merge;
mod meta;
mod namespaces;
mod open;
mod options;
mod restore;
mod row_load;
mod scan;
mod schema_change;
mod settings;
mod snapshot;
mod sorted_runs;
mod split;
mod table;
mod table_state;
mod views;
mod workers;

pub use bulk_load::{BulkLoadSummary, PreparedLoad};
pub use export::{ExportOptions, ExportSummary};
pub use options::{BackgroundMode, StoreOptions};

use crate::clock::{Clock, SystemClock};
use crate::error::Result;
use crate::region::{FrozenRegion, RegionServices};
use crate::schema::StoreSettings;
use crate::vfs::{LockGuard, OsVfs, Vfs};
use catalog::Catalog;
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use workers::Workers;

/// What handles, scanners and workers share.
pub(crate) struct StoreInner {
    root: PathBuf,
    vfs: Arc<dyn Vfs>,
    services: Arc<RegionServices>,
    options: StoreOptions,
    catalog: RwLock<Catalog>,
    /// Held by whatever makes, renames or drops tables and namespaces.
    ddl: Mutex<()>,
    next_id: AtomicU64,
    /// The numbers now in force.
    settings: RwLock<StoreSettings>,
    /// Held while a snapshot goes, or its files are opened or given to a clone.
    snapshots: Mutex<()>,
    /// Snapshots whose files are open, by identity.
    open_snapshots: Mutex<HashMap<u64, Weak<Vec<FrozenRegion>>>>,
    /// Serialises the removal of old log segments.
    forgetting: Mutex<()>,
    /// Released when the last user of the store is gone.
    _lock: Option<Box<dyn LockGuard>>,
}

impl StoreInner {
    /// An identity for a namespace, table or region that nothing has had before.
    fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn now(&self) -> i64 {
        self.services.store.clock.now_millis()
    }
}

/// An open store. Implements [`crate::client::Admin`]; tables are had from it.
///
/// [`Store::close`] flushes and releases it. Dropped without, it is left as a crash would leave it but for a last sync of the log.
pub struct Store {
    inner: Arc<StoreInner>,
    workers: Mutex<Option<Workers>>,
}

impl Store {
    /// Opens the store at `path`, or makes one there if the directory is missing or empty.
    ///
    /// # Errors
    /// [`crate::Error::NotAStore`] for a directory that holds something else, [`crate::Error::Locked`] with the holder's pid,
    /// [`crate::Error::Corruption`] for damage that recovery must not pass over, [`crate::Error::Unsupported`] for another format
    /// version, and those of the files.
    pub fn open(path: impl AsRef<Path>, options: StoreOptions) -> Result<Store> {
        Store::open_with(Arc::new(OsVfs), Arc::new(SystemClock::new()), path, options)
    }

    /// As [`Store::open`], on another file system and clock.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_with(
        vfs: Arc<dyn Vfs>,
        clock: Arc<dyn Clock>,
        path: impl AsRef<Path>,
        options: StoreOptions,
    ) -> Result<Store> {
        let inner = Arc::new(open::open_store(vfs, clock, path.as_ref(), options)?);
        let threads = inner.options.background == BackgroundMode::Threads && !inner.options.read_only;
        let workers = if threads { Some(Workers::start(&inner)?) } else { None };
        Ok(Store { inner, workers: Mutex::new(workers) })
    }

    /// The store directory.
    pub fn path(&self) -> &Path {
        &self.inner.root
    }

    /// Flushes, compacts and splits what is due, until nothing is: for [`BackgroundMode::Manual`].
    ///
    /// # Errors
    /// The first failure.
    pub fn run_pending_work(&self) -> Result<()> {
        self.inner.run_pending_work()
    }

    /// The open regions of a table, in key order: for tests and tools that look below [`crate::client::Admin`].
    ///
    /// # Errors
    /// [`crate::Error::NoSuchTable`].
    pub fn open_regions(&self, name: &crate::client::TableName) -> Result<Vec<Arc<crate::region::Region>>> {
        Ok(self.inner.catalog.read().table(name)?.regions().to_vec())
    }

    /// Ends background work, writes everything to store files, syncs the log and releases the store once its last handle is gone.
    ///
    /// # Errors
    /// Those of the last flush; what was acknowledged is in the log all the same.
    pub fn close(self) -> Result<()> {
        self.stop_workers();
        self.inner.flush_all_for_close()
    }

    fn stop_workers(&self) {
        if let Some(workers) = self.workers.lock().take() {
            workers.stop(&self.inner.services);
        }
    }

    /// The memory limit of memstores (memstore.size), in bytes.
    pub fn set_memstore_bytes(&self, bytes: u64) {
        self.inner.services.memory.set_limit(bytes);
    }

    /// The memory limit of the block cache (cache.size), in bytes.
    pub fn set_cache_bytes(&self, bytes: u64) {
        self.inner.services.store.cache.set_capacity(bytes);
    }

    /// Changes the numbers of regions and compactions.
    pub fn configure(&self, change: impl FnOnce(&mut crate::region::RegionConfig)) {
        let services = &self.inner.services;
        let mut config = (*services.config()).clone();
        change(&mut config);
        services.throttle.set_rate(config.compaction.throttle_bytes_per_second);
        *services.config.write() = Arc::new(config);
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.stop_workers();
        if let Ok(wal) = self.inner.services.wal()
            && let Err(error) = wal.sync()
        {
            log::warn!("the log could not be synced: {error}");
        }
    }
}
