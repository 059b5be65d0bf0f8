//! `.at/`: the past of the mount, of a table, of a row. What is shown are tables in a view, and the file system's.

use super::node::{MagicNode, TableHandle};
use super::time::parse_time;
use super::{Magic, MagicListing};
use crate::names::{self, RowName};
use crate::ops::{FsError, FsResult};
use bytes::Bytes;
use cellfs::Error;
use cellfs::client::TableName;

impl Magic {
    /// What a name in one of these directories leads to.
    pub(super) fn lookup_past(&self, directory: &MagicNode, name: &[u8]) -> FsResult<Option<MagicNode>> {
        let text = std::str::from_utf8(name).ok();
        Ok(match directory {
            MagicNode::Past => Some(MagicNode::PastRoot(self.moment(name)?)),
            MagicNode::PastRoot(millis) => {
                let Some(namespace) = text else { return Ok(None) };
                match self.store.namespace(namespace) {
                    Ok(_) => Some(MagicNode::PastNamespace(*millis, namespace.to_owned())),
                    Err(Error::NoSuchNamespace(_) | Error::InvalidArgument(_)) => None,
                    Err(error) => return Err(error.into()),
                }
            }
            MagicNode::PastNamespace(millis, namespace) => {
                let table = text.and_then(|text| TableName::new(namespace.as_str(), text).ok());
                let Some(table) = table else { return Ok(None) };
                match self.store.open_as_of(&table, *millis) {
                    Ok(view) => Some(MagicNode::View(TableHandle(view))),
                    Err(Error::NoSuchTable(_) | Error::NoSuchNamespace(_)) => None,
                    Err(error) => return Err(error.into()),
                }
            }
            MagicNode::TablePast(table) => {
                let view = self.store.open_as_of(&table.0.name(), self.moment(name)?)?;
                Some(MagicNode::View(TableHandle(view)))
            }
            MagicNode::RowPast(table, row) => {
                let view = self.store.open_as_of(&table.0.name(), self.moment(name)?)?;
                Some(MagicNode::ViewRow(TableHandle(view), row.clone()))
            }
            MagicNode::PastGone(table, millis) => {
                self.store.open_as_of(&table.0.name(), *millis)?;
                None
            }
            _ => None,
        })
    }

    fn moment(&self, name: &[u8]) -> FsResult<i64> {
        parse_time(&String::from_utf8_lossy(name), self.hooks.now_millis())
    }

    /// Lists one of these directories. Times are not listed: there is no end of them.
    pub(super) fn list_past(&self, directory: &MagicNode) -> FsResult<MagicListing> {
        let mut entries: Vec<(Bytes, MagicNode)> = Vec::new();
        match directory {
            MagicNode::PastRoot(millis) => {
                for namespace in self.store.list_namespaces()? {
                    let node = MagicNode::PastNamespace(*millis, namespace.clone());
                    entries.push((namespace.into_bytes().into(), node));
                }
            }
            MagicNode::PastNamespace(millis, namespace) => {
                for table in self.store.list_tables(namespace)? {
                    let node = match self.store.open_as_of(&table, *millis) {
                        Ok(view) => MagicNode::View(TableHandle(view)),
                        Err(Error::HistoryIncomplete { .. }) => {
                            MagicNode::PastGone(TableHandle(self.store.table(&table)?), *millis)
                        }
                        Err(_) => continue,
                    };
                    entries.push((table.qualifier.into_bytes().into(), node));
                }
            }
            MagicNode::PastGone(table, millis) => {
                self.store.open_as_of(&table.0.name(), *millis)?;
            }
            _ => {}
        }
        Ok(Box::new(entries.into_iter().map(Ok)))
    }

    /// The name of a snapshot that a file name stands for.
    ///
    /// # Errors
    /// EINVAL for names that no row could have.
    pub fn snapshot_name(&self, name: &[u8]) -> FsResult<Bytes> {
        match names::parse_row(name) {
            Some(RowName::Key(snapshot)) => Ok(snapshot),
            _ => Err(FsError::new(libc::EINVAL, format!("{} is no legal name of a snapshot", name.escape_ascii()))),
        }
    }
}
