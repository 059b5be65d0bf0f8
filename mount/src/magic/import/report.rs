//! What an import did: its counts, and each line that was refused.

use std::fmt::Write;
use std::time::Duration;

/// Bytes of refused lines' reasons that are kept; the counts go on beyond.
const KEPT_REASONS: usize = 16 << 20;

/// What an import did so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// Rows written: each run of lines of one row counts once.
    pub rows: u64,
    /// Cells and markers written.
    pub cells: u64,
    /// Lines refused.
    pub rejected: u64,
    /// Time taken.
    pub elapsed: Duration,
    /// A line for each refused one: `line N: reason`.
    reasons: String,
    unkept: u64,
}

impl ImportReport {
    /// Notes a refused line, of the first stream or a later one; line 0 where it is not known any more.
    pub(super) fn reject(&mut self, stream: u64, line: u64, reason: &str) {
        self.rejected += 1;
        if self.reasons.len() >= KEPT_REASONS {
            self.unkept += 1;
            return;
        }
        // Writing to memory cannot fail; one reason is one line, whatever it quotes.
        let _ = match (line, stream) {
            (0, _) => Ok(()),
            (_, 0) => write!(self.reasons, "line {line}: "),
            _ => write!(self.reasons, "line {line} of file {}: ", stream + 1),
        };
        self.reasons.extend(reason.chars().map(|c| if c.is_control() { ' ' } else { c }));
        self.reasons.push('\n');
    }

    /// `rows= cells= rejected= seconds=`, with a newline.
    pub fn summary(&self) -> String {
        format!(
            "rows={} cells={} rejected={} seconds={:.3}\n",
            self.rows,
            self.cells,
            self.rejected,
            self.elapsed.as_secs_f64()
        )
    }

    /// The refused lines, one a line, and how many more there were beyond what is kept.
    pub fn errors(&self) -> String {
        match self.unkept {
            0 => self.reasons.clone(),
            more => format!("{}and {more} more\n", self.reasons),
        }
    }

    /// The first refused line.
    pub fn first_error(&self) -> &str {
        self.reasons.lines().next().unwrap_or("")
    }
}
