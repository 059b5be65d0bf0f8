//! The forms of HBase's `Bytes.toBytes`, and bytes as digits.

use super::ColumnType;
use super::decimal::Decimal;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Debug;
use std::str::FromStr;

/// An array of exactly the type's width.
pub(super) fn exactly<const N: usize>(value: &[u8]) -> Result<[u8; N], String> {
    <[u8; N]>::try_from(value).map_err(|_| format!("it has {} bytes, not {N}", value.len()))
}

pub(super) fn utf8(value: &[u8]) -> Result<String, String> {
    std::str::from_utf8(value)
        .map(str::to_owned)
        .map_err(|error| format!("it is no UTF-8 from byte {}", error.valid_up_to()))
}

/// A whole number within the range of `T`.
pub(super) fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("it is no whole number of {} bits", size_of::<T>() * 8))
}

/// The shortest text that reads back as the same number; Java's words for what is none.
pub(super) fn float_text<F: Debug + Copy + Into<f64>>(number: F) -> String {
    let wide: f64 = number.into();
    match () {
        () if wide.is_nan() => "NaN".to_owned(),
        () if wide == f64::INFINITY => "Infinity".to_owned(),
        () if wide == f64::NEG_INFINITY => "-Infinity".to_owned(),
        () => format!("{number:?}"),
    }
}

/// A number with or without point and exponent, `NaN`, `Infinity`, `-Infinity`. One that would become infinite is refused.
pub(super) fn float<F: FromStr + Copy + Into<f64>>(text: &str) -> Result<F, String> {
    let spelled_out = matches!(text, "Infinity" | "-Infinity" | "NaN");
    let numeric = text.bytes().any(|b| b.is_ascii_digit());
    let number: F = match text.parse() {
        Ok(number) if spelled_out || numeric => number,
        _ => return Err("it is no number".to_owned()),
    };
    let wide: f64 = number.into();
    if wide.is_infinite() && !spelled_out {
        return Err(format!("it is beyond {} bits", size_of::<F>() * 8));
    }
    Ok(number)
}

pub(super) fn decode(of: ColumnType, value: &[u8]) -> Result<String, String> {
    Ok(match of {
        ColumnType::String => utf8(value)?,
        ColumnType::Short => i16::from_be_bytes(exactly(value)?).to_string(),
        ColumnType::Int => i32::from_be_bytes(exactly(value)?).to_string(),
        ColumnType::Long => i64::from_be_bytes(exactly(value)?).to_string(),
        ColumnType::Float => float_text(f32::from_be_bytes(exactly(value)?)),
        ColumnType::Double => float_text(f64::from_be_bytes(exactly(value)?)),
        ColumnType::Bool => (exactly::<1>(value)? != [0]).to_string(),
        ColumnType::BigDecimal => match value.split_first_chunk::<4>() {
            Some((scale, unscaled)) if !unscaled.is_empty() => {
                Decimal::of_twos_complement(unscaled, i32::from_be_bytes(*scale))?.to_java_string()
            }
            _ => return Err(format!("it has {} bytes, under 5", value.len())),
        },
        ColumnType::Hex => value.iter().map(|byte| format!("{byte:02x}")).collect(),
        ColumnType::Base64 => STANDARD.encode(value),
        ColumnType::Ordered(..) => return Err("it is an ordered form".to_owned()),
    })
}

pub(super) fn encode(of: ColumnType, text: &str) -> Result<Vec<u8>, String> {
    Ok(match of {
        ColumnType::String => text.as_bytes().to_vec(),
        ColumnType::Short => whole::<i16>(text)?.to_be_bytes().to_vec(),
        ColumnType::Int => whole::<i32>(text)?.to_be_bytes().to_vec(),
        ColumnType::Long => whole::<i64>(text)?.to_be_bytes().to_vec(),
        ColumnType::Float => float::<f32>(text)?.to_be_bytes().to_vec(),
        ColumnType::Double => float::<f64>(text)?.to_be_bytes().to_vec(),
        ColumnType::Bool => match text {
            "true" => vec![0xFF],
            "false" => vec![0],
            _ => return Err("it is neither true nor false".to_owned()),
        },
        ColumnType::BigDecimal => {
            let number = Decimal::parse(text)?;
            [&number.scale.to_be_bytes()[..], &number.to_twos_complement()].concat()
        }
        ColumnType::Hex => hex(text)?,
        ColumnType::Base64 => STANDARD.decode(text).map_err(|error| error.to_string())?,
        ColumnType::Ordered(..) => return Err("it is an ordered form".to_owned()),
    })
}

fn hex(text: &str) -> Result<Vec<u8>, String> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    match digits {
        Some(digits) if digits.len() % 2 == 0 => {
            Ok(digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect())
        }
        _ => Err("it is no even number of hexadecimal digits".to_owned()),
    }
}
