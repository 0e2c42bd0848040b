//! Rules on faulty and fixed scripts of Keras, TensorFlow, JAX and Lightning.

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
fn expect(expected: &[Rule], faulty: &str, fixed: &str) {
    assert_eq!(rules(faulty), expected, "in\n{faulty}");
    assert_eq!(rules(fixed), [], "in\n{fixed}");
}

/// A compiled Keras model that is fitted to arrays.
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
fn a_keras_model_without_a_seed() {
    let fit = "model.fit(x, y)";
    expect(&[Rule::UnseededGenerator], &keras("", "", fit), &keras(SEED, "", fit));
}

#[test]
fn other_seeds_do_not_reach_keras() {
    let fit = "model.fit(x, y)";
    let faulty = keras("np.random.seed(1)\nrandom.seed(1)", "", fit);
    assert_eq!(rules(&faulty), [Rule::UnseededGenerator]);
}

#[test]
fn a_backup_holds_no_generator() {
    expect(
        &[Rule::MissingGenerator],
        &keras(SEED, "layers.Dropout(0.5), ", BACKUP),
        &keras(SEED, "", BACKUP),
    );
}

#[test]
fn a_backup_does_not_hold_the_state_of_callbacks() {
    let with = |callback: &str| {
        let fit = BACKUP.replace("('b')", &format!("('b'), keras.callbacks.{callback}"));
        keras(SEED, "", &fit)
    };
    expect(
        &[Rule::MissingState],
        &with("EarlyStopping(patience=2)"),
        &with("LearningRateScheduler(lambda epoch: 0.1 / (epoch + 1))"),
    );
}

