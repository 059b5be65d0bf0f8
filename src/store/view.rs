//! A store as one reader sees it: the segments and files of one moment.

use super::file::{StoreFileView, StoreFiles};
use crate::cell::{Cell, CellScanner};
use crate::error::Result;
use crate::hfile::ReadOptions;
use crate::memstore::Segment;
use crate::scanner::{FamilyRules, RowRange, StoreScan, StoreScanner};
use crate::schema::ColumnFamilyDescriptor;
use bytes::Bytes;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Segments and files of one moment, held as long as the reader lives.
#[derive(Clone)]
pub struct StoreView {
    /// The family.
    pub family: Bytes,
    /// Its attributes.
    pub descriptor: Arc<ColumnFamilyDescriptor>,
    /// Memstore segments, newest first.
    pub segments: Vec<Arc<Segment>>,
    /// Store files, oldest first.
    pub files: Arc<StoreFiles>,
    /// Counts the files that reads opened.
    pub files_considered: Arc<AtomicU64>,
}

impl StoreView {
    /// The family's rules at `now`.
    pub fn rules(&self, now: i64) -> FamilyRules {
        FamilyRules::of(&self.descriptor, now)
    }

    /// A scanner over what can matter to `scan` in `range`, newest source first; `None` if nothing can. A single row is asked for in the bloom
    /// filters.
    ///
    /// # Errors
    /// Those of reading the filters.
    pub fn scanner(&self, scan: &StoreScan, range: &RowRange, cache_blocks: bool) -> Result<Option<StoreScanner>> {
        let row = range.single_row();
        let oldest = match scan.policy {
            crate::scanner::ScanPolicy::Raw => i64::MIN,
            _ => scan.rules.oldest_that_matters(),
        };
        let mut sources: Vec<Box<dyn CellScanner>> = Vec::new();
        for segment in &self.segments {
            let wanted = !segment.is_empty() && row.is_none_or(|row| segment.may_contain_row(row));
            if wanted && segment.may_matter(scan.time_range, oldest) {
                let first = match row {
                    Some(row) if !segment.may_contain_family_marker() => {
                        self.first_wanted(row, scan.columns.as_deref())
                    }
                    _ => None,
                };
                sources.push(Box::new(segment.scanner(scan.read_point).starting_at(first)));
            }
        }
        let cache_blocks = cache_blocks && self.descriptor.block_cache;
        for view in self.files.iter().rev() {
            if !view.may_matter(scan.time_range, oldest) {
                continue;
            }
            let wanted = match row {
                Some(row) => view.spans_row(row) && may_contain(view, row, scan.columns.as_deref())?,
                None => overlaps(view, range),
            };
            if wanted {
                self.files_considered.fetch_add(1, Ordering::Relaxed);
                let first = match row {
                    Some(row) => self.first_that_matters(view, row, scan.columns.as_deref())?,
                    None => None,
                };
                sources.push(
                    view.scanner(ReadOptions { cache_blocks, read_ahead: row.is_none(), drop_behind: false }, first),
                );
            }
        }
        Ok(if sources.is_empty() { None } else { Some(StoreScanner::new(sources, scan)) })
    }

    /// Where a read of some columns of one row may begin in a file: the row's start is of use only to family markers, and a value there that nobody
    /// asked for may be large (HBase `StoreFileReader.passesDeleteFamilyBloomFilter`).
    fn first_that_matters(&self, view: &StoreFileView, row: &[u8], columns: Option<&[Bytes]>) -> Result<Option<Cell>> {
        match self.first_wanted(row, columns) {
            Some(first) if !view.file.reader()?.may_contain_family_marker(row)? => Ok(Some(first)),
            _ => Ok(None),
        }
    }

    /// The beginning of the first of the columns; `None` where that is the row's start anyway.
    fn first_wanted(&self, row: &[u8], columns: Option<&[Bytes]>) -> Option<Cell> {
        let first = columns?.first().filter(|first| !first.is_empty())?;
        Some(Cell::first_on_column(row, &self.family, first))
    }
}

/// Asks the file's bloom filter: by row, or by row and column where the filter can and one column is wanted.
fn may_contain(view: &StoreFileView, row: &[u8], columns: Option<&[Bytes]>) -> Result<bool> {
    match columns {
        Some([only]) => view.file.reader()?.may_contain_column(row, only),
        _ => view.file.reader()?.may_contain_row(row),
    }
}

fn overlaps(view: &StoreFileView, range: &RowRange) -> bool {
    if view.entry.entries == 0 {
        return false;
    }
    let (first, last) = (&view.entry.first_row[..], &view.entry.last_row[..]);
    let after_low = match &range.low {
        Bound::Unbounded => true,
        Bound::Included(low) => last >= &low[..],
        Bound::Excluded(low) => last > &low[..],
    };
    let before_high = match &range.high {
        Bound::Unbounded => true,
        Bound::Included(high) => first <= &high[..],
        Bound::Excluded(high) => first < &high[..],
    };
    after_low && before_high
}
