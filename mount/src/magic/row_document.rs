//! A row document and the one mutation of the row that it stands for (contract.md, section 3).
//!
//! ```text
//! null                                                  the row goes
//! {"cf:a": "v", "cf:b": null, "cf": null,               put, delete a column, delete a family
//!  "$incr": {"cf:n": 1}, "$append": {"cf:log": "x"},    HBase's Increment and Append
//!  "$if": {"cf:a": "old", "cf:b": null}}                all of it only if these columns hold exactly this, or nothing
//! ```

use super::forms::{Payload, Slot};
use crate::names;
use crate::ops::{FsError, FsResult};
use bytes::Bytes;
use cellfs::client::{Append, Condition, Delete, DeleteMarker, Increment, Mutation, Put, TimeRange, WriteTime};
use cellfs::schema::{ColumnTypes, Durability};
use cellfs::types::ColumnType;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use std::collections::HashSet;
use std::fmt;

/// A document that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RowDocument {
    /// `null`: the row goes.
    DeleteRow,
    /// Columns and families with what becomes of them, each list in the order of the text.
    Entries {
        /// Puts and deletes.
        entries: Vec<(String, Slot)>,
        /// `$if`
        condition: Option<Vec<(String, Slot)>>,
        /// `$incr`
        increments: Vec<(String, i64)>,
        /// `$append`
        appends: Vec<(String, Slot)>,
    },
}

/// What a document does, and on which condition.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RowChange {
    /// `$if`, if there is one.
    pub(super) condition: Option<Condition>,
    /// The mutations, in the order in which they apply.
    pub(super) mutations: Vec<Mutation>,
}

const TIME: WriteTime = WriteTime::AfterNewest;

fn wrong(what: String) -> FsError {
    FsError::new(libc::EINVAL, what)
}

fn column(name: &str) -> FsResult<(Bytes, Bytes)> {
    names::decode_column(name.as_bytes())
        .map(|(family, qualifier)| (Bytes::copy_from_slice(&family), Bytes::copy_from_slice(&qualifier)))
        .ok_or_else(|| wrong(format!("{name} spells no column: family:qualifier")))
}

impl RowDocument {
    /// The document as one mutation of `row`.
    ///
    /// # Errors
    /// EINVAL for what contradicts itself, with the reason.
    pub(super) fn change(self, row: &Bytes, types: &ColumnTypes) -> FsResult<RowChange> {
        let RowDocument::Entries { entries, condition, increments, appends } = self else {
            let delete = Delete { row_time: TIME, ..Delete::row(row.clone()) };
            return Ok(RowChange { condition: None, mutations: vec![Mutation::Delete(delete)] });
        };
        let condition = condition.map(|columns| condition_of(columns, types)).transpose()?;
        let mut targets = Targets::default();
        // Deletes first: what else the document writes is newer than what it deletes.
        let mut mutations = puts_and_deletes(row, entries, types, &mut targets)?;
        let mut amounts = Vec::with_capacity(increments.len());
        for (name, amount) in increments {
            let (family, qualifier) = targets.delta(&name)?;
            amounts.push((family, qualifier, amount));
        }
        let mut values = Vec::with_capacity(appends.len());
        for (name, slot) in appends {
            let (family, qualifier) = targets.delta(&name)?;
            let Slot::Value(payload) = slot else {
                return Err(wrong(format!("$append takes a text or bytes for {name}")));
            };
            let value = value_of(&name, payload, types.get(&family, &qualifier))?;
            values.push((family, qualifier, value));
        }
        let (row, time_range, ttl_millis) = (row.clone(), TimeRange::ALL, None);
        let durability = Durability::UseDefault;
        if !amounts.is_empty() {
            let row = row.clone();
            mutations.push(Mutation::Increment(Increment {
                row,
                amounts,
                time: TIME,
                time_range,
                ttl_millis,
                durability,
            }));
        }
        if !values.is_empty() {
            mutations.push(Mutation::Append(Append { row, values, time: TIME, time_range, ttl_millis, durability }));
        }
        Ok(RowChange { condition, mutations })
    }
}

/// The columns and families that a document has spoken of: nothing is to happen to one twice.
#[derive(Default)]
struct Targets {
    columns: HashSet<(Bytes, Bytes)>,
    deleted_families: HashSet<Bytes>,
}

impl Targets {
    /// A column of `$incr` or `$append`, whose outcome depends on what it holds.
    fn delta(&mut self, name: &str) -> FsResult<(Bytes, Bytes)> {
        let target = column(name)?;
        if self.deleted_families.contains(&target.0) {
            return Err(wrong(format!("{name} is changed by what it holds, and its family is deleted")));
        }
        if !self.columns.insert(target.clone()) {
            return Err(wrong(format!("{name} is there twice")));
        }
        Ok(target)
    }
}

