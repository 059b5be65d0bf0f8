//! Values as text of a type: the bytes that HBase's `Bytes.toBytes` and `OrderedBytes` make of numbers, texts and switches, and back.
//!
//! Pure functions. Decoding never guesses: bytes that the type would not write are refused with the reason, and text that a type cannot hold exactly is
//! refused too. docs/keys.md has the forms to the byte.

mod decimal;
mod key_scheme;
mod ordered;
mod plain;
#[cfg(test)]
mod tests;

pub use key_scheme::KeyScheme;

use crate::error::{Error, Result};
use bytes::Bytes;

/// What a column's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColumnType {
    /// UTF-8.
    String,
    /// 2 bytes, two's complement, big-endian.
    Short,
    /// 4 bytes.
    Int,
    /// 8 bytes.
    Long,
    /// IEEE 754, 4 bytes, big-endian.
    Float,
    /// 8 bytes.
    Double,
    /// One byte: 0 or not.
    Bool,
    /// Scale (4 bytes) and unscaled value (two's complement).
    BigDecimal,
    /// Any bytes, shown as hexadecimal digits.
    Hex,
    /// Any bytes, shown as RFC 4648 base64 with padding.
    Base64,
    /// HBase's `OrderedBytes`, which sort as their values do.
    Ordered(OrderedKind, Order),
}

/// The kinds of `OrderedBytes` values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OrderedKind {
    /// `encodeInt8`
    Int8,
    /// `encodeInt16`
    Int16,
    /// `encodeInt32`
    Int32,
    /// `encodeInt64`
    Int64,
    /// `encodeFloat32`
    Float32,
    /// `encodeFloat64`
    Float64,
    /// `encodeNumeric`
    Numeric,
    /// `encodeString`
    String,
}

/// Which way `OrderedBytes` sort (HBase `Order`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// As the values do.
    Ascending,
    /// The other way: every byte is inverted.
    Descending,
}

/// How JSON shows a value of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonForm {
    /// In quotes.
    Text,
    /// As a number, where the text is one (NaN and the infinities are text).
    Number,
    /// `true` or `false`.
    Boolean,
}

const fn ordered(kind: OrderedKind, order: Order) -> ColumnType {
    ColumnType::Ordered(kind, order)
}

use Order::{Ascending, Descending};

/// Every type with its name.
const NAMES: [(&str, ColumnType); 26] = [
    ("base64", ColumnType::Base64),
    ("bigdecimal", ColumnType::BigDecimal),
    ("bool", ColumnType::Bool),
    ("double", ColumnType::Double),
    ("float", ColumnType::Float),
    ("hex", ColumnType::Hex),
    ("int", ColumnType::Int),
    ("long", ColumnType::Long),
    ("ob-float32", ordered(OrderedKind::Float32, Ascending)),
    ("ob-float32-desc", ordered(OrderedKind::Float32, Descending)),
    ("ob-float64", ordered(OrderedKind::Float64, Ascending)),
    ("ob-float64-desc", ordered(OrderedKind::Float64, Descending)),
    ("ob-int16", ordered(OrderedKind::Int16, Ascending)),
    ("ob-int16-desc", ordered(OrderedKind::Int16, Descending)),
    ("ob-int32", ordered(OrderedKind::Int32, Ascending)),
    ("ob-int32-desc", ordered(OrderedKind::Int32, Descending)),
    ("ob-int64", ordered(OrderedKind::Int64, Ascending)),
    ("ob-int64-desc", ordered(OrderedKind::Int64, Descending)),
    ("ob-int8", ordered(OrderedKind::Int8, Ascending)),
    ("ob-int8-desc", ordered(OrderedKind::Int8, Descending)),
    ("ob-numeric", ordered(OrderedKind::Numeric, Ascending)),
    ("ob-numeric-desc", ordered(OrderedKind::Numeric, Descending)),
    ("ob-string", ordered(OrderedKind::String, Ascending)),
    ("ob-string-desc", ordered(OrderedKind::String, Descending)),
    ("short", ColumnType::Short),
    ("string", ColumnType::String),
];

impl ColumnType {
    /// All types, by name.
    pub fn all() -> impl Iterator<Item = ColumnType> {
        NAMES.into_iter().map(|(_, of)| of)
    }

    /// The type of a name.
    pub fn of_name(name: &str) -> Option<ColumnType> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, of)| *of)
    }

    /// The name.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(_, of)| *of == self).map_or("", |(name, _)| name)
    }

    /// How JSON shows it. What has digits that readers of JSON numbers lose is text.
    pub fn json_form(self) -> JsonForm {
        use OrderedKind::{Float32, Float64, Int8, Int16, Int32};
        match self {
            ColumnType::Short | ColumnType::Int | ColumnType::Float | ColumnType::Double => JsonForm::Number,
            ColumnType::Ordered(Int8 | Int16 | Int32 | Float32 | Float64, _) => JsonForm::Number,
            ColumnType::Bool => JsonForm::Boolean,
            _ => JsonForm::Text,
        }
    }

    /// The value as text.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for bytes that are no value of the type.
    pub fn decode(self, value: &[u8]) -> Result<String> {
        let decoded = match self {
            ColumnType::Ordered(kind, order) => ordered::decode(kind, order, value),
            _ => plain::decode(self, value),
        };
        decoded.map_err(|reason| Error::invalid(format!("no value of the type {}: {reason}", self.name())))
    }

    /// The bytes of a text.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a text that is no value of the type, or one that the type would round.
    pub fn encode(self, text: &str) -> Result<Bytes> {
        let encoded = match self {
            ColumnType::Ordered(kind, order) => ordered::encode(kind, order, text),
            _ => plain::encode(self, text),
        };
        encoded.map(Bytes::from).map_err(|reason| {
            let shown: String = text.chars().take(60).collect();
            Error::invalid(format!("{shown:?} is no {}: {reason}", self.name()))
        })
    }
}
