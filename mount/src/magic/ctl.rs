//! `.ctl`: one verb a line (contract.md, section 9). A line runs in the write(2) that brings its newline, and that call carries the result; a text
//! without newline runs at close.

use super::file::{MagicFile, MagicOpened, slice};
use super::hooks::{Change, MountHooks};
use super::node::TableHandle;
use super::presplit::cut_points;
use crate::names;
use crate::ops::{FsError, FsResult};
use bytes::Bytes;
use cellfs::client::{Admin, RestorePoint, TableName};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

/// The longest line: a verb with a row key in which every byte is escaped.
const MAX_LINE: usize = 128 << 10;

const VERBS: &str = "flush | compact [FAMILY] | major_compact [FAMILY] | split [KEY] | truncate NAME | drop NAME | \
                     clone SNAPSHOT NAMESPACE:TABLE | \
                     restore SNAPSHOT|TIME [prefix=P] | delete_range START STOP | merge KEY | presplit KEY... | \
                     presplit hex|decimal|uniform N";

/// The verbs with how many words may follow.
const WORDS: [(&str, std::ops::RangeInclusive<usize>); 11] = [
    ("flush", 0..=0),
    ("compact", 0..=1),
    ("major_compact", 0..=1),
    ("split", 0..=1),
    ("truncate", 1..=1),
    ("drop", 1..=1),
    ("clone", 2..=2),
    ("restore", 1..=2),
    ("delete_range", 2..=2),
    ("merge", 1..=1),
    ("presplit", 1..=100_000),
];

/// A verb that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verb {
    Flush,
    Compact(Option<Bytes>),
    MajorCompact(Option<Bytes>),
    Split(Option<Bytes>),
    Truncate(String),
    Drop(String),
    /// A snapshot, and the table that is made of it.
    Clone(Bytes, TableName),
    /// A snapshot or a time, and the prefix of the rows.
    Restore(Bytes, Bytes),
    DeleteRange(Bytes, Bytes),
    Merge(Bytes),
    /// The starts of all regions but the first.
    Presplit(Vec<Bytes>),
}

/// The verbs that run, and the last that ended, of each table.
#[derive(Default)]
pub(super) struct VerbProgress {
    tables: Mutex<HashMap<u64, TableVerbs>>,
}

#[derive(Default)]
struct TableVerbs {
    running: Vec<(u64, String, Duration)>,
    last: Option<String>,
    next: u64,
}

impl VerbProgress {
    /// What reading `.ctl` gives: `running VERB seconds=S` for each verb or `idle`, then `last VERB ok|failed seconds=S`.
    pub(super) fn text(&self, table: u64, now: Duration) -> String {
        let tables = self.tables.lock();
        let mut out = String::new();
        let verbs = tables.get(&table);
        for (_, verb, since) in verbs.iter().flat_map(|verbs| &verbs.running) {
            // Writing to memory cannot fail.
            let _ = writeln!(out, "running {verb} seconds={:.3}", now.saturating_sub(*since).as_secs_f64());
        }
        if out.is_empty() {
            out.push_str("idle\n");
        }
        if let Some(last) = verbs.and_then(|verbs| verbs.last.as_ref()) {
            let _ = writeln!(out, "last {last}");
        }
        out
    }

