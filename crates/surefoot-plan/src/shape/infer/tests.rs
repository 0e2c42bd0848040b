//! Parameters are those that `model.summary()` of Keras 3 counts as trainable.

use super::*;
use crate::{
    Activation, ActivationLayer, BatchNorm, Conv1d, Conv2d, Dense, Dropout, Embedding, Flatten,
    GlobalPool, GroupNorm, Gru, LayerNorm, Lstm, Pool1d, Pool2d, PositionEmbedding, Reshape,
    Residual, SimpleRnn,
};

/// What one layer gives and how many parameters it has.
fn one(layer: Layer, input: &[usize]) -> (Vec<usize>, usize) {
    let shapes = infer(&[layer], input, false).unwrap();
    let shape = shapes.last().unwrap();
    (shape.output.clone(), shape.parameters)
}

fn need(layer: Layer, input: &[usize]) -> String {
    let error = infer(&[layer], input, false).unwrap_err();
    error.label.unwrap()
}

#[test]
fn dense_works_on_the_last_dimension() {
    let dense = Layer::Dense(Dense::new(8));
    assert_eq!(one(dense.clone(), &[3]), (vec![8], 32));
    assert_eq!(one(dense, &[5, 4, 3]), (vec![5, 4, 8], 32));
    let plain = Dense { use_bias: false, ..Dense::new(8) };
    assert_eq!(one(Layer::Dense(plain), &[3]), (vec![8], 24));
}

#[test]
fn valid_windows_stay_inside() {
    let conv = Conv2d::new(6, [5, 3]);
    assert_eq!(one(Layer::Conv2d(conv.clone()), &[28, 28, 2]), (vec![24, 26, 6], 186));
    let strided = Conv2d { strides: [2, 3], dilation_rate: [2, 1], ..conv };
    assert_eq!(one(Layer::Conv2d(strided), &[28, 28, 2]), (vec![10, 9, 6], 186));
    let conv = Conv1d::new(4, 3);
    assert_eq!(one(Layer::Conv1d(conv), &[10, 2]), (vec![8, 4], 28));
}

#[test]
fn same_windows_give_a_position_for_each_stride() {
    let conv = Conv1d { strides: 3, padding: Padding::Same, ..Conv1d::new(4, 50) };
    assert_eq!(one(Layer::Conv1d(conv), &[10, 2]).0, [4, 4]);
}

#[test]
fn a_window_larger_than_its_input_is_an_error() {
    let conv = Conv1d { dilation_rate: 5, ..Conv1d::new(4, 3) };
    assert_eq!(
        need(Layer::Conv1d(conv.clone()), &[10, 2]),
        "its window covers 11, more than the input has"
    );
    assert_eq!(one(Layer::Conv1d(conv), &[11, 2]).0, [1, 4]);
}

#[test]
fn pools_step_by_their_size() {
    let pool = Pool2d::default();
    assert_eq!(one(Layer::MaxPool2d(pool), &[5, 4, 7]), (vec![2, 2, 7], 0));
    let pool = Pool1d { strides: Some(1), ..Pool1d::default() };
    assert_eq!(one(Layer::AveragePool1d(pool), &[5, 7]), (vec![4, 7], 0));
}

#[test]
fn global_pools_leave_the_channels() {
    let pool = Layer::GlobalAveragePool(GlobalPool::default());
    assert_eq!(one(pool.clone(), &[5, 7]).0, [7]);
    assert_eq!(one(pool.clone(), &[5, 6, 7]).0, [7]);
    assert!(need(pool, &[5]).contains("[steps, features]"));
}

#[test]
fn reshape_works_out_one_size() {
    let reshape = |sizes: &[i64]| Layer::Reshape(Reshape::new(sizes.to_vec()));
    assert_eq!(one(reshape(&[2, -1]), &[3, 4]).0, [2, 6]);
    assert_eq!(one(reshape(&[12]), &[3, 4]).0, [12]);
    assert!(need(reshape(&[5, -1]), &[3, 4]).contains("12 values"));
    assert!(need(reshape(&[5]), &[3, 4]).contains("[5]"));
    assert_eq!(one(Layer::Flatten(Flatten::default()), &[3, 4]).0, [12]);
}

