//! What people and programs are told: where it goes, and in which colours.

pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod diagnosis;
mod facts;
pub(crate) mod file;
pub(crate) mod number;
pub(crate) mod outline;
pub(crate) mod progress;
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

/// The width of a terminal that does not say.
const USUAL_WIDTH: usize = 80;

/// What a piece of text is, which decides how it looks on a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Role {
    Error,
    Warning,
    Help,
    Good,
    /// A name or heading.
    Strong,
    /// What may be skipped.
    Quiet,
    /// Something to type.
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

    /// The text in its colours. Streams that are no terminal, or `NO_COLOR`, take them out again.
    pub(crate) fn paint(self, text: impl Display) -> String {
        let style = self.style();
        format!("{style}{text}{style:#}")
    }
}

/// Prints lines on stdout.
pub(crate) fn to_stdout(text: &str) {
    if let Err(error) = writeln!(anstream::stdout().lock(), "{text}") {
        // Whoever read it has enough; for all else there is nowhere to go on to.
        if error.kind() != ErrorKind::BrokenPipe {
            to_stderr(&format!("{} cannot print: {error}", Role::Error.paint("error:")));
            std::process::exit(crate::exit::Exit::Broken as i32);
        }
    }
}

/// Prints lines on stderr.
pub(crate) fn to_stderr(text: &str) {
    // There is no better place to say that it failed.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}

/// Prints on stderr without ending the line.
pub(crate) fn to_stderr_inline(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = write!(stderr, "{text}").and_then(|()| stderr.flush());
}

/// Who listens: a person at a terminal, a program, or nobody.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Console {
    json: bool,
    quiet: bool,
    /// Whether a person watches.
    watched: bool,
}

impl Console {
    /// With `json` stdout is for programs and people read stderr; with `quiet` people read nothing
    /// but errors.
    pub(crate) fn new(json: bool, quiet: bool) -> Self {
        let terminal = match json {
            true => std::io::stderr().is_terminal(),
            false => std::io::stdout().is_terminal(),
        };
        Self { json, quiet, watched: terminal && !quiet }
    }

    /// Whether to draw while something goes on.
    pub(crate) fn draws(&self) -> bool {
        self.watched && std::io::stderr().is_terminal()
    }

    /// How wide a line may be; `None` where nobody watches and no line is too long.
    pub(crate) fn width(&self) -> Option<usize> {
        self.watched.then(|| {
            let size = terminal_size::terminal_size();
            size.map_or(USUAL_WIDTH, |(width, _)| width.0.into())
        })
    }

    /// Tells people what they asked for.
    pub(crate) fn say(&self, text: &str) {
        match (self.quiet, self.json) {
            (true, _) => {}
            (false, true) => to_stderr(text),
            (false, false) => to_stdout(text),
        }
    }

    /// Tells people who watch what is good to know.
    pub(crate) fn mention(&self, text: &str) {
        if self.watched {
            self.say(text);
        }
    }

    /// Tells people what they should know.
    pub(crate) fn warn(&self, text: &str) {
        if !self.quiet {
            to_stderr(&format!("{} {text}", Role::Warning.paint("warning:")));
        }
    }

    /// Tells people what is as it should be, and good to know all the same.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            to_stderr(&format!("{} {text}", Role::Help.paint("note:")));
        }
    }

    /// Tells programs: one JSON object a line.
    pub(crate) fn event(&self, event: &impl Serialize) {
        if self.json {
            // All events are structs of strings and numbers, which have no way to fail.
            to_stdout(&serde_json::to_string(event).unwrap_or_default());
        }
    }
}
