//! Renaming a row: one record moves every cell it shows.

use super::attributes::{FileAttributes, MILLI};
use super::commit::row_attributes_cell;
use super::inode::{Inode, Node};
use super::lookup::row_scan;
use super::rename::moved_cell;
use super::rows::{KeptRow, RowFacts};
use super::tree::attributes_marker;
use super::{CellFs, refuse};
use crate::magic::{CellAddress, TableHandle};
use crate::names::{self, RowName};
use crate::ops::{FsError, FsResult, Invalidation};
use bytes::Bytes;
use cellfs::client::{Delete, Mutation, Put, RowMutations, WriteTime};
use parking_lot::MutexGuard;
use std::sync::Arc;

/// The dot names of a row, whose inodes name the row.
const DOT_NAMES: [&[u8]; 3] = [b".key", b".row.json", b".versions"];

impl CellFs {
    pub(super) fn rename_row(&self, table: &TableHandle, from: &[u8], to: &[u8], keep: bool) -> FsResult<()> {
        self.table_writable(table)?;
        let Some(source) = self.resolve_row(table, from)? else { return Err(FsError::not_found()) };
        let Some(facts) = self.read_row_facts(table, &source)? else { return Err(FsError::not_found()) };
        let Some(RowName::Key(target)) = names::parse_row(to) else {
            return refuse(libc::EINVAL, format!("{} is not the name of a row key (docs: Names)", to.escape_ascii()));
        };
        let replaced = self.read_row_facts(table, &target)?;
        if replaced.is_some() && keep {
            return refuse(libc::EEXIST, "the row exists");
        }
        if replaced.is_some() && self.shows_anything(table, &target)? {
            return refuse(libc::ENOTEMPTY, "the row to be replaced has cells");
        }
        for row in [&source, &target] {
            for hidden in self.state.hidden.of_row(table.id(), row) {
                self.state.bury(table, &hidden)?;
            }
        }
        // Nobody writes to a cell of the row while it moves.
        let cells = self.inodes_of_row(table, &source);
        let guards: Vec<MutexGuard<'_, _>> = cells.iter().map(|(inode, _)| inode.lock()).collect();
        self.move_row(table, &source, &target, &facts, replaced.is_some_and(|replaced| replaced.stored))?;
        for ((inode, cell), mut state) in cells.iter().zip(guards) {
            state.cell.known = None;
            state.cell.pages = None;
            if let Some(pending) = state.cell.pending.as_mut() {
                pending.base = None;
                pending.writers.iter_mut().for_each(|writer| writer.version = None);
            }
            self.state.inodes.rename(inode, Node::Cell(CellAddress { row: target.clone(), ..cell.clone() }));
        }
        self.move_row_inode(table, &source, &target);
        self.state.scratch.move_row(table.id(), &source, &target);
        self.state.table_changed(table.id(), self.state.now());
        self.magic.table_changed(table.id());
        Ok(())
    }

    /// The inodes of a row's cells, in the order in which they may be locked.
    fn inodes_of_row(&self, table: &TableHandle, row: &Bytes) -> Vec<(Arc<Inode>, CellAddress)> {
        let of_row = |node: &Node| matches!(node, Node::Cell(cell) if cell.row == *row && cell.table == *table);
        let mut found = self.state.inodes.matching(of_row);
        found.sort_by_key(|inode| inode.number);
        let address = |inode: Arc<Inode>| match inode.node() {
            Node::Cell(cell) => Some((inode, cell)),
            _ => None,
        };
        found.into_iter().filter_map(address).collect()
    }

    fn move_row(&self, table: &TableHandle, from: &Bytes, to: &Bytes, facts: &RowFacts, stale: bool) -> FsResult<()> {
        let mut put = Put::new(to.clone()).durability(self.state.durability());
        let mut scanner = table.0.scan(&row_scan(from))?;
        while let Some(part) = scanner.next()? {
            put.cells.extend(
                part.cells
                    .iter()
                    .map(|cell| moved_cell(cell, Bytes::copy_from_slice(cell.family()), cell.qualifier_bytes())),
            );
        }
        drop(scanner);
        let id = table.id();
        if put.cells.is_empty() {
            let kept = self.state.kept.remove(id, from);
            let own = kept.as_ref().and_then(|kept| kept.own).or((stale || facts.stored).then_some(facts.own));
            let changed_millis = kept.map_or(facts.newest_millis, |kept| kept.changed_millis);
            let kept = KeptRow { own, changed_millis, renamed_nanos: Some(self.state.now().saturating_mul(MILLI)) };
            self.state.kept.insert(id, to.clone(), kept);
            if facts.stored {
                table.0.delete(Delete::row(from.clone()).marker(attributes_marker()))?;
            }
            return Ok(());
        }
        let own = FileAttributes { ctime_nanos: None, ..facts.own };
        if stale || !own.is_empty() {
            put.cells.extend(row_attributes_cell(Some(own)));
        }
        let mut gone = Delete::row(from.clone());
        gone.row_time = WriteTime::AfterNewest;
        gone.durability = self.state.durability();
        let mut removed = vec![Mutation::Delete(gone)];
        if facts.stored {
            removed.push(Mutation::Delete(Delete::row(from.clone()).marker(attributes_marker())));
        }
        let outcome = table.0.mutate_rows(vec![
            RowMutations { row: to.clone(), mutations: vec![Mutation::Put(put)] },
            RowMutations { row: from.clone(), mutations: removed },
        ])?;
        self.state.kept.remove(id, from);
        self.state.kept.remove(id, to);
        let set = own.basis_millis.is_some_and(|basis| facts.newest_millis <= basis);
        if let (true, Some(newest)) = (set, outcome.written.iter().map(|cell| cell.timestamp()).max()) {
            // A set time goes on to be shown: it is now as old as the moved cells.
            let own = FileAttributes { basis_millis: Some(newest), ..own };
            let mut put = Put::new(to.clone()).durability(self.state.durability());
            put.cells.extend(row_attributes_cell(Some(own)));
            table.0.put(put)?;
        }
        Ok(())
    }

    /// The kernel has moved the directory's inode to the new name.
    fn move_row_inode(&self, table: &TableHandle, from: &Bytes, to: &Bytes) {
        let Some(inode) = self.state.inodes.find(&Node::Row(table.clone(), from.clone())) else { return };
        let mut state = inode.lock();
        state.row = None;
        self.state.inodes.rename(&inode, Node::Row(table.clone(), to.clone()));
        self.state.invalidate(Invalidation::Inode { inode: inode.number, attributes_only: true });
        for name in DOT_NAMES {
            self.state.invalidate(Invalidation::Name { parent: inode.number, name: Bytes::from_static(name) });
        }
    }
}
