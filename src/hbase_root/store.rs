//! One family of one region: its store files, wherever they are, and what the logs add (HBase `HStore`, `StoreEngine.openStoreFiles`,
//! `StoreFileInfo`).

use super::file_name::{StoreFileName, bulk_load_sequence_id};
use super::layout::{self, RECOVERED_FILES, read_file, store_file_places, text};
use super::messages::{self, CompactionEvent, ReferenceMessage, SnapshotFile, StoreFileList};
use crate::cell::Cell;
use crate::client::TableName;
use crate::error::{Error, Result};
use crate::hfile::{HFileCounters, HFileReader, ReadOptions};
use crate::manifest::StoreFileEntry;
use crate::memstore::Segment;
use crate::scanner::RowRange;
use crate::schema::ColumnFamilyDescriptor;
use crate::store::{StoreContext, StoreFile, StoreFilePart, StoreFileView, StoreFiles, StoreView};
use bytes::Bytes;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock, Weak};

/// What all stores of a root directory share.
pub(super) struct RootFiles {
    pub(super) root: PathBuf,
    pub(super) context: Arc<StoreContext>,
    /// Files that are open: daughters of a split, clones and snapshots have the same ones.
    readers: Mutex<BTreeMap<PathBuf, Weak<HFileReader>>>,
}

impl RootFiles {
    pub(super) fn new(root: &Path, context: Arc<StoreContext>) -> RootFiles {
        RootFiles { root: root.to_path_buf(), context, readers: Mutex::default() }
    }

    fn open(&self, path: &Path, counters: &Arc<HFileCounters>) -> Result<Arc<HFileReader>> {
        let mut readers = self.readers.lock();
        if let Some(reader) = readers.get(path).and_then(Weak::upgrade) {
            return Ok(reader);
        }
        let file = self.context.vfs.open_read(path)?;
        let cache = Some(Arc::clone(&self.context.cache));
        let reader = HFileReader::open_counted(file, self.context.new_file_id(), cache, Arc::clone(counters))?;
        readers.insert(path.to_path_buf(), Arc::downgrade(&reader));
        Ok(reader)
    }

    /// Finds the file of a region under any of the roofs that HBase knows.
    fn find(&self, table: &TableName, region: &str, family: &str, file: &str, named: &Path) -> Result<PathBuf> {
        for place in store_file_places(&self.root, table, region, family, file) {
            if self.context.vfs.exists(&place)? {
                return Ok(place);
            }
        }
        let what = format!(
            "the store file {file} of region {region} of {table} is neither in data/ nor in archive/: copy it too"
        );
        Err(Error::Corruption { file: named.to_path_buf(), offset: 0, what })
    }
}

/// Where a store's list of files comes from.
#[derive(Clone, Debug)]
pub(super) enum StoreSource {
    /// The family's directory; true if a FILE store file tracker says which of its files count.
    Directory(PathBuf, bool),
    /// A snapshot's manifest, and where it is.
    Manifest(Vec<SnapshotFile>, PathBuf),
    /// All cells are in memory.
    Memory,
}

/// The files of a store, open.
struct OpenFiles {
    named: Vec<(String, StoreFileView)>,
    files: RwLock<Arc<StoreFiles>>,
}

/// A store.
pub(super) struct RootStore {
    files: Arc<RootFiles>,
    table: TableName,
    region: String,
    pub(super) family: Bytes,
    descriptor: Arc<ColumnFamilyDescriptor>,
    source: StoreSource,
    counters: Arc<HFileCounters>,
    pub(super) segment: Arc<Segment>,
    opened: OnceLock<std::result::Result<OpenFiles, Error>>,
    /// Inputs of compactions that a log tells of.
    compacted: Mutex<BTreeSet<String>>,
    files_considered: Arc<AtomicU64>,
}

