//! Loads of rows: mutations in any order that become visible together, or not at all.

use super::mutation::Mutation;
use crate::error::Result;

/// What a load does to the rows that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoadKind {
    /// Its cells come beside them.
    Add,
    /// It refuses rows that exist: then nothing is loaded.
    New,
    /// They go: afterwards the table holds what was loaded and nothing else.
    Replace,
}

/// What a load did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadSummary {
    /// Rows.
    pub rows: u64,
    /// Cells and markers that are there now. What a later mutation of the load overwrote is not among them.
    pub cells: u64,
    /// Rows and cells that were refused: if there are any, nothing was loaded.
    pub refused: u64,
}

/// Hears of what is refused: the line that [`TableLoad::add`] was told, 0 where it is not known any more, and why.
pub type RefusedLine<'a> = dyn FnMut(u64, &str) + 'a;

/// A load under way. Nothing of it is visible before it is finished; dropped, it leaves nothing. Its memory is bounded, whatever comes in whatever
/// order: what does not fit is sorted into files of the store.
pub trait TableLoad: Send {
    /// Takes a put or a delete. Puts without a time of their own get one that is newer than everything that concerns their column, and of several of
    /// one column the last one counts. Of equal keys (row, column, timestamp, type) the last one counts as well. `line` is for messages.
    ///
    /// # Errors
    /// [`crate::Error::InvalidArgument`], [`crate::Error::NoSuchColumnFamily`] and [`crate::Error::CellTooLarge`] for what cannot be stored, also for
    /// markers without a time: the load goes on without it. Those of writing.
    fn add(&mut self, line: u64, mutation: &Mutation) -> Result<()>;

    /// Makes everything visible at once, unless something is refused.
    ///
    /// # Errors
    /// Those of the table and of writing; then nothing has changed.
    fn finish(self: Box<Self>, refuse: &mut RefusedLine<'_>) -> Result<LoadSummary>;
}
