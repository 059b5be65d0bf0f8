//! A region in a hundred lines: memstores and files of the scanner room's own making, no log, no disk. It judges the query matcher alone,
//! bulk loads included.

use super::protocol::ttl_tag;
use super::subject::{Compacted, Families, Selection, Subject};
use bytes::Bytes;
use cellfs::cell::{Cell, CellScanner, CellType, tag_type};
use cellfs::client::{
    Append, CheckAndMutate, CompareOperator, Condition, Delete, DeleteMarker, Get, Increment, Mutation,
    MutationOutcome, Put, ResultScanner, RowMutations, RowResult, Scan, TimeRange, WriteTime,
};
use cellfs::memstore::{MemStore, Segment};
use cellfs::scanner::{
    FamilyRules, RegionScanOptions, RegionScanner, RowRange, ScanPolicy, StoreScan, StoreScanner, compile_filter,
};
use cellfs::schema::{BloomType, Compression, DataBlockEncoding};
use cellfs::{Error, Result};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

#[derive(Clone)]
struct StoreFile {
    cells: Arc<Segment>,
    max_sequence_id: u64,
    bulk_loaded: bool,
}

#[derive(Default)]
struct Store {
    memstore: MemStore,

    /// Oldest first.
    files: Vec<StoreFile>,
}

/// The read points of open scanners, with how many scanners hold each.
type ReadPoints = Arc<Mutex<BTreeMap<u64, usize>>>;

#[derive(Default)]
pub struct Model {
    families: Families,
    stores: HashMap<Bytes, Store>,
    now: i64,
    sequence_id: u64,
    read_points: ReadPoints,
    load_overhead: usize,
}

struct OpenScanner {
    scanner: RegionScanner,
    read_point: u64,
    read_points: ReadPoints,
}

impl ResultScanner for OpenScanner {
    fn next(&mut self) -> Result<Option<RowResult>> {
        self.scanner.next()
    }
}

impl Drop for OpenScanner {
    fn drop(&mut self) {
        let mut points = self.read_points.lock().unwrap();
        let count = points.get_mut(&self.read_point).unwrap();
        *count -= 1;
        if *count == 0 {
            points.remove(&self.read_point);
        }
    }
}

impl Model {
    /// A bulk load and the flush before it share a sequence id, and HBase puts the larger of the two files first. How much larger a loaded
    /// file is than its cells is a guess.
    pub fn with_load_overhead(bytes: usize) -> Model {
        Model { load_overhead: bytes, ..Model::default() }
    }

    fn rules(&self, family: &Bytes) -> FamilyRules {
        FamilyRules::of(&self.families[family], self.now)
    }

    fn check_family(&self, family: &Bytes) -> Result<()> {
        if self.families.contains_key(family) {
            return Ok(());
        }
        Err(Error::NoSuchColumnFamily { family: family.escape_ascii().to_string(), known: Vec::new() })
    }

    fn store_scanner(&self, family: &Bytes, scan: &StoreScan) -> StoreScanner {
        let store = &self.stores[family];
        let oldest = if scan.policy == ScanPolicy::Raw { 0 } else { scan.rules.oldest_that_matters() };
        let sources = store
            .memstore
            .segments()
            .into_iter()
            .chain(store.files.iter().rev().map(|file| Arc::clone(&file.cells)))
            .filter(|segment| segment.may_matter(scan.time_range, oldest))
            .map(|segment| Box::new(segment.scanner(u64::MAX)) as Box<dyn CellScanner>)
            .collect();
        StoreScanner::new(sources, scan)
    }

    fn region_scanner(&self, scan: &Scan) -> Result<RegionScanner> {
        for family in scan.columns.families.keys() {
            self.check_family(family)?;
        }
        let mut stores = Vec::new();
        for family in self.families.keys() {
            if let Some(one) = StoreScan::of_scan(scan, family, self.rules(family), self.sequence_id)? {
                stores.push(self.store_scanner(family, &one));
            }
        }
        let filter = scan.filter.as_ref().map(|filter| compile_filter(filter, scan.reversed)).transpose()?;
        let options = RegionScanOptions::of_scan(scan, RowRange::of_scan(scan));
        Ok(RegionScanner::new(stores, options).with_filter(filter))
    }

