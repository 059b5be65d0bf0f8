//! Cuts a stream into lines.

use super::MAX_LINE;

/// Collects pieces until a line is whole. Lines are numbered from 1.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pending: Vec<u8>,
    line: u64,
    /// The pending line is over [`MAX_LINE`]: its bytes are dropped as they come.
    overlong: bool,
}

/// A line, without its newline and a carriage return before it.
pub(super) enum Line<'a> {
    /// The bytes.
    Whole(&'a [u8]),
    /// It was too long to keep.
    Overlong,
}

impl Lines {
    /// Calls `each` for every line that `data` completes.
    pub(super) fn push(&mut self, data: &[u8], mut each: impl FnMut(u64, Line<'_>)) {
        let mut rest = data;
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            let (head, tail) = rest.split_at(end);
            rest = tail.get(1..).unwrap_or(&[]);
            self.line += 1;
            if self.overlong {
                self.overlong = false;
                each(self.line, Line::Overlong);
            } else if self.pending.is_empty() {
                each(self.line, Line::Whole(without_return(head)));
            } else {
                self.pending.extend_from_slice(head);
                each(self.line, Line::Whole(without_return(&self.pending)));
                self.pending.clear();
            }
        }
        if self.overlong {
            return;
        }
        if self.pending.len() + rest.len() > MAX_LINE {
            self.overlong = true;
            self.pending = Vec::new();
        } else {
            self.pending.extend_from_slice(rest);
        }
    }

    /// The last line, if the stream did not end in a newline.
    pub(super) fn finish(&mut self, mut each: impl FnMut(u64, Line<'_>)) {
        if self.overlong || !self.pending.is_empty() {
            self.line += 1;
        }
        if self.overlong {
            each(self.line, Line::Overlong);
        } else if !self.pending.is_empty() {
            each(self.line, Line::Whole(without_return(&self.pending)));
        }
        self.overlong = false;
        self.pending.clear();
    }
}

/// The first line without the mark that some editors put in front of UTF-8.
pub(super) fn without_byte_order_mark(number: u64, line: &[u8]) -> &[u8] {
    if number == 1 { line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line) } else { line }
}

/// The reason a line is refused that [`Lines`] could not keep.
pub(super) fn overlong() -> String {
    format!("the line is over {} MB", MAX_LINE >> 20)
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
