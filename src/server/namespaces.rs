//! Namespaces: made, changed, dropped.

use super::StoreInner;
use super::catalog::NamespaceState;
use crate::client::TableAttributes;
use crate::error::{Error, Result};
use crate::manifest::{ManifestEdit, NamespaceEntry};
use crate::schema::NamespaceDescriptor;
use std::sync::Arc;

/// The namespace of tables made without one; cannot be dropped.
pub(super) const DEFAULT_NAMESPACE: &str = "default";
/// HBase's own namespace: found, but not listed, and nobody's to change.
pub(super) const SYSTEM_NAMESPACE: &str = "hbase";
/// Its identity: no manifest gives this one.
const SYSTEM_NAMESPACE_ID: u64 = 0;

impl StoreInner {
    pub(super) fn list_namespaces(&self) -> Vec<String> {
        self.catalog.read().namespaces.keys().cloned().collect()
    }

    pub(super) fn namespace(&self, name: &str) -> Result<(u64, Arc<NamespaceDescriptor>, TableAttributes)> {
        let catalog = self.catalog.read();
        if name == SYSTEM_NAMESPACE {
            let attributes = TableAttributes { mode: 0o555, ..catalog.namespace(DEFAULT_NAMESPACE)?.attributes };
            return Ok((SYSTEM_NAMESPACE_ID, Arc::default(), attributes));
        }
        let namespace = catalog.namespace(name)?;
        Ok((namespace.id, Arc::clone(&namespace.descriptor), namespace.attributes))
    }

    pub(super) fn create_namespace(
        &self,
        name: &str,
        descriptor: NamespaceDescriptor,
        attributes: TableAttributes,
    ) -> Result<()> {
        crate::client::check_namespace_name(name)?;
        let _ddl = self.ddl.lock();
        self.services.check_writable(false)?;
        if name == SYSTEM_NAMESPACE || self.catalog.read().namespaces.contains_key(name) {
            return Err(Error::NamespaceExists(name.to_owned()));
        }
        let (id, descriptor) = (self.new_id(), Arc::new(descriptor));
        let entry = NamespaceEntry { id, name: name.to_owned(), descriptor: Arc::clone(&descriptor), attributes };
        self.services.commit(&[ManifestEdit::CreateNamespace(entry)])?;
        self.catalog.write().namespaces.insert(name.to_owned(), NamespaceState { id, descriptor, attributes });
        Ok(())
    }

    pub(super) fn modify_namespace(&self, name: &str, descriptor: NamespaceDescriptor) -> Result<()> {
        let _ddl = self.ddl.lock();
        let id = self.own_namespace(name)?;
        let descriptor = Arc::new(descriptor);
        self.services.commit(&[ManifestEdit::ModifyNamespace { id, descriptor: Arc::clone(&descriptor) }])?;
        if let Some(namespace) = self.catalog.write().namespaces.get_mut(name) {
            namespace.descriptor = descriptor;
        }
        Ok(())
    }

    pub(super) fn drop_namespace(&self, name: &str) -> Result<()> {
        let _ddl = self.ddl.lock();
        let id = self.own_namespace(name)?;
        if name == DEFAULT_NAMESPACE {
            return Err(Error::NotAllowed("the namespace default cannot be dropped".to_owned()));
        }
        if self.catalog.read().tables_of(name).next().is_some() {
            return Err(Error::NamespaceNotEmpty(name.to_owned()));
        }
        self.services.commit(&[ManifestEdit::DropNamespace { id }])?;
        self.catalog.write().namespaces.remove(name);
        Ok(())
    }

    pub(super) fn set_namespace_attributes(&self, name: &str, attributes: TableAttributes) -> Result<()> {
        let _ddl = self.ddl.lock();
        let id = self.own_namespace(name)?;
        self.services.commit(&[ManifestEdit::SetNamespaceAttributes { id, attributes }])?;
        if let Some(namespace) = self.catalog.write().namespaces.get_mut(name) {
            namespace.attributes = attributes;
        }
        Ok(())
    }

    /// The identity of a namespace that may be changed.
    fn own_namespace(&self, name: &str) -> Result<u64> {
        self.services.check_writable(true)?;
        if name == SYSTEM_NAMESPACE {
            return Err(Error::NotAllowed("the namespace hbase is HBase's own".to_owned()));
        }
        Ok(self.catalog.read().namespace(name)?.id)
    }

    /// Refuses tables or regions over the namespace's limits (MAXTABLES, MAXREGIONS); `regions` and `tables` are to be added.
    pub(super) fn check_quota(&self, namespace: &str, tables: usize, regions: usize) -> Result<()> {
        let catalog = self.catalog.read();
        let descriptor = &catalog.namespace(namespace)?.descriptor;
        let tables = tables + catalog.tables_of(namespace).count();
        if let Some(most) = descriptor.max_tables.filter(|most| tables > *most as usize) {
            return Err(Error::QuotaExceeded(format!("the namespace {namespace} may hold {most} tables (MAXTABLES)")));
        }
        let regions = regions + catalog.tables_of(namespace).map(|(_, table)| table.regions().len()).sum::<usize>();
        if let Some(most) = descriptor.max_regions.filter(|most| regions > *most as usize) {
            return Err(Error::QuotaExceeded(format!(
                "the namespace {namespace} may hold {most} regions (MAXREGIONS)"
            )));
        }
        Ok(())
    }
}
