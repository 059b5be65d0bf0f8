//! Names to inodes, and what stat(2) shows of them.

use super::attributes::{Defaults, FileAttributes, MILLI};
use super::cells::{Version, VersionId};
use super::inode::{Inode, InodeState, Node};
use super::scratch::{ScratchPlace, is_scratch_name};
use super::state::TableFacts;
use super::{CellFs, refuse};
use crate::magic::{CellAddress, MagicNode, Place, TableHandle};
use crate::names::{self, CellName, RowName};
use crate::ops::{Attributes, Caller, Entry, FileKind, FsError, FsResult, Lifetime};
use bytes::Bytes;
use cellfs::Error;
use cellfs::cell::{Cell, tag_type};
use cellfs::client::{Get, Scan, TableAttributes, TableName, TableView};
use cellfs::schema::FOREVER;
use std::sync::Arc;

impl CellFs {
    pub(super) fn lookup_name(&self, caller: &Caller, parent: &Inode, name: &[u8]) -> FsResult<Option<Entry>> {
        match self.find_name(caller, parent, name)? {
            Some(entry) => Ok(Some(entry)),
            // What was not there at a moment of the past may be put there.
            None if table_of(&parent.node()).is_some_and(|table| table.changes_by_itself()) => {
                Err(FsError::not_found())
            }
            // What is not remembered as absent must be asked for again.
            None if self.state.note_absent(parent.number, name) => Ok(None),
            None => Err(FsError::not_found()),
        }
    }

    pub(super) fn find_name(&self, caller: &Caller, parent: &Inode, name: &[u8]) -> FsResult<Option<Entry>> {
        match parent.node() {
            Node::Root if name.starts_with(b".") => self.lookup_magic(caller, &Place::Root, name),
            Node::Root => self.lookup_namespace(name),
            Node::Namespace(_, namespace) if name.starts_with(b".") => {
                self.lookup_magic(caller, &Place::Namespace(&namespace), name)
            }
            Node::Namespace(_, namespace) => self.lookup_table(&namespace, name),
            Node::Table(table) if name.starts_with(b".") => {
                let place = ScratchPlace { table: table.id(), row: None };
                match self.lookup_scratch(caller, &place, name)? {
                    None if name == b".schema"
                        && (!self.magic.schema_is_visible(table.id())
                            || self.state.is_unseen(table.id(), caller.pid)) =>
                    {
                        Err(FsError::not_found())
                    }
                    None => self.lookup_magic(caller, &Place::Table(&table.0), name),
                    found => Ok(found),
                }
            }
            Node::Table(table) => match self.lookup_row(&table, name)? {
                None => self.lookup_scratch(caller, &ScratchPlace { table: table.id(), row: None }, name),
                found => Ok(found),
            },
            Node::Row(table, row) if name.starts_with(b".") => {
                let place = ScratchPlace { table: table.id(), row: Some(row.clone()) };
                match self.lookup_scratch(caller, &place, name)? {
                    None => self.lookup_magic(caller, &Place::Row(&table.0, &row), name),
                    found => Ok(found),
                }
            }
            Node::Row(table, row) => match self.resolve_cell(&table, &row, name)? {
                Some(cell) => self.lookup_cell(caller, cell),
                None => self.lookup_scratch(caller, &ScratchPlace { table: table.id(), row: Some(row) }, name),
            },
            Node::Magic(MagicNode::ViaKeys(table, scheme)) => self.lookup_via(&table, &scheme, name),
            Node::Magic(MagicNode::Snapshots(table)) => self.lookup_snapshot(&table, name),
            Node::Magic(MagicNode::ScanRows(table, parts)) => self.lookup_scanned(caller, &table, &parts, name),
            Node::Magic(MagicNode::FamilyRows(table, family)) if !name.starts_with(b".") => {
                self.lookup_in_family(&table, family, name)
            }
            Node::Via(..) => refuse(libc::ESTALE, "not a directory of its own"),
            Node::Magic(magic) => match self.magic.lookup(&Place::Magic(&magic), name)? {
                Some(found) => self.magic_entry(caller, found, Lifetime::None).map(Some),
                None => Err(FsError::not_found()),
            },
            Node::Cell(_) | Node::Scratch(_) => refuse(libc::ENOTDIR, "a cell is a file, not a directory"),
        }
    }

