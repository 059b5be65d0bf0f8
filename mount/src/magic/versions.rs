//! `.versions/<cell>/<ts>`: every stored version of a cell, newest first, and its tombstones as `<ts>.del` (contract.md, section 1).

use super::MagicListing;
use super::file::{MagicFile, MagicOpened};
use super::hooks::{Change, MountHooks};
use super::node::{CellAddress, MagicNode, TableHandle};
use crate::names;
use crate::ops::{FsError, FsResult};
use bytes::Bytes;
use cellfs::cell::{Cell, CellType};
use cellfs::client::{ColumnSelection, Delete, DeleteMarker, Put, ResultScanner, Scan, TimeRange, WriteTime};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is stored at one timestamp of a cell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Stored {
    /// A delete marker, of the version, the column or the family.
    pub(super) marker: bool,
    /// A value.
    pub(super) value: Option<Bytes>,
}

/// The cells stored in a row, markers too, from one family or from all.
fn raw_cells(table: &TableHandle, row: &Bytes, family: Option<&Bytes>, time: TimeRange) -> FsResult<RawCells> {
    let mut columns = ColumnSelection::default();
    if let Some(family) = family {
        columns.add_family(family.clone());
    }
    let scan = Scan {
        start_row: row.clone(),
        stop_row: row.clone(),
        include_stop: true,
        columns,
        max_versions: u32::MAX,
        time_range: time,
        raw: true,
        batch: Some(1000),
        ..Scan::new()
    };
    Ok(RawCells { scanner: table.0.scan(&scan)?, part: Vec::new().into_iter() })
}

/// Walks the parts of a row's raw scan.
struct RawCells {
    scanner: Box<dyn ResultScanner>,
    part: std::vec::IntoIter<Cell>,
}

impl Iterator for RawCells {
    type Item = FsResult<Cell>;

    fn next(&mut self) -> Option<FsResult<Cell>> {
        loop {
            if let Some(cell) = self.part.next() {
                return Some(Ok(cell));
            }
            match self.scanner.next() {
                Ok(Some(result)) => self.part = result.cells.into_iter(),
                Ok(None) => return None,
                Err(error) => return Some(Err(error.into())),
            }
        }
    }
}

fn of_family(cell: &Cell) -> bool {
    matches!(cell.cell_type(), CellType::DeleteFamily | CellType::DeleteFamilyVersion)
}

/// The timestamps of a cell with what is stored there; values are kept only where asked for.
fn stored(cell: &CellAddress, time: TimeRange, keep_values: bool) -> FsResult<BTreeMap<i64, Stored>> {
    let mut found: BTreeMap<i64, Stored> = BTreeMap::new();
    for raw in raw_cells(&cell.table, &cell.row, Some(&cell.family), time)? {
        let raw = raw?;
        if of_family(&raw) {
            found.entry(raw.timestamp()).or_default().marker = true;
        } else if raw.qualifier() == cell.qualifier {
            let at = found.entry(raw.timestamp()).or_default();
            if raw.is_delete() {
                at.marker = true;
            } else if at.value.is_none() {
                at.value = Some(if keep_values { raw.value_bytes() } else { Bytes::new() });
            }
        } else if raw.qualifier() > &cell.qualifier[..] {
            break;
        }
    }
    Ok(found)
}

/// What is stored at one timestamp.
pub(super) fn stored_at(cell: &CellAddress, timestamp: i64) -> FsResult<Stored> {
    let time = TimeRange::new(timestamp, timestamp.saturating_add(1))?;
    Ok(stored(cell, time, true)?.remove(&timestamp).unwrap_or_default())
}