impl RootStore {
    pub(super) fn new(
        files: &Arc<RootFiles>,
        (table, region): (&TableName, &str),
        family: Bytes,
        descriptor: ColumnFamilyDescriptor,
        source: StoreSource,
        counters: &Arc<HFileCounters>,
    ) -> RootStore {
        RootStore {
            files: Arc::clone(files),
            table: table.clone(),
            region: region.to_owned(),
            family,
            descriptor: Arc::new(descriptor),
            source,
            counters: Arc::clone(counters),
            segment: Arc::new(Segment::new()),
            opened: OnceLock::new(),
            compacted: Mutex::default(),
            files_considered: Arc::default(),
        }
    }

    /// The store as a reader sees it; its files are opened when they are first wanted.
    ///
    /// # Errors
    /// Those of opening them, again at each call.
    pub(super) fn view(&self) -> Result<StoreView> {
        Ok(StoreView {
            family: self.family.clone(),
            descriptor: Arc::clone(&self.descriptor),
            segments: vec![Arc::clone(&self.segment)],
            files: Arc::clone(&self.open_files()?.files.read()),
            files_considered: Arc::clone(&self.files_considered),
        })
    }

    /// Edits up to this sequence id are in store files; `None` without files.
    ///
    /// # Errors
    /// As [`RootStore::view`].
    pub(super) fn flushed_sequence_id(&self) -> Result<Option<u64>> {
        Ok(self.open_files()?.named.iter().map(|(_, view)| view.entry.max_sequence_id).max())
    }

    /// Takes the inputs of a finished compaction out.
    pub(super) fn forget(&self, names: &[String]) {
        self.compacted.lock().extend(names.iter().cloned());
        if let Some(Ok(opened)) = self.opened.get() {
            *opened.files.write() = Arc::new(self.remaining(&opened.named));
        }
    }

    fn remaining(&self, named: &[(String, StoreFileView)]) -> StoreFiles {
        let compacted = self.compacted.lock();
        StoreFiles::new(
            named.iter().filter(|(name, _)| !compacted.contains(name)).map(|(_, view)| view.clone()).collect(),
        )
    }

    fn open_files(&self) -> Result<&OpenFiles> {
        let opened = self.opened.get_or_init(|| {
            let named = self.open_all()?;
            for (_, view) in &named {
                self.compacted.lock().extend(replaced_by(view)?);
            }
            let files = RwLock::new(Arc::new(self.remaining(&named)));
            Ok(OpenFiles { named, files })
        });
        opened.as_ref().map_err(Error::again)
    }

    fn open_all(&self) -> Result<Vec<(String, StoreFileView)>> {
        let family = text(&self.family);
        match &self.source {
            StoreSource::Memory => Ok(Vec::new()),
            StoreSource::Manifest(files, place) => {
                let open = |file: &SnapshotFile| self.open_one(&file.name, file.reference.as_ref(), &family, place);
                files.iter().filter_map(|file| open(file).transpose()).collect()
            }
            StoreSource::Directory(directory, tracked) => self.open_directory(directory, *tracked, &family),
        }
    }

    fn open_directory(&self, directory: &Path, tracked: bool, family: &str) -> Result<Vec<(String, StoreFileView)>> {
        let vfs = self.files.context.vfs.as_ref();
        let tracker = if tracked { read_tracker(vfs, &directory.join(".filelist"))? } else { None };
        let mut opened = Vec::new();
        if let Some(list) = tracker {
            for file in &list.files {
                let path = directory.join(&file.name);
                opened.extend(self.open_one(&file.name, file.reference.as_ref(), family, &path)?);
            }
        } else {
            for entry in layout::list(vfs, directory)?.into_iter().filter(|entry| !entry.is_directory) {
                opened.extend(self.open_one(&entry.name, None, family, &directory.join(&entry.name))?);
            }
        }
        let recovered = directory.join(RECOVERED_FILES);
        for entry in layout::list(vfs, &recovered)?.into_iter().filter(|entry| !entry.is_directory) {
            let path = recovered.join(&entry.name);
            let reader = self.files.open(&path, &self.counters)?;
            opened.push((entry.name, self.view_of(reader, StoreFilePart::default(), 0, None)?));
        }
        Ok(opened)
    }

