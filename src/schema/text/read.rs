//! Reading a schema's text. Every complaint names the line.

use super::KeySpelling;
use super::attribute::{Attribute, FAMILY, PREFIX_LENGTH, TABLE};
use super::stored::{FAMILY_STORED, StoredAttribute, TABLE_STORED, refusal};
use super::value::Value;
use crate::cell::MAX_ROW_LENGTH;
use crate::error::{Error, Result};
use crate::schema::check::check_family_name;
use crate::schema::column_types::is_type_key;
use crate::schema::effective::{SPLIT_DELIMITER, SPLIT_POLICY, SPLIT_PREFIX_LENGTH};
use crate::schema::{ColumnFamilyDescriptor, NamespaceDescriptor, SplitPolicy, TableDescriptor};
use crate::types::ColumnType;
use bytes::Bytes;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// MAXTABLES and MAXREGIONS without a limit.
pub(super) const UNLIMITED: &str = "UNLIMITED";

/// What a table's text says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableText {
    /// The schema.
    pub descriptor: TableDescriptor,
    /// SPLITS, sorted; `None` if the text does not say.
    pub splits: Option<Vec<Bytes>>,
}

/// Reads a table's schema.
///
/// # Errors
/// [`Error::InvalidArgument`] with the line and what is wrong there: TOML's form, a wrong key, type or range.
pub fn parse_table(text: &str, spelling: &dyn KeySpelling) -> Result<TableText> {
    let reader = Reader { text };
    let root = reader.parse()?;
    let mut descriptor = TableDescriptor::default();
    let mut splits = None;
    for (key, value) in root.get_ref() {
        let (name, section) = (key.get_ref().as_ref(), value.get_ref());
        match (name, section) {
            ("table", DeValue::Table(table)) => splits = reader.table(table, &mut descriptor, spelling)?,
            ("family", DeValue::Table(families)) => {
                for (key, value) in families {
                    let (family, settings) = reader.family(key, value, spelling)?;
                    if descriptor.families.insert(family, settings).is_some() {
                        return Err(reader.wrong(key.span().start, "the family is there twice"));
                    }
                }
            }
            ("table" | "family", _) => return Err(reader.wrong(key.span().start, &format!("{name} is a section"))),
            _ => {
                let known = "the sections are [table], [table.metadata], [family.NAME], [family.NAME.types], [family.NAME.metadata]";
                return Err(reader.wrong(key.span().start, &format!("there is no {name}: {known}")));
            }
        }
    }
    if descriptor.families.is_empty() {
        return Err(reader.wrong(text.len(), "a table needs at least one [family.NAME]"));
    }
    Ok(TableText { descriptor, splits })
}

/// Reads a namespace's schema.
///
/// # Errors
/// As [`parse_table`].
pub fn parse_namespace(text: &str) -> Result<NamespaceDescriptor> {
    let reader = Reader { text };
    let root = reader.parse()?;
    let mut descriptor = NamespaceDescriptor::default();
    for (key, value) in root.get_ref() {
        let ("namespace", DeValue::Table(section)) = (key.get_ref().as_ref(), value.get_ref()) else {
            let what = format!("there is no {}: the only section is [namespace]", key.get_ref());
            return Err(reader.wrong(key.span().start, &what));
        };
        for (key, value) in section {
            let name = key.get_ref().as_ref();
            match name {
                "MAXTABLES" => descriptor.max_tables = reader.limit(name, value)?,
                "MAXREGIONS" => descriptor.max_regions = reader.limit(name, value)?,
                // HBase's attributes are in capitals: one that is not known is a slip, not a property.
                _ if !name.bytes().any(|b| b.is_ascii_lowercase()) => {
                    let what = format!(
                        "there is no {name}: a namespace has MAXTABLES and MAXREGIONS; properties of your own have small letters"
                    );
                    return Err(reader.wrong(key.span().start, &what));
                }
                _ => {
                    descriptor.metadata.insert(name.to_owned(), reader.value(name, value)?.plain());
                }
            }
        }
    }
    Ok(descriptor)
}

