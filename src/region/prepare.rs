//! From requests to cells: timestamps, markers, tags (HBase `HRegion.prepareDeleteTimestamps`, `updateCellTimestamps`; hbase.md A7).

use super::Region;
use crate::cell::{Cell, CellType, LATEST_TIMESTAMP, Tag, encode_tags, tag_type};
use crate::client::{Condition, Delete, DeleteMarker, Get, Mutation, Put, PutCell, WriteTime};
use crate::error::{Error, Result};
use crate::schema::ROW_ATTRIBUTES_FAMILY;
use crate::store::Newest;
use bytes::{Bytes, BytesMut};
use std::collections::{HashMap, HashSet};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Cells larger than this are encoded outside of the region's arena, so that a large value never holds up others.
const LARGE_CELL: usize = 64 << 10;
/// Arenas begin small, since a store may have many regions, and double up to HBase's MSLAB chunk.
const SMALLEST_CHUNK: usize = 16 << 10;
const LARGEST_CHUNK: usize = 1 << 20;

/// The cells of one request for one region, being made while the locks of its rows are held.
pub struct Preparation<'a> {
    pub(super) region: &'a Region,
    /// The moment the rows were locked.
    pub(super) now: i64,
    /// What puts stamped "now" get: now, or the matched cell's timestamp if that is later (HBASE-14054).
    put_time: i64,
    pub(super) cells: Vec<Cell>,
    pending: PendingColumns,
}

/// Which columns the cells of a request are in, so that looking for the newest of a column does not walk them all: a batch has thousands, and each
/// put that must come after the newest asks. Built only when asked; may hold columns of cells that were taken back.
#[derive(Default)]
struct PendingColumns {
    /// Cells that are counted in.
    counted: usize,
    columns: HashSet<u64>,
    /// A marker of a family concerns columns that are not named.
    family_markers: bool,
}

impl PendingColumns {
    fn may_concern(&mut self, cells: &[Cell], row: &[u8], family: &[u8], qualifier: &[u8]) -> bool {
        for cell in cells.get(self.counted.min(cells.len())..).unwrap_or(&[]) {
            self.columns.insert(column_hash(cell.row(), cell.family(), cell.qualifier()));
            self.family_markers |= is_family_marker(cell);
        }
        self.counted = cells.len();
        self.family_markers || self.columns.contains(&column_hash(row, family, qualifier))
    }
}

fn column_hash(row: &[u8], family: &[u8], qualifier: &[u8]) -> u64 {
    xxh3_64_with_seed(qualifier, xxh3_64_with_seed(family, xxh3_64(row)))
}

fn is_family_marker(cell: &Cell) -> bool {
    matches!(cell.cell_type(), CellType::DeleteFamily | CellType::DeleteFamilyVersion)
}

