//! `<time>` of paths (contract.md, section 1): epoch milliseconds, `@SECONDS`, RFC 3339 with `-` allowed for `:`, or relative to now.

use crate::ops::FsError;

/// Bare numbers below this are seconds mistaken for milliseconds: as milliseconds they would lie before March 1973.
const SMALLEST_MILLIS: i64 = 100_000_000_000;

/// The moment that `text` names, in milliseconds since the epoch.
///
/// # Errors
/// EINVAL for a bare number that must be seconds; ENOENT, with the accepted forms, for everything else that is no time.
pub fn parse_time(text: &str, now_millis: i64) -> Result<i64, FsError> {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return match text.parse::<i64>() {
            Ok(millis) if millis >= SMALLEST_MILLIS => Ok(millis),
            Ok(_) => Err(FsError::new(
                libc::EINVAL,
                format!("{text} looks like seconds; times are milliseconds, and seconds are written @{text}"),
            )),
            Err(_) => Err(no_time(text)),
        };
    }
    let parsed = match text.as_bytes() {
        [b'@', ..] => seconds(text.get(1..).unwrap_or("")),
        [b'-', ..] => relative(text.get(1..).unwrap_or("")).and_then(|back| now_millis.checked_sub(back)),
        _ => rfc3339(text),
    };
    parsed.ok_or_else(|| no_time(text))
}

fn no_time(text: &str) -> FsError {
    let forms = "epoch milliseconds, @SECONDS, 2026-11-30T20:15:00Z, or -5m -2h -1d before now";
    FsError::new(libc::ENOENT, format!("{text} is no time: {forms}"))
}

/// `SECONDS` with up to nine decimals, of which three count.
fn seconds(text: &str) -> Option<i64> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let millis = number(whole)?.checked_mul(1000)?.checked_add(millis_of(fraction)?)?;
    Some(if negative { -millis } else { millis })
}

/// `5m`: a number and s, m, h, d or w.
fn relative(text: &str) -> Option<i64> {
    let unit = text.len().checked_sub(1)?;
    let (digits, unit) = text.split_at_checked(unit)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return None,
    };
    number(digits)?.checked_mul(seconds * 1000)
}

fn number(digits: &str) -> Option<i64> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// The milliseconds of a decimal fraction.
fn millis_of(fraction: &str) -> Option<i64> {
    number(fraction)?;
    number(&format!("{fraction:0<3}").chars().take(3).collect::<String>())
}

/// `YYYY-MM-DDTHH:MM:SS[.fraction](Z|+HH:MM|-HH:MM)`; each `:` may be a `-`.
fn rfc3339(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut field = |length: usize, before: &str| -> Option<i64> {
        if !before.is_empty() {
            let (mark, after) = rest.split_at_checked(1)?;
            if !before.contains(mark) {
                return None;
            }
            rest = after;
        }
        let (digits, after) = rest.split_at_checked(length)?;
        rest = after;
        number(digits)
    };
    let (year, month, day) = (field(4, "")?, field(2, "-")?, field(2, "-")?);
    let (hour, minute, second) = (field(2, "Tt ")?, field(2, ":-")?, field(2, ":-")?);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let month_days = match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if !(1..=month_days).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut millis = 0;
    if let Some(after) = rest.strip_prefix('.') {
        let digits = after.find(|c: char| !c.is_ascii_digit())?;
        let (fraction, after) = after.split_at_checked(digits)?;
        millis = millis_of(fraction)?;
        rest = after;
    }
    let offset_minutes = match rest.as_bytes() {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), h1, h2, b':' | b'-', m1, m2] => {
            let two = |tens: u8, ones: u8| {
                let digit = |b: u8| char::from(b).to_digit(10).map(i64::from);
                Some(digit(tens)? * 10 + digit(ones)?)
            };
            let (hours, minutes) = (two(*h1, *h2)?, two(*m1, *m2)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 60 + minutes) * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    let seconds = days_from_epoch(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset_minutes * 60;
    Some(seconds * 1000 + millis)
}

/// Days from 1 January 1970, by whole eras of 400 years counted from March.
fn days_from_epoch(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_764_533_701_250;

    #[test]
    fn all_forms_name_the_same_moment() {
        for text in [
            "1764533701250",
            "@1764533701.25",
            "2025-11-30T20:15:01.250Z",
            "2025-11-30T20-15-01.25Z",
            "2025-11-30T21:15:01.2509+01:00",
            "2025-11-30T14-45-01.250-05-30",
            "-0s",
        ] {
            assert_eq!(parse_time(text, NOW), Ok(NOW), "{text}");
        }
        assert_eq!(parse_time("-5m", NOW), Ok(NOW - 300_000));
        assert_eq!(parse_time("-1d", NOW), Ok(NOW - 86_400_000));
        assert_eq!(parse_time("@0", NOW), Ok(0));
        assert_eq!(parse_time("2000-02-29T00:00:00Z", NOW), Ok(951_782_400_000));
        assert_eq!(parse_time("1969-12-31T23:59:59Z", NOW), Ok(-1000));
    }

    #[test]
    fn what_is_no_time_says_what_is() {
        assert_eq!(parse_time("1764533701", NOW).unwrap_err().errno, libc::EINVAL);
        for bad in [
            "",
            "@",
            "@x",
            "-",
            "-5",
            "-5y",
            "-m",
            "yesterday",
            "2025-11-30",
            "2025-13-01T00:00:00Z",
            "2025-02-29T00:00:00Z",
            "2025-11-30T24:00:00Z",
            "2025-11-30T20:15:01",
            "2025-11-30T20:15:01.Z",
            "2025-11-30T20:15:01+1:00",
            "99999999999999999999",
            "-99999999999999999d",
            "2025-11-30T20:15:0\u{e4}Z",
        ] {
            let error = parse_time(bad, NOW).unwrap_err();
            assert_eq!(error.errno, libc::ENOENT, "{bad}");
            assert!(error.reason.contains("@SECONDS"));
        }
    }
}
