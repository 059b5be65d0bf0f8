//! Opening a root directory: what it is, its catalog, its tables, its logs.

use super::admin::identity;
use super::descriptor::{missing_descriptor, read_table_descriptor};
use super::file_name::is_region_name;
use super::layout::{self, DATA, META_REGION, SNAPSHOTS, read_file, table_directory};
use super::messages::{self, VersionMessage};
use super::meta::{MetaTable, read_meta, read_namespaces};
use super::region::RootRegion;
use super::region_info::{RegionDescription, read_region_info};
use super::regions;
use super::replay::{RegionsByName, ReplayReport, find_logs, find_recovered_edits};
use super::snapshots::{self, Snapshot};
use super::store::{RootFiles, RootStore, StoreSource};
use super::table::RootTable;
use super::{HBaseRoot, HBaseRootOptions, RootReport};
use crate::client::{Table, TableName, TableView};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::hfile::{BlockCache, HFileCounters};
use crate::schema::{NamespaceDescriptor, TableDescriptor};
use crate::store::StoreContext;
use crate::vfs::Vfs;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const VERSION_FILE: &str = "hbase.version";
/// HBase `HConstants.FILE_SYSTEM_VERSION`, since 0.96.
const LAYOUT_VERSION: &str = "8";
const TRACKER: &str = "hbase.store.file-tracker.impl";
const TRACKER_MIGRATES_FROM: &str = "hbase.store.file-tracker.migration.src.impl";

/// What is being put together.
struct Opening {
    files: Arc<RootFiles>,
    clock: Arc<dyn Clock>,
    replay: ReplayReport,
    tables: BTreeMap<TableName, Arc<RootTable>>,
    broken: BTreeMap<TableName, Error>,
    remarks: Vec<String>,
}

pub(super) fn open(
    vfs: Arc<dyn Vfs>,
    clock: Arc<dyn Clock>,
    root: &Path,
    options: &HBaseRootOptions,
) -> Result<HBaseRoot> {
    let has_data = look(vfs.as_ref(), root)?;
    let cache = Arc::new(BlockCache::new(options.cache_bytes));
    let context = StoreContext::new(Arc::clone(&vfs), Arc::clone(&clock), cache, root.to_path_buf(), 1);
    let mut opening = Opening {
        files: Arc::new(RootFiles::new(root, Arc::new(context))),
        clock: Arc::clone(&clock),
        replay: ReplayReport::default(),
        tables: BTreeMap::new(),
        broken: BTreeMap::new(),
        remarks: Vec::new(),
    };
    let (meta_logs, logs) = find_logs(vfs.as_ref(), root)?;
    let catalog = opening.open_meta(&meta_logs);
    opening.open_tables(&catalog)?;
    opening.replay_logs(&logs)?;
    let (snapshots, remarks) = snapshots::find(vfs.as_ref(), root)?;
    opening.remarks.extend(remarks);
    let mut namespaces = opening.namespaces()?;
    let named = |snapshot: &Snapshot| {
        !opening.tables.contains_key(&snapshot.table) && !opening.broken.contains_key(&snapshot.table)
    };
    let only_snapshots: BTreeSet<TableName> =
        snapshots.iter().filter(|snapshot| named(snapshot)).map(|snapshot| snapshot.table.clone()).collect();
    for name in only_snapshots.iter() {
        namespaces.entry(name.namespace.clone()).or_default();
    }
    Ok(HBaseRoot {
        report: opening.report(),
        files: opening.files,
        clock,
        attributes: options.attributes,
        cache_bytes: options.cache_bytes,
        namespaces,
        tables: opening.tables,
        broken: opening.broken,
        only_snapshots,
        list_only_snapshots: !has_data,
        snapshots,
    })
}

