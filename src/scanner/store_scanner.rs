//! The cells of one family that a request sees or a compaction keeps (HBase `StoreScanner`).

use super::filter::BoxedFilter;
use super::heap::CellHeap;
use super::losses::Losses;
use super::matcher::{MatchCode, QueryMatcher};
use super::store_scan::StoreScan;
use crate::cell::{Cell, CellScanner, compare};
use crate::error::Result;

/// Cells to step over one by one before a seek is tried: most columns and rows are shorter, and a step is cheaper than a seek.
const STEPS_BEFORE_SEEK: usize = 12;

/// Where to go before the next cell is looked at. Kept until then: a caller that has what it wants saves the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pending {
    Nothing,
    NextColumn,
    NextRow,
    /// Nowhere: the sources stand behind the row already.
    RowOver,
    /// Nowhere: a hint has led to another row already.
    OnOtherRow,
    /// Nowhere: the filter wants nothing more of this family (HBase DONE_SCAN).
    Closed,
}

/// A merge of sources of one family, matched against a [`StoreScan`], row by row.
///
/// After [`StoreScanner::seek`] the caller asks for the row ahead with [`StoreScanner::row`], takes its cells with
/// [`StoreScanner::next_cell`] until there are none, and asks again. [`StoreScanner::next_kept`] does this for compactions.
pub struct StoreScanner {
    heap: CellHeap,
    matcher: QueryMatcher,
    read_point: u64,
    store_offset: usize,
    /// Offset and limit together: the row is done with this many cells.
    store_end: usize,
    compaction: bool,
    reversed: bool,
    /// The row that the matcher is in, kept while `in_row`.
    row: Vec<u8>,
    in_row: bool,
    cells_of_row: usize,
    pending: Pending,
    /// The column to leave, for [`Pending::NextColumn`].
    leaving: Option<Cell>,
}

impl StoreScanner {
    /// A scanner that stands nowhere. `sources` newest first: memstore active, snapshot, then store files from newest to oldest.
    pub fn new(sources: Vec<Box<dyn CellScanner>>, scan: &StoreScan) -> StoreScanner {
        StoreScanner {
            heap: CellHeap::new(sources),
            matcher: QueryMatcher::new(scan),
            read_point: scan.read_point,
            store_offset: scan.store_offset,
            store_end: scan.store_limit.map_or(usize::MAX, |limit| limit.saturating_add(scan.store_offset)),
            compaction: scan.policy.is_compaction(),
            reversed: false,
            row: Vec::new(),
            in_row: false,
            cells_of_row: 0,
            pending: Pending::Nothing,
            leaving: None,
        }
    }

    /// To the first row at or after `row`; rows then come in ascending order.
    ///
    /// # Errors
    /// Those of reading the sources.
    pub fn seek(&mut self, row: &[u8]) -> Result<()> {
        self.reversed = false;
        self.leave_row();
        self.heap.seek(&Cell::first_on_row(row))
    }

    /// To the last row before `row`, or the last of all for `None`; rows then come in descending order.
    ///
    /// # Errors
    /// Those of reading the sources.
    pub fn seek_before(&mut self, row: Option<&[u8]>) -> Result<()> {
        self.reversed = true;
        self.leave_row();
        self.heap.seek_to_row_before(row)
    }

    /// The row ahead, or `None` at the end. It may turn out to have no cell to give. Within a row: skips the rest of it.
    ///
    /// # Errors
    /// Those of reading the sources.
    pub fn row(&mut self) -> Result<Option<&[u8]>> {
        if self.pending == Pending::Closed {
            return Ok(None);
        }
        self.finish_row()?;
        Ok(self.heap.peek()?.map(Cell::row))
    }

    /// True while the scanner is in `row`, or has it ahead.
    pub(super) fn stands_on(&mut self, row: &[u8]) -> Result<bool> {
        if self.pending == Pending::Closed {
            return Ok(false);
        }
        if self.in_row {
            return Ok(self.row == row);
        }
        Ok(self.heap.peek()?.is_some_and(|cell| cell.row() == row))
    }

