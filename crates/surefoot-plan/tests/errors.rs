//! Printed errors of plans.

use surefoot_plan::Plan;

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

/// The error of the plan with parts of its text replaced.
fn edited(parts: &[(&str, &str)]) -> String {
    let mut text = PLAN.to_owned();
    for (old, new) in parts {
        assert!(text.contains(old), "the plan has no {old:?}");
        text = text.replacen(old, new, 1);
    }
    error(&text)
}

fn error(text: &str) -> String {
    Plan::parse(text, "plan.toml").expect_err("the plan is wrong").to_string()
}

#[test]
fn an_unknown_key_lists_the_known_ones() {
    insta::assert_snapshot!(edited(&[("units = 8", "unit = 8")]), @r#"
error: unknown key `unit`
 --> plan.toml:8:1
  |
8 | unit = 8
  | ^^^^
  = note: expected one of: layer, name, units, activation, use_bias, kernel_initializer,
          bias_initializer, kernel_regularizer, bias_regularizer
  = help: did you mean `units`?
"#);
}

#[test]
fn a_missing_key_is_reported_at_its_table() {
    insta::assert_snapshot!(edited(&[(r#"units = 8
"#, "")]), @r#"
error: missing key `units`
 --> plan.toml:7:9
  |
7 | layer = "dense"
  |         ^^^^^^^ `dense` needs `units`, a whole number
"#);
}

#[test]
fn a_value_of_the_wrong_type() {
    insta::assert_snapshot!(edited(&[("units = 8", r#"units = "eight""#)]), @r#"
error: `units` must be a whole number
 --> plan.toml:8:9
  |
8 | units = "eight"
  |         ^^^^^^^ this is a string
"#);
}

#[test]
fn a_number_that_is_not_whole() {
    insta::assert_snapshot!(edited(&[("units = 8", "units = 8.5")]), @r#"
error: `units` must be a whole number
 --> plan.toml:8:9
  |
8 | units = 8.5
  |         ^^^ this is a number
"#);
}

#[test]
fn a_size_of_zero() {
    insta::assert_snapshot!(edited(&[("units = 8", "units = 0")]), @r#"
error: `units` must be at least 1
 --> plan.toml:8:9
  |
8 | units = 0
  |         ^
"#);
}

#[test]
fn a_number_that_is_not_finite() {
    insta::assert_snapshot!(edited(&[("epochs = 50", r#"epochs = 50
optimizer = { learning_rate = nan }"#)]), @r#"
error: `learning_rate` must be finite
  --> plan.toml:18:31
   |
18 | optimizer = { learning_rate = nan }
   |                               ^^^
"#);
}

#[test]
fn a_learning_rate_of_zero() {
    insta::assert_snapshot!(edited(&[("epochs = 50", r#"epochs = 50
optimizer = { name = "sgd", learning_rate = 0 }"#)]), @r#"
error: `learning_rate` must be above 0
  --> plan.toml:18:45
   |
18 | optimizer = { name = "sgd", learning_rate = 0 }
   |                                             ^
"#);
}

#[test]
fn nesterov_without_momentum() {
    insta::assert_snapshot!(edited(&[("epochs = 50", r#"epochs = 50
optimizer = { name = "sgd", nesterov = true }"#)]), @r#"
error: `nesterov` needs a `momentum` above 0
  --> plan.toml:18:40
   |
18 | optimizer = { name = "sgd", nesterov = true }
   |                                        ^^^^
"#);
}

#[test]
fn a_split_without_samples_to_train_on() {
    insta::assert_snapshot!(edited(&[("noise = 0.1 }", r#"noise = 0.1 }
split = { validation = 0.5, test = 0.5 }"#)]), @r#"
error: `validation` and `test` must leave samples to train on: together below 1
 --> plan.toml:5:36
  |
5 | split = { validation = 0.5, test = 0.5 }
  |                                    ^^^
"#);
}

#[test]
fn an_unknown_layer() {
    insta::assert_snapshot!(edited(&[(r#""dense"
units = 8"#, r#""dens"
units = 8"#)]), @r#"
error: unknown layer `dens`
 --> plan.toml:7:9
  |
7 | layer = "dens"
  |         ^^^^^^
  = note: expected one of: dense, conv1d, conv2d, max_pool1d, average_pool1d, max_pool2d,
          average_pool2d, global_max_pool, global_average_pool, flatten, reshape, dropout,
          batch_norm, layer_norm, group_norm, embedding, position_embedding, masking, simple_rnn,
          lstm, gru, multi_head_attention, transformer, residual, activation
  = help: did you mean `dense`?
"#);
}

#[test]
fn an_unknown_activation() {
    insta::assert_snapshot!(edited(&[(r#""relu""#, r#""rellu""#)]), @r#"
error: unknown activation `rellu`
 --> plan.toml:9:14
  |
9 | activation = "rellu"
  |              ^^^^^^^
  = note: expected one of: relu, leaky_relu, elu, selu, gelu, silu, tanh, sigmoid, hard_sigmoid,
          softplus, softmax, linear
  = help: did you mean `relu`?
"#);
}

#[test]
fn a_key_of_another_activation() {
    insta::assert_snapshot!(edited(&[(r#""relu""#, r#"{ name = "relu", alpha = 0.1 }"#)]), @r#"
error: unknown key `alpha`
 --> plan.toml:9:31
  |
9 | activation = { name = "relu", alpha = 0.1 }
  |                               ^^^^^ expected `name`
"#);
}

#[test]
fn an_unknown_source() {
    insta::assert_snapshot!(edited(&[(r#""circles""#, r#""circle""#)]), @r#"
error: unknown source `circle`
 --> plan.toml:4:19
  |
4 | source = { kind = "circle", noise = 0.1 }
  |                   ^^^^^^^^
  = note: expected one of: circles, blobs, moons, spirals, linear, friedman, copy, parity, shapes,
          csv, parquet, npy, npz, idx, images
  = help: did you mean `circles`?
"#);
}

#[test]
fn a_layer_without_its_kind() {
    insta::assert_snapshot!(edited(&[(r#"layer = "dense"
units = 8"#, "units = 8")]), @r#"
error: missing key `layer`
 --> plan.toml:6:1
  |
6 | [[model]]
  | ^^^^^^^^^
  = note: expected one of: dense, conv1d, conv2d, max_pool1d, average_pool1d, max_pool2d,
          average_pool2d, global_max_pool, global_average_pool, flatten, reshape, dropout,
          batch_norm, layer_norm, group_norm, embedding, position_embedding, masking, simple_rnn,
          lstm, gru, multi_head_attention, transformer, residual, activation
"#);
}

#[test]
fn a_misspelt_tag() {
    insta::assert_snapshot!(edited(&[(r#"layer = "dense"
units = 8"#, r#"layr = "dense"
units = 8"#)]), @r#"
error: unknown key `layr`
 --> plan.toml:7:1
  |
7 | layr = "dense"
  | ^^^^ expected `layer`
  = help: did you mean `layer`?
"#);
}

#[test]
fn a_window_of_three_dimensions() {
    insta::assert_snapshot!(edited(&[(r#"layer = "dense"
units = 8"#, r#"layer = "conv2d"
filters = 4
kernel_size = [3, 3, 3]"#)]), @r#"
error: `kernel_size` must be a whole number or [height, width]
 --> plan.toml:9:15
  |
9 | kernel_size = [3, 3, 3]
  |               ^^^^^^^^^ this list has 3 entries
"#);
}

#[test]
fn an_error_inside_a_residual_block() {
    insta::assert_snapshot!(edited(&[(r#"activation = "relu"
"#, r#"activation = "relu"

[[model]]
layer = "residual"
layers = [
  { layer = "dense", units = 8 },
  { layer = "dropout", rate = 1.5 },
]
"#)]), @r#"
error: `rate` must be at least 0 and below 1
  --> plan.toml:15:31
   |
15 |   { layer = "dropout", rate = 1.5 },
   |                               ^^^
"#);
}

#[test]
fn an_empty_residual_block() {
    insta::assert_snapshot!(edited(&[(r#"layer = "dense"
units = 8
activation = "relu""#, r#"layer = "residual"
layers = []"#)]), @r#"
error: `layers` must have at least one layer
 --> plan.toml:8:10
  |
8 | layers = []
  |          ^^
"#);
}

#[test]
fn two_layers_with_one_name() {
    insta::assert_snapshot!(edited(&[("units = 8", r#"units = 8
name = "a""#), ("units = 1", r#"units = 1
name = "a""#)]), @r#"
error: two layers have the same name
  --> plan.toml:15:8
   |
15 | name = "a"
   |        ^^^ this is also the name of layer 1
"#);
}

#[test]
fn a_name_that_looks_like_a_path() {
    insta::assert_snapshot!(edited(&[("units = 8", r#"units = 8
name = "a/b""#)]), @r#"
error: `name` must not be empty or contain `/`
 --> plan.toml:9:8
  |
9 | name = "a/b"
  |        ^^^^^
"#);
}

#[test]
fn an_observation_interval_of_zero() {
    insta::assert_snapshot!(edited(&[("epochs = 50", r#"epochs = 50

[watch]
every = 0"#)]), @r#"
error: `every` must be "auto", "never" or a number of steps
  --> plan.toml:20:9
   |
20 | every = 0
   |         ^
"#);
}

#[test]
fn a_list_where_a_table_is_needed() {
    insta::assert_snapshot!(edited(&[(r#"[training]
epochs = 50"#, r#"[[training]]
epochs = 50"#)]), @r#"
error: `training` must be a table
  --> plan.toml:16:1
   |
16 | [[training]]
   | ^^^^^^^^^^^^ this is a list
"#);
}

#[test]
fn an_unknown_section() {
    insta::assert_snapshot!(edited(&[("[training]", "[trainning]")]), @r#"
error: unknown key `trainning`
  --> plan.toml:16:2
   |
16 | [trainning]
   |  ^^^^^^^^^
   = note: expected one of: version, name, seed, rules, data, model, training, watch, diagnose,
           repair
   = help: did you mean `training`?
"#);
}

#[test]
fn a_file_whose_task_is_not_known_needs_a_loss() {
    insta::assert_snapshot!(edited(&[(r#"{ kind = "circles", noise = 0.1 }"#, r#"{ kind = "csv", path = "a.csv" }"#)]), @r#"
error: missing key `loss`
  --> plan.toml:16:1
   |
16 | [training]
   | ^^^^^^^^^^
   = note: `[training]` needs `loss`, one of: binary_crossentropy, categorical_crossentropy,
           sparse_categorical_crossentropy, mse, mae, huber, hinge, kl_divergence, poisson
   = help: or set `task` in `[data]`, which implies a loss
"#);
}

#[test]
fn a_plan_without_a_model() {
    insta::assert_snapshot!(error(r#"[data]
source = "circles"

[training]
epochs = 1
"#), @r#"
error: missing key `model`
 --> plan.toml:1:1
  |
1 | [data]
  | ^ a plan needs `model`, a list of layers
"#);
}

#[test]
fn a_plan_with_an_empty_model() {
    insta::assert_snapshot!(error(r#"model = []

[data]
source = "circles"

[training]
epochs = 1
"#), @r#"
error: `model` must have at least one layer
 --> plan.toml:1:9
  |
1 | model = []
  |         ^^
"#);
}

#[test]
fn text_that_is_not_toml() {
    insta::assert_snapshot!(edited(&[("units = 8", "units = ")]), @r#"
error: invalid TOML: string values must be quoted, expected literal string
 --> plan.toml:8:9
  |
8 | units = 
  |         ^
"#);
}

#[test]
fn a_key_given_twice() {
    insta::assert_snapshot!(edited(&[("units = 8", r#"units = 8
units = 9"#)]), @r#"
error: invalid TOML: duplicate key
 --> plan.toml:9:1
  |
9 | units = 9
  | ^^^^^
"#);
}

#[test]
fn an_empty_file() {
    insta::assert_snapshot!(error(r#""#), @r#"
error: the plan is empty
 --> plan.toml:1:1
  |
1 | 
  | ^
  = help: a plan needs `[data]`, `[[model]]` and `[training]`
"#);
}

#[test]
fn a_newer_version() {
    insta::assert_snapshot!(error(r#"version = 2
brain = "large"
"#), @r#"
error: the plan needs a newer version of Surefoot
 --> plan.toml:1:11
  |
1 | version = 2
  |           ^ this version reads up to 1
  = help: update Surefoot
"#);
}

#[test]
fn a_negative_seed() {
    insta::assert_snapshot!(edited(&[("seed = 7", "seed = -7")]), @r#"
error: `seed` must be at least 0
 --> plan.toml:1:8
  |
1 | seed = -7
  |        ^^
"#);
}
