//! NEW_VERSION_BEHAVIOR (HBASE-15968, HBase `NewVersionBehaviorTracker`): sequence ids decide. A marker hides only what was written before
//! it, and a put that VERSIONS newer writes pushed out stays out even when those are deleted later.

use super::deletes::DeleteResult;
use super::matcher::MatchCode;
use crate::cell::{Cell, CellType};
use bytes::Bytes;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// The key of the node that gathers what came after the last marker.
const END: u64 = u64::MAX;

/// Deletes and columns of one row in one tracker.
#[derive(Debug)]
pub(super) struct NewVersionBehaviorTracker {
    family_versions: u32,
    min_versions: u32,
    result_versions: u32,
    oldest_unexpired: i64,
    columns: Option<Vec<Bytes>>,
    index: usize,
    count: u32,
    last: Option<LastCell>,
    last_qualifier: Vec<u8>,
    /// By sequence id of a DeleteFamily or DeleteColumn marker: what was written before it and after the marker before that. Those of the
    /// family are copied for every column, whose own markers join them.
    column_nodes: BTreeMap<u64, Node>,
    family_nodes: BTreeMap<u64, Node>,
}

#[derive(Clone, Copy, Debug)]
struct LastCell {
    timestamp: i64,
    kind: CellType,
    sequence_id: u64,
}

#[derive(Clone, Debug)]
struct Node {
    /// The marker hides puts up to this timestamp.
    timestamp: i64,
    /// Version markers: timestamp to their sequence ids.
    version_deletes: BTreeMap<i64, BTreeSet<u64>>,
    /// Up to the version marker of this sequence id: which puts count as versions.
    counted: BTreeMap<u64, BTreeSet<u64>>,
}

impl Node {
    fn new(timestamp: i64) -> Node {
        Node { timestamp, version_deletes: BTreeMap::new(), counted: BTreeMap::from([(END, BTreeSet::new())]) }
    }

    fn add_version_delete(&mut self, marker: &Cell) {
        let sequence_id = marker.sequence_id();
        self.version_deletes.entry(marker.timestamp()).or_default().insert(sequence_id);
        let earlier: BTreeSet<u64> = match self.counted.range(sequence_id..).next() {
            Some((_, counted)) => counted.range(..sequence_id).copied().collect(),
            None => BTreeSet::new(),
        };
        self.counted.insert(sequence_id, earlier);
    }
}

impl NewVersionBehaviorTracker {
    /// `family_versions` and `min_versions` of the family, `result_versions` of the request.
    pub(super) fn new(
        family_versions: u32,
        min_versions: u32,
        result_versions: u32,
        oldest_unexpired: i64,
        columns: Option<Vec<Bytes>>,
    ) -> NewVersionBehaviorTracker {
        let mut tracker = NewVersionBehaviorTracker {
            family_versions,
            min_versions,
            result_versions,
            oldest_unexpired,
            columns,
            index: 0,
            count: 0,
            last: None,
            last_qualifier: Vec::new(),
            column_nodes: BTreeMap::new(),
            family_nodes: BTreeMap::new(),
        };
        tracker.reset();
        tracker
    }

    pub(super) fn reset(&mut self) {
        self.column_nodes.clear();
        self.family_nodes.clear();
        self.family_nodes.insert(END, Node::new(i64::MIN));
        self.last = None;
        self.last_qualifier.clear();
        self.index = 0;
        self.count = 0;
    }

    /// Takes note of `cell`. If it is a put of the same version as the one before, returns that one's sequence id, else [`END`].
    fn prepare(&mut self, cell: &Cell) -> u64 {
        if self.enters_column(cell) {
            self.column_nodes.clone_from(&self.family_nodes);
            self.count = 0;
        } else if let Some(last) = self.last
            && last.kind == CellType::Put
            && cell.cell_type() == CellType::Put
            && last.timestamp == cell.timestamp()
        {
            return last.sequence_id;
        }
        self.last_qualifier.clear();
        self.last_qualifier.extend_from_slice(cell.qualifier());
        self.last =
            Some(LastCell { timestamp: cell.timestamp(), kind: cell.cell_type(), sequence_id: cell.sequence_id() });
        END
    }

    /// A row begins in the column of the empty qualifier, which family markers share. HBase enters that column only with a column marker
    /// that is the first cell of the row (HBASE-26901); otherwise its puts see no markers of the family.
    fn enters_column(&self, cell: &Cell) -> bool {
        let column_marker = matches!(cell.cell_type(), CellType::DeleteColumn | CellType::Delete);
        if self.last.is_none() && self.column_nodes.is_empty() && cell.qualifier().is_empty() && column_marker {
            return true;
        }
        cell.qualifier() != self.last_qualifier
    }

