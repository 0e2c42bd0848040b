//! The code that saves what must be saved, and restores it.

use super::bound::Bound;
use super::fitted;
use super::part::Part;
use super::position::{Counter, Position};
use crate::library::{Family, Global};
use crate::lift::facts::{Role, Runner, Style};

// What has no state that can be saved, and what to do instead.
const GLOBAL_GENERATOR: &str = "The global generator cannot be saved: draw from a `tf.random.Generator` that is part of the checkpoint, or by keys, with `tf.random.stateless_...` and the number of the epoch; `fit` draws nothing with `shuffle=False`.";
const PIPELINE: &str = "A pipeline begins again with its first order: save its iterator with `tf.train.Checkpoint(..., iterator=iterator)`, or make the order from the number of the epoch, with `shuffle(size, seed=seed + epoch, reshuffle_each_iteration=False)`.";
const CALLBACK: &str = "Nothing saves what callbacks remember: make the learning rate a function of the epoch, with a schedule or `LearningRateScheduler`, and decide on the number of epochs beforehand.";

/// How one part is written down.
pub(super) struct Written {
    /// Its key.
    pub key: String,
    /// What is saved under it.
    pub value: String,
    /// The statement that puts it back.
    pub restore: String,
}

impl Written {
    /// What has no name that could be saved: a comment says what to do.
    fn warning(save: &str, restore: &str) -> Written {
        Written { key: String::new(), value: format!("# {save}"), restore: format!("# {restore}") }
    }

    fn is_remark(&self) -> bool {
        self.key.is_empty()
    }

    fn entry(&self) -> String {
        format!("\"{}\": {}", self.key, self.value)
    }
}

/// The entries of a checkpoint that hold these parts, as a sentence.
pub(super) fn entries(parts: &[&Part], style: Style) -> String {
    if style == Style::TensorFlow {
        return tensorflow_entries(parts);
    }
    let entries: Vec<String> = parts
        .iter()
        .flat_map(|part| written(part))
        .filter(|it| !it.is_remark())
        .map(|it| it.entry())
        .collect();
    if entries.is_empty() {
        return String::new();
    }
    format!("Save it as well: `{}`.", entries.join(", "))
}

/// The code that saves, and the code that restores.
pub(super) fn both(
    parts: &[Part],
    style: Style,
    runner: Option<Runner>,
    bound: &Bound<'_>,
) -> (String, String) {
    match (runner, style) {
        (Some(Runner::Fit), _) => fitted::with_keras(parts, bound),
        (Some(Runner::Trainer), _) => fitted::with_lightning(parts),
        (None, Style::Torch) => {
            let (entries, restores) = dictionary(parts.iter());
            (
                format!("torch.save({{\n{entries}}}, path)"),
                format!("checkpoint = torch.load(path, weights_only=False)\n{restores}"),
            )
        }
        (None, Style::Values) => pickled(parts.iter(), "path", bound),
        (None, Style::TensorFlow) => tracked(parts, bound),
    }
}

/// Models, optimizers and variables through TensorFlow, what else there is in a file beside them.
fn tracked(parts: &[Part], bound: &Bound<'_>) -> (String, String) {
    let is_model = |part: &&Part| {
        let role = part.thing.as_ref().map(|thing| thing.role);
        role == Some(Role::Model)
    };
    let model = parts.iter().find(is_model);
    let objects: String = parts
        .iter()
        .filter(|part| is_tracked(part))
        .map(|part| {
            let root = part.name.split(['.', '[']).next().unwrap_or_default();
            let role = part.thing.as_ref().map(|thing| thing.role);
            let key = key_of(&part.name);
            // What a model was compiled with has no name of its own.
            match model {
                Some(model) if role == Some(Role::Optimizer) && !bound.has(root) => {
                    format!("    {key}={}.optimizer,\n", model.name)
                }
                _ => format!("    {key}={},\n", part.name),
            }
        })
        .collect();
    let mut save = format!("tracked = tf.train.Checkpoint(\n{objects})\ntracked.write(path)");
    if !bound.has("tf") {
        save = format!("import tensorflow as tf\n{save}");
    }
    let mut restore = "tracked.read(path)".to_owned();
    let rest: Vec<&Part> = parts.iter().filter(|part| !is_tracked(part)).collect();
    if rest.iter().any(|part| !written(part).is_empty()) {
        let (save_rest, restore_rest) = pickled(rest.iter().copied(), "path + \".rest\"", bound);
        save = format!("{save}\n{save_rest}");
        restore = format!("{restore}\n{restore_rest}");
    }
    for warning in warnings(&rest) {
        restore.push_str(&format!("\n# {warning}"));
    }
    (save, restore)
}

