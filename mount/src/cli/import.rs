//! `cellfs import`: files into a table of a store that is not mounted. The forms are those of `.import/`; HFiles are bulk loaded, all of
//! them or none.

use super::error::{CliError, CliResult};
use super::output::Output;
use super::progress::Progress;
use super::store;
use crate::magic::import::Importer;
use crate::magic::schema::NameSpelling;
use crate::magic::{ImportForm, ImportMode};
use bytes::Bytes;
use cellfs::client::{Admin, LoadKind, Table, TableAttributes, TableName};
use cellfs::hfile::HFileReader;
use cellfs::schema::{ColumnFamilyDescriptor, TableDescriptor, parse_table};
use cellfs::server::{BackgroundMode, Store};
use cellfs::vfs::{OsVfs, Vfs};
use clap::{Args, ValueEnum};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One read of a file, and one piece for the importer.
const PIECE: usize = 1 << 20;

/// Refused lines that are shown at once.
const SHOWN_REASONS: usize = 5;

/// Import files into a table
#[derive(Args)]
#[command(after_help = "\
The form follows from the file's name (.jsonl .tsv .csv .cells .hfile; HFiles are also known by their content):
  jsonl   {\"row\": \"r1\", \"cells\": {\"cf:a\": \"v\", \"cf:b\": {\"$b64\": \"AAE=\"}}}, a row per line
  tsv     a header line `row<TAB>cf:a<TAB>cf:b`, then a row per line; csv is the same by RFC 4180
  cells   row, column, timestamp, type, value, separated by tabs, a cell per line
Good lines are kept; bad ones are counted, named, and listed in the file of --rejects. With --atomic, --new or
--replace nothing is kept if any line is bad, and lines may come in any order and amount. HFiles, ours or HBase's,
are bulk loaded as HBase does it: with every version, delete marker, timestamp and tag, newer than what the table
has by their sequence id, and all of them or none. The store must not be mounted: of a mounted one write the file
to MOUNT/NS/TABLE/.import/FORM.

Examples:
  cellfs import ~/data default:people people.jsonl --create cf
  cellfs import ~/data default:people more.csv 2024.tsv
  cellfs import ~/data default:people people.jsonl --replace
  cellfs import ~/data default:people hbase-export/cf/* --schema people.toml")]
pub(super) struct ImportCommand {
    /// The store directory
    store: PathBuf,
    /// The table, as NAMESPACE:TABLE
    table: String,
    /// The files, in order; - is standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The form of all files
    #[arg(long)]
    form: Option<Form>,
    /// Make the table if it is missing, with these families under HBase's defaults
    #[arg(long, value_name = "FAMILY,...", value_delimiter = ',')]
    create: Vec<String>,
    /// Make the table if it is missing, with the schema in this file, in the form of .schema
    #[arg(long, value_name = "FILE", conflicts_with = "create")]
    schema: Option<PathBuf>,
    /// All of it or nothing: the rows of all files are there together at the end or, if a line is refused, not at all
    #[arg(long, group = "whole")]
    atomic: bool,
    /// As --atomic, and rows that exist are refused
    #[arg(long, group = "whole")]
    new: bool,
    /// As --atomic, in the place of everything that the table holds
    #[arg(long, group = "whole")]
    replace: bool,
    /// Where refused lines are listed
    #[arg(long, value_name = "FILE", default_value = "cellfs-import-rejects.txt")]
    rejects: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    Jsonl,
    Cells,
    Tsv,
    Csv,
    #[value(name = "hfile")]
    HFile,
}

impl ImportCommand {
    /// The kind of a whole import, if it is to be one.
    fn whole(&self) -> Option<LoadKind> {
        let kinds = [(self.atomic, LoadKind::Add), (self.new, LoadKind::New), (self.replace, LoadKind::Replace)];
        kinds.into_iter().find_map(|(asked, kind)| asked.then_some(kind))
    }
}

pub(super) fn run(command: &ImportCommand) -> CliResult<()> {
    let name = TableName::parse(&command.table).map_err(|error| CliError::Usage(error.to_string()))?;
    let inputs = command.files.iter().map(|path| Input::new(path, command.form)).collect::<CliResult<Vec<_>>>()?;
    let whole = command.whole();
    if whole.is_some() && inputs.iter().any(|input| input.form == Form::HFile) {
        let what = "HFiles are loaded as a whole without --atomic, and cannot be loaded with --new or --replace";
        return Err(CliError::Usage(what.to_owned()));
    }
    let root = store::absolute(&command.store)?;
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let wanted = wanted(command)?;
    let mut options = store::options(false, uid, gid, 0);
    if inputs.iter().all(|input| input.form == Form::HFile) {
        // Nothing to flush; and what is imported is as the files have it until somebody works with it.
        options.background = BackgroundMode::Manual;
    }
    let owner = options.default_namespace;
    let opened = store::open(&root, &options)?;
    let done = table(&opened, &name, wanted, owner).and_then(|table| match whole {
        Some(kind) => import_whole(&table, &inputs, kind),
        None => import_all(&opened, &table, &inputs),
    });
    let closed = opened.close();
    let mut totals = done?;
    closed?;
    totals.report(&command.rejects)
}

/// What a missing table is to be made with: schema and split rows.
fn wanted(command: &ImportCommand) -> CliResult<Option<(TableDescriptor, Vec<Bytes>)>> {
    if let Some(path) = &command.schema {
        let text = std::fs::read_to_string(path).map_err(|error| CliError::io("read", path, &error))?;
        let wanted = parse_table(&text, &NameSpelling)
            .map_err(|error| CliError::Failed(format!("{}: {error}", path.display())))?;
        return Ok(Some((wanted.descriptor, wanted.splits.unwrap_or_default())));
    }
    let descriptor = command.create.iter().fold(TableDescriptor::default(), |descriptor, family| {
        descriptor.family(family.clone().into_bytes(), ColumnFamilyDescriptor::default())
    });
    Ok((!command.create.is_empty()).then_some((descriptor, Vec::new())))
}

/// The table, made where that is asked for.
fn table(
    opened: &Store,
    name: &TableName,
    wanted: Option<(TableDescriptor, Vec<Bytes>)>,
    owner: TableAttributes,
) -> CliResult<Arc<dyn Table>> {
    match (opened.table(name), wanted) {
        (Err(cellfs::Error::NoSuchTable(_)), Some((descriptor, splits))) => {
            Ok(opened.create_table(name, descriptor, &splits, owner)?)
        }
        (Err(cellfs::Error::NoSuchTable(_)), None) => Err(CliError::Failed(format!(
            "there is no table {name}: make it with --create FAMILY,... or --schema FILE, or with mkdir on the mount"
        ))),
        (found, _) => Ok(found?),
    }
}

/// One file and its form.
struct Input {
    path: PathBuf,
    form: Form,
    size: u64,
}

impl Input {
    fn new(path: &Path, form: Option<Form>) -> CliResult<Input> {
        let is_stream = path == Path::new("-");
        let size = match std::fs::metadata(path) {
            _ if is_stream => 0,
            Ok(metadata) if metadata.is_dir() => {
                return Err(CliError::Failed(format!("{} is a directory: name the files in it", path.display())));
            }
            Ok(metadata) => metadata.len(),
            Err(error) => return Err(CliError::io("read", path, &error)),
        };
        let form = match form.or_else(|| form_of_name(path)) {
            Some(form) => form,
            None if !is_stream && is_hfile(path) => Form::HFile,
            None => {
                return Err(CliError::Usage(format!(
                    "the form of {} is not known by its name: say --form jsonl, cells, tsv, csv or hfile",
                    path.display()
                )));
            }
        };
        if is_stream && form == Form::HFile {
            return Err(CliError::Usage("an HFile is read from its end: name a file, not standard input".to_owned()));
        }
        Ok(Input { path: path.to_path_buf(), form, size })
    }
}

fn form_of_name(path: &Path) -> Option<Form> {
    match path.extension()?.to_str()? {
        "jsonl" | "ndjson" | "json" => Some(Form::Jsonl),
        "cells" => Some(Form::Cells),
        "tsv" | "tab" => Some(Form::Tsv),
        "csv" => Some(Form::Csv),
        "hfile" => Some(Form::HFile),
        _ => None,
    }
}

fn is_hfile(path: &Path) -> bool {
    open_hfile(path).is_ok()
}

fn open_hfile(path: &Path) -> cellfs::Result<Arc<HFileReader>> {
    HFileReader::open(OsVfs::new().open_read(path)?, 0, None)
}

/// What all files together brought.
#[derive(Default)]
struct Totals {
    rows: u64,
    cells: u64,
    rejected: u64,
    /// A line per refused one, with its file.
    reasons: String,
    /// All of it or nothing.
    whole: bool,
}

/// The HFiles first, for they may be refused as a whole.
fn import_all(opened: &Store, table: &Arc<dyn Table>, inputs: &[Input]) -> CliResult<Totals> {
    let progress = Progress::bytes("importing", inputs.iter().map(|input| input.size).sum());
    let mut totals = Totals::default();
    let hfiles: Vec<PathBuf> =
        inputs.iter().filter(|input| input.form.of_importer().is_none()).map(|input| input.path.clone()).collect();
    if !hfiles.is_empty() {
        let loaded = opened.bulk_load(&table.name(), &hfiles, &mut |bytes| progress.add(bytes))?;
        totals.rows += loaded.rows;
        totals.cells += loaded.cells;
    }
    for input in inputs {
        let Some(form) = input.form.of_importer() else { continue };
        let mut importer = Importer::new(Arc::clone(table), ImportMode::Lines, form);
        let result = import_text(&mut importer, input, &progress)
            .and_then(|()| importer.finish().map_err(|error| failed(false, &input.path, &error.reason)));
        totals.take(&mut importer, &input.path);
        result?;
    }
    progress.finish();
    Ok(totals)
}

/// All files as one import.
fn import_whole(table: &Arc<dyn Table>, inputs: &[Input], kind: LoadKind) -> CliResult<Totals> {
    let progress = Progress::bytes("importing", inputs.iter().map(|input| input.size).sum());
    let mut totals = Totals { whole: true, ..Totals::default() };
    let mut importer: Option<Importer> = None;
    for input in inputs {
        let Some(form) = input.form.of_importer() else { continue };
        let importer = match &mut importer {
            Some(importer) => {
                importer.next_stream(form).map_err(|error| failed(true, &input.path, &error.reason))?;
                importer
            }
            none => none.insert(Importer::new(Arc::clone(table), ImportMode::Whole(kind), form)),
        };
        import_text(importer, input, &progress)?;
    }
    if let (Some(mut importer), Some(last)) = (importer, inputs.last()) {
        importer.finish().map_err(|error| failed(true, &last.path, &error.reason))?;
        totals.take(&mut importer, if inputs.len() == 1 { &last.path } else { Path::new("") });
    }
    progress.finish();
    Ok(totals)
}

impl Form {
    /// The form as the importer of text knows it; `None` for HFiles.
    fn of_importer(self) -> Option<ImportForm> {
        match self {
            Form::Jsonl => Some(ImportForm::Jsonl),
            Form::Cells => Some(ImportForm::Cells),
            Form::Tsv => Some(ImportForm::Tsv),
            Form::Csv => Some(ImportForm::Csv),
            Form::HFile => None,
        }
    }
}

fn import_text(importer: &mut Importer, input: &Input, progress: &Progress) -> CliResult<()> {
    let unreadable = |error: std::io::Error| CliError::io("read", &input.path, &error);
    let mut source: Box<dyn Read> = if input.path == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(File::open(&input.path).map_err(unreadable)?)
    };
    let mut piece = vec![0; PIECE];
    loop {
        let read = match source.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(unreadable(error)),
        };
        push(importer, piece.get(..read).unwrap_or_default(), &input.path)?;
        progress.add(read as u64);
    }
    Ok(())
}

fn push(importer: &mut Importer, lines: &[u8], path: &Path) -> CliResult<()> {
    importer.push(lines).map_err(|error| failed(importer.is_whole(), path, &error.reason))?;
    // Nobody has these rows open: there is no mount.
    importer.take_written_rows();
    Ok(())
}

fn failed(whole: bool, path: &Path, reason: &str) -> CliError {
    let kept = if whole { "nothing was imported" } else { "the lines before are kept, importing again does no harm" };
    CliError::Failed(format!("{}: {reason}; {kept}", path.display()))
}

impl Totals {
    fn take(&mut self, importer: &mut Importer, path: &Path) {
        let report = importer.report();
        self.rows += report.rows;
        self.cells += report.cells;
        self.rejected += report.rejected;
        for reason in report.errors().lines() {
            match path.as_os_str().is_empty() {
                true => self.reasons.push_str(&format!("{reason}\n")),
                false => self.reasons.push_str(&format!("{}: {reason}\n", path.display())),
            }
        }
    }

    fn report(&mut self, rejects: &Path) -> CliResult<()> {
        let mut out = Output::stdout();
        out.line(&format!("rows={} cells={} rejected={}", self.rows, self.cells, self.rejected))?;
        out.finish()?;
        if self.rejected == 0 {
            return Ok(());
        }
        std::fs::write(rejects, &self.reasons).map_err(|error| CliError::io("write", rejects, &error))?;
        for reason in self.reasons.lines().take(SHOWN_REASONS) {
            eprintln!("{reason}");
        }
        let (said, again) =
            if self.whole { (", so nothing was imported", "import again") } else { ("", "import those again") };
        Err(CliError::Failed(format!(
            "{} lines were refused{said}; {} names each: correct them and {again}",
            self.rejected,
            rejects.display()
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_follows_from_the_name() {
        let form = |name: &str| form_of_name(Path::new(name));
        assert_eq!(form("a/b.jsonl"), Some(Form::Jsonl));
        assert_eq!(form("b.csv"), Some(Form::Csv));
        assert_eq!(form("b.tsv"), Some(Form::Tsv));
        assert_eq!(form("b.cells"), Some(Form::Cells));
        assert_eq!(form("b.hfile"), Some(Form::HFile));
        assert_eq!(form("0123456789abcdef0123456789abcdef"), None);
    }

    #[test]
    fn what_is_no_file_is_refused_before_the_store_is_opened() {
        assert!(matches!(Input::new(Path::new("/missing.csv"), None), Err(CliError::Failed(_))));
        assert!(matches!(Input::new(Path::new("/"), None), Err(CliError::Failed(_))));
        assert!(matches!(Input::new(Path::new("/proc/self/status"), None), Err(CliError::Usage(_))));
        assert!(Input::new(Path::new("-"), Some(Form::Csv)).is_ok());
    }
}
