//! Increment and Append: new cells from current ones, under the row's lock (HBase `HRegion.reckonDeltas`).

use super::prepare::{Preparation, ttl_tag};
use crate::cell::{Cell, CellType, Tag, encode_tags, tag_type};
use crate::client::{Append, Get, Increment, RowResult, TimeRange, WriteTime};
use crate::error::{Error, Result};
use bytes::Bytes;

impl Preparation<'_> {
    /// Adds the cells of an increment. A column named twice is added to twice from the same current cell, as in HBase: the later cell wins.
    ///
    /// # Errors
    /// [`Error::NotALong`] where the current value is not 8 bytes wide; those of reading.
    pub fn increment(&mut self, increment: &Increment) -> Result<()> {
        let columns = increment.amounts.iter().map(|(family, qualifier, _)| (family, qualifier));
        let current = self.current(&increment.row, columns, increment.time_range)?;
        for (family, qualifier, amount) in &increment.amounts {
            let old = current.cell(family, qualifier);
            let base = match old {
                None => 0,
                Some(cell) => match <[u8; 8]>::try_from(cell.value()) {
                    Ok(value) => i64::from_be_bytes(value),
                    Err(_) => return Err(not_a_long(cell)),
                },
            };
            let value = base.wrapping_add(*amount).to_be_bytes();
            let time = self.delta_time(&increment.row, family, qualifier, old, increment.time)?;
            self.push_delta(&increment.row, family, qualifier, (old, time), &value, increment.ttl_millis);
        }
        Ok(())
    }

    /// Adds the cells of an append.
    ///
    /// # Errors
    /// [`Error::CellTooLarge`] where the value would outgrow the limit; those of reading.
    pub fn append(&mut self, append: &Append) -> Result<()> {
        let columns = append.values.iter().map(|(family, qualifier, _)| (family, qualifier));
        let current = self.current(&append.row, columns, append.time_range)?;
        let limit = self.region.services().config().limits.max_cell_bytes;
        for (family, qualifier, suffix) in &append.values {
            let old = current.cell(family, qualifier);
            let mut value = old.map_or_else(Vec::new, |cell| cell.value().to_vec());
            value.extend_from_slice(suffix);
            if value.len() as u64 > limit {
                return Err(Error::CellTooLarge { size: value.len() as u64, limit });
            }
            let time = self.delta_time(&append.row, family, qualifier, old, append.time)?;
            self.push_delta(&append.row, family, qualifier, (old, time), &value, append.ttl_millis);
        }
        Ok(())
    }

    fn current<'b>(
        &self,
        row: &Bytes,
        columns: impl Iterator<Item = (&'b Bytes, &'b Bytes)>,
        time_range: TimeRange,
    ) -> Result<RowResult> {
        let mut get = Get::new(row.clone());
        get.time_range = time_range;
        for (family, qualifier) in columns {
            get.columns.add_column(family.clone(), qualifier.clone());
        }
        if get.columns.is_all() {
            return Ok(RowResult::default());
        }
        self.region.get_locked(&get, self.now)
    }

    /// The new cell is newer than the current one (HBASE-18546), and where that is asked for than every marker that concerns it.
    fn delta_time(
        &mut self,
        row: &[u8],
        family: &[u8],
        qualifier: &[u8],
        old: Option<&Cell>,
        time: WriteTime,
    ) -> Result<i64> {
        let after_old = old.map_or(self.now, |cell| cell.timestamp().saturating_add(1).max(self.now));
        Ok(match time {
            WriteTime::AfterNewest => self.newest_of_column(row, family, qualifier, self.now)?.after(after_old),
            _ => after_old,
        })
    }

    /// The new cell carries the tags of the current one on, its time to live unless there is a new one.
    fn push_delta(
        &mut self,
        row: &[u8],
        family: &[u8],
        qualifier: &[u8],
        (old, timestamp): (Option<&Cell>, i64),
        value: &[u8],
        ttl_millis: Option<u64>,
    ) {
        let mut tags: Vec<Tag> = Vec::new();
        for (kind, value) in old.into_iter().flat_map(Cell::tag_iter) {
            if kind != tag_type::TTL || ttl_millis.is_none() {
                tags.push(Tag { kind, value: Bytes::copy_from_slice(value) });
            }
        }
        tags.extend(ttl_millis.map(ttl_tag));
        let tags = encode_tags(&tags);
        let cell = self.encode(row, family, qualifier, timestamp, CellType::Put, value, &tags);
        self.cells.push(cell);
    }
}

fn not_a_long(cell: &Cell) -> Error {
    let column = format!("{}:{}", String::from_utf8_lossy(cell.family()), String::from_utf8_lossy(cell.qualifier()));
    Error::NotALong { column, width: cell.value_len() }
}
