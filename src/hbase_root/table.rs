//! A table of a root directory, or a snapshot of one: read like any other, and never written.

use super::read_only;
use super::region::RootRegion;
use super::scan::RootScanner;
use crate::client::{
    Append, CheckAndMutate, Delete, Get, Increment, Mutation, MutationOutcome, Put, ResultScanner, RowMutations,
    RowResult, Scan, Table, TableName, TableView,
};
use crate::clock::Clock;
use crate::error::Result;
use crate::hfile::HFileCounters;
use crate::region::{check_get, check_scan};
use crate::schema::TableDescriptor;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A table.
pub(super) struct RootTable {
    pub(super) id: u64,
    pub(super) name: TableName,
    pub(super) view: TableView,
    pub(super) descriptor: Arc<TableDescriptor>,
    /// In key order, without overlaps.
    pub(super) regions: Vec<Arc<RootRegion>>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) counters: Arc<HFileCounters>,
    pub(super) gets: AtomicU64,
    pub(super) scans: AtomicU64,
    /// HBase would not serve it until somebody enables it.
    pub(super) disabled: bool,
}

impl RootTable {
    /// When the youngest region came to be, milliseconds since the epoch.
    pub(super) fn born_millis(&self) -> i64 {
        let youngest = self.regions.iter().map(|region| region.info.region_id).max().unwrap_or(0);
        i64::try_from(youngest).unwrap_or(0)
    }
}

impl Table for RootTable {
    fn name(&self) -> TableName {
        self.name.clone()
    }

    fn id(&self) -> u64 {
        self.id
    }

    fn view(&self) -> TableView {
        self.view.clone()
    }

    fn descriptor(&self) -> Arc<TableDescriptor> {
        Arc::clone(&self.descriptor)
    }

    fn get(&self, get: &Get) -> Result<RowResult> {
        check_get(&self.descriptor, get)?;
        self.gets.fetch_add(1, Ordering::Relaxed);
        match self.regions.iter().find(|region| region.contains(&get.row)) {
            Some(region) => region.get(get, self.clock.now_millis()),
            None => Ok(RowResult::default()),
        }
    }

    fn exists(&self, get: &Get) -> Result<bool> {
        let mut narrow = get.clone();
        narrow.store_limit = Some(1);
        Ok(!self.get(&narrow)?.is_empty())
    }

    fn scan(&self, scan: &Scan) -> Result<Box<dyn ResultScanner>> {
        check_scan(&self.descriptor, scan)?;
        self.scans.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(RootScanner::open(&self.regions, scan, self.clock.now_millis())?))
    }

    fn put(&self, _: Put) -> Result<MutationOutcome> {
        read_only()
    }

    fn delete(&self, _: Delete) -> Result<MutationOutcome> {
        read_only()
    }

    fn mutate_row(&self, _: RowMutations) -> Result<MutationOutcome> {
        read_only()
    }

    fn mutate_rows(&self, _: Vec<RowMutations>) -> Result<MutationOutcome> {
        read_only()
    }

    fn batch(&self, mutations: Vec<Mutation>) -> Vec<Result<MutationOutcome>> {
        mutations.iter().map(|_| read_only()).collect()
    }

    fn check_and_mutate(&self, _: CheckAndMutate) -> Result<MutationOutcome> {
        read_only()
    }

    fn increment(&self, _: Increment) -> Result<MutationOutcome> {
        read_only()
    }

    fn append(&self, _: Append) -> Result<MutationOutcome> {
        read_only()
    }
}

impl RootTable {
    /// The table that a snapshot is of, where the table itself is no more: its schema, and no row.
    pub(super) fn without_rows(self) -> RootTable {
        RootTable { view: TableView::Live, regions: Vec::new(), ..self }
    }
}
