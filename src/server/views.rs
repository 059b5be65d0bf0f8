//! Tables that only show: a snapshot, and a table as of a moment. Both refuse writes.

use super::StoreInner;
use super::meta::{META_TABLE_ID, MetaTable, meta_descriptor, meta_name};
use super::scan::TableScanner;
use super::table_state::TableState;
use crate::client::{
    Append, CheckAndMutate, Delete, Get, Increment, Mutation, MutationOutcome, Put, ResultScanner, RowMutations,
    RowResult, Scan, Table, TableName, TableView,
};
use crate::error::{Error, Result};
use crate::manifest::SnapshotEntry;
use crate::region::{FrozenRegion, Standpoint, check_get, check_scan};
use crate::scanner::{BoxedFilter, RegionScanner, RowRange, compile_filter};
use crate::schema::TableDescriptor;
use std::collections::VecDeque;
use std::sync::Arc;

/// A table as of a moment.
pub(super) struct PastTable {
    pub(super) store: Arc<StoreInner>,
    pub(super) state: Arc<TableState>,
    /// Milliseconds since the epoch.
    pub(super) millis: i64,
}

/// A snapshot. Its files stay as long as the handle, whatever becomes of it.
pub(super) struct SnapshotTable {
    pub(super) state: Arc<TableState>,
    pub(super) entry: Arc<SnapshotEntry>,
    /// In key order.
    pub(super) regions: Arc<Vec<FrozenRegion>>,
    pub(super) _store: Arc<StoreInner>,
}

fn refuse<T>(table: &dyn Table) -> Result<T> {
    let what = match table.view() {
        TableView::Snapshot { name, .. } => format!("{} in the snapshot {}", table.name(), name.escape_ascii()),
        TableView::Made => format!("{}, which shows what the store has", table.name()),
        _ => format!("the past of {}", table.name()),
    };
    Err(Error::ReadOnly { what })
}

/// The writes of a [`Table`] that takes none.
macro_rules! refuse_writes {
    () => {
        fn exists(&self, get: &Get) -> Result<bool> {
            let mut narrow = get.clone();
            narrow.store_limit = Some(1);
            Ok(!self.get(&narrow)?.is_empty())
        }
        fn put(&self, _: Put) -> Result<MutationOutcome> {
            refuse(self)
        }
        fn delete(&self, _: Delete) -> Result<MutationOutcome> {
            refuse(self)
        }
        fn mutate_row(&self, _: RowMutations) -> Result<MutationOutcome> {
            refuse(self)
        }
        fn mutate_rows(&self, _: Vec<RowMutations>) -> Result<MutationOutcome> {
            refuse(self)
        }
        fn batch(&self, mutations: Vec<Mutation>) -> Vec<Result<MutationOutcome>> {
            mutations.iter().map(|_| refuse(self)).collect()
        }
        fn check_and_mutate(&self, _: CheckAndMutate) -> Result<MutationOutcome> {
            refuse(self)
        }
        fn increment(&self, _: Increment) -> Result<MutationOutcome> {
            refuse(self)
        }
        fn append(&self, _: Append) -> Result<MutationOutcome> {
            refuse(self)
        }
    };
}

impl Table for MetaTable {
    fn name(&self) -> TableName {
        meta_name()
    }

    fn id(&self) -> u64 {
        META_TABLE_ID
    }

    fn view(&self) -> TableView {
        TableView::Made
    }

    fn descriptor(&self) -> Arc<TableDescriptor> {
        Arc::new(meta_descriptor())
    }

    fn get(&self, get: &Get) -> Result<RowResult> {
        check_get(&meta_descriptor(), get)?;
        self.regions().get(get, self.standpoint())
    }

    fn scan(&self, scan: &Scan) -> Result<Box<dyn ResultScanner>> {
        check_scan(&meta_descriptor(), scan)?;
        scan_frozen(Arc::new(vec![self.regions()]), scan, self.standpoint())
    }

    refuse_writes!();
}

impl Table for PastTable {
    fn name(&self) -> TableName {
        self.state.name()
    }

    fn id(&self) -> u64 {
        self.state.id
    }

    fn view(&self) -> TableView {
        TableView::AsOf(self.millis)
    }

    fn descriptor(&self) -> Arc<TableDescriptor> {
        self.state.descriptor()
    }

