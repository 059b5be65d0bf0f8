//! A table as HFiles that an HBase bulk load takes as they are: `DIR/<family>/<32 hex digits>`, one file for each region and family that
//! holds cells. They hold what is stored: all versions and markers, with tags and timestamps, without sequence ids, which the cluster gives.
//!
//! A file has a name that HBase looks at only when it is whole and on disk; until then its name begins with `_`, which bulk loads pass over
//! (HBase `BulkLoadHFilesTool.visitBulkHFiles`).

use super::Store;
use crate::cell::{Cell, CellScanner, Tag, encode_tags, tag_type};
use crate::client::TableName;
use crate::error::{Error, Result};
use crate::hfile::{HFileWriter, HFileWriterOptions, StoreFileInfo};
use crate::region::Region;
use crate::scanner::{FamilyRules, ScanPolicy, StoreScan, StoreScanner};
use crate::schema::ROW_ATTRIBUTES_FAMILY;
use crate::store::HStore;
use crate::vfs::Vfs;
use bytes::Bytes;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An HBase client finds a region by the key `table,row,14 digits` in `hbase:meta`, which like every row has at most 32767 bytes: what is
/// left for table and row together.
const TABLE_AND_ROW_LEN_MAX: usize = 32_751;
/// So many rows that are too long are named; who has more knows enough.
const LONG_ROWS_NAMED: usize = 100;
/// Between two reports of progress, in bytes of cells.
const PROGRESS_BYTES: u64 = 1 << 20;

/// What an export wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// The files, in the order of regions and families.
    pub files: Vec<PathBuf>,
    /// Their cells, markers included.
    pub cells: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Rows that a cluster stores but whose client may not find their region, the first hundred: the key is longer than 32751 bytes less
    /// the length of the table's full name.
    pub long_rows: BTreeSet<Bytes>,
    /// Exported families that a bulk load passes over, for their names begin with `_`.
    pub passed_over: BTreeSet<Bytes>,
}

/// Where an export stands.
struct Export<'a> {
    vfs: &'a dyn Vfs,
    directory: &'a Path,
    now: i64,
    row_len_max: usize,
    progress: &'a mut dyn FnMut(u64),
    summary: ExportSummary,
}

impl Store {
    /// Writes a table's cells to `directory`, which is missing or empty, for an HBase bulk load. `progress` hears of bytes of cells as they
    /// pass. Writes to a region while it is exported are in the export or not. Works on a store that is open for reading only.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`]; [`Error::NotAllowed`] for a directory that holds something; those of reading and writing, after which files
    /// with whole names are whole, and others are missing.
    pub fn export_table(
        &self,
        table: &TableName,
        directory: &Path,
        progress: &mut dyn FnMut(u64),
    ) -> Result<ExportSummary> {
        let regions = self.open_regions(table)?;
        let vfs = self.inner.vfs.as_ref();
        prepare(vfs, directory)?;
        let table_len = match &table.namespace[..] {
            "default" => table.qualifier.len(),
            namespace => namespace.len() + 1 + table.qualifier.len(),
        };
        let mut export = Export {
            vfs,
            directory,
            now: self.inner.now(),
            row_len_max: TABLE_AND_ROW_LEN_MAX.saturating_sub(table_len),
            progress,
            summary: ExportSummary::default(),
        };
        for region in &regions {
            let stores = region.stores();
            for store in stores.iter().filter(|store| store.family() != ROW_ATTRIBUTES_FAMILY) {
                export.store(region, store)?;
            }
        }
        vfs.sync_directory(directory)?;
        Ok(export.summary)
    }

    /// Bytes of all store files of a table: about what an export is going to write.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`].
    pub fn store_file_bytes(&self, table: &TableName) -> Result<u64> {
        let regions = self.open_regions(table)?;
        Ok(regions.iter().flat_map(|region| region.stores()).map(|store| store.files().bytes()).sum())
    }
}

/// Makes the directory, or sees that there is nothing in it.
fn prepare(vfs: &dyn Vfs, directory: &Path) -> Result<()> {
    if vfs.exists(directory)? {
        return match vfs.list(directory)?.first() {
            None => Ok(()),
            Some(entry) => Err(Error::NotAllowed(format!(
                "{} is not empty, it holds {}: name a missing or empty directory",
                directory.display(),
                entry.name
            ))),
        };
    }
    make_directory(vfs, directory)
}

