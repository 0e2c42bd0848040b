//! Code that saves and restores the state of a training loop.

use super::bound_names::BoundNames;
use super::framework_code;
use super::positions::{Counter, Position};
use super::requirements::Requirement;
use crate::library::{Family, Global};
use crate::lift::facts::{Role, Runner, Style};

// Advice for state that cannot be saved.
const GLOBAL_GENERATOR: &str = "The global generator cannot be saved: draw from a `tf.random.Generator` in the checkpoint, or use `tf.random.stateless_...` with the number of the epoch; `fit` draws nothing with `shuffle=False`.";
const PIPELINE: &str = "A pipeline restarts with its first order: save its iterator with `tf.train.Checkpoint(..., iterator=iterator)`, or derive the order from the number of the epoch, with `shuffle(size, seed=seed + epoch, reshuffle_each_iteration=False)`.";
const ENVIRONMENT: &str = "The state of an environment cannot be saved in general: save at the start of an episode, and seed each episode with its number, `env.reset(seed=seed + episode)`.";
const CALLBACK: &str = "The state of callbacks is never saved: make the learning rate a function of the epoch, with a schedule or `LearningRateScheduler`, and fix the number of epochs in advance.";

/// Entry of a checkpoint.
pub(super) struct Entry {
    /// Key; empty if the entry is only a comment.
    pub key: String,
    /// Expression that is saved.
    pub value: String,
    /// Statements that restore it.
    pub restore: String,
}

impl Entry {
    /// Comments for a position that has no variable.
    fn comment(save: &str, restore: &str) -> Entry {
        Entry { key: String::new(), value: format!("# {save}"), restore: format!("# {restore}") }
    }

    /// State of a global generator, with the functions that return and set it.
    fn generator(key: &str, get: &str, set: &str) -> Entry {
        let restore = format!("{set}(checkpoint[\"{key}\"])");
        Entry { key: key.to_owned(), value: format!("{get}()"), restore }
    }

    fn is_comment(&self) -> bool {
        self.key.is_empty()
    }

    fn code(&self) -> String {
        format!("\"{}\": {}", self.key, self.value)
    }
}

/// Advice to save these, with the entries to add to the checkpoint.
pub(crate) fn entries(requirements: &[&Requirement], style: Style) -> String {
    if style == Style::TensorFlow {
        return tensorflow_entries(requirements);
    }
    let entries = code_of(requirements.iter().copied());
    let mut sentences = warnings(requirements);
    if !entries.is_empty() {
        sentences.insert(0, format!("Save it too: `{}`.", entries.join(", ")));
    }
    sentences.join(" ")
}

/// Returns the code that saves at the end of each iteration of the loop at `line`, and the code that restores.
pub(super) fn both(
    requirements: &[Requirement],
    style: Style,
    runner: Option<Runner>,
    names: &BoundNames<'_>,
    line: &str,
) -> (String, String) {
    let (save, restore) = match (runner, style) {
        (Some(Runner::Fit), _) => framework_code::with_keras(requirements, names),
        (Some(Runner::Hub), _) => framework_code::with_hub(),
        (Some(Runner::Unknown), _) => framework_code::with_unknown(),
        (Some(Runner::Trainer), _) => framework_code::with_lightning(requirements),
        (None, Style::Torch) => {
            let (entries, restores) = dictionary(requirements.iter());
            (
                format!("torch.save({{\n{entries}}}, path)"),
                format!("checkpoint = torch.load(path, weights_only=False)\n{restores}"),
            )
        }
        (None, Style::Values) => pickled(requirements.iter(), "path", names),
        (None, Style::TensorFlow) => tracked(requirements, names),
    };
    match runner {
        Some(_) => (save, restore),
        None => (
            format!("# at the end of each iteration of the loop at {line}\n{save}"),
            format!("# directly before that loop\n{restore}"),
        ),
    }
}

/// Saves models, optimizers and variables through TensorFlow, and everything else in a second file.
fn tracked(requirements: &[Requirement], names: &BoundNames<'_>) -> (String, String) {
    let is_model = |part: &&Requirement| {
        let role = part.thing.as_ref().map(|thing| thing.role);
        role == Some(Role::Model)
    };
    let model = requirements.iter().find(is_model);
    let objects: String = requirements
        .iter()
        .filter(|part| is_tracked(part))
        .map(|part| {
            let root = part.name.split(['.', '[']).next().unwrap_or_default();
            let role = part.thing.as_ref().map(|thing| thing.role);
            let key = key_of(&part.name);
            // The optimizer that a model was compiled with has no name.
            match model {
                Some(model) if role == Some(Role::Optimizer) && !names.has(root) => {
                    format!("    {key}={}.optimizer,\n", model.name)
                }
                _ => format!("    {key}={},\n", part.name),
            }
        })
        .collect();
    let mut save = format!("tracked = tf.train.Checkpoint(\n{objects})\ntracked.write(path)");
    if !names.has("tf") {
        save = format!("import tensorflow as tf\n{save}");
    }
    let mut restore = "tracked.read(path)".to_owned();
    let rest: Vec<&Requirement> = requirements.iter().filter(|part| !is_tracked(part)).collect();
    if rest.iter().any(|part| !entries_of(part).is_empty()) {
        let (save_rest, restore_rest) = pickled(rest.iter().copied(), "path + \".rest\"", names);
        save = format!("{save}\n{save_rest}");
        restore = format!("{restore}\n{restore_rest}");
    }
    for warning in warnings(&rest) {
        restore.push_str(&format!("\n# {warning}"));
    }
    (save, restore)
}