    fn read(&self, get: &Get) -> Result<Vec<Cell>> {
        if get.row.is_empty() || get.row.len() > cellfs::cell::MAX_ROW_LENGTH {
            return Err(Error::invalid("row length"));
        }
        let mut scan = Scan::new();
        scan.columns = get.columns.clone();
        scan.max_versions = get.max_versions;
        scan.time_range = get.time_range;
        scan.store_limit = get.store_limit;
        scan.store_offset = get.store_offset;
        scan.filter = get.filter.clone();
        scan.start_row = get.row.clone();
        scan.stop_row = get.row.clone();
        scan.include_stop = true;
        Ok(self.region_scanner(&scan)?.next()?.map(|row| row.cells).unwrap_or_default())
    }

    /// The newest visible cell of a column.
    fn current(&self, row: &Bytes, family: &Bytes, qualifier: &Bytes, time_range: TimeRange) -> Result<Option<Cell>> {
        let mut get = Get::new(row.clone()).column(family.clone(), qualifier.clone());
        get.time_range = time_range;
        Ok(self.read(&get)?.into_iter().next())
    }

    /// Cells of a mutation, all reads before all writes, as HBase's mini-batches do it. `floor`: puts are not older than this.
    fn cells_of(&self, mutation: &Mutation, floor: i64) -> Result<Vec<Cell>> {
        let row = mutation.row();
        if row.is_empty() || row.len() > cellfs::cell::MAX_ROW_LENGTH {
            return Err(Error::invalid("row length"));
        }
        match mutation {
            Mutation::Put(put) => self.put_cells(put, floor),
            Mutation::Delete(delete) => self.delete_cells(delete),
            Mutation::Increment(increment) => self.increment_cells(increment),
            Mutation::Append(append) => self.append_cells(append),
        }
    }

    fn put_cells(&self, put: &Put, floor: i64) -> Result<Vec<Cell>> {
        let tags = put.ttl_millis.map(ttl_tag).unwrap_or_default();
        put.cells
            .iter()
            .map(|cell| {
                self.check_family(&cell.family)?;
                let time = match cell.time {
                    WriteTime::At(time) => time,
                    _ => self.now.max(floor),
                };
                Ok(Cell::with_tags(&put.row, &cell.family, &cell.qualifier, time, CellType::Put, &cell.value, &tags))
            })
            .collect()
    }

    fn delete_cells(&self, delete: &Delete) -> Result<Vec<Cell>> {
        let now = |time: WriteTime| if let WriteTime::At(time) = time { time } else { self.now };
        if delete.markers.is_empty() {
            let time = now(delete.row_time);
            let marker = |family: &Bytes| Cell::new(&delete.row, family, b"", time, CellType::DeleteFamily, b"");
            return Ok(self.families.keys().map(marker).collect());
        }
        let mut cells: Vec<Cell> = Vec::new();
        let mut asked: HashMap<(Bytes, Bytes), u32> = HashMap::new();
        for marker in &delete.markers {
            let (family, qualifier, time, kind) = match marker {
                DeleteMarker::Version { family, qualifier, time } => (family, qualifier, *time, CellType::Delete),
                DeleteMarker::Column { family, qualifier, time } => (family, qualifier, *time, CellType::DeleteColumn),
                DeleteMarker::Family { family, time } => (family, &Bytes::new(), *time, CellType::DeleteFamily),
                DeleteMarker::FamilyVersion { family, time } => {
                    (family, &Bytes::new(), *time, CellType::DeleteFamilyVersion)
                }
            };
            self.check_family(family)?;
            let mut time_of_marker = now(time);
            if kind == CellType::Delete && time == WriteTime::Now {
                let count = asked.entry((family.clone(), qualifier.clone())).or_default();
                *count += 1;
                let get = Get::new(delete.row.clone()).column(family.clone(), qualifier.clone()).versions(*count);
                if let Some(cell) = self.read(&get)?.get(*count as usize - 1) {
                    time_of_marker = cell.timestamp();
                }
            }
            cells.push(Cell::new(&delete.row, family, qualifier, time_of_marker, kind, b""));
        }
        Ok(cells)
    }

