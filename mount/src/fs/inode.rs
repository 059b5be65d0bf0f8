//! Inodes: what the kernel's numbers stand for, and how many references it holds.
//!
//! A number is a hash of what the file is (ids, keys), so it is the same in every mount; the rare collision, and a name that is made again while its
//! deleted file is still open, take the next free number. All numbers but the root's and those of tables' `.schema` have the highest bit set, so
//! that `.schema` has the lowest number of its table.

mod absent;
mod listing_mark;

pub use absent::AbsentNames;
pub use listing_mark::ListingMark;

use super::cells::CellState;
use super::rows::RowFacts;
use crate::magic::{CellAddress, MagicNode, ScanParts, TableHandle, put_scheme};
use crate::ops::ROOT_INODE;
use bytes::Bytes;
use cellfs::types::KeyScheme;
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Where else than in its table a row is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// `.via/<scheme>/<logical key>`
    Key(KeyScheme),
    /// `.scan/<parts>/rows/<row>`
    Scan(ScanParts),
    /// `.cf/<family>/<row>`: the row's cells of that family, whose names are qualifiers alone.
    Family(Bytes),
}

impl Way {
    /// The directory that the way leads through.
    pub fn directory(&self, table: &TableHandle) -> MagicNode {
        match self {
            Way::Key(scheme) => MagicNode::ViaKeys(table.clone(), scheme.clone()),
            Way::Scan(parts) => MagicNode::ScanRows(table.clone(), parts.clone()),
            Way::Family(family) => MagicNode::FamilyRows(table.clone(), family.clone()),
        }
    }

    /// The row's key there; `None` for one that cannot be there.
    pub fn key(&self, row: &Bytes) -> Option<Bytes> {
        match self {
            Way::Key(scheme) => scheme.logical(row),
            Way::Scan(_) | Way::Family(_) => Some(row.clone()),
        }
    }
}

/// What an inode is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// The root.
    Root,
    /// A namespace: id and name (namespaces are never renamed).
    Namespace(u64, Arc<str>),
    /// A table.
    Table(TableHandle),
    /// A row.
    Row(TableHandle, Bytes),
    /// A cell.
    Cell(CellAddress),
    /// A row on another way than its table: another directory that leads to the row's own inode.
    Via(TableHandle, Way, Bytes),
    /// A scratch file, by its number in this mount.
    Scratch(u64),
    /// A dot name.
    Magic(MagicNode),
}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(number_of(self));
    }
}

/// One inode. Everything about an open or cached file hangs here, under one lock; engine calls for one cell are made under it, which orders them.
///
/// Locks are taken in this order: states of inodes (several only in a rename, by number), then the table's, then identities.
#[derive(Debug)]
pub struct Inode {
    /// The number.
    pub number: u64,
    /// Of directories.
    pub listing: ListingMark,
    identity: Mutex<Identity>,
    state: Mutex<InodeState>,
    /// Of [`Node::Via`]: the row, to which this inode holds one of the kernel's references.
    target: Option<Arc<Inode>>,
}

#[derive(Debug)]
struct Identity {
    node: Node,
    unlinked: bool,
    /// Unlinked in favour of another inode for the same node.
    superseded: bool,
}

/// The changing part of an [`Inode`].
#[derive(Debug, Default)]
pub struct InodeState {
    /// The kernel may be keeping the attributes without end.
    pub attributes_given: bool,
    /// Of cells and scratch files.
    pub cell: CellState,
    /// Of rows.
    pub row: Option<Box<RowFacts>>,
    /// Of directories: names said not to exist, which the kernel may remember.
    pub absent: AbsentNames,
}

impl Inode {
    /// A new inode.
    pub fn new(number: u64, node: Node) -> Arc<Inode> {
        Inode::leading_to(number, node, None)
    }

    fn leading_to(number: u64, node: Node, target: Option<Arc<Inode>>) -> Arc<Inode> {
        let identity = Mutex::new(Identity { node, unlinked: false, superseded: false });
        Arc::new(Inode { number, listing: ListingMark::default(), identity, state: Mutex::default(), target })
    }

