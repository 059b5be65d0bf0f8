//! Listings: in key order, from one consistent point, in memory that does not grow with the directory.

use super::cells::Version;
use super::handle::{DirectoryHandle, Handle};
use super::inode::{Inode, Node, Way};
use super::lookup::{cell_entry, expires, node_of, row_scan};
use super::name_arena::NameArena;
use super::scratch::ScratchPlace;
use super::via::ViaSource;
use super::{CellFs, refuse};
use crate::magic::{CellAddress, MagicListing, MagicNode, TableHandle};
use crate::names;
use crate::ops::{Caller, DirectorySink, Entry, FileKind, FsResult, Lifetime, ListingCache};
use bytes::Bytes;
use cellfs::cell::Cell;
use cellfs::client::{ResultScanner, Scan};
use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

/// Entries of the last replies that are kept, for a kernel that could not hand all of them on and asks again.
const REPLAYED: usize = 2048;

/// How far an open directory has been listed.
#[derive(Default)]
pub struct Listing {
    cursor: Option<Cursor>,
    /// Offset of the first entry of `recent`: entries before it have been listed and let go.
    base: u64,
    recent: VecDeque<Item>,
}

/// One entry.
#[derive(Clone)]
struct Item {
    name: Bytes,
    node: Node,
    kind: FileKind,
    /// Of cells: what stat(2) needs, as it came with the scan.
    version: Option<Version>,
}

impl Item {
    fn new(name: impl Into<Bytes>, node: Node, kind: FileKind) -> Item {
        Item { name: name.into(), node, kind, version: None }
    }
}

/// Where the next entry comes from.
struct Cursor {
    /// Entries that come first: `.`, `..`, `.schema`.
    first: VecDeque<Item>,
    /// Scratch files of this place; the last one listed.
    scratch: Option<(ScratchPlace, Option<Bytes>)>,
    source: Source,
}

enum Source {
    Names(VecDeque<Item>),
    Rows(RowSource),
    Cells(CellSource),
    Magic(MagicListing),
    Via(ViaSource),
    Scanned(TableHandle, Way, Box<dyn ResultScanner>),
}

/// Rows that hold cells, merged with those that are kept without any.
struct RowSource {
    table: TableHandle,
    arena: NameArena,
    scanner: Box<dyn ResultScanner>,
    ahead: Option<Bytes>,
    started: bool,
    last: Option<Bytes>,
}

/// Committed cells of a row, merged with those that are being made.
struct CellSource {
    table: TableHandle,
    row: Bytes,
    /// Of a row below `.cf/`: the only family shown, whose qualifiers are the names.
    family: Option<Bytes>,
    arena: NameArena,
    /// That of the last cell: its bytes are shared by all of them.
    last_family: Bytes,
    scanner: Box<dyn ResultScanner>,
    part: VecDeque<Cell>,
    making: VecDeque<CellAddress>,
    ended: bool,
}

impl CellSource {
    /// The name of a cell, its family and its qualifier.
    fn name(&mut self, family: &[u8], qualifier: &[u8]) -> (Bytes, Bytes, Bytes) {
        if self.last_family != family {
            self.last_family = Bytes::copy_from_slice(family);
        }
        let (name, qualifier) = match self.family {
            Some(_) => (names::qualifier_name(qualifier).into(), self.arena.copy(qualifier)),
            None => self.arena.cell_name(family, qualifier),
        };
        (name, self.last_family.clone(), qualifier)
    }
}

impl CellFs {
    pub(super) fn open_directory(&self, shown: &Arc<Inode>) -> FsResult<(u64, ListingCache)> {
        let inode = shown.target().unwrap_or(shown);
        let node = inode.node();
        if matches!(node, Node::Cell(_) | Node::Scratch(_)) {
            return refuse(libc::ENOTDIR, "a cell is a file, not a directory");
        }
        let handle = self.handles.reserve();
        let of_aliases =
            matches!(node, Node::Magic(MagicNode::ViaKeys(..) | MagicNode::ScanRows(..) | MagicNode::FamilyRows(..)));
        let alias = shown.target().is_some() || of_aliases;
        // Tables and rows in their own place change by what the kernel does, or an invalidation says so; cells that vanish by themselves do neither.
        let kept = match &node {
            Node::Table(table) | Node::Row(table, _) => !alias && table.is_live() && !expires(table),
            _ => false,
        };
        let cache = if kept { inode.listing.opened() } else { ListingCache::None };
        let directory = DirectoryHandle {
            inode: Arc::clone(inode),
            shown: Arc::clone(shown),
            alias,
            kept,
            listing: Mutex::default(),
        };
        self.handles.insert(handle, Handle::Directory(Box::new(directory)));
        Ok((handle, cache))
    }

