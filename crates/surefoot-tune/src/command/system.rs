//! Process information from `/proc`.
//!
//! On systems without it, zombies count as alive and processes of earlier attempts are not found.

use rustix::process::{Pid, test_kill_process_group};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Variable with the directory of a trial. Child processes inherit it, even in another process group.
pub(super) const DIR: &str = "SUREFOOT_DIR";

/// Returns true if any process of a group is running.
pub(super) fn is_alive(group: Pid) -> bool {
    if test_kill_process_group(group).is_err() {
        return false;
    }
    let mut known = processes().peekable();
    let id = group.as_raw_nonzero().get();
    known.peek().is_none() || known.any(|(_, place)| group_of_living(&place) == Some(id))
}

/// Running processes with the directory of a trial in their environment.
pub(super) fn processes_of(dir: &Path) -> Vec<Pid> {
    let wanted = [DIR.as_bytes(), b"=", dir.as_os_str().as_bytes()].concat();
    let is_of = |place: &Path| {
        let environment = std::fs::read(place.join("environ")).unwrap_or_default();
        let mut variables = environment.split(|byte| *byte == 0);
        group_of_living(place).is_some() && variables.any(|variable| variable == wanted)
    };
    processes().filter(|(_, place)| is_of(place)).map(|(id, _)| id).collect()
}

/// All processes with their directories in `/proc`.
fn processes() -> impl Iterator<Item = (Pid, PathBuf)> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let id: i32 = entry.file_name().to_str()?.parse().ok()?;
        Some((Pid::from_raw(id)?, entry.path()))
    })
}

/// Group of a process; `None` for a zombie.
fn group_of_living(place: &Path) -> Option<i32> {
    let stat = std::fs::read_to_string(place.join("stat")).ok()?;
    // The name in parentheses may contain anything.
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
    fn processes_are_found_by_the_directory_of_their_trial() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("sleep");
        let mut child = command.arg("60").env(DIR, dir.path()).spawn().expect("a process");
        let id = Pid::from_child(&child);
        // The environment is visible a moment after the start.
        let begun = Instant::now();
        while processes_of(dir.path()).is_empty() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::yield_now();
        }
        assert_eq!(processes_of(dir.path()), [id]);
        assert!(processes_of(&dir.path().join("other")).is_empty());
        child.kill().expect("there");
        // A zombie does not count.
        while !processes_of(dir.path()).is_empty() {
            std::thread::yield_now();
        }
        child.wait().expect("ended");
    }
}
