//! Standard output of the commands: buffered, and content when a reader like `head` has had enough.

use super::error::{CliError, CliResult};
use std::io::{self, BufWriter, StdoutLock, Write};

/// Lines to standard output.
pub(super) struct Output {
    stdout: BufWriter<StdoutLock<'static>>,
    closed: bool,
}

impl Output {
    pub(super) fn stdout() -> Output {
        Output { stdout: BufWriter::new(io::stdout().lock()), closed: false }
    }

    /// Writes a line; false once nobody reads any more.
    pub(super) fn bytes_line(&mut self, line: &[u8]) -> CliResult<bool> {
        let written = self.stdout.write_all(line).and_then(|()| self.stdout.write_all(b"\n"));
        self.check(written)
    }

    pub(super) fn line(&mut self, line: &str) -> CliResult<bool> {
        self.bytes_line(line.as_bytes())
    }

    pub(super) fn finish(mut self) -> CliResult<()> {
        let flushed = self.stdout.flush();
        self.check(flushed).map(|_| ())
    }

    fn check(&mut self, written: io::Result<()>) -> CliResult<bool> {
        match written {
            Ok(()) => Ok(!self.closed),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed = true;
                Ok(false)
            }
            Err(error) => Err(CliError::Failed(format!("cannot write to standard output: {error}"))),
        }
    }
}

/// Bytes as text: what is printable ASCII as it is, the rest as `\xNN`.
pub(super) fn escaped(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|byte| match byte {
            b'\\' => "\\\\".to_owned(),
            b' '..=b'~' => char::from(*byte).to_string(),
            _ => format!("\\x{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_without_control_characters() {
        assert_eq!(escaped(b"row 1\\\x00\xff"), "row 1\\\\\\x00\\xFF");
    }
}
