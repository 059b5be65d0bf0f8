//! A table's handle: requests checked, routed to regions, carried out.

use super::StoreInner;
use super::row_load::RowLoad;
use super::scan::TableScanner;
use super::table_state::{TableState, durability, flush_size};
use crate::cell::Cell;
use crate::client::{
    Append, CheckAndMutate, Delete, Durability, Get, Increment, LoadKind, Mutation, MutationOutcome, Put,
    ResultScanner, RowMutations, RowResult, Scan, Table, TableLoad, TableName,
};
use crate::error::{Error, Result};
use crate::region::{
    Preparation, Region, RegionCells, RegionConfig, apply, check_condition, check_get, check_mutation,
    check_put_request, check_row, check_scan,
};
use crate::schema::TableDescriptor;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What [`Table`] calls go to.
pub(super) struct TableHandle {
    pub(super) store: Arc<StoreInner>,
    pub(super) state: Arc<TableState>,
}

/// What a write needs to know about its table at one moment.
pub(super) struct WriteContext {
    pub(super) descriptor: Arc<TableDescriptor>,
    pub(super) config: Arc<RegionConfig>,
}

impl WriteContext {
    fn flush_size(&self) -> u64 {
        flush_size(&self.descriptor, &self.config)
    }
}

impl TableHandle {
    /// Refuses what cannot be written at all.
    pub(super) fn begin_write(&self, deletes_only: bool) -> Result<WriteContext> {
        self.state.check_exists()?;
        let descriptor = self.state.descriptor();
        self.state.check_not_read_only()?;
        self.store.services.check_writable(deletes_only)?;
        Ok(WriteContext { descriptor, config: self.store.services.config() })
    }

