use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

fn row(key: &[u8]) -> String {
    String::from_utf8(encode_row(key).into_owned()).unwrap()
}

#[test]
fn rows_are_spelled_as_the_contract_says() {
    for (key, name) in [
        (&b"plain"[..], "plain"),
        (b".hidden", "%2Ehidden"),
        (b"..", "%2E."),
        (b"a.b~", "a.b~"),
        (b"a/b%c", "a%2Fb%25c"),
        (b"\x00\x1f\x7f\x80\xff", "%00%1F%7F%80%FF"),
        ("stra\u{df}e \u{1f600}".as_bytes(), "stra\u{df}e \u{1f600}"),
        (b"\xc3", "%C3"),
        (b"\xc3\xa4\xc3", "\u{e4}%C3"),
        (b"\xed\xa0\x80", "%ED%A0%80"),
        (b"\xc0\xaf", "%C0%AF"),
        (b" -*\"\\\n", " -*\"\\%0A"),
    ] {
        assert_eq!(row(key), name);
        assert_eq!(parse_row(name.as_bytes()), Some(RowName::Key(Bytes::copy_from_slice(key))));
    }
}

#[test]
fn cells_are_spelled_as_the_contract_says() {
    for (family, qualifier, name) in [
        (&b"info"[..], &b""[..], "info:"),
        (b"cf", b"a:b", "cf:a:b"),
        (b"cf", b".x", "cf:.x"),
        (b"cf", b"a~", "cf:a%7E"),
        (b"cf", b"~", "cf:%7E"),
        (b"cf", b"a~~", "cf:a~%7E"),
        (b"a%b", b"\xff", "a%25b:%FF"),
    ] {
        assert_eq!(cell_name(family, qualifier), name.as_bytes());
        let column = CellName::Column(Bytes::copy_from_slice(family), Bytes::copy_from_slice(qualifier));
        assert_eq!(parse_cell(name.as_bytes()), Some(column));
    }
}

#[test]
fn qualifiers_that_stand_alone_are_spelled_as_the_contract_says() {
    for (qualifier, name) in [
        (&b""[..], "%"),
        (b"a", "a"),
        (b"a:b", "a:b"),
        (b".x", "%2Ex"),
        (b".", "%2E"),
        (b"..", "%2E."),
        (b"~", "%7E"),
        (b".~", "%2E%7E"),
        (b"a~", "a%7E"),
        (b"a/%\xff", "a%2F%25%FF"),
        (b"4913", "4913"),
    ] {
        assert_eq!(qualifier_name(qualifier), name.as_bytes());
        assert_eq!(parse_qualifier(name.as_bytes()), Some(QualifierName::Key(Bytes::copy_from_slice(qualifier))));
    }
    for name in ["", ".", "..", ".x", "a~", "%2e", "%41", "%%", "a%", "a/b"] {
        assert_eq!(parse_qualifier(name.as_bytes()), None, "{name:?}");
    }
    let long = vec![b'q'; 256];
    let name = qualifier_name(&long);
    assert_eq!(name.len(), MAX_NAME);
    assert_eq!(parse_qualifier(&name), Some(QualifierName::Short(Bytes::copy_from_slice(&long[..221]))));
    // Alone it fits; with its family it does not.
    let whole = encode_column(b"cf", &long[..255]);
    assert_eq!((parse_cell(&whole), qualifier_name(&long[..255]).len()), (None, 255));
    assert_eq!(parse_column(&whole), Some(CellName::Column("cf".into(), Bytes::copy_from_slice(&long[..255]))));
}

