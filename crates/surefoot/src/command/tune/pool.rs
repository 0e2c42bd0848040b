//! The worker processes of a search on this machine.

use super::{Arguments, FROM_STDIN, Project};
use crate::exit::Exit;
use crate::failure::Failure;
use std::collections::{BTreeSet, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use surefoot_tune::storage::{PASSWORD_VARIABLE, host, with_password};

/// Maximum number of restarts of a killed worker.
const MAX_RESTARTS: u32 = 100;

/// Common prefix of the names of this pool's workers. Machines may share a host name and containers a
/// process id, so it includes the time.
pub(super) fn pool_name() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default().as_micros();
    format!("{}-{}-{since:x}", host(), std::process::id())
}

/// The worker processes on this machine.
pub(super) struct WorkerPool<'a> {
    project: &'a Project,
    arguments: &'a Arguments,
    begun: Instant,
    name: String,
    workers: Vec<WorkerProcess>,
    /// Exit code and message of the first worker that failed.
    failure: Option<(i32, String)>,
    /// Warnings printed so far.
    warnings: BTreeSet<String>,
}

struct WorkerProcess {
    name: String,
    child: Option<Child>,
    stderr: StderrReader,
    /// Status of a killed process that was not restarted yet.
    killed: Option<ExitStatus>,
    restarts_left: u32,
}

impl<'a> WorkerPool<'a> {
    pub(super) fn start(
        project: &'a Project,
        arguments: &'a Arguments,
        begun: Instant,
        name: String,
    ) -> Result<Self, Failure> {
        let mut pool = Self {
            project,
            arguments,
            begun,
            name,
            workers: Vec::new(),
            failure: None,
            warnings: BTreeSet::new(),
        };
        for number in 1..=project.workers {
            let name = format!("{}-{number}", pool.name);
            let (child, stderr) = pool.spawn(&name)?;
            let child = Some(child);
            let restarts_left = MAX_RESTARTS;
            pool.workers.push(WorkerProcess { name, child, stderr, killed: None, restarts_left });
        }
        Ok(pool)
    }

