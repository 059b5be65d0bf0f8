use super::*;
use proptest::prelude::*;

/// Type, text and bytes, as HBase 2.6.4's `Bytes` and `OrderedBytes` gave them.
const HBASE: &str = include_str!("tests/hbase.tsv");

fn unhex(text: &str) -> Vec<u8> {
    ColumnType::Hex.encode(text).unwrap().to_vec()
}

#[test]
fn every_value_is_encoded_as_hbase_does_and_read_back() {
    let mut seen = std::collections::BTreeSet::new();
    for line in HBASE.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let (of, text, bytes) = (ColumnType::of_name(fields[0]).unwrap(), fields[1], unhex(fields[2]));
        seen.insert(of.name());
        assert_eq!(of.encode(text).unwrap(), bytes, "{line}");
        let shown = of.decode(&bytes).unwrap();
        assert_eq!(of.encode(&shown).unwrap(), bytes, "{line} is shown as {shown}");
        // Java writes floats in its own way; everything else is shown as Java shows it, but for plain numerics.
        if !fields[0].contains("float") && !fields[0].contains("double") && !fields[0].contains("numeric") {
            assert_eq!(shown, text, "{line}");
        }
    }
    let never = ColumnType::all().map(ColumnType::name).filter(|name| !seen.contains(name)).collect::<Vec<_>>();
    assert_eq!(never, ["base64", "hex"]);
}

#[test]
fn names_are_sorted_and_lead_back() {
    let names: Vec<&str> = ColumnType::all().map(ColumnType::name).collect();
    assert!(names.is_sorted());
    assert!(ColumnType::all().all(|of| ColumnType::of_name(of.name()) == Some(of)));
    assert_eq!(ColumnType::of_name("integer"), None);
}

#[test]
fn what_is_no_value_is_refused() {
    for (of, text) in [
        ("short", "32768"),
        ("int", "1.0"),
        ("int", ""),
        ("int", " 1"),
        ("long", "9223372036854775808"),
        ("float", "1e39"),
        ("double", "x"),
        ("double", "infinity"),
        ("double", "-NaN"),
        ("double", "e"),
        ("bool", "yes"),
        ("bigdecimal", "."),
        ("bigdecimal", "1e"),
        ("bigdecimal", "1,5"),
        ("bigdecimal", "1e99999999999"),
        ("hex", "abc"),
        ("hex", "zz"),
        ("base64", "a"),
        ("ob-int8", "128"),
        ("ob-numeric", "12345678901234567890123456789012"),
        ("ob-numeric", "1e701"),
        ("ob-numeric", "infinity"),
        ("ob-string", "a\0b"),
    ] {
        let refused = ColumnType::of_name(of).unwrap().encode(text);
        assert!(matches!(refused, Err(Error::InvalidArgument(_))), "{of} {text:?} gave {refused:?}");
    }
    for (of, bytes) in [
        ("string", "ff"),
        ("short", "00"),
        ("int", "0000000000"),
        ("long", ""),
        ("bool", ""),
        ("bool", "0001"),
        ("bigdecimal", "00000000"),
        ("ob-int32", "d47fffffff"),
        ("ob-int32-desc", "2b80000000"),
        ("ob-int32", "2b80"),
        ("ob-int32", "2b8000000000"),
        ("ob-int64", "05"),
        ("ob-string", "3461"),
        ("ob-string", "34610062"),
        ("ob-float32", "30ffc00001"),
        ("ob-numeric", "1803"),
        ("ob-numeric", "18"),
        ("ob-numeric", "1500"),
        ("ob-numeric", "1700"),
        ("ob-numeric", "18ca"),
        ("ob-numeric", "22"),
        ("ob-numeric", "220102"),
        ("ob-numeric", "22ff"),
    ] {
        let of = ColumnType::of_name(of).unwrap();
        let refused = of.decode(&unhex(bytes));
        assert!(refused.is_err(), "{} {bytes} gave {refused:?}", of.name());
    }
    let long = vec![b'1'; 10_001];
    assert!(ColumnType::BigDecimal.encode(std::str::from_utf8(&long).unwrap()).is_err());
    assert!(ColumnType::BigDecimal.decode(&[0x7f; 100_000]).is_err());
}

