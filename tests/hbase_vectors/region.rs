//! One region of the engine, on a simulated file system, driven as the oracle drives a region of HBase.

use super::protocol::{self, Parsed};
use super::schema::{Schema, configure};
use bytes::Bytes;
use cellfs::cell::{Cell, CellScanner};
use cellfs::client::{
    Admin, CheckAndMutate, Get, Mutation, MutationOutcome, ResultScanner, RowMutations, Scan, Table, TableAttributes,
    TableName,
};
use cellfs::clock::ManualClock;
use cellfs::compaction::CompactionRequest;
use cellfs::region::{CompactionPace, Region, RegionConfig, check_mutation};
use cellfs::schema::{BloomType, ColumnFamilyDescriptor, Compression};
use cellfs::server::{BackgroundMode, Store, StoreOptions};
use cellfs::store::{HStore, StoreFileView};
use cellfs::vfs::SimVfs;
use cellfs::{Error, Result};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const ATTRIBUTES: TableAttributes =
    TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 };

/// The time at which every script begins.
pub const START_OF_TIME: i64 = 1_000_000_000_000;

/// How the engine is run. Whatever the setting, the answers are the same.
#[derive(Debug)]
pub struct Setting {
    /// For the command line and for reports.
    pub name: &'static str,
    /// Blocks of 1 KB whatever the script says, no block cache, memstores always under pressure, tiny log segments.
    tiny: bool,
    /// When the store is closed and opened.
    restart: Restart,
}

#[derive(Debug, PartialEq, Eq)]
enum Restart {
    Never,
    /// After everything that makes files, cleanly.
    AfterFlush,
    /// Every few operations and not cleanly: the log is replayed.
    Crash,
}

/// All settings. A smaller memstore would not do: the script says when HBase flushed, and a flush drops cells.
pub const SETTINGS: [Setting; 4] = [
    Setting { name: "memory", tiny: false, restart: Restart::Never },
    Setting { name: "tiny", tiny: true, restart: Restart::Never },
    Setting { name: "reopened", tiny: false, restart: Restart::AfterFlush },
    Setting { name: "recovered", tiny: true, restart: Restart::Crash },
];

/// Operations between two crashes.
const CRASH_EVERY: usize = 5;

/// Which store files a compaction takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// All, and it is called major.
    Major,
    /// Those the policy chooses.
    Policy,
    /// These, by their place, oldest first.
    Files(Vec<usize>),
}

/// How large a file to load is beside what HBase's tools would write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadSize {
    Plain,
    Larger,
    Smaller,
}

/// What a compaction of one family did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    pub files: usize,
    pub all_files: bool,
    pub major: bool,
    pub expired_files_removed: usize,
}

/// A store file and its cells.
pub type FileContents = (StoreFileView, Vec<Cell>);

/// A store with one table, of which one region is looked at.
pub struct Subject {
    setting: &'static Setting,
    vfs: Arc<SimVfs>,
    clock: Arc<ManualClock>,
    options: StoreOptions,
    store: Option<Store>,
    table: Option<Arc<dyn Table>>,
    schema: Schema,
    /// First row of the region, and the row after its last; empty = no border.
    start: Bytes,
    end: Bytes,
    scanners: BTreeMap<String, Box<dyn ResultScanner>>,
    /// Families whose next compaction is to be major: HBase remembers it until there is one (`HStore.forceMajor`).
    major_due: BTreeSet<Bytes>,
    operations: usize,
}

fn table_name() -> TableName {
    TableName::parse("t").unwrap()
}

impl Subject {
    pub fn new(setting: &'static Setting) -> Subject {
        Subject {
            setting,
            vfs: Arc::new(SimVfs::new()),
            clock: Arc::new(ManualClock::new(START_OF_TIME)),
            options: StoreOptions::default(),
            store: None,
            table: None,
            schema: Schema::default(),
            start: Bytes::new(),
            end: Bytes::new(),
            scanners: BTreeMap::new(),
            major_due: BTreeSet::new(),
            operations: 0,
        }
    }

