//! Looks on while a run trains: the bar, and whether to stop.

use super::examiner::Alarm;
use crate::interrupt::Interrupt;
use crate::output::progress::Bar;
use surefoot_diagnose::Evaluation;
use surefoot_train::{Flow, Progress, Watcher};

/// Costs a comparison a step when nobody watches.
pub(super) struct Onlooker {
    interrupt: Interrupt,
    bar: Option<Bar>,
    /// What to give up for.
    alarm: Option<Alarm>,
    /// The loss of the last step.
    pub(super) loss: f64,
}

impl Onlooker {
    pub(super) fn new(interrupt: Interrupt, bar: Option<Bar>, alarm: Option<Alarm>) -> Self {
        Self { interrupt, bar, alarm, loss: f64::NAN }
    }
}

impl Watcher for Onlooker {
    fn step(&mut self, progress: &Progress) {
        self.loss = progress.loss;
        if let Some(bar) = &mut self.bar {
            bar.step(progress);
        }
    }

    fn evaluated(&mut self, evaluation: &Evaluation) {
        if let Some(bar) = &mut self.bar {
            bar.evaluated(evaluation);
        }
    }

    fn flow(&self) -> Flow {
        // A problem goes first, so that no checkpoint is beyond it.
        if self.alarm.as_ref().is_some_and(Alarm::rings) {
            Flow::GiveUp
        } else if self.interrupt.asked() {
            Flow::Interrupt
        } else {
            Flow::GoOn
        }
    }
}

impl Drop for Onlooker {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.clear();
        }
    }
}
