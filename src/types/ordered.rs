//! HBase's `OrderedBytes`: a byte that says what follows, then bytes that sort as the values do; in descending order every byte is inverted.
//!
//! ```text
//! int8 .. int64       29 2A 2B 2C, then the number big-endian with its sign bit turned
//! float32 float64     30 31, then the bits big-endian: sign bit turned, all others too if it was set
//! string              34, UTF-8 without 00, 00
//! numeric             -infinity 07 | -large 08 ~E ~M | -medium (13-E) ~M | -small 14 -E ~M | 0 15
//!                     | small 16 ~-E M | medium (17+E) M | large 22 E M | infinity 23 | NaN 26
//! ```
//!
//! A numeric value is M * 100^E with 0.01 <= M < 1. M is its digits in base 100, each X as the byte 2X+1, the last as 2X; `~` inverts. E and -E are
//! variable-length (SQLite4's varint). Small is below 1, large has E over 10.

use super::decimal::{Decimal, with_point};
use super::plain::{exactly, float, float_text, utf8, whole};
use super::{Order, OrderedKind};

const NEGATIVE_INFINITY: u8 = 0x07;
const NEGATIVE_LARGE: u8 = 0x08;
const NEGATIVE_MEDIUM_BASE: u8 = 0x13;
const NEGATIVE_SMALL: u8 = 0x14;
const ZERO: u8 = 0x15;
const POSITIVE_SMALL: u8 = 0x16;
const POSITIVE_MEDIUM_BASE: u8 = 0x17;
const POSITIVE_LARGE: u8 = 0x22;
const POSITIVE_INFINITY: u8 = 0x23;
const NAN: u8 = 0x26;
const NULL: u8 = 0x05;
const INT8: u8 = 0x29;
const INT16: u8 = 0x2A;
const INT32: u8 = 0x2B;
const INT64: u8 = 0x2C;
const FLOAT32: u8 = 0x30;
const FLOAT64: u8 = 0x31;
const TEXT: u8 = 0x34;

/// Digits that `OrderedBytes` keeps (`MAX_PRECISION`); it rounds what has more, which is refused here.
const NUMERIC_DIGITS: usize = 31;
/// The largest power of 100: beyond, HBase's encoder breaks off.
const EXPONENT_MAX: i64 = 350;
/// The smallest.
const EXPONENT_MIN: i64 = -(1 << 20);
/// Numbers with more zeros than this beside their digits are shown with an exponent.
const ZEROS_SHOWN: i64 = 40;

pub(super) fn encode(kind: OrderedKind, order: Order, text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = ascending(kind, text)?;
    if order == Order::Descending {
        invert(&mut bytes);
    }
    Ok(bytes)
}

pub(super) fn decode(kind: OrderedKind, order: Order, value: &[u8]) -> Result<String, String> {
    let mut bytes = value.to_vec();
    if order == Order::Descending {
        invert(&mut bytes);
    }
    let text = text_of(kind, &bytes)?;
    // Whatever HBase would not write is not taken for a value.
    if ascending(kind, &text).as_deref() != Ok(&bytes[..]) {
        return Err("it is not as HBase writes it".to_owned());
    }
    Ok(text)
}

fn invert(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte = !*byte);
}

fn with_header(header: u8, bytes: &[u8]) -> Vec<u8> {
    [&[header], bytes].concat()
}

fn ascending(kind: OrderedKind, text: &str) -> Result<Vec<u8>, String> {
    Ok(match kind {
        OrderedKind::Int8 => with_header(INT8, &(whole::<i8>(text)? ^ i8::MIN).to_be_bytes()),
        OrderedKind::Int16 => with_header(INT16, &(whole::<i16>(text)? ^ i16::MIN).to_be_bytes()),
        OrderedKind::Int32 => with_header(INT32, &(whole::<i32>(text)? ^ i32::MIN).to_be_bytes()),
        OrderedKind::Int64 => with_header(INT64, &(whole::<i64>(text)? ^ i64::MIN).to_be_bytes()),
        OrderedKind::Float32 => {
            let bits = float::<f32>(text)?.to_bits() as i32;
            with_header(FLOAT32, &(bits ^ ((bits >> 31) | i32::MIN)).to_be_bytes())
        }
        OrderedKind::Float64 => {
            let bits = float::<f64>(text)?.to_bits() as i64;
            with_header(FLOAT64, &(bits ^ ((bits >> 63) | i64::MIN)).to_be_bytes())
        }
        OrderedKind::Numeric => numeric(text)?,
        OrderedKind::String if text.contains('\0') => return Err("it has a 0x00, which ends a text".to_owned()),
        OrderedKind::String => [&[TEXT], text.as_bytes(), &[0]].concat(),
    })
}