    /// Gives up `row`, whether the scanner is in it or has it ahead.
    pub(super) fn skip_row(&mut self, row: &[u8]) -> Result<()> {
        if !self.in_row && self.stands_on(row)? {
            self.enter_row()?;
        }
        Ok(())
    }

    /// The next cell of the row ahead; `None` when it has no more.
    ///
    /// # Errors
    /// Those of reading the sources.
    pub fn next_cell(&mut self) -> Result<Option<Cell>> {
        self.next_filtered_cell(None)
    }

    /// The next cell of the row ahead that passes the filter, in the form the filter gives it.
    ///
    /// # Errors
    /// Those of reading the sources, and of the filter.
    pub(super) fn next_filtered_cell(&mut self, mut filter: Option<&mut BoxedFilter>) -> Result<Option<Cell>> {
        loop {
            // HBase asks this before each cell, that of the next row included; so a filter may close the family in the middle of a scan.
            if let Some(filter) = &filter
                && filter.filter_all_remaining()
            {
                self.leave_row();
                self.pending = Pending::Closed;
                return Ok(None);
            }
            match self.pending {
                Pending::Nothing => {}
                Pending::NextColumn => self.go_to_next_column()?,
                Pending::NextRow | Pending::RowOver | Pending::OnOtherRow | Pending::Closed => return Ok(None),
            }
            let entering = !self.in_row;
            if entering {
                self.enter_row()?;
            }
            let cell = self.heap.peek()?.filter(|cell| entering || cell.row() == self.row);
            let Some(cell) = cell else {
                self.pending = Pending::RowOver;
                return Ok(None);
            };
            if cell.sequence_id() > self.read_point {
                self.heap.pop()?;
                continue;
            }
            let code = self.matcher.judge(cell, filter.as_deref_mut())?;
            let Some(mut cell) = self.heap.pop()? else { continue };
            if let Some(filter) = &filter {
                match code {
                    MatchCode::Include | MatchCode::IncludeAndSeekNextColumn | MatchCode::IncludeAndSeekNextRow => {
                        cell = filter.transform_cell(cell);
                    }
                    MatchCode::SeekNextUsingHint => {
                        self.follow_hint(&cell, filter.next_cell_hint(&cell))?;
                        continue;
                    }
                    MatchCode::Skip | MatchCode::SeekNextColumn | MatchCode::SeekNextRow => {}
                }
            }
            if let Some(cell) = self.act(cell, code) {
                return Ok(Some(cell));
            }
        }
    }

    /// For flushes and compactions: the next cell to keep, of any row; `None` at the end.
    ///
    /// # Errors
    /// Those of reading the sources.
    pub fn next_kept(&mut self) -> Result<Option<Cell>> {
        loop {
            if let Some(cell) = self.next_cell()? {
                return Ok(Some(cell));
            }
            if self.row()?.is_none() {
                return Ok(None);
            }
        }
    }

    /// What a flush or compaction has left out so far.
    pub fn losses(&self) -> Losses {
        self.matcher.losses()
    }

    /// Goes where a filter says, if that is ahead in the direction of the scan; `cell` has been taken.
    fn follow_hint(&mut self, cell: &Cell, hint: Option<Cell>) -> Result<()> {
        match hint {
            Some(hint) if !self.reversed && compare(&hint, cell).is_gt() => self.heap.reseek(&hint),
            Some(hint) if self.reversed && compare(&hint, cell).is_lt() => {
                self.pending = Pending::OnOtherRow;
                if hint.row() >= &self.row[..] {
                    return self.heap.retreat_from_row(&self.row);
                }
                let mut behind = hint.row().to_vec();
                behind.push(0);
                self.heap.seek_to_row_before(Some(&behind))
            }
            _ => Ok(()),
        }
    }

