//! Statistics of a tensor in one pass over memory, the same bits on any number of threads.
//!
//! Training is watched by looking at the gradients, weights and outputs of every layer at every
//! step. This crate turns such a tensor into a [`Summary`]: moments, extremes, norms, quartiles,
//! and the numbers of its values that are zero, NaN or infinite.
//!
//! ```
//! let summary = surefoot_stats::summarize(&[1.0_f32, 2.0, 3.0, 4.0, f32::NAN]);
//! assert_eq!(summary.count, 4);
//! assert_eq!(summary.nan, 1);
//! assert_eq!(summary.mean, 2.5);
//! assert_eq!(summary.variance, 1.25);
//! assert_eq!(summary.quartiles.map(|q| q.median), Some(2.5));
//! ```
//!
//! # What is promised
//!
//! - **Values.** [`Element`] is `f32`, `f64`, [`half::f16`] or [`half::bf16`]. Everything is
//!   accumulated in `f64`.
//! - **NaN and infinity** are counted and left out of every other statistic.
//! - **No statistic is ever NaN.** What an empty or a constant slice gives is written at the fields
//!   of [`Summary`].
//! - **Stability.** Moments are taken about a value from within each block of [`BLOCK`] values and
//!   the blocks are merged pairwise, so a large mean does not eat a small variance.
//! - **Same bits everywhere.** AVX-512, AVX2 and the portable code add the same eight lanes in the
//!   same order, round every product before it is added, and merge blocks along a tree whose shape
//!   depends on the length alone. The instruction set and the number of threads cannot be seen in a
//!   result.
//! - **Exact quartiles.** They are selected, not estimated. A sample only decides where to look.
//!
//! # Cost
//!
//! [`moments()`] reads the slice once, allocates nothing, and takes tens of nanoseconds for the layer
//! of a toy network, so it can be called for every layer at every step. [`quartiles()`] reads a large
//! slice about once more; up to a few hundred values it allocates nothing either.

mod block;
mod element;
mod moments;
mod quantile;
mod simd;
mod summary;
mod units;

pub use crate::block::BLOCK;
pub use crate::element::Element;
pub use crate::moments::{Moments, merge_tree, moments};
pub use crate::quantile::{Quartiles, quartiles, quartiles_of_parts};
pub use crate::summary::{Summary, summarize};
pub use crate::units::{zero_columns, zero_rows};
