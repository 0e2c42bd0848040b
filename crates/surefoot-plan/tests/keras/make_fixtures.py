"""Writes the Keras files that the tests of `surefoot_plan::keras` read.

Run once with each Keras; every run replaces only its own files:

    pip install keras==3.15.1 jax==0.10.2 h5py==3.16.0 && KERAS_BACKEND=jax python make_fixtures.py
    pip install tensorflow-cpu==2.15.1 h5py==3.16.0 && python make_fixtures.py        # Keras 2.15.0

The files in the repository were written by these versions.

Layout: `fixtures/<name>.h5` or `fixtures/<name>.keras` is a model; where there is a
`fixtures/<name>.json` beside it, that is what Keras computes with it, in inference mode:

    {"input_shape": [..], "input": [..flat], "output_shape": [..], "output": [..flat]}

Shapes include the batch dimension, values are row-major. `<name>` starts with the format that Keras
wrote: `keras2_h5_`, `keras2_zip_` (the `.keras` format as Keras 2.15 wrote it), `keras3_h5_`, `keras3_zip_`.
Weights are random and nowhere at their initial values, moving means and variances included.

`fixtures/keras2_compiled.json` and `keras3_compiled.json` are lists of what Keras writes for
`model.compile(...)`. `<name>.model` is the text of `model.to_json()`: a model without weights.
Models that must be refused: `*_unknown`, `*_masked` and `*_weights_only`.
"""

import json
import os
import pathlib
import zipfile

os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np

MAJOR = int(keras.__version__.split(".")[0])
FIXTURES = pathlib.Path(__file__).parent / "fixtures"
L = keras.layers
rng = np.random.default_rng(2024)


def randomise(model):
    """Gives every weight a value that no initializer would."""
    for weight in model.weights:
        value = rng.normal(0.1, 0.6, weight.shape)
        if "variance" in weight.name:
            value = rng.uniform(0.5, 2.0, weight.shape)
        weight.assign(value.astype("float32"))


def write(name, model, inputs, formats):
    """Saves the model in each format, with the outputs that Keras computes."""
    spread = 0.0
    while spread < 0.05:  # weights with which the output hardly depends on the input test nothing
        randomise(model)
        outputs = np.asarray(model(inputs, training=False))
        spread = np.ptp(outputs, axis=0).max()
    expected = {
        "input_shape": list(inputs.shape),
        "input": [round(float(x), 6) for x in inputs.ravel()],
        "output_shape": list(outputs.shape),
        "output": [float(f"{x:.8g}") for x in outputs.ravel()],
    }
    for form in formats:
        stem = f"keras{MAJOR}_{form}_{name}"
        save(model, stem, form)
        (FIXTURES / f"{stem}.json").write_text(json.dumps(expected, separators=(",", ":")) + "\n")


def save(model, stem, form):
    """Saves the model; archives are packed again, compressed, to keep the repository small."""
    if form == "h5":
        model.save(FIXTURES / f"{stem}.h5")
        return
    path = FIXTURES / f"{stem}.keras"
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED, 9)


def values(*shape):
    return rng.normal(0.0, 1.0, shape).round(3).astype("float32")


def activations(names):
    """The named activations as arguments, and those that are layers."""
    return keras.Sequential([
        keras.Input((3,)),
        *[L.Dense(3, activation=name, name=f"with_{name}") for name in names],
        L.LeakyReLU(0.25),
        L.ELU(0.7),
        L.ReLU(negative_slope=0.1),
        L.Activation("tanh"),
        L.Dense(4, activation=L.LeakyReLU(0.15)) if MAJOR > 2 else L.Dense(4),
        L.LeakyReLU(),
        L.ReLU(),
        L.Dense(3),
        L.Softmax(),
    ])


def lenet():
    """Convolutions with both paddings and strides, normalisation, pooling."""
    return keras.Sequential([
        keras.Input((9, 8, 2)),
        L.Conv2D(3, 3, padding="same", activation="relu", name="first"),
        L.BatchNormalization(momentum=0.9, epsilon=0.01),
        L.MaxPooling2D(2, padding="same"),
        L.Conv2D(4, (3, 2), strides=(2, 1), use_bias=False),
        L.BatchNormalization(center=False),
        L.AveragePooling2D((1, 2), strides=1, padding="same"),
        L.Dropout(0.3),
        L.Flatten(),
        L.Dense(3),
    ])


