//! Row keys that are made of logical ones: salted, hashed, reversed, typed (docs/keys.md). Every scheme is a bijection between its logical keys and
//! the stored keys it makes: a logical key that could not be told from another is refused, a stored key that the scheme never makes has none.

use super::{ColumnType, Order, OrderedKind};
use crate::error::{Error, Result};
use bytes::Bytes;
use md5::{Digest, Md5};

/// How stored keys are made. Numbers and other types are given as their text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyScheme {
    /// The code points in reverse order; of bytes that are no UTF-8 the bytes.
    Reverse,
    /// So many hexadecimal digits of the key's MD5 and `_` before the key.
    Md5(u8),
    /// Two digits of the key's CRC32 modulo this, and `-`, before the key.
    Salt(u8),
    /// A decimal number with zeros before it, so many digits.
    Pad(u8),
    /// 4 bytes, big-endian, the sign bit turned: they sort as numbers do.
    Int,
    /// 8 bytes.
    Long,
    /// The bytes of hexadecimal digits.
    Hex,
    /// A form of `OrderedBytes`.
    Ordered(OrderedKind, Order),
    /// A prefix, `_`, and the largest long minus the time in milliseconds, in 19 digits: the newest comes first.
    ReverseTime(Bytes),
}

/// Digits of the largest long.
const TIME_DIGITS: usize = 19;

impl KeyScheme {
    /// The scheme of a name: `reverse`, `md5-N`, `salt-N`, `pad-N`, `long`, `int`, `hex`, `ob-...`. A [`KeyScheme::ReverseTime`] has a prefix, and no name.
    pub fn of_name(name: &str) -> Option<KeyScheme> {
        let number = |prefix: &str, range: std::ops::RangeInclusive<u8>| {
            let digits = name.strip_prefix(prefix)?;
            let number: u8 = digits.parse().ok()?;
            (number.to_string() == digits && range.contains(&number)).then_some(number)
        };
        match name {
            "reverse" => return Some(KeyScheme::Reverse),
            "int" => return Some(KeyScheme::Int),
            "long" => return Some(KeyScheme::Long),
            "hex" => return Some(KeyScheme::Hex),
            _ => {}
        }
        if let Some(ColumnType::Ordered(kind, order)) = ColumnType::of_name(name) {
            return Some(KeyScheme::Ordered(kind, order));
        }
        let md5 = number("md5-", 1..=32).map(KeyScheme::Md5);
        md5.or_else(|| number("salt-", 1..=100).map(KeyScheme::Salt))
            .or_else(|| number("pad-", 1..=255).map(KeyScheme::Pad))
    }

