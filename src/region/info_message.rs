//! How HBase describes a region in hbase:meta and on disk (HBase's `HBase.proto`).

use bytes::Bytes;
use prost::Message;

/// In front of most protobufs that HBase stores as a file or a value of their own (HBase `ProtobufMagic`).
pub const PROTOBUF_MAGIC: &[u8; 4] = b"PBUF";

/// `TableName`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct TableNameMessage {
    /// The namespace.
    #[prost(bytes = "bytes", tag = "1")]
    pub namespace: Bytes,
    /// The name inside the namespace.
    #[prost(bytes = "bytes", tag = "2")]
    pub qualifier: Bytes,
}

/// `RegionInfo`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RegionInfoMessage {
    /// When the region came to be, milliseconds since the epoch.
    #[prost(uint64, tag = "1")]
    pub region_id: u64,
    /// The table.
    #[prost(message, optional, tag = "2")]
    pub table_name: Option<TableNameMessage>,
    /// First row, inclusive; empty = from the beginning.
    #[prost(bytes = "bytes", tag = "3")]
    pub start_key: Bytes,
    /// End row, exclusive; empty = to the end.
    #[prost(bytes = "bytes", tag = "4")]
    pub end_key: Bytes,
    /// Not served.
    #[prost(bool, tag = "5")]
    pub offline: bool,
    /// Replaced by its daughters.
    #[prost(bool, tag = "6")]
    pub split: bool,
    /// 0 is the region, others are copies of it.
    #[prost(int32, tag = "7")]
    pub replica_id: i32,
}

impl RegionInfoMessage {
    /// The value of `info:regioninfo`.
    pub fn to_value(&self) -> Bytes {
        let mut value = PROTOBUF_MAGIC.to_vec();
        value.extend_from_slice(&self.encode_to_vec());
        value.into()
    }
}
