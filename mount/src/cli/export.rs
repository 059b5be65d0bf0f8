//! `cellfs export`: a table as HFiles for the bulk load of an HBase cluster.

use super::error::{CliError, CliResult};
use super::output::{Output, escaped};
use super::progress::Progress;
use super::store;
use crate::magic::forms::escape::unescape;
use bytes::Bytes;
use cellfs::client::TableName;
use cellfs::schema::Compression;
use cellfs::server::{ExportOptions, ExportSummary};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Write a table as HFiles that an HBase bulk load takes
#[derive(Args)]
#[command(after_help = "\
DIR is missing or empty. Below it comes one file for each region and family, with all versions, markers, timestamps
and tags; the store is not changed. It must not be mounted. A file whose name begins with _ is not whole.
With --split or --splits the files end at the rows given instead of where the table's regions end: best where the
regions of the table in the cluster begin, for the load rewrites files that reach over a border. In a row, any
byte may be written as \\xNN, and the backslash must be written \\\\.

Examples:
  cellfs export ~/data default:people people-hfiles
  hdfs dfs -put people-hfiles /tmp/people && hbase completebulkload /tmp/people people
  cellfs export ~/data default:people people-hfiles --split h --split q --compression GZ
  cellfs import ~/other default:people people-hfiles/cf/* --create cf")]
pub(super) struct ExportCommand {
    /// The store directory
    store: PathBuf,
    /// The table, as NAMESPACE:TABLE
    table: String,
    /// Where the files go: a missing or empty directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// A row at which a file ends and the next one begins; may be given again
    #[arg(long, value_name = "ROW")]
    split: Vec<String>,
    /// A file of such rows, one a line (as of SPLITS_FILE of the HBase shell)
    #[arg(long, value_name = "FILE")]
    splits: Option<PathBuf>,
    /// The codec of all files instead of the families' own, for a cluster that lacks one
    #[arg(long, value_name = "CODEC", ignore_case = true)]
    compression: Option<Codec>,
}

/// HBase's names of the codecs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "UPPER")]
enum Codec {
    None,
    Gz,
    Snappy,
    Lz4,
    Zstd,
}

impl From<Codec> for Compression {
    fn from(codec: Codec) -> Compression {
        match codec {
            Codec::None => Compression::None,
            Codec::Gz => Compression::Gz,
            Codec::Snappy => Compression::Snappy,
            Codec::Lz4 => Compression::Lz4,
            Codec::Zstd => Compression::Zstd,
        }
    }
}

pub(super) fn run(command: &ExportCommand) -> CliResult<()> {
    let name = TableName::parse(&command.table).map_err(|error| CliError::Usage(error.to_string()))?;
    let options = ExportOptions { splits: splits(command)?, compression: command.compression.map(Compression::from) };
    let opened = store::open(&store::absolute(&command.store)?, &store::options(true, 0, 0, 0))?;
    let progress = Progress::bytes("exporting", opened.store_file_bytes(&name)?);
    let summary = opened.export_table(&name, &command.directory, &options, &mut |bytes| progress.add(bytes))?;
    progress.finish();
    warn(&name, &summary);
    let mut out = Output::stdout();
    out.line(&format!("files={} cells={} bytes={}", summary.files.len(), summary.cells, summary.bytes))?;
    out.finish()
}

/// The rows at which files end; `None` where nothing is said.
fn splits(command: &ExportCommand) -> CliResult<Option<Vec<Bytes>>> {
    if command.split.is_empty() && command.splits.is_none() {
        return Ok(None);
    }
    let mut rows = command.split.iter().map(|row| split_row(row.as_bytes())).collect::<CliResult<Vec<_>>>()?;
    if let Some(path) = &command.splits {
        let content = std::fs::read(path).map_err(|error| CliError::io("read", path, &error))?;
        let lines = content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        for line in lines {
            rows.push(split_row(line.strip_suffix(b"\r").unwrap_or(line))?);
        }
    }
    Ok(Some(rows))
}

fn split_row(text: &[u8]) -> CliResult<Bytes> {
    let row = unescape(text).map_err(|reason| CliError::Usage(format!("the row {}: {reason}", escaped(text))))?;
    if row.is_empty() {
        return Err(CliError::Usage("a split row is empty".to_owned()));
    }
    Ok(Bytes::copy_from_slice(&row))
}

/// What a cluster will not like.
fn warn(table: &TableName, summary: &ExportSummary) {
    for row in &summary.long_rows {
        eprintln!(
            "note: an HBase client may not find the row {} of {table}: its key of {} bytes is too long to be looked up",
            escaped(row),
            row.len()
        );
    }
    for family in &summary.passed_over {
        eprintln!("note: a bulk load passes over the family {}, since its name begins with _", escaped(family));
    }
}
