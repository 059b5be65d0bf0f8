//! Gets, and the part of a scan that falls into one region.

use super::{Region, TableCounters};
use crate::cell::Cell;
use crate::client::{ColumnSelection, Get, ResultScanner, RowResult, Scan};
use crate::error::{Error, Result};
use crate::manifest::RegionEntry;
use crate::memstore::Segment;
use crate::scanner::{RegionScanOptions, RegionScanner, RegionStores, RowRange, StoreScan, compile_filter};
use crate::schema::{ColumnFamilyDescriptor, ROW_ATTRIBUTES_FAMILY, TableDescriptor};
use crate::store::{HStore, PointRead, StoreContext, StoreFile, StoreFileView, StoreFiles, StoreView};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// From where a reader looks.
#[derive(Clone, Copy, Debug)]
pub struct Standpoint {
    /// Cells with larger sequence ids are invisible.
    pub read_point: u64,
    /// What is expired then is invisible, milliseconds since the epoch.
    pub now: i64,
    /// Cells of later timestamps are as if they had never been written; `i64::MAX` = the present.
    pub as_of: i64,
}

impl Standpoint {
    /// The present.
    pub fn present(read_point: u64, now: i64) -> Standpoint {
        Standpoint { read_point, now, as_of: i64::MAX }
    }

