//! Every decoder on its own, on any bytes and on sound ones that were damaged: an answer within its bounds or an error, never a panic.

use super::super::block::{Block, BlockHeader, BlockType};
use super::super::bloom::{BloomMeta, chunk_contains};
use super::super::codec::{Compressor, decompress};
use super::super::data_block::{CellLayout, DataBlock};
use super::super::encoding::{self, BlockEncoder};
use super::super::file_info::{FileInfo, key};
use super::super::index::{IndexBlock, parse_mid_key};
use super::super::last_cell::LastCell;
use super::super::trailer::{TRAILER_LEN, parse_trailer};
use super::*;
use crate::cell::{Tag, encode_tags};
use crate::schema::DataBlockEncoding;
use bytes::Bytes;
use proptest::prelude::*;

const ENCODINGS: [DataBlockEncoding; 5] = [
    DataBlockEncoding::None,
    DataBlockEncoding::Prefix,
    DataBlockEncoding::Diff,
    DataBlockEncoding::FastDiff,
    DataBlockEncoding::RowIndexV1,
];

/// What befalls some bytes.
#[derive(Clone, Debug)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Set(prop::sample::Index, u8),
    Remove(prop::sample::Index),
    Insert(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    /// Repeats what is there.
    Copy(prop::sample::Index, prop::sample::Index, u8),
}

fn damage() -> impl Strategy<Value = Vec<Damage>> {
    let at = any::<prop::sample::Index>;
    let extreme = prop_oneof![Just(0u8), Just(1), Just(0x7f), Just(0x80), Just(0xff), any::<u8>()];
    let one = prop_oneof![
        4 => (at(), 0..8u8).prop_map(|(at, bit)| Damage::Flip(at, 1 << bit)),
        4 => (at(), extreme).prop_map(|(at, byte)| Damage::Set(at, byte)),
        1 => at().prop_map(Damage::Remove),
        1 => (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Insert(at, byte)),
        1 => at().prop_map(Damage::Cut),
        1 => (at(), at(), 1..40u8).prop_map(|(from, to, len)| Damage::Copy(from, to, len)),
    ];
    prop::collection::vec(one, 0..4)
}

fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Bytes {
    for damage in damages {
        let len = bytes.len();
        if len == 0 {
            break;
        }
        match damage {
            Damage::Flip(at, bits) => bytes[at.index(len)] ^= bits,
            Damage::Set(at, byte) => bytes[at.index(len)] = *byte,
            Damage::Remove(at) => {
                bytes.remove(at.index(len));
            }
            Damage::Insert(at, byte) => bytes.insert(at.index(len), *byte),
            Damage::Cut(at) => bytes.truncate(at.index(len)),
            Damage::Copy(from, to, count) => {
                let (from, to) = (from.index(len), to.index(len));
                let count = usize::from(*count).min(len - from.max(to));
                bytes.copy_within(from..from + count, to);
            }
        }
    }
    Bytes::from(bytes)
}

/// Cells with tags, of which every encoding leaves something out.
fn tagged() -> Vec<Cell> {
    let tags = |i: usize| encode_tags(&[Tag { kind: 64, value: format!("tag {}", i % 3).into() }]);
    let tagged = |(i, cell): (usize, Cell)| {
        let (row, family, qualifier) = (cell.row(), cell.family(), cell.qualifier());
        Cell::with_tags(row, family, qualifier, cell.timestamp(), cell.cell_type(), cell.value(), &tags(i))
            .with_sequence_id(cell.sequence_id())
    };
    sample(12).into_iter().enumerate().map(tagged).collect()
}

/// A sound encoded block.
fn encoded(encoding: DataBlockEncoding, layout: CellLayout, compress_tags: bool) -> Vec<u8> {
    let mut encoder = BlockEncoder::new(encoding, layout, compress_tags);
    let mut last = LastCell::default();
    for cell in tagged() {
        encoder.append(&cell, &last, last.row() == cell.row());
        last.set(&cell);
    }
    encoder.finish().to_vec()
}