    fn open(&mut self) -> Result<()> {
        let store = Store::open_with(self.vfs.clone(), self.clock.clone(), "/store", self.options.clone())?;
        self.table = store.table(&table_name()).ok();
        self.store = Some(store);
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        self.table = None;
        self.store.take().map_or(Ok(()), Store::close)
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn table(&self) -> &Arc<dyn Table> {
        self.table.as_ref().unwrap()
    }

    fn region(&self) -> Result<Arc<Region>> {
        let regions = self.store().open_regions(&table_name())?;
        Ok(regions.into_iter().find(|region| region.start() == &self.start).unwrap())
    }

    fn stores(&self, family: Option<&Bytes>) -> Result<Vec<Arc<HStore>>> {
        let stores = self.region()?.stores();
        Ok(stores.into_iter().filter(|store| family.is_none_or(|family| store.family() == family)).collect())
    }

    /// Restarts the store if the setting says so; an open scanner keeps it open.
    fn restart(&mut self, after_flush: bool) -> Result<()> {
        if self.store.is_none() || !self.scanners.is_empty() {
            return Ok(());
        }
        match self.setting.restart {
            Restart::AfterFlush if after_flush => self.close()?,
            Restart::Crash if self.operations.is_multiple_of(CRASH_EVERY) => {
                self.table = None;
                self.store = None;
            }
            _ => return Ok(()),
        }
        self.open()
    }

    /// Between two operations.
    pub fn next_operation(&mut self) -> Result<()> {
        self.operations += 1;
        self.restart(false)
    }

    pub fn create(&mut self, op: &Value) -> Parsed<Result<()>> {
        self.schema = Schema::default().changed(op);
        let descriptor = self.schema.descriptor()?;
        let mut options = StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() };
        // The oracle's HBase makes major compactions by request only.
        options.region.compaction.major_period_millis = 0;
        // Recovery looks through all that a segment reserves.
        options.wal.segment_bytes = if self.setting.tiny { 1 << 14 } else { 1 << 16 };
        if self.setting.tiny {
            options.cache_bytes = 0;
            options.region.flush_size = 1 << 20;
        }
        configure(&mut options, op)?;
        self.options = options;
        (self.start, self.end) = (protocol::bytes(&op["start_key"]), protocol::bytes(&op["end_key"]));
        let splits: Vec<Bytes> =
            [&self.start, &self.end].into_iter().filter(|border| !border.is_empty()).cloned().collect();
        let create = |subject: &mut Subject| {
            subject.open()?;
            let descriptor = adapted(descriptor, subject.setting);
            subject.table = Some(subject.store().create_table(&table_name(), descriptor, &splits, ATTRIBUTES)?);
            Ok(())
        };
        Ok(create(self))
    }

    /// A change of schema, for which HBase closes the region and opens it again.
    pub fn alter(&mut self, op: &Value) -> Parsed<Result<()>> {
        let schema = self.schema.changed(op);
        let descriptor = adapted(schema.descriptor()?, self.setting);
        self.schema = schema;
        self.scanners.clear();
        self.major_due.clear();
        let modify = |subject: &mut Subject| {
            subject.store().modify_table(&table_name(), descriptor)?;
            subject.restart(true)
        };
        Ok(modify(self))
    }

    pub fn reopen(&mut self) -> Result<()> {
        self.scanners.clear();
        self.major_due.clear();
        self.close()?;
        self.open()
    }

    pub fn set_clock(&mut self, millis: i64) {
        self.clock.set(millis);
    }

    /// A region refuses rows beyond its borders; a table knows none.
    pub fn owns(&self, row: &[u8]) -> bool {
        row >= &self.start[..] && (self.end.is_empty() || row < &self.end[..])
    }

    pub fn mutate_row(&mut self, mutations: RowMutations) -> Result<MutationOutcome> {
        self.table().mutate_row(mutations)
    }

