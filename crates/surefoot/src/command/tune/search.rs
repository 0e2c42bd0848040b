//! Looks after the workers of a search, and shows what becomes of the trials.

use super::{Arguments, Project};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::screen::Screen;
use crate::output::tune::{Standing, Summary};
use crate::output::{Console, to_stderr};
use std::collections::{BTreeSet, VecDeque};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use surefoot_tune::store::{Store, View, host};

/// How often the store is looked at.
const GLANCE: Duration = Duration::from_millis(200);
/// How often a worker that died is started again before it is left dead.
const LIVES: u32 = 100;
/// How long those who were asked to leave are waited for.
const FAREWELL: Duration = Duration::from_secs(30);

pub(super) fn run(
    project: &Project,
    arguments: &Arguments,
    console: &Console,
) -> Result<Exit, Failure> {
    std::fs::create_dir_all(&project.dir)
        .map_err(|error| Failure::not_created(&project.dir, &error))?;
    let mut store = Store::open(&project.store)?;
    let study = store.join(&project.entry())?;
    let mut view = View::new(&study);
    store.refresh_reports(&mut view)?;
    let screen = Screen::new(console);
    let crew = crew_name();
    let mut standing = Standing::new(&project.study, &view, &crew);
    let name = store.name().to_owned();
    standing.open(&name, &screen);
    let interrupt = {
        let (screen, quiet) = (screen.clone(), arguments.quiet);
        Interrupt::listen(move || {
            if !quiet {
                let text = "stopping after this step; Ctrl-C again stops at once";
                screen.above(|| to_stderr(text));
            }
        })?
    };
    let begun = Instant::now();
    let mut crew = Crew::start(project, arguments, begun, crew)?;
    let (mut asked_to_leave, mut given_up) = (None, false);
    let tell_warnings = |crew: &mut Crew<'_>| {
        for warning in crew.warnings() {
            if !arguments.quiet {
                screen.above(|| to_stderr(&warning));
            }
        }
    };
    while crew.look_after(asked_to_leave.is_some())? {
        tell_warnings(&mut crew);
        for (worker, status) in crew.killed() {
            let limits = project.study.settings.limits();
            let trials = store.bury(study.id, &worker, &limits)?;
            let trials: Vec<String> = trials.iter().map(|n| format!(" at trial {n}")).collect();
            if !arguments.quiet {
                let text = format!("  a worker was killed ({status}){}", trials.join(","));
                screen.above(|| to_stderr(&text));
            }
        }
        crew.replace_killed()?;
        store.refresh_reports(&mut view)?;
        standing.update(&view, begun.elapsed(), &screen);
        match asked_to_leave {
            None if interrupt.asked() || standing.is_hopeless() => {
                given_up = !interrupt.asked();
                // At a terminal they were asked too; a signal to this process alone they do not see.
                crew.signal(rustix::process::Signal::TERM);
                asked_to_leave = Some(Instant::now());
            }
            Some(since) if since.elapsed() > FAREWELL => {
                crew.signal(rustix::process::Signal::KILL);
            }
            _ => {}
        }
        std::thread::sleep(GLANCE);
    }
    tell_warnings(&mut crew);
    store.refresh_reports(&mut view)?;
    standing.update(&view, begun.elapsed(), &screen);
    screen.clear();
    let summary = Summary::of(&project.study, &view, &name, begun.elapsed());
    summary.show(&project.dir, console);
    if let Some(failure) = crew.failure() {
        return Err(failure);
    }
    if interrupt.asked() {
        console.note("interrupted; the same command goes on with it");
        return Ok(Exit::Interrupted);
    }
    let remedy = "they stay so in the store: when the reason is mended, try more (--trials), or begin anew elsewhere (--runs)";
    if given_up {
        let failed = standing.failures_in_a_row();
        console.note(&format!(
            "given up, because the last {failed} trials have all failed; {remedy}"
        ));
        return Ok(Exit::No);
    }
    if standing.failures_only() > 0 {
        console.note(&format!("all trials of this search have failed; {remedy}"));
    }
    Ok(match summary.best() {
        Some(_) => Exit::Done,
        None => Exit::No,
    })
}

/// What the workers of this process are called. Machines may share a name, and processes of containers a number.
fn crew_name() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default().as_micros();
    format!("{}-{}-{since:x}", host(), std::process::id())
}

/// The workers on this machine.
struct Crew<'a> {
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
    fn start(
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
            crew.hands.push(Hand {
                name,
                child: Some(child),
                voice,
                killed: None,
                lives: LIVES,
            });
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
        for name in &self.arguments.stopper {
            command.arg("--stopper").arg(name);
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
    fn warnings(&mut self) -> Vec<String> {
        let said = self.hands.iter().flat_map(|hand| hand.voice.said());
        let warnings = said.filter(|line| line.starts_with("warning:"));
        let new = warnings.filter(|line| self.warnings.insert(line.clone()));
        new.collect()
    }

    /// Who was killed and is to be replaced, by name.
    fn killed(&self) -> Vec<(String, ExitStatus)> {
        let hands = self.hands.iter();
        hands
            .filter_map(|hand| Some((hand.name.clone(), hand.killed?)))
            .collect()
    }

    /// Starts those again that were killed.
    fn replace_killed(&mut self) -> Result<(), Failure> {
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
    fn look_after(&mut self, leaving: bool) -> Result<bool, Failure> {
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

    fn signal(&self, signal: rustix::process::Signal) {
        for child in self.hands.iter().filter_map(|hand| hand.child.as_ref()) {
            let id = i32::try_from(child.id()).ok();
            if let Some(process) = id.and_then(rustix::process::Pid::from_raw) {
                // One that is gone needs no signal.
                let _ = rustix::process::kill_process(process, signal);
            }
        }
    }

    fn failure(self) -> Option<Failure> {
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
        let listener = std::thread::Builder::new()
            .name("voice".to_owned())
            .spawn(move || {
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
        Ok(Voice {
            said,
            listener: Some(listener),
        })
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
