//! Edits as bytes: u8 kind, then the body as a byte string (docs/manifest-format.md). A kind whose layout changes gets a new number.

use super::descriptor_encoding::{decode_namespace, decode_table, encode_namespace, encode_table};
use super::edit::{ManifestEdit, NamespaceEntry, RegionEntry, SnapshotEntry, StoreEntry, StoreFileEntry, TableEntry};
use super::encoding::{Decoded, Decoder, Encoder, Malformed};
use crate::client::{TableAttributes, TableName};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The kinds. 51 to 63 are kept for snapshots.
mod kind {
    pub(super) const CREATE_NAMESPACE: u8 = 1;
    pub(super) const MODIFY_NAMESPACE: u8 = 2;
    pub(super) const SET_NAMESPACE_ATTRIBUTES: u8 = 3;
    pub(super) const DROP_NAMESPACE: u8 = 4;
    pub(super) const CREATE_TABLE: u8 = 8;
    pub(super) const MODIFY_TABLE: u8 = 9;
    pub(super) const SET_TABLE_ATTRIBUTES: u8 = 10;
    pub(super) const RENAME_TABLE: u8 = 11;
    pub(super) const DROP_TABLE: u8 = 12;
    pub(super) const ADD_REGION: u8 = 16;
    pub(super) const REMOVE_REGION: u8 = 17;
    pub(super) const SET_FLUSHED_SEQUENCE_ID: u8 = 18;
    pub(super) const ADD_STORE_FILE: u8 = 24;
    pub(super) const REMOVE_STORE_FILE: u8 = 25;
    pub(super) const SET_HISTORY_COMPLETE_SINCE: u8 = 26;
    pub(super) const REMOVE_STORE: u8 = 27;
    pub(super) const SET_LOG_NUMBER: u8 = 32;
    pub(super) const SET_LAST_SEQUENCE_ID: u8 = 33;
    pub(super) const SET_NEXT_IDS: u8 = 34;
    pub(super) const CREATE_SNAPSHOT: u8 = 48;
    pub(super) const DELETE_SNAPSHOT: u8 = 49;
    pub(super) const RENAME_SNAPSHOT: u8 = 50;
}

/// The payload of one commit.
pub(super) fn encode_edits(edits: &[ManifestEdit]) -> Vec<u8> {
    let mut out = Encoder::default();
    for edit in edits {
        encode_edit(edit, &mut out);
    }
    out.into_bytes()
}

/// The edits of one commit.
pub(super) fn decode_edits(payload: &[u8]) -> Decoded<Vec<ManifestEdit>> {
    let mut input = Decoder::new(payload);
    let mut edits = Vec::new();
    while !input.is_empty() {
        let kind = input.byte()?;
        let mut body = input.nested()?;
        edits.push(decode_edit(kind, &mut body)?);
        body.finish("an edit")?;
    }
    Ok(edits)
}

fn encode_edit(edit: &ManifestEdit, out: &mut Encoder) {
    out.byte(kind_of(edit));
    out.nested(|out| match edit {
        ManifestEdit::CreateNamespace(entry) => {
            out.unsigned(entry.id);
            out.text(&entry.name);
            encode_namespace(&entry.descriptor, out);
            encode_attributes(&entry.attributes, out);
        }
        ManifestEdit::ModifyNamespace { id, descriptor } => {
            out.unsigned(*id);
            encode_namespace(descriptor, out);
        }
        ManifestEdit::CreateTable(entry) => {
            out.unsigned(entry.id);
            encode_name(&entry.name, out);
            encode_table(&entry.descriptor, out);
            encode_attributes(&entry.attributes, out);
            out.signed(entry.created_millis);
        }
        ManifestEdit::ModifyTable { id, descriptor } => {
            out.unsigned(*id);
            encode_table(descriptor, out);
        }
        ManifestEdit::SetNamespaceAttributes { id, attributes }
        | ManifestEdit::SetTableAttributes { id, attributes } => {
            out.unsigned(*id);
            encode_attributes(attributes, out);
        }
        ManifestEdit::RenameTable { id, name } => {
            out.unsigned(*id);
            encode_name(name, out);
        }
        ManifestEdit::DropNamespace { id }
        | ManifestEdit::DropTable { id }
        | ManifestEdit::RemoveRegion { id }
        | ManifestEdit::DeleteSnapshot { id } => {
            out.unsigned(*id);
        }
        ManifestEdit::CreateSnapshot(entry) => encode_snapshot(entry, out),
        ManifestEdit::RenameSnapshot { id, name } => {
            out.unsigned(*id);
            out.bytes(name);
        }
        ManifestEdit::AddRegion(entry) => encode_region(entry, out),
        edit => encode_store_edit(edit, out),
    });
}

