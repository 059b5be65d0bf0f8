//! Opening a copied HBase root directory, and what to do when that fails.

use super::error::{CliError, CliResult};
use super::mount_options::ResolvedOptions;
use cellfs::Error;
use cellfs::client::TableAttributes;
use cellfs::hbase_root::{HBaseRoot, HBaseRootOptions};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::path::Path;

/// Opens the root directory; what it holds belongs to who mounts.
pub(super) fn open(root: &Path, options: &ResolvedOptions) -> CliResult<HBaseRoot> {
    allow_many_files();
    let attributes = TableAttributes {
        mode: 0o555 & !options.umask,
        uid: options.uid,
        gid: options.gid,
        changed_millis: 0,
        modified_millis: 0,
    };
    HBaseRoot::open(root, &HBaseRootOptions { attributes, ..HBaseRootOptions::default() })
        .map_err(|error| explain(&error))
}

/// A cluster's root directory has more store files than a process may usually have open (1024).
fn allow_many_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        log::warn!("the limit of open files stays as it is: {error}");
    }
}

/// Says what to do. Nothing is ever repaired here: the directory is somebody's backup.
fn explain(error: &Error) -> CliError {
    let advice = match error {
        Error::Corruption { .. } => "copy the root directory again, with all names that begin with a dot",
        Error::Unsupported { .. } => "copy it from a cluster of HBase 2",
        Error::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            "make the copy readable for you; HBase's own files belong to the user hbase"
        }
        Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotADirectory => {
            "name the directory that HBase calls hbase.rootdir, or a copy"
        }
        _ => return CliError::Failed(error.to_string()),
    };
    CliError::Failed(format!("{error}; {advice}"))
}
