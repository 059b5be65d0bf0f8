//! A table seen through one family: the same rows and cells, by another way.

use crate::kernel::Kernel;
use cellfs::client::{Admin, Put, TableName};
use cellfs_mount::fs::FsOptions;

fn table() -> Kernel {
    let mut kernel = Kernel::new().forgetful();
    kernel.mkdir("default/t").unwrap();
    kernel.mkdir("default/t/.cf/info").unwrap();
    kernel
}

fn reason(kernel: &Kernel) -> String {
    kernel.fs.state().errors.text().lines().last().unwrap_or_default().to_owned()
}

#[test]
fn families_are_made_and_dropped_as_directories() {
    let mut kernel = table();
    assert_eq!(kernel.list("default/t/.cf").unwrap(), ["cf", "info"]);
    assert_eq!(kernel.mkdir("default/t/.cf/info"), Err(libc::EEXIST));
    for bad in ["a:b", "%41", ".x", "a\\b"] {
        assert_eq!(kernel.mkdir(&format!("default/t/.cf/{bad}")), Err(libc::EINVAL), "{bad}");
    }
    kernel.mkdir("default/t/.cf/100%25").unwrap();
    kernel.mkdir("default/t/r").unwrap();
    kernel.write("default/t/r/info:a", "v").unwrap();
    assert_eq!(kernel.rmdir("default/t/.cf/info"), Err(libc::ENOTEMPTY));
    assert!(reason(&kernel).contains("info"), "{}", reason(&kernel));
    assert_eq!(kernel.rename("default/t/.cf/info", "default/t/.cf/other"), Err(libc::EINVAL));
    assert_eq!(kernel.unlink("default/t/.cf/info"), Err(libc::EPERM));
    kernel.unlink("default/t/r/info:a").unwrap();
    // An empty row is there still when a family that it had no cell in goes.
    kernel.rmdir("default/t/.cf/info").unwrap();
    kernel.rmdir("default/t/.cf/100%25").unwrap();
    assert!(kernel.exists("default/t/r"));
    assert!(!kernel.exists("default/t/.cf/info") && !kernel.exists("default/t/.cf/info/r"));
    assert_eq!(kernel.write("default/t/r/info:a", "v"), Err(libc::EINVAL));
    assert_eq!(kernel.rmdir("default/t/.cf/info"), Err(libc::ENOENT));
    assert_eq!(kernel.rmdir("default/t/.cf/cf"), Err(libc::EPERM));
    assert!(reason(&kernel).contains("last family"), "{}", reason(&kernel));
    kernel.mkdir("default/t/.cf/kept").unwrap();
    kernel.write("default/t/r/kept:a", "v").unwrap();
    // With HBase's defaults, and over a mount.
    let mut kernel = kernel.remount();
    assert_eq!(kernel.list("default/t/.cf").unwrap(), ["cf", "kept"]);
    assert_eq!(kernel.read("default/t/.cf/kept/r/a").unwrap(), "v");
    let descriptor = kernel.store.table(&TableName::parse("t").unwrap()).unwrap().descriptor();
    assert_eq!(descriptor.families.get(&b"kept"[..]), Some(&cellfs::schema::ColumnFamilyDescriptor::default()));
}

#[test]
fn cells_are_those_of_the_row() {
    let mut kernel = table();
    kernel.mkdir("default/t/r").unwrap();
    kernel.write("default/t/r/cf:a", "one").unwrap();
    kernel.write("default/t/r/info:b", "two").unwrap();
    assert_eq!(kernel.list("default/t/.cf/cf/r").unwrap(), ["a"]);
    assert_eq!(kernel.read("default/t/.cf/info/r/b").unwrap(), "two");
    assert_eq!(kernel.read("default/t/.cf/cf/r/.key").unwrap(), "r");
    assert!(!kernel.exists("default/t/.cf/cf/r/b") && !kernel.exists("default/t/.cf/cf/r/cf:a"));
    for absent in [".row.json", ".versions", ".at", ".as", ".x"] {
        assert!(!kernel.exists(&format!("default/t/.cf/cf/r/{absent}")), "{absent}");
    }
    let inode = |kernel: &mut Kernel, path: &str| kernel.stat(path).unwrap().inode;
    assert_eq!(inode(&mut kernel, "default/t/.cf/cf/r/a"), inode(&mut kernel, "default/t/r/cf:a"));
    assert_ne!(inode(&mut kernel, "default/t/.cf/cf/r"), inode(&mut kernel, "default/t/r"));
    assert_ne!(inode(&mut kernel, "default/t/.cf/cf/r"), inode(&mut kernel, "default/t/.cf/info/r"));
    // Each entry of a listing has the number that stat gives.
    for directory in ["default/t/.cf", "default/t/.cf/cf", "default/t/.cf/cf/r"] {
        for (name, number, _) in kernel.list_entries(directory, 100, true).unwrap() {
            let path = match name.as_str() {
                "." => directory.to_owned(),
                ".." => continue,
                name => format!("{directory}/{name}"),
            };
            assert_eq!(number, inode(&mut kernel, &path), "{path}");
        }
    }
    kernel.write("default/t/.cf/cf/r/new", "three").unwrap();
    assert_eq!(kernel.read("default/t/r/cf:new").unwrap(), "three");
    kernel.append("default/t/r/cf:new", "four").unwrap();
    assert_eq!(kernel.read("default/t/.cf/cf/r/new").unwrap(), "threefour");
    kernel.rename("default/t/.cf/cf/r/new", "default/t/.cf/info/r/moved").unwrap();
    assert_eq!(kernel.list("default/t/r").unwrap(), ["cf:a", "info:b", "info:moved"]);
    kernel.rename("default/t/.cf/info/r/moved", "default/t/r/cf:back").unwrap();
    assert_eq!(kernel.read("default/t/.cf/cf/r/back").unwrap(), "threefour");
    kernel.unlink("default/t/.cf/cf/r/back").unwrap();
    assert!(!kernel.exists("default/t/r/cf:back"));
    assert_eq!(kernel.mkdir("default/t/.cf/cf/r/d"), Err(libc::EPERM));
    assert_eq!(kernel.rmdir("default/t/.cf/cf/r/a"), Err(libc::ENOTDIR));
    // A cell that is being made is listed here too.
    let open = kernel.open("default/t/r/info:making", libc::O_WRONLY | libc::O_CREAT).unwrap();
    assert_eq!(kernel.list("default/t/.cf/info/r").unwrap(), ["b", "making"]);
    assert_eq!(kernel.list("default/t/.cf/cf/r").unwrap(), ["a"]);
    kernel.close(open).unwrap();
}

