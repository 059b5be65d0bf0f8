//! `.health` of a table and `.cellfs/health`: what to look at, and what to do about it (contract.md, section 10). Every line is
//! `OK|WARN name value limit advice`; the last one is the verdict.

use super::node::TableHandle;
use crate::ops::FsResult;
use cellfs::client::{Admin, RegionInfo, Scan, TableName, TableStatistics};
use cellfs::schema::{ROW_ATTRIBUTES_FAMILY, TableDescriptor};
use std::fmt::Write;

/// The widest row is looked for among this many cells at most, spread evenly over the regions: health must not cost a scan of everything.
const WIDTH_SAMPLE: u64 = 20_000;
/// Shares say nothing about fewer events than this.
const FEW: i64 = 1000;
/// HBase's default for a table without MAX_FILESIZE (`hbase.hregion.max.filesize`).
const REGION_BYTES: u64 = 10 << 30;
/// Files below this are small.
const SMALL_FILE: i64 = 1 << 20;

/// What is too much.
enum Limit {
    AtMost(i64),
    AtLeast(i64),
}

struct Line {
    name: &'static str,
    value: i64,
    limit: Limit,
    advice: &'static str,
}

impl Line {
    fn is_fine(&self) -> bool {
        match self.limit {
            Limit::AtMost(limit) => self.value <= limit,
            Limit::AtLeast(limit) => self.value >= limit,
        }
    }

    fn write(&self, out: &mut String) {
        let (Limit::AtMost(limit) | Limit::AtLeast(limit)) = self.limit;
        let (word, advice) = if self.is_fine() { ("OK", "-") } else { ("WARN", self.advice) };
        // Writing to memory cannot fail.
        let _ = writeln!(out, "{word} {} {} {limit} {advice}", self.name, self.value);
    }
}

/// The report of a table.
///
/// # Errors
/// What the store says.
pub(super) fn table_text(store: &dyn Admin, table: &TableHandle) -> FsResult<String> {
    let lines = of_table(store, table)?;
    let mut out = String::new();
    lines.iter().for_each(|line| line.write(&mut out));
    let warnings = lines.iter().filter(|line| !line.is_fine()).count() as i64;
    let advice = "read the WARN lines above, the first ones first";
    Line { name: "verdict", value: warnings, limit: Limit::AtMost(0), advice }.write(&mut out);
    Ok(out)
}

/// The report of the store: a line per table with the number of its warnings, then what concerns all.
///
/// # Errors
/// What the store says.
pub(super) fn store_text(store: &dyn Admin) -> FsResult<String> {
    let mut out = String::new();
    let mut warnings = 0;
    for namespace in store.list_namespaces()? {
        for name in store.list_tables(&namespace)? {
            let Ok(table) = store.table(&name) else { continue };
            let count = of_table(store, &TableHandle(table))?.iter().filter(|line| !line.is_fine()).count();
            warnings += count;
            let (word, advice) = match count {
                0 => ("OK", "-".to_owned()),
                _ => ("WARN", format!("see {}", path(&name))),
            };
            let _ = writeln!(out, "{word} {name} {count} 0 {advice}");
        }
    }
    let general = general_lines(store)?;
    general.iter().for_each(|line| line.write(&mut out));
    warnings += general.iter().filter(|line| !line.is_fine()).count();
    let verdict =
        Line { name: "verdict", value: warnings as i64, limit: Limit::AtMost(0), advice: "read the WARN lines above" };
    verdict.write(&mut out);
    Ok(out)
}

fn path(name: &TableName) -> String {
    format!("/{}/{}/.health", name.namespace, name.qualifier)
}

fn damaged_files(count: usize) -> Line {
    Line {
        name: "damaged_files",
        value: count as i64,
        limit: Limit::AtMost(0),
        advice: "store files that cannot be read: .cellfs/status names them; put them back from a backup, see cellfs check",
    }
}

fn general_lines(store: &dyn Admin) -> FsResult<[Line; 4]> {
    Ok([
        damaged_files(store.damaged_files().len()),
        Line {
            name: "read_only",
            value: i64::from(store.read_only_reason().is_some()),
            limit: Limit::AtMost(0),
            advice: "writes are refused: .cellfs/status has the reason; mount again once it is repaired",
        },
        Line {
            name: "free_bytes",
            value: i64::try_from(store.free_space()?).unwrap_or(i64::MAX),
            limit: Limit::AtLeast(1 << 30),
            advice: "make room on the volume: a compaction needs as much as the files it rewrites",
        },
        Line {
            name: "slows_writers",
            value: i64::from(store.slows_writers()),
            limit: Limit::AtMost(0),
            advice: "writes come faster than the disk takes them: raise memstore.size, or write less at once",
        },
    ])
}

