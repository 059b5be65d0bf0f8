//! `.cf/<family>/<row>/<qualifier>`: a table seen through one family.
//!
//! Such a directory of a row is another way to the row, as those below `.via` are; what differs are the names in it, which are qualifiers alone. They are turned
//! into the row's own spelling where an operation begins ([`CellFs::spot`]), so that everything behind it knows one way of naming a cell.

use super::inode::{Inode, Node, Way};
use super::lookup::row_scan;
use super::{CellFs, refuse};
use crate::magic::TableHandle;
use crate::names::{self, QualifierName, RowName};
use crate::ops::{Caller, Entry, FsError, FsResult};
use bytes::Bytes;
use cellfs::client::{ResultScanner, Scan};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// The one dot name of a row that is found through a family as well: short names do not tell the key.
const ROW_KEY: &[u8] = b".key";

/// What a name is given for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NameUse {
    /// To find what has it: a name that nothing can have is not there.
    Find,
    /// For something to be made: a name that nothing can have is refused.
    Make,
}

impl CellFs {
    /// The directory of a number, and a name in it as that directory's own listing spells it. Where it has no room for the name of a cell (below `.cf` names are
    /// shorter), the cell's whole spelling.
    pub(super) fn spot<'a>(
        &self,
        number: u64,
        name: &'a OsStr,
        given: NameUse,
    ) -> FsResult<(Arc<Inode>, Cow<'a, [u8]>)> {
        let name = name.as_bytes();
        if name.len() > names::MAX_NAME {
            return refuse(
                libc::ENAMETOOLONG,
                "a name has at most 255 bytes; longer keys have a short form, see the listing",
            );
        }
        let shown = self.shown_inode(number)?;
        let Some(target) = shown.target() else { return Ok((shown, Cow::Borrowed(name))) };
        let name = match shown.node() {
            Node::Via(table, Way::Family(family), row) if name != ROW_KEY => {
                Cow::Owned(self.column_spelling(&table, &family, &row, name, given)?)
            }
            _ => Cow::Borrowed(name),
        };
        Ok((Arc::clone(target), name))
    }

    /// `family:qualifier` of a name that is a qualifier alone.
    fn column_spelling(
        &self,
        table: &TableHandle,
        family: &Bytes,
        row: &Bytes,
        name: &[u8],
        given: NameUse,
    ) -> FsResult<Vec<u8>> {
        match (names::parse_qualifier(name), given) {
            (Some(QualifierName::Key(qualifier)), _) => return Ok(names::encode_column(family, &qualifier)),
            (Some(QualifierName::Short(_)), _) if table.0.descriptor().families.contains_key(family) => {
                let mut scan = row_scan(row);
                scan.columns.add_family(family.clone());
                let mut scanner = table.0.scan(&scan)?;
                while let Some(part) = scanner.next()? {
                    if let Some(cell) = part.cells.iter().find(|cell| names::qualifier_name(cell.qualifier()) == name) {
                        return Ok(names::encode_column(family, cell.qualifier()));
                    }
                }
            }
            _ => {}
        }
        match given {
            NameUse::Find => Err(FsError::not_found()),
            NameUse::Make => refuse(
                libc::EINVAL,
                format!(
                    "{} is not the name of a qualifier (docs: One family); there are no scratch files here",
                    name.escape_ascii()
                ),
            ),
        }
    }

    /// The rows with cells in a family.
    pub(super) fn rows_of_family(&self, table: &TableHandle, family: &Bytes) -> FsResult<Box<dyn ResultScanner>> {
        let mut scan = Scan { first_cell_only: true, ..Scan::new() };
        scan.columns.add_family(family.clone());
        Ok(table.0.scan(&scan)?)
    }

    /// Every row is found, whether it has a cell in the family or not.
    pub(super) fn lookup_in_family(&self, table: &TableHandle, family: Bytes, name: &[u8]) -> FsResult<Option<Entry>> {
        let row = self.resolve_row(table, name)?.ok_or_else(FsError::not_found)?;
        self.lookup_row_by(table, Way::Family(family), row)
    }

    pub(super) fn make_row_in_family(
        &self,
        caller: &Caller,
        table: &TableHandle,
        family: Bytes,
        name: &[u8],
        mode: u32,
    ) -> FsResult<Entry> {
        let Some(RowName::Key(row)) = names::parse_row(name) else {
            return refuse(libc::EINVAL, format!("{} is not the name of a row key (docs: Names)", name.escape_ascii()));
        };
        self.make_row_by(caller, table, Way::Family(family), row, mode)
    }

    /// Removes a row without cells. One whose cells are all of other families is not listed here and stays, so that `rm -r` of it ends without an error.
    pub(super) fn remove_row_in_family(&self, table: &TableHandle, family: &Bytes, name: &[u8]) -> FsResult<()> {
        self.table_writable(table)?;
        if name.starts_with(b".") {
            return refuse(libc::EPERM, "not a directory that can be removed");
        }
        let row = self.resolve_row(table, name)?.ok_or_else(FsError::not_found)?;
        if self.read_row_facts(table, &row)?.is_none() {
            return Err(FsError::not_found());
        }
        if self.shows_in_family(table, &row, family)? {
            return refuse(libc::ENOTEMPTY, "the row has cells in this family");
        }
        if self.shows_anything(table, &row)? {
            return Ok(());
        }
        self.remove_row(table, &names::row_name(&row))?;
        self.row_name_changed(table, &row);
        Ok(())
    }

    /// True if the row shows a cell in the family.
    fn shows_in_family(&self, table: &TableHandle, row: &Bytes, family: &Bytes) -> FsResult<bool> {
        let mut scan = row_scan(row);
        scan.columns.add_family(family.clone());
        let mut scanner = table.0.scan(&scan)?;
        while let Some(part) = scanner.next()? {
            let hidden = |qualifier: &[u8]| self.state.hidden.contains(table.id(), row, family, qualifier);
            if part.cells.iter().any(|cell| !hidden(cell.qualifier())) {
                return Ok(true);
            }
        }
        Ok(self.is_being_made_in(table, row, Some(family)))
    }

    /// True if somebody is creating a cell in the row, or in one family of it.
    pub(super) fn is_being_made_in(&self, table: &TableHandle, row: &Bytes, family: Option<&Bytes>) -> bool {
        !self.cells_being_made(table, row, family).is_empty()
    }
}
