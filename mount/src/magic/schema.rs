//! `.schema` of tables and namespaces: shown, edited, replaced (contract.md, section 7).

use super::file::{MagicFile, MagicOpened};
use super::hooks::{Change, MountHooks};
use super::node::TableHandle;
use crate::names;
use crate::ops::{FsError, FsResult};
use bytes::Bytes;
use cellfs::Error;
use cellfs::client::{Admin, Scan, Table};
use cellfs::schema::{
    ColumnFamilyDescriptor, FOREVER, KeySpelling, ROW_ATTRIBUTES_FAMILY, TableDescriptor, describe_namespace,
    describe_table, parse_namespace, parse_table,
};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The largest schema text that is taken, in bytes.
const MAX_TEXT: usize = 16 << 20;

/// How long an unlinked `.schema` stays away at most.
const HIDDEN_FOR: Duration = Duration::from_secs(60);

/// Keys as the mount spells them in names.
pub(crate) struct NameSpelling;

impl KeySpelling for NameSpelling {
    fn spell_row(&self, row: &[u8]) -> String {
        String::from_utf8_lossy(&names::encode_row(row)).into_owned()
    }

    fn parse_row(&self, text: &str) -> Option<Bytes> {
        names::decode_row(text.as_bytes()).map(|row| Bytes::copy_from_slice(&row))
    }

    fn spell_family(&self, family: &[u8]) -> String {
        let mut name = names::encode_column(family, b"");
        name.pop();
        String::from_utf8_lossy(&name).into_owned()
    }

    fn parse_family(&self, text: &str) -> Option<Bytes> {
        let (family, qualifier) = names::decode_column(format!("{text}:").as_bytes())
            .map(|(family, qualifier)| (Bytes::copy_from_slice(&family), qualifier.into_owned()))?;
        qualifier.is_empty().then_some(family)
    }

    fn spell_qualifier(&self, qualifier: &[u8]) -> String {
        let name = names::encode_column(b"f", qualifier);
        String::from_utf8_lossy(name.get(2..).unwrap_or_default()).into_owned()
    }

    fn parse_qualifier(&self, text: &str) -> Option<Bytes> {
        names::decode_column(format!("f:{text}").as_bytes()).map(|(_, qualifier)| Bytes::copy_from_slice(&qualifier))
    }
}

/// The tables whose `.schema` was unlinked, with when.
#[derive(Default)]
pub(super) struct HiddenSchemas {
    tables: Mutex<HashMap<u64, Duration>>,
}

impl HiddenSchemas {
    /// Hides a table's `.schema`.
    pub(super) fn hide(&self, table: u64, now: Duration) {
        self.tables.lock().insert(table, now);
    }

    /// Shows it again.
    pub(super) fn show(&self, table: u64) {
        self.tables.lock().remove(&table);
    }

    /// Whether it is hidden still.
    pub(super) fn is_hidden(&self, table: u64, now: Duration) -> bool {
        let mut tables = self.tables.lock();
        let hidden = tables.get(&table).is_some_and(|since| now.saturating_sub(*since) < HIDDEN_FOR);
        if !hidden {
            tables.remove(&table);
        }
        hidden
    }
}

/// Whose schema it is.
#[derive(Clone)]
pub(super) enum SchemaOwner {
    /// A table's.
    Table(TableHandle),
    /// A namespace's.
    Namespace(String),
}

impl SchemaOwner {
    /// The text as it is now.
    ///
    /// # Errors
    /// What the store says.
    pub(super) fn text(&self, store: &dyn Admin) -> FsResult<String> {
        match self {
            SchemaOwner::Table(table) => {
                let splits = current_splits(store, table)?;
                Ok(describe_table(&table.0.descriptor(), &splits, &NameSpelling))
            }
            SchemaOwner::Namespace(name) => Ok(describe_namespace(&store.namespace(name)?.1)),
        }
    }

    /// Replaces the schema by what `text` says, all of it or nothing.
    ///
    /// # Errors
    /// EINVAL with the line; ENOTEMPTY for a family that is left out but holds cells; what the store says.
    pub(super) fn replace(&self, text: &[u8], store: &dyn Admin, hooks: &dyn MountHooks) -> FsResult<()> {
        let text = std::str::from_utf8(text).map_err(|error| {
            let line = 1 + text.iter().take(error.valid_up_to()).filter(|b| **b == b'\n').count();
            FsError::new(libc::EINVAL, format!("line {line}: a schema is UTF-8 text"))
        })?;
        match self {
            SchemaOwner::Table(table) => replace_table(table, text, store, hooks),
            SchemaOwner::Namespace(name) => Ok(store.modify_namespace(name, parse_namespace(text)?)?),
        }
    }
}

fn current_splits(store: &dyn Admin, table: &TableHandle) -> FsResult<Vec<Bytes>> {
    let regions = store.regions(&table.0.name())?;
    Ok(regions.into_iter().map(|region| region.start).filter(|start| !start.is_empty()).collect())
}

