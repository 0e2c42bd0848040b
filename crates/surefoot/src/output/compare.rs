//! The comparison of two runs.

use super::Role;
use super::number::{grouped, short};
use super::replay::{Disagreement, value, words};
use serde_json::{Value, json};
use surefoot_record::{Part, Quantity};

/// The comparison of two runs.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) runs: [String; 2],
    /// The last step of each.
    pub(crate) last: [u64; 2],
    /// `plans` or `programs`.
    pub(crate) sources: &'static str,
    /// The lines in which these differ.
    pub(crate) plan_diff: String,
    /// Differences of their environments: a name and both values.
    pub(crate) environment: Vec<(String, String, String)>,
    /// True if both delivered the same model; `None` unless both delivered one.
    pub(crate) delivered: Option<bool>,
    pub(crate) divergence: Option<Divergence>,
}

/// The first step that differs.
#[derive(Debug)]
pub(crate) struct Divergence {
    pub(crate) disagreement: Disagreement,
    /// Parts that only one run has.
    pub(crate) alone: [Vec<Part>; 2],
    /// The first observed statistic that differs in that step.
    pub(crate) observed: Option<Observed>,
}

/// A statistic that differs.
#[derive(Debug)]
pub(crate) struct Observed {
    /// `input`, `output`, `gradient` or `weight`.
    pub(crate) what: &'static str,
    pub(crate) layer: Option<String>,
    pub(crate) norms: [f64; 2],
}

impl Comparison {
    /// Returns true if all common steps are equal.
    pub(crate) fn is_equal(&self) -> bool {
        self.divergence.is_none() && !self.delivers_different_models()
    }

    /// Returns true if equal steps delivered different models, as after a repair.
    fn delivers_different_models(&self) -> bool {
        self.delivered == Some(false) && self.last[0] == self.last[1]
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut lines = Vec::new();
        if !self.plan_diff.is_empty() {
            lines.push(format!("the {} differ:", self.sources));
            lines.extend(self.plan_diff.lines().map(|line| format!("    {line}")));
        }
        for (what, one, other) in &self.environment {
            lines.push(format!("{what} differs: {one} and {other}"));
        }
        match &self.divergence {
            None => self.describe_equal(&mut lines),
            Some(divergence) => self.describe_divergence(divergence, &mut lines),
        }
        let [one, other] = self.runs.each_ref().map(|run| Role::Strong.paint(run));
        let lines: Vec<String> = lines.iter().map(|line| format!("  {line}")).collect();
        format!("{one} and {other}\n{}", lines.join("\n"))
    }

    fn describe_equal(&self, lines: &mut Vec<String>) {
        let [one, other] = self.last;
        let equal = Role::Good.paint("equal");
        lines.push(match one == other {
            true => format!("{equal}, step 0 to {}", grouped(one)),
            false => {
                let shorter = &self.runs[usize::from(other < one)];
                let (end, longer) = (grouped(one.min(other)), grouped(one.max(other)));
                format!(
                    "{equal} up to step {end}, where {shorter} ends; the other continues to {longer}"
                )
            }
        });
        if self.delivers_different_models() {
            lines.push(Role::Error.paint("and the delivered models differ"));
        }
    }

    fn describe_divergence(&self, divergence: &Divergence, lines: &mut Vec<String>) {
        let found = &divergence.disagreement;
        let where_from = match found.step {
            0 => Role::Error.paint("they diverge before the first step"),
            step => {
                lines.push(match step {
                    1 => "equal before the first step".to_owned(),
                    _ => format!("equal up to step {}", grouped(step - 1)),
                });
                Role::Error.paint(format!("they diverge at step {}", grouped(step)))
            }
        };
        let what = match (found.parts.first(), found.losses) {
            (Some(first), Some((one, other))) if first.quantity == Quantity::Loss => {
                format!("first in the loss, {one} and {other}")
            }
            _ => found.what("and"),
        };
        lines.push(format!("{where_from}: {what}"));
        if let Some(rest) = found.rest() {
            lines.push(format!("  also {rest}"));
        }
        for (run, parts) in self.runs.iter().zip(&divergence.alone) {
            if !parts.is_empty() {
                let parts: Vec<String> = parts.iter().map(words).collect();
                lines.push(format!("  only {run} has {}", parts.join(", ")));
            }
        }
        if let Some(observed) = &divergence.observed {
            let what = match &observed.layer {
                None => format!("the {}", observed.what),
                Some(layer) => format!("the {} of {layer}", observed.what),
            };
            let [one, other] = observed.norms.map(short);
            lines
                .push(format!("  the first observed difference is {what}: norm {one} and {other}"));
        }
    }

    /// For programs.
    pub(crate) fn event(&self) -> Value {
        let divergence = self.divergence.as_ref().map(|divergence| {
            let mut event = divergence.disagreement.event();
            if let Some(event) = event.as_object_mut() {
                event.remove("event");
            }
            event["only"] = json!(divergence.alone);
            event["observed"] = divergence.observed.as_ref().map_or(Value::Null, |observed| {
                json!({
                    "what": observed.what,
                    "layer": observed.layer,
                    "norms": observed.norms.map(value),
                })
            });
            event
        });
        let environment = self.environment.iter();
        let environment =
            environment.map(|(what, one, other)| json!({"what": what, "values": [one, other]}));
        json!({
            "event": "compare",
            "runs": self.runs,
            "equal": self.is_equal(),
            "steps": self.last,
            "divergence": divergence,
            "plan_diff": self.plan_diff,
            "environment": environment.collect::<Vec<_>>(),
            "delivered_equal": self.delivered,
        })
    }
}
