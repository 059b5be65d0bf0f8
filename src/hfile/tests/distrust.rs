//! Damaged files: the right cells or an error that says where, never a panic, never wrong cells.

use super::*;
use crate::cell::{Tag, encode_tags};
use crate::schema::DataBlockEncoding;

const ENCODINGS: [DataBlockEncoding; 5] = [
    DataBlockEncoding::None,
    DataBlockEncoding::Prefix,
    DataBlockEncoding::Diff,
    DataBlockEncoding::FastDiff,
    DataBlockEncoding::RowIndexV1,
];

fn tagged(rows: usize) -> Vec<Cell> {
    let tags = encode_tags(&[Tag { kind: 64, value: "tag".into() }]);
    let with_tags = |cell: &Cell| {
        let parts = (cell.row(), cell.family(), cell.qualifier());
        Cell::with_tags(parts.0, parts.1, parts.2, cell.timestamp(), cell.cell_type(), cell.value(), &tags)
            .with_sequence_id(cell.sequence_id())
    };
    sample(rows).iter().map(with_tags).collect()
}

fn small(encoding: DataBlockEncoding, compression: Compression, checksum: ChecksumType) -> HFileWriterOptions {
    HFileWriterOptions { tags: true, encoding, checksum, block_size: 150, ..tiny(compression, BloomType::Row) }
}

/// Opens and reads all; `None` is an error that names the file.
fn read_all(bytes: Vec<u8>) -> Option<Vec<Cell>> {
    let result = open(bytes, false).and_then(|reader| {
        reader.may_contain_row(b"row-00003")?;
        reader.mid_row()?;
        scan(&mut reader.scanner(ReadOptions::default()))
    });
    match result {
        Ok(cells) => Some(cells),
        Err(Error::Corruption { file, .. } | Error::Unsupported { file, .. }) => {
            assert_eq!(file, Path::new("memory.hfile"));
            None
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn every_flipped_byte_gives_the_right_cells_or_an_error() {
    let cells = tagged(14);
    for (at_codec, encoding) in ENCODINGS.into_iter().enumerate() {
        let codecs = [Compression::None, Compression::Zstd, Compression::Gz, Compression::Lz4, Compression::Snappy];
        let (bytes, _) = write(&cells, small(encoding, codecs[at_codec], ChecksumType::Crc32));
        // Behind the fields the trailer is zeros: some of them stand for all.
        let interesting = |at: &usize| *at < bytes.len() - 3900 || *at > bytes.len() - 8 || at.is_multiple_of(97);
        for at in (0..bytes.len()).filter(interesting) {
            let mut bad = bytes.clone();
            bad[at] ^= 1 << (at % 8);
            if let Some(read) = read_all(bad) {
                assert!(read == cells, "{encoding:?}: wrong cells after byte {at} of {}", bytes.len());
            }
        }
    }
}

#[test]
fn every_truncation_is_an_error() {
    let (bytes, _) = write(&tagged(14), small(DataBlockEncoding::FastDiff, Compression::None, ChecksumType::Crc32));
    for len in 0..bytes.len() {
        assert!(read_all(bytes[..len].to_vec()).is_none(), "{len}");
    }
}

#[test]
fn without_checksums_damage_still_does_not_panic() {
    let cells = tagged(14);
    for encoding in ENCODINGS {
        for compression in
            [Compression::None, Compression::Gz, Compression::Snappy, Compression::Lz4, Compression::Zstd]
        {
            let (bytes, _) = write(&cells, small(encoding, compression, ChecksumType::Null));
            let blocks_end = bytes.len() - 4096;
            for at in (0..blocks_end).step_by(if encoding == DataBlockEncoding::None { 3 } else { 7 }) {
                for value in [0, 0x7f, 0xff] {
                    let mut bad = bytes.clone();
                    bad[at] = value;
                    // Cells may be wrong: nothing protects them. They are cells all the same.
                    for cell in read_all(bad).unwrap_or_default() {
                        assert!(cell.key_len() >= 12 + cell.row().len());
                    }
                }
            }
        }
    }
}

#[test]
fn a_foreign_file_is_refused() {
    assert!(open(Vec::new(), false).is_err());
    assert!(open(vec![0; 5000], false).is_err());
    assert!(open(b"not an HFile".repeat(1000), false).is_err());
}
