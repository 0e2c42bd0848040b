//! Keyed mutations of a file.

use surefoot_random::Key;

/// Texts that parsers treat in a special way.
const TOKENS: [&str; 16] = [
    "nan",
    "inf",
    "1e999",
    "-1",
    "0",
    "18446744073709551616",
    "null",
    "true",
    "\"",
    "{",
    "]",
    ",",
    "\n",
    "\0",
    "\u{feff}",
    "ß",
];

/// A copy of `seed` with one to four changes. The same key gives the same changes.
pub fn mutated(seed: &[u8], key: Key) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    let mut drawn = 0;
    let mut below = |limit: usize| {
        drawn += 1;
        key.below(drawn, limit.max(1) as u64) as usize
    };
    for _ in 0..=below(4) {
        let at = below(bytes.len());
        let longest = 1 << below(6);
        let length = below(longest).min(bytes.len() - at.min(bytes.len()));
        match below(8) {
            _ if bytes.is_empty() => bytes.push(below(256) as u8),
            0 => bytes[at] = below(256) as u8,
            1 => bytes[at] ^= 1 << below(8),
            2 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][below(5)],
            3 => drop(bytes.drain(at..at + length)),
            4 => {
                let part = bytes[at..at + length].to_vec();
                let to = below(bytes.len());
                bytes.splice(to..to, part);
            }
            5 => bytes.truncate(at),
            6 => {
                let token = TOKENS[below(TOKENS.len())];
                bytes.splice(at..at + length, token.bytes());
            }
            _ => {
                // A size: 4 bytes of a large number.
                let large = (u32::MAX >> below(16)).to_le_bytes();
                for (byte, value) in bytes[at..].iter_mut().zip(large) {
                    *byte = value;
                }
            }
        }
    }
    bytes
}