    /// Writes to one row: `prepare` makes the cells under the row's lock, `None` = nothing is to be written.
    fn write_row(
        &self,
        context: &WriteContext,
        row: &[u8],
        bytes: u64,
        asked: Durability,
        mut prepare: impl FnMut(&mut Preparation<'_>) -> Result<bool>,
    ) -> Result<MutationOutcome> {
        let services = &self.store.services;
        let flush_size = context.flush_size();
        loop {
            let region = self.state.region_for(row)?;
            region.wait_for_room(bytes, flush_size, &context.config)?;
            let Some(entered) = region.enter() else {
                std::thread::yield_now();
                continue;
            };
            let lock = services.row_locks.lock(self.state.id, row);
            let mut preparation = Preparation::new(&region);
            if !prepare(&mut preparation)? {
                return Ok(MutationOutcome { applied: false, written: Vec::new() });
            }
            preparation.check_timestamps()?;
            let cells = preparation.into_cells();
            if cells.is_empty() {
                return Ok(MutationOutcome { applied: true, written: cells });
            }
            let mut parts = [RegionCells { region: &region, cells }];
            let durability = durability(asked, &context.descriptor, &context.config);
            let id = apply(services, &mut parts, durability)?;
            drop((lock, entered));
            services.mvcc.wait_for(id);
            region.after_write(flush_size);
            let [part] = parts;
            self.count(&part.cells);
            return Ok(MutationOutcome { applied: true, written: part.cells });
        }
    }

    fn count(&self, cells: &[Cell]) {
        let deletes = cells.iter().filter(|cell| cell.is_delete()).count() as u64;
        self.state.counters.puts.fetch_add(cells.len() as u64 - deletes, Ordering::Relaxed);
        if deletes > 0 {
            self.state.counters.deletes.fetch_add(deletes, Ordering::Relaxed);
        }
    }

    fn mutate(&self, mutation: &Mutation) -> Result<MutationOutcome> {
        let context = self.begin_write(matches!(mutation, Mutation::Delete(_)))?;
        check_mutation(&context.descriptor, &context.config.limits, mutation)?;
        let asked = durability_of(mutation);
        self.write_row(&context, mutation.row(), mutation_bytes(mutation), asked, |preparation| {
            preparation.mutation(mutation).map(|()| true)
        })
    }

    /// Checks that all mutations are of `row`, and each by itself.
    fn check_row_mutations(&self, context: &WriteContext, mutations: &RowMutations) -> Result<()> {
        check_row(&mutations.row)?;
        for mutation in &mutations.mutations {
            if mutation.row() != &mutations.row {
                return Err(Error::invalid("a mutation names another row than the group it is in"));
            }
            check_mutation(&context.descriptor, &context.config.limits, mutation)?;
        }
        Ok(())
    }

    /// Applies groups of mutations of any rows as one.
    fn mutate_many(&self, context: &WriteContext, groups: &[RowMutations]) -> Result<MutationOutcome> {
        let services = &self.store.services;
        let flush_size = context.flush_size();
        let asked = strongest(groups.iter().flat_map(|group| &group.mutations));
        let bytes: u64 = groups.iter().flat_map(|group| &group.mutations).map(mutation_bytes).sum();
        'again: loop {
            let routes = groups.iter().map(|group| self.state.region_for(&group.row)).collect::<Result<Vec<_>>>()?;
            let mut regions = routes.clone();
            regions.sort_by_key(|region| region.id());
            regions.dedup_by_key(|region| region.id());
            for region in &regions {
                region.wait_for_room(bytes / regions.len().max(1) as u64, flush_size, &context.config)?;
            }
            let mut entered = Vec::with_capacity(regions.len());
            for region in &regions {
                let Some(guard) = region.enter() else {
                    drop(entered);
                    std::thread::yield_now();
                    continue 'again;
                };
                entered.push(guard);
            }
            let lock = services.row_locks.lock_all(self.state.id, groups.iter().map(|group| &group.row[..]));
            let (mut parts, order) = prepare_groups(&regions, &routes, groups, self.store.now())?;
            parts.retain(|part| !part.cells.is_empty());
            if parts.is_empty() {
                return Ok(MutationOutcome { applied: true, written: Vec::new() });
            }
            let id = apply(services, &mut parts, durability(asked, &context.descriptor, &context.config))?;
            drop((lock, entered));
            services.mvcc.wait_for(id);
            regions.iter().for_each(|region| region.after_write(flush_size));
            let written = in_request_order(parts, &order);
            self.count(&written);
            return Ok(MutationOutcome { applied: true, written });
        }
    }
}

/// Cells by region, and how many in turn came from which region.
type PreparedGroups<'a> = (Vec<RegionCells<'a>>, Vec<(u64, usize)>);

/// Makes the cells of all groups.
fn prepare_groups<'a>(
    regions: &'a [Arc<Region>],
    routes: &[Arc<Region>],
    groups: &[RowMutations],
    now: i64,
) -> Result<PreparedGroups<'a>> {
    let mut preparations: Vec<(&'a Region, Preparation<'a>)> =
        regions.iter().map(|region| (region.as_ref(), Preparation::at(region, now))).collect();
    let mut order = Vec::with_capacity(groups.len());
    for (route, group) in routes.iter().zip(groups) {
        let Some((_, preparation)) = preparations.iter_mut().find(|(region, _)| region.id() == route.id()) else {
            continue;
        };
        let before = preparation.len();
        for mutation in &group.mutations {
            preparation.mutation(mutation)?;
        }
        preparation.check_timestamps()?;
        order.push((route.id(), preparation.len() - before));
    }
    let parts = preparations.into_iter().map(|(region, made)| RegionCells { region, cells: made.into_cells() });
    Ok((parts.collect(), order))
}

fn in_request_order(parts: Vec<RegionCells<'_>>, order: &[(u64, usize)]) -> Vec<Cell> {
    let mut sources: Vec<_> = parts.into_iter().map(|part| (part.region.id(), part.cells.into_iter())).collect();
    let mut written = Vec::new();
    for (region, cells) in order {
        if let Some((_, source)) = sources.iter_mut().find(|(id, _)| id == region) {
            written.extend(source.take(*cells));
        }
    }
    written
}

