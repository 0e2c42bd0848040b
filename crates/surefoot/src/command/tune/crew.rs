//! The workers of a search on this machine: processes of this program.

use super::{Arguments, Project};
use crate::failure::Failure;
use std::collections::{BTreeSet, VecDeque};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use surefoot_tune::store::host;

/// How often a worker that died is started again before it is left dead.
const LIVES: u32 = 100;

/// What the workers of this process are called. Machines may share a name, and processes of containers a number.
pub(super) fn crew_name() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default().as_micros();
    format!("{}-{}-{since:x}", host(), std::process::id())
}

/// The workers on this machine.
pub(super) struct Crew<'a> {
    project: &'a Project,
    arguments: &'a Arguments,
    begun: Instant,
    name: String,
    hands: Vec<Hand>,
    /// What the first that could not go on said.
    failure: Option<String>,
    /// What they were heard to warn of.
    warnings: BTreeSet<String>,
}

/// A worker and what is left of it.
struct Hand {
    name: String,
    child: Option<Child>,
    voice: Voice,
    /// How it was killed, if nobody has taken its place yet.
    killed: Option<ExitStatus>,
    lives: u32,
}

impl<'a> Crew<'a> {
    pub(super) fn start(
        project: &'a Project,
        arguments: &'a Arguments,
        begun: Instant,
        name: String,
    ) -> Result<Self, Failure> {
        let mut crew = Self {
            project,
            arguments,
            begun,
            name,
            hands: Vec::new(),
            failure: None,
            warnings: BTreeSet::new(),
        };
        for number in 1..=project.workers {
            let name = format!("{}-{number}", crew.name);
            let (child, voice) = crew.hire(&name)?;
            crew.hands.push(Hand { name, child: Some(child), voice, killed: None, lives: LIVES });
        }
        Ok(crew)
    }

    /// Starts this program again as a worker.
    fn hire(&self, name: &str) -> Result<(Child, Voice), Failure> {
        let broken =
            |error: std::io::Error| Failure::broken(format!("cannot start a worker: {error}"));
        let program = std::env::current_exe().map_err(broken)?;
        let mut command = Command::new(program);
        command
            .arg("tune")
            .arg(&self.arguments.study)
            .arg("--worker")
            .arg(name)
            .arg("--parent")
            .arg(std::process::id().to_string())
            .arg("--store")
            .arg(&self.project.store)
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
            ("--sampler", self.arguments.sampler.clone()),
            // What is left of it.
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
            // What it says is told apart by how it begins.
            .env("NO_COLOR", "1")
            .env_remove("CLICOLOR_FORCE")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().map_err(broken)?;
        let voice = Voice::of(&mut child).map_err(broken)?;
        Ok((child, voice))
    }

    /// What workers warn of, each thing once.
    pub(super) fn warnings(&mut self) -> Vec<String> {
        let said = self.hands.iter().flat_map(|hand| hand.voice.said());
        let warnings = said.filter(|line| line.starts_with("warning:"));
        let new = warnings.filter(|line| self.warnings.insert(line.clone()));
        new.collect()
    }

    /// Who was killed and is to be replaced, by name.
    pub(super) fn killed(&self) -> Vec<(String, ExitStatus)> {
        let hands = self.hands.iter();
        hands.filter_map(|hand| Some((hand.name.clone(), hand.killed?))).collect()
    }

    /// Starts those again that were killed.
    pub(super) fn replace_killed(&mut self) -> Result<(), Failure> {
        for index in 0..self.hands.len() {
            if self.hands[index].killed.take().is_some() {
                let name = self.hands[index].name.clone();
                let (child, voice) = self.hire(&name)?;
                self.hands[index].child = Some(child);
                self.hands[index].voice = voice;
            }
        }
        Ok(())
    }

    /// Sees who has ended. False when none is left.
    pub(super) fn look_after(&mut self, leaving: bool) -> Result<bool, Failure> {
        for index in 0..self.hands.len() {
            let hand = &mut self.hands[index];
            let Some(child) = &mut hand.child else {
                continue;
            };
            let status = match child.try_wait() {
                Ok(None) => continue,
                Ok(Some(status)) => status,
                Err(error) => {
                    return Err(Failure::broken(format!("a worker was lost: {error}")));
                }
            };
            let said = hand.voice.last_words();
            hand.child = None;
            match status.code() {
                Some(0 | 130) => {}
                Some(code) => {
                    let said = said.trim();
                    let said = said.strip_prefix("error:").unwrap_or(said).trim();
                    let message = match said {
                        "" => format!("a worker ended with exit code {code}"),
                        said => said.to_owned(),
                    };
                    self.failure.get_or_insert(message);
                }
                None if leaving || hand.lives == 0 => {
                    let message = format!("a worker was killed ({status})");
                    if !leaving {
                        self.failure.get_or_insert(message);
                    }
                }
                None => {
                    hand.lives -= 1;
                    hand.killed = Some(status);
                }
            }
        }
        let mut hands = self.hands.iter();
        Ok(hands.any(|hand| hand.child.is_some() || hand.killed.is_some()))
    }

    pub(super) fn signal(&self, signal: rustix::process::Signal) {
        for child in self.hands.iter().filter_map(|hand| hand.child.as_ref()) {
            let id = i32::try_from(child.id()).ok();
            if let Some(process) = id.and_then(rustix::process::Pid::from_raw) {
                // One that is gone needs no signal.
                let _ = rustix::process::kill_process(process, signal);
            }
        }
    }

    pub(super) fn failure(self) -> Option<Failure> {
        self.failure.map(Failure::broken)
    }
}

/// What a worker says on its standard error, which nobody may leave unread: a full pipe would stop it.
struct Voice {
    said: Arc<Mutex<VecDeque<String>>>,
    listener: Option<JoinHandle<()>>,
}

impl Voice {
    /// How many lines are kept, the last ones.
    const KEPT: usize = 100;

    fn of(child: &mut Child) -> std::io::Result<Voice> {
        let said = Arc::new(Mutex::new(VecDeque::new()));
        let heard = Arc::clone(&said);
        let stderr = child.stderr.take();
        let listener = std::thread::Builder::new().name("voice".to_owned()).spawn(move || {
            let lines = stderr.into_iter().flat_map(|it| BufReader::new(it).lines());
            // What cannot be read cannot be told.
            for line in lines.map_while(Result::ok) {
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                if heard.len() == Voice::KEPT {
                    heard.pop_front();
                }
                heard.push_back(line);
            }
        })?;
        Ok(Voice { said, listener: Some(listener) })
    }

    fn said(&self) -> Vec<String> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.iter().cloned().collect()
    }

    /// What one that has ended said at last, without what it warned of before.
    fn last_words(&mut self) -> String {
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        let said = self.said();
        let words = said.iter().filter(|line| !line.starts_with("warning:"));
        words.map(String::as_str).collect::<Vec<&str>>().join("\n")
    }
}
