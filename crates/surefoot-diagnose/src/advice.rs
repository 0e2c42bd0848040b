//! Advice for each problem, as code.

use crate::finding::Problem;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A change that usually solves a problem, as code for two frameworks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    /// For PyTorch.
    pub pytorch: Cow<'static, str>,
    /// For Keras.
    pub keras: Cow<'static, str>,
}

/// Problem, PyTorch code, Keras code.
static ADVICE: &[(Problem, &str, &str)] = &[
    (
        Problem::VANISHING_GRADIENT,
        "nn.Sequential(nn.Linear(n, m), nn.BatchNorm1d(m), nn.ReLU())  # each hidden layer",
        "Dense(m, kernel_initializer=\"he_normal\"), BatchNormalization(), ReLU()  # each hidden layer",
    ),
    (
        Problem::EXPLODING_GRADIENT,
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # after loss.backward()",
        "keras.optimizers.Adam(learning_rate=1e-3, clipnorm=1.0)",
    ),
    (
        Problem::DYING_RELU,
        "nn.LeakyReLU(0.1)  # instead of nn.ReLU(); and a lower learning rate",
        "keras.layers.LeakyReLU(negative_slope=0.1)  # instead of relu; and a lower learning rate",
    ),
    (
        Problem::OSCILLATING_LOSS,
        "torch.optim.Adam(model.parameters(), lr=1e-3)  # or a tenth of the current learning rate",
        "keras.optimizers.Adam(learning_rate=1e-3)  # or a tenth of the current learning rate",
    ),
    (
        Problem::SLOW_CONVERGENCE,
        "torch.optim.Adam(model.parameters(), lr=1e-3)  # on standardized inputs and targets",
        "keras.optimizers.Adam(learning_rate=1e-3)  # on standardized inputs and targets",
    ),
    (
        Problem::IMPROPER_OUTPUT_UNITS,
        "nn.Linear(n, classes)  # with nn.CrossEntropyLoss()",
        "Dense(classes, activation=\"softmax\")  # with loss=\"sparse_categorical_crossentropy\"",
    ),
    (
        Problem::IMPROPER_OUTPUT_ACTIVATION,
        "nn.Linear(n, outputs)  # no activation: the losses take logits or plain numbers",
        "Dense(1, activation=\"sigmoid\")  # classes: Dense(classes, activation=\"softmax\"); numbers: Dense(1)",
    ),
    (
        Problem::IMPROPER_LOSS,
        "nn.BCEWithLogitsLoss()  # several classes: nn.CrossEntropyLoss(); numbers: nn.MSELoss()",
        "loss=\"binary_crossentropy\"  # several classes: \"sparse_categorical_crossentropy\"; numbers: \"mse\"",
    ),
    (
        Problem::UNSCALED_TARGETS,
        "y = (y - y_train.mean()) / y_train.std()  # convert predictions back",
        "y = (y - y_train.mean()) / y_train.std()  # convert predictions back",
    ),
    (
        Problem::ABNORMAL_DATA,
        "x = (x - x_train.mean(0)) / x_train.std(0)  # and check torch.isfinite(x).all()",
        "norm = keras.layers.Normalization(); norm.adapt(x_train)  # and check np.isfinite(x_train).all()",
    ),
    (
        Problem::NON_FINITE_LOSS,
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # find the cause: torch.autograd.set_detect_anomaly(True)",
        "keras.optimizers.Adam(learning_rate=lr / 10, clipnorm=1.0)  # stop early: keras.callbacks.TerminateOnNaN()",
    ),
    (
        Problem::DIVERGING_LOSS,
        "torch.optim.Adam(model.parameters(), lr=1e-3)  # or a tenth of the current learning rate; and clip_grad_norm_",
        "keras.optimizers.Adam(learning_rate=1e-3, clipnorm=1.0)  # or a tenth of the current learning rate",
    ),
    (
        Problem::COLLAPSE,
        "torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)  # and keep the best checkpoint",
        "callbacks=[ReduceLROnPlateau(), ModelCheckpoint(\"best.keras\", save_best_only=True)]",
    ),
    (
        Problem::METRIC_AT_CHANCE,
        "nn.CrossEntropyLoss()(logits, labels)  # logits [batch, classes], labels as class numbers",
        "Dense(classes, activation=\"softmax\"), loss=\"sparse_categorical_crossentropy\", metrics=[\"accuracy\"]",
    ),
    (
        Problem::VALIDATION_AT_CHANCE,
        "model.eval()  # before validation, with the transforms of training; and check the labels of both splits",
        "train_test_split(x, y, stratify=y, shuffle=True)  # the same preprocessing for both splits",
    ),
    (
        Problem::NEGATIVE_LOSS,
        "nn.CrossEntropyLoss()(logits, labels.long())  # class numbers; binary targets must be 0 or 1",
        "loss=\"sparse_categorical_crossentropy\"  # class numbers; binary targets must be 0 or 1",
    ),
    (
        Problem::LOSS_SPIKE,
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # after loss.backward()",
        "keras.optimizers.Adam(learning_rate=lr, clipnorm=1.0)",
    ),
    (
        Problem::SATURATED_ACTIVATION,
        "nn.Sequential(nn.Linear(n, m), nn.BatchNorm1d(m), nn.ReLU())  # instead of sigmoid or tanh",
        "Dense(m), BatchNormalization(), ReLU()  # instead of sigmoid or tanh",
    ),
    (
        Problem::UNCHANGED_WEIGHTS,
        "optimizer = torch.optim.Adam(model.parameters())  # created last; requires_grad must be True",
        "layer.trainable = True; model.compile(...)  # compile again after the change",
    ),
    (
        Problem::UPDATE_RATIO,
        "torch.optim.Adam(model.parameters(), lr=1e-3)  # or a tenth of the current learning rate",
        "keras.optimizers.Adam(learning_rate=1e-3)  # or a tenth of the current learning rate",
    ),
    (
        Problem::UNEVEN_UPDATES,
        "torch.optim.AdamW(model.parameters(), lr=lr)  # one learning rate for all layers",
        "keras.optimizers.AdamW(learning_rate=lr)  # one learning rate for all layers",
    ),
    (
        Problem::GRADIENT_SPIKE,
        "torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # after loss.backward()",
        "keras.optimizers.Adam(learning_rate=lr, clipnorm=1.0)",
    ),
    (
        Problem::OUTPUT_DRIFT,
        "loss = loss + 1e-4 * logits.logsumexp(-1).pow(2).mean()  # logits; hidden layers: nn.LayerNorm, weight decay",
        "keras.optimizers.AdamW(learning_rate=lr, weight_decay=0.01)  # and LayerNormalization()",
    ),
    (
        Problem::ATTENTION_DRIFT,
        "q, k = nn.LayerNorm(d)(q), nn.LayerNorm(d)(k)  # normalize queries and keys; and a lower learning rate",
        "query, key = LayerNormalization()(query), LayerNormalization()(key)  # and a lower learning rate",
    ),
    (
        Problem::IMPROPER_WARMUP,
        "torch.optim.lr_scheduler.LinearLR(optimizer, 0.01, total_iters=total_steps // 20)  # stepped after each step",
        "keras.optimizers.schedules.CosineDecay(0.0, total_steps, warmup_target=lr, warmup_steps=total_steps // 20)",
    ),
    (
        Problem::MISMATCHED_SHAPES,
        "loss_fn(model(x), y.unsqueeze(1))  # or model(x).squeeze(1): outputs and targets of the same shape",
        "y = y.reshape(-1, 1)  # outputs and targets of the same shape",
    ),
    (
        Problem::UNCLEARED_GRADIENTS,
        "optimizer.zero_grad()  # before loss.backward()",
        "optimizer.zero_grad()  # in a loop of your own",
    ),
    (
        Problem::OVER_FITTING,
        "torch.optim.AdamW(model.parameters(), weight_decay=0.01)  # and nn.Dropout(0.3); stop at the best epoch",
        "keras.callbacks.EarlyStopping(patience=5, restore_best_weights=True)  # and Dropout(0.3)",
    ),
    (
        Problem::ONE_CLASS_PREDICTED,
        "nn.CrossEntropyLoss(weight=1 / class_counts)",
        "model.fit(..., class_weight={0: 1.0, 1: n_0 / n_1})",
    ),
    (
        Problem::CONSTANT_DATA,
        "x = x[:, x.std(0) > 0]  # and check labels.unique()",
        "x = x[:, x.std(0) > 0]  # and check np.unique(labels)",
    ),
    (
        Problem::INPUT_SCALE,
        "x = (x - x_train.mean(0)) / x_train.std(0)",
        "norm = keras.layers.Normalization(); norm.adapt(x_train)  # first layer",
    ),
];

impl Advice {
    /// Advice for a built-in problem.
    pub(crate) fn of(problem: &Problem) -> Option<Advice> {
        let (_, pytorch, keras) = ADVICE.iter().find(|(known, ..)| known == problem)?;
        Some(Advice { pytorch: Cow::Borrowed(pytorch), keras: Cow::Borrowed(keras) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_detector_has_advice() {
        for detector in crate::detectors::all() {
            assert!(Advice::of(&detector.problem()).is_some(), "{}", detector.problem());
        }
    }
}