#[test]
fn callbacks_of_the_script_have_state() {
    let with = |rate: &str| {
        let callback = format!(
            "{SEED}\nclass Warm(keras.callbacks.Callback):\n    def __init__(self):\n        super().__init__()\n        self.rate = 0.1\n    \
             def on_epoch_end(self, epoch, logs=None):\n        self.rate = {rate}\n        self.model.optimizer.learning_rate.assign(self.rate)\n"
        );
        keras(&callback, "", &BACKUP.replace("('b')", "('b'), Warm()"))
    };
    expect(&[Rule::MissingState], &with("self.rate * 0.9"), &with("0.1 / (epoch + 1)"));
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
    expect(
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
    expect(
        &[Rule::RestoredEarly],
        &with(&format!("{load}{compile}"), "w.weights.h5"),
        &with(&format!("{compile}{build}{load}"), "w.weights.h5"),
    );
    // Before the training the optimizer has no variables to read into.
    assert_eq!(rules(&with(&format!("{compile}{load}"), "w.weights.h5")), [Rule::NotRestored]);
    // Weights from elsewhere are where the training begins.
    assert_eq!(rules(&with(&format!("{load}{compile}"), "new.weights.h5")), []);
}

#[test]
fn a_loaded_model_starts_with_its_first_epoch() {
    let with = |more: &str| {
        format!(
            "import os, keras\nimport numpy as np\n{SEED}\nif os.path.exists('m.keras'):\n    model = keras.models.load_model('m.keras')\n\
             else:\n    model = keras.Sequential([keras.layers.Dense(1)])\n    model.compile('adam', 'mse')\n\
             model.fit(np.zeros((8, 2)), np.zeros(8), epochs=9, shuffle=False, {more}callbacks=[keras.callbacks.ModelCheckpoint('m.keras')])\n"
        )
    };
    expect(
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
    expect(&[Rule::UnseededGenerator], &with("import keras", seed), &with("import keras", SEED));
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
    expect(
        &[Rule::UnseededShuffle],
        &pipeline("data = data.shuffle(64)"),
        &pipeline("data = data.shuffle(64, seed=1)"),
    );
}

#[test]
fn a_pipeline_that_is_not_deterministic() {
    expect(
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
    expect(
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
fn a_tensorflow_checkpoint_without_the_optimizer() {
    expect(&[Rule::MissingState], &tape("0.0", "", ""), &tape("0.0", ", optimizer=optimizer", ""));
}

#[test]
fn a_tensorflow_checkpoint_without_the_generator() {
    expect(
        &[Rule::MissingGenerator],
        &tape("rng.normal([8, 4])", ", optimizer=optimizer", ""),
        &tape("rng.normal([8, 4])", ", optimizer=optimizer, rng=rng", ""),
    );
}

#[test]
fn a_tensorflow_generator_that_is_restored_and_then_seeded() {
    let saved = ", optimizer=optimizer, rng=rng";
    expect(
        &[Rule::RestoredEarly],
        &tape("rng.normal([8, 4])", saved, "rng.reset_from_seed(1)\n"),
        &tape("rng.normal([8, 4])", saved, ""),
    );
}

#[test]
fn reduced_precision() {
    let with = |on: &str| {
        let switch = format!("tf.config.experimental.enable_tensor_float_32_execution({on})");
        tape("0.0", ", optimizer=optimizer", &format!("{switch}\n"))
    };
    expect(&[Rule::Precision], &with("True"), &with("False"));
}

#[test]
fn autotuned_kernels() {
    let with = |flags: &str| {
        let set =
            format!("import os\nos.environ['XLA_FLAGS'] = '--xla_gpu_autotune_level={flags}'\n");
        tape("0.0", ", optimizer=optimizer", &set)
    };
    expect(&[Rule::Autotune], &with("4"), &with("0"));
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
    expect(
        &[Rule::NondeterministicOperation],
        &with(import),
        &with(&format!("{import}\ntf.config.experimental.enable_op_determinism()")),
    );
}

#[test]
fn keras_worker_processes_without_a_seed() {
    let with = |draw: &str| {
        format!(
            "import keras\nimport numpy as np\n{SEED}\nclass Data(keras.utils.PyDataset):\n    def __init__(self, **kwargs):\n        \
             super().__init__(**kwargs)\n    def __len__(self):\n        return 4\n    def __getitem__(self, index):\n        \
             x = {draw}\n        return x, x\n\nmodel = keras.Sequential([keras.layers.Dense(1)])\nmodel.compile('adam', 'mse')\n\
             model.fit(Data(workers=2, use_multiprocessing=True), shuffle=False)\n"
        )
    };
    expect(
        &[Rule::UnseededWorkers],
        &with("np.random.rand(4, 1)"),
        &with("np.random.default_rng([1, index]).random((4, 1))"),
    );
}

#[test]
fn the_iterator_of_a_pipeline_holds_its_position() {
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
    expect(&[Rule::MissingPosition], &with(""), &with(", iterator=iterator"));
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
fn a_checkpoint_without_the_optax_state() {
    let folded = "use = jax.random.fold_in(key, epoch)";
    expect(&[Rule::MissingState], &jax(folded, ""), &jax(folded, ", 'opt_state': opt_state"));
}

#[test]
fn a_key_must_be_saved_if_it_is_split_and_not_if_it_is_folded() {
    let faulty = jax(SPLIT, ", 'opt_state': opt_state");
    let sound = jax(SPLIT, ", 'opt_state': opt_state, 'key': key");
    expect(&[Rule::MissingGenerator], &faulty, &sound);
    let folded = "use = jax.random.fold_in(key, epoch)";
    assert_eq!(rules(&jax(folded, ", 'opt_state': opt_state")), []);
}

#[test]
fn converted_values_count_as_saved() {
    let saved = ", 'opt_state': jax.device_get(opt_state), 'key': key";
    assert_eq!(rules(&jax(SPLIT, saved)), []);
}

#[test]
fn a_key_that_depends_on_the_rank() {
    let by_process = "use = jax.random.fold_in(key, jax.process_index())";
    let by_epoch = "use = jax.random.fold_in(key, epoch)";
    let saved = ", 'opt_state': opt_state";
    expect(&[Rule::RankKeyed], &jax(by_process, saved), &jax(by_epoch, saved));
}

/// A Lightning module that a trainer fits, resumed from a checkpoint.
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
    expect(
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
    expect(
        &[Rule::MissingGenerator],
        &lightning("batch = batch + torch.randn(2, 4)", "", "", resumed),
        &lightning("pass", "", "", resumed),
    );
}

#[test]
fn switches_of_a_trainer() {
    expect(
        &[Rule::CudnnBenchmark],
        &lightning("pass", "", ", benchmark=True", ""),
        &lightning("pass", "", ", deterministic=True", ""),
    );
    let warns = lightning("pass", "", ", deterministic='warn'", "");
    assert_eq!(rules(&warns), [Rule::WarnOnly]);
}

#[test]
fn generated_code_uses_the_checkpoints_of_the_framework() {
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
fn generated_code_for_fit_is_a_callback_and_uses_only_bound_names() {
    let code = |text: &str| checked(text).checkpoints[0].code();
    let fit = "model.fit(x, y, callbacks=[keras.callbacks.EarlyStopping()])";
    let fitted = code(&keras(SEED, "", fit));
    assert!(fitted.starts_with("backup = keras.callbacks.BackupAndRestore("), "{fitted}");
    assert!(fitted.contains("# The state of callbacks is never saved"), "{fitted}");
    assert!(!fitted.contains("tf.train"), "{fitted}");
    let looped = code(&keras(SEED, "", "for epoch in range(3):\n    model.train_on_batch(x, y)"));
    assert!(looped.contains("optimizer=model.optimizer,"), "{looped}");
    assert!(looped.contains("import pickle\n"), "{looped}");
    assert!(looped.contains("open(path + \".rest\", \"rb\")"), "{looped}");
}

#[test]
fn generated_code_for_lightning_saves_what_the_trainer_does_not() {
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
