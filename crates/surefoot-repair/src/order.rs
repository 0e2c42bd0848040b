//! The order in which remedies are tried.

use crate::search::RepairConfig;
use surefoot_diagnose::{Finding, Measure, Problem};

/// The ids of the remedies that answer `finding`, the most promising first.
///
/// The order is AutoTrainer's (Table 2), with three differences. Remedies that `config` puts first come
/// first. Then come remedies for a cause that the evidence points at. Remedies that the paper does not
/// use for a problem, but that answer one of its causes, come last. With
/// [`RepairConfig::published`] it is the paper's, without them.
pub fn order(finding: &Finding, config: &RepairConfig) -> Vec<String> {
    let mut ids = if config.published { Vec::new() } else { by_evidence(finding) };
    // Large targets explain large steps and losses.
    if !ids.is_empty() && by_problem(&finding.problem).contains(&"scale_targets") {
        ids.insert(0, "scale_targets");
    }
    let all = match config.published {
        true => published(&finding.problem),
        false => by_problem(&finding.problem),
    };
    for id in all {
        if !ids.contains(id) {
            ids.push(id);
        }
    }
    let mut ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
    ids.retain(|id| !config.forbid.contains(id));
    let place = |id: &String| config.order.iter().position(|first| first == id);
    ids.sort_by_key(|id| place(id).unwrap_or(usize::MAX));
    ids
}

fn by_problem(problem: &Problem) -> &'static [&'static str] {
    match problem.id() {
        "vanishing_gradient" => &[
            "activation",
            "batch_norm",
            "initializer",
            "residual",
            "learning_rate",
            "recipe",
            "epochs",
        ],
        "exploding_gradient" | "non_finite_loss" => &[
            "scale_targets",
            "activation",
            "batch_norm",
            "clip_gradient",
            "initializer",
            "learning_rate",
            "recipe",
        ],
        "dying_relu" => {
            &["activation", "batch_norm", "initializer", "residual", "learning_rate", "recipe"]
        }
        "slow_convergence" => &[
            "scale_targets",
            "optimizer",
            "learning_rate",
            "epochs",
            "initializer",
            "activation",
            "batch_norm",
            "recipe",
        ],
        "oscillating_loss" | "diverging_loss" => &[
            "scale_targets",
            "optimizer",
            "learning_rate",
            "initializer",
            "batch_size",
            "batch_norm",
            "recipe",
        ],
        "improper_output_activation" => &["activation"],
        "improper_output_units" => &["output_units"],
        "improper_loss" => &["loss"],
        "unscaled_targets" => &["scale_targets", "learning_rate", "optimizer"],
        "abnormal_data" => &["normalize_data"],
        // Problems of other crates bring their own remedies.
        _ => &[],
    }
}

/// AutoTrainer's remedies for a problem, in its default order (Table 6).
fn published(problem: &Problem) -> &'static [&'static str] {
    match problem.id() {
        "vanishing_gradient" => &["activation", "batch_norm"],
        "exploding_gradient" => &["activation", "batch_norm", "clip_gradient"],
        "dying_relu" => &["activation", "batch_norm", "initializer"],
        "oscillating_loss" => &["optimizer", "learning_rate", "initializer", "batch_size"],
        "slow_convergence" => &["optimizer", "learning_rate", "initializer"],
        "improper_output_activation" => &["activation"],
        "improper_loss" => &["loss"],
        "abnormal_data" => &["normalize_data"],
        _ => &[],
    }
}

/// Remedies for the cause that the evidence indicates.
fn by_evidence(finding: &Finding) -> Vec<&'static str> {
    let value = |measure: Measure| finding.value(&measure).unwrap_or(f64::NAN);
    let gain = value(Measure::InitialGain);
    let update = value(Measure::LargestUpdateRatio);
    let batch = value(Measure::BatchSize);
    let mut ids = Vec::new();
    // Weights several times too large or too small for their layers.
    let (huge, tiny) = (gain >= 3.0, gain < 0.3);
    if huge || tiny {
        ids.push("initializer");
    }
    // Very deep networks need residual connections.
    if value(Measure::Depth) >= 20.0 && !huge {
        ids.push("residual");
    }
    // Batches of a few samples are noise, above all for batch normalization.
    if batch > 0.0 && batch < 8.0 {
        ids.push("batch_size");
    }
    // Steps that destroyed the weights: another learning rate, or an adaptive optimizer.
    if update >= 0.08 && !tiny {
        ids.extend(["learning_rate", "optimizer"]);
    }
    ids
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(problem: Problem) -> Finding {
        Finding::new(problem, 1, "")
    }

    #[test]
    fn without_evidence_the_order_is_that_of_the_paper() {
        let ids = order(&found(Problem::DYING_RELU), &RepairConfig::default());
        assert_eq!(ids[..3], ["activation", "batch_norm", "initializer"]);
        let ids = order(&found(Problem::SLOW_CONVERGENCE), &RepairConfig::default());
        assert_eq!(ids[1..3], ["optimizer", "learning_rate"]);
    }

    #[test]
    fn evidence_of_a_cause_puts_its_remedy_first() {
        let erratic = found(Problem::DYING_RELU).with(Measure::LargestUpdateRatio, 0.5, None);
        assert_eq!(
            order(&erratic, &RepairConfig::default())[..3],
            ["learning_rate", "optimizer", "activation"]
        );
        let huge = found(Problem::EXPLODING_GRADIENT).with(Measure::InitialGain, 9.0, None);
        let ids = order(&huge, &RepairConfig::default());
        assert_eq!(ids[..2], ["scale_targets", "initializer"]);
    }

    #[test]
    fn configured_remedies_come_first() {
        let config = RepairConfig {
            forbid: vec!["activation".to_owned()],
            order: vec!["initializer".to_owned()],
            ..RepairConfig::default()
        };
        let ids = order(&found(Problem::VANISHING_GRADIENT), &config);
        assert_eq!(ids[..2], ["initializer", "batch_norm"]);
        assert!(!ids.contains(&"activation".to_owned()));
    }
}
