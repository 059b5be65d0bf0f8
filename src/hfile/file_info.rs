//! The file info block: a file's properties by name (HBase `HFileInfo`, hbase.md B6).
//!
//! Payload: `"PBUF" | varint length | FileInfoProto { repeated BytesBytesPair { first = 1, second = 2 } = 1 }`, sorted by key.

use super::input::{Damage, Input, Parsed};
use bytes::Bytes;
use prost::Message;
use std::collections::BTreeMap;

/// Names of the properties, as HBase spells them.
pub(crate) mod key {
    pub const LAST_KEY: &str = "hfile.LASTKEY";
    pub const AVG_KEY_LEN: &str = "hfile.AVG_KEY_LEN";
    pub const AVG_VALUE_LEN: &str = "hfile.AVG_VALUE_LEN";
    pub const CREATE_TIME: &str = "hfile.CREATE_TIME_TS";
    pub const MAX_TAGS_LEN: &str = "hfile.MAX_TAGS_LEN";
    pub const TAGS_COMPRESSED: &str = "hfile.TAGS_COMPRESSED";
    pub const KEY_OF_BIGGEST_CELL: &str = "hfile.KEY_OF_BIGGEST_CELL";
    pub const LEN_OF_BIGGEST_CELL: &str = "hfile.LEN_OF_BIGGEST_CELL";
    pub const KEY_VALUE_VERSION: &str = "KEY_VALUE_VERSION";
    pub const MAX_MEMSTORE_TS: &str = "MAX_MEMSTORE_TS_KEY";
    pub const DATA_BLOCK_ENCODING: &str = "DATA_BLOCK_ENCODING";
    pub const INDEX_BLOCK_ENCODING: &str = "INDEX_BLOCK_ENCODING";
    pub const MAX_SEQ_ID: &str = "MAX_SEQ_ID_KEY";
    pub const MAJOR_COMPACTION: &str = "MAJOR_COMPACTION_KEY";
    pub const COMPACTION_EVENT: &str = "COMPACTION_EVENT_KEY";
    pub const TIME_RANGE: &str = "TIMERANGE";
    pub const EARLIEST_PUT: &str = "EARLIEST_PUT_TS";
    pub const BLOOM_TYPE: &str = "BLOOM_FILTER_TYPE";
    pub const BLOOM_PARAM: &str = "BLOOM_FILTER_PARAM";
    pub const LAST_BLOOM_KEY: &str = "LAST_BLOOM_KEY";
    pub const DELETE_FAMILY_COUNT: &str = "DELETE_FAMILY_COUNT";
    pub const BULKLOAD_TIMESTAMP: &str = "BULKLOAD_TIMESTAMP";
    pub const HISTORICAL: &str = "HISTORICAL";
}

/// In front of every protobuf that HBase stores by itself.
pub(crate) const PROTOBUF_MAGIC: &[u8; 4] = b"PBUF";

#[derive(Clone, PartialEq, Message)]
struct BytesBytesPair {
    #[prost(bytes = "bytes", tag = "1")]
    first: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    second: Bytes,
}

#[derive(Clone, PartialEq, Message)]
struct FileInfoProto {
    #[prost(message, repeated, tag = "1")]
    entries: Vec<BytesBytesPair>,
}

#[derive(Clone, PartialEq, Message)]
struct CompactionEventTracker {
    #[prost(string, repeated, tag = "1")]
    compacted_store_file: Vec<String>,
}

/// The value of COMPACTION_EVENT_KEY: `PBUF` and a CompactionEventTracker.
pub(crate) fn compaction_event(names: &[String]) -> Vec<u8> {
    let tracker = CompactionEventTracker { compacted_store_file: names.to_vec() };
    let mut out = PROTOBUF_MAGIC.to_vec();
    out.extend(tracker.encode_to_vec());
    out
}

#[derive(Clone, PartialEq, Message)]
struct TimeRangeTracker {
    #[prost(int64, optional, tag = "1")]
    from: Option<i64>,
    #[prost(int64, optional, tag = "2")]
    to: Option<i64>,
}

/// A file's properties, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileInfo {
    entries: BTreeMap<Bytes, Bytes>,
}

impl FileInfo {
    pub(crate) fn parse(payload: &Bytes) -> Parsed<FileInfo> {
        let mut input = Input::new(payload);
        if input.take(4)? != PROTOBUF_MAGIC {
            return Err(Damage::new("the file info does not begin with PBUF"));
        }
        let length = input.compressed_int()?;
        let body = super::input::share(payload, input.take(length)?);
        let proto = FileInfoProto::decode(body)
            .map_err(|error| Damage::new(format!("the file info is no FileInfoProto: {error}")))?;
        Ok(FileInfo { entries: proto.entries.into_iter().map(|pair| (pair.first, pair.second)).collect() })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let entries = self.entries.iter().map(|(k, v)| BytesBytesPair { first: k.clone(), second: v.clone() });
        let mut out = PROTOBUF_MAGIC.to_vec();
        out.extend(FileInfoProto { entries: entries.collect() }.encode_length_delimited_to_vec());
        out
    }

    pub(crate) fn set(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.entries.insert(Bytes::copy_from_slice(name.as_bytes()), Bytes::copy_from_slice(value.as_ref()));
    }

    /// Java's boolean: every bit set is true.
    pub(crate) fn set_bool(&mut self, name: &str, value: bool) {
        self.set(name, [if value { 0xff } else { 0 }]);
    }

    /// The bytes of a property.
    pub fn get(&self, name: &str) -> Option<&Bytes> {
        self.entries.get(name.as_bytes())
    }

    /// All properties by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Bytes, &Bytes)> {
        self.entries.iter()
    }

    pub(crate) fn i64(&self, name: &str) -> Parsed<Option<i64>> {
        self.fixed::<8>(name).map(|be| be.map(i64::from_be_bytes))
    }

    pub(crate) fn i32(&self, name: &str) -> Parsed<Option<i32>> {
        self.fixed::<4>(name).map(|be| be.map(i32::from_be_bytes))
    }

    pub(crate) fn bool(&self, name: &str) -> Parsed<Option<bool>> {
        self.fixed::<1>(name).map(|be| be.map(|[byte]| byte != 0))
    }

    fn fixed<const N: usize>(&self, name: &str) -> Parsed<Option<[u8; N]>> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => match <[u8; N]>::try_from(&value[..]) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(_) => Err(Damage::new(format!("file info {name} is not {N} bytes wide"))),
            },
        }
    }

    /// Oldest and newest timestamp (HBase `TimeRangeTracker`: 16 bytes, or a protobuf); `None` without cells.
    pub(crate) fn time_range(&self) -> Parsed<Option<(i64, i64)>> {
        let Some(value) = self.get(key::TIME_RANGE) else { return Ok(None) };
        let (min, max) = match value.strip_prefix(PROTOBUF_MAGIC) {
            Some(proto) => {
                let tracker = TimeRangeTracker::decode(proto)
                    .map_err(|error| Damage::new(format!("file info TIMERANGE: {error}")))?;
                (tracker.from.unwrap_or(i64::MAX), tracker.to.unwrap_or(-1))
            }
            None => {
                let mut input = Input::new(value);
                (input.i64()?, input.i64()?)
            }
        };
        Ok((min <= max).then_some((min, max)))
    }
}
