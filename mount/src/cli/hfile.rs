//! `cellfs hfile`: explains any HFile, ours or HBase's.

use super::error::{CliError, CliResult};
use super::output::{Output, escaped};
use crate::magic::forms::{CellsEncoder, Encoder};
use cellfs::cell::{Cell, CellScanner};
use cellfs::hfile::{HFileReader, ReadOptions, cell_json};
use cellfs::vfs::{OsVfs, Vfs};
use clap::Args;
use serde_json::{Map, Value, json};
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
        let object: Map<String, Value> =
            describe(&reader)?.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        out.line(&Value::Object(object).to_string())?;
    } else {
        for line in text(&describe(&reader)?) {
            out.line(&line)?;
        }
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

/// Everything a file says about itself, under stable names, in the order of interest.
fn describe(reader: &HFileReader) -> CliResult<Vec<(&'static str, Value)>> {
    let info = reader.info();
    let trailer = reader.trailer();
    let (major, minor) = reader.version();
    let text = |bytes: &Option<bytes::Bytes>| bytes.as_ref().map(|bytes| escaped(bytes));
    // HBase leaves these properties out where they are NONE.
    let property = |name: &str| reader.file_info().get(name).map_or_else(|| "NONE".to_owned(), |value| escaped(value));
    let properties: Map<String, Value> =
        reader.file_info().iter().map(|(name, value)| (escaped(name), Value::String(escaped(value)))).collect();
    Ok(vec![
        ("file", json!(reader.path().display().to_string())),
        ("version", json!(format!("{major}.{minor}"))),
        ("file_bytes", json!(info.file_bytes)),
        ("uncompressed_bytes", json!(info.uncompressed_bytes)),
        ("compression", json!(format!("{:?}", info.compression).to_uppercase())),
        ("encoding", json!(property("DATA_BLOCK_ENCODING"))),
        ("entries", json!(info.entries)),
        ("key_bytes", json!(info.key_bytes)),
        ("value_bytes", json!(info.value_bytes)),
        ("first_row", json!(text(&info.first_row))),
        ("last_row", json!(text(&info.last_row))),
        ("mid_row", json!(text(&reader.mid_row()?))),
        ("oldest_timestamp", json!(info.time_range.map(|(oldest, _)| oldest))),
        ("newest_timestamp", json!(info.time_range.map(|(_, newest)| newest))),
        ("max_sequence_id", json!(info.max_sequence_id)),
        ("max_cell_sequence_id", json!(info.max_cell_sequence_id)),
        ("tags", json!(info.tags)),
        ("major_compaction", json!(info.major_compaction)),
        ("created_millis", json!(info.created)),
        ("bulk_load_millis", json!(info.bulk_load_time)),
        ("bloom", json!(property("BLOOM_FILTER_TYPE"))),
        ("bloom_bytes", json!(info.bloom_bytes)),
        ("family_markers", json!(info.family_markers)),
        ("index_bytes", json!(info.index_bytes)),
        ("index_levels", json!(trailer.num_data_index_levels)),
        ("index_root_entries", json!(trailer.data_index_count)),
        ("meta_blocks", json!(trailer.meta_index_count)),
        ("first_data_block", json!(trailer.first_data_block_offset)),
        ("last_data_block", json!(trailer.last_data_block_offset)),
        ("load_on_open", json!(trailer.load_on_open_data_offset)),
        ("file_info", json!(trailer.file_info_offset)),
        ("comparator", json!(trailer.comparator_class_name)),
        ("properties", json!(properties)),
    ])
}

fn text(facts: &[(&str, Value)]) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, value) in facts {
        match value {
            Value::Object(members) => {
                lines.push(format!("{name}:"));
                lines.extend(members.iter().map(|(name, value)| format!("  {name} = {}", plain(value))));
            }
            Value::Null => {}
            value => lines.push(format!("{name}: {}", plain(value))),
        }
    }
    lines
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Hands out every cell, until `take` says no.
pub(super) fn each_cell(reader: &Arc<HFileReader>, mut take: impl FnMut(&Cell) -> CliResult<bool>) -> CliResult<()> {
    let mut scanner = reader.scanner(ReadOptions::streaming());
    scanner.seek_to_first()?;
    while let Some(cell) = scanner.peek() {
        if !take(cell)? {
            return Ok(());
        }
        scanner.advance()?;
    }
    Ok(())
}
