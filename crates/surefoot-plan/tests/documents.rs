//! Documents: settings, replaced models, inferred losses, files.

use surefoot_plan::*;

const PLAN: &str = r#"
[data]
source = { kind = "blobs", centers = 4 }

[[model]]
layer = "dense"
units = 4 # one a class
activation = "softmax"

[training]
epochs = 5
optimizer = "sgd"
"#;

#[test]
fn a_setting_changes_the_plan_and_the_text() {
    let mut document = Document::parse(PLAN, "plan.toml").unwrap();
    document.set("model.0.units", "6").unwrap();
    document.set("training.optimizer.momentum", "0.9").unwrap();
    document.set("data.source.centers", "5").unwrap();
    document.set("watch.every", "never").unwrap();
    document.set("name", "six").unwrap();
    let plan = document.plan().unwrap();
    assert_eq!(plan.model, [dense(6)]);
    assert_eq!(plan.name.as_deref(), Some("six"));
    assert_eq!(plan.watch.every, ObserveEvery::Never);
    assert!(matches!(plan.training.optimizer.algorithm, Algorithm::Sgd { momentum: 0.9, .. }));
    assert!(document.text().contains("units = 6 # one a class"));
    assert_eq!(Plan::parse(document.text(), "again").unwrap(), plan);
}

#[test]
fn rules_determine_the_defaults_of_the_repair() {
    let mut document = Document::parse(PLAN, "plan.toml").unwrap();
    document.set("rules", "autotrainer").unwrap();
    let plan = document.plan().unwrap();
    assert_eq!((plan.rules, plan.repair.parallel), (Rules::AutoTrainer, 1));
    let printed = plan.to_toml();
    assert!(printed.contains("rules = \"autotrainer\"") && !printed.contains("[repair]"));
    document.set("repair.parallel", "2").unwrap();
    document.set("diagnose.check_every", "4").unwrap();
    let plan = document.plan().unwrap();
    assert_eq!(plan.diagnose.stated(), [("check_every", 4.0)]);
    assert_eq!(Plan::parse(&plan.to_toml(), "again").unwrap(), plan);
}

#[test]
fn contains_distinguishes_keys_from_defaults() {
    let mut document = Document::parse(PLAN, "plan.toml").unwrap();
    assert!(document.contains("training.optimizer"));
    assert!(document.contains("model.0.units"));
    assert!(!document.contains("training.loss"));
    document.set("training.loss", "mse").unwrap();
    assert!(document.contains("training.loss"));
}

#[test]
fn data_treatment_is_printed_unless_default() {
    let mut document = Document::parse(PLAN, "plan.toml").unwrap();
    document.set("data.missing", "keep").unwrap();
    let printed = document.plan().unwrap().to_toml();
    assert!(!printed.contains("missing") && !printed.contains("outliers"));
    document.set("data.missing", "impute").unwrap();
    document.set("data.outliers", "clip").unwrap();
    let plan = document.plan().unwrap();
    assert_eq!((plan.data.missing, plan.data.outliers), (Missing::Impute, Outliers::Clip));
    let printed = plan.to_toml();
    assert!(printed.contains("missing = \"impute\"\noutliers = \"clip\"\n"));
}

#[test]
fn the_loss_follows_from_the_task() {
    let loss = |text: &str| Plan::parse(text, "plan.toml").unwrap().training.loss;
    assert_eq!(loss(PLAN), Loss::SparseCategoricalCrossentropy { from_logits: false });
    assert_eq!(
        loss(&PLAN.replace("centers = 4", "centers = 2")),
        Loss::BinaryCrossentropy { from_logits: false }
    );
    let file = PLAN.replace(
        "source = { kind = \"blobs\", centers = 4 }",
        "source = { kind = \"csv\", path = \"a.csv\" }\ntask = \"regression\"",
    );
    assert_eq!(loss(&file), Loss::Mse);
}

#[test]
fn another_model_replaces_that_of_the_plan() {
    let document = Document::parse(PLAN, "plan.toml").unwrap();
    let plan = document.plan_with_model(vec![dense(9)], None).unwrap();
    assert_eq!(plan.model, [dense(9)]);

    let bare = "[data]\nsource = \"circles\"\n[training]\nepochs = 1\n";
    let document = Document::parse(bare, "plan.toml").unwrap();
    assert!(document.plan().is_err());
    assert!(document.plan_with_model(vec![dense(9)], None).is_ok());
    assert!(document.plan_with_model(Vec::new(), None).is_err());
}

#[test]
fn a_plan_made_by_a_program_is_checked_like_a_file() {
    let mut plan = Plan::parse(PLAN, "plan.toml").unwrap();
    assert_eq!(plan.validate(), Ok(()));
    plan.training.optimizer.learning_rate = f64::NAN;
    let error = plan.validate().unwrap_err();
    assert_eq!(error.message, "`learning_rate` must be finite");
}

#[test]
fn a_layer_is_found_in_the_text() {
    let document = Document::parse(PLAN, "plan.toml").unwrap();
    let place = document.locate(&[0]).unwrap();
    assert_eq!(&document.text()[place], "\"dense\"");
    assert_eq!(document.locate(&[1]), None);
    assert_eq!(document.locate(&[0, 0]), None);
}

#[test]
fn all_notations_of_tables_are_equal() {
    let dotted = r#"
model = [{ layer = "dense", units = 4, activation.name = "softmax" }]
data.source.kind = "blobs"
data.source.centers = 4
[training]
epochs = 5
[training.optimizer]
name = "sgd"
"#;
    assert_eq!(Plan::parse(dotted, "dotted").unwrap(), Plan::parse(PLAN, "plan.toml").unwrap());
}

#[test]
fn a_missing_file_is_named() {
    let error = Plan::load("no/such/plan.toml").unwrap_err();
    assert_eq!(error.origin, "no/such/plan.toml");
    assert!(error.message.starts_with("cannot read the file"));
}

#[test]
fn the_order_of_shapes_is_that_of_the_model() {
    let plan = Plan::parse(PLAN, "plan.toml").unwrap();
    let shapes = plan.check_shapes(&[2], false, &TargetShape::Classes(4)).unwrap();
    assert_eq!(shapes[0].name, "dense_1");
    assert_eq!(shapes[0].output, [4]);
    assert!(plan.check_shapes(&[2], false, &TargetShape::Classes(5)).is_err());
}

fn dense(units: usize) -> Layer {
    Layer::Dense(Dense { activation: Activation::Softmax, ..Dense::new(units) })
}
