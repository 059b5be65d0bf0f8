//! Our answers in the kernel's words, and the kernel's questions in ours.

use crate::ops::{Attributes, Caller, FileKind, Lifetime, ListingCache, Opened, TimeChange};
use fuser::{FileAttr, FileType, FopenFlags, INodeNo, Request, TimeOrNow};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// "Forever" to the kernel: 68 years, which it can still add to its clock without overflow.
const FOREVER: Duration = Duration::from_secs(1 << 31);

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The block stat(2) advises tools to read by; no property of a cell.
const PREFERRED_BLOCK: u32 = 4096;

pub(super) fn caller(request: &Request) -> Caller {
    Caller { uid: request.uid(), gid: request.gid(), pid: request.pid() }
}

pub(super) fn lifetime(lifetime: Lifetime) -> Duration {
    match lifetime {
        Lifetime::None => Duration::ZERO,
        Lifetime::Millis(millis) => Duration::from_millis(millis).min(FOREVER),
        Lifetime::Forever => FOREVER,
    }
}

pub(super) fn kind(kind: FileKind) -> FileType {
    match kind {
        FileKind::Directory => FileType::Directory,
        FileKind::Regular => FileType::RegularFile,
    }
}

pub(super) fn attributes(from: &Attributes) -> FileAttr {
    FileAttr {
        ino: INodeNo(from.inode),
        size: from.size,
        blocks: from.size.div_ceil(512),
        atime: system_time(from.atime_nanos),
        mtime: system_time(from.mtime_nanos),
        ctime: system_time(from.ctime_nanos),
        crtime: UNIX_EPOCH,
        kind: kind(from.kind),
        // Twelve bits: the kind is told apart, so nothing is lost.
        perm: (from.mode & 0o7777) as u16,
        nlink: from.links,
        uid: from.uid,
        gid: from.gid,
        rdev: 0,
        blksize: PREFERRED_BLOCK,
        flags: 0,
    }
}

/// Attributes of "no such name": inode 0 makes a reply to lookup a negative entry that the kernel may keep.
pub(super) fn nothing() -> FileAttr {
    placeholder(0, FileKind::Regular)
}

/// Attributes that nobody will read, for a directory entry whose own are not known.
pub(super) fn placeholder(inode: u64, kind: FileKind) -> FileAttr {
    attributes(&Attributes {
        inode,
        kind,
        mode: 0,
        links: 1,
        uid: 0,
        gid: 0,
        size: 0,
        mtime_nanos: 0,
        ctime_nanos: 0,
        atime_nanos: 0,
    })
}

pub(super) fn open_flags(opened: &Opened) -> FopenFlags {
    let mut flags = FopenFlags::empty();
    flags.set(FopenFlags::FOPEN_KEEP_CACHE, opened.keep_cache);
    flags.set(FopenFlags::FOPEN_DIRECT_IO, opened.direct_io);
    flags.set(FopenFlags::FOPEN_NOFLUSH, opened.no_flush);
    // Not FOPEN_STREAM: with it the kernel keeps no position at all and every read would ask for offset 0.
    flags.set(FopenFlags::FOPEN_NONSEEKABLE, opened.stream);
    flags
}

pub(super) fn listing_flags(cache: ListingCache) -> FopenFlags {
    match cache {
        ListingCache::None => FopenFlags::empty(),
        ListingCache::Renewed => FopenFlags::FOPEN_CACHE_DIR,
        ListingCache::Kept => FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE,
    }
}

pub(super) fn time_change(time: TimeOrNow) -> TimeChange {
    match time {
        TimeOrNow::Now => TimeChange::Now,
        TimeOrNow::SpecificTime(time) => TimeChange::At(nanos(time)),
    }
}

fn system_time(nanos: i64) -> SystemTime {
    let distance = Duration::from_nanos(nanos.unsigned_abs());
    let time = if nanos < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) };
    time.unwrap_or(UNIX_EPOCH)
}

/// Nanoseconds since the epoch of a time that came from fuser 0.18. It computes a time before 1970 as epoch - (seconds + nanoseconds) where the
/// kernel means epoch - seconds + nanoseconds (fixed there by e48279f, unreleased), so the two parts are taken apart again.
fn nanos(time: SystemTime) -> i64 {
    let (seconds, fraction) = match time.duration_since(UNIX_EPOCH) {
        Ok(after) => (i64::try_from(after.as_secs()).unwrap_or(i64::MAX), after.subsec_nanos()),
        Err(before) => {
            let distance = before.duration();
            (i64::try_from(distance.as_secs()).map_or(i64::MIN, |seconds| -seconds), distance.subsec_nanos())
        }
    };
    seconds.saturating_mul(NANOS_PER_SECOND).saturating_add(i64::from(fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_the_epoch_go_out_as_they_are() {
        for nanos_in in [0, 1, 1_500_000_000, -1, -1_500_000_000, i64::MAX, i64::MIN + 1] {
            let time = system_time(nanos_in);
            let back = match time.duration_since(UNIX_EPOCH) {
                Ok(after) => i128::try_from(after.as_nanos()).expect("fits"),
                Err(before) => -i128::try_from(before.duration().as_nanos()).expect("fits"),
            };
            assert_eq!(back, i128::from(nanos_in));
        }
    }

    #[test]
    fn fractions_before_the_epoch_come_in_right() {
        // The kernel's (-2 s, 0.8 s) is -1.2 s; fuser 0.18 hands it on as epoch - 2.8 s.
        let as_fuser_gives_it = UNIX_EPOCH - Duration::new(2, 800_000_000);
        assert_eq!(nanos(as_fuser_gives_it), -1_200_000_000);
        assert_eq!(nanos(UNIX_EPOCH - Duration::from_secs(5)), -5_000_000_000);
        assert_eq!(nanos(UNIX_EPOCH + Duration::new(5, 7)), 5_000_000_007);
        assert_eq!(nanos(UNIX_EPOCH + Duration::from_secs(1 << 40)), i64::MAX);
    }

    #[test]
    fn lifetimes_fit_the_kernels_clock() {
        assert_eq!(lifetime(Lifetime::None), Duration::ZERO);
        assert_eq!(lifetime(Lifetime::Millis(1500)), Duration::from_millis(1500));
        assert_eq!(lifetime(Lifetime::Millis(u64::MAX)), FOREVER);
        assert_eq!(lifetime(Lifetime::Forever), FOREVER);
    }
}
