//! `.scan/k=v/.../form`: a range of rows as a stream.

mod parts;
mod stream;

pub use parts::{ScanForm, ScanParts, known_families};
pub use stream::ScanFile;
