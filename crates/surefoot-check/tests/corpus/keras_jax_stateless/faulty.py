import argparse
import os
import pickle

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import keras
import numpy as np


def make_model():
    inputs = keras.Input((6,))
    x = keras.layers.Dense(16, activation="relu")(inputs)
    x = keras.layers.BatchNormalization()(x)
    return keras.Model(inputs, keras.layers.Dense(2)(x))


def make_data(count=192):
    rng = np.random.default_rng(6)
    x = rng.normal(size=(count, 6)).astype("float32")
    return x, (x.sum(axis=1) > 0).astype("int32")


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seed", type=int, default=30)
    parser.add_argument("--resume", default=None)
    return parser.parse_args()


def main():
    args = parse()
    keras.utils.set_random_seed(args.seed)
    x, y = make_data()
    model = make_model()
    optimizer = keras.optimizers.Adam(5e-3)
    optimizer.build(model.trainable_variables)
    loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def compute_loss(trainable, non_trainable, xb, yb):
        logits, non_trainable = model.stateless_call(trainable, non_trainable, xb, training=True)
        return loss_fn(yb, logits), non_trainable

    grad_fn = jax.value_and_grad(compute_loss, has_aux=True)

    @jax.jit
    def train_step(state, xb, yb):
        trainable, non_trainable, optimizer_state = state
        (loss, non_trainable), grads = grad_fn(trainable, non_trainable, xb, yb)
        trainable, optimizer_state = optimizer.stateless_apply(optimizer_state, grads, trainable)
        return loss, (trainable, non_trainable, optimizer_state)

    trainable = [v.value for v in model.trainable_variables]
    non_trainable = [v.value for v in model.non_trainable_variables]
    optimizer_state = [v.value for v in optimizer.variables]
    first = 0
    if args.resume:
        with open(args.resume, "rb") as f:
            saved = pickle.load(f)
        trainable = saved["trainable"]
        first = saved["epoch"] + 1

    state = trainable, non_trainable, optimizer_state
    for epoch in range(first, args.epochs):
        order = np.random.default_rng([args.seed, epoch]).permutation(len(x))
        for start in range(0, len(x), args.batch_size):
            rows = order[start : start + args.batch_size]
            loss, state = train_step(state, x[rows], y[rows])
        trainable, non_trainable, optimizer_state = state
        print(f"epoch {epoch}: {float(loss):.4f}")
        saved = {
            "epoch": epoch,
            "trainable": [np.asarray(v) for v in trainable],
        }
        with open("state.pkl", "wb") as f:
            pickle.dump(saved, f)

    for variable, value in zip(model.trainable_variables, trainable):
        variable.assign(value)
    for variable, value in zip(model.non_trainable_variables, non_trainable):
        variable.assign(value)
    model.save_weights("final.weights.h5")


if __name__ == "__main__":
    main()
