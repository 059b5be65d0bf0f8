//! The mount in the background. The command starts itself once more as the daemon, with a pipe for its standard output, and waits for one line
//! there: [`READY`], or the reason why not. Nothing is forked, so threads and locks are no concern.

use super::error::{CliError, CliResult};
use rustix::fs::{Mode, OFlags};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What the daemon says once the mount is usable.
const READY: &str = "ready";

/// What precedes the reason of a failure.
const FAILED: &str = "failed ";

/// Starts this program again with `arguments` and returns once it says that it is ready.
pub fn start(arguments: &[OsString]) -> CliResult<()> {
    // By its own path, after which the kernel names the process, so that `pkill cellfs` finds it; a program replaced by an upgrade meanwhile
    // has none.
    let program = std::env::current_exe().ok().filter(|path| path.exists());
    let program = program.unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
    let mut daemon = Command::new(&program)
        .arg0("cellfs")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| CliError::io("start the daemon from", &program, &error))?;
    let mut said = String::new();
    if let Some(stdout) = daemon.stdout.take() {
        // A daemon that dies says nothing, which is looked at below.
        let _ = BufReader::new(stdout).read_line(&mut said);
    }
    let said = said.trim_end();
    if said == READY {
        return Ok(());
    }
    let ended = daemon.wait();
    match (said.strip_prefix(FAILED), ended) {
        (Some(reason), _) => Err(CliError::Failed(reason.to_owned())),
        (None, Ok(status)) => {
            Err(CliError::Failed(format!("the daemon ended before the mount was usable ({status}); try again with -f")))
        }
        (None, Err(error)) => Err(CliError::Failed(format!("the daemon cannot be waited for: {error}"))),
    }
}

/// The daemon's side: leaves the terminal's session and the current directory, which must not be kept busy.
pub fn leave_terminal() {
    // Fails only for the leader of a process group, which a child just started is not.
    if let Err(errno) = rustix::process::setsid() {
        log::debug!("still in the starter's session: {errno}");
    }
    if let Err(errno) = rustix::process::chdir("/") {
        log::debug!("still in the starter's directory: {errno}");
    }
}

/// Tells the starter that the mount is usable, and lets go of its output and error streams.
///
/// # Errors
/// The starter is gone; nobody waits for this mount.
pub fn report_ready() -> std::io::Result<()> {
    say(READY)?;
    let null = File::from(rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?);
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Tells the starter why there is no mount.
pub fn report_failure(error: &CliError) {
    // The starter that is gone needs no answer; the exit code says the rest.
    let _ = say(&format!("{FAILED}{}", error.to_string().replace('\n', " ")));
}

fn say(line: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}
