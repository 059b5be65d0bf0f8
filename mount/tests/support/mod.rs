//! What the tests on a real mount share: whether this machine can mount, and directories that are cleaned up.

#![allow(dead_code, reason = "each test file uses its part")]

use std::path::Path;

/// True if this process can mount. Where CELLFS_REQUIRE_MOUNT is set, as in CI, a machine that cannot fails the test; elsewhere
/// the test says that it is skipped.
pub fn can_mount() -> bool {
    let reason = if !Path::new("/dev/fuse").exists() {
        "there is no /dev/fuse"
    } else if std::fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").is_err() {
        "/dev/fuse may not be opened"
    } else {
        return true;
    };
    assert!(std::env::var_os("CELLFS_REQUIRE_MOUNT").is_none(), "this machine cannot mount: {reason}");
    eprintln!("SKIPPED, no real mount: {reason}");
    false
}