impl<'a> Preparation<'a> {
    /// Nothing yet, as of the clock's now.
    pub fn new(region: &'a Region) -> Preparation<'a> {
        Preparation::at(region, region.services().store.clock.now_millis())
    }

    /// Nothing yet, as of `now`: the regions of one request share it.
    pub fn at(region: &'a Region, now: i64) -> Preparation<'a> {
        Preparation { region, now, put_time: now, cells: Vec::new(), pending: PendingColumns::default() }
    }

    /// Evaluates a condition on `row`; when it holds, puts stamped "now" are not older than what it found.
    ///
    /// # Errors
    /// Those of reading.
    pub fn check(&mut self, row: &Bytes, condition: &Condition) -> Result<bool> {
        let checked = self.region.check(row, condition, self.now)?;
        if checked.matches {
            self.put_time = self.put_time.max(checked.timestamp.unwrap_or(i64::MIN));
        }
        Ok(checked.matches)
    }

    /// Adds what a mutation writes, or nothing of it; returns the number of cells.
    ///
    /// # Errors
    /// As [`Preparation::mutation`].
    pub fn try_mutation(&mut self, mutation: &Mutation) -> Result<usize> {
        let before = self.cells.len();
        match self.mutation(mutation).and_then(|()| check_timestamps(self.cells.get(before..).unwrap_or(&[]))) {
            Ok(()) => Ok(self.cells.len() - before),
            Err(error) => {
                self.cells.truncate(before);
                self.pending.counted = self.pending.counted.min(before);
                Err(error)
            }
        }
    }

    /// Number of cells so far.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// True without cells.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The cells, in the order of the request.
    pub fn into_cells(self) -> Vec<Cell> {
        self.cells
    }

    /// Adds what a mutation writes.
    ///
    /// # Errors
    /// Those of reading what it depends on; [`Error::NotALong`] for increments.
    pub fn mutation(&mut self, mutation: &Mutation) -> Result<()> {
        match mutation {
            Mutation::Put(put) => self.put(put),
            Mutation::Delete(delete) => self.delete(delete),
            Mutation::Increment(increment) => self.increment(increment),
            Mutation::Append(append) => self.append(append),
        }
    }

    /// Adds the cells of a put.
    ///
    /// # Errors
    /// Those of looking up newest timestamps.
    pub fn put(&mut self, put: &Put) -> Result<()> {
        self.cells.reserve_exact(put.cells.len());
        for cell in &put.cells {
            let timestamp = self.put_timestamp(&put.row, cell)?;
            let tags = encode_put_tags(&cell.tags, put.ttl_millis);
            let stored =
                self.encode(&put.row, &cell.family, &cell.qualifier, timestamp, CellType::Put, &cell.value, &tags);
            self.cells.push(stored);
        }
        Ok(())
    }

    fn put_timestamp(&mut self, row: &[u8], cell: &PutCell) -> Result<i64> {
        match cell.time {
            WriteTime::Now | WriteTime::At(LATEST_TIMESTAMP) => Ok(self.put_time),
            WriteTime::At(timestamp) => self.within_slop(timestamp),
            WriteTime::AfterNewest => {
                let newest = self.newest_of_column(row, &cell.family, &cell.qualifier, self.put_time)?;
                Ok(newest.after(self.put_time))
            }
            WriteTime::ReplaceIfNewest(timestamp) => {
                let floor = timestamp.min(self.put_time);
                let newest = self.newest_of_column(row, &cell.family, &cell.qualifier, floor)?;
                let replaces = newest.put == Some(timestamp) && newest.marker.is_none_or(|marker| marker < timestamp);
                Ok(if replaces { timestamp } else { newest.after(self.put_time) })
            }
        }
    }

    /// HBase `HRegion.checkTimestamps`.
    fn within_slop(&self, timestamp: i64) -> Result<i64> {
        match self.region.services().config().limits.timestamp_slop_millis {
            Some(slop) if timestamp > self.now.saturating_add(slop) => {
                Err(Error::invalid(format!("the timestamp {timestamp} is more than {slop} ms ahead of the clock")))
            }
            _ => Ok(timestamp),
        }
    }

    /// Adds the markers of a delete.
    ///
    /// # Errors
    /// Those of looking up versions.
    pub fn delete(&mut self, delete: &Delete) -> Result<()> {
        let row = &delete.row;
        if delete.markers.is_empty() {
            for store in self.region.stores() {
                if &store.family()[..] != ROW_ATTRIBUTES_FAMILY {
                    let timestamp = self.family_marker_timestamp(row, store.family(), delete.row_time)?;
                    self.marker(row, store.family(), b"", timestamp, CellType::DeleteFamily);
                }
            }
            return Ok(());
        }
        let begin = self.cells.len();
        let mut occurrences: HashMap<(&Bytes, &Bytes), u32> = HashMap::new();
        for marker in &delete.markers {
            match marker {
                DeleteMarker::Version { family, qualifier, time } => {
                    let timestamp = match time {
                        WriteTime::At(timestamp) if *timestamp != LATEST_TIMESTAMP => *timestamp,
                        _ => {
                            let nth = occurrences.entry((family, qualifier)).or_insert(0);
                            *nth += 1;
                            self.nth_visible_version(row, family, qualifier, *nth)?.unwrap_or(self.now)
                        }
                    };
                    self.marker(row, family, qualifier, timestamp, CellType::Delete);
                }
                DeleteMarker::Column { family, qualifier, time } => {
                    let timestamp = match time {
                        WriteTime::At(timestamp) if *timestamp != LATEST_TIMESTAMP => *timestamp,
                        WriteTime::AfterNewest => {
                            let newest = self.newest_of_column(row, family, qualifier, self.now)?;
                            newest.any().map_or(self.now, |newest| newest.max(self.now))
                        }
                        _ => self.now,
                    };
                    self.marker(row, family, qualifier, timestamp, CellType::DeleteColumn);
                }
                DeleteMarker::Family { family, time } => {
                    let timestamp = self.family_marker_timestamp(row, family, *time)?;
                    // HBase Delete.addFamily forgets what was added of the family before.
                    let mut place = 0;
                    self.cells.retain(|cell| {
                        place += 1;
                        place <= begin || cell.family() != family
                    });
                    self.pending.counted = self.pending.counted.min(begin);
                    self.marker(row, family, b"", timestamp, CellType::DeleteFamily);
                }
                DeleteMarker::FamilyVersion { family, time } => {
                    let timestamp = self.family_marker_timestamp(row, family, *time)?;
                    self.marker(row, family, b"", timestamp, CellType::DeleteFamilyVersion);
                }
            }
        }
        Ok(())
    }

    fn marker(&mut self, row: &[u8], family: &[u8], qualifier: &[u8], timestamp: i64, cell_type: CellType) {
        let cell = self.encode(row, family, qualifier, timestamp, cell_type, b"", b"");
        self.cells.push(cell);
    }

    fn family_marker_timestamp(&self, row: &[u8], family: &[u8], time: WriteTime) -> Result<i64> {
        match time {
            WriteTime::At(timestamp) if timestamp != LATEST_TIMESTAMP => Ok(timestamp),
            WriteTime::AfterNewest => {
                let stored = match self.region.view_locked(family) {
                    Some(view) => view.newest_of_row(row, self.now)?,
                    None => None,
                };
                let pending = self.cells.iter().filter(|cell| cell.row() == row && cell.family() == family);
                Ok(pending.map(Cell::timestamp).chain(stored).fold(self.now, i64::max))
            }
            _ => Ok(self.now),
        }
    }

    /// The timestamp of the n-th newest version that a get sees.
    fn nth_visible_version(&self, row: &Bytes, family: &Bytes, qualifier: &Bytes, nth: u32) -> Result<Option<i64>> {
        let get = Get::new(row.clone()).column(family.clone(), qualifier.clone()).versions(nth);
        let found = self.region.get_locked(&get, self.now)?;
        Ok(found.cells.get(nth as usize - 1).map(Cell::timestamp))
    }

    /// The newest cells that concern a column: stored ones, and those of this request.
    pub(super) fn newest_of_column(
        &mut self,
        row: &[u8],
        family: &[u8],
        qualifier: &[u8],
        floor: i64,
    ) -> Result<Newest> {
        let mut newest = match self.region.view_locked(family) {
            Some(view) => view.newest_of_column(row, qualifier, floor)?,
            None => Newest::default(),
        };
        if !self.pending.may_concern(&self.cells, row, family, qualifier) {
            return Ok(newest);
        }
        for cell in &self.cells {
            let concerns = cell.qualifier() == qualifier || is_family_marker(cell);
            if concerns && cell.timestamp() >= floor && cell.row() == row && cell.family() == family {
                newest.note(cell.cell_type(), cell.timestamp());
            }
        }
        Ok(newest)
    }

    /// A cell in the region's arena, or by itself if it is large.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn encode(
        &self,
        row: &[u8],
        family: &[u8],
        qualifier: &[u8],
        timestamp: i64,
        cell_type: CellType,
        value: &[u8],
        tags: &[u8],
    ) -> Cell {
        let size = Cell::encoded_len(row.len(), family.len(), qualifier.len(), value.len(), tags.len());
        if size > LARGE_CELL {
            return Cell::with_tags(row, family, qualifier, timestamp, cell_type, value, tags);
        }
        let mut arena = self.region.arena.lock();
        if arena.capacity() < size {
            let chunk = self.region.next_chunk();
            *arena = BytesMut::with_capacity(chunk.max(size));
        }
        Cell::encode_into(&mut arena, row, family, qualifier, timestamp, cell_type, value, tags)
    }
}

impl Region {
    /// The size of the next arena chunk: as much as is in memory already, within limits.
    fn next_chunk(&self) -> usize {
        (self.active_bytes() as usize / 8).clamp(SMALLEST_CHUNK, LARGEST_CHUNK)
    }
}

/// The tags of a put's cell, the cell's own time to live among them (HBASE-10560).
pub fn encode_put_tags(tags: &[Tag], ttl_millis: Option<u64>) -> Bytes {
    if tags.is_empty() && ttl_millis.is_none() {
        return Bytes::new();
    }
    let ttl = ttl_millis.map(ttl_tag);
    let all: Vec<Tag> = tags.iter().cloned().chain(ttl).collect();
    encode_tags(&all)
}

/// A time to live as a tag; lengths beyond the range of Java's long never pass.
pub(super) fn ttl_tag(ttl_millis: u64) -> Tag {
    let millis = i64::try_from(ttl_millis).unwrap_or(i64::MAX);
    Tag { kind: tag_type::TTL, value: Bytes::copy_from_slice(&millis.to_be_bytes()) }
}

impl Preparation<'_> {
    /// Refuses assigned timestamps that have no successor: a column's history has reached the end of time.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`].
    pub fn check_timestamps(&self) -> Result<()> {
        check_timestamps(&self.cells)
    }
}

fn check_timestamps(cells: &[Cell]) -> Result<()> {
    if cells.iter().any(|cell| cell.timestamp() == LATEST_TIMESTAMP) {
        return Err(Error::invalid("the column's newest timestamp is the largest there is: nothing can be newer"));
    }
    Ok(())
}
