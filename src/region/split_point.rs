//! Where and when a region splits (HBase `SteppingSplitPolicy`, `StoreUtils.getSplitPoint`).

use super::Region;
use crate::error::Result;
use crate::schema::{SplitPolicy, TableDescriptor};
use bytes::Bytes;

/// A table's only region splits at twice the flush size already, so that load spreads early.
const STEP: u64 = 2;

/// The bytes of a store over which a region splits, in a table of `regions` regions; `None` = never.
pub fn split_threshold(policy: SplitPolicy, regions: usize, flush_size: u64, max_file_size: u64) -> Option<u64> {
    let first = flush_size.saturating_mul(STEP);
    let regions = regions as u64;
    match policy {
        SplitPolicy::Disabled => None,
        SplitPolicy::ConstantSize => Some(max_file_size),
        SplitPolicy::Stepping if regions == 1 => Some(first.min(max_file_size)),
        SplitPolicy::Stepping => Some(max_file_size),
        SplitPolicy::IncreasingToUpperBound | SplitPolicy::KeyPrefix | SplitPolicy::DelimitedKeyPrefix => {
            let cube = regions.saturating_mul(regions).saturating_mul(regions);
            Some(first.saturating_mul(cube).min(max_file_size))
        }
    }
}

impl Region {
    /// The row in the middle of the largest file of the largest store, as the table's policy cuts it, if the region can be split there: it has no
    /// file shared with another region, and the row leaves something on both sides.
    ///
    /// # Errors
    /// Those of reading the file's index.
    pub fn split_point(&self, descriptor: &TableDescriptor) -> Result<Option<Bytes>> {
        let stores = self.stores();
        let largest = stores.iter().map(|store| store.files()).max_by_key(|files| files.bytes());
        let Some(files) = largest else { return Ok(None) };
        if stores.iter().any(|store| store.files().has_references()) {
            return Ok(None);
        }
        // A damaged file cannot say where its middle is.
        let readable = files.iter().filter(|view| view.file.opened().is_some());
        let Some(view) = readable.max_by_key(|view| view.entry.size) else { return Ok(None) };
        let Some(row) = view.file.reader()?.mid_row()? else { return Ok(None) };
        let useful = row != view.entry.first_row && row != view.entry.last_row;
        let row = descriptor.split_row(&row);
        Ok((useful && self.can_split_at(&row)).then_some(row))
    }

    /// True if `row` is inside the region and not its first.
    pub fn can_split_at(&self, row: &[u8]) -> bool {
        !row.is_empty() && self.contains(row) && row != &self.start[..]
    }

    /// True if the largest store is over `threshold` bytes ([`split_threshold`]) and none shares files with another region.
    pub fn split_due(&self, threshold: u64) -> bool {
        let stores = self.stores();
        let has_references = stores.iter().any(|store| store.files().has_references());
        let largest = stores.iter().map(|store| store.files().bytes()).max().unwrap_or(0);
        !has_references && largest > threshold
    }

    /// True if a store has files shared with another region.
    pub fn has_references(&self) -> bool {
        self.stores().iter().any(|store| store.files().has_references())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_policy_has_hbases_threshold() {
        let threshold = |policy, regions| split_threshold(policy, regions, 10, 1000);
        assert_eq!(
            [1, 2, 9].map(|regions| threshold(SplitPolicy::Stepping, regions)),
            [Some(20), Some(1000), Some(1000)]
        );
        assert_eq!([1, 2].map(|regions| threshold(SplitPolicy::ConstantSize, regions)), [Some(1000), Some(1000)]);
        let increasing = [1, 2, 3, 4].map(|regions| threshold(SplitPolicy::IncreasingToUpperBound, regions));
        assert_eq!(increasing, [Some(20), Some(160), Some(540), Some(1000)]);
        assert_eq!(threshold(SplitPolicy::KeyPrefix, 2), Some(160));
        assert_eq!(threshold(SplitPolicy::Disabled, 1), None);
    }
}