    /// Opens what `name` stands for; `None` for what is no store file.
    fn open_one(
        &self,
        name: &str,
        reference: Option<&ReferenceMessage>,
        family: &str,
        place: &Path,
    ) -> Result<Option<(String, StoreFileView)>> {
        let Some(parsed) = StoreFileName::parse(name) else { return Ok(None) };
        let (target, parent) = match &parsed {
            StoreFileName::Reference(target, parent) => (target.as_ref(), Some(parent.as_str())),
            other => (other, None),
        };
        let (path, file) = match target {
            StoreFileName::File(file) => {
                let region = parent.unwrap_or(&self.region);
                (self.files.find(&self.table, region, family, file, place)?, file)
            }
            StoreFileName::Link(link) => {
                (self.files.find(&link.table, &link.region, family, &link.file, place)?, &link.file)
            }
            StoreFileName::Reference(..) => return Ok(None),
        };
        let half = match (parent, reference) {
            (None, _) => None,
            (Some(_), Some(reference)) => Some(reference.clone()),
            (Some(_), None) => {
                let bytes = read_file(self.files.context.vfs.as_ref(), place)?;
                Some(messages::decode::<ReferenceMessage>(bytes, place, "reference")?)
            }
        };
        let reader = self.files.open(&path, &self.counters)?;
        let top = half.as_ref().is_some_and(|half| half.range == 0);
        let rows = half.map_or(Ok(RowRange::ALL), |half| half_of(&half, place))?;
        let part = StoreFilePart { rows, sequence_id: None };
        Ok(Some((name.to_owned(), self.view_of(reader, part, u64::from(top), bulk_load_sequence_id(file))?)))
    }

    /// A file with the sequence id that HBase gives it: that of its bulk load, or else the one it says; one more for a top half (HBase
    /// `HStoreFile.open`).
    fn view_of(
        &self,
        reader: Arc<HFileReader>,
        mut part: StoreFilePart,
        more: u64,
        bulk_load: Option<u64>,
    ) -> Result<StoreFileView> {
        let info = reader.info();
        let max_sequence_id = bulk_load.or(info.max_sequence_id).unwrap_or(0).saturating_add(more);
        if bulk_load.is_some() || info.bulk_load_time.is_some() {
            part.sequence_id = Some(max_sequence_id);
        }
        let (min_timestamp, max_timestamp) = info.time_range.unwrap_or((i64::MIN, i64::MAX));
        let last_row = match &info.last_row {
            None if info.entries > 0 => last_row(&reader)?,
            known => known.clone().unwrap_or_default(),
        };
        let entry = StoreFileEntry {
            file_id: reader.file_id(),
            size: info.file_bytes,
            max_sequence_id,
            entries: info.entries,
            tombstones: 0,
            min_timestamp,
            max_timestamp,
            first_row: info.first_row.clone().unwrap_or_default(),
            last_row,
            is_reference: part.rows != RowRange::ALL,
            created_millis: info.created.unwrap_or(0),
            major: info.major_compaction,
        };
        Ok(StoreFileView { file: StoreFile::of_reader(&self.files.context, reader, part), entry })
    }

    /// Reads all cells of the files into memory, in the order of the files' own comparator.
    ///
    /// # Errors
    /// Those of reading them.
    pub(super) fn read_all(&self) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for view in self.open_files()?.files.read().iter() {
            let mut scanner = view.file.reader()?.scanner(ReadOptions::streaming());
            scanner.seek_to_first()?;
            while let Some(cell) = crate::cell::CellScanner::take(&mut scanner) {
                cells.push(cell);
                crate::cell::CellScanner::advance(&mut scanner)?;
            }
        }
        Ok(cells)
    }
}

