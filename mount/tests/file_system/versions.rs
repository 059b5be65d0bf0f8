//! One open is one version (docs/semantics.md, "Writing").

use crate::kernel::{BEGIN, Kernel};

fn row() -> Kernel {
    let mut kernel = Kernel::new();
    kernel.mkdir("default/t").unwrap();
    kernel.mkdir("default/t/r").unwrap();
    keep_versions(&kernel);
    kernel
}

fn keep_versions(kernel: &Kernel) {
    use cellfs::client::{Admin, TableName};
    let family = cellfs::schema::ColumnFamilyDescriptor { versions: 100, ..Default::default() };
    let descriptor = cellfs::schema::TableDescriptor::default().family("cf", family);
    kernel.store.modify_table(&TableName::parse("t").unwrap(), descriptor).unwrap();
}

fn values(kernel: &Kernel) -> Vec<String> {
    let versions = kernel.versions("t", "r", "cf:a");
    versions.iter().map(|(_, value)| String::from_utf8(value.to_vec()).unwrap()).collect()
}

#[test]
fn however_often_it_is_flushed() {
    let mut kernel = row();
    // bash: dup2 and close, so a flush comes before the first write; then the program's own closes.
    let file = kernel.open("default/t/r/cf:a", libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC).unwrap();
    kernel.flush(file).unwrap();
    assert_eq!(values(&kernel), [""]);
    for line in 0..3 {
        kernel.clock.add(10);
        kernel.pwrite(file, line * 2, b"x\n").unwrap();
        kernel.flush(file).unwrap();
    }
    kernel.close(file).unwrap();
    assert_eq!(kernel.versions("t", "r", "cf:a"), [(BEGIN, "x\nx\nx\n".into())]);
    kernel.clock.add(10);
    kernel.write("default/t/r/cf:a", "second").unwrap();
    assert_eq!(values(&kernel), ["second", "x\nx\nx\n"]);
}

#[test]
fn another_writer_between_two_flushes_makes_them_two_versions() {
    let mut kernel = row();
    let first = kernel.open("default/t/r/cf:a", libc::O_WRONLY | libc::O_CREAT).unwrap();
    kernel.pwrite(first, 0, b"first").unwrap();
    kernel.flush(first).unwrap();
    let second = kernel.open("default/t/r/cf:a", libc::O_WRONLY | libc::O_TRUNC).unwrap();
    kernel.pwrite(second, 0, b"second").unwrap();
    kernel.close(second).unwrap();
    kernel.pwrite(first, 0, b"F").unwrap();
    kernel.close(first).unwrap();
    assert_eq!(values(&kernel), ["Fecond", "second", "first"]);
}

#[test]
fn an_empty_file_is_one_empty_version() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "").unwrap();
    assert_eq!(values(&kernel), [""]);
    kernel.write("default/t/r/cf:a", "").unwrap();
    assert_eq!(values(&kernel), ["", ""]);
    let touched = kernel.open("default/t/r/cf:b", libc::O_WRONLY | libc::O_CREAT).unwrap();
    kernel.close(touched).unwrap();
    assert_eq!(kernel.versions("t", "r", "cf:b").len(), 1);
}

#[test]
fn what_changes_nothing_makes_no_version() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "x").unwrap();
    for flags in [libc::O_RDONLY, libc::O_WRONLY, libc::O_RDWR, libc::O_WRONLY | libc::O_APPEND] {
        let file = kernel.open("default/t/r/cf:a", flags).unwrap();
        kernel.flush(file).unwrap();
        kernel.close(file).unwrap();
    }
    assert_eq!(values(&kernel), ["x"]);
    // An open with O_TRUNC that the kernel gives up (ETXTBSY) is released without a flush.
    let given_up = kernel.open("default/t/r/cf:a", libc::O_WRONLY | libc::O_TRUNC).unwrap();
    kernel.fs_release(given_up);
    assert_eq!(values(&kernel), ["x"]);
    let never_made = kernel.open("default/t/r/cf:new", libc::O_WRONLY | libc::O_CREAT).unwrap();
    kernel.fs_release(never_made);
    assert_eq!(kernel.versions("t", "r", "cf:new"), []);
}

#[test]
fn a_mapping_written_after_the_last_close_is_committed() {
    let mut kernel = row();
    let file = kernel.open("default/t/r/cf:a", libc::O_RDWR | libc::O_CREAT).unwrap();
    kernel.pwrite(file, 0, b"abc").unwrap();
    kernel.flush(file).unwrap();
    kernel.pwrite(file, 1, b"X").unwrap();
    kernel.fs_release(file);
    assert_eq!(values(&kernel), ["aXc"]);
}

#[test]
fn timestamps_of_a_cell_only_grow() {
    let mut kernel = row();
    kernel.write("default/t/r/cf:a", "1").unwrap();
    kernel.write("default/t/r/cf:a", "2").unwrap();
    kernel.clock.add(-1000);
    kernel.write("default/t/r/cf:a", "3").unwrap();
    let stamps: Vec<i64> = kernel.versions("t", "r", "cf:a").iter().map(|(stamp, _)| *stamp).collect();
    assert_eq!(stamps, [BEGIN + 2, BEGIN + 1, BEGIN]);
}
