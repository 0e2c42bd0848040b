//! Trials that are commands: any program in any language.
//!
//! The command gets its parameters in its environment and reports on its standard output
//! ([`Line`](crate::report::Line)). `docs/tune.md` has the protocol, with a client for Python and one
//! for Rust.

use crate::checker::Checker;
use crate::report::Line;
use crate::runner::{Assignment, Ended, Order, Progress, Runner, Supervisor, Trouble};
use crate::space::Value;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};
use surefoot_diagnose::{Diagnosis, Facts};

/// How often a silent command is left alone to see whether it should stop.
const GLANCE: Duration = Duration::from_millis(100);
/// How much of what went wrong is told.
const TAIL: usize = 400;

/// Runs a command of the system's shell for every trial.
pub struct CommandRunner<F> {
    /// The command.
    pub command: String,
    /// The directory in which it is run.
    pub folder: PathBuf,
    /// The name of the study.
    pub study: String,
    /// How long a command that was asked to stop may take before it is killed.
    pub grace: Duration,
    /// Makes the diagnosis of a trial; `None` if there is to be none.
    pub diagnosis: F,
}

impl<F> std::fmt::Debug for CommandRunner<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CommandRunner")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

impl<F: Fn(Facts) -> Option<Diagnosis>> Runner for CommandRunner<F> {
    fn run(
        &mut self,
        trial: &Assignment<'_>,
        supervisor: &mut dyn Supervisor,
    ) -> Result<Ended, Trouble> {
        let started = match self.start(trial) {
            Ok(started) => started,
            // The shell is there for every trial or for none: no trial is to blame.
            Err(error) => {
                let (folder, dir) = (self.folder.display(), trial.dir.display());
                let message = format!(
                    "the command could not be started in {folder}, with {dir} for its output: {error}"
                );
                return Err(Trouble::Machine(message));
            }
        };
        let mut course = Course {
            reports: 0,
            known: trial.reported,
            steps: 0,
            result: None,
            has_value: false,
            layers: Vec::new(),
            checker: None,
        };
        let Started {
            child,
            lines,
            errors,
        } = started;
        let mut child = Group { child };
        loop {
            let line = match lines.recv_timeout(GLANCE) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    if supervisor.interrupted() {
                        child.end(self.grace);
                        return Ok(Ended::Interrupted);
                    }
                    continue;
                }
            };
            let order = match Line::read(&line) {
                None => Order::GoOn,
                Some(Err(message)) => {
                    child.end(self.grace);
                    let line = line.trim();
                    return Ok(Ended::Failed(format!(
                        "a report makes no sense: {message}: {line}"
                    )));
                }
                Some(Ok(line)) => course.take(&line, &self.diagnosis, supervisor)?,
            };
            match order {
                Order::GoOn if supervisor.interrupted() => {
                    child.end(self.grace);
                    return Ok(Ended::Interrupted);
                }
                Order::GoOn => {}
                Order::Stop(reason) => {
                    child.end(self.grace);
                    return Ok(Ended::Stopped(reason));
                }
                Order::Interrupt => {
                    child.end(self.grace);
                    return Ok(Ended::Interrupted);
                }
            }
        }
        // It has closed its output; it may still take a while to end.
        let status = loop {
            match child.child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if supervisor.interrupted() => {
                    child.end(self.grace);
                    return Ok(Ended::Interrupted);
                }
                Ok(None) => std::thread::sleep(GLANCE),
                Err(error) => {
                    return Ok(Ended::Failed(format!("the command was lost: {error}")));
                }
            }
        };
        if !status.success() {
            let said = tail(errors);
            return Ok(Ended::Failed(format!(
                "the command ended with {status}{said}"
            )));
        }
        if !course.has_value {
            let message = "the command ended without reporting a value: print {\"value\": NUMBER}";
            return Ok(Ended::Failed(message.to_owned()));
        }
        Ok(Ended::Complete(course.result))
    }
}

struct Started {
    child: Child,
    lines: Receiver<String>,
    /// What it says on its standard error, from where this attempt began.
    errors: Option<(File, u64)>,
}

impl<F> CommandRunner<F> {
    fn start(&self, trial: &Assignment<'_>) -> std::io::Result<Started> {
        std::fs::create_dir_all(trial.dir)?;
        let dir = std::path::absolute(trial.dir)?;
        let errors = append(&dir.join("errors.log"))?;
        let from = errors.metadata()?.len();
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(&self.command)
            .current_dir(&self.folder)
            // So that what it starts is stopped with it.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors)
            .env("SUREFOOT_STUDY", &self.study)
            .env("SUREFOOT_TRIAL", trial.number.to_string())
            .env("SUREFOOT_ATTEMPT", trial.attempt.to_string())
            .env("SUREFOOT_DIR", &dir)
            .env("SUREFOOT_PARAMETERS", json(&trial.point.0));
        for (name, value) in &trial.point.0 {
            command.env(variable(name), value.to_string());
        }
        let mut child = command.spawn()?;
        let mut log = append(&dir.join("output.log"))?;
        let (sender, lines) = channel();
        if let Some(output) = child.stdout.take() {
            std::thread::Builder::new()
                .name("reports".to_owned())
                .spawn(move || {
                    for line in BufReader::new(output).split(b'\n') {
                        let Ok(line) = line else { return };
                        let line = String::from_utf8_lossy(&line).into_owned();
                        // The log is for people; a full disk must not end the trial.
                        let _ = writeln!(log, "{line}");
                        if sender.send(line).is_err() {
                            return;
                        }
                    }
                })?;
        }
        let errors = File::open(dir.join("errors.log")).ok();
        Ok(Started {
            child,
            lines,
            errors: errors.map(|file| (file, from)),
        })
    }
}