    /// The names of the schemes without a number.
    pub fn plain_names() -> impl Iterator<Item = &'static str> {
        let ordered = ColumnType::all().filter(|of| matches!(of, ColumnType::Ordered(..))).map(ColumnType::name);
        ["hex", "int", "long"].into_iter().chain(ordered).chain(["reverse"])
    }

    /// The name, with which [`KeyScheme::of_name`] gives the scheme again.
    pub fn name(&self) -> String {
        match self {
            KeyScheme::Reverse => "reverse".to_owned(),
            KeyScheme::Md5(digits) => format!("md5-{digits}"),
            KeyScheme::Salt(modulus) => format!("salt-{modulus}"),
            KeyScheme::Pad(digits) => format!("pad-{digits}"),
            KeyScheme::Int => "int".to_owned(),
            KeyScheme::Long => "long".to_owned(),
            KeyScheme::Hex => "hex".to_owned(),
            KeyScheme::Ordered(kind, order) => ColumnType::Ordered(*kind, *order).name().to_owned(),
            KeyScheme::ReverseTime(_) => "revts".to_owned(),
        }
    }

    /// The stored key of a logical one.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for what is no logical key of the scheme, in its one spelling.
    pub fn stored(&self, logical: &[u8]) -> Result<Bytes> {
        let text = || std::str::from_utf8(logical).map_err(|_| Error::invalid("the key is no text"));
        let stored = match self {
            KeyScheme::Reverse => reversed(logical),
            KeyScheme::Md5(digits) => [&md5_digits(logical, *digits)[..], b"_", logical].concat(),
            KeyScheme::Salt(modulus) => [salt(logical, *modulus).as_bytes(), logical].concat(),
            KeyScheme::Pad(digits) => format!("{:0>width$}", text()?, width = usize::from(*digits)).into_bytes(),
            KeyScheme::Int => (number::<i32>(text()?)? ^ i32::MIN).to_be_bytes().to_vec(),
            KeyScheme::Long => (number::<i64>(text()?)? ^ i64::MIN).to_be_bytes().to_vec(),
            KeyScheme::Hex => ColumnType::Hex.encode(text()?)?.to_vec(),
            KeyScheme::Ordered(kind, order) => ColumnType::Ordered(*kind, *order).encode(text()?)?.to_vec(),
            KeyScheme::ReverseTime(prefix) => {
                let millis = number::<i64>(text()?)?;
                if millis < 0 {
                    return Err(Error::invalid("a time is not negative"));
                }
                [&prefix[..], format!("_{:0TIME_DIGITS$}", i64::MAX - millis).as_bytes()].concat()
            }
        };
        if self.logical(&stored).as_deref() != Some(logical) {
            let shown = logical.escape_ascii();
            return Err(Error::invalid(format!(
                "{shown} is no logical key of {}, or not in its one spelling",
                self.name()
            )));
        }
        Ok(stored.into())
    }

    /// The logical key of a stored one; `None` for keys that the scheme does not make.
    pub fn logical(&self, stored: &[u8]) -> Option<Bytes> {
        Some(match self {
            KeyScheme::Reverse => {
                let logical = reversed(stored);
                // Bytes that are no text, with a reverse that is text, are made of no key.
                (reversed(&logical) == stored).then(|| logical.into())?
            }
            KeyScheme::Md5(digits) => {
                let (prefix, logical) = stored.split_at_checked(usize::from(*digits) + 1)?;
                let sound = prefix.split_last() == Some((&b'_', &md5_digits(logical, *digits)));
                sound.then(|| Bytes::copy_from_slice(logical))?
            }
            KeyScheme::Salt(modulus) => {
                let (prefix, logical) = stored.split_at_checked(3)?;
                (prefix == salt(logical, *modulus).as_bytes()).then(|| Bytes::copy_from_slice(logical))?
            }
            KeyScheme::Pad(digits) => {
                let sound = stored.len() == usize::from(*digits) && stored.iter().all(u8::is_ascii_digit);
                let zeros =
                    stored.iter().take_while(|digit| **digit == b'0').count().min(stored.len().saturating_sub(1));
                Bytes::copy_from_slice(stored.get(zeros..).filter(|_| sound)?)
            }
            KeyScheme::Int => (i32::from_be_bytes(stored.try_into().ok()?) ^ i32::MIN).to_string().into(),
            KeyScheme::Long => (i64::from_be_bytes(stored.try_into().ok()?) ^ i64::MIN).to_string().into(),
            KeyScheme::Hex => ColumnType::Hex.decode(stored).ok()?.into(),
            KeyScheme::Ordered(kind, order) => ColumnType::Ordered(*kind, *order).decode(stored).ok()?.into(),
            KeyScheme::ReverseTime(prefix) => {
                let digits = stored.strip_prefix(&prefix[..])?.strip_prefix(b"_")?;
                reverse_time(digits)?.to_string().into()
            }
        })
    }

    /// Prefixes of stored keys: all keys that the scheme makes begin with one of them, in the order of the logical keys within each.
    pub fn prefixes(&self) -> Vec<Bytes> {
        match self {
            KeyScheme::Salt(modulus) => (0..*modulus).map(|salt| format!("{salt:02}-").into()).collect(),
            KeyScheme::ReverseTime(prefix) => vec![[&prefix[..], b"_"].concat().into()],
            _ => vec![Bytes::new()],
        }
    }

    /// True if keys are listed in logical order, which is not the order in which they are stored.
    pub fn lists_logically(&self) -> bool {
        matches!(self, KeyScheme::Salt(_))
    }

    /// The prefix of a key that a [`KeyScheme::ReverseTime`] has made.
    pub fn reverse_time_prefix(stored: &[u8]) -> Option<&[u8]> {
        let (prefix, digits) = stored.split_at_checked(stored.len().checked_sub(TIME_DIGITS)?)?;
        reverse_time(digits)?;
        prefix.strip_suffix(b"_").filter(|prefix| !prefix.is_empty())
    }
}

