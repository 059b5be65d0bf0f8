//! Whether the kernel may keep a directory's listing.

use crate::ops::ListingCache;
use std::sync::atomic::{AtomicU32, Ordering};

/// The listing is not what the kernel may have.
const STALE: u32 = 1 << 31;
/// The kernel may have one.
const KEPT: u32 = 1 << 30;

/// Of a directory: how many have it open, and whether its listing has changed past the kernel since it was kept. What the kernel changes itself it
/// knows (fs/fuse/readdir.c compares i_version), so only other changes are noted here.
///
/// A listing that began before such a change must not come to be kept after it: while one may be under way, nobody's is kept.
#[derive(Debug, Default)]
pub struct ListingMark(AtomicU32);

impl ListingMark {
    /// The directory is opened: what the kernel is told.
    pub fn opened(&self) -> ListingCache {
        let mut answer = ListingCache::None;
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, |mark| {
            let (stale, open) = (mark & STALE != 0, mark & !(STALE | KEPT) != 0);
            answer = match (stale, open) {
                (true, true) => ListingCache::None,
                (true, false) => ListingCache::Renewed,
                (false, _) => ListingCache::Kept,
            };
            Some(if answer == ListingCache::None { mark + 1 } else { (mark & !STALE | KEPT) + 1 })
        });
        answer
    }

    /// A handle is gone.
    pub fn closed(&self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }

    /// The listing has changed past the kernel. True if the kernel may have pages of the old one.
    pub fn changed(&self) -> bool {
        let before = self.0.fetch_or(STALE, Ordering::AcqRel);
        before & (STALE | KEPT) == KEPT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_begun_before_a_change_is_never_kept_after_it() {
        let mark = ListingMark::default();
        assert!(!mark.changed());
        assert_eq!(mark.opened(), ListingCache::Renewed);
        assert_eq!(mark.opened(), ListingCache::Kept);
        assert!(mark.changed());
        assert!(!mark.changed());
        assert_eq!(mark.opened(), ListingCache::None);
        for _ in 0..3 {
            mark.closed();
        }
        assert_eq!(mark.opened(), ListingCache::Renewed);
        mark.closed();
        assert_eq!(mark.opened(), ListingCache::Kept);
    }
}
