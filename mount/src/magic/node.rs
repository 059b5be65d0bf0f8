//! The identity of every dot file and dot directory, and of what lies inside them.

use super::scan::{ScanForm, ScanParts};
use crate::ops::FileKind;
use bytes::{BufMut, Bytes};
use cellfs::client::{LoadKind, Table, TableView};
use cellfs::types::{ColumnType, KeyScheme};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// A table inside a node, live or as a view of a snapshot or of the past: compared and hashed by identity, which outlives renames.
#[derive(Clone)]
pub struct TableHandle(pub Arc<dyn Table>);

/// Identities of views have this bit, those of live tables do not (they are counted from 1).
const VIEW_BIT: u64 = 1 << 63;

impl TableHandle {
    /// The identity of the table in this view: each view of a table has its own, equal from mount to mount.
    pub fn id(&self) -> u64 {
        let (kind, which) = match self.0.view() {
            TableView::Live | TableView::Made => return self.0.id(),
            TableView::Snapshot { id, .. } => (0, id),
            TableView::AsOf(millis) => (1, millis as u64),
        };
        let mut identity = [0; 17];
        let mut out = &mut identity[..];
        out.put_u64(self.0.id());
        out.put_u64(which);
        out.put_u8(kind);
        xxh3_64(&identity) | VIEW_BIT
    }

    /// True for a table that can be written, false for a view.
    pub fn is_live(&self) -> bool {
        self.0.view() == TableView::Live
    }

    /// True for a table as of a moment, or one that the store makes of itself: what it shows may change past the file operations.
    pub fn changes_by_itself(&self) -> bool {
        matches!(self.0.view(), TableView::AsOf(_) | TableView::Made)
    }

    /// True for a table that the store makes of itself (hbase:meta), which no other one stands behind.
    pub fn is_made(&self) -> bool {
        self.0.view() == TableView::Made
    }

    /// True for a table as of a moment: what it shows may change, by cells that are written with old timestamps.
    pub fn is_past(&self) -> bool {
        matches!(self.0.view(), TableView::AsOf(_))
    }
}

impl PartialEq for TableHandle {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.id() == other.id()
    }
}

impl Eq for TableHandle {}

impl Hash for TableHandle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl fmt::Debug for TableHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.0.name(), self.id())
    }
}

/// A file of `.cellfs/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InstanceFile {
    /// Version of the product.
    Version,
    /// What the mount is and whether it takes writes.
    Status,
    /// All figures in Prometheus text form.
    Metrics,
    /// The errors since the mount.
    Errors,
    /// The last error of the reader's user.
    LastError,
    /// What the store is working on.
    Tasks,
    /// What to look at, over all tables.
    Health,
    /// The store's own numbers, also to write.
    Config,
}

/// The forms that `.import/` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImportForm {
    /// A row per line as a JSON object.
    Jsonl,
    /// A cell per line.
    Cells,
    /// A row per line, tab-separated, under a header.
    Tsv,
    /// A row per line as RFC 4180 has it, under a header.
    Csv,
}

/// How an import takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImportMode {
    /// `.import/<form>`: line by line.
    Lines,
    /// `.import/atomic/<form>`, `new`, `replace`: all of it or nothing, as a load of this kind.
    Whole(LoadKind),
}

/// A cell's full address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CellAddress {
    /// The table.
    pub table: TableHandle,
    /// The row key.
    pub row: Bytes,
    /// The family.
    pub family: Bytes,
    /// The qualifier.
    pub qualifier: Bytes,
}

