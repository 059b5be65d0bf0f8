//! Store files in use: opened once, shared by the regions that have them, removed when the last reader of a dead one is gone.

use super::context::{StoreContext, store_file_name};
use super::part::{PartScanner, StoreFilePart};
use crate::cell::{Cell, CellScanner, compare};
use crate::client::TimeRange;
use crate::compaction::StoreFileFacts;
use crate::error::{Error, Result};
use crate::hfile::{HFileCounters, HFileReader, HFileScanner, ReadOptions};
use crate::manifest::StoreFileEntry;
use crate::schema::ColumnFamilyDescriptor;
use parking_lot::Mutex;
use std::cmp::Ordering;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering as Memory};
use std::sync::{Arc, OnceLock};

/// One store file in use. All regions that have it share one.
///
/// A file that cannot be read keeps its place: it is damaged, every read that needs it is an error that names it, and nothing removes it but what
/// removes all it holds (a table dropped or truncated, a family dropped).
pub struct StoreFile {
    context: Arc<StoreContext>,
    file_id: u64,
    counters: Arc<HFileCounters>,
    /// Unset while the file cannot be opened; each read tries again, since a file may be put back.
    reader: OnceLock<Arc<HFileReader>>,
    /// Why it cannot be opened, or what a compaction met in it.
    damage: Mutex<Option<Error>>,
    dead: AtomicBool,
    prefetched: AtomicBool,
    part: StoreFilePart,
    /// It is in a directory of store files of our own, not of an HBase root.
    own: bool,
}

impl StoreFile {
    /// Opens a file, or shares it if it is open; what is read from it is counted in the `counters` of who came first.
    ///
    /// # Errors
    /// Those of [`HFileReader::open`].
    pub fn open(context: &Arc<StoreContext>, file_id: u64, counters: Arc<HFileCounters>) -> Result<Arc<StoreFile>> {
        if let Some(open) = context.open_file(file_id) {
            open.reader()?;
            return Ok(open);
        }
        let reader = open_reader(context, file_id, &counters)?;
        Ok(context.note_open(StoreFile::new(context, file_id, counters, Some(reader), StoreFilePart::default(), true)))
    }

    /// As [`StoreFile::open`], of a file that the manifest names: where its bytes are wrong or missing it is damaged, and all others can be used.
    ///
    /// # Errors
    /// Those of the operating system that say nothing about the file.
    pub fn open_live(
        context: &Arc<StoreContext>,
        file_id: u64,
        counters: Arc<HFileCounters>,
    ) -> Result<Arc<StoreFile>> {
        if let Some(open) = context.open_file(file_id) {
            return Ok(open);
        }
        let (reader, damage) = match open_reader(context, file_id, &counters) {
            Ok(reader) => (Some(reader), None),
            Err(error) if is_damage(&error) => {
                log::error!("a store file cannot be read; reads that need it will fail: {error}");
                (None, Some(error))
            }
            Err(error) => return Err(error),
        };
        let file = StoreFile::new(context, file_id, counters, reader, StoreFilePart::default(), true);
        *file.damage.lock() = damage;
        Ok(context.note_open(file))
    }

    /// A file that is open already, or the part of it that a store has.
    pub fn of_reader(context: &Arc<StoreContext>, reader: Arc<HFileReader>, part: StoreFilePart) -> Arc<StoreFile> {
        let (file_id, counters) = (reader.file_id(), Arc::clone(reader.counters()));
        StoreFile::new(context, file_id, counters, Some(reader), part, false)
    }

    fn new(
        context: &Arc<StoreContext>,
        file_id: u64,
        counters: Arc<HFileCounters>,
        reader: Option<Arc<HFileReader>>,
        part: StoreFilePart,
        own: bool,
    ) -> Arc<StoreFile> {
        Arc::new(StoreFile {
            context: Arc::clone(context),
            file_id,
            counters,
            reader: reader.map_or_else(OnceLock::new, OnceLock::from),
            damage: Mutex::default(),
            dead: AtomicBool::new(false),
            prefetched: AtomicBool::new(false),
            part,
            own,
        })
    }

    /// Follows the family's attributes that concern the cache: IN_MEMORY from now on, PREFETCH_BLOCKS_ON_OPEN once.
    pub fn follow(self: &Arc<Self>, family: &ColumnFamilyDescriptor) {
        let Some(reader) = self.reader.get() else { return };
        reader.set_in_memory(family.in_memory);
        if family.prefetch_blocks_on_open() && !self.prefetched.swap(true, Memory::Relaxed) {
            self.context.prefetch_later(self);
        }
    }

