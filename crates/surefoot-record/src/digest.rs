//! Hashes of a run's state.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use twox_hash::XxHash3_128;

use crate::array::le_bytes;

/// A 128-bit XXH3 hash, shown as 32 hexadecimal digits.
///
/// It detects accidental differences. It is not a cryptographic hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub u128);

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(XxHash3_128::oneshot(bytes))
    }

    /// Hashes the little-endian bytes of numbers.
    pub fn of_f32(values: &[f32]) -> Digest {
        Digest::of(&le_bytes(values, f32::to_le_bytes))
    }

    /// Hashes the little-endian bytes of counters.
    pub fn of_u64(values: &[u64]) -> Digest {
        Digest::of(&le_bytes(values, u64::to_le_bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl From<u128> for Digest {
    fn from(value: u128) -> Digest {
        Digest(value)
    }
}

/// A text is not 32 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a digest: 32 hexadecimal digits are")]
pub struct NotADigest(String);

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Digest, NotADigest> {
        let digits = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match u128::from_str_radix(text, 16) {
            Ok(value) if digits => Ok(Digest(value)),
            _ => Err(NotADigest(text.to_owned())),
        }
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// Hashes named parts, one after the other, into a [`Digest`] (XXH3, 128 bits).
///
/// Names and lengths are hashed too, so moving a byte from one part to the next, renaming a part or
/// changing the order changes the digest. The order is the caller's.
///
/// ```
/// use surefoot_record::StateDigest;
///
/// let mut state = StateDigest::new();
/// state.update("dense_1.weight", &[1, 2, 3]);
/// state.update_f32("dense_1.bias", &[0.5, -0.5]);
/// assert_eq!(state.finish().to_string().len(), 32);
/// ```
#[derive(Clone)]
pub struct StateDigest {
    hasher: XxHash3_128,
}

impl Default for StateDigest {
    fn default() -> StateDigest {
        StateDigest { hasher: XxHash3_128::new() }
    }
}

impl StateDigest {
    /// Creates a digest without parts.
    pub fn new() -> StateDigest {
        StateDigest::default()
    }

    /// Adds a named part.
    pub fn update(&mut self, name: &str, bytes: &[u8]) {
        self.hasher.write(&(name.len() as u64).to_le_bytes());
        self.hasher.write(name.as_bytes());
        self.hasher.write(&(bytes.len() as u64).to_le_bytes());
        self.hasher.write(bytes);
    }

    /// Adds a named part of numbers as their little-endian bytes.
    pub fn update_f32(&mut self, name: &str, values: &[f32]) {
        self.update(name, &le_bytes(values, f32::to_le_bytes));
    }

    /// Adds a named counter.
    pub(crate) fn update_u64(&mut self, name: &str, value: u64) {
        self.update(name, &value.to_le_bytes());
    }

    /// Returns the digest of all parts so far.
    pub fn finish(&self) -> Digest {
        Digest(self.hasher.finish_128())
    }
}

impl fmt::Debug for StateDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StateDigest({})", self.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(parts: &[(&str, &[u8])]) -> Digest {
        let mut state = StateDigest::new();
        for (name, bytes) in parts {
            state.update(name, bytes);
        }
        state.finish()
    }

    #[test]
    fn hexadecimal_digits_round_trip() {
        for digest in [Digest(0), Digest(u128::MAX), Digest(0x1234), of(&[])] {
            assert_eq!(digest.to_string().parse(), Ok(digest));
            let json = serde_json::to_string(&digest).unwrap();
            assert_eq!(json, format!("\"{digest}\""));
            assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        }
        for text in ["", "12", "+1234567890123456789012345678901", &"g".repeat(32)] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }

    #[test]
    fn name_order_and_border_of_the_parts_count() {
        let digests = [
            of(&[("a", b"12"), ("b", b"3")]),
            of(&[("a", b"1"), ("b", b"23")]),
            of(&[("b", b"3"), ("a", b"12")]),
            of(&[("a", b"12"), ("c", b"3")]),
            of(&[("a", b"12b3")]),
            of(&[("a", b"12"), ("b", b"3"), ("", b"")]),
        ];
        for (i, a) in digests.iter().enumerate() {
            for b in &digests[i + 1..] {
                assert_ne!(a, b);
            }
        }
    }

    #[test]
    fn numbers_hash_as_their_little_endian_bytes() {
        let values: Vec<f32> = (0..1000).map(|i| i as f32 * 0.37 - 5.0).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut by_number = StateDigest::new();
        by_number.update_f32("x", &values);
        assert_eq!(by_number.finish(), of(&[("x", &bytes)]));
    }

    #[test]
    fn in_one_call_or_piece_by_piece_it_is_the_same_hash() {
        for len in [0, 1, 7, 60, 61, 255, 256, 1000, 100_000] {
            let values: Vec<f32> = (0..len).map(|i| i as f32 * 0.37 - 5.0).collect();
            let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
            let mut pieces = XxHash3_128::new();
            bytes.chunks(100).for_each(|piece| pieces.write(piece));
            assert_eq!(Digest::of_f32(&values), Digest(pieces.finish_128()));
            assert_eq!(Digest::of(&bytes), Digest(pieces.finish_128()));
        }
        let counters = [1, u64::MAX, 7];
        let bytes: Vec<u8> = counters.iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(Digest::of_u64(&counters), Digest::of(&bytes));
    }

    #[test]
    fn the_digest_never_changes_between_versions() {
        let known = of(&[("weight", &[1, 2, 3]), ("bias", &[])]);
        assert_eq!(known.to_string(), "daa17f87c906371a522a63e0004d7584");
    }
}
