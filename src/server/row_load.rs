//! Loads of rows ([`TableLoad`]): sorted outside of memory, written to store files aside, installed as a bulk load.

use super::sorted_runs::{Entry, Merged, Sorter};
use super::table::TableHandle;
use crate::cell::{Cell, CellType, LATEST_TIMESTAMP, compare};
use crate::client::{
    DeleteMarker, Get, LoadKind, LoadSummary, Mutation, PutCell, RefusedLine, Table, TableLoad, WriteTime,
};
use crate::error::{Error, Result};
use crate::region::{AsideFiles, BulkLoad, check_mutation, encode_put_tags};
use crate::schema::ROW_ATTRIBUTES_FAMILY;
use bytes::{Bytes, BytesMut};
use std::cmp::Ordering;
use std::sync::Arc;

/// Cells are encoded one behind the other into chunks of this size.
const CHUNK: usize = 256 << 10;
/// The volume's room is looked at after so many bytes: its reserve is for what makes room.
const WATCH_BYTES: u64 = 4 << 20;

/// A load under way.
pub(super) struct RowLoad {
    table: TableHandle,
    kind: LoadKind,
    sorter: Sorter,
    /// Counts the cells: of equal keys the later one wins.
    taken: u64,
    /// Some cells have tags.
    tags: bool,
    arena: BytesMut,
}

impl RowLoad {
    /// Refuses what cannot be written at all.
    pub(super) fn begin(table: TableHandle, kind: LoadKind) -> Result<RowLoad> {
        table.begin_write(false)?;
        let sorter = Sorter::new(Arc::clone(&table.store.services));
        Ok(RowLoad { table, kind, sorter, taken: 0, tags: false, arena: BytesMut::new() })
    }

    fn cell(
        &mut self,
        column: (&[u8], &[u8], &[u8]),
        time: i64,
        cell_type: CellType,
        value: &[u8],
        tags: &[u8],
    ) -> Cell {
        let (row, family, qualifier) = column;
        let size = Cell::encoded_len(row.len(), family.len(), qualifier.len(), value.len(), tags.len());
        if self.arena.capacity() < size {
            self.arena = BytesMut::with_capacity(CHUNK.max(size));
        }
        self.tags |= !tags.is_empty();
        self.taken += 1;
        let cell = Cell::encode_into(&mut self.arena, row, family, qualifier, time, cell_type, value, tags);
        cell.with_sequence_id(self.taken)
    }

    /// The timestamp of a put's cell; the one that means "now" until it is known.
    fn put_time(&self, cell: &PutCell) -> Result<i64> {
        match cell.time {
            WriteTime::Now | WriteTime::AfterNewest => Ok(LATEST_TIMESTAMP),
            WriteTime::At(time) => self.within_slop(time),
            WriteTime::ReplaceIfNewest(_) => Err(Error::invalid("a load replaces no version")),
        }
    }

    /// HBase `HRegion.checkTimestamps`.
    fn within_slop(&self, time: i64) -> Result<i64> {
        match self.table.store.services.config().limits.timestamp_slop_millis {
            Some(slop) if time != LATEST_TIMESTAMP && time > self.table.store.now().saturating_add(slop) => {
                Err(Error::invalid(format!("the timestamp {time} is more than {slop} ms ahead of the clock")))
            }
            _ => Ok(time),
        }
    }
}

/// A marker's column, type and time.
fn marker_parts(marker: &DeleteMarker) -> Result<(&Bytes, &[u8], CellType, i64)> {
    let (family, qualifier, cell_type, time) = match marker {
        DeleteMarker::Version { family, qualifier, time } => (family, &qualifier[..], CellType::Delete, time),
        DeleteMarker::Column { family, qualifier, time } => (family, &qualifier[..], CellType::DeleteColumn, time),
        DeleteMarker::Family { family, time } => (family, &[][..], CellType::DeleteFamily, time),
        DeleteMarker::FamilyVersion { family, time } => (family, &[][..], CellType::DeleteFamilyVersion, time),
    };
    match time {
        WriteTime::At(time) if *time != LATEST_TIMESTAMP => Ok((family, qualifier, cell_type, *time)),
        _ => Err(Error::invalid("a marker of a load has a time of its own")),
    }
}

