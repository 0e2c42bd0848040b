//! The observation schedule, and the statistics of an observation.

use crate::compute::Compute;
use crate::kernel::{parallel, vectorized};
use crate::network::{Network, Subject, Units};
use crate::parameters::{Parameters, Role};
use crate::shard::{Look, OutputNote};
use std::ops::Range;
use surefoot_diagnose::LayerObservation;
use surefoot_plan::{ObserveEvery, Watch};
use surefoot_stats::{Moments, Summary};

/// Default share of the training time for moments and quartiles.
const BUDGET_MOMENTS: f64 = 0.025;
const BUDGET_QUARTILES: f64 = 0.005;
/// Share for moments in short steps, where they are relatively expensive.
const BUDGET_MOMENTS_SMALL: f64 = 0.1;
/// Multiplications below which a step is short.
const SMALL: f64 = 1e6;
/// Multiplications below which short trainings, and the first steps, are observed beyond the budget.
const MEDIUM: f64 = 1e7;

// Cost model of the automatic schedule, in nanoseconds (see `docs/speed.md`). Constants instead of
// timings: the clock must not influence what is recorded.
const NS_PER_MULTIPLICATION: f64 = 0.035;
const NS_PER_STEP: f64 = 8_000.0;
const NS_PER_LAYER: f64 = 2_500.0;
const NS_PER_VALUE_MOMENTS: f64 = 0.25;
const NS_PER_VALUE_QUARTILES: f64 = 2.5;
const NS_PER_SUBJECT_MOMENTS: f64 = 300.0;
const NS_PER_SUBJECT_QUARTILES: f64 = 3_000.0;
const NS_BETWEEN_CHECKPOINTS: f64 = 1e9;

/// Number of first steps that are all observed by default, unless the network is large. Setup faults
/// show in them.
const OPENING: u64 = 16;

/// Steps at which layers are observed and checkpoints are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObserveSchedule {
    /// Interval of layer observations.
    pub every: Option<u64>,
    /// The first steps, up to this one, are all observed.
    pub opening: u64,
    /// Interval of quartiles.
    pub quartiles: Option<u64>,
    /// Minimum steps between default checkpoints, which are written at the end of an epoch: about a
    /// second of computation.
    pub checkpoints: u64,
}

impl ObserveSchedule {
    /// The schedule of a plan's `[watch]` in a training of `steps` steps. Where it says `auto`, the
    /// densest within the budget. Of a network that is not large, each block of the diagnosis is looked
    /// into once: in a short training a few steps decide, and the costs are small.
    pub fn new<B: Compute>(watch: &Watch, network: &Network<B>, batch: usize, steps: u64) -> Self {
        let layers = network.subjects.len() as f64;
        let batch = batch as f64;
        let training = NS_PER_STEP
            + NS_PER_LAYER * layers
            + 3.0 * NS_PER_MULTIPLICATION * network.work as f64 * batch;
        let values = if watch.outputs { network.outputs as f64 * batch } else { 0.0 }
            + network.parameters() as f64
                * f64::from(u8::from(watch.gradients) + u8::from(watch.weights));
        let kinds = u8::from(watch.gradients) + u8::from(watch.weights) + u8::from(watch.outputs);
        let subjects = layers * f64::from(kinds);
        let moments = NS_PER_VALUE_MOMENTS * values + NS_PER_SUBJECT_MOMENTS * subjects;
        let quartiles = NS_PER_VALUE_QUARTILES * values + NS_PER_SUBJECT_QUARTILES * subjects;
        let work = network.work as f64 * batch;
        let every = match watch.every {
            ObserveEvery::Never => None,
            ObserveEvery::Every(n) => Some(n.get()),
            ObserveEvery::Auto => {
                let share = if work < SMALL { BUDGET_MOMENTS_SMALL } else { BUDGET_MOMENTS };
                let affordable = steps_for(moments, share * training);
                Some(if work < MEDIUM {
                    affordable.min(surefoot_diagnose::block_steps(steps))
                } else {
                    affordable
                })
            }
        };
        let quartiles = every.and_then(|every| match watch.quartiles {
            ObserveEvery::Never => None,
            ObserveEvery::Every(n) => Some(n.get().next_multiple_of(every)),
            ObserveEvery::Auto => {
                Some(steps_for(quartiles, BUDGET_QUARTILES * training).next_multiple_of(every))
            }
        });
        Self {
            every,
            opening: match watch.every {
                ObserveEvery::Auto if work < MEDIUM => OPENING,
                _ => 0,
            },
            quartiles,
            checkpoints: ((NS_BETWEEN_CHECKPOINTS / training).ceil() as u64).max(1),
        }
    }

