//! Digests of all steps: `digests.bin`.
//!
//! The file consists of fixed-size records: step, digest and part digests, little-endian. Steps
//! increase, so leftovers of a crash are detected.

use std::path::Path;

use crate::digest::Digest;
use crate::error::Result;
use crate::layout::read_if_there;
use crate::step_digest::StepDigest;

/// The size of a record without parts.
const BARE: usize = 24;
/// Size of a part.
const PART: usize = 8;

/// Size of a record with `parts` parts.
pub(crate) fn record_size(parts: usize) -> usize {
    BARE + parts * PART
}

pub(crate) fn push(buffer: &mut Vec<u8>, step: &StepDigest) {
    buffer.extend(step.step.to_le_bytes());
    buffer.extend(step.digest.0.to_le_bytes());
    for part in &step.parts {
        buffer.extend(part.to_le_bytes());
    }
}

/// Reads the complete records of a file.
pub(crate) fn read(path: &Path, parts: usize) -> Result<DigestLog> {
    let bytes = read_if_there(path)?.unwrap_or_default();
    Ok(DigestLog::new(bytes, parts))
}

/// The digests of the states after the steps of a run, in order; the first is that of the state
/// before the first step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DigestLog {
    bytes: Vec<u8>,
    parts: usize,
    len: usize,
}

impl DigestLog {
    fn new(bytes: Vec<u8>, parts: usize) -> DigestLog {
        let mut log = DigestLog { len: bytes.len() / record_size(parts), bytes, parts };
        let whole = (1..log.len).find(|&i| log.step(i) <= log.step(i - 1));
        log.len = whole.unwrap_or(log.len);
        log
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if there are no records.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the file after the last complete record.
    pub fn excess_bytes(&self) -> usize {
        self.bytes.len() - self.len * record_size(self.parts)
    }

    /// The first step that has no record although a later one has.
    pub fn first_gap(&self) -> Option<u64> {
        let index = (0..self.len).find(|&index| self.step(index) != index as u64)?;
        Some(index as u64)
    }

    /// The step and the digest of every record, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u64, Digest)> + '_ {
        (0..self.len).map(|index| (self.step(index), self.digest(index)))
    }

    /// The step of the last record.
    pub fn last_step(&self) -> Option<u64> {
        self.len.checked_sub(1).map(|last| self.step(last))
    }

    /// The record of a step.
    pub fn at(&self, step: u64) -> Option<(Digest, Vec<u64>)> {
        let index = self.find(step)?;
        Some((self.digest(index), self.parts_of(index).collect()))
    }

    /// The digest of a step.
    pub fn digest_at(&self, step: u64) -> Option<Digest> {
        self.find(step).map(|index| self.digest(index))
    }

    /// Digests of the part at `place` in the header, with their steps.
    pub fn part(&self, place: usize) -> impl Iterator<Item = (u64, u64)> + '_ {
        (0..self.len).filter_map(move |index| {
            let part = self.parts_of(index).nth(place)?;
            Some((self.step(index), part))
        })
    }

    /// Index of the record of a step; nearly always at a fixed distance from the first.
    fn find(&self, step: u64) -> Option<usize> {
        let first = self.len.checked_sub(1).map(|_| self.step(0))?;
        let guess = usize::try_from(step.checked_sub(first)?).ok()?;
        if guess < self.len && self.step(guess) == step {
            return Some(guess);
        }
        (0..self.len).find(|&index| self.step(index) == step)
    }

    fn record(&self, index: usize) -> &[u8] {
        let size = record_size(self.parts);
        &self.bytes[index * size..][..size]
    }

    fn step(&self, index: usize) -> u64 {
        let bytes = self.record(index).first_chunk().copied();
        u64::from_le_bytes(bytes.unwrap_or_default())
    }

    fn digest(&self, index: usize) -> Digest {
        let bytes = self.record(index)[PART..].first_chunk().copied();
        Digest(u128::from_le_bytes(bytes.unwrap_or_default()))
    }

    fn parts_of(&self, index: usize) -> impl Iterator<Item = u64> + '_ {
        let parts = self.record(index)[BARE..].as_chunks::<PART>().0;
        parts.iter().map(|part| u64::from_le_bytes(*part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(step: u64, parts: usize) -> StepDigest {
        let digests: Vec<Digest> = (0..parts as u128).map(|i| Digest(i << 70 | i)).collect();
        let mut record = StepDigest::default();
        record.seal(step, &digests);
        record
    }

    #[test]
    fn a_log_cut_anywhere_gives_its_whole_records() {
        for parts in [0, 3] {
            let records: Vec<_> = (1..6).map(|i| record(i * 3, parts)).collect();
            let mut bytes = Vec::new();
            records.iter().for_each(|record| push(&mut bytes, record));
            for cut in 0..=bytes.len() {
                let log = DigestLog::new(bytes[..cut].to_vec(), parts);
                assert_eq!(log.len(), cut / record_size(parts));
                for (read, record) in log.iter().zip(&records) {
                    assert_eq!(read, (record.step, record.digest));
                    let whole = (record.digest, record.parts.clone());
                    assert_eq!(log.at(record.step), Some(whole));
                }
                for (place, digest) in (0..parts).zip(0..) {
                    let column: Vec<u64> = log.part(place).map(|(_, part)| part).collect();
                    assert_eq!(column, vec![digest; log.len()]);
                }
            }
        }
    }

    #[test]
    fn zeros_after_the_last_record_are_not_records() {
        let mut bytes = Vec::new();
        push(&mut bytes, &record(0, 1));
        push(&mut bytes, &record(1, 1));
        bytes.extend([0; 240]);
        let log = DigestLog::new(bytes, 1);
        assert_eq!(log.last_step(), Some(1));
        assert_eq!(log.len(), 2);
    }

    #[test]
    fn steps_that_are_not_there_are_not_found() {
        let mut bytes = Vec::new();
        for step in [2, 3, 9] {
            push(&mut bytes, &record(step, 0));
        }
        let log = DigestLog::new(bytes, 0);
        for step in [0, 1, 4, 8, 10, u64::MAX] {
            assert_eq!(log.digest_at(step), None, "{step}");
        }
        for step in [2, 3, 9] {
            assert_eq!(log.digest_at(step), Some(record(step, 0).digest));
        }
    }

    #[test]
    fn no_file_is_no_records() {
        let log = read(Path::new("/nowhere/digests.bin"), 2).unwrap();
        assert!(log.is_empty());
        assert_eq!(log.last_step(), None);
        assert_eq!(log.digest_at(0), None);
    }
}
