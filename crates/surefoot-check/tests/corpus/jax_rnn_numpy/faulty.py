import argparse
import os

import jax
import jax.numpy as jnp
import numpy as np

CHECKPOINT = "rnn.npz"


def init(key, hidden=12):
    k1, k2, k3 = jax.random.split(key, 3)
    return {
        "wx": jax.random.normal(k1, (1, hidden)) * 0.5,
        "wh": jax.random.normal(k2, (hidden, hidden)) * 0.2,
        "wo": jax.random.normal(k3, (hidden, 1)) * 0.5,
    }


def predict(params, xs):
    def cell(h, x):
        h = jnp.tanh(x @ params["wx"] + h @ params["wh"])
        return h, None

    h, _ = jax.lax.scan(cell, jnp.zeros((xs.shape[1], params["wh"].shape[0])), xs)
    return h @ params["wo"]


def loss(params, xs, ys):
    return jnp.mean((predict(params, xs) - ys) ** 2)


@jax.jit
def update(params, velocity, xs, ys, lr):
    value, grads = jax.value_and_grad(loss)(params, xs, ys)
    velocity = jax.tree_util.tree_map(lambda v, g: 0.9 * v + g, velocity, grads)
    params = jax.tree_util.tree_map(lambda p, v: p - lr * v, params, velocity)
    return params, velocity, value


def batch(rng, size=24, length=10):
    phase = rng.uniform(0, 6.28, (size, 1))
    t = np.arange(length + 1)
    waves = np.sin(phase + t / 2).astype("float32")
    return waves[:, :-1].T[..., None], waves[:, -1:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--save-every", type=int, default=10)
    args = parser.parse_args()

    np.random.seed(6)
    params = init(jax.random.PRNGKey(6))
    velocity = jax.tree_util.tree_map(jnp.zeros_like, params)
    first = 0
    if os.path.exists(CHECKPOINT):
        saved = np.load(CHECKPOINT)
        params = {name: jnp.asarray(saved[name]) for name in params}
        first = int(saved["step"])

    for step in range(first, args.steps):
        xs, ys = batch(np.random)
        params, velocity, value = update(params, velocity, xs, ys, 0.02)
        if (step + 1) % args.save_every == 0:
            print(f"step {step + 1}: {float(value):.5f}")
            np.savez(CHECKPOINT, step=step + 1, **params)

    np.savez("final.npz", **params)


if __name__ == "__main__":
    main()
