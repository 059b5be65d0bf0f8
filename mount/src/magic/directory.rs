//! Which dot names there are: lookups and listings.

use super::node::{ImportForm, ImportMode, InstanceFile, MagicNode, TableHandle};
use super::path::{WHOLE, whole_name};
use super::scan::{ScanForm, ScanParts};
use super::{Magic, MagicListing, Place, family, guide, instance, typed, versions, via};
use crate::ops::{FsError, FsResult};
use bytes::Bytes;
use cellfs::types::{ColumnType, KeyScheme};
use std::sync::Arc;

impl Magic {
    /// Finds a name; `None` where there is none. Of the names in namespaces, tables and rows only those that begin with a dot are asked for.
    /// A hidden `.schema` is found all the same: whether it shows is [`Magic::schema_is_visible`].
    ///
    /// # Errors
    /// What the store says; for a wrong part below `.scan`, ENOENT or EINVAL with the reason.
    pub fn lookup(&self, place: &Place<'_>, name: &[u8]) -> FsResult<Option<MagicNode>> {
        Ok(match place {
            Place::Root => match name {
                b".help" => Some(MagicNode::Help),
                b".cellfs" => Some(MagicNode::Instance),
                b".at" => Some(MagicNode::Past),
                _ => None,
            },
            Place::Namespace(namespace) => match name {
                b".schema" => Some(MagicNode::NamespaceSchema((*namespace).to_owned())),
                b".stats" => Some(MagicNode::NamespaceStats((*namespace).to_owned())),
                _ => None,
            },
            Place::Table(table) => {
                let table = TableHandle(Arc::clone(table));
                match name {
                    b".schema" => Some(MagicNode::TableSchema(table)),
                    b".scan" => Some(MagicNode::Scan(table, ScanParts::default())),
                    b".via" => Some(MagicNode::Via(table)),
                    b".cf" => Some(MagicNode::Families(table)),
                    // The rest is the live table's alone, so nothing leads from a view into another.
                    _ if !table.is_live() => None,
                    b".snap" => Some(MagicNode::Snapshots(table)),
                    b".at" => Some(MagicNode::TablePast(table)),
                    b".ctl" => Some(MagicNode::Ctl(table)),
                    b".stats" => Some(MagicNode::TableStats(table)),
                    b".health" => Some(MagicNode::TableHealth(table)),
                    b".regions" => Some(MagicNode::Regions(table)),
                    b".import" => Some(MagicNode::Import(table)),
                    _ => None,
                }
            }
            Place::Row(table, row) => {
                let (table, row) = (TableHandle(Arc::clone(table)), Bytes::copy_from_slice(row));
                match name {
                    b".key" => Some(MagicNode::RowKey(table, row)),
                    b".row.json" => Some(MagicNode::RowJson(table, row)),
                    b".versions" => Some(MagicNode::Versions(table, row)),
                    b".as" => Some(MagicNode::As(table, row)),
                    b".at" if table.is_live() => Some(MagicNode::RowPast(table, row)),
                    _ => None,
                }
            }
            Place::Magic(directory) => self.lookup_below(directory, name)?,
        })
    }

    fn lookup_below(&self, directory: &MagicNode, name: &[u8]) -> FsResult<Option<MagicNode>> {
        Ok(match directory {
            MagicNode::Instance if name == b"guide" => Some(MagicNode::Guide),
            MagicNode::Guide => guide::page(name).map(|(name, _)| MagicNode::GuidePage(name)),
            MagicNode::Instance => instance::FILES
                .iter()
                .find(|(known, _)| known.as_bytes() == name)
                .map(|(_, file)| MagicNode::InstanceFile(*file)),
            MagicNode::Regions(table) => {
                self.region(table, name)?.map(|region| MagicNode::Region(table.clone(), region.encoded_name))
            }
            MagicNode::Region(table, region) if name == b"stats" => {
                Some(MagicNode::RegionStats(table.clone(), region.clone()))
            }
            MagicNode::Scan(table, parts) => self.lookup_scan(table, parts, name)?,
            MagicNode::Import(table) => match name {
                b"errors" => Some(MagicNode::ImportErrors(table.clone())),
                b"last" => Some(MagicNode::ImportLast(table.clone())),
                _ => match WHOLE.into_iter().find(|kind| whole_name(*kind).as_bytes() == name) {
                    Some(kind) => Some(MagicNode::ImportWhole(table.clone(), kind)),
                    None => import_stream(table, ImportMode::Lines, name),
                },
            },
            MagicNode::ImportWhole(table, kind) => import_stream(table, ImportMode::Whole(*kind), name),
            MagicNode::Versions(table, row) => versions::lookup_cell(table, row, name)?,
            MagicNode::CellVersions(cell) => versions::lookup_version(cell, name)?,
            MagicNode::Families(table) => family::lookup(table, name),
            MagicNode::FamilyRows(table, family) if name == b".stats" && table.is_live() => {
                Some(MagicNode::FamilyStats(table.clone(), family.clone()))
            }
            MagicNode::Via(table) if name == via::REVERSE_TIME.as_bytes() => {
                Some(MagicNode::ViaPrefixes(table.clone()))
            }
            MagicNode::Via(table) => {
                let scheme = std::str::from_utf8(name).ok().and_then(KeyScheme::of_name);
                scheme.map(|scheme| MagicNode::ViaKeys(table.clone(), scheme))
            }
            MagicNode::ViaPrefixes(table) => via::prefix_of_name(name)
                .map(|prefix| MagicNode::ViaKeys(table.clone(), KeyScheme::ReverseTime(prefix))),
            MagicNode::As(table, row) => {
                let of = std::str::from_utf8(name).ok().and_then(ColumnType::of_name);
                of.map(|of| MagicNode::AsType(table.clone(), row.clone(), of))
            }
            MagicNode::AsType(table, row, of) => typed::lookup(table, row, *of, name, self.hooks.as_ref())?,
            MagicNode::Past
            | MagicNode::PastRoot(_)
            | MagicNode::PastNamespace(..)
            | MagicNode::PastGone(..)
            | MagicNode::TablePast(_)
            | MagicNode::RowPast(..) => self.lookup_past(directory, name)?,
            _ => None,
        })
    }

