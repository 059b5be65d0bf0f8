//! The primitives of the manifest's payload: variable-length numbers, byte strings, lists (docs/manifest-format.md).

use bytes::Bytes;

/// Why a payload does not decode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    /// The bytes contradict the format.
    Damaged(String),
    /// The bytes may be right, but say something this build does not know.
    Unknown(String),
}

/// The result of decoding.
pub(super) type Decoded<T> = std::result::Result<T, Malformed>;

/// Shorthand for [`Malformed::Damaged`].
pub(super) fn damaged<T>(what: impl Into<String>) -> Decoded<T> {
    Err(Malformed::Damaged(what.into()))
}

/// Appends primitives to a payload.
#[derive(Default)]
pub(super) struct Encoder {
    out: Vec<u8>,
}

impl Encoder {
    /// The payload.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    pub(super) fn byte(&mut self, value: u8) {
        self.out.push(value);
    }

    /// LEB128: seven bits a byte, the lowest first, the high bit set on all but the last.
    pub(super) fn unsigned(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.out.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    /// Zigzag (0, -1, 1, -2, ...), then as unsigned.
    pub(super) fn signed(&mut self, value: i64) {
        self.unsigned(((value << 1) ^ (value >> 63)) as u64);
    }

    pub(super) fn flag(&mut self, value: bool) {
        self.byte(u8::from(value));
    }

    /// Length, then the bytes.
    pub(super) fn bytes(&mut self, value: &[u8]) {
        self.unsigned(value.len() as u64);
        self.out.extend_from_slice(value);
    }

    pub(super) fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    /// What `body` appends, as a byte string.
    pub(super) fn nested(&mut self, body: impl FnOnce(&mut Encoder)) {
        let mut inner = Encoder::default();
        body(&mut inner);
        self.bytes(&inner.out);
    }
}

/// Takes primitives off a payload.
pub(super) struct Decoder<'a> {
    rest: &'a [u8],
}

impl<'a> Decoder<'a> {
    pub(super) fn new(payload: &'a [u8]) -> Decoder<'a> {
        Decoder { rest: payload }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Checks that nothing is left.
    pub(super) fn finish(self, what: &str) -> Decoded<()> {
        if self.rest.is_empty() { Ok(()) } else { damaged(format!("{what} is longer than its content")) }
    }

    pub(super) fn byte(&mut self) -> Decoded<u8> {
        let Some((first, rest)) = self.rest.split_first() else { return damaged("the payload ends early") };
        self.rest = rest;
        Ok(*first)
    }

    pub(super) fn unsigned(&mut self) -> Decoded<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        damaged("a number is wider than 64 bits")
    }

    pub(super) fn signed(&mut self) -> Decoded<i64> {
        let zigzag = self.unsigned()?;
        Ok((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64))
    }

    pub(super) fn narrow<T: TryFrom<u64>>(&mut self) -> Decoded<T> {
        T::try_from(self.unsigned()?).or_else(|_| damaged("a number is too large for its field"))
    }

    pub(super) fn flag(&mut self) -> Decoded<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => damaged(format!("a flag is {other}")),
        }
    }

    pub(super) fn slice(&mut self) -> Decoded<&'a [u8]> {
        let length = self.unsigned()?;
        let split = usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length));
        let Some((value, rest)) = split else { return damaged("a byte string is longer than what is left") };
        self.rest = rest;
        Ok(value)
    }

    pub(super) fn bytes(&mut self) -> Decoded<Bytes> {
        self.slice().map(Bytes::copy_from_slice)
    }

    pub(super) fn text(&mut self) -> Decoded<String> {
        match std::str::from_utf8(self.slice()?) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => damaged("a name is not UTF-8"),
        }
    }

    pub(super) fn nested(&mut self) -> Decoded<Decoder<'a>> {
        self.slice().map(Decoder::new)
    }
}
