//! What a manifest records: the entries, and the edits that make, change and remove them.

use crate::client::{NamespaceName, TableAttributes, TableName};
use crate::schema::{NamespaceDescriptor, TableDescriptor};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceEntry {
    /// Its identity, which a rename would keep.
    pub id: u64,
    /// Its name.
    pub name: NamespaceName,
    /// Its properties.
    pub descriptor: Arc<NamespaceDescriptor>,
    /// Owner and mode.
    pub attributes: TableAttributes,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableEntry {
    /// Its identity, which renames keep.
    pub id: u64,
    /// Its name.
    pub name: TableName,
    /// Its schema.
    pub descriptor: Arc<TableDescriptor>,
    /// Owner and mode.
    pub attributes: TableAttributes,
    /// When it was created, milliseconds since the epoch.
    pub created_millis: i64,
}

/// A region: a range of a table's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionEntry {
    /// Its identity; what the log's edits name.
    pub id: u64,
    /// The table's identity.
    pub table: u64,
    /// HBase's encoded region name: 32 hex digits.
    pub encoded_name: String,
    /// First row, inclusive; empty = from the beginning.
    pub start: Bytes,
    /// End row, exclusive; empty = to the end.
    pub end: Bytes,
    /// Encoded name of the region it was split from.
    pub parent: Option<String>,
    /// When it came to be, milliseconds since the epoch.
    pub born_millis: i64,
    /// Every edit of the region up to this sequence id is in store files: replay skips it.
    pub flushed_sequence_id: u64,
    /// Its stores by family. A store without files and marks may be missing.
    pub stores: BTreeMap<Bytes, StoreEntry>,
}

/// One family of one region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreEntry {
    /// Its live store files by id.
    pub files: BTreeMap<u64, StoreFileEntry>,
    /// From this time on (milliseconds since the epoch) nothing that was ever written has been dropped by a flush or compaction;
    /// `None` = nothing has ever been dropped.
    pub history_complete_since: Option<i64>,
}

/// One store file as one store sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFileEntry {
    /// Its identity and, as 32 hex digits, its name.
    pub file_id: u64,
    /// Bytes.
    pub size: u64,
    /// The largest sequence id in it (HBase MAX_SEQ_ID_KEY).
    pub max_sequence_id: u64,
    /// Cells.
    pub entries: u64,
    /// Delete markers among them.
    pub tombstones: u64,
    /// Smallest timestamp of its cells.
    pub min_timestamp: i64,
    /// Largest timestamp of its cells.
    pub max_timestamp: i64,
    /// First row in it.
    pub first_row: Bytes,
    /// Last row in it.
    pub last_row: Bytes,
    /// True if it holds rows outside the region's range (shared since a split); readers clip it, a compaction rewrites it.
    pub is_reference: bool,
    /// When it was written, milliseconds since the epoch.
    pub created_millis: i64,
    /// True if a major compaction wrote it.
    pub major: bool,
}

/// A snapshot: a table as it was at one sequence id. Its files are live as long as it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotEntry {
    /// Its identity, which renames keep.
    pub id: u64,
    /// The table's identity.
    pub table: u64,
    /// Its name, unique among the table's.
    pub name: Bytes,
    /// When it was taken, milliseconds since the epoch.
    pub created_millis: i64,
    /// It holds every write of the table up to this id, and none after.
    pub sequence_id: u64,
    /// Taken by SNAPSHOT_EVERY.
    pub automatic: bool,
    /// The table's schema then.
    pub descriptor: Arc<TableDescriptor>,
    /// The table's owner and mode then.
    pub attributes: TableAttributes,
    /// The table's regions then, in key order, everything in files.
    pub regions: Vec<Arc<RegionEntry>>,
}

/// One change. A commit holds a list of them and takes effect as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestEdit {
    /// Makes a namespace.
    CreateNamespace(NamespaceEntry),
    /// Replaces a namespace's descriptor.
    ModifyNamespace {
        /// The namespace.
        id: u64,
        /// The new descriptor.
        descriptor: Arc<NamespaceDescriptor>,
    },
    /// Sets owner and mode of a namespace.
    SetNamespaceAttributes {
        /// The namespace.
        id: u64,
        /// The new attributes.
        attributes: TableAttributes,
    },
    /// Removes a namespace without tables.
    DropNamespace {
        /// The namespace.
        id: u64,
    },
    /// Makes a table, without regions.
    CreateTable(TableEntry),
    /// Replaces a table's schema. The stores of families that are gone stay until [`ManifestEdit::RemoveStore`].
    ModifyTable {
        /// The table.
        id: u64,
        /// The new schema.
        descriptor: Arc<TableDescriptor>,
    },
    /// Sets owner and mode of a table.
    SetTableAttributes {
        /// The table.
        id: u64,
        /// The new attributes.
        attributes: TableAttributes,
    },
    /// Gives a table another name, also in another namespace.
    RenameTable {
        /// The table.
        id: u64,
        /// The new name.
        name: TableName,
    },
    /// Removes a table with its regions and their files.
    DropTable {
        /// The table.
        id: u64,
    },
    /// Makes a region; its `stores`, if any, come with it.
    AddRegion(RegionEntry),
    /// Removes a region with its files.
    RemoveRegion {
        /// The region.
        id: u64,
    },
    /// Says how far a region has been flushed.
    SetFlushedSequenceId {
        /// The region.
        region: u64,
        /// See [`RegionEntry::flushed_sequence_id`]; never moves back.
        sequence_id: u64,
    },
    /// Makes a store file live.
    AddStoreFile {
        /// The region.
        region: u64,
        /// The family.
        family: Bytes,
        /// The file.
        file: StoreFileEntry,
    },
    /// Takes a store file from a store; the file is dead when no store has it.
    RemoveStoreFile {
        /// The region.
        region: u64,
        /// The family.
        family: Bytes,
        /// The file.
        file_id: u64,
    },
    /// Moves the mark of [`StoreEntry::history_complete_since`]; it never moves back.
    SetHistoryCompleteSince {
        /// The region.
        region: u64,
        /// The family.
        family: Bytes,
        /// Milliseconds since the epoch.
        since_millis: i64,
    },
    /// Removes a store: its family has been dropped.
    RemoveStore {
        /// The region.
        region: u64,
        /// The family.
        family: Bytes,
    },
    /// Makes a snapshot of a table.
    CreateSnapshot(SnapshotEntry),
    /// Removes a snapshot; files that nothing else has are dead.
    DeleteSnapshot {
        /// The snapshot.
        id: u64,
    },
    /// Gives a snapshot another name; it no longer counts as automatic.
    RenameSnapshot {
        /// The snapshot.
        id: u64,
        /// The new name.
        name: Bytes,
    },
    /// The first log segment that recovery needs; never moves back.
    SetLogNumber {
        /// The segment's number.
        first_segment: u64,
    },
    /// A sequence id at or above every id given out so far, for a log that starts empty; never moves back.
    SetLastSequenceId {
        /// The id.
        sequence_id: u64,
    },
    /// Raises the counters identities are taken from, so that those of things dropped never come back.
    SetNextIds {
        /// The next identity of a namespace, table or region.
        next_id: u64,
        /// The next identity of a store file.
        next_file_id: u64,
    },
}
