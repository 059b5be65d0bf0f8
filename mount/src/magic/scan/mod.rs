//! `.scan/k=v/.../form`: a range of rows as a stream.

mod parts;

pub use parts::{ScanForm, ScanParts};
