//! Bulk loads: sorted cells become store files of the regions they belong to, under a new sequence id for each source, and all of them come
//! to be in one manifest edit (HBase `HRegion.bulkLoadHFiles` with an assigned sequence id, and `BulkLoadHFilesTool`, which cuts files at the
//! borders of regions).
//!
//! The cells are written anew, as the family's attributes say: so every block and cell of a foreign file has been checked before anybody
//! reads it, which HBase leaves out, and the file's own sequence ids, which say nothing here, are gone.

use super::{Region, RegionServices, WriteEntry};
use crate::cell::{Cell, CellScanner, CellType, LATEST_TIMESTAMP, compare};
use crate::error::{Error, Result};
use crate::hfile::StoreFileInfo;
use crate::manifest::{ManifestEdit, StoreFileEntry};
use crate::memstore::Segment;
use crate::schema::ColumnFamilyDescriptor;
use crate::store::{HStore, StoreFileWriter};
use bytes::Bytes;
use parking_lot::RwLockReadGuard;
use std::cmp::Ordering;
use std::sync::Arc;

/// Between two reports of progress, in bytes of cells.
const PROGRESS_BYTES: u64 = 1 << 20;

/// A load under way over neighbouring regions of one table. Nothing of it is visible before [`BulkLoad::commit`]; dropped before, it leaves
/// nothing.
pub struct BulkLoad<'a> {
    /// In key order.
    regions: &'a [Arc<Region>],
    services: &'a RegionServices,
    /// The sequence ids of the sources so far.
    entries: Vec<WriteEntry<'a>>,
    /// That of the next source, or of the last.
    sequence_id: u64,
    /// The first source has begun.
    begun: bool,
    /// How the files are written, if not as their families say.
    form: Option<ColumnFamilyDescriptor>,
    written: Written<'a>,
    _maintenance: Vec<RwLockReadGuard<'a, ()>>,
}

/// Files that are whole and not live yet: removed when dropped.
struct Written<'a> {
    services: &'a RegionServices,
    files: Vec<(Arc<Region>, Arc<HStore>, StoreFileEntry)>,
}