    /// The reader.
    ///
    /// # Errors
    /// Of a damaged file, those of [`HFileReader::open`].
    pub fn reader(&self) -> Result<&Arc<HFileReader>> {
        if let Some(reader) = self.reader.get() {
            return Ok(reader);
        }
        match open_reader(&self.context, self.file_id, &self.counters) {
            Ok(reader) => {
                *self.damage.lock() = None;
                Ok(self.reader.get_or_init(|| reader))
            }
            Err(error) => {
                *self.damage.lock() = Some(error.again());
                Err(error)
            }
        }
    }

    /// The reader, where the file has been opened.
    pub fn opened(&self) -> Option<&Arc<HFileReader>> {
        self.reader.get()
    }

    /// What is wrong with the file, as far as it is known: it is not compacted.
    pub fn damage(&self) -> Option<Error> {
        self.damage.lock().as_ref().map(Error::again)
    }

    /// Notes an error that a compaction met, if it says that this file is damaged.
    pub fn note_damage(&self, error: &Error) {
        if let Error::Corruption { file, .. } = error
            && *file == self.path()
        {
            self.damage.lock().get_or_insert_with(|| error.again());
        }
    }

    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.reader.get().map_or_else(|| self.context.file_path(self.file_id), |reader| reader.path().to_path_buf())
    }

    /// The file's identity.
    pub fn file_id(&self) -> u64 {
        self.file_id
    }

    /// No store has the file any more, says the manifest: it is removed when nobody reads it.
    pub fn mark_dead(&self) {
        self.dead.store(true, Memory::Release);
    }
}

impl Drop for StoreFile {
    fn drop(&mut self) {
        self.context.note_closed(self.file_id);
        if self.dead.load(Memory::Acquire) {
            self.context.discard(self.file_id);
        }
    }
}

fn open_reader(context: &StoreContext, file_id: u64, counters: &Arc<HFileCounters>) -> Result<Arc<HFileReader>> {
    let file = context.vfs.open_read(&context.file_path(file_id))?;
    HFileReader::open_counted(file, file_id, Some(Arc::clone(&context.cache)), Arc::clone(counters))
}

/// True if the error says that a file's bytes are wrong or cannot be had; false if it may be as sound as others (too many open files, no permission).
fn is_damage(error: &Error) -> bool {
    match error {
        Error::Corruption { .. } | Error::Unsupported { .. } => true,
        Error::Io { source, .. } => {
            source.kind() == io::ErrorKind::NotFound
                || [libc::EIO, libc::EUCLEAN, libc::ENODATA].map(Some).contains(&source.raw_os_error())
        }
        _ => false,
    }
}

/// A store file as one store sees it.
#[derive(Clone)]
pub struct StoreFileView {
    /// The open file.
    pub file: Arc<StoreFile>,
    /// What the manifest says about it.
    pub entry: StoreFileEntry,
}

impl StoreFileView {
    /// What the compaction policy asks.
    pub fn facts(&self) -> StoreFileFacts {
        StoreFileFacts {
            file_id: self.entry.file_id,
            size: self.entry.size,
            // A file without cells never counts as expired (HBase's tracker knows no time then).
            max_timestamp: if self.entry.entries == 0 { i64::MAX } else { self.entry.max_timestamp },
            created_millis: self.entry.created_millis,
            is_reference: self.entry.is_reference,
            is_major: self.entry.major,
        }
    }

    /// The file's name in HBase, which adds its sequence id to the name of a file that was bulk loaded.
    pub fn hbase_name(&self) -> String {
        let name = store_file_name(self.entry.file_id);
        match self.file.opened().and_then(|reader| reader.info().bulk_load_time) {
            Some(_) => format!("{name}_SeqId_{}_", self.entry.max_sequence_id),
            None => name,
        }
    }

    /// False if `row` is before the first or after the last row of the file.
    pub fn spans_row(&self, row: &[u8]) -> bool {
        self.entry.entries > 0 && row >= &self.entry.first_row[..] && row <= &self.entry.last_row[..]
    }

    /// False if no cell of the file can matter to a read of `range` in a family whose oldest living timestamp is `oldest`.
    pub fn may_matter(&self, range: TimeRange, oldest: i64) -> bool {
        let (min, max) = (self.entry.min_timestamp, self.entry.max_timestamp);
        max >= oldest && max >= range.min() && (range.max() == i64::MAX || min < range.max())
    }

    /// A cursor over the file. It never seeks to a cell before `first`, where there is one: nobody wants those.
    pub fn scanner(&self, options: ReadOptions, first: Option<Cell>) -> Box<dyn CellScanner> {
        let reader = match self.file.reader() {
            Ok(reader) => reader,
            Err(error) => return Box::new(DamagedScanner(error)),
        };
        // One that was written before its sequence id was known: its cells have that of the manifest.
        let bulk_loaded = self.file.own && reader.info().bulk_load_time.is_some();
        let whole = HeldScanner { scanner: reader.scanner(options), first, _file: Arc::clone(&self.file) };
        let mut part = self.file.part.clone();
        if part.sequence_id.is_none() && bulk_loaded {
            part.sequence_id = Some(self.entry.max_sequence_id);
        }
        if part.is_whole() {
            return Box::new(whole);
        }
        Box::new(PartScanner::new(Box::new(whole), part))
    }

