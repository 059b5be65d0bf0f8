//! Random cells and requests against an evaluator that reads the rules literally, row by row, without seeking, merging or state.

use super::*;
use crate::cell::{Cell, CellScanner, CellType, Tag, compare, encode_tags, tag_type};
use crate::client::{Get, ResultScanner, Scan, TimeRange};
use crate::memstore::Segment;
use crate::schema::KeepDeletedCells;
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

const NOW: i64 = 30;
const ROWS: [&str; 4] = ["a", "a\0", "b", "row with a long name"];
const QUALIFIERS: [&str; 4] = ["", "p", "q", "q\0"];

/// Cells of several sources, each under its own sequence id.
#[derive(Clone, Debug)]
struct Data {
    sources: Vec<Vec<Cell>>,
}

impl Data {
    /// All cells in order, the winner of each group of equal version first.
    fn sorted(&self) -> Vec<Cell> {
        let mut cells: Vec<Cell> = self.sources.iter().flatten().cloned().collect();
        cells.sort_by(compare);
        cells
    }

    fn scanners(&self) -> Vec<Box<dyn CellScanner>> {
        self.sources
            .iter()
            .map(|cells| {
                let segment = Arc::new(Segment::new());
                segment.insert(cells.iter().cloned());
                Box::new(segment.scanner(u64::MAX)) as Box<dyn CellScanner>
            })
            .collect()
    }
}

fn cell() -> impl Strategy<Value = Cell> {
    let kind = prop_oneof![
        8 => Just(CellType::Put),
        1 => Just(CellType::Delete),
        1 => Just(CellType::DeleteColumn),
        1 => Just(CellType::DeleteFamily),
        1 => Just(CellType::DeleteFamilyVersion),
    ];
    let ttl = prop_oneof![9 => Just(None), 1 => (0u64..20).prop_map(Some)];
    (0..ROWS.len(), 0..QUALIFIERS.len(), 1i64..30, kind, ttl).prop_map(|(row, qualifier, time, kind, ttl)| {
        let of_family = matches!(kind, CellType::DeleteFamily | CellType::DeleteFamilyVersion);
        let qualifier = if of_family { "" } else { QUALIFIERS[qualifier] };
        let tags = match ttl {
            Some(ttl) if kind == CellType::Put => {
                encode_tags(&[Tag { kind: tag_type::TTL, value: Bytes::copy_from_slice(&ttl.to_be_bytes()) }])
            }
            _ => Bytes::new(),
        };
        Cell::with_tags(ROWS[row].as_bytes(), b"f", qualifier.as_bytes(), time, kind, b"v", &tags)
    })
}

fn data() -> impl Strategy<Value = Data> {
    (prop::collection::vec((cell(), 0..4usize), 0..60), 1..5usize).prop_map(|(cells, sources)| {
        let mut data = Data { sources: vec![Vec::new(); sources] };
        for (sequence_id, (cell, source)) in cells.into_iter().enumerate() {
            data.sources[source % sources].push(cell.with_sequence_id(sequence_id as u64 + 1));
        }
        data
    })
}

fn rules() -> impl Strategy<Value = FamilyRules> {
    let keep = prop_oneof![Just(KeepDeletedCells::False), Just(KeepDeletedCells::True), Just(KeepDeletedCells::Ttl)];
    let ttl = prop_oneof![Just(None), (1i64..25).prop_map(Some)];
    (1u32..4, 0u32..3, ttl, keep).prop_map(|(versions, min_versions, ttl_millis, keep_deleted)| FamilyRules {
        versions,
        min_versions: min_versions.min(versions),
        ttl_millis,
        keep_deleted,
        new_version_behavior: false,
        time_to_purge_deletes: 0,
        now: NOW,
    })
}

/// One row's cells by column, newest first, older writes of a version left out.
fn columns_of(row: &[Cell]) -> BTreeMap<Vec<u8>, Vec<Cell>> {
    let mut columns: BTreeMap<Vec<u8>, Vec<Cell>> = BTreeMap::new();
    for cell in row {
        let column = columns.entry(cell.qualifier().to_vec()).or_default();
        let known = |other: &&Cell| other.timestamp() == cell.timestamp() && other.cell_type() == cell.cell_type();
        if column.iter().find(known).is_none() {
            column.push(cell.clone());
        }
    }
    columns
}