    /// A moment, by the clock's `now`: what had not expired then is there.
    pub fn at(read_point: u64, millis: i64, now: i64) -> Standpoint {
        Standpoint { read_point, now: millis.min(now), as_of: millis }
    }
}

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
        if let Some(result) = self.get_from_memory(get) {
            return Ok(Some(result));
        }
        let Some((read_point, views)) = self.capture(&get.columns) else { return Ok(None) };
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.counters.gets.fetch_add(1, Ordering::Relaxed);
        let now = self.services.store.clock.now_millis();
        read_row(get, &views, Standpoint::present(read_point, now)).map(Some)
    }

    /// What memory alone can answer of a get of one column; `None` where it cannot.
    fn get_from_memory(&self, get: &Get) -> Option<RowResult> {
        let (family, qualifier) = get.single_column()?;
        let stores = self.stores.read();
        if stores.closed {
            return None;
        }
        let cells = match stores.get(family)?.newest_in_memory(&get.row, qualifier, self.services.mvcc.read_point()) {
            PointRead::Found(cell) => vec![cell],
            PointRead::Absent => Vec::new(),
            PointRead::Unknown => return None,
        };
        drop(stores);
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.counters.gets.fetch_add(1, Ordering::Relaxed);
        Some(RowResult { cells, partial: false })
    }

    /// Reads a row as of `millis`; `None` when the region is closed.
    ///
    /// # Errors
    /// [`Error::HistoryIncomplete`]; those of reading files.
    pub fn get_as_of(&self, get: &Get, millis: i64) -> Result<Option<RowResult>> {
        let Some((read_point, views)) = self.capture_as_of(&get.columns, millis)? else { return Ok(None) };
        self.reads.fetch_add(1, Ordering::Relaxed);
        let now = self.services.store.clock.now_millis();
        read_row(get, &views, Standpoint::at(read_point, millis, now)).map(Some)
    }

    /// As [`Region::capture`], if the history of what is captured reaches back to `millis`: a flush or compaction moves the mark under the
    /// lock under which it publishes.
    fn capture_as_of(&self, columns: &ColumnSelection, millis: i64) -> Result<Option<(u64, Vec<StoreView>)>> {
        let stores = self.stores.read();
        if stores.closed {
            return Ok(None);
        }
        self.check_history(stores.stores.iter().filter(|store| wants(columns, store.family())), millis)?;
        let wanted = stores.stores.iter().filter(|store| wants(columns, store.family()));
        Ok(Some((self.services.mvcc.read_point(), wanted.map(|store| store.view()).collect())))
    }

    /// Refuses a moment before which something that was visible then has been dropped, in any family but the hidden one.
    ///
    /// # Errors
    /// [`Error::HistoryIncomplete`], with what would have kept it.
    pub fn check_as_of(&self, millis: i64) -> Result<()> {
        self.check_history(self.stores.read().stores.iter(), millis)
    }

    fn check_history<'a>(&self, stores: impl Iterator<Item = &'a Arc<HStore>>, millis: i64) -> Result<()> {
        let marked = stores.filter(|store| &store.family()[..] != ROW_ATTRIBUTES_FAMILY);
        let newest =
            marked.filter_map(|store| Some((store.history_complete_since()?, store))).max_by_key(|(since, _)| *since);
        match newest {
            Some((since_millis, store)) if millis < since_millis => {
                let family = store.descriptor();
                let ttl = match family.ttl_seconds {
                    crate::schema::FOREVER => "FOREVER".to_owned(),
                    seconds => format!("{seconds} s"),
                };
                let what = format!(
                    "{millis} is too long ago: family {} keeps VERSIONS = {}, KEEP_DELETED_CELLS = {}, TTL = {ttl}; more of \
                     these or a snapshot would have kept it",
                    store.family().escape_ascii(),
                    family.versions,
                    format!("{:?}", family.keep_deleted_cells).to_uppercase(),
                );
                Err(Error::HistoryIncomplete { what, since_millis })
            }
            _ => Ok(()),
        }
    }

    /// Reads a row as a writer sees it that holds the row's lock: everything that is in the memstores, for all of it was logged before.
    pub(super) fn get_locked(&self, get: &Get, now: i64) -> Result<RowResult> {
        let views = {
            let stores = self.stores.read();
            let wanted = stores.stores.iter().filter(|store| wants(&get.columns, store.family()));
            wanted.map(|store| store.view()).collect::<Vec<_>>()
        };
        read_row(get, &views, Standpoint::present(u64::MAX, now))
    }

    /// One family as a writer sees it; `None` for the hidden family before its first cell.
    pub(super) fn view_locked(&self, family: &[u8]) -> Option<StoreView> {
        self.stores.read().get(family).map(|store| store.view())
    }

    /// Opens the part of a scan that falls into this region: rows of `range`, as seen from `from`, at most `limit`. `None` when the region
    /// is closed.
    ///
    /// # Errors
    /// Those of reading filters, and of requests that contradict themselves; [`Error::HistoryIncomplete`] for a moment of the past.
    pub fn scan(
        &self,
        scan: &Scan,
        range: RowRange,
        from: Standpoint,
        limit: Option<u64>,
    ) -> Result<Option<RegionScanner>> {
        let captured = match from.as_of {
            i64::MAX => self.capture(&scan.columns),
            millis => self.capture_as_of(&scan.columns, millis)?,
        };
        let Some((_, views)) = captured else { return Ok(None) };
        self.reads.fetch_add(1, Ordering::Relaxed);
        scan_views(scan, range.within(&self.start, &self.end), &views, from, limit).map(Some)
    }
}

/// Opens a scan of `range` over the families of a region.
fn scan_views(
    scan: &Scan,
    range: RowRange,
    views: &[StoreView],
    from: Standpoint,
    limit: Option<u64>,
) -> Result<RegionScanner> {
    let mut stores = RegionStores::of_scan(scan);
    for view in views {
        let store_scan = StoreScan::of_scan(scan, &view.family, view.rules(from.now), from.read_point)?;
        if let Some(mut store_scan) = store_scan {
            store_scan.as_of = from.as_of;
            if let Some(scanner) = view.scanner(&store_scan, &range, scan.cache_blocks)? {
                stores.push(&view.family, scanner);
            }
        }
    }
    let mut options = RegionScanOptions::of_scan(scan, range);
    options.limit = limit;
    Ok(RegionScanner::new(stores, options))
}

