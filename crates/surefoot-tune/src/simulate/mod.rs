//! Replays recorded trials under other pruners and indicators, without training.
//!
//! BTTackler calibrates its indicators this way (section 3.3). A [`Task`] holds [`RecordedTrial`]s;
//! [`measure`] replays them in an [`Order`] and returns a [`Tally`] of the savings and of the best trials
//! kept. [`sweep`] chooses options on one part of a record and reports on the rest. A [`TrialTable`] runs
//! whole searches with a sampler on recorded trials, and [`Gain`] compares them.

mod draw;
mod gain;
mod record;
mod regret;
mod replay;
mod schedule;
mod search;
mod sweep;
mod tally;
mod taskset;

pub use draw::{Order, measure};
pub use gain::Gain;
pub use record::{RecordedEpoch, RecordedTrial, Task};
pub use regret::{BUDGETS, RegretScale, Regrets};
pub use replay::{Alert, End, alerts, replay};
pub use schedule::SearchedEpoch;
pub use search::{Searched, TrialTable};
pub use sweep::{Axis, Floor, Sweep, Tried, split, sweep};
pub use tally::{TOP, Tally};
pub use taskset::{TaskSetError, read_taskset};
