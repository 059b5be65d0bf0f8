//! Bulk loads: sorted cells become store files of the regions they belong to, under a new sequence id for each source, and all of them come
//! to be in one manifest edit (HBase `HRegion.bulkLoadHFiles` with an assigned sequence id, and `BulkLoadHFilesTool`, which cuts files at the
//! borders of regions).
//!
//! A load has two phases. The files are written aside ([`BulkLoad`]) while everybody goes on and nothing is held: nothing names them yet, and their
//! cells have no sequence id, which only the manifest will give them (HBase `_SeqId_` in the name of a bulk-loaded file). Then they are installed
//! ([`AsideFiles::install`]) while the writers of the table wait for one flush of what is in memory and one edit. A region that was split meanwhile
//! gets its daughters' parts as references; one that was merged or moved in any other way is found by the rows.
//!
//! The cells are written anew, as the family's attributes say: so every block and cell of a foreign file has been checked before anybody
//! reads it, which HBase leaves out, and the file's own sequence ids, which say nothing here, are gone.

use super::{Region, RegionServices, WriteEntry};
use crate::cell::{Cell, CellScanner, CellType, LATEST_TIMESTAMP, compare};
use crate::error::{Error, Result};
use crate::hfile::{ReadOptions, StoreFileInfo};
use crate::manifest::{ManifestEdit, StoreFileEntry};
use crate::memstore::Segment;
use crate::schema::ColumnFamilyDescriptor;
use crate::store::{FamilyCounters, StoreFile, StoreFileView, StoreFileWriter};
use bytes::Bytes;
use std::cmp::Ordering;
use std::sync::Arc;

/// Between two reports of progress, in bytes of cells.
const PROGRESS_BYTES: u64 = 1 << 20;

/// The first phase of a load: cells of one table on their way into files aside. Dropped, it leaves nothing.
pub struct BulkLoad<'a> {
    /// As they were at the beginning, in key order: a guess at where files should be cut.
    regions: &'a [Arc<Region>],
    services: &'a RegionServices,
    /// How the files are written, if not as their families say.
    form: Option<ColumnFamilyDescriptor>,
    /// The region that the open files are of.
    region: Option<&'a Arc<Region>>,
    /// A file for each family that the region has cells of.
    open: Vec<OpenFile<'a>>,
    /// Counts the sources.
    source: usize,
    aside: AsideFiles,
}

/// A file being written.
struct OpenFile<'a> {
    family: Bytes,
    counters: Arc<FamilyCounters>,
    writer: StoreFileWriter<'a>,
}

/// What was taken from one source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadedCells {
    /// Rows.
    pub rows: u64,
    /// Cells, markers included.
    pub cells: u64,
    /// Cells left out, for the one before has the same key.
    pub superseded: u64,
}

