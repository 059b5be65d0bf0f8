//! Files and directories of the simulated file system: each has a live image, what the processes see, and a durable one, what a crash leaves
//! for certain.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bytes of a page, shared between images until it is written to.
const PAGE: usize = 4096;
/// Bytes that a disk writes as a whole.
const SECTOR: u64 = 512;

/// What a crash keeps of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Nothing.
    None,
    /// Everything that could be read, as if only the processes had died.
    All,
    /// Each sector (in some files each page), each length and each change of a directory or not, as the seed will have it. Sectors may be torn: their
    /// first bytes are kept, or, as of memory that was stored to while it was written out, bytes here and there.
    Random(u64),
}

/// Decides what a crash keeps.
pub(super) struct Random {
    keep: Keep,
    state: u64,
}

impl Random {
    pub(super) fn new(keep: Keep) -> Random {
        Random { keep, state: if let Keep::Random(seed) = keep { seed } else { 0 } }
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// True if the next thing is kept.
    fn keeps(&mut self) -> bool {
        match self.keep {
            Keep::None => false,
            Keep::All => true,
            Keep::Random(_) => self.next() & 1 == 1,
        }
    }

    /// True if pages of a file are kept or lost as a whole, as a kernel writes them back.
    fn keeps_pages(&mut self) -> bool {
        matches!(self.keep, Keep::Random(_)) && self.next() & 1 == 1
    }

    /// Makes of a sector's old bytes what is there once it is kept: mostly the new ones.
    fn keep_sector(&mut self, old: &mut [u8], new: &[u8]) {
        match matches!(self.keep, Keep::Random(_)).then(|| self.next() % 32) {
            Some(0) => {
                let kept = (self.next() % SECTOR) as usize;
                old.iter_mut().zip(new).take(kept).for_each(|(old, new)| *old = *new);
            }
            Some(1) => {
                for (old, new) in old.chunks_mut(8).zip(new.chunks(8)) {
                    let chosen = self.next();
                    let bytes = old.iter_mut().zip(new).enumerate();
                    bytes.filter(|(index, _)| chosen >> index & 1 == 1).for_each(|(_, (old, new))| *old = *new);
                }
            }
            _ => old.copy_from_slice(new),
        }
    }
}

/// Bytes of a file; pages that are missing are zero.
#[derive(Clone, Default)]
pub(super) struct Image {
    pub(super) len: u64,
    pages: BTreeMap<u64, Arc<[u8; PAGE]>>,
}

impl Image {
    /// Copies from `offset` on; returns how much there was.
    pub(super) fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let available = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX).min(buf.len());
        let mut done = 0;
        while let Some(rest) = buf.get_mut(done..available).filter(|rest| !rest.is_empty()) {
            let (page, start, length) = piece(offset + done as u64, rest.len());
            let source = self.pages.get(&page).and_then(|page| page.get(start..start + length));
            if let Some(target) = rest.get_mut(..length) {
                match source {
                    Some(source) => target.copy_from_slice(source),
                    None => target.fill(0),
                }
            }
            done += length;
        }
        available
    }

    fn write(&mut self, data: &[u8], offset: u64) {
        let mut done = 0;
        while let Some(rest) = data.get(done..).filter(|rest| !rest.is_empty()) {
            let (page, start, length) = piece(offset + done as u64, rest.len());
            let page = Arc::make_mut(self.pages.entry(page).or_insert_with(|| Arc::new([0; PAGE])));
            if let (Some(target), Some(source)) = (page.get_mut(start..start + length), rest.get(..length)) {
                target.copy_from_slice(source);
            }
            done += length;
        }
        self.len = self.len.max(offset + data.len() as u64);
    }

    /// Cuts or extends; what is cut reads as zero if the file grows again.
    fn set_len(&mut self, len: u64) {
        if len < self.len {
            self.pages.split_off(&len.div_ceil(PAGE as u64));
            let (page, start, _) = piece(len, 1);
            if let Some(page) = self.pages.get_mut(&page)
                && let Some(tail) = Arc::make_mut(page).get_mut(start..)
            {
                tail.fill(0);
            }
        }
        self.len = len;
    }
}

/// Page, offset in it, and how much of `wanted` bytes it holds.
fn piece(offset: u64, wanted: usize) -> (u64, usize, usize) {
    let start = (offset % PAGE as u64) as usize;
    (offset / PAGE as u64, start, wanted.min(PAGE - start))
}

/// A file.
#[derive(Default)]
pub(super) struct FileNode {
    pub(super) live: Image,
    durable: Image,
    /// Sectors written since the last sync.
    dirty: BTreeSet<u64>,
    /// Cut since the last sync.
    cut: bool,
}