    /// The row that this inode is another directory of.
    pub fn target(&self) -> Option<&Arc<Inode>> {
        self.target.as_ref()
    }

    /// Locks the state.
    pub fn lock(&self) -> MutexGuard<'_, InodeState> {
        self.state.lock()
    }

    /// What it is now; does not change while the state is locked.
    pub fn node(&self) -> Node {
        self.identity.lock().node.clone()
    }

    /// True when no name leads here any more.
    pub fn is_unlinked(&self) -> bool {
        self.identity.lock().unlinked
    }

    /// True when the name leads to another inode of the same file, and this one is left to those who have it open.
    pub fn is_superseded(&self) -> bool {
        self.identity.lock().superseded
    }

    /// The number that the hash of the node gives; the inode may have another.
    pub fn home(&self) -> u64 {
        number_of(&self.node())
    }

    fn is(&self, node: &Node) -> bool {
        let identity = self.identity.lock();
        !identity.unlinked && identity.node == *node
    }
}

/// Numbers are hashes already.
#[derive(Debug, Default)]
pub(super) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = number.rotate_left(7);
    }
}

pub(super) type NumberHash = BuildHasherDefault<NumberHasher>;

const SHARDS: usize = 64;

#[derive(Debug)]
struct Slot {
    inode: Arc<Inode>,
    lookups: u64,
}

type Shard = Mutex<HashMap<u64, Slot, NumberHash>>;

/// All inodes that the kernel knows, in shards by number.
#[derive(Debug)]
pub struct InodeTable {
    shards: Vec<Shard>,
    /// Nodes whose inode is not at the number that their hash gives: renamed, or in the way of another.
    displaced: RwLock<HashMap<Node, u64, NumberHash>>,
    displaced_count: AtomicUsize,
    next_scratch: AtomicU64,
}

impl InodeTable {
    /// A table that holds the root.
    pub fn new() -> InodeTable {
        let table = InodeTable {
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            displaced: RwLock::default(),
            displaced_count: AtomicUsize::new(0),
            next_scratch: AtomicU64::new(1),
        };
        let root = Slot { inode: Inode::new(ROOT_INODE, Node::Root), lookups: 1 };
        table.shard(ROOT_INODE).lock().insert(ROOT_INODE, root);
        table
    }

    /// A node for a new scratch file.
    pub fn new_scratch(&self) -> Node {
        Node::Scratch(self.next_scratch.fetch_add(1, Ordering::Relaxed))
    }

    /// The inode of a number that the kernel holds.
    pub fn get(&self, number: u64) -> Option<Arc<Inode>> {
        self.shard(number).lock().get(&number).map(|slot| Arc::clone(&slot.inode))
    }

    /// The inode of a node, with one more reference of the kernel.
    pub fn reference(&self, node: Node) -> Arc<Inode> {
        self.reference_leading_to(node, None)
    }

    /// The inode of another directory of a row, with one more reference of the kernel.
    pub fn reference_via(&self, node: Node, row: Node) -> Arc<Inode> {
        let target = self.reference(row.clone());
        if let Some(stale) = self.find(&node).filter(|via| via.target().is_none_or(|target| !target.is(&row))) {
            self.unlink(&stale);
        }
        let via = self.reference_leading_to(node, Some(Arc::clone(&target)));
        // One made before holds the row already; one made now keeps the reference.
        let known = self.shard(via.number).lock().get(&via.number).is_some_and(|slot| slot.lookups > 1);
        if known {
            self.forget(target.number, 1);
        }
        via
    }

