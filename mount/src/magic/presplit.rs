//! Cut points of `presplit hex|decimal|uniform N` (HBase `RegionSplitter`: HexStringSplit, DecimalStringSplit, UniformSplit).

use bytes::Bytes;

/// More regions than a table has any use for.
const MOST: u128 = 100_000;

/// The starts of the second to the last of N regions; `None` for words that ask for something else.
pub(super) fn cut_points(scheme: &[u8], regions: &[u8]) -> Option<Vec<Bytes>> {
    let regions: u128 =
        std::str::from_utf8(regions).ok()?.parse().ok().filter(|regions| (2..=MOST).contains(regions))?;
    let (keys, name): (u128, fn(u128) -> Bytes) = match scheme {
        b"hex" => (1 << 32, |key| format!("{key:08x}").into()),
        b"decimal" => (100_000_000, |key| format!("{key:08}").into()),
        // Eight bytes from the first to the last.
        b"uniform" => (1 << 64, |key| Bytes::copy_from_slice(&(key as u64).to_be_bytes())),
        _ => return None,
    };
    let width = keys / regions;
    Some((1..regions).map(|region| name(width * region)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cut_points_are_hbases() {
        assert_eq!(cut_points(b"hex", b"4").unwrap(), ["40000000", "80000000", "c0000000"]);
        assert_eq!(cut_points(b"hex", b"3").unwrap(), ["55555555", "aaaaaaaa"]);
        assert_eq!(cut_points(b"decimal", b"4").unwrap(), ["25000000", "50000000", "75000000"]);
        assert_eq!(cut_points(b"uniform", b"2").unwrap(), [&b"\x80\0\0\0\0\0\0\0"[..]]);
        assert_eq!(cut_points(b"uniform", b"3").unwrap(), [[0x55; 8], [0xaa; 8]].map(|key| key.to_vec()));
        for (scheme, regions) in [("hex", "1"), ("hex", "x"), ("octal", "4"), ("uniform", "100001")] {
            assert_eq!(cut_points(scheme.as_bytes(), regions.as_bytes()), None);
        }
    }
}
