//! `.row.json`: the whole row as one JSON object; written, one atomic mutation of the row (contract.md, section 3).

use super::access::{Viewer, carry_on};
use super::file::{MagicFile, MagicOpened, slice};
use super::forms::{Slot, explain, push_string, push_value};
use super::hooks::{Change, MountHooks};
use super::node::TableHandle;
use crate::names;
use crate::ops::{FsError, FsResult};
use bytes::Bytes;
use cellfs::client::{Delete, DeleteMarker, Get, Mutation, Put, RowMutations, WriteTime};
use serde::de::{self, Deserialize, Deserializer, MapAccess, Visitor};
use std::fmt;
use std::sync::Arc;

/// The largest document that is taken, in bytes.
const MAX_DOCUMENT: usize = 300 << 20;

/// The row as text: an object with a column a line, in key order, and a newline. What the viewer may not read is left out.
///
/// # Errors
/// What the store says.
pub(super) fn row_text(
    table: &TableHandle,
    row: &Bytes,
    hooks: &dyn MountHooks,
    mut viewer: Option<&mut Viewer>,
) -> FsResult<Bytes> {
    let found = table.0.get(&Get::new(row.clone()))?;
    let hides = hooks.hides_any(table.id());
    let mut out = vec![b'{'];
    let mut first = true;
    for cell in &found.cells {
        let hidden = hides && hooks.is_hidden(table.id(), row, cell.family(), cell.qualifier());
        if hidden || !viewer.as_mut().is_none_or(|viewer| viewer.may_read(cell)) {
            continue;
        }
        out.extend_from_slice(if first { b"\n  " } else { b",\n  " });
        first = false;
        push_string(&String::from_utf8_lossy(&names::encode_column(cell.family(), cell.qualifier())), &mut out);
        out.extend_from_slice(b": ");
        push_value(cell.value(), &mut out);
    }
    out.extend_from_slice(if first { b"}\n" } else { b"\n}\n" });
    Ok(out.into())
}

/// A `.row.json` that is open for writing. A document runs in the write(2) that completes it; what is incomplete at close is an error there.
pub(super) struct RowJsonFile {
    table: TableHandle,
    row: Bytes,
    hooks: Arc<dyn MountHooks>,
    content: Bytes,
    written: Vec<u8>,
}

impl RowJsonFile {
    /// Opens the row; `content` is what reading gives.
    pub(super) fn open(table: TableHandle, row: Bytes, hooks: Arc<dyn MountHooks>, content: Bytes) -> RowJsonFile {
        RowJsonFile { table, row, hooks, content, written: Vec::new() }
    }

    fn run(&mut self, document: Document) -> FsResult<()> {
        let mut mutations = document.mutations(&self.row)?;
        if mutations.is_empty() {
            return Ok(());
        }
        for mutation in &mut mutations {
            if let Mutation::Put(put) = mutation {
                carry_on(&self.table, &self.row, &mut put.cells)?;
            }
        }
        self.table.0.mutate_row(RowMutations { row: self.row.clone(), mutations })?;
        self.hooks.changed(Change::Rows { table: self.table.id(), rows: vec![self.row.clone()] });
        Ok(())
    }
}

impl MagicFile for RowJsonFile {
    fn read(&mut self, offset: u64, size: usize) -> FsResult<Bytes> {
        Ok(slice(&self.content, offset, size))
    }

    fn write(&mut self, _offset: u64, data: &[u8]) -> FsResult<usize> {
        if self.written.len() + data.len() > MAX_DOCUMENT {
            return Err(FsError::new(libc::EFBIG, format!("a row document is at most {} MB", MAX_DOCUMENT >> 20)));
        }
        self.written.extend_from_slice(data);
        let text = self.written.trim_ascii();
        // Only what may be whole is parsed, so that a long document is not parsed with each piece of it.
        if text.is_empty() || !(text.ends_with(b"}") || text.ends_with(b"null")) {
            return Ok(data.len());
        }
        match serde_json::from_slice::<Document>(text) {
            Ok(document) => {
                self.written.clear();
                self.run(document)?;
                Ok(data.len())
            }
            Err(error) if error.is_eof() => Ok(data.len()),
            Err(error) => {
                self.written.clear();
                Err(FsError::new(libc::EINVAL, explain(&error)))
            }
        }
    }

    fn truncate(&mut self, _size: u64) -> FsResult<()> {
        self.written.clear();
        Ok(())
    }