impl Drop for Written<'_> {
    fn drop(&mut self) {
        self.files.iter().for_each(|(_, _, entry)| self.services.store.discard(entry.file_id));
    }
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
    /// Begins a load into `regions`, the regions of a table, which the caller keeps from being replaced. Their memstores are flushed, so
    /// that files stay in the order of sequence ids. As in HBase the flush and the first source share one, newer than all that is flushed: which
    /// of two such files counts as older is a matter of their sizes. Writes go on meanwhile, but become visible only with the load.
    ///
    /// # Errors
    /// Those of flushing; [`Error::NotAllowed`] for a region that has been closed.
    pub fn begin(services: &'a RegionServices, regions: &'a [Arc<Region>]) -> Result<BulkLoad<'a>> {
        let sequence_id = services.wal()?.allocate_sequence_id();
        let entries = vec![WriteEntry::new(&services.mvcc, sequence_id)];
        for region in regions {
            region.flush_as(sequence_id)?;
        }
        let maintenance = regions.iter().map(|region| region.maintenance.read()).collect();
        if regions.iter().any(|region| region.stores.read().closed) {
            return Err(Error::NotAllowed("the region was closed".to_owned()));
        }
        let written = Written { services, files: Vec::new() };
        let (begun, form) = (false, None);
        Ok(BulkLoad { regions, services, entries, sequence_id, begun, form, written, _maintenance: maintenance })
    }

    /// A load that is older than everything (HBase `hbase.mapreduce.bulkload.assign.sequenceNumbers` off).
    fn unassigned(services: &'a RegionServices, regions: &'a [Arc<Region>]) -> BulkLoad<'a> {
        let maintenance = regions.iter().map(|region| region.maintenance.read()).collect();
        let written = Written { services, files: Vec::new() };
        let (entries, sequence_id, begun, form) = (Vec::new(), 0, false, None);
        BulkLoad { regions, services, entries, sequence_id, begun, form, written, _maintenance: maintenance }
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
        if std::mem::replace(&mut self.begun, true) {
            self.sequence_id = self.services.wal()?.allocate_sequence_id();
            self.entries.push(WriteEntry::new(&self.services.mvcc, self.sequence_id));
        }
        let mut loaded = LoadedCells::default();
        let mut target: Option<Target<'a>> = None;
        let mut last: Option<Cell> = None;
        let mut unreported = 0;
        while let Some(cell) = source.take() {
            source.advance()?;
            let cell = cell.with_sequence_id(self.sequence_id);
            check(&cell, last.as_ref())?;
            if last.as_ref().is_some_and(|last| compare(last, &cell) == Ordering::Equal) {
                loaded.superseded += 1;
                continue;
            }
            if target.as_ref().is_none_or(|target| !target.region.contains(cell.row())) {
                self.finish(target.take())?;
                target = Some(self.begin_file(&cell, tags)?);
            }
            if let Some(target) = &mut target {
                target.writer.append(&cell)?;
            }
            loaded.rows += u64::from(last.as_ref().is_none_or(|last| last.row() != cell.row()));
            loaded.cells += 1;
            unreported += cell.encoded().len() as u64;
            if unreported >= PROGRESS_BYTES {
                progress(std::mem::take(&mut unreported));
            }
            last = Some(cell);
        }
        progress(unreported);
        self.finish(target)?;
        Ok(loaded)
    }

    fn begin_file(&self, first: &Cell, tags: bool) -> Result<Target<'a>> {
        let region = self.regions.iter().find(|region| region.contains(first.row()));
        let region = region.ok_or_else(|| Error::invalid("a row belongs to none of the regions"))?;
        let store = region.stores.read().get(first.family()).cloned();
        let store = store.ok_or_else(|| region.no_such_family(first.family()))?;
        let descriptor = store.descriptor();
        let form = self.form.as_ref().unwrap_or(&descriptor);
        let writer = StoreFileWriter::create(&self.services.store, form, tags)?;
        Ok(Target { region: Arc::clone(region), store, writer })
    }

    fn finish(&mut self, target: Option<Target<'a>>) -> Result<()> {
        if let Some(Target { region, store, writer }) = target {
            let info = match self.form {
                None => StoreFileInfo { max_sequence_id: Some(self.sequence_id), ..StoreFileInfo::default() },
                Some(_) => StoreFileInfo {
                    major_compaction: true,
                    bulk_load_time: Some(self.services.store.clock.now_millis()),
                    ..StoreFileInfo::default()
                },
            };
            let entry = writer.finish(self.sequence_id, info)?;
            self.written.files.push((region, store, entry));
        }
        Ok(())
    }

    /// Makes everything live and visible at once; returns how many store files came to be.
    ///
    /// # Errors
    /// Those of the file system and the manifest.
    pub fn commit(mut self) -> Result<usize> {
        let mut edits = Vec::with_capacity(self.written.files.len() + 1);
        let mut views = Vec::with_capacity(self.written.files.len());
        for (region, store, file) in &self.written.files {
            views.push((Arc::clone(region), Arc::clone(store), store.open_file(file.clone())?));
            let family = store.family().clone();
            edits.push(ManifestEdit::AddStoreFile { region: region.id(), family, file: file.clone() });
        }
        if views.is_empty() {
            return Ok(0);
        }
        edits.push(ManifestEdit::SetLastSequenceId { sequence_id: self.sequence_id });
        self.services.store.sync_directory()?;
        if let Err(error) = self.services.commit(&edits) {
            if matches!(error, Error::Poisoned { .. }) {
                // The edit may be on disk: then the files are live.
                self.written.files.clear();
            }
            return Err(error);
        }
        self.written.files.clear();
        let count = views.len();
        for (region, store, view) in views {
            let stores = region.stores.write();
            store.replace_files(&[], vec![view]);
            region.note_files(&stores);
        }
        for entry in std::mem::take(&mut self.entries) {
            entry.complete();
        }
        self.services.mvcc.wait_for(self.sequence_id);
        self.services.work.raise();
        Ok(count)
    }
}

/// The file being written.
struct Target<'a> {
    region: Arc<Region>,
    store: Arc<HStore>,
    writer: StoreFileWriter<'a>,
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
        let mut load = match assign_sequence_id {
            true => BulkLoad::begin(&self.services, &regions)?,
            false => BulkLoad::unassigned(&self.services, &regions),
        };
        load.form = Some(form);
        let sorted = Segment::new();
        sorted.insert(cells.into_iter().map(|cell| cell.with_sequence_id(0)));
        let sorted = Arc::new(sorted);
        let mut source = sorted.scanner(u64::MAX);
        source.seek(&Cell::first_on_row(b""))?;
        load.load(&mut source, sorted.has_tags(), &mut |_| {})?;
        load.commit().map(|_| ())
    }
}
