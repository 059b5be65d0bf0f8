//! `.snap/<name>/`: snapshots of a table, each the table as it was then, with all that a table can do but be written.

use super::CellFs;
use super::inode::Node;
use crate::magic::TableHandle;
use crate::names;
use crate::ops::{Entry, FsError, FsResult};
use bytes::Bytes;
use cellfs::Error;

impl CellFs {
    /// The snapshot that `name` spells, as a directory of its rows.
    pub(super) fn lookup_snapshot(&self, table: &TableHandle, name: &[u8]) -> FsResult<Option<Entry>> {
        let Some(snapshot) = names::decode_row(name) else { return Err(FsError::not_found()) };
        match self.admin.open_snapshot(&table.0.name(), &snapshot) {
            Ok(view) => self.table_entry(TableHandle(view)).map(Some),
            // One may be taken at any time.
            Err(Error::NoSuchSnapshot(_)) => Err(FsError::not_found()),
            Err(error) => Err(error.into()),
        }
    }

    /// The snapshots by name, oldest first. One that cannot be read is left out here; its lookup says why.
    pub(super) fn list_snapshots(&self, table: &TableHandle) -> FsResult<Vec<(Bytes, Node)>> {
        let name = table.0.name();
        let mut found = Vec::new();
        for info in self.admin.list_snapshots(&name)? {
            if let Ok(view) = self.admin.open_snapshot(&name, &info.name) {
                let shown = Bytes::from(names::encode_row(&info.name).into_owned());
                found.push((shown, Node::Table(TableHandle(view))));
            }
        }
        Ok(found)
    }
}
