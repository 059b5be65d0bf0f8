//! The filter language.

use super::{Comparator, Comparison, Filter, SingleColumnValue};
use crate::client::CompareOperator;

fn parse(text: &str) -> Filter {
    Filter::parse(text.as_bytes()).unwrap()
}

fn prefix(text: &str) -> Filter {
    Filter::Prefix { prefix: text.as_bytes().to_vec().into() }
}

#[test]
fn operators_bind_as_in_hbase() {
    let (a, b, c) = ("PrefixFilter('a')", "PrefixFilter('b')", "PrefixFilter ( 'c' )");
    assert_eq!(parse(a), prefix("a"));
    assert_eq!(
        parse(&format!("{a} OR {b} AND {c}")),
        Filter::any([prefix("a"), Filter::all([prefix("b"), prefix("c")])])
    );
    assert_eq!(
        parse(&format!("({a} OR {b}) AND {c}")),
        Filter::all([Filter::any([prefix("a"), prefix("b")]), prefix("c")])
    );
    assert_eq!(parse(&format!("{a} AND {b} AND {c}")), Filter::all([prefix("a"), prefix("b"), prefix("c")]));
    assert_eq!(
        parse(&format!("SKIP {a} AND WHILE({b} OR {c})")),
        Filter::all([
            Filter::Skip(Box::new(prefix("a"))),
            Filter::WhileMatch(Box::new(Filter::any([prefix("b"), prefix("c")])))
        ])
    );
    assert_eq!(parse(&format!("(({a}))")), prefix("a"));
}

#[test]
fn arguments_of_every_kind() {
    assert_eq!(parse("PrefixFilter('it''s, (so)')"), prefix("it's, (so)"));
    assert_eq!(
        parse("ValueFilter(!=, 'regexstringnocase:a.*:b')"),
        Filter::Value(Comparison {
            operator: CompareOperator::NotEqual,
            comparator: Comparator::Regex { pattern: "a.*:b".into(), ignore_case: true }
        })
    );
    let mut condition = SingleColumnValue::new("f", "q", Comparison::binary(CompareOperator::GreaterOrEqual, "5"));
    assert_eq!(parse("SingleColumnValueFilter('f','q',>=,'binary:5')"), Filter::SingleColumnValue(condition.clone()));
    (condition.filter_if_missing, condition.latest_version_only, condition.exclude) = (true, false, true);
    assert_eq!(
        parse("SingleColumnValueExcludeFilter('f' 'q' >= 'binary:5' TRUE, False)"),
        Filter::SingleColumnValue(condition)
    );
    assert_eq!(
        parse("ColumnRangeFilter('', true, 'z', false)"),
        Filter::ColumnRange { min: None, min_inclusive: true, max: Some("z".into()), max_inclusive: false }
    );
    assert_eq!(parse("TimestampsFilter(5, 3)"), Filter::Timestamps { timestamps: [3, 5].into() });
    assert_eq!(parse("ColumnPaginationFilter(2,1)"), Filter::ColumnPagination { limit: 2, offset: 1 });
    assert_eq!(
        parse("KeyOnlyFilter() AND FirstKeyOnlyFilter( )"),
        Filter::all([Filter::KeyOnly { length_as_value: false }, Filter::FirstKeyOnly])
    );
    let bytes = Filter::parse(b"PrefixFilter('\xff\x00')").unwrap();
    assert_eq!(bytes, Filter::Prefix { prefix: (&b"\xff\x00"[..]).into() });
}

#[test]
fn errors_name_the_place() {
    let cases = [
        ("", "at byte 0: a filter was expected"),
        ("PrefixFilter('a') PrefixFilter('b')", "at byte 18: AND, OR or the end"),
        ("PrefixFilter('a') AND", "at byte 21: a filter was expected"),
        ("(PrefixFilter('a')", "at byte 0: this parenthesis is not closed"),
        ("PrefixFilter('a'))", "at byte 17: this parenthesis closes nothing"),
        ("PrefixFilter('a", "at byte 13: this quote is not closed"),
        ("PrefixFilter('a'", "at byte 12: this parenthesis is not closed"),
        ("PrefixFilter 'a'", "at byte 13: ( was expected"),
        ("PrefixFilter(a)", "at byte 13: text in single quotes"),
        ("NoFilter('a')", "at byte 0: there is no filter NoFilter with 1 arguments; there are: KeyOnlyFilter"),
        ("PrefixFilter()", "at byte 0: there is no filter PrefixFilter with 0"),
        ("PageFilter(-1)", "at byte 11: a number"),
        ("PageFilter('1')", "at byte 11: a number"),
        ("PageFilter(99999999999999999999)", "at byte 11: a number"),
        ("ValueFilter(==, 'binary:a')", "at byte 12: one of < <="),
        ("ValueFilter(=, 'a')", "at byte 15: 'binary:X'"),
        ("ValueFilter(=, 'binaryy:a')", "at byte 15: 'binary:X'"),
        ("ValueFilter(<, 'substring:a')", "at byte 12: = or !="),
        ("KeyOnlyFilter(maybe)", "at byte 14: true or false"),
    ];
    for (text, expected) in cases {
        let error = Filter::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    let deep = format!("{}PrefixFilter('a'){}", "(".repeat(1000), ")".repeat(1000));
    assert!(Filter::parse(deep.as_bytes()).unwrap_err().to_string().contains("nested deeper"));
}

proptest::proptest! {
    #[test]
    fn no_text_breaks_the_parser(text in "[ (),'<=!A-Zab:0-9]{0,60}") {
        let _ = Filter::parse(text.as_bytes());
    }
}
