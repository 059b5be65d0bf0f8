use crate::world::{ROOT, World};
use cellfs::client::Get;
use cellfs::types::ColumnType;
use cellfs_mount::magic::{Change, Place};

fn stored(world: &World, qualifier: &str) -> Vec<Vec<u8>> {
    let get = Get::new("r").column("cf", qualifier.to_owned()).versions(9);
    world.table.get(&get).unwrap().cells.iter().map(|cell| cell.value().to_vec()).collect()
}

/// `echo text > .as/type/cell`
fn write_as(world: &World, of: &str, cell: &str, text: &str) -> Result<(), (i32, String)> {
    let directory = world.find(&format!("row=r/.as/{of}")).unwrap();
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;
    let made = world.magic.create(&Place::Magic(&directory), cell.as_bytes(), &ROOT, flags);
    let written = made.and_then(|(_, mut file)| {
        file.flush()?;
        file.write(0, text.as_bytes())?;
        file.flush()
    });
    written.map_err(|error| (error.errno, error.reason))
}

#[test]
fn a_cell_is_read_and_written_as_every_type() {
    let world = World::new();
    let names = world.list("row=r/.as");
    assert_eq!(names, ColumnType::all().map(ColumnType::name).collect::<Vec<_>>());
    for (of, text, bytes) in [
        ("int", "34", &b"\x00\x00\x00\x22"[..]),
        ("long", "-1", &[0xFF; 8]),
        ("short", "258", &[1, 2]),
        ("double", "1.5", &[0x3f, 0xf8, 0, 0, 0, 0, 0, 0]),
        ("bool", "true", &[0xFF]),
        ("bigdecimal", "1.50", &[0, 0, 0, 2, 0, 0x96]),
        ("hex", "00ff", &[0, 0xFF]),
        ("base64", "AP8=", &[0, 0xFF]),
        ("string", "two\nlines", b"two\nlines"),
        ("string", "", b""),
        ("ob-int32", "-1", &[0x2b, 0x7f, 0xff, 0xff, 0xff]),
        ("ob-string-desc", "a", &[0xcb, 0x9e, 0xff]),
        ("ob-numeric", "1234.5678", &[0x19, 0x19, 0x45, 0x71, 0x9c]),
    ] {
        write_as(&world, of, "cf:x", &format!("{text}\n")).unwrap();
        assert_eq!(stored(&world, "x")[0], bytes, "{of} {text}");
        assert_eq!(world.read(&format!("row=r/.as/{of}/cf:x")), format!("{text}\n"));
    }
    assert!(matches!(world.hooks.changes.lock().last(), Some(Change::Cell { .. })));
    assert_eq!(world.list("row=r/.as/hex"), ["cf:x"]);
    let shown = world.magic.attributes(&world.find("row=r/.as/hex/cf:x").unwrap(), &ROOT).unwrap();
    assert_eq!((shown.size, shown.mode), (11, 0o644));
}

#[test]
fn what_is_no_value_is_einval_with_the_reason_and_makes_no_version() {
    let world = World::new();
    write_as(&world, "int", "cf:x", "5\n").unwrap();
    for (of, text, expected) in [
        ("int", "five\n", "whole number of 32 bits"),
        ("int", "5 \n", "whole number"),
        ("int", "\n", "whole number"),
        ("bool", "1\n", "neither true nor false"),
        ("hex", "abc", "hexadecimal"),
    ] {
        let (errno, reason) = write_as(&world, of, "cf:x", text).unwrap_err();
        assert_eq!(errno, libc::EINVAL);
        assert!(reason.contains(expected), "{reason}");
    }
    assert_eq!(stored(&world, "x"), [[0, 0, 0, 5]]);
    // Bytes of another width are there, but cannot be read as the type.
    let error = world.read_bytes("row=r/.as/long/cf:x").unwrap_err();
    assert_eq!(error.errno, libc::EINVAL);
    assert!(error.reason.contains("4 bytes, not 8"), "{error}");
    assert_eq!(world.magic.attributes(&world.find("row=r/.as/long/cf:x").unwrap(), &ROOT).unwrap().size, 0);
    assert_eq!(world.errno("row=r/.as/int/cf:none"), libc::ENOENT);
    assert_eq!(world.errno("row=r/.as/integer/cf:x"), libc::ENOENT);
    assert_eq!(write_as(&world, "int", "nope:x", "1\n").unwrap_err().0, libc::EINVAL);
    let attribute_file = world.open_to_write("row=r/.as/int/cf:x");
    attribute_file.unwrap().flush().unwrap();
    assert_eq!(stored(&world, "x").len(), 1);
}

#[test]
fn one_open_is_one_version_and_a_line_is_written_at_once() {
    let world = World::new();
    world.schema("[family.cf]\nVERSIONS = 9\n");
    write_as(&world, "int", "cf:x", "1\n").unwrap();
    let mut file = world.open_to_write("row=r/.as/string/cf:x").unwrap();
    file.write(0, b"one\n").unwrap();
    assert_eq!(stored(&world, "x")[0], b"one");
    file.write(4, b"two").unwrap();
    assert_eq!(stored(&world, "x")[0], b"one");
    file.flush().unwrap();
    file.flush().unwrap();
    assert_eq!(stored(&world, "x"), [&b"one\ntwo"[..], &[0, 0, 0, 1]]);
}