def conv1d():
    return keras.Sequential([
        keras.Input((14, 2)),
        L.Conv1D(3, 3, padding="same", dilation_rate=2, activation="tanh"),
        L.MaxPooling1D(3, strides=2, padding="same"),
        L.Conv1D(4, 2, strides=2, padding="same"),
        L.AveragePooling1D(2),
        L.Conv1D(2, 1, use_bias=False),
        L.GlobalMaxPooling1D(),
    ])


def recurrent():
    """All three cells, forward and both ways."""
    return keras.Sequential([
        keras.Input((5, 2)),
        L.SimpleRNN(3, return_sequences=True),
        L.LSTM(2, return_sequences=True),
        L.GRU(3, return_sequences=True),
        L.GRU(2, return_sequences=True, reset_after=False, recurrent_activation="hard_sigmoid"),
        L.LSTM(2, use_bias=False, activation="elu"),
    ])


def bidirectional():
    return keras.Sequential([
        keras.Input((4, 2)),
        L.Bidirectional(L.LSTM(2, return_sequences=True)),
        L.Bidirectional(L.GRU(2, return_sequences=True, name="inner"), name="both_ways"),
        L.Bidirectional(L.SimpleRNN(2)),
    ])


def embedding():
    return keras.Sequential([
        keras.Input((6,), dtype="int32"),
        L.Embedding(7, 3),
        L.GlobalAveragePooling1D(),
        L.Dense(1, activation="sigmoid"),
    ])


def norms():
    return keras.Sequential([
        keras.Input((24,)),
        L.LayerNormalization(epsilon=0.002),
        L.Reshape((3, 2, 4)),
        L.GroupNormalization(groups=2, epsilon=0.003),
        L.GlobalAveragePooling2D(),
        L.Reshape((-1, 2)),
        L.LayerNormalization(axis=2, scale=False),
        L.GlobalMaxPooling1D(),
    ])


def functional():
    """A chain, written with the functional interface, with settings on every layer."""
    inputs = keras.Input((4,), name="features")
    x = L.Dense(
        5,
        activation="relu",
        kernel_initializer="he_normal",
        bias_initializer=keras.initializers.Constant(0.1),
        kernel_regularizer=keras.regularizers.L2(0.01),
        bias_regularizer=keras.regularizers.L1(0.02),
        name="zebra",
    )(inputs)
    x = L.Dropout(0.25)(x)
    x = L.Dense(
        3,
        kernel_initializer=keras.initializers.Orthogonal(gain=2.0),
        bias_initializer=keras.initializers.RandomUniform(-0.2, 0.2),
        kernel_regularizer=keras.regularizers.L1L2(0.03, 0.04),
        name="aardvark",
    )(x)
    x = L.BatchNormalization()(x)
    outputs = L.Dense(
        2, kernel_initializer=keras.initializers.TruncatedNormal(0.0, 0.1), activation="softmax", name="out"
    )(x)
    model = keras.Model(inputs, outputs)
    model.compile(keras.optimizers.Adam(0.002), "categorical_crossentropy", metrics=["accuracy"])
    return model


def nested():
    """A model inside a model, which has layer names of its own."""
    inner = keras.Sequential([keras.Input((3,)), L.Dense(4, "relu", name="same"), L.BatchNormalization()], name="inner")
    tower = keras.Input((4,))
    deep = keras.Model(tower, L.Dense(2, name="same")(L.Dense(2, name="other")(tower)), name="tower")
    return keras.Sequential([keras.Input((3,)), inner, deep, L.Dense(2, name="last")])


def long_names():
    """A model whose attributes do not fit: Keras then splits them into `layer_names0`, `layer_names1`, .."""
    return keras.Sequential([keras.Input((2,))] + [L.Dense(2, name=f"layer_number_{i}") for i in range(2)])


def branch():
    inputs = keras.Input((4,), name="features")
    fork = L.Dense(4, name="fork")(inputs)
    side = L.Dense(4, name="side")(fork)
    return keras.Model(inputs, L.Dense(1)(L.Add(name="join")([fork, side])))


def unknown():
    return keras.Sequential([
        keras.Input((6, 2)), L.Rescaling(0.5), L.SpatialDropout1D(0.1), L.Flatten(), L.Dense(1), L.Rescaling(2.0),
    ])


def masked():
    return keras.Sequential([keras.Input((3,), dtype="int32"), L.Embedding(4, 2, mask_zero=True), L.LSTM(2)])


