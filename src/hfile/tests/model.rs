//! Random cells under random options: what is read is what was written, and every seek agrees with a sorted `Vec`.

use super::*;
use crate::cell::{Tag, encode_tags};
use crate::schema::DataBlockEncoding;
use proptest::prelude::*;

fn name(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    let letter = prop_oneof![Just(0u8), Just(1), Just(b'a'), Just(b'b'), Just(0x7f), Just(0xff)];
    prop::collection::vec(letter, 0..=longest)
}

fn row() -> impl Strategy<Value = Vec<u8>> {
    let long = prop::collection::vec(any::<u8>(), 250..300);
    prop_oneof![20 => name(4), 1 => long].prop_filter("rows are never empty", |row| !row.is_empty())
}

fn tags() -> impl Strategy<Value = Vec<Tag>> {
    let tag = (60u8..70, name(3)).prop_map(|(kind, value)| Tag { kind, value: value.into() });
    prop::collection::vec(tag, 0..3)
}

fn cell() -> impl Strategy<Value = Cell> {
    let kind = prop_oneof![
        4 => Just(CellType::Put),
        1 => Just(CellType::Delete),
        1 => Just(CellType::DeleteColumn),
        1 => Just(CellType::DeleteFamily),
        1 => Just(CellType::DeleteFamilyVersion),
    ];
    let timestamp = prop_oneof![0..4i64, 1000..1300i64, Just(i64::MAX - 1), Just(-3), Just(i64::MIN)];
    let sequence_id = prop_oneof![Just(0u64), 1..200u64, Just(u64::from(u32::MAX) * 9)];
    let value = prop_oneof![5 => name(6), 1 => prop::collection::vec(any::<u8>(), 0..400)];
    (row(), name(3), timestamp, kind, value, tags(), sequence_id).prop_map(
        |(row, qualifier, timestamp, kind, value, tags, sequence_id)| {
            Cell::with_tags(&row, b"fam", &qualifier, timestamp, kind, &value, &encode_tags(&tags))
                .with_sequence_id(sequence_id)
        },
    )
}

fn cells() -> impl Strategy<Value = Vec<Cell>> {
    prop::collection::vec(cell(), 0..250).prop_map(|mut cells| {
        cells.sort_by(compare);
        cells.dedup_by(|later, earlier| compare(later, earlier).is_eq());
        cells
    })
}

prop_compose! {
    fn options()(
        block_size in 1usize..400,
        index_chunk_size in 1usize..400,
        index_entries_min in 1usize..5,
        bloom_chunk_size in 1usize..300,
        compress_tags in any::<bool>(),
        codec in prop::sample::select(vec![Compression::None, Compression::Gz, Compression::Snappy, Compression::Lz4, Compression::Zstd]),
        encoding in prop::sample::select(vec![
            DataBlockEncoding::None, DataBlockEncoding::Prefix, DataBlockEncoding::Diff, DataBlockEncoding::FastDiff,
            DataBlockEncoding::RowIndexV1,
        ]),
        bloom in prop::sample::select(vec![
            BloomType::None, BloomType::Row, BloomType::RowCol, BloomType::RowPrefixFixedLength(2),
        ]),
        checksum in prop::sample::select(vec![ChecksumType::Null, ChecksumType::Crc32, ChecksumType::Crc32c]),
    ) -> HFileWriterOptions {
        HFileWriterOptions {
            block_size, index_chunk_size, index_entries_min, bloom_chunk_size, compress_tags, encoding, bloom, checksum,
            compression: codec, tags: true, sequence_ids: true, created: 5,
        }
    }
}

fn first_of_row<'a>(cells: &'a [Cell], row: Option<&[u8]>) -> Option<&'a Cell> {
    row.and_then(|row| cells.iter().find(|cell| cell.row() == row))
}

/// What a scanner does next.
#[derive(Clone, Debug)]
enum Move {
    Seek(Cell),
    Reseek(Cell),
    Advance(usize),
    PreviousRow(Vec<u8>),
    LastRow,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let key = prop_oneof![
        cell(),
        row().prop_map(|row| Cell::first_on_row(&row)),
        (row(), name(3)).prop_map(|(row, qualifier)| Cell::first_on_column(&row, b"fam", &qualifier)),
    ];
    let key = key.boxed();
    let one = prop_oneof![
        3 => key.clone().prop_map(Move::Seek),
        5 => key.prop_map(Move::Reseek),
        3 => (1usize..9).prop_map(Move::Advance),
        2 => row().prop_map(Move::PreviousRow),
        1 => Just(Move::LastRow),
    ];
    prop::collection::vec(one, 1..80)
}

/// Plays the moves on the file and on the list.
fn play(scanner: &mut HFileScanner, cells: &[Cell], moves: &[Move]) {
    let mut at = None::<usize>;
    let place = |cell: Option<&Cell>| cell.and_then(|cell| cells.iter().position(|other| compare(other, cell).is_eq()));
    for step in moves {
        match step {
            Move::Seek(key) => {
                scanner.seek(key).unwrap();
                at = place(cells.iter().find(|cell| compare(cell, key).is_ge()));
            }
            // The contract of a reseek: the cursor stands on a cell at or before the key.
            Move::Reseek(key) => {
                if at.is_none_or(|at| compare(&cells[at], key).is_gt()) {
                    continue;
                }
                scanner.reseek(key).unwrap();
                at = place(cells.iter().find(|cell| compare(cell, key).is_ge()));
            }
            Move::Advance(times) => {
                for _ in 0..*times {
                    if at.is_some() {
                        scanner.advance().unwrap();
                        at = at.map(|at| at + 1).filter(|at| *at < cells.len());
                    }
                }
            }
            Move::PreviousRow(row) => {
                scanner.seek_to_previous_row(row).unwrap();
                let before = cells.iter().rfind(|cell| cell.row() < &row[..]).map(|cell| cell.row());
                at = place(first_of_row(cells, before));
            }
            Move::LastRow => {
                scanner.seek_to_last_row().unwrap();
                at = place(first_of_row(cells, cells.last().map(|cell| cell.row())));
            }
        }
        assert_eq!(scanner.peek(), at.map(|at| &cells[at]), "after {step:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn files_hold_what_was_written((cells, options, moves) in (cells(), options(), moves())) {
        let (bytes, summary) = write(&cells, options);
        prop_assert_eq!(summary.entries, cells.len() as u64);
        verify(MemoryFile::with(bytes.clone())).unwrap();
        let reader = open(bytes, true).unwrap();
        prop_assert_eq!(&scan(&mut reader.scanner(ReadOptions::streaming())).unwrap(), &cells);
        for cell in &cells {
            prop_assert!(reader.may_contain_column(cell.row(), cell.qualifier()).unwrap());
        }
        play(&mut reader.scanner(ReadOptions::default()), &cells, &moves);
    }
}
