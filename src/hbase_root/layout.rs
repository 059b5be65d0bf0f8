//! Where things are below a root directory (HBase `HConstants`, `CommonFSUtils`, `HFileLink`), and reading small files whole.

use crate::client::TableName;
use crate::error::{Error, Result};
use crate::vfs::{DirectoryEntry, Vfs};
use bytes::Bytes;
use std::path::{Path, PathBuf};

/// The region of hbase:meta has a name of its own.
pub(super) const META_REGION: &str = "1588230740";
/// Where tables are that exist.
pub(super) const DATA: &str = "data";
/// Snapshots.
pub(super) const SNAPSHOTS: &str = ".hbase-snapshot";
/// Logs that may hold what no store file has.
pub(super) const LOGS: &str = "WALs";
/// Edits of a region that a recovery has cut out of logs.
pub(super) const RECOVERED_EDITS: &str = "recovered.edits";
/// Store files that a recovery has made of logs (`hbase.wal.split.to.hfile`).
pub(super) const RECOVERED_FILES: &str = "recovered.hfiles";

/// Small files may be as large as this: a snapshot's manifest names every file of a table.
const SMALL_FILE_MAX: u64 = 512 << 20;

/// Where a store file may be, in the order in which HBase looks (`HFileLink`): in its table, in one that is being made, among large values, in
/// the archive.
const PLACES: [&str; 4] = ["data", ".tmp/data", "mobdir/data", "archive/data"];

/// The directory of a table that exists.
pub(super) fn table_directory(root: &Path, table: &TableName) -> PathBuf {
    root.join(DATA).join(&table.namespace).join(&table.qualifier)
}

/// Where a file of a store may be.
pub(super) fn store_file_places(
    root: &Path,
    table: &TableName,
    region: &str,
    family: &str,
    file: &str,
) -> impl Iterator<Item = PathBuf> {
    let below = Path::new(&table.namespace).join(&table.qualifier).join(region).join(family).join(file);
    let root = root.to_path_buf();
    PLACES.iter().map(move |place| root.join(place).join(&below))
}

/// All of a small file.
///
/// # Errors
/// Those of reading it; [`Error::Corruption`] for one that is too large to be what it should be.
pub(super) fn read_file(vfs: &dyn Vfs, path: &Path) -> Result<Bytes> {
    let file = vfs.open_read(path)?;
    let len = file.len()?;
    if len > SMALL_FILE_MAX {
        return Err(Error::corruption(path, 0, format!("a file of {len} bytes stands where a small one belongs")));
    }
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes.into())
}

/// The entries of a directory; none where it does not exist.
///
/// # Errors
/// Those of listing it.
pub(super) fn list(vfs: &dyn Vfs, path: &Path) -> Result<Vec<DirectoryEntry>> {
    if vfs.exists(path)? { vfs.list(path) } else { Ok(Vec::new()) }
}

/// Bytes that HBase holds to be text.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
