//! Trials that are commands: any program in any language.
//!
//! The command gets its parameters in its environment and reports on its standard output
//! ([`Line`](crate::report::Line)). `docs/tune.md` has the protocol, with a client for Python and one
//! for Rust.

mod process;
mod stretches;
mod system;

use crate::checker::Checker;
use crate::direction::Direction;
use crate::report::Line;
use crate::runner::{Assignment, Ended, Order, Progress, Runner, Supervisor, Trouble};
use crate::space::Value;
use process::Process;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use stretches::Stretches;
use surefoot_diagnose::{Diagnosis, Evaluation, Facts, Split};

/// How often a silent command is left alone to see whether it should stop.
const GLANCE: Duration = Duration::from_millis(100);
/// How long the output of a command that has ended is waited for, if something that it started holds it open.
const LINGER: Duration = Duration::from_secs(1);
/// The file in the directory of a trial that says whose it is.
const OWNER: &str = "owner";
/// The file that is there if the first epoch is 0.
const FROM_ZERO: &str = "epochs-from-0";
/// What the variables begin with that parameters are in.
const PARAMETER: &str = "SUREFOOT_PARAMETER_";

/// Runs a command of the system's shell for every trial.
pub struct CommandRunner<F> {
    /// The command.
    pub command: String,
    /// The directory in which it is run.
    pub folder: PathBuf,
    /// The name of the study.
    pub study: String,
    /// Which way values are better.
    pub direction: Direction,
    /// How long a command that was asked to stop may take before it is killed.
    pub grace: Duration,
    /// Makes the diagnosis of a trial; `None` if there is to be none.
    pub diagnosis: F,
}

impl<F> std::fmt::Debug for CommandRunner<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandRunner").field("command", &self.command).finish_non_exhaustive()
    }
}

impl<F: Fn(Facts) -> Option<Diagnosis>> Runner for CommandRunner<F> {
    fn run(
        &mut self,
        trial: &Assignment<'_>,
        supervisor: &mut dyn Supervisor,
    ) -> Result<Ended, Trouble> {
        // The shell is there for every trial or for none: no trial is to blame.
        let not_started = |error: std::io::Error| {
            let (folder, dir) = (self.folder.display(), trial.dir.display());
            Trouble::Machine(format!(
                "the command could not be started in {folder}, with {dir} for its output: {error}"
            ))
        };
        let dir = std::path::absolute(trial.dir).map_err(not_started)?;
        if !own(&dir, trial.owner).map_err(not_started)? {
            return Err(Trouble::taken(trial.dir));
        }
        if trial.attempt > 1 && !process::end_earlier(&dir, self.grace) {
            let message = format!("an earlier attempt still runs in {}", dir.display());
            return Err(Trouble::Machine(message));
        }
        let (mut process, lines) = self.start(trial, &dir).map_err(not_started)?;
        let from_zero = dir.join(FROM_ZERO);
        let mut curve = LearningCurve {
            stretches: Stretches::new(trial.reported, trial.planned, from_zero.exists()),
            from_zero,
            direction: self.direction,
            steps: 0,
            result: None,
            has_value: false,
            layers: Vec::new(),
            checker: None,
        };
        let heard = self.listen(&lines, &mut process, &mut curve, supervisor);
        // What it says while it ends is nobody's any more, and is still taken from it.
        drop(lines);
        let cut_short = heard.inspect_err(|_| process.end())?;
        if let Some(ended) = cut_short {
            process.end();
            return Ok(ended);
        }
        // It has closed its output; it may still take a while to end.
        let status = loop {
            match process.ended() {
                Ok(Some(status)) => break status,
                Ok(None) if supervisor.interrupted() => {
                    process.end();
                    return Ok(Ended::Interrupted);
                }
                Ok(None) => std::thread::sleep(GLANCE),
                Err(error) => {
                    return Ok(Ended::Failed(format!("the command was lost: {error}")));
                }
            }
        };
        if process.is_there() {
            process.end();
        }
        if !status.success() {
            let said = process.complaint();
            let said = said.map_or_else(String::new, |said| format!(": {said}"));
            let how = status
                .code()
                .map_or_else(|| status.to_string(), |code| format!("exit code {code}"));
            return Ok(Ended::Failed(format!("the command ended with {how}{said}")));
        }
        if !curve.has_value {
            let message = "the command ended without reporting a value: print {\"value\": NUMBER}";
            return Ok(Ended::Failed(message.to_owned()));
        }
        Ok(Ended::Complete(curve.result))
    }
}

