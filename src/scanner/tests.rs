use super::*;
use crate::cell::{Cell, CellScanner, CellType};
use crate::client::{Get, ResultScanner, Scan};
use crate::memstore::MemStore;
use crate::schema::ColumnFamilyDescriptor;

fn cell(row: &str, qualifier: &str, timestamp: i64, kind: CellType, sequence_id: u64) -> Cell {
    Cell::new(row.as_bytes(), b"f", qualifier.as_bytes(), timestamp, kind, b"v").with_sequence_id(sequence_id)
}

fn store(cells: &[Cell], scan: &Scan) -> StoreScanner {
    let memstores = [MemStore::new(), MemStore::new()];
    for (n, cell) in cells.iter().enumerate() {
        memstores[n % 2].insert([cell.clone()]);
    }
    let rules = FamilyRules::of(&ColumnFamilyDescriptor { versions: 3, ..Default::default() }, 1000);
    let sources = memstores
        .iter()
        .flat_map(|memstore| memstore.scanners(u64::MAX))
        .map(|scanner| Box::new(scanner) as Box<dyn CellScanner>)
        .collect();
    StoreScanner::new(sources, &StoreScan::of_scan(scan, b"f", rules, u64::MAX).unwrap().unwrap())
}

fn rows(cells: &[Cell], scan: &Scan) -> Vec<String> {
    let options = RegionScanOptions::of_scan(scan, RowRange::of_scan(scan));
    let mut scanner = RegionScanner::new(vec![store(cells, scan)], options);
    let mut rows = Vec::new();
    while let Some(row) = scanner.next().unwrap() {
        let cells: Vec<String> =
            row.cells.iter().map(|cell| format!("{}@{}", cell.qualifier().escape_ascii(), cell.timestamp())).collect();
        rows.push(format!("{}:{}{}", row.row().escape_ascii(), cells.join(","), if row.partial { "+" } else { "" }));
    }
    rows
}

fn sample() -> Vec<Cell> {
    use CellType::{Delete, DeleteColumn, DeleteFamily, Put};
    vec![
        cell("a", "p", 10, Put, 1),
        cell("a", "p", 9, Put, 2),
        cell("a", "q", 8, Put, 3),
        cell("b", "", 20, DeleteFamily, 4),
        cell("b", "p", 20, Put, 5),
        cell("b", "q", 30, Put, 6),
        cell("c", "p", 5, DeleteColumn, 7),
        cell("c", "p", 5, Put, 8),
        cell("d", "p", 5, Delete, 9),
        cell("d", "p", 5, Put, 10),
        cell("d", "p", 4, Put, 11),
    ]
}

#[test]
fn scans_forward_and_back() {
    let mut scan = Scan::new();
    assert_eq!(rows(&sample(), &scan), ["a:p@10,q@8", "b:q@30", "d:p@4"]);
    scan.reversed = true;
    assert_eq!(rows(&sample(), &scan), ["d:p@4", "b:q@30", "a:p@10,q@8"]);
    scan.start_row = "c".into();
    scan.limit = Some(1);
    assert_eq!(rows(&sample(), &scan), ["b:q@30"]);
}

#[test]
fn batches_say_whether_the_row_goes_on() {
    let scan = Scan { batch: Some(1), ..Scan::new() };
    assert_eq!(rows(&sample(), &scan), ["a:p@10+", "a:q@8", "b:q@30", "d:p@4"]);
    let scan = Scan { batch: Some(2), max_versions: 3, ..Scan::new() };
    assert_eq!(rows(&sample(), &scan), ["a:p@10,p@9+", "a:q@8", "b:q@30", "d:p@4"]);
    let scan = Scan { first_cell_only: true, ..Scan::new() };
    assert_eq!(rows(&sample(), &scan), ["a:p@10", "b:q@30", "d:p@4"]);
}

#[test]
fn raw_scans_show_markers() {
    let scan = Scan { raw: true, max_versions: 9, start_row: "b".into(), ..Scan::new() };
    assert_eq!(rows(&sample(), &scan), ["b:@20,p@20,q@30", "c:p@5,p@5", "d:p@5,p@5,p@4"]);
}

#[test]
fn gets_take_named_columns() {
    let get = Get::new("a").column("f", "q").column("f", "x");
    let rules = FamilyRules::of(&ColumnFamilyDescriptor::default(), 1000);
    let scan = StoreScan::of_get(&get, b"f", rules, u64::MAX).unwrap();
    let memstore = MemStore::new();
    memstore.insert(sample());
    let sources = memstore.scanners(u64::MAX).into_iter().map(|s| Box::new(s) as Box<dyn CellScanner>).collect();
    let mut scanner = RegionScanner::new(vec![StoreScanner::new(sources, &scan)], RegionScanOptions::row("a"));
    let row = scanner.next().unwrap().unwrap();
    assert_eq!(row.cells, [cell("a", "q", 8, CellType::Put, 3)]);
    assert!(scanner.next().unwrap().is_none());
    assert!(StoreScan::of_get(&Get::new("a").family("g"), b"f", rules, 0).is_none());
}
