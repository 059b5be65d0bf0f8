//! A log, entry by entry.
//!
//! ```text
//! log     = "PWAL" | varint length | WALHeader | entry ... | [WALTrailer | i32 its length | "LAWP"]
//! entry   = varint length | WALKey | cells, as many as the key says (cells.rs)
//! ```
//!
//! The trailer is there after a clean end. A log without one ends where its last whole entry ends: what follows was never acknowledged.

use super::cells::{CellForm, CompressedForm};
use super::dictionary::{Dictionaries, Dictionary};
use super::input::{Fault, LogInput, Read, damaged};
use crate::cell::Cell;
use crate::error::{Error, Result};
use crate::hfile::codec_from_ordinal;
use bytes::Bytes;
use prost::Message;
use std::path::Path;

const MAGIC: &[u8; 4] = b"PWAL";
const END_MAGIC: &[u8; 4] = b"LAWP";
/// The ordinal of GZ, which value compression uses unless it is told otherwise (`hbase.regionserver.wal.value.compression.type`).
const GZ: u32 = 1;
const WRITERS: [&str; 2] = ["ProtobufLogWriter", "AsyncProtobufLogWriter"];
const CODEC: &str = "org.apache.hadoop.hbase.regionserver.wal.WALCellCodec";

/// HBase's `WALHeader`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WalHeader {
    #[prost(bool, tag = "1")]
    pub(super) has_compression: bool,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(super) encryption_key: Option<Bytes>,
    #[prost(bool, tag = "3")]
    pub(super) has_tag_compression: bool,
    #[prost(string, optional, tag = "4")]
    pub(super) writer_class: Option<String>,
    #[prost(string, optional, tag = "5")]
    pub(super) codec_class: Option<String>,
    #[prost(bool, tag = "6")]
    pub(super) has_value_compression: bool,
    #[prost(uint32, optional, tag = "7")]
    pub(super) value_codec: Option<u32>,
}

/// HBase's `FamilyScope`: read because a compressed log's dictionary learns from it.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct FamilyScope {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) family: Bytes,
    #[prost(int32, tag = "2")]
    pub(super) scope: i32,
}

/// HBase's `WALKey`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct WalKey {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) region: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) table: Bytes,
    #[prost(uint64, tag = "3")]
    pub(super) sequence_id: u64,
    #[prost(uint64, tag = "4")]
    pub(super) write_time: u64,
    #[prost(message, repeated, tag = "6")]
    pub(super) scopes: Vec<FamilyScope>,
    #[prost(uint32, tag = "7")]
    pub(super) cells: u32,
}

/// One atomic list of cells of one region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::hbase_root) struct LogEntry {
    /// The region's encoded name.
    pub(in crate::hbase_root) region: Bytes,
    /// Its place in the order of the region's changes; the cells have it, too.
    pub(in crate::hbase_root) sequence_id: u64,
    /// The cells.
    pub(in crate::hbase_root) cells: Vec<Cell>,
}

/// How a log ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::hbase_root) enum LogEnd {
    /// With its last entry.
    Whole,
    /// In the middle of an entry, as after a crash: at this byte, with so many left.
    Torn(usize, usize),
    /// At bytes that are no entry: where, and what is wrong. Nothing behind them was read.
    Damaged(usize, String),
}

/// Reads a log.
pub(in crate::hbase_root) struct WalReader {
    pub(super) input: LogInput,
    len: usize,
    has_trailer: bool,
    form: CellForm,
    end: Option<LogEnd>,
}

impl WalReader {
    /// The log in `bytes`; `recovered_edits` for one below a region. `None`: it ends before its first entry, as one does that was just begun.
    ///
    /// # Errors
    /// [`Error::Corruption`] for what is no log, [`Error::Unsupported`] for an encrypted one or one of another writer.
    pub(in crate::hbase_root) fn new(bytes: Bytes, path: &Path, recovered_edits: bool) -> Result<Option<WalReader>> {
        let mut input = LogInput::new(bytes.clone());
        let header = match read_header(&mut input) {
            Ok(header) => header,
            Err(Fault::Torn) => return Ok(None),
            Err(Fault::Damaged(what)) => return Err(Error::corruption(path, input.position() as u64, what)),
        };
        let form =
            form_of(&header, recovered_edits).map_err(|what| Error::Unsupported { file: path.to_path_buf(), what })?;
        let trailer = trailer_start(&bytes).filter(|start| *start >= input.position());
        if let Some(start) = trailer {
            input.cut(start);
        }
        Ok(Some(WalReader { input, len: bytes.len(), has_trailer: trailer.is_some(), form, end: None }))
    }