/// What a mutation asks for.
pub(super) fn durability_of(mutation: &Mutation) -> Durability {
    match mutation {
        Mutation::Put(put) => put.durability,
        Mutation::Delete(delete) => delete.durability,
        Mutation::Increment(increment) => increment.durability,
        Mutation::Append(append) => append.durability,
    }
}

/// The strongest durability that any of the mutations asks for (HBase takes the largest ordinal).
pub(super) fn strongest<'a>(mutations: impl Iterator<Item = &'a Mutation>) -> Durability {
    let rank = |durability: &Durability| match durability {
        Durability::UseDefault => 0,
        Durability::SkipWal => 1,
        Durability::AsyncWal => 2,
        Durability::SyncWal => 3,
        Durability::FsyncWal => 4,
    };
    mutations.map(durability_of).max_by_key(rank).unwrap_or_default()
}

/// About how many bytes a mutation adds to memory and log.
pub(super) fn mutation_bytes(mutation: &Mutation) -> u64 {
    const PER_CELL: usize = 64;
    let row = mutation.row().len() + PER_CELL;
    let bytes = match mutation {
        Mutation::Put(put) => put_bytes(put) as usize,
        Mutation::Delete(delete) => row * delete.markers.len().max(1),
        Mutation::Increment(increment) => row * increment.amounts.len(),
        Mutation::Append(append) => append.values.iter().map(|(_, q, v)| row + q.len() + v.len()).sum(),
    };
    bytes as u64
}

fn put_bytes(put: &Put) -> u64 {
    let row = put.row.len() + 64;
    put.cells.iter().map(|cell| (row + cell.qualifier.len() + cell.value.len()) as u64).sum()
}

impl Table for TableHandle {
    fn name(&self) -> TableName {
        self.state.name()
    }

    fn id(&self) -> u64 {
        self.state.id
    }

    fn descriptor(&self) -> Arc<TableDescriptor> {
        self.state.descriptor()
    }

    fn get(&self, get: &Get) -> Result<RowResult> {
        check_get(&self.state.descriptor(), get)?;
        loop {
            match self.state.region_for(&get.row)?.get(get)? {
                Some(result) => return Ok(result),
                // It has just been replaced; the table knows by what in a moment.
                None => std::thread::yield_now(),
            }
        }
    }

    fn exists(&self, get: &Get) -> Result<bool> {
        let mut narrow = get.clone();
        // A filter may have to see all of the row.
        if get.filter.is_none() {
            narrow.store_limit = Some(1);
        }
        Ok(!self.get(&narrow)?.is_empty())
    }

