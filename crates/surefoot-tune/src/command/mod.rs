//! Objectives that run a command: any program in any language.
//!
//! The command reads its parameters from the environment and reports on its standard output, one
//! [`ReportLine`] a line. `docs/tune.md` documents the protocol, with clients in Python and Rust.

mod process;
mod report;
mod steps;
mod system;

pub use report::{ReportLayer, ReportLayers, ReportLine};

use crate::diagnosis::BackgroundDiagnosis;
use crate::direction::Direction;
use crate::objective::{Objective, Progress, WorkerError};
use crate::space::{Point, Value};
use crate::storage::{PASSWORD_VARIABLE, TrialState};
use crate::trial::Trial;
use process::Process;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use steps::StepCounter;
use surefoot_diagnose::{Diagnosis, Evaluation, Facts, LayerInfo, Split};

/// Interval at which a silent command is checked for interruption.
const POLL: Duration = Duration::from_millis(100);
/// Time to wait for output that a child of an ended command still holds open.
const LINGER: Duration = Duration::from_secs(1);
/// File in the trial directory that names the trial it belongs to.
const OWNER: &str = "owner";
/// File in the trial directory that marks 0-based epochs.
const FROM_ZERO: &str = "epochs-from-0";
/// Prefix of the environment variables with the parameters.
const PARAMETER: &str = "SUREFOOT_PARAMETER_";

/// Runs a shell command for every trial.
pub struct CommandObjective<F> {
    /// The command.
    pub command: String,
    /// Working directory.
    pub folder: PathBuf,
    /// Name of the study.
    pub study: String,
    /// Direction of the objective value.
    pub direction: Direction,
    /// Time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Creates the diagnosis of a trial; returns `None` for no diagnosis.
    pub diagnosis: F,
}

impl<F> std::fmt::Debug for CommandObjective<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandObjective").field("command", &self.command).finish_non_exhaustive()
    }
}

impl<F: Fn(Facts) -> Option<Diagnosis>> Objective for CommandObjective<F> {
    fn run(&mut self, trial: &mut Trial<'_>) -> Result<TrialState, WorkerError> {
        // Without a shell no trial can run, so this is not the trial's fault.
        let not_started = |error: std::io::Error, dir: &Path| {
            let (folder, dir) = (self.folder.display(), dir.display());
            WorkerError::Machine(format!(
                "cannot start the command in {folder} with output in {dir}: {error}"
            ))
        };
        let dir = std::path::absolute(trial.dir()).map_err(|e| not_started(e, trial.dir()))?;
        if !take_ownership(&dir, &trial.owner()).map_err(|e| not_started(e, &dir))? {
            return Err(WorkerError::occupied(trial.dir()));
        }
        if trial.attempt() > 1 && !process::end_earlier(&dir, self.grace) {
            let message = format!("an earlier attempt is still running in {}", dir.display());
            return Err(WorkerError::Machine(message));
        }
        let (mut process, lines) = self.start(trial, &dir).map_err(|e| not_started(e, &dir))?;
        let from_zero = dir.join(FROM_ZERO);
        let mut reports = Reports {
            steps: StepCounter::new(trial.reported(), trial.planned(), from_zero.exists()),
            from_zero,
            direction: self.direction,
            observed: 0,
            result: None,
            has_value: false,
            layers: Vec::new(),
            diagnosis: None,
        };
        let read = self.read(&lines, &mut process, &mut reports, trial);
        // Output that follows is drained and discarded.
        drop(lines);
        if let Some(state) = read.inspect_err(|_| process.end())? {
            process.end();
            return Ok(state);
        }
        // The output is closed, but the process may take a while to exit.
        let failed = |message: String| Ok(TrialState::Failed { message });
        let status = loop {
            match process.exit_status() {
                Ok(Some(status)) => break status,
                Ok(None) if trial.is_interrupted() => {
                    process.end();
                    return Ok(TrialState::Waiting);
                }
                Ok(None) => std::thread::sleep(POLL),
                Err(error) => return failed(format!("cannot wait for the command: {error}")),
            }
        };
        if process.is_alive() {
            process.end();
        }
        if !status.success() {
            let stderr = process.last_error();
            let stderr = stderr.map_or_else(String::new, |line| format!(": {line}"));
            let exit = status
                .code()
                .map_or_else(|| status.to_string(), |code| format!("exit code {code}"));
            return failed(format!("the command ended with {exit}{stderr}"));
        }
        if !reports.has_value {
            let message = "the command ended without reporting a value: print {\"value\": NUMBER}";
            return failed(message.to_owned());
        }
        Ok(trial.complete(reports.result))
    }
}

