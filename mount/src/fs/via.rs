//! `.via/<scheme>/<logical key>/`: rows under the keys that their stored keys are made of (docs/keys.md).
//!
//! Such a directory is another way to the row: an inode of its own, since a directory may have one place only, that stands for the row's in every operation.
//! Cells are the same inodes on both ways. What changes on the one way is asked for again on the other: names below `.via` live no longer than the call
//! that asked, and what is done there is taken back from the kernel's memory of the row's own place.

use super::inode::{Inode, Node, Way};
use super::{CellFs, refuse};
use crate::magic::{ScanParts, TableHandle};
use crate::names::{self, RowName};
use crate::ops::{Attributes, Caller, Entry, FsError, FsResult, Invalidation, Lifetime};
use bytes::Bytes;
use cellfs::client::{ResultScanner, Scan};
use cellfs::types::KeyScheme;
use std::collections::VecDeque;

/// A name that the kernel is to forget, an absent one too.
pub(super) fn short_lived(found: Option<Entry>) -> FsResult<Option<Entry>> {
    let entry = found.ok_or_else(FsError::not_found)?;
    Ok(Some(Entry { name_lifetime: Lifetime::None, ..entry }))
}

/// The attributes of a row as those of another directory of it.
pub(super) fn shown_as((attributes, _): (Attributes, Lifetime), inode: u64) -> (Attributes, Lifetime) {
    (Attributes { inode, ..attributes }, Lifetime::None)
}

impl CellFs {
    /// A name in a row was made or removed by way of `parent`; if that is not the row's own number, the kernel's memory of the row is wrong.
    pub(super) fn name_changed_via(&self, row: &Inode, parent: u64, name: &[u8]) {
        if row.number != parent {
            let name = names::listed_name(name);
            row.lock().absent.remove(&name);
            self.state.invalidate(Invalidation::Name { parent: row.number, name });
            self.state.invalidate(Invalidation::Inode { inode: row.number, attributes_only: true });
        }
    }

    /// The stored key of a name below a scheme.
    pub(super) fn stored_key(&self, table: &TableHandle, scheme: &KeyScheme, name: &[u8]) -> FsResult<Bytes> {
        match names::parse_row(name) {
            Some(RowName::Key(logical)) => Ok(scheme.stored(&logical)?),
            Some(RowName::Short(_)) => {
                let mut keys = self.list_via(table, scheme)?;
                while let Some((found, Node::Via(_, _, row))) = keys.next()? {
                    if found == name {
                        return Ok(row);
                    }
                }
                Err(FsError::not_found())
            }
            None => refuse(libc::EINVAL, format!("{} is not the name of a key (docs: Names)", name.escape_ascii())),
        }
    }

    pub(super) fn lookup_via(&self, table: &TableHandle, scheme: &KeyScheme, name: &[u8]) -> FsResult<Option<Entry>> {
        let row = self.stored_key(table, scheme, name).map_err(|error| match error.errno {
            libc::EINVAL => FsError::new(libc::ENOENT, error.reason),
            _ => error,
        })?;
        self.lookup_row_by(table, Way::Key(scheme.clone()), row)
    }

    /// A row that is there, as another directory than its own.
    pub(super) fn lookup_row_by(&self, table: &TableHandle, way: Way, row: Bytes) -> FsResult<Option<Entry>> {
        match self.lookup_row(table, &names::row_name(&row))? {
            Some(entry) => Ok(Some(self.via_entry(table, way, row, entry))),
            None => Err(FsError::not_found()),
        }
    }

    /// A row among those of a scan: one that has a cell for it, whatever `limit=` and `sample=` leave of its rows.
    pub(super) fn lookup_scanned(
        &self,
        caller: &Caller,
        table: &TableHandle,
        parts: &ScanParts,
        name: &[u8],
    ) -> FsResult<Option<Entry>> {
        let row = self.resolve_row(table, name)?.ok_or_else(FsError::not_found)?;
        if self.magic.scan_rows(table, parts, caller, Some(&row))?.next()?.is_none() {
            return Err(FsError::not_found());
        }
        self.lookup_row_by(table, Way::Scan(parts.clone()), row)
    }

    /// The next row of a scan.
    pub(super) fn next_scanned(
        table: &TableHandle,
        way: &Way,
        scanner: &mut dyn ResultScanner,
    ) -> FsResult<Option<(Bytes, Node)>> {
        let Some(found) = scanner.next()? else { return Ok(None) };
        let row = Bytes::copy_from_slice(found.row());
        let name = Bytes::from(names::row_name(&row).into_owned());
        Ok(Some((name, Node::Via(table.clone(), way.clone(), row))))
    }

    /// Another directory of the row that `entry` refers to; it takes over the reference.
    fn via_entry(&self, table: &TableHandle, way: Way, row: Bytes, entry: Entry) -> Entry {
        let via = Node::Via(table.clone(), way, row.clone());
        let inode = self.state.inodes.reference_via(via, Node::Row(table.clone(), row));
        self.state.inodes.forget(entry.attributes.inode, 1);
        let attributes = Attributes { inode: inode.number, ..entry.attributes };
        Entry { attributes, name_lifetime: Lifetime::None, attribute_lifetime: Lifetime::None }
    }

