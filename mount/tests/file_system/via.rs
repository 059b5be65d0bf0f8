//! Rows under their logical keys (docs/keys.md): the same rows, by another way.

use crate::kernel::Kernel;

fn table() -> Kernel {
    let mut kernel = Kernel::new().forgetful();
    kernel.mkdir("default/t").unwrap();
    kernel
}

#[test]
fn a_row_is_made_used_and_removed_under_its_logical_key() {
    let mut kernel = table();
    kernel.mkdir("default/t/.via/md5-4/user1").unwrap();
    assert_eq!(kernel.mkdir("default/t/.via/md5-4/user1"), Err(libc::EEXIST));
    kernel.write("default/t/.via/md5-4/user1/cf:a", "v").unwrap();
    assert_eq!(kernel.list("default/t").unwrap(), [".schema", "24c9_user1"]);
    assert_eq!(kernel.read("default/t/24c9_user1/cf:a").unwrap(), "v");
    assert_eq!(kernel.read("default/t/.via/md5-4/user1/.key").unwrap(), "24c9_user1");
    assert_eq!(kernel.read("default/t/.via/md5-4/user1/.row.json").unwrap(), "{\n  \"cf:a\": \"v\"\n}\n");
    assert_eq!(kernel.list("default/t/.via/md5-4/user1").unwrap(), ["cf:a"]);
    // Another directory, the same files.
    let inode = |kernel: &mut Kernel, path: &str| kernel.stat(path).unwrap().inode;
    assert_ne!(inode(&mut kernel, "default/t/.via/md5-4/user1"), inode(&mut kernel, "default/t/24c9_user1"));
    assert_eq!(inode(&mut kernel, "default/t/.via/md5-4/user1/cf:a"), inode(&mut kernel, "default/t/24c9_user1/cf:a"));
    kernel.write("default/t/24c9_user1/cf:a", "new").unwrap();
    assert_eq!(kernel.read("default/t/.via/md5-4/user1/cf:a").unwrap(), "new");
    kernel.rename("default/t/.via/md5-4/user1/cf:a", "default/t/.via/md5-4/user1/cf:b").unwrap();
    assert_eq!(kernel.rmdir("default/t/.via/md5-4/user1"), Err(libc::ENOTEMPTY));
    kernel.rename("default/t/.via/md5-4/user1", "default/t/.via/md5-4/user2").unwrap();
    assert_eq!(kernel.list("default/t").unwrap(), [".schema", "7e58_user2"]);
    assert!(!kernel.exists("default/t/.via/md5-4/user1"));
    kernel.unlink("default/t/.via/md5-4/user2/cf:b").unwrap();
    kernel.rmdir("default/t/.via/md5-4/user2").unwrap();
    assert_eq!(kernel.list("default/t").unwrap(), [".schema"]);
    assert_eq!(kernel.rmdir("default/t/.via/md5-4/user2"), Err(libc::ENOENT));
}

#[test]
fn schemes_list_logical_keys() {
    let mut kernel = table();
    for key in ["delta4", "alpha1", "charlie3", "bravo2"] {
        kernel.mkdir(&format!("default/t/.via/salt-16/{key}")).unwrap();
        if key != "bravo2" {
            kernel.write(&format!("default/t/.via/salt-16/{key}/cf:a"), key).unwrap();
        }
    }
    // Merged over the ranges, with the row that has no cell yet; keys of no salt are left out.
    kernel.mkdir("default/t/other").unwrap();
    assert_eq!(kernel.list("default/t/.via/salt-16").unwrap(), ["alpha1", "bravo2", "charlie3", "delta4"]);
    assert_eq!(kernel.list("default/t/.via/md5-4").unwrap().len(), 0);
    for number in ["-7", "0", "12", "100"] {
        kernel.mkdir(&format!("default/t/.via/long/{number}")).unwrap();
        kernel.write(&format!("default/t/.via/long/{number}/cf:a"), number).unwrap();
    }
    assert_eq!(kernel.list("default/t/.via/long").unwrap(), ["-7", "0", "12", "100"]);
    assert_eq!(kernel.list("default/t/.via/hex").unwrap().len(), 9);
    assert!(kernel.exists("default/t/%80%00%00%00%00%00%00%0C"));
    for (millis, value) in [(1_764_533_701_250u64, "old"), (1_764_533_701_251, "new")] {
        kernel.mkdir(&format!("default/t/.via/revts/sensor7/{millis}")).unwrap();
        kernel.write(&format!("default/t/.via/revts/sensor7/{millis}/cf:a"), value).unwrap();
    }
    assert_eq!(kernel.list("default/t/.via/revts").unwrap(), ["sensor7"]);
    assert_eq!(kernel.list("default/t/.via/revts/sensor7").unwrap(), ["1764533701251", "1764533701250"]);
    assert_eq!(kernel.read("default/t/sensor7_9223370272321074557/cf:a").unwrap(), "old");
    let schemes = kernel.list("default/t/.via").unwrap();
    assert!(schemes.contains(&"ob-int64-desc".to_owned()) && schemes.contains(&"revts".to_owned()), "{schemes:?}");
}

#[test]
fn other_spellings_are_no_keys() {
    let mut kernel = table();
    for path in ["pad-4/007", "pad-4/12345", "long/+1", "long/x", "hex/FF", "revts/p/-1", "reverse/%A4%C3"] {
        assert_eq!(kernel.mkdir(&format!("default/t/.via/{path}")), Err(libc::EINVAL), "{path}");
        assert!(!kernel.exists(&format!("default/t/.via/{path}")));
    }
    for path in ["md5-0", "salt-101", "pad", "rot13"] {
        assert!(!kernel.exists(&format!("default/t/.via/{path}")), "{path}");
    }
    assert_eq!(kernel.mkdir("default/t/.via/rot13"), Err(libc::EPERM));
    assert_eq!(kernel.write("default/t/.via/long/file", "x"), Err(libc::EPERM));
    assert!(
        kernel.fs.state().errors.text().contains("007 is no logical key of pad-4"),
        "{}",
        kernel.fs.state().errors.text()
    );
}

#[test]
fn references_to_the_row_are_given_back_with_those_to_its_other_directory() {
    let mut kernel = table();
    kernel.mkdir("default/t/.via/reverse/ab").unwrap();
    let before = kernel.fs.state().inodes.len();
    for _ in 0..20 {
        kernel.stat("default/t/.via/reverse/ab").unwrap();
        kernel.list("default/t/.via/reverse").unwrap();
        kernel.stat("default/t/ba").unwrap();
    }
    assert!(kernel.fs.state().inodes.len() <= before + 2, "{}", kernel.fs.state().inodes.len());
}
