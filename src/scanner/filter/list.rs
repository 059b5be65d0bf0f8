//! Several filters as one (HBase `FilterListWithAND`, `FilterListWithOR`).

use super::{BoxedFilter, CellFilter, ReturnCode};
use crate::cell::{Cell, compare};
use crate::error::Result;
use std::cmp::Ordering;

/// The order of two cells in the direction of the scan.
fn compare_in(reversed: bool, left: &Cell, right: &Cell) -> Ordering {
    if reversed { compare(right, left) } else { compare(left, right) }
}

/// MUST_PASS_ALL: of what the filters say, the longest step counts.
pub(super) struct AllFilters {
    filters: Vec<BoxedFilter>,
    reversed: bool,
    /// Those that gave a hint for the last cell.
    hinting: Vec<usize>,
}

impl AllFilters {
    pub(super) fn new(filters: Vec<BoxedFilter>, reversed: bool) -> AllFilters {
        AllFilters { filters, reversed, hinting: Vec::new() }
    }
}

/// The longer of two steps; what one of them leaves out is left out.
fn longer(so_far: ReturnCode, next: ReturnCode) -> ReturnCode {
    use ReturnCode::{
        Include, IncludeAndNextColumn, IncludeAndSeekNextRow, NextColumn, NextRow, SeekNextUsingHint, Skip,
    };
    // 0: no step, 1: the column, 2: the row.
    let step = |code| match code {
        Include | Skip | SeekNextUsingHint => 0,
        IncludeAndNextColumn | NextColumn => 1,
        IncludeAndSeekNextRow | NextRow => 2,
    };
    if so_far == SeekNextUsingHint || next == SeekNextUsingHint {
        return SeekNextUsingHint;
    }
    match (so_far.includes() && next.includes(), step(so_far).max(step(next))) {
        (true, 0) => Include,
        (true, 1) => IncludeAndNextColumn,
        (true, _) => IncludeAndSeekNextRow,
        (false, 0) => Skip,
        (false, 1) => NextColumn,
        (false, _) => NextRow,
    }
}

impl CellFilter for AllFilters {
    fn reset(&mut self) {
        self.filters.iter_mut().for_each(|filter| filter.reset());
        self.hinting.clear();
    }

    fn filter_all_remaining(&self) -> bool {
        self.filters.iter().any(|filter| filter.filter_all_remaining())
    }

    /// Every filter learns of the row, even after one has refused it; one that can give a hint keeps the row in, so that it is asked for it.
    fn filter_row_key(&mut self, row: &[u8]) -> Result<bool> {
        let (mut filtered, mut hint_passed) = (false, false);
        for filter in &mut self.filters {
            if filter.filter_all_remaining() {
                return Ok(true);
            }
            if filter.filter_row_key(row)? {
                filtered = true;
            } else {
                hint_passed |= filter.gives_hints();
            }
        }
        Ok(filtered && !hint_passed)
    }

    /// After the first filter that refuses the cell only those are asked that may give a hint: others may count what they are shown (HBASE-20565).
    fn filter_cell(&mut self, cell: &Cell) -> Result<ReturnCode> {
        self.hinting.clear();
        let mut code = ReturnCode::Include;
        for (index, filter) in self.filters.iter_mut().enumerate() {
            if !code.includes() {
                if filter.gives_hints() && filter.filter_cell(cell)? == ReturnCode::SeekNextUsingHint {
                    self.hinting.push(index);
                }
                continue;
            }
            if filter.filter_all_remaining() {
                code = ReturnCode::NextRow;
                continue;
            }
            let next = filter.filter_cell(cell)?;
            if next == ReturnCode::SeekNextUsingHint {
                self.hinting.push(index);
            }
            code = longer(code, next);
        }
        Ok(if self.hinting.is_empty() { code } else { ReturnCode::SeekNextUsingHint })
    }

    fn transform_cell(&self, cell: Cell) -> Cell {
        self.filters.iter().fold(cell, |cell, filter| filter.transform_cell(cell))
    }

    fn filter_row_cells(&mut self, cells: &mut Vec<Cell>) {
        self.filters.iter_mut().for_each(|filter| filter.filter_row_cells(cells));
    }

    fn has_filter_row(&self) -> bool {
        self.filters.iter().any(|filter| filter.has_filter_row())
    }

    fn filter_row(&mut self) -> bool {
        self.filters.iter_mut().any(|filter| filter.filter_row())
    }

    /// The farthest.
    fn next_cell_hint(&self, cell: &Cell) -> Option<Cell> {
        let hinting = self.hinting.iter().filter_map(|index| self.filters.get(*index));
        let hints = hinting.filter(|filter| !filter.filter_all_remaining()).map(|filter| filter.next_cell_hint(cell));
        hints.flatten().max_by(|left, right| compare_in(self.reversed, left, right))
    }
}

/// A filter of a MUST_PASS_ONE list, and what it last said.
struct Member {
    filter: BoxedFilter,
    /// The last code, with its cell where it reaches beyond it. The list may go on cell by cell where the filter wanted to leap, so it is asked
    /// again only behind where it wanted to go (HBASE-17678).
    last: Option<(ReturnCode, Cell)>,
    included: bool,
}

