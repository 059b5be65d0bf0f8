//! Who has a store open.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The store's lock file.
const LOCK_FILE: &str = "LOCK";

/// The process that holds the store's lock, by the kernel's table of locks (proc_locks(5)).
pub(super) fn holder(store: &Path) -> Option<u32> {
    let lock = fs::metadata(store.join(LOCK_FILE)).ok()?;
    let device = lock.dev();
    let place = format!("{:02x}:{:02x}:{}", rustix::fs::major(device), rustix::fs::minor(device), lock.ino());
    holder_in(&fs::read_to_string("/proc/locks").ok()?, &place)
}

/// `1: POSIX  ADVISORY  WRITE 1234 08:01:131076 0 EOF`
fn holder_in(table: &str, place: &str) -> Option<u32> {
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields.as_slice() {
            [_, _, _, _, pid, at, ..] if *at == place => pid.parse().ok(),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_of_a_lock_is_found_in_the_kernels_table() {
        let table = "1: POSIX  ADVISORY  WRITE 77 fe:00:12 0 EOF\n2: -> POSIX ADVISORY WRITE 78 fe:00:12 0 EOF\n\
            3: FLOCK  ADVISORY  WRITE 79 fe:00:13 0 EOF\n4: OFDLCK ADVISORY  READ -1 fe:00:14 0 EOF\n";
        assert_eq!(holder_in(table, "fe:00:12"), Some(77));
        assert_eq!(holder_in(table, "fe:00:13"), Some(79));
        assert_eq!(holder_in(table, "fe:00:14"), None);
        assert_eq!(holder_in(table, "fe:00:1"), None);
    }
}