/// The rows of a reference.
fn half_of(half: &ReferenceMessage, place: &Path) -> Result<RowRange> {
    let key = &half.split_key;
    let row = key.split_first_chunk::<2>().and_then(|(len, rest)| rest.get(..usize::from(u16::from_be_bytes(*len))));
    let row = row.map(|row| key.slice_ref(row));
    let row = row.ok_or_else(|| Error::corruption(place, 0, "the border of a reference is no key"))?;
    Ok(match half.range {
        // The parent's first row as border: all of its file, after a merge.
        0 if row.is_empty() => RowRange::ALL,
        0 => RowRange { low: Bound::Included(row), high: Bound::Unbounded },
        _ => RowRange { low: Bound::Unbounded, high: Bound::Excluded(row) },
    })
}

fn last_row(reader: &Arc<HFileReader>) -> Result<Bytes> {
    let mut scanner = reader.scanner(ReadOptions::default());
    crate::cell::CellScanner::seek_to_last_row(&mut scanner)?;
    Ok(crate::cell::CellScanner::peek(&scanner).map(Cell::row_bytes).unwrap_or_default())
}

/// The names of the files that a compaction made this one of (file info `COMPACTION_EVENT_KEY`).
fn replaced_by(view: &StoreFileView) -> Result<Vec<String>> {
    let reader = view.file.reader()?;
    let Some(event) = reader.file_info().get("COMPACTION_EVENT_KEY") else { return Ok(Vec::new()) };
    let event: CompactionEvent = messages::decode(event.clone(), reader.path(), "compaction event")?;
    Ok(event.replaced.iter().map(|name| text(name)).collect())
}

/// The newer of a FILE tracker's two lists that can be read (HBase `StoreFileListFile`).
///
/// ```text
/// i32 length | StoreFileList | i32 CRC32 of the list
/// ```
fn read_tracker(vfs: &dyn crate::vfs::Vfs, directory: &Path) -> Result<Option<StoreFileList>> {
    if !vfs.exists(directory)? {
        // Names that begin with a dot are easily forgotten by who copies: then all files count.
        return Ok(None);
    }
    let mut best: Option<(u64, StoreFileList)> = None;
    let mut failure = None;
    for entry in layout::list(vfs, directory)?.into_iter().filter(|entry| !entry.is_directory) {
        let path = directory.join(&entry.name);
        // `f1.<generation>` since HBASE-27990, `f1` before.
        let generation = entry.name.split('.').nth(1).and_then(|digits| digits.parse().ok()).unwrap_or(0);
        match read_file(vfs, &path).and_then(|bytes| tracker_list(&bytes, &path)) {
            Ok(list) => {
                let age = |generation: u64, list: &StoreFileList| (generation, list.timestamp);
                let newer = best.as_ref().is_none_or(|(other, known)| age(generation, &list) > age(*other, known));
                if newer {
                    best = Some((generation, list));
                }
            }
            Err(error) => failure = Some(error),
        }
    }
    match (best, failure) {
        (Some((_, list)), _) => Ok(Some(list)),
        (None, Some(error)) => Err(error),
        (None, None) => Ok(Some(StoreFileList::default())),
    }
}

fn tracker_list(bytes: &Bytes, path: &Path) -> Result<StoreFileList> {
    let wrong = |what: &str| Error::corruption(path, 0, what);
    let short = || wrong("the list of store files ends early");
    let (length, rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
    let length = usize::try_from(i32::from_be_bytes(*length)).map_err(|_| wrong("a length is negative"))?;
    let (list, rest) = rest.split_at_checked(length).ok_or_else(short)?;
    let crc = rest.first_chunk::<4>().ok_or_else(short)?;
    if u32::from_be_bytes(*crc) != crc32fast::hash(list) {
        return Err(wrong("the checksum of the list of store files is wrong"));
    }
    messages::decode(bytes.slice_ref(list), path, "list of store files")
}
