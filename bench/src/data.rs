//! Keys and values of the engine workloads: a function of seed and number, so that every peer gets the same.

/// Bytes of a key.
pub const KEY_BYTES: usize = 16;
/// Bytes of a value.
pub const VALUE_BYTES: usize = 100;

/// A small seeded generator (splitmix64): the same stream on every machine.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// A stream of its own for each seed.
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

/// A bijection of 64 bits: distinct numbers give distinct keys in random order.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The key of entry `number`: 16 hexadecimal digits.
pub fn key(seed: u64, number: u64) -> [u8; KEY_BYTES] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut bits = mix(number.wrapping_add(seed.rotate_left(32)));
    let mut key = [0; KEY_BYTES];
    for digit in &mut key {
        *digit = DIGITS.get((bits >> 60) as usize).copied().unwrap_or(b'0');
        bits <<= 4;
    }
    key
}

/// Values that compress to about half: random bytes, repeated once (RocksDB's db_bench makes them so).
pub struct Values(Random);

impl Values {
    /// A stream of its own for each seed.
    pub fn new(seed: u64) -> Values {
        Values(Random::new(seed ^ 0x5eed))
    }

    /// The next value.
    pub fn next(&mut self) -> [u8; VALUE_BYTES] {
        let mut value = [0; VALUE_BYTES];
        let (first, second) = value.split_at_mut(VALUE_BYTES / 2);
        for chunk in first.chunks_mut(8) {
            for (byte, random) in chunk.iter_mut().zip(self.0.next().to_le_bytes()) {
                *byte = random;
            }
        }
        second.copy_from_slice(first);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn keys_are_distinct_and_reproducible() {
        let keys: HashSet<_> = (0..10_000).map(|number| key(42, number)).collect();
        assert_eq!(keys.len(), 10_000);
        assert_eq!(key(42, 7), key(42, 7));
        assert_ne!(key(42, 7), key(43, 7));
    }
}