    pub(super) fn list(
        &self,
        caller: &Caller,
        directory: &DirectoryHandle,
        offset: u64,
        plus: bool,
        sink: &mut dyn DirectorySink,
    ) -> FsResult<()> {
        let plus = plus && !directory.alias;
        let mut listing = directory.listing.lock();
        if offset == 0 || listing.cursor.is_none() || offset < listing.base {
            *listing = Listing { cursor: Some(self.cursor(caller, directory)?), base: 0, recent: VecDeque::new() };
        }
        let Listing { cursor: Some(cursor), base, recent } = &mut *listing else { return Ok(()) };
        let mut position = offset;
        loop {
            while position >= *base + recent.len() as u64 {
                let Some(item) = self.next_item(cursor)? else { return Ok(()) };
                if item.version.as_ref().is_some_and(|version| version.expires_millis.is_some()) {
                    directory.inode.listing.changed();
                }
                recent.push_back(item);
                if recent.len() > REPLAYED {
                    recent.pop_front();
                    *base += 1;
                }
            }
            let Some(item) = usize::try_from(position - *base).ok().and_then(|at| recent.get(at)) else {
                return Ok(());
            };
            if self.give(caller, &directory.shown, item, position + 1, plus, sink)? {
                return Ok(());
            }
            position += 1;
        }
    }

    /// Gives one entry to the kernel; true if there is no room.
    fn give(
        &self,
        caller: &Caller,
        directory: &Inode,
        item: &Item,
        next: u64,
        plus: bool,
        sink: &mut dyn DirectorySink,
    ) -> FsResult<bool> {
        if *item.name == *b"." || *item.name == *b".." {
            let number = if *item.name == *b"." { directory.number } else { self.state.inodes.number(&item.node) };
            return Ok(sink.add(number, item.kind, &item.name, next, None));
        }
        if !plus {
            let number = self.state.inodes.number(&item.node);
            return Ok(sink.add(number, item.kind, &item.name, next, None));
        }
        // What has gone since the listing began is left out: the kernel takes no entry without attributes here.
        let Some(entry) = self.entry_of(caller, item)? else { return Ok(false) };
        let full = sink.add(entry.attributes.inode, item.kind, &item.name, next, Some(&entry));
        if full {
            self.state.inodes.forget(entry.attributes.inode, 1);
        }
        Ok(full)
    }

    /// The entry of a listed name, with a reference of the kernel.
    fn entry_of(&self, caller: &Caller, item: &Item) -> FsResult<Option<Entry>> {
        if let Node::Magic(node) = &item.node {
            return match self.magic_entry(caller, node.clone(), Lifetime::None) {
                Ok(entry) => Ok(Some(entry)),
                Err(error) if error.errno == libc::ENOENT => Ok(None),
                Err(error) => Err(error),
            };
        }
        let inode = match &item.node {
            Node::Scratch(_) => {
                let Some(inode) = self.state.inodes.find(&item.node) else { return Ok(None) };
                self.state.inodes.reference_again(&inode);
                inode
            }
            node => self.state.inodes.reference(node.clone()),
        };
        let shown = match &item.node {
            Node::Row(table, row) => {
                self.row_attributes(&inode, table, row).map(|shown| shown.map(|shown| self.row_entry(table, shown)))
            }
            Node::Cell(cell) => {
                let mut state = inode.lock();
                if let Some(version) = &item.version {
                    let current = state.cell.known.as_ref().is_some_and(|known| known.epoch == self.state.epoch());
                    if !current && version.epoch == self.state.epoch() {
                        state.cell.known = Some(version.clone());
                    }
                }
                let shown = self.cell_attributes(caller, &inode, &mut state, cell);
                shown.map(|shown| shown.map(|(attributes, lifetime)| cell_entry(&cell.table, attributes, lifetime)))
            }
            _ => self.attributes(caller, &inode).map(|(attributes, lifetime)| {
                Some(Entry { attributes, name_lifetime: Lifetime::Forever, attribute_lifetime: lifetime })
            }),
        };
        if !matches!(shown, Ok(Some(_))) {
            self.state.inodes.forget(inode.number, 1);
        }
        shown
    }

    fn cursor(&self, caller: &Caller, directory: &DirectoryHandle) -> FsResult<Cursor> {
        let shown = directory.shown.node();
        let mut first = VecDeque::from([
            Item::new(&b"."[..], shown.clone(), FileKind::Directory),
            Item::new(&b".."[..], self.parent_of(&shown)?, FileKind::Directory),
        ]);
        let mut scratch = None;
        let source = match (directory.inode.node(), shown) {
            (Node::Row(table, row), Node::Via(_, Way::Family(family), _)) => {
                Source::Cells(self.cells_of(table, row, Some(family))?)
            }
            (node, _) => self.source(caller, node, &mut first, &mut scratch)?,
        };
        Ok(Cursor { first, scratch, source })
    }