def compiled():
    """The loss and the optimizer as Keras writes them."""
    o, losses, schedules = keras.optimizers, keras.losses, keras.optimizers.schedules
    cases = [
        (o.SGD(0.1, momentum=0.9, nesterov=True), "mse"),
        (o.RMSprop(0.002, rho=0.8, momentum=0.1, centered=True), losses.BinaryCrossentropy(from_logits=True)),
        (o.Adagrad(0.03, initial_accumulator_value=0.2), "mae"),
        (o.Adadelta(0.5, rho=0.9, epsilon=1e-6), losses.Huber(delta=2.0)),
        (o.Adam(0.001, beta_1=0.8, amsgrad=True, clipnorm=1.0), "sparse_categorical_crossentropy"),
        (o.AdamW(0.004, weight_decay=0.01, global_clipnorm=5.0), losses.CategoricalCrossentropy()),
        (o.Nadam(0.005, clipvalue=0.5), "hinge"),
        (o.Adam(schedules.ExponentialDecay(0.01, 100, 0.9, staircase=True)), "kl_divergence"),
        (o.SGD(schedules.CosineDecay(0.1, 1000, alpha=0.1)), losses.Poisson()),
        (o.SGD(schedules.CosineDecay(0.0, 900, warmup_target=0.2, warmup_steps=100)), losses.MeanSquaredError()),
        (o.Adamax(0.01), losses.LogCosh()),
        (o.Adam(use_ema=True), losses.BinaryCrossentropy(label_smoothing=0.1)),
        (o.SGD(schedules.PolynomialDecay(0.3, 100)), losses.binary_crossentropy),
    ]
    written = []
    for optimizer, loss in cases:
        model = keras.Sequential([keras.Input((2,)), L.Dense(1)])
        model.compile(optimizer, loss)
        if MAJOR > 2:
            written.append(json.loads(json.dumps(model.get_compile_config(), default=str)))
        else:
            import h5py

            path = FIXTURES / "scratch.h5"
            model.save(path)
            with h5py.File(path) as file:
                written.append(json.loads(file.attrs["training_config"]))
            path.unlink()
    (FIXTURES / f"keras{MAJOR}_compiled.json").write_text(json.dumps(written, separators=(",", ":")) + "\n")


def main():
    FIXTURES.mkdir(exist_ok=True)
    # HDF5 files are large for what they hold; each case is kept in the format that adds something.
    first = ["h5", "zip"] if MAJOR == 2 else ["zip"]
    # Few at a time: a long chain of them gives the same output for every input.
    write("activations", activations(["gelu", "swish", "hard_sigmoid"]), values(3, 3), ["zip"])
    if MAJOR > 2:
        write("activations_2", activations(["relu", "elu", "selu", "tanh"]), values(3, 3), ["zip"])
        rest = ["leaky_relu", "softplus", "linear", "silu", "sigmoid"]
        write("activations_3", activations(rest), values(3, 3), ["zip"])
    write("lenet", lenet(), values(2, 9, 8, 2), ["zip"])
    write("conv1d", conv1d(), values(2, 14, 2), ["zip"])
    write("recurrent", recurrent(), values(2, 5, 2), ["zip"])
    write("bidirectional", bidirectional(), values(2, 4, 2), first)
    write("embedding", embedding(), rng.integers(0, 7, (3, 6)).astype("int32"), ["zip"])
    write("norms", norms(), values(2, 24), ["zip"])
    write("functional", functional(), values(2, 4), first)
    write("nested", nested(), values(2, 3), ["h5", "zip"])

    for case in [lenet, branch, unknown, masked]:
        name = "architecture" if case is lenet else case.__name__
        (FIXTURES / f"keras{MAJOR}_{name}.model").write_text(case().to_json() + "\n")
    compiled()
    if MAJOR == 2:
        from keras.src.saving.legacy import hdf5_format

        hdf5_format.HDF5_OBJECT_HEADER_LIMIT = 24
        write("long_names", long_names(), values(2, 2), ["h5"])
        hdf5_format.HDF5_OBJECT_HEADER_LIMIT = 64512
        keras.Sequential([keras.Input((2,)), L.Dense(1)]).save_weights(FIXTURES / "keras2_h5_weights_only.h5")
    else:
        save(keras.Sequential([L.Dense(2), L.Dense(1)]), "keras3_zip_unbuilt", "zip")


main()