/// What the reports of a trial have come to.
struct Course {
    reports: u64,
    /// Those of earlier attempts.
    known: u64,
    steps: u64,
    /// The value that the command said is final.
    result: Option<f64>,
    has_value: bool,
    layers: Vec<surefoot_diagnose::LayerInfo>,
    checker: Option<Checker>,
}

impl Course {
    fn take(
        &mut self,
        line: &Line,
        diagnosis: &impl Fn(Facts) -> Option<Diagnosis>,
        supervisor: &mut dyn Supervisor,
    ) -> Result<Order, Trouble> {
        if line.loss.is_some() {
            self.observe(line, diagnosis);
        }
        let Some(value) = line.value else {
            return Ok(Order::GoOn);
        };
        self.has_value = true;
        if line.is_final {
            self.result = Some(value);
        }
        self.reports = match (self.reports, line.epoch) {
            // It goes on from a checkpoint.
            (0, Some(epoch)) if (1..=self.known + 1).contains(&epoch) => epoch,
            (reports, _) => reports + 1,
        };
        supervisor.report(&Progress {
            index: self.reports,
            planned: line.epochs,
            value,
            operations: 0.0,
            findings: self
                .checker
                .as_mut()
                .map(Checker::findings)
                .unwrap_or_default(),
        })
    }

    fn observe(&mut self, line: &Line, diagnosis: &impl Fn(Facts) -> Option<Diagnosis>) {
        if self.steps == 0 {
            self.layers = line.layer_infos();
            let per_epoch = match (line.steps, line.epochs) {
                (Some(steps), Some(epochs)) => Some(steps.div_ceil(epochs.max(1))),
                (Some(steps), None) => Some(steps),
                // A report an epoch.
                (None, _) => line.step.is_none().then_some(1),
            };
            let facts = Facts {
                layers: self.layers.clone(),
                steps_per_epoch: per_epoch,
                epochs: line.epochs.or(line.steps.map(|_| 1)),
                ..Facts::default()
            };
            // Without a thread to spare the trial goes on unchecked.
            self.checker = diagnosis(facts).and_then(|diagnosis| Checker::new(diagnosis).ok());
        }
        // Steps only go forward.
        self.steps = line.step.unwrap_or(0).max(self.steps + 1);
        if let Some(checker) = &mut self.checker
            && let Some(observation) = line.observation(self.steps, &self.layers)
        {
            checker.observe(&observation);
        }
    }
}

/// A process with all that it has started.
struct Group {
    child: Child,
}

impl Group {
    /// Asks it to end, and kills it if it does not.
    fn end(&mut self, grace: Duration) {
        self.signal(rustix::process::Signal::TERM);
        let asked = Instant::now();
        while asked.elapsed() < grace && self.is_there() {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.signal(rustix::process::Signal::KILL);
        let _ = self.child.wait();
    }

    /// Whether any of them is left. The shell is often the first to go, while the program that it has
    /// started is still saving its work.
    fn is_there(&mut self) -> bool {
        // One that has ended is there until somebody has asked for its status.
        let _ = self.child.try_wait();
        let test = rustix::process::test_kill_process_group;
        self.id().is_some_and(|group| test(group).is_ok())
    }

    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(group) = self.id() {
            // What is gone already needs no signal.
            let _ = rustix::process::kill_process_group(group, signal);
        }
    }

    fn id(&self) -> Option<rustix::process::Pid> {
        let id = i32::try_from(self.child.id()).ok();
        id.and_then(rustix::process::Pid::from_raw)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Nobody would look after it any more.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end(Duration::ZERO);
        }
    }
}

fn append(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// The last line of what it said went wrong: where Python has the error.
fn tail(errors: Option<(File, u64)>) -> String {
    let Some((mut file, from)) = errors else {
        return String::new();
    };
    let mut said = Vec::new();
    let length = file.metadata().map_or(from, |data| data.len());
    let from = from.max(length.saturating_sub(TAIL as u64));
    if file.seek(SeekFrom::Start(from)).is_err() || file.read_to_end(&mut said).is_err() {
        return String::new();
    }
    let said = String::from_utf8_lossy(&said);
    match said.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        None => String::new(),
        Some(last) => format!(": {last}"),
    }
}

fn json(values: &std::collections::BTreeMap<String, Value>) -> String {
    // Words and finite numbers, which have no way to fail.
    serde_json::to_string(values).unwrap_or_default()
}

/// The variable that a parameter is in: `SUREFOOT_` and its name, in capitals, with `_` for what a
/// variable cannot have.
pub fn variable(name: &str) -> String {
    let plain = |c: char| match c.is_ascii_alphanumeric() {
        true => c.to_ascii_uppercase(),
        false => '_',
    };
    let name: String = name.chars().map(plain).collect();
    format!("SUREFOOT_PARAMETER_{name}")
}
