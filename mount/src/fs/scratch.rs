//! Scratch files: the temporaries of editors and tools, kept in the mount in bounded space, and cells hidden behind an editor's backup.

use super::inode::Inode;
use crate::names::MAX_NAME;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes of all scratch files together.
pub const SCRATCH_SPACE: u64 = 256 << 20;
/// How long a cell stays hidden behind its backup before the tombstone follows.
pub const HIDING: Duration = Duration::from_secs(60);
/// What a scratch file costs beside its bytes, so that empty ones are bounded as well.
const FILE_COST: u64 = 512;

/// True if the name is one that editors and tools give their temporaries (docs/semantics.md, "Scratch files").
pub fn is_scratch_name(name: &[u8]) -> bool {
    if name.is_empty() || name.len() > MAX_NAME || name.contains(&b'/') {
        return false;
    }
    let word = |bytes: &[u8]| bytes.len() == 6 && bytes.iter().all(u8::is_ascii_alphanumeric);
    if let Some(rest) = name.strip_prefix(b".") {
        if rest.starts_with(b"goutputstream-") || rest.starts_with(b"fuse_hidden") {
            return true;
        }
        if rest.len() > 1 && rest.starts_with(b"#") {
            return true;
        }
        return match rest.iter().rposition(|byte| *byte == b'.').map(|dot| rest.split_at(dot)) {
            Some((stem, suffix)) if !stem.is_empty() => {
                let suffix = suffix.get(1..).unwrap_or(&[]);
                word(suffix)
                    || matches!(suffix, [b's', b'w', last] | [b's', b'w', last, b'x'] if last.is_ascii_lowercase())
            }
            _ => false,
        };
    }
    name.len() > 1 && name.ends_with(b"~")
        || name.len() > 2 && name.starts_with(b"#") && name.ends_with(b"#")
        || name.strip_prefix(b"sed").is_some_and(word)
        || name.strip_prefix(b"XX").is_some_and(word)
        || name.strip_prefix(b"gawk.").is_some_and(word)
        || name.strip_prefix(b"tmp").is_some_and(|rest| word(rest) || is_pythons(rest))
        || is_vim_probe(name)
}

/// What Python's `tempfile` puts after `tmp`: eight of its letters.
fn is_pythons(bytes: &[u8]) -> bool {
    bytes.len() == 8 && bytes.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_')
}

/// vim asks whether it can write a directory by making `4913`, then 123 more each time that name is taken.
fn is_vim_probe(name: &[u8]) -> bool {
    let number = std::str::from_utf8(name).ok().and_then(|name| name.parse::<u64>().ok());
    !name.starts_with(b"0")
        && !name.starts_with(b"+")
        && number.is_some_and(|number| number >= 4913 && (number - 4913) % 123 == 0 && number < 100_000)
}

/// A directory that can hold scratch files: a table, or one of its rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScratchPlace {
    /// The table's id.
    pub table: u64,
    /// The row; `None` = the table directory itself.
    pub row: Option<Bytes>,
}

/// All scratch files of a mount. They live here as well as in the kernel's cache, so that forgetting does not lose them.
#[derive(Debug, Default)]
pub struct ScratchFiles {
    places: Mutex<HashMap<ScratchPlace, BTreeMap<Bytes, Arc<Inode>>>>,
    count: AtomicUsize,
    bytes: AtomicU64,
}

impl ScratchFiles {
    /// The file of a name.
    pub fn get(&self, place: &ScratchPlace, name: &[u8]) -> Option<Arc<Inode>> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.places.lock().get(place)?.get(name).cloned()
    }

    /// Adds a file, or puts it in the place of another, which is returned.
    pub fn insert(&self, place: ScratchPlace, name: Bytes, inode: Arc<Inode>) -> Option<Arc<Inode>> {
        let replaced = self.places.lock().entry(place).or_default().insert(name, inode);
        if replaced.is_none() {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
        replaced
    }

    /// Takes a name away.
    pub fn remove(&self, place: &ScratchPlace, name: &[u8]) -> Option<Arc<Inode>> {
        let mut places = self.places.lock();
        let files = places.get_mut(place)?;
        let removed = files.remove(name)?;
        if files.is_empty() {
            places.remove(place);
        }
        self.count.fetch_sub(1, Ordering::AcqRel);
        Some(removed)
    }

    /// The first file of a directory after `name`, or its first.
    pub fn next_after(&self, place: &ScratchPlace, name: Option<&Bytes>) -> Option<(Bytes, Arc<Inode>)> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let from = name.map_or(Bound::Unbounded, |name| Bound::Excluded(name.clone()));
        let places = self.places.lock();
        let next = places.get(place)?.range((from, Bound::Unbounded)).next();
        next.map(|(name, inode)| (name.clone(), Arc::clone(inode)))
    }

    /// The files of a row move with it.
    pub fn move_row(&self, table: u64, from: &Bytes, to: &Bytes) {
        if self.count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut places = self.places.lock();
        if let Some(files) = places.remove(&ScratchPlace { table, row: Some(from.clone()) }) {
            places.insert(ScratchPlace { table, row: Some(to.clone()) }, files);
        }
    }

    /// Forgets a table's.
    pub fn remove_table(&self, table: u64) {
        let mut places = self.places.lock();
        let before: usize = places.values().map(BTreeMap::len).sum();
        places.retain(|place, _| place.table != table);
        let after: usize = places.values().map(BTreeMap::len).sum();
        self.count.fetch_sub(before - after, Ordering::AcqRel);
    }

    /// Takes space for `grown` more bytes (and with `file` for one more file); false if there is none.
    pub fn reserve(&self, grown: u64, file: bool) -> bool {
        let wanted = grown + if file { FILE_COST } else { 0 };
        self.bytes
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
                used.checked_add(wanted).filter(|used| *used <= SCRATCH_SPACE)
            })
            .is_ok()
    }

    /// Gives space back.
    pub fn release(&self, shrunk: u64, file: bool) {
        let given = shrunk + if file { FILE_COST } else { 0 };
        let _ = self.bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| Some(used.saturating_sub(given)));
    }

    /// Bytes in use.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Number of files.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }
}