impl<'a> BulkLoad<'a> {
    /// Begins a load into `regions`, the regions of a table.
    pub fn begin(services: &'a Arc<RegionServices>, regions: &'a [Arc<Region>]) -> BulkLoad<'a> {
        let aside = AsideFiles { services: Arc::clone(services), files: Vec::new() };
        BulkLoad { regions, services, form: None, region: None, open: Vec::new(), source: 0, aside }
    }

    /// Writes the cells of `source`, which stands on its first one; they are of one family and in order. They are newer than all loaded before.
    /// Of cells with the same key, told apart by their old sequence ids alone, the first is kept: no reader could see the others. `tags` if
    /// some cells may have tags.
    /// `progress` hears of bytes of cells as they pass.
    ///
    /// # Errors
    /// [`Error::NoSuchColumnFamily`]; [`Error::InvalidArgument`] for cells that cannot be stored or are out of order; those of reading and
    /// writing. The load can then only be dropped.
    pub fn load(
        &mut self,
        source: &mut dyn CellScanner,
        tags: bool,
        progress: &mut dyn FnMut(u64),
    ) -> Result<LoadedCells> {
        let mut loaded = LoadedCells::default();
        let mut last: Option<Cell> = None;
        let mut unreported = 0;
        while let Some(cell) = source.take() {
            source.advance()?;
            let cell = cell.with_sequence_id(0);
            check(&cell, last.as_ref())?;
            if last.as_ref().is_some_and(|last| compare(last, &cell) == Ordering::Equal) {
                loaded.superseded += 1;
                continue;
            }
            self.append(&cell, tags)?;
            loaded.rows += u64::from(last.as_ref().is_none_or(|last| last.row() != cell.row()));
            loaded.cells += 1;
            unreported += cell.encoded().len() as u64;
            if unreported >= PROGRESS_BYTES {
                progress(std::mem::take(&mut unreported));
            }
            last = Some(cell);
        }
        progress(unreported);
        self.end_source()?;
        Ok(loaded)
    }

    /// Writes one cell into the file of its family and region. The cells of each family come in order and no two have the same key, those of all
    /// families row by row or family by family.
    ///
    /// # Errors
    /// [`Error::NoSuchColumnFamily`]; those of writing. The load can then only be dropped.
    pub fn append(&mut self, cell: &Cell, tags: bool) -> Result<()> {
        if self.region.is_none_or(|region| !region.contains(cell.row())) {
            self.finish_files()?;
            self.region = self.regions.iter().find(|region| region.contains(cell.row()));
        }
        let region = self.region.ok_or_else(|| Error::invalid("a row belongs to none of the regions"))?;
        if let Some(open) = self.open.iter_mut().find(|open| open.family == cell.family()) {
            return open.writer.append(cell);
        }
        let store = region.stores.read().get(cell.family()).cloned();
        let store = store.ok_or_else(|| region.no_such_family(cell.family()))?;
        let descriptor = store.descriptor();
        let form = self.form.as_ref().unwrap_or(&descriptor);
        let mut writer = StoreFileWriter::create(&self.services.store, form, tags)?;
        writer.append(cell)?;
        self.open.push(OpenFile { family: store.family().clone(), counters: Arc::clone(store.counters()), writer });
        Ok(())
    }

    /// The source at hand has ended; the next one is newer.
    ///
    /// # Errors
    /// Those of writing.
    pub fn end_source(&mut self) -> Result<()> {
        self.finish_files()?;
        self.region = None;
        self.source += 1;
        Ok(())
    }

    fn finish_files(&mut self) -> Result<()> {
        for OpenFile { family, counters, writer } in std::mem::take(&mut self.open) {
            let info = StoreFileInfo {
                major_compaction: self.form.is_some(),
                bulk_load_time: Some(self.services.store.clock.now_millis()),
                ..StoreFileInfo::default()
            };
            let entry = writer.finish(0, info)?;
            let file = StoreFile::open(&self.services.store, entry.file_id, Arc::clone(&counters.hfile))
                .inspect_err(|_| self.services.store.discard(entry.file_id))?;
            self.aside.files.push(AsideFile { source: self.source, family, file, entry });
        }
        Ok(())
    }

    /// Everything is written, and durable once this has returned.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn finish(mut self) -> Result<AsideFiles> {
        self.end_source()?;
        if !self.aside.files.is_empty() {
            self.services.store.sync_directory()?;
        }
        Ok(self.aside)
    }
}

/// Files that are whole and on disk and belong to nothing yet: removed when dropped, and at the next opening after a crash.
pub struct AsideFiles {
    services: Arc<RegionServices>,
    files: Vec<AsideFile>,
}

struct AsideFile {
    /// The source that it is of: the files of one source share a sequence id.
    source: usize,
    family: Bytes,
    file: Arc<StoreFile>,
    entry: StoreFileEntry,
}

impl Drop for AsideFiles {
    fn drop(&mut self) {
        self.files.iter().for_each(|file| self.services.store.discard(file.entry.file_id));
    }
}

/// What a region gets of a file: the region's place among those asked about, the family, and the file as the region is to see it.
pub struct Share {
    /// The place of the region.
    pub region: usize,
    /// The family.
    pub family: Bytes,
    /// The file.
    pub view: StoreFileView,
}

