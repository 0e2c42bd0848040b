//! Studies that optimize a Rust closure.

use crate::direction::Direction;
use crate::objective::{Objective, WorkerError};
use crate::pruner::{Pruner, PrunerSet};
use crate::sampler::{Sampler, Tpe};
use crate::scheduler::{ScheduleHistory, SchedulerConfig};
use crate::space::Space;
use crate::storage::{
    ClaimLimits, FrozenTrial, HeartbeatThread, NewStudy, Storage, StorageError, StoredStudy,
    TrialState, View, host,
};
use crate::trial::Trial;
use crate::worker::Worker;
use std::error::Error;
use std::path::PathBuf;

/// Starts to define a study: minimize, with TPE, without pruners, in memory.
pub fn create_study(name: &str) -> StudyBuilder {
    StudyBuilder {
        name: name.to_owned(),
        url: None,
        direction: Direction::Minimize,
        seed: 0,
        space: Space::default(),
        sampler: None,
        scheduler: None,
        pruners: Vec::new(),
        dir: PathBuf::new(),
    }
}

/// Definition of a study, from [`create_study`].
pub struct StudyBuilder {
    name: String,
    url: Option<String>,
    direction: Direction,
    seed: u64,
    space: Space,
    sampler: Option<Box<dyn Sampler>>,
    scheduler: Option<SchedulerConfig>,
    pruners: Vec<Box<dyn Pruner>>,
    dir: PathBuf,
}

impl StudyBuilder {
    /// Stores the study in a SQLite file or on a PostgreSQL server, and continues it if it exists.
    #[must_use]
    pub fn storage(mut self, url: &str) -> StudyBuilder {
        self.url = Some(url.to_owned());
        self
    }

    /// Sets the direction of the objective value.
    #[must_use]
    pub fn direction(mut self, direction: Direction) -> StudyBuilder {
        self.direction = direction;
        self
    }

    /// Sets the seed of the sampler.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> StudyBuilder {
        self.seed = seed;
        self
    }

    /// Declares parameters that are sampled together, before the trial starts.
    #[must_use]
    pub fn space(mut self, space: Space) -> StudyBuilder {
        self.space = space;
        self
    }

    /// Sets the sampler.
    #[must_use]
    pub fn sampler(mut self, sampler: Box<dyn Sampler>) -> StudyBuilder {
        self.sampler = Some(sampler);
        self
    }

    /// Sets the scheduler, which pauses trials and continues them. It suggests the points of a declared space itself,
    /// unless there is a sampler.
    #[must_use]
    pub fn scheduler(mut self, scheduler: SchedulerConfig) -> StudyBuilder {
        self.scheduler = Some(scheduler);
        self
    }

    /// Sets the parent of the [trial directories](Trial::dir).
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> StudyBuilder {
        self.dir = dir.into();
        self
    }

    /// Adds a pruner.
    #[must_use]
    pub fn pruner(mut self, pruner: Box<dyn Pruner>) -> StudyBuilder {
        self.pruners.push(pruner);
        self
    }

    /// Opens the study in its storage.
    pub fn open(self) -> Result<OpenStudy, StorageError> {
        let mut storage = match &self.url {
            Some(url) => Storage::open(url)?,
            None => Storage::in_memory()?,
        };
        let study = storage.join(&NewStudy {
            name: self.name,
            fingerprint: String::new(),
            document: String::new(),
            space: self.space,
            direction: self.direction,
            seed: self.seed,
        })?;
        let heartbeat = self.url.as_deref().map(HeartbeatThread::open).transpose()?;
        let mut view = View::new(&study);
        storage.refresh_reports(&mut view)?;
        let worker = Worker {
            name: format!("{}-{}", host(), std::process::id()),
            sampler_is_named: self.sampler.is_some(),
            sampler: self.sampler.unwrap_or_else(|| Box::new(Tpe::default())),
            scheduler: self.scheduler,
            pruners: PrunerSet::default(),
            custom_pruners: self.pruners,
            limits: ClaimLimits::default(),
            max_operations: None,
            runs: self.dir,
            stop_requested: &|| false,
            deadline: None,
            heartbeat,
        };
        Ok(OpenStudy { storage, study, view, worker })
    }
}

