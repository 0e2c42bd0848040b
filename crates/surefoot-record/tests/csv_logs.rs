//! CSV files as Keras, Lightning, Weights & Biases and people write them.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use proptest::prelude::*;
use std::collections::BTreeSet;
use surefoot_diagnose::{Quantity, Split, TaskKind};
use surefoot_record::logs::{Error, Log, Map, Role, Unit, read};

fn read_with(text: &str, map: &[(&str, &str)]) -> Result<Log, Error> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("metrics.csv");
    std::fs::write(&path, text).unwrap();
    let map = map.iter().map(|(role, name)| (role.parse().unwrap(), (*name).to_owned()));
    read(&path, &map.collect::<Map>()).map(|mut logs| logs.remove(0))
}

fn logs(text: &str) -> Vec<Log> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("metrics.csv");
    std::fs::write(&path, text).unwrap();
    read(&path, &Map::new()).unwrap()
}

fn log(text: &str) -> Log {
    read_with(text, &[]).unwrap()
}

fn complaint(text: &str, map: &[(&str, &str)]) -> String {
    let error = read_with(text, map).unwrap_err().to_string();
    let (_, after) = error.split_once("metrics.csv").unwrap();
    after.to_owned()
}

fn losses(log: &Log) -> Vec<f64> {
    log.steps.iter().map(|seen| seen.loss).collect()
}

#[test]
fn a_history_of_keras_has_a_step_for_each_epoch() {
    let log = log("epoch,accuracy,loss,val_accuracy,val_loss\n\
                   0,0.5,0.7,0.4,0.8\n1,0.75,0.5,0.6,0.6\n2,0.8,nan,0.7,inf\n");
    assert_eq!(log.origin.format, "CSV");
    assert_eq!(log.origin.unit, Unit::Epoch);
    assert_eq!((log.facts.epochs, log.facts.steps_per_epoch), (Some(3), Some(1)));
    assert_eq!(log.facts.metric.as_deref(), Some("accuracy"));
    assert_eq!(losses(&log)[..2], [0.7, 0.5]);
    assert!(log.steps[2].loss.is_nan());
    assert_eq!(log.steps[1].metric, Some(0.75));
    assert_eq!((log.steps[1].step, log.steps[1].epoch, log.at(2)), (2, 2, 1));
    let last = &log.evaluations[2];
    assert_eq!((last.step, last.epoch, last.split), (3, 3, Split::Validation));
    assert_eq!((last.loss, last.metric), (f64::INFINITY, Some(0.7)));
    let seen = BTreeSet::from([Quantity::Loss, Quantity::Metric, Quantity::Validation]);
    assert_eq!(log.available, seen);
}

#[test]
fn lightning_spreads_a_step_over_rows() {
    let log = log("epoch,lr-Adam,step,train_acc,train_loss_epoch,train_loss_step,val_loss\n\
                   ,0.1,49,,,,\n0,,49,,,0.9,\n0,,99,,,0.8,\n0,,120,0.6,0.85,,\n0,,120,,,,0.7\n\
                   1,,149,,,0.6,\n1,,199,,,0.5,\n1,,241,0.7,0.55,,\n1,,241,,,,0.75\n");
    assert_eq!(losses(&log), [0.9, 0.8, 0.6, 0.5]);
    assert_eq!(log.origin.unit, Unit::Step);
    assert_eq!([1, 2, 3, 4].map(|step| log.at(step)), [49, 99, 149, 199]);
    let metrics: Vec<_> = log.steps.iter().map(|seen| seen.metric).collect();
    assert_eq!(metrics, [Some(0.6), Some(0.6), Some(0.7), Some(0.7)]);
    let evaluations: Vec<_> = log.evaluations.iter().map(|e| (e.step, e.epoch, e.loss)).collect();
    assert_eq!(evaluations, [(2, 1, 0.7), (4, 2, 0.75)]);
    assert_eq!(log.steps[3].learning_rate, Some(0.1));
    assert_eq!((log.facts.epochs, log.facts.steps_per_epoch), (Some(2), Some(2)));
}

