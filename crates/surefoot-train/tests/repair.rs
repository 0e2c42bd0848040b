//! Problems are found and repaired by the trainer.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::path::Path;
use std::time::{Duration, Instant};
use surefoot_diagnose::{Context, Detector, Finding, Observation, Problem, Quantity};
use surefoot_plan::{Missing, Plan, Repair, Rules, Scale};
use surefoot_record::{AttemptState, Event, Record, Status};
use surefoot_train::{
    Approval, AttemptEvent, Callback, RepairMode, RunContext, Step, StopReason, TrainError,
    TrainSummary, Trainer,
};

/// Sigmoid layers so deep that no gradient reaches the first of them.
fn plan() -> Plan {
    deep("sigmoid")
}

/// Eight hidden layers with this activation.
fn deep(activation: &str) -> Plan {
    let layer = |units: usize, activation: &str| {
        format!("[[model]]\nlayer = \"dense\"\nunits = {units}\nactivation = \"{activation}\"\n")
    };
    let text = format!(
        "[data]\nsource = {{ kind = \"circles\", samples = 400 }}\n{}{}\n[training]\nepochs = 40\n",
        layer(8, activation).repeat(8),
        layer(1, "sigmoid")
    );
    Plan::parse(&text, "deep").unwrap()
}

/// Notes how attempts end, and interrupts the repair when `stop_after` of them have started.
struct Notes {
    states: Vec<(u32, AttemptState)>,
    started: u32,
    stop_after: u32,
}

impl Notes {
    fn new(stop_after: u32) -> Self {
        Self { states: Vec::new(), started: 0, stop_after }
    }
}

impl Callback for Notes {
    fn on_attempt(
        &mut self,
        event: &AttemptEvent<'_>,
        run: &mut RunContext,
    ) -> Result<(), TrainError> {
        match event {
            AttemptEvent::Start(_) => self.started += 1,
            AttemptEvent::End { outcome, .. } => self.states.push((outcome.number, outcome.state)),
        }
        if self.started >= self.stop_after {
            run.stop(StopReason::Interrupted);
        }
        Ok(())
    }
}

#[test]
fn autotrainers_rules_check_every_third_epoch_and_try_one_remedy_at_a_time() {
    let mut plan = plan();
    plan.rules = Rules::AutoTrainer;
    plan.repair = Repair::of(plan.rules);
    let trained = Trainer::new(plan).workers(2).train().unwrap();
    let steps_per_epoch = trained.outline.facts.steps_per_epoch.unwrap();
    let finding = trained.findings.first().unwrap();
    assert_eq!(finding.step % (3 * steps_per_epoch), 0);
    let known = surefoot_diagnose::detectors::autotrainer();
    let known: Vec<Problem> = known.iter().map(|detector| detector.problem()).collect();
    assert!(trained.findings.iter().all(|finding| known.contains(&finding.problem)));
    assert_eq!(trained.summary.status, Status::Repaired);
}

/// Two classes in a CSV file, a few of whose cells are empty or infinite.
fn gappy(extra: &str) -> (tempfile::TempDir, Plan) {
    let dir = tempfile::tempdir().unwrap();
    let mut table = "a,b,y\n".to_owned();
    for i in 0..300 {
        let (a, b) = ((i * 37 % 101) as f64 / 50.0 - 1.0, (i * 53 % 97) as f64 / 48.0 - 1.0);
        let cell = match i % 50 {
            7 => String::new(),
            30 => "inf".to_owned(),
            _ => format!("{b}"),
        };
        table.push_str(&format!("{a},{cell},{}\n", i32::from(a + b > 0.0)));
    }
    std::fs::write(dir.path().join("t.csv"), table).unwrap();
    let text = format!(
        "[data]\ntask = \"binary\"\nsource = {{ kind = \"csv\", path = \"t.csv\", label = \"y\" }}\n\
         [[model]]\nlayer = \"dense\"\nunits = 8\nactivation = \"relu\"\n\
         [[model]]\nlayer = \"dense\"\nunits = 1\nactivation = \"sigmoid\"\n\
         [training]\nepochs = 30\noptimizer = {{ name = \"adam\", learning_rate = 0.01 }}\n{extra}"
    );
    (dir, Plan::parse(&text, "gappy").unwrap())
}

