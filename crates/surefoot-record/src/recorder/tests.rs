//! Records can be read while they are written, after a crash and after the end.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::digest::Digest;
use crate::error::Error;
use crate::event::Event;
use crate::fixture::*;
use crate::header::{Environment, Header};
use crate::record::Record;
use crate::recorder::Recorder;
use crate::step_digest::StepDigest;

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_finished_run_has_the_promised_files_and_all_that_was_recorded() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    let mut training = Training::new();
    training.until(&mut recorder, 55);
    training.finish(recorder);
    assert_eq!(
        names(&dir),
        [
            "checkpoints",
            "digests.bin",
            "events.jsonl",
            "header.json",
            "model.safetensors",
            "observations.layers.parquet",
            "observations.steps.parquet",
            "plan.final.toml",
            "plan.toml",
            "summary.json",
        ]
    );
    assert_eq!(readable_steps(&dir), 55);
    let run = Record::open(&dir).unwrap();
    assert_eq!(run.plan(), PLAN);
    assert_eq!(run.header(), &header());
    assert_eq!(run.digests().unwrap().len(), 55);
    let digest = run.digests().unwrap().digest_at(55);
    assert_eq!(digest, Some(training.step_digest().digest));
    assert_eq!(run.evaluations().unwrap().len(), 5);
    assert_eq!(run.checkpoint_steps().unwrap(), [40, 20]);
    assert_eq!(run.checkpoint_at(20).unwrap().step, 20);
    assert_eq!(run.summary().unwrap().unwrap().steps, 55);
    let kinds: Vec<String> = run.events().unwrap().iter().map(|e| e.kind().to_owned()).collect();
    assert_eq!(
        kinds,
        [
            "started",
            "evaluation",
            "evaluation",
            "checkpoint",
            "evaluation",
            "evaluation",
            "checkpoint",
            "evaluation",
            "finished"
        ]
    );
}

#[test]
fn steps_alone_are_the_same_without_layers() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    Training::new().until(&mut recorder, 12);
    recorder.sync().unwrap();
    let run = Record::open(&dir).unwrap();
    for (step, read) in (1..).zip(run.steps().unwrap()) {
        let mut expected = observation(step);
        expected.layers.clear();
        expected.input = None;
        assert_eq!(format!("{:?}", read.unwrap()), format!("{expected:?}"));
    }
    assert_eq!(run.steps().unwrap().count(), 12);
}

#[test]
fn a_run_that_goes_on_can_be_read() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    assert_eq!(readable_steps(&dir), 0);
    let mut training = Training::new();
    for step in [3, 4, 17] {
        training.until(&mut recorder, step);
        recorder.sync().unwrap();
        assert_eq!(readable_steps(&dir), step);
    }
    let run = Record::open(&dir).unwrap();
    assert!(run.summary().unwrap().is_none());
    assert!(run.checkpoint().unwrap().is_none());
    assert!(run.model().unwrap().is_none());
    assert!(run.final_plan().unwrap().is_none());
}

#[test]
fn a_run_is_followed_while_it_trains_and_after_its_end() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    let mut training = Training::new();
    let run = Record::open(&dir).unwrap();
    let mut seen = run.observations().unwrap();
    let (mut events, mut at) = run.events_from(0).unwrap();
    let mut steps = Vec::new();
    for until in [7, 20, 33] {
        training.until(&mut recorder, until);
        recorder.sync().unwrap();
        assert!(seen.refresh().unwrap());
        steps.extend(seen.by_ref().map(|step| step.unwrap()));
        assert_eq!(steps.len() as u64, until);
        let (new, end) = run.events_from(at).unwrap();
        events.extend(new);
        at = end;
    }
    training.until(&mut recorder, 40);
    training.finish(recorder);
    // The live files are gone, but not for a reader that has them open.
    assert!(seen.refresh().unwrap());
    steps.extend(seen.map(|step| step.unwrap()));
    let whole: Vec<_> = run.observations().unwrap().map(|step| step.unwrap()).collect();
    // The text, because NaN is not equal to itself.
    assert!(format!("{steps:?}") == format!("{whole:?}"));
    events.extend(run.events_from(at).unwrap().0);
    assert!(format!("{events:?}") == format!("{:?}", run.events().unwrap()));
}