/// The edits of stores and counters.
fn encode_store_edit(edit: &ManifestEdit, out: &mut Encoder) {
    match edit {
        ManifestEdit::AddStoreFile { region, family, file } => {
            out.unsigned(*region);
            out.bytes(family);
            encode_file(file, out);
        }
        ManifestEdit::RemoveStoreFile { region, family, file_id } => {
            out.unsigned(*region);
            out.bytes(family);
            out.unsigned(*file_id);
        }
        ManifestEdit::SetHistoryCompleteSince { region, family, since_millis } => {
            out.unsigned(*region);
            out.bytes(family);
            out.signed(*since_millis);
        }
        ManifestEdit::RemoveStore { region, family } => {
            out.unsigned(*region);
            out.bytes(family);
        }
        ManifestEdit::SetFlushedSequenceId { region: first, sequence_id: second }
        | ManifestEdit::SetNextIds { next_id: first, next_file_id: second } => {
            out.unsigned(*first);
            out.unsigned(*second);
        }
        ManifestEdit::SetLogNumber { first_segment: only } | ManifestEdit::SetLastSequenceId { sequence_id: only } => {
            out.unsigned(*only);
        }
        // Those of namespaces, tables, regions and snapshots are written before.
        _ => {}
    }
}

fn kind_of(edit: &ManifestEdit) -> u8 {
    match edit {
        ManifestEdit::CreateNamespace(_) => kind::CREATE_NAMESPACE,
        ManifestEdit::ModifyNamespace { .. } => kind::MODIFY_NAMESPACE,
        ManifestEdit::SetNamespaceAttributes { .. } => kind::SET_NAMESPACE_ATTRIBUTES,
        ManifestEdit::DropNamespace { .. } => kind::DROP_NAMESPACE,
        ManifestEdit::CreateTable(_) => kind::CREATE_TABLE,
        ManifestEdit::ModifyTable { .. } => kind::MODIFY_TABLE,
        ManifestEdit::SetTableAttributes { .. } => kind::SET_TABLE_ATTRIBUTES,
        ManifestEdit::RenameTable { .. } => kind::RENAME_TABLE,
        ManifestEdit::DropTable { .. } => kind::DROP_TABLE,
        ManifestEdit::AddRegion(_) => kind::ADD_REGION,
        ManifestEdit::RemoveRegion { .. } => kind::REMOVE_REGION,
        ManifestEdit::SetFlushedSequenceId { .. } => kind::SET_FLUSHED_SEQUENCE_ID,
        ManifestEdit::AddStoreFile { .. } => kind::ADD_STORE_FILE,
        ManifestEdit::RemoveStoreFile { .. } => kind::REMOVE_STORE_FILE,
        ManifestEdit::SetHistoryCompleteSince { .. } => kind::SET_HISTORY_COMPLETE_SINCE,
        ManifestEdit::RemoveStore { .. } => kind::REMOVE_STORE,
        ManifestEdit::SetLogNumber { .. } => kind::SET_LOG_NUMBER,
        ManifestEdit::SetLastSequenceId { .. } => kind::SET_LAST_SEQUENCE_ID,
        ManifestEdit::SetNextIds { .. } => kind::SET_NEXT_IDS,
        ManifestEdit::CreateSnapshot(_) => kind::CREATE_SNAPSHOT,
        ManifestEdit::DeleteSnapshot { .. } => kind::DELETE_SNAPSHOT,
        ManifestEdit::RenameSnapshot { .. } => kind::RENAME_SNAPSHOT,
    }
}

