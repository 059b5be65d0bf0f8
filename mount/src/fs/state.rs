//! What the file system and the dot names share: options, errors, inodes, and what must outlive the kernel's references.

use super::contended::Contended;
use super::errors::{ErrorLine, ErrorLog};
use super::inode::{AbsentNames, InodeTable, Node};
use super::rows::KeptRows;
use super::scratch::{HiddenCells, ScratchFiles};
use crate::invalidation::InvalidationQueue;
use crate::magic::{CellAddress, Change, MountHooks, TableHandle};
use crate::names;
use crate::ops::{Caller, FsError, Invalidation};
use bytes::Bytes;
use cellfs::client::TableAttributes;
use cellfs::clock::{Clock, SystemClock};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

/// HBase's own limit is 10 MB (hbase.server.keyvalue.maxsize); files are larger.
const DEFAULT_CELL_MAX: u64 = 64 << 20;
/// Names said not to exist that are remembered for one directory; beyond them the kernel is not asked to remember.
const ABSENT_NAMES: usize = 1024;

/// How a file system is to behave.
#[derive(Clone)]
pub struct FsOptions {
    /// The directory whose volume statfs reports; `None` = figures of the engine alone.
    pub store_path: Option<PathBuf>,
    /// The family that `mkdir TABLE` makes.
    pub family: String,
    /// Owner of the root.
    pub uid: u32,
    /// Group of the root.
    pub gid: u32,
    /// Permission bits taken from everything that is made, beside the caller's own umask.
    pub umask: u32,
    /// Nothing may change.
    pub read_only: bool,
    /// Every close is durable: flushes wait for the disk.
    pub sync: bool,
    /// Extended attributes are served.
    pub xattr: bool,
    /// The largest value of a cell in bytes.
    pub cell_max: u64,
    /// Work that is due later is done by a thread; false in tests, which call [`MountState::bury_due`].
    pub background: bool,
    /// Further facts for `.cellfs/status`, name and value.
    pub facts: Vec<(String, String)>,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where invalidations go.
    pub invalidations: Arc<InvalidationQueue>,
}

impl Default for FsOptions {
    fn default() -> Self {
        FsOptions {
            store_path: None,
            family: "cf".into(),
            uid: 0,
            gid: 0,
            umask: 0,
            read_only: false,
            sync: false,
            xattr: false,
            cell_max: DEFAULT_CELL_MAX,
            background: true,
            facts: Vec::new(),
            clock: Arc::new(SystemClock::new()),
            invalidations: InvalidationQueue::new(),
        }
    }
}

/// A table's attributes as the mount shows them.
#[derive(Clone, Debug)]
pub struct TableFacts {
    /// The table.
    pub table: TableHandle,
    /// The attributes; times move here before the store has them.
    pub attributes: TableAttributes,
    /// The store does not have them yet.
    pub unsaved: bool,
}

/// Bytes that may be written before the volume is asked again, and when it was.
#[derive(Debug, Default)]
pub(super) struct Room {
    pub(super) bytes: u64,
    pub(super) asked: Duration,
}

/// A table that a process has just made.
#[derive(Debug)]
struct MadeTable {
    table: u64,
    pid: u32,
    until: Duration,
    lookups: u32,
}

/// How long a new table's `.schema` stays unseen by the process that made it.
const UNSEEN: Duration = Duration::from_secs(2);
/// How many lookups of it are answered so: unzip asks four times before it opens what it has to make, which is the fifth.
const UNSEEN_LOOKUPS: u32 = 5;

/// The state of a mount.
pub struct MountState {
    /// The options.
    pub options: FsOptions,
    /// The inodes.
    pub inodes: InodeTable,
    /// The errors.
    pub errors: ErrorLog,
    /// Empty rows.
    pub kept: KeptRows,
    /// Hidden cells.
    pub hidden: HiddenCells,
    /// Scratch files.
    pub scratch: ScratchFiles,
    /// Cells that a writer is about to open once more.
    pub contended: Contended,
    /// Attributes of tables.
    pub tables: RwLock<HashMap<u64, TableFacts>>,
    pub(super) watching: AtomicBool,
    pub(super) room: Mutex<Room>,
    made: Mutex<Vec<MadeTable>>,
    epoch: AtomicU64,
    root_changed_millis: AtomicI64,
    mounted_millis: i64,
    cell_max: AtomicU64,
}

impl MountState {
    /// The state of a mount that begins now.
    pub fn new(options: FsOptions) -> MountState {
        MountState {
            mounted_millis: options.clock.now_millis(),
            cell_max: AtomicU64::new(options.cell_max),
            options,
            inodes: InodeTable::new(),
            errors: ErrorLog::default(),
            kept: KeptRows::default(),
            hidden: HiddenCells::default(),
            scratch: ScratchFiles::default(),
            contended: Contended::default(),
            tables: RwLock::default(),
            watching: AtomicBool::new(false),
            room: Mutex::default(),
            made: Mutex::default(),
            epoch: AtomicU64::new(0),
            root_changed_millis: AtomicI64::new(0),
        }
    }