fn of_table(store: &dyn Admin, table: &TableHandle) -> FsResult<Vec<Line>> {
    let (name, descriptor) = (table.0.name(), table.0.descriptor());
    let (figures, regions) = (store.table_statistics(&name)?, store.regions(&name)?);
    let damaged = store.damaged_files().into_iter().filter(|file| file.table == name).count();
    let mut lines = vec![damaged_files(damaged)];
    lines.extend(shape(&descriptor, &figures));
    lines.extend(spread(&regions));
    lines.extend(files(&descriptor, &figures, &regions));
    lines.extend(load(&figures));
    match widest_row(table, &regions) {
        Ok(value) => lines.push(Line {
            name: "widest_row",
            value,
            limit: Limit::AtMost(10_000),
            advice: "cells and versions of one row (in a sample): split such rows by putting part of the qualifier into the key",
        }),
        // The sample met a file that cannot be read, which has a line of its own.
        Err(_) if damaged > 0 => {}
        Err(error) => return Err(error),
    }
    Ok(lines)
}

fn figure(figures: &TableStatistics, name: &str) -> i64 {
    figures.figures.iter().find(|(known, _)| *known == name).map_or(0, |(_, value)| *value)
}

/// `part` of `whole` in percent; `otherwise` where there are too few to tell.
fn percent(part: i64, whole: i64, otherwise: i64) -> i64 {
    if whole < FEW { otherwise } else { part.saturating_mul(100) / whole }
}

fn shape(descriptor: &TableDescriptor, figures: &TableStatistics) -> [Line; 2] {
    let families = descriptor.families.keys().filter(|name| *name != ROW_ATTRIBUTES_FAMILY).count() as i64;
    let entries = figure(figures, "entries");
    [
        Line {
            name: "families",
            value: families,
            limit: Limit::AtMost(3),
            advice: "each family has files and memory of its own: join those that are read together",
        },
        Line {
            name: "key_length",
            value: figure(figures, "key_bytes").checked_div(entries).unwrap_or(0),
            limit: Limit::AtMost(100),
            advice: "every cell repeats row, family and qualifier: shorten them, or set DATA_BLOCK_ENCODING = \"FAST_DIFF\"",
        },
    ]
}

fn spread(regions: &[RegionInfo]) -> [Line; 5] {
    let (several, writes) = (regions.len() > 1, regions.iter().map(|region| region.writes as i64).sum::<i64>());
    let most = regions.iter().map(|region| region.writes as i64).max().unwrap_or(0);
    let last = regions.last().map_or(0, |region| region.writes as i64);
    let bytes: u64 = regions.iter().map(|region| region.file_bytes).sum();
    let largest = regions.iter().map(|region| region.file_bytes).max().unwrap_or(0);
    let mean = (bytes / regions.len().max(1) as u64).max(1);
    let share = |part: i64| if several { percent(part, writes, 0) } else { 0 };
    [
        Line {
            name: "hot_region",
            value: share(most),
            limit: Limit::AtMost(50),
            advice: "one region takes most writes (percent): split it, or spread the keys with .via/salt-N or md5-N",
        },
        Line {
            name: "monotone_keys",
            value: share(last),
            limit: Limit::AtMost(80),
            advice: "writes go to the end of the table (percent): keys that only grow heat one region; put a salt or hash before them",
        },
        Line {
            name: "skew",
            value: if several && bytes > 64 << 20 { (largest / mean) as i64 } else { 1 },
            limit: Limit::AtMost(4),
            advice: "the largest region is so many times the mean: echo split KEY > .ctl where the data is",
        },
        Line {
            name: "region_bytes",
            value: largest as i64,
            limit: Limit::AtMost((REGION_BYTES * 2) as i64),
            advice: "a region this large is slow to compact: echo split > .ctl, and see SPLIT_ENABLED and SPLIT_POLICY",
        },
        Line {
            name: "regions",
            value: regions.len() as i64,
            limit: Limit::AtMost(200),
            advice: "more regions than one machine gains from: raise MAX_FILESIZE",
        },
    ]
}

