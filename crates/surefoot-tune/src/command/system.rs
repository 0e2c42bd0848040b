//! What the system says of processes.
//!
//! Linux says it in `/proc`. Elsewhere less is known: processes that ended and that nobody asks for their status count as
//! alive, and those of an earlier attempt are not found.

use rustix::process::{Pid, test_kill_process_group};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The variable with the directory of a trial. What a command starts has it too, whatever becomes of its group and its
/// files.
pub(super) const DIR: &str = "SUREFOOT_DIR";

/// Whether any process of a group has not ended.
pub(super) fn is_alive(group: Pid) -> bool {
    if test_kill_process_group(group).is_err() {
        return false;
    }
    let mut known = processes().peekable();
    let id = group.as_raw_nonzero().get();
    known.peek().is_none() || known.any(|(_, place)| group_of_living(&place) == Some(id))
}

/// The processes of this machine that have the directory of a trial in their environment, and are those of a command.
pub(super) fn processes_of(dir: &Path) -> Vec<Pid> {
    let wanted = [DIR.as_bytes(), b"=", dir.as_os_str().as_bytes()].concat();
    let is_of = |place: &Path| {
        let environment = std::fs::read(place.join("environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        group_of_living(place).is_some() && variables.any(|variable| variable == wanted)
    };
    processes().filter(|(_, place)| is_of(place)).map(|(id, _)| id).collect()
}

/// All processes, with the place where they are told of.
fn processes() -> impl Iterator<Item = (Pid, PathBuf)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let id: i32 = entry.file_name().to_str()?.parse().ok()?;
        Some((Pid::from_raw(id)?, entry.path()))
    })
}

/// The group of a process; `None` if it has ended and only waits to be asked for its status.
fn group_of_living(place: &Path) -> Option<i32> {
    let stat = std::fs::read_to_string(place.join("stat")).ok()?;
    // The name, in parentheses, may have anything in it.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next().filter(|state| *state != "Z" && *state != "X");
    let group = fields.nth(1)?.parse().ok()?;
    state.map(|_| group)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn processes_are_known_by_the_directory_of_their_trial() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("sleep");
        let mut child = command.arg("60").env(DIR, dir.path()).spawn().expect("a process");
        let id = Pid::from_child(&child);
        // It is begun before its environment can be seen.
        let begun = Instant::now();
        while processes_of(dir.path()).is_empty() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::yield_now();
        }
        assert_eq!(processes_of(dir.path()), [id]);
        assert!(processes_of(&dir.path().join("other")).is_empty());
        child.kill().expect("there");
        // One that has ended is none, though nobody has asked for its status.
        while !processes_of(dir.path()).is_empty() {
            std::thread::yield_now();
        }
        child.wait().expect("ended");
    }
}