    /// The verbs under way, with their tables and when they began.
    pub(super) fn running(&self) -> Vec<(u64, String, Duration)> {
        let tables = self.tables.lock();
        let all = tables
            .iter()
            .flat_map(|(table, verbs)| verbs.running.iter().map(|(_, verb, since)| (*table, verb.clone(), *since)));
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|(.., since)| *since);
        all
    }

    fn begin(&self, table: u64, verb: &str, now: Duration) -> u64 {
        let mut tables = self.tables.lock();
        let verbs = tables.entry(table).or_default();
        verbs.next += 1;
        verbs.running.push((verbs.next, verb.to_owned(), now));
        verbs.next
    }

    fn end(&self, table: u64, ticket: u64, now: Duration, outcome: &FsResult<()>) {
        let mut tables = self.tables.lock();
        let Some(verbs) = tables.get_mut(&table) else { return };
        let Some(place) = verbs.running.iter().position(|(number, ..)| *number == ticket) else { return };
        let (_, verb, since) = verbs.running.remove(place);
        let seconds = now.saturating_sub(since).as_secs_f64();
        verbs.last = Some(match outcome {
            Ok(()) => format!("{verb} ok seconds={seconds:.3}"),
            Err(error) => format!("{verb} failed seconds={seconds:.3} {}", error.reason.replace('\n', " ")),
        });
    }

    fn forget(&self, table: u64) {
        self.tables.lock().remove(&table);
    }
}

/// An open `.ctl`.
pub(super) struct CtlFile {
    pub(super) table: TableHandle,
    pub(super) store: Arc<dyn Admin>,
    pub(super) hooks: Arc<dyn MountHooks>,
    pub(super) progress: Arc<VerbProgress>,
    pub(super) written: Vec<u8>,
}

impl CtlFile {
    fn run(&self, line: &[u8]) -> FsResult<()> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return Ok(());
        }
        let (verb, shown) = (parse(line)?, String::from_utf8_lossy(line).into_owned());
        let id = self.table.id();
        let ticket = self.progress.begin(id, &shown, self.hooks.monotonic());
        let outcome = self.execute(&verb);
        self.progress.end(id, ticket, self.hooks.monotonic(), &outcome);
        if matches!(verb, Verb::Drop(_)) && outcome.is_ok() {
            self.progress.forget(id);
        }
        outcome
    }

    fn execute(&self, verb: &Verb) -> FsResult<()> {
        let name = self.table.0.name();
        match verb {
            Verb::Flush => self.store.flush_table(&name)?,
            Verb::Compact(family) => self.store.compact_table(&name, self.known(family)?)?,
            Verb::MajorCompact(family) => self.store.major_compact_table(&name, self.known(family)?)?,
            Verb::Split(row) => self.store.split_table(&name, row.as_deref())?,
            Verb::Truncate(typed) => {
                check_typed(&name, typed, "truncate")?;
                self.store.truncate_table(&name)?;
                self.hooks.changed(Change::Table { table: self.table.id() });
            }
            Verb::Restore(point, prefix) => {
                let snapshots = self.store.list_snapshots(&name)?;
                let point = match snapshots.iter().any(|snapshot| snapshot.name == *point) {
                    true => RestorePoint::Snapshot(point.clone()),
                    false => {
                        let time = String::from_utf8_lossy(point);
                        RestorePoint::AsOf(super::time::parse_time(&time, self.hooks.now_millis())?)
                    }
                };
                self.store.restore_table(&name, &point, prefix)?;
                self.hooks.changed(Change::Table { table: self.table.id() });
            }
            Verb::DeleteRange(start, stop) => {
                self.store.delete_range(&name, start, stop)?;
                self.hooks.changed(Change::Table { table: self.table.id() });
            }
            Verb::Presplit(splits) => self.store.presplit_table(&name, splits)?,
            Verb::Merge(row) => self.store.merge_regions(&name, row)?,
            Verb::Clone(snapshot, target) => {
                self.store.clone_snapshot(&name, snapshot, target)?;
                let (namespace, name) = (target.namespace.clone(), target.qualifier.clone());
                self.hooks.changed(Change::TableMade { namespace, name });
            }
            Verb::Drop(typed) => {
                check_typed(&name, typed, "drop")?;
                self.store.drop_table(&name)?;
                let (namespace, name) = (name.namespace, name.qualifier);
                self.hooks.changed(Change::TableDropped { table: self.table.id(), namespace, name });
            }
        }
        Ok(())
    }

    fn known<'a>(&self, family: &'a Option<Bytes>) -> FsResult<Option<&'a [u8]>> {
        let descriptor = self.table.0.descriptor();
        match family {
            Some(family) if !descriptor.families.contains_key(family) => Err(FsError::new(
                libc::EINVAL,
                format!(
                    "no family {}; the table has: {}",
                    family.escape_ascii(),
                    super::scan::known_families(&descriptor)
                ),
            )),
            family => Ok(family.as_deref()),
        }
    }
}

