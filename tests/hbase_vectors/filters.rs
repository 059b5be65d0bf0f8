//! Filters in the protocol of the recorded scripts.

use super::protocol::{Parse, Parsed, bytes, compare_operator};
use cellfs::client::{Comparator, Comparison, Filter, ListOperator, SingleColumnValue};
use serde_json::Value;

/// The filter of an operation, if it has one.
pub fn filter(op: &Value) -> Parsed<Option<Filter>> {
    op.get("filter").map(parse).transpose()
}

fn flag(value: &Value, name: &str, default: bool) -> bool {
    value.get(name).and_then(Value::as_bool).unwrap_or(default)
}

fn list<T: FromIterator<bytes::Bytes>>(value: &Value) -> T {
    value.as_array().unwrap().iter().map(bytes).collect()
}

fn comparison(filter: &Value) -> Parsed<Comparison> {
    let value = &filter["value"];
    let comparator = match filter.get("comparator").and_then(Value::as_str) {
        None | Some("binary") => Comparator::Binary(bytes(value)),
        Some("binary_prefix") => Comparator::BinaryPrefix(bytes(value)),
        Some("substring") => Comparator::Substring(value.as_str().unwrap().to_string()),
        Some("long") => Comparator::Long(value.as_i64().unwrap()),
        Some(other) => return Err(Parse::NotUnderstood(format!("comparator {other}"))),
    };
    Ok(Comparison { operator: compare_operator(&filter["compare"])?, comparator })
}

fn parse(filter: &Value) -> Parsed<Filter> {
    let number = |name: &str| {
        let number = filter[name].as_i64().unwrap();
        u64::try_from(number).map_err(|_| Parse::Refused(format!("{name} is negative")))
    };
    let small = |name: &str| number(name).map(|number| u32::try_from(number).unwrap());
    let inner = || parse(&filter["filter"]).map(Box::new);
    Ok(match filter["type"].as_str().unwrap() {
        "PrefixFilter" => Filter::Prefix { prefix: bytes(&filter["prefix"]) },
        "FirstKeyOnlyFilter" => Filter::FirstKeyOnly,
        "KeyOnlyFilter" => Filter::KeyOnly { length_as_value: flag(filter, "length_as_value", false) },
        "ColumnPrefixFilter" => Filter::ColumnPrefix { prefix: bytes(&filter["prefix"]) },
        "MultipleColumnPrefixFilter" => Filter::MultipleColumnPrefix { prefixes: list(&filter["prefixes"]) },
        "ColumnRangeFilter" => Filter::ColumnRange {
            min: filter.get("min").map(bytes),
            min_inclusive: flag(filter, "min_inclusive", true),
            max: filter.get("max").map(bytes),
            max_inclusive: flag(filter, "max_inclusive", false),
        },
        "ColumnPaginationFilter" => Filter::ColumnPagination { limit: small("limit")?, offset: small("offset")? },
        "ColumnCountGetFilter" => Filter::ColumnCountGet { limit: small("limit")? },
        "PageFilter" => Filter::Page { size: number("size")? },
        "InclusiveStopFilter" => Filter::InclusiveStop { row: bytes(&filter["stop"]) },
        "TimestampsFilter" => {
            let timestamps = filter["timestamps"].as_array().unwrap().iter().map(|time| time.as_i64().unwrap());
            Filter::Timestamps { timestamps: timestamps.collect() }
        }
        "RowFilter" => Filter::Row(comparison(filter)?),
        "FamilyFilter" => Filter::Family(comparison(filter)?),
        "QualifierFilter" => Filter::Qualifier(comparison(filter)?),
        "ValueFilter" => Filter::Value(comparison(filter)?),
        "SingleColumnValueFilter" => {
            let (family, qualifier) = (bytes(&filter["family"]), bytes(&filter["qualifier"]));
            let mut condition = SingleColumnValue::new(family, qualifier, comparison(filter)?);
            condition.filter_if_missing = flag(filter, "filter_if_missing", false);
            condition.latest_version_only = flag(filter, "latest_version_only", true);
            Filter::SingleColumnValue(condition)
        }
        "SkipFilter" => Filter::Skip(inner()?),
        "WhileMatchFilter" => Filter::WhileMatch(inner()?),
        "FilterList" => Filter::List {
            operator: match filter["operator"].as_str().unwrap() {
                "MUST_PASS_ALL" => ListOperator::MustPassAll,
                _ => ListOperator::MustPassOne,
            },
            filters: filter["filters"].as_array().unwrap().iter().map(parse).collect::<Parsed<_>>()?,
        },
        other => return Err(Parse::NotUnderstood(format!("filter {other}"))),
    })
}