fn typed() -> World {
    let world = World::new();
    world.schema(
        "[family.cf]\n[family.cf.types]\nage = \"int\"\nbig = \"long\"\nprice = \"bigdecimal\"\nheight = \"double\"\non = \"bool\"\nid = \"hex\"\n",
    );
    world
}

const TYPED: &str = "{\n  \"cf:age\": 34,\n  \"cf:big\": \"9007199254740993\",\n  \"cf:height\": 1.5,\n  \"cf:id\": \"00ff\",\n  \"cf:note\": \"text\",\n  \"cf:on\": true,\n  \"cf:price\": \"1.50\"\n}\n";

#[test]
fn typed_columns_are_json_of_their_type_in_row_documents() {
    let world = typed();
    world.write("row=r/.row.json", TYPED).unwrap();
    assert_eq!(stored(&world, "age"), [34i32.to_be_bytes()]);
    assert_eq!(stored(&world, "big"), [9_007_199_254_740_993i64.to_be_bytes()]);
    assert_eq!(stored(&world, "price"), [[0, 0, 0, 2, 0, 0x96]]);
    assert_eq!(world.read("row=r/.row.json"), TYPED);
    world
        .write("row=r/.row.json", "{\"$if\": {\"cf:age\": 34, \"cf:on\": true}, \"cf:age\": \"35\", \"cf:big\": 7}")
        .unwrap();
    assert_eq!(stored(&world, "age")[0], 35i32.to_be_bytes());
    assert_eq!(stored(&world, "big")[0], 7i64.to_be_bytes());
    for (text, expected) in [
        ("{\"cf:age\": 1.5}", "whole number of 32 bits"),
        ("{\"cf:age\": \"x\"}", "whole number"),
        ("{\"cf:on\": \"yes\"}", "neither"),
        ("{\"cf:note\": 5}", "the column has no type"),
        ("{\"cf:age\": 99999999999}", "whole number"),
    ] {
        let error = world.write("row=r/.row.json", text).unwrap_err();
        assert_eq!(error.errno, libc::EINVAL);
        assert!(error.reason.contains(expected), "{text}: {error}");
    }
    // What is no value of its type is shown as bytes, and taken back as those.
    world.write("row=r/.row.json", "{\"cf:age\": {\"$b64\": \"YWI=\"}}").unwrap();
    let shown = world.read("row=r/.row.json");
    assert!(shown.contains("\"cf:age\": {\"$b64\": \"YWI=\"}"), "{shown}");
    world.write("row=r/.row.json", &shown).unwrap();
    assert_eq!(stored(&world, "age")[0], b"ab");
    let error = world.write(".schema", "[family.cf.types]\nage = \"number\"\n").unwrap_err();
    assert!(error.reason.starts_with("line 2: there is no type number"), "{error}");
    assert!(world.read(".schema").contains("\n[family.cf.types]\nage = \"int\"\n"));
}

#[test]
fn typed_columns_go_through_every_text_form_and_back() {
    let world = typed();
    let document = TYPED.replace(['\n'], "").replace("{  ", "{").replace(",  ", ", ");
    let line = format!("{{\"row\": \"r\", \"cells\": {document}}}\n");
    world.write(".import/jsonl", &line).unwrap();
    assert_eq!(stored(&world, "height"), [1.5f64.to_be_bytes()]);
    assert_eq!(world.read(".scan/jsonl"), line);
    let columns = "columns=cf:age,cf:big,cf:height,cf:id,cf:note,cf:on,cf:price";
    let tsv = world.read(&format!(".scan/{columns}/tsv"));
    assert!(tsv.ends_with("\nr\t34\t9007199254740993\t1.5\t00ff\ttext\ttrue\t1.50\n"), "{tsv}");
    let csv = world.read(&format!(".scan/{columns}/csv"));
    assert!(csv.ends_with("\nr,34,9007199254740993,1.5,00ff,text,true,1.50\n"), "{csv}");
    let cells = world.read(".scan/cells");
    assert!(cells.contains("\tput\t\\x00\\x00\\x00\"\n"), "{cells}");
    for (form, text) in [("tsv", &tsv), ("csv", &csv)] {
        world.write("row=r/.row.json", "null").unwrap();
        world.write(&format!(".import/{form}"), text).unwrap();
        assert_eq!(world.read(".scan/jsonl"), line, "{form}");
    }
    let versions = world.read(".scan/versions=all/columns=cf:age/jsonl");
    assert!(versions.contains("\"v\": 34}"), "{versions}");
    world.write(".import/jsonl", &versions).unwrap();
    // A line whose value is none of its type costs that line.
    assert_eq!(world.write(".import/tsv", "row\tcf:age\ns\tmany\nt\t5\n").unwrap_err().errno, libc::EINVAL);
    assert!(world.read(".import/errors").contains("\"many\" is no int"), "{}", world.read(".import/errors"));
    assert_eq!(world.read(".scan/keys"), "r\nt\n");
}
