//! Namespaces, tables, regions: what exists, and work on it.

use super::table::Table;
use super::task::RunningTask;
use crate::error::{Error, Result};
use crate::schema::{NamespaceDescriptor, StoreSettings, TableDescriptor};
use bytes::Bytes;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A namespace's name, checked (hbase.md A8).
pub type NamespaceName = String;

/// A table's full name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    /// The namespace.
    pub namespace: NamespaceName,
    /// The name inside the namespace.
    pub qualifier: String,
}

impl TableName {
    /// A name from its parts.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] that says which rule of HBase the name breaks.
    pub fn new(namespace: impl Into<String>, qualifier: impl Into<String>) -> Result<TableName> {
        let name = TableName { namespace: namespace.into(), qualifier: qualifier.into() };
        check_namespace_name(&name.namespace)?;
        check_table_qualifier(&name.qualifier)?;
        Ok(name)
    }

    /// A name as HBase writes it: `namespace:table`, or `table` in the namespace `default`.
    ///
    /// # Errors
    /// As [`TableName::new`].
    pub fn parse(full: &str) -> Result<TableName> {
        match full.rsplit_once(':') {
            Some((namespace, qualifier)) => TableName::new(namespace, qualifier),
            None => TableName::new("default", full),
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.namespace, self.qualifier)
    }
}

/// HBase `TableName.isLegalNamespaceName`.
///
/// # Errors
/// [`Error::InvalidArgument`] with the rule that is broken.
pub fn check_namespace_name(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid("a namespace needs a name"));
    }
    if name == "zookeeper" {
        return Err(Error::invalid("zookeeper is not a legal namespace (HBase reserves it)"));
    }
    match name
        .chars()
        .find(|c| !(c.is_alphabetic() || c.is_ascii_digit() || c.is_numeric() && c.is_alphanumeric() || *c == '_'))
    {
        Some(bad) => {
            Err(Error::invalid(format!("{bad:?} is not legal in the namespace {name}: letters, digits and _ are")))
        }
        None => Ok(()),
    }
}

/// HBase `TableName.isLegalTableQualifierName`.
///
/// # Errors
/// [`Error::InvalidArgument`] with the rule that is broken.
pub fn check_table_qualifier(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::invalid("a table needs a name"));
    }
    if name.starts_with(['.', '-']) {
        return Err(Error::invalid(format!("the table name {name} begins with . or -, which HBase forbids")));
    }
    if name == "zookeeper" {
        return Err(Error::invalid("zookeeper is not a legal table name (HBase reserves it)"));
    }
    match name.chars().find(|c| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))) {
        Some(bad) => {
            Err(Error::invalid(format!("{bad:?} is not legal in the table name {name}: letters, digits, _ - . are")))
        }
        None => Ok(()),
    }
}

/// Owner and mode of a namespace or table as a directory; kept by the store, meaningless to HBase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableAttributes {
    /// Permission bits, 0o7777 at most.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Milliseconds since the epoch of the last change of attributes (ctime).
    pub changed_millis: i64,
    /// Milliseconds since the epoch of creation or last change of the directory itself.
    pub modified_millis: i64,
}

/// One region of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionInfo {
    /// HBase's encoded region name: 32 hex digits, stable for the region's life.
    pub encoded_name: String,
    /// First row, inclusive; empty = from the beginning.
    pub start: Bytes,
    /// End row, exclusive; empty = to the end.
    pub end: Bytes,
    /// Encoded name of the region it was split from.
    pub parent: Option<String>,
    /// When it came to be, milliseconds since the epoch.
    pub born_millis: i64,
    /// Bytes of its store files.
    pub file_bytes: u64,
    /// Number of its store files.
    pub files: u64,
    /// Cells written to it since the store was opened.
    pub writes: u64,
    /// Reads it served since the store was opened.
    pub reads: u64,
}

/// Figures of a table, a family or a region: name and value, in the order and under the names of contract.md section 10.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableStatistics {
    /// The figures.
    pub figures: Vec<(&'static str, i64)>,
}

/// A snapshot of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// Its identity: never reused, unchanged by renames.
    pub id: u64,
    /// Its name: any bytes that could be a row key.
    pub name: Bytes,
    /// When it was taken, milliseconds since the epoch.
    pub created_millis: i64,
    /// Taken by SNAPSHOT_EVERY, so SNAPSHOT_KEEP may delete it.
    pub automatic: bool,
}

/// A store file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedFile {
    /// The table.
    pub table: TableName,
    /// Encoded name of the region.
    pub region: String,
    /// The family.
    pub family: Bytes,
    /// Where it is.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

