use super::*;
use crate::cell::{CellScanner, CellType};

fn put(row: &[u8], timestamp: i64, sequence_id: u64) -> Cell {
    Cell::new(row, b"f", b"q", timestamp, CellType::Put, b"v").with_sequence_id(sequence_id)
}

fn drain(scanner: &mut SegmentScanner) -> Vec<Cell> {
    let mut cells = Vec::new();
    while let Some(cell) = scanner.peek().cloned() {
        cells.push(cell);
        scanner.advance().unwrap();
    }
    cells
}

#[test]
fn cells_come_back_in_order_and_up_to_the_read_point() {
    let memstore = MemStore::new();
    let rows: Vec<Vec<u8>> =
        (0..5000u32).map(|n| format!("row{:08}", n.wrapping_mul(2_654_435_761) % 100_000).into_bytes()).collect();
    for (n, row) in rows.iter().enumerate() {
        memstore.insert([put(row, 1, n as u64 + 1)]);
    }
    let mut expected: Vec<Cell> = rows.iter().enumerate().map(|(n, row)| put(row, 1, n as u64 + 1)).collect();
    expected.sort_by(crate::cell::compare);
    let mut scanner = memstore.scanners(u64::MAX).remove(0);
    scanner.seek(&Cell::first_on_row(b"")).unwrap();
    assert_eq!(drain(&mut scanner), expected);
    let mut scanner = memstore.scanners(1000).remove(0);
    scanner.seek(&Cell::first_on_row(b"")).unwrap();
    expected.retain(|cell| cell.sequence_id() <= 1000);
    assert_eq!(drain(&mut scanner), expected);
    for row in &rows {
        assert!(memstore.may_contain_row(row));
    }
    let wrong = (0..1000).filter(|n| memstore.may_contain_row(format!("absent{n}").as_bytes())).count();
    assert!(wrong < 60, "{wrong} of 1000 absent rows pass the filter");
}

#[test]
fn the_later_of_two_equal_cells_stays() {
    let memstore = MemStore::new();
    let first = Cell::new(b"r", b"f", b"q", 5, CellType::Put, b"first").with_sequence_id(3);
    let second = Cell::new(b"r", b"f", b"q", 5, CellType::Put, b"second").with_sequence_id(3);
    let grown = memstore.insert([first]) + memstore.insert([second.clone()]);
    assert_eq!(memstore.len(), 1);
    let mut scanner = memstore.scanners(9).remove(0);
    scanner.seek(&Cell::first_on_row(b"r")).unwrap();
    assert_eq!(drain(&mut scanner), std::slice::from_ref(&second));
    let alone = MemStore::new();
    assert_eq!(alone.insert([second]), grown);
}

#[test]
fn rows_are_found_backwards_over_invisible_ones() {
    let memstore = MemStore::new();
    memstore.insert([put(b"a", 1, 1), put(b"b", 1, 9), put(b"c", 1, 2), put(b"c", 0, 3), put(b"d", 1, 9)]);
    let mut scanner = memstore.scanners(5).remove(0);
    scanner.seek_to_last_row().unwrap();
    assert_eq!(scanner.peek(), Some(&put(b"c", 1, 2)));
    scanner.seek_to_previous_row(b"c").unwrap();
    assert_eq!(scanner.peek(), Some(&put(b"a", 1, 1)));
    scanner.seek_to_previous_row(b"a").unwrap();
    assert_eq!(scanner.peek(), None);
}

#[test]
fn reseek_goes_forward_from_anywhere() {
    let memstore = MemStore::new();
    let rows: Vec<String> = (0..2000).map(|n| format!("{n:05}")).collect();
    memstore.insert(rows.iter().map(|row| put(row.as_bytes(), 1, 1)));
    let mut scanner = memstore.scanners(1).remove(0);
    scanner.seek(&Cell::first_on_row(b"")).unwrap();
    for row in rows.iter().step_by(7) {
        scanner.reseek(&Cell::first_on_row(row.as_bytes())).unwrap();
        assert_eq!(scanner.peek().unwrap().row(), row.as_bytes());
        scanner.advance().unwrap();
    }
    scanner.reseek(&Cell::first_on_row(b"9")).unwrap();
    assert_eq!(scanner.peek(), None);
    scanner.reseek(&Cell::first_on_row(b"99")).unwrap();
    assert_eq!(scanner.peek(), None);
}

#[test]
fn a_snapshot_is_kept_until_it_is_cleared() {
    let memstore = MemStore::new();
    memstore.insert([put(b"a", 1, 1)]);
    let snapshot = memstore.snapshot();
    memstore.insert([put(b"b", 1, 2)]);
    assert!(Arc::ptr_eq(&snapshot, &memstore.snapshot()));
    assert_eq!((memstore.len(), memstore.scanners(9).len()), (2, 2));
    memstore.clear_snapshot();
    assert_eq!(memstore.len(), 1);
    assert_eq!(snapshot.len(), 1);
}

#[test]
fn markers_widen_the_timestamps_downwards() {
    let segment = Segment::new();
    assert_eq!(segment.timestamps(), None);
    segment.insert([put(b"a", 50, 1), Cell::new(b"a", b"f", b"q", 60, CellType::Delete, b"").with_sequence_id(2)]);
    assert_eq!(segment.timestamps(), Some((50, 60)));
    segment.insert([Cell::new(b"a", b"f", b"q", 70, CellType::DeleteColumn, b"").with_sequence_id(2)]);
    assert_eq!(segment.timestamps(), Some((0, 70)));
    assert_eq!((segment.deletes(), segment.sequence_ids()), (2, Some((1, 2))));
}

#[test]
fn scanners_see_a_consistent_past_while_writers_insert() {
    let memstore = Arc::new(MemStore::new());
    memstore.insert((0..3000u32).map(|n| put(format!("{:06}", n * 10).as_bytes(), 1, 1)));
    std::thread::scope(|scope| {
        let writer = Arc::clone(&memstore);
        scope.spawn(move || {
            for n in 0..20_000u32 {
                let row = format!("{:06}", n.wrapping_mul(7919) % 30_000);
                writer.insert([put(row.as_bytes(), 2, 2 + u64::from(n))]);
            }
        });
        for _ in 0..5 {
            let mut scanner = memstore.scanners(1).remove(0);
            scanner.seek(&Cell::first_on_row(b"")).unwrap();
            let cells = drain(&mut scanner);
            assert_eq!(cells.len(), 3000);
            assert!(cells.windows(2).all(|pair| pair[0].row() < pair[1].row()));
        }
    });
}