impl<F: Fn(Facts) -> Option<Diagnosis>> CommandRunner<F> {
    fn start(
        &self,
        trial: &Assignment<'_>,
        dir: &Path,
    ) -> std::io::Result<(Process, Receiver<String>)> {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(&self.command)
            .current_dir(&self.folder)
            .env("SUREFOOT_STUDY", &self.study)
            .env("SUREFOOT_TRIAL", trial.number.to_string())
            .env("SUREFOOT_ATTEMPT", trial.attempt.to_string())
            .env(system::DIR, dir)
            .env("SUREFOOT_PARAMETERS", json(&trial.point.0));
        // A search within a trial of another: parameters that this trial does not have are not those of the other.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with(PARAMETER) {
                command.env_remove(name);
            }
        }
        for (name, value) in &trial.point.0 {
            command.env(variable(name), value.to_string());
        }
        Process::start(command, dir, self.grace)
    }

    /// Takes the reports of a command until it has ended, or says how it is to end.
    fn listen(
        &self,
        lines: &Receiver<String>,
        process: &mut Process,
        curve: &mut LearningCurve,
        supervisor: &mut dyn Supervisor,
    ) -> Result<Option<Ended>, Trouble> {
        let (mut looked, mut ended) = (Instant::now(), None);
        loop {
            // What the command has started may go on printing.
            if looked.elapsed() > GLANCE {
                looked = Instant::now();
                if matches!(process.ended(), Ok(Some(_)))
                    && ended.get_or_insert(looked).elapsed() > LINGER
                {
                    return Ok(None);
                }
            }
            let line = match lines.recv_timeout(GLANCE) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) if supervisor.interrupted() => {
                    return Ok(Some(Ended::Interrupted));
                }
                Err(RecvTimeoutError::Timeout) => continue,
            };
            let order = match Line::read(&line) {
                None => Order::GoOn,
                Some(Err(message)) => {
                    let line = line.trim();
                    let message = format!("a report makes no sense: {message}: {line}");
                    return Ok(Some(Ended::Failed(message)));
                }
                Some(Ok(line)) => curve.take(&line, &self.diagnosis, supervisor)?,
            };
            match order {
                Order::GoOn if supervisor.interrupted() => {
                    return Ok(Some(Ended::Interrupted));
                }
                Order::GoOn => {}
                Order::Stop(reason) => return Ok(Some(Ended::Stopped(reason))),
                Order::Interrupt => return Ok(Some(Ended::Interrupted)),
            }
        }
    }
}

/// What the reports of a trial have come to.
struct LearningCurve {
    stretches: Stretches,
    /// The file that says to later attempts how epochs are counted.
    from_zero: PathBuf,
    direction: Direction,
    steps: u64,
    /// The value that the command said is final.
    result: Option<f64>,
    has_value: bool,
    layers: Vec<surefoot_diagnose::LayerInfo>,
    checker: Option<Checker>,
}

impl LearningCurve {
    fn take(
        &mut self,
        line: &Line,
        diagnosis: &impl Fn(Facts) -> Option<Diagnosis>,
        supervisor: &mut dyn Supervisor,
    ) -> Result<Order, Trouble> {
        self.look_at(line, diagnosis);
        let Some(value) = line.value else {
            return Ok(Order::GoOn);
        };
        self.has_value = true;
        if line.is_final {
            self.result = Some(value);
        }
        let (index, planned) = self.stretches.next(line.epoch, line.epochs);
        if index == 1 && self.stretches.begin_with_zero() {
            // Without it a later attempt is taken to count from 1.
            let _ = std::fs::write(&self.from_zero, "");
        }
        let findings = self.checker.as_mut().map(Checker::findings);
        let order = supervisor.report(&Progress {
            index,
            planned,
            value,
            operations: 0.0,
            findings: findings.unwrap_or_default(),
        })?;
        Ok(match order {
            // It has said what it came to. That cannot be saved any more.
            Order::Stop(_) if self.result.is_some() => Order::GoOn,
            order => order,
        })
    }

    /// Shows a line to the indicators. They begin with the first loss.
    fn look_at(&mut self, line: &Line, diagnosis: &impl Fn(Facts) -> Option<Diagnosis>) {
        if self.steps == 0 && line.loss.is_some() {
            let per_epoch = match (line.steps, line.epochs) {
                (Some(steps), Some(epochs)) => Some(steps.div_ceil(epochs.max(1))),
                (Some(steps), None) => Some(steps),
                // A report an epoch.
                (None, _) => line.step.is_none().then_some(1),
            };
            let facts = Facts {
                steps_per_epoch: per_epoch,
                epochs: line.epochs.or(line.steps.map(|_| 1)),
                ..Facts::default()
            };
            // Without a thread to spare the trial goes on unchecked.
            self.checker = diagnosis(facts).and_then(|diagnosis| Checker::new(diagnosis).ok());
        }
        // Steps only go forward. Without any, epochs are what there is.
        if line.loss.is_some() {
            self.steps = line.step.or(line.epoch).unwrap_or(0).max(self.steps + 1);
        }
        let Some(checker) = &mut self.checker else {
            return;
        };
        // Many report losses by the step, and layers now and then.
        if self.layers.is_empty() && !line.layers.0.is_empty() {
            self.layers = line.layer_infos();
            checker.set_layers(self.layers.clone());
        }
        // Before the step, so that a gain counts at once.
        if let Some(value) = line.value {
            checker.evaluate(&Evaluation {
                epoch: line.epoch.unwrap_or(0),
                step: self.steps,
                split: Split::Validation,
                loss: self.direction.cost(value),
                metric: None,
            });
        }
        if let Some(observation) = line.observation(self.steps, &self.layers) {
            checker.observe(&observation);
        }
    }
}

/// Makes the directory of a trial, or sees whose it is. False if there is something in it that is not this trial's.
fn own(dir: &Path, owner: &str) -> std::io::Result<bool> {
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

fn json(values: &std::collections::BTreeMap<String, Value>) -> String {
    // Words and finite numbers, which have no way to fail.
    serde_json::to_string(values).unwrap_or_default()
}

/// The variable that a parameter is in: `SUREFOOT_PARAMETER_` and its name, in capitals, with `_` for what a
/// variable cannot have.
pub fn variable(name: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_uppercase(),
        false => '_',
    };
    let name: String = name.chars().map(plain).collect();
    format!("{PARAMETER}{name}")
}