    fn lookup_magic(&self, caller: &Caller, place: &Place<'_>, name: &[u8]) -> FsResult<Option<Entry>> {
        let Some(node) = self.magic.lookup(place, name)? else {
            // `.schema` comes back by itself, so its absence is not to be remembered.
            return if name == b".schema" { Err(FsError::not_found()) } else { Ok(None) };
        };
        let schema = matches!(node, MagicNode::TableSchema(_) | MagicNode::NamespaceSchema(_));
        self.magic_entry(caller, node, if schema { Lifetime::None } else { Lifetime::Forever }).map(Some)
    }

    pub(super) fn magic_entry(&self, caller: &Caller, node: MagicNode, name_lifetime: Lifetime) -> FsResult<Entry> {
        match node {
            // What a name in `.snap` or `.at` leads to may be something else the next time.
            MagicNode::View(table) => {
                return self.table_entry(table);
            }
            MagicNode::ViewRow(table, row) => {
                let inode = self.state.inodes.reference(Node::Row(table.clone(), row.clone()));
                return match self.row_attributes(&inode, &table, &row) {
                    Ok(Some(attributes)) => {
                        Ok(Entry { name_lifetime: Lifetime::None, ..self.row_entry(&table, attributes) })
                    }
                    other => {
                        self.state.inodes.forget(inode.number, 1);
                        Err(other.err().unwrap_or_else(FsError::not_found))
                    }
                };
            }
            _ => {}
        }
        let shown = self.magic.attributes(&node, caller)?;
        let inode = self.state.inodes.reference(Node::Magic(node));
        let attributes = show_magic(inode.number, shown);
        Ok(Entry { attributes, name_lifetime, attribute_lifetime: Lifetime::None })
    }

