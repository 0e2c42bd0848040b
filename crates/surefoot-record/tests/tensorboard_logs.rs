//! Event files, written by hand to the letter of the format.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use proptest::prelude::*;
use std::path::Path;
use surefoot_record::logs::{Error, Log, Map, Unit, read};
use tempfile::TempDir;

/// A field of a message with a length before it.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    bytes.extend(varint(content.len() as u64));
    bytes.extend(content);
    bytes
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn masked(data: &[u8]) -> [u8; 4] {
    let crc = crc32c::crc32c(data);
    (crc.rotate_right(15).wrapping_add(0xa282_ead8)).to_le_bytes()
}

fn record(data: &[u8]) -> Vec<u8> {
    let size = (data.len() as u64).to_le_bytes();
    [&size[..], &masked(&size), data, &masked(data)].concat()
}

fn event(step: i64, tag: &str, value: &[u8]) -> Vec<u8> {
    let value = [field(1, tag.as_bytes()), value.to_vec()].concat();
    let mut event = vec![1 << 3 | 1];
    event.extend(1.7e9_f64.to_le_bytes());
    event.push(2 << 3);
    event.extend(varint(step as u64));
    event.extend(field(5, &field(1, &value)));
    record(&event)
}

/// `simple_value`.
fn simple(step: i64, tag: &str, value: f32) -> Vec<u8> {
    event(step, tag, &[&[2 << 3 | 5][..], &value.to_le_bytes()].concat())
}

/// `tensor` with `tensor_content`, as TensorFlow 2 writes it, with a plugin before it.
fn tensor(step: i64, tag: &str, value: f32) -> Vec<u8> {
    let tensor = [&[1 << 3, 1, 2 << 3 | 2, 0][..], &field(4, &value.to_le_bytes())].concat();
    let plugin = field(9, &field(1, &field(1, b"scalars")));
    event(step, tag, &[plugin, field(8, &tensor)].concat())
}

/// `tensor` with `float_val`, packed.
fn float_val(step: i64, tag: &str, value: f32) -> Vec<u8> {
    let tensor = [&[1 << 3, 1][..], &field(5, &value.to_le_bytes())].concat();
    event(step, tag, &field(8, &tensor))
}

/// `tensor` with `double_val`, not packed.
fn double_val(step: i64, tag: &str, value: f64) -> Vec<u8> {
    let tensor = [&[1 << 3, 2, 6 << 3 | 1][..], &value.to_le_bytes()].concat();
    event(step, tag, &field(8, &tensor))
}

/// A string in a tensor: no scalar.
fn text(step: i64, tag: &str) -> Vec<u8> {
    let tensor = [&[1 << 3, 7][..], &field(8, b"words")].concat();
    event(step, tag, &field(8, &tensor))
}

fn version() -> Vec<u8> {
    let mut event = vec![1 << 3 | 1];
    event.extend(1.7e9_f64.to_le_bytes());
    event.extend(field(3, b"brain.Event:2"));
    record(&event)
}

fn write(dir: &TempDir, path: &str, records: &[Vec<u8>]) {
    let path = dir.path().join(path).join("events.out.tfevents.1700000000.host");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, [&[version()], records].concat().concat()).unwrap();
}

fn log(path: &Path) -> Result<Log, Error> {
    read(path, &Map::new()).map(|mut logs| logs.remove(0))
}

fn losses(log: &Log) -> Vec<f64> {
    log.steps.iter().map(|seen| seen.loss).collect()
}

#[test]
fn scalars_are_read_in_every_form() {
    let dir = tempfile::tempdir().unwrap();
    write(
        &dir,
        "",
        &[
            simple(10, "train/loss", 4.0),
            tensor(20, "train/loss", 3.0),
            float_val(30, "train/loss", 2.0),
            double_val(40, "train/loss", 1.0),
            simple(30, "val/loss", f32::NAN),
            text(10, "loss"),
        ],
    );
    let log = log(dir.path()).unwrap();
    assert_eq!(log.origin.format, "TensorBoard");
    assert_eq!(losses(&log), [4.0, 3.0, 2.0, 1.0]);
    assert_eq!((log.origin.unit, log.at(3)), (Unit::Step, 30));
    assert_eq!(log.evaluations[0].step, 3);
    assert!(log.evaluations[0].loss.is_nan());
    let names: Vec<_> = log.origin.series.iter().map(|series| &series.name[..]).collect();
    assert_eq!(names, ["train/loss", "val/loss"]);
}