/// Checks that `root` is a root directory; true if it has tables, false if there are snapshots alone.
fn look(vfs: &dyn Vfs, root: &Path) -> Result<bool> {
    let shown = root.display();
    if !vfs.exists(root)? {
        return Err(Error::invalid(format!(
            "{shown} does not exist: name the directory that HBase calls hbase.rootdir, or a copy"
        )));
    }
    let (data, snapshots) = (vfs.exists(&root.join(DATA))?, vfs.exists(&root.join(SNAPSHOTS))?);
    let version = root.join(VERSION_FILE);
    if vfs.exists(&version)? {
        let message: VersionMessage = messages::decode(read_file(vfs, &version)?, &version, "HBase version file")?;
        if message.version != LAYOUT_VERSION {
            let what = format!(
                "HBase's directory layout {:?} (this is for {LAYOUT_VERSION}, of HBase 0.96 to 2.x)",
                message.version
            );
            return Err(Error::Unsupported { file: version, what });
        }
    } else if data || !snapshots {
        return Err(Error::invalid(format!(
            "{shown} is no HBase root directory: it has no {VERSION_FILE}; name the directory that HBase calls hbase.rootdir"
        )));
    }
    Ok(data)
}

impl Opening {
    fn vfs(&self) -> &dyn Vfs {
        self.files.context.vfs.as_ref()
    }

    /// Reads hbase:meta, of which all cells are taken into memory: its files are in an order of their own (HBase `MetaCellComparator`). Without it
    /// the regions are chosen by age.
    fn open_meta(&mut self, logs: &[PathBuf]) -> BTreeMap<TableName, MetaTable> {
        let place = self.files.root.join(DATA).join("hbase").join("meta").join(META_REGION);
        let read = self.read_meta_table(&place, logs).and_then(|table| {
            let catalog = read_meta(&table, &place)?;
            self.tables.insert(table.name.clone(), Arc::new(table));
            Ok(catalog)
        });
        read.unwrap_or_else(|error| {
            if self.files.context.vfs.exists(&self.files.root.join(DATA)).unwrap_or(true) {
                let what = "regions are chosen by age, and disabled tables are not known as such";
                self.remarks.push(format!("hbase:meta cannot be read, so {what}: {error}"));
            }
            BTreeMap::new()
        })
    }

    fn read_meta_table(&mut self, place: &Path, logs: &[PathBuf]) -> Result<RootTable> {
        let name = TableName::new("hbase", "meta")?;
        let directory = table_directory(&self.files.root, &name);
        let descriptor =
            read_table_descriptor(self.vfs(), &directory)?.ok_or_else(|| missing_descriptor(&directory))?;
        let info = RegionDescription {
            encoded: META_REGION.to_owned(),
            region_id: 1,
            start: Bytes::new(),
            end: Bytes::new(),
            replaced: false,
            replica: 0,
        };
        let counters = Arc::new(HFileCounters::default());
        let mut stores = Vec::new();
        for (family, attributes) in &descriptor.families {
            let new = |source| {
                RootStore::new(&self.files, (&name, META_REGION), family.clone(), attributes.clone(), source, &counters)
            };
            let on_disk = new(StoreSource::Directory(place.join(layout::text(family)), false));
            let in_memory = new(StoreSource::Memory);
            in_memory.segment.insert(on_disk.read_all()?);
            stores.push(in_memory);
        }
        let region = Arc::new(RootRegion::new(info, stores));
        let regions: RegionsByName = [(META_REGION.to_owned(), Arc::clone(&region))].into();
        let recovered = find_recovered_edits(self.vfs(), place)?;
        let vfs = Arc::clone(&self.files.context.vfs);
        for log in logs {
            self.replay.replay(vfs.as_ref(), log, false, &regions);
        }
        for log in &recovered {
            self.replay.replay(vfs.as_ref(), log, true, &regions);
        }
        Ok(new_table(&self.clock, name, TableView::Live, descriptor, vec![region], counters))
    }

