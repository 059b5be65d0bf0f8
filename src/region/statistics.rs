//! Figures under the names of contract.md section 10.

use super::Region;
use crate::client::{RegionInfo, TableStatistics};
use crate::schema::ROW_ATTRIBUTES_FAMILY;
use crate::store::{FamilyCounters, HStore};
use bytes::Bytes;
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a table counts since the store was opened.
#[derive(Debug, Default)]
pub struct TableCounters {
    /// Rows read by gets.
    pub gets: AtomicU64,
    /// Scans opened.
    pub scans: AtomicU64,
    /// Cells put.
    pub puts: AtomicU64,
    /// Delete markers written.
    pub deletes: AtomicU64,
    /// Regions split.
    pub splits: AtomicU64,
    families: RwLock<BTreeMap<Bytes, Arc<FamilyCounters>>>,
}

impl TableCounters {
    /// The counters of a family.
    pub fn family(&self, family: &Bytes) -> Arc<FamilyCounters> {
        if let Some(counters) = self.families.read().get(family) {
            return Arc::clone(counters);
        }
        Arc::clone(self.families.write().entry(family.clone()).or_default())
    }

    fn of(&self, family: Option<&[u8]>) -> Vec<Arc<FamilyCounters>> {
        let families = self.families.read();
        families.iter().filter(|(name, _)| counts(name, family)).map(|(_, counters)| Arc::clone(counters)).collect()
    }
}

/// The hidden family is part of no figure unless it is named.
fn counts(name: &[u8], family: Option<&[u8]>) -> bool {
    family.map_or(name != ROW_ATTRIBUTES_FAMILY, |family| family == name)
}

fn load(counter: &AtomicU64) -> i64 {
    counter.load(Ordering::Relaxed) as i64
}

/// Sums over store files, each counted once although two regions may share it.
#[derive(Default)]
struct FileSums {
    seen: BTreeSet<u64>,
    file_bytes: i64,
    uncompressed_bytes: i64,
    entries: i64,
    tombstones: i64,
    index_bytes: i64,
    bloom_bytes: i64,
    key_bytes: i64,
    value_bytes: i64,
    memstore_bytes: i64,
    history_complete_since: i64,
}

impl FileSums {
    fn add(&mut self, store: &HStore) {
        for view in store.files().iter() {
            if !self.seen.insert(view.entry.file_id) {
                continue;
            }
            self.file_bytes += view.entry.size as i64;
            self.entries += view.entry.entries as i64;
            self.tombstones += view.entry.tombstones as i64;
            let Some(info) = view.file.opened().map(|reader| reader.info()) else { continue };
            self.uncompressed_bytes += info.uncompressed_bytes as i64;
            self.index_bytes += info.index_bytes as i64;
            self.bloom_bytes += info.bloom_bytes as i64;
            self.key_bytes += info.key_bytes as i64;
            self.value_bytes += info.value_bytes as i64;
        }
        self.memstore_bytes += store.memstore().heap_bytes() as i64;
        let since = store.history_complete_since().unwrap_or(0);
        self.history_complete_since = self.history_complete_since.max(since);
    }
}

/// The figures of a table, or of one of its families, over `regions`.
pub fn table_statistics(
    regions: &[Arc<Region>],
    counters: &TableCounters,
    family: Option<&[u8]>,
    stalls_millis: u64,
    now_millis: i64,
) -> TableStatistics {
    let mut sums = FileSums::default();
    for store in regions.iter().flat_map(|region| region.stores()).filter(|store| counts(store.family(), family)) {
        sums.add(&store);
    }
    let families = counters.of(family);
    let sum = |get: &dyn Fn(&FamilyCounters) -> i64| families.iter().map(|counters| get(counters)).sum::<i64>();
    let hfile = |get: &dyn Fn(crate::hfile::HFileCounts) -> u64| sum(&|c| get(c.hfile.counts()) as i64);
    let figures = vec![
        ("regions", regions.len() as i64),
        ("files", sums.seen.len() as i64),
        ("file_bytes", sums.file_bytes),
        ("uncompressed_bytes", sums.uncompressed_bytes),
        ("entries", sums.entries),
        ("tombstones", sums.tombstones),
        ("expired_cells", sum(&|c| load(&c.expired_cells))),
        ("index_bytes", sums.index_bytes),
        ("bloom_bytes", sums.bloom_bytes),
        ("key_bytes", sums.key_bytes),
        ("value_bytes", sums.value_bytes),
        ("memstore_bytes", sums.memstore_bytes),
        ("gets", load(&counters.gets)),
        ("scans", load(&counters.scans)),
        ("puts", load(&counters.puts)),
        ("deletes", load(&counters.deletes)),
        ("files_considered", sum(&|c| load(&c.files_considered))),
        ("bloom_asked", hfile(&|c| c.bloom_asked)),
        ("bloom_negative", hfile(&|c| c.bloom_negative)),
        ("bloom_false_positive", hfile(&|c| c.bloom_false_positive)),
        ("data_blocks_read", hfile(&|c| c.data_blocks_read)),
        ("cache_hits", hfile(&|c| c.cache_hits)),
        ("cache_misses", hfile(&|c| c.cache_misses)),
        ("flushes", sum(&|c| load(&c.flushes))),
        ("compactions_minor", sum(&|c| load(&c.compactions_minor))),
        ("compactions_major", sum(&|c| load(&c.compactions_major))),
        ("compacted_bytes", sum(&|c| load(&c.compacted_bytes))),
        ("splits", load(&counters.splits)),
        ("stalls_ms", stalls_millis as i64),
        ("history_complete_since", sums.history_complete_since.min(now_millis)),
    ];
    TableStatistics { figures }
}

impl Region {
    /// The region as a client sees it.
    pub fn info(&self) -> RegionInfo {
        let mut sums = FileSums::default();
        self.stores().iter().for_each(|store| sums.add(store));
        RegionInfo {
            encoded_name: self.encoded_name.clone(),
            start: self.start.clone(),
            end: self.end.clone(),
            parent: self.parent.clone(),
            born_millis: self.born_millis,
            file_bytes: sums.file_bytes as u64,
            files: sums.seen.len() as u64,
            writes: self.writes.load(Ordering::Relaxed),
            reads: self.reads.load(Ordering::Relaxed),
        }
    }

    /// The region's own figures.
    pub fn statistics(&self) -> TableStatistics {
        let mut sums = FileSums::default();
        self.stores().iter().filter(|store| counts(store.family(), None)).for_each(|store| sums.add(store));
        let figures = vec![
            ("bytes", sums.file_bytes),
            ("files", sums.seen.len() as i64),
            ("entries", sums.entries),
            ("tombstones", sums.tombstones),
            ("memstore_bytes", sums.memstore_bytes),
            ("writes", load(&self.writes)),
            ("reads", load(&self.reads)),
            ("born", self.born_millis),
        ];
        TableStatistics { figures }
    }
}
