//! Objectives that run a command: any program in any language.
//!
//! The command reads its parameters from the environment and reports on its standard output, one
//! [`ReportLine`] a line. `docs/tune.md` documents the protocol, with clients in Python and Rust.

mod keep_alive;
mod process;
mod recorded;
mod report;
mod reports;
mod steps;
mod system;

pub use recorded::{RecordedReport, recorded_reports};
pub use report::{ReportLayer, ReportLayers, ReportLine};
pub(crate) use reports::Reports;

use crate::direction::Direction;
use crate::objective::{Objective, WorkerError};
use crate::space::{Point, Value};
use crate::storage::{PASSWORD_VARIABLE, TrialState};
use crate::trial::Trial;
use keep_alive::{Closing, Program};
use process::Process;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};
use surefoot_diagnose::{Diagnosis, Facts};

/// Interval at which a silent command is checked for interruption.
const POLL: Duration = Duration::from_millis(100);
/// Time to wait for output that a child of an ended command still holds open.
const LINGER: Duration = Duration::from_secs(1);
/// File in the trial directory that names the trial it belongs to.
const OWNER: &str = "owner";
/// File in the trial directory that names the program that ran its last attempt.
const PROGRAM: &str = "program";
/// Message of a trial without a result.
const NO_VALUE: &str = "the command ended without reporting a value: print {\"value\": NUMBER}";
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
    /// Runs all trials of this worker in one process; `None` to start one for each.
    pub keep_alive: Option<KeepAlive>,
}

/// A program that stays alive between trials.
#[derive(Default)]
pub struct KeepAlive {
    /// Directory for the output of the program. Other workers have others.
    pub dir: PathBuf,
    program: Option<Program>,
}

impl KeepAlive {
    /// A program that is not started yet, with a directory for its output.
    pub fn new(dir: impl Into<PathBuf>) -> KeepAlive {
        KeepAlive { dir: dir.into(), program: None }
    }
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
        if self.keep_alive.is_some() {
            return self.run_kept(trial, &dir);
        }
        let (mut process, lines) = self.start(trial, &dir).map_err(|e| not_started(e, &dir))?;
        let mut reports = Reports::new(trial, &dir, self.direction);
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
            return failed(NO_VALUE.to_owned());
        }
        Ok(trial.complete(reports.result))
    }
}

