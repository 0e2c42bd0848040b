//! A running command and its child processes.

use super::system;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

/// Queued lines before the command waits.
const QUEUE: usize = 1024;
/// Longer lines are not reports.
const LONGEST_LINE: usize = 1 << 20;
/// Bytes of standard error to search for the error message.
const TAIL: u64 = 400;
/// Interval at which an ending process is polled.
const POLL: Duration = Duration::from_millis(10);
/// Time to wait for killed processes.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// A command and its child processes.
pub(super) struct Process {
    child: Child,
    /// Time between SIGTERM and SIGKILL.
    grace: Duration,
    /// Its standard error, and the offset at which this attempt started.
    errors: Option<(File, u64)>,
}

impl Process {
    /// Starts a command that logs its output to a directory. Also returns the lines of its standard output.
    pub(super) fn start(
        mut command: Command,
        dir: &Path,
        grace: Duration,
        has_input: bool,
    ) -> std::io::Result<(Process, Receiver<String>)> {
        let errors = append(&dir.join("errors.log"))?;
        let from = errors.metadata()?.len();
        let log = append(&dir.join("output.log"))?;
        command
            // Its own group, so that its children are stopped with it.
            .process_group(0)
            .stdin(if has_input { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(errors);
        let child = command.spawn()?;
        let mut process = Process { child, grace, errors: None };
        process.errors = File::open(dir.join("errors.log")).ok().map(|file| (file, from));
        let (sender, lines) = sync_channel(QUEUE);
        if let Some(output) = process.child.stdout.take() {
            std::thread::Builder::new()
                .name("reports".to_owned())
                .spawn(move || read_lines(output, log, &sender))?;
        }
        Ok((process, lines))
    }

    /// Its standard input, once.
    pub(super) fn input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Exit status, if it has ended.
    pub(super) fn exit_status(&mut self) -> std::io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Terminates all its processes, and kills those that do not end in time.
    pub(super) fn end(&mut self) {
        let grace = self.grace;
        self.end_within(grace);
    }

    fn end_within(&mut self, grace: Duration) {
        self.signal(Signal::TERM);
        let begun = Instant::now();
        while begun.elapsed() < grace && self.is_alive() {
            std::thread::sleep(POLL);
        }
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }

    /// Returns true while any of its processes runs. The shell often ends first, while the program that
    /// it started is still saving its work.
    pub(super) fn is_alive(&mut self) -> bool {
        // Reap the child, so that it does not count as running.
        let _ = self.child.try_wait();
        self.id().is_some_and(system::is_alive)
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.id() {
            // Fails if it has ended already.
            let _ = kill_process_group(group, signal);
        }
    }

    fn id(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }

    /// Last line of its standard error, where Python prints the exception.
    pub(super) fn last_error(&mut self) -> Option<String> {
        let (file, from) = self.errors.as_mut()?;
        let length = file.metadata().ok()?.len();
        let from = (*from).max(length.saturating_sub(TAIL));
        let mut text = Vec::new();
        file.seek(SeekFrom::Start(from)).ok()?;
        file.read_to_end(&mut text).ok()?;
        let text = String::from_utf8_lossy(&text);
        let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        last.map(str::to_owned)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_alive() {
            self.end_within(Duration::ZERO);
        }
    }
}

/// Ends processes of earlier attempts of a trial whose workers were killed: they would write to the same
/// checkpoint. Returns true if all have ended.
pub(super) fn end_earlier(dir: &Path, grace: Duration) -> bool {
    for (signal, timeout) in [(Signal::TERM, grace), (Signal::KILL, KILL_TIMEOUT)] {
        let begun = Instant::now();
        let mut left = system::processes_of(dir);
        for process in &left {
            // Fails if it has ended already.
            let _ = kill_process(*process, signal);
        }
        while !left.is_empty() && begun.elapsed() < timeout {
            std::thread::sleep(POLL);
            left = system::processes_of(dir);
        }
        if left.is_empty() {
            return true;
        }
    }
    false
}

/// Sends the lines of an output while there is a receiver, and logs everything.
fn read_lines(output: impl Read, mut log: File, lines: &SyncSender<String>) {
    let mut output = BufReader::new(output);
    let (mut line, mut is_cut, mut has_receiver) = (Vec::new(), false, true);
    loop {
        let chunk = match output.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        if chunk.is_empty() {
            break;
        }
        // A full disk must not end the trial.
        let _ = log.write_all(chunk);
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            is_cut |= line.len() + part.len() > LONGEST_LINE;
            if !is_cut {
                line.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                if !is_cut && has_receiver {
                    has_receiver = lines.send(text(&line)).is_ok();
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

    /// Lines and log of an output.
    fn lines_and_log(output: &[u8]) -> (Vec<String>, Vec<u8>) {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        let (sender, lines) = sync_channel(QUEUE);
        read_lines(output, append(&path).expect("a log"), &sender);
        drop(sender);
        (lines.iter().collect(), std::fs::read(path).expect("a log"))
    }

    #[test]
    fn lines_are_sent_and_everything_is_logged() {
        let output = b"one\ntwo \xff\n\nlast";
        let (lines, log) = lines_and_log(output);
        assert_eq!(lines, ["one\n", "two \u{fffd}\n", "\n", "last"]);
        assert_eq!(log, output);
    }

    #[test]
    fn overlong_lines_are_skipped() {
        let mut output = vec![b'x'; 3 * LONGEST_LINE];
        output.extend(b"\n{\"value\": 1}\n");
        let (lines, log) = lines_and_log(&output);
        assert_eq!(lines, ["{\"value\": 1}\n"]);
        assert_eq!(log.len(), output.len());
    }
}
