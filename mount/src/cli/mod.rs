//! The command `cellfs`: mounts, checks, moves and explains. Data is read and written through the mount.

mod check;
mod daemon;
mod error;
mod export;
mod hbase_root;
mod hfile;
mod import;
mod lock_holder;
mod logging;
mod mount;
mod mount_options;
mod notify;
mod output;
mod pages;
mod progress;
mod roff;
mod store;
mod unmount;

pub use error::{CliError, CliResult};
pub use mount_options::MountOptions;
pub use pages::manual_pages;

use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// The name by which mount(8) calls us: `mount -t cellfs STORE DIR` runs `mount.cellfs STORE DIR -o OPTIONS`.
/// The second is what `mount -t fuse.cellfs` looks for, the type that /proc/mounts shows.
const MOUNT_HELPERS: [&str; 2] = ["mount.cellfs", "mount.fuse.cellfs"];

#[derive(Parser)]
#[command(
    name = "cellfs",
    version,
    about = "Rows and cells as directories and files: HBase's data model on one machine",
    after_help = "\
Examples:
  cellfs mount ~/data ~/m           make or open the store ~/data and mount it on ~/m
  mkdir ~/m/default/people          a table
  mkdir ~/m/default/people/ada      a row
  echo 1815 > ~/m/default/people/ada/cf:born
  cat ~/m/.help                     the whole tree on one screen
  cellfs unmount ~/m
  cellfs mount --hbase-root /backup/hbase ~/m    look into a copied HBase root directory

Exit codes: 0 done, 1 failed (one line on stderr says why and what to do), 2 wrong usage."
)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Mount(mount::MountCommand),
    Unmount(unmount::UnmountCommand),
    Check(check::CheckCommand),
    Import(import::ImportCommand),
    Export(export::ExportCommand),
    #[command(name = "hfile")]
    HFile(hfile::HFileCommand),
    Completion(pages::CompletionCommand),
    #[command(hide = true)]
    Pages(pages::PagesCommand),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    if called_as_helper(&arguments) {
        return match mount::HelperCommand::try_parse_from(&arguments) {
            Ok(command) => finish(mount::run_as_helper(&command)),
            Err(error) => wrong_usage(&error),
        };
    }
    match CommandLine::try_parse_from(&arguments) {
        Ok(line) => finish(run(line.command)),
        Err(error) => wrong_usage(&error),
    }
}

fn run(command: Command) -> CliResult<()> {
    match command {
        Command::Mount(command) => mount::run(&command),
        Command::Unmount(command) => unmount::run(&command),
        Command::Check(command) => check::run(&command),
        Command::Import(command) => import::run(&command),
        Command::Export(command) => export::run(&command),
        Command::HFile(command) => hfile::run(&command),
        Command::Completion(command) => pages::run_completion(&command),
        Command::Pages(command) => pages::run_pages(&command),
    }
}

fn called_as_helper(arguments: &[OsString]) -> bool {
    arguments
        .first()
        .and_then(|program| Path::new(program).file_name())
        .is_some_and(|name| MOUNT_HELPERS.iter().any(|helper| name == *helper))
}

/// clap's own words: help and version are no errors.
fn wrong_usage(error: &clap::Error) -> ExitCode {
    // A closed stdout or stderr changes nothing about the exit code.
    let _ = error.print();
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}

fn finish(result: CliResult<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ CliError::Told) => error.exit_code(),
        Err(error) => {
            eprintln!("cellfs: {error}");
            error.exit_code()
        }
    }
}
