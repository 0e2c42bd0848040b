//! A program that stays alive between trials.
//!
//! Its imports and data are loaded once. It reads one [`Request`] per line on its standard input and reports on its
//! standard output as any command does. Every report with a value is answered with an [`Answer`]. The program ends a
//! trial with [`{"end": true}` or `{"error": "..."}`](Closing), and exits when its input is closed.

use super::process::Process;
use crate::space::Point;
use crate::trial::Trial;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::Path;
use std::process::{ChildStdin, Command};
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// A trial for the program to run.
#[derive(Serialize)]
struct Request<'a> {
    trial: u64,
    attempt: u32,
    parameters: &'a Point,
    /// Directory for checkpoints, the same for every attempt.
    dir: &'a Path,
    /// Number of epochs reported by earlier attempts.
    reported: u64,
}

/// Answer to a report.
#[derive(Serialize)]
struct Answer {
    /// True if the program should save a checkpoint and end the trial.
    stop: bool,
}

/// The last line of a trial.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Closing {
    /// The trial has returned.
    End(bool),
    /// The trial has failed.
    Error(String),
}

impl Closing {
    /// Reads a line; `None` if it is anything else.
    pub(super) fn read(line: &str) -> Option<Closing> {
        line.trim_start().starts_with('{').then(|| serde_json::from_str(line).ok()).flatten()
    }
}

/// A running program.
pub(super) struct Program {
    pub(super) process: Process,
    pub(super) lines: Receiver<String>,
    input: Option<ChildStdin>,
}

impl Program {
    /// Starts a program that logs its output to a directory.
    pub(super) fn start(command: Command, dir: &Path, grace: Duration) -> std::io::Result<Program> {
        std::fs::create_dir_all(dir)?;
        let (mut process, lines) = Process::start(command, dir, grace, true)?;
        let input = process.input();
        Ok(Program { process, lines, input })
    }

    /// Sends a trial.
    pub(super) fn request(&mut self, trial: &Trial<'_>, dir: &Path) -> std::io::Result<()> {
        self.send(&Request {
            trial: trial.number(),
            attempt: trial.attempt(),
            parameters: trial.point(),
            dir,
            reported: trial.reported(),
        })
    }

    /// Answers a report.
    pub(super) fn answer(&mut self, stop: bool) -> std::io::Result<()> {
        self.send(&Answer { stop })
    }

    fn send(&mut self, message: &impl Serialize) -> std::io::Result<()> {
        let Some(input) = &mut self.input else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        let mut line = serde_json::to_string(message)?;
        line.push('\n');
        input.write_all(line.as_bytes())?;
        input.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_closing_line_ends_a_trial() {
        assert_eq!(Closing::read(r#"{"end": true}"#), Some(Closing::End(true)));
        let error = Closing::read(r#"{"error": "out of memory"}"#);
        assert_eq!(error, Some(Closing::Error("out of memory".to_owned())));
        for line in [r#"{"value": 1}"#, "end", r#"{"end": true, "value": 2}"#] {
            assert_eq!(Closing::read(line), None);
        }
    }
}
