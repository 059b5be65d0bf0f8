//! Filters at work (HBase `org.apache.hadoop.hbase.filter`): what a [`Filter`] description becomes for one scan.
//!
//! The scanner asks in HBase's order: [`CellFilter::filter_row_key`] once a row is found, [`CellFilter::filter_cell`] for each cell that deletes,
//! time to live, time range and the family's VERSIONS let through, then [`CellFilter::filter_row_cells`] and [`CellFilter::filter_row`] where
//! anything is left, and [`CellFilter::reset`] between rows.

mod column;
mod comparison;
mod list;
mod row;
#[cfg(test)]
mod tests;
mod value;
mod wrapper;

use crate::cell::Cell;
use crate::client::{Filter, ListOperator};
use crate::error::{Error, Result};
use comparison::CompiledComparison;

/// What a filter says of a cell (HBase `Filter.ReturnCode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnCode {
    /// The cell passes.
    Include,
    /// The cell passes; go to the next column.
    IncludeAndNextColumn,
    /// The cell passes; go to the next row.
    IncludeAndSeekNextRow,
    /// Not this cell.
    Skip,
    /// Nothing more of this column.
    NextColumn,
    /// Nothing more of this row, in this family.
    NextRow,
    /// Nothing before [`CellFilter::next_cell_hint`].
    SeekNextUsingHint,
}

impl ReturnCode {
    /// True if the cell passes.
    pub fn includes(self) -> bool {
        matches!(self, ReturnCode::Include | ReturnCode::IncludeAndNextColumn | ReturnCode::IncludeAndSeekNextRow)
    }
}

/// A filter during one scan. The methods are those of HBase's `Filter`, with its defaults (`FilterBase`).
pub trait CellFilter: Send {
    /// A row is over.
    fn reset(&mut self) {}

    /// True if no further row can pass.
    fn filter_all_remaining(&self) -> bool {
        false
    }

    /// True if the row does not pass, by its key.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key that cannot be compared.
    fn filter_row_key(&mut self, _row: &[u8]) -> Result<bool> {
        Ok(self.filter_all_remaining())
    }

    /// What becomes of a cell.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a value that cannot be compared.
    fn filter_cell(&mut self, _cell: &Cell) -> Result<ReturnCode> {
        Ok(ReturnCode::Include)
    }

    /// A cell that passed, as it is returned.
    fn transform_cell(&self, cell: Cell) -> Cell {
        cell
    }

    /// Takes cells out of a whole row; only with [`CellFilter::has_filter_row`].
    fn filter_row_cells(&mut self, _cells: &mut Vec<Cell>) {}

    /// True if the filter needs whole rows.
    fn has_filter_row(&self) -> bool {
        false
    }

    /// True if the row does not pass, seen its cells.
    fn filter_row(&mut self) -> bool {
        false
    }

    /// Where to go after [`ReturnCode::SeekNextUsingHint`] for `cell`.
    fn next_cell_hint(&self, _cell: &Cell) -> Option<Cell> {
        None
    }

    /// True if the filter may give hints (HBase `HintingFilter`): a list asks it even where another filter has decided already.
    fn gives_hints(&self) -> bool {
        false
    }
}

/// A filter, owned.
pub type BoxedFilter = Box<dyn CellFilter>;

/// How deep filters may be nested.
const DEPTH_MAX: usize = 128;

/// Makes a filter for one scan.
///
/// # Errors
/// [`Error::InvalidArgument`] for a description that means nothing: a bad regular expression, a negative timestamp.
pub fn compile(filter: &Filter, reversed: bool) -> Result<BoxedFilter> {
    compile_at(filter, reversed, 0)
}

/// True if `filter` must see the cells of `family` to decide over a row (HBase `Filter#isFamilyEssential`).
pub fn is_family_essential(filter: &Filter, family: &[u8]) -> bool {
    match filter {
        Filter::SingleColumnValue(condition) => !condition.filter_if_missing || condition.family == family,
        Filter::ColumnValue { family: own, .. } => own == family,
        Filter::Skip(filter) | Filter::WhileMatch(filter) => is_family_essential(filter, family),
        Filter::List { filters, .. } => {
            filters.is_empty() || filters.iter().any(|filter| is_family_essential(filter, family))
        }
        _ => true,
    }
}

