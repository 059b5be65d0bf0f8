//! How a command ends: its exit code, and the one line on stderr that says what, where and what to do next.

use crate::fuse::MountError;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub enum CliError {
    /// Wrong usage: exit code 2.
    Usage(String),
    /// It failed: exit code 1.
    Failed(String),
    /// `check` cannot tell: exit code 2.
    Unknown(String),
    /// It failed, and whoever waits has been told: exit code 1, no line.
    Told,
}

/// Result of a command.
pub type CliResult<T> = Result<T, CliError>;

impl CliError {
    /// A failure on a path, with the operating system's reason.
    pub fn io(doing: &str, path: &Path, error: &std::io::Error) -> CliError {
        CliError::Failed(format!("cannot {doing} {}: {error}", path.display()))
    }

    /// The exit code.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            CliError::Failed(_) | CliError::Told => ExitCode::from(1),
            CliError::Usage(_) | CliError::Unknown(_) => ExitCode::from(2),
        }
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliError::Usage(line) | CliError::Failed(line) | CliError::Unknown(line) => f.write_str(line),
            CliError::Told => f.write_str("told already"),
        }
    }
}

impl std::error::Error for CliError {}

impl From<MountError> for CliError {
    fn from(error: MountError) -> CliError {
        CliError::Failed(error.to_string())
    }
}

impl From<cellfs::Error> for CliError {
    fn from(error: cellfs::Error) -> CliError {
        CliError::Failed(explain(&error))
    }
}

/// The engine says what and where; here is added what to do.
fn explain(error: &cellfs::Error) -> String {
    use cellfs::Error;
    if let Error::Locked { path, pid } = error {
        let store = path.parent().filter(|_| path.ends_with("LOCK")).unwrap_or(path);
        let holder = pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
        return format!("the store {} is open in {holder}: unmount it there first", store.display());
    }
    let advice = match error {
        Error::NotAStore { .. } => "name a store, or a missing or empty directory to make one",
        Error::NoSpace { .. } => "make room on that volume and try again",
        Error::Corruption { .. } => "nothing was changed; `cellfs check` lists all damage, a backup has the file",
        Error::Unsupported { .. } => "a newer version of cellfs wrote it; use that one",
        Error::ReadOnly { .. } => "mount with -o ro to read only",
        Error::Io { source, .. } => match source.kind() {
            std::io::ErrorKind::PermissionDenied => "check owner and mode: a store belongs to the user who made it",
            std::io::ErrorKind::NotFound => "check the path",
            _ => "check the disk and its file system",
        },
        _ => return error.to_string(),
    };
    format!("{error}; {advice}")
}
