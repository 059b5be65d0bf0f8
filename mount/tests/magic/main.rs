//! The dot names over a real store, without a mount.

mod control;
mod imports;
mod rows;
mod scans;
mod schemas;
mod world;
