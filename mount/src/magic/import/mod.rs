//! Imports: streams of rows written into a table. [`Importer`] is the work itself, also of the command `cellfs import`; [`ImportFile`] is
//! `.import/<form>`, an open stream of it.

mod importer;
mod report;
mod stream;

pub use importer::Importer;
pub use report::ImportReport;
pub(super) use stream::ImportFile;