    fn open_tables(&mut self, catalog: &BTreeMap<TableName, MetaTable>) -> Result<()> {
        let data = self.files.root.join(DATA);
        for namespace in layout::list(self.vfs(), &data)? {
            for entry in layout::list(self.vfs(), &data.join(&namespace.name))? {
                let name = TableName::new(&namespace.name, &entry.name);
                let Some(name) = name.ok().filter(|_| entry.is_directory) else { continue };
                if name.namespace == "hbase" && name.qualifier == "meta" {
                    continue;
                }
                match self.open_table(&name, catalog.get(&name)) {
                    Ok(table) => {
                        self.tables.insert(name, Arc::new(table));
                    }
                    Err(error) => {
                        self.remarks.push(format!("the table {name} cannot be read: {error}"));
                        self.broken.insert(name, error);
                    }
                }
            }
        }
        Ok(())
    }

    fn open_table(&mut self, name: &TableName, meta: Option<&MetaTable>) -> Result<RootTable> {
        let directory = table_directory(&self.files.root, name);
        let descriptor =
            read_table_descriptor(self.vfs(), &directory)?.ok_or_else(|| missing_descriptor(&directory))?;
        let mut found = Vec::new();
        for entry in self.vfs().list(&directory)? {
            if !entry.is_directory || !is_region_name(&entry.name) {
                continue;
            }
            match read_region_info(self.vfs(), &directory.join(&entry.name), &entry.name)? {
                Some(region) => found.push(region),
                None if meta.is_some_and(|meta| meta.regions.iter().any(|region| region.encoded == entry.name)) => {}
                None => self
                    .remarks
                    .push(format!("{name}: the directory {} has no .regioninfo and is not shown", entry.name)),
            }
        }
        let chosen = regions::choose(&found, meta);
        self.remarks.extend(chosen.remarks.into_iter().map(|remark| format!("{name}: {remark}")));
        for (family, attributes) in &descriptor.families {
            if attributes.metadata.get("IS_MOB").is_some_and(|mob| mob.eq_ignore_ascii_case("true")) {
                let family = layout::text(family);
                self.remarks.push(format!("{name}: values of {family} that are MOBs show as the names of their files"));
            }
        }
        let counters = Arc::new(HFileCounters::default());
        let tracked = is_tracked(&descriptor.metadata);
        let regions = chosen.regions.into_iter().map(|info| {
            let stores = descriptor.families.iter().map(|(family, attributes)| {
                let place = directory.join(&info.encoded).join(layout::text(family));
                let source = StoreSource::Directory(place, tracked || is_tracked(&attributes.metadata));
                RootStore::new(
                    &self.files,
                    (name, &info.encoded),
                    family.clone(),
                    attributes.clone(),
                    source,
                    &counters,
                )
            });
            let stores = stores.collect();
            Arc::new(RootRegion::new(info, stores))
        });
        let regions = regions.collect();
        let mut table = new_table(&self.clock, name.clone(), TableView::Live, descriptor, regions, counters);
        table.disabled = meta.is_some_and(|meta| meta.disabled);
        Ok(table)
    }

    /// Reads the servers' logs, and what recoveries have cut out of them.
    fn replay_logs(&mut self, logs: &[PathBuf]) -> Result<()> {
        let all =
            self.tables.values().filter(|table| table.name.qualifier != "meta" || table.name.namespace != "hbase");
        let of_tables: Vec<(PathBuf, Arc<RootRegion>)> = all
            .flat_map(|table| {
                let directory = table_directory(&self.files.root, &table.name);
                table.regions.iter().map(move |region| (directory.join(&region.info.encoded), Arc::clone(region)))
            })
            .collect();
        let regions: RegionsByName =
            of_tables.iter().map(|(_, region)| (region.info.encoded.clone(), Arc::clone(region))).collect();
        let vfs = Arc::clone(&self.files.context.vfs);
        for (directory, _) in &of_tables {
            for log in find_recovered_edits(vfs.as_ref(), directory)? {
                self.replay.replay(vfs.as_ref(), &log, true, &regions);
            }
        }
        for log in logs {
            self.replay.replay(vfs.as_ref(), log, false, &regions);
        }
        Ok(())
    }

