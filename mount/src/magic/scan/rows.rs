//! `rows/`: the rows of a scan as directories.

use super::parts::ScanRequest;
use super::sample::SampleScanner;
use super::visible::{self, Visibility};
use crate::magic::access::Viewer;
use crate::magic::hooks::MountHooks;
use crate::ops::{FsError, FsResult};
use bytes::Bytes;
use cellfs::client::{ResultScanner, Table};
use cellfs::scanner::RowRange;
use parking_lot::Mutex;
use std::sync::Arc;

/// What gives no rows.
struct NoRows;

impl ResultScanner for NoRows {
    fn next(&mut self) -> cellfs::Result<Option<cellfs::client::RowResult>> {
        Ok(None)
    }
}

impl ScanRequest {
    /// Refuses parts that a directory of rows has no use for.
    ///
    /// # Errors
    /// EINVAL with the reason.
    pub fn check_rows(&self) -> FsResult<()> {
        if self.scan().raw {
            return Err(FsError::new(libc::EINVAL, "rows/ shows live rows: raw=1 is for cells, jsonl, keys and count"));
        }
        self.check_form(super::ScanForm::Keys)
    }

    /// Opens the rows of the scan, or only `one` if it is among them, whatever `limit=` and `sample=` say; of each row at least one cell comes.
    ///
    /// # Errors
    /// Those of reading.
    pub(in crate::magic) fn rows(
        &self,
        table: &Arc<dyn Table>,
        hooks: &Arc<dyn MountHooks>,
        viewer: Option<Viewer>,
        one: Option<&Bytes>,
    ) -> FsResult<Box<dyn ResultScanner>> {
        let mut scan = self.scan();
        let hooks = hooks.hides_any(table.id()).then(|| Arc::clone(hooks));
        let viewer = viewer.filter(|_| scan.filter.is_some()).map(|viewer| Arc::new(Mutex::new(viewer)));
        let visibility = Visibility { table: table.id(), hooks, viewer };
        scan.first_cell_only = visibility.is_full();
        scan.max_versions = 1;
        if let Some(row) = one {
            if !RowRange::of_scan(&scan).contains(row) {
                return Ok(Box::new(NoRows));
            }
            (scan.start_row, scan.include_start) = (row.clone(), true);
            (scan.stop_row, scan.include_stop, scan.limit) = (row.clone(), true, Some(1));
        } else if scan.limit == Some(0) {
            return Ok(Box::new(NoRows));
        } else if let Some(count) = self.sample() {
            return Ok(Box::new(SampleScanner::open(table, &scan, &visibility, count)?));
        }
        Ok(visible::open(table.as_ref(), &scan, &visibility)?)
    }
}