fn files(descriptor: &TableDescriptor, figures: &TableStatistics, regions: &[RegionInfo]) -> [Line; 4] {
    let families = descriptor.families.len().max(1) as u64;
    let per_store = regions.iter().map(|region| region.files.div_ceil(families) as i64).max().unwrap_or(0);
    let (files, entries) = (figure(figures, "files"), figure(figures, "entries"));
    let mean = figure(figures, "file_bytes").checked_div(files).unwrap_or(0);
    let many = files > 3 * (regions.len() as i64).saturating_mul(families as i64);
    let expired = figure(figures, "expired_cells");
    [
        Line {
            name: "files_per_store",
            value: per_store,
            limit: Limit::AtMost(10),
            advice: "every read looks into them: echo compact > .ctl; if they come back, raise compaction.threads or compaction.throttle",
        },
        Line {
            name: "small_files",
            value: if many && mean < SMALL_FILE { files } else { 0 },
            limit: Limit::AtMost(0),
            advice: "many files of little: echo major_compact > .ctl, and flush less often",
        },
        Line {
            name: "tombstones",
            value: percent(figure(figures, "tombstones"), entries, 0),
            limit: Limit::AtMost(20),
            advice: "reads step over delete markers (percent of all cells): echo major_compact > .ctl drops them",
        },
        Line {
            name: "expired",
            value: percent(expired, entries.saturating_add(expired), 0),
            limit: Limit::AtMost(50),
            advice: "most of what is rewritten has expired (percent): a shorter major.period, or a table per period of time",
        },
    ]
}

fn load(figures: &TableStatistics) -> [Line; 2] {
    let (hits, misses) = (figure(figures, "cache_hits"), figure(figures, "cache_misses"));
    [
        Line {
            name: "cache_hits",
            value: percent(hits, hits.saturating_add(misses), 100),
            limit: Limit::AtLeast(90),
            advice: "reads go to the disk (percent found): raise cache.size in .cellfs/config, or read in key order",
        },
        Line {
            name: "stalls",
            value: figure(figures, "stalls_ms"),
            limit: Limit::AtMost(1000),
            advice: "milliseconds that writers were held back: raise memstore.size, or compaction.threads and compaction.throttle",
        },
    ]
}

/// The most cells and versions of one row in the sample.
fn widest_row(table: &TableHandle, regions: &[RegionInfo]) -> FsResult<i64> {
    let each = (WIDTH_SAMPLE / regions.len().max(1) as u64).max(1);
    let mut widest = 0;
    for region in regions {
        let scan = Scan {
            start_row: region.start.clone(),
            stop_row: region.end.clone(),
            cache_blocks: false,
            batch: Some(1000),
            max_versions: u32::MAX,
            ..Scan::new()
        };
        let mut scanner = table.0.scan(&scan)?;
        let (mut seen, mut of_row) = (0, 0);
        while seen < each
            && let Some(part) = scanner.next()?
        {
            seen += part.cells.len() as u64;
            of_row += part.cells.len() as i64;
            widest = widest.max(of_row);
            if !part.partial {
                of_row = 0;
            }
        }
    }
    Ok(widest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_how_much_the_limit_and_what_to_do() {
        let mut out = String::new();
        Line { name: "families", value: 4, limit: Limit::AtMost(3), advice: "join them" }.write(&mut out);
        Line { name: "cache_hits", value: 90, limit: Limit::AtLeast(90), advice: "more" }.write(&mut out);
        assert_eq!(out, "WARN families 4 3 join them\nOK cache_hits 90 90 -\n");
    }

    #[test]
    fn heat_and_skew_are_seen_over_regions() {
        let region = |writes: u64, megabytes: u64| RegionInfo {
            encoded_name: String::new(),
            start: bytes::Bytes::new(),
            end: bytes::Bytes::new(),
            parent: None,
            born_millis: 0,
            file_bytes: megabytes << 20,
            files: 1,
            writes,
            reads: 0,
        };
        let warned = |regions: &[RegionInfo]| {
            let lines = spread(regions);
            lines.iter().filter(|line| !line.is_fine()).map(|line| line.name).collect::<Vec<_>>()
        };
        assert!(warned(&[region(5000, 100)]).is_empty(), "one region is always the hottest");
        assert!(warned(&[region(5, 1), region(400, 1)]).is_empty(), "too few to tell");
        assert_eq!(warned(&[region(900, 1), region(200, 1), region(0, 1)]), ["hot_region"]);
        assert_eq!(warned(&[region(10, 1), region(2000, 1)]), ["hot_region", "monotone_keys"]);
        let mut uneven = vec![region(0, 1); 9];
        uneven.push(region(0, 100));
        assert_eq!(warned(&uneven), ["skew"]);
    }
}
