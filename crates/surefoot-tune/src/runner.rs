//! Who runs trials, and who looks after them.

use crate::pruner::PruneReason;
use crate::space::Point;
use crate::store;
use std::path::Path;
use surefoot_diagnose::Finding;

/// Runs trials, one at a time: trains plans, or starts commands.
pub trait Runner {
    /// Runs a trial until it is over or the supervisor says to stop.
    ///
    /// A trial that was begun before goes on from what is in its directory, if it can. It then
    /// reports again what it repeats, and only that.
    fn run(
        &mut self,
        trial: &Assignment<'_>,
        supervisor: &mut dyn Supervisor,
    ) -> Result<Ended, Trouble>;
}

/// A trial to run.
#[derive(Clone, Copy, Debug)]
pub struct Assignment<'a> {
    /// Its number in the study, from 0.
    pub number: u64,
    /// The how manieth try this is, from 1.
    pub attempt: u32,
    /// How many stretches earlier attempts have reported.
    pub reported: u64,
    /// How many stretches they expected.
    pub planned: Option<u64>,
    /// What no other trial of any study is called: its directory is marked with it.
    pub owner: &'a str,
    /// What to run it with.
    pub point: &'a Point,
    /// A directory of its own, the same for every attempt.
    pub dir: &'a Path,
}

/// What a trial has come to after a stretch.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The number of the stretch, from 1. Stretches are reported in order and none is left out, but
    /// an attempt may begin after those that an earlier one has reported.
    pub index: u64,
    /// How many there will be, if that is known.
    pub planned: Option<u64>,
    /// What is to be made better, as the trial measures it.
    pub value: f64,
    /// Multiplications so far, those of earlier attempts included, if they are counted.
    pub operations: f64,
    /// What the indicators found since the last report.
    pub findings: Vec<Finding>,
}

/// Looks after a trial: takes its reports down and says whether to go on.
pub trait Supervisor {
    /// Takes a report.
    fn report(&mut self, progress: &Progress) -> Result<Order, Trouble>;

    /// Whether to stop at once, so that the trial can be gone on with later.
    fn interrupted(&self) -> bool;
}

/// What a trial is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Go on.
    GoOn,
    /// Stop: it is not worth going on with.
    Stop(PruneReason),
    /// Stop so that it can be gone on with later.
    Interrupt,
}

/// How a trial ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// By itself. The value is what counts; without one the best that was reported does.
    Complete(Option<f64>),
    /// Because it was told to.
    Stopped(PruneReason),
    /// It waits to be gone on with.
    Interrupted,
    /// It could not be run.
    Failed(String),
}

/// Why a worker cannot go on. Its trial is not to blame and will be run by another one.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The store does not answer, or has given the trial to somebody else.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// Something is wrong with this machine: a full disk, say.
    #[error("{0}")]
    Machine(String),
}

impl Trouble {
    /// The directory of a trial is there already, and has something else in it.
    pub fn taken(dir: &Path) -> Trouble {
        Trouble::Machine(format!(
            "{} is there already, and not of this study: move it away, or choose another place with --runs",
            dir.display()
        ))
    }
}