#[test]
fn a_step_waits_for_its_layers() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    Training::new().until(&mut recorder, 30);
    drop(recorder);
    let run = Record::open(&dir).unwrap();
    let whole: Vec<_> = run.observations().unwrap().map(|step| step.unwrap()).collect();
    let layers = dir.join("observations.layers.arrows");
    let content = fs::read(&layers).unwrap();
    fs::write(&layers, &content[..content.len() / 3]).unwrap();
    let mut seen = run.observations().unwrap();
    let mut steps: Vec<_> = seen.by_ref().map(|step| step.unwrap()).collect();
    assert!(steps.len() < whole.len());
    fs::write(&layers, &content).unwrap();
    assert!(seen.refresh().unwrap());
    steps.extend(seen.by_ref().map(|step| step.unwrap()));
    assert!(format!("{steps:?}") == format!("{whole:?}"));
    fs::write(&layers, &content[..10]).unwrap();
    assert!(!seen.refresh().unwrap(), "the file was cut");
}

#[test]
fn many_steps_are_written_without_being_asked_to() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    for step in 1..=5000 {
        recorder.observe(&observation(step));
    }
    drop(recorder);
    assert_eq!(readable_steps(&dir), 5000);
}

#[test]
fn a_table_cut_anywhere_is_read_up_to_a_whole_step() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    let mut training = Training::new();
    for step in [2, 3, 6, 9] {
        training.until(&mut recorder, step);
        recorder.sync().unwrap();
    }
    drop(recorder);
    for table in ["observations.steps.arrows", "observations.layers.arrows"] {
        let path = dir.join(table);
        let whole = fs::read(&path).unwrap();
        let mut seen = Vec::new();
        // Every byte is cut at where the stream itself is tested.
        for cut in (0..whole.len()).step_by(19).chain([whole.len()]) {
            fs::write(&path, &whole[..cut]).unwrap();
            seen.push(readable_steps(&dir));
        }
        assert!(seen.is_sorted());
        seen.dedup();
        assert_eq!(seen, [0, 2, 3, 6, 9], "{table}");
        fs::remove_file(&path).unwrap();
        assert_eq!(readable_steps(&dir), 0);
        fs::write(&path, whole).unwrap();
    }
}

#[test]
fn a_full_disk_is_told_once_in_full_and_leaves_what_was_written() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    Training::new().until(&mut recorder, 15);
    recorder.sync().unwrap();
    // The thread continues on a full disk.
    let mut files = recorder.writer.finish().unwrap();
    files.layers.file.limit = Some(files.layers.file.length() + 100);
    recorder.writer = crate::writer::Writer::start(&recorder.layout, files).unwrap();
    for step in 16..3000 {
        recorder.observe(&observation(step));
    }
    let error = recorder.sync().unwrap_err();
    assert!(matches!(error, Error::Io { .. }));
    let error = error.to_string();
    assert!(error.contains("observations.layers.arrows"), "{error}");
    assert!(error.contains("free some space"), "{error}");
    let error = recorder.event(&Event::Interrupted { step: 15 }).unwrap_err();
    assert!(matches!(error, Error::Failed { .. }));
    assert!(error.to_string().contains("observations.layers.arrows"));
    let mut training = Training::new();
    training.step = 3000;
    assert!(recorder.checkpoint(&training.checkpoint()).is_err());
    drop(recorder);
    assert_eq!(readable_steps(&dir), 15);
    let run = Record::open(&dir).unwrap();
    assert!(run.checkpoint().unwrap().is_none(), "never ahead of the record");
}

#[test]
fn an_observation_with_other_layers_is_refused() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, _) = begin(runs.path());
    let mut wrong = observation(1);
    wrong.layers.pop();
    recorder.observe(&wrong);
    let error = recorder.sync().unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot record the observation of step 1: it has 2 layers and the header has 3"
    );
}

#[test]
fn an_event_without_kind_or_step_is_refused() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    for value in [json!(3), json!({"event": "x"}), json!({"step": 1})] {
        assert!(recorder.event(&Event::Other(value)).is_err());
    }
    let finding = json!({"event": "finding", "step": 4, "layers": ["a\nb"]});
    recorder.event(&Event::Other(finding.clone())).unwrap();
    let events = Record::open(&dir).unwrap().events().unwrap();
    assert_eq!(events[1], Event::Other(finding));
    assert_eq!(events.len(), 2);
}

#[test]
fn two_layers_of_one_name_leave_no_directory_behind() {
    let runs = tempfile::tempdir().unwrap();
    let mut header = header();
    header.facts.layers[2].name = header.facts.layers[0].name.clone();
    let error = Recorder::create(runs.path(), "x", PLAN, header).unwrap_err();
    assert!(error.to_string().contains("two layers are called `dense_1`"));
    assert!(names(runs.path()).is_empty());
}

