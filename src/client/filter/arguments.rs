//! The arguments of each filter of the filter language (HBase `createFilterFromArguments` of each filter).

use super::parse::error_at;
use super::{Comparator, Comparison, Filter, SingleColumnValue};
use crate::client::CompareOperator;
use crate::error::{Error, Result};
use bytes::Bytes;

/// The filters the language knows, each with what it takes.
const KNOWN: &str = "KeyOnlyFilter([BOOL]) FirstKeyOnlyFilter() PrefixFilter('ROW') ColumnPrefixFilter('Q') \
    MultipleColumnPrefixFilter('Q', ...) ColumnCountGetFilter(N) PageFilter(N) ColumnPaginationFilter(LIMIT, OFFSET) \
    InclusiveStopFilter('ROW') TimestampsFilter(TS, ...) RowFilter(OP, 'C') FamilyFilter(OP, 'C') QualifierFilter(OP, 'C') \
    ValueFilter(OP, 'C') ColumnRangeFilter('MIN', BOOL, 'MAX', BOOL) \
    SingleColumnValueFilter('F', 'Q', OP, 'C'[, IF_MISSING, LATEST_ONLY]) SingleColumnValueExcludeFilter(the same) \
    ColumnValueFilter('F', 'Q', OP, 'C') DependentColumnFilter('F', 'Q'[, DROP[, OP, 'C']])";

/// An argument as it was written.
pub(super) struct Argument {
    /// Of its first byte in the text.
    pub(super) offset: usize,
    /// In single quotes.
    pub(super) quoted: bool,
    /// Without the quotes.
    pub(super) value: Vec<u8>,
}

impl Argument {
    fn error(&self, expected: &str) -> Error {
        error_at(self.offset, format!("{expected} was expected, not {}", self.value.escape_ascii()))
    }

    fn bytes(&self) -> Result<Bytes> {
        if self.quoted { Ok(Bytes::copy_from_slice(&self.value)) } else { Err(self.error("text in single quotes")) }
    }

    fn number<N: std::str::FromStr>(&self) -> Result<N> {
        let digits = self.value.strip_prefix(b"-").unwrap_or(&self.value);
        let text = std::str::from_utf8(&self.value).ok();
        let text = text.filter(|_| !self.quoted && digits.iter().all(u8::is_ascii_digit));
        text.and_then(|text| text.parse().ok()).ok_or_else(|| self.error("a number within its range"))
    }

    fn boolean(&self) -> Result<bool> {
        match self.value.to_ascii_lowercase().as_slice() {
            b"true" if !self.quoted => Ok(true),
            b"false" if !self.quoted => Ok(false),
            _ => Err(self.error("true or false")),
        }
    }

    fn operator(&self) -> Result<CompareOperator> {
        Ok(match self.value.as_slice() {
            _ if self.quoted => return Err(self.error("one of < <= = != > >=")),
            b"<" => CompareOperator::Less,
            b"<=" => CompareOperator::LessOrEqual,
            b"=" => CompareOperator::Equal,
            b"!=" => CompareOperator::NotEqual,
            b">" => CompareOperator::Greater,
            b">=" => CompareOperator::GreaterOrEqual,
            _ => return Err(self.error("one of < <= = != > >=")),
        })
    }

    fn comparator(&self) -> Result<Comparator> {
        const KINDS: &str = "'binary:X', 'binaryprefix:X', 'substring:X', 'regexstring:X' or 'regexstringnocase:X'";
        let colon = self.value.iter().position(|byte| *byte == b':').filter(|_| self.quoted);
        let (kind, rest) =
            colon.and_then(|colon| self.value.split_at_checked(colon)).ok_or_else(|| self.error(KINDS))?;
        let value = rest.get(1..).unwrap_or_default();
        let text = || String::from_utf8_lossy(value).into_owned();
        Ok(match kind {
            b"binary" => Comparator::Binary(Bytes::copy_from_slice(value)),
            b"binaryprefix" => Comparator::BinaryPrefix(Bytes::copy_from_slice(value)),
            b"substring" => Comparator::Substring(text()),
            b"regexstring" => Comparator::Regex { pattern: text(), ignore_case: false },
            b"regexstringnocase" => Comparator::Regex { pattern: text(), ignore_case: true },
            _ => return Err(self.error(KINDS)),
        })
    }
}

/// An operator and a comparator; substrings and expressions know only equality.
fn comparison(operator: &Argument, comparator: &Argument) -> Result<Comparison> {
    let made = Comparison { operator: operator.operator()?, comparator: comparator.comparator()? };
    let equality = matches!(made.operator, CompareOperator::Equal | CompareOperator::NotEqual);
    if !equality && matches!(made.comparator, Comparator::Substring(_) | Comparator::Regex { .. }) {
        return Err(operator.error("= or !=, for substrings and regular expressions,"));
    }
    Ok(made)
}

