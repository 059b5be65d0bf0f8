//! Which type a column's bytes are: `[family.NAME.types]` of a schema. HBase knows nothing of it; the types stand among the family's metadata, which HBase
//! keeps, as `cellfs.type.QUALIFIER`, the qualifier's bytes that are not printable ASCII and its backslashes as `\xNN`.

use super::family::ColumnFamilyDescriptor;
use super::table::TableDescriptor;
use crate::types::ColumnType;
use bytes::Bytes;
use std::collections::BTreeMap;

/// What a type's key begins with.
const PREFIX: &str = "cellfs.type.";

/// The types of a table's columns; most tables have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnTypes {
    families: BTreeMap<Bytes, BTreeMap<Bytes, ColumnType>>,
}

impl ColumnTypes {
    /// The type of a column.
    pub fn get(&self, family: &[u8], qualifier: &[u8]) -> Option<ColumnType> {
        self.families.get(family)?.get(qualifier).copied()
    }
}

impl TableDescriptor {
    /// The types of all columns that have one.
    pub fn column_types(&self) -> ColumnTypes {
        let typed = self.families.iter().map(|(name, family)| (name.clone(), family.column_types()));
        ColumnTypes { families: typed.filter(|(_, types)| !types.is_empty()).collect() }
    }
}

impl ColumnFamilyDescriptor {
    /// The types of the family's columns, by qualifier.
    pub fn column_types(&self) -> BTreeMap<Bytes, ColumnType> {
        let of = |(key, name): (&String, &String)| Some((parse_key(key)?, ColumnType::of_name(name)?));
        self.metadata.iter().filter_map(of).collect()
    }

    /// Gives a column a type.
    pub fn set_column_type(&mut self, qualifier: &[u8], of: ColumnType) {
        self.metadata.insert(key_of(qualifier), of.name().to_owned());
    }
}

/// True for a metadata key that says a type.
pub(super) fn is_type_key(key: &str) -> bool {
    key.starts_with(PREFIX)
}

fn key_of(qualifier: &[u8]) -> String {
    let mut key = PREFIX.to_owned();
    for byte in qualifier {
        match byte {
            b'\\' | 0..=0x1F | 0x7F.. => key.push_str(&format!("\\x{byte:02X}")),
            plain => key.push(char::from(*plain)),
        }
    }
    key
}

fn parse_key(key: &str) -> Option<Bytes> {
    let mut qualifier = Vec::new();
    let mut rest = key.strip_prefix(PREFIX)?;
    while let Some(c) = rest.chars().next() {
        if let Some(escaped) = rest.strip_prefix("\\x") {
            let (digits, after) = escaped.split_at_checked(2)?;
            qualifier.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after;
        } else {
            qualifier.push(u8::try_from(c).ok()?);
            rest = rest.get(c.len_utf8()..)?;
        }
    }
    Some(qualifier.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_stand_among_the_metadata_and_are_found_by_column() {
        let mut family = ColumnFamilyDescriptor::default();
        for (qualifier, of) in
            [(&b"age"[..], ColumnType::Int), (b"", ColumnType::Long), (b"a\\x\xff\n", ColumnType::Bool)]
        {
            family.set_column_type(qualifier, of);
        }
        let expected = ["cellfs.type.", "cellfs.type.a\\x5Cx\\xFF\\x0A", "cellfs.type.age"];
        assert_eq!(family.metadata.keys().collect::<Vec<_>>(), expected);
        family.metadata.insert("cellfs.type.odd".into(), "no such type".into());
        family.metadata.insert("other".into(), "int".into());
        let types = TableDescriptor::default().family("cf", family).column_types();
        assert_eq!(types.get(b"cf", b"a\\x\xff\n"), Some(ColumnType::Bool));
        assert_eq!(types.get(b"cf", b""), Some(ColumnType::Long));
        assert_eq!(types.get(b"cf", b"odd").or(types.get(b"cf", b"other")).or(types.get(b"d", b"age")), None);
    }
}
