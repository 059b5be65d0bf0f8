//! Comparisons ready to use (HBase `CompareFilter.compare`).

use crate::client::{BitOperator, Comparator, CompareOperator, Comparison};
use crate::error::{Error, Result};
use bytes::Bytes;
use regex::{Regex, RegexBuilder};
use std::cmp::Ordering;

/// A [`Comparison`] with its expression compiled.
#[derive(Debug)]
pub(super) struct CompiledComparison {
    operator: CompareOperator,
    comparator: CompiledComparator,
}

#[derive(Debug)]
enum CompiledComparator {
    Binary(Bytes),
    BinaryPrefix(Bytes),
    BinaryComponent(Bytes, usize),
    /// In lower case.
    Substring(String),
    Regex(Box<Regex>),
    Bit(Bytes, BitOperator),
    Null,
    Long(i64),
}

impl CompiledComparison {
    pub(super) fn new(comparison: &Comparison) -> Result<CompiledComparison> {
        let comparator = match &comparison.comparator {
            Comparator::Binary(value) => CompiledComparator::Binary(value.clone()),
            Comparator::BinaryPrefix(value) => CompiledComparator::BinaryPrefix(value.clone()),
            Comparator::BinaryComponent { value, offset } => {
                CompiledComparator::BinaryComponent(value.clone(), *offset)
            }
            Comparator::Substring(text) => CompiledComparator::Substring(text.to_lowercase()),
            Comparator::Regex { pattern, ignore_case } => CompiledComparator::Regex(Box::new(
                RegexBuilder::new(pattern)
                    .dot_matches_new_line(true)
                    .case_insensitive(*ignore_case)
                    .build()
                    .map_err(|error| Error::invalid(format!("the regular expression {pattern}: {error}")))?,
            )),
            Comparator::Bit { value, operator } => CompiledComparator::Bit(value.clone(), *operator),
            Comparator::Null => CompiledComparator::Null,
            Comparator::Long(number) => CompiledComparator::Long(*number),
        };
        Ok(CompiledComparison { operator: comparison.operator, comparator })
    }

    /// True if the operator compares anything.
    pub(super) fn compares(&self) -> bool {
        self.operator != CompareOperator::NoOp
    }

    /// True if the comparison does not hold for `part`; NO_OP holds for nothing.
    pub(super) fn rejects(&self, part: &[u8]) -> Result<bool> {
        if !self.compares() {
            return Ok(true);
        }
        let order = self.comparator.compare_to(part)?.reverse();
        Ok(!match self.operator {
            CompareOperator::Less => order.is_lt(),
            CompareOperator::LessOrEqual => order.is_le(),
            CompareOperator::Equal => order.is_eq(),
            CompareOperator::NotEqual => order.is_ne(),
            CompareOperator::GreaterOrEqual => order.is_ge(),
            CompareOperator::Greater => order.is_gt(),
            CompareOperator::NoOp => false,
        })
    }
}

impl CompiledComparator {
    /// The order of the comparator's value against `part`; those that only know equality call what differs greater, as in HBase.
    fn compare_to(&self, part: &[u8]) -> Result<Ordering> {
        let equal_if = |equal: bool| if equal { Ordering::Equal } else { Ordering::Greater };
        Ok(match self {
            CompiledComparator::Binary(value) => value[..].cmp(part),
            CompiledComparator::BinaryPrefix(value) => value[..].cmp(part.get(..value.len()).unwrap_or(part)),
            CompiledComparator::BinaryComponent(value, offset) => {
                let rest = part.get(*offset..).unwrap_or_default();
                value[..].cmp(rest.get(..value.len()).unwrap_or(rest))
            }
            CompiledComparator::Substring(text) => {
                equal_if(String::from_utf8_lossy(part).to_lowercase().contains(text.as_str()))
            }
            CompiledComparator::Regex(regex) => equal_if(regex.is_match(&String::from_utf8_lossy(part))),
            CompiledComparator::Bit(value, operator) => {
                let join = |(left, right): (&u8, &u8)| match operator {
                    BitOperator::And => left & right,
                    BitOperator::Or => left | right,
                    BitOperator::Xor => left ^ right,
                };
                equal_if(value.len() == part.len() && value.iter().zip(part).map(join).any(|bits| bits != 0))
            }
            CompiledComparator::Null => Ordering::Greater,
            CompiledComparator::Long(number) => {
                let bytes = <[u8; 8]>::try_from(part).map_err(|_| {
                    Error::invalid(format!("{} bytes cannot be compared as an 8-byte number", part.len()))
                })?;
                number.cmp(&i64::from_be_bytes(bytes))
            }
        })
    }
}
