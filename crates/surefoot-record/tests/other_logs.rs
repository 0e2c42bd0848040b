//! JSON, text and MLflow logs.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use surefoot_diagnose::{Severity, Thresholds};
use surefoot_record::logs::{Log, Map, Unit, read};

/// The only run in a file of this name and content.
fn log(name: &str, content: &str) -> Log {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, content).unwrap();
    let mut logs = read(&path, &Map::new()).unwrap();
    assert_eq!(logs.len(), 1, "{name}");
    logs.remove(0)
}

fn losses(log: &Log) -> Vec<f64> {
    log.steps.iter().map(|seen| seen.loss).collect()
}

fn validations(log: &Log) -> Vec<f64> {
    log.evaluations.iter().map(|seen| seen.loss).collect()
}

#[test]
fn json_lines() {
    let text = "{\"epoch\": 0, \"train\": {\"loss\": 3}, \"val_loss\": 5}\n\
                oops\n{\"epoch\": 1, \"train\": {\"loss\": 2}, \"val_loss\": 4}\n";
    let log = log("log.jsonl", text);
    assert_eq!(log.origin.format, "JSON lines");
    assert_eq!((losses(&log), validations(&log)), (vec![3.0, 2.0], vec![5.0, 4.0]));
    assert_eq!(log.warnings, ["line 2 is not a JSON object and is ignored"]);
}

#[test]
fn metrics_of_detectron() {
    let text = "{\"iteration\": 0, \"total_loss\": 3.0, \"loss_cls\": 9}\n\
                {\"iteration\": 20, \"total_loss\": NaN, \"loss_cls\": 9}\n";
    let log = log("metrics.json", text);
    assert_eq!((log.origin.unit, log.at(2)), (Unit::Step, 20));
    assert!(log.steps[1].loss.is_nan() && log.steps[0].loss == 3.0);
}

#[test]
fn history_of_keras() {
    for text in [
        r#"{"loss": [3, 2, NaN], "accuracy": [0.1, 0.2, 0.1], "params": {"epochs": 3}}"#,
        r#"{"history": {"loss": [3, 2, NaN], "accuracy": [0.1, 0.2, 0.1]}}"#,
        r#"[{"loss": 3, "accuracy": 0.1}, {"loss": 2, "accuracy": 0.2}, {"loss": NaN}]"#,
        r#"{"loss": {"0": 3, "1": 2, "2": NaN}, "accuracy": {"0": 0.1, "1": 0.2, "2": 0.1}}"#,
    ] {
        let log = log("history.json", text);
        assert_eq!(log.origin.format, "JSON");
        assert_eq!(losses(&log)[..2], [3.0, 2.0]);
        assert!(log.steps[2].loss.is_nan(), "{text}");
        assert_eq!(log.steps[1].metric, Some(0.2));
    }
}

#[test]
fn json_with_splits_and_other_lists() {
    let text = r#"{"classes": [1, 2, 3, 4], "history": {"lr": [1, 1],
        "train": {"loss": [3, 2], "acc": [0.1, 0.2]}, "val": {"loss": [5, 4]}}}"#;
    let log = log("history.json", text);
    assert_eq!((losses(&log), validations(&log)), (vec![3.0, 2.0], vec![5.0, 4.0]));
    assert_eq!(log.steps[1].metric, Some(0.2));
}

#[test]
fn json_of_rows_by_number_and_of_charts() {
    let rows = r#"{"epoch_10": {"loss": 1}, "epoch_9": {"loss": 2}, "epoch_1": {"loss": 3}}"#;
    assert_eq!(losses(&log("log.json", rows)), [3.0, 2.0, 1.0]);
    let chart = log("chart.json", "[[1700000000.5, 10, 3.0], [1700000001.5, 20, 2.0]]");
    assert_eq!((losses(&chart), chart.at(2)), (vec![3.0, 2.0], 20));
}

#[test]
fn several_histories_in_a_json_are_several_runs() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("folds.json");
    std::fs::write(&path, r#"{"a": {"loss": [3, 2]}, "b": {"loss": [5, 4]}}"#).unwrap();
    let logs = read(&path, &Map::new()).unwrap();
    let runs: Vec<_> = logs.iter().map(|log| (log.origin.run.clone(), losses(log))).collect();
    let run = |name: &str, losses: [f64; 2]| (Some(name.to_owned()), losses.to_vec());
    assert_eq!(runs, [run("a", [3.0, 2.0]), run("b", [5.0, 4.0])]);
}