    fn source(
        &self,
        caller: &Caller,
        node: Node,
        first: &mut VecDeque<Item>,
        scratch: &mut Option<(ScratchPlace, Option<Bytes>)>,
    ) -> FsResult<Source> {
        Ok(match node {
            Node::Root => {
                let mut names = VecDeque::new();
                for name in self.admin.list_namespaces()? {
                    let (id, _, _) = self.admin.namespace(&name)?;
                    let node = Node::Namespace(id, name.as_str().into());
                    names.push_back(Item::new(name.into_bytes(), node, FileKind::Directory));
                }
                Source::Names(names)
            }
            Node::Namespace(_, namespace) => {
                let mut names = VecDeque::new();
                for name in self.admin.list_tables(&namespace)? {
                    // A table dropped meanwhile is not there.
                    let Ok(table) = self.admin.table(&name) else { continue };
                    let node = Node::Table(TableHandle(table));
                    names.push_back(Item::new(name.qualifier.into_bytes(), node, FileKind::Directory));
                }
                Source::Names(names)
            }
            Node::Table(table) => {
                if self.magic.schema_is_visible(table.id()) {
                    let schema = Node::Magic(MagicNode::TableSchema(table.clone()));
                    first.push_back(Item::new(&b".schema"[..], schema, FileKind::Regular));
                }
                *scratch = Some((ScratchPlace { table: table.id(), row: None }, None));
                let scanner = table.0.scan(&Scan { first_cell_only: true, ..Scan::new() })?;
                Source::Rows(RowSource {
                    table,
                    arena: NameArena::default(),
                    scanner,
                    ahead: None,
                    started: false,
                    last: None,
                })
            }
            Node::Row(table, row) => {
                *scratch = Some((ScratchPlace { table: table.id(), row: Some(row.clone()) }, None));
                Source::Cells(self.cells_of(table, row, None)?)
            }
            Node::Magic(MagicNode::ViaKeys(table, scheme)) => Source::Via(self.list_via(&table, &scheme)?),
            Node::Magic(MagicNode::Snapshots(table)) => {
                let snapshots = self.list_snapshots(&table)?.into_iter();
                Source::Names(snapshots.map(|(name, node)| Item::new(name, node, FileKind::Directory)).collect())
            }
            Node::Magic(MagicNode::ScanRows(table, parts)) => {
                let scanner = self.magic.scan_rows(&table, &parts, caller, None)?;
                Source::Scanned(table, Way::Scan(parts), scanner)
            }
            Node::Magic(MagicNode::FamilyRows(table, family)) => {
                let scanner = self.rows_of_family(&table, &family)?;
                Source::Scanned(table, Way::Family(family), scanner)
            }
            Node::Magic(magic) => Source::Magic(self.magic.list(&magic)?),
            Node::Via(..) => return refuse(libc::ESTALE, "not a directory of its own"),
            Node::Cell(_) | Node::Scratch(_) => return refuse(libc::ENOTDIR, "a cell is a file, not a directory"),
        })
    }

    /// The cells of a row, or its cells of one family.
    fn cells_of(&self, table: TableHandle, row: Bytes, family: Option<Bytes>) -> FsResult<CellSource> {
        let making = self.cells_being_made(&table, &row, family.as_ref());
        let mut scan = row_scan(&row);
        if let Some(family) = &family {
            scan.columns.add_family(family.clone());
        }
        let scanner = table.0.scan(&scan)?;
        let (arena, last_family) = (NameArena::default(), Bytes::new());
        Ok(CellSource { table, row, family, arena, last_family, scanner, part: VecDeque::new(), making, ended: false })
    }

    /// What `..` leads to, as far as the node says it.
    fn parent_of(&self, node: &Node) -> FsResult<Node> {
        Ok(match node {
            Node::Table(table) if !table.is_live() && !table.is_made() => {
                let live = TableHandle(self.admin.table(&table.0.name())?);
                Node::Magic(if table.is_past() { MagicNode::TablePast(live) } else { MagicNode::Snapshots(live) })
            }
            Node::Table(table) => {
                let name = table.0.name().namespace;
                let (id, _, _) = self.admin.namespace(&name)?;
                Node::Namespace(id, name.as_str().into())
            }
            Node::Row(table, _) => Node::Table(table.clone()),
            Node::Via(table, way, _) => Node::Magic(way.directory(table)),
            Node::Cell(cell) => Node::Row(cell.table.clone(), cell.row.clone()),
            Node::Magic(magic) => magic.table().map_or(Node::Root, |table| Node::Table(table.clone())),
            Node::Root | Node::Namespace(..) | Node::Scratch(_) => Node::Root,
        })
    }