/// A dot name, or something inside a dot directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MagicNode {
    /// `MOUNT/.help`
    Help,
    /// `MOUNT/.cellfs/`
    Instance,
    /// A file of `MOUNT/.cellfs/`.
    InstanceFile(InstanceFile),
    /// `MOUNT/.cellfs/guide/`
    Guide,
    /// A page of the guide, by its name.
    GuidePage(&'static str),
    /// `<namespace>/.schema`
    NamespaceSchema(String),
    /// `<namespace>/.stats`
    NamespaceStats(String),
    /// `<table>/.schema`
    TableSchema(TableHandle),
    /// `<table>/.ctl`
    Ctl(TableHandle),
    /// `<table>/.stats`
    TableStats(TableHandle),
    /// `<table>/.health`
    TableHealth(TableHandle),
    /// `<table>/.regions/`
    Regions(TableHandle),
    /// `<table>/.regions/<encoded name>/`
    Region(TableHandle, String),
    /// `<table>/.regions/<encoded name>/stats`
    RegionStats(TableHandle, String),
    /// `<table>/.scan/`, and below it each directory that one more `k=v` makes.
    Scan(TableHandle, ScanParts),
    /// `rows/` at the end of a `.scan` path: its rows are the file system's.
    ScanRows(TableHandle, ScanParts),
    /// The stream at the end of a `.scan` path.
    ScanStream(TableHandle, ScanParts, ScanForm),
    /// `<table>/.import/`
    Import(TableHandle),
    /// `<table>/.import/atomic/`, `new/` and `replace/`
    ImportWhole(TableHandle, LoadKind),
    /// `<table>/.import/<form>`, and the same below the directories of whole imports.
    ImportStream(TableHandle, ImportMode, ImportForm),
    /// `<table>/.import/errors`
    ImportErrors(TableHandle),
    /// `<table>/.import/last`
    ImportLast(TableHandle),
    /// `<row>/.key`
    RowKey(TableHandle, Bytes),
    /// `<row>/.row.json`
    RowJson(TableHandle, Bytes),
    /// `<row>/.versions/`
    Versions(TableHandle, Bytes),
    /// `<row>/.versions/<cell>/`
    CellVersions(CellAddress),
    /// `<row>/.versions/<cell>/<ts>`
    Version(CellAddress, i64),
    /// `<row>/.versions/<cell>/<ts>.del`
    VersionMarker(CellAddress, i64),
    /// `<table>/.via/`
    Via(TableHandle),
    /// `<table>/.via/revts/`
    ViaPrefixes(TableHandle),
    /// `<table>/.via/<scheme>/`, `<table>/.via/revts/<prefix>/`: its rows are the file system's.
    ViaKeys(TableHandle, KeyScheme),
    /// `<table>/.cf/`
    Families(TableHandle),
    /// `<table>/.cf/<family>/`: its rows are the file system's.
    FamilyRows(TableHandle, Bytes),
    /// `<table>/.cf/<family>/.stats`
    FamilyStats(TableHandle, Bytes),
    /// `<table>/.snap/`: the tables below it are the file system's.
    Snapshots(TableHandle),
    /// `<row>/.as/`
    As(TableHandle, Bytes),
    /// `<row>/.as/<type>/`
    AsType(TableHandle, Bytes, ColumnType),
    /// `<row>/.as/<type>/<cell>`
    AsCell(CellAddress, ColumnType),
    /// `MOUNT/.at/`
    Past,
    /// `MOUNT/.at/<time>/`
    PastRoot(i64),
    /// `MOUNT/.at/<time>/<namespace>/`
    PastNamespace(i64, String),
    /// `MOUNT/.at/<time>/<namespace>/<table>/` where the table's history does not reach back so far: listed, but closed.
    PastGone(TableHandle, i64),
    /// `<table>/.at/`
    TablePast(TableHandle),
    /// `<row>/.at/`
    RowPast(TableHandle, Bytes),
    /// A table in a view: the file system's.
    View(TableHandle),
    /// A row in a view: the file system's.
    ViewRow(TableHandle, Bytes),
}

impl MagicNode {
    /// Directory or file.
    pub fn kind(&self) -> FileKind {
        match self {
            MagicNode::Instance
            | MagicNode::Guide
            | MagicNode::Regions(_)
            | MagicNode::Region(..)
            | MagicNode::Scan(..)
            | MagicNode::ScanRows(..)
            | MagicNode::Import(_)
            | MagicNode::ImportWhole(..)
            | MagicNode::Versions(..)
            | MagicNode::CellVersions(_)
            | MagicNode::Via(_)
            | MagicNode::ViaPrefixes(_)
            | MagicNode::ViaKeys(..)
            | MagicNode::Families(_)
            | MagicNode::FamilyRows(..)
            | MagicNode::Snapshots(_)
            | MagicNode::As(..)
            | MagicNode::AsType(..)
            | MagicNode::Past
            | MagicNode::PastRoot(_)
            | MagicNode::PastNamespace(..)
            | MagicNode::PastGone(..)
            | MagicNode::TablePast(_)
            | MagicNode::RowPast(..)
            | MagicNode::View(_)
            | MagicNode::ViewRow(..) => FileKind::Directory,
            _ => FileKind::Regular,
        }
    }

