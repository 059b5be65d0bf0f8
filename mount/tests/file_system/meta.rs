//! hbase:meta in a store of our own: the regions, read-only.

use crate::kernel::Kernel;
use cellfs::client::{Admin, TableName};

#[test]
fn the_regions_are_there_as_hbase_would_show_them() {
    let mut kernel = Kernel::new();
    kernel.mkdir("default/t").unwrap();
    assert_eq!(kernel.list("").unwrap(), ["default"], "found, not listed");
    assert_eq!(kernel.list("hbase").unwrap(), ["meta"]);
    let rows = |kernel: &mut Kernel| {
        let listed = kernel.list("hbase/meta").unwrap();
        listed.into_iter().filter(|name| name != ".schema").collect::<Vec<_>>()
    };
    let before = rows(&mut kernel);
    assert!(before.len() == 1 && before[0].starts_with("t,,18000000000") && before[0].ends_with('.'), "{before:?}");
    assert_eq!(kernel.list(&format!("hbase/meta/{}", before[0])).unwrap(), ["info:regioninfo", "info:state"]);
    assert_eq!(kernel.read(&format!("hbase/meta/{}/info:state", before[0])).unwrap(), "OPEN");
    let value = kernel.read(&format!("hbase/meta/{}/info:regioninfo", before[0])).unwrap();
    assert!(value.starts_with(b"PBUF\x08") && value.ends_with(b"\x12\x0c\n\x07default\x12\x01t"), "{value:?}");
    assert_eq!(kernel.stat(&format!("hbase/meta/{}/info:regioninfo", before[0])).unwrap().size, value.len() as u64);
    // A split is seen at once, and what it replaced is gone.
    kernel.mkdir("default/t/r").unwrap();
    kernel.write("default/t/r/cf:a", "v").unwrap();
    kernel.store.split_table(&TableName::parse("t").unwrap(), Some(b"m")).unwrap();
    let mut kernel = kernel.forgetful();
    let after = rows(&mut kernel);
    assert!(after.len() == 2 && after[1].starts_with("t,m,") && !after.contains(&before[0]), "{after:?}");
    assert!(!kernel.exists(&format!("hbase/meta/{}", before[0])));
    assert!(
        kernel.read(&format!("hbase/meta/{}/info:regioninfo", after[1])).unwrap().windows(3).any(|w| w == b"\x1a\x01m")
    );
    assert_eq!(kernel.read("hbase/meta/.scan/prefix=t,m/count").unwrap(), "1\n");
    assert_eq!(kernel.list(&format!("hbase/meta/.cf/info/{}", after[0])).unwrap(), ["regioninfo", "state"]);
}

#[test]
fn nobody_writes_it() {
    let mut kernel = Kernel::new().forgetful();
    kernel.mkdir("default/t").unwrap();
    let row = kernel.list("hbase/meta").unwrap().pop().unwrap();
    let path = |rest: &str| format!("hbase/meta/{row}{rest}");
    let results = [
        kernel.write(&path("/info:state"), "CLOSED"),
        kernel.write(&path("/info:new"), "x"),
        kernel.unlink(&path("/info:state")),
        kernel.rmdir(&path("")),
        kernel.mkdir("hbase/meta/row"),
        kernel.rename(&path("/info:state"), &path("/info:other")),
        kernel.rename("hbase/meta", "default/meta"),
        kernel.rename("default/t", "hbase/t"),
        kernel.rmdir("hbase/meta"),
        kernel.rmdir("hbase"),
        kernel.mkdir("hbase/own"),
        kernel.write("hbase/meta/.schema", "[family.x]\n"),
        kernel.mkdir("hbase/meta/.cf/more"),
        kernel.write(&path("/.row.json"), "null\n"),
    ];
    for (place, result) in results.into_iter().enumerate() {
        assert!(matches!(result, Err(libc::EROFS | libc::EPERM)), "{place}: {result:?}");
    }
    assert_eq!(kernel.fs.state().errors.text().lines().count(), 14, "each with a reason");
    assert_eq!(kernel.read(&path("/info:state")).unwrap(), "OPEN");
}
