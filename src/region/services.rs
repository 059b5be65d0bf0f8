//! What every region of a store directory shares (HBase `RegionServerServices`): log, manifest, read point, locks, memory, health.

use super::limits::RequestLimits;
use super::mvcc::Mvcc;
use super::pressure::MemoryPressure;
use super::row_locks::RowLocks;
use super::tasks::TaskMonitor;
use crate::client::Durability;
use crate::compaction::{CompactionConfig, Throttle};
use crate::error::{Error, Result};
use crate::manifest::{Manifest, ManifestEdit};
use crate::store::StoreContext;
use crate::wal::{Wal, WalEdit};
use parking_lot::{Condvar, Mutex, RwLock};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The numbers of a region, under HBase's defaults; bytes and milliseconds.
#[derive(Clone, Debug)]
pub struct RegionConfig {
    /// A region whose memstores are over this is flushed (`hbase.hregion.memstore.flush.size`); a table's MEMSTORE_FLUSHSIZE goes before it.
    pub flush_size: u64,
    /// A region whose largest store is over this is split (`hbase.hregion.max.filesize`); a table's MAX_FILESIZE goes before it.
    pub max_file_size: u64,
    /// What one request may hold.
    pub limits: RequestLimits,
    /// What USE_DEFAULT means.
    pub durability: Durability,
    /// The compaction policy.
    pub compaction: CompactionConfig,
    /// How long a writer waits for memory or store files before [`Error::Busy`].
    pub busy_timeout: Duration,
    /// Bytes of the volume that only deletes and flushes may still use.
    pub space_reserve: u64,
    /// Memory in which a load of rows sorts; what does not fit goes to the volume.
    pub load_sort_bytes: u64,
}

impl Default for RegionConfig {
    fn default() -> Self {
        RegionConfig {
            flush_size: 128 << 20,
            max_file_size: 10 << 30,
            limits: RequestLimits::default(),
            durability: Durability::SyncWal,
            compaction: CompactionConfig::default(),
            busy_timeout: Duration::from_secs(60),
            space_reserve: 8 << 20,
            load_sort_bytes: 32 << 20,
        }
    }
}

/// Shared by all regions.
pub struct RegionServices {
    /// Files, clock, block cache.
    pub store: Arc<StoreContext>,
    /// The log, once recovery has read the old one; never set in a store opened for reading.
    wal: OnceLock<Wal>,
    /// The manifest.
    pub manifest: Manifest,
    /// The read point of the whole store.
    pub mvcc: Arc<Mvcc>,
    /// Row locks of all tables.
    pub row_locks: RowLocks,
    /// Memory of all memstores.
    pub memory: MemoryPressure,
    /// Numbers, changeable while the store is open.
    pub config: RwLock<Arc<RegionConfig>>,
    /// The brake on compactions.
    pub throttle: Throttle,
    /// What is being worked on.
    pub tasks: TaskMonitor,
    /// Wakes background work.
    pub work: WorkSignal,
    /// True while compactions should give up.
    pub closing: AtomicBool,
    /// How many changes are under way that let the writers of a table wait.
    pub holding: AtomicUsize,
    /// Why the store refuses writes.
    failure: Mutex<Option<String>>,
    failed: AtomicBool,
    space: SpaceWatch,
}

impl RegionServices {
    /// The parts, put together.
    pub fn new(
        store: Arc<StoreContext>,
        manifest: Manifest,
        mvcc: Arc<Mvcc>,
        memory: MemoryPressure,
        config: RegionConfig,
    ) -> RegionServices {
        let throttle = Throttle::new(Arc::clone(&store.clock), config.compaction.throttle_bytes_per_second);
        RegionServices {
            store,
            wal: OnceLock::new(),
            manifest,
            mvcc,
            row_locks: RowLocks::new(),
            memory,
            config: RwLock::new(Arc::new(config)),
            throttle,
            tasks: TaskMonitor::default(),
            work: WorkSignal::default(),
            closing: AtomicBool::new(false),
            holding: AtomicUsize::new(0),
            failure: Mutex::new(None),
            failed: AtomicBool::new(false),
            space: SpaceWatch::default(),
        }
    }

    /// The numbers now in force.
    pub fn config(&self) -> Arc<RegionConfig> {
        Arc::clone(&self.config.read())
    }

    /// Gives the recovered store its log: from now on it takes writes.
    pub fn set_wal(&self, wal: Wal) {
        // Called once, by the opening; a second log would be dropped unused.
        let _ = self.wal.set(wal);
    }

    /// The log, for writing.
    ///
    /// # Errors
    /// [`Error::ReadOnly`] in a store opened for reading.
    pub fn wal(&self) -> Result<&Wal> {
        self.wal.get().ok_or_else(|| Error::ReadOnly { what: "the store was opened for reading".to_owned() })
    }

    /// Refuses every later write (architecture.md, invariant 3).
    pub fn poison(&self, reason: &str) {
        let mut failure = self.failure.lock();
        if failure.is_none() {
            log::error!("the store turns read-only: {reason}");
            *failure = Some(reason.to_owned());
        }
        self.failed.store(true, Ordering::Release);
    }

