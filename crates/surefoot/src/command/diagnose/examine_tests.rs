use super::*;
use insta::assert_snapshot;
use std::path::Path;
use std::sync::{Arc, Mutex};
use surefoot_diagnose::{
    Context, Evaluation, Facts, Measure, Observation, Problem, Quantity, Split, Thresholds,
};
use surefoot_record::logs::Map;
use surefoot_record::{Digest, Header, MetricSummary, Recorder, RunSummary, Status};
use tempfile::TempDir;

/// Finds that the loss is above 1, and warnings on the validation loss.
struct High;

impl Detector for High {
    fn problem(&self) -> Problem {
        Problem::LOSS_SPIKE
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss]
    }

    fn observe(&mut self, seen: &Observation, _: &Context<'_>) -> Option<Finding> {
        (seen.loss > 1.0).then(|| {
            Finding::new(self.problem(), seen.step, "The loss is above one.")
                .since(seen.step - 1)
                .within(vec!["dense_1".to_owned(), "dense_2".to_owned()])
                .with(Measure::Loss, seen.loss, 1.0)
                .with(Measure::LearningRate, 0.001, None)
        })
    }
}

struct Apart;

impl Detector for Apart {
    fn problem(&self) -> Problem {
        Problem::OVER_FITTING
    }

    fn needs(&self) -> &'static [Quantity] {
        &[Quantity::Loss, Quantity::Validation]
    }

    fn evaluate(&mut self, seen: &Evaluation, context: &Context<'_>) -> Option<Finding> {
        let finding = Finding::new(self.problem(), context.step(), "The splits part.").warning();
        (seen.loss > 2.0).then(|| finding.with(Measure::ValidationLoss, seen.loss, 2.0))
    }
}

/// Needs what only a run of surefoot's has.
struct Layers(Problem, &'static [Quantity]);

impl Detector for Layers {
    fn problem(&self) -> Problem {
        self.0.clone()
    }

    fn needs(&self) -> &'static [Quantity] {
        self.1
    }
}

fn detectors() -> Vec<Box<dyn Detector>> {
    let layers = |problem, needs| Box::new(Layers(problem, needs)) as Box<dyn Detector>;
    vec![
        Box::new(High),
        Box::new(Apart),
        layers(Problem::SLOW_CONVERGENCE, &[Quantity::Loss]),
        layers(Problem::VANISHING_GRADIENT, &[Quantity::Gradients]),
        layers(Problem::EXPLODING_GRADIENT, &[Quantity::Gradients]),
        layers(Problem::IMPROPER_LOSS, &[Quantity::Metric, Quantity::Model]),
    ]
}

fn report_of(csv: &str, settings: &[(&str, &str)]) -> DiagnosisReport {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.csv");
    std::fs::write(&path, csv).unwrap();
    let settings: Vec<_> =
        settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let settings = DiagnoseSettings::read(&settings, Thresholds::default(), &detectors()).unwrap();
    let subject = Subject::open(&path, &Map::new()).unwrap().remove(0);
    let mut report = examine(subject, settings, detectors()).unwrap();
    report.path = "history.csv".to_owned();
    report
}

const BAD: &str = "epoch,loss,val_loss\n10,0.9,0.9\n11,0.8,3\n12,1.5,4\n";

fn text(report: &DiagnosisReport) -> String {
    anstream::adapter::strip_str(&report.text()).to_string()
}