fn decode_edit(kind: u8, body: &mut Decoder<'_>) -> Decoded<ManifestEdit> {
    Ok(match kind {
        kind::CREATE_NAMESPACE => ManifestEdit::CreateNamespace(NamespaceEntry {
            id: body.unsigned()?,
            name: body.text()?,
            descriptor: Arc::new(decode_namespace(body)?),
            attributes: decode_attributes(body)?,
        }),
        kind::MODIFY_NAMESPACE => {
            ManifestEdit::ModifyNamespace { id: body.unsigned()?, descriptor: Arc::new(decode_namespace(body)?) }
        }
        kind::SET_NAMESPACE_ATTRIBUTES => {
            ManifestEdit::SetNamespaceAttributes { id: body.unsigned()?, attributes: decode_attributes(body)? }
        }
        kind::DROP_NAMESPACE => ManifestEdit::DropNamespace { id: body.unsigned()? },
        kind::CREATE_TABLE => ManifestEdit::CreateTable(TableEntry {
            id: body.unsigned()?,
            name: decode_name(body)?,
            descriptor: Arc::new(decode_table(body)?),
            attributes: decode_attributes(body)?,
            created_millis: body.signed()?,
        }),
        kind::MODIFY_TABLE => {
            ManifestEdit::ModifyTable { id: body.unsigned()?, descriptor: Arc::new(decode_table(body)?) }
        }
        kind::SET_TABLE_ATTRIBUTES => {
            ManifestEdit::SetTableAttributes { id: body.unsigned()?, attributes: decode_attributes(body)? }
        }
        kind::RENAME_TABLE => ManifestEdit::RenameTable { id: body.unsigned()?, name: decode_name(body)? },
        kind::DROP_TABLE => ManifestEdit::DropTable { id: body.unsigned()? },
        kind::SET_LOG_NUMBER => ManifestEdit::SetLogNumber { first_segment: body.unsigned()? },
        kind::SET_LAST_SEQUENCE_ID => ManifestEdit::SetLastSequenceId { sequence_id: body.unsigned()? },
        kind::SET_NEXT_IDS => ManifestEdit::SetNextIds { next_id: body.unsigned()?, next_file_id: body.unsigned()? },
        _ => return decode_region_edit(kind, body),
    })
}

fn decode_region_edit(kind: u8, body: &mut Decoder<'_>) -> Decoded<ManifestEdit> {
    Ok(match kind {
        kind::ADD_REGION => ManifestEdit::AddRegion(decode_region(body)?),
        kind::REMOVE_REGION => ManifestEdit::RemoveRegion { id: body.unsigned()? },
        kind::SET_FLUSHED_SEQUENCE_ID => {
            ManifestEdit::SetFlushedSequenceId { region: body.unsigned()?, sequence_id: body.unsigned()? }
        }
        kind::ADD_STORE_FILE => {
            ManifestEdit::AddStoreFile { region: body.unsigned()?, family: body.bytes()?, file: decode_file(body)? }
        }
        kind::REMOVE_STORE_FILE => {
            ManifestEdit::RemoveStoreFile { region: body.unsigned()?, family: body.bytes()?, file_id: body.unsigned()? }
        }
        kind::SET_HISTORY_COMPLETE_SINCE => ManifestEdit::SetHistoryCompleteSince {
            region: body.unsigned()?,
            family: body.bytes()?,
            since_millis: body.signed()?,
        },
        kind::CREATE_SNAPSHOT => ManifestEdit::CreateSnapshot(decode_snapshot(body)?),
        kind::DELETE_SNAPSHOT => ManifestEdit::DeleteSnapshot { id: body.unsigned()? },
        kind::RENAME_SNAPSHOT => ManifestEdit::RenameSnapshot { id: body.unsigned()?, name: body.bytes()? },
        kind::REMOVE_STORE => ManifestEdit::RemoveStore { region: body.unsigned()?, family: body.bytes()? },
        other => return Err(Malformed::Unknown(format!("the edit kind {other}"))),
    })
}

fn encode_name(name: &TableName, out: &mut Encoder) {
    out.text(&name.namespace);
    out.text(&name.qualifier);
}

fn decode_name(input: &mut Decoder<'_>) -> Decoded<TableName> {
    Ok(TableName { namespace: input.text()?, qualifier: input.text()? })
}

fn encode_attributes(attributes: &TableAttributes, out: &mut Encoder) {
    let TableAttributes { mode, uid, gid, changed_millis, modified_millis } = attributes;
    out.unsigned(u64::from(*mode));
    out.unsigned(u64::from(*uid));
    out.unsigned(u64::from(*gid));
    out.signed(*changed_millis);
    out.signed(*modified_millis);
}

fn decode_attributes(input: &mut Decoder<'_>) -> Decoded<TableAttributes> {
    Ok(TableAttributes {
        mode: input.narrow()?,
        uid: input.narrow()?,
        gid: input.narrow()?,
        changed_millis: input.signed()?,
        modified_millis: input.signed()?,
    })
}