#[test]
fn some_layers_keep_the_shape() {
    for (layer, parameters) in [
        (Layer::Dropout(Dropout::new(0.5)), 0),
        (Layer::Activation(ActivationLayer::new(Activation::Relu)), 0),
        (Layer::BatchNorm(BatchNorm::default()), 16),
        (Layer::LayerNorm(LayerNorm::default()), 16),
        (Layer::GroupNorm(GroupNorm { groups: 4, center: false, ..GroupNorm::default() }), 8),
        (Layer::PositionEmbedding(PositionEmbedding::default()), 40),
    ] {
        assert_eq!(one(layer, &[5, 8]), (vec![5, 8], parameters));
    }
}

#[test]
fn groups_divide_the_channels() {
    let norm = Layer::GroupNorm(GroupNorm::default());
    assert_eq!(need(norm, &[8]), "it needs channels (here 8) that divide into 32 groups");
}

#[test]
fn recurrent_layers_give_the_last_state_or_all() {
    assert_eq!(one(Layer::SimpleRnn(SimpleRnn::new(4)), &[7, 3]), (vec![4], 32));
    let lstm = Lstm { return_sequences: true, bidirectional: true, ..Lstm::new(4) };
    assert_eq!(one(Layer::Lstm(lstm), &[7, 3]), (vec![7, 8], 256));
    let gru = Gru::new(4);
    assert_eq!(one(Layer::Gru(gru.clone()), &[7, 3]), (vec![4], 108));
    let gru = Gru { reset_after: false, ..gru };
    assert_eq!(one(Layer::Gru(gru), &[7, 3]), (vec![4], 96));
    assert_eq!(need(Layer::Lstm(Lstm::new(4)), &[7]), "it needs [steps, features]");
}

#[test]
fn attention_splits_the_features_among_the_heads() {
    let attention = MultiHeadAttention::new(2);
    assert_eq!(one(Layer::MultiHeadAttention(attention.clone()), &[7, 8]), (vec![7, 8], 288));
    assert!(need(Layer::MultiHeadAttention(attention.clone()), &[7, 9]).contains("2 heads"));
    let wide = MultiHeadAttention { key_dim: Some(5), ..attention };
    assert_eq!(one(Layer::MultiHeadAttention(wide), &[7, 9]), (vec![7, 9], 399));
    let block = Transformer::new(2, 16);
    assert_eq!(one(Layer::Transformer(block), &[7, 8]), (vec![7, 8], 288 + 32 + 280));
}

#[test]
fn an_embedding_needs_whole_numbers_until_a_layer_computes() {
    let embedding = || Layer::Embedding(Embedding::new(10, 4));
    let shapes = infer(&[embedding()], &[6], true).unwrap();
    assert_eq!(shapes[0].output, [6, 4]);
    assert_eq!(shapes[0].parameters, 40);
    let flat = [Layer::Flatten(Flatten::default()), embedding()];
    assert_eq!(infer(&flat, &[2, 3], true).unwrap()[1].output, [6, 4]);
    let late = [Layer::Dense(Dense::new(6)), embedding()];
    assert_eq!(infer(&late, &[6], true).unwrap_err().path, [1]);
    assert!(infer(&[embedding()], &[6], false).is_err());
}

#[test]
fn a_residual_block_follows_its_layers() {
    let dense = |units| Layer::Dense(Dense::new(units));
    let block = Layer::Residual(Residual::new(vec![dense(3), dense(8)]));
    let shapes = infer(&[dense(8), block, dense(1)], &[2], false).unwrap();
    let names: Vec<_> = shapes.iter().map(|shape| shape.name.as_str()).collect();
    assert_eq!(
        names,
        ["dense_1", "residual_1/dense_2", "residual_1/dense_3", "residual_1", "dense_4"]
    );
    assert_eq!(shapes[2].path, [1, 1]);
    assert_eq!(shapes[3].path, [1]);
    assert_eq!(shapes[3].input, shapes[3].output);
    assert_eq!(shapes.iter().map(|shape| shape.parameters).sum::<usize>(), 24 + 27 + 32 + 9);
}

#[test]
fn a_residual_block_has_to_keep_the_shape() {
    let block = Layer::Residual(Residual::new(vec![Layer::Dense(Dense::new(3))]));
    let error = infer(&[block], &[2], false).unwrap_err();
    assert_eq!(error.path, [0]);
    assert_eq!(
        error.to_string(),
        "layer `residual_1` cannot take an input of shape [2]: its layers make [3] of it, which \
         cannot be added to [2]"
    );
}

#[test]
fn absurd_sizes_do_not_overflow() {
    let huge = Layer::Dense(Dense::new(usize::MAX));
    assert_eq!(one(huge, &[usize::MAX]).1, usize::MAX);
    assert!(infer(&[Layer::Dense(Dense::new(1))], &[], false).is_err());
}
