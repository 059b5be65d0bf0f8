//! A region's schema and configuration, as scripts tell them: by HBase's names. They go the way of every schema, through the text that
//! `.schema` takes, so that HBase's checks of names and values are the product's own.

use super::protocol::{Parse, Parsed, unescape};
use bytes::Bytes;
use cellfs::schema::{KeySpelling, TableDescriptor, parse_table};
use cellfs::server::StoreOptions;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

type Attributes = BTreeMap<String, String>;

/// A setting that the engine takes from a family's metadata, as HBase does too.
const TIME_TO_PURGE_DELETES: &str = "hbase.hstore.time.to.purge.deletes";

/// What `create` and every `alter` since have said.
#[derive(Clone, Default)]
pub struct Schema {
    families: BTreeMap<String, Attributes>,
    table: Attributes,
}

/// Families are written as scripts write them.
struct Escapes;

impl KeySpelling for Escapes {
    fn spell_row(&self, row: &[u8]) -> String {
        super::protocol::escape(row)
    }

    fn parse_row(&self, text: &str) -> Option<Bytes> {
        Some(unescape(text).into())
    }

    fn spell_family(&self, family: &[u8]) -> String {
        super::protocol::escape(family)
    }

    fn parse_family(&self, text: &str) -> Option<Bytes> {
        Some(unescape(text).into())
    }

    fn spell_qualifier(&self, qualifier: &[u8]) -> String {
        super::protocol::escape(qualifier)
    }

    fn parse_qualifier(&self, text: &str) -> Option<Bytes> {
        Some(unescape(text).into())
    }
}

impl Schema {
    /// The schema after `op`, a `create` or `alter`.
    pub fn changed(&self, op: &Value) -> Schema {
        let mut schema = self.clone();
        for (name, attributes) in op["families"].as_object().into_iter().flatten() {
            extend(schema.families.entry(name.clone()).or_default(), attributes);
        }
        extend(&mut schema.table, &op["table"]);
        if let Some(millis) = op["conf"].get(TIME_TO_PURGE_DELETES) {
            let more = serde_json::json!({ TIME_TO_PURGE_DELETES: millis });
            schema.families.values_mut().for_each(|family| extend(family, &more));
        }
        schema
    }

    /// The schema as the engine takes it.
    pub fn descriptor(&self) -> Parsed<TableDescriptor> {
        let mut text = String::new();
        section(&mut text, "table", &self.table);
        for (name, attributes) in &self.families {
            section(&mut text, &format!("family.{}", quoted(name)), attributes);
        }
        match parse_table(&text, &Escapes) {
            Ok(parsed) => Ok(parsed.descriptor),
            Err(error) => Err(Parse::Refused(error.to_string())),
        }
    }
}

fn extend(attributes: &mut Attributes, more: &Value) {
    for (name, value) in more.as_object().into_iter().flatten() {
        attributes.insert(name.clone(), value.as_str().unwrap().to_owned());
    }
}

/// JSON's quoting is TOML's.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Attributes in capitals are HBase's, others anybody's.
fn section(text: &mut String, name: &str, attributes: &Attributes) {
    let is_own =
        |key: &str| key.bytes().any(|byte| byte.is_ascii_lowercase()) && key != "RowPrefixBloomFilter.prefix_length";
    let (own, known): (Vec<_>, Vec<_>) = attributes.iter().partition(|(key, _)| is_own(key));
    for (suffix, entries) in [("", known), (".metadata", own)] {
        if suffix.is_empty() || !entries.is_empty() {
            writeln!(text, "[{name}{suffix}]").unwrap();
        }
        for (key, value) in entries {
            let bare = value.parse::<i64>().is_ok() || value == "true" || value == "false";
            let value = if bare { value.clone() } else { quoted(value) };
            writeln!(text, "{} = {value}", quoted(key)).unwrap();
        }
    }
}

/// Takes over what `create` says under `conf`.
pub fn configure(options: &mut StoreOptions, op: &Value) -> Parsed<()> {
    for (key, value) in op["conf"].as_object().into_iter().flatten() {
        let number = || value.as_str().and_then(|text| text.parse::<i64>().ok());
        let Some(number) = number() else { return Err(Parse::NotUnderstood(format!("{key} = {value}"))) };
        let region = &mut options.region;
        match key.as_str() {
            "hbase.hregion.keyvalue.timestamp.slop.millisecs" => region.limits.timestamp_slop_millis = Some(number),
            "hbase.hregion.majorcompaction" => region.compaction.major_period_millis = number,
            "hbase.hstore.compaction.min" | "hbase.hstore.compactionThreshold" => {
                region.compaction.min_files = number as usize;
            }
            "hbase.hstore.compaction.max" => region.compaction.max_files = number as usize,
            "hbase.hstore.blockingStoreFiles" => region.compaction.blocking_files = number as usize,
            TIME_TO_PURGE_DELETES => {}
            _ => return Err(Parse::NotUnderstood(format!("the setting {key}"))),
        }
    }
    Ok(())
}
