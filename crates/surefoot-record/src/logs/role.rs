//! Roles of the series in a log.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Which column or tag has which role, for those whose names do not tell.
pub type Map = BTreeMap<Role, String>;

/// Role of a column of a table or a tag of a TensorBoard log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The number of the optimizer step.
    Step,
    /// The epoch.
    Epoch,
    /// The loss on the training data.
    Loss,
    /// The metric on the training data: accuracy, R² or another where more is better.
    Metric,
    /// The learning rate.
    LearningRate,
    /// The loss on the validation split.
    ValidationLoss,
    /// The metric on the validation split.
    ValidationMetric,
    /// The norm of the gradient of all weights.
    GradientNorm,
    /// The norm of a layer's gradient.
    Gradient(String),
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::Step => "step",
            Role::Epoch => "epoch",
            Role::Loss => "loss",
            Role::Metric => "metric",
            Role::LearningRate => "learning_rate",
            Role::ValidationLoss => "val_loss",
            Role::ValidationMetric => "val_metric",
            Role::GradientNorm => "grad_norm",
            Role::Gradient(layer) => return write!(f, "grad_norm/{layer}"),
        })
    }
}

/// The text is not the name of a role.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is none of loss, metric, val_loss, val_metric, learning_rate, step, epoch, grad_norm, grad_norm/LAYER"
)]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Role, UnknownRole> {
        Ok(match text {
            "step" => Role::Step,
            "epoch" => Role::Epoch,
            "loss" => Role::Loss,
            "metric" => Role::Metric,
            "learning_rate" => Role::LearningRate,
            "val_loss" => Role::ValidationLoss,
            "val_metric" => Role::ValidationMetric,
            "grad_norm" => Role::GradientNorm,
            _ => match text.strip_prefix("grad_norm/") {
                Some(layer) if !layer.is_empty() => Role::Gradient(layer.to_owned()),
                _ => return Err(UnknownRole(text.to_owned())),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_parsed_as_it_is_shown() {
        for text in ["step", "loss", "val_metric", "grad_norm", "grad_norm/block.1/dense"] {
            assert_eq!(text.parse::<Role>().unwrap().to_string(), text);
        }
        let error = "grad_norm/".parse::<Role>().unwrap_err().to_string();
        assert!(error.contains("grad_norm/LAYER"), "{error}");
    }
}