/// A cell that was renamed to a scratch name and is not written again yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenCell {
    /// The table's id.
    pub table: u64,
    /// The row.
    pub row: Bytes,
    /// The family.
    pub family: Bytes,
    /// The qualifier.
    pub qualifier: Bytes,
    /// When the tombstone follows, on the monotonic clock.
    pub deadline: Duration,
}

impl HiddenCell {
    fn is(&self, table: u64, row: &[u8], family: &[u8], qualifier: &[u8]) -> bool {
        self.table == table && self.row == row && self.family == family && self.qualifier == qualifier
    }
}

/// The hidden cells of a mount: a handful at most, so a list.
#[derive(Debug, Default)]
pub struct HiddenCells {
    cells: Mutex<Vec<HiddenCell>>,
    count: AtomicUsize,
}

impl HiddenCells {
    /// Hides a cell.
    pub fn hide(&self, cell: HiddenCell) {
        let mut cells = self.cells.lock();
        cells.retain(|other| !other.is(cell.table, &cell.row, &cell.family, &cell.qualifier));
        cells.push(cell);
        self.count.store(cells.len(), Ordering::Release);
    }

    /// Shows it again; false if it was not hidden.
    pub fn show(&self, table: u64, row: &[u8], family: &[u8], qualifier: &[u8]) -> bool {
        if self.count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut cells = self.cells.lock();
        let before = cells.len();
        cells.retain(|cell| !cell.is(table, row, family, qualifier));
        self.count.store(cells.len(), Ordering::Release);
        cells.len() < before
    }

    /// True if it is hidden.
    pub fn contains(&self, table: u64, row: &[u8], family: &[u8], qualifier: &[u8]) -> bool {
        self.count.load(Ordering::Acquire) > 0
            && self.cells.lock().iter().any(|cell| cell.is(table, row, family, qualifier))
    }

    /// True if any cell of the table is hidden.
    pub fn any_of(&self, table: u64) -> bool {
        self.count.load(Ordering::Acquire) > 0 && self.cells.lock().iter().any(|cell| cell.table == table)
    }

    /// Those whose time is over by `now`; `None` = all.
    pub fn due(&self, now: Option<Duration>) -> Vec<HiddenCell> {
        let cells = self.cells.lock();
        cells.iter().filter(|cell| now.is_none_or(|now| cell.deadline <= now)).cloned().collect()
    }

    /// Those of one row.
    pub fn of_row(&self, table: u64, row: &[u8]) -> Vec<HiddenCell> {
        let cells = self.cells.lock();
        cells.iter().filter(|cell| cell.table == table && cell.row == row).cloned().collect()
    }

    /// The next moment at which one is due.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.cells.lock().iter().map(|cell| cell.deadline).min()
    }

    /// Forgets a table's.
    pub fn remove_table(&self, table: u64) {
        let mut cells = self.cells.lock();
        cells.retain(|cell| cell.table != table);
        self.count.store(cells.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporaries_of_tools_are_known_and_nothing_else() {
        for name in [
            ".cf:a.AbC123",
            "..schema.x1y2z3",
            ".cf:a.swp",
            ".cf:a.swo",
            ".cf:a.swpx",
            ".schema.swx",
            "4913",
            "5036",
            "5159",
            "cf:a~",
            "x~",
            "#cf:a#",
            ".#cf:a",
            "sedAb12cd",
            "XX3b6DOM",
            "gawk.iX2Gut",
            "tmpVDUhNx",
            "tmp2_x0q9_z",
            ".goutputstream-XYZ",
            ".fuse_hidden0001",
        ] {
            assert!(is_scratch_name(name.as_bytes()), "{name}");
        }
        for name in [
            "",
            "~",
            "##",
            ".git",
            ".hidden",
            ".Trash-0",
            ".schema",
            ".x",
            "..",
            ".",
            "4914",
            "04913",
            "sed12345",
            "XX3b6DO",
            "gawk.iX2Gu",
            "gawkiX2Gut",
            "tmpVDUhN",
            "tmpVDUhNxAb",
            "tmp_DUhNx",
            "XXXb6DOMM",
            "sed1234567",
            "cf:a",
            "cf:a.bak",
            ".a.sw1",
            ".swp",
            ".AbC123",
            "notes.txt",
            "+4913",
            ".#",
            "a.AbC123",
            ".nfs0000",
        ] {
            assert!(!is_scratch_name(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn space_is_bounded() {
        let files = ScratchFiles::default();
        assert!(files.reserve(SCRATCH_SPACE - FILE_COST, true));
        assert!(!files.reserve(1, false));
        files.release(10, false);
        assert!(files.reserve(10, false));
        files.release(u64::MAX / 2, false);
        assert_eq!(files.bytes(), 0);
    }
}