/// Decodes a block of cells and reads all of them.
fn read_cells(payload: &Bytes, encoding: DataBlockEncoding, layout: CellLayout, compressed: bool) {
    let plain = match encoding {
        DataBlockEncoding::None => Ok(payload.clone()),
        _ => encoding::decode(payload, encoding, layout, compressed),
    };
    let Ok(plain) = plain else { return };
    let Ok(block) = DataBlock::from_plain(plain.clone(), layout) else { return };
    let mut bytes = 0;
    for number in 0..block.len() {
        let cell = block.cell(number).expect("a checked block has its cells");
        bytes += cell.encoded().len();
        // Damaged cells are in no order; the search ends all the same.
        assert!(block.lower_bound(&cell) <= block.len());
        assert!(block.lower_bound_from(&cell, number) <= block.len());
    }
    assert!(bytes <= plain.len() && block.cell(block.len()).is_none());
}

/// The blocks of a kind in a file, without their headers.
fn payloads(bytes: &[u8], kind: BlockType) -> Vec<Vec<u8>> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at + TRAILER_LEN < bytes.len() {
        let header = BlockHeader::parse(&bytes[at..]).unwrap();
        if header.kind == kind {
            found.push(bytes[at + 33..at + header.data_len].to_vec());
        }
        at += header.on_disk_len;
    }
    found
}

/// A sound file with everything that there is.
fn file() -> Vec<u8> {
    let options = HFileWriterOptions { tags: true, ..tiny(Compression::None, BloomType::RowCol) };
    write(&tagged(), options).0
}

