//! `cellfs hfile`: explains any HFile, ours or HBase's.

use super::error::{CliError, CliResult};
use super::output::Output;
use crate::magic::forms::{CellsEncoder, Encoder};
use cellfs::cell::{Cell, CellScanner};
use cellfs::hfile::{HFileReader, ReadOptions, cell_json};
use cellfs::vfs::{OsVfs, Vfs};
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Explain an HFile: trailer, properties, blooms, cells
#[derive(Args)]
#[command(after_help = "\
Reads HFiles v2 and v3 of any HBase, whatever their codec and encoding, and verifies every checksum it meets.

Examples:
  cellfs hfile FILE                 what the file is and holds
  cellfs hfile FILE --cells         then every cell: row, column, timestamp, type, value
  cellfs hfile FILE --json | jq .entries
  cellfs hfile FILE --cells --json  every cell as [row, family, qualifier, timestamp, type, value, {seq, tags}]")]
pub(super) struct HFileCommand {
    /// The file
    file: PathBuf,
    /// JSON instead of text: one object that describes the file; with --cells the cells alone, one a line, in the form of docs/hfile-format.md
    #[arg(long)]
    json: bool,
    /// Every cell, a line each: row, column, timestamp, type, value, separated by tabs
    #[arg(long)]
    cells: bool,
}

pub(super) fn run(command: &HFileCommand) -> CliResult<()> {
    let reader = open(&command.file)?;
    let mut out = Output::stdout();
    if command.json && command.cells {
        each_cell(&reader, |cell| out.line(&cell_json(cell)))?;
    } else if command.json {
        let object = serde_json::to_string(&reader.describe()?);
        out.line(&object.map_err(|error| CliError::Failed(format!("the description is no JSON: {error}")))?)?;
    } else {
        out.bytes_line(reader.describe()?.to_string().trim_end().as_bytes())?;
        if command.cells {
            out.line("")?;
            let mut line = Vec::new();
            each_cell(&reader, |cell| {
                line.clear();
                CellsEncoder.cells(std::slice::from_ref(cell), false, &mut line);
                out.bytes_line(line.strip_suffix(b"\n").unwrap_or(&line))
            })?;
        }
    }
    out.finish()
}

fn open(path: &Path) -> CliResult<Arc<HFileReader>> {
    let file = OsVfs::new().open_read(path)?;
    HFileReader::open(file, 0, None).map_err(|error| match error {
        cellfs::Error::Corruption { .. } => {
            CliError::Failed(format!("{error}; it is no HFile, or a part of one is lost: copy it again"))
        }
        other => other.into(),
    })
}

/// Hands out every cell, until `take` says no.
fn each_cell(reader: &Arc<HFileReader>, mut take: impl FnMut(&Cell) -> CliResult<bool>) -> CliResult<()> {
    let mut scanner = reader.scanner(ReadOptions::streaming());
    scanner.seek_to_first()?;
    let mut count = 0;
    while let Some(cell) = scanner.peek() {
        if !take(cell)? {
            return Ok(());
        }
        count += 1;
        scanner.advance()?;
    }
    let info = reader.info();
    if count != info.entries {
        let what = format!("the trailer counts {} cells, the file has {count}", info.entries);
        return Err(cellfs::Error::corruption(reader.path(), info.file_bytes, what).into());
    }
    Ok(())
}