    /// The next entry; `None` at the end, of which [`WalReader::end`] tells.
    pub(in crate::hbase_root) fn next(&mut self) -> Option<LogEntry> {
        if self.end.is_some() {
            return None;
        }
        let start = self.input.position();
        if self.input.is_at_end() {
            self.end = Some(LogEnd::Whole);
            return None;
        }
        match self.read_entry() {
            Ok(entry) => Some(entry),
            Err(fault) => {
                self.end = Some(match fault {
                    Fault::Torn if self.has_trailer => {
                        LogEnd::Damaged(start, "an entry reaches into the trailer".to_owned())
                    }
                    Fault::Torn => LogEnd::Torn(start, self.len - start),
                    Fault::Damaged(what) => LogEnd::Damaged(start, what),
                });
                None
            }
        }
    }

    /// How the log ended, once [`WalReader::next`] has said `None`.
    pub(in crate::hbase_root) fn end(&self) -> LogEnd {
        self.end.clone().unwrap_or(LogEnd::Whole)
    }

    fn read_entry(&mut self) -> Read<LogEntry> {
        if self.input.is_only_a_tail() {
            return Err(Fault::Torn);
        }
        let length = self.input.varint()?;
        let bytes = self.input.take(length)?;
        let key = WalKey::decode(bytes).or_else(|error| damaged(format!("this is no WALKey: {error}")))?;
        let region = self.region_of(&key)?;
        if region.is_empty() {
            return damaged("a WALKey names no region");
        }
        let mut cells = Vec::new();
        for _ in 0..key.cells {
            cells.push(self.form.read(&mut self.input, key.sequence_id)?);
        }
        Ok(LogEntry { region, sequence_id: key.sequence_id, cells })
    }

    /// The region's name. All names of the key pass through the dictionaries, in the order in which HBase reads them.
    fn region_of(&mut self, key: &WalKey) -> Read<Bytes> {
        let CellForm::Compressed(form) = &mut self.form else { return Ok(key.region.clone()) };
        let dictionaries = &mut form.dictionaries;
        let region = expand(&key.region, &mut dictionaries.region)?;
        expand(&key.table, &mut dictionaries.table)?;
        for scope in &key.scopes {
            expand(&scope.family, &mut dictionaries.family)?;
        }
        Ok(region)
    }
}

/// A name of a key, which is a dictionary value by itself.
fn expand(name: &Bytes, dictionary: &mut Dictionary) -> Read<Bytes> {
    dictionary.read(&mut LogInput::new(name.clone())).map_err(|fault| match fault {
        Fault::Torn => Fault::Damaged("a name in a WALKey ends early".to_owned()),
        damaged => damaged,
    })
}

fn read_header(input: &mut LogInput) -> Read<WalHeader> {
    if input.take(MAGIC.len())? != MAGIC[..] {
        return damaged("this is no write-ahead log: it does not begin with PWAL");
    }
    let length = input.varint()?;
    WalHeader::decode(input.take(length)?).or_else(|error| damaged(format!("this is no WALHeader: {error}")))
}

/// How the cells are written, or what about it is not known here.
fn form_of(header: &WalHeader, recovered_edits: bool) -> std::result::Result<CellForm, String> {
    if header.encryption_key.is_some() {
        return Err("an encrypted write-ahead log".to_owned());
    }
    if let Some(writer) = header.writer_class.as_deref().filter(|writer| !WRITERS.contains(writer)) {
        return Err(format!("a write-ahead log of {writer}"));
    }
    if let Some(codec) = header.codec_class.as_deref().filter(|codec| *codec != CODEC) {
        return Err(format!("a write-ahead log whose cells are in the form of {codec}"));
    }
    if !header.has_compression {
        return Ok(CellForm::Plain);
    }
    let values = if header.has_value_compression {
        let codec = codec_from_ordinal(header.value_codec.unwrap_or(GZ));
        Some(codec.map_err(|name| format!("a write-ahead log with values in {name}"))?)
    } else {
        None
    };
    let dictionaries = Dictionaries::new(recovered_edits);
    Ok(CellForm::Compressed(Box::new(CompressedForm { dictionaries, tags: header.has_tag_compression, values })))
}

/// Where the trailer begins, if there is one. A `WALTrailer` has no fields, so its length is 0; another one is no trailer, and is told of as what
/// it then is, bytes that are no entry.
fn trailer_start(bytes: &Bytes) -> Option<usize> {
    let (rest, length) = bytes.strip_suffix(END_MAGIC)?.split_last_chunk::<4>()?;
    (*length == [0; 4]).then_some(rest.len())
}