#[test]
fn missing_values_are_reported_with_their_number_and_imputed() {
    let (dir, plan) = gappy("");
    let trained = Trainer::new(plan).base(dir.path()).workers(2).train().unwrap();
    let finding = trained.findings.first().unwrap();
    assert_eq!(finding.problem, Problem::ABNORMAL_DATA);
    assert!(finding.message.starts_with("12 input values are NaN"), "{}", finding.message);
    assert_eq!(trained.summary.status, Status::Repaired);
    assert_eq!(trained.summary.remedies, ["normalize_data"]);
    assert_eq!(trained.plan().data.missing, Missing::Impute);
    assert_eq!(trained.plan().data.scale, Scale::None);
}

#[test]
fn a_training_ends_when_its_metric_is_good_enough() {
    for split in ["", "[data.split]\nvalidation = 0.0\n"] {
        let (dir, mut plan) = gappy(split);
        plan.data.missing = Missing::Impute;
        plan.training.stop_at = Some(0.85);
        let trained = Trainer::new(plan).base(dir.path()).workers(1).train().unwrap();
        let planned = trained.outline.facts.total_steps().unwrap();
        assert!(trained.given.steps < planned, "{} of {planned}", trained.given.steps);
        assert_eq!(trained.reason, StopReason::Finished);
        let evaluated = trained.given.last.as_ref().and_then(|last| last.metric).unwrap();
        assert!(evaluated >= 0.85);
    }
}

fn train(stop_after: u32) -> (TrainSummary, Notes) {
    let mut notes = Notes::new(stop_after);
    let trained = Trainer::new(plan()).workers(2).callback(&mut notes).train().unwrap();
    (trained, notes)
}

#[test]
fn the_repaired_attempt_ends_last_and_is_delivered() {
    let (trained, notes) = train(u32::MAX);
    assert_eq!(trained.summary.status, Status::Repaired);
    let delivered = trained.repair.unwrap().delivered.unwrap();
    assert_eq!(*notes.states.last().unwrap(), (delivered.number, AttemptState::Repaired));
    assert!(delivered.result.best.unwrap().metric.unwrap() > 0.9);
}

#[test]
fn a_callback_can_interrupt_a_repair() {
    let (trained, notes) = train(2);
    assert_eq!(trained.reason, StopReason::Interrupted);
    assert!(trained.repair.unwrap().delivered.is_none() && notes.states.is_empty());
}

#[test]
fn without_repair_a_problem_is_reported_and_training_continues() {
    let trained = Trainer::new(plan()).repair(RepairMode::Off).train().unwrap();
    assert_eq!(trained.reason, StopReason::Finished);
    assert_eq!(trained.summary.problems, ["vanishing_gradient"]);
    assert!(trained.repair.is_none());
    assert_eq!(trained.summary.status, Status::Problem);
}

/// Reports a likely problem at its tenth step.
struct Suspects;

impl Detector for Suspects {
    fn problem(&self) -> Problem {
        Problem::new("suspicion")
    }

    fn needs(&self) -> &'static [Quantity] {
        &[]
    }

    fn observe(&mut self, seen: &Observation, _: &Context<'_>) -> Option<Finding> {
        (seen.step == 10).then(|| Finding::new(self.problem(), 10, "Looks bad."))
    }
}

#[test]
fn without_repair_a_likely_problem_of_a_run_that_ends_well_is_a_warning() {
    let runs = tempfile::tempdir().unwrap();
    let train = |activation: &str| {
        let trainer = Trainer::new(deep(activation)).detectors(|| vec![Box::new(Suspects)]);
        trainer.repair(RepairMode::Off).runs(runs.path()).train().unwrap()
    };
    let well = train("selu");
    assert!(well.summary.metric.after > Some(0.95), "{:?}", well.summary.metric);
    assert_eq!((well.summary.status, well.summary.problems.len()), (Status::Normal, 0));
    assert_eq!(well.findings.len(), 1);
    let events = Record::open(Path::new(&well.summary.run)).unwrap().events().unwrap();
    assert!(events.iter().any(|event| matches!(event, Event::Dismissed { .. })), "{events:?}");
    assert_eq!(train("sigmoid").summary.status, Status::Problem);
}

