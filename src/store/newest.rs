//! The newest timestamp that concerns a column or a family of a row: what [`crate::client::WriteTime::AfterNewest`] needs.
//!
//! Only sources whose newest timestamp reaches the caller's floor are looked at, and the floor is almost always the clock's now: in the
//! usual case no file is touched.

use super::view::StoreView;
use crate::cell::{Cell, CellScanner, CellType};
use crate::error::Result;
use crate::hfile::ReadOptions;
use crate::memstore::{NewestCell, Segment};
use std::sync::Arc;

/// The newest timestamps found at or above a floor; `None` where nothing reaches it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Newest {
    /// Of puts.
    pub put: Option<i64>,
    /// Of markers.
    pub marker: Option<i64>,
}

impl Newest {
    /// Takes a cell into account.
    pub fn note(&mut self, cell_type: CellType, timestamp: i64) {
        let slot = if cell_type.is_delete() { &mut self.marker } else { &mut self.put };
        *slot = (*slot).max(Some(timestamp));
    }

    /// The newest of both.
    pub fn any(&self) -> Option<i64> {
        self.put.max(self.marker)
    }

    /// The first timestamp from `time` on that is newer than everything found.
    pub fn after(&self, time: i64) -> i64 {
        self.any().map_or(time, |newest| newest.saturating_add(1).max(time))
    }
}

/// A source that has cells of a row new enough to matter.
struct Reaching {
    source: Box<dyn CellScanner>,
    /// Markers of the family may be at the row's start.
    family_markers: bool,
}

impl StoreView {
    /// The newest put and the newest marker that concern the column, as far as they are at or above `floor`.
    ///
    /// # Errors
    /// Those of reading the files.
    pub fn newest_of_column(&self, row: &[u8], qualifier: &[u8], floor: i64) -> Result<Newest> {
        let mut newest = Newest::default();
        let segments: &[_] =
            if self.newest_in_segments(row, qualifier, floor, &mut newest) { &[] } else { &self.segments };
        for Reaching { mut source, family_markers } in self.sources_reaching(segments, row, Some(qualifier), floor)? {
            if family_markers {
                note_family_markers(source.as_mut(), &self.family, row, floor, &mut newest)?;
            }
            source.seek(&Cell::first_on_column(row, &self.family, qualifier))?;
            if let Some(cell) = source.peek()
                && cell.row() == row
                && cell.qualifier() == qualifier
                && cell.timestamp() >= floor
            {
                newest.note(cell.cell_type(), cell.timestamp());
            }
        }
        Ok(newest)
    }

    /// Takes the memstore's newest cell of the column into account; false where markers of families must be looked for.
    fn newest_in_segments(&self, row: &[u8], qualifier: &[u8], floor: i64, newest: &mut Newest) -> bool {
        for segment in &self.segments {
            if segment.timestamps().is_none_or(|(_, max)| max < floor) {
                continue;
            }
            match segment.newest_of_column(&self.family, row, qualifier, u64::MAX) {
                NewestCell::Cell(cell) if cell.timestamp() >= floor => {
                    newest.note(cell.cell_type(), cell.timestamp());
                }
                NewestCell::Cell(_) | NewestCell::Nothing => {}
                NewestCell::Undecided => return false,
            }
        }
        true
    }

    /// The newest timestamp of any cell of the family in the row, if it is at or above `floor`.
    ///
    /// # Errors
    /// Those of reading the files.
    pub fn newest_of_row(&self, row: &[u8], floor: i64) -> Result<Option<i64>> {
        let mut newest = None;
        for Reaching { mut source, .. } in self.sources_reaching(&self.segments, row, None, floor)? {
            source.seek(&Cell::first_on_row(row))?;
            while let Some(cell) = source.peek()
                && cell.row() == row
            {
                newest = newest.max(Some(cell.timestamp()).filter(|timestamp| *timestamp >= floor));
                source.advance()?;
            }
        }
        Ok(newest)
    }

    fn sources_reaching(
        &self,
        segments: &[Arc<Segment>],
        row: &[u8],
        qualifier: Option<&[u8]>,
        floor: i64,
    ) -> Result<Vec<Reaching>> {
        let mut sources: Vec<Reaching> = Vec::new();
        for segment in segments {
            let reaches = segment.timestamps().is_some_and(|(_, max)| max >= floor);
            if reaches && segment.may_contain_row(row) {
                let family_markers = segment.may_contain_family_marker();
                sources.push(Reaching { source: Box::new(segment.scanner(u64::MAX)), family_markers });
            }
        }
        for view in self.files.iter() {
            if view.entry.max_timestamp < floor || !view.spans_row(row) {
                continue;
            }
            let reader = view.file.reader()?;
            let may = match qualifier {
                Some(qualifier) => reader.may_contain_column(row, qualifier)?,
                None => reader.may_contain_row(row)?,
            };
            if may {
                let options = ReadOptions { cache_blocks: self.descriptor.block_cache, ..ReadOptions::default() };
                let family_markers = reader.may_contain_family_marker(row)?;
                sources.push(Reaching { source: view.scanner(options, None), family_markers });
            }
        }
        Ok(sources)
    }
}

/// Family markers stand among the cells of the empty qualifier, newest first.
fn note_family_markers(
    source: &mut dyn CellScanner,
    family: &[u8],
    row: &[u8],
    floor: i64,
    newest: &mut Newest,
) -> Result<()> {
    source.seek(&Cell::first_on_column(row, family, b""))?;
    while let Some(cell) = source.peek()
        && cell.row() == row
        && cell.qualifier().is_empty()
        && cell.timestamp() >= floor
    {
        if matches!(cell.cell_type(), CellType::DeleteFamily | CellType::DeleteFamilyVersion) {
            newest.note(cell.cell_type(), cell.timestamp());
            return Ok(());
        }
        source.advance()?;
    }
    Ok(())
}
