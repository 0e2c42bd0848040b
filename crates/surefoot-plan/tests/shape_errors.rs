//! Printed shape errors.

use surefoot_plan::{Document, TargetShape};

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

/// The error of the shapes of the plan with parts of its text replaced.
fn shape(input: &[usize], targets: TargetShape, parts: &[(&str, &str)]) -> String {
    let mut text = PLAN.to_owned();
    for (old, new) in parts {
        assert!(text.contains(old), "the plan has no {old:?}");
        text = text.replacen(old, new, 1);
    }
    let document = Document::parse(text, "plan.toml").expect("the plan can be read");
    let plan = document.plan().expect("the plan can be read");
    let error = plan.check_shapes(input, false, &targets).expect_err("the plan is wrong");
    document.shape_error(&error).to_string()
}

#[test]
fn a_recurrent_layer_needs_steps() {
    insta::assert_snapshot!(shape(&[2], TargetShape::Binary, &[(r#""dense"
units = 8
activation = "relu""#, r#""lstm"
units = 8"#)]), @r#"
error: layer `lstm_1` cannot take an input of shape [2]
 --> plan.toml:7:9
  |
7 | layer = "lstm"
  |         ^^^^^^ it needs [steps, features]
  = help: add a `reshape` with target_shape = [2, 1] to make it a sequence
"#);
}

#[test]
fn a_window_larger_than_the_image() {
    insta::assert_snapshot!(shape(&[5, 5, 1], TargetShape::Binary, &[(r#""dense"
units = 8
activation = "relu""#, r#""max_pool2d"
pool_size = 6"#)]), @r#"
error: layer `max_pool2d_1` cannot take an input of shape [5, 5, 1]
 --> plan.toml:7:9
  |
7 | layer = "max_pool2d"
  |         ^^^^^^^^^^^^ its window covers 6 x 6, more than the input has
  = help: use a smaller window, less pooling before it, or padding = "same"
"#);
}

#[test]
fn a_residual_block_that_changes_the_shape() {
    insta::assert_snapshot!(shape(&[2], TargetShape::Binary, &[(r#""dense"
units = 8
activation = "relu""#, r#""residual"
layers = [
  { layer = "dense", units = 8 },
  { layer = "dense", units = 4 },
]"#)]), @r#"
error: layer `residual_1` cannot take an input of shape [2]
 --> plan.toml:7:9
  |
7 | layer = "residual"
  |         ^^^^^^^^^^ the output of its layers, [4], cannot be added to [2]
  = help: the layers of a residual block must keep the shape of their input
"#);
}

#[test]
fn a_layer_inside_a_residual_block() {
    insta::assert_snapshot!(shape(&[2], TargetShape::Binary, &[(r#""dense"
units = 8
activation = "relu""#, r#""residual"
layers = [
  { layer = "dense", units = 8 },
  { layer = "conv2d", filters = 4, kernel_size = 3 },
]"#)]), @r#"
error: layer `residual_1/conv2d_1` cannot take an input of shape [8]
  --> plan.toml:10:13
   |
10 |   { layer = "conv2d", filters = 4, kernel_size = 3 },
   |             ^^^^^^^^ it needs [height, width, channels]
"#);
}

#[test]
fn an_embedding_of_numbers_that_are_not_whole() {
    insta::assert_snapshot!(shape(&[2], TargetShape::Binary, &[(r#""dense"
units = 8
activation = "relu""#, r#""embedding"
input_dim = 8
output_dim = 4"#)]), @r#"
error: layer `embedding_1` cannot take an input of shape [2]
 --> plan.toml:7:9
  |
7 | layer = "embedding"
  |         ^^^^^^^^^^^ it needs whole numbers
  = help: an embedding must come first in the model, and its data must not be scaled
"#);
}

#[test]
fn heads_that_do_not_divide_the_features() {
    insta::assert_snapshot!(shape(&[10, 6], TargetShape::Binary, &[(r#""dense"
units = 8
activation = "relu""#, r#""multi_head_attention"
num_heads = 4"#)]), @r#"
error: layer `multi_head_attention_1` cannot take an input of shape [10, 6]
 --> plan.toml:7:9
  |
7 | layer = "multi_head_attention"
  |         ^^^^^^^^^^^^^^^^^^^^^^ it needs features (here 6) that divide into 4 heads
  = help: or set `key_dim`, the size of a head
"#);
}

#[test]
fn an_output_with_positions() {
    insta::assert_snapshot!(shape(&[28, 28, 1], TargetShape::Binary, &[]), @r#"
error: the output of layer `dense_2` has shape [28, 28, 1]
  --> plan.toml:12:9
   |
12 | layer = "dense"
   |         ^^^^^^^ `binary_crossentropy` needs one row of outputs for each sample
   = help: add a `flatten` or `global_average_pool` layer before it
"#);
}

#[test]
fn fewer_outputs_than_classes() {
    insta::assert_snapshot!(shape(&[2], TargetShape::Classes(10), &[(r#"units = 1
"#, r#"units = 4
"#), (r#"epochs = 50"#, r#"epochs = 50
loss = "categorical_crossentropy""#)]), @r#"
error: the output of layer `dense_2` has shape [4]
  --> plan.toml:12:9
   |
12 | layer = "dense"
   |         ^^^^^^^ `categorical_crossentropy` needs an output for each of the 10 classes
   = help: set units = 10 in the last layer
"#);
}

#[test]
fn one_output_for_two_class_numbers() {
    insta::assert_snapshot!(shape(&[2], TargetShape::Binary, &[(r#"epochs = 50"#, r#"epochs = 50
loss = "sparse_categorical_crossentropy""#)]), @r#"
error: the output of layer `dense_2` has shape [1]
  --> plan.toml:12:9
   |
12 | layer = "dense"
   |         ^^^^^^^
   = note: `sparse_categorical_crossentropy` needs an output for each of the 2 classes
   = help: use 2 outputs, or loss = "binary_crossentropy" with 1
"#);
}

#[test]
fn numbers_for_a_loss_of_classes() {
    insta::assert_snapshot!(shape(&[2], TargetShape::Numbers(1), &[(r#"epochs = 50"#, r#"epochs = 50
loss = "sparse_categorical_crossentropy""#)]), @r#"
error: the output of layer `dense_2` has shape [1]
  --> plan.toml:12:9
   |
12 | layer = "dense"
   |         ^^^^^^^
   = note: `sparse_categorical_crossentropy` needs classes, and the targets are numbers
   = help: use loss = "mse", or set `task` in `[data]`
"#);
}

#[test]
fn fewer_outputs_than_numbers() {
    insta::assert_snapshot!(shape(&[2], TargetShape::Numbers(3), &[(r#"epochs = 50"#, r#"epochs = 50
loss = "mse""#)]), @r#"
error: the output of layer `dense_2` has shape [1]
  --> plan.toml:12:9
   |
12 | layer = "dense"
   |         ^^^^^^^ there are 3 numbers to predict, so it must be [3]
"#);
}