    /// Milliseconds since the epoch.
    pub fn now(&self) -> i64 {
        self.options.clock.now_millis()
    }

    /// The largest value of a cell in bytes.
    pub fn cell_max(&self) -> u64 {
        self.cell_max.load(Ordering::Relaxed)
    }

    /// Count of changes that came past the file operations: what was read from the engine under another count must be read again.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// When a namespace last came or went in this mount, milliseconds since the epoch; 0 = not yet.
    pub fn root_changed(&self) -> i64 {
        self.root_changed_millis.load(Ordering::Acquire)
    }

    /// A namespace came or went.
    pub fn note_root_changed(&self) {
        self.root_changed_millis.store(self.now(), Ordering::Release);
    }

    /// A process has made a table: `cp -a` opens the `.schema` that it then copies with O_EXCL, unzip would ask whether to replace it.
    pub fn note_made(&self, table: u64, pid: u32) {
        let now = self.options.clock.monotonic();
        let mut made = self.made.lock();
        made.retain(|made| made.until > now);
        made.push(MadeTable { table, pid, until: now + UNSEEN, lookups: UNSEEN_LOOKUPS });
    }

    /// True for the first lookups of a new table's `.schema` by the process (thread group) that made it.
    pub fn is_unseen(&self, table: u64, pid: u32) -> bool {
        let now = self.options.clock.monotonic();
        let mut made = self.made.lock();
        let mut of_this = made.iter_mut().filter(|made| made.table == table && made.until > now && made.lookups > 0);
        let Some(found) = of_this.find(|made| super::cells::same_group(made.pid, pid)) else { return false };
        found.lookups -= 1;
        true
    }

    /// A process lists a table. Nobody who copies into a new one does that; who made it and lists it finds everything that the listing names.
    pub fn note_listed(&self, table: u64, pid: u32) {
        self.made.lock().retain(|made| made.table != table || !super::cells::same_group(made.pid, pid));
    }

    /// The `.schema` of a table has been written: from now on everybody sees it.
    pub fn note_schema_made(&self, table: u64) {
        self.made.lock().retain(|made| made.table != table);
    }

    /// Tells the kernel to forget something.
    pub fn invalidate(&self, invalidation: Invalidation) {
        if let Invalidation::Name { parent, .. } = &invalidation {
            self.listing_changed(*parent);
        }
        self.options.invalidations.send(invalidation);
    }

    /// A directory's listing is not what the kernel may have kept of it.
    fn listing_changed(&self, directory: u64) {
        if self.inodes.get(directory).is_some_and(|inode| inode.listing.changed()) {
            self.options.invalidations.send(Invalidation::Inode { inode: directory, attributes_only: false });
        }
    }

    /// Notes that the kernel is told that a name does not exist; false if it must not remember.
    pub fn note_absent(&self, directory: u64, name: &[u8]) -> bool {
        let Some(inode) = self.inodes.get(directory) else { return false };
        let mut state = inode.lock();
        if state.absent.len() >= ABSENT_NAMES {
            return false;
        }
        state.absent.insert(name);
        true
    }

    /// The path of a node from the mount's root, for error lines.
    pub fn path_of(&self, node: &Node) -> String {
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        match node {
            Node::Root => "/".into(),
            Node::Namespace(_, name) => format!("/{name}"),
            Node::Table(table) => table.path(),
            Node::Row(table, row) => format!("{}/{}", table.path(), text(&names::row_name(row))),
            Node::Cell(cell) => format!(
                "{}/{}/{}",
                cell.table.path(),
                text(&names::row_name(&cell.row)),
                text(&names::cell_name(&cell.family, &cell.qualifier))
            ),
            Node::Via(table, way, row) => {
                let key = way.key(row).map_or_else(String::new, |key| text(&names::row_name(&key)));
                format!("{}/{key}", way.directory(table).path())
            }
            Node::Scratch(number) => format!("(scratch file {number})"),
            Node::Magic(magic) => magic.path(),
        }
    }

    /// Adds a failed operation to the errors.
    pub fn note_error(&self, caller: &Caller, operation: &'static str, path: String, error: &FsError) {
        self.errors.add(&ErrorLine {
            time_millis: self.now(),
            pid: caller.pid,
            uid: caller.uid,
            operation,
            path,
            errno: error.errno,
            reason: error.reason.clone(),
        });
    }

