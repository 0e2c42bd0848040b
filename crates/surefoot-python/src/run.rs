//! A watched run: the class `surefoot._core.Run` of the Python package.

use crate::guard::{catch, error};
use crate::optuna::pruning;
use crate::quick::{Quick, StepReport, Taken};
use crate::script::{TensorAt, array};
use crate::tensor::{Format, Tensor};
use crate::tune::TuneTrial;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use surefoot_diagnose::{
    Activation, Diagnosis, Evaluation, Facts, Finding, LayerObservation, Observation, Problem,
    Severity, Split, Summary, Thresholds,
};
use surefoot_record::{
    Environment, Event, Header, Recorder, RunSummary, StateDigest, Status, WatchedRun,
};
use surefoot_repair::Standing;
use surefoot_stats::{Moments, merge_tree};
use surefoot_tune::diagnosis::BackgroundDiagnosis;
use surefoot_tune::function::TrialObserver;

/// Raises a `ValueError` if `thresholds` has an unknown key, a value that does not fit, or an unknown
/// problem to switch off.
#[pyfunction]
pub(crate) fn check_thresholds(thresholds: Vec<(String, String)>) -> PyResult<()> {
    limits(&thresholds).map(|_| ())
}

fn limits(thresholds: &[(String, String)]) -> PyResult<Thresholds> {
    // Keys have no prefix in Python.
    let invalid = |error: String| {
        PyValueError::new_err(format!("thresholds: {}", error.replace("diagnose.", "")))
    };
    let mut limits = Thresholds::default();
    for (key, value) in thresholds {
        limits.set(key, value).map_err(invalid)?;
    }
    let known: Vec<Problem> = limits.rules.detectors().iter().map(|it| it.problem()).collect();
    match limits.off.iter().find(|problem| !known.contains(problem)) {
        None => Ok(limits),
        Some(problem) => {
            let ids: Vec<&str> = known.iter().map(Problem::id).collect();
            let ids = ids.join(", ");
            Err(invalid(format!("unknown problem `{problem}` in `off`; known problems: {ids}")))
        }
    }
}

/// Diagnoses and records a training loop in Python.
///
/// At an observed step, the package reports outputs, gradients and weights as they appear, and then
/// the step itself. Tensors are given by their addresses and must stay alive during the call.
#[pyclass(module = "surefoot._core")]
pub(crate) struct Run {
    /// In a lock because a Python class must be `Sync` and detectors are not. Never locked: all access
    /// is through `&mut self`.
    run: Mutex<WatchedRun>,
    directory: Option<PathBuf>,
    layer_count: usize,
    /// Output bounds of the layers with a bounded activation.
    bounds: Vec<Option<(f64, f64)>>,
    parameters: Vec<Parameter>,
    /// Observation of the current step.
    seen: Observation,
    /// Sampled weights of each parameter before the update.
    before: Vec<Vec<f64>>,
    /// Steps so far.
    steps: u64,
    steps_per_epoch: u64,
    /// Steps of a loop on the CPU that is not observed at the moment.
    quick: Option<Quick>,
    /// True if the record stays open after the training, for a repair.
    is_held: bool,
    /// Summary of a training that has ended and whose record is open.
    ended: Option<RunSummary>,
    /// Indicators of the trial that the training belongs to.
    trial: Option<TrialObserver>,
    /// Indicators for a trial of another program.
    indicators: Mutex<Option<BackgroundDiagnosis>>,
}

/// Result of a repair: the fields of the summary that it decides.
#[derive(Deserialize)]
struct Delivery {
    status: Status,
    remedies: Vec<String>,
    before: Option<f64>,
    after: Option<f64>,
    /// Steps of the training as given and all attempts.
    steps: u64,
    /// Delivered attempt, 0 for the training as given; `None` for the record of an attempt.
    attempt: Option<u32>,
}

/// An observed parameter of a layer.
#[derive(Clone, Copy)]
struct Parameter {
    layer: usize,
    len: usize,
    format: Format,
    /// Number of units, if each row belongs to one.
    rows: Option<usize>,
}

impl Parameter {
    fn at(self, address: usize) -> Tensor {
        Tensor { address, len: self.len, format: self.format }
    }
}