impl<F: Fn(Facts) -> Option<Diagnosis>> CommandObjective<F> {
    fn start(&self, trial: &Trial<'_>, dir: &Path) -> std::io::Result<(Process, Receiver<String>)> {
        let mut command = self.shell(dir);
        command
            .env("SUREFOOT_TRIAL", trial.number().to_string())
            .env("SUREFOOT_ATTEMPT", trial.attempt().to_string())
            .env("SUREFOOT_PARAMETERS", json(trial.point()));
        // A search may run inside a trial of another search, whose parameters are not ours.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with(PARAMETER) {
                command.env_remove(name);
            }
        }
        for (name, value) in &trial.point().0 {
            command.env(variable(name), value.to_string());
        }
        Process::start(command, dir, self.grace, false)
    }

    /// Sends a trial to the program that stays alive, and reads its reports.
    fn run_kept(&mut self, trial: &mut Trial<'_>, dir: &Path) -> Result<TrialState, WorkerError> {
        let machine = |error: std::io::Error| {
            WorkerError::Machine(format!("cannot run `{}`: {error}", self.command))
        };
        let mut kept = self.keep_alive.take().unwrap_or_default();
        let home = std::path::absolute(&kept.dir).map_err(machine)?;
        self.end_other_program(dir, &home);
        let sent = kept.program.as_mut().map(|program| program.request(trial, dir));
        if !matches!(sent, Some(Ok(()))) {
            let mut program =
                Program::start(self.shell(&home), &home, self.grace).map_err(machine)?;
            program.request(trial, dir).map_err(machine)?;
            kept.program = Some(program);
        }
        let outcome = match &mut kept.program {
            Some(program) => self.read_kept(program, trial, dir),
            None => Ok(KeptOutcome::Broken(TrialState::Waiting)),
        };
        // A program whose trial did not end by itself is not used again.
        if !matches!(outcome, Ok(KeptOutcome::Ready(_))) {
            kept.program.take().into_iter().for_each(|mut program| program.process.end());
        }
        self.keep_alive = Some(kept);
        Ok(match outcome? {
            KeptOutcome::Ready(state) | KeptOutcome::Broken(state) => state,
        })
    }

    /// Ends the program of a dead worker, which would write to the same checkpoint.
    fn end_other_program(&self, dir: &Path, home: &Path) {
        let mark = dir.join(PROGRAM);
        let before = std::fs::read_to_string(&mark).map(PathBuf::from);
        if let Ok(before) = before.as_ref().map(PathBuf::as_path)
            && before != home
        {
            process::end_earlier(before, self.grace);
        }
        // If this fails, the program of this worker survives its death until it reports.
        let _ = std::fs::write(mark, home.display().to_string());
    }

    fn read_kept(
        &self,
        program: &mut Program,
        trial: &mut Trial<'_>,
        dir: &Path,
    ) -> Result<KeptOutcome, WorkerError> {
        let mut reports = Reports::new(trial, dir, self.direction);
        let mut requested: Option<(TrialState, Instant)> = None;
        loop {
            if let Some((state, since)) = &requested
                && since.elapsed() > self.grace
            {
                return Ok(KeptOutcome::Broken(state.clone()));
            }
            let line = match program.lines.recv_timeout(POLL) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) if requested.is_none() && trial.is_interrupted() => {
                    return Ok(KeptOutcome::Broken(TrialState::Waiting));
                }
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => {
                    let state = requested.map(|(state, _)| state);
                    return Ok(KeptOutcome::Broken(state.unwrap_or_else(|| {
                        let stderr = program.process.last_error();
                        let stderr = stderr.map_or_else(String::new, |line| format!(": {line}"));
                        let message = format!("the program exited during the trial{stderr}");
                        TrialState::Failed { message }
                    })));
                }
            };
            match (Closing::read(&line), &requested) {
                (Some(_), Some((state, _))) => return Ok(KeptOutcome::Ready(state.clone())),
                (Some(Closing::Error(message)), None) => {
                    return Ok(KeptOutcome::Ready(TrialState::Failed { message }));
                }
                (Some(Closing::End(_)), None) if !reports.has_value => {
                    let message = NO_VALUE.to_owned();
                    return Ok(KeptOutcome::Ready(TrialState::Failed { message }));
                }
                (Some(Closing::End(_)), None) => {
                    return Ok(KeptOutcome::Ready(trial.complete(reports.result)));
                }
                (None, _) => {}
            }
            let report = match ReportLine::read(&line) {
                None => continue,
                Some(Err(error)) => {
                    let message = format!("invalid report: {error}: {}", line.trim());
                    return Ok(KeptOutcome::Broken(TrialState::Failed { message }));
                }
                Some(Ok(report)) => report,
            };
            if requested.is_none() {
                let state = reports.take(&line, &report, &self.diagnosis, trial)?;
                let state = state.or_else(|| trial.is_interrupted().then_some(TrialState::Waiting));
                requested = state.map(|state| (state, Instant::now()));
            }
            // A program that does not read the answer has ended; its output says so.
            if report.value.is_some() {
                let _ = program.answer(requested.is_some());
            }
        }
    }

    /// The command, in an environment that names a directory.
    fn shell(&self, dir: &Path) -> Command {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(&self.command)
            .current_dir(&self.folder)
            .env("SUREFOOT_STUDY", &self.study)
            .env(system::DIR, dir)
            // Programs do not need the store, and their environment is visible to others.
            .env_remove(PASSWORD_VARIABLE);
        command
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
                Some(Ok(report)) => reports.take(&line, &report, &self.diagnosis, trial)?,
            };
            match requested {
                None if trial.is_interrupted() => return Ok(Some(TrialState::Waiting)),
                None => {}
                Some(state) => return Ok(Some(state)),
            }
        }
    }
}

/// End of a trial in a program that stays alive.
enum KeptOutcome {
    /// The program waits for the next trial.
    Ready(TrialState),
    /// The program has to be ended.
    Broken(TrialState),
}

/// Creates the directory of a trial and marks it. Returns false if it contains anything else.
pub(crate) fn take_ownership(dir: &Path, owner: &str) -> std::io::Result<bool> {
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
