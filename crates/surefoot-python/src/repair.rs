//! The search for a repair of a training in Python.

use crate::guard::{catch, error};
use crate::run::Run;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use surefoot_diagnose::{Facts, Finding};
use surefoot_repair::{
    Action, AttemptTrainer, ContestConfig, ContestResult, Decay, Ending, Initializers, LossKind,
    Outliers, Proposal, RepairConfig, RepairSearch, Standing, Subject, contest,
};

/// A training in Python, identified by the actions that are applied to it.
#[derive(Clone)]
struct Training {
    actions: Vec<Action>,
    host: Arc<Host>,
}

impl PartialEq for Training {
    fn eq(&self, other: &Self) -> bool {
        self.actions == other.actions
    }
}

impl Training {
    fn actions_json(&self) -> String {
        Value::from(self.actions.iter().filter_map(action_json).collect::<Vec<_>>()).to_string()
    }
}

impl Subject for Training {
    fn supports(&self, action: &Action) -> bool {
        action_json(action).is_some()
    }

    fn apply(&mut self, action: &Action) -> Result<String, String> {
        let known =
            action_json(action).ok_or("this change is not supported for a training in Python")?;
        let arguments = (self.actions_json(), known.to_string());
        let applied = Python::attach(|py| {
            self.host.call(py, "apply", arguments)?.extract::<(bool, String)>()
        });
        match applied {
            Ok((true, message)) => {
                self.actions.push(action.clone());
                Ok(message)
            }
            Ok((false, reason)) => Err(reason),
            Err(error) => Err(self.host.refuse(error)),
        }
    }

    fn diff(&self, changed: &Self) -> String {
        let new = changed.actions.get(self.actions.len()..).unwrap_or(&[]);
        new.iter().map(|action| format!("+ {action}\n")).collect()
    }
}

/// The action as JSON for `Setup.apply`; `None` if that does not support it.
fn action_json(action: &Action) -> Option<Value> {
    Some(match action {
        Action::AddBatchNorm => json!({"action": "add_batch_norm"}),
        Action::AddResidual => json!({"action": "add_residual"}),
        Action::SwapActivation(activation) => {
            json!({"action": "swap_activation", "activation": activation})
        }
        Action::SetOutputUnits(units) => json!({"action": "set_output_units", "units": units}),
        Action::SetOutputActivation(activation) => {
            json!({"action": "set_output_activation", "activation": activation})
        }
        Action::Reinitialize(Initializers::Fitting) => json!({"action": "reinitialize"}),
        Action::ClipGradient { norm } => json!({"action": "clip_gradient", "norm": norm}),
        Action::ClipGradientValues { limit } => {
            json!({"action": "clip_gradient_values", "limit": limit})
        }
        Action::SetBatchSize(size) => json!({"action": "set_batch_size", "size": size}),
        Action::ExtendTraining { factor } => {
            json!({"action": "extend_training", "factor": factor})
        }
        Action::SetLearningRate(rate) => json!({"action": "set_learning_rate", "rate": rate}),
        Action::SetDecay(Decay::Constant) => json!({"action": "set_decay", "decay": "constant"}),
        Action::SetDecay(Decay::Cosine) => json!({"action": "set_decay", "decay": "cosine"}),
        Action::SwapOptimizer { optimizer, learning_rate } => json!({
            "action": "swap_optimizer", "optimizer": optimizer.name(), "learning_rate": learning_rate,
        }),
        Action::SwapLoss { loss, from_logits } => {
            let loss = match loss {
                LossKind::MeanSquaredError => "mse",
                LossKind::BinaryCrossentropy => "binary_crossentropy",
                LossKind::CategoricalCrossentropy => "sparse_categorical_crossentropy",
                _ => return None,
            };
            json!({"action": "swap_loss", "loss": loss, "from_logits": from_logits})
        }
        Action::ScaleTargets => json!({"action": "scale_targets"}),
        Action::ImputeMissing => json!({"action": "impute_missing"}),
        Action::NormalizeData { outliers: Outliers::Keep } => {
            json!({"action": "normalize_data", "clip_outliers": false})
        }
        Action::NormalizeData { outliers: Outliers::Clip } => {
            json!({"action": "normalize_data", "clip_outliers": true})
        }
        _ => return None,
    })
}

/// A Python object that trains the contestants: a `surefoot.contest.Trainings`.
struct Host {
    host: Py<PyAny>,
    /// Ctrl-C or another exception that ends the program, raised while a change was applied.
    interrupt: Mutex<Option<PyErr>>,
}

impl Host {
    /// The reason why a change cannot be applied. Exceptions that end the program are kept, to be
    /// raised at the end of the contest.
    fn refuse(&self, error: PyErr) -> String {
        let message = error.to_string();
        if Python::attach(|py| !error.is_instance_of::<PyException>(py)) {
            *self.interrupt() = Some(error);
        }
        message
    }

    fn interrupt(&self) -> MutexGuard<'_, Option<PyErr>> {
        self.interrupt.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        arguments: impl pyo3::call::PyCallArgs<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.host.bind(py).call_method1(method, arguments)
    }
}