#[test]
fn findings_are_told_in_the_numbers_of_the_log() {
    assert_snapshot!(text(&report_of(BAD, &[])), @r"
    history.csv: 3 epochs, with loss, val_loss

    loss spike   since epoch 11, confirmed at epoch 12
      The loss is above one.
        layers   dense_1, dense_2
        loss              1.5   limit 1
        learning rate   0.001
        PyTorch   torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # after loss.backward()
        Keras     keras.optimizers.Adam(learning_rate=lr, clipnorm=1.0)

    warning: overfitting   at epoch 11
      The splits part.
        validation loss   3   limit 2
        PyTorch   torch.optim.AdamW(model.parameters(), weight_decay=0.01)  # and nn.Dropout(0.3); stop at the best epoch
        Keras     keras.callbacks.EarlyStopping(patience=5, restore_best_weights=True)  # and Dropout(0.3)

      not found        slow convergence
      not observable   vanishing gradient, exploding gradient (need gradients)
                       improper loss (needs the metric and the model and its task)
    ");
}

#[test]
fn a_healthy_log_says_so() {
    let report = report_of("loss\n0.5\n0.25\n0.2\n0.1\n0.1\n", &[]);
    assert_snapshot!(text(&report), @r"
    history.csv: 5 rows, with loss

    no problem found

      not found        loss spike, slow convergence
      not observable   overfitting (needs a validation split)
                       vanishing gradient, exploding gradient (need gradients)
                       improper loss (needs the metric and the model and its task)
    ");
    assert_eq!(report.problems().count(), 0);
}

#[test]
fn a_short_log_is_not_judged_and_its_gaps_are_noted() {
    let mut report = report_of("loss\n0.5\n-\n0.25\n", &[]);
    assert!(
        report.notes[0]
            .ends_with("line 3, column `loss`: `-` is not a number; the cell is ignored")
    );
    report.notes = vec!["a gap".to_owned()];
    report.not_observable.clear();
    assert_snapshot!(text(&report), @r"
    history.csv: 2 rows, with loss
      note: a gap

    too short to judge

      not found   loss spike, slow convergence
    ");
}

#[test]
fn where_nothing_was_looked_for_nothing_is_claimed() {
    let mut report = report_of("loss\n0.5\n", &[]);
    report.checked.clear();
    report.not_observable.clear();
    assert_snapshot!(text(&report), @r"
    history.csv: 1 row, with loss

    nothing could be looked for
    ");
}

#[test]
fn programs_get_a_line_for_each_finding_and_the_result_last() {
    let report = report_of(BAD, &[]);
    let lines: Vec<String> =
        report.events().iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    assert_snapshot!(lines.join("\n"), @r#"
    {"event":"finding","problem":"over_fitting","severity":"warning","confidence":"likely","step":11,"since":11,"layers":[],"evidence":[{"measure":"validation_loss","value":3.0,"limit":2.0}],"message":"The splits part.","advice":{"pytorch":"torch.optim.AdamW(model.parameters(), weight_decay=0.01)  # and nn.Dropout(0.3); stop at the best epoch","keras":"keras.callbacks.EarlyStopping(patience=5, restore_best_weights=True)  # and Dropout(0.3)"}}
    {"event":"finding","problem":"loss_spike","severity":"problem","confidence":"likely","step":12,"since":11,"layers":["dense_1","dense_2"],"evidence":[{"measure":"loss","value":1.5,"limit":1.0},{"measure":"learning_rate","value":0.001,"limit":null}],"message":"The loss is above one.","advice":{"pytorch":"torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # after loss.backward()","keras":"keras.optimizers.Adam(learning_rate=lr, clipnorm=1.0)"}}
    {"event":"not_observable","problem":"vanishing_gradient","needs":["gradients"]}
    {"event":"not_observable","problem":"exploding_gradient","needs":["gradients"]}
    {"event":"not_observable","problem":"improper_loss","needs":["metric","model"]}
    {"event":"diagnosis","path":"history.csv","steps":3,"unit":"epoch","problems":["loss_spike"],"warnings":["over_fitting"],"checked":["loss_spike","over_fitting","slow_convergence"],"not_observable":["vanishing_gradient","exploding_gradient","improper_loss"],"too_short":true,"notes":[]}
    "#);
}

#[test]
fn what_is_switched_off_is_not_looked_for() {
    let off = r#"["loss_spike", "vanishing_gradient"]"#;
    let report = report_of(BAD, &[("diagnose.off", off)]);
    assert_eq!(report.checked, [Problem::OVER_FITTING, Problem::SLOW_CONVERGENCE]);
    assert_eq!(report.problems().count(), 0);
    assert_eq!(report.not_observable.len(), 2);
}

/// Records its calls.
struct Witness(Arc<Mutex<Vec<String>>>);

impl Witness {
    fn note(&self, text: String) -> Option<Finding> {
        self.0.lock().unwrap().push(text);
        None
    }
}

impl Detector for Witness {
    fn problem(&self) -> Problem {
        Problem::new("witness")
    }

    fn needs(&self) -> &'static [Quantity] {
        &[]
    }

    fn observe(&mut self, seen: &Observation, _: &Context<'_>) -> Option<Finding> {
        self.note(format!("step {}", seen.step))
    }

    fn evaluate(&mut self, seen: &Evaluation, _: &Context<'_>) -> Option<Finding> {
        self.note(format!("{} after {}", seen.split, seen.step))
    }

    fn finish(&mut self, _: &Context<'_>) -> Option<Finding> {
        self.note("finish".to_owned())
    }
}

/// A run of four steps in two epochs, recorded up to `steps`.
fn record(dir: &TempDir, steps: u64) -> Recorder {
    let header = Header {
        facts: Facts {
            steps_per_epoch: Some(2),
            epochs: Some(2),
            metric: Some("accuracy".to_owned()),
            ..Facts::default()
        },
        ..Header::default()
    };
    let mut recorder = Recorder::create(dir.path(), "run", "", header).unwrap();
    for step in 1..=steps {
        recorder.observe(&Observation::new(step, 0.5).with_epoch(step.div_ceil(2)));
        if step % 2 == 0 {
            recorder
                .evaluation(&Evaluation {
                    epoch: step / 2,
                    step,
                    split: Split::Validation,
                    loss: 0.5,
                    metric: None,
                })
                .unwrap();
        }
    }
    recorder
}

fn testimony(path: &Path, settings: DiagnoseSettings) -> String {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let witness: Box<dyn Detector> = Box::new(Witness(Arc::clone(&heard)));
    let subject = Subject::open(path, &Map::new()).unwrap().remove(0);
    examine(subject, settings, vec![witness]).unwrap();
    let heard = heard.lock().unwrap();
    heard.join(", ")
}

#[test]
fn a_run_is_seen_in_the_order_in_which_it_happened() {
    let dir = tempfile::tempdir().unwrap();
    drop(record(&dir, 4));
    assert_eq!(
        testimony(&dir.path().join("run-001"), DiagnoseSettings::default()),
        "step 1, step 2, validation after 2, step 3, step 4, validation after 4, finish"
    );
}

#[test]
fn a_run_that_goes_on_or_was_given_up_is_not_finished() {
    let dir = tempfile::tempdir().unwrap();
    let recorder = record(&dir, 3);
    let path = recorder.dir().to_owned();
    let summary = RunSummary {
        status: Status::Failed,
        problems: Vec::new(),
        remedies: Vec::new(),
        failed_detectors: Vec::new(),
        metric: MetricSummary { name: "accuracy".to_owned(), before: None, after: None },
        steps: 3,
        seconds: 1.0,
        digest: Digest(1),
        run: "run-001".to_owned(),
    };
    drop(record(&dir, 3));
    let unfinished = "step 1, step 2, validation after 2, step 3";
    let other = dir.path().join("run-002");
    assert_eq!(testimony(&other, DiagnoseSettings::default()), unfinished);
    recorder.finish(&summary).unwrap();
    assert_eq!(testimony(&path, DiagnoseSettings::default()), unfinished);
}

#[test]
fn a_log_is_finished_unless_more_epochs_were_planned() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.csv");
    let rows: String = (0..6).map(|epoch| format!("{epoch},1,1\n")).collect();
    std::fs::write(&path, format!("epoch,loss,val_loss\n{rows}")).unwrap();
    assert!(testimony(&path, DiagnoseSettings::default()).ends_with("validation after 6, finish"));
    let more = [("facts.epochs".to_owned(), "100".to_owned())];
    let more = DiagnoseSettings::read(&more, Thresholds::default(), &[]).unwrap();
    assert!(testimony(&path, more).ends_with("validation after 6"));
}

#[test]
fn a_run_without_a_step_is_no_input() {
    let dir = tempfile::tempdir().unwrap();
    drop(record(&dir, 0));
    let subject = Subject::open(&dir.path().join("run-001"), &Map::new()).unwrap().remove(0);
    let failure = examine(subject, DiagnoseSettings::default(), Vec::new()).unwrap_err();
    assert_eq!(failure.exit(), crate::exit::Exit::WrongInput);
}
