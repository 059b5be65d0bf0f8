//! Snapshots (HBase `SnapshotDescriptionUtils`, `SnapshotManifest`): a list of files of a table, which are in the table or in the archive.

use super::descriptor::{read_table_descriptor, table_descriptor};
use super::layout::{self, SNAPSHOTS, read_file};
use super::messages::{self, SnapshotManifest, SnapshotMessage, SnapshotRegion};
use super::region_info::RegionDescription;
use crate::client::{SnapshotInfo, TableName};
use crate::error::{Error, Result};
use crate::schema::TableDescriptor;
use crate::vfs::Vfs;
use bytes::Bytes;
use std::path::{Path, PathBuf};

const INFO: &str = ".snapshotinfo";
const MANIFEST: &str = "data.manifest";
const REGION_MANIFEST: &str = "region-manifest.";

/// A snapshot as its directory says.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    pub(super) directory: PathBuf,
    pub(super) table: TableName,
    pub(super) info: SnapshotInfo,
}

/// One region of a snapshot, with its files by family.
pub(super) struct SnapshotPart {
    pub(super) region: RegionDescription,
    pub(super) manifest: SnapshotRegion,
}

/// All snapshots, oldest first, and what could not be read.
///
/// # Errors
/// Those of listing directories.
pub(super) fn find(vfs: &dyn Vfs, root: &Path) -> Result<(Vec<Snapshot>, Vec<String>)> {
    let directory = root.join(SNAPSHOTS);
    let (mut snapshots, mut remarks) = (Vec::new(), Vec::new());
    for entry in layout::list(vfs, &directory)? {
        // `.tmp` holds snapshots that are being taken.
        if !entry.is_directory || entry.name.starts_with('.') {
            continue;
        }
        match describe(vfs, directory.join(&entry.name), &entry.name) {
            Ok(snapshot) => snapshots.push(snapshot),
            Err(error) => remarks.push(format!("the snapshot {} cannot be read: {error}", entry.name)),
        }
    }
    snapshots.sort_by(|left, right| {
        let key = |snapshot: &Snapshot| (snapshot.info.created_millis, snapshot.info.name.clone());
        key(left).cmp(&key(right))
    });
    Ok((snapshots, remarks))
}

fn describe(vfs: &dyn Vfs, directory: PathBuf, name: &str) -> Result<Snapshot> {
    let path = directory.join(INFO);
    let message: SnapshotMessage = messages::decode(read_file(vfs, &path)?, &path, "snapshot description")?;
    let id = xxhash_rust::xxh3::xxh3_64(name.as_bytes());
    let name = Bytes::copy_from_slice(name.as_bytes());
    let info = SnapshotInfo { id, name, created_millis: message.created, automatic: false };
    Ok(Snapshot { table: TableName::parse(&message.table)?, directory, info })
}

impl Snapshot {
    /// The table's descriptor and regions of then.
    ///
    /// # Errors
    /// Those of reading the manifests.
    pub(super) fn read(&self, vfs: &dyn Vfs) -> Result<(TableDescriptor, Vec<SnapshotPart>)> {
        let path = self.directory.join(MANIFEST);
        let (descriptor, manifests) = if vfs.exists(&path)? {
            let manifest: SnapshotManifest = messages::decode(read_file(vfs, &path)?, &path, "snapshot manifest")?;
            (manifest.schema.as_ref().map(table_descriptor), manifest.regions)
        } else {
            // One whose manifests were not joined, as a snapshot of many regions may be left.
            (read_table_descriptor(vfs, &self.directory)?, self.region_manifests(vfs)?)
        };
        let descriptor = descriptor.ok_or_else(|| {
            Error::corruption(
                &path,
                0,
                "the snapshot has no descriptor: copy all of its directory, names with a dot too",
            )
        })?;
        let mut parts = Vec::new();
        for manifest in manifests {
            let region = manifest.region.as_ref().and_then(RegionDescription::of_message);
            let region =
                region.ok_or_else(|| Error::corruption(&path, 0, "a region of the snapshot has no description"))?;
            // The parents of splits are listed, too: their rows are those of their daughters.
            if !region.replaced && region.replica == 0 {
                parts.push(SnapshotPart { region, manifest });
            }
        }
        parts.sort_by(|left, right| left.region.start.cmp(&right.region.start));
        Ok((descriptor, parts))
    }

    fn region_manifests(&self, vfs: &dyn Vfs) -> Result<Vec<SnapshotRegion>> {
        let mut manifests = Vec::new();
        for entry in vfs.list(&self.directory)? {
            if entry.name.starts_with(REGION_MANIFEST) {
                let path = self.directory.join(&entry.name);
                manifests.push(messages::decode(read_file(vfs, &path)?, &path, "region manifest")?);
            }
        }
        Ok(manifests)
    }
}
