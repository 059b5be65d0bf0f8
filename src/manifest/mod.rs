//! The append-only edit log of the whole root: namespaces, tables, regions, live store files, flushed sequence ids.
//!
//! It plays the parts of HBase's `hbase:meta` and store file tracker: a store file is live iff the manifest says so, and everything one
//! commit says takes effect together, by one sync. `CURRENT` names the manifest in force. docs/manifest-format.md has the bytes.

mod descriptor_encoding;
mod edit;
mod edit_encoding;
mod encoding;
mod files;
mod framing;
mod state;
#[cfg(test)]
mod tests;

pub use edit::{ManifestEdit, NamespaceEntry, RegionEntry, SnapshotEntry, StoreEntry, StoreFileEntry, TableEntry};
pub use state::ManifestState;

use crate::client::TableAttributes;
use crate::error::{Error, Result};
use crate::schema::NamespaceDescriptor;
use crate::vfs::{File, Vfs};
use framing::{RECORD_HEADER_LEN, RecordKind};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Identity of the namespace `default`, which is made with the store.
pub const DEFAULT_NAMESPACE_ID: u64 = 1;

/// Blocks are reserved in steps of this many bytes, so that a commit finds its room before it writes.
const ALLOCATION_STEP: u64 = 64 << 10;
/// A manifest is rewritten when it is larger than this and twice what it was when it was new.
const REWRITE_BYTES: u64 = 4 << 20;

/// The manifest of an open store. Commits are serialised; what they say is in [`Manifest::state`].
pub struct Manifest {
    vfs: Arc<dyn Vfs>,
    root: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    state: ManifestState,
    /// `None` in a store opened for reading.
    writer: Option<Writer>,
    /// Why nothing can be committed any more.
    poisoned: Option<String>,
    rewrite_bytes: u64,
}

/// The manifest file in force.
struct Writer {
    file: Arc<dyn File>,
    number: u64,
    /// Where the next record goes.
    end: u64,
    /// Bytes reserved on disk.
    allocated: u64,
    /// `end` when the file was new.
    initial: u64,
}

impl Manifest {
    /// Makes the manifest of a new store in the existing directory `root`, with the namespace `default`.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] if there is a store already; those of the files. What a failed or interrupted attempt leaves is no store,
    /// and no hindrance to the next attempt.
    pub fn create(
        vfs: Arc<dyn Vfs>,
        root: &Path,
        default_namespace: TableAttributes,
    ) -> Result<(Manifest, ManifestState)> {
        if vfs.exists(&root.join(files::CURRENT))? {
            return Err(Error::NotAllowed(format!("{} is a cellfs store already", root.display())));
        }
        let mut state = ManifestState::default();
        state.apply(&ManifestEdit::CreateNamespace(NamespaceEntry {
            id: DEFAULT_NAMESPACE_ID,
            name: "default".to_owned(),
            descriptor: Arc::new(NamespaceDescriptor::default()),
            attributes: default_namespace,
        }))?;
        let writer = Writer::install(vfs.as_ref(), root, 1, &state).map_err(InstallFailure::into_error)?;
        Ok((Manifest::assemble(vfs, root, state.clone(), Some(writer)), state))
    }

