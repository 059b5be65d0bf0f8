//! What the tests on a real mount share: whether this machine can mount, and directories that are cleaned up.

#![allow(dead_code, missing_docs, reason = "each test file uses its part")]
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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

/// The command under test.
pub const CELLFS: &str = env!("CARGO_BIN_EXE_cellfs");

/// A store and a directory to mount it on, in a temporary directory; unmounted and removed at the end.
pub struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Place {
        let place = Place { directory: tempfile::tempdir().expect("a temporary directory") };
        std::fs::create_dir(place.point()).expect("mkdir");
        place
    }

    /// A mounted store with the table `default/t` and one row in it; `None` where nothing can be mounted.
    pub fn with_row() -> Option<Place> {
        if !can_mount() {
            return None;
        }
        let place = Place::mounted();
        place.sh("mkdir default/t default/t/r");
        Some(place)
    }

    /// A new place with a new store mounted on it.
    pub fn mounted() -> Place {
        let place = Place::new();
        place.mount(&[]);
        place
    }

    /// The temporary directory itself, outside the mount.
    pub fn outside(&self) -> &Path {
        self.directory.path()
    }

    pub fn store(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    pub fn point(&self) -> PathBuf {
        self.directory.path().join("mount")
    }

    /// Mounts; the command must return 0.
    pub fn mount(&self, arguments: &[&str]) {
        let output = self.try_mount(arguments);
        assert!(output.status.success(), "mount: {}", text(&output.stderr));
    }

    pub fn try_mount(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(CELLFS);
        command.arg("mount").arg(self.store()).arg(self.point()).args(arguments);
        command.output().expect("the command runs")
    }

    /// Unmounts; the command must return 0, and with it the store is closed.
    pub fn unmount(&self) {
        let output = cellfs(&["unmount", &self.point().to_string_lossy()]);
        assert!(output.status.success(), "unmount: {}", text(&output.stderr));
    }

    /// The process that serves the mount.
    pub fn daemon(&self) -> u32 {
        let status = std::fs::read_to_string(self.point().join(".cellfs/status")).expect("the status");
        let pid = status.lines().find_map(|line| line.strip_prefix("pid "));
        pid.and_then(|pid| pid.trim().parse().ok()).unwrap_or_else(|| panic!("no pid in {status}"))
    }

    /// Ends the daemon as an out-of-memory killer would.
    pub fn kill_daemon(&self) {
        let pid = self.daemon();
        assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill runs").success());
        // Dead once the kernel has cut the connection: only then is the store free.
        while std::fs::metadata(self.point().join(".cellfs/status")).is_ok() {
            std::thread::yield_now();
        }
    }

    /// Runs a bash script in the mount; `$OUT` is the directory outside. It must succeed; its standard output comes back.
    pub fn sh(&self, script: &str) -> String {
        let output = self.try_sh(script);
        assert!(
            output.status.success(),
            "{script}\n{}\n{}\n{}errors:\n{}",
            output.status,
            text(&output.stdout),
            text(&output.stderr),
            std::fs::read_to_string(self.point().join(".cellfs/errors")).unwrap_or_default()
        );
        text(&output.stdout)
    }

    pub fn try_sh(&self, script: &str) -> Output {
        Command::new("bash")
            .args(["-euo", "pipefail", "-c", script])
            .current_dir(self.point())
            .env("OUT", self.outside())
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .output()
            .expect("bash runs")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Most tests have unmounted; after a failure the daemon must not stay.
        let _ = Command::new("umount").arg("-l").arg(self.point()).stderr(Stdio::null()).status();
    }
}

/// Runs the command.
pub fn cellfs(arguments: &[&str]) -> Output {
    Command::new(CELLFS).args(arguments).stdin(Stdio::null()).output().expect("the command runs")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// True if the tool is installed. Where mounts are required so are tools; elsewhere the test says that it is skipped.
pub fn has_tool(tool: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {tool} >/dev/null")]).status();
    if found.is_ok_and(|status| status.success()) {
        return true;
    }
    assert!(std::env::var_os("CELLFS_REQUIRE_MOUNT").is_none(), "{tool} is missing; scripts/setup --tests installs it");
    eprintln!("SKIPPED, no {tool}");
    false
}
