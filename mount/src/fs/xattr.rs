//! Extended attributes, with `-o xattr` (contract.md, section 5): read by name, never listed, never set. Everything they say is in dot files too.

use super::CellFs;
use super::inode::{Inode, Node};
use crate::magic::{CellAddress, TableHandle};
use crate::ops::{Caller, FsResult};
use bytes::Bytes;
use cellfs::client::Get;

/// What the names begin with.
const PREFIX: &[u8] = b"user.cellfs.";

impl CellFs {
    /// The value of an attribute; `None` where there is none of that name.
    pub(super) fn extended_attribute(&self, caller: &Caller, inode: &Inode, name: &[u8]) -> FsResult<Option<Bytes>> {
        let Some(name) = name.strip_prefix(PREFIX) else { return Ok(None) };
        if name == b"error" {
            return Ok(Some(self.state.errors.last(caller.uid).into()));
        }
        match (inode.node(), name) {
            (Node::Row(_, row), b"key") => Ok(Some(row)),
            (Node::Row(table, row), b"region") => self.region_name(&table, &row),
            (Node::Row(table, row), b"timestamp") => {
                let facts = self.read_row_facts(&table, &row)?;
                Ok(facts.map(|facts| facts.newest_millis.to_string().into()))
            }
            (Node::Cell(cell), b"key") => Ok(Some(cell.row)),
            (Node::Cell(cell), b"region") => self.region_name(&cell.table, &cell.row),
            (Node::Cell(cell), b"timestamp") => {
                let newest = self.versions_of(&cell, 1)?.first().copied();
                Ok(newest.map(|timestamp| timestamp.to_string().into()))
            }
            (Node::Cell(cell), b"versions") => Ok(Some(self.versions_of(&cell, u32::MAX)?.len().to_string().into())),
            _ => Ok(None),
        }
    }

    /// The timestamps of the visible versions, newest first.
    fn versions_of(&self, cell: &CellAddress, count: u32) -> FsResult<Vec<i64>> {
        let mut get = Get::new(cell.row.clone()).column(cell.family.clone(), cell.qualifier.clone());
        get.max_versions = count;
        Ok(cell.table.0.get(&get)?.cells.iter().map(cellfs::cell::Cell::timestamp).collect())
    }

    /// The encoded name of the region that holds a row, as in `.regions/`.
    fn region_name(&self, table: &TableHandle, row: &[u8]) -> FsResult<Option<Bytes>> {
        let regions = self.admin.regions(&table.0.name())?;
        let holds = |start: &[u8], end: &[u8]| row >= start && (end.is_empty() || row < end);
        let region = regions.into_iter().find(|region| holds(&region.start, &region.end));
        Ok(region.map(|region| region.encoded_name.into()))
    }
}