fn dictionary<'p>(parts: impl Iterator<Item = &'p Part>) -> (String, String) {
    let written: Vec<Written> = parts.flat_map(written).collect();
    let entries = written
        .iter()
        .map(|it| match it.is_remark() {
            true => format!("    {}\n", it.value),
            false => format!("    {},\n", it.entry()),
        })
        .collect();
    let restores: Vec<&str> = written.iter().map(|it| it.restore.as_str()).collect();
    (entries, restores.join("\n"))
}

fn pickled<'p>(
    parts: impl Iterator<Item = &'p Part>,
    path: &str,
    bound: &Bound<'_>,
) -> (String, String) {
    let (entries, restores) = dictionary(parts);
    let entries = entries.replace("\n    ", "\n        ");
    let import = match bound.has("pickle") {
        true => "",
        false => "import pickle\n",
    };
    (
        format!(
            "{import}with open({path}, \"wb\") as f:\n    pickle.dump({{\n    {entries}    }}, f)"
        ),
        format!("with open({path}, \"rb\") as f:\n    checkpoint = pickle.load(f)\n{restores}"),
    )
}

/// Whether `tf.train.Checkpoint` can save something as it is.
fn is_tracked(part: &Part) -> bool {
    let role = part.thing.as_ref().map(|thing| thing.role);
    matches!(
        role,
        Some(
            Role::Model
                | Role::Optimizer
                | Role::Average
                | Role::State
                | Role::Generator(Family::TensorFlow)
        )
    )
}

/// What cannot be saved, and what to do instead.
pub(super) fn warnings(parts: &[&Part]) -> Vec<String> {
    let has = |role: Role| {
        let mut roles = parts.iter().filter_map(|part| part.thing.as_ref());
        roles.any(|thing| thing.role == role)
    };
    let mut sentences = Vec::new();
    if has(Role::Global(Global::TensorFlow)) {
        sentences.push(GLOBAL_GENERATOR.to_owned());
    }
    if has(Role::Generator(Family::Pipeline)) {
        sentences.push(PIPELINE.to_owned());
    }
    if has(Role::Callback) {
        sentences.push(CALLBACK.to_owned());
    }
    sentences
}

fn tensorflow_entries(parts: &[&Part]) -> String {
    let tracked: Vec<String> = parts
        .iter()
        .filter(|part| is_tracked(part))
        .map(|part| format!("{}={}", key_of(&part.name), part.name))
        .collect();
    let mut sentences = Vec::new();
    if !tracked.is_empty() {
        let tracked = tracked.join(", ");
        sentences
            .push(format!("Make it part of what is saved: `tf.train.Checkpoint(..., {tracked})`."));
    }
    sentences.extend(warnings(parts));
    let rest = parts.iter().filter(|part| !is_tracked(part));
    let rest: Vec<String> = rest
        .flat_map(|part| written(part))
        .filter(|it| !it.is_remark())
        .map(|it| it.entry())
        .collect();
    if !rest.is_empty() {
        let rest = rest.join(", ");
        sentences.push(format!("Write it to a file of its own as well: `{rest}`."));
    }
    sentences.join(" ")
}

