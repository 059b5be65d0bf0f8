//! A block: 33 bytes of header, the payload (compressed), its checksums (HBase `HFileBlock`, hbase.md B1).
//!
//! ```text
//!  0  magic                     8
//!  8  on-disk size, no header   4   payload and checksums
//! 12  uncompressed size         4   payload before compression
//! 16  previous block offset     8   of the same kind; -1 for the first
//! 24  checksum type             1
//! 25  bytes per checksum        4
//! 29  on-disk data size         4   header and payload
//! 33  payload, checksums
//! ```

use super::checksum::{ChecksumType, append_checksums, checksums_len, verify_checksums};
use super::codec;
use super::input::{Damage, Input, Parsed};
use crate::schema::Compression;
use bytes::{BufMut, Bytes};

/// Bytes of a block's header.
pub(crate) const BLOCK_HEADER_LEN: usize = 33;
/// Bytes that one checksum covers in files written here (HBase's default).
pub(crate) const BYTES_PER_CHECKSUM: usize = 16384;

/// What a block holds (HBase `BlockType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BlockType {
    /// Cells in the plain layout.
    Data,
    /// Cells in a data block encoding.
    EncodedData,
    /// Lowest level of a multi-level index.
    LeafIndex,
    /// One chunk of a bloom filter.
    BloomChunk,
    /// A named block beside the data.
    Meta,
    /// A level between root and leaves.
    IntermediateIndex,
    /// Root of the data index or of the index of meta blocks.
    RootIndex,
    /// The file's properties.
    FileInfo,
    /// Parameters and index of the general bloom filter.
    GeneralBloomMeta,
    /// Parameters and index of the delete-family bloom filter.
    DeleteFamilyBloomMeta,
}

const TYPES: [(BlockType, &[u8; 8], &str); 10] = [
    (BlockType::Data, b"DATABLK*", "DATA"),
    (BlockType::EncodedData, b"DATABLKE", "ENCODED_DATA"),
    (BlockType::LeafIndex, b"IDXLEAF2", "LEAF_INDEX"),
    (BlockType::BloomChunk, b"BLMFBLK2", "BLOOM_CHUNK"),
    (BlockType::Meta, b"METABLKc", "META"),
    (BlockType::IntermediateIndex, b"IDXINTE2", "INTERMEDIATE_INDEX"),
    (BlockType::RootIndex, b"IDXROOT2", "ROOT_INDEX"),
    (BlockType::FileInfo, b"FILEINF2", "FILE_INFO"),
    (BlockType::GeneralBloomMeta, b"BLMFMET2", "GENERAL_BLOOM_META"),
    (BlockType::DeleteFamilyBloomMeta, b"DFBLMET2", "DELETE_FAMILY_BLOOM_META"),
];

impl BlockType {
    fn entry(self) -> (&'static [u8; 8], &'static str) {
        TYPES.iter().find(|entry| entry.0 == self).map_or((b"DATABLK*", "DATA"), |entry| (entry.1, entry.2))
    }

    fn from_magic(magic: &[u8]) -> Parsed<BlockType> {
        TYPES
            .iter()
            .find(|entry| entry.1 == magic)
            .map(|entry| entry.0)
            .ok_or_else(|| Damage::new("no block begins here: its magic is unknown"))
    }

    /// HBase's name of the type.
    pub fn name(self) -> &'static str {
        self.entry().1
    }

    /// True for the two kinds that hold cells; they share one chain of previous offsets.
    pub fn is_data(self) -> bool {
        matches!(self, BlockType::Data | BlockType::EncodedData)
    }

    /// The kind whose chain of previous offsets this one belongs to.
    pub(crate) fn chain(self) -> BlockType {
        if self.is_data() { BlockType::Data } else { self }
    }
}

/// The header of a block, its lengths consistent with each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockHeader {
    pub kind: BlockType,
    /// Header, payload, checksums.
    pub on_disk_len: usize,
    pub uncompressed_len: usize,
    pub previous: i64,
    pub checksum: ChecksumType,
    pub bytes_per_checksum: usize,
    /// Header and payload.
    pub data_len: usize,
}

