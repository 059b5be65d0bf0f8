//! Attribute values as text: numbers, switches, sizes (`64KB`), times (`7d`, `FOREVER`).

use std::fmt;

/// A value of an attribute as `.schema` spells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A whole number.
    Integer(i64),
    /// `true` or `false`.
    Boolean(bool),
    /// Quoted text.
    Text(String),
}

impl Value {
    /// A value for text.
    pub(super) fn text(text: impl Into<String>) -> Value {
        Value::Text(text.into())
    }

    /// A size, in the largest unit that divides it.
    pub(super) fn size(bytes: u64) -> Value {
        for (unit, factor) in SIZE_UNITS {
            if bytes >= factor && bytes.is_multiple_of(factor) {
                return Value::Text(format!("{}{unit}", bytes / factor));
            }
        }
        i64::try_from(bytes).map_or_else(|_| Value::Text(bytes.to_string()), Value::Integer)
    }

    /// A time in seconds, in the largest unit that divides it.
    pub(super) fn seconds(seconds: i64) -> Value {
        for (unit, factor) in [("d", 86_400), ("h", 3_600), ("m", 60)] {
            if seconds >= factor && seconds % factor == 0 {
                return Value::Text(format!("{}{unit}", seconds / factor));
            }
        }
        Value::Integer(seconds)
    }

    /// A whole number within a range, also as text of digits.
    pub(super) fn integer(&self, min: i64, max: i64) -> Result<i64, String> {
        let number = match self {
            Value::Integer(number) => Some(*number),
            Value::Text(text) => text.parse().ok(),
            Value::Boolean(_) => None,
        };
        match number {
            Some(number) if (min..=max).contains(&number) => Ok(number),
            _ => Err(format!("takes a whole number from {min} to {max}, not {self}")),
        }
    }