#[test]
fn a_declined_repair_leaves_the_problem_and_does_not_count_the_wait() {
    let wait = Duration::from_millis(300);
    let mut asked = 0;
    let ask = RepairMode::Approve(Box::new(|_| {
        asked += 1;
        std::thread::sleep(wait);
        Approval::Quit
    }));
    let begun = Instant::now();
    let trained = Trainer::new(plan()).repair(ask).train().unwrap();
    let took = begun.elapsed().as_secs_f64();
    assert_eq!((trained.summary.status, asked), (Status::Problem, 1));
    assert!(trained.summary.seconds <= took - wait.as_secs_f64());
}

/// Panics at its tenth step.
struct Crashes;

impl Detector for Crashes {
    fn problem(&self) -> Problem {
        Problem::new("crashes")
    }

    fn needs(&self) -> &'static [Quantity] {
        &[]
    }

    fn observe(&mut self, seen: &Observation, _: &Context<'_>) -> Option<Finding> {
        assert!(seen.step < 10, "ten");
        None
    }
}

#[test]
fn the_record_and_the_summary_name_a_detector_that_panics() {
    let runs = tempfile::tempdir().unwrap();
    let trained = Trainer::new(plan())
        .repair(RepairMode::Off)
        .detectors(|| vec![Box::new(Crashes)])
        .runs(runs.path())
        .train()
        .unwrap();
    assert_eq!(trained.summary.failed_detectors, ["crashes"]);
    let record = Record::open(Path::new(&trained.summary.run)).unwrap();
    assert_eq!(record.summary().unwrap().unwrap().failed_detectors, ["crashes"]);
    let events = record.events().unwrap();
    let panic = Event::DetectorPanic {
        step: 10,
        problem: Problem::new("crashes"),
        message: "ten".to_owned(),
    };
    assert_eq!(events.iter().filter(|event| **event == panic).count(), 1, "{events:?}");
}

/// Interrupts a run after a step.
struct InterruptAt(u64);

impl Callback for InterruptAt {
    fn on_step(&mut self, step: &Step<'_>, run: &mut RunContext) -> Result<(), TrainError> {
        if step.progress.step == self.0 {
            run.stop(StopReason::Interrupted);
        }
        Ok(())
    }
}

fn findings(dir: &Path) -> Vec<Event> {
    let events = Record::open(dir).unwrap().events().unwrap();
    events.into_iter().filter(|event| matches!(event, Event::Finding(_))).collect()
}

#[test]
fn a_resumed_run_has_the_result_of_an_uninterrupted_one() {
    let runs = tempfile::tempdir().unwrap();
    let whole = Trainer::new(plan()).runs(runs.path()).train().unwrap();
    let mut interrupt = InterruptAt(5);
    let first = Trainer::new(plan()).runs(runs.path()).callback(&mut interrupt).train().unwrap();
    assert_eq!(first.reason, StopReason::Interrupted);
    let dir = Path::new(&first.summary.run);
    let resumed = Trainer::resume(dir).unwrap().train().unwrap();
    assert_eq!(resumed.summary.digest, whole.summary.digest);
    assert_eq!(resumed.summary.remedies, whole.summary.remedies);
    assert_eq!(findings(dir), findings(Path::new(&whole.summary.run)));
    let again = Trainer::resume(dir).unwrap().train();
    assert!(matches!(again, Err(TrainError::AlreadyFinished { .. })));
}