impl TableLoad for RowLoad {
    fn add(&mut self, line: u64, mutation: &Mutation) -> Result<()> {
        let config = self.table.store.services.config();
        check_mutation(&self.table.state.descriptor(), &config.limits, mutation)?;
        let row = mutation.row();
        let mut cells = Vec::new();
        match mutation {
            Mutation::Put(put) => {
                for cell in &put.cells {
                    let time = self.put_time(cell)?;
                    let tags = encode_put_tags(&cell.tags, put.ttl_millis);
                    let column = (&row[..], &cell.family[..], &cell.qualifier[..]);
                    cells.push(self.cell(column, time, CellType::Put, &cell.value, &tags));
                }
            }
            Mutation::Delete(delete) if !delete.markers.is_empty() => {
                for marker in &delete.markers {
                    let (family, qualifier, cell_type, time) = marker_parts(marker)?;
                    cells.push(self.cell((&row[..], &family[..], qualifier), time, cell_type, b"", b""));
                }
            }
            _ => return Err(Error::invalid("a load takes puts, and markers of families, columns and versions")),
        }
        if cells.iter().any(|cell| cell.family() == ROW_ATTRIBUTES_FAMILY) {
            return Err(Error::invalid("a load takes no attributes of rows"));
        }
        cells.into_iter().try_for_each(|cell| self.sorter.push(Entry { cell, line }))
    }

    fn finish(self: Box<Self>, refuse: &mut RefusedLine<'_>) -> Result<LoadSummary> {
        let RowLoad { table, kind, sorter, tags, .. } = *self;
        table.begin_write(false)?;
        let services = Arc::clone(&table.store.services);
        // What is written from here on has not been looked at by the checks below.
        let looked_at = services.mvcc.read_point();
        let mut cells = sorter.finish()?;
        let regions = table.state.regions();
        let load = BulkLoad::begin(&services, &regions);
        let mut builder = Builder {
            table: &table,
            kind,
            tags,
            now: table.store.now(),
            load,
            row: None,
            waiting: None,
            last: None,
            summary: LoadSummary::default(),
            refuse,
            unwatched: 0,
        };
        builder.take_all(&mut cells)?;
        let Builder { load, mut summary, refuse, .. } = builder;
        if summary.refused > 0 {
            return Ok(summary);
        }
        let aside = load.finish()?;
        match kind {
            LoadKind::Replace => table.store.replace_content(&table.state, aside)?,
            LoadKind::Add => {
                table.store.install_aside(&table.state, aside, &mut |_| Ok(true))?;
            }
            LoadKind::New => {
                let mut check = |aside: &AsideFiles| {
                    summary.refused = refuse_made_meanwhile(&table, aside, looked_at, refuse)?;
                    Ok(summary.refused == 0)
                };
                table.store.install_aside(&table.state, aside, &mut check)?;
            }
        }
        Ok(summary)
    }
}

/// Rows of the load that have come to be since `looked_at`, while the files were written; nobody writes now, and nothing is in memory.
fn refuse_made_meanwhile(
    table: &TableHandle,
    aside: &AsideFiles,
    looked_at: u64,
    refuse: &mut RefusedLine<'_>,
) -> Result<u64> {
    let mut refused = 0;
    for region in table.state.regions().iter() {
        let mut made = std::collections::BTreeSet::new();
        for store in region.stores() {
            for view in store.files().iter().filter(|view| view.entry.max_sequence_id > looked_at) {
                let mut scanner = view.scanner_for_compaction();
                scanner.seek(&Cell::first_on_row(region.start()))?;
                while let Some(row) = scanner.peek().map(Cell::row_bytes).filter(|row| region.contains(row)) {
                    if aside.contains_row(&row)? && table.exists(&Get::new(row.clone()))? {
                        made.insert(row.clone());
                    }
                    scanner.seek(&Cell::first_on_row(&[&row[..], &[0][..]].concat()))?;
                }
            }
        }
        refused += made.len() as u64;
        for row in made {
            refuse(0, &format!("the row {} was made while the load ran", row.escape_ascii()));
        }
    }
    Ok(refused)
}

/// The row at hand.
struct RowAtHand {
    key: Bytes,
    /// The first of its lines.
    line: u64,
    /// It is there already, and may not be.
    refused: bool,
    /// The newest marker of a family among the row's cells: family, timestamp, place in the input.
    marker: Option<(Bytes, i64, u64)>,
}

/// Turns sorted entries into cells with timestamps, and these into files.
struct Builder<'a, 'b> {
    table: &'a TableHandle,
    kind: LoadKind,
    tags: bool,
    /// What puts without a time get, if nothing of their column is newer.
    now: i64,
    load: BulkLoad<'a>,
    row: Option<RowAtHand>,
    /// The last put without a time of the column at hand: it comes first of its column, and where it belongs is known when the first cell with
    /// a time has come.
    waiting: Option<Entry>,
    last: Option<Cell>,
    summary: LoadSummary,
    refuse: &'b mut RefusedLine<'b>,
    /// Bytes written since the volume's room was looked at.
    unwatched: u64,
}

impl Builder<'_, '_> {
    fn take_all(&mut self, cells: &mut Merged) -> Result<()> {
        while let Some(entry) = cells.next()? {
            self.take(entry)?;
        }
        self.end_column()?;
        self.end_row();
        Ok(())
    }

