//! Living on a machine: mount(8), fstab, users, signals, service managers, the system's log, dead mounts, settings.

#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail anywhere")]

mod support;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use support::{CELLFS, Place, has_tool, text};

/// The user of nobody's files; owns nothing here.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    if fs::metadata("/proc/self").expect("/proc is there").uid() == 0 {
        return true;
    }
    eprintln!("SKIPPED, not root");
    false
}

fn can_mount_as_root() -> bool {
    support::can_mount() && is_root()
}

/// A place whose directory and program others may reach.
fn open_place() -> (Place, PathBuf) {
    let place = Place::new();
    let program = place.outside().join("cellfs");
    fs::copy(CELLFS, &program).expect("a copy of the program");
    fs::set_permissions(place.outside(), fs::Permissions::from_mode(0o755)).expect("chmod");
    (place, program)
}

fn as_user(uid: u32, script: &str, directory: &Path) -> Output {
    let id = uid.to_string();
    Command::new("setpriv")
        .args(["--reuid", &id, "--regid", &id, "--clear-groups", "bash", "-euc", script])
        .current_dir(directory)
        .env("LC_ALL", "C")
        .output()
        .expect("setpriv runs")
}

/// Runs a script as root where its mounts are nobody else's.
fn in_own_namespace(place: &Place, script: &str) -> Output {
    Command::new("unshare")
        .args(["--mount", "--propagation", "private", "bash", "-euxo", "pipefail", "-c", script])
        .env("OUT", place.outside())
        .env("CELLFS", CELLFS)
        .env("LC_ALL", "C")
        .output()
        .expect("unshare runs")
}

fn expect(output: Output) -> String {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// A mount in front, and the socket on which it speaks to its service manager.
fn in_front(place: &Place, notify: &UnixDatagram, socket: &Path) -> Child {
    let child = Command::new(CELLFS)
        .args(["mount", "-f"])
        .args([place.store(), place.point()])
        .env("NOTIFY_SOCKET", socket)
        .stdin(Stdio::null())
        .spawn()
        .expect("the command runs");
    let ready = hear(notify);
    assert!(ready.contains("READY=1\n") && ready.contains(&format!("MAINPID={}\n", child.id())), "{ready}");
    child
}

fn hear(notify: &UnixDatagram) -> String {
    notify.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    let mut buf = [0; 1024];
    let len = notify.recv(&mut buf).expect("a message");
    text(buf.get(..len).unwrap_or_default())
}

#[test]
fn a_service_manager_hears_when_the_mount_is_usable_and_hup_unmounts() {
    if !support::can_mount() {
        return;
    }
    for signal in ["HUP", "TERM"] {
        let place = Place::new();
        let socket = place.outside().join("notify");
        let notify = UnixDatagram::bind(&socket).expect("bind");
        let mut daemon = in_front(&place, &notify, &socket);
        // Usable at once, without looking for it first.
        place.sh("mkdir default/t default/t/r; echo kept > default/t/r/cf:a");
        Command::new("kill").args(["-s", signal, &daemon.id().to_string()]).status().expect("kill runs");
        assert!(hear(&notify).starts_with("STOPPING=1\n"));
        assert!(daemon.wait().expect("wait").success(), "{signal}");
        place.mount(&[]);
        assert_eq!(place.sh("cat default/t/r/cf:a"), "kept\n");
        place.unmount();
    }
}

#[test]
fn mount_8_and_fstab_lines() {
    if !can_mount_as_root() || !has_tool("unshare") {
        return;
    }
    let place = Place::new();
    // In a mount namespace of its own, where /sbin holds the helper and nothing else.
    let script = r#"
        mount -t tmpfs none /usr/sbin
        ln -s "$CELLFS" /usr/sbin/mount.cellfs
        ln -s "$CELLFS" /usr/sbin/mount.fuse.cellfs
        mount -v -t cellfs "$OUT/store" "$OUT/mount" | grep -q "mounted on $OUT/mount"
        [ "$(findmnt -no FSTYPE "$OUT/mount")" = fuse.cellfs ]
        [ "$(findmnt -no SOURCE "$OUT/mount")" = "$OUT/store" ]
        [ "$(df --output=fstype "$OUT/mount" | tail -n 1)" = fuse.cellfs ]
        mkdir "$OUT/mount/default/t" "$OUT/mount/default/t/r"
        umount "$OUT/mount"

        echo "$OUT/store $OUT/mount cellfs noauto,user,nofail,_netdev,exec,x-systemd.automount,x-systemd.idle-timeout=60,family=info 0 0" > "$OUT/fstab"
        mount -T "$OUT/fstab" "$OUT/mount"
        mkdir "$OUT/mount/default/u" "$OUT/mount/default/u/r"
        echo kept > "$OUT/mount/default/u/r/info:a"
        umount "$OUT/mount"

        echo "$OUT/store $OUT/mount fuse.cellfs ro,nofail 0 0" > "$OUT/fstab"
        mount -T "$OUT/fstab" "$OUT/mount"
        findmnt -no OPTIONS "$OUT/mount" | grep -q '^ro,nosuid,nodev'
        [ "$(cat "$OUT/mount/default/u/r/info:a")" = kept ]
        umount "$OUT/mount"

        ! mount -t cellfs -o nonsense "$OUT/store" "$OUT/mount" 2> "$OUT/said"
        grep -q nonsense "$OUT/said"
        mount -s -t cellfs -o nonsense "$OUT/store" "$OUT/mount"
        umount "$OUT/mount"
        mount -f -t cellfs "$OUT/store" "$OUT/mount"
        if mountpoint -q "$OUT/mount"; then exit 1; fi
    "#;
    expect(in_own_namespace(&place, script));
}

/// In a mount namespace of its own, with a /dev/fuse that users may open, as udev makes it.
const A_USERS_DAY: &str = r#"
    mkdir "$OUT/dev" "$OUT/home" "$OUT/home/m"
    mount -t tmpfs none "$OUT/dev"
    mknod -m 666 "$OUT/dev/fuse" c 10 229
    mount --bind "$OUT/dev/fuse" /dev/fuse
    chown -R 65534:65534 "$OUT/home"
    cd "$OUT/home"
    nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups bash -euxo pipefail -c "$1"; }

    nobody '../cellfs mount store m'
    [ "$(stat -c %a:%u store)" = 700:65534 ]
    # The kernel keeps even root out.
    ! ls m 2> "$OUT/said"
    grep -q 'Permission denied' "$OUT/said"
    nobody 'mkdir m/default/t m/default/t/r; echo x > m/default/t/r/cf:a; [ "$(stat -c %u:%a m/default/t/r/cf:a)" = 65534:644 ]'

    # A killed daemon's mount is recognised, said to be, and mounted over.
    nobody 'kill -9 $(sed -n "s/^pid //p" m/.cellfs/status); while ls m; do :; done 2> /dev/null'
    ! nobody 'ls m' 2> "$OUT/said"
    grep -q 'Transport endpoint is not connected' "$OUT/said"
    nobody '../cellfs mount store m' 2> "$OUT/said"
    grep -q 'm was a mount whose daemon is gone; it is taken away' "$OUT/said"
    nobody '[ "$(cat m/default/t/r/cf:a)" = x ]; fusermount3 -u m'

    nobody '../cellfs mount store m -o ro; cat m/default/t/r/cf:a; if touch m/default/t/r/cf:b; then exit 1; fi; ../cellfs unmount m'
    grep -v '^user_allow_other' /etc/fuse.conf > "$OUT/fuse.conf" || true
    mount --bind "$OUT/fuse.conf" /etc/fuse.conf
    ! nobody '../cellfs mount store m -o allow_other' 2> "$OUT/said"
    grep -q '^cellfs: .*/etc/fuse.conf' "$OUT/said"
    echo user_allow_other >> "$OUT/fuse.conf"
    nobody '../cellfs mount store m -o allow_other'
    [ "$(cat m/default/t/r/cf:a)" = x ]
    nobody '../cellfs unmount m'

    # A line of fstab with `user` lets mount(8) do the same.
    mount -t tmpfs none /usr/sbin
    ln -s "$OUT/cellfs" /usr/sbin/mount.cellfs
    echo "$OUT/home/store $OUT/home/m cellfs noauto,user 0 0" > "$OUT/fstab"
    mount --bind "$OUT/fstab" /etc/fstab
    nobody "mount $OUT/home/m; cat m/default/t/r/cf:a; umount $OUT/home/m"
    if mountpoint -q m; then exit 1; fi
