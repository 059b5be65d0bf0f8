//! Schemas as TOML, under HBase's names: what `.schema` shows and takes. Showing gives every attribute with its effective value; reading takes
//! what is missing at its default, so a text stands for one schema and nothing else.

mod attribute;
mod read;
mod settings;
mod stored;
mod value;

pub use read::{TableText, parse_namespace, parse_table};
pub use settings::StoreSettings;

use super::column_types::is_type_key;
use super::family::ColumnFamilyDescriptor;
use super::table::{NamespaceDescriptor, ROW_ATTRIBUTES_FAMILY, TableDescriptor};
use attribute::{FAMILY, TABLE};
use bytes::Bytes;
use std::collections::BTreeMap;
use stored::{FAMILY_STORED, StoredAttribute, TABLE_STORED};
use value::{key, quoted};

/// How keys are written where text is wanted; the mount spells them as its file names.
pub trait KeySpelling {
    /// A row key as text.
    fn spell_row(&self, row: &[u8]) -> String;
    /// The row key that a text spells; `None` if it spells none.
    fn parse_row(&self, text: &str) -> Option<Bytes>;
    /// A family as text.
    fn spell_family(&self, family: &[u8]) -> String;
    /// The family that a text spells; `None` if it spells none.
    fn parse_family(&self, text: &str) -> Option<Bytes>;
    /// A qualifier as text.
    fn spell_qualifier(&self, qualifier: &[u8]) -> String;
    /// The qualifier that a text spells; `None` if it spells none.
    fn parse_qualifier(&self, text: &str) -> Option<Bytes>;
}

/// The table's schema as text; `splits` are the starts of its regions but for the first.
pub fn describe_table(descriptor: &TableDescriptor, splits: &[Bytes], spelling: &dyn KeySpelling) -> String {
    let mut out = String::from("[table]\n");
    for attribute in TABLE {
        if let Some(value) = (attribute.show)(descriptor) {
            line(&mut out, attribute.name, &value.to_string());
        }
    }
    describe_stored(&mut out, TABLE_STORED, &descriptor.metadata);
    let splits: Vec<String> = splits.iter().map(|split| quoted(&spelling.spell_row(split))).collect();
    line(&mut out, "SPLITS", &format!("[{}]", splits.join(", ")));
    describe_free(&mut out, "table.metadata", TABLE_STORED, &descriptor.metadata);
    for (name, family) in &descriptor.families {
        if name != ROW_ATTRIBUTES_FAMILY {
            describe_family(&mut out, &key(&spelling.spell_family(name)), family, spelling);
        }
    }
    out
}

fn describe_family(out: &mut String, name: &str, family: &ColumnFamilyDescriptor, spelling: &dyn KeySpelling) {
    out.push_str(&format!("\n[family.{name}]\n"));
    for attribute in FAMILY {
        if let Some(value) = (attribute.show)(family) {
            line(out, &key(attribute.name), &value.to_string());
        }
    }
    describe_stored(out, FAMILY_STORED, &family.metadata);
    describe_compaction_codecs(out, family);
    let types = family.column_types();
    if !types.is_empty() {
        out.push_str(&format!("\n[family.{name}.types]\n"));
    }
    for (qualifier, of) in types {
        line(out, &key(&spelling.spell_qualifier(&qualifier)), &quoted(of.name()));
    }
    describe_free(out, &format!("family.{name}.metadata"), FAMILY_STORED, &family.metadata);
}

/// The codecs of compactions that are not set: what is effective, as a remark, for it follows what is set above.
fn describe_compaction_codecs(out: &mut String, family: &ColumnFamilyDescriptor) {
    for (name, major) in [("COMPRESSION_COMPACT_MAJOR", true), ("COMPRESSION_COMPACT_MINOR", false)] {
        if !family.metadata.contains_key(name) {
            out.push_str("# ");
            line(out, name, &quoted(family.compaction_compression(major).name()));
        }
    }
}

/// The namespace's schema as text.
pub fn describe_namespace(descriptor: &NamespaceDescriptor) -> String {
    let mut out = String::from("[namespace]\n");
    for (name, limit) in [("MAXTABLES", descriptor.max_tables), ("MAXREGIONS", descriptor.max_regions)] {
        line(&mut out, name, &limit.map_or_else(|| quoted(read::UNLIMITED), |limit| limit.to_string()));
    }
    for (name, value) in &descriptor.metadata {
        line(&mut out, &key(name), &quoted(value));
    }
    out
}

fn describe_stored(out: &mut String, known: &[StoredAttribute], metadata: &BTreeMap<String, String>) {
    for attribute in known {
        if let Some(value) = attribute.show(metadata) {
            line(out, &key(attribute.name), &value.to_string());
        }
    }
}

/// Metadata that is no known attribute, under a header of its own.
fn describe_free(out: &mut String, header: &str, known: &[StoredAttribute], metadata: &BTreeMap<String, String>) {
    let is_free = |name: &String| known.iter().all(|attribute| attribute.name != *name) && !is_type_key(name);
    let mut free = metadata.iter().filter(|(name, _)| is_free(name)).peekable();
    if free.peek().is_some() {
        out.push_str(&format!("\n[{header}]\n"));
    }
    for (name, value) in free {
        line(out, &key(name), &quoted(value));
    }
}

fn line(out: &mut String, name: &str, value: &str) {
    out.push_str(name);
    out.push_str(" = ");
    out.push_str(value);
    out.push('\n');
}

#[cfg(test)]
mod tests;