#[test]
fn state_of_transformers() {
    let state = |last: u32| {
        format!(
            "{{\n\"log_history\": [{{\"loss\": 3, \"grad_norm\": 7, \"step\": 10, \"epoch\": 0.5}},\n\
             {{\"eval_loss\": 4, \"step\": 10, \"epoch\": 0.5}},\n\
             {{\"loss\": {last}, \"step\": 20, \"epoch\": 1.0}},\n\
             {{\"train_loss\": 9, \"step\": 20, \"epoch\": 1.0}}]}}"
        )
    };
    let log = log("trainer_state.json", &state(2));
    assert_eq!(log.origin.format, "Transformers");
    assert_eq!((losses(&log), validations(&log)), (vec![3.0, 2.0], vec![4.0]));
    assert_eq!(log.steps[0].gradient_norm, Some(7.0));

    let dir = tempfile::tempdir().unwrap();
    for (name, last) in [("checkpoint-90", 5), ("checkpoint-100", 1)] {
        let checkpoint = dir.path().join(name);
        std::fs::create_dir(&checkpoint).unwrap();
        std::fs::write(checkpoint.join("trainer_state.json"), state(last)).unwrap();
    }
    assert_eq!(losses(&read(dir.path(), &Map::new()).unwrap()[0]), [3.0, 1.0]);
}

#[test]
fn console_output_of_keras() {
    let bar = "Epoch 1/2\n 1/25 [>....] - ETA: 9s - loss: 9.0\r25/25 [====] - 2s 85ms/step - loss: 3.0 \
               - accuracy: 0.5 - val_loss: 5.0\nEpoch 2/2\n25/25 - 2s - loss: nan - accuracy: 0.5 - \
               val_loss: 4.0\n";
    let log = log("output.txt", bar);
    assert_eq!((log.origin.format, log.origin.unit), ("Keras output", Unit::Epoch));
    assert!(log.steps[0].loss == 3.0 && log.steps[1].loss.is_nan());
    assert_eq!(validations(&log), [5.0, 4.0]);
}

#[test]
fn notes_of_callbacks_do_not_hide_the_values_of_an_epoch() {
    let output = "> 2s - loss: 3.0 - val_loss: 5.0\n> Epoch 2/3\n\u{1b}[1m25/25\u{1b}[0m \u{1b}[32m━━\u{1b}[0m 2s \
                  85ms/step - loss: 2.0 - val_loss: 4.0\n\nEpoch 00002: val_loss improved from 5.00000 to \
                  4.00000, saving model to epoch-02_val_loss-4.0.h5\nEpoch 3/3\n9/9 - loss: 1.0\n";
    let log = log("output.txt", output);
    assert_eq!(log.origin.format, "Keras output");
    assert_eq!((losses(&log), log.at(1)), (vec![3.0, 2.0, 1.0], 1));
    assert_eq!(validations(&log), [5.0, 4.0]);
}

#[test]
fn phases_below_a_heading() {
    let epoch = |epoch: u32| {
        let loss = 3 - epoch;
        format!(
            "Epoch {epoch}/2\n----------\ntrain Loss: {loss}.0 Acc: 0.{epoch}\nval Loss: {loss}.5 Acc: 0.5\n\n"
        )
    };
    let log = log("train.log", &(0..3).map(epoch).collect::<String>());
    assert_eq!((losses(&log), validations(&log)), (vec![3.0, 2.0, 1.0], vec![3.5, 2.5, 1.5]));
    assert_eq!((log.steps[2].metric, log.evaluations[2].metric), (Some(0.2), Some(0.5)));
    assert_eq!((log.origin.unit, log.warnings), (Unit::Epoch, vec![]));
}

