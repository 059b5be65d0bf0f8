//! Figures of what is read, under the names of every store; what only a writer counts is 0.

use super::region::RootRegion;
use super::table::RootTable;
use crate::client::{RegionInfo, TableStatistics};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[derive(Default)]
struct Sums {
    seen: BTreeSet<u64>,
    file_bytes: u64,
    uncompressed_bytes: u64,
    entries: u64,
    index_bytes: u64,
    bloom_bytes: u64,
    key_bytes: u64,
    value_bytes: u64,
    memstore_bytes: u64,
    files_considered: u64,
}

impl Sums {
    /// A store that cannot be read has no figures: whoever reads it hears why.
    fn of(regions: &[Arc<RootRegion>], family: Option<&[u8]>) -> Sums {
        let mut sums = Sums::default();
        let stores = regions.iter().flat_map(|region| &region.stores);
        let wanted = stores.filter(|store| family.is_none_or(|family| &store.family[..] == family));
        for view in wanted.filter_map(|store| store.view().ok()) {
            sums.memstore_bytes += view.segments.iter().filter(|s| !s.is_empty()).map(|s| s.heap_bytes()).sum::<u64>();
            sums.files_considered += view.files_considered.load(Ordering::Relaxed);
            for file in view.files.iter() {
                if !sums.seen.insert(file.entry.file_id) {
                    continue;
                }
                let Ok(reader) = file.file.reader() else { continue };
                let info = reader.info();
                sums.file_bytes += info.file_bytes;
                sums.uncompressed_bytes += info.uncompressed_bytes;
                sums.entries += info.entries;
                sums.index_bytes += info.index_bytes;
                sums.bloom_bytes += info.bloom_bytes;
                sums.key_bytes += info.key_bytes;
                sums.value_bytes += info.value_bytes;
            }
        }
        sums
    }
}

/// The figures of a table, or of the files of one family and of the table's reads.
pub(super) fn table_statistics(table: &RootTable, family: Option<&[u8]>) -> TableStatistics {
    let sums = Sums::of(&table.regions, family);
    let counts = table.counters.counts();
    let figures = [
        ("regions", table.regions.len() as u64),
        ("files", sums.seen.len() as u64),
        ("file_bytes", sums.file_bytes),
        ("uncompressed_bytes", sums.uncompressed_bytes),
        ("entries", sums.entries),
        ("tombstones", 0),
        ("expired_cells", 0),
        ("index_bytes", sums.index_bytes),
        ("bloom_bytes", sums.bloom_bytes),
        ("key_bytes", sums.key_bytes),
        ("value_bytes", sums.value_bytes),
        ("memstore_bytes", sums.memstore_bytes),
        ("gets", table.gets.load(Ordering::Relaxed)),
        ("scans", table.scans.load(Ordering::Relaxed)),
        ("puts", 0),
        ("deletes", 0),
        ("files_considered", sums.files_considered),
        ("bloom_asked", counts.bloom_asked),
        ("bloom_negative", counts.bloom_negative),
        ("bloom_false_positive", counts.bloom_false_positive),
        ("data_blocks_read", counts.data_blocks_read),
        ("cache_hits", counts.cache_hits),
        ("cache_misses", counts.cache_misses),
        ("flushes", 0),
        ("compactions_minor", 0),
        ("compactions_major", 0),
        ("compacted_bytes", 0),
        ("splits", 0),
        ("stalls_ms", 0),
    ];
    let mut figures: Vec<(&'static str, i64)> =
        figures.into_iter().map(|(name, value)| (name, i64::try_from(value).unwrap_or(i64::MAX))).collect();
    // What HBase's compactions dropped, and when, is not written anywhere.
    figures.push(("history_complete_since", table.clock.now_millis()));
    TableStatistics { figures }
}

/// The figures of a region.
pub(super) fn region_statistics(region: &Arc<RootRegion>) -> TableStatistics {
    let info = region_info(region);
    let sums = Sums::of(std::slice::from_ref(region), None);
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let figures = vec![
        ("bytes", number(info.file_bytes)),
        ("files", number(info.files)),
        ("entries", number(sums.entries)),
        ("tombstones", 0),
        ("memstore_bytes", number(sums.memstore_bytes)),
        ("writes", 0),
        ("reads", number(info.reads)),
        ("born", info.born_millis),
    ];
    TableStatistics { figures }
}

/// The region as a client sees it.
pub(super) fn region_info(region: &Arc<RootRegion>) -> RegionInfo {
    let sums = Sums::of(std::slice::from_ref(region), None);
    RegionInfo {
        encoded_name: region.info.encoded.clone(),
        start: region.info.start.clone(),
        end: region.info.end.clone(),
        parent: None,
        born_millis: i64::try_from(region.info.region_id).unwrap_or(0),
        file_bytes: sums.file_bytes,
        files: sums.seen.len() as u64,
        writes: 0,
        reads: region.reads.load(Ordering::Relaxed),
    }
}