    /// Why writes are refused, if they are.
    pub fn read_only_reason(&self) -> Option<String> {
        if let Some(reason) = self.failure.lock().clone() {
            return Some(reason);
        }
        if self.wal.get().is_none() {
            return Some("the store was opened for reading".to_owned());
        }
        self.manifest.poisoned()
    }

    /// Refuses a write early: a store that cannot write, or a volume without room. Deletes may use the reserve.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Poisoned`], [`Error::NoSpace`].
    pub fn check_writable(&self, deletes_only: bool) -> Result<()> {
        if self.failed.load(Ordering::Acquire)
            && let Some(reason) = self.failure.lock().clone()
        {
            return Err(Error::Poisoned { reason });
        }
        self.wal()?;
        if self.space.is_low() && !deletes_only {
            self.watch_space()?;
            if self.space.is_low() {
                return Err(Error::NoSpace { path: self.store.data_directory().to_path_buf() });
            }
        }
        Ok(())
    }

    /// Looks at the volume's free space.
    ///
    /// # Errors
    /// Those of asking for it.
    pub fn watch_space(&self) -> Result<()> {
        let free = self.store.vfs.free_space(self.store.data_directory())?;
        self.space.low.store(free < self.config().space_reserve, Ordering::Release);
        Ok(())
    }

    /// Appends to the log and waits as far as `durability` asks; the cells then carry their sequence id. On error nothing of it becomes visible.
    ///
    /// # Errors
    /// Those of the log; a failed log poisons the store.
    pub fn log(&self, edits: &mut [WalEdit], durability: Durability) -> Result<u64> {
        let wal = self.wal()?;
        if durability == Durability::SkipWal {
            let id = wal.allocate_sequence_id();
            edits.iter_mut().flat_map(|edit| &mut edit.cells).for_each(|cell| cell.set_sequence_id(id));
            return Ok(id);
        }
        let appended = wal.append(edits).inspect_err(|error| self.note_failure(error))?;
        if let Err(error) = wal.commit(appended.position, durability) {
            self.mvcc.complete(appended.sequence_id);
            self.note_failure(&error);
            return Err(error);
        }
        let written: usize = edits.iter().flat_map(|edit| &edit.cells).map(|cell| cell.encoded().len()).sum();
        if self.space.note_written(written as u64) {
            // A failed look leaves the flag as it was; the next megabytes look again.
            let _ = self.watch_space();
        }
        Ok(appended.sequence_id)
    }

    /// Commits to the manifest; a failure that leaves its outcome unknown poisons the store.
    ///
    /// # Errors
    /// Those of [`Manifest::commit`].
    pub fn commit(&self, edits: &[ManifestEdit]) -> Result<()> {
        self.manifest.commit(edits).inspect_err(|error| self.note_failure(error))
    }

    /// Remembers what a failure means for later writes.
    pub fn note_failure(&self, error: &Error) {
        match error {
            Error::Poisoned { reason } => self.poison(reason),
            Error::NoSpace { .. } => self.space.low.store(true, Ordering::Release),
            _ => {}
        }
    }

    /// True when compactions should give up: the store is closing.
    pub fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Acquire)
    }
}

/// Whether the volume is nearly full.
#[derive(Debug, Default)]
struct SpaceWatch {
    low: AtomicBool,
    unwatched: AtomicU64,
}

impl SpaceWatch {
    fn is_low(&self) -> bool {
        self.low.load(Ordering::Acquire)
    }

    /// True every few megabytes: time to look.
    fn note_written(&self, bytes: u64) -> bool {
        const LOOK_EVERY: u64 = 4 << 20;
        if self.unwatched.fetch_add(bytes, Ordering::Relaxed) + bytes < LOOK_EVERY {
            return false;
        }
        self.unwatched.store(0, Ordering::Relaxed);
        true
    }
}

/// Wakes the background workers.
#[derive(Debug, Default)]
pub struct WorkSignal {
    rounds: Mutex<u64>,
    raised: Condvar,
    workers: AtomicBool,
    paused: Condvar,
}

impl WorkSignal {
    /// Background threads serve this signal: waiting makes sense. Without them nothing happens meanwhile.
    pub fn set_workers(&self, there: bool) {
        self.workers.store(there, Ordering::Release);
    }

    /// True if background threads serve this signal.
    pub fn has_workers(&self) -> bool {
        self.workers.load(Ordering::Acquire)
    }

    /// Wakes everybody, for the end.
    pub fn end(&self) {
        self.raise();
        self.paused.notify_all();
    }

    /// Pauses the calling worker, until [`WorkSignal::end`] at the latest.
    pub fn pause(&self, time: Duration) {
        let mut rounds = self.rounds.lock();
        let _ = self.paused.wait_for(&mut rounds, time);
    }

    /// There is something to do.
    pub fn raise(&self) {
        *self.rounds.lock() += 1;
        self.raised.notify_all();
    }

    /// Waits until [`WorkSignal::raise`] has been called since `seen`, or for `timeout`; returns the new count.
    pub fn wait(&self, seen: u64, timeout: Duration) -> u64 {
        let mut rounds = self.rounds.lock();
        if *rounds == seen {
            let _ = self.raised.wait_for(&mut rounds, timeout);
        }
        *rounds
    }
}
