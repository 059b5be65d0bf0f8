//! Where a dot name stands in the tree, for error lines.

use super::instance::FILES;
use super::node::{CellAddress, ImportForm, ImportMode, MagicNode, TableHandle};
use super::scan::{ScanForm, ScanParts};
use crate::names;
use bytes::Bytes;
use cellfs::client::{LoadKind, TableView};
use cellfs::types::KeyScheme;

impl MagicNode {
    /// The path from the mount's root.
    pub fn path(&self) -> String {
        match self {
            MagicNode::Help => "/.help".to_owned(),
            MagicNode::Instance => "/.cellfs".to_owned(),
            MagicNode::InstanceFile(file) => {
                let name = FILES.iter().find(|(_, known)| known == file).map_or("", |(name, _)| name);
                format!("/.cellfs/{name}")
            }
            MagicNode::Guide => "/.cellfs/guide".to_owned(),
            MagicNode::GuidePage(name) => format!("/.cellfs/guide/{name}"),
            MagicNode::NamespaceSchema(name) => format!("/{name}/.schema"),
            MagicNode::NamespaceStats(name) => format!("/{name}/.stats"),
            MagicNode::TableSchema(table) => of_table(table, ".schema"),
            MagicNode::Ctl(table) => of_table(table, ".ctl"),
            MagicNode::TableStats(table) => of_table(table, ".stats"),
            MagicNode::TableHealth(table) => of_table(table, ".health"),
            MagicNode::Regions(table) => of_table(table, ".regions"),
            MagicNode::Region(table, region) => of_table(table, &format!(".regions/{region}")),
            MagicNode::RegionStats(table, region) => of_table(table, &format!(".regions/{region}/stats")),
            MagicNode::Scan(table, parts) => of_table(table, &scan(parts)),
            MagicNode::ScanRows(table, parts) => of_table(table, &format!("{}/rows", scan(parts))),
            MagicNode::ScanStream(table, parts, form) => {
                let name = ScanForm::ALL.iter().find(|(_, known)| known == form).map_or("", |(name, _)| name);
                of_table(table, &format!("{}/{name}", scan(parts)))
            }
            MagicNode::Import(table) => of_table(table, ".import"),
            MagicNode::ImportWhole(table, kind) => of_table(table, &format!(".import/{}", whole_name(*kind))),
            MagicNode::ImportStream(table, ImportMode::Lines, form) => {
                of_table(table, &format!(".import/{}", form.name()))
            }
            MagicNode::ImportStream(table, ImportMode::Whole(kind), form) => {
                of_table(table, &format!(".import/{}/{}", whole_name(*kind), form.name()))
            }
            MagicNode::ImportErrors(table) => of_table(table, ".import/errors"),
            MagicNode::ImportLast(table) => of_table(table, ".import/last"),
            MagicNode::RowKey(table, row) => of_row(table, row, ".key"),
            MagicNode::RowJson(table, row) => of_row(table, row, ".row.json"),
            MagicNode::Versions(table, row) => of_row(table, row, ".versions"),
            MagicNode::CellVersions(cell) => versions_of(cell),
            MagicNode::Version(cell, timestamp) => format!("{}/{timestamp}", versions_of(cell)),
            MagicNode::VersionMarker(cell, timestamp) => format!("{}/{timestamp}.del", versions_of(cell)),
            MagicNode::Snapshots(table) => of_table(table, ".snap"),
            MagicNode::Families(table) => of_table(table, ".cf"),
            MagicNode::FamilyRows(table, family) => of_table(table, &format!(".cf/{}", spell_family(family))),
            MagicNode::FamilyStats(table, family) => of_table(table, &format!(".cf/{}/.stats", spell_family(family))),
            MagicNode::Via(table) => of_table(table, ".via"),
            MagicNode::ViaPrefixes(table) => of_table(table, ".via/revts"),
            MagicNode::ViaKeys(table, KeyScheme::ReverseTime(prefix)) => {
                of_table(table, &format!(".via/revts/{}", String::from_utf8_lossy(&names::row_name(prefix))))
            }
            MagicNode::ViaKeys(table, scheme) => of_table(table, &format!(".via/{}", scheme.name())),
            MagicNode::Past => "/.at".to_owned(),
            MagicNode::PastRoot(millis) => format!("/.at/{millis}"),
            MagicNode::PastNamespace(millis, namespace) => format!("/.at/{millis}/{namespace}"),
            MagicNode::PastGone(table, millis) => of_table(table, &format!(".at/{millis}")),
            MagicNode::TablePast(table) => of_table(table, ".at"),
            MagicNode::RowPast(table, row) => of_row(table, row, ".at"),
            MagicNode::View(table) => table.path(),
            MagicNode::ViewRow(table, row) => {
                format!("{}/{}", table.path(), String::from_utf8_lossy(&names::row_name(row)))
            }
            MagicNode::As(table, row) => of_row(table, row, ".as"),
            MagicNode::AsType(table, row, of) => of_row(table, row, &format!(".as/{}", of.name())),
            MagicNode::AsCell(cell, of) => {
                let name = names::cell_name(&cell.family, &cell.qualifier);
                of_row(&cell.table, &cell.row, &format!(".as/{}/{}", of.name(), String::from_utf8_lossy(&name)))
            }
        }
    }
}

impl TableHandle {
    /// The path from the mount's root; that of a view is below its table.
    pub fn path(&self) -> String {
        let name = self.0.name();
        let live = format!("/{}/{}", name.namespace, name.qualifier);
        match self.0.view() {
            TableView::Snapshot { name, .. } => {
                format!("{live}/.snap/{}", String::from_utf8_lossy(&names::row_name(&name)))
            }
            TableView::AsOf(millis) => format!("{live}/.at/{millis}"),
            TableView::Live | TableView::Made => live,
        }
    }
}

impl ImportForm {
    /// Every form, in the order of their names.
    pub const ALL: [ImportForm; 4] = [ImportForm::Cells, ImportForm::Csv, ImportForm::Jsonl, ImportForm::Tsv];

    /// The name below `.import/`.
    pub fn name(self) -> &'static str {
        match self {
            ImportForm::Jsonl => "jsonl",
            ImportForm::Cells => "cells",
            ImportForm::Tsv => "tsv",
            ImportForm::Csv => "csv",
        }
    }
}

/// The kinds of whole imports, in the order of their names.
pub(super) const WHOLE: [LoadKind; 3] = [LoadKind::Add, LoadKind::New, LoadKind::Replace];

/// The name of a kind below `.import/`.
pub(super) fn whole_name(kind: LoadKind) -> &'static str {
    match kind {
        LoadKind::Add => "atomic",
        LoadKind::New => "new",
        LoadKind::Replace => "replace",
    }
}

fn of_table(table: &TableHandle, rest: &str) -> String {
    format!("{}/{rest}", table.path())
}

fn spell_family(family: &[u8]) -> String {
    String::from_utf8_lossy(&names::encode_family(family)).into_owned()
}

fn of_row(table: &TableHandle, row: &Bytes, rest: &str) -> String {
    of_table(table, &format!("{}/{rest}", String::from_utf8_lossy(&names::row_name(row))))
}

fn versions_of(cell: &CellAddress) -> String {
    let name = names::cell_name(&cell.family, &cell.qualifier);
    of_row(&cell.table, &cell.row, &format!(".versions/{}", String::from_utf8_lossy(&name)))
}

fn scan(parts: &ScanParts) -> String {
    parts.0.iter().fold(".scan".to_owned(), |path, part| format!("{path}/{}", String::from_utf8_lossy(part)))
}