    /// True for files that take writes.
    pub fn is_writable(&self) -> bool {
        matches!(
            self,
            MagicNode::InstanceFile(InstanceFile::Config)
                | MagicNode::NamespaceSchema(_)
                | MagicNode::TableSchema(_)
                | MagicNode::Ctl(_)
                | MagicNode::ImportStream(..)
                | MagicNode::RowJson(..)
                | MagicNode::Version(..)
                | MagicNode::AsCell(..)
        )
    }

    /// The table the node belongs to.
    pub fn table(&self) -> Option<&TableHandle> {
        match self {
            MagicNode::Help
            | MagicNode::Instance
            | MagicNode::InstanceFile(_)
            | MagicNode::Guide
            | MagicNode::GuidePage(_)
            | MagicNode::NamespaceSchema(_)
            | MagicNode::NamespaceStats(_)
            | MagicNode::Past
            | MagicNode::PastRoot(_)
            | MagicNode::PastNamespace(..) => None,
            MagicNode::TableSchema(table)
            | MagicNode::Ctl(table)
            | MagicNode::TableStats(table)
            | MagicNode::TableHealth(table)
            | MagicNode::Regions(table)
            | MagicNode::Region(table, _)
            | MagicNode::RegionStats(table, _)
            | MagicNode::Scan(table, _)
            | MagicNode::ScanRows(table, _)
            | MagicNode::ScanStream(table, ..)
            | MagicNode::Import(table)
            | MagicNode::ImportWhole(table, _)
            | MagicNode::ImportStream(table, ..)
            | MagicNode::ImportErrors(table)
            | MagicNode::ImportLast(table)
            | MagicNode::RowKey(table, _)
            | MagicNode::RowJson(table, _)
            | MagicNode::Versions(table, _)
            | MagicNode::Via(table)
            | MagicNode::ViaPrefixes(table)
            | MagicNode::ViaKeys(table, _)
            | MagicNode::Families(table)
            | MagicNode::FamilyRows(table, _)
            | MagicNode::FamilyStats(table, _)
            | MagicNode::Snapshots(table)
            | MagicNode::As(table, _)
            | MagicNode::AsType(table, ..)
            | MagicNode::PastGone(table, _)
            | MagicNode::TablePast(table)
            | MagicNode::RowPast(table, _)
            | MagicNode::View(table)
            | MagicNode::ViewRow(table, _) => Some(table),
            MagicNode::CellVersions(cell)
            | MagicNode::Version(cell, _)
            | MagicNode::VersionMarker(cell, _)
            | MagicNode::AsCell(cell, _) => Some(&cell.table),
        }
    }

    /// Appends bytes that name the node and nothing else, equal from mount to mount: inode numbers are made of them.
    pub fn identity(&self, out: &mut Vec<u8>) {
        out.put_u8(self.kind_code());
        if let Some(table) = self.table() {
            out.put_u64(table.id());
        }
        match self {
            MagicNode::InstanceFile(file) => out.put_u8(*file as u8),
            MagicNode::GuidePage(name) => out.put_slice(name.as_bytes()),
            MagicNode::NamespaceSchema(name) | MagicNode::NamespaceStats(name) => out.put_slice(name.as_bytes()),
            MagicNode::Region(_, name) | MagicNode::RegionStats(_, name) => out.put_slice(name.as_bytes()),
            MagicNode::Scan(_, parts) | MagicNode::ScanRows(_, parts) => parts.identity(out),
            MagicNode::ScanStream(_, parts, form) => {
                out.put_u8(*form as u8);
                parts.identity(out);
            }
            MagicNode::ImportWhole(_, kind) => out.put_u8(*kind as u8),
            MagicNode::ImportStream(_, mode, form) => {
                out.put_u8(*form as u8);
                if let ImportMode::Whole(kind) = mode {
                    out.put_u8(*kind as u8);
                }
            }
            MagicNode::RowKey(_, row) | MagicNode::RowJson(_, row) | MagicNode::Versions(_, row) => out.put_slice(row),
            MagicNode::CellVersions(cell) => cell.identity(out),
            MagicNode::ViaKeys(_, scheme) => put_scheme(scheme, out),
            MagicNode::FamilyRows(_, family) | MagicNode::FamilyStats(_, family) => out.put_slice(family),
            MagicNode::As(_, row) | MagicNode::RowPast(_, row) | MagicNode::ViewRow(_, row) => out.put_slice(row),
            MagicNode::PastRoot(millis) | MagicNode::PastGone(_, millis) => out.put_i64(*millis),
            MagicNode::PastNamespace(millis, name) => {
                out.put_i64(*millis);
                out.put_slice(name.as_bytes());
            }
            MagicNode::AsType(_, row, of) => {
                put_type(*of, out);
                out.put_slice(row);
            }
            MagicNode::AsCell(cell, of) => {
                put_type(*of, out);
                cell.identity(out);
            }
            MagicNode::Version(cell, timestamp) | MagicNode::VersionMarker(cell, timestamp) => {
                out.put_i64(*timestamp);
                cell.identity(out);
            }
            MagicNode::Help
            | MagicNode::Instance
            | MagicNode::TableSchema(_)
            | MagicNode::Ctl(_)
            | MagicNode::Guide
            | MagicNode::TableStats(_)
            | MagicNode::TableHealth(_)
            | MagicNode::Regions(_)
            | MagicNode::Import(_)
            | MagicNode::ImportErrors(_)
            | MagicNode::ImportLast(_)
            | MagicNode::Via(_)
            | MagicNode::ViaPrefixes(_)
            | MagicNode::Families(_)
            | MagicNode::Snapshots(_)
            | MagicNode::Past
            | MagicNode::TablePast(_)
            | MagicNode::View(_) => {}
        }
    }

