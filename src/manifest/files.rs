//! The manifest's files in the store directory: `CURRENT`, which names the manifest in force, and `MANIFEST-<n>`.

use crate::error::{Error, Result};
use crate::vfs::Vfs;
use std::path::{Path, PathBuf};

/// The pointer: one line, the manifest's name and the CRC-32 of the name in hex.
pub(super) const CURRENT: &str = "CURRENT";
/// The pointer to be.
const CURRENT_NEXT: &str = "CURRENT.tmp";
const PREFIX: &str = "MANIFEST-";
/// No pointer is longer.
const MAX_POINTER_LEN: usize = 64;

fn manifest_name(number: u64) -> String {
    format!("{PREFIX}{number:010}")
}

/// Where manifest `number` is.
pub(super) fn manifest_path(root: &Path, number: u64) -> PathBuf {
    root.join(manifest_name(number))
}

fn encode_pointer(number: u64) -> String {
    let name = manifest_name(number);
    format!("{name} {:08x}\n", crc32fast::hash(name.as_bytes()))
}

/// The number of the manifest in force.
pub(super) fn read_current(vfs: &dyn Vfs, root: &Path) -> Result<u64> {
    let path = root.join(CURRENT);
    if !vfs.exists(&path)? {
        return Err(Error::NotAStore { path: root.to_path_buf(), what: format!("there is no {CURRENT}") });
    }
    let mut buf = [0u8; MAX_POINTER_LEN];
    let read = vfs.open_read(&path)?.read_at(&mut buf, 0)?;
    let text = buf.get(..read).unwrap_or(&[]);
    let number = std::str::from_utf8(text).ok().and_then(|text| {
        let name = text.split(' ').next()?;
        name.strip_prefix(PREFIX)?.parse().ok()
    });
    match number {
        Some(number) if encode_pointer(number).as_bytes() == text => Ok(number),
        _ => Err(Error::corruption(path, 0, "it does not name a manifest")),
    }
}

/// Writes the pointer beside the one in force, and makes it and the manifest's name durable.
pub(super) fn write_pointer(vfs: &dyn Vfs, root: &Path, number: u64) -> Result<()> {
    let next = root.join(CURRENT_NEXT);
    remove_if_there(vfs, &next)?;
    let file = vfs.create_new(&next)?;
    file.write_all_at(encode_pointer(number).as_bytes(), 0)?;
    file.sync_all()?;
    vfs.sync_directory(root)
}

/// Puts the written pointer in force.
pub(super) fn switch_pointer(vfs: &dyn Vfs, root: &Path) -> Result<()> {
    vfs.rename(&root.join(CURRENT_NEXT), &root.join(CURRENT))?;
    vfs.sync_directory(root)
}

/// Removes every manifest but `number`; what cannot be removed stays until the next time.
pub(super) fn remove_others(vfs: &dyn Vfs, root: &Path, number: u64) {
    let keep = manifest_name(number);
    let entries = match vfs.list(root) {
        Ok(entries) => entries,
        Err(error) => return log::warn!("old manifests stay: {error}"),
    };
    for entry in entries {
        let stale = entry.name.starts_with(PREFIX) && entry.name != keep || entry.name == CURRENT_NEXT;
        if stale && let Err(error) = vfs.remove_file(&root.join(&entry.name)) {
            log::warn!("an old manifest stays: {error}");
        }
    }
}

pub(super) fn remove_if_there(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    if vfs.exists(path)? { vfs.remove_file(path) } else { Ok(()) }
}
