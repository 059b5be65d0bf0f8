//! A table in memory: its name, schema and regions, and the way from a row to its region.

use crate::client::{Durability, TableAttributes, TableName};
use crate::error::{Error, Result};
use crate::region::{Region, RegionConfig, TableCounters};
use crate::schema::TableDescriptor;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A table that is open. Renames and schema changes happen to it; a dropped one stays dropped.
pub(super) struct TableState {
    pub(super) id: u64,
    name: RwLock<TableName>,
    descriptor: RwLock<Arc<TableDescriptor>>,
    attributes: RwLock<TableAttributes>,
    /// In key order; together they cover every row once.
    regions: RwLock<Arc<Vec<Arc<Region>>>>,
    pub(super) counters: Arc<TableCounters>,
    dropped: AtomicBool,
    /// Held by whatever replaces regions or the schema: split, truncate, drop, modify.
    pub(super) structure: Mutex<()>,
}

impl TableState {
    pub(super) fn new(
        id: u64,
        name: TableName,
        descriptor: Arc<TableDescriptor>,
        attributes: TableAttributes,
        regions: Vec<Arc<Region>>,
        counters: Arc<TableCounters>,
    ) -> TableState {
        TableState {
            id,
            name: RwLock::new(name),
            descriptor: RwLock::new(descriptor),
            attributes: RwLock::new(attributes),
            regions: RwLock::new(Arc::new(regions)),
            counters,
            dropped: AtomicBool::new(false),
            structure: Mutex::new(()),
        }
    }

    pub(super) fn name(&self) -> TableName {
        self.name.read().clone()
    }

    pub(super) fn set_name(&self, name: TableName) {
        *self.name.write() = name;
    }

    pub(super) fn descriptor(&self) -> Arc<TableDescriptor> {
        Arc::clone(&self.descriptor.read())
    }

    pub(super) fn set_descriptor(&self, descriptor: Arc<TableDescriptor>) {
        *self.descriptor.write() = descriptor;
    }

    pub(super) fn attributes(&self) -> TableAttributes {
        *self.attributes.read()
    }

    pub(super) fn set_attributes(&self, attributes: TableAttributes) {
        *self.attributes.write() = attributes;
    }

    /// The regions of this moment, in key order.
    pub(super) fn regions(&self) -> Arc<Vec<Arc<Region>>> {
        Arc::clone(&self.regions.read())
    }

    pub(super) fn set_regions(&self, mut regions: Vec<Arc<Region>>) {
        regions.sort_by(|left, right| left.start().cmp(right.start()));
        *self.regions.write() = Arc::new(regions);
    }

    /// Puts `daughters` in the place of one region.
    pub(super) fn replace_region(&self, parent: u64, daughters: Vec<Arc<Region>>) {
        let kept = self.regions().iter().filter(|region| region.id() != parent).cloned().collect::<Vec<_>>();
        self.set_regions(kept.into_iter().chain(daughters).collect());
    }

    /// The region that a row belongs to.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] once the table is dropped.
    pub(super) fn region_for(&self, row: &[u8]) -> Result<Arc<Region>> {
        self.check_exists()?;
        let regions = self.regions.read();
        let after = regions.partition_point(|region| &region.start()[..] <= row);
        match after.checked_sub(1).and_then(|index| regions.get(index)) {
            Some(region) => Ok(Arc::clone(region)),
            None => Err(Error::NoSuchTable(self.name().to_string())),
        }
    }

    /// The last region that has rows before `row`; before the end for `None`.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`] once the table is dropped.
    pub(super) fn region_before(&self, row: Option<&[u8]>) -> Result<Arc<Region>> {
        self.check_exists()?;
        let regions = self.regions.read();
        let after = row.map_or(regions.len(), |row| regions.partition_point(|region| &region.start()[..] < row));
        match after.checked_sub(1).and_then(|index| regions.get(index)) {
            Some(region) => Ok(Arc::clone(region)),
            None => Err(Error::NoSuchTable(self.name().to_string())),
        }
    }

    pub(super) fn check_exists(&self) -> Result<()> {
        if self.dropped.load(Ordering::Acquire) {
            return Err(Error::NoSuchTable(self.name().to_string()));
        }
        Ok(())
    }

    /// READONLY.
    ///
    /// # Errors
    /// [`Error::ReadOnly`].
    pub(super) fn check_not_read_only(&self) -> Result<()> {
        if self.descriptor.read().read_only {
            return Err(Error::ReadOnly { what: format!("the table {} is READONLY", self.name()) });
        }
        Ok(())
    }

    pub(super) fn set_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }
}

/// MEMSTORE_FLUSHSIZE in force.
pub(super) fn flush_size(descriptor: &TableDescriptor, config: &RegionConfig) -> u64 {
    descriptor.memstore_flush_size.unwrap_or(config.flush_size).max(1)
}

/// MAX_FILESIZE in force.
pub(super) fn max_file_size(descriptor: &TableDescriptor, config: &RegionConfig) -> u64 {
    descriptor.max_file_size.unwrap_or(config.max_file_size).max(1)
}

/// The durability in force: the request's, else the table's, else the store's.
pub(super) fn durability(asked: Durability, descriptor: &TableDescriptor, config: &RegionConfig) -> Durability {
    match (asked, descriptor.durability) {
        (Durability::UseDefault, Durability::UseDefault) => config.durability,
        (Durability::UseDefault, table) => table,
        (asked, _) => asked,
    }
}