    fn act(&mut self, cell: Cell, code: MatchCode) -> Option<Cell> {
        match code {
            MatchCode::Skip | MatchCode::SeekNextUsingHint => return None,
            MatchCode::SeekNextColumn => {
                self.pending = Pending::NextColumn;
                self.leaving = Some(cell);
                return None;
            }
            MatchCode::SeekNextRow => {
                self.pending = Pending::NextRow;
                return None;
            }
            MatchCode::Include => {}
            MatchCode::IncludeAndSeekNextColumn => {
                self.pending = Pending::NextColumn;
                self.leaving = Some(cell.clone());
            }
            MatchCode::IncludeAndSeekNextRow => self.pending = Pending::NextRow,
        }
        self.cells_of_row += 1;
        if self.cells_of_row >= self.store_end {
            self.pending = Pending::NextRow;
        }
        (self.cells_of_row > self.store_offset).then_some(cell)
    }

    /// Steps, then seeks, past the rest of the column, or up to the next one that is wanted.
    ///
    /// The column of the empty qualifier is never left in one go, because markers of the family stand among its cells (HBASE-18471):
    /// there only older writes of the same version are passed over.
    fn go_to_next_column(&mut self) -> Result<()> {
        self.pending = Pending::Nothing;
        let Some(leaving) = self.leaving.take() else { return Ok(()) };
        if self.matcher.stays_in_column(&leaving) {
            return Ok(());
        }
        let family_column = leaving.qualifier().is_empty();
        let mut steps = 0;
        while let Some(cell) = self.heap.peek()? {
            let passed_over = cell.row() == leaving.row()
                && if family_column {
                    same_version(cell, &leaving)
                } else {
                    cell.qualifier() == leaving.qualifier()
                        || self.matcher.hint().is_some_and(|hint| cell.qualifier() < hint)
                };
            if !passed_over {
                return Ok(());
            }
            // A compaction reads everything anyway, and accounts for what it leaves out.
            if self.compaction {
                self.matcher.pass_over(cell);
            } else if steps >= STEPS_BEFORE_SEEK && !family_column {
                let key = self.key_after_column(&leaving);
                return self.heap.reseek(&key);
            }
            steps += 1;
            self.heap.pop()?;
        }
        Ok(())
    }

    fn key_after_column(&self, leaving: &Cell) -> Cell {
        let mut qualifier = leaving.qualifier().to_vec();
        qualifier.push(0);
        let target = self.matcher.hint().map_or(&qualifier[..], |hint| hint.max(&qualifier));
        Cell::first_on_column(leaving.row(), leaving.family(), target)
    }

    /// Goes to the next row, in the direction of the scan, if the matcher is in one.
    fn finish_row(&mut self) -> Result<()> {
        if !self.in_row && self.pending == Pending::Nothing {
            return Ok(());
        }
        let (in_row, over) = (self.in_row, self.pending == Pending::RowOver);
        let on_other_row = self.pending == Pending::OnOtherRow;
        self.leave_row();
        if !in_row || on_other_row {
            return Ok(());
        }
        if self.reversed {
            return self.heap.retreat_from_row(&self.row);
        }
        if over {
            return Ok(());
        }
        let mut steps = 0;
        while let Some(cell) = self.heap.peek()?
            && cell.row() == self.row
        {
            if self.compaction {
                self.matcher.pass_over(cell);
            } else if steps >= STEPS_BEFORE_SEEK {
                let mut next = std::mem::take(&mut self.row);
                next.push(0);
                let key = Cell::first_on_row(&next);
                self.row = next;
                return self.heap.reseek(&key);
            }
            steps += 1;
            self.heap.pop()?;
        }
        Ok(())
    }

    fn enter_row(&mut self) -> Result<()> {
        let Some(cell) = self.heap.peek()? else { return Ok(()) };
        self.in_row = true;
        self.row.clear();
        self.row.extend_from_slice(cell.row());
        self.cells_of_row = 0;
        self.matcher.start_row();
        Ok(())
    }

    fn leave_row(&mut self) {
        self.in_row = false;
        self.pending = Pending::Nothing;
        self.leaving = None;
    }
}

/// Equal but for the sequence id, within one row and family.
fn same_version(left: &Cell, right: &Cell) -> bool {
    left.timestamp() == right.timestamp()
        && left.type_code() == right.type_code()
        && left.qualifier() == right.qualifier()
}