fn value_of(name: &str, payload: Payload, of: Option<ColumnType>) -> FsResult<Bytes> {
    payload.bytes(of).map_err(|reason| wrong(format!("{name}: {reason}")))
}

fn puts_and_deletes(
    row: &Bytes,
    entries: Vec<(String, Slot)>,
    types: &ColumnTypes,
    targets: &mut Targets,
) -> FsResult<Vec<Mutation>> {
    let mut put = Put::new(row.clone());
    let mut delete = Delete::row(row.clone());
    for (name, slot) in entries {
        let is_family = !name.contains(':');
        if is_family && name.starts_with('$') {
            return Err(wrong(format!("there is no {name}: $if, $incr, $append")));
        }
        let (family, qualifier) = column(&if is_family { format!("{name}:") } else { name.clone() })
            .map_err(|_| wrong(format!("{name} spells no column (family:qualifier) and no family")))?;
        if is_family {
            targets.deleted_families.insert(family.clone());
        } else {
            targets.columns.insert((family.clone(), qualifier.clone()));
        }
        match slot {
            Slot::Null if is_family => delete.markers.push(DeleteMarker::Family { family, time: TIME }),
            Slot::Null => delete.markers.push(DeleteMarker::Column { family, qualifier, time: TIME }),
            Slot::Value(payload) if !is_family => {
                let value = value_of(&name, payload, types.get(&family, &qualifier))?;
                put = put.add_at(family, qualifier, TIME, value);
            }
            Slot::Value(_) => return Err(wrong(format!("{name} is a family; a value goes to {name}:qualifier"))),
            Slot::Versions(_) => return Err(wrong(format!("{name} takes one value, not a list"))),
        }
    }
    let mut mutations = Vec::new();
    if !delete.markers.is_empty() {
        mutations.push(Mutation::Delete(delete));
    }
    if !put.cells.is_empty() {
        mutations.push(Mutation::Put(put));
    }
    Ok(mutations)
}

fn condition_of(columns: Vec<(String, Slot)>, types: &ColumnTypes) -> FsResult<Condition> {
    let parsed = columns.into_iter().map(|(name, slot)| {
        let (family, qualifier) = column(&name)?;
        let value = match slot {
            Slot::Null => None,
            Slot::Value(payload) => Some(value_of(&name, payload, types.get(&family, &qualifier))?),
            Slot::Versions(_) => return Err(wrong(format!("$if compares {name} with one value or null"))),
        };
        Ok((family, qualifier, value))
    });
    Ok(Condition::AllEqual(parsed.collect::<FsResult<_>>()?))
}

impl<'de> Deserialize<'de> for RowDocument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RowDocument, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = RowDocument;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{\"cf:a\": \"v\", \"cf:b\": null}, or null for the whole row")
    }

    fn visit_unit<E: de::Error>(self) -> Result<RowDocument, E> {
        Ok(RowDocument::DeleteRow)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RowDocument, A::Error> {
        let mut names = HashSet::new();
        let (mut entries, mut condition, mut increments, mut appends) = (Vec::new(), None, None, None);
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "$if" => condition = Some(map.next_value::<Members<Slot>>()?.0),
                "$incr" => increments = Some(map.next_value::<Members<Amount>>()?.0),
                "$append" => appends = Some(map.next_value::<Members<Slot>>()?.0),
                _ => entries.push((name.clone(), map.next_value::<Slot>()?)),
            }
            if !names.insert(name.clone()) {
                return Err(de::Error::custom(format!("{name} is there twice")));
            }
        }
        let increments = increments.unwrap_or_default().into_iter().map(|(name, Amount(amount))| (name, amount));
        let increments = increments.collect();
        Ok(RowDocument::Entries { entries, condition, increments, appends: appends.unwrap_or_default() })
    }
}

/// An object's members in order, no name twice.
struct Members<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<T>, D::Error> {
        struct MembersVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for MembersVisitor<T> {
            type Value = Members<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of columns")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<T>, A::Error> {
                let mut members: Vec<(String, T)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, T>()? {
                    if members.iter().any(|(known, _)| *known == name) {
                        return Err(de::Error::custom(format!("{name} is there twice")));
                    }
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor(std::marker::PhantomData))
    }
}

