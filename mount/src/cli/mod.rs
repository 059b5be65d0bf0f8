//! The command `cellfs`: mounts, checks, moves and explains. Data is read and written through the mount.

mod error;
mod hfile;
mod lock_holder;
mod output;
mod unmount;

pub use error::{CliError, CliResult};

use clap::{Parser, Subcommand};
use std::process::ExitCode;

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

Exit codes: 0 done, 1 failed (one line on stderr says why and what to do), 2 wrong usage."
)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Unmount(unmount::UnmountCommand),
    #[command(name = "hfile")]
    HFile(hfile::HFileCommand),
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    match CommandLine::try_parse() {
        Ok(line) => finish(run(line.command)),
        Err(error) => wrong_usage(&error),
    }
}

fn run(command: Command) -> CliResult<()> {
    match command {
        Command::Unmount(command) => unmount::run(&command),
        Command::HFile(command) => hfile::run(&command),
    }
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
        Err(error) => {
            eprintln!("cellfs: {error}");
            error.exit_code()
        }
    }
}