fn text_of(kind: OrderedKind, bytes: &[u8]) -> Result<String, String> {
    let Some((header, rest)) = bytes.split_first() else { return Err("it is empty".to_owned()) };
    let wanted = match kind {
        OrderedKind::Int8 => INT8,
        OrderedKind::Int16 => INT16,
        OrderedKind::Int32 => INT32,
        OrderedKind::Int64 => INT64,
        OrderedKind::Float32 => FLOAT32,
        OrderedKind::Float64 => FLOAT64,
        OrderedKind::String => TEXT,
        OrderedKind::Numeric => *header,
    };
    if *header == NULL {
        return Err("it is OrderedBytes' null".to_owned());
    }
    if *header != wanted {
        return Err(format!("its first byte is not 0x{wanted:02x} in that order"));
    }
    Ok(match kind {
        OrderedKind::Int8 => (i8::from_be_bytes(exactly(rest)?) ^ i8::MIN).to_string(),
        OrderedKind::Int16 => (i16::from_be_bytes(exactly(rest)?) ^ i16::MIN).to_string(),
        OrderedKind::Int32 => (i32::from_be_bytes(exactly(rest)?) ^ i32::MIN).to_string(),
        OrderedKind::Int64 => (i64::from_be_bytes(exactly(rest)?) ^ i64::MIN).to_string(),
        OrderedKind::Float32 => {
            let bits = i32::from_be_bytes(exactly(rest)?);
            float_text(f32::from_bits((bits ^ ((!bits >> 31) | i32::MIN)) as u32))
        }
        OrderedKind::Float64 => {
            let bits = i64::from_be_bytes(exactly(rest)?);
            float_text(f64::from_bits((bits ^ ((!bits >> 63) | i64::MIN)) as u64))
        }
        OrderedKind::Numeric => numeric_text(*header, rest)?,
        OrderedKind::String => match rest.split_last() {
            Some((0, text)) if !text.contains(&0) => utf8(text)?,
            _ => return Err("it does not end with its first 0x00".to_owned()),
        },
    })
}

fn numeric(text: &str) -> Result<Vec<u8>, String> {
    match text {
        "NaN" => return Ok(vec![NAN]),
        "Infinity" => return Ok(vec![POSITIVE_INFINITY]),
        "-Infinity" => return Ok(vec![NEGATIVE_INFINITY]),
        _ => {}
    }
    let Decimal { negative, mut digits, scale } = Decimal::parse(text)?;
    // The number is 0.DIGITS * 10^point.
    let point = digits.len() as i64 - i64::from(scale);
    while digits.last() == Some(&0) {
        digits.pop();
    }
    if digits.is_empty() {
        return Ok(vec![ZERO]);
    }
    if digits.len() > NUMERIC_DIGITS {
        return Err(format!("it has {} digits, and HBase rounds to {NUMERIC_DIGITS}", digits.len()));
    }
    let exponent = (point + 1).div_euclid(2);
    if !(EXPONENT_MIN..=EXPONENT_MAX).contains(&exponent) {
        return Err(format!("it is not between 100^{EXPONENT_MIN} and 100^{EXPONENT_MAX}"));
    }
    if point.rem_euclid(2) == 1 {
        digits.insert(0, 0);
    }
    let mut mantissa: Vec<u8> = digits
        .chunks(2)
        .map(|pair| pair.first().unwrap_or(&0) * 10 + pair.get(1).unwrap_or(&0))
        .map(|x| 2 * x + 1)
        .collect();
    if let Some(last) = mantissa.last_mut() {
        *last -= 1;
    }
    if negative {
        invert(&mut mantissa);
    }
    let size = exponent.unsigned_abs();
    let mut out = match (negative, exponent) {
        (false, 11..) => [&[POSITIVE_LARGE][..], &varint(size)].concat(),
        (true, 11..) => [&[NEGATIVE_LARGE][..], &inverted(varint(size))].concat(),
        (false, 1..=10) => vec![POSITIVE_MEDIUM_BASE + size as u8],
        (true, 1..=10) => vec![NEGATIVE_MEDIUM_BASE - size as u8],
        (false, _) => [&[POSITIVE_SMALL][..], &inverted(varint(size))].concat(),
        (true, _) => [&[NEGATIVE_SMALL][..], &varint(size)].concat(),
    };
    out.extend(mantissa);
    Ok(out)
}

