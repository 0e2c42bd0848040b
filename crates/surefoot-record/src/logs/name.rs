//! Recognizes the role of a column or tag by its name.
//!
//! There is no standard: Keras writes `val_loss` and `epoch_loss`, Lightning `train_loss_step`,
//! Hugging Face `eval/loss`, Weights & Biases `run - train/loss`. A name is split into words; words
//! for the split and the frequency are removed, and the rest is looked up.

use crate::logs::role::Role;
use surefoot_diagnose::Split;

/// Meaning of a name. Of several names for one role, the smallest rank is preferred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meaning {
    pub(crate) role: Role,
    /// Logging frequency. Per step is preferred, then unknown, then per epoch.
    pub(crate) pace: Pace,
    /// Position in the list of names: `accuracy` before `acc5`.
    pub(crate) rank: usize,
    /// True if positions count epochs, as for Keras' `epoch_loss` in TensorBoard.
    pub(crate) by_epoch: bool,
}

impl Meaning {
    /// Returns true for a name that only has a word for a loss in it, such as `box_loss`.
    pub(crate) fn is_partial(&self) -> bool {
        self.rank % TEST_RANK >= LOSS.len()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pace {
    Step,
    Unknown,
    Epoch,
}

/// Which metric a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Accuracy,
    R2,
    Other,
}

const STEP: &[&str] = &["step", "global_step", "iteration", "iter", "iterations"];
/// Names of steps once `train` or `trainer` is set aside, after the sure ones.
const STEP_TOO: &[&str] = &["steps", "global_steps", "batch", "batches", "update"];
const EPOCH: &[&str] = &["epoch", "epochs"];
const LOSS: &[&str] =
    &["loss", "total_loss", "running_loss", "mean_loss", "average_loss", "avg_loss", "cost"];
/// Words that make a name that of a loss if there is no better one: `box_loss`, `loss/G`, `logloss`.
const LOSS_WORDS: &[&str] = &[
    "loss",
    "losses",
    "logloss",
    "mlogloss",
    "nll",
    "crossentropy",
    "perplexity",
    "ppl",
    "mse",
    "rmse",
    "mae",
    "l1",
    "l2",
    "merror",
    "error",
];
/// Words of names that only look like losses: `loss_scale`, `best_loss`.
const NOT_A_LOSS: &[&str] =
    &["scale", "scaler", "weight", "weights", "time", "num", "count", "improved", "best", "type"];
const ACCURACY: &[&str] = &[
    "accuracy",
    "acc",
    "binary_accuracy",
    "categorical_accuracy",
    "sparse_categorical_accuracy",
    "accuracy_score",
    "accuracy_top_1",
    "acc_top1",
    "top1",
    "acc1",
];
const R2: &[&str] = &["r2", "r2_score", "r2score", "r_squared", "r_square", "r²"];
const RATE: &[&str] = &["learning_rate", "lr"];
const GRADIENT: &[&str] = &["grad_norm", "gradient_norm", "grad_2_0_norm", "grad_norm_l2"];

const TRAIN: &[&str] = &["train", "training", "tr", "trainer"];
const VALIDATION: &[&str] = &["val", "valid", "validation", "eval", "evaluation", "dev"];
const TEST: &[&str] = &["test", "testing"];
/// Rank of names for a test split, behind all for a validation split.
const TEST_RANK: usize = 1000;

/// Returns the meaning of `name`; `folder` is the split of its directory.
pub(crate) fn meaning(name: &str, folder: Option<Split>) -> Option<Meaning> {
    // Weights & Biases: `name of the run - name of the series`.
    let name = name.rsplit(" - ").next().unwrap_or(name).trim();
    if name.ends_with("__MIN") || name.ends_with("__MAX") {
        return None;
    }
    if let Some(layer) = layer(name) {
        return Some(Meaning {
            role: Role::Gradient(layer),
            pace: Pace::Unknown,
            rank: 0,
            by_epoch: false,
        });
    }
    let all = words(name);
    let whole = all.join("_");
    let of = |role, rank| Meaning { role, pace: Pace::Unknown, rank, by_epoch: false };
    let place = |list: &[&str], text: &str| list.iter().position(|word| *word == text);
    if let Some(rank) = place(STEP, &whole) {
        return Some(of(Role::Step, rank));
    }
    if let Some(rank) = place(EPOCH, &whole) {
        return Some(of(Role::Epoch, rank));
    }

    let split = folder.or(split_of(&all)).unwrap_or(Split::Train);
    let core: Vec<&str> = all
        .iter()
        .map(String::as_str)
        .filter(|word| ![TRAIN, VALIDATION, TEST].concat().contains(word))
        .collect();
    let (pace, mut core) = pace(&core);
    core.retain(|word| *word != "vs");
    let partial = LOSS_WORDS
        .iter()
        .position(|word| core.contains(word))
        .filter(|_| !core.iter().any(|word| NOT_A_LOSS.contains(word)));
    let core = core.join("_");
    let by_epoch = all.first().is_some_and(|word| word == "epoch");
    let of = |role, rank| Some(Meaning { role, pace, rank, by_epoch });
    let partial = partial.or_else(|| core.contains("cross_entropy").then_some(0));
    let loss = place(LOSS, &core).or_else(|| partial.map(|rank| LOSS.len() + rank));
    let metric = place(&[ACCURACY, R2].concat(), &core);
    let rate = place(RATE, &core).or_else(|| core.starts_with("lr_").then_some(RATE.len()));
    let norm = core.strip_suffix("_total").or(core.strip_prefix("total_")).unwrap_or(&core);
    let norm = place(GRADIENT, norm).filter(|_| split == Split::Train);
    // A test split serves as validation if there is no other.
    let behind = if split == Split::Test { TEST_RANK } else { 0 };
    match (split, loss, metric, rate) {
        _ if norm.is_some() => of(Role::GradientNorm, norm.unwrap_or(0)),
        (Split::Train, Some(rank), ..) => of(Role::Loss, rank),
        (_, Some(rank), ..) => of(Role::ValidationLoss, rank + behind),
        (Split::Train, _, Some(rank), _) => of(Role::Metric, rank),
        (_, _, Some(rank), _) => of(Role::ValidationMetric, rank + behind),
        (Split::Train, _, _, Some(rank)) => of(Role::LearningRate, rank),
        (Split::Train, ..) => {
            let without = all.iter().filter(|word| !TRAIN.contains(&word.as_str()));
            let without: Vec<&str> = without.map(String::as_str).collect();
            let without = without.join("_");
            let step = place(&[STEP, STEP_TOO].concat(), &without);
            let step = step.map(|rank| of(Role::Step, STEP.len() + rank));
            let epoch = place(EPOCH, &without).map(|rank| of(Role::Epoch, EPOCH.len() + rank));
            step.or(epoch).flatten()
        }
        _ => None,
    }
}

/// Which metric a name is for.
pub(crate) fn kind(name: &str) -> Kind {
    match meaning(name, None) {
        Some(Meaning { role: Role::Metric | Role::ValidationMetric, rank, .. })
            if rank % TEST_RANK < ACCURACY.len() =>
        {
            Kind::Accuracy
        }
        Some(Meaning { role: Role::Metric | Role::ValidationMetric, .. }) => Kind::R2,
        _ => Kind::Other,
    }
}

/// Split in the name of a folder: `validation`, or the `loss_val` that PyTorch creates for several
/// curves in one chart.
pub(crate) fn split_of_folder(name: &str) -> Option<Split> {
    let words = words(name);
    // PyTorch appends the name of the curve: `Training vs. Validation Loss_Training`.
    let split = split_of(&words[words.len().saturating_sub(1)..]).or_else(|| split_of(&words))?;
    let only = words.len() == 1 || meaning(name, None).is_some();
    only.then_some(split)
}

fn split_of(words: &[String]) -> Option<Split> {
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    if has(VALIDATION) {
        Some(Split::Validation)
    } else if has(TEST) {
        Some(Split::Test)
    } else {
        has(TRAIN).then_some(Split::Train)
    }
}

/// Removes the words for the logging frequency.
fn pace<'a>(words: &[&'a str]) -> (Pace, Vec<&'a str>) {
    match words {
        // Keras: `evaluation_loss_vs_iterations`.
        [rest @ .., "vs", "iterations"] => (Pace::Step, rest.to_vec()),
        ["step" | "batch", rest @ ..] | [rest @ .., "step" | "batch"] => {
            (Pace::Step, rest.to_vec())
        }
        ["epoch", rest @ ..] | [rest @ .., "epoch"] => (Pace::Epoch, rest.to_vec()),
        _ => (Pace::Unknown, words.to_vec()),
    }
}

