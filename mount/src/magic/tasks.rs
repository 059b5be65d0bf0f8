//! `.cellfs/tasks`: what the store is working on.

use super::ctl::VerbProgress;
use crate::ops::FsResult;
use cellfs::client::Admin;
use std::collections::HashMap;
use std::fmt::Write;
use std::time::Duration;

/// A line for each verb under way (`verb TABLE seconds=S VERB`), each flush and each compaction
/// (`KIND TABLE seconds=S done=BYTES total=BYTES percent=N region=NAME family=NAME`); `idle` without any.
///
/// # Errors
/// What the store says.
pub(super) fn text(store: &dyn Admin, verbs: &VerbProgress, now: Duration) -> FsResult<String> {
    let mut out = String::new();
    let running = verbs.running();
    if !running.is_empty() {
        let names = names(store)?;
        for (table, verb, since) in running {
            let name = names.get(&table).map_or("?", String::as_str);
            // Writing to memory cannot fail.
            let _ = writeln!(out, "verb {name} seconds={:.3} {verb}", now.saturating_sub(since).as_secs_f64());
        }
    }
    for task in store.running_tasks() {
        let percent = (task.done * 100).checked_div(task.total).unwrap_or(0);
        let _ = write!(
            out,
            "{} {} seconds={:.3} done={} total={} percent={percent} region={}",
            task.kind.name(),
            task.table,
            task.millis as f64 / 1000.0,
            task.done,
            task.total,
            task.region
        );
        if let Some(family) = &task.family {
            let _ = write!(out, " family={}", family.escape_ascii());
        }
        out.push('\n');
    }
    if out.is_empty() {
        out.push_str("idle\n");
    }
    Ok(out)
}

fn names(store: &dyn Admin) -> FsResult<HashMap<u64, String>> {
    let mut names = HashMap::new();
    for namespace in store.list_namespaces()? {
        for name in store.list_tables(&namespace)? {
            if let Ok(table) = store.table(&name) {
                names.insert(table.id(), name.to_string());
            }
        }
    }
    Ok(names)
}
