//! A copied HBase root directory on a real mount: `cellfs mount --hbase-root`.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::{Place, cellfs, text};

/// The recorded root directory of that name, unpacked where the place's store would be; `None` where there is none on this machine.
fn unpacked(name: &str) -> Option<Place> {
    let base = std::env::var_os("CELLFS_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/hbase_root/fixtures");
    let archive = [own, base.join("rootdir")].iter().map(|place| place.join(name)).find(|path| path.exists());
    let Some(archive) = archive else {
        assert!(std::env::var_os("CELLFS_REQUIRE_JUDGE").is_none(), "{name} is missing");
        eprintln!("skipped: {name} is not there");
        return None;
    };
    let place = Place::new();
    fs::create_dir(place.store()).expect("mkdir");
    let tar = Command::new("tar").arg("--zstd").arg("-xf").arg(archive).arg("-C").arg(place.store()).status();
    assert!(tar.expect("tar runs").success());
    Some(place)
}

/// Where the recorded dumps of flushed.tar.zst are.
fn expected() -> PathBuf {
    let base = std::env::var_os("CELLFS_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    base.join("rootdir/flushed.expected")
}

#[test]
fn tables_are_looked_into_and_nothing_is_written() {
    if !support::can_mount() {
        return;
    }
    let Some(place) = unpacked("flushed.tar.zst") else { return };
    place.mount(&["--hbase-root"]);
    assert_eq!(place.sh("ls"), "default\ndepot\nshop\n");
    assert!(place.sh("ls shop").contains("halves"));
    assert_eq!(
        place.sh("cat shop/orders/row012/i:q0"),
        place.sh("cat shop/orders/row012/.versions/i:q0/* | head -c 1000 | tail -c 1000")
    );
    assert_eq!(place.sh("ls shop/merged | grep -c row"), "40\n");
    assert_eq!(place.sh("ls -A shop/empty"), ".schema\n");
    assert!(place.sh("cat shop/codecs/.schema").contains("DATA_BLOCK_ENCODING = \"FAST_DIFF\""));
    assert!(place.sh("cat shop/orders/.schema").contains("OWNER_NOTE = \"orders of the shop\""));
    assert!(place.sh("cat shop/.schema").contains("owner = \"the shop\""));
    assert_eq!(place.sh("cat default/plain/a%2Fb/cf:q:r"), "0");
    assert!(place.sh("ls hbase/meta").contains("shop:orders,"), "found, not listed");
    assert_eq!(
        place.sh("ls shop/changed/.snap shop/orders/.snap"),
        "shop/changed/.snap:\nchanged_v1\n\nshop/orders/.snap:\norders_v1\n"
    );
    assert_eq!(place.sh("ls -A shop/merged/.snap shop/gone"), "shop/gone:\n.schema\n\nshop/merged/.snap:\n");
    assert_eq!(place.sh("cat shop/changed/row000/f:q0"), "after the snapshot");
    assert!(
        place.sh("cat shop/changed/.snap/changed_v1/row000/f:q0").starts_with("0:")
            || place.sh("cat shop/changed/.snap/changed_v1/row000/f:q0").starts_with("1:")
    );
    let recorded = "wc -l < \"$EXPECTED/snapshot.gone_v1.raw.jsonl\"";
    let cells = "cat shop/gone/.snap/gone_v1/.scan/raw=1/versions=all/cells | wc -l";
    assert_eq!(place.sh(cells), place.sh(&recorded.replace("$EXPECTED", &expected().to_string_lossy())));
    assert!(place.sh("cat shop/gone/.snap/gone_v1/.schema").contains("[family.g]"));
    assert!(
        place
            .sh("find shop/changed/.snap/changed_v1 -type f | wc -l")
            .trim()
            .parse::<u32>()
            .is_ok_and(|files| files > 200)
    );
    assert!(!place.try_sh("ls shop/changed/.snap/none").status.success());
    let status = place.sh("cat .cellfs/status");
    for line in ["state read-only", "logs_not_read 0", "disabled shop:off"] {
        assert!(status.lines().any(|have| have == line), "{line} in {status}");
    }
    for refused in [
        "mkdir shop/new",
        "echo v > shop/orders/row012/i:q0",
        "rm -r shop/orders",
        "touch shop/orders/x",
        "mv shop/orders shop/o",
    ] {
        let output = place.try_sh(refused);
        assert!(!output.status.success() && text(&output.stderr).contains("Read-only file system"), "{refused}");
    }
    place.unmount();
}

#[test]
fn what_only_logs_have_is_shown_and_what_cannot_be_read_is_told() {
    if !support::can_mount() {
        return;
    }
    let Some(place) = unpacked("dictionary.tar.zst") else { return };
    place.mount(&["--hbase-root"]);
    assert_eq!(place.sh("cat log/values/row3/g:after | head -c 14"), "after the roll");
    place.unmount();
    let logs = place.store().join("WALs");
    let output = Command::new("sh")
        .args(["-c", "printf 'PWAL\\002\\022\\000' | tee */*[0-9] >/dev/null"])
        .current_dir(&logs)
        .status();
    assert!(output.expect("sh runs").success());
    place.mount(&["--hbase-root"]);
    let status = place.sh("cat .cellfs/status");
    assert!(status.lines().any(|line| line == "logs_not_read 2"), "{status}");
    assert!(status.contains("encrypted"), "{status}");
    assert_eq!(place.sh("ls -A log/values"), ".schema\n");
    place.unmount();
}

#[test]
fn what_is_no_root_directory_is_refused_in_one_line() {
    if !support::can_mount() {
        return;
    }
    let place = Place::new();
    let try_mount = || {
        let output = place.try_mount(&["--hbase-root"]);
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
        said
    };
    assert!(try_mount().contains("does not exist"));
    fs::create_dir(place.store()).expect("mkdir");
    let said = try_mount();
    assert!(said.contains("no HBase root directory") && said.contains("hbase.rootdir"), "{said}");
    fs::write(place.store().join("hbase.version"), b"PBUF\x0a\x0299").expect("write");
    let said = try_mount();
    assert!(said.contains("99") && said.contains("HBase 2"), "{said}");
    let output = cellfs(&["mount", "--hbase-root", "only-one"]);
    assert_eq!(output.status.code(), Some(2));
}