#[test]
fn text_that_begins_with_a_bracket_is_not_json() {
    let paddle = "[2021/06/03 00:17:35] root INFO: epoch: [1/600], iter: 10, loss: 1.5, ctc_loss: 9\n\
                  [2021/06/03 00:17:43] root INFO: epoch: [1/600], iter: 20, loss: nanxxx, ctc_loss: 9\n";
    let paddle = log("train.log", paddle);
    assert!(paddle.steps[0].loss == 1.5 && paddle.steps[1].loss.is_nan());
    assert_eq!(paddle.at(2), 20);
    let xgboost =
        log("out.txt", "[0]\ttrain-rmse:0.9\teval-rmse:1\n[10]\ttrain-rmse:0.8\teval-rmse:2\n");
    assert_eq!((losses(&xgboost), validations(&xgboost)), (vec![0.9, 0.8], vec![1.0, 2.0]));
    assert_eq!(xgboost.at(2), 10);
}

#[test]
fn numbers_below_a_line_of_names() {
    let yolo = "      Epoch    GPU_mem   box_loss   cls_loss  Instances       Size\n\
                \x20      1/55      9.02G     3.0      1.0         16        640: 100%|██| 954/954 [11:32<00:00]\n\
                \x20                Class     Images  Instances      Box(P          R)\n\
                \x20                  all       1049       1164          0          0\n\
                \x20     Epoch    GPU_mem   box_loss   cls_loss  Instances       Size\n\
                \x20      2/55      9.02G     2.0      0.5         16        640: 100%|██| 954/954 [11:32<00:00]\n";
    let yolo = log("console.txt", yolo);
    assert_eq!((losses(&yolo), yolo.at(2)), (vec![3.0, 2.0], 2));
    let fastai = "loaded\nepoch train_loss valid_loss accuracy time\n0 3.0 5.0 0.2 00:07\n1 2.0 4.0 0.3 00:06\n";
    assert_eq!(validations(&log("console.txt", fastai)), [5.0, 4.0]);
}

#[test]
fn a_metric_that_is_seldom_logged_is_not_a_level_one() {
    let line = |i: u32| format!("Iteration {}, loss = 0.{}\n", 100 * i, 70 - i);
    let text: String = (0..9).map(line).collect();
    let log = log("train.log", &(text + "Iteration 900, Test accuracy = 0.633\n"));
    assert_eq!(log.steps.iter().filter(|seen| seen.metric.is_some()).count(), 1);
}

#[test]
fn names_of_a_text_without_a_loss_are_listed_and_can_be_mapped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("train.log");
    std::fs::write(
        &path,
        "[Epoch 1/3] [G - gan1: 6.8, kld: 0.9]\n[Epoch 2/3] [G - gan1: 6.1, kld: 0.8]\n",
    )
    .unwrap();
    let error = read(&path, &Map::new()).unwrap_err().to_string();
    assert!(error.ends_with("columns: epoch, gan1, kld"), "{error}");
    let map = Map::from([("loss".parse().unwrap(), "gan1".to_owned())]);
    assert_eq!(losses(&read(&path, &map).unwrap()[0]), [6.8, 6.1]);
}

#[test]
fn values_of_a_progress_bar_are_rows() {
    let bar = "Epoch 1:   0%|  | 0/3 [00:00<?, ?it/s]\rEpoch 1:  33%|█ | 1/3 [00:01<00:01, 2.1it/s, loss=3.0]\r\
               Epoch 1: 100%|██| 3/3 [00:02<00:00, 2.1it/s, loss=2.0]\n";
    assert_eq!(losses(&log("train.log", bar)), [3.0, 2.0]);
}

#[test]
fn a_step_in_a_heading_does_not_merge_the_rows_below_it() {
    let log = log("train.log", "resumed at step 100\nloss 3.0\nloss 2.0\nloss 1.0\n");
    assert_eq!(losses(&log), [3.0, 2.0, 1.0]);
}

#[test]
fn text_of_a_loop() {
    let text = "number of parameters: 10.65M\nstep 0: train loss 3.0, val loss 5.0\n\
                iter 0: loss 3.0, time 99.1ms, mfu 22.1%\nsaving checkpoint to out\n\
                step 250: train loss 2.0, val loss 4.0\niter 250: loss 2.5, time 9.1ms, mfu 22.1%\n";
    let log = log("train.log", text);
    assert_eq!((log.origin.format, log.at(2)), ("text", 250));
    assert_eq!((log.steps.len(), validations(&log)), (2, vec![5.0, 4.0]));
}

