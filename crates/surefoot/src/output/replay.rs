//! The result of a replay.

use super::Role;
use super::number::{counted, grouped, time};
use serde_json::{Value, json};
use surefoot_record::{Part, Quantity};

/// A step whose digest differs.
#[derive(Debug)]
pub(crate) struct Disagreement {
    pub(crate) step: u64,
    /// The parts that differ, the most informative first.
    pub(crate) parts: Vec<Part>,
    /// The losses, recorded and repeated, if they differ.
    pub(crate) losses: Option<(f64, f64)>,
}

impl Disagreement {
    /// Compares the parts of two digests.
    pub(crate) fn new(step: u64, names: &[Part], then: &[u64], now: &[u64]) -> Self {
        let differing = names.iter().zip(then.iter().zip(now));
        let differing = differing.filter(|(_, (then, now))| then != now);
        let mut losses = None;
        let mut parts: Vec<Part> = Vec::new();
        for (part, (then, now)) in differing {
            if part.quantity == Quantity::Loss {
                losses = Some((f64::from_bits(*then), f64::from_bits(*now)));
            }
            parts.push(part.clone());
        }
        // Stable, so that of several layers the first of the network stays the first.
        parts.sort_by_key(|part| part.quantity);
        Self { step, parts, losses }
    }

    /// Describes the first difference; `verb` stands between the losses.
    pub(crate) fn what(&self, verb: &str) -> String {
        let Some(first) = self.parts.first() else {
            return "outside the parts of the digest".to_owned();
        };
        let mut text = format!("first in {}", words(first));
        if let (Quantity::Loss, Some((then, now))) = (first.quantity, self.losses) {
            text.push_str(&format!(", {now} {verb} {then}"));
        }
        text
    }

    /// Describes the other differences.
    pub(crate) fn rest(&self) -> Option<String> {
        let rest = self.parts.get(1..).filter(|rest| !rest.is_empty())?;
        let mut groups: Vec<(Quantity, Vec<&str>)> = Vec::new();
        for part in rest {
            let layer = part.layer.as_deref();
            match groups.last_mut() {
                Some((quantity, layers)) if *quantity == part.quantity => layers.extend(layer),
                _ => groups.push((part.quantity, layer.into_iter().collect())),
            }
        }
        let groups = groups.iter().map(|(quantity, layers)| match layers.len() {
            0 => title(*quantity).to_owned(),
            1..=4 => format!("{} of {}", title(*quantity), layers.join(", ")),
            more => format!("{} of {} layers", title(*quantity), more),
        });
        Some(groups.collect::<Vec<_>>().join("; "))
    }

    /// For programs.
    pub(crate) fn event(&self) -> Value {
        let first = self.parts.first();
        json!({
            "event": "mismatch",
            "step": self.step,
            "quantity": first.map(|part| part.quantity),
            "layer": first.and_then(|part| part.layer.as_deref()),
            "parts": self.parts,
            "loss": self.losses.map(|(then, now)| json!([value(then), value(now)])),
        })
    }
}

/// A number as JSON; non-finite numbers are strings.
pub(crate) fn value(number: f64) -> Value {
    surefoot_diagnose::number::serialize(&number, serde_json::value::Serializer)
        .unwrap_or(Value::Null)
}

fn title(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Batch => "the samples of the batch",
        Quantity::Loss => "the loss",
        Quantity::Parameters => "the parameters",
        Quantity::Statistics => "the moving statistics",
        Quantity::Optimizer => "the optimizer state",
    }
}

/// Describes a part.
pub(crate) fn words(part: &Part) -> String {
    match &part.layer {
        None => title(part.quantity).to_owned(),
        Some(layer) => format!("{} of {layer}", title(part.quantity)),
    }
}

/// The result of replaying a run.
#[derive(Debug)]
pub(crate) struct ReplayResult {
    pub(crate) run: String,
    /// Description of the start.
    pub(crate) beginning: String,
    pub(crate) start: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Digests that agree.
    pub(crate) checked: u64,
    /// Repeated steps.
    pub(crate) repeated: u64,
    pub(crate) seconds: f64,
    pub(crate) disagreement: Option<Disagreement>,
    /// Missing or damaged parts of the record, a sentence each.
    pub(crate) faults: Vec<String>,
}