    fn take(&mut self, entry: Entry) -> Result<()> {
        let cell = &entry.cell.clone();
        if self.row.as_ref().is_none_or(|row| row.key != cell.row()) {
            self.end_column()?;
            self.end_row();
            self.begin_row(&entry)?;
        }
        if let Some(row) = &mut self.row {
            row.line = row.line.min(entry.line);
            if row.refused {
                return Ok(());
            }
        }
        let same_column =
            |other: &Entry| other.cell.family() == cell.family() && other.cell.qualifier() == cell.qualifier();
        if !self.waiting.as_ref().is_some_and(same_column) {
            self.end_column()?;
        }
        if cell.timestamp() == LATEST_TIMESTAMP {
            // Later ones of the column have come before.
            self.waiting.get_or_insert(entry);
            return Ok(());
        }
        if let Some(waiting) = self.waiting.take() {
            let stamped = self.stamped(waiting, Some(cell))?;
            match stamped {
                Some(stamped) if compare(&stamped.cell, cell) == Ordering::Greater => self.waiting = Some(stamped),
                Some(stamped) => self.append(stamped.cell)?,
                None => {}
            }
        }
        self.note_marker(&entry.cell);
        self.append(entry.cell)
    }

    fn begin_row(&mut self, first: &Entry) -> Result<()> {
        let key = first.cell.row_bytes();
        let refused = self.kind == LoadKind::New && self.table.exists(&Get::new(key.clone()))?;
        self.summary.rows += 1;
        self.row = Some(RowAtHand { key, line: first.line, refused, marker: None });
        Ok(())
    }

    fn end_row(&mut self) {
        if let Some(row) = self.row.take().filter(|row| row.refused) {
            self.summary.refused += 1;
            (self.refuse)(row.line, &format!("the row {} exists", row.key.escape_ascii()));
        }
    }

    fn end_column(&mut self) -> Result<()> {
        let Some(waiting) = self.waiting.take() else { return Ok(()) };
        match self.stamped(waiting, None)? {
            Some(stamped) => self.append(stamped.cell),
            None => Ok(()),
        }
    }

    /// Gives a put its timestamp, if it has none: newer than what is stored of its column, and than what came before it in the input. `newest` is the
    /// newest cell with a time of the column in the input.
    fn stamped(&mut self, entry: Entry, newest: Option<&Cell>) -> Result<Option<Entry>> {
        let Entry { cell, line } = entry;
        if cell.timestamp() != LATEST_TIMESTAMP {
            return Ok(Some(Entry { cell, line }));
        }
        let mut time = self.now;
        if self.kind != LoadKind::Replace {
            let stores = self.table.state.region_for(cell.row())?.stores();
            if let Some(store) = stores.iter().find(|store| store.family() == cell.family()) {
                time = store.view().newest_of_column(cell.row(), cell.qualifier(), time)?.after(time);
            }
        }
        let place = cell.sequence_id();
        let marker = self.row.as_ref().and_then(|row| row.marker.as_ref());
        let marker = marker.filter(|(family, ..)| family == cell.family()).map(|(_, time, place)| (*time, *place));
        let newest = newest.map(|newest| (newest.timestamp(), newest.sequence_id()));
        for (earlier, _) in marker.into_iter().chain(newest).filter(|(_, other)| *other < place) {
            time = time.max(earlier.saturating_add(1));
        }
        if time == LATEST_TIMESTAMP {
            self.summary.refused += 1;
            (self.refuse)(line, "the column's newest timestamp is the largest there is: nothing can be newer");
            return Ok(None);
        }
        let (row, family, qualifier) = (cell.row(), cell.family(), cell.qualifier());
        let stamped = Cell::with_tags(row, family, qualifier, time, CellType::Put, cell.value(), cell.tags());
        Ok(Some(Entry { cell: stamped.with_sequence_id(place), line }))
    }

    fn note_marker(&mut self, cell: &Cell) {
        let of_family = matches!(cell.cell_type(), CellType::DeleteFamily | CellType::DeleteFamilyVersion);
        if let Some(row) = self.row.as_mut().filter(|_| of_family) {
            let newest = row.marker.as_ref().filter(|(family, ..)| family == cell.family());
            if newest.is_none_or(|(_, time, _)| *time < cell.timestamp()) {
                row.marker = Some((Bytes::copy_from_slice(cell.family()), cell.timestamp(), cell.sequence_id()));
            }
        }
    }

    /// Writes a cell, unless a later one of the same key has been.
    fn append(&mut self, cell: Cell) -> Result<()> {
        let cell = cell.with_sequence_id(0);
        if self.last.as_ref().is_some_and(|last| compare(last, &cell) == Ordering::Equal) {
            return Ok(());
        }
        self.unwatched += cell.encoded().len() as u64;
        if self.unwatched >= WATCH_BYTES {
            self.unwatched = 0;
            self.table.store.services.watch_space()?;
            self.table.store.services.check_writable(false)?;
        }
        self.load.append(&cell, self.tags)?;
        self.summary.cells += 1;
        self.last = Some(cell);
        Ok(())
    }
}
