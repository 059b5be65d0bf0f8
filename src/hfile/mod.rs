//! HFile v3: the store files of HBase 2.6, written and read (docs/hfile-format.md, hbase.md section B).
//!
//! Pure: bytes in, cells out. [`HFileWriter`] takes sorted cells of one family; [`HFileReader`] opens a file, ours or HBase's, and gives
//! [`HFileScanner`]s; decoded blocks are kept in a [`BlockCache`]. Nothing found in a file is trusted: lengths are held against the file's
//! size, checksums are verified, every cell is checked, and damage is [`crate::Error::Corruption`] with its place.

mod ahead;
mod block;
mod bloom;
mod bloom_writer;
mod cache;
mod checksum;
mod codec;
mod data_block;
mod describe;
mod encoding;
mod facts;
mod file_info;
mod index;
mod index_writer;
mod info;
mod input;
mod last_cell;
mod output;
mod prefetch;
mod reader;
mod row_prefix;
mod scanner;
#[cfg(test)]
mod tests;
mod trailer;
mod upcoming;
mod verify;
mod write_through;
mod writer;

pub use block::BlockType;
pub use cache::BlockCache;
pub use checksum::ChecksumType;
pub(crate) use codec::{codec_from_ordinal, decompress};
pub use describe::{
    BlockCount, BloomDescription, HFileDescription, IndexLevel, cell_json, cell_type_name, to_string_binary,
};
pub use facts::{HFileSummary, StoreFileInfo};
pub use file_info::FileInfo;
pub use info::{HFileCounters, HFileCounts, HFileInfo};
pub use reader::HFileReader;
pub use scanner::{HFileScanner, ReadOptions};
pub use trailer::FileTrailer;
pub use verify::{VerifiedHFile, verify};
pub use write_through::WriteThrough;
pub use writer::{HFileWriter, HFileWriterOptions};