/// A text being read; complaints name its lines.
pub(super) struct Reader<'t> {
    text: &'t str,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Reader<'t> {
        Reader { text }
    }

    pub(super) fn parse(&self) -> Result<Spanned<DeTable<'t>>> {
        DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            self.wrong(at, error.message().trim())
        })
    }

    /// A complaint about the line that holds byte `at`.
    pub(super) fn wrong(&self, at: usize, what: &str) -> Error {
        let before = self.text.as_bytes().get(..at).unwrap_or(self.text.as_bytes());
        let line = 1 + before.iter().filter(|b| **b == b'\n').count();
        Error::invalid(format!("line {line}: {what}"))
    }

    /// The `[table]` section; returns SPLITS.
    fn table(
        &self,
        section: &DeTable<'t>,
        descriptor: &mut TableDescriptor,
        spelling: &dyn KeySpelling,
    ) -> Result<Option<Vec<Bytes>>> {
        let mut splits = None;
        let mut rest = Vec::new();
        for entry in section {
            match entry.0.get_ref().as_ref() {
                "SPLITS" => splits = Some(self.splits(entry.1, spelling)?),
                "metadata" => self.metadata(entry.1, &mut descriptor.metadata, TABLE_STORED)?,
                _ => rest.push(entry),
            }
        }
        let mut stored = std::mem::take(&mut descriptor.metadata);
        self.attributes(&rest, "table", (TABLE, descriptor), (TABLE_STORED, &mut stored))?;
        descriptor.metadata = stored;
        self.split_policy(section, descriptor)?;
        Ok(splits)
    }

    /// A policy by prefix needs its setting, and a setting its policy: without, HBase would split anywhere.
    fn split_policy(&self, section: &DeTable<'t>, descriptor: &TableDescriptor) -> Result<()> {
        let policy = descriptor.split_policy();
        let at =
            |name: &str| section.iter().find(|(key, _)| key.get_ref() == name).map_or(0, |(key, _)| key.span().start);
        for (of, setting) in
            [(SplitPolicy::KeyPrefix, SPLIT_PREFIX_LENGTH), (SplitPolicy::DelimitedKeyPrefix, SPLIT_DELIMITER)]
        {
            let set = descriptor.metadata.contains_key(setting);
            if policy == of && !set {
                return Err(self.wrong(at(SPLIT_POLICY), &format!("this SPLIT_POLICY needs \"{setting}\"")));
            }
            if policy != of && set {
                let what = format!("{setting} has a meaning only with its SPLIT_POLICY");
                return Err(self.wrong(at(setting), &what));
            }
        }
        Ok(())
    }

    fn family(
        &self,
        key: &Spanned<std::borrow::Cow<'t, str>>,
        value: &Spanned<DeValue<'t>>,
        spelling: &dyn KeySpelling,
    ) -> Result<(Bytes, ColumnFamilyDescriptor)> {
        let at = key.span().start;
        let name = spelling
            .parse_family(key.get_ref())
            .ok_or_else(|| self.wrong(at, &format!("{} spells no family name", key.get_ref())))?;
        check_family_name(&name).map_err(|error| self.wrong(at, &error.to_string()))?;
        let DeValue::Table(section) = value.get_ref() else {
            return Err(self.wrong(at, "a family is a section [family.NAME]"));
        };
        let mut family = ColumnFamilyDescriptor::default();
        let (mut rest, mut types) = (Vec::new(), Vec::new());
        for entry in section {
            match entry.0.get_ref().as_ref() {
                "metadata" => self.metadata(entry.1, &mut family.metadata, FAMILY_STORED)?,
                "types" => self.types(entry.1, &mut types, spelling)?,
                _ => rest.push(entry),
            }
        }
        let mut stored = std::mem::take(&mut family.metadata);
        self.attributes(&rest, "family", (FAMILY, &mut family), (FAMILY_STORED, &mut stored))?;
        family.metadata = stored;
        types.iter().for_each(|(qualifier, of)| family.set_column_type(qualifier, *of));
        family.check().map_err(|error| self.wrong(self.blame(section, at), &error.to_string()))?;
        Ok((name, family))
    }

    /// Where to point when attributes of a family contradict each other: at the one that depends on the other.
    fn blame(&self, section: &DeTable<'t>, otherwise: usize) -> usize {
        ["MIN_VERSIONS", PREFIX_LENGTH, "BLOOMFILTER"]
            .iter()
            .find_map(|name| section.iter().find(|(key, _)| key.get_ref() == name).map(|(key, _)| key.span().start))
            .unwrap_or(otherwise)
    }

    /// Sets attributes in the order of their tables, because some look at others.
    fn attributes<D>(
        &self,
        entries: &[(&Spanned<std::borrow::Cow<'t, str>>, &Spanned<DeValue<'t>>)],
        owner: &str,
        (fields, descriptor): (&[Attribute<D>], &mut D),
        (stored, metadata): (&[StoredAttribute], &mut BTreeMap<String, String>),
    ) -> Result<()> {
        let known: Vec<&str> =
            fields.iter().map(|field| field.name).chain(stored.iter().map(|stored| stored.name)).collect();
        for (key, _) in entries {
            let name = key.get_ref().as_ref();
            if let Some(why) = refusal(name) {
                return Err(self.wrong(key.span().start, &format!("{name} is not taken: {why}")));
            }
            if !known.contains(&name) {
                let what = format!("a {owner} has no {name}; it has: {}; your own go under metadata", known.join(" "));
                return Err(self.wrong(key.span().start, &what));
            }
        }
        let find = |name: &str| entries.iter().find(|(key, _)| key.get_ref() == name);
        for field in fields {
            if let Some((key, value)) = find(field.name) {
                let value = self.value(field.name, value)?;
                (field.set)(descriptor, &value)
                    .map_err(|reason| self.wrong(key.span().start, &format!("{} {reason}", field.name)))?;
            }
        }
        for attribute in stored {
            if let Some((key, value)) = find(attribute.name) {
                let value = self.value(attribute.name, value)?;
                attribute
                    .set(metadata, &value)
                    .map_err(|reason| self.wrong(key.span().start, &format!("{} {reason}", attribute.name)))?;
            }
        }
        Ok(())
    }

    pub(super) fn value(&self, name: &str, value: &Spanned<DeValue<'t>>) -> Result<Value> {
        let at = value.span().start;
        match value.get_ref() {
            DeValue::String(text) => Ok(Value::text(text.as_ref())),
            DeValue::Boolean(on) => Ok(Value::Boolean(*on)),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map(Value::Integer)
                .map_err(|_| self.wrong(at, &format!("{name} is a number beyond 64 bits"))),
            other => Err(self.wrong(
                at,
                &format!("{name} takes a number, true, false or a text in quotes, not a TOML {}", other.type_str()),
            )),
        }
    }

    fn limit(&self, name: &str, value: &Spanned<DeValue<'t>>) -> Result<Option<u32>> {
        let given = self.value(name, value)?;
        if given.is_word(UNLIMITED) {
            return Ok(None);
        }
        match given.integer(1, i32::MAX.into()) {
            Ok(limit) => Ok(u32::try_from(limit).ok()),
            Err(reason) => Err(self.wrong(value.span().start, &format!("{name} {reason}; or \"{UNLIMITED}\""))),
        }
    }

    fn metadata(
        &self,
        value: &Spanned<DeValue<'t>>,
        metadata: &mut BTreeMap<String, String>,
        known: &[StoredAttribute],
    ) -> Result<()> {
        let DeValue::Table(section) = value.get_ref() else {
            return Err(self.wrong(value.span().start, "metadata is a section"));
        };
        for (key, value) in section {
            let name = key.get_ref().as_ref();
            if known.iter().any(|attribute| attribute.name == name) {
                let what = format!("{name} is an attribute: it goes one section up");
                return Err(self.wrong(key.span().start, &what));
            }
            if is_type_key(name) {
                return Err(self.wrong(key.span().start, "a column's type goes to [family.NAME.types]"));
            }
            metadata.insert(name.to_owned(), self.value(name, value)?.plain());
        }
        Ok(())
    }

    /// The `[family.NAME.types]` section.
    fn types(
        &self,
        value: &Spanned<DeValue<'t>>,
        types: &mut Vec<(Bytes, ColumnType)>,
        spelling: &dyn KeySpelling,
    ) -> Result<()> {
        let DeValue::Table(section) = value.get_ref() else {
            return Err(self.wrong(value.span().start, "types is a section"));
        };
        for (key, value) in section {
            let (at, name) = (key.span().start, key.get_ref().as_ref());
            let qualifier =
                spelling.parse_qualifier(name).ok_or_else(|| self.wrong(at, &format!("{name} spells no qualifier")))?;
            let of = self.value(name, value)?.plain();
            let of = ColumnType::of_name(&of).ok_or_else(|| {
                let known: Vec<&str> = ColumnType::all().map(ColumnType::name).collect();
                self.wrong(at, &format!("there is no type {of}: {}", known.join(" ")))
            })?;
            types.push((qualifier, of));
        }
        Ok(())
    }

    fn splits(&self, value: &Spanned<DeValue<'t>>, spelling: &dyn KeySpelling) -> Result<Vec<Bytes>> {
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong(value.span().start, "SPLITS takes a list of row keys"));
        };
        let mut splits = Vec::with_capacity(items.len());
        for item in items {
            let at = item.span().start;
            let DeValue::String(text) = item.get_ref() else {
                return Err(self.wrong(at, "SPLITS takes row keys in quotes"));
            };
            match spelling.parse_row(text) {
                Some(row) if !row.is_empty() && row.len() <= MAX_ROW_LENGTH => splits.push(row),
                _ => return Err(self.wrong(at, &format!("{text:?} spells no row key"))),
            }
        }
        splits.sort();
        if splits.windows(2).any(|pair| matches!(pair, [left, right] if left == right)) {
            return Err(self.wrong(value.span().start, "SPLITS names a key twice"));
        }
        Ok(splits)
    }
}
