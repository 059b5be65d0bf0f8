use super::*;
use proptest::prelude::*;

#[derive(Default)]
struct Collected {
    records: Vec<(u64, Incoming)>,
    rejects: Vec<(u64, String)>,
}

impl LineSink for Collected {
    fn record(&mut self, line: u64, record: Incoming) {
        self.records.push((line, record));
    }
    fn reject(&mut self, line: u64, reason: String) {
        self.rejects.push((line, reason));
    }
}

fn read(form: ImportForm, text: &[u8], piece: usize) -> Result<Collected, BadHeader> {
    let mut decoder = decoder(form, Arc::default());
    let mut found = Collected::default();
    for piece in text.chunks(piece.max(1)) {
        decoder.push(piece, &mut found)?;
    }
    decoder.finish(&mut found)?;
    Ok(found)
}

/// What a stream means, line by line, whatever the pieces in which it comes.
fn check(form: ImportForm, text: &str, rows: &[(u64, &str)], rejects: &[(u64, &str)]) {
    for piece in [1, 2, 3, 7, 1000] {
        let found = read(form, text.as_bytes(), piece).unwrap();
        let good: Vec<(u64, &str)> =
            found.records.iter().map(|(line, record)| (*line, std::str::from_utf8(&record.row).unwrap())).collect();
        assert_eq!(good, rows, "in pieces of {piece}");
        assert_eq!(found.rejects.len(), rejects.len(), "{:?}", found.rejects);
        for ((line, reason), (expected_line, expected)) in found.rejects.iter().zip(rejects) {
            assert_eq!(line, expected_line, "{reason}");
            assert!(reason.contains(expected), "{reason:?} is not {expected:?}");
        }
    }
}

fn put(family: &'static str, qualifier: &'static str, timestamp: Option<i64>, value: &'static [u8]) -> IncomingCell {
    IncomingCell {
        family: family.into(),
        qualifier: qualifier.into(),
        timestamp,
        cell_type: CellType::Put,
        value: Bytes::from_static(value),
    }
}

