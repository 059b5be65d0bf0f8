//! Which operations fail, how, and the record of all of them.

use crate::error::Error;
use std::collections::VecDeque;
use std::io;
use std::path::Path;

/// Operations kept for messages.
const RECENT: usize = 200;

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what its name says: a method, or methods, of the traits")]
pub enum SimOperation {
    Open,
    Create,
    Rename,
    Remove,
    CreateDirectory,
    List,
    SyncDirectory,
    Read,
    Write,
    Sync,
    Allocate,
    SetLen,
}

impl SimOperation {
    fn changes_something(self) -> bool {
        !matches!(self, SimOperation::Open | SimOperation::List | SimOperation::Read)
    }

    fn verb(self) -> &'static str {
        match self {
            SimOperation::Open => "open",
            SimOperation::Create | SimOperation::CreateDirectory => "create",
            SimOperation::Rename => "rename",
            SimOperation::Remove => "remove",
            SimOperation::List => "list",
            SimOperation::SyncDirectory => "sync directory",
            SimOperation::Read => "read",
            SimOperation::Write => "write",
            SimOperation::Sync => "sync",
            SimOperation::Allocate => "allocate",
            SimOperation::SetLen => "resize",
        }
    }
}

/// How an operation fails. A failing sync drops what it should have made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// EIO; nothing is done.
    Eio,
    /// EIO; of a write the first half is done.
    ShortWrite,
    /// ENOSPC; of a write the first half is done.
    NoSpace,
}

impl Fault {
    pub(super) fn error(self, operation: SimOperation, path: &Path) -> Error {
        match self {
            Fault::Eio | Fault::ShortWrite => {
                Error::io(operation.verb(), path, io::Error::from_raw_os_error(libc::EIO))
            }
            Fault::NoSpace => Error::NoSpace { path: path.to_path_buf() },
        }
    }

    pub(super) fn writes_half(self) -> bool {
        self != Fault::Eio
    }
}

/// Lets some operations fail.
#[derive(Clone, Debug)]
pub struct FaultRule {
    /// The kind; `None` = any.
    pub operation: Option<SimOperation>,
    /// The whole path, in which `*` stands for any characters; `None` = any.
    pub path: Option<String>,
    /// So many matching operations succeed first.
    pub skip: u64,
    /// So many fail then; `u64::MAX` = all.
    pub times: u64,
    /// How.
    pub fault: Fault,
}

impl FaultRule {
    /// True if it strikes; counts down.
    fn strikes(&mut self, operation: SimOperation, path: &Path) -> bool {
        let matches = self.operation.is_none_or(|wanted| wanted == operation)
            && self.path.as_ref().is_none_or(|glob| glob_matches(glob, &path.to_string_lossy()));
        if !matches || self.times == 0 {
            return false;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.times -= 1;
        true
    }
}

fn glob_matches(glob: &str, text: &str) -> bool {
    match glob.split_once('*') {
        None => glob == text,
        Some((head, tail)) => text.strip_prefix(head).is_some_and(|rest| {
            rest.char_indices().any(|(index, _)| rest.get(index..).is_some_and(|rest| glob_matches(tail, rest)))
                || glob_matches(tail, "")
        }),
    }
}

/// The rules, the count and the trace.
#[derive(Default)]
pub(super) struct Faults {
    operations: u64,
    stop_at: Option<u64>,
    fail_at: Vec<(u64, Fault)>,
    rules: Vec<FaultRule>,
    syncs_after_failure: u64,
    trace_hash: u64,
    recent: VecDeque<String>,
}

impl Faults {
    /// Records an operation and says whether it fails. `detail` is its range and data.
    pub(super) fn begin(&mut self, operation: SimOperation, path: &Path, detail: &[u8]) -> Option<Fault> {
        let number = self.operations;
        if operation.changes_something() {
            self.operations += 1;
        }
        let fault = self.strike(number, operation, path);
        let line = format!("{number} {} {} {} {fault:?}", operation.verb(), path.display(), detail.len());
        self.trace_hash = mix(mix(self.trace_hash, line.as_bytes()), detail);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(line);
        fault
    }

    fn strike(&mut self, number: u64, operation: SimOperation, path: &Path) -> Option<Fault> {
        if self.stop_at.is_some_and(|stop| number >= stop) {
            return Some(Fault::Eio);
        }
        let at = self.fail_at.iter().find(|(at, _)| *at == number && operation.changes_something());
        let at = at.map(|(_, fault)| *fault);
        // Every rule counts, also when another strikes.
        let rules: Vec<Fault> =
            self.rules.iter_mut().filter_map(|rule| rule.strikes(operation, path).then_some(rule.fault)).collect();
        at.or_else(|| rules.first().copied())
    }

    pub(super) fn operations(&self) -> u64 {
        self.operations
    }

    pub(super) fn stop_at(&mut self, operation: u64) {
        self.stop_at = Some(operation);
    }

    pub(super) fn fail_at(&mut self, operation: u64, fault: Fault) {
        self.fail_at.push((operation, fault));
    }

    pub(super) fn add(&mut self, rule: FaultRule) {
        self.rules.push(rule);
    }

    pub(super) fn clear(&mut self) {
        self.stop_at = None;
        self.fail_at.clear();
        self.rules.clear();
    }

    pub(super) fn count_sync_after_failure(&mut self) {
        self.syncs_after_failure += 1;
    }

    pub(super) fn syncs_after_failure(&self) -> u64 {
        self.syncs_after_failure
    }

    pub(super) fn trace_hash(&self) -> u64 {
        self.trace_hash
    }

    pub(super) fn recent(&self) -> Vec<String> {
        self.recent.iter().cloned().collect()
    }
}

fn mix(hash: u64, bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (glob, text, matches) in [
            ("a/*.wal", "a/1.wal", true),
            ("a/*.wal", "a/1.wax", false),
            ("*", "", true),
            ("*b*", "abc", true),
            ("*b", "abc", false),
            ("abc", "abc", true),
        ] {
            assert_eq!(glob_matches(glob, text), matches, "{glob} {text}");
        }
    }
}
