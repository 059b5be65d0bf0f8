use super::*;
use crate::manifest::edit_encoding::{decode_edits, encode_edits};
use crate::schema::{BloomType, ColumnFamilyDescriptor, Compression, DataBlockEncoding, Durability, KeepDeletedCells};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

fn any_bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..12).prop_map(Bytes::from)
}

fn any_text() -> impl Strategy<Value = String> {
    "[a-z\u{e4}]{0,8}"
}

fn any_metadata() -> impl Strategy<Value = BTreeMap<String, String>> {
    btree_map(any_text(), any_text(), 0..3)
}

fn any_family() -> impl Strategy<Value = ColumnFamilyDescriptor> {
    let compressions =
        [Compression::None, Compression::Gz, Compression::Snappy, Compression::Lz4, Compression::Zstd].to_vec();
    let encodings = [
        DataBlockEncoding::None,
        DataBlockEncoding::Prefix,
        DataBlockEncoding::Diff,
        DataBlockEncoding::FastDiff,
        DataBlockEncoding::RowIndexV1,
    ];
    let keeps = [KeepDeletedCells::False, KeepDeletedCells::True, KeepDeletedCells::Ttl];
    let blooms = [BloomType::None, BloomType::Row, BloomType::RowCol, BloomType::RowPrefixFixedLength(70_000)];
    let numbers = (any::<u32>(), any::<u32>(), any::<i32>(), any::<u32>());
    let choices = (select(keeps.to_vec()), select(blooms.to_vec()), select(compressions), select(encodings.to_vec()));
    (numbers, choices, any::<[bool; 3]>(), any_metadata()).prop_map(|(numbers, choices, flags, metadata)| {
        let [block_cache, in_memory, new_version_behavior] = flags;
        ColumnFamilyDescriptor {
            versions: numbers.0,
            min_versions: numbers.1,
            ttl_seconds: numbers.2,
            block_size: numbers.3,
            keep_deleted_cells: choices.0,
            bloom: choices.1,
            compression: choices.2,
            data_block_encoding: choices.3,
            block_cache,
            in_memory,
            new_version_behavior,
            metadata,
        }
    })
}

fn any_table() -> impl Strategy<Value = TableDescriptor> {
    let durabilities =
        [Durability::UseDefault, Durability::SkipWal, Durability::AsyncWal, Durability::SyncWal, Durability::FsyncWal];
    let sizes = (option::of(any::<u64>()), option::of(any::<u64>()));
    let families = btree_map(any_bytes(), any_family(), 0..3);
    (families, sizes, any::<[bool; 3]>(), select(durabilities.to_vec()), any_metadata()).prop_map(
        |(families, sizes, flags, durability, metadata)| {
            let [compaction_disabled, split_disabled, read_only] = flags;
            TableDescriptor {
                families,
                max_file_size: sizes.0,
                memstore_flush_size: sizes.1,
                compaction_disabled,
                split_disabled,
                read_only,
                durability,
                metadata,
            }
        },
    )
}

fn any_attributes() -> impl Strategy<Value = TableAttributes> {
    (any::<[u32; 3]>(), any::<[i64; 2]>()).prop_map(|([mode, uid, gid], [changed_millis, modified_millis])| {
        TableAttributes { mode, uid, gid, changed_millis, modified_millis }
    })
}

fn any_file() -> impl Strategy<Value = StoreFileEntry> {
    (any::<[u64; 5]>(), any::<[i64; 3]>(), any_bytes(), any_bytes(), any::<[bool; 2]>()).prop_map(
        |(numbers, times, first_row, last_row, [is_reference, major])| {
            let [file_id, size, max_sequence_id, entries, tombstones] = numbers;
            let [min_timestamp, max_timestamp, created_millis] = times;
            StoreFileEntry {
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
            }
        },
    )
}

