//! Workers that are real processes, killed at random: nothing is lost, and nothing is counted twice.

#[cfg(feature = "postgres")]
mod server;

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use surefoot_random::{Key, Purpose};
use surefoot_tune::storage::{
    Claim, ClaimLimits, ClaimState, Claimed, NewStudy, Start, Storage, StorageError, StoredStudy,
    TrialState, View,
};
use surefoot_tune::{Direction, Domain, Parameter, Point, Space, Value};

/// The variables that make this program a worker: the store, and the directory of the test.
const STORE: &str = "SUREFOOT_TEST_STORE";
const PLACE: &str = "SUREFOOT_TEST_PLACE";

/// Number of reports of each trial.
const REPORTS: u32 = 5;

fn new_study() -> NewStudy {
    let rate = Parameter {
        name: "rate".to_owned(),
        domain: Domain::LogUniform(1e-5, 1.0),
        conditions: Vec::new(),
    };
    NewStudy {
        name: "digits".to_owned(),
        fingerprint: "{\"epochs\"=10}".to_owned(),
        document: "[study]".to_owned(),
        space: Space::new(vec![rate]).expect("a space"),
        direction: Direction::Minimize,
        seed: 1,
    }
}

/// The value that a trial reports: a number, sometimes NaN, the same in every run.
fn value(number: u64, step: u32) -> f64 {
    let draw = Key::new(7, Purpose::Generate).epoch(number).uniform(step.into());
    if draw < 0.05 { f64::NAN } else { draw }
}

/// Not a test by itself: what a worker process runs.
#[test]
fn worker() {
    let (Ok(url), Ok(place)) = (std::env::var(STORE), std::env::var(PLACE)) else {
        return;
    };
    let place = PathBuf::from(place);
    let name = std::process::id().to_string();
    let log = OpenOptions::new().create(true).append(true).open(place.join(&name));
    let mut log = log.expect("a log");
    let mut storage = Storage::open(&url).expect("a store");
    let study = storage.join(&new_study()).expect("a study");
    let mut view = View::new(&study);
    loop {
        let limits = ClaimLimits {
            max_trials: place.join("enough").exists().then_some(0),
            max_attempts: u32::MAX,
            heartbeat_timeout: Duration::from_millis(700),
        };
        match storage.claim(study.id, &name, &limits).expect("an answer") {
            Claimed::Trial(claim) => match run(&mut storage, &study, &claim, &mut view, &mut log) {
                Ok(()) | Err(StorageError::ClaimLost { .. }) => {}
                Err(error) => panic!("{error}"),
            },
            Claimed::Wait | Claimed::Stale => sleep(Duration::from_millis(50)),
            Claimed::Done => return,
        }
    }
}

/// Runs a trial, and writes down when the store has confirmed its end.
fn run(
    storage: &mut Storage,
    study: &StoredStudy,
    claim: &Claim,
    view: &mut View,
    log: &mut File,
) -> Result<(), StorageError> {
    let point = match &claim.point {
        Some(point) => point.clone(),
        None => {
            storage.refresh(view)?;
            let place = Key::new(study.seed, Purpose::Sample).epoch(claim.number).uniform(0);
            study.space.point(|parameter| parameter.domain.at(place))
        }
    };
    storage.start(
        claim,
        &Start { point, seen: Some(view.change()), planned: Some(REPORTS), run: None },
    )?;
    // As after a checkpoint that is a stretch old.
    for step in claim.reported.max(1)..=REPORTS {
        sleep(Duration::from_millis(2));
        storage.report(claim, step, value(claim.number, step), 1.0)?;
    }
    let value = value(claim.number, REPORTS);
    storage.finish(claim, &TrialState::Complete { value }, REPORTS.into())?;
    // At once, so that no kill leaves half a line.
    let line = format!("finish {}\n", claim.number);
    log.write_all(line.as_bytes()).expect("a line");
    Ok(())
}

fn spawn(url: &str, place: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "worker", "--nocapture"]);
    command.env(STORE, url).env(PLACE, place);
    let output = OpenOptions::new().create(true).append(true).open(place.join("output"));
    command.stdout(Stdio::null()).stderr(output.expect("a file"));
    command.spawn().expect("a worker")
}

/// Processes that do not outlive the test, however it ends.
struct Workers(Vec<Child>);

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

