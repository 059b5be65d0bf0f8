//! The path below `.scan`: its `k=v` parts and the form at its end.

use bytes::{BufMut, Bytes};

/// The streams a scan can be read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScanForm {
    /// A row key per line.
    Keys,
    /// The number of rows.
    Count,
    /// A row per line as a JSON object.
    Jsonl,
    /// A cell per line.
    Cells,
    /// A row per line, tab-separated, under a header.
    Tsv,
    /// A row per line as RFC 4180 has it, under a header.
    Csv,
}

/// The `k=v` parts of a path, as they were spelled, in the order they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScanParts(pub Vec<Bytes>);

impl ScanParts {
    /// Appends bytes that name the parts; a part cannot contain `/`.
    pub fn identity(&self, out: &mut Vec<u8>) {
        for part in &self.0 {
            out.put_slice(part);
            out.put_u8(b'/');
        }
    }
}