fn encode_region(region: &RegionEntry, out: &mut Encoder) {
    let RegionEntry { id, table, encoded_name, start, end, parent, born_millis, flushed_sequence_id, stores } = region;
    out.unsigned(*id);
    out.unsigned(*table);
    out.text(encoded_name);
    out.bytes(start);
    out.bytes(end);
    out.flag(parent.is_some());
    if let Some(parent) = parent {
        out.text(parent);
    }
    out.signed(*born_millis);
    out.unsigned(*flushed_sequence_id);
    out.unsigned(stores.len() as u64);
    for (family, store) in stores {
        out.bytes(family);
        out.flag(store.history_complete_since.is_some());
        if let Some(since) = store.history_complete_since {
            out.signed(since);
        }
        out.unsigned(store.files.len() as u64);
        for file in store.files.values() {
            encode_file(file, out);
        }
    }
}

fn decode_region(input: &mut Decoder<'_>) -> Decoded<RegionEntry> {
    let mut region = RegionEntry {
        id: input.unsigned()?,
        table: input.unsigned()?,
        encoded_name: input.text()?,
        start: input.bytes()?,
        end: input.bytes()?,
        parent: if input.flag()? { Some(input.text()?) } else { None },
        born_millis: input.signed()?,
        flushed_sequence_id: input.unsigned()?,
        stores: BTreeMap::new(),
    };
    for _ in 0..input.unsigned()? {
        let family = input.bytes()?;
        let mut store = StoreEntry::default();
        if input.flag()? {
            store.history_complete_since = Some(input.signed()?);
        }
        for _ in 0..input.unsigned()? {
            let file = decode_file(input)?;
            store.files.insert(file.file_id, file);
        }
        region.stores.insert(family, store);
    }
    Ok(region)
}

fn encode_snapshot(snapshot: &SnapshotEntry, out: &mut Encoder) {
    let SnapshotEntry { id, table, name, created_millis, sequence_id, automatic, descriptor, attributes, regions } =
        snapshot;
    out.unsigned(*id);
    out.unsigned(*table);
    out.bytes(name);
    out.signed(*created_millis);
    out.unsigned(*sequence_id);
    out.flag(*automatic);
    encode_table(descriptor, out);
    encode_attributes(attributes, out);
    out.unsigned(regions.len() as u64);
    for region in regions {
        encode_region(region, out);
    }
}

fn decode_snapshot(input: &mut Decoder<'_>) -> Decoded<SnapshotEntry> {
    let mut snapshot = SnapshotEntry {
        id: input.unsigned()?,
        table: input.unsigned()?,
        name: input.bytes()?,
        created_millis: input.signed()?,
        sequence_id: input.unsigned()?,
        automatic: input.flag()?,
        descriptor: Arc::new(decode_table(input)?),
        attributes: decode_attributes(input)?,
        regions: Vec::new(),
    };
    for _ in 0..input.unsigned()? {
        snapshot.regions.push(Arc::new(decode_region(input)?));
    }
    Ok(snapshot)
}

fn encode_file(file: &StoreFileEntry, out: &mut Encoder) {
    let StoreFileEntry {
        file_id,
        size,
        max_sequence_id,
        entries,
        tombstones,
        min_timestamp,
        max_timestamp,
        first_row,
        last_row,
        is_reference,
        created_millis,
        major,
    } = file;
    for number in [file_id, size, max_sequence_id, entries, tombstones] {
        out.unsigned(*number);
    }
    out.signed(*min_timestamp);
    out.signed(*max_timestamp);
    out.bytes(first_row);
    out.bytes(last_row);
    out.flag(*is_reference);
    out.signed(*created_millis);
    out.flag(*major);
}

fn decode_file(input: &mut Decoder<'_>) -> Decoded<StoreFileEntry> {
    Ok(StoreFileEntry {
        file_id: input.unsigned()?,
        size: input.unsigned()?,
        max_sequence_id: input.unsigned()?,
        entries: input.unsigned()?,
        tombstones: input.unsigned()?,
        min_timestamp: input.signed()?,
        max_timestamp: input.signed()?,
        first_row: input.bytes()?,
        last_row: input.bytes()?,
        is_reference: input.flag()?,
        created_millis: input.signed()?,
        major: input.flag()?,
    })
}