#[test]
fn keras_has_folders_for_splits_and_counts_epochs() {
    let dir = tempfile::tempdir().unwrap();
    let train: Vec<_> = (0..3).map(|i| tensor(i, "epoch_loss", 3.0 - i as f32)).collect();
    write(&dir, "train", &train);
    let validation = (0..3).flat_map(|i| {
        let iterations = tensor(100 * i, "evaluation_loss_vs_iterations", 9.0);
        [tensor(i, "epoch_loss", 5.0), iterations]
    });
    write(&dir, "validation", &validation.collect::<Vec<_>>());
    let log = log(dir.path()).unwrap();
    assert_eq!(losses(&log), [3.0, 2.0, 1.0]);
    assert_eq!((log.origin.unit, log.at(3)), (Unit::Epoch, 2));
    let evaluations: Vec<_> = log.evaluations.iter().map(|e| (e.step, e.epoch, e.loss)).collect();
    assert_eq!(evaluations, [(1, 1, 5.0), (2, 2, 5.0), (3, 3, 5.0)]);
}

#[test]
fn keras_batches_stand_beside_evaluations_by_iterations() {
    let dir = tempfile::tempdir().unwrap();
    let mut train: Vec<_> = (0..6).map(|i| tensor(i, "batch_loss", 6.0 - i as f32)).collect();
    train.extend((0..2).map(|i| tensor(i, "epoch_loss", 1.0)));
    write(&dir, "train", &train);
    let evaluation = |step| tensor(step, "evaluation_loss_vs_iterations", 7.0);
    let epoch = |step| tensor(step, "epoch_loss", 5.0);
    write(&dir, "validation", &[epoch(0), evaluation(2), epoch(1), evaluation(5)]);
    let log = log(dir.path()).unwrap();
    assert_eq!((log.steps.len(), log.origin.unit), (6, Unit::Step));
    let evaluations: Vec<_> = log.evaluations.iter().map(|e| (e.step, e.loss)).collect();
    assert_eq!(evaluations, [(3, 7.0), (6, 7.0)]);
}

#[test]
fn several_runs_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    for run in ["a/train", "b"] {
        write(&dir, run, &[simple(1, "loss", 1.0)]);
    }
    write(&dir, "b/hparams", &[simple(1, "score", 1.0)]);
    let logs = read(dir.path(), &Map::new()).unwrap();
    let runs: Vec<_> = logs.iter().map(|log| log.origin.run.as_deref()).collect();
    assert_eq!(runs, [Some("a"), Some("b")]);
    assert_eq!(losses(&log(&dir.path().join("b")).unwrap()), [1.0]);
}

#[test]
fn a_log_without_a_loss_says_what_it_has() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir, "", &[simple(1, "reward", 1.0), simple(1, "speed", 1.0)]);
    let error = log(dir.path()).unwrap_err().to_string();
    assert!(error.ends_with("no tag that looks like the loss\n  tags: reward, speed"), "{error}");
    let map = Map::from([("loss".parse().unwrap(), "reward".to_owned())]);
    assert_eq!(losses(&read(dir.path(), &map).unwrap()[0]), [1.0]);
}

#[test]
fn a_file_that_is_being_written_ends_at_its_last_whole_record() {
    let dir = tempfile::tempdir().unwrap();
    let whole = [version(), simple(1, "loss", 2.0)].concat();
    let last = simple(2, "loss", 1.0);
    let path = dir.path().join("log");
    for cut in 0..last.len() {
        std::fs::write(&path, [&whole, &last[..cut]].concat()).unwrap();
        assert_eq!(losses(&log(&path).unwrap()), [2.0], "cut at {cut}");
    }
    std::fs::write(&path, [whole, last].concat()).unwrap();
    assert_eq!(losses(&log(&path).unwrap()), [2.0, 1.0]);
}

#[test]
fn any_changed_byte_is_noticed_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tfevents");
    let before = [version(), simple(1, "loss", 2.0)].concat();
    let bytes = [&before[..], &simple(2, "loss", 1.0), &simple(3, "loss", 0.5)].concat();
    for place in before.len()..before.len() + simple(2, "loss", 1.0).len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x10;
        std::fs::write(&path, damaged).unwrap();
        match log(&path).unwrap_err() {
            Error::Damaged { offset, .. } => assert_eq!(offset, before.len() as u64),
            error => panic!("{error}"),
        }
    }
}

#[test]
fn a_record_that_is_no_event_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.tfevents");
    std::fs::write(&path, record(&[0xff, 0xff, 0xff])).unwrap();
    let error = log(&path).unwrap_err().to_string();
    assert!(error.contains("damaged at byte 0: a record is not an event"), "{error}");
}

proptest! {
    #[test]
    fn whatever_stands_in_a_record_is_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..60)) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.tfevents");
        std::fs::write(&path, [simple(1, "loss", 1.0), record(&data)].concat()).unwrap();
        match log(&path) {
            Ok(log) => prop_assert!(!log.steps.is_empty()),
            Err(error) => prop_assert!(error.to_string().contains("damaged at byte"), "{}", error),
        }
    }
}