impl Member {
    /// What the last code says of `cell`; `None`: the filter must be asked.
    fn implied(&self, cell: &Cell, reversed: bool) -> Option<ReturnCode> {
        let (code, last) = self.last.as_ref()?;
        match code {
            ReturnCode::Include | ReturnCode::Skip => None,
            ReturnCode::SeekNextUsingHint => {
                let hint = self.filter.next_cell_hint(last)?;
                compare_in(reversed, cell, &hint).is_lt().then_some(ReturnCode::SeekNextUsingHint)
            }
            ReturnCode::NextColumn | ReturnCode::IncludeAndNextColumn => {
                let same = last.family() == cell.family() && last.qualifier() == cell.qualifier();
                same.then_some(ReturnCode::NextColumn)
            }
            ReturnCode::NextRow | ReturnCode::IncludeAndSeekNextRow => {
                (last.family() == cell.family()).then_some(ReturnCode::NextRow)
            }
        }
    }
}

/// MUST_PASS_ONE: of what the filters say, the shortest step counts.
pub(super) struct AnyFilter {
    members: Vec<Member>,
    reversed: bool,
}

impl AnyFilter {
    pub(super) fn new(filters: Vec<BoxedFilter>, reversed: bool) -> AnyFilter {
        let members = filters.into_iter().map(|filter| Member { filter, last: None, included: false });
        AnyFilter { members: members.collect(), reversed }
    }
}

/// The shorter of two steps; what one of them lets in is let in.
fn shorter(so_far: ReturnCode, next: ReturnCode) -> ReturnCode {
    use ReturnCode::{
        Include, IncludeAndNextColumn, IncludeAndSeekNextRow, NextColumn, NextRow, SeekNextUsingHint, Skip,
    };
    if so_far == SeekNextUsingHint && next == SeekNextUsingHint {
        return SeekNextUsingHint;
    }
    // How far a hint leads is not known, so beside anything else it counts as no step.
    let step = |code| match code {
        Include | Skip | SeekNextUsingHint => 0,
        IncludeAndNextColumn | NextColumn => 1,
        IncludeAndSeekNextRow | NextRow => 2,
    };
    match (so_far.includes() || next.includes(), step(so_far).min(step(next))) {
        (true, 0) => Include,
        (true, 1) => IncludeAndNextColumn,
        (true, _) => IncludeAndSeekNextRow,
        (false, 0) => Skip,
        (false, 1) => NextColumn,
        (false, _) => NextRow,
    }
}

impl CellFilter for AnyFilter {
    fn reset(&mut self) {
        for member in &mut self.members {
            member.filter.reset();
            member.last = None;
            member.included = false;
        }
    }

    fn filter_all_remaining(&self) -> bool {
        !self.members.is_empty() && self.members.iter().all(|member| member.filter.filter_all_remaining())
    }

    fn filter_row_key(&mut self, row: &[u8]) -> Result<bool> {
        let mut filtered = !self.members.is_empty();
        for member in &mut self.members {
            if !member.filter.filter_all_remaining() && !member.filter.filter_row_key(row)? {
                filtered = false;
            }
        }
        Ok(filtered)
    }

    fn filter_cell(&mut self, cell: &Cell) -> Result<ReturnCode> {
        if self.members.is_empty() {
            return Ok(ReturnCode::Include);
        }
        let mut code = None;
        for member in &mut self.members {
            member.included = false;
            if member.filter.filter_all_remaining() {
                continue;
            }
            let next = match member.implied(cell, self.reversed) {
                Some(implied) => implied,
                None => member.filter.filter_cell(cell)?,
            };
            let reaches_on = !matches!(next, ReturnCode::Include | ReturnCode::Skip);
            member.last = reaches_on.then(|| (next, cell.clone()));
            member.included = next.includes();
            code = Some(code.map_or(next, |so_far| shorter(so_far, next)));
        }
        Ok(code.unwrap_or(ReturnCode::Skip))
    }

    fn transform_cell(&self, cell: Cell) -> Cell {
        let included = self.members.iter().filter(|member| member.included);
        included.fold(cell, |cell, member| member.filter.transform_cell(cell))
    }

    fn filter_row_cells(&mut self, cells: &mut Vec<Cell>) {
        self.members.iter_mut().for_each(|member| member.filter.filter_row_cells(cells));
    }

    fn has_filter_row(&self) -> bool {
        self.members.iter().any(|member| member.filter.has_filter_row())
    }

    fn filter_row(&mut self) -> bool {
        !self.members.is_empty() && self.members.iter_mut().all(|member| member.filter.filter_row())
    }

    /// The nearest, if each filter gives one.
    fn next_cell_hint(&self, cell: &Cell) -> Option<Cell> {
        let asked = self.members.iter().filter(|member| !member.filter.filter_all_remaining());
        let hints = asked.map(|member| member.filter.next_cell_hint(cell)).collect::<Option<Vec<Cell>>>()?;
        hints.into_iter().min_by(|left, right| compare_in(self.reversed, left, right))
    }
}
