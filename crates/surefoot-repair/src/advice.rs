//! Advice for a person, for runs that cannot be rebuilt.

use crate::action::Action;
use crate::remedies;
use crate::search::{RepairConfig, RepairSearch};
use crate::subject::Subject;
use surefoot_diagnose::{Facts, Finding};

/// Actions as sentences, for a person to follow. Supports every action.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Advice {
    /// The sentences.
    pub sentences: Vec<String>,
}

impl Subject for Advice {
    fn supports(&self, _: &Action) -> bool {
        true
    }

    fn apply(&mut self, action: &Action) -> Result<String, String> {
        self.sentences.push(action.to_string());
        Ok(action.to_string())
    }

    fn diff(&self, changed: &Self) -> String {
        changed.sentences[self.sentences.len()..].join("\n")
    }
}

/// Returns what to try against `finding`, the most promising first.
pub fn advice(finding: &Finding, facts: &Facts) -> Vec<String> {
    // As many as there are remedies, but none in another form.
    let config = RepairConfig { parallel: remedies::all().len(), ..RepairConfig::default() };
    let mut search = RepairSearch::new(
        Advice::default(),
        finding.clone(),
        &[],
        facts.clone(),
        remedies::all(),
        config,
    );
    let mut round = search.next_round();
    let mut seen = Vec::new();
    round.retain(|proposal| {
        let new = !seen.contains(&proposal.remedies);
        seen.push(proposal.remedies.clone());
        new
    });
    round.into_iter().map(|proposal| proposal.message).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use surefoot_diagnose::Problem;

    #[test]
    fn advice_names_each_remedy_once_in_order() {
        let finding = Finding::new(Problem::EXPLODING_GRADIENT, 10, "");
        let advice = advice(&finding, &Facts::default());
        assert_eq!(
            advice[..3],
            [
                "Replace the hidden activations with selu and initialize their weights to fit.",
                "Add batch normalization before the hidden activations.",
                "Clip the gradient to a norm of at most 1.",
            ]
        );
    }
}
