import keras
import numpy as np
from keras import layers

USERS, ITEMS, SEED = 40, 60, 13


class Interactions(keras.utils.PyDataset):
    """Batches of pairs that were seen, and as many at random."""

    def __init__(self, users, items, batch_size, **kwargs):
        super().__init__(**kwargs)
        self.users, self.items = users, items
        self.batch_size = batch_size

    def __len__(self):
        return len(self.users) // self.batch_size

    def __getitem__(self, index):
        rows = slice(index * self.batch_size, (index + 1) * self.batch_size)
        users, items = self.users[rows], self.items[rows]
        negatives = np.random.randint(0, ITEMS, len(items))
        labels = np.concatenate([np.ones(len(items)), np.zeros(len(items))]).astype("float32")
        return (np.concatenate([users, users]), np.concatenate([items, negatives])), labels


def tower(size, name):
    return keras.Sequential([layers.Embedding(size, 8), layers.Dense(8)], name=name)


class TwoTower(keras.Model):
    def __init__(self):
        super().__init__()
        self.user_tower = tower(USERS, "users")
        self.item_tower = tower(ITEMS, "items")
        self.dot = layers.Dot(axes=-1)

    def call(self, inputs):
        users, items = inputs
        return self.dot([self.user_tower(users), self.item_tower(items)])


def interactions(count=512):
    rng = np.random.default_rng(1)
    users = rng.integers(0, USERS, count)
    items = (users * 3 + rng.integers(0, 5, count)) % ITEMS
    return users.astype("int32"), items.astype("int32")


def main():
    keras.utils.set_random_seed(SEED)
    users, items = interactions()
    dataset = Interactions(users, items, 64, workers=2, use_multiprocessing=True, max_queue_size=4)
    model = TwoTower()
    model.compile(
        optimizer=keras.optimizers.Adagrad(0.1),
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
    )
    model.fit(dataset, epochs=3, shuffle=False, verbose=2)
    model.save_weights("final.weights.h5")


if __name__ == "__main__":
    main()