    fn flush(&mut self) -> FsResult<()> {
        let written = std::mem::take(&mut self.written);
        let text = written.trim_ascii();
        if text.is_empty() {
            return Ok(());
        }
        match serde_json::from_slice::<Document>(text) {
            Ok(document) => self.run(document),
            Err(error) => Err(FsError::new(libc::EINVAL, explain(&error))),
        }
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn opened(&self) -> MagicOpened {
        MagicOpened { direct_io: true, no_flush: false }
    }
}

/// A row document that was read.
#[derive(Debug, PartialEq, Eq)]
enum Document {
    /// `null`: the row goes.
    DeleteRow,
    /// Keys with what becomes of them, in the order of the text.
    Entries(Vec<(String, Slot)>),
}

impl Document {
    fn mutations(self, row: &Bytes) -> FsResult<Vec<Mutation>> {
        let wrong = |what: String| FsError::new(libc::EINVAL, what);
        let Document::Entries(entries) = self else {
            return Ok(vec![Mutation::Delete(Delete { row_time: WriteTime::AfterNewest, ..Delete::row(row.clone()) })]);
        };
        let mut put = Put::new(row.clone());
        let mut delete = Delete::row(row.clone());
        let time = WriteTime::AfterNewest;
        for (name, slot) in entries {
            let is_family = !name.contains(':');
            let column = if is_family { format!("{name}:") } else { name.clone() };
            let (family, qualifier) = names::decode_column(column.as_bytes())
                .map(|(family, qualifier)| (Bytes::copy_from_slice(&family), Bytes::copy_from_slice(&qualifier)))
                .ok_or_else(|| wrong(format!("{name} spells no column (family:qualifier) and no family")))?;
            match slot {
                Slot::Null if is_family => delete.markers.push(DeleteMarker::Family { family, time }),
                Slot::Null => delete.markers.push(DeleteMarker::Column { family, qualifier, time }),
                Slot::Value(value) if !is_family => put = put.add_at(family, qualifier, time, value),
                Slot::Value(_) => return Err(wrong(format!("{name} is a family; a value goes to {name}:qualifier"))),
                Slot::Versions(_) => return Err(wrong(format!("{name} takes one value, not a list"))),
            }
        }
        // Deletes first: a put of the same document is newer than what the document deletes.
        let mut mutations = Vec::new();
        if !delete.markers.is_empty() {
            mutations.push(Mutation::Delete(delete));
        }
        if !put.cells.is_empty() {
            mutations.push(Mutation::Put(put));
        }
        Ok(mutations)
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Document, D::Error> {
        deserializer.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{\"cf:a\": \"v\", \"cf:b\": null}, or null for the whole row")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Document, E> {
        Ok(Document::DeleteRow)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
        let mut entries: Vec<(String, Slot)> = Vec::new();
        let mut names = std::collections::HashSet::new();
        while let Some((name, slot)) = map.next_entry::<String, Slot>()? {
            if !names.insert(name.clone()) {
                return Err(de::Error::custom(format!("{name} is there twice")));
            }
            entries.push((name, slot));
        }
        Ok(Document::Entries(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutations(text: &str) -> FsResult<Vec<Mutation>> {
        let document: Document =
            serde_json::from_str(text).map_err(|error| FsError::new(libc::EINVAL, explain(&error)))?;
        document.mutations(&Bytes::from_static(b"r"))
    }

    #[test]
    fn documents_become_one_mutation_of_the_row() {
        let time = WriteTime::AfterNewest;
        let delete = Delete::row("r")
            .marker(DeleteMarker::Column { family: "cf".into(), qualifier: "b".into(), time })
            .marker(DeleteMarker::Family { family: "d".into(), time });
        let put = Put::new("r").add_at("cf", "a", time, "v").add_at("cf", "", time, &b"\xff"[..]);
        assert_eq!(
            mutations(r#"{"cf:a": "v", "cf:b": null, "cf:": {"$b64": "/w=="}, "d": null}"#).unwrap(),
            [Mutation::Delete(delete), Mutation::Put(put)]
        );
        assert_eq!(mutations("{}").unwrap(), []);
        let row = Delete { row_time: time, ..Delete::row("r") };
        assert_eq!(mutations("null").unwrap(), [Mutation::Delete(row)]);
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
            (r#"{"$if": {"cf:a": "x"}}"#, "no \"cf:a\" in a value"),
            (r#"{"": null}"#, "spells no column"),
            ("[]", "expected {\"cf:a\""),
        ];
        for (text, expected) in cases {
            let error = mutations(text).unwrap_err();
            assert_eq!(error.errno, libc::EINVAL);
            assert!(error.reason.contains(expected), "{text}: {error}");
        }
    }
}