fn encode(encoder: &mut dyn Encoder, rows: &[Vec<Cell>], part: usize) -> Vec<u8> {
    let mut out = Vec::new();
    encoder.begin(&mut out);
    for row in rows {
        let parts = row.chunks(part).count();
        for (index, cells) in row.chunks(part).enumerate() {
            encoder.cells(cells, index + 1 < parts, &mut out);
        }
    }
    out
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

fn example() -> Vec<Vec<Cell>> {
    vec![
        vec![
            Cell::new(b"a/b", b"cf", b"", 9, CellType::DeleteFamily, b""),
            Cell::new(b"a/b", b"cf", b"a", 7, CellType::Put, b"x\ty\\\n"),
            Cell::new(b"a/b", b"cf", b"a", 5, CellType::DeleteColumn, b""),
            Cell::new(b"a/b", b"cf", b"b~", 7, CellType::Put, b"\xff,\""),
        ],
        vec![Cell::new(b"\x00z", b"d", b"q", 1, CellType::Put, "\u{e4}".as_bytes())],
    ]
}

#[test]
fn forms_to_the_byte() {
    let versions = text(encode(&mut JsonlEncoder::new(ValueForm::Versions, Arc::default()), &example(), 1));
    assert_eq!(
        versions,
        "{\"row\": \"a%2Fb\", \"cells\": {\"cf:\": [{\"ts\": 9, \"del\": \"family\"}], \
         \"cf:a\": [{\"ts\": 7, \"v\": \"x\\ty\\\\\\n\"}, {\"ts\": 5, \"del\": \"column\"}], \
         \"cf:b%7E\": [{\"ts\": 7, \"v\": {\"$b64\": \"/ywi\"}}]}}\n\
         {\"row\": \"%00z\", \"cells\": {\"d:q\": [{\"ts\": 1, \"v\": \"\u{e4}\"}]}}\n"
    );
    let rows: Vec<Vec<Cell>> =
        example().into_iter().map(|row| row.into_iter().filter(|cell| !cell.is_delete()).collect()).collect();
    let newest = text(encode(&mut JsonlEncoder::new(ValueForm::Newest, Arc::default()), &rows, 10));
    assert_eq!(
        newest,
        "{\"row\": \"a%2Fb\", \"cells\": {\"cf:a\": \"x\\ty\\\\\\n\", \"cf:b%7E\": {\"$b64\": \"/ywi\"}}}\n\
         {\"row\": \"%00z\", \"cells\": {\"d:q\": \"\u{e4}\"}}\n"
    );
    let cells = text(encode(&mut CellsEncoder, &example(), 2));
    assert_eq!(
        cells,
        "a/b\tcf:\t9\tfamily\t\na/b\tcf:a\t7\tput\tx\\ty\\\\\\n\na/b\tcf:a\t5\tcolumn\t\n\
         a/b\tcf:b~\t7\tput\t\\xFF,\"\n\\x00z\td:q\t1\tput\t\u{e4}\n"
    );
    let columns: Vec<(Bytes, Bytes)> = vec![("cf".into(), "a".into()), ("d".into(), "q".into())];
    let tsv = text(encode(&mut TsvEncoder::new(columns.clone(), &ColumnTypes::default()), &rows, 1));
    assert_eq!(tsv, "row\tcf:a\td:q\na/b\tx\\ty\\\\\\n\t\n\\x00z\t\t\u{e4}\n");
    let csv = text(encode(&mut CsvEncoder::new(columns, &ColumnTypes::default()), &rows, 1));
    assert_eq!(csv, "row,cf:a,d:q\na/b,\"x\ty\\\n\",\n\u{0}z,,\u{e4}\n");
}

#[test]
fn jsonl_lines_that_break_the_form_cost_themselves_only() {
    let lines = [
        r#"{"row": "a", "cells": {"cf:q": "v"}}"#,
        "",
        r#"{"row": "b", "cells": {"cf:q": "v"}"#,
        r#"{"cells": {"cf:q": "v"}, "row": "c"}"#,
        r#"{"row": "d/e", "cells": {}}"#,
        r#"{"row": "d", "cells": {"q": "v"}}"#,
        r#"{"row": "d", "cells": {"cf:q": 5}}"#,
        r#"{"row": "d", "cells": {"cf:q": null}}"#,
        r#"{"row": "d", "cells": {"cf:q": {"$b64": "?"}}}"#,
        r#"{"row": "d", "cells": {"cf:q": [{"ts": -1, "v": ""}]}}"#,
        r#"{"row": "d", "cells": {"cf:q": [{"ts": 1, "del": "family"}]}}"#,
        r#"{"row": "d", "cells": {"cf:q": "v"}} x"#,
        r#"{"row": "d", "row": "d", "cells": {}}"#,
        r#"["row"]"#,
        r#"{"row": "z", "cells": {"cf:q": "v"}}"#,
    ];
    check(
        ImportForm::Jsonl,
        &lines.join("\n"),
        &[(1, "a"), (4, "c"), (15, "z")],
        &[
            (3, "EOF"),
            (5, "\"d/e\" spells no row key at column 13"),
            (6, "q spells no column"),
            (7, "expected a text in quotes"),
            (8, "cf:q is null"),
            (9, "$b64"),
            (10, "-1 is not a timestamp"),
            (11, "without a qualifier"),
            (12, "trailing characters"),
            (13, "twice"),
            (14, "expected {\"row\""),
        ],
    );
}

#[test]
fn cells_lines_that_break_the_form_cost_themselves_only() {
    check(
        ImportForm::Cells,
        "a\tcf:q\t1\tput\tv\r\n\nb\tcf:q\t1\tput\nc\tcfq\t1\tput\tv\nd\tcf:q\tx\tput\tv\ne\tcf:q\t1\tputt\tv\n\
         f\tcf:q\t1\tcolumn\tv\n\tcf:q\t1\tput\tv\ng\\q\tcf:q\t1\tput\tv\nh\tcf:q\t+1\tput\tv\nz\tcf:\t0\tfamily\t",
        &[(1, "a"), (11, "z")],
        &[
            (3, "4 fields"),
            (4, "cfq is no column"),
            (5, "x is not a timestamp"),
            (6, "no type putt"),
            (7, "no value"),
            (8, "empty"),
            (9, "no escape \\q"),
            (10, "+1 is not"),
        ],
    );
}

#[test]
fn tsv_lines_that_break_the_form_cost_themselves_only() {
    check(
        ImportForm::Tsv,
        "\u{feff}cf:q\tHBASE_ROW_KEY\tcf:\n1\ta\t\n1\tb\n\n1\t\t1\n\\\tc\t1\n\tz\t",
        &[(2, "a"), (7, "z")],
        &[(3, "2 fields"), (5, "row key is empty"), (6, "backslash at the end")],
    );
    for bad in ["a\tb\n", "row\tq\n", "row\tcf:a\tcf:a\n", "row\trow\n", "row\t:q\n"] {
        let error = read(ImportForm::Tsv, format!("{bad}x\ty\n").as_bytes(), 3).err().unwrap();
        assert!(error.0.starts_with("line 1: "), "{error:?}");
    }
}

#[test]
fn csv_records_that_break_the_form_cost_one_line_only() {
    check(
        ImportForm::Csv,
        "row,cf:a,cf:b\r\na,1,\"x\ny\"\"z\"\nb,1\nc,\"2,3\nd,4,5\ne,6\"x,7\nf,\"8\",9\n\ng,1,\"\nz,,",
        &[(2, "a"), (6, "d"), (8, "f"), (11, "z")],
        &[(4, "2 fields"), (5, "after a closing quote"), (7, "a quote inside"), (10, "not closed")],
    );
    let found = read(ImportForm::Csv, b"row,cf:a\n\"\",1\nx,\"\"\n", 1000).unwrap();
    assert_eq!(found.rejects, [(2, "the row key is empty".to_owned())]);
    assert_eq!(found.records, [(3, Incoming { row: "x".into(), cells: vec![] })]);
    assert!(read(ImportForm::Csv, b"name,age\na,b\n", 1).is_err());
}

#[test]
fn a_long_csv_record_in_small_pieces_is_read_in_time() {
    let mut stream = b"row,cf:a\nr,\"".to_vec();
    stream.extend(std::iter::repeat_n(&b"\"\"\n,"[..], 1 << 19).flatten());
    stream.extend_from_slice(b"\"\ns,1\n");
    let found = read(ImportForm::Csv, &stream, 4096).unwrap();
    assert_eq!((found.records.len(), found.rejects.len()), (2, 0));
    assert_eq!(found.records[0].1.cells[0].value.len(), 3 << 19);
}

#[test]
fn timestamps_and_values_arrive() {
    let found = read(ImportForm::Cells, b"r\tcf:q\t12\tput\ta\\x00\\xff\\\\\n", 5).unwrap();
    assert_eq!(found.records[0].1.cells, [put("cf", "q", Some(12), b"a\x00\xff\\")]);
    let found = read(ImportForm::Tsv, b"row\tcf:q\nr\tv\n", 5).unwrap();
    assert_eq!(found.records[0].1.cells, [put("cf", "q", None, b"v")]);
}

fn any_key(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    let nasty = prop::sample::select(b"\t\n\r\\\",.~%/:x\x00\x7f\xff\xc3\xa4\xef\xbb\xbf ".to_vec());
    prop::collection::vec(prop_oneof![nasty, any::<u8>()], 1..longest)
}

/// Rows in order with distinct cells in order.
fn any_rows() -> impl Strategy<Value = Vec<Vec<Cell>>> {
    let types = prop::sample::select(vec![
        CellType::Put,
        CellType::Put,
        CellType::Delete,
        CellType::DeleteColumn,
        CellType::DeleteFamily,
        CellType::DeleteFamilyVersion,
    ]);
    let family = prop::sample::select(vec![&b"cf"[..], b"a b", b"%", b"\xe4\xff", b"\"'"]);
    let cell = (family, any_key(6), 0..9i64, types, any_key(12), any::<bool>());
    let row = (any_key(8), prop::collection::vec(cell, 1..6));
    prop::collection::btree_map(any_key(8), row, 1..5).prop_map(|rows| {
        rows.into_iter()
            .map(|(row, (_, cells))| {
                let mut cells: Vec<Cell> = cells
                    .into_iter()
                    .map(|(family, qualifier, timestamp, cell_type, value, empty)| {
                        let of_family = matches!(cell_type, CellType::DeleteFamily | CellType::DeleteFamilyVersion);
                        let qualifier = if of_family || empty { &[][..] } else { &qualifier };
                        let value = if cell_type.is_delete() { &[][..] } else { &value };
                        Cell::new(&row, family, qualifier, timestamp, cell_type, value)
                    })
                    .collect();
                cells.sort_by(cellfs::cell::compare);
                cells.dedup_by(|a, b| a.key() == b.key());
                cells
            })
            .collect()
    })
}

fn as_cells(found: &Collected) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (_, record) in &found.records {
        for cell in &record.cells {
            let timestamp = cell.timestamp.unwrap_or(-1);
            cells.push(Cell::new(&record.row, &cell.family, &cell.qualifier, timestamp, cell.cell_type, &cell.value));
        }
    }
    cells
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_cells_and_jsonl_write_they_read_back(rows in any_rows(), part in 1..4usize, piece in 1..40usize) {
        let all: Vec<Cell> = rows.iter().flatten().cloned().collect();
        let written = encode(&mut CellsEncoder, &rows, part);
        let found = read(ImportForm::Cells, &written, piece).unwrap();
        prop_assert_eq!(&found.rejects, &[]);
        prop_assert_eq!(as_cells(&found), all.clone());
        let written = encode(&mut JsonlEncoder::new(ValueForm::Versions, Arc::default()), &rows, part);
        let found = read(ImportForm::Jsonl, &written, piece).unwrap();
        prop_assert_eq!(&found.rejects, &[]);
        prop_assert_eq!(as_cells(&found), all);
    }

    #[test]
    fn whatever_tsv_and_csv_write_they_read_back(rows in any_rows(), part in 1..4usize, piece in 1..40usize) {
        // These forms carry the newest put of each column and no timestamp.
        let mut newest: Vec<Vec<Cell>> = rows;
        for row in &mut newest {
            row.retain(|cell| !cell.is_delete());
            row.dedup_by(|a, b| a.family() == b.family() && a.qualifier() == b.qualifier());
        }
        newest.retain(|row| !row.is_empty());
        let mut columns: Vec<(Bytes, Bytes)> = newest.iter().flatten()
            .map(|cell| (Bytes::copy_from_slice(cell.family()), cell.qualifier_bytes())).collect();
        columns.sort();
        columns.dedup();
        let all: Vec<Cell> = newest.iter().flatten().map(|cell| {
            Cell::new(cell.row(), cell.family(), cell.qualifier(), -1, CellType::Put, cell.value())
        }).collect();
        let sorted = |mut cells: Vec<Cell>| { cells.sort_by(cellfs::cell::compare); cells };
        for form in [ImportForm::Tsv, ImportForm::Csv] {
            let mut encoder: Box<dyn Encoder> = match form {
                ImportForm::Tsv => Box::new(TsvEncoder::new(columns.clone(), &ColumnTypes::default())),
                _ => Box::new(CsvEncoder::new(columns.clone(), &ColumnTypes::default())),
            };
            let written = encode(encoder.as_mut(), &newest, part);
            let found = read(form, &written, piece).unwrap();
            prop_assert_eq!(&found.rejects, &[]);
            prop_assert_eq!(sorted(as_cells(&found)), sorted(all.clone()));
        }
    }

    #[test]
    fn no_stream_breaks_a_decoder(text in prop::collection::vec(any_key(10), 0..30), piece in 1..40usize) {
        for form in [ImportForm::Jsonl, ImportForm::Cells, ImportForm::Tsv, ImportForm::Csv] {
            let _ = read(form, &text.concat(), piece);
            let mut with_header = b"row,cf:a\n".to_vec();
            with_header.extend(text.concat());
            let whole = read(ImportForm::Csv, &with_header, 1 << 20).unwrap();
            let pieces = read(ImportForm::Csv, &with_header, piece).unwrap();
            prop_assert_eq!(&whole.records, &pieces.records);
            prop_assert_eq!(&whole.rejects, &pieces.rejects);
        }
    }
}