/// The layer whose gradient norm a name is for: `grad_norm/LAYER` or `LAYER/grad_norm`.
///
/// A layer's weight and bias are one layer.
fn layer(name: &str) -> Option<String> {
    let is_norm = |part: &str| GRADIENT.contains(&words(part).join("_").as_str());
    let layer = match (name.split_once('/'), name.rsplit_once('/')) {
        (Some((norm, layer)), _) if is_norm(norm) => layer,
        (_, Some((layer, norm))) if is_norm(norm) => layer,
        _ => return None,
    };
    let layer = [".weight", ".bias", ".kernel", "/kernel", "/bias"]
        .iter()
        .find_map(|part| layer.strip_suffix(part))
        .unwrap_or(layer);
    // `train/grad_norm` is that of the whole model.
    let whole = ["total", "all", "global"].contains(&layer) || split_of_folder(layer).is_some();
    (!whole && !layer.is_empty()).then(|| layer.to_owned())
}

/// The words of a name in small letters; `valLoss` and `CTCLoss` have two.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut letters = name.chars().peekable();
    let mut before = ' ';
    while let Some(c) = letters.next() {
        let small_follows = letters.peek().is_some_and(|next| next.is_lowercase());
        let begins = c.is_uppercase() && (before.is_lowercase() || small_follows);
        if begins || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str) -> Option<Role> {
        meaning(name, None).map(|meaning| meaning.role)
    }

    #[test]
    fn the_habits_of_frameworks_and_people_are_known() {
        use Role::*;
        for (role_meant, names) in [
            (
                Loss,
                "loss,train_loss,Training Loss,train/loss,loss/train,epoch_loss,batch_loss,\
                 train_loss_step,train_loss_epoch,fine-sun-5 - train/loss,Loss_train,running loss",
            ),
            (
                ValidationLoss,
                "val_loss,valid loss,Validation Loss,val/loss,eval/loss,eval_loss,loss/val,\
                 evaluation_loss_vs_iterations,dev_loss,val_loss_epoch",
            ),
            (
                Metric,
                "accuracy,acc,Train Accuracy,train_acc,epoch_accuracy,sparse_categorical_accuracy,r2,\
                 train/r2_score,Accuracy/train",
            ),
            (ValidationMetric, "val_accuracy,val_acc,eval/accuracy,validation r2,Accuracy/val"),
            (
                LearningRate,
                "lr,learning_rate,learning rate,lr-Adam,train/learning_rate,epoch_learning_rate",
            ),
            (
                Step,
                "step,Step,global_step,iteration,_step,trainer/global_step,train/global_step,batch",
            ),
            (Epoch, "epoch,Epoch,epochs,train/epoch"),
            (GradientNorm, "grad_norm,train/grad_norm,grad_2.0_norm_total,total_grad_norm"),
            (Loss, "train/box_loss,loss/G,train-logloss,total_loss,train/ctc_loss,nll"),
            (ValidationLoss, "val/box_loss,val_ppl,test_loss,test-logloss,valLoss,valid_0's l1"),
            (Loss, "trainLoss,CTCLoss,LOSS,Avg Loss,TrainLoss"),
        ] {
            for name in names.split(',') {
                assert_eq!(role(name.trim()), Some(role_meant.clone()), "{name}");
            }
        }
    }

    #[test]
    fn what_says_nothing_is_left_alone() {
        for name in
            ["_runtime", "val_step", "run - loss__MIN", "loss_scale", "best_loss", "auc", ""]
        {
            assert_eq!(role(name), None, "{name}");
        }
    }

    #[test]
    fn gradient_norms_are_those_of_layers() {
        let gradient = |layer: &str| Some(Role::Gradient(layer.to_owned()));
        assert_eq!(role("grad_norm/dense_1"), gradient("dense_1"));
        assert_eq!(role("conv.2/grad_norm"), gradient("conv.2"));
        assert_eq!(role("grad_2.0_norm/net.0.weight"), gradient("net.0"));
        assert_eq!(role("grad_2.0_norm/net.0.bias"), gradient("net.0"));
    }

    #[test]
    fn folders_say_which_split_they_are_for() {
        assert_eq!(split_of_folder("train"), Some(Split::Train));
        assert_eq!(split_of_folder("validation"), Some(Split::Validation));
        assert_eq!(split_of_folder("Loss_val"), Some(Split::Validation));
        assert_eq!(split_of_folder("Training vs. Validation Loss_Training"), Some(Split::Train));
        assert_eq!(split_of_folder("train_with_dropout"), None);
        assert_eq!(split_of_folder("version_0"), None);
        let meaning = meaning("epoch_loss", Some(Split::Validation)).unwrap();
        assert_eq!(meaning.role, Role::ValidationLoss);
        assert!(meaning.by_epoch);
    }

    #[test]
    fn a_metric_is_known_by_its_name() {
        assert_eq!(kind("val_acc"), Kind::Accuracy);
        assert_eq!(kind("R2"), Kind::R2);
        assert_eq!(kind("f1"), Kind::Other);
    }
}
