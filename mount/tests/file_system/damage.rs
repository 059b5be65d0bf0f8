//! A store file that cannot be read: what needs it is EIO with the place of the damage, everything else is as ever (docs/durability.md).

use crate::kernel::Kernel;
use cellfs::client::{Admin, TableName};
use cellfs::vfs::Vfs;
use std::path::PathBuf;

/// Rows a (in a file that is then cut short) and b, and the table `other`.
fn damaged() -> (Kernel, PathBuf) {
    let mut kernel = Kernel::new();
    for path in ["default/t", "default/t/a", "default/other", "default/other/r"] {
        kernel.mkdir(path).unwrap();
    }
    kernel.write("default/t/a/cf:q", "in the file").unwrap();
    kernel.write("default/other/r/cf:q", "elsewhere").unwrap();
    let name = TableName::parse("t").unwrap();
    kernel.store.flush_table(&name).unwrap();
    let file = kernel.store.open_regions(&name).unwrap()[0].stores()[0].files().as_slice()[0].file.path();
    kernel.mkdir("default/t/b").unwrap();
    kernel.write("default/t/b/cf:q", "in memory").unwrap();
    kernel.vfs.open_write(&file).unwrap().set_len(100).unwrap();
    (kernel.remount(), file)
}

#[test]
fn what_needs_a_damaged_file_is_an_error_and_the_rest_goes_on() {
    let (mut kernel, file) = damaged();
    assert_eq!(kernel.read("default/t/b/cf:q").unwrap(), "in memory");
    assert_eq!(kernel.read("default/other/r/cf:q").unwrap(), "elsewhere");
    for _ in 0..2 {
        assert_eq!(kernel.read("default/t/a/cf:q"), Err(libc::EIO));
        assert_eq!(kernel.stat("default/t/a").map(|_| ()), Err(libc::EIO));
        // A listing is never silently shorter.
        assert_eq!(kernel.list("default/t"), Err(libc::EIO));
        assert_eq!(kernel.read("default/t/.scan/keys"), Err(libc::EIO));
    }
    assert_eq!(kernel.read("default/t/.scan/prefix=b/keys").unwrap(), "b\n");
    assert_eq!(kernel.rmdir("default/t"), Err(libc::EIO));
    assert_eq!(kernel.rmdir("default/t/.cf/cf"), Err(libc::EPERM));
    let shown = file.display().to_string();
    let errors = kernel.fs.state().errors.text();
    assert!(errors.lines().all(|line| line.contains(&shown) || line.contains("last family")), "{errors}");
    kernel.write("default/t/b/cf:q", "new").unwrap();
    kernel.mkdir("default/t/c").unwrap();
    kernel.write("default/t/c/cf:q", "new").unwrap();
    let text = |kernel: &mut Kernel, path: &str| String::from_utf8(kernel.read(path).unwrap().to_vec()).unwrap();
    let status = text(&mut kernel, ".cellfs/status");
    assert!(status.contains("damaged_files 1\ndamaged default:t ") && status.contains(&shown), "{status}");
    let health = text(&mut kernel, "default/t/.health");
    assert!(
        health.starts_with("WARN damaged_files 1 0 ") && health.ends_with("above, the first ones first\n"),
        "{health}"
    );
    assert!(text(&mut kernel, "default/other/.health").starts_with("OK damaged_files 0 "));
    assert!(text(&mut kernel, ".cellfs/health").contains("WARN damaged_files 1 0 "));
    assert!(text(&mut kernel, "default/t/.stats").contains("\nfiles 2\n"));
    assert!(kernel.vfs.exists(&file).unwrap());
}