    /// A number per variant, part of inode numbers: never reused for another meaning.
    fn kind_code(&self) -> u8 {
        match self {
            MagicNode::Help => 1,
            MagicNode::Instance => 2,
            MagicNode::InstanceFile(_) => 3,
            MagicNode::NamespaceSchema(_) => 4,
            MagicNode::NamespaceStats(_) => 5,
            MagicNode::TableSchema(_) => 6,
            MagicNode::Ctl(_) => 7,
            MagicNode::TableStats(_) => 8,
            MagicNode::Regions(_) => 9,
            MagicNode::Region(..) => 10,
            MagicNode::RegionStats(..) => 11,
            MagicNode::Scan(..) => 12,
            MagicNode::ScanStream(..) => 13,
            MagicNode::ScanRows(..) => 24,
            MagicNode::Import(_) => 14,
            MagicNode::ImportStream(..) => 15,
            MagicNode::ImportWhole(..) => 46,
            MagicNode::ImportErrors(_) => 16,
            MagicNode::ImportLast(_) => 17,
            MagicNode::RowKey(..) => 18,
            MagicNode::RowJson(..) => 19,
            MagicNode::Versions(..) => 20,
            MagicNode::CellVersions(_) => 21,
            MagicNode::Version(..) => 22,
            MagicNode::VersionMarker(..) => 23,
            MagicNode::Snapshots(_) => 70,
            MagicNode::Via(_) => 43,
            MagicNode::ViaPrefixes(_) => 44,
            MagicNode::ViaKeys(..) => 45,
            MagicNode::Families(_) => 50,
            MagicNode::FamilyRows(..) => 51,
            MagicNode::FamilyStats(..) => 52,
            MagicNode::As(..) => 40,
            MagicNode::AsType(..) => 41,
            MagicNode::AsCell(..) => 42,
            MagicNode::Guide => 60,
            MagicNode::GuidePage(_) => 61,
            MagicNode::TableHealth(_) => 62,
            MagicNode::Past => 71,
            MagicNode::PastRoot(_) => 72,
            MagicNode::PastNamespace(..) => 73,
            MagicNode::PastGone(..) => 74,
            MagicNode::TablePast(_) => 75,
            MagicNode::RowPast(..) => 76,
            MagicNode::View(_) => 77,
            MagicNode::ViewRow(..) => 78,
        }
    }
}

/// Bytes that name a scheme and nothing else.
pub(crate) fn put_scheme(scheme: &KeyScheme, out: &mut Vec<u8>) {
    out.put_slice(scheme.name().as_bytes());
    out.put_u8(0);
    if let KeyScheme::ReverseTime(prefix) = scheme {
        out.put_slice(prefix);
    }
}

fn put_type(of: ColumnType, out: &mut Vec<u8>) {
    out.put_slice(of.name().as_bytes());
    out.put_u8(0);
}

impl CellAddress {
    fn identity(&self, out: &mut Vec<u8>) {
        out.put_u32(self.row.len() as u32);
        out.put_slice(&self.row);
        out.put_u8(self.family.len() as u8);
        out.put_slice(&self.family);
        out.put_slice(&self.qualifier);
    }
}