    /// Opens the manifest of the store at `root` and rewrites it compactly; `read_only` writes nothing.
    ///
    /// # Errors
    /// [`Error::NotAStore`] where there is no `CURRENT`; [`Error::Corruption`] for damage; [`Error::Unsupported`] for edits of a later
    /// version; those of the files.
    pub fn open(vfs: Arc<dyn Vfs>, root: &Path, read_only: bool) -> Result<(Manifest, ManifestState)> {
        let number = files::read_current(vfs.as_ref(), root)?;
        let path = files::manifest_path(root, number);
        if !vfs.exists(&path)? {
            let what = format!("it names {}, which is missing", path.display());
            return Err(Error::corruption(root.join(files::CURRENT), 0, what));
        }
        let file = if read_only { vfs.open_read(&path)? } else { vfs.open_write(&path)? };
        let mut state = ManifestState::default();
        let end = framing::replay(file.as_ref(), number, |offset, payload| {
            let edits = edit_encoding::decode_edits(payload).map_err(|malformed| match malformed {
                encoding::Malformed::Damaged(what) => Error::corruption(&path, offset, what),
                encoding::Malformed::Unknown(what) => Error::Unsupported { file: path.clone(), what },
            })?;
            let applied = edits.iter().try_for_each(|edit| state.apply(edit));
            applied.map_err(|refused| Error::corruption(&path, offset, refused.to_string()))
        })?;
        if end.torn {
            log::warn!("{}: the last commit was interrupted; cut at byte {}", path.display(), end.offset);
        }
        if read_only {
            return Ok((Manifest::assemble(vfs, root, state.clone(), None), state));
        }
        let writer = match Writer::install(vfs.as_ref(), root, number + 1, &state) {
            Ok(writer) => writer,
            // A full disk must not keep a store from opening, for room is made in it. Appending behind a torn commit is never right.
            Err(InstallFailure::Before(Error::NoSpace { .. })) if !end.torn => {
                Writer::resume(file, number, end.offset)?
            }
            Err(failure) => return Err(failure.into_error()),
        };
        files::remove_others(vfs.as_ref(), root, writer.number);
        Ok((Manifest::assemble(vfs, root, state.clone(), Some(writer)), state))
    }

    fn assemble(vfs: Arc<dyn Vfs>, root: &Path, state: ManifestState, writer: Option<Writer>) -> Manifest {
        let inner = Inner { state, writer, poisoned: None, rewrite_bytes: REWRITE_BYTES };
        Manifest { vfs, root: root.to_path_buf(), inner: Mutex::new(inner) }
    }

    /// What has been committed so far.
    pub fn state(&self) -> ManifestState {
        self.inner.lock().state.clone()
    }

    /// Looks at what has been committed so far; nothing is committed meanwhile.
    pub fn read<R>(&self, look: impl FnOnce(&ManifestState) -> R) -> R {
        look(&self.inner.lock().state)
    }

    /// Why nothing can be committed any more, if so.
    pub fn poisoned(&self) -> Option<String> {
        self.inner.lock().poisoned.clone()
    }

    /// Makes `edits` durable: all of them or, on error, none.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] for edits that do not fit the state and [`Error::NoSpace`] leave everything as it was. After
    /// [`Error::Poisoned`] only the next opening will tell whether the edits were kept, so no file they name may be removed; every later
    /// commit fails likewise. [`Error::ReadOnly`] in a store opened for reading.
    pub fn commit(&self, edits: &[ManifestEdit]) -> Result<()> {
        let mut inner = self.inner.lock();
        if let Some(reason) = &inner.poisoned {
            return Err(Error::Poisoned { reason: reason.clone() });
        }
        let mut next = inner.state.clone();
        for edit in edits {
            next.apply(edit)?;
        }
        let Some(writer) = inner.writer.as_mut() else {
            return Err(Error::ReadOnly { what: format!("{} was opened for reading", self.root.display()) });
        };
        match writer.append(&edit_encoding::encode_edits(edits)) {
            Ok(()) => inner.state = next,
            Err(AppendFailure::Nothing(error)) => return Err(error),
            Err(AppendFailure::Unknown(error)) => {
                let reason = error.to_string();
                inner.poisoned = Some(reason.clone());
                return Err(Error::Poisoned { reason });
            }
        }
        self.rewrite_if_large(&mut inner);
        Ok(())
    }

    /// Begins a new file when the present one is mostly history. The commit before it stands, whatever happens here.
    fn rewrite_if_large(&self, inner: &mut Inner) {
        let Some(writer) = &inner.writer else { return };
        if writer.end <= inner.rewrite_bytes.max(writer.initial.saturating_mul(2)) {
            return;
        }
        let old = writer.number;
        match Writer::install(self.vfs.as_ref(), &self.root, old + 1, &inner.state) {
            Ok(writer) => {
                inner.writer = Some(writer);
                inner.rewrite_bytes = REWRITE_BYTES;
                files::remove_others(self.vfs.as_ref(), &self.root, old + 1);
            }
            Err(InstallFailure::Before(error)) => {
                log::warn!("the manifest could not be rewritten and goes on growing: {error}");
                inner.rewrite_bytes = writer.end.saturating_mul(2);
            }
            Err(InstallFailure::After(error)) => inner.poisoned = Some(error.to_string()),
        }
    }
}