    fn lookup_scan(&self, table: &TableHandle, parts: &ScanParts, name: &[u8]) -> FsResult<Option<MagicNode>> {
        let (descriptor, now) = (table.0.descriptor(), self.hooks.now_millis());
        if name == b"rows" {
            parts.parse(&descriptor, now)?.check_rows()?;
            return Ok(Some(MagicNode::ScanRows(table.clone(), parts.clone())));
        }
        let Some(form) = ScanForm::of_name(name) else {
            let parts = parts.with(name);
            parts.parse(&descriptor, now)?;
            return Ok(Some(MagicNode::Scan(table.clone(), parts)));
        };
        let request = parts.parse(&descriptor, now)?;
        request.check_form(form)?;
        Ok(Some(MagicNode::ScanStream(table.clone(), parts.clone(), form)))
    }

    /// Lists a directory, without `.` and `..`.
    ///
    /// # Errors
    /// ENOTDIR for a file; what the store says.
    pub fn list(&self, node: &MagicNode) -> FsResult<MagicListing> {
        let fixed: Vec<(String, MagicNode)> = match node {
            MagicNode::Instance => {
                let entry = |(name, file): &(&str, InstanceFile)| ((*name).to_owned(), MagicNode::InstanceFile(*file));
                let mut all: Vec<_> = instance::FILES.iter().map(entry).collect();
                all.push(("guide".to_owned(), MagicNode::Guide));
                all.sort_by(|a, b| a.0.cmp(&b.0));
                all
            }
            MagicNode::Guide => {
                guide::PAGES.iter().map(|(name, _)| ((*name).to_owned(), MagicNode::GuidePage(name))).collect()
            }
            MagicNode::Regions(table) => {
                let regions = self.store.regions(&table.0.name())?.into_iter();
                let names = regions.map(|region| region.encoded_name);
                names.map(|name| (name.clone(), MagicNode::Region(table.clone(), name))).collect()
            }
            MagicNode::Region(table, region) => {
                vec![("stats".to_owned(), MagicNode::RegionStats(table.clone(), region.clone()))]
            }
            MagicNode::Scan(table, parts) => {
                let request = parts.parse(&table.0.descriptor(), self.hooks.now_millis())?;
                let forms = ScanForm::ALL.iter();
                let usable = forms.filter(|(_, form)| request.check_form(*form).is_ok());
                let entry = |(name, form): &(&str, ScanForm)| {
                    ((*name).to_owned(), MagicNode::ScanStream(table.clone(), parts.clone(), *form))
                };
                let mut all: Vec<_> = usable.map(entry).collect();
                if request.check_rows().is_ok() {
                    let rows = MagicNode::ScanRows(table.clone(), parts.clone());
                    all.push(("rows".to_owned(), rows));
                    all.sort_by(|a, b| a.0.cmp(&b.0));
                }
                all
            }
            MagicNode::Import(table) => {
                let whole = WHOLE
                    .into_iter()
                    .map(|kind| (whole_name(kind).to_owned(), MagicNode::ImportWhole(table.clone(), kind)));
                let reports = [
                    ("errors".to_owned(), MagicNode::ImportErrors(table.clone())),
                    ("last".to_owned(), MagicNode::ImportLast(table.clone())),
                ];
                let mut all: Vec<_> = import_streams(table, ImportMode::Lines).chain(whole).chain(reports).collect();
                all.sort_by(|a, b| a.0.cmp(&b.0));
                all
            }
            MagicNode::ImportWhole(table, kind) => import_streams(table, ImportMode::Whole(*kind)).collect(),
            MagicNode::Versions(table, row) => return versions::list_cells(table, row),
            MagicNode::CellVersions(cell) => return versions::list_versions(cell),
            MagicNode::Families(table) => return Ok(family::list(table)),
            MagicNode::Via(table) => via::list_schemes(table),
            MagicNode::ViaPrefixes(table) => return via::list_prefixes(table),
            MagicNode::As(table, row) => ColumnType::all()
                .map(|of| (of.name().to_owned(), MagicNode::AsType(table.clone(), row.clone(), of)))
                .collect(),
            MagicNode::AsType(table, row, of) => return typed::list(table, row, *of, &self.hooks),
            MagicNode::Past
            | MagicNode::PastRoot(_)
            | MagicNode::PastNamespace(..)
            | MagicNode::PastGone(..)
            | MagicNode::TablePast(_)
            | MagicNode::RowPast(..) => return self.list_past(node),
            _ => return Err(FsError::new(libc::ENOTDIR, "not a directory")),
        };
        Ok(Box::new(fixed.into_iter().map(|(name, node)| Ok((Bytes::from(name), node)))))
    }
}

fn import_stream(table: &TableHandle, mode: ImportMode, name: &[u8]) -> Option<MagicNode> {
    let form = ImportForm::ALL.into_iter().find(|form| form.name().as_bytes() == name)?;
    Some(MagicNode::ImportStream(table.clone(), mode, form))
}

fn import_streams(table: &TableHandle, mode: ImportMode) -> impl Iterator<Item = (String, MagicNode)> {
    ImportForm::ALL
        .into_iter()
        .map(move |form| (form.name().to_owned(), MagicNode::ImportStream(table.clone(), mode, form)))
}
