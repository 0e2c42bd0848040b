//! Small searches.

use super::Folder;

/// Six trials of a command, over four parameters: what a trial does goes by its number.
pub(crate) const STUDY: &str = r#"[tune]
name = "numbers"
command = "sh trial.sh"
direction = "minimize"
trials = 6
workers = 1
sampler = "random"
pruner = "none"

[parameters]
rate = { log_uniform = [1e-3, 10.0] }
units = { int = [2, 64] }
optimizer = { choice = ["adam", "sgd"] }
momentum = { uniform = [0.0, 0.99], if = { optimizer = "sgd" } }
"#;

/// A plan with four ranges, one of them conditional.
pub(crate) const PLAN: &str = r#"[tune]
trials = 12
workers = 1
sampler = "random"
seed = 7

[data]
source = { kind = "circles", samples = 200 }
scale = "standardise"

[[model]]
layer = "dense"
units = { log_int = [2, 16] }
activation = { choice = ["relu", "tanh"] }

[[model]]
layer = "dense"
units = 1
activation = "sigmoid"

[training]
epochs = 12

[training.optimizer]
name = { choice = ["adam", "sgd"] }
learning_rate = { log_uniform = [1e-4, 10.0] }
momentum = { uniform = [0.0, 0.99], if = { training.optimizer.name = "sgd" } }
"#;

const TRIAL: &str = r#"
case $SUREFOOT_TRIAL in
    1) echo 'no disk' >&2; exit 1 ;;
    2) echo '{"value": NaN, "epoch": 1, "epochs": 2}'; exit 0 ;;
esac
echo "{\"value\": 0.9, \"epoch\": 1, \"epochs\": 2}"
echo "{\"value\": 0.$((9 - SUREFOOT_TRIAL)), \"epoch\": 2, \"epochs\": 2}"
"#;

/// A folder with the search done: its store is `runs/numbers/study.db`.
pub(crate) fn searched() -> Folder {
    let folder = Folder::with("numbers.toml", STUDY);
    folder.write("trial.sh", TRIAL);
    search(&folder, "numbers.toml", &[]);
    folder
}

/// Searches.
pub(crate) fn search(folder: &Folder, study: &str, options: &[&str]) {
    let outcome = folder.run(&[&["tune", study, "--quiet"], options].concat());
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
}
