//! An open `.import/<form>`.

use super::importer::Importer;
use super::report::ImportReport;
use crate::magic::file::{MagicFile, MagicOpened};
use crate::magic::hooks::{Change, MountHooks};
use crate::magic::node::{ImportForm, ImportMode};
use crate::ops::{FsError, FsResult};
use bytes::Bytes;
use cellfs::client::{LoadKind, Table};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

/// An import that runs in write(2): lines are in the table when the call that completes them returns, and close(2) carries the verdict. One that is a
/// whole collects them, and close(2) installs them all.
///
/// One open is one import, however often its descriptor is flushed (a shell duplicates and closes it): each flush that finds new bytes ends a
/// last line without newline, and gives the verdict of all there was.
pub struct ImportFile {
    importer: Importer,
    hooks: Arc<dyn MountHooks>,
    last: Arc<Mutex<ImportReport>>,
    table: u64,
    mode: ImportMode,
    /// A whole import was refused: nothing more is taken.
    refused: bool,
    /// Whether the kernel places writes at the end of a size it cannot know.
    appends: bool,
    offset: u64,
    begun: Option<Duration>,
    unfinished: bool,
}

impl ImportFile {
    /// An import into `table`, whose report goes to `last`.
    pub fn open(
        table: Arc<dyn Table>,
        (mode, form): (ImportMode, ImportForm),
        hooks: Arc<dyn MountHooks>,
        last: Arc<Mutex<ImportReport>>,
        flags: i32,
    ) -> ImportFile {
        ImportFile {
            table: table.id(),
            importer: Importer::new(table, mode, form),
            mode,
            refused: false,
            hooks,
            last,
            appends: flags & libc::O_APPEND != 0,
            offset: 0,
            begun: None,
            unfinished: false,
        }
    }

    fn publish(&mut self) {
        self.tell_rows();
        let now = self.hooks.monotonic();
        let report = self.importer.report();
        report.elapsed = now.saturating_sub(self.begun.unwrap_or(now));
        *self.last.lock() = report.clone();
    }

    fn tell_rows(&mut self) {
        let rows = self.importer.take_written_rows();
        if !rows.is_empty() {
            self.hooks.changed(Change::Rows { table: self.table, rows });
        }
    }

    /// Ends the stream, and with it a whole import. What comes then is one more.
    fn end(&mut self) -> FsResult<()> {
        self.unfinished = false;
        let finished = self.importer.finish();
        self.refused = finished.is_err() || self.importer.report().rejected > 0;
        if !self.refused {
            match self.mode {
                ImportMode::Lines => {}
                ImportMode::Whole(LoadKind::Replace) => self.hooks.changed(Change::Table { table: self.table }),
                ImportMode::Whole(_) => self.hooks.changed(Change::AnyRow { table: self.table }),
            }
        }
        self.publish();
        finished
    }

    fn verdict(&mut self) -> FsResult<()> {
        let what = match self.mode {
            ImportMode::Lines => "",
            ImportMode::Whole(_) => ", so nothing was imported",
        };
        let report = self.importer.report();
        match report.rejected {
            0 => Ok(()),
            lines => Err(FsError::new(
                libc::EINVAL,
                format!(
                    "{lines} lines were refused{what} (.import/errors has each); the first: {}",
                    report.first_error()
                ),
            )),
        }
    }
}

impl MagicFile for ImportFile {
    fn read(&mut self, _offset: u64, _size: usize) -> FsResult<Bytes> {
        Ok(Bytes::new())
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> FsResult<usize> {
        if offset != self.offset && !self.appends {
            return Err(FsError::new(
                libc::ESPIPE,
                format!("an import is a stream: byte {offset} was written where {} is next", self.offset),
            ));
        }
        if self.refused && self.mode != ImportMode::Lines {
            self.verdict()?;
        }
        self.begun.get_or_insert_with(|| self.hooks.monotonic());
        self.offset += data.len() as u64;
        self.unfinished = true;
        let pushed = self.importer.push(data);
        self.tell_rows();
        if pushed.is_err() {
            self.publish();
        }
        pushed.map(|()| data.len())
    }

    fn truncate(&mut self, _size: u64) -> FsResult<()> {
        Ok(())
    }

    fn flush(&mut self) -> FsResult<()> {
        if self.begun.is_none() {
            return Ok(());
        }
        if self.unfinished {
            self.end()?;
        }
        self.verdict()
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn opened(&self) -> MagicOpened {
        MagicOpened { direct_io: true, no_flush: false }
    }
}

impl Drop for ImportFile {
    fn drop(&mut self) {
        // A descriptor that was never flushed: what came whole is in, and what it was is told.
        if self.unfinished {
            let _ = self.end();
        }
    }
}
