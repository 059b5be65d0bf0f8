use super::*;
use crate::wal::format::{Place, RecordHeader, VERSION, VERSION_1};
use proptest::prelude::*;

fn any_cell() -> impl Strategy<Value = Cell> {
    let bytes = |max| proptest::collection::vec(any::<u8>(), 0..max);
    let types = prop_oneof![
        Just(CellType::Put),
        Just(CellType::Delete),
        Just(CellType::DeleteColumn),
        Just(CellType::DeleteFamily),
        Just(CellType::DeleteFamilyVersion)
    ];
    let tags = proptest::collection::vec((any::<u8>(), bytes(20)), 0..3);
    (bytes(30), bytes(10), bytes(30), any::<i64>(), types, bytes(200), tags).prop_map(
        |(row, family, qualifier, timestamp, kind, value, tags)| {
            let tags: Vec<Tag> = tags.into_iter().map(|(kind, value)| Tag { kind, value: value.into() }).collect();
            Cell::with_tags(&row, &family, &qualifier, timestamp, kind, &value, &encode_tags(&tags))
        },
    )
}

/// The payload that edits make, as one piece.
fn payload_of(edits: &[WalEdit]) -> Vec<u8> {
    let record = format::encode_payload(edits).unwrap();
    record.pieces().collect::<Vec<_>>().concat().split_off(RECORD_HEADER_LEN)
}

fn any_edits() -> impl Strategy<Value = Vec<WalEdit>> {
    let edit = (any::<u64>(), proptest::collection::vec(any_cell(), 0..5));
    proptest::collection::vec(edit.prop_map(|(region, cells)| WalEdit { region, cells }), 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn payloads_round_trip(edits in any_edits(), sequence_id in any::<u64>()) {
        let payload = Bytes::from(payload_of(&edits));
        let decoded = format::decode_payload(&payload, VERSION, sequence_id).unwrap();
        prop_assert_eq!(decoded, expected(sequence_id, edits).edits);
        for len in 0..payload.len() {
            prop_assert!(format::decode_payload(&payload.slice(..len), VERSION, 1).is_err());
        }
    }

    #[test]
    fn no_payload_breaks_the_decoder(mut edits in any_edits(), at in any::<usize>(), byte in any::<u8>()) {
        edits.push(WalEdit { region: 1, cells: vec![cell(1, 1)] });
        let mut payload = payload_of(&edits);
        let at = at % payload.len();
        payload[at] = byte;
        // Whatever comes out, it is an answer; claimed counts of billions allocate nothing.
        let payload = Bytes::from(payload);
        for version in [VERSION, VERSION_1] {
            let _ = format::decode_payload(&payload, version, 1);
        }
    }

    #[test]
    fn headers_are_bound_to_their_place(unsynced in any::<u32>(), sequence_id in any::<u64>(), segment in any::<u64>(), offset in any::<u32>()) {
        let offset = u64::from(offset);
        let place = Place { version: VERSION, segment, base: 1 << 33 };
        let synced = place.position(offset) - u64::from(unsynced.min(u32::MAX - 1));
        let header = RecordHeader { payload_crc: 1, length: 2, kind: RecordKind::Edits, synced, sequence_id };
        let bytes = header.encode(place, offset);
        prop_assert_eq!(RecordHeader::decode(&bytes, place, offset), Some(header));
        prop_assert_eq!(RecordHeader::decode(&bytes, place, offset + 1), None);
        prop_assert_eq!(RecordHeader::decode(&bytes, Place { segment: segment.wrapping_add(1), ..place }, offset), None);
    }
}

#[test]
fn a_sync_too_long_ago_is_not_claimed() {
    let place = Place { version: VERSION, segment: 1, base: 1 << 40 };
    let header = RecordHeader { payload_crc: 1, length: 2, kind: RecordKind::Edits, synced: 77, sequence_id: 1 };
    let decoded = RecordHeader::decode(&header.encode(place, 48), place, 48);
    assert_eq!(decoded, Some(RecordHeader { synced: 0, ..header }));
}