fn replace_table(table: &TableHandle, text: &str, store: &dyn Admin, hooks: &dyn MountHooks) -> FsResult<()> {
    let wanted = parse_table(text, &NameSpelling)?;
    let (name, before) = (table.0.name(), table.0.descriptor());
    // A family that is left out goes only if it holds no cell, which is looked at while nobody writes.
    store.alter_table(&name, &|present| {
        let mut descriptor = wanted.descriptor.clone();
        if let Some(hidden) = present.families.get(ROW_ATTRIBUTES_FAMILY) {
            descriptor.families.insert(Bytes::from_static(ROW_ATTRIBUTES_FAMILY), hidden.clone());
        }
        Ok(descriptor)
    })?;
    if let Some(splits) = wanted.splits
        && splits != current_splits(store, table)?
    {
        let empty = holds_no_cell(table.0.as_ref())?;
        let split =
            if empty { store.presplit_table(&name, &splits) } else { Err(Error::TableNotEmpty(name.to_string())) };
        match split {
            Ok(()) => {}
            Err(Error::TableNotEmpty(_)) => {
                let path = format!("/{}/{}/.schema", name.namespace, name.qualifier);
                hooks.remark(
                    "write",
                    &path,
                    "SPLITS is ignored: the table holds cells, and its regions split by themselves",
                );
            }
            Err(error) => return Err(error.into()),
        }
    }
    hooks.changed(Change::Schema { table: table.id(), cells: !same_lifetimes(&before, &table.0.descriptor()) });
    Ok(())
}

/// True if nothing visible is stored.
fn holds_no_cell(table: &dyn Table) -> FsResult<bool> {
    let scan = Scan { limit: Some(1), first_cell_only: true, cache_blocks: false, ..Scan::new() };
    Ok(table.scan(&scan)?.next()?.is_none())
}

/// True if cells of both schemas vanish by themselves at the same times.
fn same_lifetimes(one: &TableDescriptor, other: &TableDescriptor) -> bool {
    let lifetime = |family: &ColumnFamilyDescriptor| (family.ttl_seconds, family.min_versions);
    let common = one.families.iter().filter_map(|(name, family)| Some((family, other.families.get(name)?)));
    common.into_iter().all(|(family, other)| lifetime(family) == lifetime(other)) && expiring(one) == expiring(other)
}

/// True if cells of some family vanish by themselves.
fn expiring(descriptor: &TableDescriptor) -> bool {
    descriptor.families.values().any(|family| family.ttl_seconds != FOREVER)
}

/// An open `.schema`: what is written takes effect when it is closed.
pub(super) struct SchemaFile {
    owner: SchemaOwner,
    store: Arc<dyn Admin>,
    hooks: Arc<dyn MountHooks>,
    hidden: Arc<HiddenSchemas>,
    content: Vec<u8>,
    dirty: bool,
    appends: bool,
}

impl SchemaFile {
    /// Opens for writing, over the present text or an empty one.
    pub(super) fn open(
        owner: SchemaOwner,
        store: Arc<dyn Admin>,
        hooks: Arc<dyn MountHooks>,
        hidden: Arc<HiddenSchemas>,
        content: Vec<u8>,
        flags: i32,
    ) -> SchemaFile {
        let appends = flags & libc::O_APPEND != 0;
        SchemaFile { owner, store, hooks, hidden, content, dirty: false, appends }
    }
}

impl MagicFile for SchemaFile {
    fn read(&mut self, offset: u64, size: usize) -> FsResult<Bytes> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.content.len());
        let end = start.saturating_add(size).min(self.content.len());
        Ok(Bytes::copy_from_slice(self.content.get(start..end).unwrap_or(&[])))
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> FsResult<usize> {
        let start = if self.appends { self.content.len() as u64 } else { offset };
        let end = usize::try_from(start).unwrap_or(usize::MAX).saturating_add(data.len());
        if end > MAX_TEXT {
            return Err(FsError::new(libc::EFBIG, format!("a schema is at most {} MB", MAX_TEXT >> 20)));
        }
        if self.content.len() < end {
            self.content.resize(end, b' ');
        }
        if let Some(target) = self.content.get_mut(end - data.len()..end) {
            target.copy_from_slice(data);
        }
        self.dirty = true;
        Ok(data.len())
    }

    fn truncate(&mut self, size: u64) -> FsResult<()> {
        if size > MAX_TEXT as u64 {
            return Err(FsError::new(libc::EFBIG, format!("a schema is at most {} MB", MAX_TEXT >> 20)));
        }
        self.content.resize(usize::try_from(size).unwrap_or(0), b' ');
        self.dirty = true;
        Ok(())
    }

    fn flush(&mut self) -> FsResult<()> {
        // An empty text is an editor's first step, never a schema.
        if !self.dirty || self.content.trim_ascii().is_empty() {
            return Ok(());
        }
        self.dirty = false;
        self.owner.replace(&self.content, self.store.as_ref(), self.hooks.as_ref())?;
        if let SchemaOwner::Table(table) = &self.owner {
            self.hidden.show(table.id());
        }
        Ok(())
    }

    fn size(&self) -> Option<u64> {
        Some(self.content.len() as u64)
    }

    fn opened(&self) -> MagicOpened {
        MagicOpened { direct_io: true, no_flush: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_and_rows_are_spelled_as_names() {
        for family in [&b"cf"[..], b"a b", b"100%", b"\xff"] {
            let spelled = NameSpelling.spell_family(family);
            assert_eq!(NameSpelling.parse_family(&spelled).as_deref(), Some(family), "{spelled}");
        }
        for bad in ["", "a:b", "%41", "a/b", ".x"] {
            assert_eq!(NameSpelling.parse_family(bad), None, "{bad}");
        }
        assert_eq!(NameSpelling.spell_row(b".a/b"), "%2Ea%2Fb");
    }

    #[test]
    fn a_hidden_schema_is_back_after_a_minute_or_when_shown() {
        let hidden = HiddenSchemas::default();
        hidden.hide(7, Duration::from_secs(10));
        assert!(hidden.is_hidden(7, Duration::from_secs(69)) && !hidden.is_hidden(8, Duration::from_secs(69)));
        assert!(!hidden.is_hidden(7, Duration::from_secs(70)));
        hidden.hide(7, Duration::from_secs(80));
        hidden.show(7);
        assert!(!hidden.is_hidden(7, Duration::from_secs(80)));
    }
}
