//! `cellfs check`: reads everything in a store and changes nothing. Every block of every live file is decoded, so every checksum is verified;
//! cells are held against their order, the filters and the manifest; the log is replayed into nothing.

use super::error::{CliError, CliResult};
use super::output::Output;
use super::progress::Progress;
use super::store;
use cellfs::cell::{CellScanner, compare};
use cellfs::hfile::{HFileReader, ReadOptions};
use cellfs::manifest::{Manifest, ManifestState, StoreFileEntry};
use cellfs::vfs::{LockGuard, LockMode, OsVfs, Vfs};
use cellfs::wal::{self, RecoveryOptions};
use cellfs::{Error, Result};
use clap::Args;
use serde_json::{Value, json};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of file between two steps of the progress bar, roughly.
const CELLS_PER_STEP: u64 = 4096;

/// Verify a store, changing nothing
#[derive(Args)]
#[command(after_help = "\
Reads everything: the manifest, every block and cell of every live file, the log. Damage is listed with its place.
The store must not be mounted.

Exit codes: 0 sound, 1 damaged, 2 cannot tell (mounted, not a store, unreadable).

Examples:
  cellfs check ~/data
  cellfs check ~/data --json | jq .damage")]
pub(super) struct CheckCommand {
    /// The store directory
    store: PathBuf,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What was found.
#[derive(Debug, Default)]
struct Findings {
    /// File and what is wrong with it.
    damage: Vec<(PathBuf, String)>,
    /// What is no damage, but worth a line.
    notes: Vec<String>,
    files: u64,
    bytes: u64,
    cells: u64,
    log_records: u64,
}

pub(super) fn run(command: &CheckCommand) -> CliResult<()> {
    let root = store::absolute(&command.store).map_err(|error| CliError::Unknown(error.to_string()))?;
    let findings = check(&root)?;
    let mut out = Output::stdout();
    if command.json {
        out.line(&findings.to_json(&root).to_string())?;
    } else {
        for line in findings.to_text(&root) {
            out.line(&line)?;
        }
    }
    out.finish()?;
    match findings.damage.len() {
        0 => Ok(()),
        places => Err(CliError::Failed(format!(
            "{} is damaged in {places} place{}: restore the named files from a backup; until then what needs a store file fails, and all else can be used",
            root.display(),
            if places == 1 { "" } else { "s" }
        ))),
    }
}

fn check(root: &Path) -> CliResult<Findings> {
    let vfs = OsVfs::new();
    let _lock = lock(&vfs, root)?;
    let mut findings = Findings::default();
    let vfs: Arc<dyn Vfs> = Arc::new(vfs);
    let state = match Manifest::open(Arc::clone(&vfs), root, true) {
        Ok((_, state)) => state,
        Err(error) => {
            findings.take(root, error)?;
            return Ok(findings);
        }
    };
    check_files(vfs.as_ref(), root, &state, &mut findings)?;
    check_log(vfs.as_ref(), root, &state, &mut findings)?;
    Ok(findings)
}

/// Keeps a mount from changing the store meanwhile. Where the medium cannot be locked nobody writes either.
fn lock(vfs: &OsVfs, root: &Path) -> CliResult<Option<Box<dyn LockGuard>>> {
    let unknown = |error: Error| CliError::Unknown(CliError::from(error).to_string());
    let path = root.join("LOCK");
    if !vfs.exists(&root.join("CURRENT")).map_err(unknown)? {
        let what = "there is no file CURRENT in it".to_owned();
        return Err(unknown(Error::NotAStore { path: root.to_path_buf(), what }));
    }
    match store::when_closed(root, || vfs.lock(&path, LockMode::Shared)) {
        Ok(lock) => Ok(Some(lock)),
        Err(locked @ Error::Locked { .. }) => Err(unknown(locked)),
        Err(error) => {
            log::warn!("checking without a lock: {error}");
            Ok(None)
        }
    }
}

fn check_files(vfs: &dyn Vfs, root: &Path, state: &ManifestState, findings: &mut Findings) -> CliResult<()> {
    let data = root.join("data");
    let mut live: BTreeMap<u64, StoreFileEntry> = BTreeMap::new();
    for store in state.holders().flat_map(|region| region.stores.values()) {
        live.extend(store.files.iter().map(|(id, entry)| (*id, entry.clone())));
    }
    let mut there = BTreeMap::new();
    match vfs.list(&data) {
        Ok(entries) => there.extend(entries.into_iter().map(|entry| (entry.name.clone(), entry.len))),
        Err(error) => findings.take(&data, error)?,
    }
    let progress = Progress::bytes("checking", live.values().map(|entry| entry.size).sum());
    for (id, entry) in &live {
        let name = format!("{id:032x}");
        let path = data.join(&name);
        match there.remove(&name) {
            None => findings.damage.push((path, "the manifest has it, the directory does not".to_owned())),
            Some(len) if len != entry.size => {
                findings.damage.push((path, format!("it is {len} bytes long, the manifest says {}", entry.size)));
            }
            Some(_) => {
                findings.files += 1;
                findings.bytes += entry.size;
                if let Err(error) = check_file(vfs, &path, entry, findings, &progress) {
                    findings.take(&path, error)?;
                }
            }
        }
        progress.add(entry.size);
    }
    progress.finish();
    let orphans = there.keys().map(|name| format!("data/{name} is in no table or snapshot; the next mount removes it"));
    findings.notes.extend(orphans);
    Ok(())
}

fn check_file(
    vfs: &dyn Vfs,
    path: &Path,
    entry: &StoreFileEntry,
    findings: &mut Findings,
    progress: &Progress,
) -> Result<()> {
    let reader = HFileReader::open(vfs.open_read(path)?, entry.file_id, None)?;
    let mut scanner = reader.scanner(ReadOptions::compaction());
    scanner.seek_to_first()?;
    let mut cells = 0;
    let mut previous = None;
    let mut complaint = None;
    while let Some(cell) = scanner.peek() {
        let cell = cell.clone();
        if previous.as_ref().is_some_and(|previous| compare(previous, &cell) == Ordering::Greater) {
            complaint.get_or_insert_with(|| format!("cell {cells} is out of order"));
        }
        let new_row = previous.as_ref().is_none_or(|previous: &cellfs::cell::Cell| previous.row() != cell.row());
        if new_row && !reader.may_contain_row(cell.row())? {
            complaint.get_or_insert_with(|| format!("the filter denies the row of cell {cells}"));
        }
        if cell.row() < &entry.first_row[..] || cell.row() > &entry.last_row[..] {
            complaint.get_or_insert_with(|| format!("the row of cell {cells} is outside what the manifest says"));
        }
        cells += 1;
        if cells % CELLS_PER_STEP == 0 {
            progress.tick();
        }
        previous = Some(cell);
        scanner.advance()?;
    }
    if cells != entry.entries {
        complaint.get_or_insert_with(|| format!("it holds {cells} cells, the manifest says {}", entry.entries));
    }
    findings.cells += cells;
    findings.damage.extend(complaint.map(|what| (path.to_path_buf(), what)));
    Ok(())
}

fn check_log(vfs: &dyn Vfs, root: &Path, state: &ManifestState, findings: &mut Findings) -> CliResult<()> {
    let directory = root.join("wal");
    let options = RecoveryOptions { first_segment: state.log_number, ..RecoveryOptions::default() };
    let mut records = 0;
    let recovered = wal::recover(vfs, &directory, options, |_| {
        records += 1;
        Ok(())
    });
    findings.log_records = records;
    match recovered {
        Ok(log) => {
            if let Some(torn) = log.torn_tail {
                findings.notes.push(format!(
                    "{} ends in an unfinished write at byte {}; it was never acknowledged, the next mount cuts it off",
                    torn.file.display(),
                    torn.offset
                ));
            }
            Ok(())
        }
        Err(error) => findings.take(&directory, error),
    }
}

impl Findings {
    /// Sorts an error: damage is a finding, anything else keeps the check from telling.
    fn take(&mut self, place: &Path, error: Error) -> CliResult<()> {
        match error {
            Error::Corruption { file, offset, what } => self.damage.push((file, format!("at byte {offset}: {what}"))),
            Error::NotAllowed(what) | Error::InvalidArgument(what) => self.damage.push((place.to_path_buf(), what)),
            other => return Err(CliError::Unknown(CliError::from(other).to_string())),
        }
        Ok(())
    }

    fn to_text(&self, root: &Path) -> Vec<String> {
        let mut lines: Vec<String> =
            self.damage.iter().map(|(file, what)| format!("DAMAGED {}: {what}", file.display())).collect();
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        lines.push(format!(
            "{}: {}; {} files, {} bytes, {} cells, {} log records",
            root.display(),
            if self.damage.is_empty() { "sound" } else { "damaged" },
            self.files,
            self.bytes,
            self.cells,
            self.log_records
        ));
        lines
    }

    fn to_json(&self, root: &Path) -> Value {
        let damage: Vec<Value> = self
            .damage
            .iter()
            .map(|(file, what)| json!({ "file": file.display().to_string(), "what": what }))
            .collect();
        json!({
            "store": root.display().to_string(),
            "sound": self.damage.is_empty(),
            "damage": damage,
            "notes": self.notes,
            "files": self.files,
            "bytes": self.bytes,
            "cells": self.cells,
            "log_records": self.log_records,
        })
    }
}