fn read_index(index: &IndexBlock) {
    for at in 0..index.len() {
        assert!(index.pointer(at).is_some() && index.key(at).is_some());
    }
    for row in [&b""[..], b"row-00009", b"\xff\xff"] {
        let found = index.find(&Cell::first_on_row(row));
        assert!(index.len() == 0 || found < index.len());
        assert!(index.find_by(|key| key.cmp(row)).is_none_or(|found| found < index.len()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn encodings(which in 0..5usize, tags: bool, sequence_ids: bool, compressed: bool, damages in damage()) {
        let layout = CellLayout { tags, sequence_ids };
        let compressed = compressed && tags;
        let payload = damaged(encoded(ENCODINGS[which], layout, compressed), &damages);
        read_cells(&payload, ENCODINGS[which], layout, compressed);
        // What is read as another form than it was written in is damaged, too.
        read_cells(&payload, ENCODINGS[which], CellLayout { tags: !tags, sequence_ids }, compressed && !tags);
        read_cells(&payload, ENCODINGS[which], CellLayout { tags, sequence_ids: !sequence_ids }, !compressed && tags);
    }

    #[test]
    fn encodings_of_any_bytes(which in 0..5usize, tags: bool, mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let layout = CellLayout { tags, sequence_ids: bytes.len() % 2 == 0 };
        let id = encoded(ENCODINGS[which], layout, false);
        if which > 0 {
            bytes.splice(..0, id[..2].iter().copied());
        }
        read_cells(&Bytes::from(bytes), ENCODINGS[which], layout, tags);
    }

    #[test]
    fn index_blocks(damages in damage(), count in 0..200usize) {
        let bytes = file();
        for kind in [BlockType::LeafIndex, BlockType::IntermediateIndex] {
            let Some(payload) = payloads(&bytes, kind).pop() else { continue };
            if let Ok(index) = IndexBlock::parse(&damaged(payload, &damages)) {
                read_index(&index);
            }
        }
        let root = payloads(&bytes, BlockType::RootIndex).swap_remove(0);
        if let Ok((index, rest)) = IndexBlock::parse_root(&damaged(root, &damages), count) {
            assert_eq!(index.len(), count);
            read_index(&index);
            let _ = parse_mid_key(&rest);
        }
    }

    #[test]
    fn bloom_filters(damages in damage(), key in prop::collection::vec(any::<u8>(), 0..60)) {
        let bytes = file();
        let meta = payloads(&bytes, BlockType::GeneralBloomMeta).swap_remove(0);
        if let Ok(bloom) = BloomMeta::parse(&damaged(meta, &damages)) {
            assert!(bloom.chunk_of(&key).is_none_or(|chunk| chunk < bloom.chunks.len()));
            let chunk = damaged(payloads(&bytes, BlockType::BloomChunk).swap_remove(0), &damages);
            chunk_contains(&chunk, bloom.hashes, &key);
        }
        chunk_contains(&key, 7, &key);
    }

    #[test]
    fn file_infos(damages in damage(), other in prop::collection::vec(any::<u8>(), 0..100)) {
        for payload in [damaged(payloads(&file(), BlockType::FileInfo).swap_remove(0), &damages), Bytes::from(other)] {
            let Ok(info) = FileInfo::parse(&payload) else { continue };
            assert!(info.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() <= payload.len());
            let _ = (info.time_range(), info.i32(key::AVG_KEY_LEN), info.bool(key::TAGS_COMPRESSED), info.i64(key::EARLIEST_PUT));
        }
    }

    #[test]
    fn trailers(damages in damage(), other in prop::collection::vec(any::<u8>(), 0..TRAILER_LEN)) {
        let bytes = file();
        let sound = &bytes[bytes.len() - TRAILER_LEN..];
        // Damage among the fields, which are at the front, and anywhere.
        let front = [&damaged(sound[..150].to_vec(), &damages)[..], &sound[150..]].concat();
        for tail in [front, damaged(sound.to_vec(), &damages).to_vec(), other] {
            if let Ok(trailer) = parse_trailer(&tail) {
                assert!(trailer.len <= tail.len());
            }
        }
    }

    #[test]
    fn blocks_and_codecs(codec in 0..5usize, damages in damage(), size in 0..5000usize) {
        let codec = [Compression::None, Compression::Gz, Compression::Snappy, Compression::Lz4, Compression::Zstd][codec];
        let text: Vec<u8> = (0..3000u32).map(|i| (i / 7 % 50) as u8).collect();
        let mut compressed = Vec::new();
        Compressor::new(codec).unwrap().append(&text, &mut compressed).unwrap();
        let compressed = damaged(compressed, &damages);
        for size in [text.len(), size] {
            if let Ok(plain) = decompress(codec, &compressed, size) {
                assert!(codec == Compression::None || plain.len() == size);
            }
        }
        let bytes = file();
        let _ = Block::decode(&damaged(bytes[..bytes.len() / 2].to_vec(), &damages), Compression::None);
        let _ = BlockHeader::parse(&compressed);
    }
}

/// An index that points to the same block again and again would let a scan go on for longer than the file is.
#[test]
fn an_index_that_goes_back_is_refused() {
    let options = HFileWriterOptions { checksum: ChecksumType::Null, ..tiny(Compression::None, BloomType::None) };
    let (mut bytes, _) = write(&sample(60), options);
    let magic = b"IDXLEAF2";
    let starts: Vec<usize> = (0..bytes.len() - 8).filter(|at| bytes[*at..].starts_with(magic)).collect();
    assert!(starts.len() > 1);
    for start in starts {
        let count = u32::from_be_bytes(bytes[start + 33..start + 37].try_into().unwrap()) as usize;
        let entries = start + 37 + 4 * (count + 1);
        for entry in 1..count {
            let at = start + 37 + 4 * entry;
            let at = entries + u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
            bytes.copy_within(entries..entries + 12, at);
        }
    }
    let reader = open(bytes.clone(), false).unwrap();
    let refused = scan(&mut reader.scanner(ReadOptions::default()));
    assert!(matches!(refused, Err(Error::Corruption { what, .. }) if what.contains("goes back")));
    assert!(verify(MemoryFile::with(bytes)).is_err());
}
