//! Keras, TensorFlow, JAX and Lightning: every rule that matters there, on a script that breaks it and on
//! one that does not.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::fs;

use surefoot_check::{CheckConfig, CheckReport, Rule, check};

fn checked(text: &str) -> CheckReport {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("train.py");
    fs::write(&path, text).unwrap();
    let checked = check(&[path], &CheckConfig::default());
    assert!(checked.unreadable.is_empty(), "{:?}", checked.unreadable);
    checked
}

fn rules(text: &str) -> Vec<Rule> {
    checked(text).findings.iter().map(|it| it.rule).collect()
}

#[track_caller]
fn tells_apart(expected: &[Rule], faulty: &str, sound: &str) {
    assert_eq!(rules(faulty), expected, "in\n{faulty}");
    assert_eq!(rules(sound), [], "in\n{sound}");
}

/// A compiled model of Keras that is fitted to arrays.
fn keras(before: &str, layers: &str, fit: &str) -> String {
    format!(
        "import keras\nimport numpy as np\nimport random\nfrom keras import layers\n{before}\n\
         x = np.zeros((64, 4))\ny = np.zeros(64)\n\
         model = keras.Sequential([layers.Dense(8, activation='relu'), {layers}layers.Dense(1)])\n\
         model.compile(optimizer='adam', loss='mse')\n{fit}\nmodel.save('final.keras')\n"
    )
}

const SEED: &str = "keras.utils.set_random_seed(1)";
const BACKUP: &str =
    "model.fit(x, y, shuffle=False, callbacks=[keras.callbacks.BackupAndRestore('b')])";

#[test]
fn a_model_of_keras_that_nobody_seeds() {
    let fit = "model.fit(x, y)";
    tells_apart(&[Rule::UnseededGenerator], &keras("", "", fit), &keras(SEED, "", fit));
}

#[test]
fn other_seeds_do_not_reach_keras() {
    let fit = "model.fit(x, y)";
    let faulty = keras("np.random.seed(1)\nrandom.seed(1)", "", fit);
    assert_eq!(rules(&faulty), [Rule::UnseededGenerator]);
}

#[test]
fn a_backup_holds_no_generator() {
    tells_apart(
        &[Rule::MissingGenerator],
        &keras(SEED, "layers.Dropout(0.5), ", BACKUP),
        &keras(SEED, "", BACKUP),
    );
}

#[test]
fn a_backup_does_not_hold_what_callbacks_remember() {
    let with = |callback: &str| {
        let fit = BACKUP.replace("('b')", &format!("('b'), keras.callbacks.{callback}"));
        keras(SEED, "", &fit)
    };
    tells_apart(
        &[Rule::MissingState],
        &with("EarlyStopping(patience=2)"),
        &with("LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1))"),
    );
}

#[test]
fn a_callback_of_the_script_has_a_state_too() {
    let with = |rate: &str| {
        let callback = format!(
            "{SEED}\nclass Warm(keras.callbacks.Callback):\n    def __init__(self):\n        super().__init__()\n        self.rate = 0.1\n    \
             def on_epoch_end(self, epoch, logs=None):\n        self.rate = {rate}\n        self.model.optimizer.learning_rate.assign(self.rate)\n"
        );
        keras(&callback, "", &BACKUP.replace("('b')", "('b'), Warm()"))
    };
    tells_apart(&[Rule::MissingState], &with("self.rate * 0.9"), &with("0.1 / (epoch + 1)"));
}

#[test]
fn weights_in_the_old_format_lack_the_optimizer() {
    let with = |file: &str, full: &str| {
        let fit = format!(
            "import os\nif os.path.exists('{file}'):\n    model.optimizer.build(model.trainable_variables)\n    model.load_weights('{file}')\n\
             model.fit(x, y, shuffle=False, initial_epoch=2, callbacks=[keras.callbacks.ModelCheckpoint('{file}'{full})])"
        );
        keras(SEED, "", &fit)
    };
    tells_apart(
        &[Rule::MissingState],
        &with("last.h5", ", save_weights_only=True"),
        &with("last.keras", ""),
    );
}

