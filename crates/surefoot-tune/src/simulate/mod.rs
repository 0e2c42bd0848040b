//! The simulator: recorded trials replayed through any set of pruners and indicators, without training.
//!
//! BTTackler calibrates its indicators like this (section 3.3): run a study once, record all that is
//! needed, and ask afterwards what any rule would have done. A [`Task`] holds [`RecordedTrial`]s,
//! [`measure`] replays them in an [`Order`] and gives a [`Tally`]: how much was saved, and how many of
//! the truly best trials were kept. [`sweep`] looks for thresholds on one part of a record and reports on
//! the rest. On a [`Ground`] of many recorded trials whole searches can be run, each with a sampler that
//! learns; [`Gain`] says what rules gain them.

mod draw;
mod gain;
mod record;
mod replay;
mod search;
mod sweep;
mod tally;
mod taskset;

pub use draw::{Order, measure};
pub use gain::Gain;
pub use record::{RecordedEpoch, RecordedTrial, Task};
pub use replay::{Alert, End, alerts, replay};
pub use search::{Ground, Searched};
pub use sweep::{Axis, Floor, Sweep, Tried, split, sweep};
pub use tally::{TOP, Tally};
pub use taskset::{TaskSetError, read_taskset};
