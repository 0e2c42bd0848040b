//! Feeds recorded observations and evaluations to a diagnosis in their original order.

use std::borrow::Borrow;

use surefoot_diagnose::{Diagnosis, Evaluation, Observation};

/// One entry of a record, in the order in which training produced it.
#[derive(Clone, Copy, Debug)]
pub enum Entry<'a> {
    /// A training step.
    Step(&'a Observation),
    /// An evaluation, after the step it belongs to.
    Evaluation(&'a Evaluation),
}

/// Extent of a replayed run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replay {
    /// Number of the last step; 0 if there is none.
    pub steps: u64,
    /// Number of epochs from the first step to the last.
    pub epochs: u64,
}

/// Visits steps up to `until` and the evaluations that belong to them.
///
/// Evaluations after the last step are skipped: a crash removed their steps.
pub(crate) fn visit<O: Borrow<Observation>, E>(
    steps: impl Iterator<Item = Result<O, E>>,
    evaluations: &[Evaluation],
    until: u64,
    mut visit: impl FnMut(Entry<'_>),
) -> Result<(), E> {
    let mut evaluations = evaluations.iter().peekable();
    let mut last = None;
    for step in steps {
        let step = step?;
        let step = step.borrow();
        if step.step > until {
            break;
        }
        while let Some(evaluation) = evaluations.next_if(|next| next.step < step.step) {
            visit(Entry::Evaluation(evaluation));
        }
        visit(Entry::Step(step));
        last = Some(step.step);
    }
    while let Some(evaluation) = evaluations.next_if(|next| Some(next.step) <= last) {
        visit(Entry::Evaluation(evaluation));
    }
    Ok(())
}

/// Feeds steps and evaluations to `diagnosis` and finishes it if the last planned step was reached and
/// the run can be judged as a whole.
pub(crate) fn replay<O: Borrow<Observation>, E>(
    steps: impl Iterator<Item = Result<O, E>>,
    evaluations: &[Evaluation],
    diagnosis: &mut Diagnosis,
    judge: bool,
) -> Result<Replay, E> {
    let mut replay = Replay::default();
    let mut first_epoch = None;
    visit(steps, evaluations, u64::MAX, |entry| match entry {
        Entry::Step(step) => {
            diagnosis.observe(step);
            let first = *first_epoch.get_or_insert(step.epoch);
            replay = Replay { steps: step.step, epochs: step.epoch.saturating_sub(first) + 1 };
        }
        Entry::Evaluation(evaluation) => {
            diagnosis.evaluate(evaluation);
        }
    })?;
    let planned = diagnosis.facts().total_steps();
    if judge && replay.steps > 0 && planned.is_some_and(|planned| replay.steps >= planned) {
        diagnosis.finish();
    }
    Ok(replay)
}
