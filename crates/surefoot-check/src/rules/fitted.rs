//! The code for loops that a framework runs: it has places of its own for what is saved and restored.

use super::bound::Bound;
use super::code::{warnings, written};
use super::part::Part;
use crate::MemberKind;
use crate::lift::facts::Role;

/// What goes on with `fit` of Keras: the callback that keeps the model, its optimizer and the epoch.
pub(super) fn with_keras(parts: &[Part], bound: &Bound<'_>) -> (String, String) {
    let keras = keras_of(bound);
    let import = match bound.has(keras) {
        true => "",
        false => "import keras\n",
    };
    let keras = if keras == "tf" { "tf.keras" } else { keras };
    let save = format!(
        "{import}backup = {keras}.callbacks.BackupAndRestore(\"backup\")\n# pass it to `fit`, among its callbacks"
    );
    let mut restore =
        "# `fit` puts the model, the optimizer and the epoch back, and goes on".to_owned();
    let is_kept = |part: &&Part| part.position.is_some() || is_trained(part);
    let rest: Vec<&Part> = parts.iter().filter(|it| !is_kept(it)).collect();
    for warning in warnings(&rest) {
        restore.push_str(&format!("\n# {warning}"));
    }
    for part in rest.iter().filter(|part| !written(part).is_empty()) {
        restore.push_str(&format!(
            "\n# {}: write it to a file in `on_epoch_end` of a callback, and read it in `on_train_begin`",
            part.name
        ));
    }
    (save, restore)
}

/// What a file calls Keras.
pub(super) fn keras_of(bound: &Bound<'_>) -> &'static str {
    match bound.has("tf") && !bound.has("keras") {
        true => "tf",
        false => "keras",
    }
}

/// What goes on with the trainer of Lightning: two methods of the module, for what it does not save.
pub(super) fn with_lightning(parts: &[Part]) -> (String, String) {
    let is_missing =
        |part: &&Part| !part.saved && part.kind != MemberKind::Position && !is_trained(part);
    let missing = parts.iter().filter(is_missing);
    let lines: Vec<(String, String)> = missing
        .flat_map(written)
        .map(|it| {
            let save = format!("    checkpoint[\"{}\"] = {}", it.key, it.value);
            (save, indented(&it.restore))
        })
        .collect();
    if lines.is_empty() {
        return (
            "# the trainer saves all of it, with `ModelCheckpoint(save_last=True)`".to_owned(),
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

/// Whether frameworks save something by themselves.
fn is_trained(part: &Part) -> bool {
    matches!(
        part.thing.as_ref().map(|thing| thing.role),
        Some(Role::Model | Role::Optimizer | Role::Scheduler | Role::Scaler)
    )
}
