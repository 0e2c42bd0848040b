//! Blocks of random words: Philox4x32-10, one block or many at a time.
//!
//! The block function is [`rand_philox::philox4x32_10`], a pure function of counter and key. It is
//! small and inlined, so that [`Stream::blocks`] compiles to one loop over independent blocks,
//! which the compiler turns into SIMD code for whatever instruction set its caller enables.

use rand_philox::philox4x32_10;

/// Number of blocks that [`Stream::blocks`] computes at once: each of their four words fills an
/// AVX2 register. Twice as many was no faster for long fills and slower for short ones.
pub(crate) const BLOCKS: usize = 8;

/// Number of words that [`Stream::blocks`] computes at once.
pub(crate) const WORDS: usize = 4 * BLOCKS;

/// An addressable sequence of 2⁶⁴ blocks of four words, named by 128 bits.
///
/// Half of the name is Philox's key, the other half the upper half of its counter; the number of
/// the block is the lower half. So two streams with different names never evaluate Philox at the
/// same point, and neither do two blocks of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream([u32; 4]);

impl Stream {
    /// Creates the stream named by the Philox block of a counter under a key.
    pub(crate) fn root(key: u64, counter: [u64; 2]) -> Stream {
        let [(a, b), (c, d)] = counter.map(halves);
        Stream(philox4x32_10([a, b, c, d], halves(key).into()))
    }

    /// Derives a stream from this one and a number.
    ///
    /// For a given number this is a bijection of names, so it never joins two streams.
    pub(crate) fn child(self, number: u64) -> Stream {
        Stream(philox4x32_10(self.0, halves(number).into()))
    }

    /// One block.
    #[inline]
    pub(crate) fn block(self, number: u64) -> [u32; 4] {
        let Stream([a, b, c, d]) = self;
        let (low, high) = halves(number);
        philox4x32_10([low, high, a, b], [c, d])
    }

    /// Computes the words of `BLOCKS` consecutive blocks, in order.
    #[inline(always)]
    pub(crate) fn blocks(self, first: u64, words: &mut [u32; WORDS]) {
        for (number, block) in (first..).zip(words.as_chunks_mut::<4>().0) {
            *block = self.block(number);
        }
    }
}

/// The low and the high half of a number.
#[inline]
fn halves(number: u64) -> (u32, u32) {
    (number as u32, (number >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors for `philox4x32 10` from `kat_vectors` of Random123. They are checked here and
    /// not only upstream, for it is this crate's streams that depend on them.
    #[test]
    fn agrees_with_the_published_vectors() {
        assert_eq!(
            philox4x32_10([0; 4], [0; 2]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox4x32_10([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox4x32_10(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn a_stream_reads_numbers_low_word_first() {
        let third = [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1];
        let (low, high) = (0x85a3_08d3_243f_6a88, 0x0370_7344_1319_8a2e);
        assert_eq!(Stream::root(0x299f_31d0_a409_3822, [low, high]), Stream(third));
        let name = Stream([0x1319_8a2e, 0x0370_7344, 0xa409_3822, 0x299f_31d0]);
        assert_eq!(name.block(low), third);
        let name = Stream([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]);
        assert_eq!(name.child(0x299f_31d0_a409_3822), Stream(third));
    }

    #[test]
    fn many_blocks_are_the_single_blocks_in_order() {
        let stream = Stream([1, 2, 3, 4]);
        // The second of these carries from the low into the high half of the block's number.
        for first in [0, u64::from(u32::MAX) - 7] {
            let mut words = [0; WORDS];
            stream.blocks(first, &mut words);
            for (number, block) in (first..).zip(words.chunks(4)) {
                assert_eq!(block, stream.block(number));
            }
        }
    }
}