pub(super) fn written(part: &Part) -> Vec<Written> {
    let key = key_of(&part.name);
    let load = format!("checkpoint[\"{key}\"]");
    let name = &part.name;
    let simple =
        |value: String, restore: String| vec![Written { key: key.clone(), value, restore }];
    if let Some(position) = &part.position {
        return vec![written_position(position)];
    }
    match part.thing.as_ref().map(|thing| thing.role) {
        Some(
            Role::Model
            | Role::Optimizer
            | Role::Scheduler
            | Role::Scaler
            | Role::Average
            | Role::State,
        ) => simple(format!("{name}.state_dict()"), format!("{name}.load_state_dict({load})")),
        Some(Role::Global(Global::Torch)) => {
            let cpu = Written {
                key: "torch_rng".to_owned(),
                value: "torch.get_rng_state()".to_owned(),
                restore: "torch.set_rng_state(checkpoint[\"torch_rng\"])".to_owned(),
            };
            let gpu = Written {
                key: "cuda_rng".to_owned(),
                value: "torch.cuda.get_rng_state_all()".to_owned(),
                restore: "torch.cuda.set_rng_state_all(checkpoint[\"cuda_rng\"])".to_owned(),
            };
            vec![cpu, gpu]
        }
        Some(Role::Global(Global::NumPy)) => vec![Written {
            key: "numpy_rng".to_owned(),
            value: "np.random.get_state()".to_owned(),
            restore: "np.random.set_state(checkpoint[\"numpy_rng\"])".to_owned(),
        }],
        Some(Role::Global(Global::Python)) => vec![Written {
            key: "python_rng".to_owned(),
            value: "random.getstate()".to_owned(),
            restore: "random.setstate(checkpoint[\"python_rng\"])".to_owned(),
        }],
        Some(Role::Generator(Family::Torch)) => {
            simple(format!("{name}.get_state()"), format!("{name}.set_state({load})"))
        }
        Some(Role::Generator(Family::NumPy)) => simple(
            format!("{name}.bit_generator.state"),
            format!("{name}.bit_generator.state = {load}"),
        ),
        Some(Role::Generator(Family::Python)) => {
            simple(format!("{name}.getstate()"), format!("{name}.setstate({load})"))
        }
        // These have no state that can be saved.
        Some(
            Role::Global(Global::TensorFlow) | Role::Generator(Family::Pipeline) | Role::Callback,
        ) => Vec::new(),
        Some(Role::Container) => {
            simple(format!("list({name})"), format!("{name}.clear()\n{name}.extend({load})"))
        }
        Some(Role::Dictionary) => {
            simple(format!("dict({name})"), format!("{name}.clear()\n{name}.update({load})"))
        }
        Some(Role::Set) => {
            simple(format!("set({name})"), format!("{name}.clear()\n{name}.update({load})"))
        }
        _ if name.starts_with("the gradients of ") => {
            let model = name.trim_start_matches("the gradients of ");
            let key = format!("{}_gradients", key_of(model));
            vec![Written {
                value: format!("[p.grad for p in {model}.parameters()]"),
                restore: format!(
                    "for p, g in zip({model}.parameters(), checkpoint[\"{key}\"]):\n    p.grad = g"
                ),
                key,
            }]
        }
        _ => simple(name.clone(), format!("{name} = {load}")),
    }
}

fn written_position(position: &Position) -> Written {
    let rounds = match position.is_over_data {
        true => "batches",
        false => "rounds",
    };
    let (name, is_head) = match &position.counter {
        Some(Counter::Head(name)) => (name, true),
        Some(Counter::Body(name)) => (name, false),
        None => {
            return Written::warning(
                &format!("number the {rounds} with `enumerate`, and save the number"),
                &format!("skip the {rounds} that are done"),
            );
        }
    };
    let key = key_of(name);
    let load = format!("checkpoint[\"{key}\"]");
    let restore = match (is_head, position.is_round_over) {
        (false, _) => format!("{name} = {load}\n# skip the {rounds} that are done"),
        (true, true) if position.is_over_data => {
            format!("first_{key} = {load} + 1  # skip the batches before it")
        }
        (true, true) => format!("first_{key} = {load} + 1  # where its loop begins"),
        (true, false) => {
            format!("first_{key} = {load}  # where its loop begins: this round is not over")
        }
    };
    Written { value: name.clone(), key, restore }
}

/// The key under which something is saved: its name without `self.`.
fn key_of(name: &str) -> String {
    let name = name.strip_prefix("self.").unwrap_or(name);
    let letters = name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' });
    letters.collect::<String>().trim_matches('_').to_owned()
}