#[test]
fn names_are_qualifiers_alone() {
    let mut kernel = table();
    kernel.mkdir("default/t/r").unwrap();
    for (alone, whole) in
        [("%", "cf:"), ("%2Ehidden", "cf:.hidden"), ("tail%7E", "cf:tail%7E"), ("a:b", "cf:a:b"), ("4913", "cf:4913")]
    {
        kernel.write(&format!("default/t/.cf/cf/r/{alone}"), alone).unwrap();
        assert_eq!(kernel.read(&format!("default/t/r/{whole}")).unwrap(), alone);
    }
    assert_eq!(kernel.list("default/t/.cf/cf/r").unwrap(), ["%", "%2Ehidden", "4913", "a:b", "tail%7E"]);
    // No scratch files, and no other spelling.
    for bad in ["tail~", ".hidden", ".a.x1y2z3", ".a.swp", "%41", ".goutputstream-1", ".fuse_hidden1"] {
        assert_eq!(kernel.write(&format!("default/t/.cf/cf/r/{bad}"), "x"), Err(libc::EINVAL), "{bad}");
        assert_eq!(kernel.rename("default/t/.cf/cf/r/4913", &format!("default/t/.cf/cf/r/{bad}")), Err(libc::EINVAL));
    }
    assert!(reason(&kernel).contains("not the name of a qualifier"), "{}", reason(&kernel));
    assert_eq!(kernel.unlink("default/t/.cf/cf/r/tail~"), Err(libc::ENOENT));
    assert_eq!(kernel.write(&format!("default/t/.cf/cf/r/{}", "q".repeat(256)), "x"), Err(libc::ENAMETOOLONG));
}

#[test]
fn long_qualifiers_have_a_name_on_both_ways() {
    let mut kernel = table();
    kernel.mkdir("default/t/r").unwrap();
    // It fits alone, and has a short form in the row.
    let fits = "q".repeat(254);
    kernel.write(&format!("default/t/.cf/cf/r/{fits}"), "fits").unwrap();
    let listed = kernel.list("default/t/r").unwrap();
    assert!(listed.len() == 1 && listed[0].contains("%~"), "{listed:?}");
    assert_eq!(kernel.read(&format!("default/t/r/{}", listed[0])).unwrap(), "fits");
    assert_eq!(kernel.list("default/t/.cf/cf/r").unwrap(), [fits.as_str()]);
    kernel.unlink(&format!("default/t/.cf/cf/r/{fits}")).unwrap();
    assert!(!kernel.exists(&format!("default/t/r/{}", listed[0])));
    // Too long for both: two short forms of one cell.
    let long = "q".repeat(300);
    kernel.table("t").put(Put::new("r").add("cf", long, "long")).unwrap();
    let listed = kernel.list("default/t/.cf/cf/r").unwrap();
    assert!(listed.len() == 1 && listed[0].len() == 255 && !listed[0].starts_with("cf:"), "{listed:?}");
    assert_eq!(kernel.read(&format!("default/t/.cf/cf/r/{}", listed[0])).unwrap(), "long");
    kernel.append(&format!("default/t/.cf/cf/r/{}", listed[0]), "er").unwrap();
    let whole = kernel.list("default/t/r").unwrap();
    assert_eq!(kernel.read(&format!("default/t/r/{}", whole[0])).unwrap(), "longer");
    kernel.rename(&format!("default/t/.cf/cf/r/{}", listed[0]), "default/t/.cf/cf/r/short").unwrap();
    assert_eq!(kernel.list("default/t/r").unwrap(), ["cf:short"]);
}

