//! The numbers that change while a store is open, and the file in which they outlive it.
//!
//! ```text
//! STORE/CONFIG    TOML; the settings that differ from the defaults, a line each. Missing: all defaults
//! ```

use super::{Store, StoreInner, StoreOptions};
use crate::error::{Error, Result};
use crate::region::RegionConfig;
use crate::schema::StoreSettings;
use crate::vfs::Vfs;
use std::path::Path;
use std::time::Duration;

const CONFIG_FILE: &str = "CONFIG";
/// The file to be, until it is durable.
const CONFIG_NEXT: &str = "CONFIG.tmp";
/// No such text is longer.
const MAX_TEXT: u64 = 64 << 10;

/// The settings that options amount to.
pub(super) fn of_options(options: &StoreOptions) -> StoreSettings {
    let compaction = &options.region.compaction;
    StoreSettings {
        compaction_threads: options.compaction_threads as u32,
        compaction_throttle: compaction.throttle_bytes_per_second,
        major_period_millis: compaction.major_period_millis,
        major_hours: compaction.major_hours,
        cache_bytes: options.cache_bytes,
        memstore_bytes: options.memstore_bytes,
        cell_max: options.region.limits.max_cell_bytes,
        sync_interval_millis: options.sync_interval.as_millis() as u64,
    }
}

fn set_region(region: &mut RegionConfig, settings: &StoreSettings) {
    region.compaction.throttle_bytes_per_second = settings.compaction_throttle;
    region.compaction.major_period_millis = settings.major_period_millis;
    region.compaction.major_hours = settings.major_hours;
    region.limits.max_cell_bytes = settings.cell_max;
}

/// Puts what the store keeps into the options it is opened with.
///
/// # Errors
/// [`Error::InvalidArgument`] with file and line for a text that is no settings.
pub(super) fn load(vfs: &dyn Vfs, root: &Path, options: &mut StoreOptions) -> Result<()> {
    let path = root.join(CONFIG_FILE);
    if !vfs.exists(&path)? {
        return Ok(());
    }
    let file = vfs.open_read(&path)?;
    let mut text = vec![0; usize::try_from(file.len()?.min(MAX_TEXT)).unwrap_or(0)];
    file.read_exact_at(&mut text, 0)?;
    let text = String::from_utf8_lossy(&text);
    let settings = of_options(options)
        .changed_by(&text)
        .map_err(|error| Error::invalid(format!("{}: {error}; repair or remove that file", path.display())))?;
    set_region(&mut options.region, &settings);
    options.compaction_threads = settings.compaction_threads as usize;
    options.cache_bytes = settings.cache_bytes;
    options.memstore_bytes = settings.memstore_bytes;
    options.sync_interval = Duration::from_millis(settings.sync_interval_millis);
    Ok(())
}

/// Replaces the file, durably.
fn save(vfs: &dyn Vfs, root: &Path, text: &str) -> Result<()> {
    let next = root.join(CONFIG_NEXT);
    if vfs.exists(&next)? {
        vfs.remove_file(&next)?;
    }
    let file = vfs.create_new(&next)?;
    file.write_all_at(text.as_bytes(), 0)?;
    file.sync_all()?;
    vfs.rename(&next, &root.join(CONFIG_FILE))?;
    vfs.sync_directory(root)
}

impl StoreInner {
    /// What [`super::Workers`] and the figures go by.
    pub(super) fn settings(&self) -> StoreSettings {
        self.settings.read().clone()
    }
}

impl Store {
    /// Changes the settings, and keeps them for later.
    ///
    /// # Errors
    /// [`Error::ReadOnly`] in a store opened for reading; those of writing the file: then nothing has changed.
    pub(super) fn put_settings(&self, settings: &StoreSettings) -> Result<()> {
        let inner = &self.inner;
        inner.services.wal()?;
        let mut present = inner.settings.write();
        save(inner.vfs.as_ref(), &inner.root, &settings.describe_changes(&of_options(&StoreOptions::default())))?;
        *present = settings.clone();
        drop(present);
        self.configure(|region| set_region(region, settings));
        self.set_cache_bytes(settings.cache_bytes);
        self.set_memstore_bytes(settings.memstore_bytes);
        if let Some(workers) = self.workers.lock().as_mut() {
            workers.have_compactors(inner, settings.compaction_threads as usize)?;
        }
        inner.services.work.raise();
        Ok(())
    }
}