impl BlockHeader {
    pub(crate) fn parse(bytes: &[u8]) -> Parsed<BlockHeader> {
        let mut input = Input::new(bytes);
        let kind = BlockType::from_magic(input.take(8)?)?;
        let on_disk_len = BLOCK_HEADER_LEN + input.length()?;
        let uncompressed_len = input.length()?;
        let previous = input.i64()?;
        let checksum = ChecksumType::from_code(input.u8()?)?;
        let bytes_per_checksum = input.length()?;
        let data_len = input.length()?;
        if bytes_per_checksum == 0
            || data_len < BLOCK_HEADER_LEN
            || data_len + checksums_len(data_len, bytes_per_checksum) != on_disk_len
        {
            return Err(Damage::new("the sizes in a block header contradict each other"));
        }
        Ok(BlockHeader { kind, on_disk_len, uncompressed_len, previous, checksum, bytes_per_checksum, data_len })
    }
}

/// A verified, decompressed block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub header: BlockHeader,
    pub payload: Bytes,
}

impl Block {
    /// The block in `raw`, which is exactly its bytes on disk. Without compression the payload shares them.
    pub(crate) fn decode(raw: &Bytes, codec: Compression) -> Parsed<Block> {
        let header = BlockHeader::parse(raw)?;
        if header.on_disk_len != raw.len() {
            return Err(Damage::new(format!(
                "a block says it has {} bytes where its index says {}",
                header.on_disk_len,
                raw.len()
            )));
        }
        let (data, sums) = raw.split_at_checked(header.data_len).unwrap_or((raw, &[]));
        verify_checksums(data, sums, header.checksum, header.bytes_per_checksum)?;
        let stored = raw.slice(BLOCK_HEADER_LEN..header.data_len);
        let payload = if codec == Compression::None {
            if stored.len() != header.uncompressed_len {
                return Err(Damage::new("an uncompressed block is not as long as its header says"));
            }
            stored
        } else {
            Bytes::from(codec::decompress(codec, &stored, header.uncompressed_len)?)
        };
        Ok(Block { header, payload })
    }

    pub(crate) fn expect(&self, kind: BlockType) -> Parsed<()> {
        if self.header.kind == kind {
            return Ok(());
        }
        Err(Damage::new(format!("a {} block stands where a {} was due", self.header.kind.name(), kind.name())))
    }
}

/// Appends a block to `out` whose payload, compressed, is `stored`; returns its length on disk.
pub(crate) fn append_block(
    out: &mut Vec<u8>,
    kind: BlockType,
    stored: &[u8],
    uncompressed_len: usize,
    previous: i64,
    checksum: ChecksumType,
) -> usize {
    let start = out.len();
    out.put_slice(kind.entry().0);
    out.put_bytes(0, 4);
    out.put_u32(uncompressed_len as u32);
    out.put_i64(previous);
    out.put_u8(checksum.code());
    out.put_u32(BYTES_PER_CHECKSUM as u32);
    out.put_bytes(0, 4);
    out.extend_from_slice(stored);
    let data_len = out.len() - start;
    let sums_len = checksums_len(data_len, BYTES_PER_CHECKSUM);
    patch(out, start + 8, (data_len - BLOCK_HEADER_LEN + sums_len) as u32);
    patch(out, start + 29, data_len as u32);
    append_checksums(out, start, checksum, BYTES_PER_CHECKSUM);
    out.len() - start
}

fn patch(out: &mut [u8], at: usize, value: u32) {
    if let Some(field) = out.get_mut(at..at + 4) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(codec: Compression, checksum: ChecksumType) -> Vec<u8> {
        let mut out = Vec::new();
        let payload: Vec<u8> = (0..40_000u32).map(|i| (i / 100) as u8).collect();
        let mut stored = Vec::new();
        codec::Compressor::new(codec).unwrap().append(&payload, &mut stored).unwrap();
        let len = append_block(&mut out, BlockType::Data, &stored, payload.len(), 77, checksum);
        assert_eq!(len, out.len());
        out
    }

    #[test]
    fn a_block_comes_back_under_every_checksum() {
        for checksum in [ChecksumType::Null, ChecksumType::Crc32, ChecksumType::Crc32c] {
            for codec in [Compression::None, Compression::Lz4] {
                let raw = Bytes::from(block(codec, checksum));
                let decoded = Block::decode(&raw, codec).unwrap();
                assert_eq!((decoded.header.previous, decoded.payload.len()), (77, 40_000));
                assert_eq!(decoded.payload[39_999], 399u32 as u8);
            }
        }
    }

    #[test]
    fn every_flipped_byte_is_found() {
        let raw = block(Compression::Lz4, ChecksumType::Crc32);
        for at in 0..raw.len() {
            let mut bad = raw.clone();
            bad[at] ^= 0x10;
            assert!(Block::decode(&Bytes::from(bad), Compression::Lz4).is_err(), "byte {at}");
        }
    }
}