/// An empty border of a range is an open one.
fn border(argument: &Argument) -> Result<Option<Bytes>> {
    argument.bytes().map(|border| Some(border).filter(|border| !border.is_empty()))
}

fn condition(arguments: &[Argument], exclude: bool) -> Result<Option<Filter>> {
    let [family, qualifier, operator, comparator, flags @ ..] = arguments else { return Ok(None) };
    let comparison = comparison(operator, comparator)?;
    let mut condition = SingleColumnValue::new(family.bytes()?, qualifier.bytes()?, comparison);
    condition.exclude = exclude;
    match flags {
        [] => {}
        [missing, latest] => {
            condition.filter_if_missing = missing.boolean()?;
            condition.latest_version_only = latest.boolean()?;
        }
        _ => return Ok(None),
    }
    Ok(Some(Filter::SingleColumnValue(condition)))
}

fn dependent_column(arguments: &[Argument]) -> Result<Option<Filter>> {
    let [family, qualifier, rest @ ..] = arguments else { return Ok(None) };
    let (drop, comparison) = match rest {
        [] => (false, None),
        [drop] => (drop.boolean()?, None),
        // Unlike elsewhere HBase lets substrings and expressions stand beside any operator here.
        [drop, operator, comparator] => {
            let comparison = Comparison { operator: operator.operator()?, comparator: comparator.comparator()? };
            (drop.boolean()?, Some(comparison))
        }
        _ => return Ok(None),
    };
    let (family, qualifier) = (family.bytes()?, qualifier.bytes()?);
    Ok(Some(Filter::DependentColumn { family, qualifier, drop_dependent_column: drop, comparison }))
}

/// The filter of a name; `named_at` is where the name stands.
pub(super) fn build(name: &[u8], named_at: usize, arguments: &[Argument]) -> Result<Filter> {
    let made = match (name, arguments) {
        (b"KeyOnlyFilter", []) => Some(Filter::KeyOnly { length_as_value: false }),
        (b"KeyOnlyFilter", [length]) => Some(Filter::KeyOnly { length_as_value: length.boolean()? }),
        (b"FirstKeyOnlyFilter", []) => Some(Filter::FirstKeyOnly),
        (b"PrefixFilter", [prefix]) => Some(Filter::Prefix { prefix: prefix.bytes()? }),
        (b"ColumnPrefixFilter", [prefix]) => Some(Filter::ColumnPrefix { prefix: prefix.bytes()? }),
        (b"MultipleColumnPrefixFilter", prefixes) => Some(Filter::MultipleColumnPrefix {
            prefixes: prefixes.iter().map(Argument::bytes).collect::<Result<_>>()?,
        }),
        (b"ColumnCountGetFilter", [limit]) => Some(Filter::ColumnCountGet { limit: limit.number()? }),
        (b"PageFilter", [size]) => Some(Filter::Page { size: size.number()? }),
        (b"ColumnPaginationFilter", [limit, offset]) => {
            Some(Filter::ColumnPagination { limit: limit.number()?, offset: offset.number()? })
        }
        (b"InclusiveStopFilter", [row]) => Some(Filter::InclusiveStop { row: row.bytes()? }),
        (b"TimestampsFilter", times) => {
            let times =
                times.iter().map(|time| time.number::<u64>().map(|time| i64::try_from(time).unwrap_or(i64::MAX)));
            Some(Filter::Timestamps { timestamps: times.collect::<Result<_>>()? })
        }
        (b"RowFilter", [operator, comparator]) => Some(Filter::Row(comparison(operator, comparator)?)),
        (b"FamilyFilter", [operator, comparator]) => Some(Filter::Family(comparison(operator, comparator)?)),
        (b"QualifierFilter", [operator, comparator]) => Some(Filter::Qualifier(comparison(operator, comparator)?)),
        (b"ValueFilter", [operator, comparator]) => Some(Filter::Value(comparison(operator, comparator)?)),
        (b"ColumnRangeFilter", [min, min_inclusive, max, max_inclusive]) => Some(Filter::ColumnRange {
            min: border(min)?,
            min_inclusive: min_inclusive.boolean()?,
            max: border(max)?,
            max_inclusive: max_inclusive.boolean()?,
        }),
        (b"SingleColumnValueFilter", arguments) => condition(arguments, false)?,
        (b"SingleColumnValueExcludeFilter", arguments) => condition(arguments, true)?,
        (b"ColumnValueFilter", [family, qualifier, operator, comparator]) => Some(Filter::ColumnValue {
            family: family.bytes()?,
            qualifier: qualifier.bytes()?,
            comparison: comparison(operator, comparator)?,
        }),
        (b"DependentColumnFilter", arguments) => dependent_column(arguments)?,
        _ => None,
    };
    made.ok_or_else(|| {
        let name = name.escape_ascii();
        let count = arguments.len();
        error_at(named_at, format!("there is no filter {name} with {count} arguments; there are: {KNOWN}"))
    })
}