/// Finds `<ts>` or `<ts>.del`. A version under its own marker shows as the marker alone.
pub(super) fn lookup_version(cell: &CellAddress, name: &[u8]) -> FsResult<Option<MagicNode>> {
    let (digits, marker) = match name.strip_suffix(b".del") {
        Some(digits) => (digits, true),
        None => (name, false),
    };
    let Some(timestamp) = parse_timestamp(digits) else { return Ok(None) };
    let found = stored_at(cell, timestamp)?;
    Ok(match (marker, found.marker, found.value) {
        (true, true, _) => Some(MagicNode::VersionMarker(cell.clone(), timestamp)),
        (false, false, Some(_)) => Some(MagicNode::Version(cell.clone(), timestamp)),
        _ => None,
    })
}

/// A timestamp as a file name: digits without leading zeros. The largest number is HBase's "now" and names no version.
pub(super) fn parse_timestamp(digits: &[u8]) -> Option<i64> {
    let canonical = digits.iter().all(u8::is_ascii_digit) && (digits.len() == 1 || digits.first() != Some(&b'0'));
    std::str::from_utf8(digits).ok().filter(|_| canonical)?.parse().ok().filter(|timestamp| *timestamp < i64::MAX)
}

/// Finds `<cell>` below `.versions`: there for each legal name of a column of the table's families.
pub(super) fn lookup_cell(table: &TableHandle, row: &Bytes, name: &[u8]) -> FsResult<Option<MagicNode>> {
    let address = |family: Bytes, qualifier: Bytes| {
        MagicNode::CellVersions(CellAddress { table: table.clone(), row: row.clone(), family, qualifier })
    };
    match names::parse_cell(name) {
        Some(names::CellName::Column(family, qualifier)) => {
            Ok(table.0.descriptor().families.contains_key(&family).then(|| address(family, qualifier)))
        }
        Some(names::CellName::Short(_)) => {
            for cell in raw_cells(table, row, None, TimeRange::ALL)? {
                let cell = cell?;
                if names::cell_name(cell.family(), cell.qualifier()) == name {
                    return Ok(Some(address(Bytes::copy_from_slice(cell.family()), cell.qualifier_bytes())));
                }
            }
            Ok(None)
        }
        None => Ok(None),
    }
}

/// Lists the columns of a row that have anything stored.
pub(super) fn list_cells(table: &TableHandle, row: &Bytes) -> FsResult<MagicListing> {
    let (table, row) = (table.clone(), row.clone());
    let mut last: Option<(Bytes, Bytes)> = None;
    let cells = raw_cells(&table, &row, None, TimeRange::ALL)?;
    Ok(Box::new(cells.filter_map(move |cell| {
        let cell = match cell {
            Ok(cell) => cell,
            Err(error) => return Some(Err(error)),
        };
        let hidden_family = cell.family() == cellfs::schema::ROW_ATTRIBUTES_FAMILY;
        let same = last.as_ref().is_some_and(|last| last.0 == cell.family() && last.1 == cell.qualifier());
        if of_family(&cell) || hidden_family || same {
            return None;
        }
        let (family, qualifier) = (Bytes::copy_from_slice(cell.family()), cell.qualifier_bytes());
        last = Some((family.clone(), qualifier.clone()));
        let name = Bytes::from(names::cell_name(&family, &qualifier));
        let address = CellAddress { table: table.clone(), row: row.clone(), family, qualifier };
        Some(Ok((name, MagicNode::CellVersions(address))))
    })))
}

/// Lists the versions and markers of a cell, newest first.
pub(super) fn list_versions(cell: &CellAddress) -> FsResult<MagicListing> {
    let cell = cell.clone();
    let found = stored(&cell, TimeRange::ALL, false)?;
    Ok(Box::new(found.into_iter().rev().map(move |(timestamp, at)| {
        Ok(match at.marker {
            true => (Bytes::from(format!("{timestamp}.del")), MagicNode::VersionMarker(cell.clone(), timestamp)),
            false => (Bytes::from(timestamp.to_string()), MagicNode::Version(cell.clone(), timestamp)),
        })
    })))
}

