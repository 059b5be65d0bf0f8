//! `cellfs export`: a table as HFiles for the bulk load of an HBase cluster.

use super::error::{CliError, CliResult};
use super::output::{Output, escaped};
use super::progress::Progress;
use super::store;
use cellfs::client::TableName;
use cellfs::server::ExportSummary;
use clap::Args;
use std::path::PathBuf;

/// Write a table as HFiles that an HBase bulk load takes
#[derive(Args)]
#[command(after_help = "\
DIR is missing or empty. Below it comes one file for each region and family, with all versions, markers, timestamps
and tags; the store is not changed. It must not be mounted. A file whose name begins with _ is not whole.

Examples:
  cellfs export ~/data default:people people-hfiles
  hdfs dfs -put people-hfiles /tmp/people && hbase completebulkload /tmp/people people
  cellfs import ~/other default:people people-hfiles/cf/* --create cf")]
pub(super) struct ExportCommand {
    /// The store directory
    store: PathBuf,
    /// The table, as NAMESPACE:TABLE
    table: String,
    /// Where the files go: a missing or empty directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub(super) fn run(command: &ExportCommand) -> CliResult<()> {
    let name = TableName::parse(&command.table).map_err(|error| CliError::Usage(error.to_string()))?;
    let opened = store::open(&store::absolute(&command.store)?, &store::options(true, 0, 0, 0))?;
    let progress = Progress::bytes("exporting", opened.store_file_bytes(&name)?);
    let summary = opened.export_table(&name, &command.directory, &mut |bytes| progress.add(bytes))?;
    progress.finish();
    warn(&name, &summary);
    let mut out = Output::stdout();
    out.line(&format!("files={} cells={} bytes={}", summary.files.len(), summary.cells, summary.bytes))?;
    out.finish()
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
