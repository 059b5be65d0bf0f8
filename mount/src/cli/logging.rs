//! Where log lines go: to stderr for a command in front, to syslog for the daemon.

use log::{LevelFilter, Log, Metadata, Record};
use std::os::unix::net::UnixDatagram;
use std::process;

/// The socket every syslog daemon and journald listen on (syslog(3)).
const SYSLOG_SOCKET: &str = "/dev/log";

/// Facility "daemon" (RFC 3164, table 1), shifted as a priority wants it.
const FACILITY_DAEMON: u8 = 3 << 3;

/// Lines on stderr; RUST_LOG chooses the level, warnings by default.
pub fn to_stderr() {
    let environment = env_logger::Env::default().default_filter_or("warn");
    if env_logger::Builder::from_env(environment).format_target(false).try_init().is_err() {
        log::debug!("logging was set up before");
    }
}

/// Lines to syslog, from "info" up. Where nobody listens there they are lost; `.cellfs/errors` has the errors all the same.
pub fn to_syslog() {
    let Ok(socket) = UnixDatagram::unbound() else { return };
    // A full socket must not hold up the mount.
    if socket.set_nonblocking(true).is_err() {
        return;
    }
    if log::set_boxed_logger(Box::new(Syslog { socket })).is_ok() {
        log::set_max_level(LevelFilter::Info);
    }
}

struct Syslog {
    socket: UnixDatagram,
}

impl Log for Syslog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= LevelFilter::Info
    }

    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            let line = line(record.level(), &record.args().to_string());
            // Nothing can be said about a log that fails.
            let _ = self.socket.send_to(line.as_bytes(), SYSLOG_SOCKET);
        }
    }

    fn flush(&self) {}
}

/// The form that syslog(3) sends: priority, tag, text; the receiver adds the time.
fn line(level: log::Level, text: &str) -> String {
    let severity = match level {
        log::Level::Error => 3,
        log::Level::Warn => 4,
        log::Level::Info => 6,
        log::Level::Debug | log::Level::Trace => 7,
    };
    format!("<{}>cellfs[{}]: {}", FACILITY_DAEMON | severity, process::id(), text.replace('\n', " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_carries_facility_and_severity() {
        let line = line(log::Level::Warn, "two\nlines");
        assert_eq!(line, format!("<28>cellfs[{}]: two lines", process::id()));
    }
}
