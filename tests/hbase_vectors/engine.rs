//! The engine itself, on a simulated file system.

use super::subject::{Compacted, Families, Selection, Subject};
use bytes::Bytes;
use cellfs::cell::Cell;
use cellfs::client::{
    Admin, CheckAndMutate, Get, Mutation, MutationOutcome, ResultScanner, RowMutations, Scan, Table, TableAttributes,
    TableName,
};
use cellfs::clock::ManualClock;
use cellfs::region::{RequestLimits, check_mutation};
use cellfs::schema::{ColumnFamilyDescriptor, TableDescriptor};
use cellfs::server::{BackgroundMode, Store, StoreFileContents, StoreOptions};
use cellfs::vfs::SimVfs;
use cellfs::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

const ATTRIBUTES: TableAttributes =
    TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 };

/// How the engine is run.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// BLOCKSIZE of all families, where it is not the script's.
    pub block_size: Option<u32>,
    /// Closes and opens the store after every flush.
    pub reopen: bool,
    /// A bulk load and the flush before it: HBase lists the larger first.
    pub loads_first: bool,
}

pub struct Engine {
    vfs: Arc<SimVfs>,
    clock: Arc<ManualClock>,
    setting: Setting,
    name: TableName,
    store: Option<Store>,
    table: Option<Arc<dyn Table>>,
    families: Families,
    /// Oldest first, per family.
    places: BTreeMap<Bytes, Vec<u64>>,
    /// Families that have cells in memory.
    unflushed: BTreeMap<Bytes, bool>,
    now: i64,
    open_scanners: usize,
}

impl Engine {
    pub fn new(setting: Setting) -> Engine {
        Engine {
            vfs: Arc::new(SimVfs::new()),
            clock: Arc::new(ManualClock::new(1_000_000_000_000)),
            setting,
            name: TableName::parse("t").unwrap(),
            store: None,
            table: None,
            families: Families::new(),
            places: BTreeMap::new(),
            unflushed: BTreeMap::new(),
            now: 1_000_000_000_000,
            open_scanners: 0,
        }
    }

    fn open(&mut self) -> Result<()> {
        let mut options = StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() };
        // Recovery looks through all that a segment reserves.
        options.wal.segment_bytes = 1 << 16;
        let store = Store::open_with(self.vfs.clone(), self.clock.clone(), "/store", options)?;
        self.table = store.table(&self.name).ok();
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

    fn note(&mut self, written: &[Cell]) {
        for cell in written {
            self.unflushed.insert(Bytes::copy_from_slice(cell.family()), true);
        }
    }

    fn contents(&self, family: &Bytes) -> Result<Vec<StoreFileContents>> {
        self.store().store_files(&self.name, family)
    }

    /// The file that the engine has and the list has not.
    fn new_place(&self, family: &Bytes) -> Result<u64> {
        let known = &self.places[family];
        let new = self.contents(family)?.into_iter().find(|file| !known.contains(&file.file_id));
        new.map(|file| file.file_id).ok_or(Error::InvalidArgument("no new file".to_owned()))
    }

    /// Rewrites places, which must be neighbours, into one.
    fn rewrite(&mut self, family: &Bytes, at: usize, count: usize, drop_deletes: bool) -> Result<()> {
        let ids: Vec<u64> = self.places[family].iter().skip(at).take(count).copied().collect();
        self.store().rewrite_store_files(&self.name, family, &ids, drop_deletes)?;
        let new = self.new_place(family)?;
        let places = self.places.get_mut(family).unwrap();
        places.drain(at..at + count);
        places.insert(at, new);
        Ok(())
    }

    /// Files of which everything has expired, but for the newest, are dropped before any choice.
    fn drop_expired(&mut self, family: &Bytes) -> Result<usize> {
        for region in self.store().open_regions(&self.name)? {
            for store in region.stores().iter().filter(|store| store.family() == family) {
                region.compact_files(store, &[])?;
            }
        }
        let left: Vec<u64> = self.contents(family)?.iter().map(|file| file.file_id).collect();
        let places = self.places.get_mut(family).unwrap();
        let before = places.len();
        places.retain(|place| left.contains(place));
        Ok(before - places.len())
    }

    fn compact_family(&mut self, family: &Bytes, selection: &Selection) -> Result<Compacted> {
        let before = self.places[family].clone();
        let expired_files_removed = self.drop_expired(family)?;
        let files = self.places[family].clone();
        let taken: Vec<usize> = match selection {
            Selection::Files(at) => {
                let asked: Vec<u64> = at.iter().filter_map(|at| before.get(*at).copied()).collect();
                (0..files.len()).filter(|at| asked.contains(&files[*at])).collect()
            }
            Selection::Policy if files.len() < 3 => Vec::new(),
            Selection::Policy | Selection::Major => (0..files.len()).collect(),
        };
        let all_files = taken.len() == files.len();
        if let Some(first) = taken.first() {
            self.rewrite(family, *first, taken.len(), all_files)?;
        }
        let major = matches!(selection, Selection::Major);
        Ok(Compacted { files: taken.len(), all_files, major, expired_files_removed })
    }
}

