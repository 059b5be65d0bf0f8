//! Namespaces and tables by name, in memory.

use super::meta::meta_name;
use super::table_state::TableState;
use crate::client::{TableAttributes, TableName};
use crate::error::{Error, Result};
use crate::schema::NamespaceDescriptor;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A namespace.
#[derive(Clone)]
pub(super) struct NamespaceState {
    pub(super) id: u64,
    pub(super) descriptor: Arc<NamespaceDescriptor>,
    pub(super) attributes: TableAttributes,
}

/// What exists.
#[derive(Default)]
pub(super) struct Catalog {
    pub(super) namespaces: BTreeMap<String, NamespaceState>,
    pub(super) tables: BTreeMap<TableName, Arc<TableState>>,
}

impl Catalog {
    pub(super) fn namespace(&self, name: &str) -> Result<&NamespaceState> {
        self.namespaces.get(name).ok_or_else(|| Error::NoSuchNamespace(name.to_owned()))
    }

    pub(super) fn table(&self, name: &TableName) -> Result<Arc<TableState>> {
        if let Some(table) = self.tables.get(name) {
            return Ok(Arc::clone(table));
        }
        if *name == meta_name() {
            return Err(Error::NotAllowed(format!(
                "{name} shows the regions as they are: it has no past, and nobody changes it"
            )));
        }
        self.namespace(&name.namespace)?;
        Err(Error::NoSuchTable(name.to_string()))
    }

    pub(super) fn tables_of<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a TableName, &'a Arc<TableState>)> {
        self.tables.iter().filter(move |(name, _)| name.namespace == namespace)
    }

    pub(super) fn all_tables(&self) -> Vec<Arc<TableState>> {
        self.tables.values().cloned().collect()
    }
}