"#;

#[test]
fn a_user_mounts_through_fusermount3() {
    if !can_mount_as_root() || !has_tool("fusermount3") || !has_tool("setpriv") || !has_tool("unshare") {
        return;
    }
    let (place, _) = open_place();
    expect(in_own_namespace(&place, A_USERS_DAY));
}

#[test]
fn owner_and_umask_are_options_and_the_kernel_judges() {
    if !can_mount_as_root() || !has_tool("setpriv") {
        return;
    }
    let (place, _) = open_place();
    place.mount(&["-o", "allow_other,uid=65534,gid=65534,umask=027"]);
    let point = place.point();
    let modes = "stat -c %u:%g:%a . default default/t default/t/r default/t/r/cf:a";
    let made = expect(as_user(
        NOBODY,
        &format!("umask 0; mkdir default/t default/t/r; echo x > default/t/r/cf:a; {modes}"),
        &point,
    ));
    assert_eq!(made, "65534:65534:750\n65534:65534:750\n65534:65534:750\n65534:65534:750\n65534:65534:640\n");
    let stranger = as_user(1234, "cat default/t/r/cf:a", Path::new("/"));
    assert!(!stranger.status.success());
    let stranger = as_user(1234, &format!("ls {}", point.display()), Path::new("/"));
    assert!(text(&stranger.stderr).contains("Permission denied"), "{}", text(&stranger.stderr));
    place.sh("chown 1234 default/t/r/cf:a; chmod 600 default/t/r/cf:a");
    assert!(!as_user(NOBODY, "cat default/t/r/cf:a", &point).status.success(), "0600 of another");
    place.unmount();
}