fn any_region() -> impl Strategy<Value = RegionEntry> {
    let store = (vec(any_file(), 0..3), option::of(any::<i64>())).prop_map(|(files, history_complete_since)| {
        let files = files.into_iter().map(|file| (file.file_id, file)).collect();
        StoreEntry { files, history_complete_since }
    });
    let texts = (any_text(), option::of(any_text()));
    (any::<[u64; 3]>(), texts, any_bytes(), any_bytes(), any::<i64>(), btree_map(any_bytes(), store, 0..3)).prop_map(
        |([id, table, flushed_sequence_id], (encoded_name, parent), start, end, born_millis, stores)| RegionEntry {
            id,
            table,
            encoded_name,
            start,
            end,
            parent,
            born_millis,
            flushed_sequence_id,
            stores,
        },
    )
}

fn any_namespace() -> impl Strategy<Value = NamespaceDescriptor> {
    (option::of(any::<u32>()), option::of(any::<u32>()), any_metadata())
        .prop_map(|(max_tables, max_regions, metadata)| NamespaceDescriptor { max_tables, max_regions, metadata })
}

/// Every kind of edit, with arbitrary content.
fn any_edits() -> impl Strategy<Value = Vec<ManifestEdit>> {
    let entries = (any_namespace(), any_table(), any_attributes(), any_region(), any_file());
    (any::<u64>(), any::<u64>(), any::<i64>(), any_text(), any_bytes(), entries).prop_map(
        |(id, other, time, text, family, (namespace, table, attributes, region, file))| {
            let (namespace, descriptor) = (Arc::new(namespace), Arc::new(table));
            let name = TableName { namespace: text.clone(), qualifier: text.clone() };
            let snapshot = SnapshotEntry {
                id,
                table: other,
                name: family.clone(),
                created_millis: time,
                sequence_id: other,
                automatic: time > 0,
                descriptor: descriptor.clone(),
                attributes,
                regions: if time > 7 { vec![Arc::new(region.clone())] } else { Vec::new() },
            };
            let entry = NamespaceEntry { id, name: text, descriptor: namespace.clone(), attributes };
            let table =
                TableEntry { id, name: name.clone(), descriptor: descriptor.clone(), attributes, created_millis: time };
            vec![
                ManifestEdit::CreateNamespace(entry),
                ManifestEdit::ModifyNamespace { id, descriptor: namespace },
                ManifestEdit::SetNamespaceAttributes { id, attributes },
                ManifestEdit::DropNamespace { id },
                ManifestEdit::CreateTable(table),
                ManifestEdit::ModifyTable { id, descriptor },
                ManifestEdit::SetTableAttributes { id, attributes },
                ManifestEdit::RenameTable { id, name },
                ManifestEdit::DropTable { id },
                ManifestEdit::AddRegion(region),
                ManifestEdit::RemoveRegion { id },
                ManifestEdit::SetFlushedSequenceId { region: id, sequence_id: other },
                ManifestEdit::AddStoreFile { region: id, family: family.clone(), file },
                ManifestEdit::RemoveStoreFile { region: id, family: family.clone(), file_id: other },
                ManifestEdit::SetHistoryCompleteSince { region: id, family: family.clone(), since_millis: time },
                ManifestEdit::RemoveStore { region: id, family: family.clone() },
                ManifestEdit::CreateSnapshot(snapshot),
                ManifestEdit::DeleteSnapshot { id },
                ManifestEdit::RenameSnapshot { id, name: family },
                ManifestEdit::SetLogNumber { first_segment: id },
                ManifestEdit::SetLastSequenceId { sequence_id: id },
                ManifestEdit::SetNextIds { next_id: id, next_file_id: other },
            ]
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn edits_round_trip(edits in any_edits()) {
        let payload = encode_edits(&edits);
        prop_assert_eq!(decode_edits(&payload).unwrap(), edits);
    }

    #[test]
    fn no_payload_breaks_the_decoder(edits in any_edits(), at in any::<usize>(), byte in any::<u8>()) {
        let mut payload = encode_edits(&edits);
        let at = at % payload.len();
        payload[at] = byte;
        // Whatever comes out, it is an answer.
        let _ = decode_edits(&payload);
        payload.truncate(at);
        let _ = decode_edits(&payload);
    }
}