#[test]
fn a_run_without_layers_is_a_run() {
    let runs = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::create(runs.path(), "x", "", Header::default()).unwrap();
    let dir = recorder.dir().to_owned();
    let mut bare = observation(5);
    bare.input = None;
    recorder.observe(&bare);
    recorder.digest(&digest_of(5, 0));
    Training::new().finish(recorder);
    let run = Record::open(&dir).unwrap();
    let read: Vec<_> = run.observations().unwrap().map(Result::unwrap).collect();
    assert_eq!(read, [bare]);
}

#[test]
fn a_checkpoint_of_the_same_step_is_one_event() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    let training = Training::new();
    let first = recorder.checkpoint(&training.checkpoint()).unwrap();
    assert_eq!(recorder.checkpoint(&training.checkpoint()).unwrap(), first);
    let events = Record::open(&dir).unwrap().events().unwrap();
    assert_eq!(events.len(), 2);
}

#[test]
fn so_many_checkpoints_are_kept_as_were_asked_for() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    recorder.keep_checkpoints(3);
    let mut training = Training::new();
    training.until(&mut recorder, 100);
    let run = Record::open(&dir).unwrap();
    assert_eq!(run.checkpoint_steps().unwrap(), [100, 80, 60]);
    recorder.keep_checkpoints(0);
    training.until(&mut recorder, 120);
    assert_eq!(run.checkpoint_steps().unwrap(), [120]);
}

#[test]
fn a_run_can_have_a_place_of_its_own_once() {
    let runs = tempfile::tempdir().unwrap();
    let dir = runs.path().join("circles-001/attempts/attempt-003");
    let recorder = Recorder::create_at(&dir, PLAN, header()).unwrap();
    assert_eq!(recorder.dir(), dir);
    assert_eq!(Record::open(&dir).unwrap().plan(), PLAN);
    assert!(Recorder::create_at(&dir, PLAN, header()).is_err());
    assert!(Record::open(&dir).is_ok(), "what was there is left as it is");
}

fn digest_of(step: u64, parts: usize) -> StepDigest {
    let mut digest = StepDigest::default();
    digest.seal(step, &vec![Digest(1); parts]);
    digest
}

#[test]
fn a_digest_with_other_parts_than_the_header_is_refused() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, _) = begin(runs.path());
    recorder.digest(&digest_of(1, 1));
    recorder.digest(&digest_of(2, 3));
    let error = recorder.sync().unwrap_err().to_string();
    assert!(error.contains("the digest of step 2"), "{error}");
}

#[test]
fn digests_that_a_finished_run_has_lost_are_missed() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    let mut training = Training::new();
    training.until(&mut recorder, 5);
    training.finish(recorder);
    let path = dir.join("digests.bin");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let error = Record::open(&dir).unwrap().digests().unwrap_err();
    let message = error.to_string();
    assert!(message.contains("digests.bin is damaged"), "{message}");
    assert!(message.contains("at step 4"), "{message}");
}

#[test]
fn digests_of_an_older_format_are_not_taken_for_those_of_today() {
    let runs = tempfile::tempdir().unwrap();
    let (mut recorder, dir) = begin(runs.path());
    Training::new().until(&mut recorder, 3);
    drop(recorder);
    let path = dir.join("header.json");
    let header = fs::read_to_string(&path).unwrap();
    fs::write(&path, header.replace("\"format\": 2", "\"format\": 1")).unwrap();
    let run = Record::open(&dir).unwrap();
    assert!(run.observations().is_ok());
    assert!(matches!(run.digests(), Err(Error::Older { found: 1, .. })));
    let resumed = Recorder::resume(&dir, &Environment::default());
    assert!(matches!(resumed, Err(Error::Older { found: 1, .. })));
}

#[test]
fn copies_are_written_before_the_header() {
    let runs = tempfile::tempdir().unwrap();
    let model = runs.path().join("model.h5");
    fs::write(&model, "weights").unwrap();
    // A copy that was written after the header would replace it.
    let files = [(&*model, "initial.h5".to_owned()), (&*model, "header.json".to_owned())];
    let recorder = Recorder::create_with(runs.path(), "x", PLAN, header(), &files).unwrap();
    assert_eq!(fs::read(recorder.dir().join("initial.h5")).unwrap(), b"weights");
    assert_eq!(Record::open(recorder.dir()).unwrap().header(), &header());
}

#[test]
fn a_copy_that_fails_leaves_no_run() {
    let runs = tempfile::tempdir().unwrap();
    let files = [(&*runs.path().join("missing.h5"), "initial.h5".to_owned())];
    let error = Recorder::create_with(runs.path(), "x", PLAN, header(), &files).unwrap_err();
    assert!(error.to_string().contains("cannot copy the model to"), "{error}");
    assert_eq!(names(runs.path()), [""; 0]);
}