#[pymethods]
impl Run {
    /// Starts a run. `facts` is JSON with the fields of `Facts`; `thresholds` are keys and values as
    /// for `surefoot diagnose --set`. With `runs`, the run is recorded in a new directory there,
    /// with `program` (JSON) as its definition.
    #[new]
    #[pyo3(signature = (facts, *, thresholds, runs, name, program, libraries, device, observe_every))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments in Python")]
    fn new(
        facts: &str,
        thresholds: Vec<(String, String)>,
        runs: Option<PathBuf>,
        name: &str,
        program: &str,
        libraries: BTreeMap<String, String>,
        device: String,
        observe_every: u64,
    ) -> PyResult<Self> {
        catch(|| {
            let facts: Facts = serde_json::from_str(facts).map_err(error)?;
            let limits = limits(&thresholds)?;
            let environment = Environment { libraries, device, ..Environment::detect() };
            let header =
                Header { facts: facts.clone(), observe_every, environment, ..Header::default() };
            let recorder = runs
                .map(|runs| Recorder::create_for_program(&runs, name, program, header))
                .transpose()
                .map_err(error)?;
            let layer_count = facts.layers.len();
            let steps_per_epoch = facts.steps_per_epoch.unwrap_or(0);
            let bounds = facts.layers.iter().map(|layer| saturation_bounds(&layer.activation));
            Ok(Self {
                directory: recorder.as_ref().map(|recorder| recorder.dir().to_owned()),
                bounds: bounds.collect(),
                parameters: Vec::new(),
                seen: Observation::default(),
                before: Vec::new(),
                steps: 0,
                steps_per_epoch,
                quick: None,
                is_held: false,
                ended: None,
                trial: None,
                indicators: Mutex::new(None),
                run: Mutex::new(WatchedRun::new(Diagnosis::new(facts, limits), recorder)),
                layer_count,
            })
        })
    }

    /// Passes all steps to the indicators of a trial too.
    fn set_trial(&mut self, trial: &TuneTrial) {
        let observer = trial.observer(self.run().diagnosis().facts());
        self.trial = Some(observer);
    }

    /// Passes all steps to the indicators among `pruners` (JSON) too.
    fn start_indicators(&mut self, pruners: Option<&str>) -> PyResult<()> {
        let detectors = pruning(pruners, 0)?.detectors();
        let facts = self.run().diagnosis().facts().clone();
        let diagnosis = Diagnosis::with(facts, Thresholds::default(), detectors);
        *self.indicators() = Some(BackgroundDiagnosis::new(diagnosis)?);
        Ok(())
    }

    /// Passes the cost after an epoch to the indicators. Returns their findings since the last call, as JSON.
    fn ask_indicators(&mut self, cost: f64, epoch: u64) -> PyResult<Vec<String>> {
        let step = self.steps;
        let Some(indicators) = self.indicators() else { return Ok(Vec::new()) };
        let split = Split::Validation;
        indicators.evaluate(&Evaluation { epoch, step, split, loss: cost, metric: None });
        let to_json = |finding| serde_json::to_string(&finding).map_err(error);
        indicators.findings().into_iter().map(to_json).collect()
    }

    /// The run directory; `None` if the run is not recorded.
    #[getter]
    fn directory(&self) -> Option<PathBuf> {
        self.directory.clone()
    }

    /// Number of steps that the detectors have seen.
    #[getter]
    fn steps(&self) -> u64 {
        self.steps
    }

    /// 1-based epoch of the latest step, as far as the length of an epoch is known.
    #[getter]
    fn epoch(&self) -> u64 {
        self.epoch_of(self.steps)
    }

    /// Declares the observed parameters: (layer, number of values, format, rows that are units or 0).
    fn set_parameters(&mut self, parameters: Vec<(usize, usize, String, usize)>) -> PyResult<()> {
        let parameter = |(layer, len, format, rows): (usize, usize, String, usize)| {
            let rows = (rows > 0).then_some(rows);
            Ok(Parameter { layer, len, format: Format::parse(&format)?, rows })
        };
        self.parameters = parameters.into_iter().map(parameter).collect::<PyResult<_>>()?;
        Ok(())
    }

    /// Observes the output of `layer`.
    fn output(&mut self, layer: usize, address: usize, len: usize, format: &str) -> PyResult<()> {
        let tensor = Tensor { address, len, format: Format::parse(format)? };
        catch(|| {
            let bounds = self.bounds.get(layer).copied().flatten();
            let seen = self.layer(layer)?;
            seen.output = Some(tensor.moments().finish());
            seen.saturated =
                bounds.map(|(low, high)| tensor.outside(low, high) as f64 / len.max(1) as f64);
            Ok(())
        })
    }