#[test]
fn weights_read_before_compiling_lose_the_optimizer() {
    let load = "model.load_weights('w.weights.h5')\n";
    let compile = "model.compile(optimizer='adam', loss='mse')\n";
    let build = "model.optimizer.build(model.trainable_variables)\n";
    let with = |middle: &str, file: &str| {
        format!(
            "import keras\nimport numpy as np\n{SEED}\nmodel = keras.Sequential([keras.layers.Dense(1)])\n{middle}\
             model.fit(np.zeros((8, 2)), np.zeros(8), shuffle=False, initial_epoch=2, callbacks=[keras.callbacks.ModelCheckpoint('{file}', save_weights_only=True)])\n"
        )
    };
    tells_apart(
        &[Rule::RestoredEarly],
        &with(&format!("{load}{compile}"), "w.weights.h5"),
        &with(&format!("{compile}{build}{load}"), "w.weights.h5"),
    );
    // Before the training the optimizer has no variables to read into.
    assert_eq!(rules(&with(&format!("{compile}{load}"), "w.weights.h5")), [Rule::NotRestored]);
    // Weights from elsewhere are where the training begins.
    assert_eq!(rules(&with(&format!("{load}{compile}"), "new.weights.h5")), []);
}

/// A pipeline that a model with fixed initial values is fitted to.
#[test]
fn a_model_that_is_read_again_begins_with_its_first_epoch() {
    let with = |more: &str| {
        format!(
            "import os, keras\nimport numpy as np\n{SEED}\nif os.path.exists('m.keras'):\n    model = keras.models.load_model('m.keras')\n\
             else:\n    model = keras.Sequential([keras.layers.Dense(1)])\n    model.compile('adam', 'mse')\n\
             model.fit(np.zeros((8, 2)), np.zeros(8), epochs=9, shuffle=False, {more}callbacks=[keras.callbacks.ModelCheckpoint('m.keras')])\n"
        )
    };
    tells_apart(
        &[Rule::MissingPosition],
        &with(""),
        &with("initial_epoch=int(open('epoch.txt').read()), "),
    );
    let found = checked(&with("")).findings;
    assert!(found[0].help.contains("initial_epoch"), "{}", found[0].help);
}

#[test]
fn seeds_of_tensorflow_do_not_reach_the_layers_of_keras_3() {
    let with = |import: &str, seed: &str| {
        format!(
            "import tensorflow as tf\n{import}\nimport numpy as np\n{seed}\nmodel = keras.Sequential([keras.layers.Dense(1)])\n\
             model.compile('adam', 'mse')\nmodel.fit(np.zeros((8, 2)), np.zeros(8), shuffle=False)\nmodel.save('m.keras')\n"
        )
    };
    let seed = "tf.random.set_seed(1)";
    tells_apart(
        &[Rule::UnseededGenerator],
        &with("import keras", seed),
        &with("import keras", SEED),
    );
    let found = checked(&with("import keras", seed)).findings;
    let advice = "keras.utils.set_random_seed(seed)";
    assert!(found[0].help.contains(advice), "{}", found[0].help);
    // Which Keras this is depends on the version of TensorFlow.
    assert_eq!(rules(&with("from tensorflow import keras", seed)), []);
}

fn pipeline(stages: &str) -> String {
    format!(
        "import numpy as np\nimport tensorflow as tf\n\n\
         def prepare(x, y):\n    return x * 2, y\n\n\
         data = tf.data.Dataset.from_tensor_slices((np.zeros((64, 4)), np.zeros(64)))\n{stages}\n\
         model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer='zeros')])\n\
         model.compile('adam', 'mse')\nmodel.fit(data.batch(8), epochs=2)\n"
    )
}

#[test]
fn a_pipeline_that_shuffles_without_a_seed() {
    tells_apart(
        &[Rule::UnseededShuffle],
        &pipeline("data = data.shuffle(64)"),
        &pipeline("data = data.shuffle(64, seed=1)"),
    );
}

#[test]
fn a_pipeline_that_passes_elements_on_as_they_come() {
    tells_apart(
        &[Rule::ArrivalOrder],
        &pipeline("data = data.map(prepare, num_parallel_calls=4, deterministic=False)"),
        &pipeline("data = data.map(prepare, num_parallel_calls=4)"),
    );
    let options = "options = tf.data.Options()\noptions.deterministic = False\ndata = data.with_options(options)";
    assert_eq!(rules(&pipeline(options)), [Rule::ArrivalOrder]);
}

