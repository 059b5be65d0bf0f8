//! The dot names: everything that is not a namespace, a table, a row or a cell (contract.md, sections 1 and 7 to 10).
//!
//! The file system asks [`Magic`] for a name that begins with a dot, and for everything below a dot directory. A [`MagicNode`] is such a file's
//! identity; [`MagicFile`] is an open one.

mod access;
mod config;
mod ctl;
mod directory;
mod family;
mod file;
pub mod forms;
mod guide;
mod health;
mod hooks;
pub mod import;
mod instance;
mod past;

mod node;
mod path;
mod presplit;
mod row_document;
mod row_json;
mod scan;
pub(crate) mod schema;
mod statistics;
mod tasks;
mod time;
mod typed;
mod versions;
mod via;

pub use file::{MagicFile, MagicOpened};
pub use hooks::{Change, MountHooks};
pub use instance::HELP;
pub(crate) use node::put_scheme;
pub use node::{CellAddress, ImportForm, ImportMode, InstanceFile, MagicNode, TableHandle};
pub use scan::{ScanForm, ScanParts};
pub use time::parse_time;

use crate::ops::{Caller, FileKind, FsError, FsResult};
use access::Viewer;
use bytes::Bytes;
use cellfs::client::{Admin, RegionInfo, ResultScanner, Table};
use config::ConfigFile;
use ctl::{CtlFile, VerbProgress};
use file::{TextFile, for_writing};
use import::{ImportFile, ImportReport};
use parking_lot::Mutex;
use row_json::RowJsonFile;
use scan::ScanFile;
use schema::{HiddenSchemas, SchemaFile, SchemaOwner};
use std::collections::HashMap;
use std::sync::Arc;
use typed::TypedFile;
use versions::VersionFile;

/// The text of a page of the guide.
pub fn guide_page(name: &str) -> Option<&'static str> {
    guide::page(name.as_bytes()).map(|(_, text)| text)
}

/// Nanoseconds of a millisecond.
const MILLI: i64 = 1_000_000;