/// A directory that a cluster's user may read.
fn make_directory(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    vfs.create_directory(path)?;
    vfs.let_all_read(path)?;
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => vfs.sync_directory(parent),
        _ => Ok(()),
    }
}

impl Export<'_> {
    fn store(&mut self, region: &Region, store: &HStore) -> Result<()> {
        let view = store.view();
        let mut sources: Vec<Box<dyn CellScanner>> = Vec::new();
        let mut tags = false;
        for segment in view.segments.iter().filter(|segment| !segment.is_empty()) {
            tags |= segment.has_tags();
            sources.push(Box::new(segment.scanner(u64::MAX)));
        }
        for file in view.files.iter().rev() {
            tags |= file.file.reader().info().tags;
            sources.push(file.scanner_for_compaction());
        }
        if sources.is_empty() {
            return Ok(());
        }
        // Raw and at the beginning of time, when nothing has expired: the cluster's own clock decides on that.
        let mut scan = StoreScan::compaction(ScanPolicy::Raw, FamilyRules::of(&view.descriptor, 0));
        scan.max_versions = u32::MAX;
        let mut scanner = StoreScanner::new(sources, &scan);
        // A file that two regions share since a split holds rows of both.
        scanner.seek(region.start())?;
        let Some(first) = scanner.next_kept()?.filter(|cell| region.contains(cell.row())) else { return Ok(()) };

        let family = self.directory.join(OsStr::from_bytes(&view.family));
        if !self.vfs.exists(&family)? {
            make_directory(self.vfs, &family)?;
        }
        if view.family.starts_with(b"_") {
            self.summary.passed_over.insert(view.family.clone());
        }
        let options = HFileWriterOptions {
            sequence_ids: false,
            ..HFileWriterOptions::for_family(&view.descriptor, tags, self.now)
        };
        let unfinished = family.join(format!("_{}.tmp", region.encoded_name()));
        let path = family.join(region.encoded_name());
        let written = self.file(&unfinished, options, region, &mut scanner, first).and_then(|()| {
            self.vfs.rename(&unfinished, &path)?;
            self.vfs.sync_directory(&family)
        });
        if let Err(error) = written {
            // Who sees the file sees by its name that it is not whole.
            let _ = self.vfs.remove_file(&unfinished);
            return Err(error);
        }
        self.summary.files.push(path);
        Ok(())
    }

    /// Writes and syncs one file under a name that no bulk load looks at.
    fn file(
        &mut self,
        path: &Path,
        options: HFileWriterOptions,
        region: &Region,
        scanner: &mut StoreScanner,
        first: Cell,
    ) -> Result<()> {
        let file = self.vfs.create_new(path)?;
        let mut writer = HFileWriter::create(Arc::clone(&file), options)?;
        let mut next = Some(first);
        let mut unreported = 0;
        while let Some(cell) = next {
            if cell.row().len() > self.row_len_max && self.summary.long_rows.len() < LONG_ROWS_NAMED {
                self.summary.long_rows.insert(Bytes::copy_from_slice(cell.row()));
            }
            unreported += cell.encoded().len() as u64;
            if unreported >= PROGRESS_BYTES {
                (self.progress)(unreported);
                unreported = 0;
            }
            writer.append(&without_file_attributes(cell))?;
            next = scanner.next_kept()?.filter(|cell| region.contains(cell.row()));
        }
        (self.progress)(unreported);
        let info = StoreFileInfo { bulk_load_time: Some(self.now), ..StoreFileInfo::default() };
        let written = writer.finish(info)?;
        self.vfs.let_all_read(path)?;
        file.sync_all()?;
        self.summary.cells += written.entries;
        self.summary.bytes += written.file_bytes;
        Ok(())
    }
}

/// The cell without what only a mount understands.
fn without_file_attributes(cell: Cell) -> Cell {
    if cell.tag_iter().all(|(kind, _)| kind != tag_type::FILE_ATTRIBUTES) {
        return cell;
    }
    let kept = cell.tag_iter().filter(|(kind, _)| *kind != tag_type::FILE_ATTRIBUTES);
    let tags: Vec<Tag> = kept.map(|(kind, value)| Tag { kind, value: Bytes::copy_from_slice(value) }).collect();
    let (row, family, qualifier) = (cell.row(), cell.family(), cell.qualifier());
    let (timestamp, cell_type) = (cell.timestamp(), cell.cell_type());
    Cell::with_tags(row, family, qualifier, timestamp, cell_type, cell.value(), &encode_tags(&tags))
        .with_sequence_id(cell.sequence_id())
}