    fn increment_cells(&self, increment: &Increment) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for (family, qualifier, amount) in &increment.amounts {
            self.check_family(family)?;
            let current = self.current(&increment.row, family, qualifier, increment.time_range)?;
            let value = match &current {
                None => *amount,
                Some(cell) => match <[u8; 8]>::try_from(cell.value()) {
                    Ok(eight) => i64::from_be_bytes(eight).wrapping_add(*amount),
                    Err(_) => return Err(Error::NotALong { column: String::new(), width: cell.value_len() }),
                },
            };
            let row = &increment.row;
            cells.push(self.delta_cell(row, family, qualifier, &value.to_be_bytes(), current, increment.ttl_millis));
        }
        Ok(cells)
    }

    fn append_cells(&self, append: &Append) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for (family, qualifier, more) in &append.values {
            self.check_family(family)?;
            let current = self.current(&append.row, family, qualifier, append.time_range)?;
            let mut value = current.as_ref().map(|cell| cell.value().to_vec()).unwrap_or_default();
            value.extend_from_slice(more);
            cells.push(self.delta_cell(&append.row, family, qualifier, &value, current, append.ttl_millis));
        }
        Ok(cells)
    }

    fn delta_cell(
        &self,
        row: &[u8],
        family: &[u8],
        qualifier: &[u8],
        value: &[u8],
        current: Option<Cell>,
        ttl_millis: Option<u64>,
    ) -> Cell {
        let time = current.as_ref().map_or(self.now, |cell| self.now.max(cell.timestamp() + 1));
        let carried = current.as_ref().and_then(|cell| {
            let (_, value) = cell.tag_iter().find(|(kind, _)| *kind == tag_type::TTL)?;
            Some(u64::from_be_bytes(value.try_into().ok()?))
        });
        let tags = ttl_millis.or(carried).map(ttl_tag).unwrap_or_default();
        Cell::with_tags(row, family, qualifier, time, CellType::Put, value, &tags)
    }

    fn write(&mut self, cells: Vec<Cell>) -> Vec<Cell> {
        self.sequence_id += 1;
        let cells: Vec<Cell> = cells.into_iter().map(|cell| cell.with_sequence_id(self.sequence_id)).collect();
        for cell in &cells {
            self.stores[cell.family()].memstore.insert([cell.clone()]);
        }
        cells
    }

    fn apply(&mut self, mutations: &RowMutations, floor: i64) -> Result<MutationOutcome> {
        let mut cells = Vec::new();
        for mutation in &mutations.mutations {
            cells.extend(self.cells_of(mutation, floor)?);
        }
        Ok(MutationOutcome { applied: true, written: self.write(cells) })
    }

    fn smallest_read_point(&self) -> u64 {
        self.read_points.lock().unwrap().keys().next().copied().unwrap_or(self.sequence_id)
    }

    fn compact_cells(&self, family: &Bytes, segments: &[Arc<Segment>], policy: ScanPolicy) -> Result<Arc<Segment>> {
        let sources =
            segments.iter().map(|segment| Box::new(segment.scanner(u64::MAX)) as Box<dyn CellScanner>).collect();
        let mut scanner = StoreScanner::new(sources, &StoreScan::compaction(policy, self.rules(family)));
        scanner.seek(b"")?;
        let kept = Segment::new();
        while let Some(cell) = scanner.next_kept()? {
            kept.insert([cell]);
        }
        Ok(Arc::new(kept))
    }

    fn compact_store(&mut self, family: &Bytes, selection: &Selection) -> Result<Compacted> {
        let rules = self.rules(family);
        let store = &self.stores[family];
        let mut files = store.files.clone();
        let asked: Option<Vec<*const Segment>> = match selection {
            Selection::Files(places) => {
                Some(places.iter().filter_map(|place| files.get(*place)).map(|file| Arc::as_ptr(&file.cells)).collect())
            }
            _ => None,
        };
        let before = files.len();
        if rules.min_versions == 0 && before > 0 {
            let newest = files.len() - 1;
            let mut place = 0;
            files.retain(|file| {
                place += 1;
                let newest_timestamp = file.cells.timestamps().map_or(i64::MAX, |(_, max)| max);
                place - 1 == newest || newest_timestamp >= rules.oldest_unexpired()
            });
        }
        let expired_files_removed = before - files.len();
        let taken: Vec<usize> = match (selection, &asked) {
            (_, Some(asked)) => {
                (0..files.len()).filter(|place| asked.contains(&Arc::as_ptr(&files[*place].cells))).collect()
            }
            (Selection::Policy, _) if files.len() < 3 => Vec::new(),
            _ => (0..files.len()).collect(),
        };
        let all_files = taken.len() == files.len();
        if !taken.is_empty() {
            let inputs: Vec<Arc<Segment>> = taken.iter().rev().map(|place| Arc::clone(&files[*place].cells)).collect();
            let smallest_read_point = self.smallest_read_point();
            let policy = if all_files {
                ScanPolicy::DropDeletes { smallest_read_point, earliest_put_timestamp: earliest_put(&inputs) }
            } else {
                ScanPolicy::Retain { smallest_read_point }
            };
            let cells = self.compact_cells(family, &inputs, policy)?;
            let max_sequence_id = taken.iter().map(|place| files[*place].max_sequence_id).max().unwrap_or(0);
            let at = taken[0];
            files.drain(at..at + taken.len());
            files.insert(at, StoreFile { cells, max_sequence_id, bulk_loaded: false });
        }
        if let Some(store) = self.stores.get_mut(family) {
            store.files = files;
        }
        let major = matches!(selection, Selection::Major);
        Ok(Compacted { files: taken.len(), all_files, major, expired_files_removed })
    }
}