    /// Returns true if the epoch from step `before` to `after` ends with a checkpoint.
    pub(crate) fn saves(&self, before: u64, after: u64) -> bool {
        before / self.checkpoints < after / self.checkpoints
    }

    /// Returns true if the 1-based `step` is observed.
    pub(crate) fn observes(&self, step: u64) -> bool {
        self.every.is_some_and(|n| step <= self.opening || (step - 1).is_multiple_of(n))
    }

    pub(crate) fn takes_quartiles(&self, step: u64) -> bool {
        self.quartiles.is_some_and(|n| (step - 1).is_multiple_of(n))
    }

    pub(crate) fn look(&self, step: u64, watch: &Watch) -> Look {
        let outputs = watch.outputs && self.observes(step);
        Look { outputs, quartiles: outputs && self.takes_quartiles(step) }
    }
}

/// Minimum interval at which `cost` stays within `budget` per step.
fn steps_for(cost: f64, budget: f64) -> u64 {
    ((cost / budget).ceil() as u64).max(1)
}

/// Observes the layers before and after the parameter update.
pub(crate) struct Observer<'a> {
    pub(crate) watch: &'a Watch,
    /// Arrays per layer, from [`main_arrays`].
    pub(crate) arrays: &'a [Vec<Range<usize>>],
    pub(crate) quartiles: bool,
}

impl Observer<'_> {
    /// Fills in of every layer its output and the gradient of the data's loss, in which a dead unit is
    /// exactly zero (the penalty on its weights is not), and gives what was fed in.
    pub(crate) fn before<B: Compute>(
        &self,
        network: &Network<B>,
        notes: &[OutputNote],
        gradient: &[f32],
        layers: &mut Vec<LayerObservation>,
    ) -> Option<Summary> {
        // Filled where they lie: a layer's statistics are half a kilobyte to move.
        layers.resize(network.subjects.len(), LayerObservation::default());
        parallel::chunks_mut(layers, 1, |i, seen| {
            let (subject, arrays, seen) = (&network.subjects[i], &self.arrays[i], &mut seen[0]);
            if let Some(note) = notes.get(i + 1) {
                seen.output = Some(summary_of_note(note));
                seen.saturated = note.saturated.map(|(count, of)| count as f64 / of.max(1) as f64);
            }
            if let Some(first) = arrays.first().filter(|_| self.watch.gradients) {
                let gradients = seen.gradient.insert(self.summary(gradient, arrays));
                seen.dead_units = subject
                    .units
                    .map(|units| dead_units(units, &gradient[first.clone()], gradients));
            }
        });
        notes.first().map(summary_of_note)
    }

    /// Adds weights and the size of their update.
    pub(crate) fn after(&self, layers: &mut [LayerObservation], before: &[f32], after: &[f32]) {
        parallel::chunks_mut(layers, 1, |i, seen| {
            let (arrays, seen) = (&self.arrays[i], &mut seen[0]);
            if arrays.is_empty() {
                return;
            }
            let weight = self.summary(after, arrays);
            let moved: f64 = arrays
                .iter()
                .map(|range| squared_distance(&before[range.clone()], &after[range.clone()]))
                .sum();
            seen.update_ratio = (weight.l2 > 0.0).then(|| moved.sqrt() / weight.l2);
            seen.weight = Some(weight);
        });
    }

    fn summary(&self, values: &[f32], arrays: &[Range<usize>]) -> Summary {
        let part = |range: &Range<usize>| &values[range.clone()];
        let moments = match arrays {
            [only] => surefoot_stats::moments(part(only)),
            _ => {
                let each: Vec<Moments> =
                    arrays.iter().map(|range| surefoot_stats::moments(part(range))).collect();
                surefoot_stats::merge_tree(&each)
            }
        };
        let mut summary = moments.finish();
        if self.quartiles {
            let parts: Vec<&[f32]> = arrays.iter().map(part).collect();
            summary.quartiles = surefoot_stats::quartiles_of_parts(&parts);
        }
        summary
    }
}