/// What a table becomes by [`Admin::restore_table`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestorePoint {
    /// The snapshot of that name.
    Snapshot(Bytes),
    /// The table as of a moment, milliseconds since the epoch.
    AsOf(i64),
}

/// What a change of many rows did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowChanges {
    /// Rows that differ from before.
    pub rows: u64,
    /// Cells and delete markers that were written.
    pub cells: u64,
}

/// What makes a table's new schema of its present one.
pub type AlterSchema<'a> = &'a dyn Fn(&TableDescriptor) -> Result<TableDescriptor>;

/// For what a store cannot do.
fn not_here<T>(what: &str) -> Result<T> {
    Err(Error::ReadOnly { what: format!("{what} is not possible here") })
}

/// Namespaces, tables and regions.
pub trait Admin: Send + Sync {
    /// The namespaces, sorted; `default` is always there, `hbase` is not listed.
    fn list_namespaces(&self) -> Result<Vec<NamespaceName>>;
    /// A namespace's descriptor, attributes and identity.
    fn namespace(&self, name: &str) -> Result<(u64, Arc<NamespaceDescriptor>, TableAttributes)>;
    /// Creates a namespace.
    fn create_namespace(&self, name: &str, descriptor: NamespaceDescriptor, attributes: TableAttributes) -> Result<()>;
    /// Replaces a namespace's descriptor.
    fn modify_namespace(&self, name: &str, descriptor: NamespaceDescriptor) -> Result<()>;
    /// Drops an empty namespace.
    fn drop_namespace(&self, name: &str) -> Result<()>;
    /// Sets owner and mode of a namespace.
    fn set_namespace_attributes(&self, name: &str, attributes: TableAttributes) -> Result<()>;

    /// The tables of a namespace, sorted by name.
    fn list_tables(&self, namespace: &str) -> Result<Vec<TableName>>;
    /// A table.
    fn table(&self, name: &TableName) -> Result<Arc<dyn Table>>;
    /// Creates a table, pre-split at `splits` (sorted, distinct, not empty).
    fn create_table(
        &self,
        name: &TableName,
        descriptor: TableDescriptor,
        splits: &[Bytes],
        attributes: TableAttributes,
    ) -> Result<Arc<dyn Table>>;
    /// Replaces a table's schema. Families missing from the new one are dropped with their cells: the caller decides whether that may be.
    fn modify_table(&self, name: &TableName, descriptor: TableDescriptor) -> Result<()>;
    /// Replaces a table's schema by what `alter` makes of the present one, which nobody else changes meanwhile. Families missing from the new one go
    /// only if they hold no cell: else [`Error::FamilyNotEmpty`].
    fn alter_table(&self, _name: &TableName, _alter: AlterSchema<'_>) -> Result<()> {
        not_here("a change of schema")
    }
    /// Replaces the region borders of a table that holds no cell.
    fn presplit_table(&self, name: &TableName, splits: &[Bytes]) -> Result<()>;
    /// Renames a table, also to another namespace; atomic. The target must not exist.
    fn rename_table(&self, from: &TableName, to: &TableName) -> Result<()>;
    /// Drops a table with all it holds.
    fn drop_table(&self, name: &TableName) -> Result<()>;
    /// Removes all rows of a table; its schema and region borders stay.
    fn truncate_table(&self, name: &TableName) -> Result<()>;
    /// Owner, mode and times of a table.
    fn table_attributes(&self, name: &TableName) -> Result<TableAttributes>;
    /// Sets owner and mode of a table.
    fn set_table_attributes(&self, name: &TableName, attributes: TableAttributes) -> Result<()>;

    /// Writes the table's memstores to store files.
    fn flush_table(&self, name: &TableName) -> Result<()>;
    /// Runs minor compactions as the policy chooses, of one family or all; returns when done.
    fn compact_table(&self, name: &TableName, family: Option<&[u8]>) -> Result<()>;
    /// Compacts all store files of each store into one; returns when done.
    fn major_compact_table(&self, name: &TableName, family: Option<&[u8]>) -> Result<()>;
    /// Splits at `row`, or every region at the middle of its largest file; returns when the daughters serve.
    fn split_table(&self, name: &TableName, row: Option<&[u8]>) -> Result<()>;
    /// The table's regions, in key order.
    fn regions(&self, name: &TableName) -> Result<Vec<RegionInfo>>;
    /// Figures of a table.
    fn table_statistics(&self, name: &TableName) -> Result<TableStatistics>;
    /// Figures of one family of a table.
    fn family_statistics(&self, name: &TableName, family: &[u8]) -> Result<TableStatistics>;
    /// Figures of one region, by its encoded name.
    fn region_statistics(&self, name: &TableName, encoded_name: &str) -> Result<TableStatistics>;

