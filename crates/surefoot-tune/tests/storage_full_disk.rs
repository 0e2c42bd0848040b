//! A store on a disk that is really full, or that nobody can write to: a small one that this test mounts.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use surefoot_tune::storage::{
    ClaimLimits, Claimed, NewStudy, Start, Storage, StorageError, StoredStudy, TrialState, View,
};
use surefoot_tune::{Direction, Point, Space};

/// One disk at a time. The processes that mount another would hold for a moment what is open on this one, and a file that
/// is deleted then still takes its room.
static ALONE: Mutex<()> = Mutex::new(());

/// A disk of four megabytes, in memory.
struct Disk {
    dir: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Disk {
    fn mount() -> Option<Disk> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = tempfile::tempdir().expect("a directory");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(dir.path());
        let output = mount.output().ok()?;
        output.status.success().then_some(Disk { dir, _alone: alone })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Lets nobody write any more.
    fn lock(&self) {
        let mut mount = Command::new("mount");
        let status = mount.args(["-o", "remount,ro"]).arg(self.dir.path()).status();
        assert!(status.is_ok_and(|status| status.success()));
    }

    /// Takes so many blocks of 4096 bytes, or all that are left if they are less.
    fn fill(&self, blocks: usize) -> PathBuf {
        let path = self.path("ballast");
        let mut file = File::create(&path).expect("a file");
        (0..blocks).all(|_| file.write_all(&[0; 4096]).is_ok());
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let mut unmount = Command::new("umount");
        let status = unmount.arg("-l").arg(self.dir.path()).status();
        assert!(status.is_ok_and(|status| status.success()));
    }
}

fn join(storage: &mut Storage) -> StoredStudy {
    let study = NewStudy {
        name: "digits".to_owned(),
        fingerprint: String::new(),
        document: String::new(),
        space: Space::new(Vec::new()).expect("a space"),
        direction: Direction::Minimize,
        seed: 1,
    };
    storage.join(&study).expect("a study")
}

fn one_trial(storage: &mut Storage, study: &StoredStudy) -> Result<u64, StorageError> {
    let Claimed::Trial(claim) = storage.claim(study.id, "worker", &ClaimLimits::default())? else {
        panic!("no trial");
    };
    let start = Start {
        point: Point::default(),
        seen: None,
        planned: Some(1),
        run: Some("a directory with a long name/".repeat(30)),
    };
    storage.start(&claim, &start)?;
    storage.report(&claim, 1, 0.5, 1.0)?;
    storage.finish(&claim, &TrialState::Complete { value: 0.5 }, 1.0)?;
    Ok(claim.number)
}

fn over(storage: &mut Storage, study: &StoredStudy) -> Vec<u64> {
    let mut view = View::new(study);
    storage.refresh(&mut view).expect("a view");
    let over = view.trials().iter().filter(|trial| trial.final_state().is_some());
    over.map(|trial| trial.number).collect()
}

fn is_sound(path: &Path) -> bool {
    let database = rusqlite::Connection::open(path).expect("a database");
    let answer: String =
        database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("an answer");
    answer == "ok"
}

#[test]
fn two_workers_on_a_full_disk_lose_nothing_and_go_on_when_there_is_room() {
    let Some(disk) = Disk::mount() else {
        eprintln!("SKIPPED two_workers_on_a_full_disk: this account may not mount a small disk");
        return;
    };
    let path = disk.path("study.db");
    let url = path.display().to_string();
    let mut workers = [0, 1].map(|_| Storage::open(&url).expect("a store"));
    let study = join(&mut workers[0]);
    let ballast = disk.fill(600);
    let mut done = Vec::new();
    let full = StorageError::Full { storage: url.clone() };
    let mut met = 0;
    for turn in 0..2000 {
        match one_trial(&mut workers[turn % 2], &study) {
            Ok(number) => done.push(number),
            Err(error) => {
                assert_eq!(error, full);
                met += 1;
                if met == 20 {
                    break;
                }
            }
        }
    }
    assert_eq!(met, 20);
    assert!(done.len() > 10);
    assert_eq!(over(&mut workers[0], &study), done);
    let opened = Storage::open(&url).and_then(|mut storage| one_trial(&mut storage, &study));
    assert_eq!(opened, Err(full));
    fs::remove_file(ballast).expect("room");
    for turn in 0..10 {
        done.push(one_trial(&mut workers[turn % 2], &study).expect("a trial"));
    }
    assert_eq!(over(&mut workers[1], &study), done);
    drop(workers);
    assert!(is_sound(&path));
}

#[test]
fn a_store_cannot_be_opened_on_a_full_disk_and_says_so() {
    let Some(disk) = Disk::mount() else {
        eprintln!("SKIPPED a_store_cannot_be_opened: this account may not mount a small disk");
        return;
    };
    let path = disk.path("study.db");
    let url = path.display().to_string();
    let mut storage = Storage::open(&url).expect("a store");
    let study = join(&mut storage);
    one_trial(&mut storage, &study).expect("a trial");
    drop(storage);
    let ballast = disk.fill(usize::MAX);
    let error = Storage::open(&url).expect_err("no room");
    assert_eq!(error.to_string(), format!("{url}: disk full; committed data is safe"));
    fs::remove_file(ballast).expect("room");
    let mut storage = Storage::open(&url).expect("a store");
    assert_eq!(over(&mut storage, &study), [0]);
}

#[test]
fn a_store_on_a_disk_that_cannot_be_written_can_be_read_unless_a_log_is_left() {
    let Some(disk) = Disk::mount() else {
        eprintln!("SKIPPED a_store_on_a_disk_that_cannot_be_written: this account may not mount");
        return;
    };
    let [whole, logged] = ["whole.db", "logged.db"].map(|name| disk.path(name));
    let mut storage = Storage::open(&whole.display().to_string()).expect("a store");
    let study = join(&mut storage);
    one_trial(&mut storage, &study).expect("a trial");
    fs::copy(&whole, &logged).expect("a copy");
    fs::copy(disk.path("whole.db-wal"), disk.path("logged.db-wal")).expect("a log");
    drop(storage);
    disk.lock();
    let mut storage = Storage::open_existing(&whole.display().to_string()).expect("a store");
    assert_eq!(over(&mut storage, &study), [0]);
    let error = storage.claim(study.id, "worker", &ClaimLimits::default());
    let error = error.expect_err("refused").to_string();
    assert!(error.ends_with("read-only"), "{error}");
    let error = Storage::open_existing(&logged.display().to_string()).expect_err("refused");
    assert!(matches!(error, StorageError::UnreadableLog { .. }), "{error}");
    assert!(error.to_string().contains("copy both files"), "{error}");
}
