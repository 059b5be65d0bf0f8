//! cellfs: HBase's data model on one machine.
//!
//! The engine: regions of sorted cells, a write-ahead log, memstores, HFile v3 store files, compaction, splits. It is usable without
//! the file system in `mount/`. ARCHITECTURE.md is the map; the modules below are its rooms, and each imports only from those listed before it.

pub mod error;

pub mod cell;
pub mod clock;
pub mod types;

pub mod schema;

pub mod client;
pub mod vfs;

pub mod hfile;
pub mod manifest;
pub mod memstore;
pub mod wal;

pub mod scanner;

pub mod compaction;

pub mod store;

pub mod region;

pub mod hbase_root;
pub mod server;

pub use error::{Error, Result};
