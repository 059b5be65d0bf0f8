//! Attributes that are kept as text among the metadata, under HBase's names: what they may hold, and what is refused, with the reason.

use super::attribute::{CODECS, LARGEST_SIZE};
use super::value::Value;
use crate::schema::effective::{
    CACHE_BLOOMS_ON_WRITE, CACHE_DATA_ON_WRITE, CACHE_INDEX_ON_WRITE, COMPRESS_TAGS, COMPRESSION_COMPACT,
    COMPRESSION_COMPACT_MAJOR, COMPRESSION_COMPACT_MINOR, MERGE_ENABLED, PREFETCH_BLOCKS_ON_OPEN, SNAPSHOT_EVERY,
    SNAPSHOT_KEEP, SPLIT_DELIMITER, SPLIT_POLICY, SPLIT_PREFIX_LENGTH,
};
use std::collections::BTreeMap;

/// What an attribute that is kept as text may hold.
pub(super) enum Kind {
    /// `true` or `false`.
    Boolean,
    /// A whole number within a range.
    Integer(i64, i64),
    /// One of some words.
    Words(&'static [&'static str]),
    /// A codec's name.
    Codec,
    /// A size in bytes.
    Size,
    /// A time, kept as seconds, or `NEVER`.
    Interval,
    /// Any text that is not empty.
    Text,
}

/// An attribute kept among the descriptor's metadata, under HBase's name.
pub(super) struct StoredAttribute {
    /// HBase's name.
    pub(super) name: &'static str,
    /// What is effective while nothing is stored; [`UNSET`] where that depends on other attributes, or is nothing.
    pub(super) default: &'static str,
    /// What it may hold.
    pub(super) kind: Kind,
}

/// The default of an attribute that is not there until somebody sets it.
pub(super) const UNSET: &str = "";

impl StoredAttribute {
    /// The effective value; `None` while it is unset.
    pub(super) fn show(&self, metadata: &BTreeMap<String, String>) -> Option<Value> {
        let plain = metadata.get(self.name).map_or(self.default, String::as_str);
        let shown = match self.kind {
            Kind::Boolean => Value::Boolean(plain.eq_ignore_ascii_case("true")),
            Kind::Integer(..) => plain.parse().map_or_else(|_| Value::text(plain), Value::Integer),
            Kind::Words(_) | Kind::Codec | Kind::Text => Value::text(plain),
            Kind::Size => plain.parse().map_or_else(|_| Value::text(plain), Value::size),
            Kind::Interval => plain.parse().map_or_else(|_| Value::text(plain), Value::seconds),
        };
        (plain != UNSET).then_some(shown)
    }

    /// Stores a value, or says why not. The default is not stored.
    pub(super) fn set(&self, metadata: &mut BTreeMap<String, String>, value: &Value) -> Result<(), String> {
        let plain = match self.kind {
            Kind::Boolean => value.boolean()?.to_string(),
            Kind::Integer(min, max) => value.integer(min, max)?.to_string(),
            Kind::Words(words) => value.word(words).map_err(|reason| self.explain(value, reason))?.to_owned(),
            Kind::Codec => codec(value)?.to_owned(),
            Kind::Size => value.bytes(0, LARGEST_SIZE)?.to_string(),
            Kind::Interval if value.is_word("NEVER") => "NEVER".to_owned(),
            Kind::Interval => value.time_in_seconds(i64::from(i32::MAX))?.to_string(),
            Kind::Text => match value.plain() {
                text if text.is_empty() => return Err("takes a text that is not empty".to_owned()),
                text => text,
            },
        };
        if plain == self.default {
            metadata.remove(self.name);
        } else {
            metadata.insert(self.name.to_owned(), plain);
        }
        Ok(())
    }

    /// A complaint, with what is known about the word that was tried.
    fn explain(&self, value: &Value, reason: String) -> String {
        let tried = value.plain();
        let known = REFUSED_WORDS.iter().find(|(name, word, _)| {
            *name == self.name && tried.rsplit('.').next().is_some_and(|last| last.eq_ignore_ascii_case(word))
        });
        known.map_or(reason.clone(), |(_, _, why)| format!("{reason}: {why}"))
    }
}

/// A codec's name as HBase writes it, or why there is none.
pub(super) fn codec(value: &Value) -> Result<&'static str, String> {
    value.word(&CODECS).map_err(|reason| match value.plain().to_ascii_uppercase().as_str() {
        "LZO" | "BZIP2" | "LZMA" => format!("{reason}: HBase has that codec, this version does not"),
        _ => reason,
    })
}

