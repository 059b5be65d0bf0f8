//! A table as HFiles that an HBase bulk load takes as they are: `DIR/<family>/<32 hex digits>`, one file for each family and region that
//! hold cells, or with other borders if asked for, such as those of the table that the files are for: a file within one region is loaded
//! as it is, others are rewritten by the client of the load. They hold what is stored: all versions and markers, with tags and timestamps,
//! without sequence ids, which the cluster gives.
//!
//! A file has a name that HBase looks at only when it is whole and on disk; until then its name begins with `_`, which bulk loads pass over
//! (HBase `BulkLoadHFilesTool.visitBulkHFiles`).

use super::Store;
use crate::cell::{Cell, CellScanner, Tag, encode_tags, tag_type};
use crate::client::TableName;
use crate::error::{Error, Result};
use crate::hfile::{HFileWriter, HFileWriterOptions, StoreFileInfo};
use crate::region::{Region, encoded_region_name};
use crate::scanner::{FamilyRules, ScanPolicy, StoreScan, StoreScanner};
use crate::schema::{Compression, ROW_ATTRIBUTES_FAMILY};
use crate::store::StoreView;
use crate::vfs::{File, Vfs};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
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

/// How a table is exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportOptions {
    /// Rows at which a file ends and the next one begins, in any order, none of them empty; `None`: where the table's regions begin.
    pub splits: Option<Vec<Bytes>>,
    /// The codec of all files in place of the families' own, for a cluster that lacks one.
    pub compression: Option<Compression>,
}

/// What an export wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExportSummary {
    /// The files, in the order of families and rows.
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
    compression: Option<Compression>,
    /// The ranges of rows that get a file each, in order; the first begins with the first row.
    parts: Vec<Part>,
    now: i64,
    row_len_max: usize,
    progress: &'a mut dyn FnMut(u64),
    unreported: u64,
    summary: ExportSummary,
}

/// A range of rows, up to where the next one begins.
struct Part {
    start: Bytes,
    /// The name of its files.
    name: String,
}

/// The file being written.
struct Target {
    part: usize,
    unfinished: PathBuf,
    path: PathBuf,
    file: Arc<dyn File>,
    writer: HFileWriter,
}