/// `rm <ts>`: a marker that hides that one version.
pub(super) fn delete_version(cell: &CellAddress, timestamp: i64, hooks: &dyn MountHooks) -> FsResult<()> {
    let marker = DeleteMarker::Version {
        family: cell.family.clone(),
        qualifier: cell.qualifier.clone(),
        time: WriteTime::At(timestamp),
    };
    cell.table.0.delete(Delete::row(cell.row.clone()).marker(marker))?;
    hooks.changed(changed(cell));
    Ok(())
}

fn changed(cell: &CellAddress) -> Change {
    Change::Cell {
        table: cell.table.id(),
        row: cell.row.clone(),
        family: cell.family.clone(),
        qualifier: cell.qualifier.clone(),
    }
}

/// A version that is open for writing: a put at its timestamp when it is closed.
pub(super) struct VersionFile {
    cell: CellAddress,
    timestamp: i64,
    hooks: Arc<dyn MountHooks>,
    content: Vec<u8>,
    dirty: bool,
    appends: bool,
}

impl VersionFile {
    /// Opens a version with its present value, or a new one with none, which closing makes even if nothing is written.
    pub(super) fn open(
        cell: CellAddress,
        timestamp: i64,
        hooks: Arc<dyn MountHooks>,
        present: Option<Bytes>,
        flags: i32,
    ) -> VersionFile {
        VersionFile {
            cell,
            timestamp,
            hooks,
            dirty: present.is_none(),
            content: present.map(Vec::from).unwrap_or_default(),
            appends: flags & libc::O_APPEND != 0,
        }
    }

    fn checked(&self, size: u64) -> FsResult<usize> {
        let limit = self.hooks.cell_max();
        match usize::try_from(size) {
            Ok(fits) if size <= limit => Ok(fits),
            _ => Err(FsError::new(libc::EFBIG, format!("a cell is at most {limit} bytes (cell.max)"))),
        }
    }
}

impl MagicFile for VersionFile {
    fn read(&mut self, offset: u64, size: usize) -> FsResult<Bytes> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.content.len());
        let end = start.saturating_add(size).min(self.content.len());
        Ok(Bytes::copy_from_slice(self.content.get(start..end).unwrap_or(&[])))
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> FsResult<usize> {
        let offset = if self.appends { self.content.len() as u64 } else { offset };
        let end = self.checked(offset.saturating_add(data.len() as u64))?;
        if self.content.len() < end {
            self.content.resize(end, 0);
        }
        if let Some(target) = self.content.get_mut(end - data.len()..end) {
            target.copy_from_slice(data);
        }
        self.dirty = true;
        Ok(data.len())
    }

    fn truncate(&mut self, size: u64) -> FsResult<()> {
        let size = self.checked(size)?;
        self.content.resize(size, 0);
        self.dirty = true;
        Ok(())
    }

    fn flush(&mut self) -> FsResult<()> {
        if !self.dirty {
            return Ok(());
        }
        let (family, qualifier) = (self.cell.family.clone(), self.cell.qualifier.clone());
        let value = Bytes::copy_from_slice(&self.content);
        let put = Put::new(self.cell.row.clone()).add_at(family, qualifier, WriteTime::At(self.timestamp), value);
        self.cell.table.0.put(put)?;
        self.dirty = false;
        self.hooks.changed(changed(&self.cell));
        Ok(())
    }

    fn size(&self) -> Option<u64> {
        Some(self.content.len() as u64)
    }

    fn opened(&self) -> MagicOpened {
        MagicOpened { direct_io: true, no_flush: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_have_one_spelling() {
        assert_eq!(parse_timestamp(b"0"), Some(0));
        assert_eq!(parse_timestamp(b"1764533701250"), Some(1_764_533_701_250));
        assert_eq!(parse_timestamp(b"9223372036854775806"), Some(i64::MAX - 1));
        for bad in [&b""[..], b"00", b"01", b"-1", b"+1", b" 1", b"1x", b"9223372036854775807", b"99999999999999999999"]
        {
            assert_eq!(parse_timestamp(bad), None, "{}", bad.escape_ascii());
        }
    }
}
