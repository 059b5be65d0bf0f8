//! The store's own numbers as TOML: what `.cellfs/config` shows and takes, and what a store keeps of it. A key that is left out keeps its value.

use super::read::Reader;
use super::value::Value;
use crate::error::{Error, Result};
use std::fmt::Write;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Numbers of a store that change while it is open; sizes in bytes, times in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Threads that compact.
    pub compaction_threads: u32,
    /// Bytes per second that background compactions write while no store is under pressure; 0 = no limit.
    pub compaction_throttle: u64,
    /// How old a store's oldest file may become before all are rewritten; 0 = never.
    pub major_period_millis: i64,
    /// The hours of the day (UTC, first inclusive, last exclusive) in which such rewriting may begin; `None` = at any time.
    pub major_hours: Option<(u8, u8)>,
    /// Memory of the block cache.
    pub cache_bytes: u64,
    /// Memory of all memstores together.
    pub memstore_bytes: u64,
    /// The longest value of a cell.
    pub cell_max: u64,
    /// The log is synced at least this often.
    pub sync_interval_millis: u64,
}

/// The limits of the limits: a cell is held in memory as a whole, and a log that is synced less often than each minute is a trap.
const SIZE_MIN: u64 = 1 << 20;
const SIZE_MAX: u64 = 1 << 40;
const CELL_MIN: u64 = 1 << 10;
const CELL_MAX: u64 = 1 << 30;
const THREADS_MAX: i64 = 64;
const PERIOD_MAX_SECONDS: i64 = 100 * 365 * 86_400;
const SYNC_MAX_MILLIS: u64 = 60_000;
const SYNC_MIN_MILLIS: u64 = 10;

/// One setting: its key, what it is, how it is shown and set.
struct Setting {
    key: &'static str,
    what: &'static str,
    show: fn(&StoreSettings) -> Value,
    set: fn(&mut StoreSettings, &Value) -> std::result::Result<(), String>,
}

const SETTINGS: [Setting; 8] = [
    Setting {
        key: "compaction.threads",
        what: "threads that compact, 1 to 64",
        show: |settings| Value::Integer(settings.compaction_threads.into()),
        set: |settings, value| {
            settings.compaction_threads = value.integer(1, THREADS_MAX)? as u32;
            Ok(())
        },
    },
    Setting {
        key: "compaction.throttle",
        what: "bytes per second that background compactions write; 0 = no limit",
        show: |settings| Value::size(settings.compaction_throttle),
        set: |settings, value| {
            settings.compaction_throttle = value.bytes(0, SIZE_MAX)?;
            Ok(())
        },
    },
    Setting {
        key: "major.period",
        what: "files older than this (half as long to half as long again) are rewritten with all others of their store; 0 = never",
        show: |settings| Value::seconds(settings.major_period_millis / 1000),
        set: |settings, value| {
            let never = *value == Value::Integer(0) || value.is_word("0");
            settings.major_period_millis = if never { 0 } else { value.time_in_seconds(PERIOD_MAX_SECONDS)? * 1000 };
            Ok(())
        },
    },
    Setting {
        key: "major.hours",
        what: "hours of the day, in UTC, in which that may begin, as \"02-06\"; \"\" = at any time",
        show: |settings| Value::text(settings.major_hours.map_or(String::new(), |(a, b)| format!("{a:02}-{b:02}"))),
        set: |settings, value| {
            settings.major_hours = hours(value)?;
            Ok(())
        },
    },
    Setting {
        key: "cache.size",
        what: "memory of the block cache",
        show: |settings| Value::size(settings.cache_bytes),
        set: |settings, value| {
            settings.cache_bytes = value.bytes(SIZE_MIN, SIZE_MAX)?;
            Ok(())
        },
    },
    Setting {
        key: "memstore.size",
        what: "memory of all memstores; from half of it on writers are slowed",
        show: |settings| Value::size(settings.memstore_bytes),
        set: |settings, value| {
            settings.memstore_bytes = value.bytes(SIZE_MIN, SIZE_MAX)?;
            Ok(())
        },
    },
    Setting {
        key: "cell.max",
        what: "the largest value of a cell; HBase's own default is 10 MB",
        show: |settings| Value::size(settings.cell_max),
        set: |settings, value| {
            settings.cell_max = value.bytes(CELL_MIN, CELL_MAX)?;
            Ok(())
        },
    },
    Setting {
        key: "wal.sync_interval",
        what: "the log is synced at least this often, 10ms to 60s",
        show: |settings| Value::text(interval(settings.sync_interval_millis)),
        set: |settings, value| {
            settings.sync_interval_millis = millis(value)?;
            Ok(())
        },
    },
];

/// `"02-06"`, also over midnight; empty is no restriction.
fn hours(value: &Value) -> std::result::Result<Option<(u8, u8)>, String> {
    let wrong = || format!("takes two different hours from 0 to 24 as \"02-06\", or \"\", not {value}");
    let Value::Text(text) = value else { return Err(wrong()) };
    if text.is_empty() {
        return Ok(None);
    }
    let (from, to) = text.split_once('-').ok_or_else(wrong)?;
    let hour = |text: &str| text.trim().parse::<u8>().ok().filter(|hour| *hour <= 24);
    match (hour(from), hour(to)) {
        (Some(from), Some(to)) if from != to && from < 24 => Ok(Some((from, to))),
        _ => Err(wrong()),
    }
}