fn earliest_put(files: &[Arc<Segment>]) -> i64 {
    files.iter().flat_map(drain).filter(|cell| !cell.is_delete()).map(|cell| cell.timestamp()).min().unwrap_or(i64::MAX)
}

fn drain(segment: &Arc<Segment>) -> Vec<Cell> {
    let mut scanner = segment.scanner(u64::MAX);
    scanner.seek(&Cell::first_on_row(b"")).unwrap();
    let mut cells = Vec::new();
    while let Some(cell) = scanner.peek().cloned() {
        cells.push(cell);
        scanner.advance().unwrap();
    }
    cells
}

impl Subject for Model {
    fn create(&mut self, families: &Families) -> Result<()> {
        if families.is_empty() {
            return Err(Error::invalid("no family"));
        }
        for family in families.values() {
            if family.ttl_seconds <= 0
                || family.versions < 1
                || family.min_versions > family.versions
                || !(1024..=16 << 20).contains(&family.block_size)
            {
                return Err(Error::invalid("family"));
            }
        }
        self.families = families.clone();
        self.stores = families.keys().map(|family| (family.clone(), Store::default())).collect();
        Ok(())
    }

    fn set_clock(&mut self, millis: i64) {
        self.now = millis;
    }

    fn mutate_row(&mut self, mutations: RowMutations) -> Result<MutationOutcome> {
        self.apply(&mutations, i64::MIN)
    }

    fn batch(&mut self, mutations: Vec<Mutation>) -> Vec<Result<()>> {
        let answers: Vec<Result<Vec<Cell>>> = mutations.iter().map(|one| self.cells_of(one, i64::MIN)).collect();
        let mut cells = Vec::new();
        let mut statuses = Vec::new();
        for answer in answers {
            statuses.push(answer.map(|more| cells.extend(more)));
        }
        self.write(cells);
        statuses
    }

    fn check_and_mutate(&mut self, check: CheckAndMutate) -> Result<MutationOutcome> {
        if check.then.row != check.row {
            return Err(Error::invalid("another row"));
        }
        let (family, qualifier, operator, value, time_range) = match &check.condition {
            Condition::Column { family, qualifier, operator, value, time_range } => {
                (family, qualifier, operator, value, time_range)
            }
            Condition::Filter { filter, time_range } => {
                let mut get = Get::new(check.row.clone()).filter(filter.clone());
                get.time_range = *time_range;
                return match self.read(&get)?.first() {
                    None => Ok(MutationOutcome::default()),
                    Some(cell) => self.apply(&check.then, cell.timestamp()),
                };
            }
            Condition::AllEqual(_) => return Err(Error::invalid("condition")),
        };
        self.check_family(family)?;
        let current = self.current(&check.row, family, qualifier, *time_range)?;
        let supplied = value.as_ref().filter(|value| !value.is_empty());
        let matches = match (supplied, &current) {
            (None, current) => {
                let blank = current.as_ref().is_none_or(|cell| cell.value_len() == 0);
                blank != (*operator == CompareOperator::NotEqual)
            }
            (Some(_), None) => false,
            (Some(supplied), Some(cell)) => {
                let order = supplied[..].cmp(cell.value());
                match operator {
                    CompareOperator::Less => order == Ordering::Less,
                    CompareOperator::LessOrEqual => order != Ordering::Greater,
                    CompareOperator::Equal => order == Ordering::Equal,
                    CompareOperator::NotEqual => order != Ordering::Equal,
                    CompareOperator::GreaterOrEqual => order != Ordering::Less,
                    CompareOperator::Greater => order == Ordering::Greater,
                    CompareOperator::NoOp => return Err(Error::invalid("NO_OP")),
                }
            }
        };
        if !matches {
            return Ok(MutationOutcome::default());
        }
        self.apply(&check.then, current.map_or(i64::MIN, |cell| cell.timestamp()))
    }