/// What a family's other known attributes are.
pub(super) const FAMILY_STORED: &[StoredAttribute] = &[
    StoredAttribute { name: COMPRESSION_COMPACT, default: UNSET, kind: Kind::Codec },
    StoredAttribute { name: COMPRESSION_COMPACT_MAJOR, default: UNSET, kind: Kind::Codec },
    StoredAttribute { name: COMPRESSION_COMPACT_MINOR, default: UNSET, kind: Kind::Codec },
    StoredAttribute { name: "INDEX_BLOCK_ENCODING", default: "NONE", kind: Kind::Words(&["NONE"]) },
    StoredAttribute { name: CACHE_DATA_ON_WRITE, default: "false", kind: Kind::Boolean },
    StoredAttribute { name: CACHE_INDEX_ON_WRITE, default: "false", kind: Kind::Boolean },
    StoredAttribute { name: CACHE_BLOOMS_ON_WRITE, default: "false", kind: Kind::Boolean },
    StoredAttribute { name: "EVICT_BLOCKS_ON_CLOSE", default: "false", kind: Kind::Boolean },
    StoredAttribute { name: PREFETCH_BLOCKS_ON_OPEN, default: "false", kind: Kind::Boolean },
    StoredAttribute { name: COMPRESS_TAGS, default: "true", kind: Kind::Boolean },
    StoredAttribute {
        name: "IN_MEMORY_COMPACTION",
        default: "NONE",
        kind: Kind::Words(&["NONE", "BASIC", "EAGER", "ADAPTIVE"]),
    },
    StoredAttribute { name: "REPLICATION_SCOPE", default: "0", kind: Kind::Integer(0, 1) },
    StoredAttribute { name: "DFS_REPLICATION", default: "0", kind: Kind::Integer(0, 32_767) },
    StoredAttribute {
        name: "STORAGE_POLICY",
        default: "HOT",
        kind: Kind::Words(&["HOT", "WARM", "COLD", "ALL_SSD", "ONE_SSD", "LAZY_PERSIST", "PROVIDED", "NONE"]),
    },
    StoredAttribute { name: "IS_MOB", default: "false", kind: Kind::Boolean },
    StoredAttribute { name: "MOB_THRESHOLD", default: "102400", kind: Kind::Size },
    StoredAttribute {
        name: "MOB_COMPACT_PARTITION_POLICY",
        default: "DAILY",
        kind: Kind::Words(&["DAILY", "WEEKLY", "MONTHLY"]),
    },
];

/// What a table's other known attributes are.
pub(super) const TABLE_STORED: &[StoredAttribute] = &[
    StoredAttribute {
        name: SPLIT_POLICY,
        default: "SteppingSplitPolicy",
        kind: Kind::Words(&[
            "SteppingSplitPolicy",
            "ConstantSizeRegionSplitPolicy",
            "IncreasingToUpperBoundRegionSplitPolicy",
            "KeyPrefixRegionSplitPolicy",
            "DelimitedKeyPrefixRegionSplitPolicy",
            "DisabledRegionSplitPolicy",
        ]),
    },
    StoredAttribute { name: SPLIT_PREFIX_LENGTH, default: UNSET, kind: Kind::Integer(1, 32_767) },
    StoredAttribute { name: SPLIT_DELIMITER, default: UNSET, kind: Kind::Text },
    StoredAttribute { name: MERGE_ENABLED, default: "true", kind: Kind::Boolean },
    StoredAttribute {
        name: "FLUSH_POLICY",
        default: UNSET,
        kind: Kind::Words(&["FlushAllLargeStoresPolicy", "FlushAllStoresPolicy", "FlushNonSloppyStoresFirstPolicy"]),
    },
    StoredAttribute { name: "REGION_REPLICATION", default: "1", kind: Kind::Integer(1, 1) },
    StoredAttribute { name: "REGION_MEMSTORE_REPLICATION", default: "true", kind: Kind::Boolean },
    StoredAttribute { name: "NORMALIZATION_ENABLED", default: "false", kind: Kind::Boolean },
    StoredAttribute { name: "NORMALIZER_TARGET_REGION_COUNT", default: UNSET, kind: Kind::Integer(1, i32::MAX as i64) },
    StoredAttribute {
        name: "NORMALIZER_TARGET_REGION_SIZE_MB",
        default: UNSET,
        kind: Kind::Integer(1, i32::MAX as i64),
    },
    StoredAttribute { name: "PRIORITY", default: "0", kind: Kind::Integer(0, i32::MAX as i64) },
    StoredAttribute { name: "ERASURE_CODING_POLICY", default: UNSET, kind: Kind::Text },
    StoredAttribute { name: SNAPSHOT_EVERY, default: "NEVER", kind: Kind::Interval },
    StoredAttribute { name: SNAPSHOT_KEEP, default: "24", kind: Kind::Integer(1, 100_000) },
];

/// Values of HBase's that are not taken, and why: what cannot be done is not promised.
const REFUSED_WORDS: &[(&str, &str, &str)] = &[
    ("INDEX_BLOCK_ENCODING", "PREFIX_TREE", "this version writes plain indexes only"),
    (SPLIT_POLICY, "BusyRegionSplitPolicy", "it splits by the queues of a region server, and there is none here"),
];

/// Attributes of HBase's that are not taken at all, and why.
const REFUSED: &[(&str, &str)] = &[
    ("ENCRYPTION", "nothing is encrypted: encrypt the volume below the store"),
    ("ENCRYPTION_KEY", "nothing is encrypted: encrypt the volume below the store"),
    ("IS_META", "that is hbase:meta's alone"),
    ("IS_ROOT", "that is hbase:meta's alone"),
    ("CACHE_DATA_IN_L1", "HBase 2.6 has it no more"),
];

/// Why HBase has an attribute of this name and it is not taken; `None` if nothing is known of it.
pub(super) fn refusal(name: &str) -> Option<&'static str> {
    if name.to_ascii_lowercase().starts_with("coprocessor$") {
        return Some("no coprocessors run here");
    }
    REFUSED.iter().find(|(refused, _)| *refused == name).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_defaults_are_legal_and_not_kept() {
        for attribute in FAMILY_STORED.iter().chain(TABLE_STORED) {
            let mut metadata = BTreeMap::new();
            let Some(shown) = attribute.show(&metadata) else {
                assert_eq!(attribute.default, UNSET);
                continue;
            };
            attribute.set(&mut metadata, &shown).unwrap();
            assert!(metadata.is_empty(), "{} is stored as {metadata:?}", attribute.name);
        }
    }
}