    /// Observes the input batch.
    fn input(&mut self, address: usize, len: usize, format: &str) -> PyResult<()> {
        let tensor = Tensor { address, len, format: Format::parse(format)? };
        catch(|| {
            self.seen.input = Some(tensor.moments().finish());
            Ok(())
        })
    }

    /// Observes the gradients of all parameters; address 0 means none. They are divided by `scale`.
    fn gradients(&mut self, addresses: Vec<usize>, scale: f64) -> PyResult<()> {
        catch(|| {
            for (layer, parts) in self.by_layer(&addresses)? {
                let moments: Vec<Moments> =
                    parts.iter().map(|(parameter, at)| parameter.at(*at).moments()).collect();
                let dead = parts.first().and_then(|(parameter, at)| {
                    parameter.rows.and_then(|rows| parameter.at(*at).zero_rows(rows))
                });
                let seen = self.layer(layer)?;
                seen.gradient = Some(scaled(merge_tree(&moments).finish(), 1.0 / scale));
                seen.dead_units = dead;
            }
            Ok(())
        })
    }

    /// Samples the weights before the update, for `weights` to measure its size.
    fn before_update(&mut self, addresses: Vec<usize>) -> PyResult<()> {
        catch(|| {
            self.check(&addresses)?;
            self.before.resize(addresses.len(), Vec::new());
            for ((sample, parameter), address) in
                self.before.iter_mut().zip(&self.parameters).zip(addresses)
            {
                sample.clear();
                parameter.at(address).sample(sample);
            }
            Ok(())
        })
    }

    /// Observes the weights after the update, and the size of the update.
    fn weights(&mut self, addresses: Vec<usize>) -> PyResult<()> {
        catch(|| {
            self.check(&addresses)?;
            let before = std::mem::take(&mut self.before);
            let mut after = Vec::new();
            let mut moved: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
            for ((parameter, address), before) in
                self.parameters.iter().zip(&addresses).zip(&before)
            {
                after.clear();
                parameter.at(*address).sample(&mut after);
                let sums = moved.entry(parameter.layer).or_default();
                // Number of values that each sampled one represents.
                let weight = parameter.len as f64 / after.len().max(1) as f64;
                for (before, after) in before.iter().zip(&after) {
                    sums.0 += weight * (after - before).powi(2);
                    sums.1 += weight * after.powi(2);
                }
            }
            for (layer, parts) in self.by_layer(&addresses)? {
                let moments: Vec<Moments> =
                    parts.iter().map(|(parameter, at)| parameter.at(*at).moments()).collect();
                let seen = self.layer(layer)?;
                seen.weight = Some(merge_tree(&moments).finish());
                seen.update_ratio = moved
                    .get(&layer)
                    .filter(|(_, weights)| *weights > 0.0)
                    .map(|(moved, weights)| (moved / weights).sqrt());
            }
            self.before = before;
            self.before.clear();
            Ok(())
        })
    }

    /// Observes statistics that were computed on a device. `quantity` is `input`, `output`, `gradient`
    /// or `weight`; `statistics` are the numbers of finite, NaN, infinite and zero values, then mean,
    /// variance, minimum, maximum and the sum of absolute values. `share` is the share of saturated
    /// outputs or dead units, or the relative size of the update.
    #[pyo3(signature = (quantity, layer, statistics, share=None))]
    fn measured(
        &mut self,
        quantity: &str,
        layer: usize,
        statistics: [f64; 9],
        share: Option<f64>,
    ) -> PyResult<()> {
        let summary = summary_of(statistics);
        match quantity {
            "input" => self.seen.input = Some(summary),
            "output" => {
                let seen = self.layer(layer)?;
                (seen.output, seen.saturated) = (Some(summary), share);
            }
            "gradient" => {
                let seen = self.layer(layer)?;
                (seen.gradient, seen.dead_units) = (Some(summary), share);
            }
            "weight" => {
                let seen = self.layer(layer)?;
                (seen.weight, seen.update_ratio) = (Some(summary), share);
            }
            _ => {
                return Err(PyValueError::new_err(format!(
                    "unknown quantity `{quantity}`; use `input`, `output`, `gradient` or `weight`"
                )));
            }
        }
        Ok(())
    }