    fn lookup_namespace(&self, name: &[u8]) -> FsResult<Option<Entry>> {
        let Ok(name) = std::str::from_utf8(name) else { return Ok(None) };
        match self.admin.namespace(name) {
            Ok((id, _, attributes)) => {
                let inode = self.state.inodes.reference(Node::Namespace(id, name.into()));
                Ok(Some(lasting(show_directory(inode.number, &attributes))))
            }
            Err(Error::NoSuchNamespace(_) | Error::InvalidArgument(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn lookup_table(&self, namespace: &str, name: &[u8]) -> FsResult<Option<Entry>> {
        let Some(name) = table_name(namespace, name) else { return Ok(None) };
        match self.admin.table(&name) {
            Ok(table) => self.table_entry(TableHandle(table)).map(Some),
            Err(Error::NoSuchTable(_) | Error::NoSuchNamespace(_) | Error::InvalidArgument(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn table_entry(&self, table: TableHandle) -> FsResult<Entry> {
        let live = table.is_live();
        let attributes = self.table_facts(&table)?;
        let inode = self.state.inodes.reference(Node::Table(table));
        inode.lock().attributes_given = true;
        let entry = lasting(show_directory(inode.number, &attributes));
        // A view follows the live table's mode, and its name may lead to another.
        match live {
            true => Ok(entry),
            false => Ok(Entry { name_lifetime: Lifetime::None, attribute_lifetime: Lifetime::None, ..entry }),
        }
    }

    /// Mode and owner of the live table, which hold for its views, and the time that the view stands at.
    fn view_facts(&self, table: &TableHandle) -> FsResult<TableAttributes> {
        let name = table.0.name();
        let facts = match self.admin.table(&name) {
            Ok(live) if live.id() == table.0.id() && live.view() == TableView::Live => {
                self.table_facts(&TableHandle(live))?
            }
            _ => self.admin.table_attributes(&name)?,
        };
        let stands_at = match table.0.view() {
            TableView::Live | TableView::Made => return Ok(facts),
            TableView::AsOf(millis) => millis.min(self.state.now()),
            TableView::Snapshot { id, .. } => {
                let snapshots = self.admin.list_snapshots(&name)?;
                let found = snapshots.iter().find(|snapshot| snapshot.id == id);
                found.map_or(facts.modified_millis, |snapshot| snapshot.created_millis)
            }
        };
        Ok(TableAttributes { modified_millis: stands_at, changed_millis: stands_at, ..facts })
    }

    /// The table's attributes as the mount shows them.
    pub(super) fn table_facts(&self, table: &TableHandle) -> FsResult<TableAttributes> {
        if !table.is_live() {
            return self.view_facts(table);
        }
        if let Some(facts) = self.state.tables.read().get(&table.id()) {
            return Ok(facts.attributes);
        }
        let attributes = self.admin.table_attributes(&table.0.name())?;
        let facts = TableFacts { table: table.clone(), attributes, unsaved: false };
        Ok(self.state.tables.write().entry(table.id()).or_insert(facts).attributes)
    }

    pub(super) fn lookup_row(&self, table: &TableHandle, name: &[u8]) -> FsResult<Option<Entry>> {
        let Some(row) = self.resolve_row(table, name)? else { return Ok(None) };
        let node = Node::Row(table.clone(), row.clone());
        if let Some(inode) = self.state.inodes.find(&node) {
            let shown = self.row_attributes(&inode, table, &row)?;
            return Ok(shown.map(|attributes| {
                self.state.inodes.reference_again(&inode);
                self.row_entry(table, attributes)
            }));
        }
        let Some(facts) = self.read_row_facts(table, &row)? else { return Ok(None) };
        let inode = self.state.inodes.reference(node);
        inode.lock().row.get_or_insert_with(|| Box::new(facts));
        Ok(self.row_attributes(&inode, table, &row)?.map(|attributes| self.row_entry(table, attributes)))
    }

    /// Rows whose cells expire may vanish by themselves.
    pub(super) fn row_entry(&self, table: &TableHandle, attributes: Attributes) -> Entry {
        let lifetime = if expires(table) { Lifetime::None } else { Lifetime::Forever };
        Entry { attributes, name_lifetime: lifetime, attribute_lifetime: lifetime }
    }

    /// What stat(2) shows of a row, from memory where nothing has come past the file operations.
    pub(super) fn row_attributes(
        &self,
        inode: &Inode,
        table: &TableHandle,
        row: &Bytes,
    ) -> FsResult<Option<Attributes>> {
        let defaults = Defaults::of_rows(&self.table_facts(table)?);
        let mut state = inode.lock();
        let fresh = state.row.as_ref().is_some_and(|facts| facts.epoch == self.state.epoch()) && !expires(table);
        if !fresh {
            state.row = self.read_row_facts(table, row)?.map(Box::new);
        }
        state.attributes_given = true;
        let shown = state.row.as_ref().map(|facts| facts.own.show_row(inode.number, facts.newest_millis, defaults));
        Ok(shown)
    }

    /// The row key of a name; short names are looked for among the rows with their prefix.
    pub(super) fn resolve_row(&self, table: &TableHandle, name: &[u8]) -> FsResult<Option<Bytes>> {
        let prefix = match names::parse_row(name) {
            None => return Ok(None),
            Some(RowName::Key(row)) => return Ok(Some(row)),
            Some(RowName::Short(prefix)) => prefix,
        };
        let mut kept = self.state.kept.next_after(table.id(), None);
        while let Some(row) = kept {
            if *names::row_name(&row) == *name {
                return Ok(Some(row));
            }
            kept = self.state.kept.next_after(table.id(), Some(&row));
        }
        let scan = Scan { prefix, first_cell_only: true, ..Scan::new() };
        let mut scanner = table.0.scan(&scan)?;
        while let Some(result) = scanner.next()? {
            if *names::row_name(result.row()) == *name {
                return Ok(Some(Bytes::copy_from_slice(result.row())));
            }
        }
        Ok(None)
    }

    /// The cell of a name in a row, whether it exists or not; `None` if no cell of this table can have the name. Short names only of existing cells.
    pub(super) fn resolve_cell(&self, table: &TableHandle, row: &Bytes, name: &[u8]) -> FsResult<Option<CellAddress>> {
        let address =
            |family: Bytes, qualifier: Bytes| CellAddress { table: table.clone(), row: row.clone(), family, qualifier };
        let prefix = match names::parse_column(name) {
            None => return Ok(None),
            Some(CellName::Column(family, qualifier)) => {
                let known = table.0.descriptor().families.contains_key(&family);
                return Ok(known.then(|| address(family, qualifier)));
            }
            Some(CellName::Short(prefix)) => prefix,
        };
        let mut scan = row_scan(row);
        if let Some(colon) = prefix.iter().position(|byte| *byte == b':') {
            let family = prefix.slice(..colon);
            if !table.0.descriptor().families.contains_key(&family) {
                return Ok(None);
            }
            scan.columns.add_family(family);
        }
        let mut scanner = table.0.scan(&scan)?;
        while let Some(part) = scanner.next()? {
            for cell in &part.cells {
                if names::cell_name(cell.family(), cell.qualifier()) == name {
                    let qualifier = Bytes::copy_from_slice(cell.qualifier());
                    return Ok(Some(address(Bytes::copy_from_slice(cell.family()), qualifier)));
                }
            }
        }
        Ok(None)
    }

    fn lookup_cell(&self, caller: &Caller, cell: CellAddress) -> FsResult<Option<Entry>> {
        let node = Node::Cell(cell.clone());
        if let Some(inode) = self.state.inodes.find(&node) {
            let shown = self.cell_attributes(caller, &inode, &mut inode.lock(), &cell)?;
            return Ok(shown.map(|(attributes, lifetime)| {
                self.state.inodes.reference_again(&inode);
                cell_entry(&cell.table, attributes, lifetime)
            }));
        }
        let Some(found) = self.fetch(&cell)? else { return Ok(None) };
        let version = self.version_of(&cell, &found);
        let inode = self.state.inodes.reference(node);
        let mut state = inode.lock();
        state.cell.known.get_or_insert(version);
        let shown = self.cell_attributes(caller, &inode, &mut state, &cell)?;
        Ok(shown.map(|(attributes, lifetime)| cell_entry(&cell.table, attributes, lifetime)))
    }

    /// The newest visible version of a cell, as the mount shows it: hidden cells are not there.
    pub(super) fn fetch(&self, cell: &CellAddress) -> FsResult<Option<Cell>> {
        if self.state.hidden.contains(cell.table.id(), &cell.row, &cell.family, &cell.qualifier) {
            return Ok(None);
        }
        let get = Get::new(cell.row.clone()).column(cell.family.clone(), cell.qualifier.clone());
        match cell.table.0.get(&get) {
            Ok(result) => Ok(result.cells.into_iter().next()),
            Err(Error::NoSuchColumnFamily { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The facts of a version that was read.
    pub(super) fn version_of(&self, address: &CellAddress, cell: &Cell) -> Version {
        let own = FileAttributes::of_cell(cell);
        Version {
            id: VersionId { timestamp: cell.timestamp(), sequence_id: cell.sequence_id() },
            size: cell.value_len() as u64,
            attributes: (!own.is_empty()).then(|| Box::new(own)),
            expires_millis: expiry(address, cell),
            epoch: self.state.epoch(),
        }
    }

    /// The committed version, from memory where nothing has come past the file operations; `None` if there is none.
    pub(super) fn committed(&self, state: &mut InodeState, cell: &CellAddress) -> FsResult<Option<Version>> {
        let epoch = self.state.epoch();
        if let Some(known) = state.cell.known.as_ref().filter(|known| known.epoch == epoch)
            && known.expires_millis.is_none_or(|end| self.state.now() <= end)
        {
            return Ok(Some(known.clone()));
        }
        let version = self.fetch(cell)?.map(|found| self.version_of(cell, &found));
        state.cell.known.clone_from(&version);
        Ok(version)
    }

    /// What stat(2) shows the caller of a cell, and for how long; `None` if it is not there.
    pub(super) fn cell_attributes(
        &self,
        caller: &Caller,
        inode: &Inode,
        state: &mut InodeState,
        cell: &CellAddress,
    ) -> FsResult<Option<(Attributes, Lifetime)>> {
        let defaults = Defaults::of_cells(&self.table_facts(&cell.table)?);
        let Some(pending) = state.cell.pending.as_mut() else {
            let lifetime = |version: &Version| match version.expires_millis {
                None => Lifetime::Forever,
                Some(end) => Lifetime::Millis(u64::try_from(end - self.state.now()).unwrap_or(0)),
            };
            return Ok(self
                .committed(state, cell)?
                .map(|version| (show_version(&version, inode.number, defaults), lifetime(&version))));
        };
        let dirty = pending.is_dirty_for(caller.pid);
        let size = if pending.is_marked() { 0 } else { pending.size() };
        let changed = pending.changed_millis;
        let (creating, set) = (pending.creating, pending.attributes);
        let shown = match creating {
            Some(creation) => {
                let own = FileAttributes::owned(creation.mode, creation.uid, creation.gid, defaults);
                let size = if dirty { size } else { 0 };
                let time = if dirty { changed } else { creation.since_millis };
                set.unwrap_or(own).show_cell(inode.number, size, time, defaults)
            }
            None => {
                let Some(version) = self.committed(state, cell)? else { return Ok(None) };
                if dirty {
                    let own = set.unwrap_or(version.own().without_times());
                    own.show_cell(inode.number, size, changed, defaults)
                } else {
                    show_version(&version, inode.number, defaults)
                }
            }
        };
        // While somebody writes, writer and readers see different sizes: each stat asks.
        Ok(Some((shown, Lifetime::None)))
    }

    fn lookup_scratch(&self, caller: &Caller, place: &ScratchPlace, name: &[u8]) -> FsResult<Option<Entry>> {
        if !is_scratch_name(name) {
            return Ok(None);
        }
        let Some(inode) = self.state.scratch.get(place, name) else { return Ok(None) };
        let (attributes, _) = self.attributes(caller, &inode)?;
        self.state.inodes.reference_again(&inode);
        Ok(Some(scratch_entry(attributes)))
    }

    /// What stat(2) shows of any inode.
    pub(super) fn attributes(&self, caller: &Caller, inode: &Arc<Inode>) -> FsResult<(Attributes, Lifetime)> {
        let unlinked = inode.is_unlinked();
        let shown = match inode.node() {
            Node::Root => (self.root_attributes()?, Lifetime::Forever),
            Node::Namespace(_, name) => {
                let (_, _, attributes) = self.admin.namespace(&name)?;
                (show_directory(inode.number, &attributes), Lifetime::Forever)
            }
            Node::Table(table) => {
                inode.lock().attributes_given = true;
                let lifetime = if table.is_live() { Lifetime::Forever } else { Lifetime::None };
                (show_directory(inode.number, &self.table_facts(&table)?), lifetime)
            }
            Node::Via(..) => return refuse(libc::ESTALE, "not a directory of its own"),
            Node::Row(table, row) => match self.row_attributes(inode, &table, &row)? {
                Some(attributes) => (attributes, self.row_entry(&table, attributes).attribute_lifetime),
                None => return Err(FsError::not_found()),
            },
            Node::Cell(_) | Node::Scratch(_) if unlinked => (orphan_attributes(inode), Lifetime::None),
            Node::Cell(cell) => {
                self.cell_attributes(caller, inode, &mut inode.lock(), &cell)?.ok_or_else(FsError::not_found)?
            }
            Node::Scratch(_) => (orphan_attributes(inode), Lifetime::None),
            Node::Magic(magic) => (show_magic(inode.number, self.magic.attributes(&magic, caller)?), Lifetime::None),
        };
        Ok(shown)
    }

    fn root_attributes(&self) -> FsResult<Attributes> {
        let options = &self.state.options;
        let mut attributes = TableAttributes {
            mode: 0o755 & !options.umask,
            uid: options.uid,
            gid: options.gid,
            changed_millis: 0,
            modified_millis: self.state.root_changed(),
        };
        for name in self.admin.list_namespaces()? {
            let (_, _, namespace) = self.admin.namespace(&name)?;
            attributes.modified_millis = attributes.modified_millis.max(namespace.modified_millis);
        }
        attributes.changed_millis = attributes.modified_millis;
        Ok(show_directory(crate::ops::ROOT_INODE, &attributes))
    }
}

/// Attributes of a file that lives in the mount alone: a scratch file, or an unlinked one that is still open.
fn orphan_attributes(inode: &Inode) -> Attributes {
    let links = u32::from(!inode.is_unlinked());
    let state = inode.lock();
    let defaults = Defaults { mode: 0o600, uid: 0, gid: 0 };
    let (size, time, own) = match (&state.cell.pending, &state.cell.known) {
        (Some(pending), known) => {
            let own = pending.attributes.or_else(|| known.as_ref().map(Version::own)).unwrap_or_default();
            let size = match (&pending.content, known) {
                _ if pending.is_marked() => 0,
                (None, Some(known)) => known.size,
                _ => pending.size(),
            };
            (size, pending.changed_millis, own)
        }
        (None, Some(known)) => (known.size, known.id.timestamp, known.own()),
        (None, None) => (0, 0, FileAttributes::default()),
    };
    Attributes { links, ..own.show_cell(inode.number, size, time, defaults) }
}

/// A scan over the cells of one row, in parts of bounded size.
pub(super) fn row_scan(row: &Bytes) -> Scan {
    const BATCH: usize = 256;
    Scan { start_row: row.clone(), stop_row: row.clone(), include_stop: true, batch: Some(BATCH), ..Scan::new() }
}

/// The table's name; `None` if it breaks HBase's rules.
pub(super) fn table_name(namespace: &str, name: &[u8]) -> Option<TableName> {
    TableName::new(namespace, std::str::from_utf8(name).ok()?).ok()
}

/// The table that a node belongs to.
pub(super) fn table_of(node: &Node) -> Option<TableHandle> {
    match node {
        Node::Table(table) | Node::Row(table, _) | Node::Via(table, ..) => Some(table.clone()),
        Node::Cell(cell) => Some(cell.table.clone()),
        Node::Magic(magic) => magic.table().cloned(),
        Node::Root | Node::Namespace(..) | Node::Scratch(_) => None,
    }
}

/// The node of what the dot names led to: views are tables and rows like others.
pub(super) fn node_of(magic: MagicNode) -> Node {
    match magic {
        MagicNode::View(table) => Node::Table(table),
        MagicNode::ViewRow(table, row) => Node::Row(table, row),
        magic => Node::Magic(magic),
    }
}

/// True if cells of the table vanish by themselves.
pub(super) fn expires(table: &TableHandle) -> bool {
    if !table.is_live() {
        // In a snapshot time stands still; the past is always asked for again.
        return table.changes_by_itself();
    }
    table.0.descriptor().families.values().any(|family| family.ttl_seconds != FOREVER)
}

/// When a version stops being visible: by its family's TTL, unless MIN_VERSIONS keeps it, and by its own TTL tag.
fn expiry(address: &CellAddress, cell: &Cell) -> Option<i64> {
    if !address.table.is_live() {
        return address.table.changes_by_itself().then_some(0);
    }
    let descriptor = address.table.0.descriptor();
    let by_family = descriptor
        .families
        .get(&address.family)
        .filter(|family| family.ttl_seconds != FOREVER && family.min_versions == 0)
        .map(|family| cell.timestamp().saturating_add(i64::from(family.ttl_seconds).saturating_mul(1000)));
    let by_tag = cell
        .tag_iter()
        .find(|(kind, _)| *kind == tag_type::TTL)
        .and_then(|(_, value)| value.first_chunk::<8>())
        .map(|millis| cell.timestamp().saturating_add(i64::from_be_bytes(*millis)));
    by_family.into_iter().chain(by_tag).min()
}

fn show_version(version: &Version, inode: u64, defaults: Defaults) -> Attributes {
    version.own().show_cell(inode, version.size, version.id.timestamp, defaults)
}

/// What stat(2) shows of a namespace or table.
pub(super) fn show_directory(inode: u64, attributes: &TableAttributes) -> Attributes {
    Attributes {
        inode,
        kind: FileKind::Directory,
        mode: attributes.mode,
        links: 1,
        uid: attributes.uid,
        gid: attributes.gid,
        size: 0,
        mtime_nanos: attributes.modified_millis.saturating_mul(MILLI),
        ctime_nanos: attributes.changed_millis.max(attributes.modified_millis).saturating_mul(MILLI),
        atime_nanos: attributes.modified_millis.saturating_mul(MILLI),
    }
}

fn show_magic(inode: u64, shown: crate::magic::MagicAttributes) -> Attributes {
    Attributes {
        inode,
        kind: shown.kind,
        mode: shown.mode,
        links: 1,
        uid: shown.uid,
        gid: shown.gid,
        size: shown.size,
        mtime_nanos: shown.mtime_nanos,
        ctime_nanos: shown.mtime_nanos,
        atime_nanos: shown.mtime_nanos,
    }
}

/// An entry that holds until somebody says otherwise.
pub(super) fn lasting(attributes: Attributes) -> Entry {
    Entry { attributes, name_lifetime: Lifetime::Forever, attribute_lifetime: Lifetime::Forever }
}

/// The name of a cell lives as long as its attributes; while somebody writes it is there, unless cells of the table vanish by themselves.
pub(super) fn cell_entry(table: &TableHandle, attributes: Attributes, lifetime: Lifetime) -> Entry {
    let name_lifetime = match lifetime {
        Lifetime::None if !expires(table) => Lifetime::Forever,
        lifetime => lifetime,
    };
    Entry { attributes, name_lifetime, attribute_lifetime: lifetime }
}

/// The name of a scratch file is there until it is removed; its attributes change with each write.
pub(super) fn scratch_entry(attributes: Attributes) -> Entry {
    Entry { attributes, name_lifetime: Lifetime::Forever, attribute_lifetime: Lifetime::None }
}
