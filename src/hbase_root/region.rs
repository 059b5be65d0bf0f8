//! A region that is only read (HBase `HRegion`): its stores, and what logs add to them.

use super::messages;
use super::region_info::RegionDescription;
use super::store::RootStore;
use super::wal::{COMPACTION_MARK, LogEntry, META_FAMILY};
use crate::client::{ColumnSelection, Get, ResultScanner, RowResult, Scan};
use crate::error::Result;
use crate::scanner::{RegionScanOptions, RegionScanner, RegionStores, RowRange, StoreScan, compile_filter};
use crate::store::StoreView;
use bytes::Bytes;
use prost::Message;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// HBase's `CompactionDescriptor`, as far as it tells which files are no more.
#[derive(Clone, PartialEq, Eq, Message)]
struct CompactionMark {
    #[prost(bytes = "bytes", tag = "3")]
    family: Bytes,
    #[prost(string, repeated, tag = "4")]
    inputs: Vec<String>,
}

/// A region.
pub(super) struct RootRegion {
    pub(super) info: RegionDescription,
    /// In the order of family names.
    pub(super) stores: Vec<RootStore>,
    pub(super) reads: AtomicU64,
}

impl RootRegion {
    pub(super) fn new(info: RegionDescription, mut stores: Vec<RootStore>) -> RootRegion {
        stores.sort_by(|left, right| left.family.cmp(&right.family));
        RootRegion { info, stores, reads: AtomicU64::new(0) }
    }

    pub(super) fn contains(&self, row: &[u8]) -> bool {
        row >= &self.info.start[..] && self.info.ends_after(row)
    }

    fn views(&self, columns: &ColumnSelection) -> Result<Vec<StoreView>> {
        let wanted = |store: &&RootStore| columns.is_all() || columns.families.contains_key(&store.family);
        self.stores.iter().filter(wanted).map(RootStore::view).collect()
    }

    /// Reads a row.
    pub(super) fn get(&self, get: &Get, now: i64) -> Result<RowResult> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let options = RegionScanOptions::row(get.row.clone());
        let mut stores = RegionStores::of_get(get);
        for view in self.views(&get.columns)? {
            if let Some(scan) = StoreScan::of_get(get, &view.family, view.rules(now), u64::MAX)
                && let Some(scanner) = view.scanner(&scan, &options.range, get.cache_blocks)?
            {
                stores.push(&view.family, scanner);
            }
        }
        let filter = get.filter.as_ref().map(|filter| compile_filter(filter, false)).transpose()?;
        Ok(RegionScanner::new(stores, options).with_filter(filter).next()?.unwrap_or_default())
    }

    /// The part of a scan that falls into this region, at most `limit` rows.
    pub(super) fn scan(&self, scan: &Scan, range: &RowRange, now: i64, limit: Option<u64>) -> Result<RegionScanner> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let range = range.clone().within(&self.info.start, &self.info.end);
        let mut stores = RegionStores::of_scan(scan);
        for view in self.views(&scan.columns)? {
            if let Some(store_scan) = StoreScan::of_scan(scan, &view.family, view.rules(now), u64::MAX)?
                && let Some(scanner) = view.scanner(&store_scan, &range, scan.cache_blocks)?
            {
                stores.push(&view.family, scanner);
            }
        }
        let mut options = RegionScanOptions::of_scan(scan, range);
        options.limit = limit;
        Ok(RegionScanner::new(stores, options))
    }

    /// Takes what an entry of a log holds and store files do not (HBase `HRegion.replayRecoveredEdits`); returns how many cells that was.
    ///
    /// # Errors
    /// Those of opening the store files, without which nobody knows what they hold.
    pub(super) fn replay(&self, entry: &LogEntry, log: &Path) -> Result<u64> {
        let mut taken = 0;
        for cell in &entry.cells {
            if cell.family() == META_FAMILY {
                if cell.qualifier() == COMPACTION_MARK {
                    let mark: CompactionMark = messages::decode(cell.value_bytes(), log, "compaction mark")?;
                    let store = self.stores.iter().find(|store| store.family == mark.family);
                    store.inspect(|store| store.forget(&mark.inputs));
                }
                continue;
            }
            let Some(store) = self.stores.iter().find(|store| &store.family[..] == cell.family()) else { continue };
            if store.flushed_sequence_id()?.is_none_or(|flushed| entry.sequence_id > flushed) {
                store.segment.insert([cell.clone()]);
                taken += 1;
            }
        }
        Ok(taken)
    }
}
