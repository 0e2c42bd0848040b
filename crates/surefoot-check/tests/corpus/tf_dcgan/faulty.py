import os

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

EPOCHS = 4
BATCH = 32
NOISE_DIM = 10
CHECKPOINTS = "./training_checkpoints"

tf.keras.utils.set_random_seed(1)


def make_generator_model():
    return tf.keras.Sequential(
        [
            layers.Dense(4 * 4 * 8, use_bias=False, input_shape=(NOISE_DIM,)),
            layers.BatchNormalization(),
            layers.LeakyReLU(),
            layers.Reshape((4, 4, 8)),
            layers.Conv2DTranspose(1, 4, strides=2, padding="same", activation="tanh"),
        ]
    )


def make_discriminator_model():
    return tf.keras.Sequential(
        [
            layers.Conv2D(8, 4, strides=2, padding="same", input_shape=(8, 8, 1)),
            layers.LeakyReLU(),
            layers.Flatten(),
            layers.Dense(1),
        ]
    )


cross_entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)


def discriminator_loss(real_output, fake_output):
    real = cross_entropy(tf.ones_like(real_output), real_output)
    return real + cross_entropy(tf.zeros_like(fake_output), fake_output)


def generator_loss(fake_output):
    return cross_entropy(tf.ones_like(fake_output), fake_output)


rows = np.random.default_rng(4).integers(0, 8, 96)
images = -np.ones((96, 8, 8, 1), dtype="float32")
images[np.arange(96), rows] = 1.0
train_dataset = tf.data.Dataset.from_tensor_slices(images).batch(BATCH)

generator = make_generator_model()
discriminator = make_discriminator_model()
generator_optimizer = tf.keras.optimizers.legacy.Adam(1e-3)
discriminator_optimizer = tf.keras.optimizers.legacy.Adam(1e-3)
epoch_counter = tf.Variable(0)
checkpoint = tf.train.Checkpoint(
    generator_optimizer=generator_optimizer,
    generator=generator,
    discriminator=discriminator,
    epoch=epoch_counter,
)


@tf.function
def train_step(batch):
    noise = tf.random.normal([BATCH, NOISE_DIM])
    with tf.GradientTape() as gen_tape, tf.GradientTape() as disc_tape:
        fake = generator(noise, training=True)
        real_output = discriminator(batch, training=True)
        fake_output = discriminator(fake, training=True)
        gen_loss = generator_loss(fake_output)
        disc_loss = discriminator_loss(real_output, fake_output)
    gen_grads = gen_tape.gradient(gen_loss, generator.trainable_variables)
    disc_grads = disc_tape.gradient(disc_loss, discriminator.trainable_variables)
    generator_optimizer.apply_gradients(zip(gen_grads, generator.trainable_variables))
    discriminator_optimizer.apply_gradients(zip(disc_grads, discriminator.trainable_variables))
    return gen_loss, disc_loss


def train(dataset, epochs):
    checkpoint.restore(tf.train.latest_checkpoint(CHECKPOINTS))
    for epoch in range(int(epoch_counter), epochs):
        for batch in dataset:
            gen_loss, disc_loss = train_step(batch)
        epoch_counter.assign(epoch + 1)
        print(f"epoch {epoch + 1}: {float(gen_loss):.4f} {float(disc_loss):.4f}")
        checkpoint.save(file_prefix=os.path.join(CHECKPOINTS, "ckpt"))


train(train_dataset, EPOCHS)
generator.save_weights("final.weights.h5")