fn dictionary<'p>(requirements: impl Iterator<Item = &'p Requirement>) -> (String, String) {
    let all: Vec<Entry> = requirements.flat_map(entries_of).collect();
    let entries = all
        .iter()
        .map(|it| match it.is_comment() {
            true => format!("    {}\n", it.value),
            false => format!("    {},\n", it.code()),
        })
        .collect();
    let restores: Vec<&str> = all.iter().map(|it| it.restore.as_str()).collect();
    (entries, restores.join("\n"))
}

fn pickled<'p>(
    requirements: impl Iterator<Item = &'p Requirement>,
    path: &str,
    names: &BoundNames<'_>,
) -> (String, String) {
    let (entries, restores) = dictionary(requirements);
    let entries = entries.replace("\n    ", "\n        ");
    let import = match names.has("pickle") {
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

/// True if `tf.train.Checkpoint` can save the object.
fn is_tracked(part: &Requirement) -> bool {
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

/// Advice for state that cannot be saved.
pub(super) fn warnings(requirements: &[&Requirement]) -> Vec<String> {
    let has = |role: Role| {
        let mut roles = requirements.iter().filter_map(|part| part.thing.as_ref());
        roles.any(|thing| thing.role == role)
    };
    let advice = [
        (Role::Global(Global::TensorFlow), GLOBAL_GENERATOR),
        (Role::Generator(Family::Pipeline), PIPELINE),
        (Role::Environment, ENVIRONMENT),
        (Role::Callback, CALLBACK),
    ];
    advice.into_iter().filter(|(role, _)| has(*role)).map(|(_, it)| it.to_owned()).collect()
}

fn tensorflow_entries(requirements: &[&Requirement]) -> String {
    let tracked = requirements.iter().filter(|part| is_tracked(part));
    let tracked: Vec<String> =
        tracked.map(|part| format!("{}={}", key_of(&part.name), part.name)).collect();
    let mut sentences = Vec::new();
    if !tracked.is_empty() {
        let tracked = tracked.join(", ");
        sentences.push(format!("Add it to the checkpoint: `tf.train.Checkpoint(..., {tracked})`."));
    }
    sentences.extend(warnings(requirements));
    let rest = code_of(requirements.iter().copied().filter(|part| !is_tracked(part)));
    if !rest.is_empty() {
        let rest = rest.join(", ");
        sentences.push(format!("Write it to a separate file: `{rest}`."));
    }
    sentences.join(" ")
}

/// The entries of requirements, as code.
fn code_of<'p>(requirements: impl Iterator<Item = &'p Requirement>) -> Vec<String> {
    let entries = requirements.flat_map(entries_of).filter(|it| !it.is_comment());
    entries.map(|it| it.code()).collect()
}

pub(super) fn entries_of(part: &Requirement) -> Vec<Entry> {
    let key = key_of(&part.name);
    let load = format!("checkpoint[\"{key}\"]");
    let name = &part.name;
    let simple = |value: String, restore: String| vec![Entry { key: key.clone(), value, restore }];
    if let Some(position) = &part.position {
        return vec![position_entry(position)];
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
            let all = ("torch.cuda.get_rng_state_all", "torch.cuda.set_rng_state_all");
            vec![
                Entry::generator("torch_rng", "torch.get_rng_state", "torch.set_rng_state"),
                Entry::generator("cuda_rng", all.0, all.1),
            ]
        }
        Some(Role::Global(Global::NumPy)) => {
            vec![Entry::generator("numpy_rng", "np.random.get_state", "np.random.set_state")]
        }
        Some(Role::Global(Global::Python)) => {
            vec![Entry::generator("python_rng", "random.getstate", "random.setstate")]
        }
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
        // Their state cannot be saved.
        Some(
            Role::Global(Global::TensorFlow)
            | Role::Generator(Family::Pipeline)
            | Role::Callback
            | Role::Environment,
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
            vec![Entry {
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

fn position_entry(position: &Position) -> Entry {
    let iterations = match position.is_over_data {
        true => "batches",
        false => "iterations",
    };
    let (name, is_head) = match &position.counter {
        Some(Counter::Head(name)) => (name, true),
        Some(Counter::Body(name)) => (name, false),
        None => {
            return Entry::comment(
                &format!("number the {iterations} with `enumerate`, and save the number"),
                &format!("skip the {iterations} that are complete"),
            );
        }
    };
    let key = key_of(name);
    let load = format!("checkpoint[\"{key}\"]");
    let restore = match (is_head, position.is_iteration_done) {
        (false, _) => format!("{name} = {load}\n# skip the {iterations} that are complete"),
        (true, true) if position.is_over_data => {
            format!("first_{key} = {load} + 1  # skip the batches before it")
        }
        (true, true) => format!("first_{key} = {load} + 1  # start of its loop"),
        (true, false) => {
            format!("first_{key} = {load}  # start of its loop: this iteration is not complete")
        }
    };
    Entry { value: name.clone(), key, restore }
}

/// Key of a variable in a checkpoint: its name without `self.`.
fn key_of(name: &str) -> String {
    let name = name.strip_prefix("self.").unwrap_or(name);
    let letters = name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' });
    letters.collect::<String>().trim_matches('_').to_owned()
}
