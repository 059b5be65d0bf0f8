//! What the delete markers of a row hide (HBase `ScanDeleteTracker`; hbase.md A2): only timestamps count, not the order of arrival.

use crate::cell::{Cell, CellType};
use std::collections::BTreeSet;

/// Whether a put is hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeleteResult {
    /// Visible.
    NotDeleted,
    /// Hidden with everything older in its column, by a marker of this timestamp.
    ColumnDeleted(i64),
    /// Only this version is hidden, by a marker of this timestamp.
    VersionDeleted(i64),
    /// Only with NEW_VERSION_BEHAVIOR: VERSIONS newer writes have pushed it out for good.
    VersionMasked,
}

/// The markers of the row seen so far.
#[derive(Debug, Default)]
pub(super) struct DeleteTracker {
    family: Option<i64>,
    family_versions: BTreeSet<i64>,
    column: Option<ColumnMarker>,
    /// The qualifier of `column`; kept apart so that its memory is reused.
    qualifier: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct ColumnMarker {
    kind: CellType,
    timestamp: i64,
}

impl DeleteTracker {
    pub(super) fn reset(&mut self) {
        self.family = None;
        self.family_versions.clear();
        self.column = None;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.column.is_none() && self.family.is_none() && self.family_versions.is_empty()
    }

    /// Takes a marker into account. Markers come in the order of cells.
    pub(super) fn add(&mut self, marker: &Cell) {
        let (timestamp, kind) = (marker.timestamp(), marker.cell_type());
        if self.family.is_some_and(|family| timestamp <= family) {
            return;
        }
        match kind {
            CellType::DeleteFamily => self.family = Some(timestamp),
            CellType::DeleteFamilyVersion => {
                self.family_versions.insert(timestamp);
            }
            _ => {
                let same_column = marker.qualifier() == self.qualifier;
                if same_column && self.column.is_some_and(|column| kind < column.kind) {
                    return;
                }
                if !same_column {
                    self.qualifier.clear();
                    self.qualifier.extend_from_slice(marker.qualifier());
                }
                self.column = Some(ColumnMarker { kind, timestamp });
            }
        }
    }

    /// Whether `put` is hidden by a marker added before.
    pub(super) fn is_deleted(&mut self, put: &Cell) -> DeleteResult {
        let timestamp = put.timestamp();
        if let Some(family) = self.family
            && timestamp <= family
        {
            return DeleteResult::ColumnDeleted(family);
        }
        if self.family_versions.contains(&timestamp) {
            return DeleteResult::VersionDeleted(timestamp);
        }
        if let Some(column) = self.column {
            if put.qualifier() == self.qualifier {
                if column.kind == CellType::DeleteColumn {
                    return DeleteResult::ColumnDeleted(column.timestamp);
                }
                if timestamp == column.timestamp {
                    return DeleteResult::VersionDeleted(timestamp);
                }
            }
            self.column = None;
        }
        DeleteResult::NotDeleted
    }
}
