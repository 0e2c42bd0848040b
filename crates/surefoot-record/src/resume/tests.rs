//! A run that was resumed ends with the record of one that never was interrupted.

use std::fs;
use std::path::Path;

use crate::error::Error;
use crate::event::Event;
use crate::fixture::*;
use crate::header::Environment;
use crate::record::Record;
use crate::recorder::Recorder;
use crate::resume::InterruptedRun;

const END: u64 = 97;

fn uninterrupted(runs: &Path) -> String {
    let (mut recorder, dir) = begin(runs);
    let mut training = Training::new();
    training.until(&mut recorder, END);
    training.finish(recorder);
    content(&dir)
}

fn go_on(dir: &Path) -> String {
    let (mut recorder, mut training) = resume(dir);
    training.until(&mut recorder, END);
    training.finish(recorder);
    content(dir)
}

fn resume_error(dir: &Path) -> Error {
    Recorder::resume(dir, &Environment::default()).unwrap_err()
}

#[test]
fn a_run_is_unchanged_until_it_is_resumed() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    Training::new().until(&mut recorder, 75);
    drop(recorder);
    let before = content(&dir);
    let run = InterruptedRun::open(&dir).unwrap();
    assert!(matches!(resume_error(&dir), Error::Locked { .. }));
    drop(run);
    assert!(content(&dir) == before);
}

#[test]
fn interrupted_after_any_step_the_record_is_the_same() {
    let runs = tempfile::tempdir().unwrap();
    let expected = uninterrupted(runs.path());
    for stop in (0..END).step_by(3).chain([20, 40, 60]) {
        let (mut recorder, dir) = begin(runs.path());
        Training::new().until(&mut recorder, stop);
        drop(recorder);
        assert!(go_on(&dir) == expected, "stopped at {stop}");
    }
}

#[test]
fn killed_with_anything_half_written_the_record_is_the_same() {
    let runs = tempfile::tempdir().unwrap();
    let expected = uninterrupted(runs.path());
    let (mut recorder, dir) = begin(runs.path());
    let mut training = Training::new();
    training.until(&mut recorder, 60);
    let files =
        ["observations.steps.arrows", "observations.layers.arrows", "events.jsonl", "digests.bin"];
    let durable = files.map(|file| fs::metadata(dir.join(file)).unwrap().len() as usize);
    training.until(&mut recorder, 75);
    recorder.sync().unwrap();
    for (file, durable) in files.iter().zip(durable) {
        let whole = fs::read(dir.join(file)).unwrap();
        assert!(whole.len() > durable);
        for cut in (durable..whole.len()).step_by(whole.len().div_ceil(40)) {
            let copy = runs.path().join(format!("{file}-{cut}"));
            snapshot(&dir, &copy);
            fs::write(copy.join(file), &whole[..cut]).unwrap();
            assert!(go_on(&copy) == expected, "{file} cut at {cut}");
        }
    }
}

#[test]
fn killed_again_and_again_the_record_is_the_same() {
    let runs = tempfile::tempdir().unwrap();
    let expected = uninterrupted(runs.path());
    let (mut recorder, dir) = begin(runs.path());
    Training::new().until(&mut recorder, 5);
    drop(recorder);
    for stop in [5, 20, 21, 39, 45, 45, 41, 93] {
        let (mut recorder, mut training) = resume(&dir);
        training.until(&mut recorder, stop);
        drop(recorder);
    }
    assert!(go_on(&dir) == expected);
    let events = Record::open(&dir).unwrap().events().unwrap();
    let resumed = events.iter().filter(|event| event.kind() == "resumed");
    assert!(resumed.count() >= 1);
}

