//! Regions: the rows of a table from one key to another (HBase `HRegion`).
//!
//! Locks, in the order in which they may be taken, each shared by many and exclusive for few:
//! 1. `maintenance`: shared by flush and compaction, exclusive for what replaces the region (split, close, schema change).
//! 2. `lifecycle`: shared by writers from before their row locks until their cells are in the memstores, exclusive for the switch.
//! 3. row locks, in one order over all rows of a request.
//! 4. `stores`: held for moments without waiting for anything: shared to insert cells or to look at all families at one moment, exclusive
//!    to start a flush and to publish files.
//!
//! Only the first two and row locks are held while something waits for the disk.

mod compact;
mod condition;
mod delta;
mod flush;
mod info_message;
mod limits;
mod load;
mod mvcc;
mod name;
mod prepare;
mod pressure;
mod read;
mod row_locks;
mod services;
mod split_point;
mod statistics;
mod tasks;
mod write;

pub use compact::{CompactionOutcome, CompactionPace};
pub use condition::Checked;
pub use info_message::{PROTOBUF_MAGIC, RegionInfoMessage, TableNameMessage};
pub use limits::{
    RequestLimits, check_condition, check_get, check_mutation, check_put_request, check_row, check_scan, has_family,
};
pub use load::{AsideFiles, BulkLoad, Installation, LoadedCells, Share};
pub use mvcc::{Mvcc, ReadPoint, WriteEntry};
pub use name::{encoded_region_name, region_name};
pub use prepare::{Preparation, encode_put_tags};
pub use pressure::MemoryPressure;
pub use read::{FrozenRegion, Standpoint};
pub use row_locks::{RowLockGuard, RowLocks};
pub use services::{RegionConfig, RegionServices, WorkSignal};
pub use split_point::split_threshold;
pub use statistics::{TableCounters, table_statistics};
pub use tasks::{MonitoredTask, TaskGuard, TaskMonitor};
pub use write::{RegionCells, apply};

use crate::error::{Error, Result};
use crate::manifest::{ManifestState, RegionEntry, StoreEntry};
use crate::schema::{ColumnFamilyDescriptor, ROW_ATTRIBUTES_FAMILY, TableDescriptor};
use crate::store::{FamilyCounters, HStore, StoreFile, StoreFileView};
use bytes::{Bytes, BytesMut};
use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

/// An open region.
pub struct Region {
    services: Arc<RegionServices>,
    id: u64,
    table: u64,
    encoded_name: String,
    start: Bytes,
    end: Bytes,
    parent: Option<String>,
    born_millis: i64,
    counters: Arc<TableCounters>,
    maintenance: RwLock<()>,
    lifecycle: RwLock<Lifecycle>,
    stores: RwLock<Stores>,
    flush: Mutex<flush::FlushState>,
    /// Bytes in active segments: what the next flush would free.
    active_bytes: AtomicI64,
    /// Somebody asked for a flush that has not begun.
    flush_requested: AtomicBool,
    /// Files of the fullest store, as writers see them who slow down for it.
    fullest_store: AtomicUsize,
    /// COMPACTION_ENABLED is off: files pile up because somebody wants it so.
    compaction_disabled: AtomicBool,
    /// Compactions of this region should give up.
    interrupted: AtomicBool,
    flushed_sequence_id: AtomicU64,
    /// Cells are encoded one behind the other into this.
    arena: Mutex<BytesMut>,
    reads: AtomicU64,
    writes: AtomicU64,
}

/// Whether the region takes requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lifecycle {
    Open,
    /// Replaced (split, truncated) or dropped: whoever came for it asks the table again.
    Closed,
}

/// The families of a region, sorted by name.
struct Stores {
    stores: Vec<Arc<HStore>>,
    closed: bool,
}

impl Stores {
    fn get(&self, family: &[u8]) -> Option<&Arc<HStore>> {
        self.stores.iter().find(|store| &store.family()[..] == family)
    }
}

/// A writer's stay in a region: while it is held, the region is not replaced.
pub struct RegionEntryGuard<'a> {
    _lifecycle: RwLockReadGuard<'a, Lifecycle>,
}

/// The attributes of the hidden family of rows' own modes, owners and times.
pub fn row_attributes_descriptor() -> ColumnFamilyDescriptor {
    ColumnFamilyDescriptor::default()
}

/// The attributes of a family of the table, the hidden one included.
fn family_descriptor(table: &TableDescriptor, family: &[u8]) -> Option<ColumnFamilyDescriptor> {
    match table.families.get(family) {
        Some(descriptor) => Some(descriptor.clone()),
        None if family == ROW_ATTRIBUTES_FAMILY => Some(row_attributes_descriptor()),
        None => None,
    }
}

