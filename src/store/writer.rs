//! Writing one store file: what a flush or compaction keeps, into a file that is durable before anybody hears of it.

use super::context::StoreContext;
use crate::error::{Error, Result};
use crate::hfile::{HFileWriter, HFileWriterOptions, StoreFileInfo};
use crate::manifest::StoreFileEntry;
use crate::scanner::{Losses, StoreScanner};
use crate::schema::ColumnFamilyDescriptor;
use bytes::Bytes;
use std::sync::Arc;

/// What the new file is to say about itself.
#[derive(Clone, Copy, Debug)]
pub struct StoreFileRequest {
    /// Every edit up to this id that the store holds is in this file or an older one (MAX_SEQ_ID_KEY).
    pub max_sequence_id: u64,
    /// It is the result of a compaction of all files.
    pub major: bool,
    /// Some of the cells may have tags.
    pub tags: bool,
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
    request: StoreFileRequest,
    progress: &mut dyn FnMut(u64) -> Result<()>,
) -> Result<WrittenStoreFile> {
    scanner.seek(&bounds.start)?;
    let mut next = scanner.next_kept()?.filter(|cell| !bounds.is_behind(cell.row()));
    let file_id = context.new_file_id();
    let mut write = || -> Result<StoreFileEntry> {
        let file = context.vfs.create_new(&context.file_path(file_id))?;
        let created_millis = context.clock.now_millis();
        let options = HFileWriterOptions::for_family(descriptor, request.tags, created_millis);
        let mut writer = HFileWriter::create(Arc::clone(&file), options)?;
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
        let summary = writer.finish(StoreFileInfo {
            max_sequence_id: Some(request.max_sequence_id),
            major_compaction: request.major,
            bulk_load_time: None,
        })?;
        file.sync_all()?;
        let (min_timestamp, max_timestamp) = summary.time_range.unwrap_or((i64::MAX, i64::MIN));
        let (first_row, last_row) = summary.rows.unwrap_or_default();
        Ok(StoreFileEntry {
            file_id,
            size: summary.file_bytes,
            max_sequence_id: request.max_sequence_id,
            entries: summary.entries,
            tombstones: summary.tombstones,
            min_timestamp,
            max_timestamp,
            first_row,
            last_row,
            is_reference: false,
            created_millis,
            major: request.major,
        })
    };
    match write() {
        Ok(entry) => Ok(WrittenStoreFile { entry, losses: scanner.losses() }),
        Err(error) => {
            context.discard(file_id);
            Err(error)
        }
    }
}

/// True for errors that another try in another file may not meet: a full disk is waited for, everything else counts.
pub fn is_disk_failure(error: &Error) -> bool {
    matches!(error, Error::Io { .. })
}
