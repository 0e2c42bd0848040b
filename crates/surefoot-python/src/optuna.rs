//! Samplers and pruners for studies that another program runs, such as Optuna.

use crate::guard::{catch, error};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::Value;
use surefoot_diagnose::Finding;
use surefoot_tune::pruner::PruningConfig;
use surefoot_tune::sampler::{SampleRequest, Sampler, SamplerConfig};
use surefoot_tune::{History, LearningCurve, Parameter, Space};

fn invalid(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Number, costs, planned epochs, and whether the trial is over.
type Curve = (u64, Vec<f64>, usize, bool);

fn curve((number, costs, planned, over): Curve) -> LearningCurve {
    LearningCurve { number, costs, planned, over }
}

/// Raises a `ValueError` for a sampler that does not exist or has other options. `sampler` is JSON.
#[pyfunction]
pub(crate) fn check_sampler(sampler: &str) -> PyResult<()> {
    sampler_of(sampler).map(|_| ())
}

fn sampler_of(sampler: &str) -> PyResult<SamplerConfig> {
    let value: Value = serde_json::from_str(sampler).map_err(error)?;
    SamplerConfig::from_value(&value).map_err(invalid)
}

/// Returns the point for a trial. All arguments are JSON, as in a study and its store.
#[pyfunction]
pub(crate) fn suggest(
    py: Python<'_>,
    sampler: &str,
    parameters: &str,
    seed: u64,
    number: u64,
    history: &str,
) -> PyResult<String> {
    let sampler = sampler_of(sampler)?;
    let parameters: Vec<Parameter> = serde_json::from_str(parameters).map_err(error)?;
    let space = Space::new(parameters).map_err(invalid)?;
    let history: History = serde_json::from_str(history).map_err(error)?;
    py.detach(|| {
        catch(|| {
            let request = SampleRequest { space: &space, seed, number, history: &history };
            serde_json::to_string(&sampler.suggest(&request)).map_err(error)
        })
    })
}

/// Pruners and indicators by their names, or the default ones.
pub(crate) fn pruning(pruners: Option<&str>, protect: usize) -> PyResult<PruningConfig> {
    let config = PruningConfig { protect, ..PruningConfig::default() };
    let Some(pruners) = pruners else { return Ok(config.for_sampler(true)) };
    let entries: Vec<Value> = serde_json::from_str(pruners).map_err(error)?;
    Ok(config.listed(&entries).map_err(PyValueError::new_err)?.for_sampler(true))
}

/// Returns the reason to prune a trial after its last report, as JSON. `pruners` and `findings` are JSON.
#[pyfunction]
pub(crate) fn prune(
    py: Python<'_>,
    pruners: Option<&str>,
    protect: usize,
    trial: Curve,
    others: Vec<Curve>,
    earlier: Vec<String>,
    new: Vec<String>,
) -> PyResult<Option<String>> {
    let set = pruning(pruners, protect)?.pruner_set();
    let findings = |texts: Vec<String>| -> PyResult<Vec<Finding>> {
        texts.iter().map(|text| serde_json::from_str(text).map_err(error)).collect()
    };
    let (earlier, new) = (findings(earlier)?, findings(new)?);
    let (trial, others) = (curve(trial), others.into_iter().map(curve).collect::<Vec<_>>());
    py.detach(|| {
        catch(|| {
            let reason = set.decide(&trial, &others, &earlier, &new);
            reason.map(|reason| serde_json::to_string(&reason).map_err(error)).transpose()
        })
    })
}