    /// Something in a row changed at `millis`: its attributes move.
    pub fn row_changed(&self, table: &TableHandle, row: &Bytes, millis: i64) {
        let Some(inode) = self.inodes.find(&Node::Row(table.clone(), row.clone())) else { return };
        let mut state = inode.lock();
        if let Some(facts) = &mut state.row {
            facts.newest_millis = facts.newest_millis.max(millis);
        }
        self.forget_attributes(inode.number, &mut state.attributes_given);
    }

    /// A row came or went: the table's attributes move.
    pub fn table_changed(&self, table: u64, millis: i64) {
        if let Some(facts) = self.tables.write().get_mut(&table) {
            facts.attributes.modified_millis = facts.attributes.modified_millis.max(millis);
            facts.attributes.changed_millis = facts.attributes.changed_millis.max(millis);
            facts.unsaved = true;
        }
    }

    fn forget_attributes(&self, inode: u64, given: &mut bool) {
        if std::mem::take(given) {
            self.invalidate(Invalidation::Inode { inode, attributes_only: true });
        }
    }

    /// The names of a directory that were said not to exist may exist now.
    fn forget_absent(&self, directory: u64, absent: &mut AbsentNames) {
        self.listing_changed(directory);
        for name in absent.take() {
            self.invalidate(Invalidation::Name { parent: directory, name });
        }
    }

    /// A cell changed: its pages and attributes are stale, and its name may be new or gone.
    fn cell_changed(&self, cell: CellAddress) {
        let name = Bytes::from(names::cell_name(&cell.family, &cell.qualifier));
        let row = Node::Row(cell.table.clone(), cell.row.clone());
        if let Some(row) = self.inodes.find(&row) {
            let mut state = row.lock();
            self.forget_attributes(row.number, &mut state.attributes_given);
            self.forget_absent(row.number, &mut state.absent);
            self.invalidate(Invalidation::Name { parent: row.number, name });
        }
        if let Some(inode) = self.inodes.find(&Node::Cell(cell)) {
            self.invalidate(Invalidation::Inode { inode: inode.number, attributes_only: false });
        }
    }

    /// Every row for which `changed` holds may have come, gone or changed, with all its cells.
    fn rows_changed(&self, table: u64, changed: impl Fn(&[u8]) -> bool) {
        let mut table_inode = None;
        let mut rows = Vec::new();
        let mut cells = Vec::new();
        self.inodes.for_each(|inode| match inode.node() {
            Node::Table(handle) if handle.id() == table => table_inode = Some(Arc::clone(inode)),
            Node::Row(handle, row) if handle.id() == table && changed(&row) => rows.push((Arc::clone(inode), row)),
            Node::Cell(cell) if cell.table.id() == table && changed(&cell.row) => cells.push((Arc::clone(inode), cell)),
            _ => {}
        });
        if let Some(inode) = &table_inode {
            let mut state = inode.lock();
            self.forget_attributes(inode.number, &mut state.attributes_given);
            self.forget_absent(inode.number, &mut state.absent);
        }
        for (inode, cell) in cells {
            let row = self.inodes.number(&Node::Row(cell.table.clone(), cell.row.clone()));
            let name = Bytes::from(names::cell_name(&cell.family, &cell.qualifier));
            self.invalidate(Invalidation::Inode { inode: inode.number, attributes_only: false });
            self.invalidate(Invalidation::Name { parent: row, name });
        }
        for (inode, row) in rows {
            let mut state = inode.lock();
            state.row = None;
            self.forget_attributes(inode.number, &mut state.attributes_given);
            self.forget_absent(inode.number, &mut state.absent);
            drop(state);
            if let (Some(parent), None) = (&table_inode, self.kept.get(table, &row)) {
                let name = Bytes::from(names::row_name(&row).into_owned());
                self.invalidate(Invalidation::Name { parent: parent.number, name });
            }
        }
    }

    /// The table's owner or mode changed: what rows and cells show may have changed with it.
    pub fn forget_shown(&self, table: u64) {
        self.inodes.for_each(|inode| {
            let belongs = match inode.node() {
                Node::Row(handle, _) => handle.id() == table,
                Node::Cell(cell) => cell.table.id() == table,
                _ => false,
            };
            if belongs {
                self.invalidate(Invalidation::Inode { inode: inode.number, attributes_only: true });
            }
        });
    }

    fn handle_of(&self, table: u64) -> Option<TableHandle> {
        self.tables.read().get(&table).map(|facts| facts.table.clone())
    }

    /// Nothing of a dropped table is kept.
    pub fn forget_table(&self, table: u64) {
        self.kept.remove_table(table);
        self.scratch.remove_table(table);
        self.hidden.remove_table(table);
        self.tables.write().remove(&table);
    }
}

impl MountHooks for MountState {
    fn now_millis(&self) -> i64 {
        self.now()
    }

    fn monotonic(&self) -> Duration {
        self.options.clock.monotonic()
    }

