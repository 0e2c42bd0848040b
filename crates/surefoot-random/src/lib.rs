//! Random numbers as a pure function of a key, the same however the work is split.
//!
//! A draw is a pure function of (seed, purpose, epoch, sample, site) and an index. There is no
//! generator, hence no generator state: nothing to save with a checkpoint, nothing to hand from
//! worker to worker, no order in which draws have to happen. Whoever knows the key of a dropout
//! mask can compute that mask, today or after a resume, on one thread or on sixteen, and gets the
//! same bits.
//!
//! * [`Key`] names a draw and draws: words, uniform, normal, truncated normal, Bernoulli, bounded
//!   integers, one at a time or a slice at a time.
//! * [`Purpose`] says what the numbers are for, so that initialisation and dropout never meet.
//! * [`Permutation`] is a keyed shuffle of `0..n` without a table as long as the data, and
//!   [`choose`] the first few of one.
//!
//! # Example
//!
//! ```
//! use surefoot_random::{Key, Permutation, Purpose};
//!
//! let seed = 42;
//!
//! // The mask of one sample at one dropout layer: kept with probability 0.8 and scaled to match.
//! let key = Key::new(seed, Purpose::Dropout).epoch(3).sample(117).site(1);
//! let mut mask = [0.0; 8];
//! key.fill_bernoulli_f32(0.8, 1.25, &mut mask);
//!
//! // The same mask, one entry at a time, with nothing carried over from above.
//! for (index, &entry) in (0..).zip(&mask) {
//!     assert_eq!(entry, if key.bernoulli(index, 0.8) { 1.25 } else { 0.0 });
//! }
//!
//! // The order of the samples in epoch 3, and where sample 117 comes in it.
//! let order = Permutation::new(Key::new(seed, Purpose::Shuffle).epoch(3), 60_000);
//! let position = order.inverse(117);
//! assert_eq!(order.get(position), 117);
//! ```
//!
//! # The same bits everywhere
//!
//! The words come from Philox4x32-10 (Salmon et al., *Parallel Random Numbers: As Easy as 1, 2,
//! 3*, SC'11), integers only. Floating-point draws use addition, multiplication, division and
//! square root, each of which IEEE 754 rounds in exactly one way, and nothing from the system's
//! mathematical library. Every public draw has its value pinned by a test: a change of bits is a
//! breaking change.

mod draw;
mod key;
mod permutation;
mod philox;
mod quantile;

pub use crate::key::{Key, Purpose};
pub use crate::permutation::{Permutation, choose};
