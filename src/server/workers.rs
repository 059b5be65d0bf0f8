//! The threads that do background work: one flushes, one syncs the log, one prefetches, some compact and split.

use super::StoreInner;
use crate::error::{Error, Result};
use crate::region::RegionServices;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

/// How often workers look for work that nobody announced: age, time to live.
const IDLE: Duration = Duration::from_secs(1);
/// How long they rest after a failure: a full disk is not made emptier by asking.
const BACKOFF: Duration = Duration::from_secs(2);

/// The running threads.
pub(super) struct Workers {
    threads: Vec<JoinHandle<()>>,
    compactors: usize,
}

impl Workers {
    /// Starts them.
    ///
    /// # Errors
    /// [`Error::Io`] when the system gives no threads.
    pub(super) fn start(store: &Arc<StoreInner>) -> Result<Workers> {
        let mut workers = Workers { threads: Vec::new(), compactors: 0 };
        store.services.work.set_workers(true);
        workers.spawn(store, "flush", |store| store.flush_due_regions())?;
        workers.spawn(store, "snapshot", |store| store.take_due_snapshot())?;
        workers.have_compactors(store, store.settings().compaction_threads as usize)?;
        workers.spawn(store, "prefetch", |store| Ok(store.prefetch_one()))?;
        workers.spawn_syncer(store)?;
        Ok(workers)
    }

    /// Has at least so many threads that compact; those beyond the setting rest.
    ///
    /// # Errors
    /// [`Error::Io`] when the system gives no threads.
    pub(super) fn have_compactors(&mut self, store: &Arc<StoreInner>, wanted: usize) -> Result<()> {
        while self.compactors < wanted.max(1) {
            let number = self.compactors;
            self.spawn(store, &format!("compact-{number}"), move |store| {
                let rests = number > 0 && number >= store.settings().compaction_threads as usize;
                Ok(!rests && (store.compact_one()? || store.split_one()?))
            })?;
            self.compactors += 1;
        }
        Ok(())
    }

    fn spawn(
        &mut self,
        store: &Arc<StoreInner>,
        name: &str,
        work: impl Fn(&Arc<StoreInner>) -> Result<bool> + Send + 'static,
    ) -> Result<()> {
        let store = Arc::clone(store);
        let what = name.to_owned();
        self.start_thread(name, move || {
            let signal = &store.services.work;
            let mut seen = 0;
            while !store.services.is_closing() {
                match work(&store) {
                    // There may be more.
                    Ok(true) => continue,
                    Ok(false) => {}
                    Err(error) => {
                        log::warn!("{what}: {error}");
                        store.services.note_failure(&error);
                        signal.pause(BACKOFF);
                    }
                }
                seen = signal.wait(seen, IDLE);
            }
        })
    }

    /// The log is on disk at most one interval after a write (contract.md section 4).
    fn spawn_syncer(&mut self, store: &Arc<StoreInner>) -> Result<()> {
        let store = Arc::clone(store);
        self.start_thread("log-sync", move || {
            while !store.services.is_closing() {
                store.services.work.pause(Duration::from_millis(store.settings().sync_interval_millis));
                let Ok(wal) = store.services.wal() else { return };
                if wal.unsynced_bytes() > 0
                    && let Err(error) = wal.sync()
                {
                    log::warn!("log sync: {error}");
                    store.services.note_failure(&error);
                }
            }
        })
    }

    fn start_thread(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = std::thread::Builder::new().name(format!("cellfs-{name}")).spawn(run);
        let thread = thread.map_err(|source| Error::io("start the thread", name, source))?;
        self.threads.push(thread);
        Ok(())
    }

    /// Ends them; what they are at is finished or given up cleanly.
    pub(super) fn stop(self, services: &RegionServices) {
        services.closing.store(true, Ordering::Release);
        services.work.end();
        for thread in self.threads {
            if thread.join().is_err() {
                log::error!("a background thread has panicked");
            }
        }
        services.work.set_workers(false);
        services.closing.store(false, Ordering::Release);
    }
}
