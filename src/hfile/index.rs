//! Index blocks: from keys to blocks (HBase `HFileBlockIndex`, hbase.md B5).
//!
//! ```text
//! root      n x { u64 offset | u32 length on disk | vint key length | key }  [ mid-key of a multi-level index: u64 leaf | u32 length | u32 entry ]
//! others    u32 n | (n + 1) x u32 start of entry | n x { u64 offset | u32 length on disk | key }
//! ```

use super::input::{Damage, Input, Parsed, put_vlong, vlong_len};
use super::row_prefix::RowPrefixes;
use crate::cell::{Cell, FlatKeyProbe};
use bytes::{BufMut, Bytes};
use std::cmp::Ordering;

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockPointer {
    pub offset: u64,
    /// Header, payload, checksums.
    pub len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    pointer: BlockPointer,
    key_start: u32,
    key_end: u32,
}

/// A parsed index block.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexBlock {
    payload: Bytes,
    entries: Vec<Entry>,
    /// Of flat keys only: names in other indexes are not taken apart.
    rows: RowPrefixes,
}

/// The leaf and the entry in it that point to a multi-level index's middle block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MidKey {
    pub leaf: BlockPointer,
    pub entry: usize,
}

impl IndexBlock {
    /// A root of `count` entries; what follows them is returned.
    pub(crate) fn parse_root(payload: &Bytes, count: usize) -> Parsed<(IndexBlock, Bytes)> {
        let mut input = Input::new(payload);
        // An entry has at least 13 bytes, so the claim is bounded by the block.
        if count > payload.len() / 13 {
            return Err(Damage::new(format!("an index block is too short for {count} entries")));
        }
        let mut entries = Vec::with_capacity(count);
        for _ in 0..count {
            let pointer = BlockPointer { offset: input.offset()?, len: input.length()? };
            let length = input.vint_length()?;
            let key_start = (payload.len() - input.rest().len()) as u32;
            input.take(length)?;
            entries.push(Entry { pointer, key_start, key_end: key_start + length as u32 });
        }
        let rest = super::input::share(payload, input.rest());
        Ok((IndexBlock { payload: payload.clone(), entries, rows: RowPrefixes::default() }.with_rows(), rest))
    }

    /// A leaf or intermediate block.
    pub(crate) fn parse(payload: &Bytes) -> Parsed<IndexBlock> {
        let mut input = Input::new(payload);
        let count = input.length()?;
        if count == 0 || count > payload.len() / 16 {
            return Err(Damage::new(format!("an index block cannot have {count} entries")));
        }
        let mut starts = Input::new(input.take(4 * (count + 1))?);
        let base = payload.len() - input.rest().len();
        let mut entries = Vec::with_capacity(count);
        let mut start = starts.length()?;
        if start != 0 {
            return Err(Damage::new("an index block's first entry does not begin at 0"));
        }
        for _ in 0..count {
            let next = starts.length()?;
            let length = next.checked_sub(start + 12).ok_or_else(|| Damage::new("index entries overlap"))?;
            let pointer = BlockPointer { offset: input.offset()?, len: input.length()? };
            input.take(length)?;
            entries.push(Entry { pointer, key_start: (base + start + 12) as u32, key_end: (base + next) as u32 });
            start = next;
        }
        if !input.is_empty() {
            return Err(Damage::new("an index block has bytes behind its entries"));
        }
        Ok(IndexBlock { payload: payload.clone(), entries, rows: RowPrefixes::default() }.with_rows())
    }

