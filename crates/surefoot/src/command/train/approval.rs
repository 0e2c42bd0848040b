//! `--approve`: asks on the terminal before a remedy is tried.

use crate::output::{repair, to_stderr, to_stderr_inline};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use surefoot_train::Proposal;
use surefoot_train::{Approval, StopSignal};

/// Interval at which a stop request is checked while waiting for an answer.
const LOOK_EVERY: Duration = Duration::from_millis(50);

fn parse(text: &str) -> Option<Approval> {
    match text.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Some(Approval::Yes),
        "n" | "no" => Some(Approval::No),
        "q" | "quit" => Some(Approval::Quit),
        _ => None,
    }
}

/// Shows a proposal on stderr and waits for an answer or a stop request.
pub(super) fn ask(proposal: &Proposal, signal: &StopSignal) -> Approval {
    to_stderr(&repair::proposal(proposal));
    loop {
        to_stderr_inline(&repair::question(proposal));
        match line(signal) {
            None => return Approval::Quit,
            Some(text) => {
                if let Some(answer) = parse(&text) {
                    return answer;
                }
            }
        }
    }
}

/// Reads a line from stdin; `None` at its end or on a stop request.
fn line(signal: &StopSignal) -> Option<String> {
    let (sender, receiver) = channel();
    // Reading cannot be interrupted, so a detached thread does it.
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = std::io::stdin().read_line(&mut text);
        let _ = sender.send(read.ok().filter(|&bytes| bytes > 0).map(|_| text));
    });
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok(text) => return text,
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) if signal.is_requested() => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_letters_or_words() {
        assert_eq!(parse("y\n"), Some(Approval::Yes));
        assert_eq!(parse(" No "), Some(Approval::No));
        assert_eq!(parse("Q"), Some(Approval::Quit));
        assert_eq!(parse("\n"), None);
        assert_eq!(parse("why"), None);
    }
}
