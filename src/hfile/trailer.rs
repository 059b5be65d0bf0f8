//! The fixed trailer at the end of a file (HBase `FixedFileTrailer`, hbase.md B8).
//!
//! ```text
//! magic `TRABLK"$` | varint length | FileTrailerProto | zeros | u8 minor version | u24 major version     4096 bytes (v2: 212)
//! ```

use super::input::{Damage, Input, Parsed};
use bytes::BufMut;
use prost::Message;

/// Bytes of a version 3 trailer.
pub(crate) const TRAILER_LEN: usize = 4096;
const TRAILER_LEN_V2: usize = 212;
const MAGIC: &[u8; 8] = b"TRABLK\"$";
/// Version 3.3: cells with tags, protobuf file info, block checksums.
const VERSION: [u8; 4] = [3, 0, 0, 3];
/// What HBase 2 writes for its ordinary cell order, so that HBase 1 can read the file.
pub(crate) const COMPARATOR: &str = "org.apache.hadoop.hbase.KeyValue$KVComparator";

/// HBase's `FileTrailerProto`. Offsets and sizes in bytes; -1 is stored for offsets of an empty file.
#[derive(Clone, PartialEq, Message)]
pub struct FileTrailer {
    /// Offset of the file info block.
    #[prost(uint64, optional, tag = "1")]
    pub file_info_offset: Option<u64>,
    /// Offset of the first block that is read when the file is opened: the root of the data index.
    #[prost(uint64, optional, tag = "2")]
    pub load_on_open_data_offset: Option<u64>,
    /// Bytes of all data index blocks, uncompressed.
    #[prost(uint64, optional, tag = "3")]
    pub uncompressed_data_index_size: Option<u64>,
    /// Bytes of all blocks and the trailer, uncompressed.
    #[prost(uint64, optional, tag = "4")]
    pub total_uncompressed_bytes: Option<u64>,
    /// Entries of the root data index.
    #[prost(uint32, optional, tag = "5")]
    pub data_index_count: Option<u32>,
    /// Entries of the meta index.
    #[prost(uint32, optional, tag = "6")]
    pub meta_index_count: Option<u32>,
    /// Cells.
    #[prost(uint64, optional, tag = "7")]
    pub entry_count: Option<u64>,
    /// Levels of the data index, the root included.
    #[prost(uint32, optional, tag = "8")]
    pub num_data_index_levels: Option<u32>,
    /// Offset of the first data block.
    #[prost(uint64, optional, tag = "9")]
    pub first_data_block_offset: Option<u64>,
    /// Offset of the last data block.
    #[prost(uint64, optional, tag = "10")]
    pub last_data_block_offset: Option<u64>,
    /// The Java class that orders the cells.
    #[prost(string, optional, tag = "11")]
    pub comparator_class_name: Option<String>,
    /// HBase's ordinal of the codec.
    #[prost(uint32, optional, tag = "12")]
    pub compression_codec: Option<u32>,
    /// A wrapped key, in encrypted files.
    #[prost(bytes = "vec", optional, tag = "13")]
    pub encryption_key: Option<Vec<u8>>,
}

/// A trailer as found in a file.
#[derive(Clone, Debug)]
pub(crate) struct ParsedTrailer {
    pub fields: FileTrailer,
    pub major: u32,
    pub minor: u8,
    /// Bytes of the trailer at the end of the file.
    pub len: usize,
}

/// Parses the trailer at the end of `tail`, the file's last (at most 4096) bytes.
pub(crate) fn parse_trailer(tail: &[u8]) -> Parsed<ParsedTrailer> {
    let [minor, high, mid, low] = *tail.last_chunk::<4>().ok_or_else(|| Damage::new("the file has no trailer"))?;
    let major = u32::from_be_bytes([0, high, mid, low]);
    let len = match major {
        2 => TRAILER_LEN_V2,
        3 => TRAILER_LEN,
        _ => return Err(Damage::new(format!("this is no HFile of version 2 or 3 (version field {major}.{minor})"))),
    };
    let start = tail.len().checked_sub(len).ok_or_else(|| Damage::new("the file is shorter than a trailer"))?;
    let mut input = Input::new(tail.get(start..tail.len() - 4).unwrap_or(&[]));
    if input.take(8)? != MAGIC {
        return Err(Damage::new("the trailer does not begin with its magic"));
    }
    let length = input.compressed_int()?;
    let fields = FileTrailer::decode(input.take(length)?)
        .map_err(|error| Damage::new(format!("the trailer is no FileTrailerProto: {error}")))?;
    if input.rest().iter().any(|byte| *byte != 0) {
        return Err(Damage::new("the trailer's padding is not zero"));
    }
    Ok(ParsedTrailer { fields, major, minor, len })
}

/// Appends a version 3.3 trailer.
pub(crate) fn append_trailer(out: &mut Vec<u8>, fields: &FileTrailer) {
    let end = out.len() + TRAILER_LEN;
    out.put_slice(MAGIC);
    out.put_slice(&fields.encode_length_delimited_to_vec());
    out.resize(end - VERSION.len(), 0);
    out.put_slice(&VERSION);
}