impl Region {
    /// Opens a region as the manifest has it. `files` are those already open, for daughters of a split.
    ///
    /// # Errors
    /// Those of opening its files.
    pub fn open(
        services: &Arc<RegionServices>,
        entry: &RegionEntry,
        descriptor: &TableDescriptor,
        counters: &Arc<TableCounters>,
        files: &BTreeMap<u64, Arc<StoreFile>>,
    ) -> Result<Region> {
        let empty = StoreEntry::default();
        let mut stores = Vec::with_capacity(descriptor.families.len());
        let hidden = entry.stores.contains_key(ROW_ATTRIBUTES_FAMILY);
        let names = descriptor.families.keys().cloned();
        let hidden = hidden.then(|| Bytes::from_static(ROW_ATTRIBUTES_FAMILY));
        for family in names.chain(hidden) {
            let Some(attributes) = family_descriptor(descriptor, &family) else { continue };
            let store = entry.stores.get(&family).unwrap_or(&empty);
            let family_counters = counters.family(&family);
            let mut views = Vec::with_capacity(store.files.len());
            for (file_id, file_entry) in &store.files {
                let file = match files.get(file_id) {
                    Some(open) => Arc::clone(open),
                    None => StoreFile::open_live(&services.store, *file_id, Arc::clone(&family_counters.hfile))?,
                };
                views.push(StoreFileView { file, entry: file_entry.clone() });
            }
            stores.push(Arc::new(HStore::new(
                &services.store,
                family,
                Arc::new(attributes),
                family_counters,
                views,
                store.history_complete_since,
            )));
        }
        stores.sort_by(|left, right| left.family().cmp(right.family()));
        let region = Region {
            services: Arc::clone(services),
            id: entry.id,
            table: entry.table,
            encoded_name: entry.encoded_name.clone(),
            start: entry.start.clone(),
            end: entry.end.clone(),
            parent: entry.parent.clone(),
            born_millis: entry.born_millis,
            counters: Arc::clone(counters),
            maintenance: RwLock::new(()),
            lifecycle: RwLock::new(Lifecycle::Open),
            stores: RwLock::new(Stores { stores, closed: false }),
            flush: Mutex::new(flush::FlushState::default()),
            active_bytes: AtomicI64::new(0),
            flush_requested: AtomicBool::new(false),
            fullest_store: AtomicUsize::new(0),
            compaction_disabled: AtomicBool::new(descriptor.compaction_disabled),
            interrupted: AtomicBool::new(false),
            flushed_sequence_id: AtomicU64::new(entry.flushed_sequence_id),
            arena: Mutex::new(BytesMut::new()),
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
        };
        region.note_files(&region.stores.read());
        Ok(region)
    }

    /// Remembers how many files the fullest store has; whether that slows writers the next write finds out.
    fn note_files(&self, stores: &Stores) {
        let most = stores.stores.iter().map(|store| store.files().len()).max().unwrap_or(0);
        self.fullest_store.store(most, Ordering::Relaxed);
        self.services.memory.note_slowing(false);
    }

    /// The region's identity.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The table's identity.
    pub fn table_id(&self) -> u64 {
        self.table
    }

    /// HBase's encoded name.
    pub fn encoded_name(&self) -> &str {
        &self.encoded_name
    }

    /// First row, inclusive; empty = from the beginning.
    pub fn start(&self) -> &Bytes {
        &self.start
    }

    /// End row, exclusive; empty = to the end.
    pub fn end(&self) -> &Bytes {
        &self.end
    }

    /// Encoded name of the region it was split from.
    pub fn parent(&self) -> Option<&str> {
        self.parent.as_deref()
    }

    /// When it came to be, milliseconds since the epoch.
    pub fn born_millis(&self) -> i64 {
        self.born_millis
    }

    /// True if the row belongs to the region.
    pub fn contains(&self, row: &[u8]) -> bool {
        row >= &self.start[..] && (self.end.is_empty() || row < &self.end[..])
    }

    /// What all regions share.
    pub fn services(&self) -> &Arc<RegionServices> {
        &self.services
    }