    fn with_rows(mut self) -> IndexBlock {
        let row = |entry: &Entry| FlatKeyProbe::new(self.key_of(entry)).row();
        if let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) {
            self.rows = RowPrefixes::new(row(first), row(last), self.entries.iter().map(row));
        }
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// All entries, in order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (BlockPointer, &[u8])> {
        self.entries.iter().map(|entry| (entry.pointer, self.key_of(entry)))
    }

    /// Memory it takes in the cache.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.payload.len() + self.entries.len() * size_of::<Entry>() + self.rows.heap_bytes()
    }

    pub(crate) fn pointer(&self, index: usize) -> Option<BlockPointer> {
        self.entries.get(index).map(|entry| entry.pointer)
    }

    pub(crate) fn key(&self, index: usize) -> Option<&[u8]> {
        self.entries.get(index).map(|entry| self.key_of(entry))
    }

    fn key_of(&self, entry: &Entry) -> &[u8] {
        self.payload.get(entry.key_start as usize..entry.key_end as usize).unwrap_or(&[])
    }

    /// The last entry whose key is at or before `key` by cell order, or the first entry.
    pub(crate) fn find(&self, key: &Cell) -> usize {
        let ties = self.rows.range(key.row());
        let probe = FlatKeyProbe::new(key.key());
        let tied = self.entries.get(ties.clone()).unwrap_or(&[]);
        let before = tied.partition_point(|entry| probe.compare_to_probe(self.key_of(entry)) != Ordering::Greater);
        (ties.start + before).saturating_sub(1)
    }

    /// The last entry whose key does not compare greater.
    pub(crate) fn find_by(&self, compare: impl Fn(&[u8]) -> Ordering) -> Option<usize> {
        self.entries.partition_point(|entry| compare(self.key_of(entry)) != Ordering::Greater).checked_sub(1)
    }
}

/// Parses what follows the entries of a multi-level root.
pub(crate) fn parse_mid_key(bytes: &[u8]) -> Parsed<MidKey> {
    let mut input = Input::new(bytes);
    let mid = MidKey { leaf: BlockPointer { offset: input.offset()?, len: input.length()? }, entry: input.length()? };
    if input.is_empty() { Ok(mid) } else { Err(Damage::new("a root index has bytes behind its mid-key")) }
}

/// Entries of an index block that is being built.
#[derive(Default)]
pub(crate) struct IndexChunk {
    keys: Vec<u8>,
    entries: Vec<(BlockPointer, usize)>,
    /// For chunks of pointers to leaves: how many data blocks the leaves up to and with each entry have.
    sub_entries: Vec<u64>,
    root_len: usize,
}

impl IndexChunk {
    pub(crate) fn add(&mut self, key: &[u8], pointer: BlockPointer) {
        self.keys.extend_from_slice(key);
        self.entries.push((pointer, self.keys.len()));
        self.root_len += 12 + vlong_len(key.len() as i64) + key.len();
    }

    pub(crate) fn add_leaf(&mut self, key: &[u8], pointer: BlockPointer, blocks_so_far: u64) {
        self.add(key, pointer);
        self.sub_entries.push(blocks_so_far);
    }

