//! Merge of cell sources and the query matcher: versions, deletes, time to live, time ranges.
//!
//! A [`StoreScanner`] merges the memstore segments and store files of one family and lets through what a request sees, or what a flush or
//! compaction keeps ([`ScanPolicy`]). A [`RegionScanner`] joins the families of a region row by row. The rules are those of HBase 2.6.4
//! (hbase.md A), odd corners included, except that no order of cells makes a scan loop.

mod columns;
mod deletes;
mod filter;
mod heap;
mod losses;
mod matcher;
#[cfg(test)]
mod model_tests;
mod new_version_behavior;
mod range;
mod region_scanner;
mod store_scan;
mod store_scanner;
#[cfg(test)]
mod tests;

pub use filter::{BoxedFilter, CellFilter, ReturnCode, compile as compile_filter, is_family_essential};
pub use losses::Losses;
pub use range::RowRange;
pub use region_scanner::{RegionScanOptions, RegionScanner, RegionStores};
pub use store_scan::{FamilyRules, ScanPolicy, StoreScan};
pub use store_scanner::StoreScanner;
