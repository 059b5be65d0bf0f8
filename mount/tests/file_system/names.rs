//! Rows and cells of every kind of key, by name (docs/semantics.md, "Names").

use crate::kernel::Kernel;

#[test]
fn any_key_is_listed_read_written_renamed_and_removed() {
    let mut kernel = Kernel::new();
    kernel.mkdir("default/t").unwrap();
    let keys: [&[u8]; 6] = [b".dot", b"a/b", b"\x00\xff", b"100%", "\u{e4}".as_bytes(), b"tilde~"];
    for key in keys {
        let put = cellfs::client::Put::new(key.to_vec()).add("cf", key.to_vec(), key.to_vec());
        kernel.table("t").put(put).unwrap();
    }
    let rows = kernel.list("default/t").unwrap();
    assert_eq!(rows, [".schema", "%00%FF", "%2Edot", "100%25", "a%2Fb", "tilde~", "\u{e4}"]);
    for row in &rows[1..] {
        let cells = kernel.list(&format!("default/t/{row}")).unwrap();
        assert_eq!(cells.len(), 1);
        let path = format!("default/t/{row}/{}", cells[0]);
        let value = kernel.read(&path).unwrap();
        assert!(keys.contains(&&*value));
        kernel.append(&path, "+").unwrap();
        assert_eq!(kernel.read(&path).unwrap().len(), value.len() + 1);
        kernel.rename(&path, &format!("default/t/{row}/cf:moved")).unwrap();
        kernel.unlink(&format!("default/t/{row}/cf:moved")).unwrap();
        kernel.rmdir(&format!("default/t/{row}")).unwrap();
    }
}

#[test]
fn long_keys_are_reached_by_their_short_names() {
    let mut kernel = Kernel::new();
    kernel.mkdir("default/t").unwrap();
    let (one, two) = ("k".repeat(300), format!("{}x", "k".repeat(299)));
    let long_qualifier = "q".repeat(400);
    for key in [&one, &two] {
        let put = cellfs::client::Put::new(key.clone()).add("cf", long_qualifier.clone(), key.clone());
        kernel.table("t").put(put).unwrap();
    }
    let rows = kernel.list("default/t").unwrap();
    assert_eq!(rows.len(), 3);
    assert!(rows[1..].iter().all(|row| row.len() == 255 && row.contains("%~")));
    for (row, key) in rows[1..].iter().zip([&one, &two]) {
        let cells = kernel.list(&format!("default/t/{row}")).unwrap();
        let path = format!("default/t/{row}/{}", cells[0]);
        assert_eq!(kernel.read(&path).unwrap(), *key);
        kernel.write(&path, "written").unwrap();
        assert_eq!(kernel.read(&path).unwrap(), "written");
        kernel.rename(&path, &format!("default/t/{row}/cf:short")).unwrap();
        kernel.unlink(&format!("default/t/{row}/cf:short")).unwrap();
    }
    kernel.rmdir(&format!("default/t/{}", rows[1])).unwrap();
    assert_eq!(kernel.list("default/t").unwrap(), [".schema", rows[2].as_str()]);
    let missing = rows[1].clone();
    assert_eq!(kernel.stat(&format!("default/t/{missing}")).unwrap_err(), libc::ENOENT);
    assert_eq!(kernel.mkdir(&format!("default/t/{missing}")), Err(libc::EINVAL));
}