/// Where a name is looked for.
pub enum Place<'a> {
    /// The mount's root.
    Root,
    /// A namespace.
    Namespace(&'a str),
    /// A table.
    Table(&'a Arc<dyn Table>),
    /// A row.
    Row(&'a Arc<dyn Table>, &'a [u8]),
    /// A dot directory or a directory below one.
    Magic(&'a MagicNode),
}

/// What stat(2) shows of a dot file, but for its inode number and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MagicAttributes {
    /// Kind.
    pub kind: FileKind,
    /// Permission bits.
    pub mode: u32,
    /// Bytes; 0 for streams.
    pub size: u64,
    /// Last change, nanoseconds since the epoch.
    pub mtime_nanos: i64,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// A directory listing: names with what they lead to, in order, produced as they are asked for.
pub type MagicListing = Box<dyn Iterator<Item = FsResult<(Bytes, MagicNode)>> + Send>;

/// The dot names of one mount.
pub struct Magic {
    store: Arc<dyn Admin>,
    hooks: Arc<dyn MountHooks>,
    hidden_schemas: Arc<HiddenSchemas>,
    /// Times that utimens gave to `.schema` files, by table, until they are written again or the mount ends: a second `rsync -a` then finds nothing to do.
    schema_times: Mutex<HashMap<u64, i64>>,
    progress: Arc<VerbProgress>,
    /// The last import of each table.
    imports: Mutex<HashMap<u64, Arc<Mutex<ImportReport>>>>,
}

impl Magic {
    /// The dot names over `store`.
    pub fn new(store: Arc<dyn Admin>, hooks: Arc<dyn MountHooks>) -> Magic {
        Magic {
            store,
            hooks,
            hidden_schemas: Arc::default(),
            schema_times: Mutex::default(),
            progress: Arc::default(),
            imports: Mutex::default(),
        }
    }

    /// True while the table's `.schema` is to be found: not unlinked, or written or overtaken since (contract.md, section 1).
    pub fn schema_is_visible(&self, table: u64) -> bool {
        !self.hidden_schemas.is_hidden(table, self.hooks.monotonic())
    }

    /// The table has changed through the file system: an unlinked `.schema` is back.
    pub fn table_changed(&self, table: u64) {
        self.hidden_schemas.show(table);
    }

    /// Attributes of a node. Those of a table, a row or a namespace are owned as it is, and as open as it is.
    ///
    /// # Errors
    /// ENOENT where what the node shows is gone; what the store says.
    pub fn attributes(&self, node: &MagicNode, caller: &Caller) -> FsResult<MagicAttributes> {
        let (uid, gid, mode, mtime_nanos) = match (node.table(), node) {
            (Some(table), _) => {
                let of_table = self.store.table_attributes(&table.0.name())?;
                (of_table.uid, of_table.gid, of_table.mode, of_table.modified_millis.saturating_mul(MILLI))
            }
            (
                None,
                MagicNode::NamespaceSchema(name) | MagicNode::NamespaceStats(name) | MagicNode::PastNamespace(_, name),
            ) => {
                let of_namespace = self.store.namespace(name)?.2;
                let mtime = of_namespace.modified_millis.saturating_mul(MILLI);
                (of_namespace.uid, of_namespace.gid, of_namespace.mode, mtime)
            }
            _ => {
                let (uid, gid) = self.hooks.owner();
                (uid, gid, 0o755, self.hooks.mounted_nanos())
            }
        };
        let (mode, uid, gid) = match node {
            MagicNode::Version(cell, _) | MagicNode::VersionMarker(cell, _) | MagicNode::AsCell(cell, _) => {
                access::owner_of(cell, &self.store.table_attributes(&cell.table.0.name())?)?
            }
            _ => (mode, uid, gid),
        };
        let mtime_nanos = match node {
            MagicNode::Version(_, timestamp) | MagicNode::VersionMarker(_, timestamp) => {
                timestamp.saturating_mul(MILLI)
            }
            MagicNode::TableSchema(table) => self.schema_times.lock().get(&table.id()).copied().unwrap_or(mtime_nanos),
            _ => mtime_nanos,
        };
        let size = match node {
            MagicNode::VersionMarker(..) => 0,
            _ if node.kind() == FileKind::Directory => 0,
            MagicNode::RowKey(_, row) => row.len() as u64,
            // A version that is being made is empty until its first close.
            MagicNode::Version(cell, timestamp) => {
                versions::stored_at(cell, *timestamp)?.value.map_or(0, |value| value.len() as u64)
            }
            // What is no value of the type is there all the same; opening it says why it cannot be read.
            MagicNode::AsCell(cell, of) => match typed::text(cell, *of, self.hooks.as_ref()) {
                Err(error) if matches!(error.errno, libc::EINVAL | libc::ENOENT) => 0,
                shown => shown?.len() as u64,
            },
            _ => self.content(node, caller)?.map_or(0, |content| content.len() as u64),
        };
        let allowed = match node.kind() {
            FileKind::Directory
                if matches!(
                    node,
                    MagicNode::CellVersions(_)
                        | MagicNode::AsType(..)
                        | MagicNode::ViaKeys(..)
                        | MagicNode::Families(_)
                        | MagicNode::FamilyRows(..)
                        | MagicNode::Snapshots(_)
                ) =>
            {
                0o777
            }
            FileKind::Directory => 0o555,
            FileKind::Regular if node.is_writable() => 0o666,
            FileKind::Regular => 0o444,
        };
        Ok(MagicAttributes { kind: node.kind(), mode: mode & allowed, size, mtime_nanos, uid, gid })
    }

    /// The content of a file as it is now; `None` for streams.
    fn content(&self, node: &MagicNode, caller: &Caller) -> FsResult<Option<Bytes>> {
        let (store, hooks) = (self.store.as_ref(), self.hooks.as_ref());
        Ok(Some(match node {
            MagicNode::Help => Bytes::from_static(instance::HELP.as_bytes()),
            MagicNode::InstanceFile(file) => instance::text(*file, store, hooks, &self.progress, caller)?.into(),
            MagicNode::GuidePage(name) => {
                Bytes::from_static(guide::page(name.as_bytes()).map_or("", |(_, text)| text).as_bytes())
            }
            MagicNode::TableHealth(table) => health::table_text(store, table)?.into(),
            MagicNode::NamespaceSchema(name) => SchemaOwner::Namespace(name.clone()).text(store)?.into(),
            MagicNode::TableSchema(table) => SchemaOwner::Table(table.clone()).text(store)?.into(),
            MagicNode::NamespaceStats(name) => statistics::namespace_text(store, name)?.into(),
            MagicNode::TableStats(table) => statistics::lines(&store.table_statistics(&table.0.name())?).into(),
            MagicNode::FamilyStats(table, family) => {
                statistics::lines(&store.family_statistics(&table.0.name(), family)?).into()
            }
            MagicNode::RegionStats(table, name) => {
                let region = self.region(table, name.as_bytes())?.ok_or_else(FsError::not_found)?;
                statistics::region_text(store, table, &region)?.into()
            }
            MagicNode::Ctl(table) => self.progress.text(table.id(), hooks.monotonic()).into(),
            MagicNode::ImportErrors(table) => self.import_report(table).lock().errors().into(),
            MagicNode::ImportLast(table) => self.import_report(table).lock().summary().into(),
            MagicNode::RowKey(_, row) => row.clone(),
            MagicNode::RowJson(table, row) => {
                row_json::row_text(table, row, hooks, self.viewer(table, caller)?.as_mut())?
            }
            MagicNode::Version(cell, timestamp) => {
                versions::stored_at(cell, *timestamp)?.value.ok_or_else(FsError::not_found)?
            }
            MagicNode::VersionMarker(..) => Bytes::new(),
            MagicNode::AsCell(cell, of) => typed::text(cell, *of, hooks)?,
            MagicNode::ScanStream(..) | MagicNode::ImportStream(..) => return Ok(None),
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
            | MagicNode::Snapshots(_)
            | MagicNode::Families(_)
            | MagicNode::FamilyRows(..)
            | MagicNode::Via(_)
            | MagicNode::ViaPrefixes(_)
            | MagicNode::ViaKeys(..)
            | MagicNode::As(..)
            | MagicNode::AsType(..)
            | MagicNode::Past
            | MagicNode::PastRoot(_)
            | MagicNode::PastNamespace(..)
            | MagicNode::PastGone(..)
            | MagicNode::TablePast(_)
            | MagicNode::RowPast(..)
            | MagicNode::View(_)
            | MagicNode::ViewRow(..) => return Err(FsError::new(libc::EISDIR, "a directory")),
        }))
    }

    fn viewer(&self, table: &TableHandle, caller: &Caller) -> FsResult<Option<Viewer>> {
        Ok(Viewer::new(table, &self.store.table_attributes(&table.0.name())?, caller))
    }

    /// The rows of `rows/` below a `.scan` path, or only `one` if it is among them: a result for each, with its key.
    ///
    /// # Errors
    /// What the store says.
    pub fn scan_rows(
        &self,
        table: &TableHandle,
        parts: &ScanParts,
        caller: &Caller,
        one: Option<&Bytes>,
    ) -> FsResult<Box<dyn ResultScanner>> {
        let request = parts.parse(&table.0.descriptor(), self.hooks.now_millis())?;
        request.rows(&table.0, &self.hooks, self.viewer(table, caller)?, one)
    }

    fn region(&self, table: &TableHandle, encoded_name: &[u8]) -> FsResult<Option<RegionInfo>> {
        let regions = self.store.regions(&table.0.name())?;
        Ok(regions.into_iter().find(|region| region.encoded_name.as_bytes() == encoded_name))
    }

    fn import_report(&self, table: &TableHandle) -> Arc<Mutex<ImportReport>> {
        Arc::clone(self.imports.lock().entry(table.id()).or_default())
    }

    /// Opens a file; `flags` are open(2)'s, O_TRUNC included.
    ///
    /// # Errors
    /// EISDIR for a directory, EACCES for writing where nothing can be written; what the store says.
    pub fn open(&self, node: &MagicNode, caller: &Caller, flags: i32) -> FsResult<Box<dyn MagicFile>> {
        let writes = for_writing(flags);
        if writes && !node.is_writable() {
            return Err(file::read_only());
        }
        // What is opened to be replaced need not be read.
        let present = |keep: bool| match writes && (flags & libc::O_TRUNC != 0 || !keep) {
            true => Ok(Bytes::new()),
            false => Ok::<_, FsError>(self.content(node, caller)?.unwrap_or_default()),
        };
        Ok(match node {
            MagicNode::ScanStream(table, parts, form) => {
                let request = parts.parse(&table.0.descriptor(), self.hooks.now_millis())?;
                let viewer = self.viewer(table, caller)?;
                Box::new(ScanFile::open(Arc::clone(&table.0), Arc::clone(&self.hooks), viewer, &request, *form)?)
            }
            MagicNode::ImportStream(table, mode, form) => {
                let (hooks, last) = (Arc::clone(&self.hooks), self.import_report(table));
                Box::new(ImportFile::open(Arc::clone(&table.0), (*mode, *form), hooks, last, flags))
            }
            MagicNode::Ctl(table) => Box::new(CtlFile {
                table: table.clone(),
                store: Arc::clone(&self.store),
                hooks: Arc::clone(&self.hooks),
                progress: Arc::clone(&self.progress),
                written: Vec::new(),
            }),
            MagicNode::InstanceFile(InstanceFile::Config) if writes => {
                Box::new(ConfigFile::open(Arc::clone(&self.store), Arc::clone(&self.hooks)))
            }
            MagicNode::RowJson(table, row) if writes => {
                let content = present(flags & libc::O_ACCMODE == libc::O_RDWR)?;
                Box::new(RowJsonFile::open(table.clone(), row.clone(), Arc::clone(&self.hooks), content))
            }
            MagicNode::TableSchema(_) | MagicNode::NamespaceSchema(_) if writes => {
                self.open_schema(node, present(true)?, flags)?
            }
            MagicNode::Version(cell, timestamp) if writes => {
                let (cell, hooks) = (cell.clone(), Arc::clone(&self.hooks));
                Box::new(VersionFile::open(cell, *timestamp, hooks, Some(present(true)?), flags))
            }
            MagicNode::AsCell(cell, of) if writes => {
                let (cell, hooks) = (cell.clone(), Arc::clone(&self.hooks));
                Box::new(TypedFile::open(cell, *of, hooks, present(true)?, flags))
            }
            _ => Box::new(TextFile(present(true)?)),
        })
    }

    fn open_schema(&self, node: &MagicNode, content: Bytes, flags: i32) -> FsResult<Box<dyn MagicFile>> {
        let (store, hooks) = (Arc::clone(&self.store), Arc::clone(&self.hooks));
        let hidden = Arc::clone(&self.hidden_schemas);
        if let MagicNode::TableSchema(table) = node {
            self.schema_times.lock().remove(&table.id());
        }
        Ok(Box::new(SchemaFile::open(schema_owner(node)?, store, hooks, hidden, content.into(), flags)))
    }

    /// Creates and opens a file: a version below `.versions/<cell>/`, or a hidden `.schema` of a table.
    ///
    /// # Errors
    /// EPERM where nothing can be created, EINVAL for a name that is no timestamp.
    pub fn create(
        &self,
        place: &Place<'_>,
        name: &[u8],
        caller: &Caller,
        flags: i32,
    ) -> FsResult<(MagicNode, Box<dyn MagicFile>)> {
        let shown = name.escape_ascii();
        match (place, name) {
            (Place::Table(table), b".schema") => {
                let node = MagicNode::TableSchema(TableHandle(Arc::clone(table)));
                let file = self.open_schema(&node, Bytes::new(), flags)?;
                Ok((node, file))
            }
            (Place::Magic(MagicNode::CellVersions(cell)), _) => {
                if name.ends_with(b".del") {
                    return Err(FsError::new(libc::EPERM, "a tombstone is made by removing a version or the cell"));
                }
                let timestamp = versions::parse_timestamp(name)
                    .ok_or_else(|| FsError::new(libc::EINVAL, format!("{shown} is no timestamp in milliseconds")))?;
                let node = MagicNode::Version(cell.clone(), timestamp);
                if versions::stored_at(cell, timestamp)? != versions::Stored::default() {
                    return match flags & libc::O_EXCL {
                        0 => Ok((node.clone(), self.open(&node, caller, flags | libc::O_TRUNC)?)),
                        _ => Err(FsError::new(libc::EEXIST, format!("{shown} is stored"))),
                    };
                }
                let file = VersionFile::open(cell.clone(), timestamp, Arc::clone(&self.hooks), None, flags);
                Ok((node, Box::new(file)))
            }
            (Place::Magic(MagicNode::AsType(table, row, of)), _) => {
                let cell = typed::address(table, row, name)?.ok_or_else(|| {
                    FsError::new(libc::EINVAL, format!("{shown} names no cell in a family of the table"))
                })?;
                let file = TypedFile::open(cell.clone(), *of, Arc::clone(&self.hooks), Bytes::new(), flags);
                Ok((MagicNode::AsCell(cell, *of), Box::new(file)))
            }
            _ => Err(FsError::new(libc::EPERM, format!("{shown} cannot be created here"))),
        }
    }

    /// Removes a file: a version, or a table's `.schema`, which it hides.
    ///
    /// # Errors
    /// EPERM for everything else.
    pub fn unlink(&self, node: &MagicNode) -> FsResult<()> {
        match node {
            MagicNode::TableSchema(table) => {
                self.hidden_schemas.hide(table.id(), self.hooks.monotonic());
                Ok(())
            }
            MagicNode::Version(cell, timestamp) => versions::delete_version(cell, *timestamp, self.hooks.as_ref()),
            MagicNode::VersionMarker(..) => {
                Err(FsError::new(libc::EPERM, "a tombstone cannot be removed; compaction drops it"))
            }
            _ => Err(FsError::new(libc::EPERM, "this file cannot be removed")),
        }
    }

    /// Replaces a file's content by that of a scratch file renamed onto it (`sed -i`, editors).
    ///
    /// # Errors
    /// As the write of the same text; EINVAL for files that are no schema or version.
    pub fn replace(&self, node: &MagicNode, caller: &Caller, content: &[u8]) -> FsResult<()> {
        if !matches!(node, MagicNode::TableSchema(_) | MagicNode::NamespaceSchema(_) | MagicNode::Version(..)) {
            return Err(FsError::new(libc::EINVAL, "this file cannot be replaced by another"));
        }
        let mut file = self.open(node, caller, libc::O_WRONLY | libc::O_TRUNC)?;
        file.write(0, content)?;
        file.flush()
    }

    /// Gives a table's `.schema` a time to show; other dot files keep none.
    pub fn set_time(&self, node: &MagicNode, mtime_nanos: i64) {
        if let MagicNode::TableSchema(table) = node {
            self.schema_times.lock().insert(table.id(), mtime_nanos);
        }
    }

    /// True if reading, writing or flushing the node may wait for the disk or for long work.
    pub fn may_block(&self, node: &MagicNode) -> bool {
        !matches!(
            node,
            MagicNode::Help
                | MagicNode::Instance
                | MagicNode::Guide
                | MagicNode::GuidePage(_)
                | MagicNode::InstanceFile(InstanceFile::Version | InstanceFile::Errors | InstanceFile::LastError)
                | MagicNode::RowKey(..)
        )
    }
}

fn schema_owner(node: &MagicNode) -> FsResult<SchemaOwner> {
    match node {
        MagicNode::TableSchema(table) => Ok(SchemaOwner::Table(table.clone())),
        MagicNode::NamespaceSchema(name) => Ok(SchemaOwner::Namespace(name.clone())),
        _ => Err(FsError::new(libc::EINVAL, "no schema")),
    }
}
