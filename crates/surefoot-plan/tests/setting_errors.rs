//! Printed errors of `--set`.

use surefoot_plan::{Document, Plan, PlanError};

const PLAN: &str = r#"seed = 7

[data]
source = { kind = "circles", noise = 0.1 }

[[model]]
layer = "dense"
units = 8
activation = "relu"

[[model]]
layer = "dense"
units = 1
activation = "sigmoid"

[training]
epochs = 50
"#;

/// The error of the plan with settings.
fn set(settings: &[(&str, &str)]) -> String {
    let mut document = Document::parse(PLAN, "plan.toml").expect("the plan can be read");
    let all = |document: &mut Document| -> Result<Plan, PlanError> {
        for (key, value) in settings {
            document.set(key, value)?;
        }
        document.plan()
    };
    all(&mut document).expect_err("the plan is wrong").to_string()
}

#[test]
fn a_setting_with_an_unknown_key() {
    insta::assert_snapshot!(set(&[("model.0.unit", "9")]), @r#"
error: unknown key `unit`
  --> --set model.0.unit=9
   = note: expected one of: layer, name, units, activation, use_bias, kernel_initializer,
           bias_initializer, kernel_regularizer, bias_regularizer
   = help: did you mean `units`?
"#);
}

#[test]
fn a_setting_with_a_wrong_value() {
    insta::assert_snapshot!(set(&[("training.optimizer.learning_rate", "-1")]), @r#"
error: `learning_rate` must be above 0
  --> --set training.optimizer.learning_rate=-1
"#);
}

#[test]
fn a_setting_of_an_unknown_section() {
    insta::assert_snapshot!(set(&[("train.epochs", "5")]), @r#"
error: unknown key `train`
  --> --set train.epochs=5
   = note: expected one of: version, name, seed, rules, data, model, training, watch, diagnose,
           repair
   = help: did you mean `training`?
"#);
}

#[test]
fn a_setting_beyond_the_model() {
    insta::assert_snapshot!(set(&[("model.2.units", "9")]), @r#"
error: `model` is a list: expected an index from 0 to 1, found `2`
  --> --set model.2.units=9
"#);
}

#[test]
fn a_setting_of_no_key() {
    insta::assert_snapshot!(set(&[("training.", "9")]), @r#"
error: `training.` is not a key
  --> --set training.=9
"#);
}

#[test]
fn a_setting_that_makes_another_key_wrong() {
    insta::assert_snapshot!(set(&[("seed", "1"), ("model.0.layer", "dropout")]), @r#"
error: unknown key `units`
 --> plan.toml:8:1
  |
8 | units = 8
  | ^^^^^ expected one of: layer, name, rate
  = help: this line is from the plan after --set seed=1 --set model.0.layer=dropout
"#);
}