fn adapted(family: &ColumnFamilyDescriptor, setting: Setting) -> ColumnFamilyDescriptor {
    let block_size = setting.block_size.unwrap_or(family.block_size);
    ColumnFamilyDescriptor { block_size, ..family.clone() }
}

impl Subject for Engine {
    fn create(&mut self, families: &Families) -> Result<()> {
        if self.store.is_none() {
            self.open()?;
        }
        let mut descriptor = TableDescriptor::default();
        for (name, family) in families {
            family.check()?;
            descriptor = descriptor.family(name.clone(), adapted(family, self.setting));
        }
        let table = self.store().create_table(&self.name, descriptor, &[], ATTRIBUTES)?;
        self.table = Some(table);
        self.families = families.clone();
        self.places = families.keys().map(|family| (family.clone(), Vec::new())).collect();
        Ok(())
    }

    fn set_clock(&mut self, millis: i64) {
        self.now = millis;
        self.clock.set(millis);
    }

    fn mutate_row(&mut self, mutations: RowMutations) -> Result<MutationOutcome> {
        let outcome = self.table().mutate_row(mutations)?;
        self.note(&outcome.written);
        Ok(outcome)
    }

    /// HBase makes one record of a batch, and reads what it needs before it writes any of it: that is `mutate_rows` here, while
    /// `Table::batch` lets each mutation see the ones before.
    fn batch(&mut self, mutations: Vec<Mutation>) -> Vec<Result<()>> {
        let descriptor = self.table().descriptor();
        let limits = RequestLimits::default();
        let checked: Vec<Result<()>> =
            mutations.iter().map(|mutation| check_mutation(&descriptor, &limits, mutation)).collect();
        let good = mutations.into_iter().zip(&checked).filter(|(_, check)| check.is_ok());
        let groups = good.map(|(mutation, _)| RowMutations { row: mutation.row().clone(), mutations: vec![mutation] });
        let outcome = self.table().mutate_rows(groups.collect()).unwrap();
        self.note(&outcome.written);
        checked
    }

    fn check_and_mutate(&mut self, check: CheckAndMutate) -> Result<MutationOutcome> {
        let outcome = self.table().check_and_mutate(check)?;
        self.note(&outcome.written);
        Ok(outcome)
    }

    fn get(&mut self, get: &Get) -> Result<Vec<Cell>> {
        self.table().get(get).map(|row| row.cells)
    }

    fn scan(&mut self, scan: &Scan) -> Result<Box<dyn ResultScanner>> {
        let scanner = self.table().scan(scan)?;
        self.open_scanners += 1;
        Ok(scanner)
    }

    fn close_scanner(&mut self, scanner: Box<dyn ResultScanner>) {
        drop(scanner);
        self.open_scanners -= 1;
    }

    fn flush(&mut self) -> Result<bool> {
        let written: Vec<Bytes> = std::mem::take(&mut self.unflushed).into_keys().collect();
        self.store().flush_table(&self.name)?;
        for family in &written {
            let new = self.new_place(family)?;
            self.places.get_mut(family).unwrap().push(new);
        }
        // An open scanner keeps the store open.
        if self.setting.reopen && self.open_scanners == 0 {
            self.close()?;
            self.open()?;
        }
        Ok(!written.is_empty())
    }

    fn compact(&mut self, selection: &Selection, family: Option<&Bytes>) -> Result<BTreeMap<Bytes, Compacted>> {
        let names: Vec<Bytes> =
            self.families.keys().filter(|name| family.is_none_or(|one| one == *name)).cloned().collect();
        names.into_iter().map(|name| self.compact_family(&name, selection).map(|done| (name, done))).collect()
    }

    fn files(&mut self) -> Result<BTreeMap<Bytes, Vec<Vec<Cell>>>> {
        let mut families = BTreeMap::new();
        for (family, places) in &self.places {
            let mut contents: BTreeMap<u64, Vec<Cell>> =
                self.contents(family)?.into_iter().map(|file| (file.file_id, file.cells)).collect();
            let cells = |id: &u64| contents.remove(id).ok_or(Error::InvalidArgument(format!("no file {id}")));
            let listed: Vec<Vec<Cell>> = places.iter().map(cells).collect::<Result<_>>()?;
            if !contents.is_empty() {
                return Err(Error::InvalidArgument(format!("{} files too many", contents.len())));
            }
            families.insert(family.clone(), listed);
        }
        Ok(families)
    }

    fn reopen(&mut self) -> Result<()> {
        self.flush()?;
        self.close()?;
        self.open()
    }

    fn bulk_load(&mut self, family: &Bytes, cells: Vec<Cell>, assign_sequence_id: bool) -> Option<Result<()>> {
        if !assign_sequence_id {
            return None;
        }
        let load = |engine: &mut Engine| -> Result<()> {
            let flushed = engine.unflushed.contains_key(family);
            engine.flush()?;
            engine.store().load_store_file(&engine.name, family, cells)?;
            let new = engine.new_place(family)?;
            let places = engine.places.get_mut(family).unwrap();
            let at = if flushed && engine.setting.loads_first { places.len() - 1 } else { places.len() };
            places.insert(at, new);
            Ok(())
        };
        Some(load(self))
    }
}
