//! `.cf/`: the families of a table. The rows below a family are the file system's (`fs/family.rs`).

use super::hooks::Change;
use super::node::{MagicNode, TableHandle};
use super::{Magic, MagicListing};
use crate::names;
use crate::ops::{FsError, FsResult};
use bytes::Bytes;
use cellfs::schema::ROW_ATTRIBUTES_FAMILY;
use std::cell::Cell;

/// The family that a name spells, if the table has it.
pub(super) fn lookup(table: &TableHandle, name: &[u8]) -> Option<MagicNode> {
    let family = Bytes::copy_from_slice(&names::decode_family(name)?);
    table.0.descriptor().families.contains_key(&family).then(|| MagicNode::FamilyRows(table.clone(), family))
}

/// The families in the order of their names.
pub(super) fn list(table: &TableHandle) -> MagicListing {
    let table = table.clone();
    let families: Vec<Bytes> = table.0.descriptor().families.keys().cloned().collect();
    let own = families.into_iter().filter(|family| **family != *ROW_ATTRIBUTES_FAMILY);
    Box::new(own.map(move |family| {
        let name = Bytes::from(names::encode_family(&family).into_owned());
        Ok((name, MagicNode::FamilyRows(table.clone(), family)))
    }))
}

/// What became of a change of the families.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Changed,
    There,
    Missing,
    Last,
}

impl Magic {
    /// mkdir: a new family with HBase's defaults.
    ///
    /// # Errors
    /// EINVAL for a name that HBase does not allow, EEXIST for a family that is there; what the store says.
    pub fn add_family(&self, table: &TableHandle, name: &[u8]) -> FsResult<MagicNode> {
        let family = names::decode_family(name).map(|family| Bytes::copy_from_slice(&family)).ok_or_else(|| {
            FsError::new(libc::EINVAL, format!("{} is not a legal name of a family", name.escape_ascii()))
        })?;
        let outcome = Cell::new(Outcome::Changed);
        self.store.alter_table(&table.0.name(), &|present| {
            if present.families.contains_key(&family) {
                outcome.set(Outcome::There);
                return Ok(present.clone());
            }
            Ok(present.clone().family(family.clone(), Default::default()))
        })?;
        if outcome.get() == Outcome::There {
            return Err(FsError::new(libc::EEXIST, format!("the family {} exists", family.escape_ascii())));
        }
        self.schema_changed(table);
        Ok(MagicNode::FamilyRows(table.clone(), family))
    }

    /// rmdir: drops a family that holds no cell.
    ///
    /// # Errors
    /// ENOENT without the family, EPERM for the table's last one, ENOTEMPTY where it holds a cell; what the store says.
    pub fn drop_family(&self, table: &TableHandle, name: &[u8]) -> FsResult<()> {
        let family = names::decode_family(name).ok_or_else(FsError::not_found)?;
        let outcome = Cell::new(Outcome::Changed);
        self.store.alter_table(&table.0.name(), &|present| {
            let mut wanted = present.clone();
            let removed = wanted.families.remove(&*family);
            outcome.set(match removed {
                None => Outcome::Missing,
                Some(_) if wanted.families.keys().all(|left| **left == *ROW_ATTRIBUTES_FAMILY) => Outcome::Last,
                Some(_) => Outcome::Changed,
            });
            Ok(if outcome.get() == Outcome::Changed { wanted } else { present.clone() })
        })?;
        match outcome.get() {
            Outcome::Missing => Err(FsError::not_found()),
            Outcome::Last => Err(FsError::new(
                libc::EPERM,
                format!("{} is the last family of {}: a table has one at least", family.escape_ascii(), table.0.name()),
            )),
            _ => {
                self.schema_changed(table);
                Ok(())
            }
        }
    }

    fn schema_changed(&self, table: &TableHandle) {
        self.hooks.changed(Change::Schema { table: table.id(), cells: false });
        self.table_changed(table.id());
    }
}