fn rows_of(cells: &[Cell]) -> Vec<Vec<Cell>> {
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for cell in cells {
        match rows.last_mut() {
            Some(row) if row[0].row() == cell.row() => row.push(cell.clone()),
            _ => rows.push(vec![cell.clone()]),
        }
    }
    rows
}

fn own_ttl_is_over(cell: &Cell) -> bool {
    let ttl = cell.tag_iter().find(|(kind, _)| *kind == tag_type::TTL);
    ttl.is_some_and(|(_, value)| cell.timestamp() + i64::from_be_bytes(value.try_into().unwrap()) < NOW)
}

/// Whether a marker of `row` hides `put`.
fn is_hidden(put: &Cell, row: &[Cell], counts: impl Fn(&Cell) -> bool) -> bool {
    row.iter().filter(|marker| marker.is_delete() && counts(marker)).any(|marker| {
        let same_column = marker.qualifier() == put.qualifier();
        match marker.cell_type() {
            CellType::DeleteFamily => put.timestamp() <= marker.timestamp(),
            CellType::DeleteFamilyVersion => put.timestamp() == marker.timestamp(),
            CellType::DeleteColumn => same_column && put.timestamp() <= marker.timestamp(),
            _ => same_column && put.timestamp() == marker.timestamp(),
        }
    })
}

/// What a user sees of a row. `named`: the expired version that ends a named column is included (hbase.md A3).
fn seen(row: &[Cell], rules: &FamilyRules, range: TimeRange, max_versions: u32, named: Option<&[Bytes]>) -> Vec<Cell> {
    let oldest = rules.oldest_unexpired();
    let gone = |cell: &Cell| rules.min_versions == 0 && cell.timestamp() < oldest || own_ttl_is_over(cell);
    let counts = |marker: &Cell| {
        !gone(marker)
            && if rules.keep_deleted == KeepDeletedCells::False {
                range.is_all() || marker.timestamp() >= range.min()
            } else {
                range.contains(marker.timestamp())
            }
    };
    let versions = max_versions.min(rules.versions) as usize;
    let mut out = Vec::new();
    for (qualifier, _) in columns_of(row) {
        if named.is_some_and(|named| !named.iter().any(|name| name[..] == qualifier[..])) {
            continue;
        }
        let puts = row.iter().filter(|cell| cell.qualifier() == qualifier && !cell.is_delete());
        let mut visible: Vec<Cell> = Vec::new();
        for put in puts.filter(|put| !gone(put) && range.contains(put.timestamp()) && !is_hidden(put, row, counts)) {
            if visible.last().is_none_or(|last| last.timestamp() != put.timestamp()) {
                visible.push(put.clone());
            }
        }
        for (count, put) in visible.into_iter().enumerate() {
            let expired = put.timestamp() < oldest;
            let (count, min) = (count + 1, rules.min_versions as usize);
            if count > versions || expired && named.is_none() && count > min {
                break;
            }
            out.push(put);
            if expired && named.is_some() && count >= min {
                break;
            }
        }
    }
    out
}

fn scan_all(data: &Data, scan: &Scan, rules: FamilyRules, read_point: u64) -> Vec<Vec<Cell>> {
    let one = StoreScan::of_scan(scan, b"f", rules, read_point).unwrap().unwrap();
    let options = RegionScanOptions::of_scan(scan, RowRange::of_scan(scan));
    let mut scanner = RegionScanner::new(vec![StoreScanner::new(data.scanners(), &one)], options);
    let mut rows = Vec::new();
    while let Some(row) = scanner.next().unwrap() {
        rows.push(row.cells);
    }
    rows
}

fn compact(data: &Data, policy: ScanPolicy, rules: FamilyRules) -> (Vec<Cell>, Losses) {
    let mut scanner = StoreScanner::new(data.scanners(), &StoreScan::compaction(policy, rules));
    scanner.seek(b"").unwrap();
    let mut cells = Vec::new();
    while let Some(cell) = scanner.next_kept().unwrap() {
        cells.push(cell);
    }
    (cells, scanner.losses())
}

