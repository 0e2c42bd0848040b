//! What trials that were stopped would have come to, for samplers.
//!
//! What a trial had reached when it was stopped, after a tenth of its time perhaps, says little of its
//! point: it would have gone on to fall as the others did. A model that takes it as it is sees an
//! abyss around every trial that ran to its end, and does not leave it.

use std::collections::BTreeMap;

/// A trial that ran to its end.
pub(super) struct Finished {
    /// The lowest cost up to each of its stretches, infinite before the first that is a number.
    pub(super) lowest: Vec<f64>,
    /// What it came to.
    pub(super) cost: f64,
}

/// Trials that ran to their end, as a measure for those that did not.
pub(super) struct Foresight {
    finished: Vec<Finished>,
    /// What those came to in the middle.
    usual: Option<f64>,
    /// How much they fell in the middle after so many stretches.
    falls: BTreeMap<usize, f64>,
}

impl Foresight {
    pub(super) fn new(finished: Vec<Finished>) -> Foresight {
        Foresight {
            usual: median(finished.iter().map(|trial| trial.cost)),
            finished,
            falls: BTreeMap::new(),
        }
    }

    /// The cost to expect at the end of a trial that had come down to `lowest` when it was stopped
    /// after so many stretches: it would have fallen as the others did from there, but not to among
    /// the better half of them. Otherwise it would not have been stopped.
    pub(super) fn cost(&mut self, lowest: f64, stretches: usize) -> f64 {
        let Some(usual) = self.usual else {
            return lowest;
        };
        let finished = &self.finished;
        let fall = *self.falls.entry(stretches).or_insert_with(|| {
            let after = |trial: &Finished| trial.lowest.get(stretches.checked_sub(1)?).copied();
            let falls = finished
                .iter()
                .filter_map(|trial| Some(after(trial)? - trial.cost));
            median(falls.filter(|fall| fall.is_finite())).unwrap_or(0.0)
        });
        (lowest - fall).max(usual)
    }
}

/// The upper of the two in the middle, if there are two.
fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(lowest: &[f64]) -> Finished {
        Finished {
            lowest: lowest.to_vec(),
            cost: *lowest.last().expect("a cost"),
        }
    }

    #[test]
    fn a_stopped_trial_falls_as_the_others_did() {
        let mut foresight = Foresight::new(vec![
            finished(&[1.0, 0.8, 0.2]),
            finished(&[1.0, 0.9, 0.4]),
            finished(&[1.0, 0.7, 0.3]),
        ]);
        assert_eq!(foresight.cost(1.5, 1), 1.5 - 0.7);
        assert_eq!(foresight.cost(1.5, 2), 1.5 - 0.5);
    }

    #[test]
    fn a_stopped_trial_is_never_among_the_better_half() {
        let mut foresight = Foresight::new(vec![
            finished(&[1.0, 0.2]),
            finished(&[1.0, 0.4]),
            finished(&[1.0, 0.3]),
        ]);
        assert_eq!(foresight.cost(0.9, 1), 0.3);
    }

    #[test]
    fn where_nothing_has_finished_the_lowest_stands() {
        assert_eq!(Foresight::new(Vec::new()).cost(0.9, 1), 0.9);
    }
}