#[test]
fn a_stopped_run_is_evaluated_even_without_a_validation_split() {
    let mut plan = plan();
    plan.data.split.validation = 0.0;
    plan.diagnose.off = vec!["vanishing_gradient".to_owned()];
    struct StopAt(u64);
    impl Callback for StopAt {
        fn on_step(&mut self, step: &Step<'_>, run: &mut RunContext) -> Result<(), TrainError> {
            if step.progress.step == self.0 {
                run.stop(StopReason::Early);
            }
            Ok(())
        }
    }
    // The end of the first epoch, at which nothing is evaluated otherwise.
    let trained = Trainer::new(plan).callback(&mut StopAt(13)).train().unwrap();
    assert_eq!(trained.given.steps, 13);
    assert_eq!(trained.given.last.map(|last| last.step), Some(13));
    assert!(trained.given.best.is_some());
}

/// A plan of one dense layer of 16 units and the given output, and a table of three features and six
/// labels, of which every sample has three.
fn labels(dir: &Path, output: &str, loss: &str) -> Plan {
    let mut table = "x,y,z,a,b,c,d,e,f\n".to_owned();
    for i in 0..240_u32 {
        let x = [37, 61, 83].map(|k| f64::from(i * k % 200) / 100.0 - 0.995);
        let positive = x.map(|x| u8::from(x > 0.0));
        let [a, b, c] = positive;
        let [x, y, z] = x;
        table.push_str(&format!("{x},{y},{z},{a},{b},{c},{},{},{}\n", 1 - a, 1 - b, 1 - c));
    }
    std::fs::write(dir.join("labels.csv"), table).unwrap();
    let names = "[\"a\", \"b\", \"c\", \"d\", \"e\", \"f\"]";
    let text = format!(
        "[data]\nsource = {{ kind = \"csv\", path = \"labels.csv\", label = {names} }}\n\
         [[model]]\nlayer = \"dense\"\nunits = 16\nactivation = \"relu\"\n\
         [[model]]\nlayer = \"dense\"\nunits = 6\nactivation = \"{output}\"\n\
         [training]\nepochs = 80\nloss = \"{loss}\"\n\
         optimizer = {{ name = \"adam\", learning_rate = 0.01 }}\n"
    );
    Plan::parse(&text, "labels").unwrap()
}

#[test]
fn several_labels_are_learned_by_sigmoids() {
    let dir = tempfile::tempdir().unwrap();
    let plan = labels(dir.path(), "sigmoid", "binary_crossentropy");
    let trained = Trainer::new(plan).base(dir.path()).workers(1).train().unwrap();
    assert_eq!(trained.summary.status, Status::Normal, "{:?}", trained.summary);
    assert!(trained.summary.metric.after.unwrap() > 0.9, "{:?}", trained.summary);
}

#[test]
fn a_softmax_over_several_labels_is_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let plan = labels(dir.path(), "softmax", "categorical_crossentropy");
    let trained = Trainer::new(plan).base(dir.path()).workers(1).train().unwrap();
    assert_eq!(trained.summary.status, Status::Repaired, "{:?}", trained.summary);
    assert!(trained.summary.problems.contains(&"improper_output_activation".to_owned()));
    assert!(trained.summary.metric.after.unwrap() > 0.9, "{:?}", trained.summary);
}

#[test]
fn one_unit_for_three_classes_is_repaired() {
    let text = "[data]\nsource = { kind = \"blobs\", samples = 300, centers = 3 }\n\
                scale = \"standardise\"\n\
                [[model]]\nlayer = \"dense\"\nunits = 16\nactivation = \"relu\"\n\
                [[model]]\nlayer = \"dense\"\nunits = 1\nactivation = \"sigmoid\"\n\
                [training]\nepochs = 40\nloss = \"mse\"\n\
                optimizer = { name = \"adam\", learning_rate = 0.01 }\n";
    let trained = Trainer::new(Plan::parse(text, "units").unwrap()).workers(1).train().unwrap();
    assert_eq!(trained.summary.status, Status::Repaired, "{:?}", trained.summary);
    assert_eq!(trained.summary.problems[0], "improper_output_units");
    assert_eq!(trained.summary.remedies[0], "output_units");
    assert!(trained.summary.metric.after.unwrap() > 0.9, "{:?}", trained.summary);
}
