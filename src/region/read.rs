//! Gets, and the part of a scan that falls into one region.

use super::Region;
use crate::client::{ColumnSelection, Get, ResultScanner, RowResult, Scan};
use crate::error::Result;
use crate::scanner::{RegionScanOptions, RegionScanner, RowRange, StoreScan, compile_filter};
use crate::schema::ROW_ATTRIBUTES_FAMILY;
use crate::store::StoreView;
use std::sync::atomic::Ordering;

/// Families that a request asks for: all but the hidden one, or those it names.
fn wants(columns: &ColumnSelection, family: &[u8]) -> bool {
    if columns.is_all() { family != ROW_ATTRIBUTES_FAMILY } else { columns.families.contains_key(family) }
}

impl Region {
    /// The families that `columns` asks for and the read point, of one moment; `None` when the region is closed.
    ///
    /// The read point is taken under the same lock under which flushes publish: what a flush leaves out, no reader of its files may still need.
    fn capture(&self, columns: &ColumnSelection) -> Option<(u64, Vec<StoreView>)> {
        let stores = self.stores.read();
        if stores.closed {
            return None;
        }
        let wanted = stores.stores.iter().filter(|store| wants(columns, store.family()));
        Some((self.services.mvcc.read_point(), wanted.map(|store| store.view()).collect()))
    }

    /// Reads a row at the current read point; `None` when the region is closed.
    ///
    /// # Errors
    /// Those of reading files.
    pub fn get(&self, get: &Get) -> Result<Option<RowResult>> {
        let Some((read_point, views)) = self.capture(&get.columns) else { return Ok(None) };
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.counters.gets.fetch_add(1, Ordering::Relaxed);
        let now = self.services.store.clock.now_millis();
        read_row(get, &views, read_point, now).map(Some)
    }

    /// Reads a row as a writer sees it that holds the row's lock: everything that is in the memstores, for all of it was logged before.
    pub(super) fn get_locked(&self, get: &Get, now: i64) -> Result<RowResult> {
        let views = {
            let stores = self.stores.read();
            let wanted = stores.stores.iter().filter(|store| wants(&get.columns, store.family()));
            wanted.map(|store| store.view()).collect::<Vec<_>>()
        };
        read_row(get, &views, u64::MAX, now)
    }

    /// One family as a writer sees it; `None` for the hidden family before its first cell.
    pub(super) fn view_locked(&self, family: &[u8]) -> Option<StoreView> {
        self.stores.read().get(family).map(|store| store.view())
    }

    /// Opens the part of a scan that falls into this region: rows of `range`, as of `read_point`, at most `limit`. `None` when the region is closed.
    ///
    /// # Errors
    /// Those of reading filters, and of requests that contradict themselves.
    pub fn scan(
        &self,
        scan: &Scan,
        range: RowRange,
        read_point: u64,
        now: i64,
        limit: Option<u64>,
    ) -> Result<Option<RegionScanner>> {
        let Some((_, views)) = self.capture(&scan.columns) else { return Ok(None) };
        self.reads.fetch_add(1, Ordering::Relaxed);
        let range = range.within(&self.start, &self.end);
        let mut stores = Vec::with_capacity(views.len());
        for view in &views {
            let store_scan = StoreScan::of_scan(scan, &view.family, view.rules(now), read_point)?;
            if let Some(store_scan) = store_scan {
                stores.extend(view.scanner(&store_scan, &range, scan.cache_blocks)?);
            }
        }
        let mut options = RegionScanOptions::of_scan(scan, range);
        options.limit = limit;
        Ok(Some(RegionScanner::new(stores, options)))
    }
}

fn read_row(get: &Get, views: &[StoreView], read_point: u64, now: i64) -> Result<RowResult> {
    let options = RegionScanOptions::row(get.row.clone());
    let mut stores = Vec::new();
    for view in views {
        if let Some(scan) = StoreScan::of_get(get, &view.family, view.rules(now), read_point) {
            stores.extend(view.scanner(&scan, &options.range, get.cache_blocks)?);
        }
    }
    if stores.is_empty() {
        // Most lookups of absent rows end here, spared by row filters and blooms.
        return Ok(RowResult::default());
    }
    let filter = get.filter.as_ref().map(|filter| compile_filter(filter, false)).transpose()?;
    Ok(RegionScanner::new(stores, options).with_filter(filter).next()?.unwrap_or_default())
}
