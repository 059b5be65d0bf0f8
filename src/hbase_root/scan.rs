//! A scan over the regions of a table.

use super::region::RootRegion;
use crate::client::{ResultScanner, RowResult, Scan};
use crate::error::Result;
use crate::scanner::{BoxedFilter, RegionScanner, RowRange, compile_filter};
use std::collections::VecDeque;
use std::sync::Arc;

/// Walks from region to region.
pub(super) struct RootScanner {
    /// Regions to come, the next one first.
    regions: VecDeque<Arc<RootRegion>>,
    scan: Scan,
    range: RowRange,
    now: i64,
    rows_left: Option<u64>,
    current: Option<RegionScanner>,
    /// Between two regions; else in `current`.
    filter: Option<BoxedFilter>,
    in_row: bool,
}

impl RootScanner {
    pub(super) fn open(regions: &[Arc<RootRegion>], scan: &Scan, now: i64) -> Result<RootScanner> {
        let range = RowRange::of_scan(scan);
        let filter = scan.filter.as_ref().map(|filter| compile_filter(filter, scan.reversed)).transpose()?;
        let touched = |region: &&Arc<RootRegion>| {
            !range.is_empty() && !range.clone().within(&region.info.start, &region.info.end).is_empty()
        };
        let mut regions: VecDeque<_> = regions.iter().filter(touched).cloned().collect();
        if scan.reversed {
            regions.make_contiguous().reverse();
        }
        let (rows_left, scan) = (scan.limit, scan.clone());
        Ok(RootScanner { regions, range, now, rows_left, scan, current: None, filter, in_row: false })
    }
}

impl ResultScanner for RootScanner {
    fn next(&mut self) -> Result<Option<RowResult>> {
        loop {
            if let Some(current) = &mut self.current {
                if let Some(result) = current.next()? {
                    if !self.in_row {
                        self.rows_left = self.rows_left.map(|left| left.saturating_sub(1));
                    }
                    self.in_row = result.partial;
                    return Ok(Some(result));
                }
                self.filter = current.take_filter();
                if self.filter.as_ref().is_some_and(|filter| filter.filter_all_remaining()) {
                    self.regions.clear();
                }
                self.current = None;
            }
            if self.rows_left == Some(0) {
                return Ok(None);
            }
            let Some(region) = self.regions.pop_front() else { return Ok(None) };
            let scanner = region.scan(&self.scan, &self.range, self.now, self.rows_left)?;
            self.current = Some(scanner.with_filter(self.filter.take()));
        }
    }
}
