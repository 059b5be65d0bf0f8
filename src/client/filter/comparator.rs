//! What filters compare with (HBase `CompareFilter`, `ByteArrayComparable` and its kin).

use crate::client::CompareOperator;
use bytes::Bytes;

/// How [`Comparator::Bit`] joins two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BitOperator {
    /// Bits set in both.
    And,
    /// Bits set in either.
    Or,
    /// Bits set in one of them.
    Xor,
}

/// What a part of a cell is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparator {
    /// Bytes, unsigned (HBase `BinaryComparator`).
    Binary(Bytes),
    /// The first bytes only (HBase `BinaryPrefixComparator`).
    BinaryPrefix(Bytes),
    /// As many bytes, from an offset on (HBase `BinaryComponentComparator`).
    BinaryComponent {
        /// The bytes.
        value: Bytes,
        /// Where they are looked for.
        offset: usize,
    },
    /// Equal where the text occurs, upper and lower case alike (HBase `SubstringComparator`).
    Substring(String),
    /// Equal where the expression finds a match (HBase `RegexStringComparator`); `.` matches line ends. The expressions are those of the `regex`
    /// crate: Java's, without look-around and back references.
    Regex {
        /// The expression.
        pattern: String,
        /// Upper and lower case alike.
        ignore_case: bool,
    },
    /// Equal where a bit is left after the values, which are of one length, were joined (HBase `BitComparator`).
    Bit {
        /// The bytes.
        value: Bytes,
        /// How they are joined.
        operator: BitOperator,
    },
    /// Unequal to every value (HBase `NullComparator`).
    Null,
    /// An 8-byte big-endian signed number; a value of another width is an error (HBase `LongComparator`).
    Long(i64),
}

/// `cell operator comparator`: the part of the cell stands on the left, unlike in [`crate::client::Condition::Column`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The operator. [`CompareOperator::NoOp`] holds for nothing.
    pub operator: CompareOperator,
    /// The right side.
    pub comparator: Comparator,
}

impl Comparison {
    /// A comparison with bytes.
    pub fn binary(operator: CompareOperator, value: impl Into<Bytes>) -> Comparison {
        Comparison { operator, comparator: Comparator::Binary(value.into()) }
    }

    /// Equal to bytes.
    pub fn equal(value: impl Into<Bytes>) -> Comparison {
        Comparison::binary(CompareOperator::Equal, value)
    }
}