#[test]
fn extended_attributes_are_an_option() {
    if !support::can_mount() || !has_tool("python3") {
        return;
    }
    let place = Place::mounted();
    place.sh("mkdir default/t default/t/r; sed -i 's/^VERSIONS = .*/VERSIONS = 5/' default/t/.schema; for i in 1 2 3; do echo $i > default/t/r/cf:a; done; touch -d @7 default/t/r/cf:a");
    let off = r#"python3 -c "
import errno, os
try: os.getxattr('default/t/r/cf:a', 'user.cellfs.key')
except OSError as e: assert e.errno == errno.EOPNOTSUPP, e
else: raise SystemExit('served')
""#;
    place.sh(off);
    place.unmount();
    place.mount(&["-o", "xattr"]);
    place.sh(r#"python3 -c "
import errno, os
cell, row, table = 'default/t/r/cf:a', 'default/t/r', 'default/t'
get = lambda path, name: os.getxattr(path, 'user.cellfs.' + name).decode()
assert get(cell, 'key') == 'r' == get(row, 'key')
assert get(cell, 'versions') == '3'
versions = sorted(map(int, os.listdir(row + '/.versions/cf:a')))
assert get(cell, 'timestamp') == str(versions[-1]) == get(row, 'timestamp')
assert get(cell, 'region') == get(row, 'region') == os.listdir(table + '/.regions')[0]
assert os.listxattr(cell) == [] == os.listxattr(row)
try: os.mkdir('default/t/r/x')
except OSError: pass
assert get(table, 'error') == open('.cellfs/last-error').read() != ''
for name in 'user.other', 'user.cellfs.nothing', 'security.capability':
    try: os.getxattr(cell, name)
    except OSError as e: assert e.errno == errno.ENODATA, e
    else: raise SystemExit(name)
try: os.setxattr(cell, 'user.x', b'y')
except OSError as e: assert e.errno == errno.EOPNOTSUPP, e
else: raise SystemExit('set')
assert os.path.getmtime(cell) == 7
""#);
    place.sh("echo more >> default/t/r/cf:a; cp -a default/t/r $OUT/copy; rsync -aX default/t/r/ $OUT/copy2/; diff -r $OUT/copy $OUT/copy2");
    place.unmount();
}

#[test]
fn a_lazy_unmount_lets_open_files_end() {
    if !can_mount_as_root() {
        return;
    }
    let place = Place::mounted();
    place.sh("mkdir default/t default/t/r; echo one > default/t/r/cf:a");
    place.sh(r#"
        exec 3>> default/t/r/cf:a 4< default/t/r/cf:a
        umount -l "$OUT/mount"
        echo two >&3
        exec 3>&-
        cat <&4
        exec 4<&-
    "#);
    place.mount(&[]);
    assert_eq!(place.sh("cat default/t/r/cf:a"), "one\ntwo\n");
    place.unmount();
}

#[test]
fn a_daemon_in_the_background_speaks_to_the_systems_log() {
    if !can_mount_as_root() || Path::new("/dev/log").exists() {
        return;
    }
    let log = UnixDatagram::bind("/dev/log").expect("nobody else is the log");
    let place = Place::mounted();
    let point = place.point().display().to_string();
    let found = (0..100).map(|_| hear(&log)).find(|line| line.contains("is mounted on") && line.contains(&point));
    fs::remove_file("/dev/log").expect("remove");
    let line = found.expect("a line about the mount");
    assert!(line.starts_with(&format!("<30>cellfs[{}]: ", place.daemon())), "{line}");
    place.unmount();
}

#[test]
fn settings_change_while_mounted_and_stay() {
    if !support::can_mount() {
        return;
    }
    let place = Place::mounted();
    place.sh(r#"
        mkdir default/t default/t/r
        echo 'cell.max = "1KB"' > .cellfs/config
        ! head -c 2000 /dev/zero > default/t/r/cf:a 2> $OUT/said
        grep -q 'File too large' $OUT/said
        ! echo 'cell.maximum = 5' > .cellfs/config
        grep -q 'line 1: there is no cell.maximum' .cellfs/last-error
        grep -q '^cell.max 1024$' .cellfs/status
    "#);
    place.unmount();
    place.mount(&[]);
    place.sh(r#"
        grep -q '^cell.max = "1KB"$' .cellfs/config
        if head -c 2000 /dev/zero > default/t/r/cf:a 2> /dev/null; then exit 1; fi
        printf '[cell]\nmax = "64MB"\n' > .cellfs/config
        head -c 2000 /dev/zero > default/t/r/cf:a
        grep -q '^OK verdict 0' default/t/.health
        test -s .cellfs/guide/semantics.md
    "#);
    // A compaction that is held back is seen at work.
    place.sh(r#"
        grep -q '^idle$' .cellfs/tasks
        echo 'compaction.throttle = "100KB"' > .cellfs/config
        for i in 1 2 3; do
            head -c 2500000 /dev/urandom > default/t/r/cf:$i
            echo flush > default/t/.ctl
        done
        until grep 'compaction default:t ' .cellfs/tasks; do :; done | grep -q 'percent=.* region=.* family=cf'
    "#);
    place.unmount();
}