impl<F: Fn(Facts) -> Option<Diagnosis>> CommandObjective<F> {
    fn start(&self, trial: &Trial<'_>, dir: &Path) -> std::io::Result<(Process, Receiver<String>)> {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(&self.command)
            .current_dir(&self.folder)
            .env("SUREFOOT_STUDY", &self.study)
            .env("SUREFOOT_TRIAL", trial.number().to_string())
            .env("SUREFOOT_ATTEMPT", trial.attempt().to_string())
            .env(system::DIR, dir)
            .env("SUREFOOT_PARAMETERS", json(trial.point()));
        // Programs do not need the store, and their environment is visible to others.
        command.env_remove(PASSWORD_VARIABLE);
        // A search may run inside a trial of another search, whose parameters are not ours.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with(PARAMETER) {
                command.env_remove(name);
            }
        }
        for (name, value) in &trial.point().0 {
            command.env(variable(name), value.to_string());
        }
        Process::start(command, dir, self.grace)
    }

    /// Reads reports until the command ends. Returns a state if the command has to be stopped.
    fn read(
        &self,
        lines: &Receiver<String>,
        process: &mut Process,
        reports: &mut Reports,
        trial: &mut Trial<'_>,
    ) -> Result<Option<TrialState>, WorkerError> {
        let (mut polled, mut ended) = (Instant::now(), None);
        loop {
            // Children of the command may keep printing after it has ended.
            if polled.elapsed() > POLL {
                polled = Instant::now();
                if matches!(process.exit_status(), Ok(Some(_)))
                    && ended.get_or_insert(polled).elapsed() > LINGER
                {
                    return Ok(None);
                }
            }
            let line = match lines.recv_timeout(POLL) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) if trial.is_interrupted() => {
                    return Ok(Some(TrialState::Waiting));
                }
                Err(RecvTimeoutError::Timeout) => continue,
            };
            let requested = match ReportLine::read(&line) {
                None => None,
                Some(Err(error)) => {
                    let message = format!("invalid report: {error}: {}", line.trim());
                    return Ok(Some(TrialState::Failed { message }));
                }
                Some(Ok(line)) => reports.take(&line, &self.diagnosis, trial)?,
            };
            match requested {
                None if trial.is_interrupted() => return Ok(Some(TrialState::Waiting)),
                None => {}
                Some(state) => return Ok(Some(state)),
            }
        }
    }
}

/// Reports of a trial so far.
struct Reports {
    steps: StepCounter,
    /// File that marks 0-based epochs for later attempts.
    from_zero: PathBuf,
    direction: Direction,
    /// Last training step shown to the diagnosis.
    observed: u64,
    /// Value marked `final` by the command.
    result: Option<f64>,
    has_value: bool,
    layers: Vec<LayerInfo>,
    diagnosis: Option<BackgroundDiagnosis>,
}

impl Reports {
    fn take(
        &mut self,
        line: &ReportLine,
        diagnosis: &impl Fn(Facts) -> Option<Diagnosis>,
        trial: &mut Trial<'_>,
    ) -> Result<Option<TrialState>, WorkerError> {
        self.observe(line, diagnosis);
        let Some(value) = line.value else {
            return Ok(None);
        };
        self.has_value = true;
        if line.is_final {
            self.result = Some(value);
        }
        let (step, planned) = self.steps.next(line.epoch, line.epochs);
        if step == 1 && self.steps.starts_at_zero() {
            // If this fails, a later attempt counts epochs from 1.
            let _ = std::fs::write(&self.from_zero, "");
        }
        let findings = self.diagnosis.as_mut().map(BackgroundDiagnosis::findings);
        let findings = findings.unwrap_or_default();
        let state = trial.update(&Progress { step, planned, value, operations: 0.0, findings })?;
        Ok(match state {
            // Pruning a trial that has its final value saves nothing.
            Some(TrialState::Pruned { .. }) if self.result.is_some() => None,
            state => state,
        })
    }

    /// Shows a report to the indicators, from the first loss on.
    fn observe(&mut self, line: &ReportLine, diagnosis: &impl Fn(Facts) -> Option<Diagnosis>) {
        if self.observed == 0 && line.loss.is_some() {
            let steps_per_epoch = match (line.steps, line.epochs) {
                (Some(steps), Some(epochs)) => Some(steps.div_ceil(epochs.max(1))),
                (Some(steps), None) => Some(steps),
                // One report an epoch.
                (None, _) => line.step.is_none().then_some(1),
            };
            let facts = Facts {
                steps_per_epoch,
                epochs: line.epochs.or(line.steps.map(|_| 1)),
                ..Facts::default()
            };
            // If no thread can be started, the trial runs without diagnosis.
            self.diagnosis =
                diagnosis(facts).and_then(|diagnosis| BackgroundDiagnosis::new(diagnosis).ok());
        }
        // Steps only increase. Epochs count as steps if there are none.
        if line.loss.is_some() {
            self.observed = line.step.or(line.epoch).unwrap_or(0).max(self.observed + 1);
        }
        let Some(diagnosis) = &mut self.diagnosis else {
            return;
        };
        // Losses are often reported every step and layers less often.
        if self.layers.is_empty() && !line.layers.0.is_empty() {
            self.layers = line.layer_infos();
            diagnosis.set_layers(self.layers.clone());
        }
        // Before the step, so that an improvement counts at once.
        if let Some(value) = line.value {
            diagnosis.evaluate(&Evaluation {
                epoch: line.epoch.unwrap_or(0),
                step: self.observed,
                split: Split::Validation,
                loss: self.direction.cost(value),
                metric: None,
            });
        }
        if let Some(observation) = line.observation(self.observed, &self.layers) {
            diagnosis.observe(&observation);
        }
    }
}

/// Creates the directory of a trial and marks it. Returns false if it contains anything else.
fn take_ownership(dir: &Path, owner: &str) -> std::io::Result<bool> {
    std::fs::create_dir_all(dir)?;
    let (mark, partial) = (dir.join(OWNER), dir.join(format!("{OWNER}.partial")));
    if let Ok(found) = std::fs::read_to_string(&mark) {
        return Ok(found == owner);
    }
    let is_ours = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.path() == partial)
    };
    if !std::fs::read_dir(dir)?.all(is_ours) {
        return Ok(false);
    }
    std::fs::write(&partial, owner)?;
    std::fs::rename(&partial, &mark)?;
    Ok(true)
}

fn json(point: &Point) -> String {
    // Text and finite numbers: this cannot fail.
    let values: &std::collections::BTreeMap<String, Value> = &point.0;
    serde_json::to_string(values).unwrap_or_default()
}

/// The environment variable of a parameter: `SUREFOOT_PARAMETER_` and the name in capitals, with `_`
/// for every other character.
pub fn variable(name: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_uppercase(),
        false => '_',
    };
    let name: String = name.chars().map(plain).collect();
    format!("{PARAMETER}{name}")
}