    /// Starts this program as a worker.
    fn spawn(&self, name: &str) -> Result<(Child, StderrReader), Failure> {
        let broken =
            |error: std::io::Error| Failure::broken(format!("cannot start a worker: {error}"));
        let mut command = crate::worker_command().map_err(broken)?;
        command
            .arg("tune")
            .arg(&self.arguments.study)
            .arg("--worker")
            .arg(name)
            .arg("--parent")
            .arg(std::process::id().to_string())
            .arg("--store")
            .arg(FROM_STDIN)
            .arg("--runs")
            .arg(&self.arguments.runs)
            .arg("--workers")
            .arg(self.project.workers.to_string())
            .arg("--threads")
            .arg(self.project.threads.to_string())
            .arg("--device")
            .arg(self.arguments.device.to_string());
        for (key, value) in &self.arguments.settings {
            command.arg("--set").arg(format!("{key}={value}"));
        }
        let options = [
            ("--trials", self.arguments.trials.map(|n| n.to_string())),
            ("--seed", self.arguments.seed.map(|n| n.to_string())),
            ("--scheduler", self.arguments.scheduler.clone()),
            ("--sampler", self.arguments.sampler.clone()),
            // The remaining time.
            (
                "--budget",
                self.project.study.settings.time.map(|time| {
                    let left = time.saturating_sub(self.begun.elapsed());
                    format!("{}s", left.as_secs_f64().max(1e-3))
                }),
            ),
        ];
        for (option, value) in options {
            if let Some(value) = value {
                command.arg(option).arg(value);
            }
        }
        for name in &self.arguments.pruner {
            command.arg("--pruner").arg(name);
        }
        command
            // Warnings and errors are recognized by their prefix.
            .env("NO_COLOR", "1")
            .env_remove("CLICOLOR_FORCE")
            .env_remove(PASSWORD_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(broken)?;
        let stderr = StderrReader::start(&mut child).map_err(broken)?;
        // The URL may contain a password, which arguments and variables would show to others. A worker that has
        // ended already is noticed by `poll`.
        if let Some(mut stdin) = child.stdin.take() {
            let _ = writeln!(stdin, "{}", with_password(&self.project.store));
        }
        Ok((child, stderr))
    }

    /// Returns new warnings of the workers, each once.
    pub(super) fn warnings(&mut self) -> Vec<String> {
        let lines = self.workers.iter().flat_map(|worker| worker.stderr.lines());
        let warnings = lines.filter(|line| line.starts_with("warning:"));
        let new = warnings.filter(|line| self.warnings.insert(line.clone()));
        new.collect()
    }

    /// Workers that were killed and not restarted yet.
    pub(super) fn killed(&self) -> Vec<(String, ExitStatus)> {
        let workers = self.workers.iter();
        workers.filter_map(|worker| Some((worker.name.clone(), worker.killed?))).collect()
    }

    /// Restarts killed workers.
    pub(super) fn restart_killed(&mut self) -> Result<(), Failure> {
        for index in 0..self.workers.len() {
            if self.workers[index].killed.take().is_some() {
                let name = self.workers[index].name.clone();
                let (child, stderr) = self.spawn(&name)?;
                self.workers[index].child = Some(child);
                self.workers[index].stderr = stderr;
            }
        }
        Ok(())
    }

    /// Collects workers that have ended. Returns false when none is left.
    pub(super) fn poll(&mut self, stopping: bool) -> Result<bool, Failure> {
        for worker in &mut self.workers {
            let Some(child) = &mut worker.child else {
                continue;
            };
            let status = match child.try_wait() {
                Ok(None) => continue,
                Ok(Some(status)) => status,
                Err(error) => {
                    return Err(Failure::broken(format!("cannot wait for a worker: {error}")));
                }
            };
            let message = worker.stderr.finish();
            worker.child = None;
            match status.code() {
                Some(0 | 130) => {}
                Some(code) => {
                    let message = message.trim();
                    let message = message.strip_prefix("error:").unwrap_or(message).trim();
                    let message = match message {
                        "" => format!("a worker ended with exit code {code}"),
                        message => message.to_owned(),
                    };
                    self.failure.get_or_insert((code, message));
                }
                None if stopping => {}
                None if worker.restarts_left == 0 => {
                    let message = format!("a worker was killed ({status})");
                    self.failure.get_or_insert((Exit::Broken as i32, message));
                }
                None => {
                    worker.restarts_left -= 1;
                    worker.killed = Some(status);
                }
            }
        }
        let mut workers = self.workers.iter();
        Ok(workers.any(|worker| worker.child.is_some() || worker.killed.is_some()))
    }

    pub(super) fn signal(&self, signal: rustix::process::Signal) {
        for child in self.workers.iter().filter_map(|worker| worker.child.as_ref()) {
            let id = i32::try_from(child.id()).ok();
            if let Some(process) = id.and_then(rustix::process::Pid::from_raw) {
                // Fails if it has ended already.
                let _ = rustix::process::kill_process(process, signal);
            }
        }
    }

    pub(super) fn failure(self) -> Option<Failure> {
        self.failure.map(|(code, message)| match code == Exit::WrongInput as i32 {
            true => Failure::input(message),
            false => Failure::broken(message),
        })
    }
}

/// Reads the standard error of a worker, which would block on a full pipe.
struct StderrReader {
    lines: Arc<Mutex<VecDeque<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl StderrReader {
    /// Number of lines to keep.
    const KEPT: usize = 100;

    fn start(child: &mut Child) -> std::io::Result<StderrReader> {
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let shared = Arc::clone(&lines);
        let stderr = child.stderr.take();
        let thread = std::thread::Builder::new().name("stderr".to_owned()).spawn(move || {
            let lines = stderr.into_iter().flat_map(|stderr| BufReader::new(stderr).lines());
            for line in lines.map_while(Result::ok) {
                let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
                if kept.len() == StderrReader::KEPT {
                    kept.pop_front();
                }
                kept.push_back(line);
            }
        })?;
        Ok(StderrReader { lines, thread: Some(thread) })
    }

    fn lines(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().cloned().collect()
    }

    /// Waits for the end of the output and returns it without warnings.
    fn finish(&mut self) -> String {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let lines = self.lines();
        let lines = lines.iter().filter(|line| !line.starts_with("warning:"));
        lines.map(String::as_str).collect::<Vec<&str>>().join("\n")
    }
}
