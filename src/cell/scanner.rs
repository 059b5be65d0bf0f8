//! The one interface between what holds cells (memstore segments, HFiles) and what reads them.

use super::Cell;
use crate::error::Result;

/// A cursor over cells in the order of [`super::compare`]; HBase's `KeyValueScanner`.
///
/// A new cursor stands nowhere: it must be seeked first. Within one source no two cells compare equal.
pub trait CellScanner: Send {
    /// The cell under the cursor; `None` before the first seek and past the last cell.
    fn peek(&self) -> Option<&Cell>;

    /// Takes the cell under the cursor. The cursor goes on standing there, but need not show the cell again until it is moved: a source that makes
    /// its cells one by one gives this one away instead of sharing it.
    fn take(&mut self) -> Option<Cell> {
        self.peek().cloned()
    }

    /// Moves to the next cell.
    ///
    /// # Errors
    /// Those of reading the source. The cursor then stands nowhere.
    fn advance(&mut self) -> Result<()>;

    /// Moves to the first cell at or after `key`, wherever the cursor stands.
    ///
    /// # Errors
    /// Those of reading the source.
    fn seek(&mut self, key: &Cell) -> Result<()>;

    /// Moves forward to the first cell at or after `key`; `key` is not before the cursor. Sources make it cheap when the target is near.
    ///
    /// # Errors
    /// Those of reading the source.
    fn reseek(&mut self, key: &Cell) -> Result<()> {
        self.seek(key)
    }

    /// Moves to the first cell of the last row that sorts before `row`, or nowhere when there is none. Reversed scans walk by it.
    ///
    /// # Errors
    /// Those of reading the source.
    fn seek_to_previous_row(&mut self, row: &[u8]) -> Result<()>;

    /// Moves to the first cell of the last row of the source, or nowhere when it is empty.
    ///
    /// # Errors
    /// Those of reading the source.
    fn seek_to_last_row(&mut self) -> Result<()>;
}
