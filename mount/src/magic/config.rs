//! `.cellfs/config`: the store's own numbers, shown with their effective values and changed without a restart.

use super::file::{MagicFile, MagicOpened, slice};
use super::hooks::MountHooks;
use crate::ops::{FsError, FsResult};
use bytes::Bytes;
use cellfs::client::Admin;
use std::sync::Arc;

/// The largest text that is taken, in bytes.
const MAX_TEXT: usize = 64 << 10;

/// The text as it is now.
pub(super) fn text(store: &dyn Admin) -> String {
    store.settings().describe()
}

/// An open `.cellfs/config`. Whole lines are judged in the write(2) that brings them, where every shell sees the result; they take effect
/// together when the file is closed.
pub(super) struct ConfigFile {
    store: Arc<dyn Admin>,
    hooks: Arc<dyn MountHooks>,
    shown: Bytes,
    written: Vec<u8>,
    /// Something was refused: nothing of this open takes effect.
    refused: bool,
}

impl ConfigFile {
    pub(super) fn open(store: Arc<dyn Admin>, hooks: Arc<dyn MountHooks>) -> ConfigFile {
        let shown = text(store.as_ref()).into();
        ConfigFile { store, hooks, shown, written: Vec::new(), refused: false }
    }

    fn judge(&self) -> FsResult<cellfs::schema::StoreSettings> {
        let wrong = |what: String| FsError::new(libc::EINVAL, what);
        let text = std::str::from_utf8(&self.written).map_err(|_| wrong("settings are UTF-8 text".to_owned()))?;
        Ok(self.store.settings().changed_by(text)?)
    }

    fn refuse(&mut self, error: FsError) -> FsError {
        self.refused = true;
        self.written.clear();
        error
    }
}

impl MagicFile for ConfigFile {
    fn read(&mut self, offset: u64, size: usize) -> FsResult<Bytes> {
        Ok(slice(&self.shown, offset, size))
    }

    fn write(&mut self, _offset: u64, data: &[u8]) -> FsResult<usize> {
        if self.written.len() + data.len() > MAX_TEXT {
            return Err(self.refuse(FsError::new(libc::EFBIG, "settings are at most 64 KB of text")));
        }
        self.written.extend_from_slice(data);
        if self.written.ends_with(b"\n")
            && let Err(error) = self.judge()
        {
            return Err(self.refuse(error));
        }
        Ok(data.len())
    }

    fn truncate(&mut self, _size: u64) -> FsResult<()> {
        self.written.clear();
        Ok(())
    }

    fn flush(&mut self) -> FsResult<()> {
        if self.refused || self.written.is_empty() {
            return Ok(());
        }
        let settings = match self.judge() {
            Ok(settings) => settings,
            Err(error) => return Err(self.refuse(error)),
        };
        self.written.clear();
        if settings != self.store.settings() {
            self.store.update_settings(&settings)?;
        }
        self.hooks.set_cell_max(settings.cell_max);
        self.shown = text(self.store.as_ref()).into();
        Ok(())
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn opened(&self) -> MagicOpened {
        MagicOpened { direct_io: true, no_flush: false }
    }
}