fn compile_at(filter: &Filter, reversed: bool, depth: usize) -> Result<BoxedFilter> {
    if depth > DEPTH_MAX {
        return Err(Error::invalid(format!("filters are nested deeper than {DEPTH_MAX}")));
    }
    // The direction reaches the members of lists, but nothing inside SkipFilter and WhileMatchFilter: so it is in HBase 2.6.4.
    let inner = |inner: &Filter| compile_at(inner, false, depth + 1);
    Ok(match filter {
        Filter::Prefix { prefix } => Box::new(row::PrefixFilter::new(prefix, reversed)),
        Filter::FirstKeyOnly => Box::new(value::FirstKeyOnlyFilter::default()),
        Filter::KeyOnly { length_as_value } => Box::new(value::KeyOnlyFilter { length_as_value: *length_as_value }),
        Filter::ColumnPrefix { prefix } => Box::new(column::ColumnPrefixFilter { prefix: prefix.clone() }),
        Filter::MultipleColumnPrefix { prefixes } => Box::new(column::MultipleColumnPrefixFilter::new(prefixes)),
        Filter::ColumnRange { min, min_inclusive, max, max_inclusive } => Box::new(column::ColumnRangeFilter {
            min: min.clone(),
            min_inclusive: *min_inclusive,
            max: max.clone(),
            max_inclusive: *max_inclusive,
        }),
        Filter::ColumnPagination { limit, offset } => Box::new(column::ColumnPaginationFilter::new(*limit, *offset)),
        Filter::ColumnPaginationFrom { limit, column } => {
            Box::new(column::ColumnPaginationFromFilter::new(*limit, column.clone()))
        }
        Filter::ColumnCountGet { limit } => Box::new(column::ColumnCountGetFilter::new(*limit)),
        Filter::Page { size } => Box::new(row::PageFilter::new(*size)),
        Filter::InclusiveStop { row } => Box::new(row::InclusiveStopFilter::new(row.clone(), reversed)),
        Filter::Timestamps { timestamps } => Box::new(value::TimestampsFilter::new(timestamps)?),
        Filter::Row(comparison) => Box::new(row::RowFilter::new(CompiledComparison::new(comparison)?)),
        Filter::Family(comparison) => {
            Box::new(column::FamilyFilter { comparison: CompiledComparison::new(comparison)? })
        }
        Filter::Qualifier(comparison) => {
            Box::new(column::QualifierFilter { comparison: CompiledComparison::new(comparison)? })
        }
        Filter::Value(comparison) => Box::new(value::ValueFilter { comparison: CompiledComparison::new(comparison)? }),
        Filter::SingleColumnValue(condition) => Box::new(value::SingleColumnValueFilter::new(condition)?),
        Filter::ColumnValue { family, qualifier, comparison } => {
            Box::new(value::ColumnValueFilter::new(family, qualifier, CompiledComparison::new(comparison)?))
        }
        Filter::DependentColumn { family, qualifier, drop_dependent_column, comparison } => {
            let comparison = comparison.as_ref().map(CompiledComparison::new).transpose()?;
            Box::new(value::DependentColumnFilter::new(family, qualifier, *drop_dependent_column, comparison))
        }
        Filter::MultiRowRange { ranges } => Box::new(row::MultiRowRangeFilter::new(ranges, reversed)?),
        Filter::Skip(filter) => Box::new(wrapper::SkipFilter::new(inner(filter)?)),
        Filter::WhileMatch(filter) => Box::new(wrapper::WhileMatchFilter::new(inner(filter)?)),
        Filter::List { operator, filters } => {
            let filters = filters.iter().map(|one| compile_at(one, reversed, depth + 1)).collect::<Result<Vec<_>>>()?;
            match operator {
                ListOperator::MustPassAll => Box::new(list::AllFilters::new(filters, reversed)),
                ListOperator::MustPassOne => Box::new(list::AnyFilter::new(filters, reversed)),
            }
        }
    })
}
