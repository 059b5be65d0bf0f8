//! The one error type of the engine. Every variant says what failed and where, and keeps its cause.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The engine's result.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong in the engine.
///
/// `mount/` maps each variant to one errno in one place; a variant therefore stands for one kind of reaction of the caller.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an operation on a file or directory.
    Io {
        /// The operation, as a verb: "read", "write", "create".
        operation: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Bytes on disk are not what was written: a checksum, a length or a structure is wrong.
    Corruption {
        /// The damaged file.
        file: PathBuf,
        /// Byte offset in the file of the damaged structure.
        offset: u64,
        /// What is wrong with it.
        what: String,
    },
    /// The volume is full, or the reserve kept for deletes and flushes has been reached. Room made ends it.
    NoSpace {
        /// Where there is no room.
        path: PathBuf,
    },
    /// A failed log or manifest sync has made the store read-only until it is reopened (architecture.md, invariant 3).
    Poisoned {
        /// The failure that did it.
        reason: String,
    },
    /// The store or the table was opened or declared read-only.
    ReadOnly {
        /// Which object, and why.
        what: String,
    },
    /// Background work did not keep up within the allowed wait (HBase: RegionTooBusyException). Trying again is right.
    Busy {
        /// What was waited for.
        what: String,
    },
    /// Another process has the store open.
    Locked {
        /// The store directory.
        path: PathBuf,
        /// The process that holds the lock, where the kernel can name it.
        pid: Option<u32>,
    },
    /// The directory is not a cellfs store.
    NotAStore {
        /// The directory.
        path: PathBuf,
        /// What was found or missed there.
        what: String,
    },
    /// A file format version or feature that this build does not know: a codec, an encoding, a store version.
    Unsupported {
        /// The file.
        file: PathBuf,
        /// The feature.
        what: String,
    },
    /// No such namespace.
    NoSuchNamespace(String),
    /// The namespace exists already.
    NamespaceExists(String),
    /// The namespace holds tables.
    NamespaceNotEmpty(String),
    /// No such table (HBase: TableNotFoundException); full name.
    NoSuchTable(String),
    /// The table exists already (HBase: TableExistsException); full name.
    TableExists(String),
    /// The table holds rows where it must be empty; full name.
    TableNotEmpty(String),
    /// A family that is to go holds cells; the table's full name and the family.
    FamilyNotEmpty(String),
    /// No such snapshot; the table's full name and the snapshot's.
    NoSuchSnapshot(String),
    /// The snapshot exists already (HBase: SnapshotExistsException).
    SnapshotExists(String),
    /// The table has snapshots, without which it cannot go; full name.
    HasSnapshots(String),
    /// A moment of which not everything is kept any more.
    HistoryIncomplete {
        /// What was asked for, and what would have kept it.
        what: String,
        /// From when on the history is whole, milliseconds since the epoch.
        since_millis: i64,
    },
    /// No such column family (HBase: NoSuchColumnFamilyException).
    NoSuchColumnFamily {
        /// The family asked for.
        family: String,
        /// The families that exist.
        known: Vec<String>,
    },
    /// A cell is larger than the limit (HBase: hbase.server.keyvalue.maxsize).
    CellTooLarge {
        /// Bytes of the value or cell.
        size: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Increment met a value that is not 8 bytes wide (HBase: DoNotRetryIOException "Field is not a long").
    NotALong {
        /// The column, `family:qualifier`.
        column: String,
        /// The width found, in bytes.
        width: usize,
    },
    /// A request that can never succeed: an illegal name, key, range or attribute.
    InvalidArgument(String),
    /// An operation is not allowed on this object now (a split of a region with references, a drop of a system namespace).
    NotAllowed(String),
    /// A namespace would hold more tables or regions than it may (HBase: QuotaExceededException).
    QuotaExceeded(String),
}

impl Error {
    /// Wraps an operating system error; a full volume becomes [`Error::NoSpace`].
    pub fn io(operation: &'static str, path: impl AsRef<Path>, source: io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::NoSpace { path },
            io::ErrorKind::ReadOnlyFilesystem => {
                Error::ReadOnly { what: format!("{operation} {}: the file system is read-only", path.display()) }
            }
            _ => Error::Io { operation, path, source },
        }
    }

    /// Damage at `offset` of `file`.
    pub fn corruption(file: impl AsRef<Path>, offset: u64, what: impl Into<String>) -> Self {
        Error::Corruption { file: file.as_ref().to_path_buf(), offset, what: what.into() }
    }

    /// The same error once more, for whoever asks later.
    #[must_use]
    pub fn again(&self) -> Error {
        match self {
            Error::Corruption { file, offset, what } => {
                Error::Corruption { file: file.clone(), offset: *offset, what: what.clone() }
            }
            Error::Unsupported { file, what } => Error::Unsupported { file: file.clone(), what: what.clone() },
            Error::Io { operation, path, source } => {
                Error::Io { operation, path: path.clone(), source: io::Error::new(source.kind(), source.to_string()) }
            }
            other => Error::Corruption { file: PathBuf::new(), offset: 0, what: other.to_string() },
        }
    }

    /// A request that can never succeed.
    pub fn invalid(what: impl Into<String>) -> Self {
        Error::InvalidArgument(what.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io { operation, path, source } => write!(f, "{operation} {}: {source}", path.display()),
            Error::Corruption { file, offset, what } => {
                write!(f, "{} is damaged at byte {offset}: {what}", file.display())
            }
            Error::NoSpace { path } => write!(f, "no space left for {}", path.display()),
            Error::Poisoned { reason } => {
                write!(f, "the store is read-only since a write failed ({reason}); mount it again to recover")
            }
            Error::ReadOnly { what } => write!(f, "read-only: {what}"),
            Error::Busy { what } => write!(f, "busy: {what}"),
            Error::Locked { path, pid: Some(pid) } => write!(f, "{} is open in process {pid}", path.display()),
            Error::Locked { path, pid: None } => write!(f, "{} is open in another process", path.display()),
            Error::NotAStore { path, what } => write!(f, "{} is not a cellfs store: {what}", path.display()),
            Error::Unsupported { file, what } => write!(f, "{}: {what} is not supported", file.display()),
            Error::NoSuchNamespace(name) => write!(f, "no namespace {name}"),
            Error::NamespaceExists(name) => write!(f, "namespace {name} exists"),
            Error::NamespaceNotEmpty(name) => write!(f, "namespace {name} holds tables"),
            Error::NoSuchTable(name) => write!(f, "no table {name}"),
            Error::TableExists(name) => write!(f, "table {name} exists"),
            Error::TableNotEmpty(name) => write!(f, "table {name} holds rows"),
            Error::FamilyNotEmpty(name) => write!(f, "family {name} holds cells: delete them before it goes"),
            Error::NoSuchSnapshot(name) => write!(f, "no snapshot {name}"),
            Error::SnapshotExists(name) => write!(f, "snapshot {name} exists"),
            Error::HasSnapshots(name) => write!(f, "table {name} has snapshots; remove them first"),
            Error::HistoryIncomplete { what, since_millis } => {
                write!(f, "{what}: the history is whole from {since_millis} on")
            }
            Error::NoSuchColumnFamily { family, known } => {
                write!(f, "no column family {family}; the table has: {}", known.join(" "))
            }
            Error::CellTooLarge { size, limit } => write!(f, "a cell of {size} bytes is over the limit of {limit}"),
            Error::NotALong { column, width } => {
                write!(f, "{column} is {width} bytes wide; only an 8-byte number can be incremented")
            }
            Error::InvalidArgument(what) | Error::NotAllowed(what) | Error::QuotaExceeded(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
