//! HBase's request types and the traits [`Table`] and [`Admin`]: what a user of the data model sees, whatever stores the cells.

mod admin;
mod filter;
mod get;
mod load;
mod mutation;
mod scan;
mod table;
mod task;

pub use crate::schema::{Durability, StoreSettings};
pub use admin::{
    Admin, AlterSchema, DamagedFile, NamespaceName, RegionInfo, RestorePoint, RowChanges, SnapshotInfo,
    TableAttributes, TableName, TableStatistics, check_namespace_name,
};
pub use filter::{BitOperator, Comparator, Comparison, Filter, FilterRowRange, ListOperator, SingleColumnValue};
pub use get::{ColumnSelection, Get, RowResult, TimeRange};
pub use load::{LoadKind, LoadSummary, RefusedLine, TableLoad};
pub use mutation::{
    Append, CheckAndMutate, CompareOperator, Condition, Delete, DeleteMarker, Increment, Mutation, MutationOutcome,
    Put, PutCell, RowMutations, WriteTime,
};
pub use scan::Scan;
pub use table::{ResultScanner, Table, TableView};
pub use task::{RunningTask, TaskKind};
