//! What stands in a family's directory, by its name (HBase `StoreFileInfo`, `HFileLink`).
//!
//! ```text
//! FILE = hex digits | hex digits _SeqId_<n>_ | hex digits _del                  a store file
//! LINK = [NAMESPACE=]TABLE=REGION-FILE                                          an empty file: the store file FILE of another region
//! REFERENCE = FILE.PARENT | LINK.PARENT                                         part of a file of the region PARENT of the same table
//! ```

use crate::client::TableName;

/// One name, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StoreFileName {
    /// A store file.
    File(String),
    /// A store file of another region.
    Link(HFileLink),
    /// Part of a file of a parent region.
    Reference(Box<StoreFileName>, String),
}

/// Where a link points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HFileLink {
    /// The table of the file.
    pub(super) table: TableName,
    /// The region of the file, by its encoded name.
    pub(super) region: String,
    /// The file.
    pub(super) file: String,
}

impl StoreFileName {
    /// Understands a name; `None` for what is no store file.
    pub(super) fn parse(name: &str) -> Option<StoreFileName> {
        if let Some(plain) = parse_plain(name) {
            return Some(plain);
        }
        let (target, parent) = name.rsplit_once('.')?;
        let target = parse_plain(target)?;
        is_region_name(parent).then(|| StoreFileName::Reference(Box::new(target), parent.to_owned()))
    }
}

fn parse_plain(name: &str) -> Option<StoreFileName> {
    if is_file_name(name) {
        Some(StoreFileName::File(name.to_owned()))
    } else {
        parse_link(name).map(StoreFileName::Link)
    }
}

/// A table's name has no `=`, a region's no `-`: the first `=` and the last parts decide.
fn parse_link(name: &str) -> Option<HFileLink> {
    let (head, rest) = name.rsplit_once('=')?;
    let (region, file) = rest.split_once('-')?;
    if !is_region_name(region) || !is_file_name(file) {
        return None;
    }
    let table = match head.split_once('=') {
        Some((namespace, qualifier)) => TableName::new(namespace, qualifier),
        None => TableName::new("default", head),
    };
    Some(HFileLink { table: table.ok()?, region: region.to_owned(), file: file.to_owned() })
}

/// True for the encoded name of a region: 32 hex digits, or digits alone as hbase:meta has.
pub(super) fn is_region_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'))
}

fn is_file_name(name: &str) -> bool {
    let digits = name.bytes().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f')).count();
    if digits == 0 {
        return false;
    }
    let rest = name.get(digits..).unwrap_or_default();
    rest.is_empty() || rest == "_del" || bulk_load_number(rest).is_some_and(|_| rest.starts_with("_SeqId_"))
}

/// The sequence id in the name of a bulk-loaded file; the last one counts (HBase `HStoreFile.open`).
pub(super) fn bulk_load_sequence_id(name: &str) -> Option<u64> {
    bulk_load_number(name.get(name.rfind("_SeqId_")?..)?)
}

fn bulk_load_number(suffix: &str) -> Option<u64> {
    suffix.strip_prefix("_SeqId_")?.strip_suffix('_')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const REGION: &str = "661baef06ad32f9ca6d41fe46c34e123";
    const FILE: &str = "17521f0adf104682bd7264511699cb32";

    fn link(namespace: &str, table: &str) -> StoreFileName {
        let table = TableName::new(namespace, table).unwrap();
        StoreFileName::Link(HFileLink { table, region: REGION.to_owned(), file: FILE.to_owned() })
    }

    #[test]
    fn names_of_all_kinds_are_understood() {
        assert_eq!(StoreFileName::parse(FILE), Some(StoreFileName::File(FILE.to_owned())));
        let loaded = format!("{FILE}_SeqId_8_");
        assert_eq!(StoreFileName::parse(&loaded), Some(StoreFileName::File(loaded.clone())));
        assert_eq!(bulk_load_sequence_id(&loaded), Some(8));
        assert_eq!(bulk_load_sequence_id(FILE), None);
        assert_eq!(StoreFileName::parse(&format!("shop=changed={REGION}-{FILE}")), Some(link("shop", "changed")));
        assert_eq!(StoreFileName::parse(&format!("a.b-c={REGION}-{FILE}")), Some(link("default", "a.b-c")));
        let half = StoreFileName::parse(&format!("{FILE}.{REGION}"));
        assert_eq!(
            half,
            Some(StoreFileName::Reference(Box::new(StoreFileName::File(FILE.to_owned())), REGION.to_owned()))
        );
        let half_of_link = StoreFileName::parse(&format!("shop=changed={REGION}-{FILE}.{REGION}"));
        assert_eq!(half_of_link, Some(StoreFileName::Reference(Box::new(link("shop", "changed")), REGION.to_owned())));
    }

    #[test]
    fn what_is_no_store_file_is_passed_over() {
        for other in
            [".filelist", ".tmp", "", "recovered.hfiles", "abcg", "abc_SeqId_", "abc_SeqId_x_", "abc.xyz", "t=x-y"]
        {
            assert_eq!(StoreFileName::parse(other), None, "{other}");
        }
    }
}