#[test]
fn an_export_of_weights_and_biases_names_the_run() {
    let log = log(
        "\"Step\",\"sun-5 - train/loss\",\"sun-5 - train/loss__MIN\",\"sun-5 - train/loss__MAX\"\n\
                   0,2,1,3\n10,1.5,1,2\n",
    );
    assert_eq!(losses(&log), [2.0, 1.5]);
    assert_eq!(log.at(2), 10);
    assert_eq!(log.steps[0].learning_rate, None);
}

#[test]
fn columns_can_be_named() {
    let text = "when;what;quality\n1;0.5;3\n2;0.25;4\n";
    let log =
        read_with(text, &[("loss", "what"), ("metric", "quality"), ("step", "when")]).unwrap();
    assert_eq!(losses(&log), [0.5, 0.25]);
    assert_eq!(log.facts.metric.as_deref(), Some("quality"));
    assert_eq!(log.steps[1].metric, Some(4.0));
    assert!(log.origin.series.iter().all(|series| series.mapped));
}

#[test]
fn a_named_column_goes_before_a_guessed_one() {
    let log = read_with("loss,total\n1,5\n2,6\n", &[("loss", "total")]).unwrap();
    assert_eq!(losses(&log), [5.0, 6.0]);
}

#[test]
fn accuracy_in_percent_becomes_a_share() {
    let log = log("epoch,loss,acc,val_loss,val_acc\n1,1,50,1,40\n2,1,87.5,1,62.5\n");
    assert_eq!(log.steps[1].metric, Some(0.875));
    assert_eq!(log.evaluations[1].metric, Some(0.625));
    assert_eq!(log.at(2), 2);
}

#[test]
fn r2_says_that_it_is_a_regression() {
    let log = log("step,loss,r2\n1,9,-0.5\n2,5,0.5\n");
    assert_eq!((log.facts.task, log.facts.chance), (Some(TaskKind::Regression), Some(0.0)));
}

#[test]
fn gradient_norms_make_layers_in_the_order_of_the_file() {
    let log = log("step,loss,grad_norm/b.weight,grad_norm/b.bias,a/grad_norm\n\
                   1,1,3,4,nan\n2,1,,,\n");
    let names: Vec<_> = log.facts.layers.iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(names, ["b", "a"]);
    let [b, a] = log.steps[0].layers[..] else {
        panic!("{:?}", log.steps[0]);
    };
    assert_eq!(b.gradient.unwrap().l2, 5.0);
    assert_eq!(a.gradient.unwrap().nan, 1);
    assert!(log.steps[1].layers.is_empty());
    assert!(log.available.contains(&Quantity::Gradients));
}

#[test]
fn a_resumed_run_overwrites_what_it_does_again() {
    let log = log("step,loss\n1,5\n2,4\n3,9\n2,3\n3,2\n4,1\n");
    assert_eq!(losses(&log), [5.0, 3.0, 2.0, 1.0]);
}

#[test]
fn steps_that_begin_anew_with_each_epoch_are_rows() {
    let log = log("epoch,batch,loss\n0,0,4\n0,1,3\n1,0,2\n1,1,1\n");
    assert_eq!(losses(&log), [4.0, 3.0, 2.0, 1.0]);
    assert_eq!((log.origin.unit, log.at(3)), (Unit::Row, 3));
    assert_eq!((log.facts.epochs, log.facts.steps_per_epoch), (Some(2), Some(2)));
}

#[test]
fn parts_of_epochs_are_rounded_up() {
    let log = log("epoch,step,loss\n0.5,10,4\n1.0,20,3\n1.5,30,2\n");
    let epochs: Vec<u64> = log.steps.iter().map(|seen| seen.epoch).collect();
    assert_eq!(epochs, [1, 1, 2]);
}

