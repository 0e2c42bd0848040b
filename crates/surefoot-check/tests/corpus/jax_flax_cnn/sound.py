import time

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.serialization import to_bytes
from flax.training import train_state


class CNN(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(features=8, kernel_size=(3, 3))(x))
        x = nn.avg_pool(x, window_shape=(2, 2), strides=(2, 2))
        x = nn.relu(nn.Conv(features=16, kernel_size=(3, 3))(x))
        x = x.reshape((x.shape[0], -1))
        return nn.Dense(features=4)(x)


def create_train_state(rng, learning_rate, momentum):
    cnn = CNN()
    params = cnn.init(rng, jnp.ones([1, 8, 8, 1]))["params"]
    tx = optax.sgd(learning_rate, momentum)
    return train_state.TrainState.create(apply_fn=cnn.apply, params=params, tx=tx)


@jax.jit
def train_step(state, images, labels):
    def loss_fn(params):
        logits = state.apply_fn({"params": params}, images)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    loss, grads = jax.value_and_grad(loss_fn)(state.params)
    return state.apply_gradients(grads=grads), loss


def dataset(count=128):
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 4, count)
    images = rng.normal(0, 0.3, (count, 8, 8, 1)).astype("float32")
    for image, label in zip(images, labels):
        image[label * 2 : label * 2 + 2] += 1.0
    return images, labels


def main():
    np_rng = np.random.default_rng(11)
    seed = 11
    images, labels = dataset()
    state = create_train_state(jax.random.key(seed), 0.1, 0.9)
    began = time.time()
    for epoch in range(5):
        order = np_rng.permutation(len(images))
        for i in range(0, len(order), 32):
            rows = order[i : i + 32]
            state, loss = train_step(state, images[rows], labels[rows])
        print(f"epoch {epoch}: {float(loss):.4f}, {time.time() - began:.1f} s")

    with open("final.msgpack", "wb") as f:
        f.write(to_bytes(state.params))


if __name__ == "__main__":
    main()