#[test]
fn draws_in_a_pipeline() {
    let with =
        |draw: &str| pipeline(&format!("data = data.map(lambda x, y: (x + tf.random.{draw}, y))"));
    tells_apart(
        &[Rule::UnseededGenerator],
        &with("normal([4])"),
        &with("stateless_normal([4], seed=[1, 2])"),
    );
}

/// A loop with a tape and `tf.train.Checkpoint`.
fn tape(noise: &str, saved: &str, after: &str) -> String {
    format!(
        "import tensorflow as tf\ntf.random.set_seed(1)\nrng = tf.random.Generator.from_seed(1)\n\
         model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\noptimizer = tf.keras.optimizers.Adam(0.1)\n\
         epoch = tf.Variable(0)\ncheckpoint = tf.train.Checkpoint(model=model, epoch=epoch{saved})\n\
         manager = tf.train.CheckpointManager(checkpoint, 'run', 2)\ncheckpoint.restore(manager.latest_checkpoint)\n{after}\
         while int(epoch) < 10:\n    x = tf.zeros([8, 4]) + {noise}\n    with tf.GradientTape() as tape:\n        \
         loss = tf.reduce_mean(model(x, training=True) ** 2)\n    gradients = tape.gradient(loss, model.trainable_variables)\n    \
         optimizer.apply_gradients(zip(gradients, model.trainable_variables))\n    epoch.assign_add(1)\n    manager.save()\n\
         model.save_weights('final.weights.h5')\n"
    )
}

#[test]
fn a_checkpoint_of_tensorflow_without_the_optimizer() {
    tells_apart(
        &[Rule::MissingState],
        &tape("0.0", "", ""),
        &tape("0.0", ", optimizer=optimizer", ""),
    );
}

#[test]
fn a_checkpoint_of_tensorflow_without_its_generator() {
    tells_apart(
        &[Rule::MissingGenerator],
        &tape("rng.normal([8, 4])", ", optimizer=optimizer", ""),
        &tape("rng.normal([8, 4])", ", optimizer=optimizer, rng=rng", ""),
    );
}

#[test]
fn a_generator_of_tensorflow_that_is_restored_and_then_seeded() {
    let saved = ", optimizer=optimizer, rng=rng";
    tells_apart(
        &[Rule::RestoredEarly],
        &tape("rng.normal([8, 4])", saved, "rng.reset_from_seed(1)\n"),
        &tape("rng.normal([8, 4])", saved, ""),
    );
}

#[test]
fn reduced_precision_is_told_where_it_is_switched_on() {
    let with = |on: &str| {
        let switch = format!("tf.config.experimental.enable_tensor_float_32_execution({on})");
        tape("0.0", ", optimizer=optimizer", &format!("{switch}\n"))
    };
    tells_apart(&[Rule::Precision], &with("True"), &with("False"));
}

#[test]
fn kernels_that_are_picked_by_measuring_them() {
    let with = |flags: &str| {
        let set =
            format!("import os\nos.environ['XLA_FLAGS'] = '--xla_gpu_autotune_level={flags}'\n");
        tape("0.0", ", optimizer=optimizer", &set)
    };
    tells_apart(&[Rule::Autotune], &with("4"), &with("0"));
}

#[test]
fn a_resize_without_a_deterministic_gradient() {
    let with = |before: &str| {
        format!(
            "import numpy as np\nimport tensorflow as tf\n{before}\n{SEED}\nprint(tf.config.list_physical_devices('GPU'))\n\
             class Twice(keras.layers.Layer):\n    def call(self, x):\n        return tf.image.resize(x, (8, 8))\n\n\
             model = keras.Sequential([keras.layers.Conv2D(1, 3), Twice()])\nmodel.compile('adam', 'mse')\n\
             model.fit(np.zeros((8, 6, 6, 1)), np.zeros((8, 8, 8, 1)))\n"
        )
    };
    let import = "from tensorflow import keras";
    tells_apart(
        &[Rule::NondeterministicOperation],
        &with(import),
        &with(&format!("{import}\ntf.config.experimental.enable_op_determinism()")),
    );
}

