//! `.help` and the files of `.cellfs/`.

use super::ctl::VerbProgress;
use super::hooks::MountHooks;
use super::node::InstanceFile;
use super::statistics::metrics_text;
use super::{config, health, tasks};
use crate::ops::{Caller, FsResult};
use cellfs::client::Admin;
use std::fmt::Write;

/// The files of `.cellfs/`, in the order in which they are listed.
pub(super) const FILES: [(&str, InstanceFile); 8] = [
    ("config", InstanceFile::Config),
    ("errors", InstanceFile::Errors),
    ("health", InstanceFile::Health),
    ("last-error", InstanceFile::LastError),
    ("metrics", InstanceFile::Metrics),
    ("status", InstanceFile::Status),
    ("tasks", InstanceFile::Tasks),
    ("version", InstanceFile::Version),
];

/// `.help`: the tree in one screen.
pub const HELP: &str = "\
cellfs: HBase's tables as directories. Names beginning with a dot are found, not listed.

.help                        this text
.cellfs/                     the instance: version status metrics errors
                             last-error tasks health; config (TOML, to write too); guide/ (the docs)
NAMESPACE/                   mkdir creates, rmdir drops an empty one; .schema .stats
  TABLE/                     mkdir creates, rmdir drops one without rows, mv renames
    .schema                  TOML: attributes of table and families; read, edit, replace
    .ctl                     write: flush | compact [FAMILY] | major_compact [FAMILY] | split [KEY]
                             | merge KEY | presplit KEY... | presplit hex|decimal|uniform N
                             | truncate NAME | drop NAME | clone SNAPSHOT NS:TABLE
                             | restore SNAPSHOT|TIME [prefix=P] | delete_range START STOP
    .stats .regions/N/stats  figures, a line each
    .health                  OK and WARN lines: what to look at, what to do
    .snap/NAME/  .at/TIME/   snapshots: mkdir takes, rmdir deletes; the past, also of root and rows
    .scan/K=V/.../FORM       K: start stop upto prefix limit reverse columns time versions raw
                             where filter sample, for agg also sum group
                             FORM: rows/ keys count agg jsonl cells tsv csv
    .import/FORM             write jsonl cells tsv csv; then see .import/errors and .import/last
    .import/atomic/FORM      all or nothing, installed at close; new/FORM refuses rows that exist,
                             replace/FORM puts its rows in the place of all
    .cf/FAMILY/ROW/QUALIFIER one family: mkdir adds one, rmdir drops an empty one; .cf/FAMILY/.stats
    .via/SCHEME/KEY/         a row by its logical key: reverse md5-4 salt-16 long hex revts ...
    ROW/                     mkdir, or write a cell into it; rm -r deletes
      .key .row.json         the raw row key; the whole row, also to write
      .versions/CELL/TS      every stored version; write, or rm, one of them
      .as/TYPE/CELL          a cell as the text of a type: int long double ob-int64 ...
      FAMILY:QUALIFIER       a cell: its newest version

echo v > default/t/row1/cf:a             a new version
cat default/t/row1/cf:a                  the newest one
ls default/t/.scan/                      what scans can do
cat default/t/.scan/prefix=row/limit=10/jsonl
echo flush > default/t/.ctl
cat .cellfs/last-error                   why the last command failed

Bytes that no file name can have are %XX. Cells are durable against a crash of the daemon
when close returns, against power loss when fsync returns or within a second.
";

/// The content of a file of `.cellfs/`.
///
/// # Errors
/// What the store says.
pub(super) fn text(
    file: InstanceFile,
    store: &dyn Admin,
    hooks: &dyn MountHooks,
    verbs: &VerbProgress,
    caller: &Caller,
) -> FsResult<String> {
    Ok(match file {
        InstanceFile::Version => format!("cellfs {}\n", env!("CARGO_PKG_VERSION")),
        InstanceFile::Status => status(store, hooks)?,
        InstanceFile::Metrics => metrics_text(store, hooks)?,
        InstanceFile::Errors => hooks.errors(),
        InstanceFile::LastError => hooks.last_error(caller.uid),
        InstanceFile::Tasks => tasks::text(store, verbs, hooks.monotonic())?,
        InstanceFile::Health => health::store_text(store)?,
        InstanceFile::Config => config::text(store),
    })
}

/// `name value` a line: whether writes are taken and if not why, then the facts of the mount.
fn status(store: &dyn Admin, hooks: &dyn MountHooks) -> FsResult<String> {
    let mut out = match store.read_only_reason() {
        Some(reason) => format!("state read-only\nreason {}\n", reason.replace('\n', " ")),
        None => "state ok\n".to_owned(),
    };
    for (name, value) in hooks.status() {
        // Writing to memory cannot fail.
        let _ = writeln!(out, "{name} {value}");
    }
    let damaged = store.damaged_files();
    let _ = writeln!(out, "damaged_files {}", damaged.len());
    for file in damaged {
        let (family, reason) = (file.family.escape_ascii(), file.reason.replace('\n', " "));
        let _ = writeln!(out, "damaged {} {} {family} {}: {reason}", file.table, file.region, file.path.display());
    }
    let _ = writeln!(out, "mounted {}", hooks.mounted_nanos() / 1_000_000);
    let _ = writeln!(out, "free_bytes {}", store.free_space()?);
    Ok(out)
}
