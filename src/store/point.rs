//! The newest version of one column, where memory alone can tell: what a file system asks most. It costs one descent into the memstore instead of a
//! merge of scanners.

use super::HStore;
use super::file::StoreFileView;
use crate::cell::{Cell, CellType, tag_type};
use crate::memstore::NewestCell;
use crate::schema::FOREVER;

/// What memory knows of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PointRead {
    /// Its newest version.
    Found(Cell),
    /// It shows no version.
    Absent,
    /// Store files must be asked, or the matcher.
    Unknown,
}

impl HStore {
    /// What a reader at `read_point` sees of a column, without versions, time ranges and filters, as far as the memstore decides it: the first
    /// cell of the column is a put, or a marker of the whole column, and no store file has anything as new for the row. The caller holds the
    /// region's lock, so that memstore and files show one moment.
    ///
    /// Nothing is decided for families whose cells vanish by themselves or whose markers follow sequence ids (HBase NEW_VERSION_BEHAVIOR), nor next to
    /// a marker of one version or of a family.
    pub fn newest_in_memory(&self, row: &[u8], qualifier: &[u8], read_point: u64) -> PointRead {
        {
            let descriptor = self.descriptor.read();
            if descriptor.ttl_seconds != FOREVER || descriptor.new_version_behavior {
                return PointRead::Unknown;
            }
        }
        let found = match self.memstore.newest_of_column(&self.family, row, qualifier, read_point) {
            NewestCell::Undecided => return PointRead::Unknown,
            NewestCell::Nothing => None,
            NewestCell::Cell(cell) => Some(cell),
        };
        let newest = match &found {
            None => i64::MIN,
            // HBase's time range of everything begins at 0.
            Some(cell) if cell.timestamp() < 0 || expires(cell) => return PointRead::Unknown,
            Some(cell) => cell.timestamp(),
        };
        let older = |view: &StoreFileView| !view.spans_row(row) || view.entry.max_timestamp < newest;
        if !self.files.read().iter().all(older) {
            return PointRead::Unknown;
        }
        match found {
            None => PointRead::Absent,
            Some(cell) => match cell.cell_type() {
                CellType::Put => PointRead::Found(cell),
                CellType::DeleteColumn => PointRead::Absent,
                _ => PointRead::Unknown,
            },
        }
    }
}

/// True for a cell with a time to live of its own.
fn expires(cell: &Cell) -> bool {
    cell.tag_iter().any(|(kind, _)| kind == tag_type::TTL)
}