fn inverted(mut bytes: Vec<u8>) -> Vec<u8> {
    invert(&mut bytes);
    bytes
}

fn numeric_text(header: u8, rest: &[u8]) -> Result<String, String> {
    let negative = header < ZERO;
    let mut rest = rest.to_vec();
    let (exponent, used) = match header {
        NAN => return Ok("NaN".to_owned()),
        POSITIVE_INFINITY => return Ok("Infinity".to_owned()),
        NEGATIVE_INFINITY => return Ok("-Infinity".to_owned()),
        ZERO => return Ok("0".to_owned()),
        POSITIVE_LARGE => read_varint(&rest, false)?,
        NEGATIVE_LARGE => read_varint(&rest, true)?,
        POSITIVE_SMALL => read_varint(&rest, true).map(|(size, used)| (-size, used))?,
        NEGATIVE_SMALL => read_varint(&rest, false).map(|(size, used)| (-size, used))?,
        0x17..=0x21 => (i64::from(header - POSITIVE_MEDIUM_BASE), 0),
        0x09..=0x13 => (i64::from(NEGATIVE_MEDIUM_BASE - header), 0),
        _ => return Err(format!("its first byte, 0x{header:02x}, begins no number in that order")),
    };
    if !(EXPONENT_MIN..=EXPONENT_MAX).contains(&exponent) {
        return Err("its exponent is out of range".to_owned());
    }
    let mut mantissa = rest.split_off(used.min(rest.len()));
    if negative {
        invert(&mut mantissa);
    }
    if mantissa.is_empty() || mantissa.len() > NUMERIC_DIGITS {
        return Err(format!("its mantissa has {} bytes", mantissa.len()));
    }
    let digits: String = mantissa.iter().map(|byte| format!("{:02}", byte / 2)).collect();
    let leading = digits.len() - digits.trim_start_matches('0').len();
    let point = 2 * exponent - leading as i64;
    let digits = digits.trim_matches('0');
    let sign = if negative { "-" } else { "" };
    let zeros = point.abs().max(point - digits.len() as i64);
    if zeros <= ZEROS_SHOWN {
        return Ok(format!("{sign}{}", with_point(digits, point)));
    }
    let (first, others) = digits.split_at_checked(1).unwrap_or((digits, ""));
    let point_and_others = if others.is_empty() { String::new() } else { format!(".{others}") };
    Ok(format!("{sign}{first}{point_and_others}E{:+}", point - 1))
}

/// SQLite4's variable-length integer, as far as exponents need it.
fn varint(value: u64) -> Vec<u8> {
    match value {
        0..241 => vec![value as u8],
        241..2_288 => {
            let rest = value - 240;
            vec![(rest / 256 + 241) as u8, (rest % 256) as u8]
        }
        2_288..67_824 => {
            let rest = value - 2_288;
            vec![249, (rest / 256) as u8, (rest % 256) as u8]
        }
        _ => [&[250][..], &(value as u32).to_be_bytes()[1..]].concat(),
    }
}

/// The number, and the bytes it takes.
fn read_varint(bytes: &[u8], invert: bool) -> Result<(i64, usize), String> {
    let at = |place: usize| bytes.get(place).map(|byte| i64::from(if invert { !*byte } else { *byte }));
    let read = || {
        Some(match at(0)? {
            first @ ..=240 => (first, 1),
            first @ 241..=248 => ((first - 241) * 256 + at(1)? + 240, 2),
            249 => (2_288 + 256 * at(1)? + at(2)?, 3),
            250 => ((at(1)? << 16) | (at(2)? << 8) | at(3)?, 4),
            _ => return None,
        })
    };
    read().ok_or_else(|| "its exponent is cut off or out of range".to_owned())
}