    /// Says where the block of an entry is that was added without knowing.
    pub(crate) fn locate(&mut self, at: usize, pointer: BlockPointer) {
        if let Some(entry) = self.entries.get_mut(at) {
            entry.0 = pointer;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn root_len(&self) -> usize {
        self.root_len
    }

    pub(crate) fn non_root_len(&self) -> usize {
        4 + 4 * (self.entries.len() + 1) + 12 * self.entries.len() + self.keys.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (BlockPointer, &[u8])> {
        let starts = std::iter::once(0).chain(self.entries.iter().map(|entry| entry.1));
        self.entries.iter().zip(starts).map(|(entry, start)| (entry.0, self.keys.get(start..entry.1).unwrap_or(&[])))
    }

    pub(crate) fn first_key(&self) -> Option<&[u8]> {
        self.iter().next().map(|(_, key)| key)
    }

    pub(crate) fn encode_root(&self, out: &mut Vec<u8>) {
        for (pointer, key) in self.iter() {
            out.put_u64(pointer.offset);
            out.put_u32(pointer.len as u32);
            put_vlong(out, key.len() as i64);
            out.put_slice(key);
        }
    }

    pub(crate) fn encode_non_root(&self, out: &mut Vec<u8>) {
        out.put_u32(self.entries.len() as u32);
        let mut start = 0;
        out.put_u32(0);
        for (_, key) in self.iter() {
            start += 12 + key.len() as u32;
            out.put_u32(start);
        }
        for (pointer, key) in self.iter() {
            out.put_u64(pointer.offset);
            out.put_u32(pointer.len as u32);
            out.put_slice(key);
        }
    }

    /// The mid-key of a chunk of pointers to leaves: the leaf that holds data block (n - 1) / 2, and its entry there.
    pub(crate) fn encode_mid_key(&self, out: &mut Vec<u8>) {
        let Some(total) = self.sub_entries.last() else { return };
        let middle = total.saturating_sub(1) / 2;
        let leaf = self.sub_entries.partition_point(|blocks| *blocks < middle + 1);
        let before = leaf.checked_sub(1).and_then(|at| self.sub_entries.get(at)).copied().unwrap_or(0);
        if let Some((pointer, _)) = self.entries.get(leaf) {
            out.put_u64(pointer.offset);
            out.put_u32(pointer.len as u32);
            out.put_u32((middle - before) as u32);
        }
    }
}

/// The shortest key that sorts after `left` and at or before `right`, neighbours at a block border (HBase `HFileWriterImpl.getMidpoint`).
pub(crate) fn separator(left: &Cell, right: &Cell) -> Vec<u8> {
    if left.row() != right.row() {
        let middle = shortest_between(left.row(), right.row());
        if middle.len() <= right.row().len() {
            return Cell::first_on_row(&middle).key().to_vec();
        }
    } else if left.family() == right.family() && left.qualifier() != right.qualifier() {
        let middle = shortest_between(left.qualifier(), right.qualifier());
        if middle.len() <= right.qualifier().len() {
            return Cell::first_on_column(right.row(), right.family(), &middle).key().to_vec();
        }
    }
    right.key().to_vec()
}

/// For left < right: the shortest string with left < it <= right that keeps the most common with both.
fn shortest_between(left: &[u8], right: &[u8]) -> Vec<u8> {
    let common = left.iter().zip(right).take_while(|(l, r)| l == r).count();
    let mut middle = left.get(..common).unwrap_or(&[]).to_vec();
    match left.get(common) {
        // The byte in `right` is greater, so adding one cannot overflow.
        Some(byte) => middle.push(byte.saturating_add(1)),
        None => middle.push(0),
    }
    middle
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{CellType, compare_flat_keys};

    #[test]
    fn separators_lie_between() {
        let cell = |row: &[u8], q: &[u8]| Cell::new(row, b"f", q, 5, CellType::Put, b"");
        let pairs = [
            (cell(b"abc", b"q"), cell(b"abd", b"q")),
            (cell(b"ab", b"q"), cell(b"abd", b"q")),
            (cell(b"ab", b"q"), cell(b"ab\0", b"q")),
            (cell(b"a", b"q1"), cell(b"a", b"q22")),
            (cell(b"a", b""), cell(b"a", b"q22")),
            (cell(b"a\xfe", b""), cell(b"a\xff", b"q22")),
            (cell(b"a", b"q"), Cell::new(b"a", b"f", b"q", 4, CellType::Put, b"")),
        ];
        for (left, right) in pairs {
            let key = separator(&left, &right);
            assert_eq!(compare_flat_keys(left.key(), &key), Ordering::Less, "{left:?} {key:?}");
            assert_ne!(compare_flat_keys(&key, right.key()), Ordering::Greater, "{right:?} {key:?}");
            assert!(key.len() <= right.key().len());
        }
    }

    #[test]
    fn chunks_come_back_and_truncations_are_refused() {
        let mut chunk = IndexChunk::default();
        for i in 0..300u64 {
            chunk.add(Cell::first_on_row(&i.to_be_bytes()).key(), BlockPointer { offset: i * 100, len: 99 });
        }
        let (mut root, mut leaf) = (Vec::new(), Vec::new());
        chunk.encode_root(&mut root);
        chunk.encode_non_root(&mut leaf);
        assert_eq!((root.len(), leaf.len()), (chunk.root_len(), chunk.non_root_len()));
        let (parsed_root, rest) = IndexBlock::parse_root(&Bytes::from(root.clone()), 300).unwrap();
        assert!(rest.is_empty());
        for parsed in [parsed_root, IndexBlock::parse(&Bytes::from(leaf.clone())).unwrap()] {
            assert_eq!(parsed.len(), 300);
            for i in 0..300u64 {
                assert_eq!(parsed.find(&Cell::first_on_row(&i.to_be_bytes())), i as usize);
                assert_eq!(parsed.pointer(i as usize).unwrap().offset, i * 100);
            }
            assert_eq!(parsed.find(&Cell::first_on_row(b"")), 0);
        }
        for len in 0..leaf.len() {
            assert!(IndexBlock::parse(&Bytes::copy_from_slice(&leaf[..len])).is_err());
        }
        for len in 0..root.len() {
            assert!(IndexBlock::parse_root(&Bytes::copy_from_slice(&root[..len]), 300).is_err());
        }
    }
}