/// Runs four workers and kills one of them `kills` times, some milliseconds after each other.
/// `between` is called before each kill.
fn kill_at_random(url: &str, place: &Path, kills: u64, mut between: impl FnMut(u64)) {
    let key = Key::new(2024, Purpose::Generate);
    let mut workers = Workers((0..4).map(|_| spawn(url, place)).collect());
    for kill in 0..kills {
        between(kill);
        let draw = key.epoch(kill);
        sleep(Duration::from_secs_f64(0.01 + 0.1 * draw.uniform(0)));
        let victim = (draw.uniform(1) * 4.0) as usize;
        let dead = &mut workers.0[victim];
        if let Some(status) = dead.try_wait().expect("a status") {
            let said = fs::read_to_string(place.join("output")).unwrap_or_default();
            panic!("a worker ended by itself with {status}: {said}");
        }
        dead.kill().expect("killed");
        dead.wait().expect("a status");
        workers.0[victim] = spawn(url, place);
    }
    File::create(place.join("enough")).expect("a file");
    let begun = Instant::now();
    for worker in &mut workers.0 {
        while worker.try_wait().expect("a status").is_none() {
            let patience = Duration::from_secs(60);
            assert!(begun.elapsed() < patience, "a worker did not come to its end");
            sleep(Duration::from_millis(20));
        }
        assert!(worker.wait().expect("a status").success());
    }
}

/// Every trial is accounted for.
fn check(url: &str, place: &Path) {
    let mut storage = Storage::open_existing(url).expect("a store");
    let study = storage.study("digits").expect("a study");
    let mut view = View::new(&study);
    storage.refresh_reports(&mut view).expect("a view");
    assert_eq!(view.trials().len() as u64, study.trials);
    assert!(study.trials > 10, "only {} trials", study.trials);
    let mut lost = 0;
    for (index, trial) in view.trials().iter().enumerate() {
        assert_eq!(trial.number, index as u64);
        assert!(matches!(trial.state, TrialState::Complete { .. }), "{trial:?}");
        let Some(Value::Float(_)) = trial.point.as_ref().and_then(|p: &Point| p.get("rate")) else {
            panic!("no point: {trial:?}");
        };
        let (last, before) = trial.attempts.split_last().expect("an attempt");
        assert_eq!(last.state, ClaimState::Finished);
        assert!(before.iter().all(|attempt| attempt.state == ClaimState::Lost), "{trial:?}");
        lost += before.len();
        let reports = view.reports(trial.number);
        let steps: Vec<u32> = reports.iter().map(|report| report.step).collect();
        assert_eq!(steps, (1..=REPORTS).collect::<Vec<u32>>());
        for report in reports {
            let expected = value(trial.number, report.step);
            assert_eq!(report.value.to_bits(), expected.to_bits());
        }
    }
    let mut confirmed = BTreeSet::new();
    for log in fs::read_dir(place).expect("logs") {
        let path = log.expect("a log").path();
        let is_log = path.file_name().is_some_and(|n| n.to_string_lossy().parse::<u32>().is_ok());
        if !is_log {
            continue;
        }
        for line in fs::read_to_string(&path).expect("a log").lines() {
            if let Some(number) = line.strip_prefix("finish ") {
                let number: u64 = number.parse().expect("a number");
                assert!(number < study.trials, "trial {number} was confirmed and is gone");
                assert!(confirmed.insert(number), "trial {number} was finished twice");
            }
        }
    }
    assert!(confirmed.len() > 10);
    eprintln!("{} trials, {lost} attempts lost, {} ends confirmed", study.trials, confirmed.len());
    assert!(lost > 0);
}

#[test]
fn workers_on_one_sqlite_file_are_killed_a_hundred_times() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("study.db");
    let url = path.display().to_string();
    kill_at_random(&url, dir.path(), 100, |_| {});
    check(&url, dir.path());
    let database = rusqlite::Connection::open(&path).expect("a database");
    let sound: String =
        database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("an answer");
    assert_eq!(sound, "ok");
}

#[cfg(feature = "postgres")]
#[test]
#[ignore = "needs PostgreSQL"]
fn workers_on_postgresql_are_killed_and_so_is_the_server() {
    let server = server::Server::start();
    let dir = tempfile::tempdir().expect("a directory");
    let url = server.database("studies");
    kill_at_random(&url, dir.path(), 60, |kill| {
        if kill % 20 == 10 {
            server.restart();
        }
    });
    check(&url, dir.path());
}