fn interval(millis: u64) -> String {
    if millis.is_multiple_of(1000) { format!("{}s", millis / 1000) } else { format!("{millis}ms") }
}

fn millis(value: &Value) -> std::result::Result<u64, String> {
    let millis = match value {
        Value::Text(text) if text.ends_with("ms") => text.trim_end_matches("ms").trim().parse::<u64>().ok(),
        _ => value.time_in_seconds(i64::MAX / 1000).ok().map(|seconds| seconds as u64 * 1000),
    };
    millis
        .filter(|millis| (SYNC_MIN_MILLIS..=SYNC_MAX_MILLIS).contains(millis))
        .ok_or_else(|| format!("takes a time from 10ms to 60s, not {value}"))
}

impl StoreSettings {
    /// The settings that differ from `others`.
    pub fn describe_changes(&self, others: &StoreSettings) -> String {
        let differs = |setting: &&Setting| (setting.show)(self) != (setting.show)(others);
        SETTINGS.iter().filter(differs).fold(String::new(), |mut out, setting| {
            // Writing to memory cannot fail.
            let _ = writeln!(out, "{} = {}", setting.key, (setting.show)(self));
            out
        })
    }

    /// Every setting with its effective value, and what it is.
    pub fn describe(&self) -> String {
        SETTINGS.iter().fold(String::new(), |mut out, setting| {
            // Writing to memory cannot fail.
            let _ = writeln!(out, "# {}\n{} = {}", setting.what, setting.key, (setting.show)(self));
            out
        })
    }

    /// These settings with the changes that `text` asks for.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the line and what is wrong there: TOML's form, a wrong key, type or range.
    pub fn changed_by(&self, text: &str) -> Result<StoreSettings> {
        let reader = Reader::new(text);
        let root = reader.parse()?;
        let mut changed = self.clone();
        change(&reader, "", root.get_ref(), &mut changed)?;
        Ok(changed)
    }
}

/// `cache.size = "1GB"` and a section `[cache]` with `size` are the same to TOML.
fn change(reader: &Reader<'_>, before: &str, section: &DeTable<'_>, settings: &mut StoreSettings) -> Result<()> {
    for (key, value) in section {
        let name = format!("{before}{}", key.get_ref());
        match (SETTINGS.iter().find(|setting| setting.key == name), value.get_ref()) {
            (Some(setting), _) => {
                let given = reader.value(setting.key, value)?;
                (setting.set)(settings, &given).map_err(|what| reader.wrong(at(key), &format!("{name} {what}")))?;
            }
            (None, DeValue::Table(inner)) if is_beginning(&name) => {
                change(reader, &format!("{name}."), inner, settings)?;
            }
            (None, _) => return Err(unknown(reader, at(key), &name)),
        }
    }
    Ok(())
}

fn at<T>(key: &Spanned<T>) -> usize {
    key.span().start
}

fn is_beginning(name: &str) -> bool {
    SETTINGS.iter().any(|setting| setting.key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')))
}

fn unknown(reader: &Reader<'_>, at: usize, name: &str) -> Error {
    let known: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
    reader.wrong(at, &format!("there is no {name}; there are: {}", known.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> StoreSettings {
        StoreSettings {
            compaction_threads: 1,
            compaction_throttle: 32 << 20,
            major_period_millis: 7 * 86_400_000,
            major_hours: None,
            cache_bytes: 128 << 20,
            memstore_bytes: 256 << 20,
            cell_max: 64 << 20,
            sync_interval_millis: 1000,
        }
    }

    #[test]
    fn what_is_shown_reads_back_and_what_is_left_out_stays() {
        let before = settings();
        assert!(before.describe().contains("cache.size = \"128MB\"\n"), "{}", before.describe());
        assert_eq!(before.changed_by(&before.describe()).unwrap(), before);
        assert_eq!(before.changed_by("").unwrap(), before);
        let text = "cache.size = \"1GB\"\n[major]\nhours = \"22-04\"\nperiod = 0\n[wal]\nsync_interval = \"50ms\"\n";
        let after = before.changed_by(text).unwrap();
        let expected = StoreSettings {
            cache_bytes: 1 << 30,
            major_hours: Some((22, 4)),
            major_period_millis: 0,
            sync_interval_millis: 50,
            ..before
        };
        assert_eq!(after, expected);
        let kept = after.describe_changes(&settings());
        assert_eq!((kept.lines().count(), settings().changed_by(&kept).unwrap()), (4, after.clone()), "{kept}");
        assert_eq!(after.changed_by(&after.describe()).unwrap(), after);
    }

    #[test]
    fn a_wrong_key_or_value_is_named_with_its_line() {
        let bad = [
            ("cache.size = 1", "line 1: cache.size takes a size"),
            ("\ncache.sice = 1", "line 2: there is no cache.sice; there are: compaction.threads"),
            ("cache = 5", "line 1: there is no cache"),
            ("compaction.threads = 0", "line 1: compaction.threads takes a whole number from 1"),
            ("# x\nmajor.hours = \"2-2\"", "line 2: major.hours takes two different hours"),
            ("major.hours = 5", "line 1: major.hours"),
            ("wal.sync_interval = \"2m\"", "line 1: wal.sync_interval takes a time"),
            ("cell.max = [1]", "line 1: cell.max takes a number"),
            ("cell.max = \"1GB\"\nx = = 1", "line 2:"),
            ("cell.max.more = 1", "line 1: cell.max takes"),
        ];
        for (text, expected) in bad {
            let error = settings().changed_by(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
