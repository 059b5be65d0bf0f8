//! What a flush or compaction leaves out, and since when the history of the family is complete afterwards.

use crate::cell::{Cell, CellType};
use std::collections::BTreeSet;

/// Why a cell is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LossReason {
    /// An older write of the same version.
    Duplicate,
    /// More puts of the column are newer than VERSIONS allows.
    Superseded,
    /// Hidden by a marker of this timestamp.
    Masked(i64),
    /// Past its time to live, since this moment.
    Expired(i64),
    /// A marker that hides nothing any more.
    Marker,
}

/// Cells that a [`super::ScanPolicy::Retain`] or [`super::ScanPolicy::DropDeletes`] scan has left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// The newest moment, milliseconds since the epoch, at which something left out was superseded, deleted or expired: the views of the family
    /// at this moment and later are complete. Not capped: cells may be dated in the future.
    pub newest_moment: Option<i64>,
    /// Puts beyond VERSIONS.
    pub superseded: u64,
    /// Puts hidden by markers.
    pub masked: u64,
    /// Cells past their time to live.
    pub expired: u64,
    /// Older writes of one version.
    pub duplicates: u64,
    /// Delete markers.
    pub markers: u64,
}

impl Losses {
    /// All cells left out.
    pub fn cells(&self) -> u64 {
        self.superseded + self.masked + self.expired + self.duplicates + self.markers
    }
}

/// Follows a compaction through its columns.
#[derive(Debug, Default)]
pub(super) struct LossTracker {
    losses: Losses,
    qualifier: Vec<u8>,
    in_row: bool,
    /// Timestamp of the put that came last in the column and was ever visible: it superseded the next one.
    newer_put: Option<i64>,
    /// Timestamp of the last marker of a single version in the column, and of those for the whole family in the row. A put of that timestamp
    /// was never visible by timestamps, so it superseded nothing.
    version_marker: Option<i64>,
    family_version_markers: BTreeSet<i64>,
}

impl LossTracker {
    pub(super) fn losses(&self) -> Losses {
        self.losses
    }

    pub(super) fn start_row(&mut self) {
        self.in_row = false;
        self.family_version_markers.clear();
    }

    /// Looks at every cell, in order, before its fate is known.
    fn enter_column(&mut self, cell: &Cell) {
        if !self.in_row || cell.qualifier() != self.qualifier {
            self.in_row = true;
            self.qualifier.clear();
            self.qualifier.extend_from_slice(cell.qualifier());
            self.newer_put = None;
            self.version_marker = None;
        }
        match cell.cell_type() {
            CellType::Delete => self.version_marker = Some(cell.timestamp()),
            CellType::DeleteFamilyVersion => {
                self.family_version_markers.insert(cell.timestamp());
            }
            _ => {}
        }
    }

    fn note_put(&mut self, put: &Cell) {
        let timestamp = put.timestamp();
        if self.version_marker != Some(timestamp) && !self.family_version_markers.contains(&timestamp) {
            self.newer_put = Some(timestamp);
        }
    }

    /// `cell` stays.
    pub(super) fn keep(&mut self, cell: &Cell) {
        self.enter_column(cell);
        if !cell.is_delete() {
            self.note_put(cell);
        }
    }

    /// `cell` goes. A put was visible from its timestamp until the first thing that hid it; only if it was visible at all is its loss one
    /// to the past.
    pub(super) fn lose(&mut self, cell: &Cell, reason: LossReason) {
        self.enter_column(cell);
        if cell.is_delete() {
            self.losses.markers += 1;
            // A marker of the family that the versions of the empty qualifier pushed out (HBase's way) may leave puts that it hid.
            if reason == LossReason::Superseded && cell.qualifier().is_empty() {
                self.losses.newest_moment = Some(i64::MAX);
            }
            return;
        }
        let hidden_since = match reason {
            LossReason::Duplicate => {
                self.losses.duplicates += 1;
                return;
            }
            LossReason::Superseded | LossReason::Marker => {
                self.losses.superseded += 1;
                self.newer_put
            }
            LossReason::Masked(moment) => {
                self.losses.masked += 1;
                Some(self.newer_put.map_or(moment, |newer| newer.min(moment)))
            }
            LossReason::Expired(moment) => {
                self.losses.expired += 1;
                Some(self.newer_put.map_or(moment, |newer| newer.min(moment)))
            }
        };
        // Nothing by timestamps hid it until now: the caller caps the moment at now.
        let hidden_since = hidden_since.unwrap_or(i64::MAX);
        self.losses.newest_moment = self.losses.newest_moment.max(Some(hidden_since));
        self.note_put(cell);
    }
}
