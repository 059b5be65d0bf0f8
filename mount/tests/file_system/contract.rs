//! What docs/semantics.md says and no other file here is about.

use crate::kernel::{BEGIN, Kernel};
use cellfs::vfs::Keep;
use cellfs_mount::ops::AttributeChanges;

fn row() -> Kernel {
    let mut kernel = Kernel::new().forgetful();
    kernel.mkdir("default/t").unwrap();
    kernel.mkdir("default/t/r").unwrap();
    kernel.write("default/t/r/cf:a", "x").unwrap();
    kernel
}

#[test]
fn the_reserved_namespace_is_found_and_not_listed() {
    let mut kernel = Kernel::new();
    assert_eq!(kernel.list("").unwrap(), ["default"]);
    assert!(kernel.exists("hbase"));
    assert_eq!(kernel.mkdir("hbase"), Err(libc::EEXIST));
    assert!(kernel.mkdir("hbase/t").is_err());
    assert!(kernel.rmdir("hbase").is_err());
    assert!(kernel.rename("hbase", "other").is_err());
    assert!(kernel.exists("hbase"));
}

#[test]
fn a_file_that_replaced_another_keeps_its_number_until_the_next_mount() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:b", "y").unwrap();
    let (first, second) =
        (kernel.stat("default/t/r/cf:a").unwrap().inode, kernel.stat("default/t/r/cf:b").unwrap().inode);
    kernel.rename("default/t/r/cf:a", "default/t/r/cf:b").unwrap();
    assert_eq!(kernel.stat("default/t/r/cf:b").unwrap().inode, first);
    let mut kernel = kernel.remount();
    assert_eq!(kernel.stat("default/t/r/cf:b").unwrap().inode, second);
}

#[test]
fn a_crash_leaves_a_renamed_cell_under_one_name() {
    let mut kernel = row();
    kernel.rename("default/t/r/cf:a", "default/t/r/cf:b").unwrap();
    let keeps = (0..100).map(Keep::Random).chain([Keep::None, Keep::All]);
    for keep in keeps {
        let mut crashed = Kernel::with(kernel.vfs.crash(keep), Default::default());
        let there = |crashed: &mut Kernel, cell| crashed.exists(&format!("default/t/r/{cell}"));
        let both = (there(&mut crashed, "cf:a"), there(&mut crashed, "cf:b"));
        assert_ne!(both, (true, true), "{keep:?}");
        if keep == Keep::All {
            assert_eq!(both, (false, true), "what rename has returned outlives the process");
        }
    }
}

#[test]
fn a_scratch_file_renamed_onto_a_schema_replaces_it() {
    let mut kernel = row();
    kernel.clock.add(3000);
    let text = String::from_utf8(kernel.read("default/t/.schema").unwrap().to_vec()).unwrap();
    assert!(text.contains("VERSIONS = 1\n"), "{text}");
    kernel.write("default/t/sedAb12cd", text.replace("VERSIONS = 1\n", "VERSIONS = 7\n")).unwrap();
    kernel.rename("default/t/sedAb12cd", "default/t/.schema").unwrap();
    assert!(kernel.read("default/t/.schema").unwrap().windows(13).any(|part| part == b"VERSIONS = 7\n"));
    assert_eq!(kernel.list("default/t").unwrap(), [".schema", "r"]);
}

#[test]
fn a_relative_time_is_counted_anew_at_every_lookup() {
    let mut kernel = row();
    let past = "default/t/.at/-2s/r/cf:a";
    assert_eq!(kernel.stat(past).unwrap_err(), libc::ENOENT, "two seconds ago there was nothing");
    kernel.clock.add(3000);
    assert_eq!(kernel.read(past).unwrap(), "x");
    kernel.write("default/t/r/cf:a", "y").unwrap();
    assert_eq!(kernel.read(past).unwrap(), "x");
    kernel.clock.add(3000);
    assert_eq!(kernel.read(past).unwrap(), "y");
}

#[test]
fn nothing_leads_from_a_snapshot_or_the_past_into_another_one() {
    let mut kernel = row();
    kernel.mkdir("default/t/.snap/s").unwrap();
    let now = BEGIN + 10;
    kernel.clock.add(20);
    for inside in ["default/t/.snap/s".into(), format!("default/t/.at/{now}"), format!(".at/{now}/default/t")] {
        assert_eq!(kernel.read(&format!("{inside}/r/cf:a")).unwrap(), "x", "{inside}");
        for name in [
            ".snap".into(),
            ".at".into(),
            format!(".at/{now}"),
            ".ctl".into(),
            ".import".into(),
            format!("r/.at/{now}"),
        ] {
            assert!(kernel.stat(&format!("{inside}/{name}")).is_err(), "{inside}/{name}");
        }
    }
}

#[test]
fn a_restore_leaves_modes_and_the_schema_as_they_are() {
    let mut kernel = row();
    kernel.mkdir("default/t/.snap/s").unwrap();
    kernel.clock.add(3000);
    kernel.write("default/t/r/cf:a", "y").unwrap();
    let mode = AttributeChanges { mode: Some(0o700), ..AttributeChanges::default() };
    kernel.setattr("default/t/r", mode).unwrap();
    let text = String::from_utf8(kernel.read("default/t/.schema").unwrap().to_vec()).unwrap();
    kernel
        .write_flags(
            "default/t/.schema",
            libc::O_WRONLY | libc::O_TRUNC,
            text.replace("VERSIONS = 1\n", "VERSIONS = 7\n"),
        )
        .unwrap();
    kernel.clock.add(1000);
    kernel.write_flags("default/t/.ctl", libc::O_WRONLY, "restore s\n").unwrap();
    assert_eq!(kernel.versions("t", "r", "cf:a").first().unwrap().1, "x");
    assert_eq!(kernel.stat("default/t/r").unwrap().mode, 0o700);
    assert!(kernel.read("default/t/.schema").unwrap().windows(13).any(|part| part == b"VERSIONS = 7\n"));
}

#[test]
fn a_scan_over_several_regions_has_one_filter() {
    let mut kernel = Kernel::new().forgetful();
    kernel.mkdir("default/t").unwrap();
    kernel.write_flags("default/t/.ctl", libc::O_WRONLY, "presplit b c\n").unwrap();
    for row in ["a", "b", "c"] {
        kernel.mkdir(&format!("default/t/{row}")).unwrap();
        kernel.write(&format!("default/t/{row}/cf:a"), "x").unwrap();
    }
    assert_eq!(kernel.read("default/t/.scan/filter=PageFilter(2)/keys").unwrap(), "a\nb\n");
    assert_eq!(kernel.read("default/t/.scan/filter=WHILE RowFilter(!=, 'binary:b')/keys").unwrap(), "a\n");
    assert!(kernel.read("default/t/.scan/filter=RowFilter(=, 'regexstring:(?=a)')/keys").is_err());
}

#[test]
fn a_name_that_is_not_there_is_no_error_to_keep_and_others_are() {
    let mut kernel = row();
    let count = |kernel: &Kernel| kernel.fs.state().errors.count();
    let before = count(&kernel);
    assert_eq!(kernel.stat("default/t/nothing").unwrap_err(), libc::ENOENT);
    assert_eq!(kernel.stat("default/t/r/cf:nothing").unwrap_err(), libc::ENOENT);
    assert_eq!(count(&kernel), before);
    assert_eq!(kernel.mkdir("default/t/r/x"), Err(libc::EPERM));
    assert_eq!(count(&kernel), before + 1);
}
