//! Opening a store: whose directory it is, the lock, the manifest, the log, and what a crash left behind.

use super::catalog::{Catalog, NamespaceState};
use super::settings;
use super::table_state::TableState;
use super::{StoreInner, StoreOptions};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::hfile::BlockCache;
use crate::manifest::{Manifest, ManifestState};
use crate::region::{MemoryPressure, Mvcc, Region, RegionServices, TableCounters};
use crate::store::{StoreContext, StoreFile, parse_store_file_name};
use crate::vfs::{LockGuard, LockMode, Vfs};
use crate::wal::{self, RecoveredLog, RecoveryOptions, Wal, WalRecord};
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

const LOCK_FILE: &str = "LOCK";
const CURRENT_FILE: &str = "CURRENT";
const LOG_DIRECTORY: &str = "wal";
const DATA_DIRECTORY: &str = "data";

/// What is found where a store is to be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Store,
    /// Missing, empty, or what an interrupted creation left.
    Nothing,
}

pub(super) fn open_store(
    vfs: Arc<dyn Vfs>,
    clock: Arc<dyn Clock>,
    root: &Path,
    mut options: StoreOptions,
) -> Result<StoreInner> {
    let found = look(vfs.as_ref(), root)?;
    if found == Found::Nothing {
        if options.read_only {
            return Err(Error::NotAStore { path: root.to_path_buf(), what: "there is nothing to read".to_owned() });
        }
        vfs.create_directory(root)?;
        if let Some(parent) = root.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            vfs.sync_directory(parent)?;
        }
    }
    let lock = take_lock(vfs.as_ref(), root, options.read_only)?;
    // Somebody may have made the store between the first look and the lock.
    let (manifest, state) = match look(vfs.as_ref(), root)? {
        Found::Store => Manifest::open(Arc::clone(&vfs), root, options.read_only)?,
        Found::Nothing => {
            vfs.create_directory(&root.join(DATA_DIRECTORY))?;
            vfs.create_directory(&root.join(LOG_DIRECTORY))?;
            Manifest::create(Arc::clone(&vfs), root, options.default_namespace)?
        }
    };
    settings::load(vfs.as_ref(), root, &mut options)?;
    let data = root.join(DATA_DIRECTORY);
    let next_file_id = if options.read_only {
        state.next_file_id
    } else {
        vfs.create_directory(&data)?;
        vfs.create_directory(&root.join(LOG_DIRECTORY))?;
        remove_orphans(vfs.as_ref(), &data, &state)?
    };
    let cache = Arc::new(BlockCache::new(options.cache_bytes));
    let context = Arc::new(StoreContext::new(Arc::clone(&vfs), clock, cache, data, next_file_id));
    let services = Arc::new(RegionServices::new(
        context,
        manifest,
        Arc::new(Mvcc::new(0)),
        MemoryPressure::new(options.memstore_bytes),
        options.region.clone(),
    ));
    let (catalog, regions) = load(&services, &state)?;
    recover(vfs.as_ref(), root, &services, &state, &regions, &options)?;
    Ok(StoreInner {
        root: root.to_path_buf(),
        vfs,
        services,
        settings: RwLock::new(settings::of_options(&options)),
        options,
        catalog: RwLock::new(catalog),
        ddl: Mutex::new(()),
        next_id: AtomicU64::new(state.next_id),
        snapshots: Mutex::new(()),
        open_snapshots: Mutex::default(),
        forgetting: Mutex::new(()),
        _lock: lock,
    })
}

/// Says whose directory it is, without touching it.
fn look(vfs: &dyn Vfs, root: &Path) -> Result<Found> {
    if !vfs.exists(root)? {
        return Ok(Found::Nothing);
    }
    let entries = vfs.list(root)?;
    if entries.iter().any(|entry| entry.name == CURRENT_FILE) {
        return Ok(Found::Store);
    }
    let left_by_creation = |name: &str| {
        matches!(name, LOCK_FILE | LOG_DIRECTORY | DATA_DIRECTORY | "CURRENT.tmp" | "lost+found")
            || name.starts_with("MANIFEST-")
    };
    let foreign = entries.iter().find(|entry| !left_by_creation(&entry.name));
    if let Some(foreign) = foreign {
        let what = format!("it holds {} and no {CURRENT_FILE}", foreign.name);
        return Err(Error::NotAStore { path: root.to_path_buf(), what });
    }
    for directory in [DATA_DIRECTORY, LOG_DIRECTORY] {
        let path = root.join(directory);
        if vfs.exists(&path)? && !vfs.list(&path)?.is_empty() {
            let what = format!("{CURRENT_FILE} is missing, yet {directory}/ holds files");
            return Err(Error::NotAStore { path: root.to_path_buf(), what });
        }
    }
    Ok(Found::Nothing)
}