/// How far [`Writer::install`] came.
enum InstallFailure {
    /// The old manifest is in force.
    Before(Error),
    /// Nobody knows which one is.
    After(Error),
}

impl InstallFailure {
    fn into_error(self) -> Error {
        match self {
            InstallFailure::Before(error) | InstallFailure::After(error) => error,
        }
    }
}

/// What a failed [`Writer::append`] left.
enum AppendFailure {
    /// Nothing.
    Nothing(Error),
    /// Perhaps the record.
    Unknown(Error),
}

impl Writer {
    /// Writes `state` as manifest `number` and points `CURRENT` at it.
    fn install(
        vfs: &dyn Vfs,
        root: &Path,
        number: u64,
        state: &ManifestState,
    ) -> std::result::Result<Writer, InstallFailure> {
        let path = files::manifest_path(root, number);
        let write = || -> Result<Writer> {
            files::remove_if_there(vfs, &path)?;
            let file = vfs.create_new(&path)?;
            let mut bytes = framing::encode_file_header(number);
            let offset = bytes.len() as u64;
            let payload = edit_encoding::encode_edits(&state.to_edits());
            bytes.extend(framing::encode_record(number, offset, RecordKind::Edits, &payload)?);
            let end = bytes.len() as u64;
            let allocated = end + ALLOCATION_STEP;
            file.allocate(allocated)?;
            file.write_all_at(&bytes, 0)?;
            file.sync_all()?;
            files::write_pointer(vfs, root, number)?;
            Ok(Writer { file, number, end, allocated, initial: end })
        };
        let mut writer = write().map_err(|error| {
            // Best effort: the next attempt removes it as well.
            let _ = vfs.remove_file(&path);
            InstallFailure::Before(error)
        })?;
        files::switch_pointer(vfs, root).map_err(InstallFailure::After)?;
        writer.write_mark();
        Ok(writer)
    }

    /// Goes on behind the last record of an existing manifest. What is there may not have reached the disk yet.
    fn resume(file: Arc<dyn File>, number: u64, end: u64) -> Result<Writer> {
        file.sync_all()?;
        let allocated = file.len()?;
        Ok(Writer { file, number, end, allocated, initial: end })
    }

    fn append(&mut self, payload: &[u8]) -> std::result::Result<(), AppendFailure> {
        let record = framing::encode_record(self.number, self.end, RecordKind::Edits, payload)
            .map_err(AppendFailure::Nothing)?;
        let end = self.end + record.len() as u64;
        let needed = end + RECORD_HEADER_LEN as u64;
        if needed > self.allocated {
            let allocated = needed + ALLOCATION_STEP;
            self.file.allocate(allocated).map_err(AppendFailure::Nothing)?;
            self.allocated = allocated;
        }
        match self.file.write_all_at(&record, self.end) {
            Ok(()) => {}
            // Blocks were reserved, yet a copy-on-write volume may run out. The record must not come back after a crash.
            Err(full @ Error::NoSpace { .. }) => {
                let blank = [0u8; RECORD_HEADER_LEN];
                let blanked = self.file.write_all_at(&blank, self.end).and_then(|()| self.file.sync_data());
                return Err(match blanked {
                    Ok(()) => AppendFailure::Nothing(full),
                    Err(error) => AppendFailure::Unknown(error),
                });
            }
            Err(error) => return Err(AppendFailure::Unknown(error)),
        }
        self.file.sync_data().map_err(AppendFailure::Unknown)?;
        self.end = end;
        self.write_mark();
        Ok(())
    }

    /// Leaves proof that the record before was durable, without waiting for it. If it fails, the next record overwrites it.
    fn write_mark(&mut self) {
        let written = framing::encode_record(self.number, self.end, RecordKind::Mark, &[])
            .and_then(|mark| self.file.write_all_at(&mark, self.end));
        match written {
            Ok(()) => self.end += RECORD_HEADER_LEN as u64,
            Err(error) => log::debug!("no mark after a commit: {error}"),
        }
    }
}