    fn get(&mut self, get: &Get) -> Result<Vec<Cell>> {
        self.read(get)
    }

    fn scan(&mut self, scan: &Scan) -> Result<Box<dyn ResultScanner>> {
        if scan.start_row.len() > cellfs::cell::MAX_ROW_LENGTH {
            return Err(Error::invalid("row length"));
        }
        let scanner = self.region_scanner(scan)?;
        let read_point = self.sequence_id;
        *self.read_points.lock().unwrap().entry(read_point).or_default() += 1;
        Ok(Box::new(OpenScanner { scanner, read_point, read_points: Arc::clone(&self.read_points) }))
    }

    fn close_scanner(&mut self, scanner: Box<dyn ResultScanner>) {
        drop(scanner);
    }

    fn flush(&mut self) -> Result<bool> {
        if self.stores.values().all(|store| store.memstore.is_empty()) {
            return Ok(false);
        }
        self.sequence_id += 1;
        let policy = ScanPolicy::Retain { smallest_read_point: self.smallest_read_point() };
        for family in self.families.clone().keys() {
            if self.stores[family].memstore.is_empty() {
                continue;
            }
            let snapshot = self.stores[family].memstore.snapshot();
            let cells = self.compact_cells(family, &[snapshot], policy)?;
            let max_sequence_id = self.sequence_id;
            if let Some(store) = self.stores.get_mut(family) {
                store.files.push(StoreFile { cells, max_sequence_id, bulk_loaded: false });
                store.memstore.clear_snapshot();
            }
        }
        Ok(true)
    }

    fn compact(&mut self, selection: &Selection, family: Option<&Bytes>) -> Result<BTreeMap<Bytes, Compacted>> {
        let names: Vec<Bytes> =
            self.families.keys().filter(|name| family.is_none_or(|f| f == *name)).cloned().collect();
        names.into_iter().map(|name| self.compact_store(&name, selection).map(|done| (name, done))).collect()
    }

    fn files(&mut self) -> Result<BTreeMap<Bytes, Vec<Vec<Cell>>>> {
        let cells = |store: &Store| store.files.iter().map(|file| drain(&file.cells)).collect();
        Ok(self.families.keys().map(|name| (name.clone(), cells(&self.stores[name]))).collect())
    }

    fn reopen(&mut self) -> Result<()> {
        self.flush().map(|_| ())
    }

    fn bulk_load(&mut self, family: &Bytes, cells: Vec<Cell>, assign_sequence_id: bool) -> Option<Result<()>> {
        let flushed = match self.check_family(family).and_then(|()| self.flush()) {
            Ok(flushed) => flushed,
            Err(error) => return Some(Err(error)),
        };
        // A load takes the sequence id of the flush before it, or the next one.
        if !flushed {
            self.sequence_id += 1;
        }
        let max_sequence_id = if assign_sequence_id { self.sequence_id } else { 0 };
        let file = Segment::new();
        file.insert(cells.into_iter().map(|cell| cell.with_sequence_id(max_sequence_id)));
        let file = StoreFile { cells: Arc::new(file), max_sequence_id, bulk_loaded: true };
        let store = self.stores.get_mut(family)?;
        store.files.push(file);
        let bloom = if self.families[family].bloom == BloomType::None { 0 } else { 100 };
        let packed = self.families[family].compression != Compression::None
            || !matches!(
                self.families[family].data_block_encoding,
                DataBlockEncoding::None | DataBlockEncoding::RowIndexV1
            );
        let bytes = |file: &StoreFile| drain(&file.cells).iter().map(|cell| cell.encoded().len() + 17).sum::<usize>();
        let size = |file: &StoreFile| match file.bulk_loaded {
            true => bytes(file) + self.load_overhead,
            false => bloom + if packed { bytes(file) / 2 } else { bytes(file) },
        };
        store.files.sort_by_key(|file| (file.max_sequence_id, std::cmp::Reverse(size(file))));
        Some(Ok(()))
    }
}