    /// The cells of a row, or of one family of it, that somebody is making.
    pub(super) fn cells_being_made(
        &self,
        table: &TableHandle,
        row: &Bytes,
        family: Option<&Bytes>,
    ) -> VecDeque<CellAddress> {
        let wanted = |cell: &CellAddress| {
            cell.table == *table && cell.row == *row && family.is_none_or(|family| cell.family == *family)
        };
        let mut cells: Vec<CellAddress> = self
            .handles
            .all()
            .iter()
            .filter_map(|handle| match &**handle {
                Handle::File(file) if file.writable && !file.inode.is_unlinked() => match file.inode.node() {
                    Node::Cell(cell) if wanted(&cell) => {
                        let state = file.inode.lock();
                        let making = state.cell.pending.as_ref().is_some_and(|pending| pending.creating.is_some());
                        making.then_some(cell)
                    }
                    _ => None,
                },
                _ => None,
            })
            .collect();
        cells.sort_by(|a, b| (&a.family, &a.qualifier).cmp(&(&b.family, &b.qualifier)));
        cells.dedup();
        cells.into()
    }

    fn next_item(&self, cursor: &mut Cursor) -> FsResult<Option<Item>> {
        if let Some(item) = cursor.first.pop_front() {
            return Ok(Some(item));
        }
        if let Some((place, last)) = &mut cursor.scratch {
            if let Some((name, inode)) = self.state.scratch.next_after(place, last.as_ref()) {
                *last = Some(name.clone());
                return Ok(Some(Item::new(name, inode.node(), FileKind::Regular)));
            }
            cursor.scratch = None;
        }
        match &mut cursor.source {
            Source::Names(names) => Ok(names.pop_front()),
            Source::Rows(rows) => self.next_row(rows),
            Source::Cells(cells) => self.next_cell(cells),
            Source::Via(keys) => Ok(keys.next()?.map(|(name, node)| Item::new(name, node, FileKind::Directory))),
            Source::Scanned(table, way, scanner) => Ok(Self::next_scanned(table, way, scanner.as_mut())?
                .map(|(name, node)| Item::new(name, node, FileKind::Directory))),
            Source::Magic(listing) => listing
                .next()
                .transpose()
                .map(|next| next.map(|(name, node)| Item::new(name, node_of(node.clone()), node.kind()))),
        }
    }

    fn next_row(&self, source: &mut RowSource) -> FsResult<Option<Item>> {
        if !source.started || source.ahead.is_some() && source.ahead == source.last {
            // A copy: keys outlive the listing in inodes, and must not hold on to the blocks they were read from.
            source.ahead = source.scanner.next()?.map(|row| source.arena.copy(row.row()));
            source.started = true;
        }
        let kept = self.state.kept.next_after(source.table.id(), source.last.as_ref());
        let next = match (&source.ahead, kept) {
            (Some(ahead), Some(kept)) => Some(kept.min(ahead.clone())),
            (Some(ahead), None) => Some(ahead.clone()),
            (None, kept) => kept,
        };
        // At the end `last` stays: the kernel asks once more.
        let Some(row) = next else { return Ok(None) };
        source.last = Some(row.clone());
        let name = match names::row_name(&row) {
            Cow::Borrowed(_) => row.clone(),
            Cow::Owned(name) => name.into(),
        };
        Ok(Some(Item::new(name, Node::Row(source.table.clone(), row), FileKind::Directory)))
    }

    fn next_cell(&self, source: &mut CellSource) -> FsResult<Option<Item>> {
        let id = source.table.id();
        loop {
            while source.part.is_empty() && !source.ended {
                match source.scanner.next()? {
                    Some(part) => source.part.extend(part.cells),
                    None => source.ended = true,
                }
            }
            let order = |cell: &Cell| (Bytes::copy_from_slice(cell.family()), cell.qualifier_bytes());
            let made_first = match (source.making.front(), source.part.front()) {
                (Some(making), Some(cell)) => (making.family.clone(), making.qualifier.clone()) < order(cell),
                (Some(_), None) => true,
                (None, _) => false,
            };
            if made_first {
                let Some(cell) = source.making.pop_front() else { continue };
                let (name, ..) = source.name(&cell.family, &cell.qualifier);
                return Ok(Some(Item::new(name, Node::Cell(cell), FileKind::Regular)));
            }
            let Some(cell) = source.part.pop_front() else { return Ok(None) };
            if source
                .making
                .front()
                .is_some_and(|making| *making.family == *cell.family() && *making.qualifier == *cell.qualifier())
            {
                source.making.pop_front();
            }
            if self.state.hidden.contains(id, &source.row, cell.family(), cell.qualifier()) {
                continue;
            }
            let (name, family, qualifier) = source.name(cell.family(), cell.qualifier());
            let address = CellAddress { table: source.table.clone(), row: source.row.clone(), family, qualifier };
            let version = Some(self.version_of(&address, &cell));
            return Ok(Some(Item { version, ..Item::new(name, Node::Cell(address), FileKind::Regular) }));
        }
    }
}