    fn reference_leading_to(&self, node: Node, target: Option<Arc<Inode>>) -> Arc<Inode> {
        let home = number_of(&node);
        let mut number = self.displaced_to(&node).unwrap_or(home);
        loop {
            let mut shard = self.shard(number).lock();
            match shard.get_mut(&number) {
                Some(slot) if slot.inode.is(&node) => {
                    slot.lookups += 1;
                    return Arc::clone(&slot.inode);
                }
                Some(_) => {
                    drop(shard);
                    number = after(number);
                }
                None => {
                    let displaced = (number != home).then(|| node.clone());
                    let inode = Inode::leading_to(number, node, target);
                    shard.insert(number, Slot { inode: Arc::clone(&inode), lookups: 1 });
                    drop(shard);
                    if let Some(node) = displaced {
                        self.displace(node, number);
                    }
                    return inode;
                }
            }
        }
    }

    /// One more reference of the kernel to an inode that is kept elsewhere as well (a scratch file).
    pub fn reference_again(&self, inode: &Arc<Inode>) {
        let mut shard = self.shard(inode.number).lock();
        shard.entry(inode.number).or_insert_with(|| Slot { inode: Arc::clone(inode), lookups: 0 }).lookups += 1;
    }

    /// The inode of a node, if the kernel has it.
    pub fn find(&self, node: &Node) -> Option<Arc<Inode>> {
        let mut number = self.start(node);
        loop {
            let shard = self.shard(number).lock();
            let slot = shard.get(&number)?;
            if slot.inode.is(node) {
                return Some(Arc::clone(&slot.inode));
            }
            drop(shard);
            number = after(number);
        }
    }

    /// The number that a node has or would get.
    pub fn number(&self, node: &Node) -> u64 {
        let mut number = self.start(node);
        loop {
            match self.shard(number).lock().get(&number) {
                Some(slot) if !slot.inode.is(node) => {}
                _ => return number,
            }
            number = after(number);
        }
    }

    /// The kernel gives back references; the last one frees the inode.
    pub fn forget(&self, number: u64, count: u64) {
        if number == ROOT_INODE {
            return;
        }
        let mut shard = self.shard(number).lock();
        let Some(slot) = shard.get_mut(&number) else { return };
        slot.lookups = slot.lookups.saturating_sub(count);
        if slot.lookups > 0 {
            return;
        }
        let gone = shard.remove(&number);
        drop(shard);
        let Some(Slot { inode, .. }) = gone else { return };
        if self.displaced_count.load(Ordering::Acquire) > 0 {
            let node = inode.node();
            if self.undisplace(&node, number) {
                self.renumbered(&node);
            }
        }
        if let Some(target) = inode.target() {
            self.forget(target.number, 1);
        }
    }

    /// The inode now stands for another node; whoever stood for that is no longer found. The caller holds the states of both.
    pub fn rename(&self, inode: &Arc<Inode>, node: Node) {
        if let Some(target) = self.find(&node).filter(|target| !Arc::ptr_eq(target, inode)) {
            self.unlink(&target);
        }
        let old = std::mem::replace(&mut inode.identity.lock().node, node.clone());
        self.undisplace(&old, inode.number);
        if number_of(&node) != inode.number {
            self.displace(node, inode.number);
        }
    }

    /// No name leads to the inode any more; its open handles go on with it.
    pub fn unlink(&self, inode: &Arc<Inode>) {
        let node = {
            let mut identity = inode.identity.lock();
            identity.unlinked = true;
            identity.node.clone()
        };
        self.undisplace(&node, inode.number);
    }

    /// The inode is left to those who have it open; the name will lead to another one for the same node.
    pub fn supersede(&self, inode: &Arc<Inode>) {
        inode.identity.lock().superseded = true;
        self.unlink(inode);
    }

    /// The inodes that names lead to and whose nodes are wanted.
    pub fn matching(&self, wanted: impl Fn(&Node) -> bool) -> Vec<Arc<Inode>> {
        let mut found = Vec::new();
        for shard in &self.shards {
            found.extend(shard.lock().values().filter_map(|slot| {
                let identity = slot.inode.identity.lock();
                (!identity.unlinked && wanted(&identity.node)).then(|| Arc::clone(&slot.inode))
            }));
        }
        found
    }