    fn get(&self, get: &Get) -> Result<RowResult> {
        check_get(&self.state.descriptor(), get)?;
        loop {
            match self.state.region_for(&get.row)?.get_as_of(get, self.millis)? {
                Some(result) => return Ok(result),
                // It has just been replaced; the table knows by what in a moment.
                None => std::thread::yield_now(),
            }
        }
    }

    fn scan(&self, scan: &Scan) -> Result<Box<dyn ResultScanner>> {
        check_scan(&self.state.descriptor(), scan)?;
        Ok(Box::new(TableScanner::open_as_of(&self.store, &self.state, scan.clone(), self.millis)?))
    }

    refuse_writes!();
}

impl SnapshotTable {
    /// What had not expired when the snapshot was taken is in it.
    fn standpoint(&self) -> Standpoint {
        Standpoint::present(u64::MAX, self.entry.created_millis)
    }
}

impl Table for SnapshotTable {
    fn name(&self) -> TableName {
        self.state.name()
    }

    fn id(&self) -> u64 {
        self.state.id
    }

    fn view(&self) -> TableView {
        TableView::Snapshot { id: self.entry.id, name: self.entry.name.clone() }
    }

    fn descriptor(&self) -> Arc<TableDescriptor> {
        Arc::clone(&self.entry.descriptor)
    }

    fn get(&self, get: &Get) -> Result<RowResult> {
        check_get(&self.entry.descriptor, get)?;
        let after = self.regions.partition_point(|region| region.start()[..] <= get.row[..]);
        match after.checked_sub(1).and_then(|index| self.regions.get(index)) {
            Some(region) => region.get(get, self.standpoint()),
            None => Ok(RowResult::default()),
        }
    }

    fn scan(&self, scan: &Scan) -> Result<Box<dyn ResultScanner>> {
        check_scan(&self.entry.descriptor, scan)?;
        scan_frozen(Arc::clone(&self.regions), scan, self.standpoint())
    }

    refuse_writes!();
}

/// Opens a scan over regions in key order that never change.
pub(super) fn scan_frozen(
    regions: Arc<Vec<FrozenRegion>>,
    scan: &Scan,
    from: Standpoint,
) -> Result<Box<dyn ResultScanner>> {
    let range = RowRange::of_scan(scan);
    let overlaps = |region: &FrozenRegion| !range.clone().within(region.start(), region.end()).is_empty();
    let wanted = (0..regions.len()).filter(|index| regions.get(*index).is_some_and(overlaps));
    let mut ahead: VecDeque<usize> = wanted.collect();
    if scan.reversed {
        ahead = ahead.into_iter().rev().collect();
    }
    Ok(Box::new(SnapshotScanner {
        regions,
        ahead,
        from,
        filter: scan.filter.as_ref().map(|filter| compile_filter(filter, scan.reversed)).transpose()?,
        rows_left: scan.limit,
        scan: scan.clone(),
        range,
        current: None,
        in_row: false,
    }))
}

/// Walks over the regions of a snapshot.
struct SnapshotScanner {
    regions: Arc<Vec<FrozenRegion>>,
    ahead: VecDeque<usize>,
    from: Standpoint,
    scan: Scan,
    range: RowRange,
    rows_left: Option<u64>,
    current: Option<RegionScanner>,
    /// Between two regions; else in `current`.
    filter: Option<BoxedFilter>,
    in_row: bool,
}

impl ResultScanner for SnapshotScanner {
    fn next(&mut self) -> Result<Option<RowResult>> {
        loop {
            if let Some(current) = &mut self.current {
                if let Some(result) = current.next()? {
                    if !self.in_row {
                        self.rows_left = self.rows_left.map(|left| left.saturating_sub(1));
                    }
                    self.in_row = result.partial;
                    return Ok(Some(result));
                }
                self.filter = current.take_filter();
                if self.filter.as_ref().is_some_and(|filter| filter.filter_all_remaining()) {
                    self.ahead.clear();
                }
                self.current = None;
            }
            if self.rows_left == Some(0) {
                return Ok(None);
            }
            let Some(region) = self.ahead.pop_front().and_then(|index| self.regions.get(index)) else {
                return Ok(None);
            };
            let scanner = region.scan(&self.scan, self.range.clone(), self.from, self.rows_left)?;
            self.current = Some(scanner.with_filter(self.filter.take()));
        }
    }
}