    /// Ends a step: passes it to the detectors and the record. Returns the number of findings so far.
    #[pyo3(signature = (loss, *, epoch=None, metric=None, learning_rate=None, gradient_norm=None))]
    fn step(
        &mut self,
        loss: f64,
        epoch: Option<u64>,
        metric: Option<f64>,
        learning_rate: Option<f64>,
        gradient_norm: Option<f64>,
    ) -> PyResult<usize> {
        catch(|| {
            self.process_waiting()?;
            self.seen.gradient_norm = gradient_norm;
            self.observe(&StepReport { loss, metric, epoch, learning_rate })?;
            Ok(self.count())
        })
    }

    /// Prepares quick steps: those of a loop on the CPU at which no layer is observed. `probe` is a
    /// parameter whose gradient shows NaN in the others.
    fn prepare_quick_steps(
        &mut self,
        py: Python<'_>,
        optimizer: Option<Py<PyAny>>,
        probe: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        self.quick = Some(Quick::new(py, optimizer, probe)?);
        Ok(())
    }

    /// Starts quick steps. The last one is step `until`; `together` of them are delivered at a time.
    fn start_quick_steps(&mut self, until: u64, together: usize) {
        if let Some(quick) = &mut self.quick {
            quick.start(until, together);
        }
    }

    /// Notes in quick steps that the optimizer is about to update the weights. Returns false if the
    /// caller has to look for NaN in the gradients.
    fn quick_update(&mut self, py: Python<'_>) -> PyResult<bool> {
        self.quick.as_mut().map_or(Ok(false), |quick| quick.update(py))
    }

    /// L2 norm of the gradient of the probe; `None` if it has none that can be read.
    fn probe_norm(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        self.quick.as_ref().map_or(Ok(None), |quick| quick.probe_norm(py))
    }

    /// Takes a quick step. Returns `None` if the caller has to take it, and true if the caller has to
    /// look for findings or to prepare the next step, which is observed.
    #[pyo3(signature = (loss, metric, epoch))]
    fn quick_step(
        &mut self,
        loss: &Bound<'_, PyAny>,
        metric: Option<&Bound<'_, PyAny>>,
        epoch: Option<u64>,
    ) -> PyResult<Option<bool>> {
        let Some(quick) = &mut self.quick else { return Ok(None) };
        match quick.take(loss, metric, epoch)? {
            Taken::No => return Ok(None),
            Taken::Batch => return Ok(Some(false)),
            Taken::Step => {}
        }
        let is_last = self.steps + quick.waiting.len() as u64 >= quick.until;
        if !is_last && quick.waiting.len() < quick.together {
            return Ok(Some(false));
        }
        catch(|| {
            let before = self.count();
            self.process_waiting()?;
            Ok(Some(is_last || self.count() > before))
        })
    }

    /// Ends quick steps. Returns the losses since the last step, and whether the weights were updated
    /// after it.
    fn stop_quick_steps(&mut self) -> PyResult<(Vec<f64>, bool)> {
        catch(|| {
            self.process_waiting()?;
            Ok(self.quick.as_mut().map(Quick::stop).unwrap_or_default())
        })
    }

    /// Delivers the quick steps that wait.
    fn flush(&mut self) -> PyResult<()> {
        catch(|| self.process_waiting())
    }

