//! Writing one store file: what a flush or compaction keeps, into a file that is durable before anybody hears of it.

use super::context::StoreContext;
use crate::cell::Cell;
use crate::error::{Error, Result};
use crate::hfile::{HFileWriter, HFileWriterOptions, StoreFileInfo, WriteThrough};
use crate::manifest::StoreFileEntry;
use crate::scanner::{Losses, StoreScanner};
use crate::schema::ColumnFamilyDescriptor;
use crate::vfs::File;
use bytes::Bytes;
use std::sync::Arc;

/// What the new file is to say about itself.
#[derive(Clone, Copy, Debug)]
pub struct StoreFileRequest<'a> {
    /// Every edit up to this id that the store holds is in this file or an older one (MAX_SEQ_ID_KEY).
    pub max_sequence_id: u64,
    /// It is the result of a compaction of all files.
    pub major: bool,
    /// Some of the cells may have tags.
    pub tags: bool,
    /// Names of the files that it replaces; none for a flush.
    pub compacted: &'a [String],
}

impl StoreFileRequest<'_> {
    fn file_info(&self) -> StoreFileInfo {
        StoreFileInfo {
            max_sequence_id: Some(self.max_sequence_id),
            major_compaction: self.major,
            bulk_load_time: None,
            compacted: Some(self.compacted.to_vec()),
        }
    }
}

/// What came of it.
#[derive(Debug)]
pub struct WrittenStoreFile {
    /// The file. When nothing was kept it is one without cells, as HBase writes it.
    pub entry: StoreFileEntry,
    /// What was left out.
    pub losses: Losses,
}

/// Rows that a compaction keeps: those of its region. References hold others as well.
#[derive(Clone, Debug, Default)]
pub struct RowBounds {
    /// First row, inclusive; empty = from the beginning.
    pub start: Bytes,
    /// End row, exclusive; empty = to the end.
    pub end: Bytes,
}

impl RowBounds {
    fn is_behind(&self, row: &[u8]) -> bool {
        !self.end.is_empty() && row >= &self.end[..]
    }
}

/// How many bytes are written between two calls of `progress`.
const PROGRESS_BYTES: u64 = 1 << 20;

/// A store file in the making (HBase `StoreFileWriter`). Dropped before it is finished, its file is removed.
pub struct StoreFileWriter<'a> {
    context: &'a StoreContext,
    file_id: u64,
    file: Arc<dyn File>,
    created_millis: i64,
    /// Taken when the file is finished.
    writer: Option<HFileWriter>,
}

impl<'a> StoreFileWriter<'a> {
    /// Begins a file under a new id, as the family's attributes say; `tags` if some of the cells may have tags.
    ///
    /// # Errors
    /// Those of making the file.
    pub fn create(
        context: &'a StoreContext,
        descriptor: &ColumnFamilyDescriptor,
        tags: bool,
    ) -> Result<StoreFileWriter<'a>> {
        let file_id = context.new_file_id();
        let file = context.vfs.create_new(&context.file_path(file_id))?;
        let created_millis = context.clock.now_millis();
        let options = HFileWriterOptions::for_family(descriptor, tags, created_millis);
        let mut writer = HFileWriter::create(Arc::clone(&file), options).inspect_err(|_| context.discard(file_id))?;
        let kinds = descriptor.cache_on_write();
        if kinds.any() {
            let cache = Arc::clone(&context.cache);
            writer.write_through(WriteThrough { cache, file_id, in_memory: descriptor.in_memory, kinds });
        }
        Ok(StoreFileWriter { context, file_id, file, created_millis, writer: Some(writer) })
    }

    /// Appends a cell.
    ///
    /// # Errors
    /// Those of [`HFileWriter::append`].
    pub fn append(&mut self, cell: &Cell) -> Result<()> {
        self.writer.as_mut().map_or(Ok(()), |writer| writer.append(cell))
    }

    /// Ends the file and makes it durable; the directory is the caller's to sync.
    ///
    /// # Errors
    /// Those of writing and syncing.
    pub fn finish(mut self, max_sequence_id: u64, info: StoreFileInfo) -> Result<StoreFileEntry> {
        // What a bulk load brought is no compaction's result, although HBase's tools say so.
        let major = info.major_compaction && info.bulk_load_time.is_none();
        let Some(writer) = self.writer.take() else { return Err(Error::invalid("a store file is finished twice")) };
        let written = writer.finish(info).and_then(|summary| self.file.sync_all().map(|()| summary));
        let summary = written.inspect_err(|_| self.context.discard(self.file_id))?;
        let (min_timestamp, max_timestamp) = summary.time_range.unwrap_or((i64::MAX, i64::MIN));
        let (first_row, last_row) = summary.rows.unwrap_or_default();
        Ok(StoreFileEntry {
            file_id: self.file_id,
            size: summary.file_bytes,
            max_sequence_id,
            entries: summary.entries,
            tombstones: summary.tombstones,
            min_timestamp,
            max_timestamp,
            first_row,
            last_row,
            is_reference: false,
            created_millis: self.created_millis,
            major,
        })
    }
}

impl Drop for StoreFileWriter<'_> {
    fn drop(&mut self) {
        if self.writer.is_some() {
            self.context.discard(self.file_id);
        }
    }
}

/// Writes what `scanner` keeps within `bounds` to a new file, and makes the file durable (the directory is the caller's to sync).
/// `progress` hears of every megabyte; its error ends the work, as any does: then the file is removed.
///
/// # Errors
/// Those of reading, writing, and `progress`.
pub fn write_store_file(
    context: &StoreContext,
    descriptor: &ColumnFamilyDescriptor,
    scanner: &mut StoreScanner,
    bounds: &RowBounds,
    request: StoreFileRequest<'_>,
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<WrittenStoreFile> {
    scanner.seek(&bounds.start)?;
    let mut next = scanner.next_kept()?.filter(|cell| !bounds.is_behind(cell.row()));
    let mut writer = StoreFileWriter::create(context, descriptor, request.tags)?;
    let mut unreported = 0;
    while let Some(cell) = next.take() {
        writer.append(&cell)?;
        unreported += cell.encoded().len() as u64;
        if unreported >= PROGRESS_BYTES {
            progress(unreported)?;
            unreported = 0;
        }
        next = scanner.next_kept()?.filter(|cell| !bounds.is_behind(cell.row()));
    }
    progress(unreported)?;
    let entry = writer.finish(request.max_sequence_id, request.file_info())?;
    Ok(WrittenStoreFile { entry, losses: scanner.losses() })
}

/// True for errors that another try in another file may not meet: a full disk is waited for, everything else counts.
pub fn is_disk_failure(error: &Error) -> bool {
    matches!(error, Error::Io { .. })
}
