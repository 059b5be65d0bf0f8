//! A copied HBase root directory, only read: what HBase's `HMaster` and `HRegionServer` would serve from it, without either
//! (docs/hbase.md, "Mounting an HBase root directory").
//!
//! ```text
//! ROOT/hbase.version                         "8"
//! ROOT/data/NAMESPACE/TABLE/.tabledesc/      the table's descriptor                                    descriptor.rs
//! ROOT/data/NAMESPACE/TABLE/REGION/          .regioninfo, a directory for each family, recovered.edits region_info.rs regions.rs store.rs
//! ROOT/data/hbase/meta/1588230740/           which regions count, which tables are disabled            meta.rs
//! ROOT/archive/data/...                      files that snapshots and links still need
//! ROOT/.hbase-snapshot/NAME/                 lists of files                                            snapshots.rs
//! ROOT/WALs/SERVER/LOG                       what no store file has yet                                wal/ replay.rs
//! ```
//!
//! Store files are opened when a region is first read, so damage in one concerns its family of its region and nothing else.

mod admin;
mod descriptor;
mod file_name;
mod layout;
mod messages;
mod meta;
mod open;
mod region;
mod region_info;
mod regions;
mod replay;
mod scan;
mod snapshots;
mod statistics;
mod store;
mod table;
mod wal;

use crate::client::{TableAttributes, TableName};
use crate::clock::{Clock, SystemClock};
use crate::error::{Error, Result};
use crate::schema::NamespaceDescriptor;
use crate::vfs::{OsVfs, Vfs};
use snapshots::Snapshot;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use store::RootFiles;
use table::RootTable;

/// How a root directory is opened.
#[derive(Clone, Debug)]
pub struct HBaseRootOptions {
    /// Memory of the block cache, in bytes.
    pub cache_bytes: u64,
    /// Owner and mode of all namespaces and tables.
    pub attributes: TableAttributes,
}

impl Default for HBaseRootOptions {
    fn default() -> Self {
        let attributes = TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 };
        HBaseRootOptions { cache_bytes: 128 << 20, attributes }
    }
}

/// An open root directory. Implements [`crate::client::Admin`]; everything that would change it is refused.
pub struct HBaseRoot {
    files: Arc<RootFiles>,
    clock: Arc<dyn Clock>,
    attributes: TableAttributes,
    cache_bytes: u64,
    namespaces: BTreeMap<String, Arc<NamespaceDescriptor>>,
    tables: BTreeMap<TableName, Arc<RootTable>>,
    /// Tables that are there and cannot be read, with the reason.
    broken: BTreeMap<TableName, Error>,
    /// Tables of which there are snapshots alone: found, and listed where nothing else is.
    only_snapshots: BTreeSet<TableName>,
    list_only_snapshots: bool,
    snapshots: Vec<Snapshot>,
    report: RootReport,
}

/// What a user should know about what is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RootReport {
    /// Logs whose edits are shown, where no store file has them.
    pub logs_read: u64,
    /// Logs that could not be read, or not to their end.
    pub logs_not_read: u64,
    /// Logs that end inside an entry, as a killed server leaves them.
    pub logs_torn: u64,
    /// Cells that only logs had.
    pub cells_replayed: u64,
    /// Tables that HBase would not serve until they are enabled.
    pub disabled_tables: Vec<TableName>,
    /// Whatever else is missing or doubtful, a line each.
    pub remarks: Vec<String>,
}

impl RootReport {
    /// Name and value, for a status page.
    pub fn facts(&self) -> Vec<(String, String)> {
        let mut facts = vec![
            ("logs_read".to_owned(), self.logs_read.to_string()),
            ("logs_not_read".to_owned(), self.logs_not_read.to_string()),
            ("logs_torn".to_owned(), self.logs_torn.to_string()),
            ("cells_replayed".to_owned(), self.cells_replayed.to_string()),
        ];
        facts.extend(self.disabled_tables.iter().map(|table| ("disabled".to_owned(), table.to_string())));
        facts.extend(self.remarks.iter().map(|remark| ("note".to_owned(), remark.replace('\n', " "))));
        facts
    }
}

impl HBaseRoot {
    /// Opens the root directory at `root`; nothing in it is changed, nor locked.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for what is no root directory, [`Error::Unsupported`] for one of another layout version, and those of listing.
    pub fn open(root: impl AsRef<Path>, options: &HBaseRootOptions) -> Result<HBaseRoot> {
        HBaseRoot::open_with(Arc::new(OsVfs), Arc::new(SystemClock::new()), root, options)
    }

    /// As [`HBaseRoot::open`], on another file system and clock.
    ///
    /// # Errors
    /// As [`HBaseRoot::open`].
    pub fn open_with(
        vfs: Arc<dyn Vfs>,
        clock: Arc<dyn Clock>,
        root: impl AsRef<Path>,
        options: &HBaseRootOptions,
    ) -> Result<HBaseRoot> {
        open::open(vfs, clock, root.as_ref(), options)
    }

    /// What a user should know about what is shown.
    pub fn report(&self) -> &RootReport {
        &self.report
    }
}

/// The answer to every change.
fn read_only<T>() -> Result<T> {
    Err(Error::ReadOnly { what: READ_ONLY.to_owned() })
}

/// Why.
const READ_ONLY: &str = "a copied HBase root directory is only read";