#[test]
fn processes_of_keras_that_nobody_seeds() {
    let with = |draw: &str| {
        format!(
            "import keras\nimport numpy as np\n{SEED}\nclass Data(keras.utils.PyDataset):\n    def __init__(self, **kwargs):\n        \
             super().__init__(**kwargs)\n    def __len__(self):\n        return 4\n    def __getitem__(self, index):\n        \
             x = {draw}\n        return x, x\n\nmodel = keras.Sequential([keras.layers.Dense(1)])\nmodel.compile('adam', 'mse')\n\
             model.fit(Data(workers=2, use_multiprocessing=True), shuffle=False)\n"
        )
    };
    tells_apart(
        &[Rule::UnseededWorkers],
        &with("np.random.rand(4, 1)"),
        &with("np.random.default_rng([1, index]).random((4, 1))"),
    );
}

#[test]
fn the_position_of_a_pipeline_is_in_its_iterator() {
    let with = |saved: &str| {
        format!(
            "import tensorflow as tf\ntf.random.set_seed(1)\ndata = tf.data.Dataset.range(64).shuffle(64, seed=1).batch(8).repeat()\n\
             iterator = iter(data)\nmodel = tf.keras.Sequential([tf.keras.layers.Dense(1)])\noptimizer = tf.keras.optimizers.Adam(0.1)\n\
             step = tf.Variable(0)\ncheckpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step{saved})\n\
             while int(step) < 100:\n    x = next(iterator)\n    with tf.GradientTape() as tape:\n        loss = tf.reduce_mean(model(x))\n    \
             optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))\n    \
             step.assign_add(1)\n    checkpoint.save('run/ckpt')\n"
        )
    };
    tells_apart(&[Rule::MissingPosition], &with(""), &with(", iterator=iterator"));
}

/// Parameters trained with Optax, saved by pickle.
fn jax(order: &str, saved: &str) -> String {
    format!(
        "import pickle\nimport jax\nimport jax.numpy as jnp\nimport optax\n\n\
         def loss_fn(params, x):\n    return jnp.mean((x @ params['w']) ** 2)\n\n\
         key = jax.random.PRNGKey(0)\nparams = {{'w': jax.random.normal(key, (4, 1))}}\noptimizer = optax.adam(0.1)\n\
         opt_state = optimizer.init(params)\n\n@jax.jit\ndef step(params, opt_state, x):\n    \
         grads = jax.grad(loss_fn)(params, x)\n    updates, opt_state = optimizer.update(grads, opt_state)\n    \
         return optax.apply_updates(params, updates), opt_state\n\n\
         for epoch in range(10):\n    {order}\n    params, opt_state = step(params, opt_state, jax.random.normal(use, (8, 4)))\n    \
         with open('state.pkl', 'wb') as f:\n        pickle.dump({{'epoch': epoch, 'params': params{saved}}}, f)\n"
    )
}

const SPLIT: &str = "key, use = jax.random.split(key)";

#[test]
fn a_checkpoint_without_the_memory_of_optax() {
    let folded = "use = jax.random.fold_in(key, epoch)";
    tells_apart(&[Rule::MissingState], &jax(folded, ""), &jax(folded, ", 'opt_state': opt_state"));
}

#[test]
fn a_key_that_is_split_round_by_round_is_saved_and_one_that_is_folded_is_not() {
    let faulty = jax(SPLIT, ", 'opt_state': opt_state");
    let sound = jax(SPLIT, ", 'opt_state': opt_state, 'key': key");
    tells_apart(&[Rule::MissingGenerator], &faulty, &sound);
    let folded = "use = jax.random.fold_in(key, epoch)";
    assert_eq!(rules(&jax(folded, ", 'opt_state': opt_state")), []);
}

#[test]
fn converted_values_are_held_as_they_are() {
    let saved = ", 'opt_state': jax.device_get(opt_state), 'key': key";
    assert_eq!(rules(&jax(SPLIT, saved)), []);
}

#[test]
fn a_key_with_the_number_of_the_process_in_it() {
    let by_process = "use = jax.random.fold_in(key, jax.process_index())";
    let by_epoch = "use = jax.random.fold_in(key, epoch)";
    let saved = ", 'opt_state': opt_state";
    tells_apart(&[Rule::RankKeyed], &jax(by_process, saved), &jax(by_epoch, saved));
}