    /// Calls `visit` with every inode; none of the table's locks is held meanwhile.
    pub fn for_each(&self, mut visit: impl FnMut(&Arc<Inode>)) {
        for shard in &self.shards {
            let inodes: Vec<Arc<Inode>> = shard.lock().values().map(|slot| Arc::clone(&slot.inode)).collect();
            inodes.iter().for_each(&mut visit);
        }
    }

    /// Inodes that the kernel knows.
    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Never: the root is always there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where to begin looking for a node.
    fn start(&self, node: &Node) -> u64 {
        self.displaced_to(node).unwrap_or_else(|| number_of(node))
    }

    /// Where a node is that is not where its hash says.
    fn displaced_to(&self, node: &Node) -> Option<u64> {
        if self.displaced_count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.displaced.read().get(node).copied()
    }

    fn displace(&self, node: Node, number: u64) {
        let mut displaced = self.displaced.write();
        displaced.insert(node, number);
        self.displaced_count.store(displaced.len(), Ordering::Release);
    }

    /// True if the node was displaced to `number`.
    fn undisplace(&self, node: &Node, number: u64) -> bool {
        if self.displaced_count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut displaced = self.displaced.write();
        let was = displaced.get(node) == Some(&number);
        if was {
            displaced.remove(node);
            self.displaced_count.store(displaced.len(), Ordering::Release);
        }
        was
    }

    /// The node will have another number the next time: a listing that the kernel keeps would say the old one.
    fn renumbered(&self, node: &Node) {
        let directory = match node {
            Node::Cell(cell) => Node::Row(cell.table.clone(), cell.row.clone()),
            Node::Row(table, _) => Node::Table(table.clone()),
            _ => return,
        };
        if let Some(directory) = self.find(&directory) {
            directory.listing.changed();
        }
    }

    #[expect(clippy::indexing_slicing, reason = "the index is taken modulo the number of shards")]
    fn shard(&self, number: u64) -> &Shard {
        &self.shards[number as usize % SHARDS]
    }
}

impl Default for InodeTable {
    fn default() -> Self {
        InodeTable::new()
    }
}

const HIGH_BIT: u64 = 1 << 63;

/// The number after a taken one.
fn after(number: u64) -> u64 {
    if number & HIGH_BIT == 0 { number + 1 } else { number.wrapping_add(1) | HIGH_BIT }
}

/// The number that the hash of a node gives.
fn number_of(node: &Node) -> u64 {
    let hash = match node {
        Node::Root => return ROOT_INODE,
        Node::Namespace(id, _) => xxh3_64_with_seed(&id.to_be_bytes(), 1),
        Node::Table(table) => xxh3_64_with_seed(&table.id().to_be_bytes(), 2),
        Node::Row(table, row) => xxh3_64_with_seed(row, seed(table, 3)),
        Node::Cell(cell) => {
            let row = xxh3_64_with_seed(&cell.row, seed(&cell.table, 4));
            xxh3_64_with_seed(&cell.qualifier, xxh3_64_with_seed(&cell.family, row))
        }
        Node::Via(table, way, row) => {
            let mut identity = Vec::with_capacity(64);
            match way {
                Way::Key(scheme) => put_scheme(scheme, &mut identity),
                Way::Scan(_) | Way::Family(_) => way.directory(table).identity(&mut identity),
            }
            xxh3_64_with_seed(row, xxh3_64_with_seed(&identity, seed(table, 7)))
        }
        Node::Scratch(number) => xxh3_64_with_seed(&number.to_be_bytes(), 5),
        Node::Magic(MagicNode::TableSchema(table)) => return (ROOT_INODE + 1).wrapping_add(table.id()) & !HIGH_BIT,
        Node::Magic(magic) => {
            let mut identity = Vec::with_capacity(64);
            magic.identity(&mut identity);
            xxh3_64_with_seed(&identity, 6)
        }
    };
    hash | HIGH_BIT
}

fn seed(table: &TableHandle, kind: u64) -> u64 {
    table.id().wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(kind)
}

#[cfg(test)]
mod tests;