#[test]
fn other_spellings_are_no_names() {
    for name in [
        "", ".", "..", ".x", "%2e", "%41", "%", "%4", "%G0", "a/b", "a\u{0}", "%2E%2E", "%7E", "a%7E", "\n", "%2F%",
        "x%~y",
    ] {
        assert_eq!(parse_row(name.as_bytes()), None, "{name:?}");
    }
    assert_eq!(parse_row(b"\xff"), None);
    assert_eq!(parse_row(b"%C3%A4"), None, "bytes that are valid UTF-8 together are not escaped");
    for name in ["cf", "", ":q", ".cf:q", "cf:q~", "cf:%7Ea", "c%2Ff:q", "c\\f:q", "cf:a/b", "cf:%61"] {
        assert_eq!(parse_cell(name.as_bytes()), None, "{name:?}");
    }
}

#[test]
fn every_key_of_up_to_two_bytes_has_its_own_name() {
    let mut seen = HashMap::new();
    let mut keys: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    keys.extend((0..=255).flat_map(|first| (0..=255).map(move |second| vec![first, second])));
    for key in keys {
        let name = row_name(&key).into_owned();
        assert_eq!(parse_row(&name), Some(RowName::Key(Bytes::copy_from_slice(&key))));
        let cell = cell_name(b"f", &key);
        assert_eq!(parse_cell(&cell), Some(CellName::Column("f".into(), Bytes::copy_from_slice(&key))));
        assert!(!name.starts_with(b".") && !cell.ends_with(b"~"));
        assert!(!name.contains(&b'/') && std::str::from_utf8(&name).is_ok());
        assert_eq!(seen.insert(name, key), None);
    }
}

#[test]
fn long_keys_get_a_short_form_that_names_them_alone() {
    let long = vec![b'k'; 256];
    let name = row_name(&long);
    assert_eq!(name.len(), MAX_NAME);
    assert_eq!(parse_row(&name), Some(RowName::Short(Bytes::copy_from_slice(&long[..221]))));
    assert_eq!(row_name(&long[..255]).len(), 255);
    assert!(matches!(parse_row(&row_name(&long[..255])), Some(RowName::Key(_))));
    let mut other = long.clone();
    other[255] = b'l';
    assert_ne!(row_name(&other), name);
    // The prefix never ends inside an escape or a character.
    for lead in 0..4 {
        for unit in [&b"\xff"[..], "\u{e4}".as_bytes(), "\u{20ac}".as_bytes(), "\u{1f600}".as_bytes()] {
            let mut key = vec![b'x'; lead];
            key.extend(unit.repeat(200));
            let name = row_name(&key).into_owned();
            assert!(name.len() <= MAX_NAME && std::str::from_utf8(&name).is_ok());
            let Some(RowName::Short(prefix)) = parse_row(&name) else { panic!("{name:?}") };
            assert!(key.starts_with(&prefix));
        }
    }
    let cell = cell_name(&[0xff; 127], b"q");
    assert!(matches!(parse_cell(&cell), Some(CellName::Short(prefix)) if prefix.iter().all(|byte| *byte == 0xff)));
    // The name of this version and of every later one: it must never change.
    assert_eq!(&row_name(&long)[221..], b"%~51c752b24b29cb728307aa056341acc0".as_slice());
}

proptest! {
    #[test]
    fn any_key_comes_back(key in proptest::collection::vec(any::<u8>(), 1..80)) {
        let name = row_name(&key).into_owned();
        prop_assert!(std::str::from_utf8(&name).is_ok());
        prop_assert_eq!(parse_row(&name), Some(RowName::Key(key.clone().into())));
        let cell = cell_name(b"cf", &key);
        prop_assert_eq!(parse_cell(&cell), Some(CellName::Column("cf".into(), key.into())));
    }

    #[test]
    fn any_name_is_canonical_or_no_name(name in "[a-c.~%/:0-9A-F\u{e4}\u{0}]{1,12}") {
        if let Some(RowName::Key(key)) = parse_row(name.as_bytes()) {
            prop_assert_eq!(&*row_name(&key), name.as_bytes());
        }
        if let Some(CellName::Column(family, qualifier)) = parse_cell(name.as_bytes()) {
            prop_assert_eq!(cell_name(&family, &qualifier), name.as_bytes());
        }
    }
}