    fn scan(&self, scan: &Scan) -> Result<Box<dyn ResultScanner>> {
        self.state.check_exists()?;
        check_scan(&self.state.descriptor(), scan)?;
        self.state.counters.scans.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(TableScanner::open(&self.store, &self.state, scan.clone())?))
    }

    fn put(&self, put: Put) -> Result<MutationOutcome> {
        let context = self.begin_write(false)?;
        check_put_request(&context.descriptor, &context.config.limits, &put)?;
        self.write_row(&context, &put.row, put_bytes(&put), put.durability, |preparation| {
            preparation.put(&put).map(|()| true)
        })
    }

    fn delete(&self, delete: Delete) -> Result<MutationOutcome> {
        self.mutate(&Mutation::Delete(delete))
    }

    fn mutate_row(&self, mutations: RowMutations) -> Result<MutationOutcome> {
        let deletes_only = mutations.mutations.iter().all(|mutation| matches!(mutation, Mutation::Delete(_)));
        let context = self.begin_write(deletes_only)?;
        self.check_row_mutations(&context, &mutations)?;
        let bytes = mutations.mutations.iter().map(mutation_bytes).sum();
        let asked = strongest(mutations.mutations.iter());
        self.write_row(&context, &mutations.row, bytes, asked, |preparation| {
            mutations.mutations.iter().try_for_each(|mutation| preparation.mutation(mutation)).map(|()| true)
        })
    }

    fn mutate_rows(&self, groups: Vec<RowMutations>) -> Result<MutationOutcome> {
        let all = || groups.iter().flat_map(|group| &group.mutations);
        let context = self.begin_write(all().all(|mutation| matches!(mutation, Mutation::Delete(_))))?;
        for group in &groups {
            self.check_row_mutations(&context, group)?;
        }
        if groups.is_empty() {
            return Ok(MutationOutcome { applied: true, written: Vec::new() });
        }
        self.mutate_many(&context, &groups)
    }

    fn batch(&self, mutations: Vec<Mutation>) -> Vec<Result<MutationOutcome>> {
        self.mutate_batch(mutations)
    }

    fn check_and_mutate(&self, check: CheckAndMutate) -> Result<MutationOutcome> {
        let context = self.begin_write(false)?;
        check_condition(&context.descriptor, &check.condition)?;
        if check.then.row != check.row {
            return Err(Error::invalid("the checked row and the mutated row differ"));
        }
        self.check_row_mutations(&context, &check.then)?;
        let mutations = &check.then.mutations;
        let bytes = mutations.iter().map(mutation_bytes).sum();
        self.write_row(&context, &check.row, bytes, strongest(mutations.iter()), |preparation| {
            if !preparation.check(&check.row, &check.condition)? {
                return Ok(false);
            }
            mutations.iter().try_for_each(|mutation| preparation.mutation(mutation)).map(|()| true)
        })
    }

    fn increment(&self, increment: Increment) -> Result<MutationOutcome> {
        self.mutate(&Mutation::Increment(increment))
    }

    fn append(&self, append: Append) -> Result<MutationOutcome> {
        self.mutate(&Mutation::Append(append))
    }

    fn load(&self, kind: LoadKind) -> Result<Box<dyn TableLoad>> {
        let table = TableHandle { store: Arc::clone(&self.store), state: Arc::clone(&self.state) };
        Ok(Box::new(RowLoad::begin(table, kind)?))
    }
}

impl TableHandle {
    /// One mutation by itself.
    pub(super) fn mutate_alone(&self, mutation: &Mutation) -> Result<MutationOutcome> {
        self.mutate(mutation)
    }

    /// Writes simple mutations of one region together: one log record, one result each.
    pub(super) fn mutate_together(
        &self,
        context: &WriteContext,
        region: &Region,
        mutations: &[&Mutation],
    ) -> Option<Result<Vec<Result<Vec<Cell>>>>> {
        let services = &self.store.services;
        let bytes = mutations.iter().map(|mutation| mutation_bytes(mutation)).sum();
        if let Err(error) = region.wait_for_room(bytes, context.flush_size(), &context.config) {
            return Some(Err(error));
        }
        let entered = region.enter()?;
        let lock = services.row_locks.lock_all(self.state.id, mutations.iter().map(|mutation| &mutation.row()[..]));
        let mut preparation = Preparation::new(region);
        let results: Vec<Result<usize>> = mutations.iter().map(|mutation| preparation.try_mutation(mutation)).collect();
        let cells = preparation.into_cells();
        let mut written = Vec::new();
        if !cells.is_empty() {
            let asked = strongest(mutations.iter().copied());
            let mut parts = [RegionCells { region, cells }];
            let id = match apply(services, &mut parts, durability(asked, &context.descriptor, &context.config)) {
                Ok(id) => id,
                Err(error) => return Some(Err(error)),
            };
            drop((lock, entered));
            services.mvcc.wait_for(id);
            region.after_write(context.flush_size());
            let [part] = parts;
            written = part.cells;
        }
        self.count(&written);
        let mut rest = written.into_iter();
        Some(Ok(results.into_iter().map(|made| made.map(|cells| rest.by_ref().take(cells).collect())).collect()))
    }

    /// The row's region now.
    pub(super) fn route(&self, row: &Bytes) -> Result<Arc<Region>> {
        self.state.region_for(row)
    }
}
