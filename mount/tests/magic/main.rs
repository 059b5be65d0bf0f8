//! The dot names over a real store, without a mount.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops where it meets what it does not expect"
)]

mod control;
mod imports;
mod instance;
mod rows;
mod scan_conditions;
mod scans;
mod schemas;
mod types;
mod world;
