//! A store in a temporary directory with the dot names over it, and shell-like access to them.

use bytes::Bytes;
use cellfs::client::{Admin, Put, Table, TableAttributes, TableName, WriteTime};
use cellfs::clock::{Clock, ManualClock};
use cellfs::schema::TableDescriptor;
use cellfs::server::{BackgroundMode, Store, StoreOptions};
use cellfs::vfs::OsVfs;
use cellfs_mount::magic::{Change, Magic, MagicFile, MagicNode, MountHooks, Place};
use cellfs_mount::ops::{Caller, FsError, FsResult};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// The clock's start: 2025-11-30T20:15:01.250Z.
pub const START: i64 = 1_764_533_701_250;

pub const ROOT: Caller = Caller { uid: 0, gid: 0, pid: 1 };

/// What the mount around the dot names would be told.
pub struct Recorder {
    pub clock: Arc<ManualClock>,
    pub changes: Mutex<Vec<Change>>,
    pub remarks: Mutex<Vec<String>>,
    pub hidden: Mutex<Vec<(Bytes, Bytes)>>,
}

impl MountHooks for Recorder {
    fn now_millis(&self) -> i64 {
        self.clock.now_millis()
    }
    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }
    fn mounted_nanos(&self) -> i64 {
        START * 1_000_000
    }
    fn owner(&self) -> (u32, u32) {
        (7, 8)
    }
    fn status(&self) -> Vec<(String, String)> {
        vec![("store".into(), "/s".into())]
    }
    fn figures(&self) -> Vec<(&'static str, &'static str, u64)> {
        vec![("inodes", "inodes in use", 3)]
    }
    fn errors(&self) -> String {
        "an error\n".into()
    }
    fn last_error(&self, uid: u32) -> String {
        format!("of {uid}\n")
    }
    fn remark(&self, _operation: &'static str, path: &str, reason: &str) {
        self.remarks.lock().push(format!("{path}: {reason}"));
    }
    fn changed(&self, change: Change) {
        self.changes.lock().push(change);
    }
    fn is_hidden(&self, _table: u64, row: &[u8], _family: &[u8], qualifier: &[u8]) -> bool {
        self.hidden.lock().iter().any(|(hidden, column)| hidden == row && column == qualifier)
    }
    fn hides_any(&self, _table: u64) -> bool {
        !self.hidden.lock().is_empty()
    }
}

pub struct World {
    pub store: Arc<Store>,
    pub hooks: Arc<Recorder>,
    pub magic: Magic,
    pub table: Arc<dyn Table>,
    _directory: tempfile::TempDir,
}

pub fn attributes() -> TableAttributes {
    TableAttributes { mode: 0o755, uid: 5, gid: 6, changed_millis: START, modified_millis: START }
}

impl World {
    /// A store with the table `default:t`, which has the family `cf`.
    pub fn new() -> World {
        let directory = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new(START));
        let options = StoreOptions { background: BackgroundMode::Manual, ..StoreOptions::default() };
        let clock_of_store: Arc<dyn Clock> = clock.clone();
        let store = Store::open_with(Arc::new(OsVfs), clock_of_store, directory.path().join("s"), options).unwrap();
        let store = Arc::new(store);
        let hooks = Arc::new(Recorder {
            clock,
            changes: Mutex::default(),
            remarks: Mutex::default(),
            hidden: Mutex::default(),
        });
        let name = TableName::new("default", "t").unwrap();
        let table = store.create_table(&name, TableDescriptor::with_family("cf"), &[], attributes()).unwrap();
        let magic = Magic::new(store.clone(), hooks.clone());
        World { store, hooks, magic, table, _directory: directory }
    }

    /// Replaces the schema, panicking on refusal.
    pub fn schema(&self, text: &str) -> &World {
        self.write(".schema", text).unwrap();
        self
    }

    pub fn put(&self, row: &[u8], column: &[u8], timestamp: i64, value: &[u8]) {
        let colon = column.iter().position(|b| *b == b':').unwrap();
        let (family, qualifier) = (column[..colon].to_vec(), column[colon + 1..].to_vec());
        let put = Put::new(row.to_vec()).add_at(family, qualifier, WriteTime::At(timestamp), value.to_vec());
        self.table.put(put).unwrap();
    }

    /// Finds `path` from the table: its first part a dot name of the table, or `row=KEY` followed by one of the row.
    pub fn find(&self, path: &str) -> FsResult<MagicNode> {
        let mut parts = path.split('/');
        let first = parts.next().unwrap();
        let mut node = match first.strip_prefix("row=") {
            Some(row) => self.magic.lookup(&Place::Row(&self.table, row.as_bytes()), parts.next().unwrap().as_bytes()),
            None => self.magic.lookup(&Place::Table(&self.table), first.as_bytes()),
        }?
        .ok_or_else(FsError::not_found)?;
        for part in parts {
            node = self.magic.lookup(&Place::Magic(&node), part.as_bytes())?.ok_or_else(FsError::not_found)?;
        }
        Ok(node)
    }

    /// `cat path`, in pieces of a size that no form knows.
    pub fn read_bytes(&self, path: &str) -> FsResult<Vec<u8>> {
        self.read_node(&self.find(path)?)
    }

    pub fn read_node(&self, node: &MagicNode) -> FsResult<Vec<u8>> {
        let mut file = self.magic.open(node, &ROOT, libc::O_RDONLY)?;
        let mut content = Vec::new();
        loop {
            let piece = file.read(content.len() as u64, 37)?;
            content.extend_from_slice(&piece);
            if piece.len() < 37 {
                return Ok(content);
            }
        }
    }

    pub fn read(&self, path: &str) -> String {
        String::from_utf8(self.read_bytes(path).unwrap()).unwrap()
    }

    pub fn errno(&self, path: &str) -> i32 {
        self.read_bytes(path).unwrap_err().errno
    }

    pub fn open_to_write(&self, path: &str) -> FsResult<Box<dyn MagicFile>> {
        let mut file = self.magic.open(&self.find(path)?, &ROOT, libc::O_WRONLY | libc::O_TRUNC)?;
        // A shell duplicates the descriptor and closes the first one.
        file.flush()?;
        Ok(file)
    }

    /// `printf > path`: writes in one call, closes; the first error.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> FsResult<()> {
        let mut file = self.open_to_write(path)?;
        file.write(0, content.as_ref())?;
        file.flush()
    }

    /// `ls path`
    pub fn list(&self, path: &str) -> Vec<String> {
        self.list_node(&self.find(path).unwrap())
    }

    pub fn list_node(&self, node: &MagicNode) -> Vec<String> {
        let entries = self.magic.list(node).unwrap();
        entries
            .map(|entry| {
                let (name, found) = entry.unwrap();
                let looked_up = self.magic.lookup(&Place::Magic(node), &name).unwrap();
                assert_eq!(looked_up.as_ref(), Some(&found), "{name:?}");
                String::from_utf8(name.to_vec()).unwrap()
            })
            .collect()
    }
}