#[test]
fn rows_with_cells_of_the_family_are_listed_and_all_are_found() {
    let mut kernel = table();
    for row in ["both", "only-cf", "only-info"] {
        kernel.mkdir(&format!("default/t/.cf/cf/{row}")).unwrap();
        assert_eq!(kernel.mkdir(&format!("default/t/.cf/info/{row}")), Err(libc::EEXIST));
    }
    assert_eq!(kernel.list("default/t/.cf/cf").unwrap().len(), 0);
    kernel.write("default/t/.cf/cf/both/a", "v").unwrap();
    kernel.write("default/t/.cf/info/both/a", "v").unwrap();
    kernel.write("default/t/.cf/cf/only-cf/a", "v").unwrap();
    kernel.write("default/t/only-info/info:a", "v").unwrap();
    assert_eq!(kernel.list("default/t/.cf/cf").unwrap(), ["both", "only-cf"]);
    assert_eq!(kernel.list("default/t/.cf/info").unwrap(), ["both", "only-info"]);
    assert!(kernel.exists("default/t/.cf/info/only-cf") && !kernel.exists("default/t/.cf/info/none"));
    assert_eq!(kernel.list("default/t/.cf/info/only-cf").unwrap().len(), 0);
    assert_eq!(kernel.mkdir("default/t/.cf/info/%41"), Err(libc::EINVAL));
    assert_eq!(kernel.write("default/t/.cf/info/file", "x"), Err(libc::EPERM));
    // `rm -r` of a row here removes its cells of the family; the row goes with its last cell.
    assert_eq!(kernel.rmdir("default/t/.cf/cf/both"), Err(libc::ENOTEMPTY));
    kernel.unlink("default/t/.cf/cf/both/a").unwrap();
    kernel.rmdir("default/t/.cf/cf/both").unwrap();
    assert_eq!(kernel.list("default/t").unwrap(), [".schema", "both", "only-cf", "only-info"]);
    kernel.unlink("default/t/.cf/info/both/a").unwrap();
    kernel.rmdir("default/t/.cf/info/both").unwrap();
    assert_eq!(kernel.rmdir("default/t/.cf/info/both"), Err(libc::ENOENT));
    assert_eq!(kernel.list("default/t").unwrap(), [".schema", "only-cf", "only-info"]);
    assert_eq!(kernel.rename("default/t/.cf/cf/only-cf", "default/t/.cf/cf/other"), Err(libc::EXDEV));
}

#[test]
fn figures_of_a_family_and_the_past_of_one() {
    let mut kernel = table();
    kernel.mkdir("default/t/r").unwrap();
    kernel.write("default/t/r/cf:a", "one").unwrap();
    kernel.write("default/t/r/info:a", "two").unwrap();
    kernel.store.flush_table(&TableName::parse("t").unwrap()).unwrap();
    let figures = kernel.read("default/t/.cf/info/.stats").unwrap();
    let figures = String::from_utf8(figures.to_vec()).unwrap();
    assert!(figures.contains("\nentries 1\n") && figures.contains("\nfiles 1\n"), "{figures}");
    assert!(kernel.list("default/t/.cf/info").unwrap() == ["r"] && kernel.unlink("default/t/.cf/info/.stats").is_err());
    kernel.mkdir("default/t/.snap/s").unwrap();
    kernel.write("default/t/r/info:a", "three").unwrap();
    assert_eq!(kernel.read("default/t/.snap/s/.cf/info/r/a").unwrap(), "two");
    assert_eq!(kernel.list("default/t/.snap/s/.cf").unwrap(), ["cf", "info"]);
    for (call, path) in [("mkdir", "new"), ("rmdir", "info"), ("mkdir", "info/row"), ("write", "info/r/b")] {
        let path = format!("default/t/.snap/s/.cf/{path}");
        let result = match call {
            "mkdir" => kernel.mkdir(&path),
            "rmdir" => kernel.rmdir(&path),
            _ => kernel.write(&path, "x"),
        };
        assert_eq!(result, Err(libc::EROFS), "{call} {path}");
    }
    assert!(!kernel.exists("default/t/.snap/s/.cf/info/.stats") && !kernel.exists("default/t/.snap/s/.cf/info/r/.at"));
}

#[test]
fn references_are_given_back() {
    let mut kernel = Kernel::with(cellfs::vfs::SimVfs::new(), FsOptions::default());
    kernel.mkdir("default/t").unwrap();
    kernel.mkdir("default/t/r").unwrap();
    kernel.write("default/t/r/cf:a", "v").unwrap();
    let mut kernel = kernel.forgetful();
    kernel.read("default/t/.cf/cf/r/a").unwrap();
    let before = kernel.fs.state().inodes.len();
    for _ in 0..20 {
        kernel.stat("default/t/.cf/cf/r/a").unwrap();
        kernel.list("default/t/.cf/cf/r").unwrap();
        kernel.list("default/t/.cf/cf").unwrap();
    }
    assert_eq!(kernel.fs.state().inodes.len(), before);
}