/// A module of Lightning that a trainer fits, resumed from a checkpoint.
fn lightning(step: &str, hooks: &str, trainer: &str, fit: &str) -> String {
    format!(
        "import lightning as L\nimport torch\nfrom lightning.pytorch.callbacks import ModelCheckpoint\nfrom torch import nn\n\n\
         class Net(L.LightningModule):\n    def __init__(self):\n        super().__init__()\n        self.layer = nn.Linear(4, 1)\n        self.scale = 1.0\n\n    \
         def training_step(self, batch, batch_idx):\n        {step}\n        return self.layer(batch).sum() * self.scale\n\n{hooks}    \
         def configure_optimizers(self):\n        return torch.optim.Adam(self.parameters())\n\n\
         L.seed_everything(1, workers=True)\nmodel = Net()\ntrainer = L.Trainer(max_epochs=3, callbacks=[ModelCheckpoint()]{trainer})\n\
         trainer.fit(model, torch.zeros(8, 2, 4){fit})\n"
    )
}

#[test]
fn lightning_saves_no_plain_attributes() {
    let decay = "    def on_train_epoch_end(self):\n        self.scale = self.scale * 0.9\n\n";
    let kept = format!(
        "{decay}    def on_save_checkpoint(self, checkpoint):\n        checkpoint['scale'] = self.scale\n\n    \
         def on_load_checkpoint(self, checkpoint):\n        self.scale = checkpoint['scale']\n\n"
    );
    let resumed = ", ckpt_path='last.ckpt'";
    tells_apart(
        &[Rule::MissingState],
        &lightning("pass", decay, "", resumed),
        &lightning("pass", &kept, "", resumed),
    );
    // Nobody resumes this one.
    assert_eq!(rules(&lightning("pass", decay, "", "")), []);
}

#[test]
fn lightning_saves_no_generators() {
    let resumed = ", ckpt_path='last.ckpt'";
    tells_apart(
        &[Rule::MissingGenerator],
        &lightning("batch = batch + torch.randn(2, 4)", "", "", resumed),
        &lightning("pass", "", "", resumed),
    );
}

#[test]
fn switches_of_a_trainer() {
    tells_apart(
        &[Rule::CudnnBenchmark],
        &lightning("pass", "", ", benchmark=True", ""),
        &lightning("pass", "", ", deterministic=True", ""),
    );
    let warns = lightning("pass", "", ", deterministic='warn'", "");
    assert_eq!(rules(&warns), [Rule::WarnOnly]);
}

#[test]
fn checkpoints_are_written_the_way_of_the_framework() {
    let code = |text: &str| checked(text).checkpoints[0].code();
    let tensorflow = code(&tape("0.0", "", ""));
    assert!(
        tensorflow.contains("tf.train.Checkpoint(\n    model=model,\n    optimizer=optimizer,"),
        "{tensorflow}"
    );
    let values = code(&jax(SPLIT, ""));
    assert!(values.contains("\"opt_state\": opt_state"), "{values}");
    assert!(values.contains("pickle.dump({"), "{values}");
}

#[test]
fn code_for_fit_is_a_callback_and_uses_no_name_that_is_not_there() {
    let code = |text: &str| checked(text).checkpoints[0].code();
    let fit = "model.fit(x, y, callbacks=[keras.callbacks.EarlyStopping()])";
    let fitted = code(&keras(SEED, "", fit));
    assert!(fitted.starts_with("backup = keras.callbacks.BackupAndRestore("), "{fitted}");
    assert!(fitted.contains("# Nothing saves what callbacks"), "{fitted}");
    assert!(!fitted.contains("tf.train"), "{fitted}");
    let looped = code(&keras(SEED, "", "for epoch in range(3):\n    model.train_on_batch(x, y)"));
    assert!(looped.contains("optimizer=model.optimizer,"), "{looped}");
    assert!(looped.contains("import pickle\n"), "{looped}");
    assert!(looped.contains("open(path + \".rest\", \"rb\")"), "{looped}");
}

#[test]
fn code_for_lightning_is_what_the_trainer_does_not_save() {
    let decay = "    def on_train_epoch_end(self):\n        self.scale = self.scale * 0.9\n\n";
    let text = lightning("pass", decay, "", ", ckpt_path='last.ckpt'");
    let checked = checked(&text);
    let checkpoint = &checked.checkpoints[0];
    assert_eq!(
        checkpoint.save,
        "# in the module; the trainer saves the rest\ndef on_save_checkpoint(self, checkpoint):\n    checkpoint[\"scale\"] = self.scale"
    );
    assert_eq!(
        checkpoint.restore,
        "def on_load_checkpoint(self, checkpoint):\n    self.scale = checkpoint[\"scale\"]"
    );
}
