//! Studies that optimize a Rust closure.

use crate::direction::Direction;
use crate::objective::{Objective, WorkerError};
use crate::pruner::{Pruner, PrunerSet};
use crate::sampler::{Sampler, Tpe};
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
        sampler: Box::new(Tpe::default()),
        pruners: Vec::new(),
    }
}

/// Definition of a study, from [`create_study`].
pub struct StudyBuilder {
    name: String,
    url: Option<String>,
    direction: Direction,
    seed: u64,
    space: Space,
    sampler: Box<dyn Sampler>,
    pruners: Vec<Box<dyn Pruner>>,
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
        self.sampler = sampler;
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
            sampler: self.sampler,
            pruners: PrunerSet::default(),
            custom_pruners: self.pruners,
            limits: ClaimLimits::default(),
            max_operations: None,
            runs: PathBuf::new(),
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
    pub fn optimize<F>(&mut self, trials: u64, objective: F) -> Result<(), WorkerError>
    where
        F: FnMut(&mut Trial<'_>) -> Result<f64, Box<dyn Error>>,
    {
        self.storage.refresh(&mut self.view)?;
        let existing = self.view.trials().len() as u64;
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

    /// The complete trial with the best finite value.
    pub fn best_trial(&self) -> Option<&FrozenTrial> {
        let cost = |trial: &FrozenTrial| match trial.state {
            TrialState::Complete { value } => Some(self.study.direction.cost(value)),
            _ => None,
        };
        let complete = self.trials().iter().filter_map(|trial| Some((cost(trial)?, trial)));
        let finite = complete.filter(|(cost, _)| cost.is_finite());
        finite.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, trial)| trial)
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
    use crate::space::Value;

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
            if trial.should_prune() {
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
}