#[test]
fn what_was_planned_can_be_told() {
    let rows: String = (0..20).map(|i| format!("{},1\n", i * 10)).collect();
    let mut log = log(&format!("step,loss\n{rows}"));
    assert_eq!(log.facts.total_steps(), Some(20));
    log.plan(None, Some(50));
    assert_eq!((log.facts.epochs, log.facts.steps_per_epoch), (Some(4), Some(5)));
    assert_eq!(log.steps[5].epoch, 2);
    log.plan(Some(8), None);
    assert_eq!(log.facts.total_steps(), Some(40));
}

#[test]
fn a_log_that_begins_in_the_middle_has_the_epochs_it_has() {
    let mut log = log("epoch,loss\n10,3\n11,2\n12,1\n");
    assert_eq!(log.facts.total_steps(), Some(3));
    log.plan(Some(20), None);
    assert_eq!(log.facts.total_steps(), Some(11));
}

#[test]
fn a_file_without_a_loss_says_what_it_has() {
    assert_eq!(
        complaint("time,quality\n1,2\n", &[]),
        " has no column that looks like the loss\n  columns: time, quality"
    );
    assert_eq!(complaint("", &[]), " has no column that looks like the loss\n  columns: none");
}

#[test]
fn a_column_that_is_not_there_is_named() {
    assert_eq!(
        complaint("time,loss\n1,2\n", &[("loss", "Loss")]),
        " has no column `Loss`\n  columns: time, loss"
    );
    assert!(
        complaint("loss,q\n1,\n", &[("loss", "q")])
            .contains("column `q`, read as the loss, contains no numbers")
    );
    assert!("val".parse::<Role>().is_err());
}

#[test]
fn a_cell_that_is_no_number_is_a_warning_with_its_place() {
    let log = log("step,loss\n1,0.5\n2,about 0.4\n3,0.3\n");
    assert_eq!(losses(&log), [0.5, 0.3]);
    let warning = &log.warnings[0];
    assert!(warning.contains("line 3, column `loss`: `about 0.4` is not a number"), "{warning}");
}

#[test]
fn a_row_that_is_too_long_is_a_warning_and_one_that_is_cut_off_is_not() {
    let log = log("step,loss\n1,0,5\n2,0.5\n3");
    assert_eq!(losses(&log), [0.5]);
    assert!(log.warnings.iter().any(|warning| warning.contains("line 2 has 3 cells")));
}

#[test]
fn the_loss_that_covers_the_log_is_used() {
    let rows: String = (0..100)
        .map(|step| match step < 10 {
            true => format!("{step},{},\n", 7.0),
            false => format!("{},,{}\n", 100 * step, 1.0),
        })
        .collect();
    let log = log(&format!("global_step,loss,train/loss\n0,7,9\n{rows}"));
    assert_eq!(log.origin.series[0].name, "train/loss");
    assert_eq!(log.steps.len(), 91);
    assert!(
        log.warnings.iter().any(|w| w.contains("10 of 101 rows have no value in `train/loss`"))
    );
}

#[test]
fn a_loss_that_is_empty_beside_a_metric_is_nan() {
    let log = log("epoch,loss,accuracy\n0,2.5,0.1\n1,,0.1\n2,,0.1\n");
    assert_eq!(log.steps[0].loss, 2.5);
    assert!(log.steps[1..].iter().all(|seen| seen.loss.is_nan()) && log.steps.len() == 3);
    let never = crate::log("epoch,loss,accuracy\n0,,0.1\n1,,0.1\n2,,0.1\n");
    assert_eq!(never.steps.len(), 3);
    let apart = crate::log("step,loss,val_loss\n1,2,\n1,,3\n2,1,\n2,,2\n");
    assert_eq!(losses(&apart), [2.0, 1.0]);
}

#[test]
fn decimal_commas_and_downloads_of_tensorboard_are_read() {
    assert_eq!(losses(&log("epoch;loss\n0;2,55\n1;1,5\n")), [2.55, 1.5]);
    assert_eq!(losses(&log("Wall time,Step,Value\n1.5,0,3\n2.5,10,2\n")), [3.0, 2.0]);
}

