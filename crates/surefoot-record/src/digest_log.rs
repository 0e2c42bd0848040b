//! The digests of all steps: `digests.bin`.
//!
//! Records of 24 bytes without anything around them: the step and its digest, little-endian. The
//! steps grow from record to record, so what a crash left behind is told from what was written.

use std::path::Path;

use crate::digest::Digest;
use crate::error::Result;
use crate::layout::read_if_there;

pub(crate) const RECORD: usize = 24;

pub(crate) fn push(buffer: &mut Vec<u8>, step: u64, digest: Digest) {
    buffer.extend(step.to_le_bytes());
    buffer.extend(digest.0.to_le_bytes());
}

/// The whole records of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<(u64, Digest)>> {
    Ok(parse(&read_if_there(path)?.unwrap_or_default()))
}

fn parse(bytes: &[u8]) -> Vec<(u64, Digest)> {
    let mut records: Vec<(u64, Digest)> = Vec::with_capacity(bytes.len() / RECORD);
    for record in bytes.as_chunks::<RECORD>().0 {
        let (Some(step), Some(digest)) = (record.first_chunk(), record.last_chunk()) else {
            break;
        };
        let step = u64::from_le_bytes(*step);
        if records.last().is_some_and(|(last, _)| *last >= step) {
            break;
        }
        records.push((step, Digest(u128::from_le_bytes(*digest))));
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_cut_anywhere_gives_its_whole_records() {
        let records: Vec<_> = (1..6)
            .map(|i| (i * 3, Digest(u128::MAX - u128::from(i))))
            .collect();
        let mut bytes = Vec::new();
        for (step, digest) in &records {
            push(&mut bytes, *step, *digest);
        }
        for cut in 0..=bytes.len() {
            assert_eq!(parse(&bytes[..cut]), records[..cut / RECORD]);
        }
    }

    #[test]
    fn zeros_after_the_last_record_are_not_records() {
        let mut bytes = Vec::new();
        push(&mut bytes, 1, Digest(7));
        push(&mut bytes, 2, Digest(8));
        bytes.extend([0; 240]);
        assert_eq!(parse(&bytes), [(1, Digest(7)), (2, Digest(8))]);
    }

    #[test]
    fn no_file_is_no_records() {
        assert!(read(Path::new("/nowhere/digests.bin")).unwrap().is_empty());
    }
}