impl AsideFiles {
    /// How many files there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// True without files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// True if any of the files has a cell of the row.
    ///
    /// # Errors
    /// Those of reading.
    pub fn contains_row(&self, row: &[u8]) -> Result<bool> {
        for AsideFile { file, entry, .. } in &self.files {
            let view = StoreFileView { file: Arc::clone(file), entry: entry.clone() };
            if !view.spans_row(row) || !file.reader()?.may_contain_row(row)? {
                continue;
            }
            let mut scanner = view.scanner(ReadOptions::default(), None);
            scanner.seek(&Cell::first_on_row(row))?;
            if scanner.peek().is_some_and(|cell| cell.row() == row) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Gives the files to the regions that their rows belong to now, newer than everything written before; returns how many files came to be. The
    /// caller holds `regions`, all of the table's, with nothing in memory.
    ///
    /// # Errors
    /// [`Error::NoSuchColumnFamily`] for a family that has been dropped meanwhile; those of the manifest. Then nothing has changed.
    pub fn install(self, regions: &[Arc<Region>]) -> Result<usize> {
        if self.is_empty() {
            return Ok(0);
        }
        let services = Arc::clone(&self.services);
        Installation::begin(&services, self)?.into_regions(regions)
    }

    /// As [`AsideFiles::install`], but older than everything; nothing need be held (HBase `hbase.mapreduce.bulkload.assign.sequenceNumbers` off).
    fn install_unassigned(self, regions: &[Arc<Region>]) -> Result<()> {
        let services = Arc::clone(&self.services);
        let unassigned = Installation { services: &services, entries: Vec::new(), aside: self, sequence_id: 0 };
        unassigned.into_regions(regions).map(|_| ())
    }
}

/// The second phase of a load: its sequence ids are taken, so no reader comes to a state behind it before it is complete. Dropped, it has never
/// been.
pub struct Installation<'a> {
    services: &'a RegionServices,
    entries: Vec<WriteEntry<'a>>,
    aside: AsideFiles,
    /// That of the newest source.
    sequence_id: u64,
}

impl<'a> Installation<'a> {
    /// Takes a sequence id for each source that has files, in their order. Nobody writes to the table until the end.
    ///
    /// # Errors
    /// [`Error::ReadOnly`] in a store opened for reading.
    pub fn begin(services: &'a RegionServices, mut aside: AsideFiles) -> Result<Installation<'a>> {
        let (mut entries, mut sequence_id, mut source) = (Vec::new(), 0, None);
        for file in &mut aside.files {
            if source.replace(file.source) != Some(file.source) {
                sequence_id = services.wal()?.allocate_sequence_id();
                entries.push(WriteEntry::new(&services.mvcc, sequence_id));
            }
            file.entry.max_sequence_id = sequence_id;
        }
        Ok(Installation { services, entries, aside, sequence_id })
    }

    fn into_regions(mut self, regions: &[Arc<Region>]) -> Result<usize> {
        let mut shares = Vec::new();
        let mut edits = Vec::new();
        for Share { region, family, view } in self.shares(regions.iter().map(|region| (&region.start, &region.end)))? {
            let Some(region) = regions.get(region) else { continue };
            let store = region.stores.read().get(&family).cloned();
            let store = store.ok_or_else(|| region.no_such_family(&family))?;
            view.file.follow(&store.descriptor());
            edits.push(ManifestEdit::AddStoreFile { region: region.id(), family, file: view.entry.clone() });
            shares.push((region, store, view));
        }
        let count = self.commit(edits)?;
        for (region, store, view) in shares {
            region.publish_file(&store, view);
        }
        self.complete();
        Ok(count)
    }

    /// What regions with these borders get of the files.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the borders leave a row out.
    pub fn shares<'b>(&self, borders: impl Iterator<Item = (&'b Bytes, &'b Bytes)>) -> Result<Vec<Share>> {
        let borders: Vec<_> = borders.collect();
        let mut shares = Vec::with_capacity(self.aside.files.len());
        for AsideFile { family, file, entry, .. } in &self.aside.files {
            let before = shares.len();
            for (region, (start, end)) in borders.iter().enumerate() {
                if (end.is_empty() || entry.first_row < **end) && entry.last_row >= **start {
                    let mut entry = entry.clone();
                    entry.is_reference = entry.first_row < **start || !end.is_empty() && entry.last_row >= **end;
                    let view = StoreFileView { file: Arc::clone(file), entry };
                    shares.push(Share { region, family: family.clone(), view });
                }
            }
            if shares.len() == before {
                return Err(Error::invalid("a row belongs to none of the regions"));
            }
        }
        Ok(shares)
    }