impl ReplayResult {
    /// Returns true if every digest agrees and the record is complete.
    pub(crate) fn agrees(&self) -> bool {
        self.disagreement.is_none() && self.faults.is_empty()
    }

    /// For people.
    pub(crate) fn text(&self) -> String {
        let mut text = self.steps_text();
        for fault in &self.faults {
            text.push_str(&format!("\n  {}", Role::Error.paint(fault)));
        }
        text
    }

    fn steps_text(&self) -> String {
        let run = Role::Strong.paint(&self.run);
        let effort = Role::Quiet.paint(format!(
            "repeated {} {}, in {}",
            counted(self.repeated, "step"),
            self.beginning,
            time(self.seconds)
        ));
        let Some(found) = &self.disagreement else {
            let agree = Role::Good.paint("all digests agree");
            let (from, to) = (grouped(self.from), grouped(self.to));
            return format!("{run}: {agree}, step {from} to {to}\n  {effort}");
        };
        let head = match found.step {
            step if step == self.start && step > 0 => {
                format!("the checkpoint at step {} differs", grouped(step))
            }
            0 => "the state before the first step differs".to_owned(),
            step => format!("step {} differs", grouped(step)),
        };
        let head = Role::Error.paint(head);
        let mut lines = vec![format!("{run}: {head}: {}", found.what("now, recorded as"))];
        if let Some(rest) = found.rest() {
            lines.push(format!("  also {rest}"));
        }
        if self.checked > 0 {
            lines.push(format!("  {} before it agree", counted(self.checked, "digest")));
        }
        lines.push(format!("  {effort}"));
        lines.join("\n")
    }

    /// For programs.
    pub(crate) fn event(&self) -> Value {
        let mut event = json!({
            "event": "replay",
            "run": self.run,
            "agrees": self.agrees(),
            "faults": self.faults,
            "start": self.start,
            "from": self.from,
            "to": self.to,
            "checked": self.checked,
            "steps": self.repeated,
            "seconds": self.seconds,
            "mismatch": null,
        });
        if let Some(found) = &self.disagreement {
            let mut found = found.event();
            if let Some(found) = found.as_object_mut() {
                found.remove("event");
            }
            event["mismatch"] = found;
        }
        event
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> Vec<Part> {
        vec![
            Part::of(Quantity::Batch),
            Part::of(Quantity::Loss),
            Part::of(Quantity::Optimizer),
            Part::of_layer(Quantity::Parameters, "dense_1"),
            Part::of_layer(Quantity::Parameters, "dense_2"),
        ]
    }

    #[test]
    fn layers_come_before_the_optimizer() {
        let found = Disagreement::new(7, &parts(), &[1, 2, 3, 4, 5], &[1, 2, 9, 4, 9]);
        assert_eq!(found.what("was"), "first in the parameters of dense_2");
        assert_eq!(found.rest().as_deref(), Some("the optimizer state"));
        assert_eq!(found.event()["layer"], "dense_2");
    }

    #[test]
    fn losses_are_shown_with_all_their_digits() {
        let (then, now) = (0.1_f64.to_bits(), 0.30000000000000004_f64.to_bits());
        let found = Disagreement::new(7, &parts(), &[1, then, 3, 4, 5], &[1, now, 3, 4, 9]);
        let text = found.what("now, recorded as");
        assert_eq!(text, "first in the loss, 0.30000000000000004 now, recorded as 0.1");
    }

    #[test]
    fn an_unknown_difference_has_no_quantity() {
        let found = Disagreement::new(7, &parts(), &[1, 2, 3, 4, 5], &[1, 2, 3, 4, 5]);
        assert!(found.parts.is_empty());
        assert!(found.what("was").contains("outside the parts"));
        assert!(found.event()["quantity"].is_null());
    }
}