fn reverse_time(digits: &[u8]) -> Option<i64> {
    let sound = digits.len() == TIME_DIGITS && digits.iter().all(u8::is_ascii_digit);
    let reversed: i64 = std::str::from_utf8(digits).ok().filter(|_| sound)?.parse().ok()?;
    i64::MAX.checked_sub(reversed)
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T> {
    text.parse().map_err(|_| Error::invalid(format!("{text} is no whole number of {} bits", size_of::<T>() * 8)))
}

fn reversed(key: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(key) {
        Ok(text) => text.chars().rev().collect::<String>().into_bytes(),
        Err(_) => key.iter().rev().copied().collect(),
    }
}

fn md5_digits(key: &[u8], digits: u8) -> Vec<u8> {
    let hex: String = Md5::digest(key).iter().map(|byte| format!("{byte:02x}")).collect();
    hex.into_bytes().into_iter().take(usize::from(digits)).collect()
}

fn salt(key: &[u8], modulus: u8) -> String {
    format!("{:02}-", crc32fast::hash(key) % u32::from(modulus.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stored(scheme: &str, logical: &str) -> Result<Bytes> {
        KeyScheme::of_name(scheme).unwrap().stored(logical.as_bytes())
    }

    #[test]
    fn keys_are_made_as_the_docs_say() {
        // md5("user1") and CRC32("user1") as java.security.MessageDigest and java.util.zip.CRC32 give them.
        for (scheme, logical, expected) in [
            ("reverse", "www.example.org", &b"gro.elpmaxe.www"[..]),
            ("reverse", "a\u{e4}", "\u{e4}a".as_bytes()),
            ("md5-4", "user1", b"24c9_user1"),
            ("md5-32", "user1", b"24c9e15e52afc47c225b757e7bee1f9d_user1"),
            ("salt-16", "user1", b"05-user1"),
            ("salt-100", "user1", b"89-user1"),
            ("salt-1", "user1", b"00-user1"),
            ("pad-8", "42", b"00000042"),
            ("pad-8", "0", b"00000000"),
            ("pad-2", "42", b"42"),
            ("int", "-1", &[0x7f, 0xff, 0xff, 0xff]),
            ("long", "1", &[0x80, 0, 0, 0, 0, 0, 0, 1]),
            ("hex", "00ff", &[0, 0xff]),
            ("ob-int32", "-1", &[0x2b, 0x7f, 0xff, 0xff, 0xff]),
            ("ob-string-desc", "a", &[0xcb, 0x9e, 0xff]),
        ] {
            assert_eq!(stored(scheme, logical).unwrap(), expected, "{scheme} {logical}");
        }
        let events = KeyScheme::ReverseTime("sensor7".into());
        let key = events.stored(b"1764533701250").unwrap();
        assert_eq!(key, "sensor7_9223370272321074557");
        assert_eq!(events.logical(&key).unwrap(), "1764533701250");
        assert_eq!(KeyScheme::reverse_time_prefix(&key), Some(&b"sensor7"[..]));
        assert_eq!(KeyScheme::reverse_time_prefix(b"sensor7_92233702723210745"), None);
        assert!(events.stored(b"-1").is_err() && events.logical(b"sensor8_9223370272321074557").is_none());
    }

    #[test]
    fn only_the_one_spelling_is_a_logical_key() {
        for (scheme, logical) in [
            ("pad-3", "007"),
            ("pad-3", "1000"),
            ("pad-3", "x"),
            ("pad-3", ""),
            ("int", "+1"),
            ("int", "01"),
            ("long", "x"),
            ("hex", "FF"),
            ("ob-float64", "1"),
        ] {
            assert!(stored(scheme, logical).is_err(), "{scheme} {logical}");
        }
        // Bytes that are no text whose reverse is text would be taken for another key.
        assert!(KeyScheme::Reverse.stored(b"\xa4\xc3").is_err());
        assert_eq!(KeyScheme::Reverse.stored(b"\xffa").unwrap(), &b"a\xff"[..]);
        for name in
            ["md5-0", "md5-33", "md5-04", "salt-0", "salt-101", "pad-0", "pad-", "reversed", "revts", "string", ""]
        {
            assert_eq!(KeyScheme::of_name(name), None, "{name}");
        }
        assert!(KeyScheme::plain_names().all(|name| KeyScheme::of_name(name).unwrap().name() == name));
        for name in ["md5-7", "salt-100", "pad-255"] {
            assert_eq!(KeyScheme::of_name(name).unwrap().name(), name);
        }
    }

    proptest! {
        #[test]
        fn stored_and_logical_keys_lead_to_each_other(key in prop::collection::vec(any::<u8>(), 1..20), number: i64) {
            for name in ["reverse", "md5-4", "salt-16", "pad-19", "int", "long", "hex", "ob-int64", "ob-numeric-desc", "ob-string"] {
                let scheme = KeyScheme::of_name(name).unwrap();
                for logical in [&key[..], number.to_string().as_bytes()] {
                    if let Ok(stored) = scheme.stored(logical) {
                        prop_assert_eq!(scheme.logical(&stored).unwrap(), logical);
                        prop_assert!(scheme.prefixes().iter().any(|prefix| stored.starts_with(prefix)));
                    }
                }
                if let Some(logical) = scheme.logical(&key)
                    && let Ok(stored) = scheme.stored(&logical)
                {
                    prop_assert_eq!(&stored[..], &key[..], "{}", name);
                }
            }
        }
    }
}