    /// A cursor for a compaction: reads far ahead and leaves the caches as they are.
    pub fn scanner_for_compaction(&self) -> Box<dyn CellScanner> {
        self.scanner(ReadOptions { cache_blocks: false, read_ahead: true, drop_behind: true }, None)
    }
}

/// A cursor that keeps its file from being removed.
struct HeldScanner {
    scanner: HFileScanner,
    first: Option<Cell>,
    _file: Arc<StoreFile>,
}

impl CellScanner for HeldScanner {
    fn peek(&self) -> Option<&Cell> {
        self.scanner.peek()
    }

    fn take(&mut self) -> Option<Cell> {
        self.scanner.take()
    }

    fn advance(&mut self) -> Result<()> {
        self.scanner.advance()
    }

    fn seek(&mut self, key: &Cell) -> Result<()> {
        match &self.first {
            Some(first) if compare(key, first) == Ordering::Less => self.scanner.seek(first),
            _ => self.scanner.seek(key),
        }
    }

    fn reseek(&mut self, key: &Cell) -> Result<()> {
        self.scanner.reseek(key)
    }

    fn seek_to_previous_row(&mut self, row: &[u8]) -> Result<()> {
        self.scanner.seek_to_previous_row(row)
    }

    fn seek_to_last_row(&mut self) -> Result<()> {
        self.scanner.seek_to_last_row()
    }
}

/// A cursor over a file that cannot be read: whoever asks for cells gets the error.
struct DamagedScanner(Error);

impl CellScanner for DamagedScanner {
    fn peek(&self) -> Option<&Cell> {
        None
    }

    fn take(&mut self) -> Option<Cell> {
        None
    }

    fn advance(&mut self) -> Result<()> {
        Err(self.0.again())
    }

    fn seek(&mut self, _key: &Cell) -> Result<()> {
        Err(self.0.again())
    }

    fn reseek(&mut self, _key: &Cell) -> Result<()> {
        Err(self.0.again())
    }

    fn seek_to_previous_row(&mut self, _row: &[u8]) -> Result<()> {
        Err(self.0.again())
    }

    fn seek_to_last_row(&mut self) -> Result<()> {
        Err(self.0.again())
    }
}

/// HBase `StoreFileComparators.SEQ_ID`: oldest first. A bulk load and the flush before it share a sequence id: the larger counts as older, and of two of
/// one size the load, which came later (HBase compares bulk load times, and a flush has the latest).
fn compare_by_age(left: &StoreFileView, right: &StoreFileView) -> Ordering {
    left.entry
        .max_sequence_id
        .cmp(&right.entry.max_sequence_id)
        .then_with(|| right.entry.size.cmp(&left.entry.size))
        .then_with(|| right.entry.file_id.cmp(&left.entry.file_id))
}

/// The files of a store, oldest first. Immutable: a flush or compaction makes a new list.
#[derive(Clone, Default)]
pub struct StoreFiles {
    files: Vec<StoreFileView>,
}

impl StoreFiles {
    /// The list of `files`, in whatever order.
    pub fn new(mut files: Vec<StoreFileView>) -> StoreFiles {
        files.sort_by(compare_by_age);
        StoreFiles { files }
    }

    /// The list without `removed` and with `added`.
    #[must_use]
    pub fn replaced(&self, removed: &[u64], added: Vec<StoreFileView>) -> StoreFiles {
        let kept = self.files.iter().filter(|view| !removed.contains(&view.entry.file_id)).cloned();
        StoreFiles::new(kept.chain(added).collect())
    }

    /// The files, oldest first.
    pub fn iter(&self) -> std::slice::Iter<'_, StoreFileView> {
        self.files.iter()
    }

    /// The files as a slice, oldest first.
    pub fn as_slice(&self) -> &[StoreFileView] {
        &self.files
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// True without files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|view| view.entry.size).sum()
    }

    /// The files that may be rewritten, newer than every damaged one: a rewrite takes files that stand one behind the other, and a damaged one stays.
    pub fn sound(&self) -> &[StoreFileView] {
        let damaged = self.files.iter().rposition(|view| view.file.damage().is_some());
        self.files.get(damaged.map_or(0, |place| place + 1)..).unwrap_or(&[])
    }

    /// True if any file is shared with another region since a split.
    pub fn has_references(&self) -> bool {
        self.files.iter().any(|view| view.entry.is_reference)
    }
}
