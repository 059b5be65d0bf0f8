//! The file system without a mount: every rule of docs/semantics.md, and random calls against a model of a local directory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]

mod kernel;

mod attributes;
mod contract;
mod damage;
mod differential;
mod family;
mod listing;
mod meta;
mod names;
mod rename;
mod scan_rows;
mod scratch;
mod tree;
mod versions;
mod via;
mod visibility;
mod write;
