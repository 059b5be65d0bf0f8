//! What the dot names need from the mount around them.

use bytes::Bytes;
use std::time::Duration;

/// Something that a dot name changed behind the back of the kernel's caches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A cell got a version or lost one.
    Cell {
        /// The table's id.
        table: u64,
        /// The row key.
        row: Bytes,
        /// The family.
        family: Bytes,
        /// The qualifier.
        qualifier: Bytes,
    },
    /// Any cell of these rows may have changed.
    Rows {
        /// The table's id.
        table: u64,
        /// The row keys.
        rows: Vec<Bytes>,
    },
    /// Any row of the table may have changed, and what is not stored goes on (an import of any size).
    AnyRow {
        /// The table's id.
        table: u64,
    },
    /// Any row of the table may have changed (truncate, a family dropped).
    Table {
        /// The table's id.
        table: u64,
    },
    /// The table is gone.
    TableDropped {
        /// The table's id.
        table: u64,
        /// The namespace it was in.
        namespace: String,
        /// Its name there.
        name: String,
    },
    /// A table has come to be.
    TableMade {
        /// The namespace it is in.
        namespace: String,
        /// Its name there.
        name: String,
    },
    /// The text of the table's `.schema` has changed.
    Schema {
        /// The table's id.
        table: u64,
        /// Cells may show or vanish by it (TTL).
        cells: bool,
    },
}

/// What the dot names need from the mount around them; implemented by the mount's shared state.
pub trait MountHooks: Send + Sync + 'static {
    /// Milliseconds since the epoch.
    fn now_millis(&self) -> i64;
    /// Monotonic time.
    fn monotonic(&self) -> Duration;
    /// When the mount began, nanoseconds since the epoch.
    fn mounted_nanos(&self) -> i64;
    /// Owner of what belongs to nobody else: `.help` and `.cellfs/`.
    fn owner(&self) -> (u32, u32);
    /// Facts of the mount for `.cellfs/status`: store, mount point, options, process.
    fn status(&self) -> Vec<(String, String)>;
    /// Figures of the mount itself for `.cellfs/metrics`: name, help text, value.
    fn figures(&self) -> Vec<(&'static str, &'static str, u64)>;
    /// The lines of `.cellfs/errors`.
    fn errors(&self) -> String;
    /// The last line of `.cellfs/errors` that this user caused.
    fn last_error(&self, uid: u32) -> String;
    /// Adds a line to `.cellfs/errors` about something that was accepted with a reservation.
    fn remark(&self, operation: &'static str, path: &str, reason: &str);
    /// Takes note of a change; kernel caches are told after the operation.
    fn changed(&self, change: Change);
    /// True while the cell is hidden: renamed to a scratch name and not yet written again (contract.md, section 3).
    fn is_hidden(&self, table: u64, row: &[u8], family: &[u8], qualifier: &[u8]) -> bool;
    /// The largest value of a cell has been configured.
    fn set_cell_max(&self, _bytes: u64) {}
    /// The largest value of a cell in bytes.
    fn cell_max(&self) -> u64 {
        64 << 20
    }
    /// True if `is_hidden` can be true for any cell of the table, so that scans need not ask for each.
    fn hides_any(&self, table: u64) -> bool;
}
