//! Code that saves and restores the state of loops that a framework runs.

use super::bound_names::BoundNames;
use super::requirements::Requirement;
use super::restart_code::{entries_of, warnings};
use crate::MemberKind;
use crate::lift::facts::Role;

/// Code for `fit` of Keras: a callback that saves the model, its optimizer and the epoch.
pub(super) fn with_keras(requirements: &[Requirement], names: &BoundNames<'_>) -> (String, String) {
    let keras = keras_of(names);
    let import = match names.has(keras) {
        true => "",
        false => "import keras\n",
    };
    let keras = if keras == "tf" { "tf.keras" } else { keras };
    let save = format!(
        "{import}backup = {keras}.callbacks.BackupAndRestore(\"backup\")\n# pass it to `fit`, among its callbacks"
    );
    let mut restore =
        "# `fit` restores the model, the optimizer and the epoch, and continues".to_owned();
    let is_kept = |part: &&Requirement| part.position.is_some() || is_trained(part);
    let rest: Vec<&Requirement> = requirements.iter().filter(|it| !is_kept(it)).collect();
    for warning in warnings(&rest) {
        restore.push_str(&format!("\n# {warning}"));
    }
    for part in rest.iter().filter(|part| !entries_of(part).is_empty()) {
        restore.push_str(&format!(
            "\n# {}: write it to a file in `on_epoch_end` of a callback, and read it in `on_train_begin`",
            part.name
        ));
    }
    (save, restore)
}

/// Returns the name of Keras in a file.
fn keras_of(names: &BoundNames<'_>) -> &'static str {
    match names.has("tf") && !names.has("keras") {
        true => "tf",
        false => "keras",
    }
}

/// Advice for the trainer of Transformers, which saves everything.
pub(super) fn with_hub() -> (String, String) {
    (
        "# the trainer saves everything, with `TrainingArguments(save_strategy=\"epoch\")`"
            .to_owned(),
        "# resume with `trainer.train(resume_from_checkpoint=True)`".to_owned(),
    )
}

/// Advice for loops that an unknown library runs.
pub(super) fn with_unknown() -> (String, String) {
    let advice = "# a library runs this loop: see its documentation for checkpoints";
    (advice.to_owned(), advice.to_owned())
}

/// Code for the trainer of Lightning: two hooks of the module, for what the trainer does not save.
pub(super) fn with_lightning(requirements: &[Requirement]) -> (String, String) {
    let is_missing =
        |part: &&Requirement| !part.saved && part.kind != MemberKind::Position && !is_trained(part);
    let missing = requirements.iter().filter(is_missing);
    let lines: Vec<(String, String)> = missing
        .flat_map(entries_of)
        .map(|it| {
            let save = format!("    checkpoint[\"{}\"] = {}", it.key, it.value);
            (save, indented(&it.restore))
        })
        .collect();
    if lines.is_empty() {
        return (
            "# the trainer saves everything, with `ModelCheckpoint(save_last=True)`".to_owned(),
            "# resume with `trainer.fit(..., ckpt_path=\"last\")`".to_owned(),
        );
    }
    let (saves, restores): (Vec<String>, Vec<String>) = lines.into_iter().unzip();
    (
        format!(
            "# in the module; the trainer saves the rest\ndef on_save_checkpoint(self, checkpoint):\n{}",
            saves.join("\n")
        ),
        format!("def on_load_checkpoint(self, checkpoint):\n{}", restores.join("\n")),
    )
}

fn indented(code: &str) -> String {
    let lines: Vec<String> = code.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

/// True if frameworks save the object themselves.
fn is_trained(part: &Requirement) -> bool {
    matches!(
        part.thing.as_ref().map(|thing| thing.role),
        Some(Role::Model | Role::Optimizer | Role::Scheduler | Role::Scaler)
    )
}