/// What `$incr` adds.
struct Amount(i64);

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Amount, D::Error> {
        struct AmountVisitor;
        impl Visitor<'_> for AmountVisitor {
            type Value = Amount;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number of 64 bits for $incr")
            }

            fn visit_i64<E: de::Error>(self, amount: i64) -> Result<Amount, E> {
                Ok(Amount(amount))
            }

            fn visit_u64<E: de::Error>(self, amount: u64) -> Result<Amount, E> {
                i64::try_from(amount).map(Amount).map_err(|_| E::invalid_value(de::Unexpected::Unsigned(amount), &self))
            }
        }
        deserializer.deserialize_any(AmountVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::magic::forms::explain;

    fn change(text: &str) -> FsResult<RowChange> {
        let document: RowDocument =
            serde_json::from_str(text).map_err(|error| FsError::new(libc::EINVAL, explain(&error)))?;
        document.change(&Bytes::from_static(b"r"), &ColumnTypes::default())
    }

    #[test]
    fn documents_become_one_mutation_of_the_row() {
        let delete = Delete::row("r")
            .marker(DeleteMarker::Column { family: "cf".into(), qualifier: "b".into(), time: TIME })
            .marker(DeleteMarker::Family { family: "d".into(), time: TIME });
        let put = Put::new("r").add_at("cf", "a", TIME, "v").add_at("cf", "", TIME, &b"\xff"[..]);
        let plain = change(r#"{"cf:a": "v", "cf:b": null, "cf:": {"$b64": "/w=="}, "d": null}"#).unwrap();
        assert_eq!(plain.mutations, [Mutation::Delete(delete), Mutation::Put(put)]);
        assert_eq!(plain.condition, None);
        assert_eq!(change("{}").unwrap().mutations, []);
        let row = Delete { row_time: TIME, ..Delete::row("r") };
        assert_eq!(change("null").unwrap().mutations, [Mutation::Delete(row)]);
        let all = change(
            r#"{"$if": {"cf:a": "old", "cf:b": null}, "$incr": {"cf:n": -3}, "$append": {"cf:l": "x"}, "cf:a": ""}"#,
        );
        let RowChange { condition, mutations } = all.unwrap();
        let expected =
            vec![("cf".into(), "a".into(), Some(Bytes::from_static(b"old"))), ("cf".into(), "b".into(), None)];
        assert_eq!(condition, Some(Condition::AllEqual(expected)));
        let kinds: Vec<&str> = mutations
            .iter()
            .map(|mutation| match mutation {
                Mutation::Put(_) => "put",
                Mutation::Delete(_) => "delete",
                Mutation::Increment(increment) if increment.amounts[0].2 == -3 => "increment",
                Mutation::Append(append) if append.values[0].2 == "x" => "append",
                _ => "?",
            })
            .collect();
        assert_eq!(kinds, ["put", "increment", "append"]);
    }

    #[test]
    fn what_is_no_document_is_einval_with_the_reason() {
        let cases = [
            (r#"{"cf:a": 5}"#, "expected a text in quotes"),
            (r#"{"cf": "v"}"#, "cf is a family"),
            (r#"{"cf:a": [1]}"#, "invalid type"),
            (r#"{"cf:a": []}"#, "not a list"),
            (r#"{"cf:a": "x", "cf:a": "y"}"#, "twice"),
            (r#"{"a/b:c": "x"}"#, "spells no column"),
            (r#"{"$unless": null}"#, "there is no $unless: $if"),
            (r#"{"": null}"#, "spells no column"),
            ("[]", "expected {\"cf:a\""),
            (r#"{"$if": {"cf": null}}"#, "cf spells no column"),
            (r#"{"$if": {"cf:a": []}}"#, "with one value"),
            (r#"{"$if": null}"#, "an object of columns"),
            (r#"{"$if": {}, "$if": {}}"#, "$if is there twice"),
            (r#"{"$incr": {"cf:n": "1"}}"#, "a whole number"),
            (r#"{"$incr": {"cf:n": 1.5}}"#, "a whole number"),
            (r#"{"$incr": {"cf:n": 9223372036854775808}}"#, "a whole number"),
            (r#"{"$incr": {"cf:n": 1, "cf:n": 2}}"#, "cf:n is there twice"),
            (r#"{"$incr": {"cf:n": 1}, "cf:n": null}"#, "cf:n is there twice"),
            (r#"{"$incr": {"cf:n": 1}, "$append": {"cf:n": "x"}}"#, "cf:n is there twice"),
            (r#"{"$incr": {"cf:n": 1}, "cf": null}"#, "its family is deleted"),
            (r#"{"$append": {"cf:n": null}}"#, "$append takes a text"),
        ];
        for (text, expected) in cases {
            let error = change(text).unwrap_err();
            assert_eq!(error.errno, libc::EINVAL);
            assert!(error.reason.contains(expected), "{text}: {error}");
        }
    }
}
