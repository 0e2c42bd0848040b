//! Which remedies answer a problem, and in which order.

use surefoot_diagnose::{Finding, Problem};
use surefoot_plan::Repair;

/// The ids of the remedies that answer `finding`, the most promising first.
///
/// The order is AutoTrainer's (Table 2), but for three things. Where the evidence points at a cause,
/// the remedy for that cause comes first. Remedies that the paper does not use for a problem, and
/// that answer a cause of it, come behind its own. And what the user asks for goes before all.
pub fn order(finding: &Finding, wishes: &Repair) -> Vec<String> {
    let mut ids: Vec<&str> = by_evidence(finding);
    for id in by_problem(&finding.problem) {
        if !ids.contains(id) {
            ids.push(id);
        }
    }
    let mut ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
    ids.retain(|id| !wishes.forbid.contains(id));
    let wish = |id: &String| wishes.order.iter().position(|wished| wished == id);
    ids.sort_by_key(|id| wish(id).unwrap_or(usize::MAX));
    ids
}

fn by_problem(problem: &Problem) -> &'static [&'static str] {
    match problem.id() {
        "vanishing_gradient" => &["S2", "S1", "S4", "S6", "E1"],
        "exploding_gradient" => &["S2", "S1", "S3", "S4", "S6", "E1"],
        "dying_relu" => &["S2", "S1", "S4", "S6", "E1"],
        "slow_convergence" => &["S7", "S6", "S4", "S2", "S1", "E1"],
        "oscillating_loss" => &["S7", "S6", "S4", "S5", "S1", "E1"],
        "improper_output_activation" => &["S2"],
        "improper_loss" => &["S8"],
        "abnormal_data" => &["S9"],
        // A problem from elsewhere, whose remedies come from there too.
        _ => &[],
    }
}

/// What the evidence points at.
fn by_evidence(finding: &Finding) -> Vec<&'static str> {
    let number = |name: &str| finding.number(name).unwrap_or(f64::NAN);
    let gain = number("gain of the initial weights");
    let update = number("largest update ratio");
    let batch = number("batch size");
    let mut ids = Vec::new();
    // Weights several times too large or too small for their layers.
    let (huge, tiny) = (gain >= 3.0, gain < 0.3);
    if huge || tiny {
        ids.push("S4");
    }
    // A few samples a step are noise, to batch normalisation above all.
    if batch > 0.0 && batch < 8.0 {
        ids.push("S5");
    }
    // Steps that tore the weights out of shape: another rate, or an optimizer that finds its own.
    if update >= 0.08 && !tiny {
        ids.extend(["S6", "S7"]);
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
        let ids = order(&found(Problem::DYING_RELU), &Repair::default());
        assert_eq!(ids[..3], ["S2", "S1", "S4"]);
        let ids = order(&found(Problem::SLOW_CONVERGENCE), &Repair::default());
        assert_eq!(ids[..3], ["S7", "S6", "S4"]);
    }

    #[test]
    fn evidence_of_a_cause_puts_its_remedy_first() {
        let torn = found(Problem::DYING_RELU).with("largest update ratio", 0.5, None);
        assert_eq!(order(&torn, &Repair::default())[..3], ["S6", "S7", "S2"]);
        let huge =
            found(Problem::EXPLODING_GRADIENT).with("gain of the initial weights", 9.0, None);
        assert_eq!(order(&huge, &Repair::default())[0], "S4");
    }

    #[test]
    fn wishes_go_before_all() {
        let wishes = Repair {
            forbid: vec!["S2".to_owned()],
            order: vec!["S4".to_owned()],
            ..Repair::default()
        };
        let ids = order(&found(Problem::VANISHING_GRADIENT), &wishes);
        assert_eq!(ids[..2], ["S4", "S1"]);
        assert!(!ids.contains(&"S2".to_owned()));
    }
}