    /// The table's snapshots, oldest first.
    fn list_snapshots(&self, table: &TableName) -> Result<Vec<SnapshotInfo>> {
        self.table(table).map(|_| Vec::new())
    }
    /// A snapshot as a table that cannot be written. A handle stays valid when the snapshot is deleted.
    fn open_snapshot(&self, table: &TableName, snapshot: &[u8]) -> Result<Arc<dyn Table>> {
        Err(Error::NoSuchSnapshot(format!("{table} {}", snapshot.escape_ascii())))
    }
    /// Keeps the table as it is now under a name.
    fn create_snapshot(&self, _table: &TableName, _snapshot: &[u8]) -> Result<SnapshotInfo> {
        not_here("a snapshot")
    }
    /// Deletes a snapshot; files that nothing else needs go with it.
    fn delete_snapshot(&self, _table: &TableName, _snapshot: &[u8]) -> Result<()> {
        not_here("deleting a snapshot")
    }
    /// Gives a snapshot another name. One that was automatic is the user's from now on.
    fn rename_snapshot(&self, _table: &TableName, _from: &[u8], _to: &[u8]) -> Result<()> {
        not_here("renaming a snapshot")
    }
    /// Makes a new table of a snapshot, with its schema and region borders; the files are shared. Atomic.
    fn clone_snapshot(&self, _table: &TableName, _snapshot: &[u8], _to: &TableName) -> Result<Arc<dyn Table>> {
        not_here("a clone")
    }
    /// The table as of a moment (milliseconds since the epoch), as a table that cannot be written: every cell of a later timestamp, markers
    /// included, is as if it had never been written.
    fn open_as_of(&self, _table: &TableName, _millis: i64) -> Result<Arc<dyn Table>> {
        not_here("a view of the past")
    }
    /// Makes the table, or its rows that begin with `prefix`, show what they showed then, by new versions and markers: history goes on.
    /// Atomic.
    fn restore_table(&self, _table: &TableName, _point: &RestorePoint, _prefix: &[u8]) -> Result<RowChanges> {
        not_here("restore")
    }
    /// Deletes the rows from `start` (inclusive; empty = the first) to `stop` (exclusive; empty = the end). Atomic.
    fn delete_range(&self, _table: &TableName, _start: &[u8], _stop: &[u8]) -> Result<RowChanges> {
        not_here("delete_range")
    }
    /// Joins the region that begins at `row` with the one before it.
    fn merge_regions(&self, _table: &TableName, _row: &[u8]) -> Result<()> {
        not_here("merge")
    }
    /// Two tables take each other's name. Atomic.
    fn exchange_tables(&self, _one: &TableName, _other: &TableName) -> Result<()> {
        not_here("an exchange of tables")
    }

    /// Flushes and compactions under way, oldest first.
    fn running_tasks(&self) -> Vec<RunningTask>;
    /// The store's own numbers.
    fn settings(&self) -> StoreSettings;
    /// Changes the store's numbers, at once and for later openings (HBase `Admin.updateConfiguration`).
    fn update_settings(&self, settings: &StoreSettings) -> Result<()>;

    /// Everything acknowledged so far survives power loss once this returns.
    fn sync(&self) -> Result<()>;
    /// Store files of tables that are known to be damaged: reads that need them fail.
    fn damaged_files(&self) -> Vec<DamagedFile> {
        Vec::new()
    }
    /// Why the store refuses writes, if it does.
    fn read_only_reason(&self) -> Option<String>;
    /// True while writes may have to wait for flushes or compactions: callers that must not wait hand them to somebody who may.
    fn slows_writers(&self) -> bool;
    /// Bytes free and total on the volume of the store, for statfs.
    fn free_space(&self) -> Result<u64>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_hbases_rules() {
        for good in ["t", "ns:t", "a.b-c_d", "tabelle_\u{e4}", "9"] {
            assert!(TableName::parse(good).is_ok(), "{good}");
        }
        for bad in ["", ".t", "-t", "a b", "ns:", ":t", "n-s:t", "zookeeper", "zookeeper:t", "a/b", "t%"] {
            assert!(TableName::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(TableName::parse("t").unwrap().to_string(), "default:t");
    }
}
