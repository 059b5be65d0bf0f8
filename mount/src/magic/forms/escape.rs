//! The escapes of `cells` and `tsv`: `\t \n \r \\`, and `\xNN` for every other control byte and every byte that is not part of valid UTF-8.

use std::borrow::Cow;

/// Appends `field`, escaped.
pub(super) fn push_escaped(field: &[u8], out: &mut Vec<u8>) {
    if field.iter().all(|b| matches!(b, 0x20..=0x7E) && *b != b'\\') {
        out.extend_from_slice(field);
        return;
    }
    for chunk in field.utf8_chunks() {
        for b in chunk.valid().bytes() {
            match b {
                b'\t' => out.extend_from_slice(b"\\t"),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\\' => out.extend_from_slice(b"\\\\"),
                0x00..=0x1F | 0x7F => push_hex(b, out),
                b => out.push(b),
            }
        }
        for b in chunk.invalid() {
            push_hex(*b, out);
        }
    }
}

fn push_hex(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: [u8; 16] = *b"0123456789ABCDEF";
    let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().unwrap_or(b'0');
    out.extend_from_slice(&[b'\\', b'x', digit(byte >> 4), digit(byte & 15)]);
}

/// The bytes that an escaped field stands for.
pub(crate) fn unescape(field: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    let Some(first) = field.iter().position(|b| *b == b'\\') else {
        return Ok(Cow::Borrowed(field));
    };
    let (plain, mut rest) = field.split_at(first);
    let mut out = plain.to_vec();
    loop {
        match rest {
            [] => return Ok(Cow::Owned(out)),
            [b'\\', b'x', high, low, after @ ..] => {
                let (Some(high), Some(low)) = (char::from(*high).to_digit(16), char::from(*low).to_digit(16)) else {
                    return Err("\\x needs two hex digits".to_owned());
                };
                out.push((high << 4 | low) as u8);
                rest = after;
            }
            [b'\\', letter, after @ ..] => {
                out.push(match letter {
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b'\\' => b'\\',
                    other => {
                        return Err(format!(
                            "there is no escape \\{}: a backslash is written \\\\",
                            other.escape_ascii()
                        ));
                    }
                });
                rest = after;
            }
            [b'\\'] => return Err("a backslash at the end of a field: it is written \\\\".to_owned()),
            [b, after @ ..] => {
                out.push(*b);
                rest = after;
            }
        }
    }
}