    /// One answer per mutation. A batch with increments or appends is one record in HBase's region, of which no mutation sees another;
    /// HBase's clients cannot send such a batch, and `Table::batch` makes such mutations one by one.
    pub fn batch(&mut self, mutations: Vec<Mutation>) -> Result<Vec<Result<()>>> {
        let simple = |mutation: &Mutation| matches!(mutation, Mutation::Put(_) | Mutation::Delete(_));
        if mutations.iter().all(simple) {
            return Ok(self.table().batch(mutations).into_iter().map(|done| done.map(drop)).collect());
        }
        let (descriptor, limits) = (self.table().descriptor(), RegionConfig::default().limits);
        let checked: Vec<Result<()>> =
            mutations.iter().map(|mutation| check_mutation(&descriptor, &limits, mutation)).collect();
        let good = mutations.into_iter().zip(&checked).filter(|(_, check)| check.is_ok());
        self.batch_atomic(good.map(|(mutation, _)| mutation).collect())?;
        Ok(checked)
    }

    pub fn batch_atomic(&mut self, mutations: Vec<Mutation>) -> Result<()> {
        let group = |mutation: Mutation| RowMutations { row: mutation.row().clone(), mutations: vec![mutation] };
        self.table().mutate_rows(mutations.into_iter().map(group).collect()).map(drop)
    }

    pub fn check_and_mutate(&mut self, check: CheckAndMutate) -> Result<MutationOutcome> {
        self.table().check_and_mutate(check)
    }

    pub fn get(&mut self, get: &Get) -> Result<Vec<Cell>> {
        self.table().get(get).map(|row| row.cells)
    }

    pub fn exists(&mut self, get: &Get) -> Result<bool> {
        self.table().exists(get)
    }

    pub fn scan(&mut self, mut scan: Scan) -> Result<Box<dyn ResultScanner>> {
        let (low, high) = (&self.start, &self.end);
        let beyond = |row: &Bytes| !high.is_empty() && (row.is_empty() || row > high);
        if scan.reversed {
            if beyond(&scan.start_row) {
                (scan.start_row, scan.include_start) = (high.clone(), false);
            }
            if scan.stop_row < *low {
                (scan.stop_row, scan.include_stop) = (low.clone(), true);
            }
        } else {
            if scan.start_row < *low {
                (scan.start_row, scan.include_start) = (low.clone(), true);
            }
            if beyond(&scan.stop_row) {
                (scan.stop_row, scan.include_stop) = (high.clone(), false);
            }
        }
        self.table().scan(&scan)
    }

    pub fn open_scanner(&mut self, id: String, scan: Scan) -> Result<()> {
        let scanner = self.scan(scan)?;
        self.scanners.insert(id, scanner);
        Ok(())
    }

    pub fn scanner(&mut self, id: &str) -> &mut dyn ResultScanner {
        self.scanners.get_mut(id).unwrap().as_mut()
    }

    pub fn close_scanner(&mut self, id: &str) {
        self.scanners.remove(id);
    }

    /// False if there was nothing to flush.
    pub fn flush(&mut self) -> Result<bool> {
        let flushed = self.region()?.flush()?;
        self.restart(true)?;
        Ok(flushed)
    }

    pub fn compact(&mut self, selection: &Selection, family: Option<&Bytes>) -> Result<BTreeMap<Bytes, Compacted>> {
        let mut done = BTreeMap::new();
        for store in self.stores(family)? {
            done.insert(store.family().clone(), self.compact_store(&store, selection)?);
        }
        Ok(done)
    }

    /// Families in which a compaction may have broken down: HBase's tracker of NEW_VERSION_BEHAVIOR does on some orders of cells.
    pub fn may_break(&self, family: Option<&Bytes>) -> Result<usize> {
        let breaks = |store: &&Arc<HStore>| store.descriptor().new_version_behavior && !store.files().is_empty();
        Ok(self.stores(family)?.iter().filter(breaks).count())
    }

    /// What a compaction leaves that broke down in the `nth` family of those in which it may have: families before that are compacted, it itself
    /// has lost its expired files, and those after were not reached.
    pub fn compact_until(&mut self, selection: &Selection, family: Option<&Bytes>, mut nth: usize) -> Result<()> {
        for store in self.stores(family)? {
            if store.descriptor().new_version_behavior && !store.files().is_empty() {
                if nth == 0 {
                    self.region()?.compact_files(&store, &[])?;
                    if !matches!(selection, Selection::Files(_)) {
                        self.major_due.remove(store.family());
                    }
                    return Ok(());
                }
                nth -= 1;
            }
            self.compact_store(&store, selection)?;
        }
        Ok(())
    }

