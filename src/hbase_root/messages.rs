//! HBase's protobuf messages as far as a root directory holds them (HBase's `HBase.proto`, `FS.proto`, `Snapshot.proto`, `WAL.proto`,
//! `HFile.proto`, `StoreFileTracker.proto`): fields that nothing here needs are left out, and passed over when they are met.

use crate::error::{Error, Result};
pub(super) use crate::region::{PROTOBUF_MAGIC as MAGIC, RegionInfoMessage, TableNameMessage};
use bytes::Bytes;
use prost::Message;
use std::path::Path;

/// `BytesBytesPair`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct BytesPair {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) first: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) second: Bytes,
}

/// `NameStringPair`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct NamePair {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

/// `ColumnFamilySchema`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ColumnFamilySchema {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) name: Bytes,
    #[prost(message, repeated, tag = "2")]
    pub(super) attributes: Vec<BytesPair>,
    #[prost(message, repeated, tag = "3")]
    pub(super) configuration: Vec<NamePair>,
}

/// `TableSchema`: a table's descriptor.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TableSchema {
    #[prost(message, optional, tag = "1")]
    pub(super) table_name: Option<TableNameMessage>,
    #[prost(message, repeated, tag = "2")]
    pub(super) attributes: Vec<BytesPair>,
    #[prost(message, repeated, tag = "3")]
    pub(super) families: Vec<ColumnFamilySchema>,
    #[prost(message, repeated, tag = "4")]
    pub(super) configuration: Vec<NamePair>,
}

/// `NamespaceDescriptor`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct NamespaceMessage {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) name: Bytes,
    #[prost(message, repeated, tag = "2")]
    pub(super) configuration: Vec<NamePair>,
}

/// `TableState`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TableStateMessage {
    /// 0 enabled, 1 disabled, 2 disabling, 3 enabling.
    #[prost(int32, tag = "1")]
    pub(super) state: i32,
}

/// `Reference`: half a store file, or all of it.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct ReferenceMessage {
    /// A flat key whose row is the border.
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) split_key: Bytes,
    /// 0 top: from the border on; 1 bottom: before it.
    #[prost(int32, tag = "2")]
    pub(super) range: i32,
}

/// `HBaseVersionFileContent`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct VersionMessage {
    #[prost(string, tag = "1")]
    pub(super) version: String,
}

/// `CompactionEventTracker`: the files that a compaction replaced by the one that says so.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct CompactionEvent {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub(super) replaced: Vec<Bytes>,
}

/// `StoreFileEntry` of a tracker's list.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct TrackedFile {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// Since HBase 2.7 a reference may stand in the list in place of a file of its own.
    #[prost(message, optional, tag = "3")]
    pub(super) reference: Option<ReferenceMessage>,
}

/// `StoreFileList`: what a FILE store file tracker holds to be the store.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct StoreFileList {
    #[prost(uint64, tag = "1")]
    pub(super) timestamp: u64,
    #[prost(message, repeated, tag = "2")]
    pub(super) files: Vec<TrackedFile>,
}

/// `SnapshotDescription`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SnapshotMessage {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    /// `namespace:table`, or `table` in the namespace `default`.
    #[prost(string, tag = "2")]
    pub(super) table: String,
    /// Milliseconds since the epoch.
    #[prost(int64, tag = "3")]
    pub(super) created: i64,
    /// 0: regions as directories; 2: manifests.
    #[prost(int32, tag = "5")]
    pub(super) version: i32,
}

/// `SnapshotRegionManifest.StoreFile`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SnapshotFile {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, optional, tag = "2")]
    pub(super) reference: Option<ReferenceMessage>,
}

/// `SnapshotRegionManifest.FamilyFiles`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SnapshotFamily {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) family: Bytes,
    #[prost(message, repeated, tag = "2")]
    pub(super) files: Vec<SnapshotFile>,
}

/// `SnapshotRegionManifest`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SnapshotRegion {
    #[prost(message, optional, tag = "2")]
    pub(super) region: Option<RegionInfoMessage>,
    #[prost(message, repeated, tag = "3")]
    pub(super) families: Vec<SnapshotFamily>,
}

/// `SnapshotDataManifest`.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct SnapshotManifest {
    #[prost(message, optional, tag = "1")]
    pub(super) schema: Option<TableSchema>,
    #[prost(message, repeated, tag = "2")]
    pub(super) regions: Vec<SnapshotRegion>,
}

/// The message in `bytes`, which is all of `file`; `PBUF` in front is taken off where it is.
pub(super) fn decode<M: Message + Default>(bytes: Bytes, file: &Path, kind: &str) -> Result<M> {
    let body = if bytes.starts_with(MAGIC) { bytes.slice(MAGIC.len()..) } else { bytes };
    M::decode(body).map_err(|error| Error::corruption(file, 0, format!("this is no {kind}: {error}")))
}

/// As [`decode`], of a message behind its own length.
pub(super) fn decode_delimited<M: Message + Default>(bytes: Bytes, file: &Path, kind: &str) -> Result<M> {
    let body = if bytes.starts_with(MAGIC) { bytes.slice(MAGIC.len()..) } else { bytes };
    M::decode_length_delimited(body).map_err(|error| Error::corruption(file, 0, format!("this is no {kind}: {error}")))
}