    fn mounted_nanos(&self) -> i64 {
        self.mounted_millis.saturating_mul(super::attributes::MILLI)
    }

    fn owner(&self) -> (u32, u32) {
        (self.options.uid, self.options.gid)
    }

    fn status(&self) -> Vec<(String, String)> {
        let mut facts = self.options.facts.clone();
        facts.push(("read_only".into(), self.options.read_only.to_string()));
        facts.push(("sync".into(), self.options.sync.to_string()));
        facts.push(("family".into(), self.options.family.clone()));
        facts.push(("cell.max".into(), self.cell_max().to_string()));
        facts
    }

    fn figures(&self) -> Vec<(&'static str, &'static str, u64)> {
        vec![
            ("inodes", "inodes that the kernel holds", self.inodes.len() as u64),
            ("errors", "operations that failed since the mount", self.errors.count()),
            ("scratch_files", "scratch files", self.scratch.count() as u64),
            ("scratch_bytes", "bytes of scratch files", self.scratch.bytes()),
        ]
    }

    fn errors(&self) -> String {
        self.errors.text()
    }

    fn last_error(&self, uid: u32) -> String {
        self.errors.last(uid)
    }

    fn set_cell_max(&self, bytes: u64) {
        self.cell_max.store(bytes, Ordering::Relaxed);
    }

    fn cell_max(&self) -> u64 {
        self.cell_max()
    }

    fn remark(&self, operation: &'static str, path: &str, reason: &str) {
        let (pid, uid) = (std::process::id(), self.options.uid);
        let (time_millis, path, reason) = (self.now(), path.to_owned(), reason.to_owned());
        self.errors.add(&ErrorLine { time_millis, pid, uid, operation, path, errno: 0, reason });
    }

    fn changed(&self, change: Change) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
        let now = self.now();
        match change {
            Change::Cell { table, row, family, qualifier } => {
                self.hidden.show(table, &row, &family, &qualifier);
                let Some(table) = self.handle_of(table) else { return };
                self.row_appeared(&table, &row);
                self.cell_changed(CellAddress { table, row, family, qualifier });
            }
            Change::Rows { table, mut rows } => {
                self.table_changed(table, now);
                rows.sort_unstable();
                self.rows_changed(table, |row| rows.binary_search_by(|other| other.as_ref().cmp(row)).is_ok());
            }
            Change::AnyRow { table } => {
                self.table_changed(table, now);
                self.rows_changed(table, |_| true);
            }
            Change::Table { table } => {
                self.kept.remove_table(table);
                self.hidden.remove_table(table);
                self.table_changed(table, now);
                self.rows_changed(table, |_| true);
            }
            Change::TableDropped { table, namespace, name } => {
                self.drop_names(table, &namespace, &name);
                self.forget_table(table);
            }
            // No table has this id yet: what is forgotten is that the name led to nothing.
            Change::TableMade { namespace, name } => self.drop_names(0, &namespace, &name),
            Change::Schema { table, cells } => {
                self.table_changed(table, now);
                if cells {
                    self.rows_changed(table, |_| true);
                }
                let Some(handle) = self.handle_of(table) else { return };
                if let Some(inode) = self.inodes.find(&Node::Table(handle)) {
                    self.forget_attributes(inode.number, &mut inode.lock().attributes_given);
                }
            }
        }
    }

    fn is_hidden(&self, table: u64, row: &[u8], family: &[u8], qualifier: &[u8]) -> bool {
        self.hidden.contains(table, row, family, qualifier)
    }

    fn hides_any(&self, table: u64) -> bool {
        self.hidden.any_of(table)
    }
}

impl MountState {
    /// A row may have come to be: the table may have said that it does not exist.
    pub(super) fn row_appeared(&self, table: &TableHandle, row: &Bytes) {
        let known = self.inodes.find(&Node::Row(table.clone(), row.clone())).is_some();
        if let (false, Some(inode)) = (known, self.inodes.find(&Node::Table(table.clone()))) {
            self.table_changed(table.id(), self.now());
            let mut state = inode.lock();
            self.forget_attributes(inode.number, &mut state.attributes_given);
            self.forget_absent(inode.number, &mut state.absent);
        }
    }

    /// The kernel's name of a dropped table goes, with all below it.
    fn drop_names(&self, table: u64, namespace: &str, name: &str) {
        let mut parent = None;
        self.inodes.for_each(|inode| match inode.node() {
            Node::Namespace(_, other) if *other == *namespace => parent = Some(inode.number),
            Node::Table(handle) if handle.id() == table => self.inodes.unlink(inode),
            _ => {}
        });
        if let Some(parent) = parent {
            self.invalidate(Invalidation::Name { parent, name: Bytes::copy_from_slice(name.as_bytes()) });
            self.invalidate(Invalidation::Inode { inode: parent, attributes_only: true });
        }
    }
}