/// Verbs that cannot be undone ask for the table's own name.
fn check_typed(name: &TableName, typed: &str, verb: &str) -> FsResult<()> {
    if typed == name.qualifier || typed == name.to_string() {
        return Ok(());
    }
    let what = format!("{verb} wants the table's own name, {}, not {typed}", name.qualifier);
    Err(FsError::new(libc::EINVAL, what))
}

/// The borders that `presplit` names.
fn borders(arguments: &[&[u8]]) -> FsResult<Vec<Bytes>> {
    if let [scheme, regions] = arguments
        && let Some(points) = cut_points(scheme, regions)
    {
        return Ok(points);
    }
    let mut keys = arguments.iter().map(|key| row_key(key)).collect::<FsResult<Vec<_>>>()?;
    keys.sort();
    keys.dedup();
    Ok(keys)
}

/// A row key as names spell it.
fn row_key(spelled: &[u8]) -> FsResult<Bytes> {
    let row = names::decode_row(spelled).map(|row| Bytes::copy_from_slice(&row));
    row.ok_or_else(|| FsError::new(libc::EINVAL, format!("{} spells no row key", spelled.escape_ascii())))
}

fn parse(line: &[u8]) -> FsResult<Verb> {
    let wrong = |what: String| FsError::new(libc::EINVAL, what);
    let mut words = line.split(|b| *b == b' ' || *b == b'\t').filter(|word| !word.is_empty());
    let verb = words.next().unwrap_or(&[]);
    let arguments: Vec<&[u8]> = words.collect();
    match WORDS.iter().find(|(name, _)| name.as_bytes() == verb) {
        None => return Err(wrong(format!("there is no verb {}; there are: {VERBS}", verb.escape_ascii()))),
        Some((name, count)) if !count.contains(&arguments.len()) => {
            return Err(wrong(format!("{name} takes other arguments; the verbs: {VERBS}")));
        }
        Some(_) => {}
    }
    let argument = arguments.first().copied();
    let family = || match argument {
        None => Ok(None),
        Some(spelled) => names::decode_column(&[spelled, b":"].concat())
            .map(|(family, _)| Some(Bytes::copy_from_slice(&family)))
            .ok_or_else(|| wrong(format!("{} spells no family", spelled.escape_ascii()))),
    };
    let row = || argument.map(row_key).transpose();
    let typed = || String::from_utf8_lossy(argument.unwrap_or(&[])).into_owned();
    Ok(match verb {
        b"flush" => Verb::Flush,
        b"compact" => Verb::Compact(family()?),
        b"major_compact" => Verb::MajorCompact(family()?),
        b"split" => Verb::Split(row()?),
        b"truncate" => Verb::Truncate(typed()),
        b"restore" => {
            let prefix = match arguments.get(1) {
                None => Bytes::new(),
                Some(given) => match given.strip_prefix(b"prefix=") {
                    Some(prefix) => row_key(prefix)?,
                    None => return Err(wrong(format!("{} is not prefix=P", given.escape_ascii()))),
                },
            };
            Verb::Restore(row()?.unwrap_or_default(), prefix)
        }
        b"delete_range" => {
            let stop = arguments.get(1).copied().unwrap_or(&[]);
            Verb::DeleteRange(row()?.unwrap_or_default(), row_key(stop)?)
        }
        b"presplit" => Verb::Presplit(borders(&arguments)?),
        b"merge" => Verb::Merge(row()?.unwrap_or_default()),
        b"clone" => {
            let snapshot = row()?.unwrap_or_default();
            let target = String::from_utf8_lossy(arguments.get(1).copied().unwrap_or(&[])).into_owned();
            let target = TableName::parse(&target).map_err(|error| wrong(error.to_string()))?;
            Verb::Clone(snapshot, target)
        }
        _ => Verb::Drop(typed()),
    })
}