    pub(super) fn add(&mut self, marker: &Cell) {
        self.prepare(marker);
        let sequence_id = marker.sequence_id();
        let whole = || Node::new(marker.timestamp());
        match marker.cell_type() {
            CellType::DeleteFamily => {
                self.family_nodes.insert(sequence_id, whole());
            }
            CellType::DeleteFamilyVersion => Self::add_version_delete(&mut self.family_nodes, marker),
            CellType::DeleteColumn => {
                self.column_nodes.insert(sequence_id, whole());
            }
            _ => Self::add_version_delete(&mut self.column_nodes, marker),
        }
    }

    /// Where HBase finds no node (a Delete of the empty qualifier after a family marker) it fails; here the marker gets one.
    fn add_version_delete(nodes: &mut BTreeMap<u64, Node>, marker: &Cell) {
        match nodes.range_mut(marker.sequence_id()..).next() {
            Some((_, node)) => node.add_version_delete(marker),
            None => nodes.entry(END).or_insert_with(|| Node::new(i64::MIN)).add_version_delete(marker),
        }
    }

    /// Whether `put` is hidden; must see every put, since it counts them.
    pub(super) fn is_deleted(&mut self, put: &Cell) -> DeleteResult {
        let duplicate_of = self.prepare(put);
        let (sequence_id, timestamp) = (put.sequence_id(), put.timestamp());
        for (_, node) in self.column_nodes.range_mut(sequence_id..) {
            let deleted_by = node
                .version_deletes
                .get(&timestamp)
                .and_then(|markers| markers.range(sequence_id..).next().copied())
                .unwrap_or(END);
            let until = duplicate_of.min(deleted_by);
            if sequence_id <= until {
                for (_, counted) in node.counted.range_mut(sequence_id..=until) {
                    if counted.len() >= self.family_versions as usize {
                        return DeleteResult::VersionMasked;
                    }
                    counted.insert(sequence_id);
                }
            }
            if deleted_by < END {
                return DeleteResult::VersionDeleted(timestamp);
            }
            if timestamp <= node.timestamp {
                return DeleteResult::ColumnDeleted(node.timestamp);
            }
        }
        if duplicate_of < END { DeleteResult::VersionMasked } else { DeleteResult::NotDeleted }
    }

    /// Every wanted column of the row is behind.
    pub(super) fn done(&self) -> bool {
        self.columns.as_ref().is_some_and(|columns| self.index >= columns.len())
    }

    pub(super) fn hint(&self) -> Option<&[u8]> {
        self.columns.as_ref()?.get(self.index).map(|column| &column[..])
    }

    pub(super) fn check_column(&mut self, cell: &Cell) -> MatchCode {
        let Some(columns) = &self.columns else { return MatchCode::Include };
        while let Some(column) = columns.get(self.index) {
            match cell.qualifier().cmp(column) {
                Ordering::Less => return MatchCode::SeekNextColumn,
                Ordering::Equal => return MatchCode::Include,
                Ordering::Greater => self.index += 1,
            }
        }
        MatchCode::SeekNextRow
    }

    pub(super) fn check_versions(&mut self, cell: &Cell, ignore_count: bool) -> MatchCode {
        let code = self.count_version(cell, ignore_count);
        // Where columns are named HBase walks on through the column, and so meets the expired version that is the last of MIN_VERSIONS even
        // behind the versions that were asked for: 2.6.4 shows it then.
        match code {
            MatchCode::IncludeAndSeekNextColumn if self.columns.is_some() => MatchCode::Include,
            MatchCode::SeekNextColumn if self.columns.is_some() => MatchCode::Skip,
            code => code,
        }
    }

    fn count_version(&mut self, cell: &Cell, ignore_count: bool) -> MatchCode {
        if ignore_count {
            return MatchCode::Include;
        }
        self.count = self.count.saturating_add(1);
        if cell.timestamp() < self.oldest_unexpired {
            match self.count.cmp(&self.min_versions) {
                Ordering::Equal => return MatchCode::IncludeAndSeekNextColumn,
                Ordering::Greater => return MatchCode::SeekNextColumn,
                Ordering::Less => {}
            }
        }
        match self.count.cmp(&self.result_versions) {
            Ordering::Less => MatchCode::Include,
            Ordering::Equal => MatchCode::IncludeAndSeekNextColumn,
            Ordering::Greater => MatchCode::SeekNextColumn,
        }
    }
}
