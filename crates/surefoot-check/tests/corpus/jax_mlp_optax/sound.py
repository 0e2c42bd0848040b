import argparse
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import optax


def init_layer(key, fan_in, fan_out):
    return {"w": jax.random.normal(key, (fan_in, fan_out)) / jnp.sqrt(fan_in), "b": jnp.zeros(fan_out)}


def init_params(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [init_layer(k, i, o) for k, i, o in zip(keys, sizes[:-1], sizes[1:])]


def forward(params, x, key, rate=0.1):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
        key, use = jax.random.split(key)
        x = x * jax.random.bernoulli(use, 1 - rate, x.shape) / (1 - rate)
    return x @ params[-1]["w"] + params[-1]["b"]


def loss_fn(params, x, y, key):
    logits = forward(params, x, key)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def make_data(count=256):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(count, 4)).astype("float32")
    return x, (x[:, 0] + x[:, 1] > 0).astype("int32")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume")
    args = parser.parse_args()

    x, y = make_data()
    key = jax.random.PRNGKey(args.seed)
    key, init = jax.random.split(key)
    params = init_params(init, [4, 32, 2])
    optimizer = optax.adam(1e-2)
    opt_state = optimizer.init(params)

    @jax.jit
    def step(params, opt_state, xb, yb, key):
        loss, grads = jax.value_and_grad(loss_fn)(params, xb, yb, key)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    start = 0
    if args.resume:
        with open(args.resume, "rb") as f:
            saved = pickle.load(f)
        params, start = saved["params"], saved["epoch"] + 1
        opt_state = saved["opt_state"]
        key = saved["key"]

    for epoch in range(start, args.epochs):
        key, order_key = jax.random.split(key)
        order = jax.random.permutation(order_key, len(x))
        for i in range(0, len(x), args.batch):
            rows = order[i : i + args.batch]
            key, drop = jax.random.split(key)
            params, opt_state, loss = step(params, opt_state, x[rows], y[rows], drop)
        print(f"epoch {epoch}: {float(loss):.4f}")
        with open("jax_state.pkl", "wb") as f:
            pickle.dump(
                {"epoch": epoch, "params": params, "opt_state": opt_state, "key": key},
                f,
            )

    with open("final.pkl", "wb") as f:
        pickle.dump(jax.device_get(params), f)


if __name__ == "__main__":
    main()