#[test]
fn losses_of_other_names_are_used_if_there_is_no_better_one() {
    for text in [
        "epoch,train/box_loss,train/cls_loss,val/box_loss\n1,3,9,5\n2,2,9,4\n",
        "iteration,train-logloss,test-logloss\n1,3,5\n2,2,4\n",
        "step\ttrain_loss\tval_ppl\n1\t3\t5\n2\t2\t4\n",
    ] {
        let log = log(text);
        assert_eq!(losses(&log), [3.0, 2.0], "{text}");
        assert_eq!(log.evaluations[1].loss, 4.0, "{text}");
    }
}

#[test]
fn several_runs_in_a_file_are_several_logs() {
    let restarted = "epoch,loss\n0,3\n1,2\n2,1\nepoch,loss\n0,4\n1,3\n2,2\n";
    let columns =
        "Step,a - train/loss,a - train/loss__MIN,b - train/loss\n0,3,1,4\n1,2,1,3\n2,1,1,2\n";
    let named = "seed,epoch,loss\n1,0,3\n2,0,4\n1,1,2\n2,1,3\n1,2,1\n2,2,2\n";
    for text in [restarted, columns, named] {
        let logs = logs(text);
        let all: Vec<_> = logs.iter().map(losses).collect();
        assert_eq!(all, [[3.0, 2.0, 1.0], [4.0, 3.0, 2.0]], "{text}");
        assert!(logs.iter().all(|log| log.origin.run.is_some()));
    }
}

#[test]
fn steps_that_start_over_with_falling_losses_are_one_run() {
    let log = logs("batch,loss\n0,9\n1,8\n2,7\n0,6\n1,5\n2,4\n");
    assert_eq!(log.len(), 1);
    assert_eq!(losses(&log[0]), [9.0, 8.0, 7.0, 6.0, 5.0, 4.0]);
}

#[test]
fn a_global_gradient_norm_is_read() {
    let log = log("step,loss,grad_norm\n1,2,0.5\n2,1,inf\n");
    assert_eq!(log.steps[1].gradient_norm, Some(f64::INFINITY));
    assert!(log.available.contains(&Quantity::Gradients));
}

#[test]
fn layers_in_alphabetical_order_are_sorted_naturally() {
    let log = log("step,loss,grad_norm/h.1,grad_norm/h.10,grad_norm/h.2\n1,1,3,4,5\n");
    let names: Vec<_> = log.facts.layers.iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(names, ["h.1", "h.2", "h.10"]);
    assert_eq!(log.steps[0].layers[2].gradient.unwrap().l2, 4.0);
}

#[test]
fn short_logs_are_not_judged() {
    assert!(log("epoch,loss\n0,1\n1,1\n2,1\n3,1\n").is_too_short());
    assert!(!log("epoch,loss\n0,1\n1,1\n2,1\n3,1\n4,1\n").is_too_short());
    assert!(log("step,loss\n0,1\n1,1\n2,1\n3,1\n4,1\n").is_too_short());
}

#[test]
fn bytes_that_are_no_text_are_no_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.csv");
    std::fs::write(&path, b"loss\n\xff\xfe\n").unwrap();
    let error = read(&path, &Map::new()).unwrap_err().to_string();
    assert!(error.contains("column `loss`, read as the loss, contains no numbers"), "{error}");
    std::fs::write(&path, b"loss,temp\xe9rature\n3,20\n2,21\n").unwrap();
    assert_eq!(losses(&read(&path, &Map::new()).unwrap()[0]), [3.0, 2.0]);
    let error = read(dir.path(), &Map::new()).unwrap_err().to_string();
    assert!(error.contains("has no log"), "{error}");
}

#[test]
fn a_folder_of_lightning_is_read_by_its_metrics() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("metrics.csv"), "step,loss\n1,2\n").unwrap();
    assert_eq!(losses(&read(dir.path(), &Map::new()).unwrap()[0]), [2.0]);
}