/// Trains the contestants of a contest.
struct Trainer(Arc<Host>);

impl AttemptTrainer<Training> for Trainer {
    type Error = PyErr;

    fn start(&mut self, proposal: &Proposal<Training>) -> PyResult<bool> {
        let attempt = json!({
            "number": proposal.number,
            "parent": proposal.parent,
            "problem": proposal.finding.problem,
            "remedies": proposal.remedies,
            "change": proposal.message,
            "diff": proposal.diff,
        });
        let arguments = (proposal.subject.actions_json(), attempt.to_string());
        Python::attach(|py| self.0.call(py, "start", arguments)?.extract())
    }

    fn train(&mut self, tasks: &[(u32, f64)]) -> PyResult<Vec<Standing>> {
        let train = |(number, share): &(u32, f64)| {
            Python::attach(|py| standing(&self.0.call(py, "train", (*number, *share))?))
        };
        tasks.iter().map(train).collect()
    }

    fn close(
        &mut self,
        number: u32,
        ending: Ending,
        standing: &Standing,
        is_best: bool,
    ) -> PyResult<()> {
        let found = standing.problem.as_ref();
        let found = found.map(serde_json::to_string).transpose().map_err(error)?;
        let arguments = (number, ending.name(), found, is_best);
        Python::attach(|py| self.0.call(py, "close", arguments).map(drop))
    }

    fn is_interrupted(&mut self) -> bool {
        self.0.interrupt().is_some()
    }
}

/// The standing of a contestant, from (run, share of its steps, finished, metric, loss, true if the
/// fact `chance` is that of the metric).
fn standing(contestant: &Bound<'_, PyAny>) -> PyResult<Standing> {
    type Parts<'py> = (Bound<'py, Run>, f64, bool, Option<f64>, Option<f64>, bool);
    let (run, share, finished, metric, loss, has_chance): Parts<'_> = contestant.extract()?;
    let mut standing = Standing { share, finished, metric, loss, ..run.borrow_mut().standing() };
    if !has_chance {
        standing.facts.chance = None;
    }
    Ok(standing)
}

/// Searches for a repair. `host` applies actions and trains contestants; `original` is the standing of
/// the training as given, as `host.train` returns it. Returns the status and the number of
/// the attempt that repairs it.
#[pyfunction]
#[pyo3(signature = (host, original, *, samples, forbid, order, attempts))]
pub(crate) fn repair(
    host: Py<PyAny>,
    original: &Bound<'_, PyAny>,
    samples: usize,
    forbid: Vec<String>,
    order: Vec<String>,
    attempts: usize,
) -> PyResult<(&'static str, Option<u32>)> {
    let original = standing(original)?;
    let finding = original.problem.clone();
    let finding = finding.ok_or_else(|| PyValueError::new_err("the training has no problem"))?;
    let reply = Python::attach(|py| host.call_method0(py, "other_problems")?.extract(py));
    let others: Vec<Finding> =
        reply.and_then(|found: Vec<String>| found.iter().map(|it| parse(it)).collect())?;
    let others: Vec<Finding> = others.into_iter().filter(|other| *other != finding).collect();
    let host = Arc::new(Host { host, interrupt: Mutex::default() });
    let config = RepairConfig { forbid, order, attempts, ..RepairConfig::default() };
    let subject = Training { actions: Vec::new(), host: Arc::clone(&host) };
    let facts: Facts = original.facts.clone();
    let search = RepairSearch::new(
        subject,
        finding,
        &others,
        facts,
        surefoot_repair::remedies::all(),
        config,
    );
    catch(|| {
        let config = ContestConfig { samples, least_budget: 0, sequential: true };
        let result = contest(&mut Trainer(Arc::clone(&host)), search, original, config)?;
        if let Some(error) = host.interrupt().take() {
            return Err(error);
        }
        Ok(match result {
            ContestResult::Repaired(number) => ("repaired", Some(number)),
            ContestResult::Dismissed => ("normal", None),
            ContestResult::Failed => ("failed", None),
            ContestResult::Interrupted => ("problem", None),
        })
    })
}

/// Skill from which on a training with a likely problem is not harmed by it, as without repair on the
/// command line.
const UNHARMED: f64 = 0.8;

/// True if a training has no certain problem and has ended well, so that its problems are warnings.
/// `samples` is the number of validation samples.
#[pyfunction]
pub(crate) fn has_ended_well(contestant: &Bound<'_, PyAny>, samples: usize) -> PyResult<bool> {
    let standing = standing(contestant)?;
    Ok(!standing.ended_by_problem && standing.has_ended_well(UNHARMED, samples))
}

/// Ids of all remedies.
#[pyfunction]
pub(crate) fn remedies() -> Vec<&'static str> {
    surefoot_repair::remedies::all().iter().map(|remedy| remedy.id()).collect()
}

fn parse(finding: &str) -> PyResult<Finding> {
    serde_json::from_str(finding).map_err(error)
}
