//! A command while it runs, with all that it has started.

use super::system;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Lines that may wait before the command does.
const WAITING: usize = 1024;
/// A longer line is no report: what the command prints for itself may have no end.
const LONGEST_LINE: usize = 1 << 20;
/// How much of what went wrong is told.
const TAIL: u64 = 400;
/// How often one that is to end is looked at.
const GLANCE: Duration = Duration::from_millis(10);
/// How long one that was killed is waited for.
const KILLED: Duration = Duration::from_secs(2);

/// A command, with all that it has started.
pub(super) struct Process {
    child: Child,
    /// How long it may take to end when it is asked to.
    grace: Duration,
    /// What it says on its standard error, from where this attempt began.
    errors: Option<(File, u64)>,
}

impl Process {
    /// Starts a command that keeps what it prints in a directory. Gives the lines of its standard output as well.
    pub(super) fn start(
        mut command: Command,
        dir: &Path,
        grace: Duration,
    ) -> std::io::Result<(Process, Receiver<String>)> {
        let errors = append(&dir.join("errors.log"))?;
        let from = errors.metadata()?.len();
        let log = append(&dir.join("output.log"))?;
        command
            // So that what it starts is stopped with it.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(errors);
        let child = command.spawn()?;
        let mut process = Process { child, grace, errors: None };
        process.errors = File::open(dir.join("errors.log")).ok().map(|file| (file, from));
        let (sender, lines) = sync_channel(WAITING);
        if let Some(output) = process.child.stdout.take() {
            std::thread::Builder::new()
                .name("reports".to_owned())
                .spawn(move || listen(output, log, &sender))?;
        }
        Ok((process, lines))
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> std::io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Asks all of it to end, and kills what does not.
    pub(super) fn end(&mut self) {
        let grace = self.grace;
        self.end_within(grace);
    }

    fn end_within(&mut self, grace: Duration) {
        self.signal(Signal::TERM);
        let asked = Instant::now();
        while asked.elapsed() < grace && self.is_there() {
            std::thread::sleep(GLANCE);
        }
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }

    /// Whether any of it is left. The shell is often the first to go, while the program that it has
    /// started is still saving its work.
    pub(super) fn is_there(&mut self) -> bool {
        // One that has ended is there until somebody has asked for its status.
        let _ = self.child.try_wait();
        self.id().is_some_and(system::is_alive)
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.id() {
            // What is gone already needs no signal.
            let _ = kill_process_group(group, signal);
        }
    }

    fn id(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// The last line of what it said went wrong: where Python has the error.
    pub(super) fn complaint(&mut self) -> Option<String> {
        let (file, from) = self.errors.as_mut()?;
        let length = file.metadata().ok()?.len();
        let from = (*from).max(length.saturating_sub(TAIL));
        let mut said = Vec::new();
        file.seek(SeekFrom::Start(from)).ok()?;
        file.read_to_end(&mut said).ok()?;
        let said = String::from_utf8_lossy(&said);
        let last = said.lines().map(str::trim).rfind(|line| !line.is_empty());
        last.map(str::to_owned)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Nobody would look after it any more.
        if self.is_there() {
            self.end_within(Duration::ZERO);
        }
    }
}

/// Ends what earlier attempts of a trial have left running on this machine, because their workers were killed: it would
/// write to the same checkpoint. Says whether all of it is gone.
pub(super) fn end_earlier(dir: &Path, grace: Duration) -> bool {
    for (signal, patience) in [(Signal::TERM, grace), (Signal::KILL, KILLED)] {
        let asked = Instant::now();
        let mut left = system::processes_of(dir);
        for process in &left {
            // What is gone already needs no signal.
            let _ = kill_process(*process, signal);
        }
        while !left.is_empty() && asked.elapsed() < patience {
            std::thread::sleep(GLANCE);
            left = system::processes_of(dir);
        }
        if left.is_empty() {
            return true;
        }
    }
    false
}

/// Passes the lines of an output on, for as long as anybody wants them, and keeps everything in a log.
fn listen(output: impl Read, mut log: File, lines: &SyncSender<String>) {
    let mut output = BufReader::new(output);
    let (mut line, mut is_cut, mut is_heard) = (Vec::new(), false, true);
    loop {
        let chunk = match output.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        if chunk.is_empty() {
            break;
        }
        // The log is for people; a full disk must not end the trial.
        let _ = log.write_all(chunk);
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            is_cut |= line.len() + part.len() > LONGEST_LINE;
            if !is_cut {
                line.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                if !is_cut && is_heard {
                    is_heard = lines.send(text(&line)).is_ok();
                }
                line.clear();
                is_cut = false;
            }
        }
        let length = chunk.len();
        output.consume(length);
    }
    if !line.is_empty() && !is_cut {
        let _ = lines.send(text(&line));
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}

fn append(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of an output, and what is in its log.
    fn heard(output: &[u8]) -> (Vec<String>, Vec<u8>) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        let (sender, lines) = sync_channel(WAITING);
        listen(output, append(&path).expect("a log"), &sender);
        drop(sender);
        (lines.iter().collect(), std::fs::read(path).expect("a log"))
    }

    #[test]
    fn lines_are_passed_on_and_everything_is_kept_as_it_was() {
        let output = b"one\ntwo \xff\n\nlast";
        let (lines, log) = heard(output);
        assert_eq!(lines, ["one\n", "two \u{fffd}\n", "\n", "last"]);
        assert_eq!(log, output);
    }

    #[test]
    fn a_line_without_end_is_left_out() {
        let mut output = vec![b'x'; 3 * LONGEST_LINE];
        output.extend(b"\n{\"value\": 1}\n");
        let (lines, log) = heard(&output);
        assert_eq!(lines, ["{\"value\": 1}\n"]);
        assert_eq!(log.len(), output.len());
    }
}