    /// A switch, also as text.
    pub(super) fn boolean(&self) -> Result<bool, String> {
        match self {
            Value::Boolean(on) => Ok(*on),
            Value::Text(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Value::Text(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            _ => Err(format!("takes true or false, not {self}")),
        }
    }

    /// One of some words, whatever its case; HBase's classes with or without their package.
    pub(super) fn word(&self, words: &[&'static str]) -> Result<&'static str, String> {
        let given = match self {
            Value::Text(text) => {
                text.strip_prefix("org.apache.hadoop.hbase.regionserver.").unwrap_or(text).to_ascii_uppercase()
            }
            Value::Boolean(on) => on.to_string().to_ascii_uppercase(),
            Value::Integer(_) => String::new(),
        };
        words
            .iter()
            .find(|word| word.to_ascii_uppercase() == given)
            .copied()
            .ok_or_else(|| format!("takes one of {}, not {self}", words.join(" ")))
    }

    /// A size in bytes: a number, or `64KB`, `10 GB`, `1 GB 512 MB`. KB is 2^10.
    pub(super) fn bytes(&self, min: u64, max: u64) -> Result<u64, String> {
        let bytes = match self {
            Value::Integer(number) => u64::try_from(*number).ok(),
            Value::Text(text) => sum_of_units(text, size_factor),
            Value::Boolean(_) => None,
        };
        match bytes {
            Some(bytes) if (min..=max).contains(&bytes) => Ok(bytes),
            Some(_) => {
                let (min, max) = (Value::size(min).plain(), Value::size(max).plain());
                Err(format!("takes a size from {min} to {max}, not {self}"))
            }
            None => Err(format!("takes a size like \"64KB\" or a number of bytes, not {self}")),
        }
    }

    /// A time in seconds: a number, `7d`, `1h 30m`, or HBase's `7 DAYS 12 HOURS`. `FOREVER` is for the caller.
    pub(super) fn time_in_seconds(&self, max: i64) -> Result<i64, String> {
        let seconds = match self {
            Value::Integer(number) => u64::try_from(*number).ok(),
            Value::Text(text) => sum_of_units(text, time_factor),
            Value::Boolean(_) => None,
        };
        match seconds.and_then(|seconds| i64::try_from(seconds).ok()) {
            Some(seconds) if (1..=max).contains(&seconds) => Ok(seconds),
            Some(_) => Err(format!("takes a time from 1 to {max} seconds, not {self}")),
            None => Err(format!("takes a time like \"7d\" or a number of seconds, not {self}")),
        }
    }

    /// True for the text `word`, whatever its case.
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self, Value::Text(text) if text.eq_ignore_ascii_case(word))
    }

    /// The value without TOML's quotes: as HBase keeps attributes.
    pub(super) fn plain(&self) -> String {
        match self {
            Value::Integer(number) => number.to_string(),
            Value::Boolean(on) => on.to_string(),
            Value::Text(text) => text.clone(),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(number) => write!(f, "{number}"),
            Value::Boolean(on) => write!(f, "{on}"),
            Value::Text(text) => f.write_str(&quoted(text)),
        }
    }
}

const SIZE_UNITS: [(&str, u64); 4] = [("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)];

fn size_factor(unit: &str) -> Option<u64> {
    match unit {
        "" | "B" => Some(1),
        "K" => Some(1 << 10),
        "M" => Some(1 << 20),
        "G" => Some(1 << 30),
        "T" => Some(1 << 40),
        _ => SIZE_UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor),
    }
}

fn time_factor(unit: &str) -> Option<u64> {
    match unit {
        "" | "S" | "SEC" | "SECOND" | "SECONDS" => Some(1),
        "M" | "MIN" | "MINUTE" | "MINUTES" => Some(60),
        "H" | "HOUR" | "HOURS" => Some(3_600),
        "D" | "DAY" | "DAYS" => Some(86_400),
        _ => None,
    }
}

/// A sum of units, or HBase's own way of showing one, the whole and the same again in brackets: `90000 SECONDS (1 DAY 1 HOUR)`, `65536 B (64KB)`.
fn sum_of_units(text: &str, factor: fn(&str) -> Option<u64>) -> Option<u64> {
    match text.trim().strip_suffix(')').and_then(|text| text.split_once('(')) {
        Some((whole, again)) => plain_sum(whole, factor).filter(|sum| plain_sum(again, factor) == Some(*sum)),
        None => plain_sum(text, factor),
    }
}

/// `12X 3Y`: numbers, each with a unit, added up. At least one; a bare number only by itself.
fn plain_sum(text: &str, factor: fn(&str) -> Option<u64>) -> Option<u64> {
    let mut rest = text.trim();
    let mut sum: Option<u64> = None;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at_checked(digits)?;
        let after = after.trim_start();
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, next) = after.split_at_checked(letters)?;
        if unit.is_empty() && !(sum.is_none() && next.trim().is_empty()) {
            return None;
        }
        let part = number.parse::<u64>().ok()?.checked_mul(factor(&unit.to_ascii_uppercase())?)?;
        sum = Some(sum.unwrap_or(0).checked_add(part)?);
        rest = next.trim_start();
    }
    sum
}

/// A TOML basic string.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c < ' ' || c == '\u{7f}' => out.push_str(&format!("\\u{:04X}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A TOML key: bare where that is allowed.
pub(super) fn key(text: &str) -> String {
    let bare = !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if bare { text.to_owned() } else { quoted(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_read_what_hbase_and_people_write() {
        let size = |text: &str| Value::text(text).bytes(0, u64::MAX);
        assert_eq!(size("64KB"), Ok(65_536));
        assert_eq!(size("64 kb"), Ok(65_536));
        assert_eq!(size("1 GB 512 MB"), Ok((1 << 30) + (512 << 20)));
        assert_eq!(size("10"), Ok(10));
        assert_eq!(Value::Integer(7).bytes(0, 9), Ok(7));
        // HBase's PrettyPrinter shows sizes and times like that, and reads them back.
        assert_eq!(size("10737418240 B (10GB)"), Ok(10 << 30));
        for bad in ["", "KB", "1 2", "1KB 2", "5XB", "-1", "1.5GB", "99999999999999999999", "99999999999TB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
        let time = |text: &str| Value::text(text).time_in_seconds(i64::from(i32::MAX));
        assert_eq!(time("7d"), Ok(604_800));
        assert_eq!(time("7 DAYS 12 HOURS 1 MINUTE 2 SECONDS"), Ok(604_800 + 43_200 + 62));
        assert_eq!(time("86400"), Ok(86_400));
        assert_eq!(time("1 DAY 2 HOURS"), Ok(93_600));
        assert_eq!(time("90061 SECONDS (1 DAY 1 HOUR 1 MINUTE 1 SECOND)"), Ok(90_061));
        for bad in ["0", "x", "7 weeks", "0d", "5 SECONDS (6 SECONDS)", "5 (", "(5)", "5 SECONDS ()"] {
            assert!(time(bad).is_err(), "{bad}");
        }
        for seconds in [1, 59, 60, 61, 3_600, 86_400, 90_000, 604_800] {
            assert_eq!(Value::seconds(seconds).time_in_seconds(i64::MAX), Ok(seconds));
        }
        for bytes in [1, 1023, 1024, 65_536, 10 << 30, (10 << 30) + 1] {
            assert_eq!(Value::size(bytes).bytes(0, u64::MAX), Ok(bytes));
        }
    }
}
