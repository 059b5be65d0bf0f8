//! JSON as rows use it: values are text where they are valid UTF-8, else `{"$b64": "..."}` (RFC 4648, padded).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use cellfs::cell::CellType;
use cellfs::types::{ColumnType, JsonForm};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// The key that marks bytes in base64.
const BASE64: &str = "$b64";

/// Appends a JSON string.
pub fn push_string(text: &str, out: &mut Vec<u8>) {
    // Writing a string to memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Appends a value: a JSON string, or base64 where it is no text.
pub fn push_value(value: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(value) {
        Ok(text) => push_string(text, out),
        Err(_) => push_base64(value, out),
    }
}

/// Appends a value as its column's type; what is no value of the type is shown as bytes, so that it is taken back as they are.
pub fn push_typed(value: &[u8], of: Option<ColumnType>, out: &mut Vec<u8>) {
    let Some(of) = of else { return push_value(value, out) };
    match of.decode(value) {
        Ok(text) => match of.json_form() {
            JsonForm::Boolean => out.extend_from_slice(text.as_bytes()),
            JsonForm::Number if text.ends_with(|c: char| c.is_ascii_digit()) => out.extend_from_slice(text.as_bytes()),
            _ => push_string(&text, out),
        },
        Err(_) => push_base64(value, out),
    }
}

fn push_base64(value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"$b64\": \"");
    out.extend_from_slice(STANDARD.encode(value).as_bytes());
    out.extend_from_slice(b"\"}");
}

/// A value as JSON has it; what bytes it is depends on the column's type.
#[derive(Debug, PartialEq, Eq)]
pub enum Payload {
    /// `{"$b64": "..."}`: these bytes, whatever the type.
    Bytes(Bytes),
    /// A text in quotes.
    Text(String),
    /// A number, `true` or `false`: only a type knows what to make of it.
    Plain(String),
}

impl Payload {
    /// The bytes in a column of type `of`.
    ///
    /// # Errors
    /// Why the type has no such value.
    pub fn bytes(self, of: Option<ColumnType>) -> Result<Bytes, String> {
        match (self, of) {
            (Payload::Bytes(bytes), _) => Ok(bytes),
            (Payload::Text(text), None) => Ok(text.into()),
            (Payload::Plain(text), None) => {
                Err(format!("{text}: expected a text in quotes or {{\"$b64\": \"...\"}}, for the column has no type"))
            }
            (Payload::Text(text) | Payload::Plain(text), Some(of)) => {
                of.encode(&text).map_err(|error| error.to_string())
            }
        }
    }
}

/// What stands for a column: nothing, a value, or versions.
#[derive(Debug, PartialEq, Eq)]
pub enum Slot {
    /// `null`
    Null,
    /// A value.
    Value(Payload),
    /// Versions with their timestamps.
    Versions(Vec<SlotVersion>),
}

/// One version in a list.
#[derive(Debug, PartialEq, Eq)]
pub struct SlotVersion {
    /// Its timestamp.
    pub timestamp: i64,
    /// A put or which marker.
    pub cell_type: CellType,
    /// The value; empty for markers.
    pub value: Payload,
}

impl<'de> Deserialize<'de> for Slot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Slot, D::Error> {
        deserializer.deserialize_any(SlotVisitor)
    }
}

struct SlotVisitor;

impl<'de> Visitor<'de> for SlotVisitor {
    type Value = Slot;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text in quotes or {\"$b64\": \"...\"}")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Slot, E> {
        Ok(Slot::Null)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Slot, E> {
        Ok(Slot::Value(Payload::Text(text.to_owned())))
    }

    fn visit_string<E: de::Error>(self, text: String) -> Result<Slot, E> {
        Ok(Slot::Value(Payload::Text(text)))
    }

    fn visit_bool<E: de::Error>(self, on: bool) -> Result<Slot, E> {
        Ok(Slot::Value(Payload::Plain(on.to_string())))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Slot, E> {
        Ok(Slot::Value(Payload::Plain(number.to_string())))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Slot, E> {
        Ok(Slot::Value(Payload::Plain(number.to_string())))
    }

    fn visit_f64<E: de::Error>(self, number: f64) -> Result<Slot, E> {
        Ok(Slot::Value(Payload::Plain(format!("{number:?}"))))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Slot, A::Error> {
        base64_of(map).map(|bytes| Slot::Value(Payload::Bytes(bytes)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Slot, A::Error> {
        let mut versions = Vec::new();
        while let Some(version) = list.next_element()? {
            versions.push(version);
        }
        Ok(Slot::Versions(versions))
    }
}

/// `{"$b64": "..."}`
fn base64_of<'de, A: MapAccess<'de>>(mut map: A) -> Result<Bytes, A::Error> {
    let mut bytes = None;
    while let Some(key) = map.next_key::<String>()? {
        if key != BASE64 || bytes.is_some() {
            return Err(de::Error::custom(format!(
                "there is no {key:?} in a value: it is text or {{\"$b64\": \"...\"}}"
            )));
        }
        let text: String = map.next_value()?;
        let decoded = STANDARD.decode(&text).map_err(|error| de::Error::custom(format!("$b64: {error}")))?;
        bytes = Some(Bytes::from(decoded));
    }
    bytes.ok_or_else(|| de::Error::custom("an object without $b64 is no value"))
}

impl<'de> Deserialize<'de> for SlotVersion {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SlotVersion, D::Error> {
        deserializer.deserialize_map(VersionVisitor)
    }
}

struct VersionVisitor;

impl<'de> Visitor<'de> for VersionVisitor {
    type Value = SlotVersion;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{\"ts\": N, \"v\": value} or {\"ts\": N, \"del\": type}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<SlotVersion, A::Error> {
        let (mut timestamp, mut value, mut marker) = (None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "ts" if timestamp.is_none() => timestamp = Some(map.next_value::<i64>()?),
                "v" if value.is_none() => match map.next_value::<Slot>()? {
                    Slot::Value(payload) => value = Some(payload),
                    _ => return Err(de::Error::custom("v is a text in quotes or {\"$b64\": \"...\"}")),
                },
                "del" if marker.is_none() => {
                    let word: String = map.next_value()?;
                    let kind = super::word_type(word.as_bytes()).filter(|kind| kind.is_delete());
                    marker = Some(kind.ok_or_else(|| {
                        de::Error::custom(format!("there is no del {word:?}: column version family family-version"))
                    })?);
                }
                _ => return Err(de::Error::custom(format!("there is no {key:?} in a version, or it is there twice"))),
            }
        }
        let timestamp = timestamp.ok_or_else(|| de::Error::custom("a version without ts"))?;
        let timestamp = super::check_timestamp(timestamp).map_err(de::Error::custom)?;
        match (value, marker) {
            (Some(value), None) => Ok(SlotVersion { timestamp, cell_type: CellType::Put, value }),
            (None, Some(cell_type)) => Ok(SlotVersion { timestamp, cell_type, value: Payload::Bytes(Bytes::new()) }),
            _ => Err(de::Error::custom("a version has either v or del")),
        }
    }
}