#[test]
fn two_trainings_in_one_console_are_two_runs() {
    let run = "Epoch 1/3\n9/9 - 1s - loss: 3.0\nEpoch 2/3\n9/9 - 1s - loss: 2.0\n\
               Epoch 3/3\n9/9 - 1s - loss: 1.0\n";
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("output.txt");
    std::fs::write(&path, [run, run].concat()).unwrap();
    let logs = read(&path, &Map::new()).unwrap();
    assert_eq!(logs.iter().map(losses).collect::<Vec<_>>(), [[3.0, 2.0, 1.0]; 2]);
}

#[test]
fn metrics_of_mlflow() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("metrics/val")).unwrap();
    let write = |name: &str, content: &str| {
        std::fs::write(dir.path().join("metrics").join(name), content).unwrap();
    };
    write("train_loss", "1700000000000 3.0 0\n1700000000001 nan 10\n");
    write("val/loss", "1700000000000 5.0 0\n1700000000001 4.0 10\n");
    for path in [dir.path().to_owned(), dir.path().join("metrics")] {
        let log = &read(&path, &Map::new()).unwrap()[0];
        assert_eq!((log.origin.format, log.at(2)), ("MLflow", 10));
        assert!(log.steps[0].loss == 3.0 && log.steps[1].loss.is_nan());
        assert_eq!(validations(log), [5.0, 4.0]);
    }
}

/// Ids and severities of the findings.
fn findings(log: &Log) -> Vec<(String, Severity)> {
    let diagnosis = log.diagnose(Thresholds::default());
    let findings = diagnosis.findings().iter();
    findings.map(|finding| (finding.problem.id().to_owned(), finding.severity)).collect()
}

#[test]
fn dictionaries_that_python_prints() {
    let line = |epoch: u64| format!("{{'loss': 0.0, 'grad_norm': nan, 'epoch': {epoch}.5}}   \n");
    let log = log("console.txt", &(0..6).map(line).collect::<String>());
    assert_eq!(log.origin.format, "text");
    assert_eq!(losses(&log), [0.0; 6]);
    let expected = ["exploding_gradient", "non_finite_loss"];
    assert_eq!(findings(&log), expected.map(|id| (id.to_owned(), Severity::Problem)));
}

#[test]
fn a_nan_that_the_run_recovers_from_is_a_warning() {
    let csv = |is_nan: fn(u32) -> bool| {
        let row = |epoch: u32| match is_nan(epoch) {
            true => format!("{epoch},nan\n"),
            false => format!("{epoch},{}\n", 1.0 / f64::from(epoch)),
        };
        log("log.csv", &format!("epoch,loss\n{}", (1..=20).map(row).collect::<String>()))
    };
    let found = |is_nan| findings(&csv(is_nan));
    let nan = |severity| [("non_finite_loss".to_owned(), severity)];
    assert_eq!(found(|epoch| epoch == 7), nan(Severity::Warning));
    assert_eq!(found(|epoch| epoch == 7 || epoch == 9), nan(Severity::Warning));
    assert_eq!(found(|epoch| epoch == 20), nan(Severity::Problem));
    assert_eq!(found(|epoch| (7..10).contains(&epoch)), nan(Severity::Problem));
    assert_eq!(found(|epoch| epoch % 4 == 1), nan(Severity::Problem));
}

#[test]
fn a_level_loss_in_the_middle_of_a_run_is_a_warning() {
    let log = |first: u32| {
        let rows: String = (0..12).map(|i| format!("{},{}\n", first + i, 1 + i % 2)).collect();
        log(
            "log.csv",
            &format!("epoch,loss\n{}", rows.replace(",1", ",1.00").replace(",2", ",1.01")),
        )
    };
    assert_eq!(findings(&log(1)), [("slow_convergence".to_owned(), Severity::Problem)]);
    assert_eq!(findings(&log(39)), [("slow_convergence".to_owned(), Severity::Warning)]);
}

#[test]
fn epochs_in_parts_tell_that_a_log_begins_in_the_middle() {
    let line = |first: f64| {
        move |i: u32| {
            format!("{{'loss': 1.7{}, 'epoch': {:.2}}}\n", i % 3, first + f64::from(i) / 10.0)
        }
    };
    let from = |first: f64| log("console.txt", &(0..8).map(line(first)).collect::<String>());
    assert_eq!(findings(&from(1.4)), [("slow_convergence".to_owned(), Severity::Warning)]);
    assert_eq!(findings(&from(0.1)), [("slow_convergence".to_owned(), Severity::Problem)]);
}
