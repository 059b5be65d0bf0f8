//! Writing to a file through memory that is shared with the page cache.
//!
//! A `pwrite` of a record of 200 bytes costs more than a microsecond, most of it the way through the kernel; storing the same bytes through a shared
//! mapping costs a few dozen nanoseconds, and one page fault every 4 KB. What is stored is in the page cache at once: it outlives the process, other
//! readers see it, and `fdatasync` makes it durable, as after a `pwrite`.
//!
//! What a `pwrite` answers with an error code, a store answers with SIGBUS: the file was cut, its disk fails, a copy-on-write volume is full. No
//! process may die of that. The handler here replaces the whole mapping with anonymous memory, where the interrupted store then succeeds
//! without meaning anything, and marks the mapping lost (libwayland treats memory shared with its clients the same way). Whoever was storing looks at the mark afterwards
//! and writes the bytes again by `pwrite`, which gives the true error, if there still is one. Signals that are not about such a mapping go to
//! whoever handled them before.

use std::fs;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};

/// Mappings there may be at once, in all stores of the process; beyond that files are written by `pwrite`.
const SLOTS: usize = 64;
/// `start` of a slot that somebody has and has not filled in yet.
const TAKEN: usize = 1;

/// Where a mapping is, for the signal handler, which may use nothing but atomics.
struct Slot {
    /// Address; 0 when the slot is free.
    start: AtomicUsize,
    len: AtomicUsize,
    /// The memory is not the file's any more.
    lost: AtomicBool,
}

static MAPPINGS: [Slot; SLOTS] =
    [const { Slot { start: AtomicUsize::new(0), len: AtomicUsize::new(0), lost: AtomicBool::new(false) } }; SLOTS];

/// What SIGBUS did before.
static PREVIOUS: OnceLock<Option<libc::sigaction>> = OnceLock::new();

/// The beginning of a file as writable memory.
pub(super) struct SharedMapping {
    start: NonNull<u8>,
    len: usize,
    slot: &'static Slot,
}

#[expect(unsafe_code, reason = "memory that belongs to the mapping alone may move between threads")]
// SAFETY: the memory is reached only through this value and stays mapped as long as it lives.
unsafe impl Send for SharedMapping {}
#[expect(unsafe_code, reason = "memory that belongs to the mapping alone may be used by several threads")]
// SAFETY: it is only ever written to, never read; who writes what is as open as with `pwrite`.
unsafe impl Sync for SharedMapping {}