    /// Makes everything live by one edit, of which `edits` name the files; returns how many files there are.
    ///
    /// # Errors
    /// Those of the manifest; then nothing has changed, unless the store is poisoned.
    pub fn commit(&mut self, mut edits: Vec<ManifestEdit>) -> Result<usize> {
        edits.push(ManifestEdit::SetLastSequenceId { sequence_id: self.sequence_id });
        let committed = self.services.commit(&edits);
        let count = self.aside.files.len();
        // After a failed sync of the manifest nobody knows whether it names the files: they must stay.
        if matches!(committed, Ok(()) | Err(Error::Poisoned { .. })) {
            self.aside.files.clear();
        }
        committed.map(|()| count)
    }

    /// The regions show the files: makes them visible, and waits until they are.
    pub fn complete(self) {
        self.entries.into_iter().for_each(|entry| {
            entry.complete();
        });
        self.services.mvcc.wait_for(self.sequence_id);
        self.services.work.raise();
    }
}

/// What HBase stores unchecked from a file, and could then not read, order or delete.
fn check(cell: &Cell, last: Option<&Cell>) -> Result<()> {
    let refuse = |what: &str| Err(Error::invalid(format!("{what}: {cell:?}")));
    if cell.row().is_empty() {
        return refuse("a cell without a row");
    }
    if cell.cell_type() == CellType::Maximum {
        return refuse("a search key among the cells");
    }
    if cell.timestamp() == LATEST_TIMESTAMP {
        return refuse("a cell at the time that means now, which nothing could delete");
    }
    match last {
        Some(last) if last.family() != cell.family() => refuse("a cell of a second family"),
        Some(last) if compare(last, cell) == Ordering::Greater => refuse("a cell out of order"),
        _ => Ok(()),
    }
}

impl Region {
    /// Adds a store file of `cells`, written as `form` says: HBase takes files for bulk loads as they are. With `assign_sequence_id` the memstore is flushed first and the cells are newer than everything before, whatever their timestamps; without, they
    /// are older than everything, and nothing is flushed.
    ///
    /// # Errors
    /// Those of [`BulkLoad`].
    pub fn load_cells(
        self: &Arc<Self>,
        family: &Bytes,
        cells: Vec<Cell>,
        form: ColumnFamilyDescriptor,
        assign_sequence_id: bool,
    ) -> Result<()> {
        if cells.iter().any(|cell| cell.family() != &family[..]) {
            return Err(Error::invalid("a cell of another family"));
        }
        let regions = [Arc::clone(self)];
        let mut load = BulkLoad::begin(&self.services, &regions);
        load.form = Some(form);
        let sorted = Segment::new();
        sorted.insert(cells.into_iter().map(|cell| cell.with_sequence_id(0)));
        let sorted = Arc::new(sorted);
        let mut source = sorted.scanner(u64::MAX);
        source.seek(&Cell::first_on_row(b""))?;
        load.load(&mut source, sorted.has_tags(), &mut |_| {})?;
        let aside = load.finish()?;
        if !assign_sequence_id {
            return aside.install_unassigned(&regions);
        }
        let held = self.hold_writers();
        held.flush()?;
        aside.install(&regions).map(|_| ())
    }
}