fn read_row(get: &Get, views: &[StoreView], from: Standpoint) -> Result<RowResult> {
    let options = RegionScanOptions::row(get.row.clone());
    let mut stores = RegionStores::of_get(get);
    for view in views {
        if let Some(mut scan) = StoreScan::of_get(get, &view.family, view.rules(from.now), from.read_point) {
            scan.as_of = from.as_of;
            if let Some(scanner) = view.scanner(&scan, &options.range, get.cache_blocks)? {
                stores.push(&view.family, scanner);
            }
        }
    }
    if stores.is_empty() {
        // Most lookups of absent rows end here, spared by row filters and blooms.
        return Ok(RowResult::default());
    }
    let filter = get.filter.as_ref().map(|filter| compile_filter(filter, false)).transpose()?;
    Ok(RegionScanner::new(stores, options).with_filter(filter).next()?.unwrap_or_default())
}

/// A region of a snapshot: files that never change (HBase `ClientSideRegionScanner`).
pub struct FrozenRegion {
    start: Bytes,
    end: Bytes,
    views: Vec<StoreView>,
}

impl FrozenRegion {
    /// Opens the files of a region entry as its families were then.
    ///
    /// # Errors
    /// Those of opening files.
    pub fn open(
        context: &Arc<StoreContext>,
        entry: &RegionEntry,
        descriptor: &TableDescriptor,
        counters: &TableCounters,
    ) -> Result<FrozenRegion> {
        let mut views = Vec::with_capacity(entry.stores.len());
        for (family, store) in &entry.stores {
            let Some(attributes) = super::family_descriptor(descriptor, family) else { continue };
            let counters = counters.family(family);
            let mut files = Vec::with_capacity(store.files.len());
            for (file_id, file_entry) in &store.files {
                let file = StoreFile::open_live(context, *file_id, Arc::clone(&counters.hfile))?;
                files.push(StoreFileView { file, entry: file_entry.clone() });
            }
            views.push(StoreView {
                family: family.clone(),
                descriptor: Arc::new(attributes),
                segments: Vec::new(),
                files: Arc::new(StoreFiles::new(files)),
                files_considered: Arc::clone(&counters.files_considered),
            });
        }
        Ok(FrozenRegion { start: entry.start.clone(), end: entry.end.clone(), views })
    }

    /// All rows of one family, of cells in memory.
    pub fn of_cells(family: &[u8], descriptor: ColumnFamilyDescriptor, cells: Vec<Cell>) -> FrozenRegion {
        let segment = Segment::new();
        segment.insert(cells);
        let view = StoreView {
            family: Bytes::copy_from_slice(family),
            descriptor: Arc::new(descriptor),
            segments: vec![Arc::new(segment)],
            files: Arc::default(),
            files_considered: Arc::default(),
        };
        FrozenRegion { start: Bytes::new(), end: Bytes::new(), views: vec![view] }
    }

    /// First row, inclusive; empty = from the beginning.
    pub fn start(&self) -> &Bytes {
        &self.start
    }

    /// End row, exclusive; empty = to the end.
    pub fn end(&self) -> &Bytes {
        &self.end
    }

    fn wanted(&self, columns: &ColumnSelection) -> Vec<StoreView> {
        self.views.iter().filter(|view| wants(columns, &view.family)).cloned().collect()
    }

    /// Reads a row.
    ///
    /// # Errors
    /// Those of reading files.
    pub fn get(&self, get: &Get, from: Standpoint) -> Result<RowResult> {
        read_row(get, &self.wanted(&get.columns), from)
    }

    /// Opens the part of a scan that falls into this region.
    ///
    /// # Errors
    /// Those of reading filters, and of requests that contradict themselves.
    pub fn scan(&self, scan: &Scan, range: RowRange, from: Standpoint, limit: Option<u64>) -> Result<RegionScanner> {
        scan_views(scan, range.within(&self.start, &self.end), &self.wanted(&scan.columns), from, limit)
    }
}