impl FileNode {
    pub(super) fn write(&mut self, data: &[u8], offset: u64) {
        if data.is_empty() {
            return;
        }
        self.live.write(data, offset);
        self.dirty.extend(offset / SECTOR..=(offset + data.len() as u64 - 1) / SECTOR);
    }

    pub(super) fn set_len(&mut self, len: u64) {
        self.cut |= len < self.live.len;
        self.live.set_len(len);
    }

    pub(super) fn sync(&mut self) {
        if self.cut {
            self.durable = self.live.clone();
        } else {
            for sector in &self.dirty {
                let page = sector * SECTOR / PAGE as u64;
                if let Some(live) = self.live.pages.get(&page) {
                    self.durable.pages.insert(page, live.clone());
                }
            }
            self.durable.len = self.live.len;
        }
        self.forget_dirty();
    }

    pub(super) fn forget_dirty(&mut self) {
        self.dirty.clear();
        self.cut = false;
    }

    fn crash(&self, random: &mut Random) -> FileNode {
        if random.keep == Keep::All {
            let image = self.live.clone();
            return FileNode { live: image.clone(), durable: image, dirty: BTreeSet::new(), cut: false };
        }
        let mut image = self.durable.clone();
        if random.keeps() {
            image.set_len(self.live.len);
        }
        let len = image.len;
        let whole_pages = random.keeps_pages();
        let mut decided: Option<(u64, bool)> = None;
        for sector in &self.dirty {
            let page = sector * SECTOR / PAGE as u64;
            let keeps = match decided {
                Some((last, keeps)) if whole_pages && last == page => keeps,
                _ => random.keeps(),
            };
            decided = Some((page, keeps));
            if !keeps {
                continue;
            }
            let (mut old, mut new) = ([0u8; SECTOR as usize], [0u8; SECTOR as usize]);
            let available = self.live.read(&mut new, sector * SECTOR);
            image.read(&mut old, sector * SECTOR);
            let (old, new) = (old.get_mut(..available).unwrap_or_default(), new.get(..available).unwrap_or(&[]));
            random.keep_sector(old, new);
            image.write(old, sector * SECTOR);
        }
        image.set_len(len);
        FileNode { live: image.clone(), durable: image, dirty: BTreeSet::new(), cut: false }
    }
}

/// What a name stands for.
#[derive(Clone)]
pub(super) enum Node {
    File(Arc<Mutex<FileNode>>),
    Directory(Arc<Mutex<DirectoryNode>>),
}

/// A change of a directory.
enum Change {
    Link(String, Node),
    Unlink(String),
    Rename { from: String, to: String, node: Node },
}

impl Change {
    fn apply(&self, entries: &mut BTreeMap<String, Node>) {
        match self {
            Change::Link(name, node) => {
                entries.insert(name.clone(), node.clone());
            }
            Change::Unlink(name) => {
                entries.remove(name);
            }
            Change::Rename { from, to, node } => {
                entries.remove(from);
                entries.insert(to.clone(), node.clone());
            }
        }
    }
}

/// A directory.
#[derive(Default)]
pub(super) struct DirectoryNode {
    pub(super) live: BTreeMap<String, Node>,
    durable: BTreeMap<String, Node>,
    /// Changes since the last sync, in order.
    pending: Vec<Change>,
}

impl DirectoryNode {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.live);
        self.pending.push(change);
    }

    pub(super) fn link(&mut self, name: &str, node: Node) {
        self.change(Change::Link(name.to_owned(), node));
    }

    pub(super) fn unlink(&mut self, name: &str) {
        self.change(Change::Unlink(name.to_owned()));
    }

    pub(super) fn rename(&mut self, from: &str, to: &str, node: Node) {
        self.change(Change::Rename { from: from.to_owned(), to: to.to_owned(), node });
    }

    pub(super) fn sync(&mut self) {
        self.durable = self.live.clone();
        self.pending.clear();
    }

    /// Bytes of the files in it and below.
    pub(super) fn bytes(&self) -> u64 {
        let nodes = self.live.values().map(|node| match node {
            Node::File(file) => file.lock().live.len,
            Node::Directory(directory) => directory.lock().bytes(),
        });
        nodes.sum()
    }

    pub(super) fn crash(&self, random: &mut Random) -> DirectoryNode {
        let mut entries = self.durable.clone();
        for change in &self.pending {
            if random.keeps() {
                change.apply(&mut entries);
            }
        }
        for node in entries.values_mut() {
            *node = match node {
                Node::File(file) => Node::File(Arc::new(Mutex::new(file.lock().crash(random)))),
                Node::Directory(directory) => Node::Directory(Arc::new(Mutex::new(directory.lock().crash(random)))),
            };
        }
        DirectoryNode { live: entries.clone(), durable: entries, pending: Vec::new() }
    }
}