    /// Processes an evaluation. Returns the number of findings so far.
    #[pyo3(signature = (split, loss, *, epoch=None, metric=None))]
    fn evaluation(
        &mut self,
        split: &str,
        loss: f64,
        epoch: Option<u64>,
        metric: Option<f64>,
    ) -> PyResult<usize> {
        let split = match split {
            "train" => Split::Train,
            "validation" => Split::Validation,
            "test" => Split::Test,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "unknown split `{split}`; use `train`, `validation` or `test`"
                )));
            }
        };
        catch(|| {
            self.process_waiting()?;
            let (step, epoch) = (self.steps, epoch.unwrap_or_else(|| self.epoch_of(self.steps)));
            let evaluation = Evaluation { step, epoch, split, loss, metric };
            self.run().evaluate(&evaluation).map_err(error)?;
            Ok(self.count())
        })
    }

    /// Adds a finding about the program itself, which observations do not show: a certain problem or
    /// a warning.
    fn report(&mut self, problem: String, message: String, is_certain: bool) -> PyResult<()> {
        catch(|| {
            self.process_waiting()?;
            let finding = Finding::new(Problem::from(problem), self.steps.max(1), message);
            let finding = if is_certain { finding.certain() } else { finding.warning() };
            self.run().add(finding).map_err(error)
        })
    }

    /// Removes the detectors of these problems.
    fn switch_off(&mut self, problems: Vec<String>) -> PyResult<()> {
        catch(|| {
            self.process_waiting()?;
            let problems: Vec<Problem> = problems.into_iter().map(Problem::from).collect();
            self.run().switch_off(&problems);
            Ok(())
        })
    }

    /// Records an event: a JSON object with `event` and `step`.
    fn event(&mut self, event: &str) -> PyResult<()> {
        catch(|| {
            let event: Event = serde_json::from_str(event).map_err(error)?;
            self.run().event(&event).map_err(error)
        })
    }

    /// Keeps the record open when the training ends, until `deliver`.
    fn hold(&mut self) {
        self.is_held = true;
    }

    /// Ends the run and returns its summary as JSON. `weights` are names and tensors for the digest.
    fn finish(
        &mut self,
        completed: bool,
        weights: Vec<(String, usize, usize, String)>,
    ) -> PyResult<String> {
        catch(|| {
            self.process_waiting()?;
            let mut digest = StateDigest::new();
            for (name, address, len, format) in &weights {
                let (address, len, format) = (*address, *len, Format::parse(format)?);
                digest.update(name, Tensor { address, len, format }.bytes());
            }
            let digest = digest.finish();
            if !self.is_held {
                let summary = self.run().finish(completed, digest).map_err(error)?;
                return Ok(summary.to_json_line());
            }
            let summary = self.run().end(completed, digest).map_err(error)?;
            self.ended = Some(summary.clone());
            Ok(summary.to_json_line())
        })
    }

    /// Closes the record of a training that was held. `result` is JSON with the fields of `Delivery`,
    /// `program` the program as delivered, and `model` the tensors of the delivered model.
    fn deliver(
        &mut self,
        result: &str,
        program: Option<&str>,
        model: Vec<TensorAt>,
    ) -> PyResult<String> {
        catch(|| {
            let result: Delivery = serde_json::from_str(result).map_err(error)?;
            let ended = self.ended.take();
            let mut summary =
                ended.ok_or_else(|| PyRuntimeError::new_err("the training has not ended"))?;
            let step = summary.steps;
            let run = self.run();
            if result.status == Status::Normal {
                summary.problems.clear();
                let mut found = run.diagnosis().findings().iter();
                let problem = found.find(|it| it.severity == Severity::Problem);
                if let Some(problem) = problem.map(|it| it.problem.clone()) {
                    run.event(&Event::Dismissed { step, problem }).map_err(error)?;
                }
            }
            if let Some(attempt) = result.attempt {
                let metric = result.after;
                run.event(&Event::Delivered { step, attempt, metric }).map_err(error)?;
            }
            let arrays = model.into_iter().map(array).collect::<PyResult<Vec<_>>>()?;
            if !arrays.is_empty() {
                let mut digest = StateDigest::new();
                for array in &arrays {
                    digest.update(&array.name, &array.data.to_bytes());
                }
                summary.digest = digest.finish();
            }
            if let Some(recorder) = run.recorder_mut() {
                if !arrays.is_empty() {
                    recorder.write_model(&arrays).map_err(error)?;
                }
                if let Some(program) = program {
                    recorder.write_final_program(program).map_err(error)?;
                }
            }
            (summary.status, summary.remedies) = (result.status, result.remedies);
            (summary.metric.before, summary.metric.after) = (result.before, result.after);
            (summary.steps, summary.seconds) = (result.steps, run.elapsed().as_secs_f64());
            run.close(&summary).map_err(error)?;
            Ok(summary.to_json_line())
        })
    }

    /// Findings so far but the first `from`, as JSON.
    #[pyo3(signature = (from=0))]
    fn findings(&mut self, from: usize) -> PyResult<Vec<String>> {
        let to_json = |finding| serde_json::to_string(finding).map_err(error);
        catch(|| self.run().diagnosis().findings().iter().skip(from).map(to_json).collect())
    }
}

impl Run {
    /// Standing of the run in a contest, without its share of steps, metric and loss.
    pub(crate) fn standing(&mut self) -> Standing {
        Standing::of(self.run().diagnosis())
    }

