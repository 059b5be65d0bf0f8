//! Figures: `.stats`, `.regions/<n>/stats`, `.cellfs/metrics` (contract.md, section 10).

use super::hooks::MountHooks;
use super::node::TableHandle;
use crate::names;
use crate::ops::FsResult;
use cellfs::client::{Admin, RegionInfo, TableStatistics};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What each figure means, and whether it only grows.
const FIGURES: &[(&str, bool, &str)] = &[
    ("regions", false, "regions of the table"),
    ("files", false, "store files"),
    ("file_bytes", false, "bytes of the store files"),
    ("uncompressed_bytes", false, "bytes of the store files' cells before compression"),
    ("entries", false, "cells and markers in store files"),
    ("tombstones", false, "delete markers in store files"),
    ("expired_cells", false, "cells in store files whose TTL has passed"),
    ("index_bytes", false, "bytes of block indexes"),
    ("bloom_bytes", false, "bytes of bloom filters"),
    ("key_bytes", false, "bytes of keys in store files"),
    ("value_bytes", false, "bytes of values in store files"),
    ("memstore_bytes", false, "bytes in memstores"),
    ("gets", true, "reads of one row that reached the engine"),
    ("scans", true, "scans opened"),
    ("puts", true, "cells put"),
    ("deletes", true, "delete markers written"),
    ("files_considered", true, "store files that reads had to consider"),
    ("bloom_asked", true, "questions to bloom filters"),
    ("bloom_negative", true, "bloom filters that spared a file"),
    ("bloom_false_positive", true, "bloom filters that were wrong"),
    ("data_blocks_read", true, "data blocks read from files"),
    ("cache_hits", true, "blocks found in the cache"),
    ("cache_misses", true, "blocks not found in the cache"),
    ("flushes", true, "memstore flushes"),
    ("compactions_minor", true, "minor compactions"),
    ("compactions_major", true, "major compactions"),
    ("compacted_bytes", true, "bytes written by compactions"),
    ("splits", true, "region splits"),
    ("stalls_ms", true, "milliseconds writers were held back"),
    ("history_complete_since", false, "milliseconds since the epoch from which on no history is missing"),
];

/// `name value` a line.
pub(super) fn lines(statistics: &TableStatistics) -> String {
    statistics.figures.iter().fold(String::new(), |mut out, (name, value)| {
        // Writing to memory cannot fail.
        let _ = writeln!(out, "{name} {value}");
        out
    })
}

/// The sums over the tables of a namespace, after their number. History is complete since the latest of their moments.
///
/// # Errors
/// What the store says.
pub(super) fn namespace_text(store: &dyn Admin, namespace: &str) -> FsResult<String> {
    let tables = store.list_tables(namespace)?;
    let mut sums: Vec<(&'static str, i64)> = vec![("tables", tables.len() as i64)];
    for table in &tables {
        for (name, value) in store.table_statistics(table)?.figures {
            match sums.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) if name == "history_complete_since" => *sum = (*sum).max(value),
                Some((_, sum)) => *sum = sum.saturating_add(value),
                None => sums.push((name, value)),
            }
        }
    }
    Ok(lines(&TableStatistics { figures: sums }))
}

/// One region: where it lies, then its figures.
///
/// # Errors
/// What the store says.
pub(super) fn region_text(store: &dyn Admin, table: &TableHandle, region: &RegionInfo) -> FsResult<String> {
    let spelled = |row: &[u8]| String::from_utf8_lossy(&names::encode_row(row)).into_owned();
    let mut out = String::new();
    let own: [(&str, String); 8] = [
        ("start", spelled(&region.start)),
        ("end", spelled(&region.end)),
        ("bytes", region.file_bytes.to_string()),
        ("files", region.files.to_string()),
        ("writes", region.writes.to_string()),
        ("reads", region.reads.to_string()),
        ("parent", region.parent.clone().unwrap_or_default()),
        ("born", region.born_millis.to_string()),
    ];
    for (name, value) in &own {
        let _ = writeln!(out, "{name} {value}");
    }
    let figures = store.region_statistics(&table.0.name(), &region.encoded_name)?.figures;
    let further = figures.into_iter().filter(|(name, _)| own.iter().all(|(known, _)| known != name)).collect();
    out.push_str(&lines(&TableStatistics { figures: further }));
    Ok(out)
}

/// All figures of all tables and of the mount, in Prometheus' text form (version 0.0.4).
///
/// # Errors
/// What the store says.
pub(super) fn metrics_text(store: &dyn Admin, hooks: &dyn MountHooks) -> FsResult<String> {
    let mut samples: BTreeMap<&'static str, String> = BTreeMap::new();
    let mut order: Vec<&'static str> = Vec::new();
    for namespace in store.list_namespaces()? {
        for table in store.list_tables(&namespace)? {
            for (name, value) in store.table_statistics(&table)?.figures {
                let text = samples.entry(name).or_insert_with(|| {
                    order.push(name);
                    String::new()
                });
                let _ = writeln!(
                    text,
                    "cellfs_{name}{{namespace=\"{}\",table=\"{}\"}} {value}",
                    table.namespace, table.qualifier
                );
            }
        }
    }
    let mut out = String::new();
    for name in order {
        let (kind, help) = match FIGURES.iter().find(|(known, ..)| *known == name) {
            Some((_, true, help)) => ("counter", *help),
            Some((_, false, help)) => ("gauge", *help),
            None => ("untyped", "a figure of the engine"),
        };
        let _ = writeln!(out, "# HELP cellfs_{name} {help}\n# TYPE cellfs_{name} {kind}");
        out.push_str(samples.get(name).map_or("", String::as_str));
    }
    let read_only = u64::from(store.read_only_reason().is_some());
    for (name, help, value) in
        hooks.figures().into_iter().chain([("read_only", "1 if the store refuses writes", read_only)])
    {
        let _ = writeln!(out, "# HELP cellfs_mount_{name} {help}\n# TYPE cellfs_mount_{name} gauge");
        let _ = writeln!(out, "cellfs_mount_{name} {value}");
    }
    Ok(out)
}