fn dead_units(units: Units, kernel: &[f32], gradient: &Summary) -> f64 {
    match units {
        _ if gradient.zeros == 0 => 0.0,
        Units::Columns(n) => surefoot_stats::zero_columns(kernel, n),
        Units::Rows(n) => surefoot_stats::zero_rows(kernel, n),
    }
}

/// Ranges of the observed arrays of each layer: its kernels, or its biases if it has none.
pub(crate) fn main_arrays<B: Compute>(
    network: &Network<B>,
    parameters: &Parameters,
) -> Vec<Vec<Range<usize>>> {
    let of_role = |subject: &Subject, role| -> Vec<Range<usize>> {
        subject
            .arrays
            .clone()
            .filter(|&id| parameters.declarations()[id].role == role)
            .map(|id| parameters.range(id))
            .collect()
    };
    network
        .subjects
        .iter()
        .map(|subject| {
            let kernels = of_role(subject, Role::Weight);
            if kernels.is_empty() { of_role(subject, Role::Bias) } else { kernels }
        })
        .collect()
}

fn summary_of_note(note: &OutputNote) -> Summary {
    let mut summary = note.moments.finish();
    if !note.sample.is_empty() {
        summary.quartiles = surefoot_stats::quartiles(&note.sample);
    }
    summary
}

fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
    /// Independent sums, so that the loop runs in vectors in a fixed order.
    const LANES: usize = 16;
    vectorized(
        #[inline(always)]
        || {
            let mut sums = [0.0_f64; LANES];
            let (mut a, mut b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
            for (a, b) in a.by_ref().zip(b.by_ref()) {
                for lane in 0..LANES {
                    let d = f64::from(b[lane]) - f64::from(a[lane]);
                    sums[lane] += d * d;
                }
            }
            for ((a, b), sum) in a.remainder().iter().zip(b.remainder()).zip(&mut sums) {
                let d = f64::from(*b) - f64::from(*a);
                *sum += d * d;
            }
            sums.iter().sum()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squared_distance_matches_its_definition() {
        let a: Vec<f32> = (0..37).map(|i| i as f32 * 0.5).collect();
        let b: Vec<f32> = a.iter().map(|v| v + 2.0).collect();
        assert_eq!(squared_distance(&a, &b), 4.0 * 37.0);
    }

    #[test]
    fn all_opening_steps_are_observed() {
        let schedule =
            ObserveSchedule { every: Some(7), opening: 3, quartiles: None, checkpoints: 100 };
        let observed: Vec<u64> = (1..20).filter(|&s| schedule.observes(s)).collect();
        assert_eq!(observed, [1, 2, 3, 8, 15]);
    }

    #[test]
    fn the_first_step_is_always_observed() {
        let schedule =
            ObserveSchedule { every: Some(7), opening: 0, quartiles: None, checkpoints: 100 };
        let observed: Vec<u64> = (1..20).filter(|&s| schedule.observes(s)).collect();
        assert_eq!(observed, [1, 8, 15]);
        assert!(!schedule.takes_quartiles(1));
    }

    #[test]
    fn short_epochs_share_a_checkpoint() {
        let schedule =
            ObserveSchedule { every: None, opening: 0, quartiles: None, checkpoints: 100 };
        let saved: Vec<u64> = (1..=10)
            .map(|epoch| epoch * 30)
            .filter(|&step| schedule.saves(step - 30, step))
            .collect();
        assert_eq!(saved, [120, 210, 300]);
    }
}
