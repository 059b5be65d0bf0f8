//! The Debian package: built from this program, installed, used, removed and purged in a root of its own.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use support::{CELLFS, Place, has_tool, text};

/// Runs in a mount namespace of its own, whose root is this machine's under a writable layer: what is installed there is nowhere else.
const IN_A_ROOT_OF_ITS_OWN: &str = r#"
    mkdir "$OUT/layer" "$OUT/root"
    mount -t tmpfs none "$OUT/layer"
    mkdir "$OUT/layer/up" "$OUT/layer/work"
    mount -t overlay overlay -o "lowerdir=/,upperdir=$OUT/layer/up,workdir=$OUT/layer/work" "$OUT/root"
    mount --rbind /dev "$OUT/root/dev"
    mount -t proc proc "$OUT/root/proc"
    cp "$OUT/cellfs.deb" "$OUT/root/cellfs.deb"
    chroot "$OUT/root" bash -euxo pipefail -c '
        export DEBIAN_FRONTEND=noninteractive LC_ALL=C
        dpkg --no-triggers --install /cellfs.deb
        cellfs --version
        [ -L /sbin/mount.cellfs ]
        mkdir -p /srv/data /mnt/data
        mount -t cellfs /srv/data /mnt/data
        mkdir -p /mnt/data/default/people/ada
        echo 1815 > /mnt/data/default/people/ada/cf:born
        umount /mnt/data
        echo "/srv/data /mnt/data cellfs noauto,nofail,ro 0 0" > /etc/fstab
        mount /mnt/data
        [ "$(cat /mnt/data/default/people/ada/cf:born)" = 1815 ]
        umount /mnt/data
        cellfs check /srv/data
        echo STORE=/srv/data > /etc/cellfs/mnt-data.conf
        if command -v systemd-analyze > /dev/null; then
            systemd-analyze verify /usr/lib/systemd/system/cellfs@.service
        fi
        [ "$(dpkg --verify cellfs | grep -vc " /usr/share/")" = 0 ]
        dpkg --no-triggers --remove cellfs
        [ ! -e /usr/bin/cellfs ]
        [ -e /etc/cellfs/mnt-data.conf ]
        dpkg --no-triggers --purge cellfs
        [ ! -e /etc/cellfs ]
        [ ! -e /usr/lib/systemd/system/cellfs@.service ]
        [ -e /srv/data/CURRENT ]
        if dpkg --status cellfs 2> /dev/null; then exit 1; fi
    '
"#;

#[test]
fn the_package_installs_mounts_and_purges() {
    let root = fs::metadata("/proc/self").expect("/proc is there").uid() == 0;
    let overlay = fs::read_to_string("/proc/filesystems").is_ok_and(|types| types.contains("\toverlay\n"));
    if !root || !overlay || !support::can_mount() || !has_tool("dpkg-deb") || !has_tool("objdump") {
        eprintln!("SKIPPED, it needs root, overlay, /dev/fuse, dpkg-deb and objdump");
        return;
    }
    let place = Place::new();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let built = Command::new(repository.join("scripts/package"))
        .arg(place.outside().join("cellfs.deb"))
        .env("CELLFS_BINARY", CELLFS)
        .output()
        .expect("scripts/package runs");
    assert!(built.status.success(), "{}", text(&built.stderr));
    let used = Command::new("unshare")
        .args([
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--propagation",
            "private",
            "bash",
            "-euo",
            "pipefail",
            "-c",
        ])
        .arg(IN_A_ROOT_OF_ITS_OWN)
        .env("OUT", place.outside())
        .output()
        .expect("unshare runs");
    assert!(used.status.success(), "{}\n{}", text(&used.stdout), text(&used.stderr));
}
