//! Reading all logs of a root directory into the regions they belong to (HBase `WALSplitter`, `HRegion.replayRecoveredEditsIfAny`).

use super::layout::{self, LOGS, RECOVERED_EDITS, read_file, text};
use super::region::RootRegion;
use super::wal::{LogEnd, WalReader};
use crate::error::{Error, Result};
use crate::vfs::Vfs;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Regions by encoded name.
pub(super) type RegionsByName = BTreeMap<String, Arc<RootRegion>>;

/// What came of the logs.
#[derive(Debug, Default)]
pub(super) struct ReplayReport {
    /// Logs read to their end.
    pub(super) read: u64,
    /// Logs that could not be read, or not to their end.
    pub(super) not_read: u64,
    /// Logs that end in the middle of an entry, as those of a killed server do.
    pub(super) torn: u64,
    /// Cells that no store file has.
    pub(super) cells: u64,
    /// For the user.
    pub(super) remarks: Vec<String>,
}

/// The logs of all servers, those of hbase:meta (`*.meta`) apart.
///
/// # Errors
/// Those of listing directories.
pub(super) fn find_logs(vfs: &dyn Vfs, root: &Path) -> Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let mut found = Vec::new();
    collect(vfs, &root.join(LOGS), 0, &mut found)?;
    Ok(found.into_iter().partition(|path| path.extension().is_some_and(|extension| extension == "meta")))
}

/// Servers have directories, some of them `SERVER-splitting`.
fn collect(vfs: &dyn Vfs, directory: &Path, depth: u32, found: &mut Vec<PathBuf>) -> Result<()> {
    const DEPTH_MAX: u32 = 3;
    for entry in layout::list(vfs, directory)? {
        let path = directory.join(&entry.name);
        if !entry.is_directory {
            found.push(path);
        } else if depth < DEPTH_MAX {
            collect(vfs, &path, depth + 1, found)?;
        }
    }
    Ok(())
}

/// The files of recovered edits below a region's directory: names of digits alone. Others are marks, or not whole.
///
/// # Errors
/// Those of listing the directory.
pub(super) fn find_recovered_edits(vfs: &dyn Vfs, region: &Path) -> Result<Vec<PathBuf>> {
    let directory = region.join(RECOVERED_EDITS);
    let entries = layout::list(vfs, &directory)?;
    let is_log = |name: &str| {
        let digits = name.strip_prefix('-').unwrap_or(name);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    Ok(entries.into_iter().filter(|entry| is_log(&entry.name)).map(|entry| directory.join(entry.name)).collect())
}

impl ReplayReport {
    /// Reads one log into `regions`. What cannot be read is told, never passed over in silence.
    pub(super) fn replay(&mut self, vfs: &dyn Vfs, path: &Path, recovered_edits: bool, regions: &RegionsByName) {
        match self.replay_all(vfs, path, recovered_edits, regions) {
            Ok(()) => self.read += 1,
            Err(error) => {
                self.not_read += 1;
                self.remarks.push(format!("a log was not read, or not to its end: {error}"));
            }
        }
    }

    fn replay_all(&mut self, vfs: &dyn Vfs, path: &Path, recovered: bool, regions: &RegionsByName) -> Result<()> {
        let Some(mut log) = WalReader::new(read_file(vfs, path)?, path, recovered)? else { return Ok(()) };
        while let Some(entry) = log.next() {
            // Regions that were split, merged or dropped since have no directory that counts.
            let Some(region) = regions.get(&text(&entry.region)) else { continue };
            match region.replay(&entry, path) {
                Ok(cells) => self.cells += cells,
                // The region cannot be read either, and whoever tries hears why.
                Err(error) => log::warn!("{}: edits of {} are left: {error}", path.display(), region.info.encoded),
            }
        }
        match log.end() {
            LogEnd::Whole => Ok(()),
            LogEnd::Torn(at, left) => {
                self.torn += 1;
                self.remarks.push(format!("{} ends inside an entry, {left} bytes behind byte {at}", path.display()));
                Ok(())
            }
            LogEnd::Damaged(at, what) => Err(Error::corruption(path, at as u64, what)),
        }
    }
}