/// True if no verb begins so: such a text is refused before its newline comes.
fn is_hopeless(text: &[u8]) -> bool {
    let text = text.trim_ascii_start();
    match text.iter().position(u8::is_ascii_whitespace) {
        Some(end) => !WORDS.iter().any(|(name, _)| Some(name.as_bytes()) == text.get(..end)),
        None => !WORDS.iter().any(|(name, _)| name.as_bytes().starts_with(text)),
    }
}

impl MagicFile for CtlFile {
    fn read(&mut self, offset: u64, size: usize) -> FsResult<Bytes> {
        let text = self.progress.text(self.table.id(), self.hooks.monotonic());
        Ok(slice(&text.into(), offset, size))
    }

    fn write(&mut self, _offset: u64, data: &[u8]) -> FsResult<usize> {
        self.written.extend_from_slice(data);
        while let Some(end) = self.written.iter().position(|b| *b == b'\n') {
            let rest = self.written.split_off(end + 1);
            let line = std::mem::replace(&mut self.written, rest);
            if let Err(error) = self.run(&line) {
                self.written.clear();
                return Err(error);
            }
        }
        if self.written.len() > MAX_LINE || is_hopeless(&self.written) {
            let shown = self.written.get(..self.written.len().min(40)).unwrap_or(&[]).escape_ascii().to_string();
            self.written.clear();
            return Err(FsError::new(libc::EINVAL, format!("there is no verb {shown}; there are: {VERBS}")));
        }
        Ok(data.len())
    }

    fn truncate(&mut self, _size: u64) -> FsResult<()> {
        self.written.clear();
        Ok(())
    }

    fn flush(&mut self) -> FsResult<()> {
        let written = std::mem::take(&mut self.written);
        self.run(&written)
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn opened(&self) -> MagicOpened {
        MagicOpened { direct_io: true, no_flush: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_understood_or_refused_with_what_there_is() {
        assert_eq!(parse(b"flush"), Ok(Verb::Flush));
        assert_eq!(parse(b"compact  cf"), Ok(Verb::Compact(Some("cf".into()))));
        assert_eq!(parse(b"split a%2Fb"), Ok(Verb::Split(Some("a/b".into()))));
        assert_eq!(parse(b"drop ns:t"), Ok(Verb::Drop("ns:t".into())));
        for bad in [&b"flash"[..], b"flush cf", b"drop", b"split a b", b"split %2f", b"compact a/b", b"truncate a b"] {
            let error = parse(bad).unwrap_err();
            assert_eq!(error.errno, libc::EINVAL, "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn a_text_that_can_become_no_verb_is_refused_at_once() {
        for hopeful in [&b""[..], b"f", b"flush", b"split ", b"split x", b" major_comp"] {
            assert!(!is_hopeless(hopeful), "{}", hopeful.escape_ascii());
        }
        for hopeless in [&b"x"[..], b"flushed", b"fl ", b"splits x"] {
            assert!(is_hopeless(hopeless), "{}", hopeless.escape_ascii());
        }
    }

    #[test]
    fn progress_is_shown_while_a_verb_runs_and_its_end_after() {
        let progress = VerbProgress::default();
        let at = Duration::from_millis;
        assert_eq!(progress.text(1, at(0)), "idle\n");
        let ticket = progress.begin(1, "flush", at(1000));
        assert_eq!(progress.text(1, at(1500)), "running flush seconds=0.500\n");
        assert_eq!(progress.text(2, at(1500)), "idle\n");
        progress.end(1, ticket, at(3000), &Err(FsError::new(libc::EIO, "disk")));
        assert_eq!(progress.text(1, at(4000)), "idle\nlast flush failed seconds=2.000 disk\n");
    }
}