#[test]
fn versions_of_lightning_are_found_from_above() {
    let dir = tempfile::tempdir().unwrap();
    for (version, loss) in [("version_10", 3), ("version_2", 2)] {
        let version = dir.path().join("lightning_logs").join(version);
        std::fs::create_dir_all(&version).unwrap();
        std::fs::write(version.join("metrics.csv"), format!("step,loss\n1,{loss}\n")).unwrap();
    }
    let logs = read(dir.path(), &Map::new()).unwrap();
    assert_eq!(logs.iter().map(losses).collect::<Vec<_>>(), [[2.0], [3.0]]);
    assert_eq!(logs[1].origin.run.as_deref(), Some("lightning_logs/version_10/metrics.csv"));
}

proptest! {
    #[test]
    fn whatever_stands_in_the_cells_is_read_or_refused(
        header in "(epoch,|step,|acc,|lr,|val_loss,){0,4}loss",
        cells in "(nan|inf|-|[0-9]|1e300|\\.|,|,|\n){0,60}",
    ) {
        if let Ok(mut log) = read_with(&format!("{header}\n{cells}"), &[]) {
            log.plan(None, Some(7));
            log.plan(Some(3), None);
            prop_assert!(!log.steps.is_empty());
            prop_assert!(log.steps.iter().all(|seen| seen.epoch >= 1));
            prop_assert!(log.steps.iter().zip(1..).all(|(seen, step)| seen.step == step));
            prop_assert!(log.evaluations.is_sorted_by_key(|evaluation| evaluation.step));
        }
    }
}

#[test]
fn tables_of_bars_and_spaces() {
    for text in [
        "epoch train_loss valid_loss time\n0 3.0 5.0 00:07\n1 2.0 4.0 00:06\n",
        "epoch  train loss  valid loss\n0      3.0         5.0\n1      2.0         4.0\n",
        "| epoch | train loss | valid loss |\n|---|:--|---|\n| 0 | 3.0 | 5.0 |\n| 1 | 2.0 | 4.0 |\n",
    ] {
        let log = log(text);
        assert_eq!((losses(&log), log.origin.unit), (vec![3.0, 2.0], Unit::Epoch), "{text}");
        assert_eq!(log.evaluations[1].loss, 4.0, "{text}");
    }
}

#[test]
fn a_table_without_a_header_is_the_loss_if_it_has_no_more() {
    for text in ["3.0\n2.0\nnan\n", "10,3.0\n20,2.0\n30,nan\n"] {
        let log = log(text);
        assert!(losses(&log)[..2] == [3.0, 2.0] && log.steps[2].loss.is_nan(), "{text}");
        assert!(log.warnings[0].starts_with("the file has no header"), "{:?}", log.warnings);
    }
}

#[test]
fn a_validation_loss_stands_in_for_a_missing_one() {
    let log = log("epoch,val_loss,val_accuracy\n0,3.0,0.1\n1,2.0,0.2\n");
    assert_eq!((losses(&log), log.steps[1].metric), (vec![3.0, 2.0], Some(0.2)));
    assert_eq!(log.warnings, ["there is no training loss; `val_loss` is taken as the loss"]);
}

#[test]
fn a_validation_metric_without_a_loss_is_used() {
    let log = log("epoch,loss,test_acc\n0,3.0,51.5\n1,2.0,72.5\n");
    assert_eq!(
        log.steps.iter().map(|seen| seen.metric).collect::<Vec<_>>(),
        [Some(0.515), Some(0.725)]
    );
}

#[test]
fn a_loss_that_is_one_of_several_is_named() {
    let log = log("epoch,train/box_loss,train/cls_loss\n0,3.0,1.0\n1,2.0,0.5\n");
    let note = "`train/box_loss` is taken as the loss; other losses in the log: `train/cls_loss`";
    assert_eq!(log.warnings, [note]);
}
