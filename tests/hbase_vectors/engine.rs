//! The whole engine, on a simulated file system: log, memstores, store files, compactions, recovery.

use super::subject::{Compacted, Families, Selection, Subject};
use bytes::Bytes;
use cellfs::Result;
use cellfs::cell::Cell;
use cellfs::client::{
    Admin, CheckAndMutate, Get, Mutation, MutationOutcome, ResultScanner, RowMutations, Scan, Table, TableAttributes,
    TableName,
};
use cellfs::clock::ManualClock;
use cellfs::compaction::CompactionRequest;
use cellfs::region::{Region, RequestLimits, check_mutation};
use cellfs::schema::TableDescriptor;
use cellfs::server::{BackgroundMode, Store, StoreOptions};
use cellfs::store::HStore;
use cellfs::vfs::SimVfs;
use std::collections::BTreeMap;
use std::sync::Arc;

pub struct Engine {
    vfs: SimVfs,
    clock: Arc<ManualClock>,
    open: Option<(Store, Arc<dyn Table>)>,
}

impl Engine {
    pub fn new() -> Engine {
        Engine { vfs: SimVfs::new(), clock: Arc::new(ManualClock::new(1_000_000_000_000)), open: None }
    }

    fn name() -> TableName {
        TableName::parse("t").unwrap()
    }

    fn open_store(&self) -> Result<Store> {
        let mut options = StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() };
        options.wal.segment_bytes = 1 << 16;
        // The oracle runs no scheduled major compactions.
        options.region.compaction.major_period_millis = 0;
        Store::open_with(Arc::new(self.vfs.clone()), self.clock.clone(), "/store", options)
    }

    fn table(&self) -> &Arc<dyn Table> {
        &self.open.as_ref().unwrap().1
    }

    fn region(&self) -> Arc<Region> {
        Arc::clone(&self.open.as_ref().unwrap().0.open_regions(&Engine::name()).unwrap()[0])
    }

    fn stores(&self, family: Option<&Bytes>) -> Vec<Arc<HStore>> {
        let stores = self.region().stores();
        stores.into_iter().filter(|store| family.is_none_or(|family| family == store.family())).collect()
    }
}

fn cells_of_file(store: &HStore, place: usize) -> Result<Vec<Cell>> {
    let mut scanner = store.files().as_slice()[place].scanner(false, true);
    scanner.seek(&Cell::first_on_row(b""))?;
    let mut cells = Vec::new();
    while let Some(cell) = scanner.peek().cloned() {
        cells.push(cell);
        scanner.advance()?;
    }
    Ok(cells)
}

impl Subject for Engine {
    fn create(&mut self, families: &Families) -> Result<()> {
        let store = self.open_store()?;
        let descriptor = TableDescriptor { families: families.clone(), ..TableDescriptor::default() };
        let attributes = TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 };
        let table = store.create_table(&Engine::name(), descriptor, &[], attributes)?;
        self.open = Some((store, table));
        Ok(())
    }

    fn set_clock(&mut self, millis: i64) {
        self.clock.set(millis);
    }

    fn mutate_row(&mut self, mutations: RowMutations) -> Result<MutationOutcome> {
        self.table().mutate_row(mutations)
    }

    /// HBase makes one record of a batch, and reads what it needs before it writes any of it: that is `mutate_rows` here, while
    /// `Table::batch` lets each mutation see the ones before.
    fn batch(&mut self, mutations: Vec<Mutation>) -> Vec<Result<()>> {
        let table = self.table();
        let descriptor = table.descriptor();
        let limits = RequestLimits::default();
        let checked: Vec<Result<()>> =
            mutations.iter().map(|mutation| check_mutation(&descriptor, &limits, mutation)).collect();
        let good = mutations.into_iter().zip(&checked).filter(|(_, check)| check.is_ok());
        let groups = good.map(|(mutation, _)| RowMutations { row: mutation.row().clone(), mutations: vec![mutation] });
        table.mutate_rows(groups.collect()).unwrap();
        checked
    }

    fn check_and_mutate(&mut self, check: CheckAndMutate) -> Result<MutationOutcome> {
        self.table().check_and_mutate(check)
    }

    fn get(&mut self, get: &Get) -> Result<Vec<Cell>> {
        Ok(self.table().get(get)?.cells)
    }

    fn scan(&mut self, scan: &Scan) -> Result<Box<dyn ResultScanner>> {
        self.table().scan(scan)
    }

    fn close_scanner(&mut self, scanner: Box<dyn ResultScanner>) {
        drop(scanner);
    }

    fn flush(&mut self) -> Result<bool> {
        self.region().flush()
    }

    fn compact(&mut self, selection: &Selection, family: Option<&Bytes>) -> Result<BTreeMap<Bytes, Compacted>> {
        let region = self.region();
        let mut done = BTreeMap::new();
        for store in self.stores(family) {
            let request = if matches!(selection, Selection::Major) {
                CompactionRequest::Major
            } else {
                CompactionRequest::Policy
            };
            let outcome = match selection {
                Selection::Files(places) => Some(region.compact_files(&store, places)?),
                _ => region.compact(&store, request)?,
            };
            let outcome = outcome.unwrap_or_default();
            let compacted = Compacted {
                files: outcome.files,
                all_files: outcome.all_files,
                major: matches!(selection, Selection::Major),
                expired_files_removed: outcome.expired_files,
            };
            done.insert(store.family().clone(), compacted);
        }
        Ok(done)
    }

    fn files(&mut self) -> Result<BTreeMap<Bytes, Vec<Vec<Cell>>>> {
        let mut families = BTreeMap::new();
        for store in self.stores(None) {
            let files = (0..store.files().len()).map(|place| cells_of_file(&store, place));
            families.insert(store.family().clone(), files.collect::<Result<Vec<_>>>()?);
        }
        Ok(families)
    }

    fn reopen(&mut self) -> Result<()> {
        let (store, table) = self.open.take().unwrap();
        drop(table);
        store.close()?;
        let store = self.open_store()?;
        let table = store.table(&Engine::name())?;
        self.open = Some((store, table));
        Ok(())
    }

    fn bulk_load(&mut self, _: &Bytes, _: Vec<Cell>, _: bool) -> Option<Result<()>> {
        None
    }
}
