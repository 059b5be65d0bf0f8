//! Where and when a region splits (HBase `SteppingSplitPolicy`, `StoreUtils.getSplitPoint`).

use super::Region;
use crate::error::Result;
use bytes::Bytes;

/// A table's only region splits at twice the flush size already, so that load spreads early.
const STEP: u64 = 2;

impl Region {
    /// The row in the middle of the largest file of the largest store, if the region can be split there: it has no file shared with another
    /// region, and the row leaves something on both sides.
    ///
    /// # Errors
    /// Those of reading the file's index.
    pub fn split_point(&self) -> Result<Option<Bytes>> {
        let stores = self.stores();
        let largest = stores.iter().map(|store| store.files()).max_by_key(|files| files.bytes());
        let Some(files) = largest else { return Ok(None) };
        if stores.iter().any(|store| store.files().has_references()) {
            return Ok(None);
        }
        let Some(view) = files.iter().max_by_key(|view| view.entry.size) else { return Ok(None) };
        let Some(row) = view.file.reader().mid_row()? else { return Ok(None) };
        let useful = row != view.entry.first_row && row != view.entry.last_row;
        Ok((useful && self.can_split_at(&row)).then_some(row))
    }

    /// True if `row` is inside the region and not its first.
    pub fn can_split_at(&self, row: &[u8]) -> bool {
        !row.is_empty() && self.contains(row) && row != &self.start[..]
    }

    /// True if the largest store is over the size at which a region of a table with `regions` regions splits.
    pub fn split_due(&self, regions: usize, flush_size: u64, max_file_size: u64) -> bool {
        let threshold = if regions == 1 { (flush_size * STEP).min(max_file_size) } else { max_file_size };
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