#[test]
fn json_numbers_are_those_that_keep_their_digits() {
    let numbers: Vec<&str> = ColumnType::all()
        .filter(|of| of.json_form() == JsonForm::Number)
        .map(ColumnType::name)
        .filter(|name| !name.ends_with("-desc"))
        .collect();
    let expected = ["double", "float", "int", "ob-float32", "ob-float64", "ob-int16", "ob-int32", "ob-int8", "short"];
    assert_eq!(numbers, expected);
}

/// Texts of decimal numbers that `ob-numeric` holds exactly.
fn numeric_text() -> impl Strategy<Value = String> {
    ("-?[1-9][0-9]{0,14}(\\.[0-9]{1,15})?", prop_oneof![Just(0), -400..400])
        .prop_map(|(digits, exponent)| if exponent == 0 { digits } else { format!("{digits}E{exponent}") })
}

fn value_of(text: &str) -> (bool, Vec<u8>, i64) {
    let decimal::Decimal { negative, mut digits, scale } = decimal::Decimal::parse(text).unwrap();
    let mut scale = i64::from(scale);
    while digits.last() == Some(&0) {
        digits.pop();
        scale -= 1;
    }
    (negative, digits, scale)
}

proptest! {
    #[test]
    fn whole_numbers_round_trip_and_sort(a: i64, b: i64) {
        for order in [Ascending, Descending] {
            let of = ordered(OrderedKind::Int64, order);
            let (left, right) = (of.encode(&a.to_string()).unwrap(), of.encode(&b.to_string()).unwrap());
            prop_assert_eq!(of.decode(&left).unwrap(), a.to_string());
            let expected = if order == Ascending { a.cmp(&b) } else { b.cmp(&a) };
            prop_assert_eq!(left.cmp(&right), expected);
        }
        prop_assert_eq!(ColumnType::Long.decode(&a.to_be_bytes()).unwrap(), a.to_string());
    }

    #[test]
    fn floats_round_trip_and_sort(a: f64, b: f64, c: f32) {
        let of = ordered(OrderedKind::Float64, Ascending);
        let encode = |number: f64| of.encode(&plain::float_text(number)).unwrap();
        prop_assert_eq!(of.decode(&encode(a)).unwrap(), plain::float_text(a));
        prop_assert_eq!(encode(a).cmp(&encode(b)), a.total_cmp(&b));
        let text = ColumnType::Float.decode(&c.to_be_bytes()).unwrap();
        prop_assert_eq!(ColumnType::Float.encode(&text).unwrap(), &c.to_be_bytes()[..]);
    }

    #[test]
    fn decimals_round_trip(text in "-?[0-9]{1,60}(\\.[0-9]{0,40})?(E-?[0-9]{1,3})?") {
        let bytes = ColumnType::BigDecimal.encode(&text).unwrap();
        let shown = ColumnType::BigDecimal.decode(&bytes).unwrap();
        prop_assert_eq!(value_of(&shown), value_of(&text));
        prop_assert_eq!(ColumnType::BigDecimal.encode(&shown).unwrap(), bytes);
    }

    #[test]
    fn numerics_round_trip_and_sort(a in numeric_text(), b in numeric_text()) {
        for order in [Ascending, Descending] {
            let of = ordered(OrderedKind::Numeric, order);
            let (left, right) = (of.encode(&a).unwrap(), of.encode(&b).unwrap());
            prop_assert_eq!(value_of(&of.decode(&left).unwrap()), value_of(&a));
            if let (Ok(x), Ok(y)) = (a.parse::<f64>(), b.parse::<f64>())
                && x != y && x.is_normal() && y.is_normal()
            {
                let expected = if order == Ascending { x.total_cmp(&y) } else { y.total_cmp(&x) };
                prop_assert_eq!(left.cmp(&right), expected, "{} {}", a, b);
            }
        }
    }

    #[test]
    fn no_bytes_make_a_decoder_fail_otherwise_than_by_refusing(bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        for of in ColumnType::all() {
            if let Ok(text) = of.decode(&bytes) {
                let again = of.encode(&text).unwrap();
                prop_assert_eq!(of.decode(&again).unwrap(), text, "{}", of.name());
            }
        }
    }
}