impl SharedMapping {
    /// Maps the first `len` bytes of `file`, whose blocks are allocated. `None` where that cannot be done.
    #[expect(unsafe_code, reason = "mmap has no safe binding: a mapping's content changes with the file's")]
    pub(super) fn new(file: &fs::File, len: u64) -> Option<SharedMapping> {
        let len = usize::try_from(len).ok().filter(|len| *len > 0)?;
        install_handler()?;
        let slot = MAPPINGS
            .iter()
            .find(|slot| slot.start.compare_exchange(0, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok())?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: asks for new memory at an address of the kernel's choice; nothing existing is touched.
        let memory = unsafe { libc::mmap(ptr::null_mut(), len, protection, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        let start = NonNull::new(memory.cast::<u8>()).filter(|_| memory != libc::MAP_FAILED);
        let Some(start) = start else {
            slot.start.store(0, Ordering::Release);
            return None;
        };
        // SAFETY: the range is the mapping just made. Hints: a log is in no core dump, and no child process needs it.
        unsafe {
            libc::madvise(memory, len, libc::MADV_DONTDUMP);
            libc::madvise(memory, len, libc::MADV_DONTFORK);
        }
        slot.lost.store(false, Ordering::Relaxed);
        slot.len.store(len, Ordering::Relaxed);
        slot.start.store(start.as_ptr() as usize, Ordering::Release);
        Some(SharedMapping { start, len, slot })
    }

    /// Stores `data` at `offset`. False if the file may not have all of it: outside the mapping, or the mapping is lost.
    #[expect(unsafe_code, reason = "a plain store into the mapping is what saves the system call")]
    pub(super) fn write(&self, data: &[u8], offset: u64) -> bool {
        let Ok(offset) = usize::try_from(offset) else { return false };
        if offset.checked_add(data.len()).is_none_or(|end| end > self.len) || self.is_lost() {
            return false;
        }
        // SAFETY: the target lies within the mapping, as just checked, which is writable memory until `self` is dropped: the handler may put
        // other memory there, but never takes it away. Nobody has a reference to it, so `data` does not overlap.
        unsafe { ptr::copy_nonoverlapping(data.as_ptr(), self.start.as_ptr().add(offset), data.len()) };
        // The mark is looked at after every byte has been stored: it is set before the memory is replaced.
        fence(Ordering::SeqCst);
        !self.is_lost()
    }

    fn is_lost(&self) -> bool {
        self.slot.lost.load(Ordering::Acquire)
    }
}

impl Drop for SharedMapping {
    #[expect(unsafe_code, reason = "what was mapped must be unmapped")]
    fn drop(&mut self) {
        // The handler forgets the address first: once unmapped it may belong to others.
        self.slot.start.store(TAKEN, Ordering::Release);
        // SAFETY: the range is this mapping's, and nobody can use it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
        self.slot.start.store(0, Ordering::Release);
    }
}

/// Makes [`on_bus_error`] the handler of SIGBUS, once; `None` if that failed.
#[expect(unsafe_code, reason = "handlers of signals have no safe binding")]
fn install_handler() -> Option<()> {
    let installed = PREVIOUS.get_or_init(|| {
        // SAFETY: all zeroes is a valid sigaction: default action, no flags, an empty mask.
        let mut previous: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: as above.
        let mut ours: libc::sigaction = unsafe { std::mem::zeroed() };
        ours.sa_sigaction = on_bus_error as *const () as usize;
        // On the alternate stack where there is one: the handler of an overflown stack is among those that signals are passed on to.
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: both point to valid structures; the handler uses only what a handler may. A signal that comes before the cell is filled finds no
        // previous handler and is fatal, as it would have been.
        let failed = unsafe { libc::sigaction(libc::SIGBUS, &ours, &mut previous) } != 0;
        (!failed).then_some(previous)
    });
    installed.as_ref().map(|_| ())
}

/// Handles SIGBUS. Uses only atomics and system calls.
#[expect(unsafe_code, reason = "handlers of signals get raw pointers")]
extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid structure to a handler with SA_SIGINFO; for a SIGBUS of its own (a positive code) it has the address.
    let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
    if code > 0 && MAPPINGS.iter().any(|slot| slot.replace_if_at(address)) {
        return;
    }
    pass_on(signal, info, context);
}

impl Slot {
    /// Puts anonymous memory in place of the mapping if `address` is in it.
    #[expect(unsafe_code, reason = "memory is replaced by mmap")]
    fn replace_if_at(&self, address: usize) -> bool {
        let (start, len) = (self.start.load(Ordering::Acquire), self.len.load(Ordering::Relaxed));
        if start <= TAKEN || address < start || address - start >= len {
            return false;
        }
        self.lost.store(true, Ordering::SeqCst);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        // SAFETY: errno is the interrupted thread's and is put back. The range is a mapping that a thread is storing to right now, so it is not
        // dropped meanwhile; replaced in one step, it is memory all the time.
        unsafe {
            let errno = *libc::__errno_location();
            let memory = libc::mmap(start as *mut libc::c_void, len, protection, flags, -1, 0);
            *libc::__errno_location() = errno;
            memory != libc::MAP_FAILED
        }
    }
}

/// Does what SIGBUS did before there were mappings; without a handler the process dies of the signal.
#[expect(unsafe_code, reason = "the previous handler is known only by its address")]
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    match PREVIOUS.get() {
        Some(Some(previous)) if ![libc::SIG_DFL, libc::SIG_IGN].contains(&previous.sa_sigaction) => {
            // SAFETY: the address and its kind are those that sigaction gave; the arguments are the kernel's.
            unsafe {
                if previous.sa_flags & libc::SA_SIGINFO != 0 {
                    type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
                    std::mem::transmute::<usize, Handler>(previous.sa_sigaction)(signal, info, context);
                } else {
                    type Handler = extern "C" fn(libc::c_int);
                    std::mem::transmute::<usize, Handler>(previous.sa_sigaction)(signal);
                }
            }
        }
        // SAFETY: sets the default action, of which the process dies as soon as the store is tried again or the signal comes again.
        _ => unsafe {
            libc::signal(signal, libc::SIG_DFL);
        },
    }
}