    /// Enters the region to write; `None` when it is closed and the table must be asked again.
    pub fn enter(&self) -> Option<RegionEntryGuard<'_>> {
        let lifecycle = self.lifecycle.read();
        (*lifecycle == Lifecycle::Open).then_some(RegionEntryGuard { _lifecycle: lifecycle })
    }

    /// The store of a family. The hidden family's comes to be when it is first written.
    fn store_for_write(&self, family: &[u8]) -> Result<Arc<HStore>> {
        if let Some(store) = self.stores.read().get(family) {
            return Ok(Arc::clone(store));
        }
        if family != ROW_ATTRIBUTES_FAMILY {
            return Err(self.no_such_family(family));
        }
        let mut stores = self.stores.write();
        if let Some(store) = stores.get(family) {
            return Ok(Arc::clone(store));
        }
        let store = self.new_store(Bytes::from_static(ROW_ATTRIBUTES_FAMILY), row_attributes_descriptor());
        stores.stores.push(Arc::clone(&store));
        stores.stores.sort_by(|left, right| left.family().cmp(right.family()));
        Ok(store)
    }

    fn new_store(&self, family: Bytes, descriptor: ColumnFamilyDescriptor) -> Arc<HStore> {
        let counters: Arc<FamilyCounters> = self.counters.family(&family);
        Arc::new(HStore::new(&self.services.store, family, Arc::new(descriptor), counters, Vec::new(), None))
    }

    fn no_such_family(&self, family: &[u8]) -> Error {
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        let stores = self.stores.read();
        let known = stores.stores.iter().filter(|store| &store.family()[..] != ROW_ATTRIBUTES_FAMILY);
        Error::NoSuchColumnFamily { family: text(family), known: known.map(|store| text(store.family())).collect() }
    }

    /// The stores of this moment, the hidden one included.
    pub fn stores(&self) -> Vec<Arc<HStore>> {
        self.stores.read().stores.clone()
    }

    /// Shows readers a file that the manifest has given to a store of the region, which the caller holds exclusively.
    pub fn publish_file(&self, store: &HStore, view: StoreFileView) {
        let stores = self.stores.write();
        store.replace_files(&[], vec![view]);
        self.note_files(&stores);
    }

    /// Bytes in memstores that no flush has begun to write.
    pub fn active_bytes(&self) -> u64 {
        u64::try_from(self.active_bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Follows a change of the table's schema: attributes of families, new families, families gone. The caller holds the region exclusively
    /// ([`Region::exclusive`]) and has flushed it, so no log record can bring a dropped family's cells back.
    pub fn apply_descriptor(&self, descriptor: &TableDescriptor) {
        self.compaction_disabled.store(descriptor.compaction_disabled, Ordering::Relaxed);
        let mut stores = self.stores.write();
        let (kept, gone): (Vec<_>, Vec<_>) = stores.stores.drain(..).partition(|store| {
            descriptor.families.contains_key(store.family()) || &store.family()[..] == ROW_ATTRIBUTES_FAMILY
        });
        for store in gone {
            store.files().iter().for_each(|view| view.file.mark_dead());
        }
        stores.stores = kept;
        for (family, attributes) in &descriptor.families {
            match stores.get(family) {
                Some(store) => store.set_descriptor(Arc::new(attributes.clone())),
                None => {
                    let store = self.new_store(family.clone(), attributes.clone());
                    // A family of that name was here before: what it held is not known any more.
                    let kept =
                        |state: &ManifestState| state.regions.get(&self.id)?.stores.get(family)?.history_complete_since;
                    self.services.manifest.read(kept).into_iter().for_each(|since| store.move_history(since));
                    stores.stores.push(store);
                }
            }
        }
        stores.stores.sort_by(|left, right| left.family().cmp(right.family()));
    }

    /// Stops flushes, compactions and writers and waits until none is under way. Readers go on.
    pub fn exclusive(&self) -> ExclusiveRegion<'_> {
        self.interrupted.store(true, Ordering::Release);
        let maintenance = self.maintenance.write();
        self.interrupted.store(false, Ordering::Release);
        let lifecycle = self.lifecycle.write();
        ExclusiveRegion { region: self, _maintenance: maintenance, lifecycle }
    }

    /// Stops writers and waits until none is under way. Readers, flushes and compactions go on; the region is not replaced.
    pub fn hold_writers(&self) -> HeldRegion<'_> {
        let maintenance = self.maintenance.read();
        HeldRegion { region: self, _maintenance: maintenance, lifecycle: self.lifecycle.write() }
    }
}

/// A region that nobody writes: while it is held, every cell with a sequence id of before is in it.
pub struct HeldRegion<'a> {
    region: &'a Region,
    _maintenance: RwLockReadGuard<'a, ()>,
    lifecycle: RwLockWriteGuard<'a, Lifecycle>,
}

impl HeldRegion<'_> {
    /// Flushes what is in memory, so that files stay in the order of sequence ids when one comes to be with the next. As in HBase the flush and
    /// what comes then share an id, where nobody else takes one: which of two such files counts as older is a matter of their sizes.
    ///
    /// # Errors
    /// Those of the flush; [`Error::NotAllowed`] for a region that has been closed.
    pub fn flush(&self) -> Result<()> {
        if *self.lifecycle == Lifecycle::Closed {
            return Err(Error::NotAllowed("the region was closed".to_owned()));
        }
        let next = self.region.services.wal()?.last_sequence_id().saturating_add(1);
        self.region.flush_everything(next)
    }
}

/// A region that nobody writes, flushes or compacts but the holder.
pub struct ExclusiveRegion<'a> {
    region: &'a Region,
    _maintenance: RwLockWriteGuard<'a, ()>,
    lifecycle: RwLockWriteGuard<'a, Lifecycle>,
}

impl ExclusiveRegion<'_> {
    /// Flushes what is in memory.
    ///
    /// # Errors
    /// Those of the flush.
    pub fn flush(&self) -> Result<()> {
        self.region.flush_everything(0)
    }

    /// True if it was closed before it could be had.
    pub fn is_closed(&self) -> bool {
        *self.lifecycle == Lifecycle::Closed
    }

    /// Closes the region for good: requests that come for it ask the table again. Its memory is given back.
    pub fn close(&mut self) {
        *self.lifecycle = Lifecycle::Closed;
        self.region.stores.write().closed = true;
        let bytes = self.region.active_bytes.swap(0, Ordering::Relaxed);
        self.region.services.memory.add(-bytes);
        self.region.forget_snapshots();
    }
}
