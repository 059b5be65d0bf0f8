//! `.scan/.../rows/`: rows of a scan as directories.

use crate::kernel::Kernel;

#[test]
fn rows_of_a_scan_are_the_rows_themselves() {
    let mut kernel = Kernel::new().forgetful();
    kernel.mkdir("default/t").unwrap();
    for (row, value) in [("a1", "x"), ("a2", "y"), ("b%2F1", "x"), ("c1", "x")] {
        kernel.mkdir(&format!("default/t/{row}")).unwrap();
        kernel.write(&format!("default/t/{row}/cf:v"), value).unwrap();
    }
    assert_eq!(kernel.list("default/t/.scan/rows").unwrap(), ["a1", "a2", "b%2F1", "c1"]);
    assert_eq!(kernel.list("default/t/.scan/prefix=a/reverse=1/rows").unwrap(), ["a2", "a1"]);
    assert_eq!(kernel.list("default/t/.scan/where=cf:v=x/stop=c/rows").unwrap(), ["a1", "b%2F1"]);
    assert_eq!(kernel.list("default/t/.scan/filter=ValueFilter(=, 'binary:y')/rows").unwrap(), ["a2"]);
    assert_eq!(kernel.list("default/t/.scan/limit=1/rows").unwrap(), ["a1"]);
    assert_eq!(kernel.list("default/t/.scan/limit=0/rows").unwrap().len(), 0);
    assert_eq!(kernel.list("default/t/.scan/sample=2/rows").unwrap(), ["a1", "c1"]);
    // Found by name as far as range and conditions go.
    assert!(kernel.exists("default/t/.scan/limit=1/rows/c1"));
    assert!(!kernel.exists("default/t/.scan/prefix=a/rows/c1"));
    assert!(!kernel.exists("default/t/.scan/where=cf:v=x/rows/a2"));
    assert!(!kernel.exists("default/t/.scan/rows/none"));
    // All of the row is there, and what is written is written to the row.
    assert_eq!(kernel.read("default/t/.scan/prefix=b/rows/b%2F1/cf:v").unwrap(), "x");
    kernel.write("default/t/.scan/prefix=b/rows/b%2F1/cf:w", "new").unwrap();
    assert_eq!(kernel.list("default/t/b%2F1").unwrap(), ["cf:v", "cf:w"]);
    assert_eq!(kernel.list("default/t/.scan/rows/b%2F1").unwrap(), ["cf:v", "cf:w"]);
    assert_eq!(kernel.read("default/t/.scan/rows/c1/.key").unwrap(), "c1");
    let inode = |kernel: &mut Kernel, path: &str| kernel.stat(path).unwrap().inode;
    assert_ne!(inode(&mut kernel, "default/t/.scan/rows/c1"), inode(&mut kernel, "default/t/c1"));
    assert_eq!(inode(&mut kernel, "default/t/.scan/rows/c1/cf:v"), inode(&mut kernel, "default/t/c1/cf:v"));
    kernel.unlink("default/t/.scan/rows/a2/cf:v").unwrap();
    assert_eq!(kernel.list("default/t/.scan/prefix=a/rows").unwrap(), ["a1"]);
    assert_eq!(kernel.mkdir("default/t/.scan/rows/new"), Err(libc::EPERM));
    assert_eq!(kernel.rmdir("default/t/.scan/rows/a1"), Err(libc::EPERM));
    assert!(!kernel.exists("default/t/.scan/raw=1/rows"));
}
