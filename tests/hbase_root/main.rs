//! Copied root directories of a real HBase show exactly what HBase showed of them.
//!
//! The recorded ones live beside the repository (../shared/rootdir, or where CELLFS_SHARED says) and in tests/hbase_root/fixtures. CELLFS_ROOTDIRS names
//! directories with more pairs of `X.tar.zst` and `X.expected`, separated by colons.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

mod damage;
mod dump;
mod recorded;