/// One writer or many readers; none where the medium cannot be locked, which only a reader may use.
fn take_lock(vfs: &dyn Vfs, root: &Path, read_only: bool) -> Result<Option<Box<dyn LockGuard>>> {
    let path = root.join(LOCK_FILE);
    if !read_only {
        return vfs.lock(&path, LockMode::Exclusive).map(Some);
    }
    match vfs.lock(&path, LockMode::Shared) {
        Ok(lock) => Ok(Some(lock)),
        Err(locked @ Error::Locked { .. }) => Err(locked),
        Err(error) => {
            log::warn!("reading without a lock: {error}");
            Ok(None)
        }
    }
}

/// Removes store files that the manifest does not name; returns the first file id that no file has.
fn remove_orphans(vfs: &dyn Vfs, data: &Path, state: &ManifestState) -> Result<u64> {
    let live = state.live_files();
    let mut next = state.next_file_id;
    for entry in vfs.list(data)? {
        let Some(file_id) = parse_store_file_name(&entry.name) else {
            log::warn!("{} is no store file; it is left alone", data.join(&entry.name).display());
            continue;
        };
        next = next.max(file_id.saturating_add(1));
        if !live.contains(&file_id)
            && let Err(error) = vfs.remove_file(&data.join(&entry.name))
        {
            log::warn!("an unfinished store file stays: {error}");
        }
    }
    Ok(next)
}

/// Opens every table and region that the manifest names.
fn load(services: &Arc<RegionServices>, state: &ManifestState) -> Result<(Catalog, BTreeMap<u64, Arc<Region>>)> {
    let mut catalog = Catalog::default();
    for entry in state.namespaces.values() {
        let descriptor = Arc::clone(&entry.descriptor);
        let namespace = NamespaceState { id: entry.id, descriptor, attributes: entry.attributes };
        catalog.namespaces.insert(entry.name.clone(), namespace);
    }
    let mut all_regions = BTreeMap::new();
    // Two regions may share a file after a split: it is opened once.
    let mut open_files: BTreeMap<u64, Arc<StoreFile>> = BTreeMap::new();
    for table in state.tables.values() {
        let counters = Arc::new(TableCounters::default());
        let mut regions = Vec::new();
        for entry in state.regions_of(table.id) {
            let region = Region::open(services, &entry, &table.descriptor, &counters, &open_files)?;
            for view in region.stores().iter().flat_map(|store| store.files().as_slice().to_vec()) {
                open_files.insert(view.entry.file_id, view.file);
            }
            let region = Arc::new(region);
            all_regions.insert(entry.id, Arc::clone(&region));
            regions.push(region);
        }
        let (name, descriptor) = (table.name.clone(), Arc::clone(&table.descriptor));
        let state = TableState::new(table.id, name.clone(), descriptor, table.attributes, regions, counters);
        catalog.tables.insert(name, Arc::new(state));
    }
    Ok((catalog, all_regions))
}

/// Replays the log into the memstores and goes on behind it.
fn recover(
    vfs: &dyn Vfs,
    root: &Path,
    services: &Arc<RegionServices>,
    state: &ManifestState,
    regions: &BTreeMap<u64, Arc<Region>>,
    options: &StoreOptions,
) -> Result<()> {
    let directory = root.join(LOG_DIRECTORY);
    let recovery = RecoveryOptions { first_segment: state.log_number, point_in_time: options.point_in_time_recovery };
    services.mvcc.advance_to(state.max_sequence_id());
    let flushed: BTreeMap<u64, u64> =
        state.regions.iter().map(|(id, entry)| (*id, entry.flushed_sequence_id)).collect();
    let recovered = if vfs.exists(&directory)? {
        wal::recover(vfs, &directory, recovery, |record| replay(services, regions, &flushed, record, options))?
    } else {
        RecoveredLog::default()
    };
    if let Some(torn) = &recovered.torn_tail {
        log::warn!("{}: the last write was interrupted; cut at byte {}", torn.file.display(), torn.offset);
    }
    let last = recovered.last_sequence_id.max(state.max_sequence_id());
    services.mvcc.advance_to(last);
    if !options.read_only {
        let vfs = Arc::clone(&services.store.vfs);
        services.set_wal(Wal::create(vfs, &directory, options.wal, recovered, last + 1)?);
    }
    Ok(())
}

/// Puts one record back. Regions that are gone, and edits that are in store files, are passed over.
fn replay(
    services: &Arc<RegionServices>,
    regions: &BTreeMap<u64, Arc<Region>>,
    flushed: &BTreeMap<u64, u64>,
    record: WalRecord,
    options: &StoreOptions,
) -> Result<()> {
    for edit in &record.edits {
        let Some(region) = regions.get(&edit.region) else { continue };
        if flushed.get(&edit.region).is_none_or(|flushed| record.sequence_id > *flushed) {
            region.replay(&edit.cells)?;
        }
    }
    services.mvcc.advance_to(record.sequence_id);
    if !options.read_only && services.memory.pressure() >= 1.0 {
        let largest = regions.values().max_by_key(|region| region.active_bytes());
        if let Some(region) = largest {
            region.flush()?;
        }
    }
    Ok(())
}
