//! Looks on while a run trains: the bar, the events, and whether to stop.

use crate::interrupt::Interrupt;
use crate::output::Console;
use crate::output::progress::Bar;
use surefoot_diagnose::Evaluation;
use surefoot_record::Event;
use surefoot_train::{Flow, Progress, Watcher};

/// Costs a comparison a step when nobody watches.
pub(super) struct Onlooker<'a> {
    console: &'a Console,
    interrupt: Interrupt,
    bar: Option<Bar>,
    /// The loss of the last step.
    pub(super) loss: f64,
}

impl<'a> Onlooker<'a> {
    pub(super) fn new(console: &'a Console, interrupt: Interrupt, bar: Option<Bar>) -> Self {
        Self {
            console,
            interrupt,
            bar,
            loss: f64::NAN,
        }
    }
}

impl Watcher for Onlooker<'_> {
    fn step(&mut self, progress: &Progress) {
        self.loss = progress.loss;
        if let Some(bar) = &mut self.bar {
            bar.step(progress);
        }
    }

    fn evaluated(&mut self, evaluation: &Evaluation) {
        self.console.event(&Event::from(evaluation));
        if let Some(bar) = &mut self.bar {
            bar.evaluated(evaluation);
        }
    }

    fn flow(&self) -> Flow {
        if self.interrupt.asked() {
            Flow::Interrupt
        } else {
            Flow::GoOn
        }
    }
}

impl Drop for Onlooker<'_> {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.clear();
        }
    }
}
