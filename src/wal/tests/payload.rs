use super::*;
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
        let decoded = format::decode_payload(&payload, sequence_id).unwrap();
        prop_assert_eq!(decoded, expected(sequence_id, edits).edits);
        for len in 0..payload.len() {
            prop_assert!(format::decode_payload(&payload.slice(..len), 1).is_err());
        }
    }

    #[test]
    fn no_payload_breaks_the_decoder(mut edits in any_edits(), at in any::<usize>(), byte in any::<u8>()) {
        edits.push(WalEdit { region: 1, cells: vec![cell(1, 1)] });
        let mut payload = payload_of(&edits);
        let at = at % payload.len();
        payload[at] = byte;
        // Whatever comes out, it is an answer; claimed counts of billions allocate nothing.
        let _ = format::decode_payload(&payload.into(), 1);
    }

    #[test]
    fn headers_are_bound_to_their_place(synced in any::<u64>(), sequence_id in any::<u64>(), segment in any::<u64>(), offset in any::<u32>()) {
        use crate::wal::format::RecordHeader;
        let offset = u64::from(offset);
        let header = RecordHeader { payload_crc: 1, length: 2, kind: RecordKind::Edits, segment, synced, sequence_id };
        let bytes = header.encode(offset);
        prop_assert_eq!(RecordHeader::decode(&bytes, segment, offset), Some(header));
        prop_assert_eq!(RecordHeader::decode(&bytes, segment, offset + 1), None);
        prop_assert_eq!(RecordHeader::decode(&bytes, segment.wrapping_add(1), offset), None);
    }
}
