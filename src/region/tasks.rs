//! What is being worked on (HBase `TaskMonitor`, `MonitoredTask`).

use crate::client::TaskKind;
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A task under way.
#[derive(Debug)]
pub struct MonitoredTask {
    /// What it does.
    pub kind: TaskKind,
    /// The encoded name of the region.
    pub region: String,
    /// The family; `None` for all.
    pub family: Option<Bytes>,
    /// When it began, by the clock's monotonic time.
    pub since: Duration,
    /// Bytes to do at most.
    pub total: u64,
    done: AtomicU64,
}

impl MonitoredTask {
    /// Bytes done.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }
}

/// All tasks under way.
#[derive(Debug, Default)]
pub struct TaskMonitor {
    running: Mutex<Vec<Arc<MonitoredTask>>>,
}

/// Shows a task until it is dropped.
#[derive(Debug)]
pub struct TaskGuard<'a> {
    monitor: &'a TaskMonitor,
    task: Arc<MonitoredTask>,
}

impl TaskMonitor {
    /// A task begins.
    pub fn begin(
        &self,
        kind: TaskKind,
        region: &str,
        family: Option<&Bytes>,
        since: Duration,
        total: u64,
    ) -> TaskGuard<'_> {
        let (region, family) = (region.to_owned(), family.cloned());
        let task = Arc::new(MonitoredTask { kind, region, family, since, total, done: AtomicU64::new(0) });
        self.running.lock().push(Arc::clone(&task));
        TaskGuard { monitor: self, task }
    }

    /// The tasks under way, oldest first.
    pub fn running(&self) -> Vec<Arc<MonitoredTask>> {
        self.running.lock().clone()
    }
}

impl TaskGuard<'_> {
    /// So many bytes more are done.
    pub fn advance(&self, bytes: u64) {
        self.task.done.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for TaskGuard<'_> {
    fn drop(&mut self) {
        self.monitor.running.lock().retain(|task| !Arc::ptr_eq(task, &self.task));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_shown_while_it_lives() {
        let monitor = TaskMonitor::default();
        let flush = monitor.begin(TaskKind::Flush, "r1", None, Duration::ZERO, 100);
        let compaction = monitor.begin(TaskKind::MajorCompaction, "r2", Some(&"cf".into()), Duration::from_secs(1), 7);
        flush.advance(40);
        flush.advance(2);
        let shown = monitor.running();
        assert_eq!((shown[0].region.as_str(), shown[0].done(), shown[0].total), ("r1", 42, 100));
        assert_eq!(shown[1].kind.name(), "major_compaction");
        drop(flush);
        assert_eq!(monitor.running().len(), 1);
        drop(compaction);
        assert!(monitor.running().is_empty());
    }
}