    /// Namespaces that have a directory or a descriptor.
    fn namespaces(&mut self) -> Result<BTreeMap<String, Arc<NamespaceDescriptor>>> {
        let system = |qualifier: &str| {
            self.tables.get(&TableName { namespace: "hbase".to_owned(), qualifier: qualifier.to_owned() })
        };
        let tables: Vec<Arc<dyn Table>> =
            [system("namespace"), system("meta")].into_iter().flatten().map(|table| Arc::clone(table) as _).collect();
        let mut namespaces = match read_namespaces(&tables, &self.files.root) {
            Ok(namespaces) => namespaces,
            Err(error) => {
                self.remarks.push(format!("the namespaces' descriptors cannot be read: {error}"));
                BTreeMap::new()
            }
        };
        for entry in layout::list(self.vfs(), &self.files.root.join(DATA))? {
            if entry.is_directory && crate::client::check_namespace_name(&entry.name).is_ok() {
                namespaces.entry(entry.name).or_default();
            }
        }
        for name in ["default", "hbase"] {
            namespaces.entry(name.to_owned()).or_default();
        }
        Ok(namespaces)
    }

    fn report(&self) -> RootReport {
        let disabled = self.tables.values().filter(|table| table.disabled).map(|table| table.name.clone());
        RootReport {
            logs_read: self.replay.read,
            logs_not_read: self.replay.not_read,
            logs_torn: self.replay.torn,
            cells_replayed: self.replay.cells,
            disabled_tables: disabled.collect(),
            remarks: self.replay.remarks.iter().chain(&self.remarks).cloned().collect(),
        }
    }
}

/// Whether a FILE store file tracker says which files count (HBase `StoreFileTrackerFactory`).
fn is_tracked(attributes: &BTreeMap<String, String>) -> bool {
    let named = |name: &str| attributes.get(name).map(String::as_str).unwrap_or_default();
    let tracker = match named(TRACKER) {
        "MIGRATION" => named(TRACKER_MIGRATES_FROM),
        other => other,
    };
    tracker == "FILE" || tracker.ends_with("FileBasedStoreFileTracker")
}

fn new_table(
    clock: &Arc<dyn Clock>,
    name: TableName,
    view: TableView,
    descriptor: TableDescriptor,
    regions: Vec<Arc<RootRegion>>,
    counters: Arc<HFileCounters>,
) -> RootTable {
    RootTable {
        id: identity(&name.to_string()),
        name,
        view,
        descriptor: Arc::new(descriptor),
        regions,
        clock: Arc::clone(clock),
        counters,
        gets: Default::default(),
        scans: Default::default(),
        disabled: false,
    }
}

/// A snapshot as a table.
pub(super) fn snapshot_table(files: &Arc<RootFiles>, clock: &Arc<dyn Clock>, snapshot: &Snapshot) -> Result<RootTable> {
    let (descriptor, parts) = snapshot.read(files.context.vfs.as_ref())?;
    let counters = Arc::new(HFileCounters::default());
    let table = &snapshot.table;
    let regions = parts.into_iter().map(|part| {
        let stores = descriptor.families.iter().map(|(family, attributes)| {
            let of_family = part.manifest.families.iter().filter(|listed| listed.family == *family);
            let listed = of_family.flat_map(|listed| listed.files.clone()).collect();
            let source = StoreSource::Manifest(listed, snapshot.directory.clone());
            RootStore::new(files, (table, &part.region.encoded), family.clone(), attributes.clone(), source, &counters)
        });
        let stores = stores.collect();
        Arc::new(RootRegion::new(part.region, stores))
    });
    let regions = regions.collect();
    let view = TableView::Snapshot { id: snapshot.info.id, name: snapshot.info.name.clone() };
    Ok(new_table(clock, table.clone(), view, descriptor, regions, counters))
}
