//! Listings and inode numbers (docs/semantics.md, "Names", "Attributes").

use crate::kernel::Kernel;

fn filled(rows: usize) -> Kernel {
    let mut kernel = Kernel::new();
    kernel.mkdir("default/t").unwrap();
    let table = kernel.table("t");
    for row in 0..rows {
        let put = cellfs::client::Put::new(format!("row{row:05}")).add("cf", "a", "1").add("cf", "b", "2");
        table.put(put).unwrap();
    }
    kernel
}

#[test]
fn rows_come_in_key_order_whatever_the_size_of_the_replies() {
    let mut kernel = filled(300);
    kernel.mkdir("default/t/row00010a").unwrap();
    kernel.mkdir("default/t/a").unwrap();
    kernel.mkdir("default/t/z").unwrap();
    let whole = kernel.list("default/t").unwrap();
    assert_eq!(whole.len(), 304);
    assert_eq!(whole[0], ".schema");
    assert!(whole[1..].is_sorted());
    assert_eq!(whole[1], "a");
    for room in [1, 7, 100] {
        for plus in [false, true] {
            let names: Vec<String> =
                kernel.list_entries("default/t", room, plus).unwrap().into_iter().map(|(name, _, _)| name).collect();
            assert_eq!(names[..2], [".", ".."]);
            assert_eq!(names[2..], whole, "{room} {plus}");
        }
    }
}

#[test]
fn numbers_of_listings_are_those_of_stat_and_stay() {
    let mut kernel = filled(3);
    // Later than the moment in which `.schema` is unseen by the process that made the table.
    kernel.clock.add(3000);
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let mut all = Vec::new();
        for directory in ["", "default", "default/t", "default/t/row00001"] {
            for plus in [false, true] {
                for (name, inode, kind) in kernel.list_entries(directory, 10, plus).unwrap() {
                    if name != "." && name != ".." {
                        let shown = kernel.stat(&format!("{directory}/{name}")).unwrap();
                        assert_eq!((shown.inode, shown.kind), (inode, kind), "{directory}/{name}");
                        all.push(inode);
                    } else if name == "." {
                        assert_eq!(kernel.stat(directory).unwrap().inode, inode);
                    }
                }
            }
        }
        numbers.push(all);
        kernel = kernel.remount();
    }
    assert_eq!(numbers[0], numbers[1]);
    let table = kernel.list_entries("default/t", 100, false).unwrap();
    let schema = table.iter().find(|(name, _, _)| name == ".schema").unwrap().1;
    assert!(table.iter().all(|(name, inode, _)| name.starts_with('.') || *inode > schema));
}

#[test]
fn a_listing_is_of_one_moment_and_rewinding_takes_a_new_one() {
    use cellfs_mount::ops::{DirectorySink, Entry, FileKind, Operations};
    struct One(Vec<String>, u64);
    impl DirectorySink for One {
        fn add(&mut self, _: u64, _: FileKind, name: &[u8], next: u64, _: Option<&Entry>) -> bool {
            if self.0.len() == 4 {
                return true;
            }
            self.0.push(String::from_utf8(name.to_vec()).unwrap());
            self.1 = next;
            false
        }
    }
    let mut kernel = filled(5);
    let inode = kernel.walk("default/t").unwrap();
    let (handle, _) = kernel.fs.opendir(&kernel.caller, inode).unwrap();
    let next = |kernel: &Kernel, offset| {
        let mut sink = One(Vec::new(), 0);
        kernel.fs.readdir(&kernel.caller, inode, handle, offset, false, &mut sink).unwrap();
        (sink.0, sink.1)
    };
    let (first, offset) = next(&kernel, 0);
    assert_eq!(first, [".", "..", ".schema", "row00000"]);
    let put = cellfs::client::Put::new("row00001x").add("cf", "a", "1");
    kernel.table("t").put(put).unwrap();
    let (second, _) = next(&kernel, offset);
    assert_eq!(second, ["row00001", "row00002", "row00003", "row00004"]);
    assert_eq!(next(&kernel, offset - 2).0[0], ".schema", "asked again for what could not be handed on");
    assert_eq!(next(&kernel, 0).0, first);
    assert_eq!(next(&kernel, offset).0, ["row00001", "row00001x", "row00002", "row00003"]);
    kernel.fs.releasedir(inode, handle);
}

#[test]
fn wide_rows_are_listed_whole() {
    let mut kernel = Kernel::new();
    kernel.mkdir("default/t").unwrap();
    for part in 0..10 {
        let mut put = cellfs::client::Put::new("wide");
        for column in 0..200 {
            put = put.add("cf", format!("{part:02}{column:04}"), "v");
        }
        kernel.table("t").put(put).unwrap();
    }
    let listed = kernel.list("default/t/wide").unwrap();
    assert_eq!(listed.len(), 2000);
    assert!(listed.is_sorted());
}

#[test]
fn listing_while_removing_ends_with_an_empty_directory() {
    let mut kernel = filled(50);
    for row in kernel.list("default/t").unwrap() {
        if row.starts_with('.') {
            continue;
        }
        for cell in kernel.list(&format!("default/t/{row}")).unwrap() {
            kernel.unlink(&format!("default/t/{row}/{cell}")).unwrap();
        }
        kernel.rmdir(&format!("default/t/{row}")).unwrap();
    }
    assert_eq!(kernel.list("default/t").unwrap(), [".schema"]);
    kernel.rmdir("default/t").unwrap();
}

#[test]
fn a_new_tables_schema_is_unseen_by_its_maker_until_it_writes_it() {
    let mut kernel = Kernel::new().forgetful();
    for table in ["default/t", "default/u", "default/v", "default/w"] {
        kernel.mkdir(table).unwrap();
    }
    let maker = kernel.caller;
    kernel.caller = kernel.process(1);
    assert!(kernel.stat("default/t/.schema").is_ok(), "another process sees it");
    assert_eq!(kernel.list("default/t").unwrap(), [".schema"], "and lists it");
    kernel.caller = maker;
    // stat, lstat, stat, lstat, open: what unzip asks about a file that it is to make.
    for _ in 0..5 {
        assert_eq!(kernel.stat("default/t/.schema").unwrap_err(), libc::ENOENT);
    }
    assert!(kernel.stat("default/t/.schema").is_ok());
    assert_eq!(kernel.list("default/w").unwrap(), [".schema"], "listings have it all the same");
    assert!(kernel.stat("default/w/.schema").is_ok(), "and what a listing names is there");
    let file = kernel.open("default/u/.schema", libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL).unwrap();
    kernel.close(file).unwrap();
    assert!(kernel.stat("default/u/.schema").is_ok(), "once it is made");
    kernel.clock.add(3000);
    assert!(kernel.stat("default/v/.schema").is_ok(), "after two seconds");
}