impl std::fmt::Debug for StudyBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StudyBuilder").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A study in its storage.
#[derive(Debug)]
pub struct OpenStudy {
    storage: Storage,
    study: StoredStudy,
    view: View,
    worker: Worker<'static>,
}

impl OpenStudy {
    /// Runs `trials` more trials. A trial whose closure returns an error fails; the study continues.
    ///
    /// With a scheduler, runs as many epochs as `trials` full trainings have, on any number of trials.
    pub fn optimize<F>(&mut self, trials: u64, objective: F) -> Result<(), WorkerError>
    where
        F: FnMut(&mut Trial<'_>) -> Result<f64, Box<dyn Error>>,
    {
        self.storage.refresh(&mut self.view)?;
        let existing = match self.worker.scheduler {
            None => self.view.trials().len() as u64,
            Some(_) => {
                let mut history = ScheduleHistory::default();
                self.view.update_schedule(&mut history);
                history.trainings().ceil() as u64
            }
        };
        self.worker.limits.max_trials = Some(existing + trials);
        let mut objective = Closure(objective);
        let result = self.worker.run(&mut self.storage, &self.study, &mut objective);
        self.storage.refresh_reports(&mut self.view)?;
        result.map(|_| ())
    }

    /// All trials by number.
    pub fn trials(&self) -> &[FrozenTrial] {
        self.view.trials()
    }

    /// The trial with the best finite value.
    pub fn best_trial(&self) -> Option<&FrozenTrial> {
        self.view.best()
    }
}

struct Closure<F>(F);

impl<F> Objective for Closure<F>
where
    F: FnMut(&mut Trial<'_>) -> Result<f64, Box<dyn Error>>,
{
    fn run(&mut self, trial: &mut Trial<'_>) -> Result<TrialState, WorkerError> {
        match (self.0)(trial) {
            Ok(value) => Ok(match trial.take_requested() {
                Some(state) => state,
                None => trial.complete(Some(value)),
            }),
            Err(error) => match error.downcast::<WorkerError>() {
                Ok(error) => Err(*error),
                Err(error) => Ok(TrialState::Failed { message: error.to_string() }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learning_curve::LearningCurve;
    use crate::pruner::PruneReason;
    use crate::scheduler::{Decision, Search};
    use crate::space::{Domain, Parameter, Value};

    struct AboveOne;

    impl Pruner for AboveOne {
        fn name(&self) -> &'static str {
            "above_one"
        }

        fn prune(&self, trial: &LearningCurve, _: &[LearningCurve]) -> Option<PruneReason> {
            let is_above = trial.last().is_some_and(|cost| cost > 1.0);
            is_above.then(|| PruneReason::new(self.name(), "The value is above 1."))
        }
    }

    fn quadratic(trial: &mut Trial<'_>) -> Result<f64, Box<dyn Error>> {
        let x = trial.suggest_float("x", -5.0, 5.0)?;
        let n = trial.suggest_int("n", 1, 4)?;
        let kind = trial.suggest_categorical("kind", &["a", "b"])?;
        if trial.number() == 3 {
            return Err("out of memory".into());
        }
        let offset = if kind == "a" { 0.0 } else { 0.5 };
        trial.set_steps(3);
        let mut value = f64::NAN;
        for step in 1..=3 {
            value = (x - 1.0).powi(2) / step as f64 + n as f64 * 0.01 + offset;
            trial.report(step, value)?;
            if trial.should_stop() {
                break;
            }
        }
        Ok(value)
    }

    #[test]
    fn a_closure_is_optimized_and_pruned() -> Result<(), Box<dyn Error>> {
        let mut study = create_study("quadratic").seed(1).pruner(Box::new(AboveOne)).open()?;
        study.optimize(40, quadratic)?;
        let count = |name: &str| study.trials().iter().filter(|t| t.state.name() == name).count();
        assert_eq!(study.trials().len(), 40);
        assert_eq!(count("failed"), 1);
        assert!(count("pruned") > 5 && count("complete") > 5);
        let best = study.best_trial().and_then(FrozenTrial::value);
        assert!(best.is_some_and(|value| value < 0.5), "{best:?}");
        let failed = &study.trials()[3].state;
        assert_eq!(*failed, TrialState::Failed { message: "out of memory".to_owned() });
        Ok(())
    }

    #[test]
    fn parameters_do_not_share_their_draws() -> Result<(), Box<dyn Error>> {
        let mut study = create_study("two").open()?;
        study.optimize(1, |trial| {
            let x = trial.suggest_float("x", 0.0, 1.0)?;
            let y = trial.suggest_float("y", 0.0, 1.0)?;
            assert_ne!(x, y);
            assert_eq!(trial.suggest_float("x", 0.0, 1.0)?, x);
            Ok(x + y)
        })?;
        Ok(())
    }

    #[test]
    fn a_stored_study_is_continued() -> Result<(), Box<dyn Error>> {
        let dir = tempfile::tempdir()?;
        let url = dir.path().join("study.db").display().to_string();
        let mut values = Vec::new();
        for trials in [3, 2] {
            let mut study = create_study("stored").storage(&url).open()?;
            study
                .optimize(trials, |trial| trial.suggest_float("x", 0.0, 1.0).map_err(Into::into))?;
            values = study.trials().iter().map(|trial| trial.point.clone()).collect();
        }
        let mut whole = create_study("whole").open()?;
        whole.optimize(5, |trial| trial.suggest_float("x", 0.0, 1.0).map_err(Into::into))?;
        let expected: Vec<_> = whole.trials().iter().map(|trial| trial.point.clone()).collect();
        assert_eq!(values, expected);
        assert!(matches!(values[0].as_ref().and_then(|p| p.get("x")), Some(Value::Float(_))));
        Ok(())
    }

    /// Ten epochs that approach a level, continued from the directory of the trial.
    fn resumed(trial: &mut Trial<'_>) -> Result<f64, Box<dyn Error>> {
        let x = trial.suggest_float("x", -5.0, 5.0)?;
        trial.set_steps(10);
        let file = trial.dir().join("epoch");
        let done = std::fs::read_to_string(&file).map_or(0, |text| text.parse().unwrap_or(0));
        assert_eq!(done, trial.reported());
        let mut value = f64::NAN;
        for step in done + 1..=10 {
            value = (x - 1.0).powi(2) + 1.0 / step as f64;
            std::fs::create_dir_all(trial.dir())?;
            std::fs::write(&file, step.to_string())?;
            trial.report(step, value)?;
            if trial.should_stop() {
                break;
            }
        }
        Ok(value)
    }

    #[test]
    fn a_closure_pauses_and_its_decisions_can_be_repeated() -> Result<(), Box<dyn Error>> {
        let dir = tempfile::tempdir()?;
        let x = Parameter {
            name: "x".to_owned(),
            domain: Domain::Uniform(-5.0, 5.0),
            conditions: Vec::new(),
        };
        let space = Space::new(vec![x])?;
        for scheduler in SchedulerConfig::all() {
            let runs = dir.path().join(scheduler.name());
            let study = create_study("paused").space(space.clone()).scheduler(scheduler.clone());
            let mut study = study.dir(runs).open()?;
            study.optimize(8, resumed)?;
            let paused = study.trials().iter().filter(|t| t.state == TrialState::Paused).count();
            assert!(paused > 3, "{}: {paused}", scheduler.name());
            assert!(study.trials().len() > 8);
            let best = study.best_trial().and_then(|trial| study.view.value(trial.number));
            assert!(best.is_some_and(|value| value < 2.0), "{best:?}");
            let search = Search { space: &space, seed: 0, candidates: None, is_suggested: false };
            for decision in study.view.decisions() {
                let mut history = ScheduleHistory::default();
                study.view.update_schedule_at(decision.seen, &mut history);
                let left = decision.budget.map(|budget| budget as f64 - history.trainings());
                history.set_left(left);
                let again = scheduler.schedule(&search).decide(&history);
                let until = decision.until.map_or(u64::MAX, u64::from);
                let trial = &study.trials()[decision.number as usize];
                match again {
                    Decision::Continue { trial, until: then } => {
                        assert_eq!((trial, then), (decision.number, until));
                    }
                    Decision::Start { point, until: then } => {
                        assert_eq!(then, until);
                        assert!(point.is_none() || point == trial.point);
                    }
                    Decision::Wait => panic!("waits instead of {decision:?}"),
                }
            }
        }
        Ok(())
    }
}