    fn run(&mut self) -> &mut WatchedRun {
        self.run.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn indicators(&mut self) -> &mut Option<BackgroundDiagnosis> {
        self.indicators.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn epoch_of(&self, step: u64) -> u64 {
        step.saturating_sub(1).checked_div(self.steps_per_epoch).unwrap_or(0) + 1
    }

    /// Number of findings so far.
    fn count(&mut self) -> usize {
        self.run().diagnosis().findings().len()
    }

    /// Passes a step with what was observed of it to the detectors and the record.
    fn observe(&mut self, report: &StepReport) -> PyResult<()> {
        self.steps += 1;
        let epoch = report.epoch.unwrap_or_else(|| self.epoch_of(self.steps));
        let seen = &mut self.seen;
        (seen.step, seen.epoch, seen.loss) = (self.steps, epoch, report.loss);
        (seen.metric, seen.learning_rate) = (report.metric, report.learning_rate);
        let run = self.run.get_mut().unwrap_or_else(PoisonError::into_inner);
        let found = run.observe(&self.seen);
        if let Some(trial) = &self.trial {
            trial.observe(&self.seen);
        }
        let indicators = self.indicators.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(indicators) = indicators {
            indicators.observe(&self.seen);
        }
        self.seen.layers.clear();
        (self.seen.input, self.seen.gradient_norm) = (None, None);
        found.map(|_| ()).map_err(error)
    }

    /// Passes the quick steps that wait to the detectors and the record.
    fn process_waiting(&mut self) -> PyResult<()> {
        let Some(quick) = &mut self.quick else { return Ok(()) };
        let mut waiting = std::mem::take(&mut quick.waiting);
        let delivered = waiting.drain(..).try_for_each(|report| self.observe(&report));
        if let Some(quick) = &mut self.quick {
            quick.waiting = waiting;
        }
        delivered
    }

    fn layer(&mut self, layer: usize) -> PyResult<&mut LayerObservation> {
        let count = self.layer_count;
        self.seen.layers.resize(count, LayerObservation::default());
        let missing =
            || PyValueError::new_err(format!("no layer {layer}: the run has {count} layers"));
        self.seen.layers.get_mut(layer).ok_or_else(missing)
    }

    fn check(&self, addresses: &[usize]) -> PyResult<()> {
        if addresses.len() == self.parameters.len() {
            return Ok(());
        }
        let (given, expected) = (addresses.len(), self.parameters.len());
        Err(PyValueError::new_err(format!("{given} addresses for {expected} parameters")))
    }

    /// Parameters with an address, grouped by layer.
    fn by_layer(&self, addresses: &[usize]) -> PyResult<BTreeMap<usize, Vec<(Parameter, usize)>>> {
        self.check(addresses)?;
        let mut layers: BTreeMap<usize, Vec<(Parameter, usize)>> = BTreeMap::new();
        let present = self.parameters.iter().zip(addresses).filter(|(_, address)| **address != 0);
        for (parameter, address) in present {
            layers.entry(parameter.layer).or_default().push((*parameter, *address));
        }
        Ok(layers)
    }
}

/// Bounds at or beyond which an output is saturated: within 1% of the range of the activation.
fn saturation_bounds(activation: &Option<Activation>) -> Option<(f64, f64)> {
    match activation {
        Some(Activation::Sigmoid | Activation::HardSigmoid) => Some((0.01, 0.99)),
        Some(Activation::Tanh) => Some((-0.98, 0.98)),
        _ => None,
    }
}

/// The summary of `factor` times the values.
fn scaled(summary: Summary, factor: f64) -> Summary {
    if factor == 1.0 {
        return summary;
    }
    Summary {
        mean: summary.mean * factor,
        variance: summary.variance * factor * factor,
        min: summary.min * factor,
        max: summary.max * factor,
        l1: summary.l1 * factor,
        l2: summary.l2 * factor,
        abs_mean: summary.abs_mean * factor,
        linf: summary.linf * factor,
        quartiles: None,
        ..summary
    }
}

/// Summary of (finite values, NaN, infinite, zeros, mean, variance, min, max, sum of absolute values).
fn summary_of(statistics: [f64; 9]) -> Summary {
    let [count, nan, inf, zeros, mean, variance, min, max, l1] = statistics;
    let counts = Summary { nan: nan as u64, inf: inf as u64, ..Summary::default() };
    if count < 1.0 {
        return counts;
    }
    let linf = max.abs().max(min.abs());
    Summary {
        count: count as u64,
        zeros: zeros as u64,
        mean,
        variance,
        min,
        max,
        l1,
        l2: (count * (variance + mean * mean)).sqrt().max(linf),
        abs_mean: l1 / count,
        linf,
        ..counts
    }
}
