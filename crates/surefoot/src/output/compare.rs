//! How two runs compare.

use super::Role;
use super::number::{grouped, short};
use super::replay::{Disagreement, value, words};
use serde_json::{Value, json};
use surefoot_record::{Part, Quantity};

/// Two runs beside each other.
#[derive(Debug)]
pub(crate) struct Comparison {
    pub(crate) runs: [String; 2],
    /// The last step that each has.
    pub(crate) last: [u64; 2],
    /// The lines in which their plans differ.
    pub(crate) plan_diff: String,
    /// In which their environments differ: a name, and what it is in each.
    pub(crate) surroundings: Vec<(String, String, String)>,
    /// Whether they delivered the same model, if both delivered one.
    pub(crate) delivered: Option<bool>,
    pub(crate) parting: Option<Parting>,
}

/// Where they part.
#[derive(Debug)]
pub(crate) struct Parting {
    pub(crate) disagreement: Disagreement,
    /// Parts that only one of them has.
    pub(crate) alone: [Vec<Part>; 2],
    /// What was observed to differ in that step.
    pub(crate) observed: Option<Observed>,
}

/// A statistic that was observed of both, and differs.
#[derive(Debug)]
pub(crate) struct Observed {
    /// `input`, `output`, `gradient` or `weight`.
    pub(crate) what: &'static str,
    pub(crate) layer: Option<String>,
    pub(crate) norms: [f64; 2],
}

impl Comparison {
    /// Whether nothing differs that both have.
    pub(crate) fn is_equal(&self) -> bool {
        self.parting.is_none() && !self.delivers_others()
    }

    /// Whether other models were delivered after the same steps, as repairs can do.
    fn delivers_others(&self) -> bool {
        self.delivered == Some(false) && self.last[0] == self.last[1]
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut lines = Vec::new();
        if !self.plan_diff.is_empty() {
            lines.push("the plans differ:".to_owned());
            lines.extend(self.plan_diff.lines().map(|line| format!("    {line}")));
        }
        for (what, one, other) in &self.surroundings {
            lines.push(format!("{what} differs: {one} and {other}"));
        }
        match &self.parting {
            None => self.tell_equal(&mut lines),
            Some(parting) => self.tell_parting(parting, &mut lines),
        }
        let [one, other] = self.runs.each_ref().map(|run| Role::Strong.paint(run));
        let lines: Vec<String> = lines.iter().map(|line| format!("  {line}")).collect();
        format!("{one} and {other}\n{}", lines.join("\n"))
    }

    fn tell_equal(&self, lines: &mut Vec<String>) {
        let [one, other] = self.last;
        let equal = Role::Good.paint("equal");
        lines.push(match one == other {
            true => format!("{equal}, step 0 to {}", grouped(one)),
            false => {
                let shorter = &self.runs[usize::from(other < one)];
                let (end, longer) = (grouped(one.min(other)), grouped(one.max(other)));
                format!(
                    "{equal} up to step {end}, where {shorter} ends; the other goes on to {longer}"
                )
            }
        });
        if self.delivers_others() {
            lines.push(Role::Error.paint("and the delivered models differ"));
        }
    }

    fn tell_parting(&self, parting: &Parting, lines: &mut Vec<String>) {
        let found = &parting.disagreement;
        let where_from = match found.step {
            0 => Role::Error.paint("they part before the first step"),
            step => {
                lines.push(match step {
                    1 => "equal before the first step".to_owned(),
                    _ => format!("equal up to step {}", grouped(step - 1)),
                });
                Role::Error.paint(format!("at step {} they part", grouped(step)))
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
        for (run, parts) in self.runs.iter().zip(&parting.alone) {
            if !parts.is_empty() {
                let parts: Vec<String> = parts.iter().map(words).collect();
                lines.push(format!("  only {run} has {}", parts.join(", ")));
            }
        }
        if let Some(observed) = &parting.observed {
            let what = match &observed.layer {
                None => format!("the {}", observed.what),
                Some(layer) => format!("the {} of {layer}", observed.what),
            };
            let [one, other] = observed.norms.map(short);
            lines.push(format!(
                "  of what was observed, {what} is the first to differ: norm {one} and {other}"
            ));
        }
    }

    /// For programs.
    pub(crate) fn event(&self) -> Value {
        let parting = self.parting.as_ref().map(|parting| {
            let mut event = parting.disagreement.event();
            if let Some(event) = event.as_object_mut() {
                event.remove("event");
            }
            event["only"] = json!(parting.alone);
            event["observed"] = parting.observed.as_ref().map_or(Value::Null, |observed| {
                json!({
                    "what": observed.what,
                    "layer": observed.layer,
                    "norms": observed.norms.map(value),
                })
            });
            event
        });
        let environment = self.surroundings.iter();
        let environment =
            environment.map(|(what, one, other)| json!({"what": what, "values": [one, other]}));
        json!({
            "event": "compare",
            "runs": self.runs,
            "equal": self.is_equal(),
            "steps": self.last,
            "parting": parting,
            "plan_diff": self.plan_diff,
            "environment": environment.collect::<Vec<_>>(),
            "delivered_equal": self.delivered,
        })
    }
}
