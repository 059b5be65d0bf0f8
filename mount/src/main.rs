//! The command `cellfs`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cellfs_mount::cli::main()
}
