//! Output for people and programs: streams, colours, JSON.

pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod diagnosis;
mod display;
mod facts;
pub(crate) mod file;
pub(crate) mod number;
pub(crate) mod outline;
pub(crate) mod progress;
pub(crate) mod regret;
pub(crate) mod repair;
pub(crate) mod replay;
pub(crate) mod screen;
pub(crate) mod simulate;
pub(crate) mod step;
pub(crate) mod summary;
pub(crate) mod tune;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};

/// Line width where the terminal reports none.
const USUAL_WIDTH: usize = 80;

/// Role of a piece of text; decides its colour on a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    Error,
    Warning,
    Help,
    Good,
    /// A name or heading.
    Strong,
    /// Secondary text.
    Quiet,
    /// Text to type.
    Literal,
}

impl Role {
    fn style(self) -> Style {
        match self {
            Self::Error => AnsiColor::Red.on_default().bold(),
            Self::Warning => AnsiColor::Yellow.on_default().bold(),
            Self::Help | Self::Literal => AnsiColor::Cyan.on_default(),
            Self::Good => AnsiColor::Green.on_default().bold(),
            Self::Strong => Style::new().bold(),
            Self::Quiet => Style::new().dimmed(),
        }
    }

    /// Adds the colour codes, which are stripped again for pipes and with `NO_COLOR`.
    pub(crate) fn paint(self, text: impl Display) -> String {
        let style = self.style();
        format!("{style}{text}{style:#}")
    }
}

/// Prints lines on stdout.
pub(crate) fn to_stdout(text: &str) {
    if let Err(error) = writeln!(anstream::stdout().lock(), "{text}") {
        // A closed pipe means that the reader has enough.
        if error.kind() != ErrorKind::BrokenPipe {
            to_stderr(&format!("{} cannot print: {error}", Role::Error.paint("error:")));
            std::process::exit(crate::exit::Exit::Broken as i32);
        }
    }
}

/// Prints lines on stderr.
pub(crate) fn to_stderr(text: &str) {
    // There is no other stream to report a failure on.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Prints on stderr without ending the line.
pub(crate) fn to_stderr_inline(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = write!(stderr, "{text}").and_then(|()| stderr.flush());
}

/// Output settings of a command: for a person at a terminal, for a program, or quiet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Console {
    json: bool,
    quiet: bool,
    /// True if the output goes to a terminal.
    watched: bool,
}

impl Console {
    /// With `json`, stdout carries JSON and text goes to stderr; with `quiet`, only errors are printed.
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        let terminal = match json {
            true => std::io::stderr().is_terminal(),
            false => std::io::stdout().is_terminal(),
        };
        Self { json, quiet, watched: terminal && !quiet }
    }

    /// True if progress is drawn.
    pub(crate) fn draws(&self) -> bool {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        self.watched && !dumb && std::io::stderr().is_terminal()
    }

    /// Maximal line width; `None` outside a terminal.
    pub(crate) fn width(&self) -> Option<usize> {
        self.watched.then(|| {
            let size = terminal_size::terminal_size();
            size.map_or(USUAL_WIDTH, |(width, _)| width.0.into())
        })
    }

    /// Prints the result of a command.
    pub(crate) fn say(&self, text: &str) {
        match (self.quiet, self.json) {
            (true, _) => {}
            (false, true) => to_stderr(text),
            (false, false) => to_stdout(text),
        }
    }

    /// Prints additional information on a terminal only.
    pub(crate) fn mention(&self, text: &str) {
        if self.watched {
            self.say(text);
        }
    }

    /// Prints a warning.
    pub(crate) fn warn(&self, text: &str) {
        if !self.quiet {
            to_stderr(&format!("{} {text}", Role::Warning.paint("warning:")));
        }
    }

    /// Prints a note.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            to_stderr(&format!("{} {text}", Role::Help.paint("note:")));
        }
    }

    /// Prints a JSON object on one line if `--json` is given.
    pub(crate) fn event(&self, event: &impl Serialize) {
        if self.json {
            // Serialising structs of strings and numbers cannot fail.
            to_stdout(&serde_json::to_string(event).unwrap_or_default());
        }
    }
}