#[test]
fn killed_between_the_checkpoint_and_its_event_the_event_is_there() {
    let runs = tempfile::tempdir().unwrap();
    let expected = uninterrupted(runs.path());
    let (mut recorder, dir) = begin(runs.path());
    Training::new().until(&mut recorder, 40);
    drop(recorder);
    let path = dir.join("events.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let (before, last) = text.trim_end().rsplit_once('\n').unwrap();
    assert!(last.contains("checkpoint"));
    fs::write(&path, format!("{before}\n{}", &last[..10])).unwrap();
    assert!(go_on(&dir) == expected);
}

#[test]
fn a_torn_checkpoint_falls_back_and_the_record_is_the_same() {
    let runs = tempfile::tempdir().unwrap();
    let expected = uninterrupted(runs.path());
    let (mut recorder, dir) = begin(runs.path());
    Training::new().until(&mut recorder, 70);
    drop(recorder);
    let newest = dir.join("checkpoints/step-000000060.ckpt");
    fs::write(&newest, &fs::read(&newest).unwrap()[..100]).unwrap();
    let (recorder, training) = resume(&dir);
    assert_eq!(training.step, 40);
    drop(recorder);
    assert!(!newest.exists());
    assert_eq!(readable_steps(&dir), 40);
    assert!(go_on(&dir) == expected);
}

#[test]
fn a_checkpoint_ahead_of_its_record_is_passed_over() {
    let runs = tempfile::tempdir().unwrap();
    let expected = uninterrupted(runs.path());
    for file in ["observations.layers.arrows", "digests.bin"] {
        let (mut recorder, dir) = begin(runs.path());
        let mut training = Training::new();
        training.until(&mut recorder, 59);
        recorder.sync().unwrap();
        let short = fs::read(dir.join(file)).unwrap();
        training.until(&mut recorder, 70);
        drop(recorder);
        fs::write(dir.join(file), short).unwrap();
        let (recorder, training) = resume(&dir);
        assert_eq!(training.step, 40);
        drop(recorder);
        assert!(go_on(&dir) == expected);
    }
}

#[test]
fn killed_while_it_finished_the_record_is_the_same() {
    let runs = tempfile::tempdir().unwrap();
    let expected = uninterrupted(runs.path());
    let (mut recorder, dir) = begin(runs.path());
    let mut training = Training::new();
    training.until(&mut recorder, END);
    recorder.sync().unwrap();
    let live = runs.path().join("live");
    snapshot(&dir, &live);
    training.finish(recorder);

    // Copies of the run, each killed after one more of the last writes.
    let cases: [(&str, &[&str], &[&str]); 4] = [
        ("one-closed", &["observations.steps.parquet"], &[]),
        ("both-closed", &["observations.steps.parquet", "observations.layers.parquet"], &[]),
        (
            "one-removed",
            &["observations.steps.parquet", "observations.layers.parquet"],
            &["observations.steps.arrows"],
        ),
        (
            "both-removed",
            &["observations.steps.parquet", "observations.layers.parquet"],
            &["observations.steps.arrows", "observations.layers.arrows"],
        ),
    ];
    for (name, closed, removed) in cases {
        let copy = runs.path().join(name);
        snapshot(&live, &copy);
        for file in closed {
            fs::copy(dir.join(file), copy.join(file)).unwrap();
        }
        for file in removed {
            fs::remove_file(copy.join(file)).unwrap();
        }
        assert_eq!(readable_steps(&copy), END, "{name}");
        // Killed once more right after it was resumed.
        drop(resume(&copy));
        assert_eq!(readable_steps(&copy), 80, "{name}");
        assert!(go_on(&copy) == expected, "{name}");
    }
}

#[test]
fn a_run_with_nothing_left_to_do_ends_at_the_step_of_its_checkpoint() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    Training::new().until(&mut recorder, 40);
    drop(recorder);
    let (recorder, training) = resume(&dir);
    training.finish(recorder);
    let events = Record::open(&dir).unwrap().events().unwrap();
    assert_eq!(events.last(), Some(&Event::Finished { step: 40 }));
}

#[test]
fn a_finished_run_is_not_resumed() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    let mut training = Training::new();
    training.until(&mut recorder, 5);
    training.finish(recorder);
    assert!(matches!(resume_error(&dir), Error::Finished { .. }));
    assert!(!dir.join("lock").exists());
}

#[test]
fn a_run_in_use_is_not_resumed() {
    let runs = tempfile::tempdir().unwrap();
    let (recorder, dir) = begin(runs.path());
    assert!(matches!(resume_error(&dir), Error::Locked { .. }));
    drop(recorder);
    drop(resume(&dir));
}

#[test]
fn a_changed_plan_is_not_resumed() {
    let runs = tempfile::tempdir().unwrap();
    let (recorder, dir) = begin(runs.path());
    drop(recorder);
    fs::write(dir.join("plan.toml"), "seed = 8\n").unwrap();
    let error = resume_error(&dir);
    assert!(matches!(error, Error::PlanChanged { .. }));
    assert!(error.to_string().contains("plan.toml is not the plan"));
}

#[test]
fn a_checkpoint_of_another_plan_is_not_used() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    Training::new().until(&mut recorder, 20);
    drop(recorder);
    let foreign = Training::new().checkpoint();
    let path = dir.join("checkpoints/step-000000030.ckpt");
    foreign.write(&path).unwrap();
    assert_eq!(resume(&dir).1.step, 20);
}

#[test]
fn a_directory_that_is_not_a_run_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(resume_error(dir.path()), Error::NotARun { .. }));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn the_event_says_from_where_and_on_what() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    Training::new().until(&mut recorder, 30);
    drop(recorder);
    drop(resume(&dir));
    let events = Record::open(&dir).unwrap().events().unwrap();
    let expected = Event::Resumed { step: 20, environment: Environment::default() };
    assert_eq!(events.last(), Some(&expected));
}

#[test]
fn temporary_files_of_a_killed_process_are_removed() {
    let runs = tempfile::tempdir().unwrap();
    let expected = uninterrupted(runs.path());
    let (mut recorder, dir) = begin(runs.path());
    Training::new().until(&mut recorder, 50);
    drop(recorder);
    let left = [
        ".model.safetensors.aB3dE6",
        ".summary.json.000000",
        ".observations.steps.parquet.zzzzzz",
        "observations.layers.partial",
        "checkpoints/.step-000000060.ckpt.XyZ123",
    ];
    let own = [".notes.txt.backup", ".model.safetensors", ".gitignore", "notes.partial"];
    for name in left.iter().chain(&own) {
        fs::write(dir.join(name), "torn").unwrap();
    }
    assert!(go_on(&dir) == expected);
    assert_eq!(left.map(|name| dir.join(name).exists()), [false; 5]);
    assert_eq!(own.map(|name| dir.join(name).exists()), [true; 4]);
}