impl Store {
    /// Writes a table's cells to `directory`, which is missing or empty, for an HBase bulk load. `progress` hears of bytes of cells as they
    /// pass. Writes to a region while it is exported are in the export or not. Works on a store that is open for reading only.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`]; [`Error::InvalidArgument`] for an empty split key; [`Error::NotAllowed`] for a directory that holds something;
    /// those of reading and writing, after which files with whole names are whole, and others are missing.
    pub fn export_table(
        &self,
        table: &TableName,
        directory: &Path,
        options: &ExportOptions,
        progress: &mut dyn FnMut(u64),
    ) -> Result<ExportSummary> {
        let regions = self.open_regions(table)?;
        let vfs = self.inner.vfs.as_ref();
        let now = self.inner.now();
        let parts = parts(table, &regions, options.splits.as_deref(), now)?;
        prepare(vfs, directory)?;
        let table_len = match &table.namespace[..] {
            "default" => table.qualifier.len(),
            namespace => namespace.len() + 1 + table.qualifier.len(),
        };
        let mut export = Export {
            vfs,
            directory,
            compression: options.compression,
            parts,
            now,
            row_len_max: TABLE_AND_ROW_LEN_MAX.saturating_sub(table_len),
            progress,
            unreported: 0,
            summary: ExportSummary::default(),
        };
        let mut families = BTreeMap::<Bytes, Vec<(&Region, StoreView)>>::new();
        for region in &regions {
            for store in region.stores().iter().filter(|store| store.family() != ROW_ATTRIBUTES_FAMILY) {
                families.entry(store.family().clone()).or_default().push((region.as_ref(), store.view()));
            }
        }
        for views in families.values() {
            export.family(views)?;
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

/// The ranges of rows that get a file each.
fn parts(table: &TableName, regions: &[Arc<Region>], splits: Option<&[Bytes]>, now: i64) -> Result<Vec<Part>> {
    let Some(splits) = splits else {
        let part =
            |region: &Arc<Region>| Part { start: region.start().clone(), name: region.encoded_name().to_owned() };
        return Ok(regions.iter().map(part).collect());
    };
    if splits.iter().any(Bytes::is_empty) {
        return Err(Error::invalid("no file can end before the empty row"));
    }
    let starts: BTreeSet<Bytes> = splits.iter().cloned().chain([Bytes::new()]).collect();
    let part = |start: Bytes| Part { name: encoded_region_name(table, &start, now), start };
    Ok(starts.into_iter().map(part).collect())
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
    /// Exports one family of all regions, which are in key order.
    fn family(&mut self, views: &[(&Region, StoreView)]) -> Result<()> {
        let has_tags = |view: &StoreView| {
            view.segments.iter().any(|segment| segment.has_tags())
                || view.files.iter().any(|file| file.file.opened().is_some_and(|reader| reader.info().tags))
        };
        let tags = views.iter().any(|(_, view)| has_tags(view));
        let mut target: Option<Target> = None;
        let written = self.regions(views, tags, &mut target).and_then(|()| match target.take() {
            Some(last) => self.finish(last),
            None => Ok(()),
        });
        if let (Err(_), Some(target)) = (&written, &target) {
            // Who sees the file sees by its name that it is not whole.
            let _ = self.vfs.remove_file(&target.unfinished);
        }
        (self.progress)(std::mem::take(&mut self.unreported));
        written
    }

    fn regions(&mut self, views: &[(&Region, StoreView)], tags: bool, target: &mut Option<Target>) -> Result<()> {
        for (region, view) in views {
            let mut sources: Vec<Box<dyn CellScanner>> = Vec::new();
            for segment in view.segments.iter().filter(|segment| !segment.is_empty()) {
                sources.push(Box::new(segment.scanner(u64::MAX)));
            }
            for file in view.files.iter().rev() {
                sources.push(file.scanner_for_compaction());
            }
            if sources.is_empty() {
                continue;
            }
            // Raw and at the beginning of time, when nothing has expired: the cluster's own clock decides on that.
            let mut scan = StoreScan::compaction(ScanPolicy::Raw, FamilyRules::of(&view.descriptor, 0));
            scan.max_versions = u32::MAX;
            let mut scanner = StoreScanner::new(sources, &scan);
            // A file that two regions share since a split holds rows of both.
            scanner.seek(region.start())?;
            while let Some(cell) = scanner.next_kept()?.filter(|cell| region.contains(cell.row())) {
                self.cell(view, cell, tags, target)?;
            }
        }
        Ok(())
    }

    fn cell(&mut self, view: &StoreView, cell: Cell, tags: bool, target: &mut Option<Target>) -> Result<()> {
        let within = |part: usize| self.parts.get(part + 1).is_none_or(|next| cell.row() < &next.start[..]);
        if !target.as_ref().is_some_and(|target| within(target.part)) {
            if let Some(done) = target.take() {
                self.finish(done)?;
            }
            *target = Some(self.begin(view, cell.row(), tags)?);
        }
        if cell.row().len() > self.row_len_max && self.summary.long_rows.len() < LONG_ROWS_NAMED {
            self.summary.long_rows.insert(Bytes::copy_from_slice(cell.row()));
        }
        self.unreported += cell.encoded().len() as u64;
        if self.unreported >= PROGRESS_BYTES {
            (self.progress)(std::mem::take(&mut self.unreported));
        }
        target.as_mut().map_or(Ok(()), |target| target.writer.append(&without_file_attributes(cell)))
    }

    /// Begins the file that has `row`, under a name that no bulk load looks at.
    fn begin(&mut self, view: &StoreView, row: &[u8], tags: bool) -> Result<Target> {
        let family = self.directory.join(OsStr::from_bytes(&view.family));
        if !self.vfs.exists(&family)? {
            make_directory(self.vfs, &family)?;
        }
        if view.family.starts_with(b"_") {
            self.summary.passed_over.insert(view.family.clone());
        }
        let part = self.parts.partition_point(|part| &part.start[..] <= row).saturating_sub(1);
        let name = self.parts.get(part).map_or("", |part| part.name.as_str());
        let (unfinished, path) = (family.join(format!("_{name}.tmp")), family.join(name));
        let mut options = HFileWriterOptions {
            sequence_ids: false,
            ..HFileWriterOptions::for_family(&view.descriptor, tags, self.now)
        };
        options.compression = self.compression.unwrap_or(options.compression);
        let file = self.vfs.create_new(&unfinished)?;
        match HFileWriter::create(Arc::clone(&file), options) {
            Ok(writer) => Ok(Target { part, unfinished, path, file, writer }),
            Err(error) => {
                let _ = self.vfs.remove_file(&unfinished);
                Err(error)
            }
        }
    }

    /// Ends and syncs a file and gives it its name.
    fn finish(&mut self, target: Target) -> Result<()> {
        let Target { unfinished, path, file, writer, .. } = target;
        let install = || -> Result<()> {
            let info = StoreFileInfo { bulk_load_time: Some(self.now), ..StoreFileInfo::default() };
            let written = writer.finish(info)?;
            self.vfs.let_all_read(&unfinished)?;
            file.sync_all()?;
            self.vfs.rename(&unfinished, &path)?;
            if let Some(family) = path.parent() {
                self.vfs.sync_directory(family)?;
            }
            self.summary.cells += written.entries;
            self.summary.bytes += written.file_bytes;
            Ok(())
        };
        if let Err(error) = install() {
            let _ = self.vfs.remove_file(&unfinished);
            return Err(error);
        }
        self.summary.files.push(path);
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
