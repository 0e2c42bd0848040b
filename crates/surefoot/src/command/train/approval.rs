//! Asks somebody whether a remedy may be tried.

use crate::interrupt::Interrupt;
use crate::output::{repair, to_stderr, to_stderr_inline};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use surefoot_repair::Proposal;

/// How often it is looked whether to stop while waiting for an answer.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What somebody says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Try it.
    Yes,
    /// Try another.
    No,
    /// Try nothing more.
    Quit,
}

impl Answer {
    fn parse(text: &str) -> Option<Self> {
        match text.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Some(Self::Yes),
            "n" | "no" => Some(Self::No),
            "q" | "quit" => Some(Self::Quit),
            _ => None,
        }
    }
}

/// Shows a proposal on stderr and waits for the answer, or to be interrupted.
pub(super) fn ask(proposal: &Proposal, interrupt: &Interrupt) -> Answer {
    to_stderr(&repair::proposal(proposal));
    loop {
        to_stderr_inline(&repair::question(proposal));
        match line(interrupt) {
            // The end of the input is no answer that will come.
            None => return Answer::Quit,
            Some(text) => {
                if let Some(answer) = Answer::parse(&text) {
                    return answer;
                }
            }
        }
    }
}

/// A line from stdin; none at its end or when interrupted.
fn line(interrupt: &Interrupt) -> Option<String> {
    let (sender, receiver) = channel();
    // Reading cannot be interrupted, so it is left to a thread that may wait for ever.
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = std::io::stdin().read_line(&mut text);
        let _ = sender.send(read.ok().filter(|&bytes| bytes > 0).map(|_| text));
    });
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(text) => return text,
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if interrupt.asked() => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_letter_or_a_word_and_nothing_else() {
        assert_eq!(Answer::parse("y\n"), Some(Answer::Yes));
        assert_eq!(Answer::parse(" No "), Some(Answer::No));
        assert_eq!(Answer::parse("Q"), Some(Answer::Quit));
        assert_eq!(Answer::parse("\n"), None);
        assert_eq!(Answer::parse("why"), None);
    }
}
