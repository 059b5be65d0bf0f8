//! `.scan/k=v/.../form`: a range of rows as a stream.

mod aggregate;
mod condition;
mod parts;
mod rows;
mod sample;
mod stream;
mod visible;

pub use parts::{ScanForm, ScanParts, known_families};
pub use stream::ScanFile;