    /// mkdir of a row by another way than its table.
    pub(super) fn make_row_by(
        &self,
        caller: &Caller,
        table: &TableHandle,
        way: Way,
        row: Bytes,
        mode: u32,
    ) -> FsResult<Entry> {
        self.state.row_appeared(table, &row);
        let parent = self.state.inodes.reference(Node::Table(table.clone()));
        let made = self.make_row(caller, &parent, table, &names::row_name(&row), mode);
        self.state.inodes.forget(parent.number, 1);
        let entry = made?;
        self.row_name_changed(table, &row);
        Ok(self.via_entry(table, way, row, entry))
    }

    pub(super) fn remove_row_via(&self, table: &TableHandle, scheme: &KeyScheme, name: &[u8]) -> FsResult<()> {
        let row = self.stored_key(table, scheme, name)?;
        self.remove_row(table, &names::row_name(&row))?;
        self.row_name_changed(table, &row);
        Ok(())
    }

    pub(super) fn rename_row_via(
        &self,
        table: &TableHandle,
        (from_scheme, from): (&KeyScheme, &[u8]),
        (to_scheme, to): (&KeyScheme, &[u8]),
        keep: bool,
    ) -> FsResult<()> {
        let (source, target) = (self.stored_key(table, from_scheme, from)?, self.stored_key(table, to_scheme, to)?);
        self.rename_row(table, &names::row_name(&source), &names::row_name(&target), keep)?;
        self.row_name_changed(table, &source);
        self.row_name_changed(table, &target);
        Ok(())
    }

    /// A row came or went by way of a logical key: the kernel forgets what it knows of the name in the table.
    pub(super) fn row_name_changed(&self, table: &TableHandle, row: &Bytes) {
        let Some(inode) = self.state.inodes.find(&Node::Table(table.clone())) else { return };
        let name = Bytes::from(names::row_name(row).into_owned());
        inode.lock().absent.remove(&name);
        self.state.invalidate(Invalidation::Name { parent: inode.number, name });
        self.state.invalidate(Invalidation::Inode { inode: inode.number, attributes_only: true });
    }

    /// Lists the logical keys of a scheme.
    pub(super) fn list_via(&self, table: &TableHandle, scheme: &KeyScheme) -> FsResult<ViaSource> {
        let mut kept = Vec::new();
        let mut last: Option<Bytes> = None;
        while let Some(row) = self.state.kept.next_after(table.id(), last.as_ref()) {
            kept.extend(ViaKey::of(scheme, &row));
            last = Some(row);
        }
        let mut source =
            ViaSource { table: table.clone(), scheme: scheme.clone(), kept: VecDeque::new(), ranges: Vec::new() };
        kept.sort_by(|left, right| source.order(left).cmp(source.order(right)));
        source.kept = kept.into();
        for prefix in scheme.prefixes() {
            let scanner = table.0.scan(&Scan { prefix, first_cell_only: true, ..Scan::new() })?;
            let mut range = Range { scanner, next: None };
            range.advance(scheme)?;
            source.ranges.push(range);
        }
        Ok(source)
    }
}

/// A key on both of its sides.
#[derive(Clone)]
struct ViaKey {
    logical: Bytes,
    stored: Bytes,
}

impl ViaKey {
    /// The key of a row; `None` for rows that the scheme does not make, and for the empty key, which no name spells.
    fn of(scheme: &KeyScheme, row: &Bytes) -> Option<ViaKey> {
        let logical = scheme.logical(row).filter(|logical| !logical.is_empty())?;
        Some(ViaKey { logical, stored: row.clone() })
    }
}

/// One range of stored keys.
struct Range {
    scanner: Box<dyn ResultScanner>,
    next: Option<ViaKey>,
}

impl Range {
    fn advance(&mut self, scheme: &KeyScheme) -> FsResult<()> {
        self.next = None;
        while let Some(found) = self.scanner.next()? {
            self.next = ViaKey::of(scheme, &Bytes::copy_from_slice(found.row()));
            if self.next.is_some() {
                break;
            }
        }
        Ok(())
    }
}

/// The logical keys of a table's rows, merged over the ranges in which they are stored and the rows that are kept without cells.
pub struct ViaSource {
    table: TableHandle,
    scheme: KeyScheme,
    kept: VecDeque<ViaKey>,
    ranges: Vec<Range>,
}

impl ViaSource {
    fn order<'a>(&self, key: &'a ViaKey) -> &'a Bytes {
        if self.scheme.lists_logically() { &key.logical } else { &key.stored }
    }

    /// The next name with what it leads to.
    ///
    /// # Errors
    /// What the store says.
    pub fn next(&mut self) -> FsResult<Option<(Bytes, Node)>> {
        let heads = self.ranges.iter().filter_map(|range| range.next.as_ref()).chain(self.kept.front());
        let Some(first) = heads.min_by(|left, right| self.order(left).cmp(self.order(right))).cloned() else {
            return Ok(None);
        };
        let is_first = |key: Option<&ViaKey>| key.is_some_and(|key| key.stored == first.stored);
        if is_first(self.kept.front()) {
            self.kept.pop_front();
        }
        for range in self.ranges.iter_mut().filter(|range| is_first(range.next.as_ref())) {
            range.advance(&self.scheme)?;
        }
        let name = Bytes::from(names::row_name(&first.logical).into_owned());
        Ok(Some((name, Node::Via(self.table.clone(), Way::Key(self.scheme.clone()), first.stored))))
    }
}