fn earliest_put(cells: &[Cell]) -> i64 {
    cells.iter().filter(|cell| !cell.is_delete()).map(Cell::timestamp).min().unwrap_or(i64::MAX)
}

/// The newest put of each column at `moment`, unless a marker hides it or its time is over by then: what `.at` asks for.
fn as_of(cells: &[Cell], rules: &FamilyRules, moment: i64) -> Vec<Cell> {
    let rules = FamilyRules { now: moment, ..*rules };
    let mut out = Vec::new();
    for row in rows_of(cells) {
        for column in columns_of(&row).into_values() {
            out.extend(
                column
                    .into_iter()
                    .filter(|cell| !cell.is_delete() && cell.timestamp() <= moment)
                    .filter(|put| put.timestamp() >= rules.oldest_that_matters())
                    .find(|put| !is_hidden(put, &row, |marker| marker.timestamp() <= moment)),
            );
        }
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn users_see_what_the_rules_say(
        data in data(),
        rules in rules(),
        versions in 1u32..5,
        range in prop::option::of((0i64..30, 0i64..30)),
        reversed: bool,
        named in prop::option::of(prop::collection::btree_set(0..QUALIFIERS.len(), 1..3)),
        read_point in 1u64..80,
    ) {
        let range = range.map_or(TimeRange::ALL, |(a, b)| TimeRange::new(a.min(b), a.max(b)).unwrap());
        let mut scan = Scan { max_versions: versions, time_range: range, reversed, ..Scan::new() };
        let named: Option<Vec<Bytes>> = named.map(|named| named.iter().map(|n| Bytes::from_static(QUALIFIERS[*n].as_bytes())).collect());
        for column in named.iter().flatten() {
            scan.columns.add_column(&b"f"[..], column.clone());
        }
        let visible: Vec<Cell> = data.sorted().into_iter().filter(|cell| cell.sequence_id() <= read_point).collect();
        let mut expected: Vec<Vec<Cell>> = rows_of(&visible)
            .iter()
            .map(|row| seen(row, &rules, range, versions, named.as_deref()))
            .filter(|row| !row.is_empty())
            .collect();
        for row in ROWS {
            let mut get = Get::new(row).versions(versions);
            (get.time_range, get.columns) = (range, scan.columns.clone());
            let one = StoreScan::of_get(&get, b"f", rules, read_point).unwrap();
            let stores = vec![StoreScanner::new(data.scanners(), &one)];
            let found = RegionScanner::new(stores, RegionScanOptions::row(row)).next().unwrap();
            let wanted = expected.iter().find(|cells| cells[0].row() == row.as_bytes()).cloned();
            prop_assert_eq!(found.map(|row| row.cells), wanted);
        }
        if reversed {
            expected.reverse();
        }
        prop_assert_eq!(scan_all(&data, &scan, rules, read_point), expected);
    }

    #[test]
    fn raw_scans_see_all_but_older_writes(data in data(), rules in rules(), versions in 1u32..5) {
        let scan = Scan { raw: true, max_versions: versions, ..Scan::new() };
        let mut expected = Vec::new();
        for row in rows_of(&data.sorted()) {
            let living: Vec<Cell> = row.into_iter().filter(|cell| !own_ttl_is_over(cell)).collect();
            let mut out = Vec::new();
            for column in columns_of(&living).into_values() {
                let mut puts = 0;
                for cell in column {
                    puts += u32::from(!cell.is_delete());
                    if puts > versions {
                        break;
                    }
                    out.push(cell);
                }
            }
            if !out.is_empty() {
                expected.push(out);
            }
        }
        prop_assert_eq!(scan_all(&data, &scan, rules, u64::MAX), expected);
    }

    /// Flushes and compactions of all cells change nothing that a read sees. (With KEEP_DELETED_CELLS they may: deleted puts count as versions.)
    #[test]
    fn compactions_keep_what_users_see(data in data(), rules in rules(), drop_deletes: bool, versions in 1u32..5) {
        let rules = FamilyRules { keep_deleted: KeepDeletedCells::False, ..rules };
        let smallest_read_point = u64::MAX;
        let policy = if drop_deletes {
            ScanPolicy::DropDeletes { smallest_read_point, earliest_put_timestamp: earliest_put(&data.sorted()) }
        } else {
            ScanPolicy::Retain { smallest_read_point }
        };
        let (kept, losses) = compact(&data, policy, rules);
        prop_assert!(kept.windows(2).all(|pair| compare(&pair[0], &pair[1]).is_lt()));
        prop_assert_eq!(kept.len() as u64 + losses.cells(), data.sorted().len() as u64);
        let compacted = Data { sources: vec![kept.clone()] };
        let scan = Scan { max_versions: versions, ..Scan::new() };
        prop_assert_eq!(scan_all(&compacted, &scan, rules, u64::MAX), scan_all(&data, &scan, rules, u64::MAX));
        if drop_deletes {
            prop_assert!(kept.iter().all(|cell| !cell.is_delete()));
        }
        // A second run finds nothing more to do, markers aside that the first has made pointless.
        let again = compact(&compacted, policy, rules).0;
        prop_assert!(again.len() <= kept.len());
    }

    /// The past is whole from the newest loss on. (Cells with a TTL of their own bring back older ones when they end: left out here.)
    #[test]
    fn losses_say_since_when_the_past_is_whole(data in data(), rules in rules(), drop_deletes: bool) {
        let plain = |cells: Vec<Cell>| cells.into_iter().filter(|cell| cell.tags().is_empty()).collect();
        let data = Data { sources: data.sources.into_iter().map(plain).collect() };
        let smallest_read_point = u64::MAX;
        let policy = if drop_deletes {
            ScanPolicy::DropDeletes { smallest_read_point, earliest_put_timestamp: earliest_put(&data.sorted()) }
        } else {
            ScanPolicy::Retain { smallest_read_point }
        };
        let (kept, losses) = compact(&data, policy, rules);
        let since = losses.newest_moment.unwrap_or(i64::MIN);
        for moment in (0..=NOW).filter(|moment| *moment >= since) {
            let (after, before) = (as_of(&kept, &rules, moment), as_of(&data.sorted(), &rules, moment));
            prop_assert_eq!(after, before, "as of {}, complete since {}", moment, since);
        }
    }

    /// What an open scanner may still read survives, whatever was written since. (KEEP_DELETED_CELLS as above.)
    #[test]
    fn compactions_keep_what_open_scanners_see(data in data(), rules in rules(), read_point in 1u64..60, drop_deletes: bool) {
        let rules = FamilyRules { keep_deleted: KeepDeletedCells::False, ..rules };
        let smallest_read_point = read_point;
        let policy = if drop_deletes {
            ScanPolicy::DropDeletes { smallest_read_point, earliest_put_timestamp: earliest_put(&data.sorted()) }
        } else {
            ScanPolicy::Retain { smallest_read_point }
        };
        let compacted = Data { sources: vec![compact(&data, policy, rules).0] };
        let scan = Scan::new();
        prop_assert_eq!(scan_all(&compacted, &scan, rules, read_point), scan_all(&data, &scan, rules, read_point));
    }

    #[test]
    fn limits_offsets_and_batches_cut_the_same_cells(
        data in data(), rules in rules(), limit in prop::option::of(1usize..4), offset in 0usize..3, batch in prop::option::of(1usize..4), reversed: bool,
    ) {
        let whole = Scan { max_versions: 3, reversed, ..Scan::new() };
        let cut = Scan { store_limit: limit, store_offset: offset, batch, ..whole.clone() };
        let mut expected = Vec::new();
        for row in scan_all(&data, &whole, rules, u64::MAX) {
            let cells: Vec<Cell> = row.into_iter().skip(offset).take(limit.unwrap_or(usize::MAX)).collect();
            expected.extend(cells.chunks(batch.unwrap_or(usize::MAX)).map(<[Cell]>::to_vec));
        }
        prop_assert_eq!(scan_all(&data, &cut, rules, u64::MAX), expected);
        let first = Scan { first_cell_only: true, ..whole.clone() };
        let expected: Vec<Vec<Cell>> = scan_all(&data, &whole, rules, u64::MAX).into_iter().map(|row| vec![row[0].clone()]).collect();
        prop_assert_eq!(scan_all(&data, &first, rules, u64::MAX), expected);
    }
}
