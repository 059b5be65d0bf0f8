//! The data of one table.

use super::admin::TableName;
use super::get::{Get, RowResult};
use super::load::{LoadKind, TableLoad};
use super::mutation::{Append, CheckAndMutate, Delete, Increment, Mutation, MutationOutcome, Put, RowMutations};
use super::scan::Scan;
use crate::error::{Error, Result};
use crate::schema::TableDescriptor;
use bytes::Bytes;
use std::sync::Arc;

/// Which state of a table a handle shows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TableView {
    /// What it holds now.
    Live,
    /// A snapshot.
    Snapshot {
        /// The snapshot's identity.
        id: u64,
        /// Its name when it was opened.
        name: Bytes,
    },
    /// The table as of a moment, milliseconds since the epoch.
    AsOf(i64),
    /// What the store says about itself, made anew at each read: hbase:meta.
    Made,
}

/// One table's rows. A handle stays valid while the table exists, through renames and schema changes; afterwards every call
/// is [`crate::Error::NoSuchTable`].
pub trait Table: Send + Sync {
    /// The current name.
    fn name(&self) -> TableName;

    /// The table's identity: never reused, unchanged by renames.
    fn id(&self) -> u64;

    /// Which state of the table this is. All but the live one refuse writes with [`crate::Error::ReadOnly`].
    fn view(&self) -> TableView {
        TableView::Live
    }

    /// The current schema; that of a snapshot is the one it was taken with.
    fn descriptor(&self) -> Arc<TableDescriptor>;

    /// Reads one row; an empty result where nothing is visible.
    fn get(&self, get: &Get) -> Result<RowResult>;

    /// True if [`Table::get`] would return a cell.
    fn exists(&self, get: &Get) -> Result<bool>;

    /// Opens a scan at the current read point.
    fn scan(&self, scan: &Scan) -> Result<Box<dyn ResultScanner>>;

    /// Writes cells of one row.
    fn put(&self, put: Put) -> Result<MutationOutcome>;

    /// Writes delete markers into one row.
    fn delete(&self, delete: Delete) -> Result<MutationOutcome>;

    /// Applies several mutations of one row as one.
    fn mutate_row(&self, mutations: RowMutations) -> Result<MutationOutcome>;

    /// Applies mutations of several rows of the table as one: one log record, visible at one moment, wherever the rows' regions are.
    fn mutate_rows(&self, mutations: Vec<RowMutations>) -> Result<MutationOutcome>;

    /// Applies mutations each by itself, as fast as possible; one result each, in order.
    fn batch(&self, mutations: Vec<Mutation>) -> Vec<Result<MutationOutcome>>;

    /// Mutates a row if a condition holds.
    fn check_and_mutate(&self, check: CheckAndMutate) -> Result<MutationOutcome>;

    /// Adds to counters; the outcome holds the new cells.
    fn increment(&self, increment: Increment) -> Result<MutationOutcome>;

    /// Appends to values; the outcome holds the new cells.
    fn append(&self, append: Append) -> Result<MutationOutcome>;

    /// Begins a load: many mutations that become visible together.
    fn load(&self, _kind: LoadKind) -> Result<Box<dyn TableLoad>> {
        Err(Error::ReadOnly { what: format!("{} takes no loads", self.name()) })
    }
}

/// The rows of a scan, one by one.
pub trait ResultScanner: Send {
    /// The next row, or part of a row with [`Scan::batch`]; `None` after the last.
    fn next(&mut self) -> Result<Option<RowResult>>;
}