    fn compact_store(&mut self, store: &HStore, selection: &Selection) -> Result<Compacted> {
        let region = self.region()?;
        let outcome = match selection {
            Selection::Files(places) => {
                let outcome = region.compact_files(store, places)?;
                return Ok(Compacted {
                    files: outcome.files,
                    all_files: outcome.all_files,
                    major: false,
                    expired_files_removed: outcome.expired_files,
                });
            }
            Selection::Major => {
                self.major_due.insert(store.family().clone());
                region.compact(store, CompactionRequest::Major, CompactionPace::Free)?
            }
            Selection::Policy if self.major_due.contains(store.family()) => {
                region.compact(store, CompactionRequest::Major, CompactionPace::Free)?
            }
            Selection::Policy => region.compact(store, CompactionRequest::Policy, CompactionPace::Free)?,
        }
        .unwrap_or_default();
        let major = self.major_due.contains(store.family()) && outcome.files > 0;
        if major {
            self.major_due.remove(store.family());
        }
        Ok(Compacted {
            files: outcome.files,
            all_files: outcome.all_files,
            major,
            expired_files_removed: outcome.expired_files,
        })
    }

    /// The store files of each family, oldest first, with their cells.
    pub fn files(&mut self, family: Option<&Bytes>) -> Result<BTreeMap<Bytes, Vec<FileContents>>> {
        let mut families = BTreeMap::new();
        for store in self.stores(family)? {
            let files = store.files();
            let files = files.iter().map(|view| Ok((view.clone(), cells_of(view)?))).collect::<Result<Vec<_>>>()?;
            families.insert(store.family().clone(), files);
        }
        Ok(families)
    }

    /// Whether HBase takes the file of a load or that of the flush before it for the older is a matter of what a codec makes of the latter: HBase's
    /// compressors and ours differ by a few bytes.
    pub fn load_order_is_open(&self, family: &Bytes) -> Result<bool> {
        let open =
            |store: &Arc<HStore>| store.descriptor().compression != Compression::None && !store.memstore().is_empty();
        Ok(self.stores(Some(family))?.iter().any(open))
    }

    /// A load of a file as HBase's tools write it: no codec, encoding or bloom filter.
    pub fn bulk_load(&mut self, family: &Bytes, cells: Vec<Cell>, assign: bool, size: LoadSize) -> Result<()> {
        if self.stores(Some(family))?.is_empty() {
            let known = Vec::new();
            return Err(Error::NoSuchColumnFamily { family: family.escape_ascii().to_string(), known });
        }
        let mut form = ColumnFamilyDescriptor { bloom: BloomType::None, ..ColumnFamilyDescriptor::default() };
        match size {
            LoadSize::Plain => {}
            LoadSize::Larger => form.bloom = BloomType::RowCol,
            LoadSize::Smaller => form.compression = Compression::Gz,
        }
        self.region()?.load_cells(family, cells, form, assign)?;
        // Closing flushes, as this kind of load does too.
        self.restart(assign)
    }

    /// True if some file of the family has more than one block.
    pub fn has_blocks(&self, family: &[u8]) -> Result<bool> {
        let stores = self.region()?.stores();
        let store = stores.iter().find(|store| store.family() == family);
        for view in store.iter().flat_map(|store| store.files().as_slice().to_vec()) {
            let blocks = view.file.reader()?.describe()?.blocks;
            let data = ["DATA", "ENCODED_DATA"]
                .iter()
                .filter_map(|kind| blocks.get(*kind))
                .map(|count| count.count)
                .sum::<u64>();
            if data > 1 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn adapted(mut descriptor: cellfs::schema::TableDescriptor, setting: &Setting) -> cellfs::schema::TableDescriptor {
    if setting.tiny {
        descriptor.families.values_mut().for_each(|family| family.block_size = 1024);
    }
    descriptor
}

fn cells_of(view: &StoreFileView) -> Result<Vec<Cell>> {
    let mut scanner: Box<dyn CellScanner> = view.scanner_for_compaction();
    let mut cells = Vec::new();
    scanner.seek(&Cell::first_on_row(b""))?;
    while let Some(cell) = scanner.peek().cloned() {
        cells.push(cell);
        scanner.advance()?;
    }
    Ok(cells)
}
